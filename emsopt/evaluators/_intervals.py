"""Confidence intervals of simulated measures, by batch means, widened where a queue remembers for long."""

import numpy as np

from .._running.warn import warn
from .._types import FloatArray, IntArray
from .._validate import positive_number
from ..errors import AccuracyWarning, InputError

LONG_ENOUGH = 100  # relaxation times of the queue, after which its mean wait is known within about 20 percent


def check_level(level: float) -> float:
    """Return a confidence level in (0, 1)."""
    level = positive_number(level, "level")
    if level >= 1:
        hint = f" For {level:g} percent pass {level / 100:g}." if 1 < level < 100 else ""
        raise InputError(f"`level` must be a confidence above 0 and below 1; got {level:g}.{hint}")
    return level


def relaxation_calls(load: float, squared_variation: float) -> float:
    """Return the relaxation time of a queue in calls: that of M/M/1, 1 / (μ (1 - √ρ)²), for M/G/c.

    Near saturation the relative standard deviation of the mean wait of n calls is √(these calls / n), and that of the
    time in which not all units are busy is this over √2 (Whitt 1989).
    """
    return load / (1 - np.sqrt(load)) ** 2 * (1 + squared_variation) / 2


def queue_spread(load: float, squared_variation: float, calls: int) -> float:
    """Return the relative standard deviation of the mean wait near saturation; warn if the run is short."""
    memory = relaxation_calls(load, squared_variation)
    spread = np.sqrt(memory / calls)
    if spread**2 * LONG_ENOUGH > 1:
        warn(
            f"the run is short for a queue with an offered load of {load:.4g} per unit: its relaxation time is about "
            f"{memory:,.0f} calls, and {calls:,} were counted, {calls / memory:.2g} times that. `mean_wait` is "
            f"uncertain by about {200 * spread:,.0f} percent, which its interval allows for. Count at least "
            f"{LONG_ENOUGH * memory:,.0f} calls or, if service is exponential and the fleet small, use exact_hypercube.",
            AccuracyWarning,
        )
    return float(spread)


def response_moves(answered: IntArray, response_times: FloatArray, demand_shares: FloatArray) -> FloatArray:
    """Return how far each batch moves Σ_j w_j · (mean response of atom j's answered calls), shape (B,).

    To first order a call of atom j moves it by w_j / n_j times the excess of its response over j's mean.
    The variance of excesses over a mean of n calls is too small by a factor (n - 1) / n, which is corrected.
    """
    calls = answered.sum(axis=1)  # (B, M)
    minutes = np.einsum("bij,ij->bj", answered, response_times)
    n = calls.sum(axis=0)
    mean = minutes.sum(axis=0) / np.maximum(n, 1)
    weight = np.where(n > 1, demand_shares / np.sqrt(np.maximum(n * (n - 1.0), 1.0)), 0.0)
    return (minutes - calls * mean) @ weight


def share(
    numerators: FloatArray, denominators: FloatArray | IntArray, level: float, load: float, spread: float
) -> tuple[float, float]:
    """Return the interval of a share, which is near 1 in a queue near saturation."""
    estimate = numerators.sum() / denominators.sum()
    least = spread / np.sqrt(2) * estimate * (1 - min(estimate, load))
    return ratio(numerators, denominators, level, least=least, high=1.0)


def ratio(
    numerators: FloatArray,
    denominators: FloatArray | IntArray,
    level: float,
    *,
    least: float = 0.0,
    high: float = np.inf,
) -> tuple[float, float]:
    """Return the interval of Σ numerators / Σ denominators, one of each per batch."""
    total = denominators.sum()
    estimate = numerators.sum() / total
    return student(estimate, (numerators - estimate * denominators) / total, level, least=least, high=high)


def student(
    estimate: float, moves: FloatArray, level: float, *, least: float = 0.0, high: float = np.inf
) -> tuple[float, float]:
    """Return Student's t interval of an estimate that nearly independent batches have moved, summing to 0.

    Batches shorter than the memory of a queue vary too little; theory gives the ``least`` standard deviation.
    """
    from scipy.special import stdtrit

    B = len(moves)
    half = stdtrit(B - 1, (1 + level) / 2) * max(float(np.sqrt(moves @ moves * B / (B - 1))), least)
    return float(max(estimate - half, 0.0)), float(min(estimate + half, high))
