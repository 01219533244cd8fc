"""The inputs of a `Box`: real numbers, whole numbers and choices, and how ``bounds`` are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .. import _validate
from .._types import ArrayLike
from ..errors import InputError


@dataclass(frozen=True)
class Real:
    """Real input from ``low`` to ``high``; with ``log=True``, methods search its logarithm.

    Examples
    --------
    >>> import emsopt as eo
    >>> from emsopt.optimizers import Categorical, Integer, Real
    >>> inputs = {"rate": Real(1e-4, 1.0, log=True), "layers": Integer(1, 5), "solver": Categorical(["adam", "sgd"])}
    >>> run = eo.minimize(lambda rate, layers, solver: layers + (solver == "sgd"), bounds=inputs, budget=12, rng=0)
    >>> 1e-4 <= run.x["rate"] <= 1
    True
    """

    low: float
    high: float
    log: bool = False
    whole: ClassVar[bool] = False
    choices: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True)
class Integer:
    """Whole-number input from ``low`` to ``high``, both included; with ``log=True``, methods search its logarithm.

    Examples
    --------
    >>> import emsopt as eo
    >>> from emsopt.optimizers import Categorical, Integer, Real
    >>> inputs = {"rate": Real(1e-4, 1.0, log=True), "layers": Integer(1, 5), "solver": Categorical(["adam", "sgd"])}
    >>> run = eo.minimize(lambda rate, layers, solver: layers + (solver == "sgd"), bounds=inputs, budget=12, rng=0)
    >>> run.x["layers"] in range(1, 6)
    True
    """

    low: int
    high: int
    log: bool = False
    whole: ClassVar[bool] = True
    choices: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True)
class Categorical:
    """Input that is one of ``choices``, a list without order: text, numbers, truth values or None.

    For choices of other types, such as classes, use their names and look them up in your function.

    Examples
    --------
    >>> import emsopt as eo
    >>> from emsopt.optimizers import Categorical, Integer, Real
    >>> inputs = {"rate": Real(1e-4, 1.0, log=True), "layers": Integer(1, 5), "solver": Categorical(["adam", "sgd"])}
    >>> run = eo.minimize(lambda rate, layers, solver: layers + (solver == "sgd"), bounds=inputs, budget=12, rng=0)
    >>> run.x["solver"] in ("adam", "sgd")
    True
    """

    choices: Sequence[Any]
    log: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain, given = (str, int, float, bool, type(None)), self.choices
        listed = np.iterable(given) and not isinstance(given, (str, set, frozenset))
        choices = tuple(one.item() if isinstance(one, np.generic) else one for one in given) if listed else ()
        if not choices or not all(isinstance(one, plain) for one in choices):
            why = " A set has no fixed order: pass a list." if isinstance(given, (set, frozenset)) else ""
            raise InputError(
                "`choices` must be a list of texts, numbers, truth values or None, such as ['adam', 'sgd']; got "
                f"{_validate.shown(given)}.{why or ' For other objects, use names and look them up in your function.'}"
            )
        if any(choices.index(choice) != k or choice != choice for k, choice in enumerate(choices)):  # noqa: PLR0124
            raise InputError(f"`choices` must be distinct and not NaN; got {_validate.shown(given)}.")
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


def read_bounds(bounds: Bounds) -> tuple[tuple[str, ...], Any, list[Input | None]]:
    """Return the names of the inputs, their lowest and highest values, and the inputs themselves, None for pairs.

    There are no names unless ``bounds`` is a dict, and no inputs if it is an array or scipy's Bounds.
    """
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        low, high = np.broadcast_arrays(np.atleast_1d(bounds.lb), np.atleast_1d(bounds.ub))
        if len(low) == 1:
            pair = f"{low[0]:g}, {high[0]:g}"
            raise InputError(
                f"`bounds`: Bounds({pair}) does not say how many inputs there are. Write bounds=[({pair})] for one "
                f"input, or an array of length d, such as Bounds([{low[0]:g}] * d, [{high[0]:g}] * d), for d inputs."
            )
        return (), np.column_stack([low, high]), []
    names: tuple[str, ...] = ()
    if isinstance(bounds, Mapping):
        names = _validate.names(list(bounds), "bounds", len(bounds), "x")
        bounds = list(bounds.values())
    elif not (isinstance(bounds, (list, tuple)) and any(isinstance(one, Input) for one in bounds)):
        return (), bounds, []
    given = [one if isinstance(one, Input) else None for one in bounds]
    wheres = map(repr, names) if names else (f"input {k}" for k in range(len(given)))
    return names, [_pair(one, where) for one, where in zip(bounds, wheres, strict=True)], given


def _pair(one: Any, where: str) -> tuple[float, float]:
    """Return the lowest and the highest value of an input of ``bounds``; ``where`` names it in messages."""
    if isinstance(one, Input):
        return one.low, one.high
    pair = tuple(one) if np.iterable(one) and not isinstance(one, str) else ()
    if len(pair) != 2 or not all(map(_validate.is_real, pair)):
        raise InputError(
            f"`bounds`: {where} must be a pair of numbers (low, high), Real(low, high), Integer(low, high) or "
            f"Categorical(['adam', 'sgd']); got {_validate.shown(one)}."
        )
    return pair
