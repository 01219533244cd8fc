"""The optimizer panel: step a search for the best deployment, see what it expects, and try a deployment of one's own.

Limits. Predictions are of the value without noise: with a simulation as evaluator values scatter more than the band.
The map evaluates a deployment once more than the search does, which counts in time where that is a simulation.
"""

from functools import lru_cache
from html import escape

import ipywidgets as widgets
import numpy as np

from ..errors import InputError
from ..maps import _shading
from ..optimizers import METHODS, SparBL
from . import _widgets
from ._trace import Trace, away_from_centre, best_swaps, largest_coefficients, measure, sentence, units_at

EXPLANATION = (
    "Step lets the method choose a deployment, which is evaluated and told to it. What the method expects is noted "
    "before the evaluation. Place the units yourself to tell it of a deployment of your own. Restart, another method "
    "or another seed begin anew; the same seed makes the same choices."
)


def optimizer_panel(objective, method="gp-pm", *, rng=0):
    """Step an optimizer by hand, see what it expects, and tell it of deployments of one's own.

    Parameters
    ----------
    objective : Objective
    method : str
        One of `emsopt.optimizers.METHODS` to begin with.
    rng : int or Generator, optional
        Seed to begin with: the same seed makes the same choices.

    Returns
    -------
    Panel
        With ``refs``: ``method``, ``seed``, ``step``, ``run`` and ``restart`` (buttons), ``sites`` (a list of
        checkboxes, or of numbers where a site may hold several units), ``take``, ``clear`` and ``evaluate``
        (buttons), ``placed``, ``message``, ``said``, ``convergence``, ``predictions``, ``thoughts``, ``edges``,
        ``where``, ``map``, ``feed``; and ``trace``, a function that returns the `Trace` so far.

    Raises
    ------
    InputError
        If the objective, the method or the seed is none.
    """
    seed = _widgets.seed_of(rng)
    trace = Trace(objective, method, seed=seed)
    space, city, metric = objective.space, objective.city, objective.metric
    controls, fields = _controls(method, seed), _fields(space)
    message, placed, said, where = _widgets.Message(), widgets.HTML(), widgets.HTML(), widgets.HTML()
    pictures = {name: widgets.HTML() for name in ("convergence", "predictions", "thoughts", "edges")}
    view, state = _widgets.MapView(city), {"trace": trace}
    evaluation = lru_cache(maxsize=64)(lambda sites: objective.evaluation(sites))

    def say():
        said.value = (
            f"<p role='status' style='margin:0.4em 0;line-height:1.4;font-size:110%;font-weight:600;max-width:56em'>"
            f"{escape(sentence(state['trace'].facts, metric))}</p>"
        )

    def show():
        trace = state["trace"]
        facts, optimizer = trace.facts, trace.optimizer
        say()
        controls["take"].disabled = facts.empty
        if facts.empty:
            for picture in (*pictures.values(), where):
                picture.value = ""
            view.hide()
            return
        pictures["convergence"].value = _convergence(facts, metric)
        models = hasattr(optimizer, "predict") or isinstance(optimizer, SparBL)
        pictures["predictions"].value = _predictions(facts, metric) if models else ""
        pictures["thoughts"].value = _thoughts(optimizer, measure(metric)[1])
        pictures["edges"].value = _edges(facts)
        where.value = _where(trace, city)
        shown = {"evaluated last": trace.asked, "best so far": optimizer.best[0]}
        view.show(city, {name: evaluation(tuple(sites.tolist())) for name, sites in shown.items()})

    def begin():
        state["trace"] = Trace(objective, controls["method"].value, seed=controls["seed"].value)
        evaluation.cache_clear()
        show()

    def advance(steps):
        try:
            for _ in range(steps):
                if steps > 1 and state["trace"].optimizer.exhausted:
                    break
                state["trace"].step()
                say()
        finally:
            show()
        return "Every allowed deployment is evaluated." if state["trace"].optimizer.exhausted else ""

    def own():
        sites = np.repeat(np.arange(city.n_sites), [int(field.value) for field in fields])
        if len(sites) != space.units:
            raise InputError(f"{space.units} units are to be placed; you placed {len(sites)}.")
        state["trace"].evaluate(sites)
        show()

    def count(_=None):
        placed.value = f"{sum(int(field.value) for field in fields)} of {space.units} units placed"

    def place(counts):
        for field, n in zip(fields, counts, strict=True):
            field.value = type(field.value)(n)

    def take():
        place(np.bincount(state["trace"].optimizer.best[0], minlength=city.n_sites))

    def busy(action):
        """Return the action as a callback that takes no second click meanwhile."""
        respond = _widgets.guarded(message, action)

        def callback(_=None):
            buttons = [controls[name] for name in ("step", "run", "evaluate")]
            for button in buttons:
                button.disabled = True
            try:
                respond()
            finally:
                controls["evaluate"].disabled = False
                controls["step"].disabled = controls["run"].disabled = state["trace"].optimizer.exhausted

        return callback

    controls["step"].on_click(busy(lambda: advance(1)))
    controls["run"].on_click(busy(lambda: advance(10)))
    controls["evaluate"].on_click(busy(own))
    controls["restart"].on_click(busy(begin))
    for name in ("method", "seed"):
        controls[name].observe(busy(begin), "value")
    controls["take"].on_click(_widgets.guarded(message, take))
    controls["clear"].on_click(_widgets.guarded(message, lambda: place(space.site_floors)))
    for field in fields:
        field.observe(count, "value")
    count()
    _widgets.guarded(message, show)()
    refs = {**controls, "sites": fields, "placed": placed, "message": message, "said": said, **pictures}
    refs |= {"where": where, "map": view.shown, "feed": view.feed, "trace": lambda: state["trace"]}
    wrap = {"flex_flow": "row wrap"}
    own_buttons = widgets.HBox([*(controls[name] for name in ("take", "clear", "evaluate")), placed], layout=wrap)
    children = [
        _widgets.heading(f"{city.name}: stepping an optimizer", f"{EXPLANATION} Minimised: {objective.label}."),
        widgets.HBox([controls["method"], controls["seed"]], layout=wrap),
        widgets.HBox([controls[name] for name in ("step", "run", "restart")], layout=wrap),
        widgets.Accordion([widgets.VBox([_grid(fields), own_buttons])], titles=("A deployment of your own",)),
        message,
        said,
        widgets.HBox(list(pictures.values()), layout=wrap | {"grid_gap": "0 1.5em"}),
        where,
        view.shown,
        view.feed,
    ]
    return _widgets.Panel(children, refs)


