"""Say in sentences what a back-test allows the model to be used for, and where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from .._types import BoolArray
    from .calibration import Fit
    from .log import CallLog
    from .replaying import Replay

# relative differences allowed of times
TIMES = {"mean_response_min": 0.05, "percentile_50_min": 0.10, "percentile_90_min": 0.10}
POINTS, OF_SHARE = 0.04, 0.25  # differences allowed of shares of calls and of time: in all, and of the recorded one
MAIN = ("mean_response_min", "percentile_90_min", "late_over_8_min")  # told even if all is well


def verdict(
    fit: Fit,
    played: Replay,
    overall: pd.DataFrame,
    by_hour: pd.DataFrame,
    by_zone: pd.DataFrame,
    by_station: pd.DataFrame,
) -> tuple[str, ...]:
    """Return in sentences what the model may be used for, and where not."""
    said = []
    seen, calls, days = _fitted_days(fit, played.calls)
    if seen:
        said.append(
            f"This is not a hold-out: {seen} of the {days} days, with {calls:,} of {len(played.calls):,} calls, are "
            "days that the model was fitted to. It says how well the model describes them, not how well it predicts."
        )
    said += [text for name in overall.index if (text := _of_measure(name, overall.loc[name], held_out=not seen))]
    if far := [_title(name) for name in MAIN if not _close(name, *overall.loc[name, ["recorded", "city_model"]])]:
        said.append(f"The hypercube model of `Fit.city` is not close to the record: {', '.join(far)}.")
    for frame, what, advice in (
        (by_hour, "hours", "Do not compare hours of the day by this model"),
        (by_zone, "zones", "Do not promise response times to single zones"),
        (by_station, "stations by workload", "Do not compare the workloads of stations"),
    ):
        frame = frame.dropna()
        if frame.empty:
            said.append(f"The {what} could not be compared: the log lacks units with known homes.")
            continue
        text = f"{_outside(frame).sum()} of {len(frame)} {what} are outside their intervals"
        text += f" (chance: about {len(frame) / 10:.0f}){_named(frame)}"
        said.append(f"{text}. {advice if _too_many(frame) else 'Chance explains that many'}.")
    if fit.units_per_call > 1.2:
        said.append(f"{fit.units_per_call:.1f} units go to a call, but the model sends one: true workloads are higher.")
    if played.loss_fraction > 0.01:
        said.append(
            f"In {played.loss_fraction:.1%} of the replayed calls all units were busy, and the call was left out."
        )
    return tuple(said)


def _of_measure(name: str, row: pd.Series[float], *, held_out: bool) -> str:
    """Return a sentence on a row of ``overall``; empty if it is not one of the main rows and agrees."""
    title, share = _title(name), name not in TIMES
    recorded, modelled = row["recorded"], row["modelled"]
    digits = 2 if recorded < 0.1 else 1  # of percents
    form = f"{{:.{digits}%}}" if share else "{:.2f} min"
    off, close = modelled - recorded, _close(name, recorded, modelled)
    inside = row["low"] <= recorded <= row["high"]
    if name not in MAIN and close and inside:
        return ""
    if close:
        use = "usable" if held_out else "describes these calls"
        use += "" if inside else ", but the difference is more than chance"
    elif inside:
        use = "do not use: too few calls to tell"
    else:
        use = _advice(name, too_low=off < 0)
    size = f"{100 * off:+.{digits}f} points" if share else f"{100 * off / recorded:+.1f} %"
    chance = "inside" if inside else "outside"
    values = f"{form.format(recorded)} recorded, {form.format(modelled)} modelled"
    return f"{title}: {values} ({size}; {chance} the 90 % interval): {use}."


def _fitted_days(fit: Fit, later: CallLog) -> tuple[int, int, int]:
    """Return on how many days the calls to be predicted mix with fitted ones, those days' calls, and all days.

    A day of which the fit used another part, such as the morning, does not count.
    """
    used, mine = (
        pd.Series(log.times).groupby(log.times.astype("datetime64[D]")).agg(["min", "max", "size"])
        for log in (fit.calls, later)
    )
    both = mine.join(used.add_suffix("_used"), how="inner")
    mixed = both[(both["min_used"] <= both["max"]) & (both["min"] <= both["max_used"])]
    return len(mixed), int(mixed["size"].sum()), len(mine)


def _outside(frame: pd.DataFrame) -> BoolArray:
    """Return whether each recorded value is outside the interval of the model, shape (rows,)."""
    return ((frame["recorded"] < frame["low"]) | (frame["recorded"] > frame["high"])).to_numpy()


def _too_many(frame: pd.DataFrame) -> bool:
    """Return whether more rows are outside their intervals of 90 % than chance allows, at a level of 1 %."""
    from scipy.stats import binom

    return bool(_outside(frame).sum() > binom.ppf(0.99, len(frame), 0.1))


def _close(name: str, recorded: float, modelled: float) -> bool:
    """Return whether a measure is as close as its use needs."""
    off = abs(modelled - recorded)
    return off <= (TIMES[name] * recorded if name in TIMES else min(POINTS, OF_SHARE * recorded))


def _named(frame: pd.DataFrame) -> str:
    """Return which rows are outside their intervals, and on which side, the largest differences first."""
    outside = (frame["recorded"] - frame["modelled"])[_outside(frame)].sort_values(key=abs, ascending=False)
    sides = {"above": outside.index[outside > 0], "below": outside.index[outside < 0]}
    return "".join(f"; recorded {side} modelled: {', '.join(names)}" for side, names in sides.items() if len(names))


def _title(name: str) -> str:
    """Return a measure in words."""
    if name.startswith("late_over_"):
        return f"Share over {name.split('_')[2]} minutes"
    return {
        "mean_response_min": "Mean response",
        "percentile_50_min": "Median response",
        "percentile_90_min": "90th percentile",
        "utilization": "Workload of all units",
    }[name]


def _advice(name: str, *, too_low: bool) -> str:
    """Return for what the model must not be used if a measure differs, and why."""
    if name == "utilization":
        return f"do not size the fleet by it, units are {'busier' if too_low else 'less busy'} than modelled"
    if name.startswith("late_over_"):
        few, threshold = "too few" if too_low else "too many", name.split("_")[2]
        return f"do not use this threshold, the model has {few} responses over {threshold} min"
    return f"do not use it for response times, the model is too {'fast' if too_low else 'slow'}"
