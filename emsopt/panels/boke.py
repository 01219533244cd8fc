"""The BOKE panel: how bandwidth and exploration change the model and the choice of the next point.

BOKE and BOKE+ are methods of "Bayesian Optimization by Kernel Regression and Density-based Exploration".

Limits: the function has one input. Whenever a control changes, the method is rebuilt from the observed values, so BOKE+
chooses its next point again; the same controls and seed give the same choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from ipywidgets import Dropdown, FloatLogSlider, FloatSlider

from .. import plots
from ..errors import InputError
from ..optimizers import BOKEPlus, profile
from ..optimizers.boxes.boke import DELTA, EXPLORING, NOISE_SD, SCALE, bandwidth, exploration
from ..problems import Problem, decaying_wave
from ..surrogates.kernel_regression import KERNELS, leave_one_out_bandwidth
from ._panel import Panel, SteppedPanel
from ._widgets import control, image, table

if TYPE_CHECKING:
    from .._types import FloatArray, Rng

FIRST, MOST = 5, 60  # number of initial points, and largest number of points
SAMPLE_NOISE = 0.1  # standard deviation in the paper's Figures 1, 4 and 5
EXPLANATION = (
    "Top: the regression with its band, and the points. Middle: the density of the points. Bottom: the acquisition "
    "function, which BOKE maximises, and the next point (dotted). Step evaluates that point. If p is below 1, the "
    "method is BOKE+: with probability 1 - p, a step goes to the maximum of the regression instead."
)


def boke_panel(f: Problem | None = None, *, rng: Rng = None) -> Panel:
    """Change BOKE's constants, see its model and its next point, and run it step by step.

    Parameters
    ----------
    f : Problem, optional
        A function of one input, to be maximised. Default: `emsopt.problems.decaying_wave`, the example of BOKE's paper,
        with its noise of standard deviation 0.1.
    rng : int or Generator, optional
        Initial seed. By default, one is drawn and shown.

    Returns
    -------
    Panel
        With ``refs``, a dict of its inputs and outputs by name. Inputs: ``scale`` (factor of the bandwidth h = factor
        t^(-1/5), in widths of the box, after t points), ``noise`` (the constant ς in the weight of exploration β = 2 ς²
        log(2 π² t² / (3 δ))), ``exploring`` (probability p of a step that maximises the upper bound), ``kernel`` and
        ``seed``. Buttons: ``step`` (evaluate the next point), ``run`` (ten steps) and ``restart`` (start again with
        five points). Outputs: ``message`` (errors and remarks), ``picture`` (the model and the next point) and
        ``figures`` (table of the numbers behind the picture). ``told`` is a function that returns the points and
        values observed so far, shape (t, 2).

    Raises
    ------
    InputError
        If the function has several inputs or is to be minimised, or the seed is invalid.

    Examples
    --------
    >>> import emsopt as eo
    >>> panel = eo.panels.boke_panel(rng=0)
    >>> "step" in panel.controls
    True
    """
    f = decaying_wave(noise_sd=SAMPLE_NOISE) if f is None else f
    if getattr(f, "dimension", None) != 1 or f.sense != "max":
        raise InputError(f"`f` must be a Problem of one input with sense 'max'; got {f!r}.")
    return _BokePanel(f, rng)


class _BokePanel(SteppedPanel):
    """The panel that `boke_panel` returns."""

    def __init__(self, f: Problem, rng: Rng) -> None:
        self.f, self.told = f, list[tuple[float, float]]()
        low, high = f.bounds[0]
        self.truth = np.asarray(f.exact(np.linspace(low, high, 501)[:, None]))
        noise = "Weight of exploration: β = 2 ς² log(2 π² t² / (3 δ)), with values in standard deviations"
        exploring = "Probability of a step that maximises the upper bound: 1 for BOKE, less for BOKE+"
        factor, kernels = "Factor in the bandwidth h = factor · t^(-1/5), in widths of the box", list(KERNELS)
        controls = {
            "scale": control(FloatLogSlider, SCALE, "Bandwidth factor", factor, (-3, 0.5, 0.05)),
            "noise": control(FloatLogSlider, NOISE_SD, "Noise constant ς", noise, (-4, 1, 0.05)),
            "exploring": control(FloatSlider, 1.0, "Exploring, p", exploring, (0.05, 1.0, 0.05)),
            "kernel": control(Dropdown, "gaussian", "Kernel", "Kernel of regression and density", options=kernels),
        }
        enough = f"All {MOST} points that this panel allows are evaluated."
        super().__init__(controls, rng, ("picture", "figures"), enough)
        self.refs["told"] = lambda: np.array(self.told)
        self.begin()
        rows = "scale | noise | exploring | kernel | seed | step run restart | message | picture figures"
        self.arrange("BOKE, step by step", EXPLANATION, rows)
        self.respond()

    def begin(self) -> None:
        """Evaluate the first points, a Latin hypercube."""
        self.draws = np.random.default_rng(self.at.seed)
        low, high = self.f.bounds[0]
        self.told.clear()
        for x in low + (high - low) * (self.draws.permutation(FIRST) + self.draws.random(FIRST)) / FIRST:
            self._evaluate(float(x))

    def step(self) -> None:
        self._evaluate(float(self._method().ask()[0]))

    def _evaluate(self, x: float) -> None:
        """Evaluate a point with noise, and record it."""
        self.told.append((x, float(self.f.exact([x]) + self.f.noise_sd * self.draws.standard_normal())))

    def finished(self) -> bool:
        return len(self.told) >= MOST

    def _method(self) -> BOKEPlus:
        """Return the method with the current constants and all points observed so far."""
        at, rng = self.at, np.random.default_rng([self.at.seed, len(self.told)])
        constants = {"scale": at.scale, "noise_sd": at.noise, "exploring": at.exploring, "kernel": at.kernel}
        method = BOKEPlus(self.f, **constants, initial=0, rng=rng)
        for x, value in self.told:
            method.tell([x], value)
        return method

    def compute(self) -> tuple[BOKEPlus, float]:
        return self._method(), float(self._method().ask()[0])

    def draw(self, answer: tuple[BOKEPlus, float]) -> None:
        method, proposal = answer
        picture = _picture(method, np.array(self.told), self.truth, proposal)
        self.show(picture=picture, figures=_figures(method, proposal, self.f))


def _picture(method: BOKEPlus, known: FloatArray, truth: FloatArray, proposal: float) -> str:
    """Return a picture of the model and the next point as HTML.

    ``known`` holds the observed points and values, shape (t, 2), and ``truth`` the function without noise at the points
    of `profile`.
    """
    frame, count = profile(method), len(known)

    def draw(figure: Any) -> None:
        plots.boke_step(frame, known, figure, truth=truth, proposal=proposal, title=f"{count} points")
        figure.set_layout_engine(None)  # fitting the margins takes longer than all the rest
        figure.subplots_adjust(left=0.11, right=0.98, bottom=0.08, top=0.88, hspace=0.12)

    alt = (
        f"{count} points; the regression is highest, {frame['mean'].max():.2f}, at x = {frame['mean'].idxmax():.2f}; "
        f"the next point is x = {proposal:.2f}."
    )
    return image(draw, alt, dpi=72)


def _figures(method: BOKEPlus, proposal: float, f: Problem) -> str:
    """Return a table of the numbers behind the picture, such as bandwidth, β and the best observed value."""
    t = len(method.values)
    rows = {
        "points t": f"{t}",
        "bandwidth h": f"{bandwidth(t, 1, method.scale):.4f}",
        "bandwidth by leave-one-out": f"{leave_one_out_bandwidth(method.points, method.gains):.4f}",
        "β": f"{exploration(t, method.noise_sd):.3g}",
        "best observed": _point(*method.best),
        "true maximum": _point(f.best_x, f.best_value),
        "next": f"{proposal:.4f}",
    }
    caption = f"δ = {DELTA}; the default of p in BOKE+ is {EXPLORING}."
    return table(caption, ["now"], ((title, [text]) for title, text in rows.items()))


def _point(x: FloatArray | None, value: float | None) -> str:
    """Return a point and its value as text, or "unknown" if either is None."""
    return "unknown" if x is None or value is None else f"{value:.3f} at {x[0]:.3f}"
