"""Judge for which uses, such as the choice of a fleet, a calibrated model agrees well enough with the record.

=============  =====================================================================================================
use            usable if
=============  =====================================================================================================
mean           the model's mean response is within 5 % of the recorded one
percentile_90  its 90th percentile is within 10 %
threshold      its share of late responses is within 4 points and a quarter of the recorded share
fleet          the recorded utilisation of units is within the same limits, and ``moves`` is usable
moves          units start from the stations (`judge_starts`), recorded responses are longer where modelled ones are,
               and the mean is within 20 % of the recorded one
zones          no more zones differ from their recorded means than chance explains
workload       no more stations differ from their recorded workloads than chance explains
=============  =====================================================================================================

``fleet``, ``moves`` and ``workload`` are not usable if the record surely follows another rule of dispatch.

The model judged is the hypercube model of `Fit.city`, which plans use, on days that the fit has not seen. Where chance
alone could make a difference as large as the limit, the answer is "cannot tell", and the model is not usable.

**Starts.** Three signs that stations are missing from the table are added up; from a sum of 1 on, ``moves`` is not
usable.

- Times hardly grow with distance: the fitted speed in units of `FAST_KMH`.
- Drives fit better if units start elsewhere. A drive to a place at distance d and in direction e from its station takes
  a + b d minutes; if it starts at a point that lies δ from the station, about b e · δ less. A regression with a term e
  · δ for every station estimates how far stations are displaced. This sign is the displacement, corrected for chance,
  as a share of the median distance of the drives.
- The middle of the calls of a unit lies far from every station, in units of the median distance of these calls from
  it, corrected for chance. Values up to `USUAL_DISPLACEMENT` are usual, as units stand in for busy neighbours.

The limits were chosen on synthetic logs (`benchmarks/uses.py`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..errors._types import FloatArray, IntArray
from ._points import project
from .calibration import Fit
from .log import CallLog
from .recorded import Z90
from .replaying import Replay

Ruling: TypeAlias = tuple[bool, str]  # whether a use is allowed, and why, as a sentence
MEAN_LIMIT, PERCENTILE_LIMIT = 0.05, 0.10  # relative differences allowed of the mean and of the 90th percentile
MOVES_LIMIT = 0.2  # the same of the mean, if only deployments are compared
SHARE_LIMIT, RELATIVE_SHARE_LIMIT = 0.04, 0.25  # differences allowed of shares, in all and relative to the recorded one
LEAST_SLOPE = 0.5  # recorded minutes per modelled minute: a model below does not tell places apart
MOST_UNITS_PER_CALL, MOST_LOSS = 1.2, 0.01  # units per call, and share of calls that find all units busy
KM_PER_DEGREE = 111.19
MOST_SUM_OF_SIGNS, FAST_KMH, USUAL_DISPLACEMENT, UNITS_WEIGHT = 1.0, 90.0, 0.4, 1.5  # for the signs of a wrong table
LEAST_DRIVES, FEWEST_CALLS = 600, 12  # drives in all; drives of a station or calls of a unit: fewer are mostly chance
HIGH_QUANTILE = 0.975  # of minutes: longer drives are cut to it, as a few would decide the regression
FEWEST_PLACES = 5  # fewer distinct values show a step by chance
NEAR_KM = 0.3  # shorter distances have no clear direction
ROUNDING_STEPS, COARSEST_KM = (0.1, 0.05, 0.02), 1.5  # steps (degrees) of rounded places that are looked for
USE_TITLES = {
    "mean": "Mean response",
    "percentile_90": "90th percentile",
    "threshold": "Share of late responses",
    "fleet": "Number of units",
    "moves": "Where units and stations should be",
    "zones": "Response times of zones",
    "workload": "Workload of stations",
}


def judge_fit(fit: Fit, replay: Replay, limit: float, apart: Ruling, other: str, *frames: pd.DataFrame) -> pd.DataFrame:
    """Return the table `BackTest.uses`: whether the model is ``usable`` for each use, and ``why``, a sentence.

    Late is over ``limit`` minutes. ``apart`` is the result of `judge_separation`, ``other`` a sentence if the record
    follows another rule of dispatch, else empty. ``frames`` are `BackTest.overall`, ``by_zone`` and ``by_station``.
    """
    row = dict(frames[0].iterrows())
    mean = row["mean_response_min"]
    of_mean = _judge_measure(mean, MEAN_LIMIT, "{:.2f} min")
    late, reason = _judge_share(row[f"late_over_{limit:g}_min"])
    moves = judge_starts(fit)
    if moves[0]:
        moves = apart[0], f"{moves[1]} {apart[1]}"
    if moves[0] and abs(mean["city_model"] / mean["recorded"] - 1) > MOVES_LIMIT:
        moves = False, f"The mean is far off. {of_mean[1]}"
    rows = {
        "mean": of_mean,
        "percentile_90": _judge_measure(row["percentile_90_min"], PERCENTILE_LIMIT, "{:.2f} min"),
        "threshold": (late, f"Late is over {limit:g} min. {reason}"),
        "fleet": _judge_fleet(fit, replay, row.get("utilization"), moves),
        "moves": moves,
        "zones": _judge_group(frames[1], "zones"),
        "workload": _judge_group(frames[2], "stations"),
    }
    if other:
        rows |= dict.fromkeys(("fleet", "moves", "workload"), (False, other))
    if warning := _overlap_warning(fit, replay.calls):
        rows = dict.fromkeys(rows, (False, warning))
    return pd.DataFrame.from_dict(rows, orient="index", columns=["usable", "why"]).rename_axis("use")


def judge_separation(modelled: FloatArray, recorded: FloatArray) -> Ruling:
    """Judge whether recorded responses (min), (K,), are significantly longer where modelled ones, (K,), are."""
    x, y = modelled - modelled.mean(), recorded - recorded.mean()
    squares = max(x @ x, 1e-9)
    slope = x @ y / squares
    reach = Z90 * np.sqrt(x**2 @ (y - slope * x) ** 2) / squares
    text = f"where the model says a minute more, {slope:.2f} ± {reach:.2f} min more were recorded"
    if slope + reach < LEAST_SLOPE:
        return False, f"The model does not tell places apart: {text}."
    surely = bool(slope > reach)
    return surely, f"{'The' if surely else 'Cannot tell whether the'} model tells places apart: {text}."


def _judge_fleet(fit: Fit, replay: Replay, row: pd.Series[float] | None, moves: Ruling) -> Ruling:
    """Judge the choice of a number of units, by a back-test's row "utilization", if any, and the ruling on moves."""
    if row is None:
        return False, "Cannot tell: the log lacks units with known homes, so it is not known how busy they are."
    if (each := fit.units_per_call) > MOST_UNITS_PER_CALL:
        return False, f"{each:.1f} units go to a call, but the model sends one: true workloads are higher."
    if replay.loss_fraction > MOST_LOSS:
        return False, f"In {replay.loss_fraction:.1%} of the replayed calls all units were busy."
    usable, why = _judge_share(row)
    return (usable, why) if moves[0] or not usable else moves