def _controls(method, seed):
    """Return the inputs by name, but for the sites."""
    button, control = widgets.Button, _widgets.control
    return {
        "method": control(
            widgets.Dropdown,
            "Method",
            "Which optimizer chooses; another one begins anew",
            options=list(METHODS),
            value=method,
        ),
        "seed": _widgets.seed_input(seed, "Of all random choices; another one begins anew"),
        "step": button(
            description="Step",
            button_style="primary",
            tooltip="Evaluate the deployment that the method asks for",
        ),
        "run": button(description="Run 10", tooltip="Ten steps"),
        "restart": button(description="Restart", tooltip="Forget all evaluations and begin anew"),
        "take": button(description="Take the best so far", tooltip="Place the units as in the best deployment so far"),
        "clear": button(description="Clear", tooltip="Take away all units but those that are pinned"),
        "evaluate": button(
            description="Evaluate",
            button_style="primary",
            tooltip="Evaluate your deployment and tell the method of it",
        ),
    }


def _fields(space):
    """Return an input a site: a checkbox, or a number where sites may hold several units."""
    fields = []
    limits = space.site_floors.tolist(), space.site_capacities.tolist()
    for name, least, most in zip(space.city.site_names, *limits, strict=True):
        shared = {"description": name, "disabled": least == most, "layout": {"width": "auto"}}
        if (space.site_capacities > 1).any():
            shared |= {"tooltip": f"Units at {name}", "style": {"description_width": "8em"}}
            fields.append(widgets.BoundedIntText(value=least, min=least, max=most, **shared))
        else:
            fields.append(widgets.Checkbox(value=bool(least), indent=False, tooltip=f"A unit at {name}", **shared))
    return fields


def _grid(fields):
    """Return the inputs of the sites in as many columns as fit."""
    columns = "repeat(auto-fill, minmax(13em, 1fr))"
    return widgets.GridBox(fields, layout={"grid_template_columns": columns, "max_height": "14em", "overflow": "auto"})


def _where(trace, city):
    """Say in words what the map shows, and how it lies in the trust region."""
    best = trace.optimizer.best[0]
    texts = [
        f"Evaluated last, units at: {units_at(city, trace.asked)}.",
        f"Best so far, units at: {units_at(city, best)}.",
    ]
    if trace.centre is not None:
        texts.insert(1, away_from_centre(city, trace.asked, trace.centre, trace.edge))
    return _widgets.lines(*texts)


# -- pictures -----------------------------------------------------------------------------------------------------


def _points(axes, x, y, facts, **options):
    """Mark evaluations: hollow the random ones to begin with, diamonds one's own."""
    kinds = {
        "random, to begin with": (facts.initial, {"marker": "o", "markerfacecolor": "white"}),
        "asked for": (~facts.initial & ~facts.own, {"marker": "o"}),
        "your own": (facts.own, {"marker": "D", "color": _shading.CATEGORIES[4]}),
    }
    for label, (which, looks) in kinds.items():
        if which.any():
            style = {"color": _shading.CATEGORIES[0], "linestyle": "", "markersize": 6} | looks | options
            axes.plot(x[which], y[which], label=label, **style)


