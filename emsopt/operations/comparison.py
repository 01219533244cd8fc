"""Comparison of two deployments or policies on the same simulated calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, _validate
from ..errors._types import Rng, Sites
from .policy import Policy
from .simulation import Operations, simulate
from .system import System

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("mean_response", "late", "loss")


class Difference(NamedTuple):
    """Estimate of a difference, with the lower and the upper bound of its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class PairedComparison:
    """Two simulations, ``a`` and ``b``, of the same calls, with the differences between their results."""

    a: Operations
    b: Operations

    def difference(self, measure: str = "late") -> Difference:
        """Return a measure of b minus that of a, with its 95 % interval (Student's t, from differences of batches).

        Measures are ``"mean_response"`` (min), ``"late"`` and ``"loss"`` (shares of calls).
        """
        from scipy.special import stdtrit

        estimate, shifts = 0.0, np.zeros(len(self.a.calls))
        for sign, one in ((1, self.b), (-1, self.a)):
            above, below = one._batch_sums(measure)
            if not below.any():
                return Difference(np.nan, np.nan, np.nan)
            ratio = above.sum() / below.sum()
            estimate += sign * ratio
            # by how much a batch moves the ratio, to first order
            shifts += sign * (above - ratio * below) / below.sum()
        batches = len(shifts)
        half = stdtrit(batches - 1, 0.975) * np.sqrt(batches / (batches - 1) * (shifts**2).sum())
        return Difference(float(estimate), float(estimate - half), float(estimate + half))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per measure: its value in a and in b, their difference, and its 95 % interval."""
        import pandas as pd

        rows = {}
        for measure in MEASURES:
            value, low, high = self.difference(measure)
            a, b = (np.divide(*(part.sum() for part in one._batch_sums(measure))) for one in (self.a, self.b))
            rows[measure] = {"a": a, "b": b, "difference": value, "low": low, "high": high}
        return pd.DataFrame(rows).T

    def __repr__(self) -> str:
        late, response = (100 * np.array(self.difference()), np.array(self.difference("mean_response")))
        return (
            f"PairedComparison(late {late[0]:+.2f} points ({late[1]:.2f} to {late[2]:.2f}), "
            f"mean response {response[0]:+.3f} min ({response[1]:.3f} to {response[2]:.3f}))"
        )

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(float_format=lambda value: f"{value:.4f}")


def compare(
    system: System,
    a: Sites | tuple[Sites, Policy | None],
    b: Sites | tuple[Sites, Policy | None],
    *,
    rng: Rng = None,
    **options: Any,
) -> PairedComparison:
    """Simulate two deployments, or deployments with policies, on the same calls.

    Common random numbers make the difference far more certain than either value: every call comes at the same time,
    from the same atom, with the same on-scene time, whoever answers.

    Parameters
    ----------
    system : System
    a, b : array_like of int, shape (p,), or pair (array_like, Policy or None)
        A deployment, or a deployment and a policy; None is the default of `simulate`. The fleets may differ in size.
    rng : numpy.random.Generator or seed, optional
        Use another seed than that with which a policy was searched, as it looks too good on the calls of its search.
    **options
        For `simulate`, such as ``calls`` and ``capacity``. The 20 batches of calls are assumed to be independent: use
        20,000 calls or more.

    Examples
    --------
    >>> import emsopt as eo
    >>> system, sites = eo.datasets.load_auckland()
    >>> rule = eo.operations.Policy(coverage=7.0, busy=0.2, patience=20)
    >>> eo.operations.compare(system, sites, (sites, rule), calls=20_000, rng=0).difference("late").high < 0
    True
    """
    seed = int(_validate.generator(rng).integers(2**62))  # one seed for both: the same calls

    def run(way: Any) -> Operations:
        if isinstance(way, Policy):
            raise InputError("`a` and `b` must be deployments, or pairs such as (sites, policy); got a policy alone.")
        # a tuple of two sites is a deployment, not one with its policy
        paired = isinstance(way, tuple) and len(way) == 2 and (way[1] is None or isinstance(way[1], Policy))
        sites, policy = way if paired else (way, None)
        return simulate(system, sites, policy=policy, rng=seed, **options)

    return PairedComparison(run(a), run(b))
