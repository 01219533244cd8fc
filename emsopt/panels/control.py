"""The control panel: which variables to control, as tolerance and costs change, and what a learner makes of it."""

from base64 import b64encode
from dataclasses import replace
from functools import lru_cache
from html import escape
from io import BytesIO

import ipywidgets as widgets
import numpy as np

from .. import _validate
from ..errors import InputError
from ..optimizers import LEARNERS, bocvs
from ..plots import control_run
from ..problems import ControlProblem
from . import _widgets

MOST_PLAYS = 300  # so that very cheap sets do not take minutes
CHEAPEST = 0.01
EXPLANATION = (
    "α is the share of the best expected value that may be given up for a cheaper set. The table answers for known "
    "expected values and costs, which a learner does not have. Play lets one learn them, within the budget."
)


def control_panel(problem, *, budget=20, rng=0):
    """Show which control set to use as tolerance and costs change, and let a method find out by playing.

    Parameters
    ----------
    problem : ControlProblem
        If it is not `solved`, that is done first and takes a while.
    budget : float
        To begin with, from 1 to 100.
    rng : int
        Seed to begin with.

    Returns
    -------
    Panel
        With ``refs``: ``alpha``, ``costs`` (a list of numbers, one a set), ``method``, ``budget``, ``seed``,
        ``halving``, ``play`` (a button), ``sets``, ``message``, ``picture``, ``figures``; and ``problem``, a function
        that returns the problem with the costs as edited, and ``run``, one that returns the last `ControlRun` that is
        shown, or None.

    Raises
    ------
    InputError
        If the problem is none, or an option is out of its range.
    """
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    budget = _validate.positive_number(budget, "budget")
    if not 1 <= budget <= 100:
        raise InputError(f"`budget` must be from 1 to 100; got {budget:g}.")
    seed = _widgets.seed_of(rng)
    problem = problem.solved()
    controls, costs = _controls(budget, seed), _cost_fields(problem)
    message, sets, picture, figures = _widgets.Message(), widgets.HTML(), widgets.HTML(), widgets.HTML()
    state = {"run": None}
    play = lru_cache(maxsize=64)(_play)

    def edited():
        return replace(problem, costs=[field.value for field in costs])

    def refresh():
        """Show the answer for known values; what a run said of other settings is taken away."""
        sets.value = _sets(edited(), controls["alpha"].value)
        picture.value = figures.value = ""
        state["run"] = None
        controls["halving"].disabled = controls["method"].value != "unknown-cost"

    def run():
        at = {name: controls[name].value for name in ("method", "alpha", "budget", "seed", "halving")}
        now = edited()
        refresh()
        found = play(problem, tuple(now.costs.tolist()), **at)
        state["run"] = found
        picture.value = _picture(found, now, at["alpha"])
        figures.value = _figures(found, now, at["alpha"])
        return f"Stopped after {MOST_PLAYS} plays, before the budget was spent." if found.plays == MOST_PLAYS else ""

    def clicked(_=None):
        controls["play"].disabled = True
        try:
            _widgets.guarded(message, run, refresh)()
        finally:
            controls["play"].disabled = False

    for widget in [*costs, *(widget for name, widget in controls.items() if name != "play")]:
        widget.observe(_widgets.guarded(message, refresh), "value")
    controls["play"].on_click(clicked)
    refresh()
    refs = controls | {"costs": costs, "sets": sets, "message": message, "picture": picture}
    refs |= {"figures": figures, "problem": edited, "run": lambda: state["run"]}
    columns = "repeat(auto-fill, minmax(20em, 1fr))"
    editor = widgets.GridBox(costs, layout={"grid_template_columns": columns})
    wrap = {"flex_flow": "row wrap"}
    children = [
        _widgets.heading(f"{problem.name}: what to control", EXPLANATION),
        controls["alpha"],
        widgets.Accordion([editor], titles=("Mean cost of a play of each set",)),
        sets,
        widgets.HBox([controls[name] for name in ("method", "budget", "seed")], layout=wrap),
        widgets.HBox([controls[name] for name in ("halving", "play")], layout=wrap),
        message,
        picture,
        figures,
    ]
    return _widgets.Panel(children, refs)


def _play(problem, costs, method, alpha, budget, seed, halving):
    options = {"halving": halving} if method == "unknown-cost" else {}
    return bocvs(
        replace(problem, costs=costs),
        method,
        budget=budget,
        rng=seed,
        alpha=alpha,
        callback=lambda learner: len(learner.plays) == MOST_PLAYS,
        **options,
    )


