"""The navigation panel: let agents learn a route, close roads on them, and see where they drove."""

from functools import lru_cache

import ipywidgets as widgets

from .. import _validate, bandits
from ..errors import NoWayError
from ..maps.roads import exploration_map
from ..plots._style import look
from . import _widgets

AGENTS = {
    "gp-ts": "GP, Thompson sampling",
    "gp-ts-joint": "GP, joint Thompson sampling",
    "gp-bucb": "GP, Bayes-UCB",
    "gp-ucb": "GP, UCB",
    "svgp-ts": "sparse GP, Thompson sampling",
    "svgp-bucb": "sparse GP, Bayes-UCB",
    "svgp-ucb": "sparse GP, UCB",
    "bi-ts": "independent edges, Thompson sampling",
    "bi-bucb": "independent edges, Bayes-UCB",
    "bi-ucb": "independent edges, UCB",
}
EXPLANATION = (
    "An electric car drives from A to B, again and again. It knows what edges should need by a formula, sees what the "
    "edges it takes do need, and learns. Every change starts the drive anew; agents under the same settings face the same "
    "roads and stay on the figure and the map to compare. After a change of belief it takes longest; interrupt the kernel to "
    "stop early."
)


def navigation_panel(net, start, end, *, agent="gp-ts", horizon=60, rng=0):
    """Drive a route with an agent of one's choice, change what it believes, and close roads.

    Parameters
    ----------
    net : RoadNetwork
        With polylines, for the map.
    start, end : int or str
        First and last edge, by index or id.
    agent : str
        One of `emsopt.bandits.POLICIES` to begin with.
    horizon : int
        Rounds to begin with, from 10 to 500.
    rng : int or Generator, optional
        Seed to begin with: decides what edges need, and the noise.

    Returns
    -------
    Panel
        With ``refs``: ``agent``, ``lengthscale``, ``noise``, ``horizon``, ``seed``, ``closed``, ``close``, ``reopen``,
        ``message``, ``progress``, ``figures``, ``regret`` and ``map``.

    Raises
    ------
    InputError
        If an argument is not as above, or no way leads from start to end.
    """
    _validate.choice(agent, "agent", tuple(AGENTS))
    horizon = _validate.whole_number(horizon, "horizon", 10, 500)
    seed = _widgets.seed_of(rng)
    start, end = (int(net.edges([edge], name)[0]) for edge, name in ((start, "start"), (end, "end")))
    net.shortest_path(net.lengths, start, end)
    controls, message = _controls(agent, horizon, seed), _widgets.Message()
    progress = widgets.IntProgress(value=0, min=0, max=1, description="Driving", layout={"visibility": "hidden"})
    figures, regret, shown = widgets.HTML(), widgets.HTML(), widgets.HTML(layout={"width": "100%"})
    prior = lru_cache(maxsize=2)(  # a prior and its factor take 150 MB in Monaco
        lambda lengthscale, noise: bandits.navigation_prior(net, lengthscale=lengthscale, noise_sd=noise)
    )
    state = {"settings": None, "runs": {}}  # runs by agent, the latest last, all under the same settings

    def drive(agent, settings):
        lengthscale, noise, horizon, seed, closed = settings
        progress.max, progress.value, progress.layout.visibility = horizon, 0, "visible"
        try:
            return bandits.run(
                net,
                start,
                end,
                agent,
                horizon=horizon,
                rng=seed,
                closed=closed,
                prior=prior(lengthscale, noise),
                progress=lambda done, _: setattr(progress, "value", done),
            )
        finally:
            progress.layout.visibility = "hidden"

    def refresh():
        at = {name: widget.value for name, widget in controls.items() if hasattr(widget, "value")}
        closed = tuple(sorted(set(net.edges(_names(at["closed"]), "closed").tolist())))
        settings = (at["lengthscale"], at["noise"], at["horizon"], at["seed"], closed)
        runs = state["runs"] if settings == state["settings"] else {}
        latest = runs.pop(at["agent"], None) or drive(at["agent"], settings)
        runs[at["agent"]] = latest
        state.update(settings=settings, runs=runs)
        figures.value, regret.value = _figures(net, runs, closed), _regret(runs)
        shown.value = _map(net, runs, (start, end))
        done = len(latest.history)
        return "" if done == at["horizon"] else f"Stopped after {done} rounds: {latest.message}."

    def clear():
        state.update(settings=None, runs={})
        figures.value = regret.value = shown.value = ""

    respond = _widgets.guarded(message, refresh, clear)

    def close():
        """Close the edge that the latest agent drove most often and can do without, of several the longest."""
        if not state["runs"]:
            return "No agent has driven under these settings: change them, or open all roads."
        seen = list(state["runs"].values())[-1].visits.set_index("edge")["visits"].drop([start, end], errors="ignore")
        shut = _names(controls["closed"].value)
        for edge in sorted(seen.index, key=lambda edge: (-seen[edge], -net.lengths[edge])):
            try:
                net.shortest_path(net.lengths, start, end, closed=[*shut, net.ids[edge]])
            except NoWayError:  # there is no way round this one
                continue
            controls["closed"].value = ", ".join([*shut, net.ids[edge]])
            return ""
        return "No road can be closed any more: there is no way round those that are left."

    controls["close"].on_click(_widgets.guarded(message, close))
    controls["reopen"].on_click(lambda _: setattr(controls["closed"], "value", ""))
    for name in ("agent", "lengthscale", "noise", "horizon", "seed", "closed"):
        controls[name].observe(respond, "value")
    respond()
    refs = {**controls, "message": message, "progress": progress}
    refs |= {"figures": figures, "regret": regret, "map": shown}
    wrap = {"flex_flow": "row wrap"}
    children = [
        _widgets.heading(f"{net.name}: learning a route", EXPLANATION),
        *(controls[name] for name in ("agent", "lengthscale", "noise", "horizon", "seed")),
        widgets.HBox([controls[name] for name in ("closed", "close", "reopen")], layout=wrap),
        message,
        progress,
        widgets.HBox([figures, regret], layout=wrap | {"grid_gap": "0 1.5em"}),
        shown,
    ]
    return _widgets.Panel(children, refs)