def _judge_share(row: pd.Series[float]) -> Ruling:
    """Judge a share of calls or of time: it may be off by 4 points and by a quarter of the recorded share."""
    return _judge_measure(row, min(SHARE_LIMIT / max(row["recorded"], 1e-9), RELATIVE_SHARE_LIMIT), "{:.1%}")


def _judge_measure(row: pd.Series[float], limit: float, form: str) -> Ruling:
    """Judge a row of `BackTest.overall`: neither the model nor chance may be off by more than a relative ``limit``."""
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


def _judge_group(frame: pd.DataFrame, noun: str) -> Ruling:
    """Judge zones or stations (``noun``): usable if no more lie outside their 90 % intervals than chance explains."""
    from scipy.stats import binom

    frame = frame.dropna()
    if frame.empty:
        return False, f"Cannot tell: the {noun} could not be compared, as the log lacks units with known homes."
    n = len(deviations(frame))
    text = f"{n} of {len(frame)} {noun} are outside their intervals (chance: about {len(frame) / 10:.0f})."
    return bool(n <= binom.ppf(0.99, len(frame), 0.1)), text


def deviations(frame: pd.DataFrame) -> pd.Series[float]:
    """Return recorded minus modelled values of zones or stations outside their 90 % intervals, the largest first."""
    off = frame["recorded"] - frame["city_model"]
    far = (off < frame["low"] - frame["modelled"]) | (off > frame["high"] - frame["modelled"])
    return off[far].sort_values(key=abs, ascending=False)


def _overlap_warning(fit: Fit, later: CallLog) -> str:
    """Return a sentence on the days of ``later`` calls that the fit was made from; empty if there are none."""
    by_day = (pd.Series(log.times).groupby(log.times.astype("datetime64[D]")) for log in (fit.calls, later))
    used, mine = (group.agg(["min", "max", "size"]) for group in by_day)
    both = mine.join(used.add_suffix("_used"), how="inner")
    mixed = both[(both["min_used"] <= both["max"]) & (both["min"] <= both["max_used"])]
    text = f"{len(mixed)} of the {len(mine)} days, with {mixed['size'].sum():,} of {len(later):,} calls, are days that"
    return "" if mixed.empty else f"Cannot tell, this is not a hold-out: {text} the model was fitted to."


