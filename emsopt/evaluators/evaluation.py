"""`Evaluation`, the result of every evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..city.city import City
from ..city.travel import ResponseLaw
from ..errors import InputError, UnstableQueueError
from ..errors._types import ArrayLike, FloatArray, IntArray
from ..errors._validate import choice, positive_number, real_array
from ._intervals import AnsweredCalls

if TYPE_CHECKING:
    import pandas as pd

LATE_MIN = 8.0  # a response of this many minutes or more is late, where nobody says otherwise
NEGLIGIBLE_SHARE = 1e-10  # share of calls below which a pair of unit and atom is left out, to save time


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Performance of one deployment.

    Response time is turnout plus travel time of the unit that answers, without a wait for a free unit (``mean_wait``).
    If times vary (`City.travel_cv`), late fractions and percentiles account for that; means do not change.

    Attributes
    ----------
    evaluator : str
        Name of the evaluator: "approximate", "exact" or "simulation".
    capacity : str
        "loss": a call that finds every unit busy is lost to others; "queue": it waits.
    sites : ndarray of int, shape (p,)
        Site of each unit; a site that occurs twice holds two units.
    site_names, atom_names : tuple of str
        Names of the p units' sites, and of the M atoms.
    response_times : ndarray, shape (p, M)
        Mean turnout plus travel of each unit to each atom, min.
    demand_shares : ndarray, shape (M,)
        Share of the calls that come from each atom.
    loss_probability, queue_probability : float
        Probability that a call is lost (0 with a queue), and that it has to wait (0 with loss).
    utilizations : ndarray, shape (p,)
        Fraction of time each unit is busy; below 1, except in a simulation in which the unit is never free. Units at
        one site share their work equally.
    dispatch_fractions : ndarray, shape (p, M)
        Share of atom j's answered calls that unit i answers; columns sum to one.
    mean_wait : float
        Mean wait in queue over all calls, min.
    iterations : int
        Number of sweeps (exact) or fixed-point steps (approximate); for a simulation, the number of calls counted.
    residual : float
        Remaining error of the equations, as the evaluator defines it; NaN for a simulation.
    intervals : mapping of str to (float, float)
        Confidence intervals of simulated measures, by name of the measure; empty for the other evaluators.
    calibrated : bool
        Whether the exact model had to calibrate mean service times that depend on the atom, and is approximate.
    law : ResponseLaw, optional
        How the response times of the pairs vary around ``response_times``; None if they do not.
    answers : AnsweredCalls, optional
        Response times of the calls of a simulation, for `late_interval` and `percentile_interval`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([1, 2, 4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> result = eo.evaluators.exact_hypercube(city, [1, 2])
    >>> round(result.mean_response, 2), round(result.late_fraction(8.0), 3), result.utilizations.round(2).tolist()
    (3.52, 0.054, [0.74, 0.75])
    """

    evaluator: str
    capacity: str
    sites: IntArray
    site_names: tuple[str, ...]
    atom_names: tuple[str, ...]
    response_times: FloatArray
    demand_shares: FloatArray
    loss_probability: float
    queue_probability: float
    utilizations: FloatArray
    dispatch_fractions: FloatArray
    mean_wait: float
    iterations: int
    residual: float
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=lambda: MappingProxyType({}))
    law: ResponseLaw | None = None
    answers: AnsweredCalls | None = None
    calibrated: bool = False

    @classmethod
    def of(
        cls, city: City, sites: IntArray, evaluator: str, capacity: str, blocked: float, *measures: Any
    ) -> Evaluation:
        """Return the evaluation of a deployment, with names, times and shares taken from the city.

        ``blocked`` is the probability that a call finds every unit busy, and ``measures`` are the fields from
        ``utilizations`` to ``residual``.
        """
        names, times = tuple(city.site_names[k] for k in sites), city.response_times[sites]
        lost, queued = (blocked, 0.0) if capacity == "loss" else (0.0, blocked)
        known = sites, names, city.atom_names, times, city.demand_shares
        law = None if city.response_law is None else city.response_law.at_sites(sites)
        by_place = evaluator == "exact" and bool(np.ptp(city.service_times[sites], axis=1).any())
        made = cls(evaluator, capacity, *known, lost, queued, *measures)
        return replace(made, law=law, calibrated=by_place)

    @cached_property
    def atom_response(self) -> FloatArray:
        """Mean response time of each atom's answered calls, shape (M,), min."""
        return np.einsum("ij,ij->j", self.dispatch_fractions, self.response_times)

    def atom_cost(self, costs: FloatArray) -> FloatArray:
        """Return the mean of ``costs``, shape (N, M), over each atom's answered calls, shape (M,)."""
        return np.einsum("ij,ij->j", self.dispatch_fractions, costs[self.sites])

    @property
    def mean_response(self) -> float:
        """Mean response time over answered calls, min; (1a) of "Optimizing Server Locations in Spatial Queues"."""
        return float(self.demand_shares @ self.atom_response)

    @property
    def unit_shares(self) -> FloatArray:
        """Share of all answered calls that each unit answers, shape (p,)."""
        return self.dispatch_fractions @ self.demand_shares

    @overload
    def late_fraction(self, threshold: float) -> float: ...
    @overload
    def late_fraction(self, threshold: ArrayLike) -> float | FloatArray: ...
    def late_fraction(self, threshold: ArrayLike) -> float | FloatArray:
        """Return the fraction of answered calls whose response takes ``threshold`` minutes or more, without queueing.

        For thresholds of shape (k,), k fractions are returned. This is equation (22) of the first version of
        "Optimizing Server Locations in Spatial Queues". If times vary, each pair of unit and atom counts with its
        probability.
        """
        single = not np.iterable(threshold) or isinstance(threshold, str)  # a text is refused below as one threshold
        given: Any = [threshold] if single else threshold
        thresholds = real_array(given, "threshold", (None,), unit="min", low=0)
        late = np.clip(self._late_shares(thresholds), 0.0, 1.0)  # 1 minus a sum of shares may round to slightly below 0
        return float(late[0]) if single else late

    def atom_late_fractions(self, threshold: float) -> FloatArray:
        """Return the fraction of each atom's answered calls that take ``threshold`` minutes or more, shape (M,).

        In a simulation of times that vary, an atom without an answered call gets its expected late fraction.
        """
        threshold = positive_number(threshold, "threshold", "min", zero=True)
        law = self.law
        late = (self.response_times >= threshold).astype(float) if law is None else law.late_probabilities(threshold)
        expected = (self.dispatch_fractions * late).sum(axis=0)
        if law is None or self.answers is None:
            return expected
        found = self.answers.late_fractions(threshold)
        return np.where(np.isnan(found), expected, found)

    def percentile(self, q: float) -> float:
        """Return the smallest response time that at least ``q`` percent of answered calls do not exceed, min.

        Raise unless 0 < q <= 100. If times vary, it is infinite above 99.99999, except in a simulation.
        """
        q = positive_number(q, "q", "percent")
        if q > 100:
            raise InputError(f"`q` must be a percentage above 0 and at most 100; got {q:g}.")
        if not self._is_continuous:
            times, weights = self._times_and_weights
            below = np.cumsum(weights)  # whose rounded total may be below 1 - 1e-12
            return float(times[np.searchsorted(below, min(q / 100, 1 - 1e-12, below[-1]))])
        if q > 100 - 1e-5:  # `CUTOFF` of `travel` leaves 2e-8 in the tail, however long the time
            return float("inf")
        from scipy.optimize import brentq

        high = self.response_times.max()
        while self._late_shares(np.array([high]))[0] > 1 - q / 100:  # a bracket for `brentq`: times have no upper limit
            high *= 2
        # Below 1e-9 rounding in the sum of shares could hide the change of sign that `brentq` needs.
        return float(brentq(lambda t: self._late_shares(np.array([t]))[0] - 1 + max(q, 1e-9) / 100, 0, high, xtol=1e-9))

    @property
    def percentile_90(self) -> float:
        """90th percentile of response time, min."""
        return self.percentile(90)

    def late_interval(self, threshold: float) -> tuple[float, float]:
        """Return the confidence interval of `late_fraction` for one threshold (min); raise without a simulation."""
        estimate = self.late_fraction(positive_number(threshold, "threshold", "min", zero=True))
        return self._simulated_answers.late_interval(estimate, threshold, self.demand_shares)

    def percentile_interval(self, q: float) -> tuple[float, float]:
        """Return the confidence interval of `percentile` (min); raise without a simulation.

        Its ends are the percentiles at the ends of the confidence interval of ``q`` (Woodruff, R. S. 1952, Confidence
        intervals for medians, Journal of the American Statistical Association 47(260), 635-646).
        """
        t = self.percentile(q)
        low, high = self._simulated_answers.late_interval(1 - q / 100, t, self.demand_shares)
        return self.percentile(max(100 * (1 - high), 1e-9)), self.percentile(100 * (1 - low))  # 0 is refused

    @property
    def _simulated_answers(self) -> AnsweredCalls:
        """The answered calls of a simulation; raise if there are none."""
        if self.answers is None:
            got = f"this is an evaluation by the {self.evaluator} evaluator"
            raise InputError(f"only a simulation has confidence intervals; {got}. Use emsopt.evaluators.simulate.")
        return self.answers

    @property
    def _is_continuous(self) -> bool:
        """Whether response times have a continuous distribution instead of a finite list of times."""
        return self.law is not None and self.answers is None  # a simulation lists the times it drew

    def _late_shares(self, thresholds: FloatArray) -> FloatArray:
        """Return the fraction of answered calls whose response takes each threshold or more, shape (k,)."""
        if self._is_continuous:
            law, weights = self._pair_law_and_shares
            return np.array([weights @ law.late_probabilities(t)[:, 0] for t in thresholds])
        times, weights = self._times_and_weights
        before = np.r_[0.0, np.cumsum(weights)]
        return 1 - before[np.searchsorted(times, thresholds, side="left")]  # left: the threshold itself is late

    @cached_property
    def _pair_law_and_shares(self) -> tuple[ResponseLaw, FloatArray]:
        """Response law of the n pairs of unit and atom that occur, and their shares of the answered calls, (n,)."""
        assert self.law is not None
        shares = self.dispatch_fractions * self.demand_shares
        units, atoms = np.nonzero(shares > NEGLIGIBLE_SHARE)
        return self.law.of_pairs(units, atoms), shares[units, atoms] / shares[units, atoms].sum()

    @cached_property
    def _times_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Response times (min) of all pairs, or those drawn, ascending, and shares of answered calls, (n,) each."""
        if self.law is not None and self.answers is not None:
            # Each atom counts by its known share of the demand, not by how many calls it happened to have.
            by_call = self.demand_shares / np.maximum(self.answers.total().sum(axis=0), 1)
            order = np.argsort(self.answers.minutes, kind="stable")
            weights = by_call[self.answers.atoms[order]]
            return self.answers.minutes[order], weights / weights.sum()
        order = np.argsort(self.response_times, axis=None, kind="stable")
        weights = (self.dispatch_fractions * self.demand_shares).ravel()[order]
        return self.response_times.ravel()[order], weights / weights.sum()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per unit: site, utilisation, share of all answered calls, mean response to its calls (min)."""
        import pandas as pd

        shares = self.unit_shares
        minutes = (self.dispatch_fractions * self.response_times) @ self.demand_shares
        mean = np.divide(minutes, shares, out=np.full_like(shares, np.nan), where=shares > 0)
        columns = {"site": self.sites, "name": self.site_names, "utilization": self.utilizations}
        return pd.DataFrame(columns | {"share_of_calls": shares, "mean_response_min": mean})

    def atoms_frame(self) -> pd.DataFrame:
        """Return one row per atom: its share of calls, mean response (min) and site that answers most of its calls."""
        import pandas as pd

        most = [self.site_names[k] for k in self.dispatch_fractions.argmax(axis=0)]
        columns = {"atom": self.atom_names, "share_of_calls": self.demand_shares}
        return pd.DataFrame(columns | {"mean_response_min": self.atom_response, "answered_most_by": most})

    def summary(self, threshold: float = LATE_MIN) -> dict[str, float]:
        """Return the main measures as a dict; responses of ``threshold`` minutes or more are late."""
        threshold = positive_number(threshold, "threshold", "min", zero=True)
        figures = {
            "mean_response_min": self.mean_response,
            f"late_over_{threshold:g}_min": self.late_fraction(threshold),
            "percentile_90_min": self.percentile_90,
            "mean_utilization": float(self.utilizations.mean()),
            "max_utilization": float(self.utilizations.max()),
        }
        if self.capacity == "loss":
            return figures | {"loss_probability": self.loss_probability}
        return figures | {"queue_probability": self.queue_probability, "mean_wait_min": self.mean_wait}

    @property
    def _method_text(self) -> str:
        """The evaluator and its capacity, in words."""
        calibrated = ", approximate as service depends on the place and is calibrated" if self.calibrated else ""
        return f"{self.evaluator}, {self.capacity}{calibrated}"

    def __repr__(self) -> str:
        measures = f"mean response {self.mean_response:.3f} min, {len(self.sites)} units"
        return f"<Evaluation ({self._method_text}): {measures}, mean utilization {self.utilizations.mean():.3f}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{key.replace('_', ' ')}</th><td>{value:.4g}</td></tr>"
            for key, value in self.summary().items()
        )
        units = self.to_frame().round(3).to_html(index=False)
        return f"<table><caption>{self._method_text}</caption>{rows}</table>{units}"


def is_queue(capacity: str) -> bool:
    """Return whether ``capacity`` is "queue"; raise unless it is "loss" or "queue"."""
    return choice(capacity, "capacity", ("loss", "queue")) == "queue"


def unstable_queue_error(city: City, sites: IntArray) -> UnstableQueueError:
    """Return the error for a queue that grows without bound, with units at these sites."""
    units = f"{len(sites)} {'unit' if len(sites) == 1 else 'units'}"
    return UnstableQueueError(
        f"calls arrive at {city.total_rate:g} per hour, at least as fast as {units} at these sites can serve them, so "
        "the queue grows without bound. Add units, lower the load, or use capacity='loss'."
    )


def averaging_matrix(city: City, sites: IntArray) -> FloatArray:
    """Return the matrix, (p, p), whose product with numbers of units, (p,), is the mean over each unit's twin group."""
    groups = city.twin_groups[sites]
    same = groups[:, None] == groups
    return same / same.sum(axis=1)


def queued_shares(city: City, sites: IntArray) -> FloatArray:
    """Return the share of queued calls that each unit answers, shape (p,): they go to the unit that is free next."""
    free_rate = 1 / (city.service_times[sites] @ city.demand_shares)
    return free_rate / free_rate.sum()
