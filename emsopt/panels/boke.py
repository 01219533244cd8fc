"""The BOKE panel: how bandwidth and exploration shape what is known, and where the next point goes.

Limits. One input. The method is set up anew from the values told whenever a control moves, so that the next point of
BOKE+ is drawn anew with it; the same controls and seed make the same choice.
"""

from base64 import b64encode
from html import escape
from io import BytesIO

import ipywidgets as widgets
import numpy as np

from ..errors import InputError
from ..optimizers import BOKEPlus, profile
from ..optimizers.boxes.boke import CONFIDENCE, EXPLORING, NOISE_SD, SCALE, bandwidth, exploration
from ..plots import boke_step
from ..problems import decaying_wave
from ..surrogates.kernel_regression import KERNELS, leave_one_out_bandwidth
from . import _widgets

FIRST, MOST = 5, 60  # points to begin with, and most
SAMPLE_NOISE = 0.1  # standard deviation in the paper's Figures 1, 4 and 5
EXPLANATION = (
    "Top: the regression with its band, and the points. Middle: the density of the points. Bottom: what BOKE maximises. "
    "Move the bandwidth and the noise constant, and see where it would go next (dotted). Step evaluates that point. "
    "With a probability of exploration below 1, the method is BOKE+: its other steps go to the top of the regression."
)


def boke_panel(f=None, *, rng=0):
    """Move BOKE's constants, see what it knows and where it would go next, and step it.

    Parameters
    ----------
    f : Problem, optional
        Of one input, to be maximised; left out, the example of BOKE's paper, with its noise.
    rng : int or Generator, optional
        Seed to begin with.

    Returns
    -------
    Panel
        With ``refs``: ``scale``, ``noise``, ``exploring`` and ``kernel``, ``seed``, ``step``, ``run`` and ``restart``
        (buttons), ``message``, ``picture``, ``figures``; and ``told``, a function that returns the points and
        values so far, shape (t, 2).

    Raises
    ------
    InputError
        If the function has several inputs or is to be minimised, or the seed is none.
    """
    f = decaying_wave(noise_sd=SAMPLE_NOISE) if f is None else f
    if getattr(f, "dimension", None) != 1 or f.sense != "max":
        raise InputError(f"`f` must be a Problem of one input with sense 'max'; got {f!r}.")
    seed = _widgets.seed_of(rng)
    controls, message = _controls(seed), _widgets.Message()
    picture, figures = widgets.HTML(), widgets.HTML()
    grid = np.linspace(*f.bounds[0], 501)
    truth = f.exact(grid[:, None])
    state = {}

    def optimizer():
        """Return the method with what the controls say, told what is known."""
        method = BOKEPlus(
            f,
            scale=controls["scale"].value,
            noise_sd=controls["noise"].value,
            exploring=controls["exploring"].value,
            kernel=controls["kernel"].value,
            initial=0,
            rng=np.random.default_rng([controls["seed"].value, len(state["told"])]),
        )
        for x, value in state["told"]:
            method.tell([x], value)
        return method

    def show():
        method = optimizer()
        state["next"] = float(method.ask()[0])
        method = optimizer()  # without the point asked for
        known = np.array(state["told"])
        picture.value = _picture(
            profile(method), known, truth=truth, proposal=state["next"], title=f"{len(known)} points"
        )
        figures.value = _figures(method, state["next"], f)
        controls["step"].disabled = controls["run"].disabled = len(known) >= MOST

    def advance(steps):
        for k in range(min(steps, MOST - len(state["told"]))):
            if k:
                state["next"] = float(optimizer().ask()[0])
            value = f.exact([state["next"]]) + f.noise_sd * state["rng"].standard_normal()
            state["told"].append((state["next"], value))
        show()
        return f"That is {MOST} points, as many as this panel takes." if len(state["told"]) >= MOST else ""

    def begin():
        state["rng"] = np.random.default_rng(controls["seed"].value)
        low, high = f.bounds[0]
        x = low + (high - low) * (state["rng"].permutation(FIRST) + state["rng"].random(FIRST)) / FIRST
        noise = f.noise_sd * state["rng"].standard_normal(FIRST)
        state["told"] = [(float(at), float(f.exact([at]) + shift)) for at, shift in zip(x, noise, strict=True)]
        show()

    controls["step"].on_click(_widgets.guarded(message, lambda: advance(1)))
    controls["run"].on_click(_widgets.guarded(message, lambda: advance(10)))
    controls["restart"].on_click(_widgets.guarded(message, begin))
    controls["seed"].observe(_widgets.guarded(message, begin), "value")
    for name in ("scale", "noise", "exploring", "kernel"):
        controls[name].observe(_widgets.guarded(message, show), "value")
    _widgets.guarded(message, begin)()
    refs = {**controls, "message": message, "picture": picture, "figures": figures}
    refs["told"] = lambda: np.array(state["told"])
    wrap = {"flex_flow": "row wrap"}
    children = [
        _widgets.heading("BOKE, step by step", EXPLANATION),
        *(controls[name] for name in ("scale", "noise", "exploring", "kernel", "seed")),
        widgets.HBox([controls[name] for name in ("step", "run", "restart")], layout=wrap),
        message,
        widgets.HBox([picture, figures], layout=wrap | {"grid_gap": "0 1.5em"}),
    ]
    return _widgets.Panel(children, refs)


