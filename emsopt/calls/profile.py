"""Calls by hour of the week, selections of hours, and how much spatial patterns depend on the hour of the day.

A rate is a number of calls divided by the hours observed, from the first call to the last. The relative standard error
of a rate from n calls is about 1/sqrt(n), so useful rates for each hour of a week need several thousand calls.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..city.city import HOURS_A_YEAR
from ..errors import InputError, _validate
from ..errors._types import BoolArray, FloatArray, IntArray, Times
from ._times import hour_of_week

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_SHRINKAGE = 1e7  # calls: above, every hour has the overall pattern anyway


@dataclass(frozen=True, eq=False, repr=False)
class WeeklyProfile:
    """Numbers of calls, and of ``hours`` observed, by weekday (Monday first) and hour of the day, shape (7, 24)."""

    counts: IntArray
    hours: IntArray

    @property
    def rates(self) -> FloatArray:
        """Calls per hour, shape (7, 24); NaN for hours that were not observed."""
        return _divide_by_hours(self.counts, self.hours)

    @property
    def by_hour(self) -> FloatArray:
        """Calls per hour at each hour of the day, averaged over the days observed, shape (24,); NaN without any."""
        return _divide_by_hours(self.counts.sum(axis=0), self.hours.sum(axis=0))

    @property
    def mean_rate(self) -> float:
        """Calls per hour over all hours observed."""
        return float(self.counts.sum() / self.hours.sum())

    def to_frame(self) -> pd.DataFrame:
        """Return one row per ``weekday`` and ``hour``: ``calls``, ``hours_watched`` and ``calls_per_hour``."""
        columns = {"calls": self.counts, "hours_watched": self.hours, "calls_per_hour": self.rates}
        hours = {"weekday": np.repeat(WEEKDAYS, 24), "hour": np.tile(np.arange(24), 7)}
        return pd.DataFrame({**hours, **{name: values.ravel() for name, values in columns.items()}})

    def __repr__(self) -> str:
        rates = np.nan_to_num(self.by_hour)
        return (
            f"<WeeklyProfile: {self.mean_rate:.3g} calls/h, from {rates.min():.3g} at {rates.argmin()} h "
            f"to {rates.max():.3g} at {rates.argmax()} h>"
        )


def parse_hours(text: str, name: str) -> list[int]:
    """Parse a range of hours, such as "7-19" to 7, 8, ..., 18, or "22-6" past midnight; ``name`` is for errors."""
    found = re.fullmatch(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*", text)
    first, last = (int(part) for part in found.groups()) if found else (99, 99)
    if first > 23 or last > 24 or first == last:
        raise InputError(f"`{name}` must have a form such as 7-19 (until 19:00) or 22-6; got {text!r}.")
    return [(first + k) % 24 for k in range((last - first) % 24 or 24)]


def parse_weekdays(text: str, name: str) -> list[int]:
    """Parse weekdays such as "Mon-Fri" or "Sat,Sun" to numbers, 0 for Monday; ``name`` is for errors."""
    days: set[int] = set()
    for part in text.split(","):
        ends = [end.strip().title()[:3] for end in part.split("-")]
        if len(ends) > 2 or not set(ends) <= set(WEEKDAYS):
            raise InputError(f"`{name}` must have a form such as Mon-Fri or Sat,Sun; got {text!r}.")
        first, last = WEEKDAYS.index(ends[0]), WEEKDAYS.index(ends[-1])
        days |= {(first + k) % 7 for k in range((last - first) % 7 + 1)}
    return sorted(days)


def count_observed_hours(times: Times, empty_days: str = "counted") -> IntArray:
    """Count how often each hour of the week was observed, (7, 24), by times of calls, (K,); see `observed_hours`."""
    return np.bincount(hour_of_week(observed_hours(times, empty_days)), minlength=168).reshape(7, 24)


def observed_hours(times: Times, empty_days: str = "counted") -> Times:
    """Return the start of every hour from the first to the last call, but of days without calls if "missing"."""
    _validate.choice(empty_days, "empty_days", ("counted", "missing"))
    hours = np.arange(times.min().astype("datetime64[h]"), times.max().astype("datetime64[h]") + 1)
    if empty_days == "missing":
        hours = hours[np.isin(hours.astype("datetime64[D]"), times.astype("datetime64[D]"))]
    return hours


def week_mask(hours: Iterable[int] | None = None, weekdays: Iterable[int | str] | None = None) -> BoolArray:
    """Return a mask of the selected hours of the week, shape (7, 24), Monday first; None stands for all."""
    days, clock = _parse_numbers(weekdays, "weekdays", 7, WEEKDAYS), _parse_numbers(hours, "hours", 24)
    chosen = np.zeros((7, 24), dtype=bool)
    chosen[np.ix_(days, clock)] = True
    return chosen


def hours_a_year(hours: Iterable[int] | None = None, weekdays: Iterable[int | str] | None = None) -> float:
    """Return the number of hours per year in the selected hours of the week."""
    return HOURS_A_YEAR * float(week_mask(hours, weekdays).mean())


def describe_selection(hours: Iterable[int] | None, weekdays: Iterable[int | str] | None) -> str:
    """Return a sentence, after a space, that names the hours and weekdays, as for `week_mask`; empty for all."""
    chosen, parts = week_mask(hours, weekdays), []
    if weekdays is not None:
        days = np.flatnonzero(chosen.any(axis=1))
        parts.append("on " + _join_ranges(days, lambda a, b: "-".join(dict.fromkeys((WEEKDAYS[a], WEEKDAYS[b])))))
    if hours is not None:
        parts.append("from " + _join_ranges(np.flatnonzero(chosen.any(axis=0)), lambda a, b: f"{a} to {b + 1} h"))
    return f" Only calls {' '.join(parts)} count." if parts else ""


def _join_ranges(numbers: IntArray, text: Callable[[int, int], str]) -> str:
    """Write runs of consecutive numbers, such as "0 to 6 h and 22 to 24 h"; ``text`` formats a run's first and last."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return " and ".join(text(int(run[0]), int(run[-1])) for run in runs)


