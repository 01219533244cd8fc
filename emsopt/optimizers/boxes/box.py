"""`BoxObjective`: a function on a box in the form that `minimize` and `maximize` search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ... import _validate
from ..._types import ArrayLike
from ...errors import InputError
from ...problems import Problem
from ...problems.box import Bounds, Box


@dataclass(frozen=True, eq=False)
class BoxObjective:
    """A function on a box, with all that the optimizers on boxes need. Build it with `on_box`.

    Attributes
    ----------
    function : callable
        Takes a point, shape (d,), or its values as keyword arguments if the inputs have names; returns a number.
    space : Box
    sense : str
        "max" or "min".
    noisy : bool
        Whether repeated evaluations of a point can give different values.
    """

    function: Callable[..., Any]
    space: Box
    sense: str
    noisy: bool

    def __call__(self, x: ArrayLike) -> float:
        """Return what the function returns at a point; inputs that have names are passed by name."""
        return self.space.call(self.function, x)  # type: ignore[arg-type]

    def seeded(self, seed: int) -> "BoxObjective":
        """Return the objective with the noise of a `Problem` drawn from a new seed; other functions are unchanged."""
        if not isinstance(self.function, Problem):
            return self
        return replace(self, function=replace(self.function, rng=np.random.default_rng(seed)))


Function: TypeAlias = Problem | BoxObjective | Callable[..., float]


def on_box(
    f: Function | None = None,
    *,
    bounds: Bounds | None = None,
    integers: Sequence[int | str] | None = None,
    noisy: bool | None = None,
    constraints: Callable[..., object] | None = None,
    sense: str | None = None,
) -> BoxObjective:
    """Convert a function on a box to an objective.

    ``f`` is a Problem, a BoxObjective, which is returned unchanged, or a function; it is left out if its values come
    from elsewhere. Its attributes of the same names are the defaults of ``bounds``, ``integers``, ``constraints`` and
    ``sense``, which `Box` and `BoxOptimizer` describe; ``noisy`` is True by default if its ``noise_sd`` is above 0.
    """
    given = [value for value in (sense, getattr(f, "sense", None)) if value is not None]
    if not given:
        raise InputError('`sense` is missing: pass sense="min" to minimise or sense="max" to maximise.')
    sense, own = (_validate.choice(value, "sense", ("min", "max")) for value in (given[0], given[-1]))
    if sense != own:
        raise InputError(f"`sense` must be that of `f`, {own!r}, or be omitted; got {sense!r}.")
    if isinstance(f, BoxObjective):
        if any(value is not None for value in (bounds, integers, noisy, constraints)):
            own = "`bounds`, `integers`, `noisy` and `constraints`"
            raise InputError(f"A BoxObjective already has {own}: omit these options.")
        return f
    if f is None:
        f = _elsewhere
    if not callable(f):
        raise InputError(f"`f` must be a Problem or a function of a point, shape (d,); got {type(f).__name__}.")
    if isinstance(f, Problem) and bounds is None and integers is None:
        bounds = f.space.inputs
    bounds = getattr(f, "bounds", None) if bounds is None else bounds
    if bounds is None:
        raise InputError(
            "`bounds` is missing: pass the lowest and highest value of each input, as `f` does not define them. "
            "To search over deployments, pass an emsopt.Objective instead."
        )
    box = Box(bounds, getattr(f, "integers", ()) if integers is None else integers, constraints)
    noisy = (getattr(f, "noise_sd", 0) or 0) > 0 if noisy is None else _validate.truth(noisy, "noisy")
    return BoxObjective(f, box, sense, bool(noisy))


def _elsewhere(*x: Any, **inputs: Any) -> float:
    raise InputError(
        "This optimizer has no function: evaluate the points it asks for yourself, and `tell` their values."
    )
