"""`Box`: the domain of a function, with real, whole-number and categorical inputs.

Methods work on the unit cube, and this module is the only place that scales and encodes inputs:

- A real input is scaled linearly from its bounds to [0, 1], with ``log=True`` its logarithm.
- For a whole-number input with n values, [0, 1] is divided into n parts, one per value. Without ``log`` the parts are
  equal: rounding therefore gives the first and the last value the same share as the others.
- A categorical input with two choices is encoded like a whole number. With n > 2 choices it has n coordinates on the
  cube, of which that of the choice is 1 and the others are 0, so that all choices are equally far apart; a point of the
  cube stands for the choice with the largest coordinate.

Points are arrays of numbers, with the index of the choice for a categorical input; `Box.named` converts them to values
by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .. import _validate
from .._types import ArrayLike, FloatArray, Rng
from ..errors import InputError

ROUNDING = 1e-9
"""Tolerance for points outside the box, relative to its width; such points are moved to the border."""
TRIES = 10_000
"""Number of random points drawn to find one that the constraints allow."""
MOST_LISTED = 100_000
"""Largest number of points of a box that are listed to count those that the constraints allow."""


@dataclass(frozen=True)
class Real:
    """Real input from ``low`` to ``high``; with ``log=True``, methods search its logarithm."""

    low: float
    high: float
    log: bool = False
    whole: ClassVar[bool] = False
    choices: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True)
class Integer:
    """Whole-number input from ``low`` to ``high``, both included; with ``log=True``, methods search its logarithm."""

    low: int
    high: int
    log: bool = False
    whole: ClassVar[bool] = True
    choices: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True)
class Categorical:
    """Input that is one of ``choices``, which have no order: text, numbers, truth values or None."""

    choices: Sequence[Any]
    log: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain = (str, int, float, bool, type(None))
        choices = () if isinstance(self.choices, str) or not np.iterable(self.choices) else tuple(self.choices)
        if len(set(map(repr, choices))) < 2 or not all(isinstance(choice, plain) for choice in choices):
            raise InputError(
                "`choices` must be at least two texts, numbers, truth values or None, such as ['adam', 'sgd']; got "
                f"{_validate.shown(self.choices)}."
            )
        if any(choices.index(choice) != k for k, choice in enumerate(choices)):
            raise InputError(f"`choices` must be distinct; got {_validate.shown(self.choices)}.")
        object.__setattr__(self, "choices", choices)

    @property
    def low(self) -> int:
        """Index of the first choice, 0."""
        return 0

    @property
    def high(self) -> int:
        """Index of the last choice."""
        return len(self.choices) - 1


Input: TypeAlias = Real | Integer | Categorical
Bounds: TypeAlias = ArrayLike | Sequence[Any] | Mapping[str, Any]
"""What ``bounds`` takes: an array, shape (d, 2), a sequence of inputs and pairs, a dict of them, or scipy's Bounds."""


