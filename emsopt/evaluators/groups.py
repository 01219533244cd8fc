"""How evenly a deployment serves groups of atoms, such as districts.

With the demand share w_g of a group and the mean response x_g of its answered calls, the range is max x_g - min x_g,
and the Gini coefficient Σ_g Σ_h w_g w_h |x_g - x_h| / (2 Σ_g w_g x_g): 0 if all groups are served alike. Groups without
calls are left out. With a threshold, x_g is the fraction of the group's answered calls that take so long or longer.
`worst`, `spread` and `gini` take the groups as numbers, which `check_labels` makes of labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from .._types import FloatArray, IntArray
    from .evaluation import Evaluation


def by_group(evaluation: Evaluation, labels: Iterable[object], threshold: float = 8.0) -> pd.DataFrame:
    """Return how each group of atoms is served.

    Parameters
    ----------
    evaluation : Evaluation
    labels : sequence, length M
        Group of each atom, such as the column of a table that names its district.
    threshold : float
        Minutes from which a response is late.

    Returns
    -------
    DataFrame
        One row per group with calls, indexed by label: share of all calls, mean response (min), late fraction.

    Raises
    ------
    InputError
        If there is not one label per atom, or `evaluation` is no `Evaluation`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> evaluation = eo.evaluators.exact_hypercube(city, [1, 2])
    >>> eo.evaluators.by_group(evaluation, ["west", "west", "east"])["mean_response_min"].round(2).to_dict()
    {'west': 4.22, 'east': 3.01}
    """
    import pandas as pd

    from .evaluation import Evaluation

    _validate.instance(evaluation, "evaluation", Evaluation, "emsopt.evaluators.Evaluation")
    labels = list(labels) if np.iterable(labels) and not isinstance(labels, str) else labels
    codes = check_labels(labels, len(evaluation.demand_shares))  # before their names, as it raises the clearer error
    names = list(dict.fromkeys(labels))
    shares, mean = _served(evaluation, codes, None)
    late = _served(evaluation, codes, threshold)[1]
    known = np.bincount(codes, evaluation.demand_shares) > 0
    return pd.DataFrame(
        {"share_of_calls": shares, "mean_response_min": mean, f"late_over_{threshold:g}_min": late},
        index=pd.Index([name for name, some in zip(names, known, strict=True) if some], name="group"),
    )


def worst(evaluation: Evaluation, codes: IntArray, threshold: float | None = None) -> float:
    """Return the mean response of the group that waits longest, min; with a threshold the highest late fraction."""
    return float(_served(evaluation, codes, threshold)[1].max())


def spread(evaluation: Evaluation, codes: IntArray, threshold: float | None = None) -> float:
    """Return the mean response of the worst minus that of the best group, min; or that of their late fractions."""
    return float(np.ptp(_served(evaluation, codes, threshold)[1]))


def gini(evaluation: Evaluation, codes: IntArray, threshold: float | None = None) -> float:
    """Return the Gini coefficient of the groups' mean responses or late fractions, weighted by demand; 0 if all are 0.

    It is computed as one minus twice the area below the Lorenz curve.
    """
    shares, values = _served(evaluation, codes, threshold)
    order = np.argsort(values)
    shares = shares[order]
    reached = np.cumsum(shares * values[order])
    if reached[-1] == 0:
        return 0.0
    return float(1 - shares @ (reached + np.r_[0, reached[:-1]]) / reached[-1])


def check_labels(labels: Iterable[object], atoms: int) -> IntArray:
    """Return the groups of the atoms as numbers from 0 in order of appearance, shape (M,); raise unless all have one.

    Raises
    ------
    InputError
        If there is not one label per atom, or one is missing.
    """
    if isinstance(labels, str) or not np.iterable(labels):
        raise InputError(f"`labels` must be a sequence of {atoms} labels, one per atom; got {_validate.shown(labels)}.")
    given = list(labels)
    if len(given) != atoms:
        raise InputError(f"`labels` must be {atoms} labels, one per atom; got {len(given)}.")
    if any(map(_validate.is_missing, given)):
        raise InputError(
            "`labels` must name a group for each atom, but some are missing. Give these a group of their own."
        )
    numbers: dict[object, int] = {}
    try:
        return np.array([numbers.setdefault(label, len(numbers)) for label in given])
    except TypeError as error:
        raise InputError(f"`labels` must be texts or numbers; got {_validate.shown(given)}.") from error


def _served(evaluation: Evaluation, codes: IntArray, threshold: float | None) -> tuple[FloatArray, FloatArray]:
    """Return the share of calls of each group with calls, and its mean response or late fraction, by `check_labels`."""
    demand = evaluation.demand_shares
    by_atom = evaluation.atom_response if threshold is None else evaluation.atom_late(threshold)
    shares, total = (np.bincount(codes, weights).astype(float) for weights in (demand, demand * by_atom))
    known = shares > 0
    return shares[known], total[known] / shares[known]
