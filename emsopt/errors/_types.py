"""Names of types for annotations. Shapes and units stand in the docstrings."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy import typing as npt

ArrayLike: TypeAlias = npt.ArrayLike
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Times: TypeAlias = npt.NDArray[np.datetime64]
Sites: TypeAlias = Sequence[int] | IntArray
"""A deployment: one site index per unit."""
PathLike: TypeAlias = str | os.PathLike[str]
Rng: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None
"""Type of ``rng`` in all functions: a seed, a generator, or None for fresh entropy."""
Progress: TypeAlias = bool | Callable[[int, int], object]
"""Type of ``progress``: whether to show a bar, or a function of (steps done, steps in all)."""
Callback: TypeAlias = Callable[[Any], object]
"""Type of ``callback``: a function that ends the run by returning True."""
