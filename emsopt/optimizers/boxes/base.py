"""What every optimizer on a box has in common, on top of `AskTell`: a first design, the unit cube, one sign."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray, Rng
from ..ask_tell import AskTell
from ._search import STARTS, Slopes, highest
from .box import Function, on_box

SAME = 1e-6
"""Points at most this far apart in every input, in widths of the box, count as the same."""


class BoxOptimizer(AskTell[FloatArray]):
    """Base of the optimizers on boxes: never asks for the same point twice, unless the objective is noisy.

    A method fills in `_choose`, which sees points on the unit cube and gains that are better when larger, whatever the
    sense of the function.

    Parameters
    ----------
    f : Problem, BoxObjective or callable
        What to optimise, in the sense that its ``sense`` says ("max" if it has none); `on_box` sets that of a function.
    bounds : array_like, shape (d, 2), optional
        Lowest and highest value of each input. Default: the ``bounds`` of ``f``.
    integers : sequence of int, optional
        Indices of the inputs that are whole numbers. Default: the ``integers`` of ``f``, or none.
    noisy : bool, optional
        Whether the same point can get different values. Default: whether ``f`` has a ``noise_sd`` above 0.
    initial : int, optional
        Points of a Latin hypercube to begin with. Default: 2 (d + 1), at least 5. The same rng gives the same points, whatever
        the method.
    rng : int or Generator, optional

    Attributes
    ----------
    objective : BoxObjective
    space : Box
    told : list of ndarray, each of shape (d,)
        Points observed so far.
    values : list of float
        Their values, in the function's own sign.
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
        self._design = list(self.space.latin_hypercube(self.initial, self.rng))

    @property
    def points(self) -> FloatArray:
        """Points observed so far on the unit cube, shape (t, d)."""
        return self._on_cube(self.told)

    @property
    def gains(self) -> FloatArray:
        """Values observed so far, shape (t,), larger is better."""
        return np.array(self.values) * (1 if self.better is max else -1)

    @property
    def pending(self) -> FloatArray:
        """Points asked for but not observed, on the unit cube, shape (n, d)."""
        return self._on_cube([x for x, value in self.taken.items() if value is None])

    def _on_cube(self, points: Any) -> FloatArray:
        """Return points, possibly none, on the unit cube, shape (n, d)."""
        return self.space.to_unit(np.reshape(points, (-1, self.space.dimension)))

    def _is_new(self, x: FloatArray) -> bool:
        """Return whether a point may be asked for: in noise-free runs if none that counts as the same is taken."""
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
        """Return the point of the unit cube where a function is highest, searched at random and near the best observed."""
        return highest(function, self.space.dimension, self.rng, near=self._leaders())

    def _leaders(self) -> FloatArray:
        """Return the best observed points, at most ``STARTS``, the best first."""
        return self.points[np.argsort(-self.gains, kind="stable")[:STARTS]]

    def _choose(self) -> Iterator[FloatArray]:
        """Yield points of the unit cube, the best to try next first; the first that is not taken is asked for."""
        raise NotImplementedError
