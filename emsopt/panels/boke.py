"""The BOKE panel: how bandwidth and exploration change the model and the choice of the next point.

Whenever a control changes, the method is rebuilt from the observed values; the same controls and seed give the same
next point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ipywidgets import Dropdown, FloatLogSlider, FloatSlider

from .. import plots
from ..errors._types import FloatArray, Rng
from ..optimizers import BOKEPlus
from ..optimizers.boxes import boke
from ..problems import Problem, decaying_wave
from ..surrogates.kernel_regression import KERNELS, leave_one_out_bandwidth
from ._panel import Panel, SteppedPanel
from ._widgets import control, image, table

N_INITIAL, MAX_POINTS = 5, 60  # number of initial points, and largest number of points
SAMPLE_NOISE = 0.1  # standard deviation in the paper's Figures 1, 4 and 5
EXPLANATION = (
    "Top: the regression with its band, and the points. Middle: the density of the points. Bottom: the acquisition "
    "function, which BOKE maximises, and the next point (dotted). Step evaluates that point. If p is below 1, the "
    "method is BOKE+: with probability 1 - p, a step goes to the maximum of the regression instead. With two inputs, "
    "maps show the regression and the logarithm of the acquisition function, with the points and the next one (cross)."
)


def boke_panel(*, rng: Rng = None) -> Panel:
    """Return a panel to change BOKE's constants, see its model and next point, and run it step by step.

    The method is that of "Bayesian Optimization by Kernel Regression and Density-based Exploration". The function is
    `emsopt.problems.decaying_wave`, the paper's example, with its noise of standard deviation 0.1, or a sum of two such
    waves.

    Parameters
    ----------
    rng : int or Generator, optional
        Initial seed. By default, one is drawn and shown.

    Returns
    -------
    Panel
        ``refs`` has ``scale`` (factor of the bandwidth h = factor · d t^(-1/(d+4)), in widths of the box, for d inputs
        after t points), ``rule`` (Scott's, which this is, Silverman's, or fixed, when h is the factor), ``noise`` (ς in
        the weight of exploration β = 2 ς² log(2 π² t² / (3 δ))), ``exploring`` (probability p of a step that maximises
        the upper bound) and others, and ``told``, a function that returns the points and values observed so far, shape
        (t, d + 1).

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.panels.boke_panel(rng=0).refs["told"]().shape
    (5, 2)
    """
    return _BokePanel(rng)


class _BokePanel(SteppedPanel):
    """The panel that `boke_panel` returns."""

    def __init__(self, rng: Rng) -> None:
        wave, box = decaying_wave(), [(0.0, 1.0)] * 2
        two = Problem("two waves", lambda x: wave(x[:, :1]) + wave(x[:, 1:]), box, "max", noise_sd=SAMPLE_NOISE)
        self.functions = {1: decaying_wave(noise_sd=SAMPLE_NOISE), 2: two}
        self.told = list[tuple[float, ...]]()
        noise = "Weight of exploration: β = 2 ς² log(2 π² t² / (3 δ)), with values in standard deviations"
        exploring = "Probability of a step that maximises the upper bound: 1 for BOKE, less for BOKE+"
        factor, kernels = "Factor of the bandwidth, or the bandwidth if fixed, in widths of the box", list(KERNELS)
        rule, rules = "How the bandwidth falls with the points", [*boke.BANDWIDTH_RULES, "fixed"]
        inputs, numbers = "Number of inputs of the function; changing it restarts the method", list(self.functions)
        controls = {
            "scale": control(FloatLogSlider, boke.BANDWIDTH_SCALE, "Bandwidth factor", factor, (-3, 0.5, 0.05)),
            "rule": control(Dropdown, "scott", "Bandwidth's rule", rule, options=rules),
            "noise": control(FloatLogSlider, boke.NOISE_SD, "Noise constant ς", noise, (-4, 1, 0.05)),
            "exploring": control(FloatSlider, 1.0, "Exploring, p", exploring, (0.05, 1.0, 0.05)),
            "kernel": control(Dropdown, "gaussian", "Kernel", "Kernel of regression and density", options=kernels),
            "inputs": control(Dropdown, numbers[0], "Inputs", inputs, action=self.restart, options=numbers),
        }
        end_message = f"All {MAX_POINTS} points that this panel allows are evaluated."
        super().__init__(controls, rng, ("picture", "figures"), end_message)
        self.refs["told"] = lambda: np.array(self.told)
        self.reset()
        rows = "scale rule | noise | exploring | kernel inputs | seed | step run restart | message | figures || picture"
        self.arrange_widgets("BOKE, step by step", EXPLANATION, rows)
        self.respond()

    @property
    def function(self) -> Problem:
        """The function to maximise, with as many inputs as chosen."""
        return self.functions[self.values.inputs]

    def reset(self) -> None:
        """Forget all evaluations and evaluate a Latin hypercube of `N_INITIAL` points."""
        self.draws = np.random.default_rng(self.values.seed)
        low, high = self.function.bounds.T
        self.told.clear()
        columns = [(self.draws.permutation(N_INITIAL) + self.draws.random(N_INITIAL)) / N_INITIAL for _ in low]
        for x in low + (high - low) * np.column_stack(columns):
            self._evaluate(x)

    def step(self) -> None:
        self._evaluate(self._make_optimizer().ask())

    def _evaluate(self, x: FloatArray) -> None:
        """Evaluate the function with noise at a point, shape (d,), and record point and value."""
        noise = self.function.noise_sd * self.draws.standard_normal()
        self.told.append((*x.tolist(), float(self.function.noise_free_value(x) + noise)))

    def is_finished(self) -> bool:
        return len(self.told) >= MAX_POINTS

    def _make_optimizer(self) -> BOKEPlus:
        """Return the method with the current constants and all points observed so far."""
        at, rng = self.values, np.random.default_rng([self.values.seed, len(self.told)])
        rule = {"bandwidth": at.scale} if at.rule == "fixed" else {"bandwidth": at.rule, "scale": at.scale}
        constants = {"noise_sd": at.noise, "exploring": at.exploring, "kernel": at.kernel, **rule}
        method = BOKEPlus(self.function, **constants, initial=0, rng=rng)
        for *x, value in self.told:
            method.tell(x, value)
        return method

    def compute(self) -> tuple[BOKEPlus, FloatArray]:
        return self._make_optimizer(), self._make_optimizer().ask()

    def draw(self, answer: tuple[BOKEPlus, FloatArray]) -> None:
        method, proposal = answer
        picture = _model_picture(method, self.function, np.array(self.told), proposal)
        self.show(picture=picture, figures=_numbers_table(method, proposal, self.function))


def _model_picture(method: BOKEPlus, f: Problem, known: FloatArray, proposal: FloatArray) -> str:
    """Return an HTML image of the model and the next point; ``known`` has points and values, shape (t, d + 1)."""
    label, count, inputs = ", ".join(f"{x:.2f}" for x in proposal), len(known), len(proposal)
    if inputs == 2:
        alt = f"{count} points; maps of regression and acquisition function; the next point is x = ({label})."
        return image(lambda figure: _draw_maps(method, known, proposal, figure), alt, dpi=72)
    frame = boke.profile(method)
    truth = np.asarray(f.noise_free_value(frame.index.to_numpy()[:, None]))

    def draw(figure: Any) -> None:
        plots.boke_step(frame, known, figure, truth=truth, proposal=proposal[0], title=f"{count} points")
        figure.set_layout_engine(None)  # fitting the margins takes longer than all the rest
        figure.subplots_adjust(left=0.11, right=0.98, bottom=0.08, top=0.88, hspace=0.12)

    alt = (
        f"{count} points; the regression is highest, {frame['mean'].max():.2f}, at x = {frame['mean'].idxmax():.2f}; "
        f"the next point is x = {label}."
    )
    return image(draw, alt, dpi=72)


def _draw_maps(method: BOKEPlus, known: FloatArray, proposal: FloatArray, figure: Any) -> None:
    """Draw maps of the regression and the log acquisition over two inputs; ``known`` has points and values, (t, 3)."""
    model, (low, high) = method.surrogate(), method.space.bounds.T
    side = np.linspace(0, 1, 61)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    bound = boke.log_upper_bound(model, boke.exploration_weight(len(model.y), method.noise_sd), grid)[0]
    panels = {"Regression": model.predict(grid)[0], "Log acquisition": bound}
    for axes, (title, values) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        axes.imshow(values.reshape(61, 61), origin="lower", extent=(low[0], high[0], low[1], high[1]), aspect="auto")
        axes.plot(*known[:, :2].T, "o", color="white", markeredgecolor="black", markersize=4)
        axes.plot(*proposal, "X", color="red", markeredgecolor="white", markersize=9, clip_on=False)
        axes.set_title(title)


def _numbers_table(method: BOKEPlus, proposal: FloatArray, f: Problem) -> str:
    """Return an HTML table of the bandwidth, β, the best observed value and other numbers of the method."""
    rows = {
        "points t": f"{len(method.values)}",
        "bandwidth h": f"{method.surrogate().bandwidth[0]:.4f}",
        "bandwidth by leave-one-out": f"{leave_one_out_bandwidth(method.points, method.gains):.4f}",
        "β": f"{boke.exploration_weight(len(method.values), method.noise_sd):.3g}",
        "best observed": _point_text(*method.best),
        "true maximum": _point_text(f.best_x, f.best_value),
        "next": ", ".join(f"{x:.4f}" for x in proposal),
    }
    caption = f"δ = {boke.DELTA}; the default of p in BOKE+ is {boke.EXPLORING_SHARE}."
    return table(caption, ["now"], ((title, [text]) for title, text in rows.items()))


def _point_text(x: FloatArray | None, value: float | None) -> str:
    """Return a function value and its point, shape (d,), as text, or "unknown" if either is None."""
    return "unknown" if x is None or value is None else f"{value:.3f} at {', '.join(f'{each:.3f}' for each in x)}"
