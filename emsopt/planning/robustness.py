"""Ask whether a comparison of deployments gives the same advice if what it rests on were different.

Variants are compared with the same draws as the original: other driving speeds, only half of the log, other cells.
Where the advice changes, it rests on what was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from .. import _validate
from .._running.progress import bar
from ..calls.areas import automatic_width_km
from ..calls.calibration import Fit, calibrate
from ..errors import ConvergenceError, InputError, UnstableQueueError
from ..evaluators.metrics import Metric
from ._comparison_in_words import wording
from .comparison import (
    LEAST_DRAWS,
    Interval,
    UncertainCity,
    checked,
    evaluated,
    options_of,
    probability_below,
    uncertain,
)

if TYPE_CHECKING:
    from .._types import FloatArray, Progress, Rng, Sites
    from ..city.city import City

ORIGINAL = "as estimated"


@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    """What variants of a comparison say.

    Attributes
    ----------
    names : tuple of str
        Names of the deployments, in the order given.
    metric : str, tuple or mapping
        What is compared; smaller is better.
    values : mapping of str to ndarray, shape (draws, K)
        Metric of each deployment in each drawn city, by variant; the first is "as estimated".
    left_out : mapping of str to str
        Variants that could not be computed, and why; with ``capacity="queue"`` also those in which calls come faster
        than the units of some deployment can serve.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> stations = pd.DataFrame({"name": ["West", "Mid", "East"], "lon": [0.0, 0.05, 0.1], "lat": [45.0, 45.0, 45.0]})
    >>> fit = eo.calls.calibrate(eo.calls.synthetic_log(stations, calls_per_day=40, days=14, rng=0), stations)
    >>> plans = {"today": ["West", "East"], "moved": ["West", "Mid"]}
    >>> answer = eo.planning.robustness(fit, plans, speeds=(0.8,), halves=False, draws=100, rng=0)
    >>> list(answer.values)[:2]
    ['as estimated', 'speeds 20% lower']
    """

    names: tuple[str, ...]
    metric: Metric
    values: Mapping[str, FloatArray]
    left_out: Mapping[str, str]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per variant: the last deployment against the first, and which is the best of all.

        ``difference``, ``low`` and ``high`` (90 %) are of the last deployment minus the first, ``probability_better``
        is the probability that the last is better, ``best`` has the lowest mean, and ``verdict`` compares it with the
        best as estimated: "same"; "open" if another one is better, but not beyond chance; or "reversed".
        """
        usual, rows = self._best(ORIGINAL), {}
        for variant, values in self.values.items():
            gap, best = values[:, -1] - values[:, 0], self._best(variant)
            row: dict[str, Any] = dict(zip(("difference", "low", "high"), Interval.of(gap), strict=True))
            row |= {"probability_better": probability_below(gap), "best": self.names[best], "verdict": "same"}
            if best != usual:
                clear = Interval.of(values[:, best] - values[:, usual]).excludes_zero
                row["verdict"] = "reversed" if clear else "open"
            rows[variant] = row
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("variant")

    @property
    def holds(self) -> bool:
        """Whether no variant reverses the advice beyond chance."""
        return bool((self.to_frame()["verdict"] != "reversed").all())

    def _best(self, variant: str) -> int:
        """Return the index of the deployment with the lowest mean."""
        return int(self.values[variant].mean(axis=0).argmin())

    def __str__(self) -> str:
        table, first, last = self.to_frame(), self.names[0], self.names[-1]
        best, changed = table["best"].iloc[0], table.iloc[1:]
        same = int((changed["verdict"] == "same").sum())
        told = [f"As estimated, {best!r} has the lowest {wording(self.metric)[2]}."]
        told += [f"The same holds in {same} of {len(changed)} variants."] if len(changed) else []
        for verdict, words in (("open", "though not beyond chance"), ("reversed", "beyond chance")):
            for variant, row in changed[changed["verdict"] == verdict].iterrows():
                told.append(f"With {variant} it is {row['best']!r}, {words}.")
        low, high = table["probability_better"].min(), table["probability_better"].max()
        told.append(f"The probability that {last!r} is better than {first!r} lies between {low:.0%} and {high:.0%}.")
        told += [f"Not computed: {variant} ({why})." for variant, why in self.left_out.items()]
        return " ".join(told)

    def __repr__(self) -> str:
        verdicts = self.to_frame()["verdict"].iloc[1:].value_counts()
        counts = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())
        return f"<Robustness of {', '.join(self.names)}: {counts} of {len(self.values) - 1} variants>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>" + self.to_frame().round(3).to_html()


