"""Maximise a smooth function on a box by L-BFGS-B from many starting points at once.

The coordinates of all starting points are stacked into one vector, and L-BFGS-B maximises the sum of the function
values, whose terms do not interact: an iteration costs one call of the function on all points. A second search then
starts from the best point only, because the stopping tolerance of the joint search applies to the sum.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...errors._types import ArrayLike, FloatArray
from ...problems.box import Box

# from points, (K, d), to their values, (K,), and slopes, (K, d)
SmoothFunction: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Predicate: TypeAlias = Callable[[FloatArray], bool]
Points: TypeAlias = FloatArray | Sequence[FloatArray]

TOLERANCE = 1e-9  # stopping tolerance, relative to the range of the values at the starting points
POOL_SIZE, MAX_STARTS = 100, 10  # many points are screened, as a climb takes dozens of evaluations


def maximize_on_box(
    function: SmoothFunction, starts: Points, bounds: ArrayLike, *, steps: int = 40, polish: int = 20
) -> tuple[FloatArray, float]:
    """Return the point, (d,), of the largest value that L-BFGS-B reaches from starting points, (K, d), and this value.

    A coordinate whose ``bounds``, (d, 2), are equal stays fixed. ``steps`` limits the iterations of the joint search
    from all starting points, ``polish`` those of the final search from the best point.
    """
    from scipy.optimize import Bounds, minimize

    low, high = np.asarray(bounds, dtype=float).T
    width = np.where(high > low, high - low, 1.0)  # an equal pair stays fixed instead of dividing by 0
    top = (high - low) / width
    points = np.clip((np.asarray(starts, dtype=float) - low) / width, 0, top)

    def on_unit_cube(unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, slopes = function(low + width * unit)
        return values, slopes * width

    values = on_unit_cube(points)[0]
    scale = np.ptp(values) or abs(values[0]) or 1.0  # L-BFGS-B's tolerances suppose values near 1
    best, value = points[np.argmax(values)], values.max()

    def negated_sum(stacked: FloatArray) -> tuple[float, FloatArray]:
        values, slopes = on_unit_cube(stacked.reshape(-1, len(low)))
        return -values.sum() / scale, -slopes.ravel() / scale

    for count in (steps, polish):
        if count:
            box = Bounds(0, np.tile(top, len(points)))
            limits: Any = {"maxiter": count, "ftol": TOLERANCE, "gtol": 1e-7}
            end = minimize(negated_sum, points.ravel(), jac=True, method="L-BFGS-B", bounds=box, options=limits)
            points = end.x.reshape(-1, len(low))
            values = on_unit_cube(points)[0]
            if values.max() > value:  # the sum may rise while the best point falls
                best, value = points[np.argmax(values)], values.max()
        points = best[None]
    return np.clip(low + width * best, low, high), float(value)  # scaling back may exceed the bounds by rounding


def maximize_on_cube(function: SmoothFunction, d: int, rng: np.random.Generator, **options: Any) -> FloatArray:
    """Return the point of the unit cube, (d,), where a function is largest, with the options of `rank_on_cube`."""
    return next(rank_on_cube(function, d, rng, **options))


def rank_on_cube(
    function: SmoothFunction,
    d: int,
    rng: np.random.Generator,
    *,
    near: Points = (),
    pool: int = POOL_SIZE,
    spreads: Sequence[float] = (0.1,),
    corners: bool = False,
) -> Iterator[FloatArray]:
    """Yield the point of the unit cube, (d,), where a function is largest, then ``pool`` random points, best first.

    L-BFGS-B starts from the best ``MAX_STARTS`` of the random points, of which half are drawn around the points
    ``near``, with standard deviations ``spreads``; with ``corners``, also from the best ``MAX_STARTS`` corners.
    """
    cube = np.tile([0.0, 1.0], (d, 1))
    tried = np.vstack([draw_starts(cube, pool // len(spreads), rng, near=near, spread=spread) for spread in spreads])
    ranked = tried[np.argsort(-function(tried)[0], kind="stable")]
    starts = ranked[:MAX_STARTS]
    if corners:
        vertices = corners_of_cube(d, 1024, rng)
        starts = np.vstack([starts, vertices[np.argsort(-function(vertices)[0], kind="stable")[:MAX_STARTS]]])
    yield maximize_on_box(function, starts, cube)[0]
    yield from ranked


def maximize_admitted(
    function: SmoothFunction,
    space: Box,
    admits: Predicate,
    x: FloatArray,
    rng: np.random.Generator,
    *,
    near: FloatArray,
) -> FloatArray:
    """Search the admitted points of a box for the largest value of a function; return the best on the unit cube, (m,).

    ``admits`` decides which points of the box, (d,), count; ``x`` is returned if none is found. The search starts from
    ``x``, where the function is largest on the whole cube, from the points ``near`` and random ones; it then moves the
    best one at random by ever smaller steps, and finally climbs without changing whole numbers and choices.
    """

    def best_of(tried: FloatArray, best: FloatArray, value: float) -> tuple[FloatArray, float]:
        tried = space.to_unit(space.from_unit(tried))  # to what the box can hold: whole numbers, one choice of several
        values = function(tried)[0]
        for k in np.argsort(-values, kind="stable"):
            if values[k] <= value:  # all that follow are worse
                break
            if admits(space.from_unit(tried[k])):
                return tried[k], float(values[k])
        return best, value

    best, value = best_of(np.vstack([x, *near, rng.random((POOL_SIZE, len(x)))]), x, -np.inf)
    for spread in (0.3, 0.1, 0.1, 0.03, 0.03, 0.01, 0.01, 0.003, 0.001):  # standard deviations of moves
        # every second move, on average, draws one input anew, as small steps seldom change choices
        fresh = np.repeat(rng.random((POOL_SIZE, space.dimension)) < 1 / (2 * space.dimension), space.sizes, axis=1)
        moved = np.clip(best + spread * rng.standard_normal((POOL_SIZE, len(x))), 0, 1)
        best, value = best_of(np.where(fresh, rng.random(moved.shape), moved), best, value)
    fixed = np.repeat([one.whole for one in space.inputs], space.sizes)  # these have no slope
    box = np.column_stack([np.where(fixed, best, 0.0), np.where(fixed, best, 1.0)])
    return best_of(maximize_on_box(function, [best], box, steps=0)[0][None], best, value)[0]


def draw_starts(
    bounds: ArrayLike, n: int, rng: np.random.Generator, *, near: Points = (), spread: float = 0.1
) -> FloatArray:
    """Draw n points, (n, d), uniformly within bounds, (d, 2), but every second one near one of ``near``, if any."""
    low, high = np.asarray(bounds, dtype=float).T
    points = low + (high - low) * rng.random((n, len(low)))
    if len(near):
        centres = np.resize(np.asarray(near, dtype=float), (n // 2, len(low)))
        points[1::2] = np.clip(centres + spread * (high - low) * rng.standard_normal(centres.shape), low, high)
    return points


def corners_of_cube(d: int, most: int, rng: np.random.Generator) -> FloatArray:
    """Return the corners of the unit cube, shape (2^d, d), or ``most`` random ones if there are more."""
    some = rng.integers(0, 2, (most, d)) if 2**d > most else np.arange(2**d)[:, None] >> np.arange(d) & 1
    return some.astype(float)
