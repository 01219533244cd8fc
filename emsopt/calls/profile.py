"""How calls come and go through the week, and whether where they come from changes with the hour.

A rate is a count over the hours that were watched: every hour from the first call's to the last call's. From n calls it
is known to about 1/sqrt(n) of itself, so the 168 hours of a week need some thousands of calls before each says much.
"""

from dataclasses import dataclass

import numpy as np

from .. import _validate
from ..errors import InputError

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EMPTY_DAYS = ("counted", "missing")
WIDEST_PULL = 1e7  # calls; the pattern of an hour pulled this hard is the overall one


@dataclass(frozen=True, eq=False, repr=False)
class WeeklyProfile:
    """Calls by day of the week and hour of the day.

    Attributes
    ----------
    counts : ndarray of int, shape (7, 24)
        Calls; Monday comes first.
    hours : ndarray, shape (7, 24)
        Hours watched.
    """

    counts: np.ndarray
    hours: np.ndarray

    @property
    def rates(self):
        """Calls per hour, shape (7, 24); NaN where no such hour was watched."""
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
        """Calls per hour over all hours watched."""
        return float(self.counts.sum() / self.hours.sum())

    def to_frame(self):
        """Return one row a day and hour: ``weekday``, ``hour``, ``calls``, ``hours_watched``, ``calls_per_hour``."""
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
    """Return how often each hour of the week lies between the first and the last of some times, shape (7, 24).

    Parameters
    ----------
    times : ndarray of datetime64, shape (K,)
    empty_days : {"counted", "missing"}
        Whether a day without any call was quiet and counts, or was not recorded and does not.
    """
    _validate.choice(empty_days, "empty_days", EMPTY_DAYS)
    first, last = times.min().astype("datetime64[h]"), times.max().astype("datetime64[h]")
    hours = np.arange(first.astype(np.int64), last.astype(np.int64) + 1)
    if empty_days == "missing":
        hours = hours[np.isin(hours // 24, times.astype("datetime64[D]").astype(np.int64))]
    days = (hours // 24 + 3) % 7  # 1 January 1970 was a Thursday
    return np.bincount(days * 24 + hours % 24, minlength=168).reshape(7, 24)


def slots(hours=None, weekdays=None):
    """Return which hours of the week are meant, shape (7, 24).

    Parameters
    ----------
    hours : sequence of int, optional
        Hours of the day, 0 to 23; all if left out.
    weekdays : sequence of int or str, optional
        0 to 6 or "Mon" to "Sun"; all if left out.
    """
    chosen = np.zeros((7, 24), dtype=bool)
    days = range(7) if weekdays is None else [_weekday(day) for day in _listed(weekdays, "weekdays")]
    clock = range(24) if hours is None else _listed(hours, "hours")
    clock = [_validate.whole_number(hour, "hours", 0, 23) for hour in clock]
    chosen[np.ix_(list(days), clock)] = True
    return chosen


def pull_of_the_whole(counts):
    r"""Estimate how strongly the patterns of single hours are to be pulled to the overall one.

    Counts of an hour are taken as Dirichlet-multinomial about the overall shares :math:`s_j` with concentration
    :math:`\kappa`, which is fitted by maximum likelihood. The best guess of an hour's shares is then
    :math:`(n_{hj} + \kappa s_j) / (n_h + \kappa)`: few calls change the pattern little.

    Parameters
    ----------
    counts : ndarray, shape (M, H)
        Calls by atom and hour.

    Returns
    -------
    float
        The concentration, in calls; infinite where the hours differ no more than by chance.
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
        msg = f"`{name}` must be a sequence of at least one; got {values!r}."
        raise InputError(msg)
    return list(values)


def _weekday(day):
    if isinstance(day, str) and day.strip().title()[:3] in WEEKDAYS:
        return WEEKDAYS.index(day.strip().title()[:3])
    return _validate.whole_number(day, "weekdays", 0, 6)
