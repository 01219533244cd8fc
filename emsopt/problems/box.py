"""`Box`: the points that a function of real and whole numbers takes.

Methods work on the unit cube. A whole-number input of n values takes n equal parts of [0, 1], so that rounding gives each
value the same share, also the first and the last.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from .. import _validate
from .._types import ArrayLike, FloatArray, Rng
from ..errors import InputError

ROUNDING = 1e-9
"""Tolerance for points outside the box, relative to its width; such points are moved to the border."""


class Box:
    """The points between bounds, some of whose inputs may be whole numbers.

    Parameters
    ----------
    bounds : array_like, shape (d, 2)
        Lowest and highest value of each input.
    integers : sequence of int
        Indices of the inputs that are whole numbers; their bounds must be whole, too.

    Examples
    --------
    >>> box = Box([(0.0, 1.0), (1, 3)], integers=[1])
    >>> box.from_unit([0.25, 0.99])
    array([0.25, 3.  ])
    """

    def __init__(self, bounds: ArrayLike, integers: Sequence[int] = ()) -> None:
        self.bounds = _validate.real_array(bounds, "bounds", (None, 2))
        self.dimension = d = len(self.bounds)
        if not np.iterable(integers) or isinstance(integers, str):
            raise InputError(f"`integers` must be the indices of whole-number inputs; got {integers!r}.")
        self.integers = tuple(sorted({_validate.whole_number(k, "integers", 0, d - 1) for k in integers}))
        self._whole = np.isin(np.arange(d), self.integers)
        for k, (low, high) in enumerate(self.bounds.tolist()):
            if low >= high:
                raise InputError(f"`bounds` must have low < high in every row; row {k} is {[low, high]}.")
            if self._whole[k] and (low % 1 or high % 1):
                raise InputError(f"`bounds` of a whole-number input must be whole; row {k} is {[low, high]}.")
        self._low, self._width = self.bounds[:, 0] - 0.5 * self._whole, np.ptp(self.bounds, axis=1) + self._whole

    @property
    def count(self) -> float:
        """Number of points: infinite unless all inputs are whole numbers."""
        return prod(map(int, self._width)) if self._whole.all() else np.inf

    def listing(self) -> FloatArray:
        """Return all points, shape (K, d), where all inputs are whole numbers."""
        counts = [int(width) for width in self._width]
        places = np.unravel_index(np.arange(prod(counts)), counts)
        return self.bounds[:, 0] + np.column_stack(places)

    def canonical(self, x: ArrayLike) -> FloatArray:
        """Return the point in the box, shape (d,), with whole numbers where they belong."""
        return self.inside(_validate.real_array(x, "x", (self.dimension,)))

    def inside(self, points: FloatArray, box: str = "the box", inputs: Sequence[str] = ()) -> FloatArray:
        """Return points, shape (..., d), with whole numbers where they belong, if they lie in the box.

        ``box`` and ``inputs`` are the names of the box and of its inputs in messages.
        """
        low, high = self.bounds.T
        slack = ROUNDING * (high - low)
        outside = ~((points >= low - slack) & (points <= high + slack))  # NaN is outside, too
        if outside.any():
            *row, k = np.argwhere(outside)[0]
            name, at = inputs[k] if inputs else f"input {k}", f" in row {row[0]}" if row else ""
            found = f"{name} is {points[outside][0]:g}{at}, not from {low[k]:g} to {high[k]:g}"
            raise InputError(f"`x` must lie in {box}; {found}.")
        return self._rounded(np.clip(points, low, high))

    def sample(self, *, rng: Rng = None) -> FloatArray:
        """Draw a point uniformly from the box, shape (d,)."""
        return self.from_unit(_validate.generator(rng).random(self.dimension))

    def latin_hypercube(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return ``n`` points of which each of n equal parts of every input holds one (McKay et al. 1979); (n, d)."""
        cells = np.column_stack([rng.permutation(n) for _ in range(self.dimension)])
        return self.from_unit((cells + rng.random((n, self.dimension))) / n)

    def to_unit(self, x: ArrayLike) -> FloatArray:
        """Return points, shape (..., d), on the unit cube; whole numbers in the middle of their parts."""
        return (np.asarray(x, dtype=float) - self._low) / self._width

    def from_unit(self, unit: ArrayLike) -> FloatArray:
        """Return the points of the box, shape (..., d), for points of the unit cube."""
        return np.clip(self._rounded(self._low + np.asarray(unit, dtype=float) * self._width), *self.bounds.T)

    def _rounded(self, x: FloatArray) -> FloatArray:
        return np.where(self._whole, np.rint(x), x)
