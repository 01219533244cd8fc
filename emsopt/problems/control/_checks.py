"""Validation of the parts of a control problem."""

import numpy as np

from ... import _validate
from ...errors import InputError
from ..problem import Problem
from .marginals import MARGINALS


def check_objective(f):
    """Raise InputError unless ``f`` is a noise-free maximisation problem on the unit cube."""
    if not isinstance(f, Problem):
        raise InputError(f"`objective` must be an emsopt.problems.Problem; got {f!r}.")
    if f.sense != "max":
        raise InputError(f"`objective` must have sense 'max'; {f.name} has {f.sense!r}. Convert it with on_unit_cube.")
    if not (f.bounds == [0, 1]).all():
        k = int(np.argmax((f.bounds != [0, 1]).any(axis=1)))
        low, high = f.bounds[k]
        raise InputError(
            f"`objective` must be on the unit cube; {f.variables[k]} of {f.name} ranges from {low:g} to "
            f"{high:g}. Scale it with on_unit_cube."
        )
    if f.noise_sd:
        raise InputError(
            f"`objective` must be free of noise; {f.name} has noise {f.noise_sd:g}. Pass `noise_sd` to the "
            "ControlProblem instead."
        )


def checked_sets(control_sets, variables):
    """Return control sets as sorted tuples of indices; names and indices are accepted."""
    if isinstance(control_sets, str) or not np.iterable(control_sets):
        raise InputError(f"`control_sets` must be a list of lists of variables; got {control_sets!r}.")
    places = {name: k for k, name in enumerate(variables)}
    result = []
    for i, members in enumerate(control_sets):
        if isinstance(members, str) or not np.iterable(members):
            raise InputError(f"Control set {i} must be a list of variables; got {members!r}.")
        members = list(members)
        if not members:
            raise InputError(f"Control set {i} must contain at least one variable; it is empty.")
        for member in members:
            if isinstance(member, str) and member not in places:
                raise InputError(f"Control set {i} must name variables among {', '.join(variables)}; got {member!r}.")
        indices = [
            places[m] if isinstance(m, str) else _validate.whole_number(m, f"control_sets[{i}]", 0, len(places) - 1)
            for m in members
        ]
        if len(set(indices)) < len(indices):
            twice = next(k for k in indices if indices.count(k) > 1)
            raise InputError(f"Control set {i} must name each variable once; it names {variables[twice]!r} twice.")
        result.append(tuple(sorted(indices)))
    if not result:
        raise InputError("`control_sets` must contain at least one set; it is empty.")
    for i, members in enumerate(result):
        if members in result[:i]:
            msg = f"Control sets {result.index(members)} and {i} hold the same variables. Keep the cheaper one."
            raise InputError(msg)
    return tuple(result)


def checked_marginals(marginals, variables):
    """Return one distribution per variable."""
    if isinstance(marginals, MARGINALS):
        marginals = [marginals] * len(variables)
    elif not isinstance(marginals, (list, tuple)):
        kinds = ", ".join(kind.__name__ for kind in MARGINALS)
        raise InputError(f"`marginals` must be one of {kinds} (emsopt.problems), or a list of them; got {marginals!r}.")
    if len(marginals) != len(variables):
        raise InputError(
            f"`marginals` must be one distribution, or one per variable, {len(variables)} in all; got {len(marginals)}."
        )
    for X, name in zip(marginals, variables, strict=True):
        if not isinstance(X, MARGINALS):
            kinds = ", ".join(kind.__name__ for kind in MARGINALS)
            raise InputError(f"The marginal of {name} must be one of {kinds} (emsopt.problems); got {X!r}.")
    return tuple(marginals)


def check_alpha(alpha):
    """Raise InputError unless the tolerance is at least 0 and below 1."""
    if not _validate.is_real(alpha) or not 0 <= alpha < 1:
        raise InputError(f"`alpha` must be a fraction of at least 0 and below 1; got {alpha!r}.")