def _controls(agent, horizon, seed):
    """Return the inputs by name."""
    control, button = _widgets.control, widgets.Button
    return {
        "agent": control(
            widgets.Dropdown,
            "Agent",
            "What it believes about edges, and how it chooses",
            options=[(title, name) for name, title in AGENTS.items()],
            value=agent,
        ),
        "lengthscale": control(
            widgets.FloatLogSlider,
            "Lengthscale",
            "How unlike in length, speed and incline two edges may be and still teach about each other",
            value=1.0,
            base=10,
            min=-1,
            max=0.5,
            step=0.1,
            readout_format=".2f",
        ),
        "noise": control(
            widgets.FloatSlider,
            "Noise",
            "Standard deviation of an observation, over that of the energies by formula",
            value=0.1,
            min=0.02,
            max=0.5,
            step=0.02,
        ),
        "horizon": control(
            widgets.IntSlider, "Rounds", "How often the car drives", value=horizon, min=10, max=500, step=10
        ),
        "seed": _widgets.seed_input(seed, "Decides what edges need, and the noise"),
        "closed": control(
            widgets.Text,
            "Closed roads",
            "Ids of road edges, separated by commas; the map tells an edge's id",
            continuous_update=False,
            placeholder="none",
        ),
        "close": button(
            description="Close the road driven most",
            tooltip="Close the edge that the latest agent drove most often and can do without",
            layout=widgets.Layout(width="auto"),
        ),
        "reopen": button(description="Open all", tooltip="Open all closed roads"),
    }


def _names(text):
    """Return the ids in a list separated by commas."""
    return [name.strip() for name in text.replace(";", ",").split(",") if name.strip()]


def _figures(net, runs, closed):
    """Return a table of the agents and what is worth noticing, as HTML."""
    rows = {}
    for name, run in runs.items():
        expected = run.history["expected_energy"]
        tenth = max(1, len(expected) // 10)
        rows[AGENTS[name]] = [
            f"{run.regret:,.0f}",
            f"{expected[:tenth].mean():,.0f}",
            f"{expected[-tenth:].mean():,.0f}",
            f"{len(run.visits)}",
        ]
    latest = next(reversed(runs.values()))
    best = latest.expected[list(latest.best_path)].sum()
    shut = f" Closed: {', '.join(net.ids[edge] for edge in closed)}." if closed else ""
    said = (
        f"The path without regret has {len(latest.best_path)} edges and needs {best:,.0f} Wh on average. Regret is rectified: "
        f"what is won downhill does not count.{shut}"
    )
    columns = [
        "regret, rectified (Wh)",
        "first tenth (Wh a drive)",
        "last tenth (Wh a drive)",
        "edges driven",
    ]
    caption = f"{len(latest.history)} drives from {net.ids[latest.best_path[0]]} to {net.ids[latest.best_path[-1]]}"
    return f"<div>{_widgets.table(caption, columns, rows)}{_widgets.lines(said)}</div>"


def _regret(runs):
    """Draw how regret adds up."""

    def draw(axes):
        for k, name in enumerate(AGENTS):
            if name in runs:
                history = runs[name].history
                axes.plot(history["round"], history["cumulative_regret"], label=AGENTS[name], **look(k))
        axes.set(xlabel="Round", ylabel="Rectified regret (Wh)")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=9)

    ends = ", ".join(f"{AGENTS[name]} {run.regret:,.0f} Wh" for name, run in runs.items())
    return _widgets.picture(draw, "What was lost while learning", f"Cumulative regret at the end: {ends}.")


def _map(net, runs, route):
    """Return the map of the agents, the latest first."""
    if net.polylines is None:
        return "<p>This network has no polylines, so there is no map.</p>"
    latest_first = {AGENTS[name]: run for name, run in reversed(runs.items())}
    best = next(iter(latest_first.values())).best_path
    rounds = max(len(run.history) for run in runs.values())
    return exploration_map(net, latest_first, route=route, best=best, rounds=rounds)._repr_html_()
