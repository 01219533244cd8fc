"""A box of real and whole numbers, and a function on it as an objective: what `minimize` and `maximize` search.

Methods work on the unit cube. A whole-numbered input of n values takes n equal parts of [0, 1], so that rounding gives
each value the same share, also the first and the last.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from ... import _validate
from ...errors import InputError
from ...problems import Problem
from ...problems.problem import ROUNDING


@dataclass(frozen=True, eq=False)
class Box:
    """The points that a search may propose.

    Parameters
    ----------
    bounds : array_like, shape (d, 2)
        Lowest and highest value of each input.
    integers : sequence of int
        Inputs, by index, that are whole numbers; their bounds must be, too.

    Examples
    --------
    >>> box = Box([(0.0, 1.0), (1, 3)], integers=[1])
    >>> box.from_unit([0.25, 0.99])
    array([0.25, 3.  ])
    """

    bounds: np.ndarray
    integers: tuple = ()
    is_integer: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        bounds = _validate.real_array(self.bounds, "bounds", (None, 2))
        if (bounds[:, 0] >= bounds[:, 1]).any():
            k = int(np.argmax(bounds[:, 0] >= bounds[:, 1]))
            raise InputError(f"`bounds` must have low < high in every row; row {k} is {bounds[k].tolist()}.")
        d = len(bounds)
        if not np.iterable(self.integers) or isinstance(self.integers, str):
            raise InputError(f"`integers` must be the indices of whole-number inputs; got {self.integers!r}.")
        integers = tuple(sorted({_validate.whole_number(k, "integers", 0, d - 1) for k in self.integers}))
        fractions = [k for k in integers if (bounds[k] % 1 != 0).any()]
        if fractions:
            k = fractions[0]
            raise InputError(f"`bounds` of a whole-numbered input must be whole; row {k} is {bounds[k].tolist()}.")
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "integers", integers)
        object.__setattr__(self, "is_integer", np.isin(np.arange(d), integers))

    @property
    def dimension(self):
        """Number of inputs d."""
        return len(self.bounds)

    @cached_property
    def count(self):
        """Number of points: infinite unless all inputs are whole numbers."""
        if len(self.integers) < self.dimension:
            return np.inf
        return prod(int(high - low) + 1 for low, high in self.bounds)

    def chunks(self, size=4096):
        """Yield all points as arrays of at most ``size`` rows; only where all inputs are whole numbers."""
        shape = (np.ptp(self.bounds, axis=1) + 1).astype(int)
        for start in range(0, self.count, size):
            places = np.unravel_index(np.arange(start, min(start + size, self.count)), shape)
            yield self.bounds[:, 0] + np.column_stack(places)

    def canonical(self, x):
        """Return the point in the box, shape (d,), with whole numbers where they belong."""
        x = np.array(_validate.real_array(x, "x", (self.dimension,)))
        x[self.is_integer] = np.rint(x[self.is_integer])
        low, high = self.bounds.T
        outside = (x < low - ROUNDING * (high - low)) | (x > high + ROUNDING * (high - low))
        if outside.any():
            k = int(np.argmax(outside))
            raise InputError(f"`x` must lie in the box; input {k} is {x[k]:g}, not from {low[k]:g} to {high[k]:g}.")
        return np.clip(x, low, high)

    def sample(self, rng):
        """Return a random point, every one as likely, shape (d,)."""
        return self.from_unit(rng.random(self.dimension))

    def latin_hypercube(self, n, rng):
        """Return ``n`` points of which each of n equal parts of every input holds one (McKay et al. 1979); (n, d)."""
        cells = np.column_stack([rng.permutation(n) for _ in range(self.dimension)])
        return self.from_unit((cells + rng.random((n, self.dimension))) / n)

    def to_unit(self, x):
        """Return points, shape (..., d), on the unit cube; whole numbers in the middle of their parts."""
        return (np.asarray(x, dtype=float) - self._low) / self._width

    def from_unit(self, unit):
        """Return the points of the box, shape (..., d), that stand at these places of the unit cube."""
        x = self._low + np.asarray(unit, dtype=float) * self._width
        return np.clip(np.where(self.is_integer, np.rint(x), x), *self.bounds.T)

    @property
    def _low(self):
        return self.bounds[:, 0] - 0.5 * self.is_integer

    @property
    def _width(self):
        return np.ptp(self.bounds, axis=1) + self.is_integer


@dataclass(frozen=True, eq=False, repr=False)
class BoxObjective:
    """A function on a box as the optimizers on boxes see it; make one with `on_box`.

    Attributes
    ----------
    function : callable
        From a point, shape (d,), to its value.
    space : Box
    sense : str
        "max" or "min".
    noisy : bool
        Whether the same point can get different values.
    """

    function: object
    space: Box
    sense: str
    noisy: bool

    def __call__(self, x):
        """Return the value of a point."""
        return self.function(x)

    def seeded(self, seed):
        """Return the objective with the noise of a `Problem` drawn anew; another function's noise is its own."""
        if not isinstance(self.function, Problem):
            return self
        return replace(self, function=replace(self.function, rng=seed))

    def __repr__(self):
        return f"<BoxObjective: {self.space.dimension} inputs, {self.sense}>"


def on_box(f, *, bounds=None, integers=None, noisy=None, sense=None):
    """Return a function as an objective.

    Parameters
    ----------
    f : Problem, BoxObjective or callable
        What is left out below is taken from its attributes of that name and its ``noise_sd``.
    bounds, integers
        As in `Box`.
    noisy : bool
        Whether the same point can get different values.
    sense : {"min", "max"}
        Whether the function is to be minimised or maximised; "max" if neither this nor the function says.

    Raises
    ------
    InputError
        If ``sense`` is not that of ``f``, or another option is invalid.
    """
    own = getattr(f, "sense", None)
    own = own if own is None else _validate.choice(own, "sense", ("min", "max"))
    sense = (own or "max") if sense is None else _validate.choice(sense, "sense", ("min", "max"))
    if own not in (None, sense):
        raise InputError(f"`sense` is {sense!r}, but `f` has the `sense` {own!r}. Leave one of the two out.")
    if isinstance(f, BoxObjective):
        if any(value is not None for value in (bounds, integers, noisy)):
            raise InputError("`bounds`, `integers` and `noisy` of a BoxObjective are its own: leave them out.")
        return f
    if not callable(f):
        raise InputError(f"`f` must be a Problem or a function of a point, shape (d,); got {type(f).__name__}.")
    bounds = getattr(f, "bounds", None) if bounds is None else bounds
    if bounds is None:
        msg = "`bounds` must be given for a function that has none: the lowest and highest value of each input. "
        msg += "(Deployments are searched with an emsopt.Objective.)"
        raise InputError(msg)
    box = Box(bounds, getattr(f, "integers", ()) if integers is None else integers)
    noisy = (getattr(f, "noise_sd", 0) or 0) > 0 if noisy is None else _validate.truth(noisy, "noisy")
    return BoxObjective(f, box, sense, bool(noisy))
