"""Parts of expensive functions of many points."""

from collections.abc import Callable

import numpy as np

from ..._types import FloatArray


def squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the squared distances between the rows of two arrays."""
    return np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0)


def in_chunks(function: Callable[[FloatArray], FloatArray], points: FloatArray, size: int) -> FloatArray:
    """Apply a function to ``size`` rows at a time, few enough for its arrays to stay in the processor's cache."""
    return np.concatenate([function(points[k : k + size]) for k in range(0, max(len(points), 1), size)])
