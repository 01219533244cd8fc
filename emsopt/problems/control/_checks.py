"""Validation of the parts of a control problem."""

import numpy as np

from ... import _validate
from ...errors import InputError
from ..problem import Problem
from .marginals import MARGINALS


def check_objective(f):
    """Raise InputError unless ``f`` is a noise-free maximisation problem on the unit cube."""
    if not isinstance(f, Problem):
        msg = f"`objective` must be an emsopt.problems.Problem; got {f!r}."
        raise InputError(msg)
    if f.sense != "max":
        msg = f"`objective` must have sense 'max'; {f.name} has {f.sense!r}. Convert it with on_unit_cube."
        raise InputError(msg)
    if not (f.bounds == [0, 1]).all():
        k = int(np.argmax((f.bounds != [0, 1]).any(axis=1)))
        low, high = f.bounds[k]
        msg = (
            f"`objective` must be on the unit cube; {f.variables[k]} of {f.name} ranges from {low:g} to "
            f"{high:g}. Scale it with on_unit_cube."
        )
        raise InputError(msg)
    if f.noise:
        msg = (
            f"`objective` must be free of noise; {f.name} has noise {f.noise:g}. Pass `noise` to the "
            "ControlProblem instead."
        )
        raise InputError(msg)


def checked_sets(control_sets, variables):
    """Return control sets as sorted tuples of indices; names and indices are accepted."""
    if isinstance(control_sets, str) or not np.iterable(control_sets):
        msg = f"`control_sets` must be a list of lists of variables; got {control_sets!r}."
        raise InputError(msg)
    places = {name: k for k, name in enumerate(variables)}
    result = []
    for i, members in enumerate(control_sets):
        if isinstance(members, str) or not np.iterable(members):
            msg = f"Control set {i} must be a list of variables; got {members!r}."
            raise InputError(msg)
        members = list(members)
        if not members:
            msg = f"Control set {i} must contain at least one variable; it is empty."
            raise InputError(msg)
        for member in members:
            if isinstance(member, str) and member not in places:
                msg = f"Control set {i} must name variables among {', '.join(variables)}; got {member!r}."
                raise InputError(msg)
        indices = [
            places[m]
            if isinstance(m, str)
            else _validate.whole_number(m, f"control_sets[{i}]", 0, len(places) - 1)
            for m in members
        ]
        if len(set(indices)) < len(indices):
            twice = next(k for k in indices if indices.count(k) > 1)
            msg = f"Control set {i} must name each variable once; it names {variables[twice]!r} twice."
            raise InputError(msg)
        result.append(tuple(sorted(indices)))
    if not result:
        msg = "`control_sets` must contain at least one set; it is empty."
        raise InputError(msg)
    for i, members in enumerate(result):
        if members in result[:i]:
            msg = (
                f"Control sets {result.index(members)} and {i} hold the same variables. Keep the cheaper one."
            )
            raise InputError(msg)
    return tuple(result)


def checked_marginals(marginals, variables):
    """Return one distribution per variable."""
    if isinstance(marginals, MARGINALS):
        marginals = [marginals] * len(variables)
    elif not isinstance(marginals, (list, tuple)):
        kinds = ", ".join(kind.__name__ for kind in MARGINALS)
        msg = f"`marginals` must be one of {kinds} (emsopt.problems), or a list of them; got {marginals!r}."
        raise InputError(msg)
    if len(marginals) != len(variables):
        msg = (
            f"`marginals` must be one distribution, or one per variable, {len(variables)} in all; got "
            f"{len(marginals)}."
        )
        raise InputError(msg)
    for X, name in zip(marginals, variables, strict=True):
        if not isinstance(X, MARGINALS):
            kinds = ", ".join(kind.__name__ for kind in MARGINALS)
            msg = f"The marginal of {name} must be one of {kinds} (emsopt.problems); got {X!r}."
            raise InputError(msg)
    return tuple(marginals)


def check_alpha(alpha):
    """Raise InputError unless the tolerance is at least 0 and below 1."""
    if not _validate.is_real(alpha) or not 0 <= alpha < 1:
        msg = f"`alpha` must be a fraction of at least 0 and below 1; got {alpha!r}."
        raise InputError(msg)
