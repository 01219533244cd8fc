"""Confidence intervals of simulated measures, by batch means, widened for queues near saturation."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import AccuracyWarning, InputError, warn
from ..errors._types import ArrayLike, FloatArray, IntArray
from ..errors._validate import positive_number

RELAXATIONS = 100  # relaxation times of a queue after which its mean wait is known within about 20 percent


def check_level(level: float) -> float:
    """Return the confidence level ``level``; raise unless it lies in (0, 1)."""
    level = positive_number(level, "level")
    if level >= 1:
        hint = f" For {level:g} percent pass {level / 100:g}." if 1 < level < 100 else ""
        raise InputError(f"`level` must be a confidence level above 0 and below 1; got {level:g}.{hint}")
    return level


def relaxation_calls(load: float, squared_variation: float) -> float:
    """Return the relaxation time of an M/G/c queue, in calls: ρ / (1 - √ρ)² · (1 + c²) / 2.

    ρ = ``load`` is the offered load per unit; c² = ``squared_variation`` the squared cv of service times.
    """
    return load / (1 - np.sqrt(load)) ** 2 * (1 + squared_variation) / 2


def mean_wait_spread(load: float, squared_variation: float, calls: int) -> float:
    """Return √(relaxation time / calls), the relative standard deviation of the mean wait near saturation (Whitt 1989).

    Warn if the run has fewer calls than `RELAXATIONS` relaxation times.
    """
    memory = relaxation_calls(load, squared_variation)
    spread = np.sqrt(memory / calls)
    if spread**2 * RELAXATIONS > 1:
        warn(
            f"the run is short for a queue with an offered load of {load:.4g} per unit: its relaxation time is about "
            f"{memory:,.0f} calls, and {calls:,} were counted, {calls / memory:.2g} times that. `mean_wait` is "
            f"uncertain by about {200 * spread:,.0f} percent, which its interval allows for. Count at least "
            f"{RELAXATIONS * memory:,.0f} calls, or use exact_hypercube if service is exponential and the fleet small.",
            AccuracyWarning,
        )
    return float(spread)


@dataclass(frozen=True, eq=False)
class AnsweredCalls:
    """Response times of the answered calls of a simulation, in B batches, for intervals of a confidence ``level``.

    Row k says that ``calls[k]`` calls of atom ``atoms[k]`` in batch ``batches[k]`` took ``minutes[k]``, all shape (n,).
    """

    minutes: FloatArray
    calls: IntArray
    batches: IntArray
    atoms: IntArray
    n_batches: int
    n_atoms: int
    level: float

    def total(self, costs: ArrayLike = 1.0) -> FloatArray:
        """Return the sum of ``costs`` (a number, or one per row, (n,)) over the calls, by batch and atom, (B, M)."""
        cell = self.batches * self.n_atoms + self.atoms
        totals: Any = np.bincount(cell, self.calls * np.asarray(costs), self.n_batches * self.n_atoms)
        return cast("FloatArray", totals.reshape(-1, self.n_atoms))

    def late_fractions(self, threshold: float) -> FloatArray:
        """Return the fraction of each atom's calls that take ``threshold`` minutes or more, (M,); NaN without calls."""
        late, calls = self.total(self.minutes >= threshold).sum(axis=0), self.total().sum(axis=0)
        return np.divide(late, calls, out=np.full(self.n_atoms, np.nan), where=calls > 0)

    def late_interval(self, estimate: float, threshold: float, demand_shares: FloatArray) -> tuple[float, float]:
        """Return the confidence interval of the late fraction around its ``estimate``; ``threshold`` is in minutes."""
        shifts = response_shifts(self.total(self.minutes >= threshold), self.total(), demand_shares)
        if np.any(shifts):
            return student_interval(estimate, shifts, self.level, high=1.0)
        rare = 1 - (1 - self.level) ** (1 / int(self.calls.sum()))  # all alike, but others may occur
        return max(estimate - rare, 0.0), min(estimate + rare, 1.0)


def response_shifts(minutes: FloatArray, calls: FloatArray | IntArray, demand_shares: FloatArray) -> FloatArray:
    """Return by how many minutes each of B batches of calls shifts the mean response, shape (B,).

    ``minutes`` and ``calls``, shape (B, M), are the total response time (or another cost) and the number of the
    answered calls by batch and atom. The mean response is Σ_j w_j · (mean of atom j's answered calls), with the demand
    shares w_j. To first order, one of the n_j calls of atom j shifts it by w_j / n_j times its excess over their mean.
    Such deviations have a variance that is too small by the factor (n_j - 1) / n_j, so w_j / √(n_j (n_j - 1)) is used
    instead; atoms with n_j < 2 are left out.
    """
    n = calls.sum(axis=0)
    mean = minutes.sum(axis=0) / np.maximum(n, 1)
    weight = np.where(n > 1, demand_shares / np.sqrt(np.maximum(n * (n - 1.0), 1.0)), 0.0)
    return (minutes - calls * mean) @ weight


def share_interval(
    numerators: FloatArray, denominators: FloatArray | IntArray, level: float, load: float, spread: float
) -> tuple[float, float]:
    """Return the confidence interval of a fraction f = Σ numerators / Σ denominators, at most 1, with a term per batch.

    ``load`` is the offered load per unit, or 0 if calls are lost. As f may be close to 1 in a queue near saturation,
    the standard error is at least spread / √2 · f · (1 - min(f, load)), with ``spread`` from `mean_wait_spread` (Whitt
    1989).
    """
    estimate = numerators.sum() / denominators.sum()
    least = spread / np.sqrt(2) * estimate * (1 - min(estimate, load))
    return ratio_interval(numerators, denominators, level, least=least, high=1.0)


def ratio_interval(
    numerators: FloatArray, denominators: FloatArray | IntArray, level: float, least: float = 0.0, high: float = np.inf
) -> tuple[float, float]:
    """Return the confidence interval of Σ numerators / Σ denominators, (B,) each, by `student_interval`."""
    total = denominators.sum()
    estimate = numerators.sum() / total
    return student_interval(estimate, (numerators - estimate * denominators) / total, level, least=least, high=high)


def student_interval(
    estimate: float, shifts: FloatArray, level: float, *, least: float = 0.0, high: float = np.inf
) -> tuple[float, float]:
    """Return Student's t interval of an estimate at a confidence ``level``, cut off at 0 and at ``high``.

    ``shifts``, (B,), holds by how much each of B nearly independent batches shifts the estimate; they sum to 0. The
    standard error, √(B / (B - 1) Σ shifts²), is raised to ``least``, as batches may vary too little.
    """
    from scipy.special import stdtrit  # importing scipy.stats takes twice as long

    B = len(shifts)
    half = stdtrit(B - 1, (1 + level) / 2) * max(float(np.sqrt(shifts @ shifts * B / (B - 1))), least)
    return float(max(estimate - half, 0.0)), float(min(estimate + half, high))