def _convergence(facts, metric):
    """Draw values and the best so far over evaluations."""
    factor, unit, digits, label = measure(metric)
    value, best = factor * facts.value, factor * facts.best

    def draw(axes):
        axes.step(facts.evaluation, best, where="post", color=_shading.CATEGORIES[2], label="best so far")
        _points(axes, facts.evaluation, value, facts)
        axes.set(xlabel="Evaluation", ylabel=label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(fontsize=9, loc="upper right")

    at = int(facts.value.to_numpy().argmin())
    alt = (
        f"Values of {len(facts)} evaluations and the best so far: {best.iloc[-1]:.{digits}f}{unit}, "
        f"found at evaluation {facts.evaluation[at]}."
    )
    return _widgets.picture(draw, "What was found", alt)


def _predictions(facts, metric):
    """Draw what was expected of each evaluation, before it, against its value."""
    factor, unit, _, _ = measure(metric)
    known = facts[facts.expected.notna()]
    if known.empty:
        return _widgets.caption("What is expected: no model yet.")
    value, expected, band = (factor * part for part in (known.value, known.expected, 2 * known.deviation.fillna(0)))
    drawn = known.deviation.isna().all()

    def draw(axes):
        ends = [min(value.min(), expected.min()), max(value.max(), expected.max())]
        axes.plot(ends, ends, color="#555", linewidth=1.2, linestyle=":")
        if not drawn:
            axes.errorbar(value, expected, band, fmt="none", ecolor="#888", elinewidth=1.2)
        _points(axes, value, expected, known)
        axes.set(xlabel=f"Value found{unit and f' ({unit.strip()})'}", ylabel="Drawn" if drawn else "Mean ± 2 sd")
        if known.own.any():
            axes.legend(fontsize=9, loc="upper left")

    if drawn:
        caption = alt = f"What the model drawn said of {len(known)} evaluations before they were made (dotted: equal)"
    else:
        caption = "What was expected, before each evaluation (dotted: equal)"
        within = int(((value - expected).abs() <= band).sum())
        alt = f"Predicted against found: {within} of {len(known)} values are within two standard deviations."
    return _widgets.picture(draw, caption, alt)


def _edges(facts):
    """Draw the edge of the trust region over evaluations."""
    known = facts[facts.edge.notna()]
    if known.empty:
        return ""

    def draw(axes):
        axes.step(known.evaluation, known.edge, where="post", color=_shading.CATEGORIES[0])
        for k, at in enumerate(known.evaluation[known.restart]):
            axes.axvline(at, color=_shading.CATEGORIES[4], linestyle="--", label="new region" if k == 0 else None)
        axes.set(xlabel="Evaluation", ylabel="Hamming distance", ylim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True)
        if known.restart.any():
            axes.legend(fontsize=9)

    alt = (
        f"Edge {known.edge.iloc[-1]:.3g} after evaluation {known.evaluation.iloc[-1]}; {known.restart.sum()} given up."
    )
    return _widgets.picture(draw, "Edge of the trust region (two for each unit that may move)", alt)


def _thoughts(optimizer, unit):
    """Return what the method thinks now as named bars: promising swaps, or coefficients."""
    if hasattr(optimizer, "acquisition"):
        frame = best_swaps(optimizer)
        if frame.empty:
            return _widgets.caption("What it would try: no model yet, or no swap left.")
        # Logarithms have no natural zero: the bars begin a little below the least of them.
        low, high = frame.value.min(), frame.value.max()
        base = low - max(0.1 * (high - low), 1e-9)
        shares = (frame.value - base) / (high - base)
        faint = ~frame.inside
        caption = (
            "Most promising single swaps of the best so far, by the logarithm of expected improvement: 0.7 more is "
            "twice as much. Faint: outside the trust region. It may also move several units at once."
        )
        texts = [f"{value:.2f}" for value in frame.value]
    elif isinstance(optimizer, SparBL):
        frame = largest_coefficients(optimizer)
        if frame.empty:
            return _widgets.caption("What it thinks: no model yet.")
        shares = frame.value.abs() / max(frame.value.abs().max(), 1e-300)
        faint = frame.value > 0
        caption = (
            f"Largest coefficients of the model drawn last{unit and f' ({unit.strip()})'}. Faint: raises the value."
        )
        texts = [f"{value:+.3g}" for value in frame.value]
    else:
        return ""
    return _bars(caption, frame.name, shares, texts, faint)


def _bars(caption, names, shares, texts, faint):
    """Return a table of bars; ``shares`` of the full width."""
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{text}</td><td style='width:11em;text-align:left'><div "
        f"style='height:0.8em;width:{100 * share:.1f}%;background:{_shading.CATEGORIES[0]}{';opacity:0.35' if pale else ''}'></div></td></tr>"
        for name, share, text, pale in zip(names, shares, texts, faint, strict=True)
    )
    return (
        f"{_widgets.TABLE_STYLE}{_widgets.caption(caption)}"
        f"<table class='emsopt-figures' style='font-size:90%' aria-label='{escape(caption)}'>{rows}</table>"
    )
