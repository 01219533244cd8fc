"""Compare the responses by a calibrated model with those of a later log.

The later calls are replayed (`emsopt.calls.replaying`) many times, each time with parameters drawn from the errors of
the fit, and the response times are rounded as the log's stamps are. The modelled value is the mean over the draws. With
a correct model, recorded values lie between the 5 % and 95 % quantiles of the draws, ``low`` and ``high``, nine times
in ten. These intervals do not count that calls of a day, a unit or a street are alike for reasons outside the model.

The response is the time from dispatch to the first unit on scene. Late means more recorded minutes than the threshold:
with stamps of whole minutes, 9 or more for 8 (`emsopt.calls.recorded`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from .._files import atomic
from ..city.travel import ResponseLaw
from ..errors import InputError, _validate
from ..errors._types import BoolArray, FloatArray, IntArray, PathLike, Rng
from ..evaluators.by_name import check_evaluator, evaluate
from ..evaluators.evaluation import LATE_MIN, Evaluation
from ..roads import RoadNetwork
from . import _page
from ._points import project
from ._times import hour_of_week
from ._units import busy_minutes, dispatch_times, regular_units
from .calibration import Fit, calibrate, distances
from .dispatch import AREA_WORDS, RULES, dispatch_of, free_stations
from .log import CallLog, Source, read_calls
from .recorded import Z90, response_measures, stamped_responses
from .replaying import check_deployment, replay
from .uses import USE_TITLES, deviations, judge_fit, judge_separation

THRESHOLDS = (4, 6, 8, 10, 12)  # minutes
DEFAULT_DRAWS, LEAST_DRAWS, MOST_VALUES = 200, 40, 20_000_000  # calls times draws, to save memory
FEWEST_CALLS = 5  # calls of an hour or a zone that is shown: means of fewer are mostly chance
LEAST_LEAD, LEAST_EXPLAINED_SHARE = 0.05, 0.5  # of the calls that a rule must explain more than another, and in all
N_SAMPLES = 200_000  # responses drawn from the hypercube model, so many that their own error does not matter


@dataclass(frozen=True, eq=False, repr=False)
class BackTest:
    """Comparison of recorded with modelled response times and workloads.

    Attributes
    ----------
    overall, by_hour, by_zone, by_station, distribution : DataFrame
        Columns ``recorded``, ``modelled``, ``low``, ``high`` and, except in the first, the ``calls`` behind the
        recorded values. ``overall`` is what `to_frame` returns. ``by_hour`` and ``by_zone`` have the mean response
        (min) by hour of the day and by closest station, if there are at least 5 calls; ``by_station`` has the share of
        the time that the station's units are busy, and ``distribution`` the share of responses by minutes.
    deployment : ndarray of int, shape (p,)
        Station of each unit of the model.
    calls : int
        Number of calls with a recorded response.
    left_out : mapping of str to int
        Number of calls that were replayed but not compared, by reason.
    uses : DataFrame
        Whether the model is ``usable`` for each use, and ``why``, a sentence, by the rules of `emsopt.calls.uses`;
        nothing is usable on days that the fit was made from.
    period : str
        First and last day of the calls.
    dispatch_test, followed_rule : str
        Sentence on the rule of dispatch that the calls follow; and that rule if it is surely not that of the fit, else
        empty.
    """

    overall: pd.DataFrame
    by_hour: pd.DataFrame
    by_zone: pd.DataFrame
    by_station: pd.DataFrame
    distribution: pd.DataFrame
    deployment: IntArray
    calls: int
    left_out: Mapping[str, int]
    uses: pd.DataFrame
    period: str
    dispatch_test: str
    followed_rule: str

    def to_frame(self) -> pd.DataFrame:
        """Return one row per measure, indexed by name: ``recorded``, ``modelled``, ``low``, ``high`` and two more.

        ``city_model`` is the value of the hypercube model of `Fit.city`, with the demand of the calls of the fit, and
        ``as_before`` what these calls recorded.
        """
        return self.overall.copy()

    def usable(self, use: str) -> bool:
        """Return whether plans may rely on the model for a ``use``, a row of ``uses`` such as "moves"."""
        return bool(self.uses.loc[_validate.choice(use, "use", self.uses.index.tolist()), "usable"])

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sentences, one per row of ``uses``, that say whether the model is usable, and why."""
        rows = self.uses.itertuples()
        return tuple(f"{USE_TITLES[use]}: {'usable' if usable else 'do not use'}. {why}" for use, usable, why in rows)

    @property
    def details(self) -> tuple[str, ...]:
        """Sentences that name the zones and stations outside their intervals; the last is ``dispatch_test``."""
        said = []
        for what, off in (("Zones", deviations(self.by_zone)), ("Stations", deviations(self.by_station))):
            for side, names in (("above", off.index[off > 0]), ("below", off.index[off < 0])):
                said += [f"{what} recorded {side} modelled: {', '.join(names)}."] if len(names) else []
        return (*said, self.dispatch_test)

    @property
    def html(self) -> str:
        """The report as a self-contained HTML page."""
        return _page.html_document("Back-test", _page.STYLE, self.body)

    @property
    def body(self) -> str:
        """The report as HTML for the body of a page."""
        figures = (
            _page.dot_plot(self.distribution, "Share of calls by minutes of response", ""),
            _page.dot_plot(self.by_hour, "Mean response by hour of the day", "min"),
            _page.dot_plot(self.by_zone, "Mean response by zone (closest station)", "min"),
            _page.dot_plot(self.by_station, "Share of time that units are busy, by station", ""),
        )
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in self.left_out.items())
        notes = [
            f"{self.calls:,} calls, {self.period}; {len(self.deployment)} units. Not compared: {left_out or 'none'}.",
            "Intervals of 90 %: what chance explains if the model is right. Its times are rounded like the stamps.",
        ]
        return _page.back_test_body("Back-test", (*self.verdict, *self.details), self.overall, figures, notes)

    def save(self, path: PathLike) -> Path:
        """Write the report as one self-contained HTML file and return its path; raise if it cannot be written."""
        return atomic.write_file(path, self.html)

    def __repr__(self) -> str:
        mean, high = self.overall.loc["mean_response_min"], self.overall.loc["percentile_90_min"]
        return (
            f"<BackTest: {self.calls:,} calls; mean response {mean['recorded']:.2f} min recorded, "
            f"{mean['modelled']:.2f} modelled; 90th percentile {high['recorded']:.2f} and {high['modelled']:.2f}>"
        )

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return self.uses.to_html() + self.overall.round(3).to_html()


