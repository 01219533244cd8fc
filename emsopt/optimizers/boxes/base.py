"""What every optimizer on a box has in common, on top of `AskTell`: a first design, the unit cube, one sign."""

import numpy as np

from ... import _validate
from ..._types import FloatArray
from ..ask_tell import AskTell
from ._search import highest
from .box import on_box

SAME = 1e-6
"""Points at most this far apart in every input, in widths of the box, count as the same."""


def default_initial(d):
    """Return how many points a first design has unless told: 2 (d + 1), at least 5."""
    return max(5, 2 * (d + 1))


class BoxOptimizer(AskTell[FloatArray]):
    """Base of the optimizers on boxes: never asks for the same point twice, unless the objective is noisy.

    A method fills in `_choose`, which sees points on the unit cube and gains that are better when larger, whatever
    the sense of the function.

    Parameters
    ----------
    f : Problem, BoxObjective or callable
        What to optimise, in the sense that its ``sense`` says ("max" if it has none); `on_box` sets that of a function.
    bounds : array_like, shape (d, 2), optional
        Lowest and highest value of each input; left out, the ``bounds`` of ``f``.
    integers : sequence of int, optional
        Inputs, by index, that are whole numbers; left out, the ``integers`` of ``f``, or none.
    noisy : bool, optional
        Whether the same point can get different values; left out, whether ``f`` has ``noise_sd``.
    initial : int, optional
        Points of a Latin hypercube to begin with; left out: see `default_initial`. The same rng gives the same ones,
        whatever the method.
    rng : int or Generator, optional

    Attributes
    ----------
    objective : BoxObjective
    space : Box
    told : list of ndarray, each of shape (d,)
        Points told so far.
    values : list of float
        Their values, in the function's own sign.
    """

    noun, column = "point", "x"

    def __init__(self, f, *, bounds=None, integers=None, noisy=None, initial=None, rng=None):
        super().__init__(on_box(f, bounds=bounds, integers=integers, noisy=noisy), rng)
        d = self.space.dimension
        self.initial = default_initial(d) if initial is None else _validate.whole_number(initial, "initial", low=0)
        self._design = list(self.space.latin_hypercube(self.initial, self.rng))

    @property
    def points(self):
        """Points told so far on the unit cube, shape (t, d)."""
        return self.space.to_unit(np.reshape(self.told, (-1, self.space.dimension)))

    @property
    def gains(self):
        """Values told so far, shape (t,), larger is better."""
        return np.array(self.values) * (1 if self.better is max else -1)

    @property
    def pending(self):
        """Points asked for but not told, on the unit cube, shape (n, d)."""
        waiting = [x for x, value in self.taken.items() if value is None]
        return self.space.to_unit(np.reshape(waiting, (-1, self.space.dimension)))

    def is_near(self, x):
        """Return whether a point that counts as the same was asked for or told."""
        taken = self.space.to_unit(np.reshape(list(self.taken), (-1, self.space.dimension)))
        return bool((np.abs(taken - self.space.to_unit(x)) <= SAME).all(axis=1).any())

    def _propose(self):
        while self._design:
            x = self._design.pop(0)
            if self.objective.noisy or not self.is_near(x):
                return x
        if not self.values:
            return self.draw()
        for unit in self._choose():
            x = self.space.from_unit(unit)
            if self.objective.noisy or not self.is_near(x):
                return x
        return self.draw()

    def _climb(self, function, starts):
        """Return the point of the unit cube where a function is highest, sought at random and near the best told."""
        near = self._leaders(starts)
        return highest(function, self.space.dimension, self.rng, near=near, starts=starts)

    def _leaders(self, n):
        """Return the n best points told, or all, the best first."""
        return self.points[np.argsort(-self.gains, kind="stable")[:n]]

    def _choose(self):
        """Yield points of the unit cube, the best to try next first; the first that is not taken is asked for."""
        raise NotImplementedError
