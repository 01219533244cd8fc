"""`BoxOptimizer`, the base class of the optimizers on boxes, and `BoxObjective`, the objective that they optimise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ...errors import InputError, _validate
from ...errors._types import ArrayLike, FloatArray, Rng
from ...problems import Problem
from ...problems.box import POINT_TOLERANCE, Bounds, Box
from ..ask_tell import AskTell, lock_calls
from ..recommendation import estimate_gains
from ._search import MAX_STARTS, SmoothFunction, maximize_admitted, maximize_on_cube, rank_on_cube


@dataclass(frozen=True, eq=False)
class BoxObjective:
    """A function, the box of its inputs, its sense and whether it is noisy; build it with `to_box_objective`."""

    function: Callable[..., Any]
    space: Box
    sense: str
    noisy: bool

    def __call__(self, x: ArrayLike) -> float:
        """Return what the function returns at a point, (d,); inputs that have names are passed by name."""
        return self.space.call(self.function, x)  # type: ignore[arg-type]

    def with_seed(self, seed: int) -> "BoxObjective":
        """Return a copy whose noise is drawn from a new random seed if the function is a `Problem`, else itself."""
        if not isinstance(self.function, Problem):
            return self
        return replace(self, function=replace(self.function, rng=np.random.default_rng(seed)))


BoxFunction: TypeAlias = Problem | BoxObjective | Callable[..., float] | None  # None: values are computed elsewhere


def to_box_objective(
    f: BoxFunction = None,
    *,
    bounds: Bounds | None = None,
    noisy: bool | None = None,
    constraints: Callable[..., object] | None = None,
    sense: str | None = None,
) -> BoxObjective:
    """Convert a function on a box, or None if values are computed elsewhere, to an objective.

    ``bounds`` and ``sense`` default to the attributes of ``f`` with these names; ``noisy`` defaults to whether its
    ``noise_sd`` is above 0.
    """
    sense = _resolve_sense(f, sense)
    if isinstance(f, BoxObjective):
        if any(value is not None for value in (bounds, noisy, constraints)):
            raise InputError("A BoxObjective already has `bounds`, `noisy` and `constraints`: omit these options.")
        return f
    f = _missing_function if f is None else f
    if not callable(f):
        raise InputError(f"`f` must be a Problem or a function of a point, shape (d,); got {type(f).__name__}.")
    if bounds is None:
        bounds = f.space.inputs if isinstance(f, Problem) else getattr(f, "bounds", None)
    if bounds is None:
        raise InputError(
            "`bounds` is missing: pass the lowest and highest value of each input, as `f` does not define them. "
            "To search over deployments, pass an emsopt.Objective instead."
        )
    noisy = (getattr(f, "noise_sd", 0) or 0) > 0 if noisy is None else _validate.as_bool(noisy, "noisy")
    return BoxObjective(f, Box(bounds, constraints), sense, bool(noisy))


def _resolve_sense(f: BoxFunction, sense: str | None) -> str:
    """Return ``sense`` or, if it is None, that of the function; raise if both are missing or they differ."""
    given = [value for value in (sense, getattr(f, "sense", None)) if value is not None]
    if not given:
        raise InputError('`sense` is missing: pass sense="min" to minimise or sense="max" to maximise.')
    sense, own = (_validate.choice(value, "sense", ("min", "max")) for value in (given[0], given[-1]))
    if sense != own:
        raise InputError(f"`sense` must be that of `f`, {own!r}, or be omitted; got {sense!r}.")
    return sense


def _missing_function(*x: Any, **inputs: Any) -> float:
    """Raise an error; takes the place of the function in an optimizer that was created without one."""
    raise InputError("This optimizer has no function: evaluate the points it asks for yourself, and `tell` values.")


class BoxOptimizer(AskTell[FloatArray]):
    """Base class of the optimizers on boxes. Without noise it never asks for the same point twice.

    A subclass implements `_yield_points`, with points on the unit cube and *gains*: the observed values, with their
    sign reversed for minimisation, so that a larger gain is always better.

    Parameters
    ----------
    f : Problem, BoxObjective or callable, optional
        Function to optimise. It may be left out, as ask and tell never call it.
    sense : {"min", "max"}
        Whether to minimise or maximise. Default: the ``sense`` of ``f``, which a Problem has. Required if it has none.
    bounds, noisy, constraints
        As in `emsopt.minimize`.
    initial : int, optional
        Number of points of the initial design, a Latin hypercube, the same for all methods with one ``rng``. Default:
        2 (d + 1), at least 5.
    """

    noun, column = "point", "x"

    def __init__(self, f: BoxFunction = None, *, initial: int | None = None, rng: Rng = None, **box: Any) -> None:
        super().__init__(to_box_objective(f, **box), rng)
        d = self.space.dimension
        self.initial = max(5, 2 * (d + 1)) if initial is None else _validate.whole_number(initial, "initial", low=0)
        self._design: list[FloatArray] | None = None  # drawn when first needed, as points to begin with may help
        self._rarely_allowed = False  # then random points, of which thousands may be refused, are no longer tried

    @property
    def points(self) -> FloatArray:
        """Points observed so far, encoded on the unit cube, shape (t, coordinates)."""
        return self._encode(self.told)

    @property
    def gains(self) -> FloatArray:
        """Observed values, with their sign reversed if the objective is minimised, shape (t,)."""
        return np.array(self.values) * (1 if self.pick_best is max else -1)

    @property
    def pending_points(self) -> FloatArray:
        """Points returned by `ask` whose values have not been told yet, on the unit cube, shape (n, coordinates)."""
        return self._encode([x for x, value in self.taken.items() if value is None])

    @property
    def failed_points(self) -> FloatArray:
        """Points whose evaluation failed, on the unit cube, shape (n, coordinates)."""
        return self._encode([x for x, value in self.taken.items() if value is not None and np.isnan(value)])

    @lock_calls
    def tell(self, x: Any, value: ArrayLike) -> None:
        """Report the value of a point, see `AskTell.tell`; without noise, raise if the point already has another."""
        point = self.space.canonical(x)
        pair = (self.taken.get(tuple(point.tolist())), _validate.single_number(value))
        known = [one for one in pair if one is not None and np.isfinite(one)]  # failures are no values
        if len(known) == 2 and not self.objective.noisy and not np.isclose(known[0], known[1], rtol=1e-6, atol=1e-12):
            raise InputError(
                f"two values at one point: {known[0]:.6g} and {known[1]:.6g} at {self.space.to_text(point)}. If the "
                "values are noisy, pass noisy=True."
            )
        super().tell(x, value)

    def _encode(self, points: Any) -> FloatArray:
        """Encode a list of n points on the unit cube, shape (n, coordinates); n may be 0."""
        return self.space.to_unit(np.reshape(points, (-1, self.space.dimension)))

    def _is_new(self, x: FloatArray) -> bool:
        """Return whether a point may be asked for: with noise always, else if it differs from all earlier points."""
        apart = np.abs(self._encode(list(self.taken)) - self.space.to_unit(x))
        return self.objective.noisy or not (apart <= POINT_TOLERANCE).all(axis=1).any()

    def _to_user_form(self, x: FloatArray) -> Any:
        return self.space.to_user_form(x)

    def _sample(self) -> FloatArray:
        """Draw an allowed point uniformly or, if almost no point is allowed, by a random walk from a known one."""
        known = [*self.taken, *map(tuple, self._queue)]
        x = None if self._rarely_allowed else self.space.try_sample(self.rng)
        if x is None and known:
            self._rarely_allowed = True
            return self.space.sample_by_walk(known, rng=self.rng)
        return self.space.sample(rng=self.rng) if x is None else x

    def _propose(self) -> FloatArray:
        if self._design is None:
            self._design = list(self.space.latin_hypercube(self.initial, rng=self.rng, draw=self._sample))
        while self._design and len(self.values) < self.initial:  # points known from elsewhere shorten the design
            x = self._design.pop(0)
            if self._is_new(x):
                return x
        if self.values:
            admits = self._admission_rule()
            for u in self._yield_points():
                x = self.space.from_unit(u)
                if self._is_new(x) and admits(x):
                    return x
        return self.draw()  # all chosen points are known, or there is no value to choose by

    def _estimates(self) -> FloatArray:
        from ...surrogates.kernels import SquaredExponential

        sign = 1 if self.pick_best is max else -1
        kernels = [SquaredExponential(np.full(self.space.coordinates, width)) for width in (0.5, 0.2, 1.0)]
        power = max(int(np.frexp(np.abs(self.gains).max())[1]) - 900, 0)  # sums of the largest floats would overflow
        estimates = estimate_gains(kernels, self.points, np.ldexp(self.gains, -power))
        most = np.ldexp(np.finfo(float).max, -power)  # the largest float, scaled alike
        return sign * np.ldexp(np.clip(estimates, -most, most), power)

    def _climb(self, function: SmoothFunction, **options: Any) -> FloatArray:
        """Return the admitted point of the unit cube, (coordinates,), where a function is largest."""
        x = maximize_on_cube(function, self.space.coordinates, self.rng, near=self._best_points(), **options)
        # a simple box without failures bars no point
        return x if self.space.is_simple and not len(self.failed_points) else self._maximize_admitted(function, x)

    def _rank(self, function: SmoothFunction, **options: Any) -> Iterator[FloatArray]:
        """Yield points of the unit cube: the maximiser of a function, then the pool of `rank_on_cube`, best first."""
        x, *pool = rank_on_cube(function, self.space.coordinates, self.rng, near=self._best_points(), **options)
        yield x if self.space.is_simple else self._maximize_admitted(function, x)
        yield from pool

    def _maximize_admitted(self, function: SmoothFunction, x: FloatArray) -> FloatArray:
        """Return the maximiser, (coordinates,), of a function among admitted points; x is that on the whole cube."""
        return maximize_admitted(function, self.space, self._admission_rule(), x, self.rng, near=self._best_points())

    def _admission_rule(self) -> Callable[[FloatArray], bool]:
        """Return the function that decides whether a method may propose a point of the box, (d,)."""
        failed, points = self.failed_points, self.points

        def admits(x: FloatArray) -> bool:
            u = self.space.to_unit(x)
            # the nearest point evaluated so far must not have failed
            near = [np.linalg.norm(known - u, axis=1).min(initial=np.inf) for known in (points, failed)]
            return bool(near[0] <= near[1]) and self.space.allows(x)

        return admits

    def _best_points(self) -> FloatArray:
        """Return the best observed points on the unit cube, at most ``MAX_STARTS``, best first: (n, coordinates)."""
        return self.points[np.argsort(-self.gains, kind="stable")[:MAX_STARTS]]

    def _yield_points(self) -> Iterator[FloatArray]:
        """Yield points of the unit cube, (coordinates,), best first; `ask` takes the first one that is new."""
        raise NotImplementedError


class RandomPoints(BoxOptimizer):
    """Ask for points drawn uniformly from the box, without an initial design; options are those of `BoxOptimizer`."""

    def _propose(self) -> FloatArray:
        return self.draw()
