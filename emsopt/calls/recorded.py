"""Compare the response times recorded in a log with those of an evaluation, by the same clock.

A clock of whole minutes records a true time T as R = ⌊U + T⌋ with U uniform on [0, 1): the means agree, but R exceeds 8
only from 9 on. So R <= k has the probability that T < k + 1 - U, which is averaged over U. With another step the same
holds in units of it. Quantiles are interpolated within a step, in the log as in the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .._types import FloatArray
from ..errors import InputError
from ..evaluators.evaluation import Evaluation
from ..evaluators.metrics import LATE_MIN
from ._durations import resolution, responses

if TYPE_CHECKING:
    from .log import CallLog

FINEST = 0.1  # clocks with a finer step (min) count as exact
NODES = 12  # for the mean over the phase of the clock, which is smooth in it


def recorded_responses(calls: CallLog) -> tuple[FloatArray, float]:
    """Return the recorded responses, dispatch to arrival (min), and the step of their clock (min, 0: none).

    Impossible ones are left out: below 0, at most a second, beyond 60 min and ten times the median. Raise if none is
    left, or the log lacks the stamps.
    """
    minutes, (start, end), _ = stamped_responses(calls)
    minutes = minutes[~np.isnan(minutes)]
    if not len(minutes):
        raise InputError("no call of the log has both a dispatch and an arrival after it.")
    return minutes, start if start == end and start > FINEST else 0.0


def stamped_responses(calls: CallLog) -> tuple[FloatArray, list[float], dict[str, int]]:
    """Return responses (min), shape (K,), NaN if impossible, the steps of both stamps, and the numbers left out."""
    if not {"dispatched", "on_scene"} <= set(calls.details):
        raise InputError(
            "recorded responses need a log with the roles 'dispatched' and 'on_scene'. Name their columns by `columns`."
        )
    stamps = [calls.details[role].to_numpy("datetime64[s]") for role in ("dispatched", "on_scene")]
    minutes, left_out = responses(*stamps)
    return minutes, [resolution(times) for times in stamps], left_out


def as_recorded(evaluation: Evaluation, step: float, threshold: float = LATE_MIN) -> tuple[float, float, float]:
    """Return mean, 90th percentile (min) and late fraction as a clock with this step (min, 0: exact) records them.

    By a clock of whole minutes a response is late if *more* minutes than the threshold are recorded: 9 or more for 8.
    """
    if not step:
        return evaluation.mean_response, evaluation.percentile_90, float(evaluation.late_fraction(threshold))
    over = 1 - _recorded_within(evaluation, np.array([np.floor(threshold / step + 1e-9)]), step)[0]
    return evaluation.mean_response, _recorded_90(evaluation, step), float(over)


def measures(minutes: FloatArray, step: float, limits: Iterable[float]) -> dict[str, float]:
    """Return mean, median, 90th percentile and late fractions of responses recorded by a clock with this step (min)."""
    if len(minutes) == 0:
        raise InputError("no call of the log has a usable response time. Check its columns and its dates.")
    late = {f"late_over_{t:g}_min": float((minutes > t + 1e-9).mean()) for t in limits}
    middle, high = (percentile(minutes, q, step) for q in (50, 90))
    return {"mean_response_min": float(minutes.mean()), "percentile_50_min": middle, "percentile_90_min": high} | late


def percentile(minutes: FloatArray, q: float, step: float) -> float:
    """Return the q-th percentile of recorded minutes, interpolated within steps of the clock (min, 0: none)."""
    if step == 0:
        return float(np.percentile(minutes, q))
    values, counts = np.unique(minutes, return_counts=True)
    below = np.cumsum(counts) / len(minutes)
    k = int(np.searchsorted(below, q / 100))
    share = counts[k] / len(minutes)
    return float(values[k] + step * ((q / 100 - below[k]) / share + 0.5))


def in_words(exact: float | None, threshold: float, step: float) -> str:
    """Return in a sentence which responses, recorded with a ``step``, count as late; ``exact`` is today's share."""
    rule = f"more than {threshold:g} min recorded"
    if step:
        least = step * (np.floor(threshold / step + 1e-9) + 1)
        rule += f", that is {least:g} or more, because the log's times have steps of {step:g} min; modelled times are "
        rule += "rounded likewise"
    today = "" if exact is None else f": {exact:.1%} of today's"
    return f"Late here: {rule}. All other figures count unrounded times of {threshold:g} min or more as late{today}."


def _recorded_within(evaluation: Evaluation, k: FloatArray, step: float) -> FloatArray:
    """Return the probability that a response is recorded as at most k steps, shape (n,) like ``k``."""
    phases = (np.arange(NODES) + 0.5) / NODES
    late = evaluation.late_fraction(np.maximum(step * (k[:, None] + phases), 0).ravel())
    within: FloatArray = 1 - np.reshape(late, (len(k), NODES)).mean(axis=1)
    return np.where(k < 0, 0.0, within)


def _recorded_90(evaluation: Evaluation, step: float) -> float:
    """Return the 90th percentile of the recorded responses; k steps stand for all from k - 1/2 to k + 1/2."""
    middle = np.floor(evaluation.percentile_90 / step)
    k = middle + np.array([-1, 0, 1])  # with these, the probability passes 0.9
    return float(step * (np.interp(0.9, _recorded_within(evaluation, k, step), k) + 0.5))
