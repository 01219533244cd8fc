"""A box of real and whole numbers, and a function on it as an objective: what `minimize` and `maximize` search.

Methods work on the unit cube. A whole-number input of n values takes n equal parts of [0, 1], so that rounding gives each
value the same share, also the first and the last.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ... import _validate
from ..._types import ArrayLike, BoolArray, FloatArray, Rng
from ...errors import InputError
from ...problems import Problem
from ...problems.problem import ROUNDING


@dataclass(frozen=True, eq=False, init=False)
class Box:
    """The points that a search may propose.

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

    bounds: FloatArray
    integers: tuple[int, ...]

    def __init__(self, bounds: ArrayLike, integers: Sequence[int] = ()) -> None:
        bounds = _validate.real_array(bounds, "bounds", (None, 2))
        for k in np.flatnonzero(bounds[:, 0] >= bounds[:, 1]):
            raise InputError(f"`bounds` must have low < high in every row; row {k} is {bounds[k].tolist()}.")
        if not np.iterable(integers) or isinstance(integers, str):
            raise InputError(f"`integers` must be the indices of whole-number inputs; got {integers!r}.")
        integers = tuple(sorted({_validate.whole_number(k, "integers", 0, len(bounds) - 1) for k in integers}))
        vars(self).update(bounds=bounds, integers=integers)  # a frozen dataclass takes no assignments
        for k in np.flatnonzero((bounds % 1 != 0).any(axis=1) & self._is_integer):
            raise InputError(f"`bounds` of a whole-number input must be whole; row {k} is {bounds[k].tolist()}.")

    @property
    def dimension(self) -> int:
        """Number of inputs d."""
        return len(self.bounds)

    @property
    def count(self) -> float:
        """Number of points: infinite unless all inputs are whole numbers."""
        return prod(self._counts) if self._is_integer.all() else np.inf

    def chunks(self) -> Iterator[FloatArray]:
        """Yield all points in arrays of at most 4,096 rows; only where all inputs are whole numbers."""
        n = prod(self._counts)
        for start in range(0, n, 4096):
            places = np.unravel_index(np.arange(start, min(start + 4096, n)), self._counts)
            yield self.bounds[:, 0] + np.column_stack(places)

    def canonical(self, x: ArrayLike) -> FloatArray:
        """Return the point in the box, shape (d,), with whole numbers where they belong."""
        x = self._rounded(_validate.real_array(x, "x", (self.dimension,)))
        low, high = self.bounds.T
        slack = ROUNDING * (high - low)
        for k in np.flatnonzero((x < low - slack) | (x > high + slack)):
            raise InputError(f"`x` must lie in the box; input {k} is {x[k]:g}, not from {low[k]:g} to {high[k]:g}.")
        return np.clip(x, low, high)

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
        return np.where(self._is_integer, np.rint(x), x)

    @cached_property
    def _is_integer(self) -> BoolArray:
        return np.isin(np.arange(self.dimension), self.integers)

    @property
    def _counts(self) -> list[int]:
        return [int(high - low) + 1 for low, high in self.bounds]

    @property
    def _low(self) -> FloatArray:
        return self.bounds[:, 0] - 0.5 * self._is_integer

    @property
    def _width(self) -> FloatArray:
        return np.ptp(self.bounds, axis=1) + self._is_integer


@dataclass(frozen=True, eq=False, repr=False)
class BoxObjective:
    """A function on a box as the optimizers on boxes see it; make one with `on_box`.

    Attributes
    ----------
    function : callable
        From a point, shape (d,), to its value.
    space : Box
    sense : str
        "max" or "min".
    noisy : bool
        Whether the same point can get different values.
    """

    function: Callable[..., Any]
    space: Box
    sense: str
    noisy: bool

    def __call__(self, x: ArrayLike) -> float:
        """Return the value of a point."""
        return self.function(x)

    def seeded(self, seed: int) -> "BoxObjective":
        """Return the objective with the noise of a `Problem` drawn anew; the noise of another function is its own."""
        if not isinstance(self.function, Problem):
            return self
        return replace(self, function=replace(self.function, rng=np.random.default_rng(seed)))

    def __repr__(self) -> str:
        return f"<BoxObjective: {self.space.dimension} inputs, {self.sense}>"


Function: TypeAlias = Problem | BoxObjective | Callable[[FloatArray], float]


def on_box(
    f: Function,
    *,
    bounds: ArrayLike | None = None,
    integers: Sequence[int] | None = None,
    noisy: bool | None = None,
    sense: str | None = None,
) -> BoxObjective:
    """Return a function as an objective.

    Parameters
    ----------
    f : Problem, BoxObjective or callable
        Its attributes are the defaults of the options below; that of ``noisy`` is whether its ``noise_sd`` is above 0.
    bounds, integers
        As in `Box`.
    noisy : bool
        Whether the same point can get different values.
    sense : {"min", "max"}
        Whether to minimise or maximise; "max" if neither this nor the function says.

    Raises
    ------
    InputError
        If ``sense`` is not that of ``f``, or another option is invalid.
    """
    given = [value for value in (sense, getattr(f, "sense", None)) if value is not None] or ["max"]
    sense, own = (_validate.choice(value, "sense", ("min", "max")) for value in (given[0], given[-1]))
    if sense != own:
        raise InputError(f"`sense` is {sense!r}, but `f` has the `sense` {own!r}. Leave one of the two out.")
    if isinstance(f, BoxObjective):
        if any(value is not None for value in (bounds, integers, noisy)):
            raise InputError("`bounds`, `integers` and `noisy` of a BoxObjective are its own: leave them out.")
        return f
    if not callable(f):
        raise InputError(f"`f` must be a Problem or a function of a point, shape (d,); got {type(f).__name__}.")
    bounds = getattr(f, "bounds", None) if bounds is None else bounds
    if bounds is None:
        raise InputError(
            "`bounds`, the lowest and highest value of each input, are missing: pass them, as the function defines none. "
            "To search over deployments, pass an emsopt.Objective instead."
        )
    box = Box(bounds, getattr(f, "integers", ()) if integers is None else integers)
    noisy = (getattr(f, "noise_sd", 0) or 0) > 0 if noisy is None else _validate.truth(noisy, "noisy")
    return BoxObjective(f, box, sense, bool(noisy))
