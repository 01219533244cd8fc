"""Tell a comparison of deployments in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..evaluators.metrics import Metric, metric_label

if TYPE_CHECKING:
    import pandas as pd

    from .comparison import Comparison, Interval

NORMAL = 1.6448536269514722  # quantile of the normal distribution at 0.95
NEGLIGIBLE = 0.01  # of the metric: smaller changes of an atom are not told
SOURCES = {"demand": "demand", "travel": "travel times", "service": "service times"}
LONGEST_WEEKS = 520  # more data than this are not worth waiting for
FEW_LOST = 0.001  # a smaller share of lost calls is not told


def in_words(answer: Comparison) -> str:
    """Return a comparison in sentences."""
    parts = (_of_difference(answer), _of_fewer_units(answer), _of_lost_calls(answer), _of_zones(answer))
    return " ".join(text for part in (*parts, _of_sources(answer.variances), _of_all(answer)) for text in part)


def wording(metric: Metric) -> tuple[float, str, str]:
    """Return the factor and unit in which differences of a metric are told, and the metric in words."""
    if metric == "mean_response":
        return 1, " min", "mean response"
    if isinstance(metric, tuple) and metric[0] == "late":
        return 100, " percentage points", f"share of responses of {metric[1]:g} min or more"
    return 1, "", metric_label(metric)


def _change(value: float, unit: str = "") -> str:
    """Return a difference in words: "0.12 min lower"."""
    return f"{abs(value):.2g}{unit} {'lower' if value < 0 else 'higher'}"


def _percent(probability: float, draws: int) -> str:
    """Return a probability in words, of which ``draws`` draws tell no more than 1 / draws."""
    if probability in (0, 1):
        return f"{'more than ' if probability else 'less than '}{100 * abs(probability - 1 / draws):.3g} %"
    return f"{100 * probability:.3g} %"


def _range(gap: Interval, scale: float, unit: str) -> str:
    """Return the interval of a difference in words: "0.05 to 0.19 min lower", "0.02 lower to 0.1 min higher"."""
    low, high = sorted((scale * gap.low, scale * gap.high), key=abs)
    if gap.excludes_zero:
        return f"{abs(low):.2g} to {_change(high, unit)}"
    return f"{_change(scale * gap.low)} to {_change(scale * gap.high, unit)}"


def _of_difference(answer: Comparison) -> Iterator[str]:
    """Yield sentences on the difference of the last deployment to the first."""
    (first, last), gap = (answer.names[0], answer.names[-1]), answer.difference
    scale, unit, what = wording(answer.metric)
    if len(answer.sites[0]) != len(answer.sites[-1]):
        yield f"The fleets differ: {last!r} has {len(answer.sites[-1])} units, {first!r} has {len(answer.sites[0])}."
    if (answer.values[:, 0] == answer.values[:, -1]).all():
        same = ": the deployments are the same" if sorted(answer.sites[0]) == sorted(answer.sites[-1]) else ""
        yield f"The {what} of {last!r} equals that of {first!r} in every drawn city{same}."
        return
    better = _percent(answer.probability_better, len(answer.values))
    yield f"The {what} of {last!r} is {_change(scale * gap.mean, unit)} than that of {first!r} (90 % interval: " + (
        f"{_range(gap, scale, unit)}). The probability that {last!r} is better is {better}."
    )
    if gap.excludes_zero:
        yield "The interval excludes zero."
        return
    if _contained(answer) is not None:
        return
    yield "The log cannot tell which of the two is better."
    more, largest = answer.more_weeks, scale * max(-gap.low, gap.high)
    if more <= LONGEST_WEEKS:
        weeks = f"{more:.0f} more weeks" if more >= 1.5 else "one more week"
        yield f"If the difference is what it seems, about {weeks} of such data would settle it."
    elif np.isfinite(more):
        yield f"More than ten further years of data would be needed: the difference is within {largest:.2g}{unit}."
    else:
        rest = scale * NORMAL * np.sqrt(answer.variances["unlimited"])
        yield (
            f"No amount of such data would settle it: the difference is within {largest:.2g}{unit}, and {rest:.2g}"
            f"{unit} either way would stay unknown, as travel times where no unit has driven."
        )


def _contained(answer: Comparison) -> tuple[int, int] | None:
    """Return positions of first and last deployment, first the one that is the other with fewer units; or None."""
    size = 1 + max(int(sites.max()) for sites in answer.sites)
    counts = [np.bincount(sites, minlength=size) for sites in answer.sites]
    pairs = ((0, -1), (-1, 0))
    return next((p for p in pairs if (counts[p[0]] <= counts[p[1]]).all() and (counts[0] != counts[-1]).any()), None)


def _of_fewer_units(answer: Comparison) -> Iterator[str]:
    """Yield a sentence on why a deployment may look better than itself with more units."""
    pair = _contained(answer)
    if pair is None:
        return
    gaps = answer.values[:, pair[0]] - answer.values[:, pair[1]]
    if (gaps >= 0).all():
        return
    scale, unit, _ = wording(answer.metric)
    share, gain = _percent(float((gaps < 0).mean()), len(gaps)), f"{-scale * gaps[gaps < 0].mean():.2g}{unit}"
    fewer, more = (answer.names[k] for k in pair)
    far = ", or it loses calls that are far" * bool(answer.lost[pair[0]] - answer.lost[pair[1]] >= FEW_LOST)
    yield (
        f"{fewer!r} is {more!r} with fewer units. It is better in {share} of the drawn cities, there by {gain} on "
        "average: units are sent in the order of the estimated times, and in those cities the next unit is closer to "
        f"the calls of one that was removed{far}. That is no reason to remove units."
    )


def _of_lost_calls(answer: Comparison) -> Iterator[str]:
    """Yield a sentence on calls that no unit answers."""
    first, last = answer.lost[[0, -1]]
    if max(first, last) >= FEW_LOST:
        names = answer.names[0], answer.names[-1]
        yield (
            f"All units are busy for {first:.2%} of the calls with {names[0]!r} and {last:.2%} with {names[1]!r}. Such "
            "calls have no response time, so that losing more of them can make a deployment look better."
        )


def _of_zones(answer: Comparison) -> Iterator[str]:
    """Yield a sentence on who gains and who loses."""
    by_atom, (scale, unit, _) = answer.by_atom, wording(answer.metric)
    small = f"{scale * NEGLIGIBLE * answer.values[:, 0].mean():.2g}{unit}"
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


def _of_sources(variances: pd.Series[float]) -> Iterator[str]:
    """Yield a sentence on where the uncertainty comes from."""
    parts = variances[list(SOURCES)]
    if parts.sum() > 0:
        shares = (100 * parts / parts.sum()).sort_values(ascending=False)
        told = [f"{share:.0f} % from {SOURCES[str(source)]}" for source, share in shares.items()]
        yield f"The uncertainty (variance) comes {', '.join(told)}."


def _of_all(answer: Comparison) -> Iterator[str]:
    """Yield a sentence on which deployments of several can be told apart."""
    if len(answer.names) > 2:
        best, *others = map(repr, answer.tied)
        yield f"The best on average is {best}" + (
            f"; the log cannot tell it from {', '.join(others)}." if others else "."
        )
