"""`Box`: the domain of a function, with real, whole-number and categorical inputs.

Methods work on the unit cube, to which inputs are scaled and on which they are encoded:

- A real input is scaled linearly from its bounds to [0, 1], with ``log=True`` its logarithm.
- For a whole-number input with n values, [0, 1] is divided into n parts, one per value, without ``log`` equal ones.
- An input whose lowest and highest value are equal is fixed, and has no coordinate on the cube.
- A categorical input with two choices is encoded like a whole number. With n > 2 choices it has n coordinates on the
  cube, of which that of the choice is 1 and the others are 0, so that all choices are equally far apart; a point of the
  cube stands for the choice with the largest coordinate.

Points are arrays of numbers, with the index of the choice for a categorical input.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, Rng

ROUNDING = 1e-9  # tolerance for points outside the box, relative to its width; such points are moved to the border
POINT_TOLERANCE = 1e-6  # differences in every input, in widths of the box, up to which two points count as equal
MAX_TRIES = 10_000  # random points drawn to find one that the constraints allow
MAX_LISTED = 100_000  # points of a box that are listed at most, to count those that the constraints allow
WALK_STEPS = (20, 10)  # steps of a random walk: the first number, plus the second for each input


@dataclass(frozen=True)
class Real:
    """Real input from ``low`` to ``high``; with ``log=True``, methods search on a logarithmic scale.

    Examples
    --------
    >>> Box({"rate": Real(1e-4, 1.0, log=True)}).from_unit([0.5])
    array([0.01])
    """

    low: float
    high: float
    log: bool = False
    whole: ClassVar[bool] = False
    choices: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True)
class Integer(Real):
    """Whole-number input from ``low`` to ``high``, both included; ``log`` is as in `Real`.

    Examples
    --------
    >>> Box({"layers": Integer(1, 5)}).from_unit([0.1])
    array([1.])
    """

    whole: ClassVar[bool] = True


@dataclass(frozen=True)
class Categorical:
    """Input that is one of ``choices``, a list without order: text, numbers, truth values or None.

    For choices of other types, such as classes, use their names and look them up in your function.

    Examples
    --------
    >>> box = Box({"solver": Categorical(["adam", "sgd"])})
    >>> box.to_dict(box.from_unit([0.9]))
    {'solver': 'sgd'}
    """

    choices: Sequence[Any]
    low: ClassVar[int] = 0
    log: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain, given = (str, int, float, bool, type(None)), self.choices
        listed = np.iterable(given) and not isinstance(given, (str, set, frozenset))
        choices = tuple(one.item() if isinstance(one, np.generic) else one for one in given) if listed else ()
        right = bool(choices) and all(isinstance(one, plain) for one in choices)  # others may not compare to a bool
        if not right or any(choices.index(one) != k or one != one for k, one in enumerate(choices)):  # noqa: PLR0124
            raise InputError(
                "`choices` must be a list of distinct texts, numbers, truth values or None, such as ['adam', 'sgd']; "
                f"got {_validate.quote(given)}. For other objects, use names and look them up in your function."
            )
        object.__setattr__(self, "choices", choices)  # a frozen dataclass refuses assignment

    @property
    def high(self) -> int:
        """Index of the last choice."""
        return len(self.choices) - 1


Input: TypeAlias = Real | Integer | Categorical
Bounds: TypeAlias = ArrayLike | Sequence[Any] | Mapping[str, Any]
"""Type of ``bounds``: an array, shape (d, 2), a sequence of inputs and pairs, a dict of them, or scipy's Bounds."""


