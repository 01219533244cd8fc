"""What every evaluator returns."""

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from .._validate import positive_number, real_array
from ..errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Performance of one deployment.

    Response time is turnout plus travel of the unit that answers (the papers' definition). Where calls can
    queue, the time they wait for a unit to become free comes before it and is reported beside it.

    Attributes
    ----------
    evaluator : str
        How it was computed: "approximate", "exact" or "simulation".
    capacity : str
        "loss": a call that finds every unit busy is lost to others; "queue": it waits.
    sites : ndarray of int, shape (p,)
        Site of each unit; repeats are colocated units.
    utilizations : ndarray, shape (p,)
        Fraction of time each unit is busy, below 1 (a simulation may never see it free). Units at one site share their work equally.
    dispatch_fractions : ndarray, shape (p, M)
        Share of atom j's answered calls that unit i answers; columns sum to one.
    response_times : ndarray, shape (p, M)
        Turnout plus travel of each unit to each atom, min.
    demand_shares : ndarray, shape (M,)
        Share of each atom in the calls.
    loss_probability : float
        Probability that a call is lost (0 with a queue).
    queue_probability : float
        Probability that a call has to wait (0 with loss).
    mean_wait : float
        Mean wait in queue over all calls, min.
    queued_shares : ndarray, shape (p,)
        Share of the calls that had to wait which unit i answers; sums to one.
    iterations : int
        Sweeps or fixed-point steps taken (simulation: calls counted).
    residual : float
        Largest violation left in the equations solved (simulation: NaN).
    intervals : mapping of str to (float, float)
        Confidence intervals of simulated measures; empty for the analytic evaluators.
    """

    evaluator: str
    capacity: str
    sites: np.ndarray
    utilizations: np.ndarray
    dispatch_fractions: np.ndarray
    response_times: np.ndarray
    demand_shares: np.ndarray
    loss_probability: float
    queue_probability: float
    mean_wait: float
    queued_shares: np.ndarray
    iterations: int
    residual: float
    site_names: tuple[str, ...]
    atom_names: tuple[str, ...]
    intervals: MappingProxyType = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, city, sites, **measures):
        """Fill in what the city and the deployment already say."""
        return cls(
            sites=sites,
            response_times=city.response_times[sites],
            demand_shares=city.demand_shares,
            site_names=tuple(city.site_names[k] for k in sites),
            atom_names=city.atom_names,
            **measures,
        )

    @cached_property
    def atom_response(self):
        """Mean response time of each atom's answered calls, shape (M,), min."""
        return np.einsum("ij,ij->j", self.dispatch_fractions, self.response_times)

    @property
    def mean_response(self):
        """Mean response time over answered calls, min: the papers' objective (1a)."""
        return float(self.demand_shares @ self.atom_response)

    @property
    def unit_shares(self):
        """Share of all answered calls that each unit answers, shape (p,)."""
        return self.dispatch_fractions @ self.demand_shares

    def late_fraction(self, threshold, *, include_wait=False):
        """Fraction of answered calls whose response takes ``threshold`` minutes or more.

        Version one's (22). With ``include_wait`` the time in queue counts too: a call that has to wait does so for
        an exponential time (exact for the hypercube model, an approximation for general service times).

        Parameters
        ----------
        threshold : float or array_like, shape (k,)
            Minutes.
        include_wait : bool
            Count from the call rather than from the dispatch.

        Returns
        -------
        float, or ndarray of shape (k,)
        """
        single = not np.iterable(threshold) or isinstance(threshold, str)
        thresholds = real_array([threshold] if single else threshold, "threshold", (None,), unit="min", low=0)
        times, weights = self._distribution
        before = np.r_[0.0, np.cumsum(weights)]
        late = 1 - before[np.searchsorted(times, thresholds, side="left")]
        if include_wait and self.queue_probability > 0:
            # Move the calls that waited from their response time to response time plus an exponential wait.
            waited = self.queue_probability * self.queued_shares[:, None] * self.demand_shares
            mean = self.mean_wait / self.queue_probability
            for k, t in enumerate(thresholds):
                later = np.exp(-np.maximum(t - self.response_times, 0) / mean)
                late[k] += (waited * (later - (self.response_times >= t))).sum()
        late = np.clip(late, 0.0, 1.0)
        return float(late[0]) if single else late

    def atom_late(self, threshold):
        """Return the fraction of each atom's answered calls whose response takes ``threshold`` minutes or more.

        Weighted by `demand_shares` it sums to `late_fraction`; the time in queue does not count.

        Parameters
        ----------
        threshold : float
            Minutes, at least 0.

        Returns
        -------
        ndarray, shape (M,)

        Raises
        ------
        InputError
            If ``threshold`` is no number of at least 0.
        """
        threshold = positive_number(threshold, "threshold", "min", zero=True)
        return np.where(self.response_times >= threshold, self.dispatch_fractions, 0).sum(axis=0)

    def percentile(self, q):
        """Return the response time that ``q`` percent of answered calls do not exceed, min."""
        q = positive_number(q, "q", "percent")
        if q > 100:
            raise InputError(f"`q` must be a percentage of at most 100; got {q:g}.")
        times, weights = self._distribution
        return float(times[np.searchsorted(np.cumsum(weights), min(q / 100, 1 - 1e-12))])

    @property
    def percentile_90(self):
        """90th percentile of response time, min."""
        return self.percentile(90)

    @cached_property
    def _distribution(self):
        """Response times in ascending order with their probabilities."""
        order = np.argsort(self.response_times, axis=None, kind="stable")
        weights = (self.dispatch_fractions * self.demand_shares).ravel()[order]
        return self.response_times.ravel()[order], weights / weights.sum()

    def to_frame(self):
        """Return one row a unit: site, utilisation, share of calls, mean response to its calls (min)."""
        import pandas as pd

        shares = self.unit_shares
        minutes = (self.dispatch_fractions * self.response_times) @ self.demand_shares
        return pd.DataFrame(
            {
                "site": self.sites,
                "name": self.site_names,
                "utilization": self.utilizations,
                "share_of_calls": shares,
                "mean_response_min": np.divide(minutes, shares, out=np.full_like(shares, np.nan), where=shares > 0),
            }
        )

    def atoms_frame(self):
        """Return one row an atom: share of calls, mean response (min), unit that answers most."""
        import pandas as pd

        first = self.dispatch_fractions.argmax(axis=0)
        return pd.DataFrame(
            {
                "atom": self.atom_names,
                "share_of_calls": self.demand_shares,
                "mean_response_min": self.atom_response,
                "answered_most_by": [self.site_names[k] for k in first],
            }
        )

    def summary(self, threshold=8.0):
        """Return the headline figures as a dict; ``threshold`` in minutes."""
        threshold = positive_number(threshold, "threshold", "min", zero=True)
        blocked = (
            {"loss_probability": self.loss_probability}
            if self.capacity == "loss"
            else {"queue_probability": self.queue_probability, "mean_wait_min": self.mean_wait}
        )
        return {
            "mean_response_min": self.mean_response,
            f"late_over_{threshold:g}_min": self.late_fraction(threshold),
            "percentile_90_min": self.percentile_90,
            "mean_utilization": float(self.utilizations.mean()),
            "max_utilization": float(self.utilizations.max()),
            **blocked,
        }

    def __repr__(self):
        return (
            f"<Evaluation ({self.evaluator}, {self.capacity}): mean response {self.mean_response:.3f} min, "
            f"{len(self.sites)} units, mean utilization {self.utilizations.mean():.3f}>"
        )

    def _repr_html_(self):
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(key.replace('_', ' '))}</th><td>{value:.4g}</td></tr>"
            for key, value in self.summary().items()
        )
        return f"<table>{rows}</table>" + self.to_frame().round(3).to_html(index=False)
