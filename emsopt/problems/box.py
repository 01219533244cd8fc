"""`Box`: the domain of a function of real and whole-number inputs.

Methods work on the unit cube. For a whole-number input with n values, [0, 1] is divided into n equal parts, one per
value. Rounding therefore gives the first and the last value the same share as the others.
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
    """Box of all points within bounds; some inputs may be restricted to whole numbers.

    Parameters
    ----------
    bounds : array_like, shape (d, 2)
        Lowest and highest value of each input.
    integers : sequence of int
        Indices of the inputs that are whole numbers. Their bounds must be whole numbers, too.

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
                raise InputError(f"`bounds` must have low < high in every row; got {[low, high]} in row {k}.")
            if self._whole[k] and (low % 1 or high % 1):
                raise InputError(f"`bounds` of whole-number inputs must be whole; got {[low, high]} in row {k}.")
        self._low, self._width = self.bounds[:, 0] - 0.5 * self._whole, np.ptp(self.bounds, axis=1) + self._whole

    @property
    def count(self) -> float:
        """Number of points: infinite unless all inputs are whole numbers."""
        return prod(map(int, self._width)) if self._whole.all() else np.inf

    def listing(self) -> FloatArray:
        """Return all points, shape (K, d). All inputs must be whole numbers."""
        counts = [int(width) for width in self._width]
        places = np.unravel_index(np.arange(prod(counts)), counts)
        return self.bounds[:, 0] + np.column_stack(places)

    def canonical(self, x: ArrayLike) -> FloatArray:
        """Return the point, shape (d,), with its whole-number inputs rounded; raise if it lies outside the box."""
        return self.inside(_validate.real_array(x, "x", (self.dimension,)))

    def inside(self, points: FloatArray, box: str = "the box", inputs: Sequence[str] = ()) -> FloatArray:
        """Return points, shape (..., d), with whole-number inputs rounded; raise if a point lies outside the box.

        ``box`` and ``inputs`` are the names of the box and its inputs, used in the error message.
        """
        low, high = self.bounds.T
        slack = ROUNDING * (high - low)
        outside = ~((points >= low - slack) & (points <= high + slack))  # NaN is outside, too
        if outside.any():
            *row, k = np.argwhere(outside)[0]
            name, at = inputs[k] if inputs else f"input {k}", f" in row {row[0]}" if row else ""
            found = f"{name} is {points[outside][0]:g}{at}, but must be between {low[k]:g} and {high[k]:g}"
            raise InputError(f"`x` must lie in {box}; {found}.")
        return self._rounded(np.clip(points, low, high))

    def sample(self, *, rng: Rng = None) -> FloatArray:
        """Draw a point uniformly from the box, shape (d,)."""
        return self.from_unit(_validate.generator(rng).random(self.dimension))

    def latin_hypercube(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw a Latin hypercube of n points, shape (n, d) (McKay et al. 1979).

        If the unit interval of an input is divided into n equal parts, each part contains one point. The points are
        then scaled to the box as in `from_unit`.
        """
        cells = np.column_stack([rng.permutation(n) for _ in range(self.dimension)])
        return self.from_unit((cells + rng.random((n, self.dimension))) / n)

    def to_unit(self, x: ArrayLike) -> FloatArray:
        """Scale points, shape (..., d), to the unit cube; each whole number maps to the middle of its part."""
        return (np.asarray(x, dtype=float) - self._low) / self._width

    def from_unit(self, unit: ArrayLike) -> FloatArray:
        """Scale points of the unit cube, shape (..., d), to the box, rounding whole-number inputs."""
        return np.clip(self._rounded(self._low + np.asarray(unit, dtype=float) * self._width), *self.bounds.T)

    def _rounded(self, x: FloatArray) -> FloatArray:
        return np.where(self._whole, np.rint(x), x)