def shrinkage_calls(counts: IntArray) -> float:
    r"""Estimate how strongly to shrink the spatial patterns of single hours towards the overall pattern, in calls.

    The ``counts`` of H hours, shape (M, H), are modelled as Dirichlet-multinomial around the overall shares
    :math:`s_j`, with the returned concentration :math:`\kappa`. The estimated shares of hour h are :math:`(n_{hj} +
    \kappa s_j) / (n_h + \kappa)`. The concentration is fitted by the adjusted profile likelihood of Cox and Reid, as
    the plain likelihood overstates how alike the hours are. It is infinite from a million on, as when the hours differ
    no more than by chance. Where only a few atoms differ by hour, or neighbouring hours are alike, plans by the hour
    are estimated to gain less than they do.

    References
    ----------
    Cox, D. R. and Reid, N. (1987). Parameter orthogonality and approximate conditional inference. Journal of the Royal
    Statistical Society B 49(1), 1-39.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln, polygamma

    shares = counts.sum(axis=1) / counts.sum()
    counts, shares = counts[shares > 0], shares[shares > 0, None]
    totals = counts.sum(axis=0)

    def misfit(logarithm: float) -> float:
        concentration = np.exp(logarithm)
        alpha = concentration * shares
        each = gammaln(counts + alpha) - gammaln(alpha)
        information = concentration**2 * (polygamma(1, alpha) - polygamma(1, counts + alpha)).sum(axis=1)
        adjustment = (np.log(information).sum() + np.log((1 / information).sum())) / 2  # shares sum to one
        return float((gammaln(totals + concentration) - gammaln(concentration)).sum() - each.sum() + adjustment)

    best = minimize_scalar(misfit, bounds=(0, np.log(MOST_SHRINKAGE)), method="bounded")
    concentration = float(np.exp(best.x))
    return concentration if concentration < MOST_SHRINKAGE / 10 else np.inf


def _divide_by_hours(calls: IntArray, hours: IntArray) -> FloatArray:
    """Return ``calls`` divided by ``hours``, of the same shape; NaN where ``hours`` is 0."""
    return np.divide(calls, hours, out=np.full(calls.shape, np.nan), where=hours > 0)


def _parse_numbers(values: Iterable[int | str] | None, name: str, n: int, names: Sequence[str] = ()) -> Sequence[int]:
    """Return hours or weekdays as numbers below ``n``, by the first three letters of texts; None stands for all."""
    if values is None:
        return range(n)
    listed = [] if isinstance(values, str) or not np.iterable(values) else list(values)
    if not listed:
        raise InputError(f"`{name}` must be a sequence with at least one entry, such as a list; got {values!r}.")
    number = {short: k for k, short in enumerate(names)}
    return [_validate.whole_number(number.get(str(v).strip().title()[:3], v), name, 0, n - 1) for v in listed]
