"""Random numbers by counter: the n-th call draws the same numbers whatever is deployed.

SplitMix64 (Steele, Lea and Flood 2014) is a bijection of a counter; number k of call n is that of the counter
``n * PER_CALL + k``. Nothing has to be stored, and no number depends on which units answered before.

Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number generators. OOPSLA, 453-472.
"""

import math

from numba import njit, uint64

PER_CALL, PER_JOB = 64, 8  # numbers of a call; of each unit that it needs
GAP, ATOM, PRIORITY, UNITS, TRANSPORT, JOBS = 0, 1, 2, 3, 4, 8  # which number is for what; JOBS is where jobs begin
TURNOUT, DRIVE, SCENE, HANDOVER = 0, 2, 4, 5  # of a job: two numbers each for turnout and drive
MOST_UNITS = (PER_CALL - JOBS) // PER_JOB


@njit(cache=True, nogil=True, inline="always")
def uniform(seed: int, n: int, k: int) -> float:
    """Return number k of call n, in (0, 1)."""
    z = uint64(seed) + uint64(n * PER_CALL + k + 1) * uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    z = z ^ (z >> uint64(31))
    return (float(z >> uint64(11)) + 0.5) * 2.0**-53


@njit(cache=True, nogil=True, inline="always")
def normal(seed: int, n: int, k: int) -> float:
    """Return a standard normal number from numbers k and k + 1 of call n (Box and Muller)."""
    return math.sqrt(-2 * math.log(uniform(seed, n, k))) * math.cos(2 * math.pi * uniform(seed, n, k + 1))


@njit(cache=True, nogil=True, inline="always")
def duration(mean: float, spread: float, seed: int, n: int, k: int) -> float:
    """Return a time of the given mean: exponential if ``spread`` is below 0, fixed if it is 0, else lognormal."""
    if mean == 0 or spread == 0:
        return mean
    if spread < 0:
        return -mean * math.log(uniform(seed, n, k))
    return mean * math.exp(spread * normal(seed, n, k) - spread * spread / 2)