def back_test(
    fit: Fit,
    later_calls: CallLog | Source,
    deployment: Sequence[int | str] | IntArray | None = None,
    *,
    threshold: float = LATE_MIN,
    cell_km: float | None = None,
    draws: int | None = None,
    times: Mapping[str, Any] | None = None,
    rng: Rng = 0,
) -> BackTest:
    """Compare the responses by a calibrated model with those of a later log; raise if it has no usable responses.

    Parameters
    ----------
    fit : Fit
        As `calibrate` returns it, from other calls than ``later_calls``.
    later_calls : CallLog, or whatever `read_calls` takes
        With the roles ``dispatched`` and ``on_scene``.
    deployment : sequence of str or int, shape (p,), optional
        As for `replay`.
    threshold : float
        Minutes beyond which a response is late.
    cell_km : float, optional
        Width of the cells of `Fit.city`, which ``uses`` judges. Default: half of that of `Fit.demand`, as distances to
        the middle of wide cells overstate the response.
    draws : int, optional
        Number of replays, at least 40. Default: 200, fewer for more than 100,000 calls.
    times : mapping, optional
        Options of `Fit.city`, such as ``turnout_times``, that replace calibrated times there.
    rng : numpy.random.Generator or seed
        Fixed by default, so that a report can be repeated.

    Examples
    --------
    >>> import emsopt as eo
    >>> calls, stations = eo.datasets.san_jose_calls()
    >>> fit = eo.calls.calibrate(calls.between("2015-01-01", "2015-01-10"), stations)
    >>> report = eo.calls.back_test(fit, calls.between("2015-01-10", "2015-01-15"))
    >>> list(report.to_frame().columns), report.usable("mean")
    (['recorded', 'modelled', 'low', 'high', 'city_model', 'as_before'], True)
    """
    fit = _validate.instance(fit, "fit", Fit, "emsopt.calls.Fit")
    log = read_calls(later_calls)
    stamped_responses(log)  # raises at once if the log lacks the stamps, before the replays
    sites = check_deployment(fit, deployment)
    limits = sorted({*THRESHOLDS, _validate.positive_number(threshold, "threshold", "min")})
    if draws is None:
        draws = int(np.clip(MOST_VALUES // max(len(log), 1), LEAST_DRAWS, DEFAULT_DRAWS))
    draws, rng = _validate.whole_number(draws, "draws", LEAST_DRAWS), _validate.generator(rng)
    replays = replay(fit, log, sites, draws=draws, rng=rng)
    log = replays.calls
    recorded, exact, left_out = stamped_responses(log)
    known = ~np.isnan(recorded)
    rounded = _round_to_stamps(replays.response, exact, rng)
    rounded[:, ~known] = np.nan
    lattice = exact[0] if exact[0] == exact[1] else 0.0

    reach = distances(fit.stations, log.locations, fit.roads)
    names = fit.stations["name"].tolist()
    zone = reach.argmin(axis=1)
    used = np.unique(sites)
    units = np.bincount(sites, minlength=len(names))[used]
    minutes_each = units * _length_minutes(log)
    modelled_busy = np.array([np.bincount(sites, row, len(names))[used] for row in replays.busy]) / minutes_each
    recorded_busy, answered = _workload(fit, log, len(names))
    before_busy, _ = _workload(fit, fit.calls, len(names))

    def measure(minutes: FloatArray) -> dict[str, float]:
        return response_measures(minutes[~np.isnan(minutes)], lattice, limits)

    drawn = pd.DataFrame([measure(row) for row in rounded])
    found = measure(recorded)
    if answered is not None:
        drawn["utilization"] = replays.busy.sum(axis=1) / minutes_each.sum()
        found["utilization"] = recorded_busy.sum() / len(sites)
    overall = _summarise_draws(pd.Series(found), drawn)
    atoms, evaluation, total = _city_model(fit, sites, cell_km, times or {}, rng)
    busy = evaluation.utilizations
    modelled = measure(_round_to_stamps(total, exact, rng)) | {"utilization": float(busy.mean())}
    before = measure(stamped_responses(fit.calls)[0]) | {"utilization": float(before_busy.sum() / len(sites))}
    overall = overall.assign(city_model=pd.Series(modelled), as_before=pd.Series(before))
    hours = [f"{h:02d} h" for h in range(24)]
    by_hour = _group_means(recorded, rounded, hour_of_week(dispatch_times(log)) % 24, hours)
    by_zone = _group_means(recorded, rounded, zone, names)
    middle = atoms[0, 0], atoms[:, 1].mean()
    nearest_atom = cKDTree(project(atoms, middle)).query(project(log.locations, middle))[1]
    at = evaluation.atom_response[nearest_atom]
    by_zone["city_model"] = pd.Series(at[known]).groupby(np.array(names)[zone[known]]).mean()
    busy_share = np.nan if answered is None else recorded_busy[used] / units
    by_station = _summarise_draws(busy_share, pd.DataFrame(modelled_busy, columns=[names[k] for k in used]))
    by_station["calls"] = 0 if answered is None else answered[used]
    by_station["city_model"] = np.bincount(sites, busy, len(names))[used] / units
    told, followed_rule = find_followed_rule(fit, log, reach)
    apart = judge_separation(at[known], recorded[known])
    return BackTest(
        overall=overall,
        by_hour=by_hour,
        by_zone=by_zone,
        by_station=by_station,
        distribution=_shares_by_minute(recorded[known], rounded),
        deployment=sites,
        calls=int(known.sum()),
        left_out=left_out,
        uses=judge_fit(fit, replays, threshold, apart, told if followed_rule else "", overall, by_zone, by_station),
        period=" to ".join(str(t)[:10] for t in log.times[[0, -1]]),
        dispatch_test=told,
        followed_rule=followed_rule,
    )


def calibrate_and_test(
    calls: CallLog,
    stations: pd.DataFrame,
    cut: np.datetime64,
    homes: Mapping[str, str] | None = None,
    roads: RoadNetwork | None = None,
    today: Sequence[int | str] | IntArray | None = None,
    dispatch: str = "nearest",
    **options: Any,
) -> tuple[Fit, BackTest]:
    """Calibrate with the calls before ``cut`` and back-test with the later ones; raise if there are none of either.

    ``today`` is the deployment, as for `replay`, if no unit has a known home; ``options`` are those of `back_test`.
    """
    first, last = calls.times[[0, -1]]
    past = calibrate(calls.between(first, cut), stations, homes, roads, dispatch)
    later = calls.between(cut, last + np.timedelta64(1, "s"))
    return past, back_test(past, later, today if past.homes_from == "unknown" else None, **options)


def _summarise_draws(recorded: Any, drawn: pd.DataFrame) -> pd.DataFrame:
    """Return a row per column of ``drawn``, with a row per draw: recorded value, mean, and 5 % and 95 % quantiles."""
    low, high = drawn.quantile(0.05), drawn.quantile(0.95)
    return pd.DataFrame({"recorded": recorded, "modelled": drawn.mean(), "low": low, "high": high})


def _round_to_stamps(minutes: FloatArray, exact: Sequence[float], rng: np.random.Generator) -> FloatArray:
    """Return ``minutes`` as recorded by stamps whose start and end have the resolutions ``exact`` (min), same shape."""
    start, end = exact
    begun = start * rng.random(minutes.shape)
    if start == end:
        return np.floor((begun + minutes) / end) * end
    return np.maximum(minutes + begun - end * rng.random(minutes.shape), 0)


def _group_means(recorded: FloatArray, drawn: FloatArray, group: IntArray, names: Sequence[str]) -> pd.DataFrame:
    """Return mean responses (min), as `_summarise_draws`, of groups of 5 calls or more; each call has a ``group``."""
    n = len(names)

    def means(minutes: FloatArray) -> FloatArray:
        kept = ~np.isnan(minutes)
        with np.errstate(invalid="ignore"):
            return np.bincount(group[kept], minutes[kept], n) / np.bincount(group[kept], minlength=n)

    counts = np.bincount(group[~np.isnan(recorded)], minlength=n)
    shown = counts >= FEWEST_CALLS
    table = pd.DataFrame(np.array([means(row) for row in drawn]), columns=list(names)).loc[:, shown]
    return _summarise_draws(means(recorded)[shown], table).assign(calls=counts[shown])


def _shares_by_minute(recorded: FloatArray, drawn: FloatArray) -> pd.DataFrame:
    """Return the shares of responses by rounded minutes, as `_summarise_draws`; the last row has the longest 0.5 %."""
    last = int(np.ceil(np.quantile(recorded, 0.995)))

    def shares(minutes: FloatArray) -> FloatArray:
        minutes = minutes[~np.isnan(minutes)]
        counts = np.bincount(np.minimum(np.round(minutes), last).astype(np.int64), minlength=last + 1)
        return counts / len(minutes)

    table = pd.DataFrame([shares(row) for row in drawn], columns=[*map(str, range(last)), f"{last}+"])
    counts = np.round(shares(recorded) * len(recorded)).astype(int)
    return _summarise_draws(shares(recorded), table).assign(calls=counts)


def _workload(fit: Fit, log: CallLog, n: int) -> tuple[FloatArray, IntArray | None]:
    """Return busy units, on average, and number of calls by station, (n,) each; zeros and None without known homes."""
    if not fit.homes or "unit" not in log.details or log.service_min is None:
        return np.zeros(n), None
    home, minutes = fit.home_of(log), busy_minutes(log)
    calls: IntArray = np.bincount(home[home >= 0], minlength=n)
    if log.occupying is not None:
        home, minutes = np.r_[home, fit.home_of(log.occupying)], np.r_[minutes, busy_minutes(log.occupying)]
    known = home >= 0
    return np.bincount(home[known], weights=minutes[known], minlength=n) / _length_minutes(log), calls


def _length_minutes(log: CallLog) -> float:
    """Return the minutes from the first to the last call of a log, at least 60."""
    return max(float((log.times.max() - log.times.min()).astype("timedelta64[s]").astype(float)) / 60, 60.0)


def _city_model(
    fit: Fit, sites: IntArray, cell_km: float | None, times: Mapping[str, Any], rng: np.random.Generator
) -> tuple[FloatArray, Evaluation, FloatArray]:
    """Return longitude and latitude (degrees) of a city's atoms, (M, 2), its evaluation, and responses (min) drawn.

    The evaluation is that of units at ``sites``. Without ``cell_km``, cells are half as wide as `Fit.demand` has them.
    """
    demand = fit.demand(cell_km=cell_km)
    if cell_km is None and demand.cell_km is not None:
        demand = fit.demand(cell_km=demand.cell_km / 2)
    city = fit.city(demand=demand, **times)
    evaluation = evaluate(city, sites, check_evaluator(None, len(sites)))
    weights = (evaluation.dispatch_fractions * evaluation.demand_shares).ravel()
    pairs = rng.choice(weights.size, N_SAMPLES, p=weights / weights.sum())
    unit, atom = np.unravel_index(pairs, evaluation.dispatch_fractions.shape)
    law = ResponseLaw.of(city.turnout_times, city.travel_times, city.turnout_cv, city.travel_cv).at_sites(sites)
    return demand.locations, evaluation, law.sample(unit, atom, rng.standard_normal((2, N_SAMPLES)))


def find_followed_rule(fit: Fit, log: CallLog, reach: FloatArray) -> tuple[str, str]:
    """Return a sentence on the rule of dispatch that a log follows, and the rule if it surely is not that of the fit.

    ``reach`` is the distance or time from stations to calls, (K, N). A rule explains a call if its first station with a
    free unit answered. The log follows the simplest rule that no other surely beats by 5 % of the calls.
    """
    home = fit.home_of(log)
    known = home >= 0
    inferred = fit.homes_from == "log" or AREA_WORDS.search(fit.calls.taken.get("station", ""))
    if not known.any() or log.service_min is None or inferred:
        return "The log does not tell which station is sent first: that needs units whose homes are known.", ""
    free = free_stations(log, home, fit.homes, regular_units(fit.homes, fit.calls.details), fit.stations["name"])
    own, said = dict[str, BoolArray](), []
    for rule in RULES:
        with suppress(InputError):  # raised if the log lacks the columns
            found = fit.dispatch
            if rule != found.rule:
                found = dispatch_of(rule, fit.calls, fit.stations, fit.home_of(fit.calls), fit.homes)
            first = np.where(free, found.costs(log.locations, reach.T).T, np.inf).argmin(axis=1)
            own[rule] = (first == home)[known]
            said.append(f"{found.first_choice} {own[rule].mean():.0%}")
    text = f"Of {known.sum():,} calls, the first of these with a free unit answered: {', '.join(said)}."
    followed_rule = _simplest_rule(own)
    if followed_rule is None:
        return f"{text} It cannot be told which of them the record follows.", ""
    more, chance = _share_difference(own[followed_rule], own[fit.dispatch.rule])
    return f"{text} The record follows {followed_rule!r}.", followed_rule if more > max(chance, LEAST_LEAD) else ""


def _simplest_rule(explained: Mapping[str, BoolArray]) -> str | None:
    """Return the first rule that surely no other beats by 5 % of the calls, by masks of calls explained, or None."""
    for rule, own in explained.items():
        leads = [_share_difference(other, own) for name, other in explained.items() if name != rule]
        if all(more + chance < LEAST_LEAD for more, chance in leads) and own.mean() >= LEAST_EXPLAINED_SHARE:
            return rule
        if not any(more > max(chance, LEAST_LEAD) for more, chance in leads):
            return None
    return None


def _share_difference(one: BoolArray, other: BoolArray) -> tuple[float, float]:
    """Return the difference between the means of two masks, (K,), and half the width of its 90 % interval."""
    return one.mean() - other.mean(), float(Z90 * np.sqrt((one != other).sum())) / len(one)