def _controls(seed):
    """Return the inputs by name."""
    control, logarithmic = _widgets.control, widgets.FloatLogSlider
    return {
        "scale": control(
            logarithmic,
            "Bandwidth factor",
            "Factor of h = factor · t^(-1/5), widths of the box",
            value=SCALE,
            min=-3,
            max=0.5,
            step=0.05,
        ),
        "noise": control(
            logarithmic,
            "Noise constant ς",
            "How much exploration counts: β = 2 ς² log(2 π² t² / (3 δ)), values in standard deviations",
            value=NOISE_SD,
            min=-4,
            max=1,
            step=0.05,
        ),
        "exploring": control(
            widgets.FloatSlider,
            "Exploring, p",
            "Probability of a step by the upper bound: 1 is BOKE, less is BOKE+",
            value=1.0,
            min=0.05,
            max=1.0,
            step=0.05,
        ),
        "kernel": control(
            widgets.Dropdown, "Kernel", "Of regression and density", options=list(KERNELS), value="gaussian"
        ),
        "seed": _widgets.seed_input(seed, "Of the first points, the noise and all choices; another one begins anew"),
        "step": widgets.Button(description="Step", button_style="primary", tooltip="Evaluate the dotted point"),
        "run": widgets.Button(description="Run 10", tooltip="Ten steps"),
        "restart": widgets.Button(description="Restart", tooltip="Back to the first five points"),
    }


def _picture(frame, known, **options):
    """Return the figure as HTML."""
    from matplotlib.figure import Figure

    figure = Figure()
    boke_step(frame, known, figure, **options)
    figure.set_layout_engine(None)  # fitting margins takes longer than all the rest
    figure.subplots_adjust(left=0.11, right=0.98, bottom=0.08, top=0.88, hspace=0.12)
    png = BytesIO()
    figure.savefig(png, format="png", dpi=72)
    top = frame["mean"].idxmax()
    alt = (
        f"{len(known)} points; the regression is highest, {frame['mean'].max():.2f}, at x = {top:.2f}; "
        f"the next point is x = {options['proposal']:.2f}."
    )
    source = b64encode(png.getvalue()).decode()
    return f"<img src='data:image/png;base64,{source}' alt='{escape(alt)}' style='max-width:100%'>"


def _figures(method, proposal, f):
    """Return a table of the figures behind the picture."""
    t, points = len(method.values), method.points
    best, value = method.best
    rows = {
        "points t": [f"{t}"],
        "bandwidth h": [f"{bandwidth(t, 1, method.scale):.4f}"],
        "bandwidth by leave-one-out": [f"{leave_one_out_bandwidth(points, method.gains):.4f}"],
        "β": [f"{exploration(t, method.noise_sd):.3g}"],
        "best told": [f"{value:.3f} at {best[0]:.3f}"],
        "best there is": [f"{f.best_value:.3f} at {f.best_x[0]:.3f}"] if f.best_value is not None else ["unknown"],
        "next": [f"{proposal:.4f}"],
    }
    caption = f"δ = {CONFIDENCE}; the default of p in BOKE+ is {EXPLORING}."
    return _widgets.table(caption, ["now"], rows)