def read_bounds(bounds: Bounds) -> tuple[tuple[str, ...], Any, list[Input]]:
    """Return names, lowest and highest values, (d, 2), and inputs of ``bounds``; if it is an array, only the values."""
    if hasattr(bounds, "lb"):  # scipy.optimize.Bounds, without importing scipy
        return (), _read_scipy_bounds(bounds), []
    names: tuple[str, ...] = ()
    if isinstance(bounds, Mapping):
        names = _validate.names(list(bounds), "bounds", len(bounds), "x")
        bounds = list(bounds.values())
    elif not (isinstance(bounds, (list, tuple)) and any(isinstance(one, Input) for one in bounds)):
        return (), bounds, []
    wheres = map(repr, names) if names else (f"input {k}" for k in range(len(bounds)))
    inputs = [_read_input(one, where) for one, where in zip(bounds, wheres, strict=True)]
    return names, [(one.low, one.high) for one in inputs], inputs


def _read_scipy_bounds(bounds: Any) -> FloatArray:
    """Return the lowest and highest values, (d, 2), of an instance of `scipy.optimize.Bounds`."""
    low, high = np.broadcast_arrays(np.atleast_1d(bounds.lb), np.atleast_1d(bounds.ub))
    if len(low) == 1:  # it would broadcast to any number of inputs
        pair = f"{low[0]:g}, {high[0]:g}"
        raise InputError(
            f"`bounds`: Bounds({pair}) does not say how many inputs there are. Write bounds=[({pair})] for one "
            f"input, or an array of length d, such as Bounds([{low[0]:g}] * d, [{high[0]:g}] * d), for d inputs."
        )
    return np.column_stack([low, high])


def _read_input(one: Any, where: str) -> Input:
    """Return an entry of ``bounds`` as an input, a pair (low, high) as a `Real`; ``where`` is its name in messages."""
    if isinstance(one, Input):
        return one
    pair = tuple(one) if np.iterable(one) and not isinstance(one, str) else ()
    if len(pair) != 2 or not all(map(_validate.is_real, pair)):
        raise InputError(
            f"`bounds`: {where} must be a pair of numbers (low, high), Real(low, high), Integer(low, high) or "
            f"Categorical(['adam', 'sgd']); got {_validate.quote(one)}."
        )
    return Real(*pair)


