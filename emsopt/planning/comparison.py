"""Compare deployments while rates, travel times and service times are uncertain.

From a log of a few weeks the calls of each atom, the speed of units and the time per call are uncertain. `compare`
draws many cities that agree with the log within its errors, and evaluates every deployment in each of them (common
random numbers), so that variation common to all deployments does not widen the interval of a difference.

**More data.** Let V be the variance of the difference over the draws, and F the part of it that stays however long the
log becomes, such as the travel times from sites that never had a unit. After k times as many weeks the variance is
about F + (V - F) / k. The 90 % interval of a difference D excludes 0 if D is more than 1.645 standard deviations, hence
from k = (V - F) / ((D / 1.645)² - F) on, if D stays as it is. If the denominator is not positive, no amount of data of
this kind suffices.

**Limits.** The interval leaves out the errors of the queueing model, which `emsopt.calls.back_test` shows, and whether
the future will be like the log. Units are sent in the order of the estimated times in all drawn cities
(`emsopt.calls.drawn_cities`), so that a deployment with one unit fewer can be better in some of them, by very little.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._running.loop import progress_bar
from ..calls.calibration import Fit
from ..calls.drawn_cities import DrawnCities, drawn_cities
from ..calls.recorded import Z90
from ..city.city import City
from ..city.deployment_space import check_sites
from ..errors import AccuracyWarning, InputError, UnstableQueueError, _validate
from ..errors._types import FloatArray, IntArray, Progress, Rng, Sites
from ..evaluators.by_name import check_evaluator, evaluate
from ..evaluators.metrics import NEGLIGIBLE_DIFFERENCE, Metric, metric_costs, metric_label

INTERVAL_LEVEL = 0.9
INTERVAL_QUANTILES = [(1 - INTERVAL_LEVEL) / 2, 1 - (1 - INTERVAL_LEVEL) / 2]
LEAST_DRAWS = 100  # below, the 5 % and 95 % quantiles are too uncertain
VARIANCE_SOURCES = {"demand": "demand", "travel": "travel times", "service": "service times"}
MOST_WEEKS = 520  # more weeks of data than this are not worth waiting for
NEGLIGIBLE_LOSS = 0.001  # a smaller share of lost calls does not affect a comparison and is not reported


class Interval(NamedTuple):
    """Mean and 90 % interval of an uncertain number."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray) -> Interval:
        """Return the mean of draws, and their 5 % and 95 % quantiles."""
        return cls(float(values.mean()), *map(float, np.quantile(values, INTERVAL_QUANTILES)))

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Result of comparing K deployments in drawn cities. Differences are to the first one; negative is better.

    Attributes
    ----------
    names, sites : tuple
        Name of each deployment, in the order given, and the sites of its units.
    metric, evaluator, capacity
        As passed to `compare`, or their defaults.
    values : ndarray, shape (draws, K)
        Metric of each deployment in each drawn city, one row per city.
    by_atom : DataFrame
        One row per atom, for the last deployment against the first: calls per hour, mean difference of the metric
        with its 90 % interval, probability that it is lower, and ``verdict``: "same" if the interval is within 1 % of
        the first deployment's metric, "gains" or "loses" if it excludes 0, else "unclear".
    variances : Series
        Variance over the draws of the difference of the last deployment to the first: "all"; with only "demand",
        "travel" or "service" drawn; and "unlimited", for an unlimited log of the same kind.
    weeks : float
        Length of the log.
    lost : ndarray, shape (K,)
        Share of calls that find all units busy and are lost, by deployment, mean over the draws; 0 if calls queue.
    """

    names: tuple[str, ...]
    sites: tuple[IntArray, ...]
    metric: Metric
    evaluator: str
    capacity: str
    values: FloatArray
    by_atom: pd.DataFrame
    variances: pd.Series[float]
    weeks: float
    lost: FloatArray

    @property
    def difference(self) -> Interval:
        """Metric of the last deployment minus that of the first: mean, low and high (90 %)."""
        return Interval.of(self.values[:, -1] - self.values[:, 0])

    @property
    def probability_better(self) -> float:
        """Probability that the last deployment is better than the first; equal values count half."""
        return float(probability_below(self.values[:, -1] - self.values[:, 0]))

    @property
    def more_weeks(self) -> float:
        """Weeks of further data after which the interval of the difference would exclude 0, if its mean stays.

        0 if it already excludes 0, infinite if no amount of such data suffices.
        """
        if self.difference.excludes_zero:
            return 0.0
        now, unlimited = self.variances["all"], self.variances["unlimited"]
        excess = (self.difference.mean / Z90) ** 2 - unlimited
        return float(self.weeks * max((now - unlimited) / excess - 1, 0)) if excess > 0 else np.inf

    @property
    def tied(self) -> tuple[str, ...]:
        """Names of the deployment with the best mean, and of those whose difference to it may be 0 (90 % interval)."""
        order = np.argsort(self.values.mean(axis=0), kind="stable")
        gaps = (self.values[:, k] - self.values[:, order[0]] for k in order)
        return tuple(self.names[k] for k, gap in zip(order, gaps, strict=True) if not Interval.of(gap).excludes_zero)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per deployment: number of units, metric, difference to the first, probabilities, lost calls.

        ``probability_better`` is the probability of being better than the first deployment, ``probability_best`` that
        of being the best of all; ties are shared equally.
        """
        best = self.values == self.values.min(axis=1, keepdims=True)
        rows = {}
        for k, name in enumerate(self.names):
            gap = self.values[:, k] - self.values[:, 0]
            row: dict[str, float] = {"units": len(self.sites[k])}
            row |= zip(("value", "low", "high"), Interval.of(self.values[:, k]), strict=True)
            row |= zip(("difference", "difference_low", "difference_high"), Interval.of(gap), strict=True)
            row["probability_better"] = probability_below(gap) if k else np.nan
            rows[name] = row | {"probability_best": (best[:, k] / best.sum(axis=1)).mean(), "lost": self.lost[k]}
        return pd.DataFrame.from_dict(rows, orient="index").astype({"units": int}).rename_axis("deployment")

    @property
    def sentences(self) -> tuple[str, ...]:
        """The results in sentences, first the difference of the last deployment to the first."""
        parts = (*_difference_sentences(self), *_fleet_sentences(self), *_zone_sentences(self))
        return (*parts, *_variance_and_best_sentences(self))

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def __repr__(self) -> str:
        gap, (scale, unit, _) = self.difference, metric_wording(self.metric)
        numbers = f"{scale * gap.mean:+.3g} ({scale * gap.low:+.3g} to {scale * gap.high:+.3g}){unit}"
        return (
            f"<Comparison of {', '.join(self.names)}: {numbers}, better with probability {self.probability_better:.3g}>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>" + self.to_frame().round(3).to_html()


def compare(
    fit: Fit | DrawnCities,
    deployments: Mapping[str, Sites],
    *,
    draws: int = 1000,
    rng: Rng = None,
    evaluator: str | None = None,
    capacity: str = "loss",
    metric: Metric = "mean_response",
    progress: Progress = False,
    **options: Any,
) -> Comparison:
    """Compare deployments in cities drawn from the uncertainty of a log.

    Parameters
    ----------
    fit : what `emsopt.calls.calibrate` returns, or `emsopt.calls.drawn_cities` and the like
    deployments : mapping from str to sites
        Two or more named deployments, as site indices or names; today's first. The fleets may differ.
    draws, rng : int
        Number of cities drawn, at least 100, and random seed, a generator or None.
    evaluator, capacity, metric
        As for `Objective`; the evaluator must be exact or approximate. Raise if a queue is unstable in a drawn city.
    progress : bool or callable
        Whether to show a bar, or a function called with (cities evaluated, number of cities).
    **options
        As for `Fit.city` and `aggregate_calls`, such as ``cell_km`` and ``reach_km``.

    Examples
    --------
    >>> import emsopt as eo
    >>> fit = eo.calls.calibrate(*eo.datasets.san_jose_calls())
    >>> plans = {"today": fit.deployment, "moved": [1, *fit.deployment[1:]]}
    >>> answer = eo.planning.compare(fit, plans, draws=100, rng=0)
    >>> answer.names, answer.values.shape, 0 <= answer.probability_better <= 1
    (('today', 'moved'), (100, 2), True)
    """
    draws = _validate.whole_number(draws, "draws", LEAST_DRAWS)
    known = city_distribution(fit, **options)
    centre = known.city()
    if not isinstance(deployments, Mapping) or len(deployments) < 2:
        wanted = 'two or more named deployments, such as {"today": sites, "proposed": sites}'
        raise InputError(f"`deployments` must map names to sites, {wanted}; got {_validate.quote(deployments)}.")
    if strange := [name for name in deployments if not isinstance(name, str) or not name.strip()]:
        raise InputError(f"`deployments` must have a text as each name; got {_validate.quote(strange[0])}.")
    chosen = {name: check_sites(centre, sites, f"deployments[{name!r}]") for name, sites in deployments.items()}
    how = check_hypercube(evaluator, max(map(len, chosen.values()))), capacity, metric
    metric_costs(centre, metric)
    for sites in chosen.values():  # warns of inaccurate results
        evaluate(centre, sites, how[0], capacity=capacity)
    seed, few = int(_validate.generator(rng).integers(2**62)), max(LEAST_DRAWS // 2, draws // 4)
    parts: dict[str, dict[str, Any]] = {source: {"vary": (source,)} for source in VARIANCE_SOURCES}
    parts |= {"unlimited": {"more": np.inf}}
    pair = {name: chosen[name] for name in (next(iter(chosen)), list(chosen)[-1])}
    with progress_bar(progress, draws + few * len(parts), "city") as show:
        values, changes, lost = evaluate_draws(_report_progress(known.draws(draws, seed), show, 0), chosen, *how)
        variances = {"all": _difference_variance(values)}
        for k, (part, what) in enumerate(parts.items()):
            cities = _report_progress(known.draws(few, seed, **what), show, draws + k * few)
            variances[part] = min(_difference_variance(evaluate_draws(cities, pair, *how)[0]), variances["all"])
    return Comparison(
        names=tuple(chosen),
        sites=tuple(chosen.values()),
        metric=metric,
        evaluator=how[0],
        capacity=capacity,
        values=values,
        by_atom=_atom_table(centre, changes, float(values[:, 0].mean())),
        variances=pd.Series(variances),
        weeks=float(known.weeks),
        lost=lost,
    )


def city_distribution(fit: Any, name: str = "fit", other: str = "", /, **options: Any) -> DrawnCities:
    """Return the distribution of the cities of a fit; ``options`` are as for `Fit.city`.

    A distribution, that is anything with a method ``draws``, is returned as it is. Error messages call the argument
    ``name`` and put ``other`` before the types it may have.
    """
    if isinstance(fit, Fit):
        return drawn_cities(fit, **options)
    if not hasattr(fit, "draws"):
        raise InputError(f"`{name}` must be {other}what emsopt.calls.calibrate returns; got {_validate.quote(fit)}.")
    if options:
        raise InputError(
            f"there is no option {min(options)!r}; those of `Fit.city` need a fit by emsopt.calls.calibrate; got "
            f"{_validate.quote(fit)}."
        )
    return fit


def check_hypercube(evaluator: str | None, units: int) -> str:
    """Return the evaluator, by default the one for up to ``units`` units; raise unless it is a hypercube model."""
    if evaluator == "simulation":
        raise InputError("`evaluator` must be 'exact' or 'approximate': chance in a simulation hides differences.")
    return check_evaluator(evaluator, units)


def _report_progress(cities: Iterable[City], show: Any, before: int) -> Iterator[City]:
    """Yield the cities; after each, call ``show`` with ``before`` plus the number yielded so far."""
    for done, city in enumerate(cities, before + 1):
        yield city
        show(done)


def evaluate_draws(
    cities: Iterable[City], deployments: Mapping[str, IntArray], evaluator: str, capacity: str, metric: Metric
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Evaluate all K deployments in each city; raise, with the city's number, if a queue is unstable.

    Return the metric, shape (draws, K), that of the last deployment minus the first by atom, shape (draws, M), and the
    mean share of calls that each deployment loses, shape (K,).
    """
    values, changes, lost = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # warned of once, for the estimated city
        for number, city in enumerate(cities, 1):
            costs = metric_costs(city, metric)
            try:
                found = [evaluate(city, sites, evaluator, capacity=capacity) for sites in deployments.values()]
            except UnstableQueueError as error:
                raise UnstableQueueError(f"in drawn city {number}, {error}") from error
            atoms = [evaluation.atom_cost(costs) for evaluation in found]
            values.append(atoms @ city.demand_shares)
            changes.append(atoms[-1] - atoms[0])
            lost.append([evaluation.loss_probability for evaluation in found])
    return np.array(values), np.array(changes), np.mean(lost, axis=0)


def _difference_variance(values: FloatArray) -> float:
    """Return the variance over draws of the difference of the last column to the first."""
    return float((values[:, -1] - values[:, 0]).var(ddof=1))


def probability_below(gaps: FloatArray) -> Any:
    """Return the share of draws below 0, zeros counted half; for shape (draws, M) that of each column, (M,)."""
    return (gaps < 0).mean(axis=0) + (gaps == 0).mean(axis=0) / 2


def _atom_table(city: City, changes: FloatArray, size: float) -> pd.DataFrame:
    """Return the table `Comparison.by_atom` of differences, shape (draws, M).

    ``size`` is the mean metric of the first deployment.
    """
    low, high = np.quantile(changes, INTERVAL_QUANTILES, axis=0)
    small = np.maximum(-low, high) <= NEGLIGIBLE_DIFFERENCE * size
    verdict = np.select([small, high < 0, low > 0], ["same", "gains", "loses"], "unclear")
    columns = {"calls_per_hour": city.arrival_rates, "difference": changes.mean(axis=0), "low": low, "high": high}
    columns |= {"probability_better": probability_below(changes), "verdict": verdict}
    return pd.DataFrame({"atom": city.atom_names, **columns})


def metric_wording(metric: Metric) -> tuple[float, str, str]:
    """Return the factor and the unit for reporting differences of a metric, and the metric in words."""
    if metric == "mean_response":
        return 1, " min", "mean response"
    if isinstance(metric, tuple) and metric[0] == "late":
        return 100, " percentage points", f"share of responses of {metric[1]:g} min or more"
    return 1, "", metric_label(metric)


def _difference_text(value: float, unit: str = "") -> str:
    """Return a difference in words: "0.12 min lower"."""
    return f"{abs(value):.2g}{unit} {'lower' if value < 0 else 'higher'}"


def _percent_text(probability: float, draws: int) -> str:
    """Return a probability estimated from a number of draws as a percentage; 0 and 1 become bounds."""
    if probability in (0, 1):
        return f"{'more than ' if probability else 'less than '}{100 * abs(probability - 1 / draws):.3g} %"
    return f"{100 * probability:.3g} %"


def _difference_sentences(answer: Comparison) -> Iterator[str]:
    """Yield sentences on the difference of the last deployment to the first."""
    (first, last), gap = (answer.names[0], answer.names[-1]), answer.difference
    scale, unit, quantity = metric_wording(answer.metric)
    if (answer.values[:, 0] == answer.values[:, -1]).all():
        same = ": the deployments are the same" if sorted(answer.sites[0]) == sorted(answer.sites[-1]) else ""
        yield f"The {quantity} of {last!r} equals that of {first!r} in every drawn city{same}."
        return
    better = _percent_text(answer.probability_better, len(answer.values))
    low, high = sorted((scale * gap.low, scale * gap.high), key=abs)
    begin = f"{abs(low):.2g}" if gap.excludes_zero else _difference_text(low)
    interval = f"(90 % interval: {begin} to {_difference_text(high, unit)})"
    yield f"The {quantity} of {last!r} is {_difference_text(scale * gap.mean, unit)} than that of {first!r} {interval}."
    yield f"The probability that {last!r} is better is {better}."
    if gap.excludes_zero:
        yield "The interval excludes zero."
        return
    if _subset_pair(answer) is not None:
        return
    yield "The log cannot tell which of the two is better."
    more, largest = answer.more_weeks, scale * max(-gap.low, gap.high)
    if more <= MOST_WEEKS:
        weeks = f"{more:.0f} more weeks" if more >= 1.5 else "one more week"
        yield f"If the difference is what it seems, about {weeks} of such data would settle it."
    elif np.isfinite(more):
        yield f"More than ten further years of data would be needed: the difference is within {largest:.2g}{unit}."
    else:
        rest = scale * Z90 * np.sqrt(answer.variances["unlimited"])
        yield (
            f"No amount of such data would settle it: the difference is within {largest:.2g}{unit}, and {rest:.2g}"
            f"{unit} either way would stay unknown, as travel times where no unit has driven."
        )


def _subset_pair(answer: Comparison) -> tuple[int, int] | None:
    """Return (0, -1) if the last deployment is the first with further units, (-1, 0) if the reverse, else None."""
    size = 1 + max(int(sites.max()) for sites in answer.sites)
    counts = [np.bincount(sites, minlength=size) for sites in answer.sites]
    pairs = ((0, -1), (-1, 0))
    return next((p for p in pairs if (counts[p[0]] <= counts[p[1]]).all() and (counts[0] != counts[-1]).any()), None)


def _fleet_sentences(answer: Comparison) -> Iterator[str]:
    """Yield sentences on fleets of different size, on why one may look better with fewer units, and on lost calls."""
    (first, last), units = (answer.names[0], answer.names[-1]), [len(answer.sites[k]) for k in (0, -1)]
    if units[0] != units[1]:
        yield f"The fleets differ: {last!r} has {units[1]} units, {first!r} has {units[0]}."
    if (pair := _subset_pair(answer)) is not None:
        yield from _smaller_fleet_sentence(answer, pair)
    lost = answer.lost[[0, -1]]
    if lost.max() >= NEGLIGIBLE_LOSS:
        yield (
            f"All units are busy for {lost[0]:.2%} of the calls with {first!r} and {lost[1]:.2%} with {last!r}. Such "
            "calls have no response time, so that losing more of them can make a deployment look better."
        )


def _smaller_fleet_sentence(answer: Comparison, pair: tuple[int, int]) -> Iterator[str]:
    """Yield a sentence on why the deployment with fewer units, first in ``pair``, is better in some drawn cities."""
    gaps = answer.values[:, pair[0]] - answer.values[:, pair[1]]
    if (gaps >= 0).all():
        return
    scale, unit, _ = metric_wording(answer.metric)
    share, gain = _percent_text(float((gaps < 0).mean()), len(gaps)), f"{-scale * gaps[gaps < 0].mean():.2g}{unit}"
    fewer, more = (answer.names[k] for k in pair)
    far = ", or it loses calls that are far" * bool(answer.lost[pair[0]] - answer.lost[pair[1]] >= NEGLIGIBLE_LOSS)
    yield (
        f"{fewer!r} is {more!r} with fewer units. It is better in {share} of the drawn cities, there by {gain} on "
        "average: units are sent in the order of the estimated times, and in those cities the next unit is closer to "
        f"the calls of one that was removed{far}. That is no reason to remove units."
    )


def _zone_sentences(answer: Comparison) -> Iterator[str]:
    """Yield a sentence on how many atoms gain and lose, and their shares of the calls."""
    by_atom, (scale, unit, _) = answer.by_atom, metric_wording(answer.metric)
    small = f"{scale * NEGLIGIBLE_DIFFERENCE * answer.values[:, 0].mean():.2g}{unit}"
    if (by_atom["verdict"] == "same").all():
        if answer.difference.low != 0 or answer.difference.high != 0:
            yield f"In none of the {len(by_atom)} zones does it change by more than {small}."
        return
    calls = by_atom.groupby("verdict")["calls_per_hour"].agg(["size", "sum"])
    share = 100 / by_atom["calls_per_hour"].sum()
    verdicts = {"gains": "better", "loses": "worse", "unclear": "unclear", "same": f"the same within {small}"}
    told = [
        f"{calls['size'][verdict]} ({share * calls['sum'][verdict]:.0f} % of the calls) {words}"
        for verdict, words in verdicts.items()
        if verdict in calls.index
    ]
    yield f"By zone, of {len(by_atom)}: {', '.join(told)}."


def _variance_and_best_sentences(answer: Comparison) -> Iterator[str]:
    """Yield sentences on the sources of the variance and, with more than two deployments, on the best of them."""
    parts = answer.variances[list(VARIANCE_SOURCES)]
    if parts.sum() > 0:
        shares = (100 * parts / parts.sum()).sort_values(ascending=False)
        told = [f"{share:.0f} % from {VARIANCE_SOURCES[str(source)]}" for source, share in shares.items()]
        yield f"The uncertainty (variance) comes {', '.join(told)}."
    if len(answer.names) > 2:
        best, *others = map(repr, answer.tied)
        tied = f"; the log cannot tell it from {', '.join(others)}" if others else ""
        yield f"The best on average is {best}{tied}."
