"""`Problem`: a function on a box, with its best known value."""

from dataclasses import dataclass, replace

import numpy as np

from .. import _validate
from ..errors import InputError

ROUNDING = 1e-9
"""Tolerance for points outside the box, relative to its width; such points are moved to the border."""


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A function to optimise; call it with one point or with one point per row.

    Attributes
    ----------
    name : str
    function : callable
        From points (n, d) to noise-free values (n,).
    bounds : ndarray, shape (d, 2)
        Lowest and highest value of each input.
    sense : str
        "min" or "max": whether `emsopt.minimize` takes it or `emsopt.maximize`.
    best_value : float or None
        Best known noise-free value, or None if unknown.
    best_x : ndarray, shape (d,), or None
        A point that attains it.
    noise_sd : float
        Standard deviation of the Gaussian noise on each value.
    rng : Generator
        Source of randomness for the noise, one draw per value.
    variables : tuple of str
        Names of the inputs. Default: "x1", "x2" ...
    integers : tuple of int
        Indices of the inputs that are whole numbers. These inputs are rounded before evaluation.

    Examples
    --------
    >>> square = Problem("square", lambda x: (x**2).sum(axis=1), [(-1, 1)], "min", 0.0, [0.0])
    >>> square([0.5]), square([[0.5], [1.0]])
    (0.25, array([0.25, 1.  ]))
    """

    name: str
    function: object
    bounds: np.ndarray
    sense: str
    best_value: float = None
    best_x: np.ndarray = None
    noise_sd: float = 0.0
    rng: object = None
    variables: tuple = None
    integers: tuple = ()

    def __post_init__(self):
        if not callable(self.function):
            raise InputError(f"`function` must be a function of points, shape (n, d); got {self.function!r}.")
        bounds = _validate.real_array(self.bounds, "bounds", (None, 2))
        if (bounds[:, 0] >= bounds[:, 1]).any():
            k = int(np.argmax(bounds[:, 0] >= bounds[:, 1]))
            raise InputError(f"`bounds` must have low < high in every row; row {k} is {bounds[k].tolist()}.")
        _validate.choice(self.sense, "sense", ("min", "max"))
        settled = {
            "bounds": bounds,
            "best_x": None if self.best_x is None else _validate.real_array(self.best_x, "best_x", (len(bounds),)),
            "noise_sd": _validate.positive_number(self.noise_sd, "noise_sd", zero=True),
            "rng": np.random.default_rng(self.rng),
            "variables": _validate.names(self.variables, "variables", len(bounds), "x")
            if self.variables is not None
            else tuple(f"x{k + 1}" for k in range(len(bounds))),
            "integers": tuple(_validate.whole_number(k, "integers", 0, len(bounds) - 1) for k in self.integers),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self):
        """Number of inputs d."""
        return len(self.bounds)

    def __call__(self, x):
        """Return the value at a point, with noise if there is any.

        Parameters
        ----------
        x : array_like, shape (d,) or (n, d)

        Returns
        -------
        float, or ndarray of shape (n,)

        Raises
        ------
        InputError
            If the shape is wrong, or a point is not finite or lies outside the box.
        """
        value = self.exact(x)
        if self.noise_sd == 0:
            return value
        noise = self.noise_sd * self.rng.standard_normal(np.shape(value) or None)
        return value + noise

    def exact(self, x):
        """Return the value without noise. Parameters and errors are those of a call."""
        points = self._points(x)
        rows = np.atleast_2d(points)
        values = np.asarray(self.function(rows), dtype=float)
        if values.shape != rows.shape[:1]:
            raise InputError(
                f"`function` of {self.name} must take points, shape (n, {rows.shape[1]}), and return their "
                f"values, shape (n,); for {len(rows)} point(s) it returned shape {values.shape}."
            )
        return float(values[0]) if points.ndim == 1 else values

    def _points(self, x):
        points = _validate.floats(x, "x")
        d = len(self.bounds)
        if points.ndim not in (1, 2) or points.shape[-1] != d:
            raise InputError(f"`x` must have shape ({d},) or (n, {d}) for {self.name}; got {points.shape}.")
        low, high = self.bounds.T
        slack = ROUNDING * (high - low)
        inside = (points >= low - slack) & (points <= high + slack)  # False for NaN
        if not inside.all():
            index = tuple(int(i) for i in np.argwhere(~inside)[0])
            k = index[-1]
            row = f" in row {index[0]}" if points.ndim == 2 else ""
            raise InputError(
                f"`x` must lie in the box of {self.name}; {self.variables[k]} is {points[index]:g}{row}, "
                f"not from {low[k]:g} to {high[k]:g}."
            )
        points = np.clip(points, low, high)
        integers = list(self.integers)
        points[..., integers] = np.rint(points[..., integers])
        return points

    def __repr__(self):
        noise = f", noise {self.noise_sd:g}" if self.noise_sd else ""
        best = "" if self.best_value is None else f" {self.best_value:.6g}"
        return f"<Problem {self.name}: {self.dimension} inputs, {self.sense}{best}{noise}>"


def on_unit_cube(problem):
    """Convert a problem to maximisation on the unit cube, as `ControlProblem` requires.

    Parameters
    ----------
    problem : Problem
        A problem of either sense, on any box.

    Returns
    -------
    Problem
        Inputs are scaled from their bounds to [0, 1]. If the problem is a minimisation, the sign of its
        values is reversed. Noise is kept, and whole-number inputs are still rounded.

    Raises
    ------
    InputError
        If ``problem`` is not a Problem.

    Examples
    --------
    >>> oven = Problem("oven", lambda x: (x[:, 0] - 180) ** 2, [(150, 250)], "min", 0.0, [180], variables=("celsius",))
    >>> f = on_unit_cube(oven)
    >>> f
    <Problem oven: 1 inputs, max 0>
    >>> f.best_x, f([0.5])
    (array([0.3]), -400.0)
    """
    _validate.instance(problem, "problem", Problem, "emsopt.problems.Problem")
    low, width = problem.bounds[:, 0], np.ptp(problem.bounds, axis=1)
    sign = 1.0 if problem.sense == "max" else -1.0

    def function(u):
        return sign * problem.exact(low + width * u)

    return replace(
        problem,
        function=function,
        bounds=[(0, 1)] * problem.dimension,
        sense="max",
        best_value=None if problem.best_value is None else sign * problem.best_value + 0.0,
        best_x=None if problem.best_x is None else (problem.best_x - low) / width,
        integers=(),
    )
