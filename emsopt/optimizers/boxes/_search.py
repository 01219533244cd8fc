"""Where on a box a smooth function is largest: many starts, climbed at once.

All starts go into one L-BFGS-B over their stacked coordinates, whose objective is the sum of the values: the parts do
not interact, so each climbs its own hill, and a step costs one call of the function on all points instead of one call of
scipy per point. The best is then climbed alone, because the tolerance of the sum is not its own.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..._types import ArrayLike, FloatArray

Slopes: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""A function from points (K, d) to their values (K,) and slopes (K, d)."""

TOLERANCE = 1e-9  # on a gain, relative to the spread of the values at the starts
POOL, STARTS = 100, 10  # random points, and how many of them, the best, are climbed from


def maximize_on_box(
    function: Slopes, starts: ArrayLike | Sequence[FloatArray], bounds: ArrayLike, *, steps: int = 40, polish: int = 20
) -> tuple[FloatArray, float]:
    """Return the best point that L-BFGS-B reaches from several starts.

    Parameters
    ----------
    function : callable
        From points (K, d) to their values (K,) and slopes (K, d), all finite. K may be any number.
    starts : array_like, shape (K, d)
    bounds : array_like, shape (d, 2)
        Lowest and highest value of each coordinate; both equal keep it fixed.
    steps : int
        Most iterations on all starts together.
    polish : int
        Most iterations on the best of them alone.

    Returns
    -------
    x : ndarray, shape (d,)
        Within the bounds, and no worse than any start.
    value : float

    Examples
    --------
    >>> def bump(x):
    ...     return -((x - 0.3) ** 2).sum(axis=1), -2 * (x - 0.3)
    >>> x, value = maximize_on_box(bump, [[0.0, 0.0], [1.0, 1.0]], [(0, 1), (0.5, 2)])
    >>> x.round(4).tolist(), round(value, 4)
    ([0.3, 0.5], -0.04)
    """
    from scipy.optimize import Bounds, minimize

    low, high = np.asarray(bounds, dtype=float).T
    width = np.where(high > low, high - low, 1.0)
    top = (high - low) / width
    points = np.clip((np.asarray(starts, dtype=float) - low) / width, 0, top)

    def on_unit_cube(unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, slopes = function(low + width * unit)
        return values, slopes * width

    values = on_unit_cube(points)[0]
    scale = np.ptp(values) or abs(values[0]) or 1.0
    best, value = points[np.argmax(values)], values.max()

    def descent(stacked: FloatArray) -> tuple[float, FloatArray]:
        values, slopes = on_unit_cube(stacked.reshape(-1, len(low)))
        return -values.sum() / scale, -slopes.ravel() / scale

    for count in (steps, polish):
        if count:
            box = Bounds(0, np.tile(top, len(points)))
            limits: Any = {"maxiter": count, "ftol": TOLERANCE, "gtol": 1e-7}
            end = minimize(descent, points.ravel(), jac=True, method="L-BFGS-B", bounds=box, options=limits)
            points = end.x.reshape(-1, len(low))
            values = on_unit_cube(points)[0]
            if values.max() > value:
                best, value = points[np.argmax(values)], values.max()
        points = best[None]
    return np.clip(low + width * best, low, high), float(value)


def highest(
    function: Slopes, d: int, rng: np.random.Generator, *, near: FloatArray | Sequence[FloatArray] = ()
) -> FloatArray:
    """Return the point of the unit cube, shape (d,), where a function is largest.

    L-BFGS-B climbs from the best ``STARTS`` of ``POOL`` random points; ``near`` is as in `starts_on_box`.
    """
    cube = np.tile([0.0, 1.0], (d, 1))
    tried = starts_on_box(cube, POOL, rng, near=near)
    best = tried[np.argsort(-function(tried)[0], kind="stable")[:STARTS]]
    return maximize_on_box(function, best, cube)[0]


def starts_on_box(
    bounds: ArrayLike,
    n: int,
    rng: np.random.Generator,
    *,
    near: FloatArray | Sequence[FloatArray] = (),
    spread: float = 0.1,
) -> FloatArray:
    """Return random points to start from: uniform ones, and some close to given points.

    Parameters
    ----------
    bounds : array_like, shape (d, 2)
    n : int
    rng : Generator
    near : array_like, shape (m, d)
        With some given, every other start is normal around one of them (in turn), kept within the bounds.
    spread : float
        Standard deviation of those, in widths of the box.

    Returns
    -------
    ndarray, shape (n, d)
    """
    low, high = np.asarray(bounds, dtype=float).T
    points = low + (high - low) * rng.random((n, len(low)))
    if len(near):
        centres = np.resize(np.asarray(near, dtype=float), (n // 2, len(low)))
        moved = centres + spread * (high - low) * rng.standard_normal(centres.shape)
        points[1::2] = np.clip(moved, low, high)
    return points
