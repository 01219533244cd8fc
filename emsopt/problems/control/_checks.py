"""Validation of the parts of a control problem."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from ... import _validate
from ..._validate import shown
from ...errors import InputError
from ..problem import Problem
from .marginals import Marginal

KINDS = "TruncatedNormal, Uniform, Empirical (emsopt.problems)"


def check_objective(f: Problem) -> None:
    """Raise InputError unless ``f`` is a noise-free maximisation problem on the unit cube."""
    _validate.instance(f, "objective", Problem, "emsopt.problems.Problem")
    if f.sense != "max":
        raise InputError(f"`objective` must have sense 'max'; {f.name} has {f.sense!r}. Convert it with on_unit_cube.")
    for name, (low, high) in zip(f.variables, f.bounds, strict=True):
        if (low, high) != (0, 1):
            found = f"{name} of {f.name} ranges from {low:g} to {high:g}"
            raise InputError(f"`objective` must be on the unit cube; {found}. Scale it with on_unit_cube.")
    if f.noise_sd:
        found = f"{f.name} has noise {f.noise_sd:g}"
        raise InputError(f"`objective` must be free of noise; {found}. Pass `noise_sd` to the ControlProblem instead.")


def checked_sets(
    control_sets: Iterable[Iterable[int | str]], variables: tuple[str, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return control sets as sorted tuples of indices; names and indices are accepted."""
    if isinstance(control_sets, str) or not np.iterable(control_sets):
        raise InputError(f"`control_sets` must be a list of lists of variables; got {shown(control_sets)}.")
    result: list[tuple[int, ...]] = []
    for i, members in enumerate(control_sets):
        if isinstance(members, str) or not np.iterable(members):
            raise InputError(f"Control set {i} must be a list of variables; got {shown(members)}.")
        indices = tuple(sorted(_index(member, i, variables) for member in members))
        if not indices:
            raise InputError(f"Control set {i} must contain at least one variable; it is empty.")
        for k, after in pairwise(indices):
            if k == after:
                raise InputError(f"Control set {i} must name each variable once; it names {variables[k]!r} twice.")
        if indices in result:
            twin = result.index(indices)
            raise InputError(f"Control sets {twin} and {i} hold the same variables. Keep the cheaper one.")
        result.append(indices)
    if not result:
        raise InputError("`control_sets` must contain at least one set; it is empty.")
    return tuple(result)


def _index(member: int | str, i: int, variables: tuple[str, ...]) -> int:
    """Return the index of a variable of set ``i``."""
    if not isinstance(member, str):
        return _validate.whole_number(member, f"control_sets[{i}]", 0, len(variables) - 1)
    if member not in variables:
        raise InputError(f"Control set {i} must name variables among {', '.join(variables)}; got {member!r}.")
    return variables.index(member)


def checked_marginals(marginals: Marginal | Sequence[Marginal], variables: tuple[str, ...]) -> tuple[Marginal, ...]:
    """Return one distribution per variable."""
    if isinstance(marginals, Marginal):
        return (marginals,) * len(variables)
    if not isinstance(marginals, (list, tuple)):
        raise InputError(f"`marginals` must be one of {KINDS}, or a list of them; got {shown(marginals)}.")
    d = len(variables)
    if len(marginals) != d:
        raise InputError(
            f"`marginals` must be one distribution, or one per variable, {d} in all; got {len(marginals)}."
        )
    for X, name in zip(marginals, variables, strict=True):
        if not isinstance(X, Marginal):
            raise InputError(f"The marginal of {name} must be one of {KINDS}; got {shown(X)}.")
    return tuple(marginals)


def check_alpha(alpha: float) -> None:
    """Raise InputError unless the tolerance is at least 0 and below 1."""
    if not _validate.is_real(alpha) or not 0 <= alpha < 1:
        raise InputError(f"`alpha` must be a fraction of at least 0 and below 1; got {shown(alpha)}.")