def _controls(budget, seed):
    """Return the inputs by name, but for the costs."""
    control, narrow = _widgets.control, widgets.Layout(width="19em")
    return {
        "alpha": control(
            widgets.FloatSlider,
            "Tolerance α",
            "Share of the best expected value that may be given up",
            value=0.1,
            min=0.0,
            max=0.5,
            step=0.01,
        ),
        "method": control(
            widgets.Dropdown,
            "Method",
            "Who plays",
            options=list(LEARNERS),
            layout=widgets.Layout(width="24em"),
        ),
        "budget": control(
            widgets.BoundedFloatText,
            "Budget",
            "Most that all plays may cost together",
            value=budget,
            min=1.0,
            max=100.0,
            layout=narrow,
        ),
        "seed": _widgets.seed_input(seed, "Of all random choices"),
        "halving": control(
            widgets.Checkbox,
            "halve α as it plays",
            "As in the paper's experiments: in the end only the best set is good enough",
            value=False,
        ),
        "play": widgets.Button(description="Play", button_style="primary", tooltip="Spend the budget by this method"),
    }


def _cost_fields(problem):
    """Return an input a set, named after its variables."""
    least = min(CHEAPEST, float(problem.costs.min()))
    return [
        widgets.BoundedFloatText(
            value=float(cost),
            min=least,
            max=1.0,
            step=0.05,
            description=name,
            tooltip=f"Mean cost of a play that controls {name}, from {least:g} to 1",
            style={"description_width": "11em"},
            layout=widgets.Layout(width="19em"),
        )
        for name, cost in zip(problem.set_names, problem.costs, strict=True)
    ]


def _sets(problem, alpha):
    """Return the answer for known expected values, as a table and in words."""
    good, target = set(problem.acceptable(alpha).tolist()), problem.target(alpha)
    values = problem.set_values - problem.worst
    rows = {
        name: [
            f"{problem.costs[i]:g}",
            f"{problem.set_values[i]:.4g}",
            f"{values[i] / values.max():.1%}",
            ("yes, the cheapest" if i == target else "yes") if i in good else "no",
        ]
        for i, name in enumerate(problem.set_names)
    }
    columns = ["mean cost", "best expected value", "of the best", f"good enough at α = {alpha:.2f}"]
    caption = (
        f"The sets by what they control. The target is the cheapest that is good enough: {problem.set_names[target]}."
    )
    return _widgets.table(caption, columns, rows)


def _figures(run, problem, alpha):
    """Return what a run spent, found and lost."""
    history, name = run.history, problem.set_names[run.control_set]
    last, target = history.iloc[-1], problem.target(alpha)
    members = problem.control_sets[run.control_set]
    setting = ", ".join(f"{problem.variables[k]} {v:.2f}" for k, v in zip(members, run.x, strict=True))
    late = history[~history["phase"].str.startswith("explore")]
    rows = {
        "plays": [f"{run.plays}"],
        "spent": [f"{run.spent:.2f}"],
        "plays of the target": [f"{(history['set'] == target).mean():.0%}"],
        "the same, after exploration": [f"{(late['set'] == target).mean():.0%}" if len(late) else "–"],
        "simple regret": [f"{last['simple_regret']:.4f}"],
        "cost regret": [f"{last['cost_regret']:.2f}"],
        "quality regret": [f"{last['quality_regret']:.2f}"],
    }
    said = f"Recommended: control {name}, at {setting}."
    return _widgets.lines(said) + _widgets.table(f"A run of {run.method}", ["value"], rows)


def _picture(run, problem, alpha):
    """Return the run as a figure in HTML."""
    from matplotlib.figure import Figure

    figure, png = Figure(), BytesIO()
    control_run(run, problem, ax=figure, alpha=alpha)
    figure.savefig(png, format="png", dpi=80)
    counts = np.bincount(run.history["set"], minlength=len(problem.costs))
    each = ", ".join(f"{name} {n}" for name, n in zip(problem.set_names, counts, strict=True) if n)
    alt = f"Which set was played as the budget was spent. Plays in all: {each}."
    source = b64encode(png.getvalue()).decode()
    return f"<img src='data:image/png;base64,{source}' alt='{escape(alt)}' style='max-width:100%'>"
