"""A function on a box as an objective: what `minimize` and `maximize` search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray
from ...errors import InputError
from ...problems import Problem
from ...problems.box import Box


@dataclass(frozen=True, eq=False)
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

    function: Callable[..., Any]
    space: Box
    sense: str
    noisy: bool

    def __call__(self, x: ArrayLike) -> float:
        """Return the value of a point."""
        return self.function(x)

    def seeded(self, seed: int) -> "BoxObjective":
        """Return the objective with the noise of a `Problem` drawn anew; the noise of another function is its own."""
        if not isinstance(self.function, Problem):
            return self
        return replace(self, function=replace(self.function, rng=np.random.default_rng(seed)))


Function: TypeAlias = Problem | BoxObjective | Callable[[FloatArray], float]


def on_box(
    f: Function,
    *,
    bounds: ArrayLike | None = None,
    integers: Sequence[int] | None = None,
    noisy: bool | None = None,
    sense: str | None = None,
) -> BoxObjective:
    """Return a function as an objective.

    Parameters
    ----------
    f : Problem, BoxObjective or callable
        Its attributes are the defaults of the options below; that of ``noisy`` is whether its ``noise_sd`` is above 0.
    bounds, integers
        As in `Box`.
    noisy : bool
        Whether the same point can get different values.
    sense : {"min", "max"}
        Whether to minimise or maximise; "max" if neither this nor the function says.

    Raises
    ------
    InputError
        If ``sense`` is not that of ``f``, or another option is invalid.
    """
    given = [value for value in (sense, getattr(f, "sense", None)) if value is not None] or ["max"]
    sense, own = (_validate.choice(value, "sense", ("min", "max")) for value in (given[0], given[-1]))
    if sense != own:
        raise InputError(f"`sense` is {sense!r}, but `f` has the `sense` {own!r}. Leave one of the two out.")
    if isinstance(f, BoxObjective):
        if any(value is not None for value in (bounds, integers, noisy)):
            raise InputError("`bounds`, `integers` and `noisy` of a BoxObjective are its own: leave them out.")
        return f
    if not callable(f):
        raise InputError(f"`f` must be a Problem or a function of a point, shape (d,); got {type(f).__name__}.")
    bounds = getattr(f, "bounds", None) if bounds is None else bounds
    if bounds is None:
        raise InputError(
            "`bounds`, the lowest and highest value of each input, are missing: pass them, as the function defines none. "
            "To search over deployments, pass an emsopt.Objective instead."
        )
    box = Box(bounds, getattr(f, "integers", ()) if integers is None else integers)
    noisy = (getattr(f, "noise_sd", 0) or 0) > 0 if noisy is None else _validate.truth(noisy, "noisy")
    return BoxObjective(f, box, sense, bool(noisy))
