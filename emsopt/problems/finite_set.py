"""`FiniteSet`: finitely many points of a box."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import _validate
from .._types import ArrayLike, FloatArray
from ..errors import InputError
from .box import SAME, Box


class FiniteSet(Box):
    """Finite subset of a box: the only points that are allowed.

    Parameters
    ----------
    box : Box
    points : array_like, shape (n, d)
        Points of the box. Those that its constraints do not allow are left out, and repeated points count once.

    Raises
    ------
    InputError
        If a point lies outside the box, or the constraints allow none of them.
    """

    points: FloatArray

    def __init__(self, box: Box, points: ArrayLike) -> None:
        self.__dict__ |= vars(box)
        rows = np.unique(box.inside(_validate.real_array(points, "candidates", (None, box.dimension))), axis=0)
        self.points = np.reshape([x for x in rows if box.allows(x)], (-1, box.dimension))
        if not len(self.points):
            raise InputError(
                f"`candidates` must hold points that the `constraints` allow; they return False at all {len(rows)}, "
                f"such as {box.shown(rows[0])}."
            )

    @property
    def count(self) -> float:
        """Number of points."""
        return len(self.points)

    def listing(self) -> FloatArray:
        """Return all points, shape (n, d)."""
        return self.points

    def canonical(self, x: ArrayLike | Mapping[str, Any]) -> FloatArray:
        """Return the point of the set that equals x up to rounding; raise if there is none."""
        apart = np.abs(self.to_unit(self.points) - self.to_unit(super().canonical(x))).max(axis=1)
        if apart.min() > SAME:
            raise InputError(f"`x` must be one of the {len(apart)} candidates; got {_validate.shown(x)}.")
        return self.points[apart.argmin()]

    def tried(self, rng: np.random.Generator) -> FloatArray:
        """Draw a point, each with the same probability."""
        return rng.choice(self.points)

    def latin_hypercube(
        self, n: int, *, rng: np.random.Generator, draw: Callable[[], FloatArray] | None = None
    ) -> FloatArray:
        """Draw n different points, or all if there are fewer, in place of a Latin hypercube."""
        return rng.permutation(self.points)[:n]