class Box:
    """Set of the points within bounds and constraints; inputs may be whole numbers or choices.

    Parameters
    ----------
    bounds : array_like, shape (d, 2); sequence or dict of inputs; or scipy.optimize.Bounds
        Lowest and highest value of each input; if they are equal, the input is fixed. In a sequence, an input is a pair
        (low, high), a `Real` or an `Integer`; in a dict from name to input also a `Categorical`.
    constraints : callable, optional
        Takes a point, in the form that the user's function takes, and returns whether it is allowed: True or False.

    Attributes
    ----------
    names, inputs : tuple of str, tuple of Real, Integer or Categorical
        Names of the inputs, empty if ``bounds`` is not a dict, and the inputs.
    bounds : ndarray, shape (d, 2)
        For a categorical input, the first and the last index of its choices.
    integers : tuple of int
        Indices of the whole-number inputs.
    dimension, coordinates, sizes : int, int, list of int
        Number of inputs d, number of coordinates of the unit cube, and that of each input.
    """

    def __init__(self, bounds: Bounds, constraints: Callable[..., object] | None = None) -> None:
        self.names, rows, inputs = read_bounds(bounds)
        self.bounds = _validate.real_array(rows, "bounds", (None, 2))
        self.dimension = len(self.bounds)
        self.inputs: tuple[Input, ...] = tuple(inputs or (Real(*pair) for pair in self.bounds.tolist()))
        self._check_inputs()
        self.integers = tuple(k for k, one in enumerate(self.inputs) if one.whole and not one.choices)
        if constraints is not None and not callable(constraints):
            raise InputError(f"`constraints` must be a function that returns True or False; got {constraints!r}.")
        self.constraints = constraints
        self._whole, self._log = (np.array([getattr(one, key) for one in self.inputs]) for key in ("whole", "log"))
        # a fixed input has no coordinate, and two choices share one
        self.sizes = [len(one.choices) if len(one.choices) > 2 else int(one.low < one.high) for one in self.inputs]
        self.coordinates = sum(self.sizes)
        if not self.coordinates:
            raise InputError("`bounds` fix all inputs: at least one input needs low < high, or two choices.")
        edges = self.bounds + 0.5 * self._whole[:, None] * [-1, 1]  # so the ends get their full part
        edges[self._log] = np.log(edges[self._log])
        self._low, self._width = edges[:, 0], np.ptp(edges, axis=1)

    def _check_inputs(self) -> None:
        """Raise if the bounds of an input are invalid, or a categorical input has no name."""
        for k, (one, (low, high)) in enumerate(zip(self.inputs, self.bounds.tolist(), strict=True)):
            where = f"{[low, high]} " + (f"for {self.names[k]!r}" if self.names else f"in row {k}")
            for wrong, what in (
                (low > high, "must have low <= high in every row"),
                (one.whole and (low % 1 or high % 1), "of whole-number inputs must be whole"),
                (one.log and low <= 0, "of inputs on a logarithmic scale must be above 0"),
            ):
                if wrong:
                    raise InputError(f"`bounds` {what}; got {where}.")
            if one.choices and not self.names:
                raise InputError("A categorical input needs a name: pass `bounds` as a dict from name to input.")

    @property
    def is_simple(self) -> bool:
        """Whether the box has neither constraints nor inputs of more than two choices."""
        return self.constraints is None and max(self.sizes) == 1

    @cached_property
    def count(self) -> float:
        """Number of allowed points, infinite with real inputs; above ``MAX_LISTED``, constraints are ignored."""
        if not (self._whole | (np.array(self.sizes) == 0)).all():
            return np.inf
        count = prod(self._numbers_of_values)
        return count if self.constraints is None or count > MAX_LISTED else len(self.listing())

    @property
    def _numbers_of_values(self) -> list[int]:
        """Number of values of each input, if all are whole numbers."""
        return [int(high - low) + 1 for low, high in self.bounds.tolist()]

    def listing(self) -> FloatArray:
        """Return all allowed points, shape (K, d); no input may be real, so that `count` is finite."""
        numbers = self._numbers_of_values
        points: FloatArray = self.bounds[:, 0] + np.column_stack(np.unravel_index(np.arange(prod(numbers)), numbers))
        return points if self.constraints is None else points[[self.allows(x) for x in points]]

    def to_dict(self, x: ArrayLike) -> dict[str, Any]:
        """Return a point, (d,), as a dict from the names of the inputs to floats, whole numbers and choices."""
        return {
            name: one.choices[int(value)] if one.choices else int(value) if one.whole else value
            for name, one, value in zip(self.names, self.inputs, np.asarray(x).tolist(), strict=True)
        }

    def to_user_form(self, x: FloatArray) -> Any:
        """Return a canonical point, (d,), as users get it: as a dict if the inputs have names, else as the array."""
        return self.to_dict(x) if self.names else x

    def call(self, function: Callable[..., Any], x: FloatArray) -> Any:
        """Call a function at a point, (d,): with keyword arguments if the inputs have names, else with the array."""
        if not self.names:
            return function(x)
        try:  # a signature without these names raises TypeError
            return function(**self.to_dict(x))
        except TypeError as error:
            error.add_note(f"Inputs that have names are passed as keyword arguments: {', '.join(self.names)}.")
            raise

    def allows(self, x: FloatArray) -> bool:
        """Return whether the constraints allow a canonical point, (d,)."""
        if self.constraints is None:
            return True
        allowed = self.call(self.constraints, x.copy())  # a copy, as the constraint may change its argument
        if not isinstance(allowed, (bool, np.bool_)):  # 1 or an array would pass for True by accident
            raise InputError(
                f"`constraints` must return True (allowed) or False; at {self.to_text(x)} it returned "
                f"{_validate.quote(allowed)}. Return a comparison, such as x[0] + x[1] <= 1."
            )
        return bool(allowed)

    def to_text(self, x: FloatArray) -> str:
        """Return a point, (d,), as text for a message."""
        return _validate.quote(self.to_dict(x) if self.names else np.asarray(x).tolist(), most=200)

    def canonical(self, x: ArrayLike | Mapping[str, Any]) -> FloatArray:
        """Return a point, an array or a dict, as an array, (d,), without rounding errors; raise unless allowed."""
        if self.names and isinstance(x, Mapping):
            x = self._to_indices(x)
        given = _validate.real_array(x, "x", (self.dimension,))  # type: ignore[arg-type]
        point = self.clip_inside(given, inputs=self.names)
        fractions = self._whole & (np.abs(given - point) > 1e-6)  # closer ones are rounded
        if fractions.any():
            k = int(fractions.argmax())
            name = self.names[k] if self.names else f"input {k}"
            raise InputError(f"`x`: {name} must be a whole number; got {given[k]:g}.")
        if not self.allows(point):
            raise InputError(f"`x` must satisfy the `constraints`; they return False at {self.to_text(point)}.")
        return point

    def _to_indices(self, x: Mapping[str, Any]) -> list[Any]:
        """Convert a dict from name to value to a list in the order of the inputs, with the indices of choices."""
        if set(x) != set(self.names):
            raise InputError(f"`x` must have the inputs {', '.join(self.names)}; got {', '.join(map(str, x))}.")
        values = []
        for name, one in zip(self.names, self.inputs, strict=True):
            if one.choices and x[name] not in one.choices:
                raise InputError(f"`x`: {name} must be one of {one.choices}; got {_validate.quote(x[name])}.")
            values.append(one.choices.index(x[name]) if one.choices else x[name])
        return values

    def clip_inside(self, points: FloatArray, box: str = "the box", inputs: Sequence[str] = ()) -> FloatArray:
        """Clip points, (..., d), to the bounds and round whole numbers; raise if a point is outside beyond rounding."""
        low, high = self.bounds.T
        slack = ROUNDING * np.where(high > low, high - low, np.abs(high))  # a fixed input has no width
        outside = ~((points >= low - slack) & (points <= high + slack))  # NaN is outside, too
        if outside.any():
            *row, k = np.argwhere(outside)[0]
            name, at = inputs[k] if inputs else f"input {k}", f" in row {row[0]}" if row else ""
            found = f"{name} is {points[outside][0]:g}{at}, but must be between {low[k]:g} and {high[k]:g}"
            raise InputError(f"`x` must lie in {box}; {found}.")
        return self._round(np.clip(points, low, high))

    def sample(self, *, rng: Rng = None) -> FloatArray:
        """Draw an allowed point, (d,), uniformly, or log-uniformly in inputs with ``log``."""
        rng = _validate.generator(rng)
        x = self.try_sample(rng)
        if x is None:
            such = self.to_text(self._from_relative(rng.random(self.dimension)))
            raise InputError(
                f"no feasible point was found: `constraints` returned False at all of {MAX_TRIES:,} random points of "
                f"the box, such as {such}. Check the constraints, narrow the bounds, or pass a feasible point as `x0` "
                "(with ask and tell, by `enqueue`)."
            )
        return x

    def try_sample(self, rng: np.random.Generator) -> FloatArray | None:
        """Draw an allowed point, (d,), as `sample` does; return None if ``MAX_TRIES`` random points are not allowed."""
        for _ in range(MAX_TRIES):
            x = self._from_relative(rng.random(self.dimension))
            if self.allows(x):
                return x  # rejection keeps the draw uniform
        return None

    def sample_by_walk(self, known: Sequence[Sequence[float]], *, rng: np.random.Generator) -> FloatArray:
        """Draw an allowed point, (d,), by a random walk (hit-and-run, Smith 1984) from one of ``known``, (n, d).

        A step draws a direction, in all inputs or in one, and then points on the line through the current point until
        one is allowed. Each refused point becomes the end of the line on its side (Neal 2003).
        """
        x, d = np.array(known[int(rng.integers(len(known)))]), self.dimension
        share = self._to_relative(x)
        for step in range(WALK_STEPS[0] + WALK_STEPS[1] * d):
            direction = rng.standard_normal(d) if step % 2 else np.eye(d)[rng.integers(d)]
            with np.errstate(divide="ignore", invalid="ignore"):
                # an input that does not move sets no end
                ends = np.sort([-share / direction, (1 - share) / direction], axis=0)[:, direction != 0]
            low, high = ends[0].max(), ends[1].min()
            while high - low > POINT_TOLERANCE:  # a shorter line is the point itself, and the step is given up
                at = rng.uniform(low, high)
                moved = np.clip(share + at * direction, 0, 1)
                if self.allows(there := self._from_relative(moved)):
                    x, share = there, moved
                    break
                low, high = (at, high) if at < 0 else (low, at)  # shrink towards x, at 0
        return x

    def latin_hypercube(
        self, n: int, *, rng: np.random.Generator, draw: Callable[[], FloatArray] | None = None
    ) -> FloatArray:
        """Draw a Latin hypercube, (n, d) (McKay et al. 1979); `sample` or ``draw`` replaces points not allowed."""
        cells = np.column_stack([rng.permutation(n) for _ in range(self.dimension)])
        points = self._from_relative((cells + rng.random((n, self.dimension))) / n)
        if self.constraints is None:
            return points
        draw = draw or partial(self.sample, rng=rng)
        return np.reshape([x if self.allows(x) else draw() for x in points], (n, self.dimension))

    def to_unit(self, x: ArrayLike) -> FloatArray:
        """Encode points, (..., d), on the unit cube, (..., coordinates): whole numbers in the middle of their part."""
        x = np.array(x, dtype=float)
        unit = self._to_relative(x)
        if set(self.sizes) == {1}:  # the usual case, without the detour by parts
            return unit
        hot = [
            unit[..., k, None] if n == 1 else (x[..., k, None] == np.arange(n)) * 1.0 for k, n in enumerate(self.sizes)
        ]
        return np.concatenate(hot, axis=-1)

    def from_unit(self, unit: ArrayLike) -> FloatArray:
        """Decode points of the unit cube, shape (..., coordinates), to the nearest points of the box, (..., d)."""
        unit = np.asarray(unit, dtype=float)
        if set(self.sizes) == {1}:
            return self._from_relative(unit)
        parts = np.split(unit, np.cumsum(self.sizes)[:-1], axis=-1)
        share = np.full((*unit.shape[:-1], self.dimension), 0.5)  # of fixed inputs, which have no coordinate
        for k, (part, n) in enumerate(zip(parts, self.sizes, strict=True)):
            if n:
                share[..., k] = part[..., 0] if n == 1 else (part.argmax(-1) + 0.5) / n
        return self._from_relative(share)

    def _to_relative(self, x: FloatArray) -> FloatArray:
        """Return the relative positions, in [0, 1], of points, (..., d), in the ranges of the inputs: (..., d)."""
        x = x.copy()
        x[..., self._log] = np.log(x[..., self._log])
        return (x - self._low) / np.where(self._width > 0, self._width, 1.0)

    def _from_relative(self, share: FloatArray) -> FloatArray:
        """Return the points, (..., d), whose relative positions in the ranges of the inputs are ``share``, (..., d)."""
        x = self._low + share * self._width
        x[..., self._log] = np.exp(x[..., self._log])
        return np.clip(self._round(x), *self.bounds.T)  # exp(log(high)) may exceed high

    def _round(self, x: FloatArray) -> FloatArray:
        """Round the whole-number inputs of points, (..., d)."""
        return np.where(self._whole, np.rint(x), x)
