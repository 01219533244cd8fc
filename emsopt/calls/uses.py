"""Say for which decisions a calibrated model may be used: the table of uses of a back-test.

=============  =====================================================================================================
use            usable if
=============  =====================================================================================================
mean           the model's mean response is within 5 % of the recorded one
percentile_90  its 90th percentile is within 10 %
threshold      its share of late responses is within 4 points and a quarter of the recorded share
fleet          units are as busy as modelled, within the same limits, and the model may be used for moves
moves          units start from the stations (`emsopt.calls.starts`), the model tells places apart, and its mean is
               within 20 % of the recorded one
zones          no more zones differ from their recorded means than chance explains
workload       no more stations differ from their recorded workloads than chance explains
=============  =====================================================================================================

Judged is the model that plans use, the hypercube model of `Fit.city`, on days that the fit has not seen. Where chance
alone could make a difference as large as the limit, the answer is "cannot tell", and the model is not usable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from ._durations import Z90
from .starts import starts

if TYPE_CHECKING:
    from .._types import FloatArray
    from .calibration import Fit
    from .log import CallLog
    from .replaying import Replay

Judged: TypeAlias = tuple[bool, str]  # whether a use is allowed, and why
MEAN, HIGH = 0.05, 0.10  # relative differences allowed of the mean and of the 90th percentile
MOVES = 0.2  # the same of the mean, if only deployments are compared
POINTS, OF_SHARE = 0.04, 0.25  # differences allowed of shares of calls and of time: in all, and of the recorded one
LEAST_SLOPE = 0.5  # minutes recorded for a minute more of the model, by place
MOST_UNITS, MOST_LOST = 1.2, 0.01  # units per call, and share of calls that find all units busy
TITLES = {
    "mean": "Mean response",
    "percentile_90": "90th percentile",
    "threshold": "Share of late responses",
    "fleet": "Number of units",
    "moves": "Where units and stations should be",
    "zones": "Response times of zones",
    "workload": "Workload of stations",
}


def judge(fit: Fit, played: Replay, threshold: float, apart: Judged, *frames: pd.DataFrame) -> pd.DataFrame:
    """Return the table of uses, indexed by use: ``usable`` and ``why``, a sentence.

    ``apart`` is what `told_apart` returns. ``frames`` are those of the back-test, in all, by zone and by station; their
    column ``city_model`` is what the model that plans use says.
    """
    row = dict(frames[0].iterrows())
    mean = row["mean_response_min"]
    of_mean = _of_measure(mean, MEAN, "{:.2f} min")
    late, why = _of_share(row[f"late_over_{threshold:g}_min"])
    moves = starts(fit)
    if moves[0]:
        moves = apart[0], f"{moves[1]} {apart[1]}"
    if moves[0] and abs(mean["city_model"] / mean["recorded"] - 1) > MOVES:
        moves = False, f"The mean is far off. {of_mean[1]}"
    rows = {
        "mean": of_mean,
        "percentile_90": _of_measure(row["percentile_90_min"], HIGH, "{:.2f} min"),
        "threshold": (late, f"Late is over {threshold:g} min. {why}"),
        "fleet": _of_fleet(fit, played, row.get("utilization"), moves),
        "moves": moves,
        "zones": _of_group(frames[1], "zones"),
        "workload": _of_group(frames[2], "stations"),
    }
    if seen := _fitted_days(fit, played.calls):
        rows = dict.fromkeys(rows, (False, seen))
    return pd.DataFrame.from_dict(rows, orient="index", columns=["usable", "why"]).rename_axis("use")


def told_apart(modelled: FloatArray, recorded: FloatArray) -> Judged:
    """Return whether calls were answered later where the model says so, and a sentence, from the minutes of calls.

    ``modelled`` are the means of the atoms of the calls, shape (K,) as ``recorded``.
    """
    x, y = modelled - modelled.mean(), recorded - recorded.mean()
    squares = max(x @ x, 1e-9)
    slope = x @ y / squares
    reach = Z90 * np.sqrt(x**2 @ (y - slope * x) ** 2) / squares
    text = f"where the model says a minute more, {slope:.2f} ± {reach:.2f} min more were recorded"
    if slope + reach < LEAST_SLOPE:
        return False, f"The model does not tell places apart: {text}."
    return bool(
        slope > reach
    ), f"{'The' if slope > reach else 'Cannot tell whether the'} model tells places apart: {text}."


def _of_fleet(fit: Fit, played: Replay, row: pd.Series[float] | None, moves: Judged) -> Judged:
    """Return whether the model may be used to choose the number of units, and why."""
    if row is None:
        return False, "Cannot tell: the log lacks units with known homes, so it is not known how busy they are."
    if (each := fit.units_per_call) > MOST_UNITS:
        return False, f"{each:.1f} units go to a call, but the model sends one: true workloads are higher."
    if played.loss_fraction > MOST_LOST:
        return False, f"In {played.loss_fraction:.1%} of the replayed calls all units were busy."
    usable, why = _of_share(row)
    return (usable, why) if moves[0] or not usable else moves


def _of_share(row: pd.Series[float]) -> Judged:
    """Return whether a share of calls or of time is usable, and why."""
    return _of_measure(row, min(POINTS / max(row["recorded"], 1e-9), OF_SHARE), "{:.1%}")


def _of_measure(row: pd.Series[float], limit: float, form: str) -> Judged:
    """Return whether a measure is usable, that is within a relative limit of the recorded value, and why."""
    recorded, model, before = row[["recorded", "city_model", "as_before"]]
    if not recorded > 0:
        return False, "Cannot tell: nothing was recorded."
    off, chance = abs(model / recorded - 1), (row["high"] - row["low"]) / 2 / recorded
    values = (
        f"recorded {form.format(recorded)}, modelled {form.format(model)} ({model / recorded - 1:+.1%}); "
        f"the days before would say {form.format(before)} ({before / recorded - 1:+.1%})."
    )
    if off > max(limit, chance):
        return False, f"The model is too {'high' if model > recorded else 'low'}: {values}"
    if max(off, chance) > limit:
        return False, f"Cannot tell, there are too few calls: chance makes ±{chance:.1%}; {values}"
    return True, values.capitalize()


def _of_group(frame: pd.DataFrame, what: str) -> Judged:
    """Return whether no more zones or stations differ from the model than chance explains, and why.

    Intervals are of 90 %, around the city's model; chance explains as many outside as happen with probability 1 %.
    """
    from scipy.stats import binom

    frame = frame.dropna()
    if frame.empty:
        return False, f"Cannot tell: the {what} could not be compared, as the log lacks units with known homes."
    off = frame["recorded"] - frame["city_model"]
    outside = (off < frame["low"] - frame["modelled"]) | (off > frame["high"] - frame["modelled"])
    named = off[outside].sort_values(key=abs, ascending=False)
    text = f"{len(named)} of {len(frame)} {what} are outside their intervals (chance: about {len(frame) / 10:.0f})"
    for side, names in (("above", named.index[named > 0]), ("below", named.index[named < 0])):
        text += f"; recorded {side} modelled: {', '.join(names)}" if len(names) else ""
    return bool(len(named) <= binom.ppf(0.99, len(frame), 0.1)), f"{text}."


def _fitted_days(fit: Fit, later: CallLog) -> str:
    """Return in a sentence how many days of the calls to be predicted mix with fitted ones; empty if none does.

    A day of which the fit used another part, such as the morning, does not count.
    """
    used, mine = (
        pd.Series(log.times).groupby(log.times.astype("datetime64[D]")).agg(["min", "max", "size"])
        for log in (fit.calls, later)
    )
    both = mine.join(used.add_suffix("_used"), how="inner")
    mixed = both[(both["min_used"] <= both["max"]) & (both["min"] <= both["max_used"])]
    text = f"{len(mixed)} of the {len(mine)} days, with {mixed['size'].sum():,} of {len(later):,} calls, are days that"
    return "" if mixed.empty else f"Cannot tell, this is not a hold-out: {text} the model was fitted to."
