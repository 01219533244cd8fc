"""Profile of calls through the week, and how far their spatial pattern depends on the hour.

A rate is a count divided by the hours observed, from the hour of the first call to that of the last. The
relative standard error of a rate from n calls is about 1/sqrt(n), so useful rates for each of the 168 hours
of a week need several thousand calls.
"""

from dataclasses import dataclass

import numpy as np

from .. import _validate
from ..errors import InputError

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EMPTY_DAYS = ("counted", "missing")
WIDEST_PULL = 1e7  # calls; at this concentration every hour has the overall pattern


@dataclass(frozen=True, eq=False, repr=False)
class WeeklyProfile:
    """Calls by day of the week and hour of the day.

    Attributes
    ----------
    counts : ndarray of int, shape (7, 24)
        Calls; Monday comes first.
    hours : ndarray, shape (7, 24)
        Hours observed.
    """

    counts: np.ndarray
    hours: np.ndarray

    @property
    def rates(self):
        """Calls per hour, shape (7, 24); NaN for hours that were not observed."""
        return _ratio(self.counts, self.hours)

    @property
    def by_hour(self):
        """Calls per hour at each hour of the day, shape (24,)."""
        return _ratio(self.counts.sum(axis=0), self.hours.sum(axis=0))

    @property
    def by_weekday(self):
        """Calls per hour on each day of the week, shape (7,)."""
        return _ratio(self.counts.sum(axis=1), self.hours.sum(axis=1))

    @property
    def mean_rate(self):
        """Calls per hour over all hours observed."""
        return float(self.counts.sum() / self.hours.sum())

    def to_frame(self):
        """Return one row per weekday and hour, as a DataFrame.

        Columns are ``weekday``, ``hour``, ``calls``, ``hours_watched`` and ``calls_per_hour``.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "weekday": np.repeat(WEEKDAYS, 24),
                "hour": np.tile(np.arange(24), 7),
                "calls": self.counts.ravel(),
                "hours_watched": self.hours.ravel(),
                "calls_per_hour": self.rates.ravel(),
            }
        )

    def __repr__(self):
        rates = np.nan_to_num(self.by_hour)
        return (
            f"<WeeklyProfile: {self.mean_rate:.3g} calls/h, from {rates.min():.3g} at {rates.argmin()} h "
            f"to {rates.max():.3g} at {rates.argmax()} h>"
        )


def hours_watched(times, empty_days="counted"):
    """Count how often each hour of the week occurs from the first to the last time, shape (7, 24).

    Parameters
    ----------
    times : ndarray of datetime64, shape (K,)
    empty_days : {"counted", "missing"}
        Whether days without calls were quiet and count, or were not recorded and do not.
    """
    _validate.choice(empty_days, "empty_days", EMPTY_DAYS)
    first, last = times.min().astype("datetime64[h]"), times.max().astype("datetime64[h]")
    hours = np.arange(first.astype(np.int64), last.astype(np.int64) + 1)
    if empty_days == "missing":
        hours = hours[np.isin(hours // 24, times.astype("datetime64[D]").astype(np.int64))]
    days = (hours // 24 + 3) % 7  # 1 January 1970 was a Thursday
    return np.bincount(days * 24 + hours % 24, minlength=168).reshape(7, 24)


def slots(hours=None, weekdays=None):
    """Return a mask of the selected hours of the week, shape (7, 24).

    Parameters
    ----------
    hours : sequence of int, optional
        Hours of the day, 0 to 23. Default: all.
    weekdays : sequence of int or str, optional
        0 to 6 or "Mon" to "Sun". Default: all.
    """
    chosen = np.zeros((7, 24), dtype=bool)
    days = range(7) if weekdays is None else [_weekday(day) for day in _listed(weekdays, "weekdays")]
    clock = range(24) if hours is None else _listed(hours, "hours")
    clock = [_validate.whole_number(hour, "hours", 0, 23) for hour in clock]
    chosen[np.ix_(list(days), clock)] = True
    return chosen


def pull_of_the_whole(counts):
    r"""Estimate how strongly to shrink the patterns of single hours towards the overall pattern.

    The counts of an hour are modelled as Dirichlet-multinomial around the overall shares :math:`s_j`, with a
    concentration :math:`\kappa` fitted by maximum likelihood. The estimated shares of hour h are then
    :math:`(n_{hj} + \kappa s_j) / (n_h + \kappa)`; an hour with few calls stays close to the overall pattern.

    Parameters
    ----------
    counts : ndarray, shape (M, H)
        Calls by atom and hour.

    Returns
    -------
    float
        The concentration, in calls; infinite if the hours differ no more than by chance.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    counts = np.asarray(counts, float)
    shares = counts.sum(axis=1) / counts.sum()
    counts, shares = counts[shares > 0], shares[shares > 0, None]
    totals = counts.sum(axis=0)

    def misfit(log_pull):
        pull = np.exp(log_pull)
        alpha = pull * shares
        each = gammaln(counts + alpha) - gammaln(alpha)
        return -(gammaln(pull) - gammaln(totals + pull)).sum() - each.sum()

    best = minimize_scalar(misfit, bounds=(0, np.log(WIDEST_PULL)), method="bounded")
    pull = float(np.exp(best.x))
    return pull if pull < WIDEST_PULL / 10 else np.inf


def _ratio(calls, hours):
    return np.divide(calls, hours, out=np.full(np.shape(calls), np.nan), where=np.asarray(hours) > 0)


def _listed(values, name):
    if isinstance(values, str) or not np.iterable(values) or len(list(values)) == 0:
        raise InputError(f"`{name}` must be a sequence with at least one entry; got {values!r}.")
    return list(values)


def _weekday(day):
    if isinstance(day, str) and day.strip().title()[:3] in WEEKDAYS:
        return WEEKDAYS.index(day.strip().title()[:3])
    return _validate.whole_number(day, "weekdays", 0, 6)
