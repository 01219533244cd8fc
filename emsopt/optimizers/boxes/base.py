"""Base class of the optimizers on a box: initial design, scaling to the unit cube and sign of the values."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray, Rng
from ..ask_tell import AskTell
from ._search import STARTS, Slopes, highest
from .box import Function, on_box

SAME = 1e-6
"""Two points are treated as equal if they differ by at most this much in every input, in widths of the box."""


class BoxOptimizer(AskTell[FloatArray]):
    """Base of the optimizers on boxes. It never asks for the same point twice unless the objective is noisy.

    A subclass implements `_choose`. It works with points on the unit cube and with *gains*: the observed values, with
    their sign reversed for minimisation, so that a larger gain is always better.

    Parameters
    ----------
    f : Problem, BoxObjective or callable
        Function to optimise. Its attribute ``sense`` says whether to maximise or minimise it; a function without this
        attribute is maximised. Use `on_box` to set the sense of a function.
    bounds : array_like, shape (d, 2), optional
        Lowest and highest value of each input. Default: the ``bounds`` of ``f``.
    integers : sequence of int, optional
        Indices of the inputs that are whole numbers. Default: the ``integers`` of ``f`` if it has them, else no input.
    noisy : bool, optional
        Whether repeated evaluations of a point can give different values. Default: True if ``f`` has a ``noise_sd``
        above 0, else False.
    initial : int, optional
        Number of points of the initial design, a Latin hypercube. Default: 2 (d + 1), at least 5. All methods start
        from the same initial design if they are given the same ``rng``, except random search, which has none.
    rng : int or Generator, optional

    Attributes
    ----------
    objective : BoxObjective
    space : Box
    told : list of ndarray, each of shape (d,)
        Points observed so far.
    values : list of float
        Values observed at these points, with the sign of the function.
    """

    noun, column = "point", "x"

    def __init__(
        self,
        f: Function,
        *,
        bounds: ArrayLike | None = None,
        integers: Sequence[int] | None = None,
        noisy: bool | None = None,
        initial: int | None = None,
        rng: Rng = None,
    ) -> None:
        super().__init__(on_box(f, bounds=bounds, integers=integers, noisy=noisy), rng)
        d = self.space.dimension
        self.initial = max(5, 2 * (d + 1)) if initial is None else _validate.whole_number(initial, "initial", low=0)
        self._design = list(self.space.latin_hypercube(self.initial, rng=self.rng))

    @property
    def points(self) -> FloatArray:
        """Points observed so far, scaled to the unit cube, shape (t, d)."""
        return self._on_cube(self.told)

    @property
    def gains(self) -> FloatArray:
        """Gains observed so far, shape (t,). Larger gains are better."""
        return np.array(self.values) * (1 if self.better is max else -1)

    @property
    def pending(self) -> FloatArray:
        """Points returned by `ask` whose values have not been told yet, scaled to the unit cube, shape (n, d)."""
        return self._on_cube([x for x, value in self.taken.items() if value is None])

    def _on_cube(self, points: Any) -> FloatArray:
        """Return the given points scaled to the unit cube, shape (n, d). An empty list is allowed."""
        return self.space.to_unit(np.reshape(points, (-1, self.space.dimension)))

    def _is_new(self, x: FloatArray) -> bool:
        """Return whether a point may be asked for. In a noise-free run it must differ from all earlier points."""
        apart = np.abs(self._on_cube(list(self.taken)) - self.space.to_unit(x))
        return self.objective.noisy or not (apart <= SAME).all(axis=1).any()

    def _propose(self) -> FloatArray:
        while self._design:
            x = self._design.pop(0)
            if self._is_new(x):
                return x
        if self.values:
            for x in map(self.space.from_unit, self._choose()):
                if self._is_new(x):
                    return x
        return self.draw()

    def _climb(self, function: Slopes) -> FloatArray:
        """Maximise a function on the unit cube, starting from random points and near the best observed points."""
        return highest(function, self.space.dimension, self.rng, near=self._leaders())

    def _leaders(self) -> FloatArray:
        """Return up to ``STARTS`` of the best observed points, the best one first, scaled to the unit cube."""
        return self.points[np.argsort(-self.gains, kind="stable")[:STARTS]]

    def _choose(self) -> Iterator[FloatArray]:
        """Yield candidate points on the unit cube in order of preference; `ask` takes the first one that is new."""
        raise NotImplementedError
