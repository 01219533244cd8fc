"""`Problem`: a function on a box, with its best known value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray
from .box import Box, Integer


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A function to optimise, with its bounds and best known value; call it with one point or with one per row.

    Attributes
    ----------
    name : str
    function : callable
        Takes points (n, d); returns noise-free values (n,).
    bounds : ndarray, shape (d, 2)
        Lowest and highest value of each input; given in any form without names that `Box` takes.
    sense : {"min", "max"}
        Whether the function is to be minimised (`emsopt.minimize`) or maximised (`emsopt.maximize`).
    best_value, best_x : float or None, ndarray of shape (d,) or None
        Best known noise-free value, and a point that attains it; None if unknown.
    noise_sd, rng : float, Generator
        Standard deviation of the Gaussian noise on each value, and source of its randomness, one draw per value.
    variables : tuple of str
        Names of the inputs. Default: "x1", "x2" ...
    integers : tuple of int
        Indices of whole-number inputs, in addition to each `Integer` among ``bounds``. They are rounded before
        evaluation.
    space : Box
        The points within the bounds.

    Examples
    --------
    >>> square = Problem("square", lambda x: (x**2).sum(axis=1), [(-1, 1)], "min", 0.0, [0.0])
    >>> square([0.5]), square([[0.5], [1.0]])
    (0.25, array([0.25, 1.  ]))
    """

    name: str
    function: Callable[[FloatArray], ArrayLike]
    bounds: Any
    sense: str
    best_value: float | None = None
    best_x: Any = None
    noise_sd: float = 0.0
    rng: Any = None
    variables: Sequence[str] = ()
    integers: Sequence[int] = ()
    space: Box = field(init=False)

    def __post_init__(self) -> None:
        space = Box(self.bounds)
        if self.integers:
            space = Box([Integer(*row) if k in self.integers else row for k, row in enumerate(space.bounds.tolist())])
        if space.names:
            raise InputError("`bounds` of a Problem must have no names; name its inputs by `variables`.")
        if 0 in space.sizes:
            k = space.sizes.index(0)
            raise InputError(
                f"`bounds` of a Problem must have low < high in every row; got {space.bounds[k].tolist()} in row {k}."
            )
        _validate.choice(self.sense, "sense", ("min", "max"))
        d = space.dimension
        vars(self).update(
            bounds=space.bounds,
            integers=space.integers,
            space=space,
            best_x=None if self.best_x is None else _validate.real_array(self.best_x, "best_x", (d,)),
            noise_sd=_validate.positive_number(self.noise_sd, "noise_sd", zero=True),
            rng=_validate.generator(self.rng),
            variables=_validate.names(self.variables or [f"x{k + 1}" for k in range(d)], "variables", d, "x"),
        )

    @property
    def dimension(self) -> int:
        """Number of inputs d."""
        return len(self.bounds)

    def __call__(self, x: ArrayLike) -> float | FloatArray:
        """Return the value at a point, shape (d,), or at each row, shape (n, d), with noise if there is any."""
        value = self.noise_free_value(x)
        if self.noise_sd == 0:
            return value
        return value + self.noise_sd * self.rng.standard_normal(np.shape(value) or None)  # None draws a number

    def noise_free_value(self, x: ArrayLike) -> float | FloatArray:
        """Return the value at a point, shape (d,), or at each row, shape (n, d), without noise."""
        points, d = _validate.floats(x, "x"), self.dimension
        if points.ndim not in (1, 2) or points.shape[-1] != d:
            raise InputError(f"`x` must have shape ({d},) or (n, {d}) for {self.name}; got shape {points.shape}.")
        # rounds whole-number inputs, which a method may have left between two values
        rows = np.atleast_2d(self.space.clip_inside(points, f"the box of {self.name}", self.variables))
        values = np.asarray(self.function(rows), dtype=float)
        if values.shape != rows.shape[:1]:
            wanted = f"must take points, shape (n, {d}), and return their values, shape (n,)"
            raise InputError(f"`function` of {self.name} {wanted}; for n = {len(rows)} it returned {values.shape}.")
        return float(values[0]) if points.ndim == 1 else values

    def on_unit_cube(self) -> "Problem":
        """Return the problem as one of maximisation on the unit cube, as `ControlProblem` requires.

        If the problem is a minimisation, the sign of its values is reversed. Noise is kept, and whole-number inputs are
        still rounded; unlike in `Box.to_unit`, the lowest whole number is at 0 and the highest at 1.
        """
        low, width = self.bounds[:, 0], np.ptp(self.bounds, axis=1)
        sign = 1.0 if self.sense == "max" else -1.0
        return replace(
            self,
            function=lambda u: sign * self.noise_free_value(low + width * u),  # noise is added once, by the new problem
            bounds=np.tile([0.0, 1.0], (self.dimension, 1)),
            sense="max",
            best_value=None if self.best_value is None else sign * self.best_value + 0.0,  # + 0.0 turns -0.0 into 0.0
            best_x=None if self.best_x is None else (self.best_x - low) / width,
            integers=(),  # `noise_free_value` rounds them already, in their own units
        )

    def __repr__(self) -> str:
        noise = f", noise {self.noise_sd:g}" if self.noise_sd else ""
        best = "" if self.best_value is None else f" {self.best_value:.6g}"
        return f"<Problem {self.name}: {self.dimension} inputs, {self.sense}{best}{noise}>"