def judge_starts(fit: Fit) -> tuple[bool, str]:
    """Judge whether units start from the stations of a fit, by the three signs of `emsopt.calls.uses`."""
    degrees = {"calls": fit.calls.locations, "stations": fit.stations[["lon", "lat"]].to_numpy(float)}
    middle = degrees["stations"][0, 0], fit.stations["lat"].mean()
    places, points = (KM_PER_DEGREE * project(each, middle) for each in degrees.values())
    drives, unknown = fit.drives, "Cannot tell where units start:"
    if len(drives) < LEAST_DRIVES:
        return False, f"{unknown} that needs {LEAST_DRIVES} drives, and there are {len(drives)}."
    for what, where in degrees.items():
        if (km := KM_PER_DEGREE * _rounding_step(where)) > COARSEST_KM:
            return False, f"{unknown} places of {what} are rounded to {km:.1f} km."
    station = drives["station"].to_numpy()
    offsets = places[drives["call"]] - points[station]
    if np.bincount(station).max() < FEWEST_CALLS:
        return False, f"{unknown} that needs {FEWEST_CALLS} drives of a station."
    displaced, typical = _estimate_displacement(drives["minutes"].to_numpy(float), offsets, station)
    per_km = drives["distance"].sum() / np.hypot(*offsets.T).sum()  # minutes at free flow, if there are roads
    slope = min(law.pace.value for law in (fit.law, fit.answer_law))
    speed = 60 / max(slope * per_km, 1e-3)
    signs = {
        f"the drives show a speed of {speed:,.0f} km/h": speed / FAST_KMH,
        f"they fit best with starts that are displaced by {displaced:.1f} km, where half of the drives are under "
        f"{typical:.1f} km": displaced / typical,
    }
    far, named = _unit_offset(fit.calls.details["unit"], places, points) if "unit" in fit.calls.details else (None, "")
    if far is not None:
        text = f"the middle of a unit's calls is {far:.2f} of their spread away from the closest station"
        signs[text] = UNITS_WEIGHT * max(far - USUAL_DISPLACEMENT, 0)
    if sum(signs.values()) < MOST_SUM_OF_SIGNS:
        return True, f"Units start from the stations: {', and '.join(signs)}."
    found = ", and ".join(sorted(signs, key=lambda text: -signs[text])[:2])
    return False, f"Most probably stations are missing from the table, or units do not start from them: {found}.{named}"


def _estimate_displacement(minutes: FloatArray, offsets: FloatArray, station: IntArray) -> tuple[float, float]:
    """Estimate by how many km drives start away from their stations (root mean square), and their median distance (km).

    Drives have ``minutes``, (K,), ``offsets`` from the station to the call (km), (K, 2), and a ``station``, (K,).
    """
    enough = np.bincount(station) >= FEWEST_CALLS
    minutes, kept = np.minimum(minutes, np.quantile(minutes, HIGH_QUANTILE)), enough[station]
    minutes, offsets, station = minutes[kept], offsets[kept], (np.cumsum(enough) - 1)[station[kept]]
    km, drive = np.hypot(*offsets.T), np.arange(len(minutes))
    weight = 1 / np.maximum(np.polyval(np.polyfit(km, minutes, 1), km), 1)
    terms = np.zeros((len(km), 2 + 2 * enough.sum()))
    terms[:, 0], terms[:, 1] = 1, km
    for side in (0, 1):
        terms[drive, 2 + 2 * station + side] = offsets[:, side] / np.maximum(km, NEAR_KM)
    terms *= weight[:, None]
    inverse = np.linalg.pinv(terms.T @ terms)
    found = inverse @ terms.T @ (weight * minutes)
    influence = (terms * (weight * minutes - terms @ found)[:, None]) @ inverse
    squared = (found**2 - (influence**2).sum(axis=0))[2:].reshape(-1, 2).sum(axis=1)
    mean = np.average(squared, weights=np.bincount(station))
    return float(np.sqrt(max(mean, 0)) / max(found[1], 1e-3)), max(float(np.median(km)), 1e-3)


def _unit_offset(units: pd.Series[Any], places: FloatArray, points: FloatArray) -> tuple[float | None, str]:
    """Return how far the middle of a unit's calls is from every station, and a sentence that names the furthest units.

    Distances are in units of the median distance of the calls from their middle, and averaged over the calls; None if
    no unit has 12 calls. ``places`` of calls, (K, 2), and ``points`` of stations, (N, 2), are in km.
    """
    far, calls = dict[str, float](), []
    for unit, rows in units.groupby(units).indices.items():
        if len(rows) >= FEWEST_CALLS:
            middle = np.median(places[rows], axis=0)
            spread = max(float(np.median(np.hypot(*(places[rows] - middle).T))), NEAR_KM)
            squared = ((points - middle) ** 2).sum(axis=1).min() - 2.25 * spread**2 / len(rows)
            far[str(unit)] = float(np.sqrt(max(squared, 0)) / spread)
            calls.append(len(rows))
    named = ", ".join(unit for unit in sorted(far, key=lambda unit: -far[unit])[:3] if far[unit] > USUAL_DISPLACEMENT)
    named = f" These units' calls are furthest from every station: {named}." if named else ""
    return (float(np.average([*far.values()], weights=calls)) if far else None), named


def _rounding_step(degrees: FloatArray) -> float:
    """Return the step to which places, (K, 2), in degrees, are rounded: 0.1, 0.05, 0.02, or 0 if none fits."""
    for step in ROUNDING_STEPS if len(np.unique(degrees, axis=0)) >= FEWEST_PLACES else ():
        steps = (degrees - degrees[0]) / step
        if (np.abs(steps - np.round(steps)) < 1e-6).mean() > HIGH_QUANTILE:
            return step
    return 0.0