class Box:
    """Box of all points within bounds. Inputs may be restricted to whole numbers or to choices.

    Parameters
    ----------
    bounds : array_like, shape (d, 2); sequence or dict of inputs; or scipy.optimize.Bounds
        Lowest and highest value of each input. In a sequence, an input is a pair (low, high), a `Real` or an `Integer`;
        in a dict from name to input also a `Categorical`.
    integers : sequence of int
        Indices of further inputs that are whole numbers. Their bounds must be whole numbers, too.
    constraints : callable, optional
        Takes a point like the function (see `emsopt.minimize`) and returns whether it is allowed: True or False.

    Attributes
    ----------
    names : tuple of str
        Names of the inputs; empty if ``bounds`` is not a dict.
    inputs : tuple of Real, Integer or Categorical
    bounds : ndarray, shape (d, 2)
        For a categorical input, the first and the last index of its choices.
    integers : tuple of int
        Indices of the whole-number inputs.
    dimension, coordinates : int
        Number of inputs d, and number of coordinates of the unit cube, which is larger if an input has more than two
        choices.
    sizes : list of int
        Number of coordinates of each input.

    Examples
    --------
    >>> box = Box([(0.0, 1.0), (1, 3)], integers=[1])
    >>> box.from_unit([0.25, 0.99])
    array([0.25, 3.  ])
    >>> box = Box({"rate": Real(1, 100, log=True), "solver": Categorical(["adam", "lbfgs", "sgd"])})
    >>> box.named(box.from_unit([1.0, 0.2, 0.9, 0.3]))
    {'rate': 100.0, 'solver': 'lbfgs'}
    """

    def __init__(
        self, bounds: Bounds, integers: Sequence[int] = (), constraints: Callable[..., object] | None = None
    ) -> None:
        self.names, rows, given = _read(bounds)
        self.bounds = _validate.real_array(rows, "bounds", (None, 2))
        self.dimension = d = len(self.bounds)
        if not np.iterable(integers) or isinstance(integers, str):
            raise InputError(f"`integers` must be the indices of whole-number inputs; got {integers!r}.")
        whole = {_validate.whole_number(k, "integers", 0, d - 1) for k in integers}
        pairs: list[tuple[float, float]] = self.bounds.tolist()
        self.inputs: tuple[Input, ...] = tuple(
            (Integer if k in whole else Real)(*row, log=one is not None and one.log)  # type: ignore[arg-type]
            if one is None or (k in whole and not one.whole)
            else one
            for k, (row, one) in enumerate(zip(pairs, given or [None] * d, strict=True))
        )
        for k, (one, (low, high)) in enumerate(zip(self.inputs, pairs, strict=True)):
            where = f"{[low, high]} " + (f"for {self.names[k]!r}" if self.names else f"in row {k}")
            if low >= high:
                raise InputError(f"`bounds` must have low < high in every row; got {where}.")
            if one.whole and (low % 1 or high % 1):
                raise InputError(f"`bounds` of whole-number inputs must be whole; got {where}.")
            if one.log and low <= 0:
                raise InputError(f"`bounds` of inputs on a logarithmic scale must be above 0; got {where}.")
            if one.choices and not self.names:
                raise InputError("A categorical input needs a name: pass `bounds` as a dict from name to input.")
        self.integers = tuple(k for k, one in enumerate(self.inputs) if one.whole and not one.choices)
        if constraints is not None and not callable(constraints):
            raise InputError(f"`constraints` must be a function that returns True or False; got {constraints!r}.")
        self.constraints = constraints
        self._whole, self._log = (np.array([getattr(one, key) for one in self.inputs]) for key in ("whole", "log"))
        self.sizes = [len(one.choices) if len(one.choices) > 2 else 1 for one in self.inputs]
        self.coordinates = sum(self.sizes)
        edges = self.bounds + 0.5 * self._whole[:, None] * [-1, 1]
        edges[self._log] = np.log(edges[self._log])
        self._low, self._width = edges[:, 0], np.ptp(edges, axis=1)

    @property
    def simple(self) -> bool:
        """Whether the box has neither constraints nor inputs of more than two choices."""
        return self.constraints is None and self.coordinates == self.dimension

    @cached_property
    def count(self) -> float:
        """Number of allowed points: infinite unless all inputs are whole numbers or choices.

        Constraints are counted only for boxes of at most ``MOST_LISTED`` points.
        """
        if not self._whole.all():
            return np.inf
        count = prod(self._counts)
        return count if self.constraints is None or count > MOST_LISTED else len(self.listing())

    @property
    def _counts(self) -> list[int]:
        return [int(high - low) + 1 for low, high in self.bounds.tolist()]

    def listing(self) -> FloatArray:
        """Return all allowed points, shape (K, d). All inputs must be whole numbers or choices."""
        places = np.unravel_index(np.arange(prod(self._counts)), self._counts)
        points: FloatArray = self.bounds[:, 0] + np.column_stack(places)
        return points if self.constraints is None else points[[self.allows(x) for x in points]]

    def named(self, x: ArrayLike) -> dict[str, Any]:
        """Return the values of a point by the names of its inputs: floats, whole numbers and choices."""
        values = zip(self.names, self.inputs, np.asarray(x).tolist(), strict=True)
        return {
            name: one.choices[int(value)] if one.choices else int(value) if one.whole else value
            for name, one, value in values
        }

    def presented(self, x: FloatArray) -> Any:
        """Return a point as the user writes it: values by name if the inputs have names, else the array itself."""
        return self.named(x) if self.names else x

    def call(self, function: Callable[..., Any], x: FloatArray) -> Any:
        """Call a function of the user at a point: with keyword arguments if the inputs have names, else the array."""
        return function(**self.named(x)) if self.names else function(x)

    def allows(self, x: FloatArray) -> bool:
        """Return whether the constraints allow a canonical point."""
        if self.constraints is None:
            return True
        allowed = self.call(self.constraints, x.copy())
        if not isinstance(allowed, (bool, np.bool_)):
            raise InputError(
                f"`constraints` must return True (allowed) or False; at {self.shown(x)} it returned "
                f"{_validate.shown(allowed)}. Return a comparison, such as x[0] + x[1] <= 1."
            )
        return bool(allowed)

    def shown(self, x: FloatArray) -> str:
        """Return a point as text for a message."""
        return _validate.shown(self.named(x) if self.names else np.asarray(x).tolist(), most=200)

    def canonical(self, x: ArrayLike | Mapping[str, Any]) -> FloatArray:
        """Return the point, shape (d,), with its whole-number inputs rounded.

        Raises
        ------
        InputError
            If the point lies outside the box or violates the constraints.
        """
        if self.names and isinstance(x, Mapping):
            x = self._indexed(x)
        point = self.inside(_validate.real_array(x, "x", (self.dimension,)), inputs=self.names)  # type: ignore[arg-type]
        if not self.allows(point):
            raise InputError(f"`x` must satisfy the `constraints`; they return False at {self.shown(point)}.")
        return point

    def _indexed(self, x: Mapping[str, Any]) -> list[Any]:
        """Return the values of a point given by name in the order of the inputs, choices as their indices."""
        if set(x) != set(self.names):
            raise InputError(f"`x` must have the inputs {', '.join(self.names)}; got {', '.join(map(str, x))}.")
        values = []
        for name, one in zip(self.names, self.inputs, strict=True):
            if one.choices and x[name] not in one.choices:
                raise InputError(f"`x`: {name} must be one of {one.choices}; got {_validate.shown(x[name])}.")
            values.append(one.choices.index(x[name]) if one.choices else x[name])
        return values

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
        """Draw a point, shape (d,), uniformly from the allowed points of the box (log-uniformly for such inputs).

        Raises
        ------
        InputError
            If the constraints allow none of ``TRIES`` points.
        """
        rng = _validate.generator(rng)
        for _ in range(TRIES):
            x = self._placed(rng.random(self.dimension))
            if self.allows(x):
                return x
        raise InputError(
            f"no feasible point was found: `constraints` returned False at all of {TRIES:,} random points of the box, "
            f"such as {self.shown(x)}. Check the constraints, narrow the bounds, or pass a feasible point as `x0`."
        )

    def latin_hypercube(self, n: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw a Latin hypercube of n points, shape (n, d) (McKay et al. 1979).

        If the unit interval of an input is divided into n equal parts, each part contains one point. The points are
        then scaled to the box as in `from_unit`. Points that the constraints do not allow are replaced by random ones
        that they allow.
        """
        cells = np.column_stack([rng.permutation(n) for _ in range(self.dimension)])
        points = self._placed((cells + rng.random((n, self.dimension))) / n)
        if self.constraints is None:
            return points
        return np.reshape([x if self.allows(x) else self.sample(rng=rng) for x in points], (n, self.dimension))

    def to_unit(self, x: ArrayLike) -> FloatArray:
        """Encode points, shape (..., d), on the unit cube, shape (..., coordinates).

        Each whole number maps to the middle of its part.
        """
        x = np.array(x, dtype=float)
        x[..., self._log] = np.log(x[..., self._log])
        unit = (x - self._low) / self._width
        if self.coordinates == self.dimension:
            return unit
        hot = [
            unit[..., k, None] if n == 1 else (x[..., k, None] == np.arange(n)).astype(float)
            for k, n in enumerate(self.sizes)
        ]
        return np.concatenate(hot, axis=-1)

    def from_unit(self, unit: ArrayLike) -> FloatArray:
        """Decode points of the unit cube, shape (..., coordinates), to the nearest points of the box, (..., d)."""
        unit = np.asarray(unit, dtype=float)
        if self.coordinates == self.dimension:
            return self._placed(unit)
        parts = np.split(unit, np.cumsum(self.sizes)[:-1], axis=-1)
        ordinal = [part[..., 0] if n == 1 else (part.argmax(-1) + 0.5) / n for part, n in zip(parts, self.sizes)]  # noqa: B905
        return self._placed(np.stack(ordinal, axis=-1))

    def _placed(self, share: FloatArray) -> FloatArray:
        """Return the points, shape (..., d), at given shares of the ranges of the inputs, in [0, 1]."""
        x = self._low + share * self._width
        x[..., self._log] = np.exp(x[..., self._log])
        return np.clip(self._rounded(x), *self.bounds.T)

    def _rounded(self, x: FloatArray) -> FloatArray:
        return np.where(self._whole, np.rint(x), x)


def _read(bounds: Bounds) -> tuple[tuple[str, ...], Any, list[Input | None]]:
    """Return the names of the inputs, their lowest and highest values, and the inputs themselves, None for pairs."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        return (), np.column_stack(np.broadcast_arrays(bounds.lb, bounds.ub)), []
    names: tuple[str, ...] = ()
    if isinstance(bounds, Mapping):
        names = _validate.names(list(bounds), "bounds", len(bounds), "x")
        bounds = list(bounds.values())
    elif not (isinstance(bounds, (list, tuple)) and any(isinstance(one, Input) for one in bounds)):
        return (), bounds, []
    given = [one if isinstance(one, Input) else None for one in bounds]
    return names, [one if pair is None else (pair.low, pair.high) for one, pair in zip(bounds, given)], given  # noqa: B905
