"""Validation of the parts of a control problem."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from ... import _validate
from ..._validate import first_repeated, shown
from ...errors import InputError
from ..problem import Problem
from .marginals import Marginal

T = TypeVar("T")
KINDS = "TruncatedNormal, Uniform, Empirical (emsopt.problems)"


def check_objective(f: Problem) -> None:
    """Raise InputError unless ``f`` is a noise-free maximisation problem on the unit cube."""
    _validate.instance(f, "objective", Problem, "emsopt.problems.Problem")
    if f.sense != "max":
        raise InputError(f"`objective` must have sense 'max'; {f.name} has {f.sense!r}. Convert it with on_unit_cube.")
    for k in np.flatnonzero((f.bounds != (0, 1)).any(axis=1)):
        found = "{} of {} ranges from {:g} to {:g}".format(f.variables[k], f.name, *f.bounds[k])
        raise InputError(f"`objective` must be on the unit cube; {found}. Scale it with on_unit_cube.")
    if f.noise_sd:
        raise InputError(
            f"`objective` must be free of noise; {f.name} has `noise_sd` {f.noise_sd:g}. Set that to 0 and give "
            "`noise_sd` to the ControlProblem."
        )


def checked_sets(
    control_sets: Iterable[Iterable[int | str]], variables: tuple[str, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return control sets as sorted tuples of indices; names and indices are accepted."""
    result: list[tuple[int, ...]] = []
    for i, members in enumerate(_listed(control_sets, "`control_sets`", "set")):
        indices = tuple(sorted(_index(k, i, variables) for k in _listed(members, f"Control set {i}", "variable")))
        if (twice := first_repeated(indices)) is not None:
            raise InputError(f"Control set {i} must name each variable once; it names {variables[twice]!r} twice.")
        if indices in result:
            both = f"{result.index(indices)} and {i}"
            raise InputError(f"Control sets {both} hold the same variables. Keep the cheaper one.")
        result.append(indices)
    return tuple(result)


def _listed(values: Iterable[T], name: str, of: str) -> list[T]:
    """Return ``values``, which ``name`` holds, as a list; raise unless they are a sequence with an entry."""
    if isinstance(values, str) or not np.iterable(values):
        raise InputError(f"{name} must be a list of {of}s; got {shown(values)}.")
    if not (result := list(values)):
        raise InputError(f"{name} must contain at least one {of}; it is empty.")
    return result


def _index(member: int | str, i: int, variables: tuple[str, ...]) -> int:
    """Return the index of a variable of set ``i``."""
    if not isinstance(member, str):
        return _validate.whole_number(member, f"control_sets[{i}]", 0, len(variables) - 1)
    if member not in variables:
        raise InputError(f"Control set {i} must name variables among {', '.join(variables)}; got {member!r}.")
    return variables.index(member)


def checked_marginals(marginals: Marginal | Sequence[Marginal], variables: tuple[str, ...]) -> tuple[Marginal, ...]:
    """Return one distribution per variable; a single one is repeated for all of them."""
    d = len(variables)
    each = (marginals,) * d if isinstance(marginals, Marginal) else marginals
    if not isinstance(each, (list, tuple)) or len(each) != d or not all(isinstance(X, Marginal) for X in each):
        raise InputError(f"`marginals` must be one of {KINDS}, or a list of {d}, one per variable; got {shown(each)}.")
    return tuple(each)


def check_alpha(alpha: float) -> None:
    """Raise InputError unless the tolerance is at least 0 and below 1."""
    if not _validate.is_real(alpha) or not 0 <= alpha < 1:
        raise InputError(f"`alpha` must be a fraction of at least 0 and below 1; got {shown(alpha)}.")
