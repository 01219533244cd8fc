r"""Compare deployments while rates, travel times and service times are uncertain.

A log of a few weeks leaves open how many calls each atom has, how fast units drive and how long calls take. `compare`
draws many cities from what the log leaves open and evaluates every deployment in each of them. All deployments meet the
same cities (common random numbers), so that only what concerns their difference makes it uncertain.

**More data.** Let V be the variance of the difference over the draws, and F the part of it that stays however long the
log becomes, such as the travel times from sites that never had a unit. After k times as many weeks the variance is
about F + (V - F) / k. The 90 % interval of a difference D then excludes 0 if D is more than 1.645 standard deviations,
hence from k = (V - F) / ((D / 1.645)² - F) on, if D stays what it is. If the denominator is not positive, no amount of
data of this kind settles it.

**Limits.** Only what the calibration draws is uncertain: the errors of the queueing model, and whether the future will
be like the log, are not counted. `emsopt.calls.back_test` shows the former. Units are
sent in the order of the estimated times in all drawn cities (`emsopt.calls.drawn_cities`), so that a deployment without
one of its units can be better in some of them, by very little. The answer says so, and what share of calls is lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .. import _validate
from .._running.progress import bar
from ..calls.calibration import Fit
from ..calls.drawn_cities import drawn_cities
from ..city.deployment_space import check_sites
from ..errors import AccuracyWarning, InputError, UnstableQueueError
from ..evaluators.by_name import check_evaluator, evaluate
from ..evaluators.metrics import Metric, metric_costs
from ._comparison_in_words import NEGLIGIBLE, NORMAL, SOURCES, in_words, wording

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Progress, Rng, Sites
    from ..city.city import City

LEVEL = 0.9
TAIL = (1 - LEVEL) / 2
LEAST_DRAWS = 100  # below, the 5 % and 95 % quantiles are too uncertain


@runtime_checkable
class UncertainCity(Protocol):
    """What `compare` needs: a city that is not known exactly, as `emsopt.calls.calibrate` estimates it.

    ``city()`` is the estimate and ``weeks`` the length of the log. ``draws(n, rng)`` yields n cities with the same
    atoms and sites; only the sources in ``vary`` differ between them, and with ``more`` the log counts as ``more``
    times as long (it may be infinite). The same ``rng`` gives each source the same draws, whatever else varies.
    """

    @property
    def weeks(self) -> float:
        """Weeks that the log covers."""

    def city(self) -> City:
        """Return the estimated city."""

    def draws(
        self, n: int, rng: Rng = None, *, vary: Iterable[str] = tuple(SOURCES), more: float = 1.0
    ) -> Iterator[City]:
        """Yield n cities drawn from what the log leaves open."""


class Interval(NamedTuple):
    """Mean and 90 % interval of an uncertain number."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray) -> Interval:
        """Return the mean of draws, and their 5 % and 95 % quantiles."""
        return cls(float(values.mean()), *map(float, np.quantile(values, [TAIL, 1 - TAIL])))

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """How deployments differ, and how sure that is. Differences are to the first deployment; negative is better.

    Attributes
    ----------
    names : tuple of str
        Names of the K deployments, in the order given.
    sites : tuple of ndarray of int
        Their sites.
    metric : str, tuple or mapping
        What is compared; smaller is better.
    evaluator, capacity : str
        How it is computed.
    values : ndarray, shape (draws, K)
        Metric of each deployment in each drawn city. In a row the city is the same.
    by_atom : DataFrame
        One row per atom, for the last deployment against the first: calls per hour, mean difference of the metric
        with its 90 % interval, probability that it is lower, and ``verdict``: "same" if the interval is within 1 % of
        the first deployment's metric, "gains" or "loses" if it excludes 0, else "unclear".
    variances : Series
        Variance over the draws of the difference of the last deployment to the first: "all"; with only "demand",
        "travel" or "service" drawn; and "unlimited", what would remain with an unlimited log of the same kind.
    weeks : float
        Length of the log.
    lost : ndarray, shape (K,)
        Share of the calls that each deployment loses because all units are busy, mean over the draws; 0 if calls queue.

    Examples
    --------
    >>> import emsopt as eo
    >>> fit = eo.calls.calibrate(*eo.datasets.san_jose_calls())
    >>> plans = {"today": fit.deployment, "moved": [1, *fit.deployment[1:]]}
    >>> answer = eo.planning.compare(fit, plans, draws=100, rng=0)
    >>> answer.names, answer.values.shape
    (('today', 'moved'), (100, 2))
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
        return probability_below(self.values[:, -1] - self.values[:, 0])

    @property
    def more_weeks(self) -> float:
        """Weeks of further data after which the interval of the difference would exclude 0, if its mean stays.

        0 if it does so already, infinite if no amount of such data would.
        """
        if self.difference.excludes_zero:
            return 0.0
        now, unlimited = self.variances["all"], self.variances["unlimited"]
        spare = (self.difference.mean / NORMAL) ** 2 - unlimited
        return float(self.weeks * max((now - unlimited) / spare - 1, 0)) if spare > 0 else np.inf

    @property
    def tied(self) -> tuple[str, ...]:
        """The deployment with the lowest mean, and those that the log cannot tell from it, the lowest mean first."""
        order = np.argsort(self.values.mean(axis=0), kind="stable")
        gaps = (self.values[:, k] - self.values[:, order[0]] for k in order)
        return tuple(self.names[k] for k, gap in zip(order, gaps, strict=True) if not Interval.of(gap).excludes_zero)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per deployment: number of units, metric, difference to the first, probabilities, lost calls.

        ``probability_better`` is the probability of being better than the first deployment, ``probability_best`` that
        of being the best of all; deployments that are equally good share it.
        """
        best = self.values == self.values.min(axis=1, keepdims=True)
        rows = {}
        for k, name in enumerate(self.names):
            gap = self.values[:, k] - self.values[:, 0]
            row: dict[str, float] = {"units": len(self.sites[k])}
            row |= zip(("value", "low", "high"), Interval.of(self.values[:, k]), strict=True)
            row |= zip(("difference", "difference_low", "difference_high"), Interval.of(gap), strict=True)
            row["probability_better"] = probability_below(gap) if k else np.nan
            row["probability_best"] = float((best[:, k] / best.sum(axis=1)).mean())
            row["lost"] = float(self.lost[k])
            rows[name] = row
        return pd.DataFrame.from_dict(rows, orient="index").astype({"units": int}).rename_axis("deployment")

    def __str__(self) -> str:
        return in_words(self)

    def __repr__(self) -> str:
        gap, (scale, unit, _) = self.difference, wording(self.metric)
        numbers = f"{scale * gap.mean:+.3g} ({scale * gap.low:+.3g} to {scale * gap.high:+.3g}){unit}"
        return (
            f"<Comparison of {', '.join(self.names)}: {numbers}, better with probability {self.probability_better:.3g}>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>" + self.to_frame().round(3).to_html()


def compare(
    fit: Fit | UncertainCity,
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
    """Compare deployments in cities drawn from what a log leaves open.

    Parameters
    ----------
    fit : what `emsopt.calls.calibrate` returns, or another `UncertainCity`
    deployments : mapping from str to sites
        Two or more named deployments, as site indices or names; today's first. The fleets may differ.
    draws : int
        Number of cities drawn, at least 100.
    rng : int or Generator, optional
        Random seed.
    evaluator : {"exact", "approximate"}, optional
        Default: exact if no deployment has more than 12 units, else approximate.
    capacity : {"loss", "queue"}
        What happens to calls that find every unit busy.
    metric : str, tuple or mapping
        "mean_response", ("late", minutes), or a weighted mix, as for `Objective`.
    progress : bool or callable
        Whether to show a bar, or a function called with (cities evaluated, number of cities).
    **options
        As for `Fit.city` and `aggregate_calls`, such as ``cell_km`` and ``reach_km``.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two deployments or 100 draws, or a site or option is unknown.
    UnstableQueueError
        If calls queue and some drawn city has more of them than the units can serve.

    Examples
    --------
    >>> import emsopt as eo
    >>> fit = eo.calls.calibrate(*eo.datasets.san_jose_calls())
    >>> plans = {"today": fit.deployment, "moved": [1, *fit.deployment[1:]]}
    >>> answer = eo.planning.compare(fit, plans, draws=100, rng=0)
    >>> 0 <= answer.probability_better <= 1
    True
    """
    draws = _validate.whole_number(draws, "draws", LEAST_DRAWS)
    known = uncertain(fit, **options)
    centre = known.city()
    chosen = checked(centre, deployments)
    how = options_of(centre, chosen, evaluator, capacity, metric)
    seed, few = int(_validate.generator(rng).integers(2**62)), max(LEAST_DRAWS // 2, draws // 4)
    parts: dict[str, dict[str, Any]] = {source: {"vary": (source,)} for source in SOURCES}
    parts |= {"unlimited": {"more": np.inf}}
    pair = {name: chosen[name] for name in (next(iter(chosen)), list(chosen)[-1])}
    with bar(progress, draws + few * len(parts), "city") as show:
        values, changes, lost = evaluated(_counted(known.draws(draws, seed), show, 0), chosen, *how)
        variances = {"all": _variance(values)}
        for k, (part, what) in enumerate(parts.items()):
            cities = _counted(known.draws(few, seed, **what), show, draws + k * few)
            variances[part] = min(_variance(evaluated(cities, pair, *how)[0]), variances["all"])
    return Comparison(
        names=tuple(chosen),
        sites=tuple(chosen.values()),
        metric=metric,
        evaluator=how[0],
        capacity=capacity,
        values=values,
        by_atom=_by_atom(centre, changes, float(values[:, 0].mean())),
        variances=pd.Series(variances),
        weeks=float(known.weeks),
        lost=lost,
    )


def uncertain(fit: object, name: str = "fit", other: str = "", /, **options: Any) -> UncertainCity:
    """Return what a fit leaves open about its city; ``options`` are as for `Fit.city`.

    Errors call it ``name``, which may be ``other`` things too.
    """
    if isinstance(fit, Fit):
        return drawn_cities(fit, **options)
    if not isinstance(fit, UncertainCity):
        raise InputError(f"`{name}` must be {other}what emsopt.calls.calibrate returns; got {_validate.shown(fit)}.")
    if options:
        raise InputError(f"option {min(options)!r} needs a fit by emsopt.calls.calibrate; got {_validate.shown(fit)}.")
    return fit


def checked(city: City, deployments: object) -> dict[str, IntArray]:
    """Return the deployments by name; raise unless there are two or more and all sites are known."""
    if not isinstance(deployments, Mapping) or len(deployments) < 2:
        wanted = 'two or more named deployments, such as {"today": sites, "proposed": sites}'
        raise InputError(f"`deployments` must map names to sites, {wanted}; got {_validate.shown(deployments)}.")
    if strange := [name for name in deployments if not isinstance(name, str) or not name.strip()]:
        raise InputError(f"names in `deployments` must be text; got {_validate.shown(strange[0])}.")
    return {name: check_sites(city, sites, f"deployments[{name!r}]") for name, sites in deployments.items()}


def options_of(
    city: City, deployments: Mapping[str, IntArray], evaluator: str | None, capacity: str, metric: Metric
) -> tuple[str, str, Metric]:
    """Return evaluator, capacity and metric; evaluate each deployment once, which warns of what is inaccurate."""
    evaluator = check_evaluator(evaluator, max(map(len, deployments.values())))
    if evaluator == "simulation":
        raise InputError("`evaluator` must be 'exact' or 'approximate': chance in a simulation hides differences.")
    metric_costs(city, metric)
    for sites in deployments.values():
        evaluate(city, sites, evaluator, capacity=capacity)
    return evaluator, capacity, metric


def _counted(cities: Iterable[City], show: Any, before: int) -> Iterator[City]:
    """Yield cities and report how many have been yielded, after those ``before``."""
    for done, city in enumerate(cities, before + 1):
        yield city
        show(done)


def evaluated(
    cities: Iterable[City], deployments: Mapping[str, IntArray], evaluator: str, capacity: str, metric: Metric
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Evaluate all deployments in each city; an unstable queue raises an error that names the city by its number.

    Returns the metric, shape (draws, K), by how much the last deployment changes that of each atom compared with the
    first, shape (draws, M), and the mean share of calls that each deployment loses, shape (K,).
    """
    values, changes, lost = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # said once, of the estimated city
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


def _variance(values: FloatArray) -> float:
    """Return the variance over draws of the difference of the last column to the first."""
    return float((values[:, -1] - values[:, 0]).var(ddof=1))


def probability_below(gaps: FloatArray) -> float:
    """Return the share of draws below 0; zeros count half."""
    return float((gaps < 0).mean() + (gaps == 0).mean() / 2)


def _by_atom(city: City, changes: FloatArray, size: float) -> pd.DataFrame:
    """Return the table ``by_atom`` of a comparison; ``changes`` has one row per draw, ``size`` is the metric itself."""
    low, high = np.quantile(changes, [TAIL, 1 - TAIL], axis=0)
    small = np.maximum(-low, high) <= NEGLIGIBLE * size
    verdict = np.select([small, high < 0, low > 0], ["same", "gains", "loses"], "unclear")
    better = (changes < 0).mean(axis=0) + (changes == 0).mean(axis=0) / 2
    columns = {"calls_per_hour": city.arrival_rates, "difference": changes.mean(axis=0), "low": low, "high": high}
    columns |= {"probability_better": better, "verdict": verdict}
    return pd.DataFrame({"atom": city.atom_names, **columns})