def robustness(
    fit: Fit | UncertainCity,
    deployments: Mapping[str, Sites],
    *,
    speeds: Sequence[float] = (0.75, 1.25),
    cells_km: Sequence[float] | None = None,
    halves: bool = True,
    draws: int = 200,
    rng: Rng = None,
    evaluator: str | None = None,
    capacity: str = "loss",
    metric: Metric = "mean_response",
    progress: Progress = False,
    **options: Any,
) -> Robustness:
    """Compare deployments again with other speeds, cells and parts of the log.

    Parameters
    ----------
    fit, deployments, draws, rng, evaluator, capacity, metric, **options
        As for `compare`.
    speeds : sequence of float
        Factors on all driving speeds.
    cells_km : sequence of float, optional
        Widths of cells. Default: half and twice the width that is used; none with ``areas``.
    halves : bool
        Whether to calibrate and compare by each half of the log alone.
    progress : bool or callable
        Whether to show a bar, or a function called with (variants done, number of variants).

    Returns
    -------
    Robustness
        Variants for which the data do not suffice, or in which a queue grows without end, are in ``left_out``. Cells
        and halves need a `Fit`. Variants that come out alike, such as cells of the same width, are computed once.

    Raises
    ------
    InputError
        If an argument is invalid as in `compare`, or a speed or width is not above 0.
    UnstableQueueError
        If calls queue and some city that is drawn as estimated has more of them than the units can serve.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> stations = pd.DataFrame({"name": ["West", "Mid", "East"], "lon": [0.0, 0.05, 0.1], "lat": [45.0, 45.0, 45.0]})
    >>> fit = eo.calls.calibrate(eo.calls.synthetic_log(stations, calls_per_day=40, days=14, rng=0), stations)
    >>> plans = {"today": ["West", "East"], "moved": ["West", "Mid"]}
    >>> answer = eo.planning.robustness(fit, plans, speeds=(0.8,), halves=False, draws=100, rng=0)
    >>> list(answer.values)[:2]
    ['as estimated', 'speeds 20% lower']
    """
    draws = _validate.whole_number(draws, "draws", LEAST_DRAWS)
    known = uncertain(fit, **options)
    chosen = checked(known.city(), deployments)
    how = options_of(known.city(), chosen, evaluator, capacity, metric)
    factors = [_validate.positive_number(speed, "speeds") for speed in speeds]
    seed = int(_validate.generator(rng).integers(2**62))
    variants: dict[str, Callable[[], Iterator[City]]] = {ORIGINAL: partial(known.draws, draws, seed)}
    for factor in factors:
        change = f"speeds {100 * abs(factor - 1):g}% {'higher' if factor > 1 else 'lower'}"
        variants[change] = partial(_driven, known, factor, draws, seed)
    if isinstance(fit, Fit):
        for name, source, more in _other_fits(fit, cells_km, halves, options):
            variants[name] = partial(_refitted, source, more, draws, seed)
    values, left_out = {}, {}
    with bar(progress, len(variants), "variant") as show:
        for done, (name, cities) in enumerate(variants.items(), 1):
            try:
                values[name] = evaluated(cities(), chosen, *how)[0]
            except (InputError, ConvergenceError) as error:
                if name == ORIGINAL:
                    raise
                left_out[name] = f"{'unstable: ' * isinstance(error, UnstableQueueError)}{error}"
            show(done)
    return Robustness(tuple(chosen), metric, values, left_out)


def _driven(known: UncertainCity, speed: float, draws: int, seed: int) -> Iterator[City]:
    """Yield drawn cities in which all units drive ``speed`` times as fast."""
    for city in known.draws(draws, seed):
        yield city._varied(travel_times=city.travel_times / speed)


def _other_fits(
    fit: Fit, cells_km: Sequence[float] | None, halves: bool, options: Mapping[str, Any]
) -> Iterator[tuple[str, Callable[[], Fit], Mapping[str, Any]]]:
    """Yield names of variants, functions that return their fits, and the options of their cities."""
    if options.get("areas") is None:
        places = fit.stations[["lon", "lat"]].to_numpy(float)
        width = options.get("cell_km") or automatic_width_km(fit.calls.locations, places)
        for km in (width / 2, width * 2) if cells_km is None else cells_km:
            yield f"cells of {km:g} km", lambda: fit, {**options, "cell_km": km}
    if halves:
        times = fit.calls.times
        early = times < times[0] + (times[-1] - times[0]) / 2
        for name, part in (("the first half of the log", early), ("the second half of the log", ~early)):
            homes = fit.homes if fit.homes_from == "given" else None
            yield name, partial(_calibrated, fit, part, homes), options


def _calibrated(fit: Fit, part: Any, homes: Mapping[str, str] | None) -> Fit:
    """Return the calibration by part of the log."""
    return calibrate(fit.calls.where(part), fit.stations, homes, fit.roads)


def _refitted(source: Callable[[], Fit], options: Mapping[str, Any], draws: int, seed: int) -> Iterator[City]:
    """Return drawn cities of another fit."""
    return uncertain(source(), **options).draws(draws, seed)
