"""Algorithm 3 of GP-pM, the search for the next deployment: as printed, and by climbs in its place.

Section 5.3 of "Optimizing Server Locations in Spatial Queues". Both searches begin at the centre of the trust region
and look for the deployment with the highest score (expected improvement). Deployments are numbers of units in each twin
group of sites, shape (G,); d is the edge of the region.
"""

from collections.abc import Callable

import numpy as np

from ..._types import FloatArray, IntArray
from ...city.deployment_space import DeploymentSpace

Score = Callable[[IntArray], FloatArray]  # (K, G) -> (K,)
Bounds = Callable[[IntArray, IntArray, IntArray], FloatArray]  # x (G,), gives (g,), takes (t,) -> (g, t)

SWAPS, BLOCK = 1000, 50  # K, a number that the paper does not give; candidates scored at a time
CANDIDATES, CHAINS = 256, 2


def adaptive_swapping(
    space: DeploymentSpace, score: Score, centre: IntArray, edge: float, rng: np.random.Generator
) -> IntArray:
    """Return the outcome of Algorithm 3 as printed, which may lie outside the region.

    SWAPS times, s(d) = d/2 random swaps of the current deployment give a candidate, which takes its place if it has a
    higher score. Candidates are scored in blocks; those after an accepted one are discarded and do not count.
    """
    places = int(space.capacities.sum())
    depth = max(1, int(min(edge / 2, space.units, places - space.units)))
    x, value, left = centre, score(centre[None])[0], SWAPS
    while left:
        candidates = random_swaps(space, x, np.full(min(BLOCK, left), depth), rng)
        scores = score(candidates)
        better = np.flatnonzero(scores > value)
        if len(better):
            x, value = candidates[better[0]], scores[better[0]]
        left -= better[0] + 1 if len(better) else len(candidates)
    return x


def climbing_search(
    space: DeploymentSpace,
    score: Score,
    bounds: Bounds,
    centre: IntArray,
    edge: float,
    rng: np.random.Generator,
    taken: IntArray,
) -> IntArray | None:
    """Return the best deployment of the region that climbs find, None if all that they reach are in ``taken``.

    Ours, in place of Algorithm 3, whose ten swaps at a time leave little of a good deployment. CANDIDATES random
    deployments, 1 to s(d) swaps from the centre, are scored together; `climb` goes on from the best CHAINS and from the
    centre.
    """
    most = max(1, int(min(edge / 2, space.units)))
    pool = np.vstack([centre, random_swaps(space, centre, rng.integers(1, most + 1, CANDIDATES), rng)])
    scores = score(pool)
    best, highest = None, -np.inf
    for k in {0, *np.argsort(-scores)[:CHAINS]}:
        start_taken = (taken == pool[k]).all(axis=1).any()  # a start already taken must not end the climb
        x, value = climb(space, score, bounds, pool[k], -np.inf if start_taken else scores[k], (centre, edge), taken)
        if value > highest:
            best, highest = x, value
    return best


def climb(
    space: DeploymentSpace,
    score: Score,
    bounds: Bounds,
    x: IntArray,
    value: float,
    region: tuple[IntArray, float] | None = None,
    taken: IntArray | None = None,
) -> tuple[IntArray, float]:
    """Relocate one unit at a time, each time to the highest score, until no relocation raises ``value``.

    ``value`` is the score of ``x``. Deployments in ``taken``, shape (n, G), are skipped. If a ``region``, centre and
    edge, is given, only deployments within this Hamming distance of the centre are allowed. ``bounds`` tells which
    swaps need not be scored. Returns the last deployment and its score.
    """
    while True:
        gives, takes = space.swaps(x)
        upper = bounds(x, gives, takes)
        upper[gives[:, None] == takes] = -np.inf
        if region is not None:
            apart, edge = x - region[0], region[1]
            leaving, entering = np.sign(apart[gives] - 0.5), np.sign(apart[takes] + 0.5)
            upper[np.abs(apart).sum() - leaving[:, None] + entering > edge] = -np.inf
        if taken is not None:
            apart = taken - x
            apart = apart[np.abs(apart).sum(axis=1) == 2]
            upper[np.searchsorted(gives, apart.argmin(axis=1)), np.searchsorted(takes, apart.argmax(axis=1))] = -np.inf
        swap, value = _best_swap(score, upper, x, gives, takes, value)
        if swap is None:
            return x, value
        x = swap


def _best_swap(
    score: Score, upper: FloatArray, x: IntArray, gives: IntArray, takes: IntArray, value: float
) -> tuple[IntArray | None, float]:
    """Return the swap with the highest score if it is above ``value``, and this score; else None and ``value``.

    Swaps are scored from the highest upper bound downwards, until no bound left is above the best score.
    """
    best, left = None, np.flatnonzero(upper > value)
    left = left[np.argsort(-upper.flat[left], kind="stable")]
    while len(left) and upper.flat[left[0]] > value:
        some, left = left[:BLOCK], left[BLOCK:]
        candidates, rows = np.repeat(x[None], len(some), axis=0), np.arange(len(some))
        candidates[rows, gives[some // len(takes)]] -= 1
        candidates[rows, takes[some % len(takes)]] += 1
        scores = score(candidates)
        if scores.max() > value:
            best, value = candidates[scores.argmax()], scores.max()
    return best, value


def random_swaps(space: DeploymentSpace, x: IntArray, depths: IntArray, rng: np.random.Generator) -> IntArray:
    """Return allowed deployments by ``depths``, shape (n,), random swaps from the deployment ``x``, shape (n, G)."""
    pool = np.repeat(x[None], len(depths), axis=0)
    for depth in range(depths.max()):
        rows = np.flatnonzero(depths > depth)
        some = pool[rows]
        gives = (rng.random(some.shape) * (some > space.floors)).argmax(axis=1)
        takes = (rng.random(some.shape) * (some < space.capacities)).argmax(axis=1)
        movable = (some > space.floors).any(axis=1) & (some < space.capacities).any(axis=1)
        pool[rows[movable], gives[movable]] -= 1
        pool[rows[movable], takes[movable]] += 1
    return pool
