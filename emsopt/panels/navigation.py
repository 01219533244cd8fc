"""The navigation panel: agents learn a route on a road network, on which roads can be closed."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from ipywidgets import Dropdown, FloatLogSlider, FloatSlider, IntSlider, Text

from .. import bandits
from ..errors import NoPathError, _validate
from ..errors._types import Rng
from ..maps import exploration_map
from ..maps.live import LiveMap
from ..plots._style import line_style
from ..roads.network import RoadNetwork
from ._panel import Panel
from ._widgets import ProgressBar, button, control, paragraphs, seed_input, table, titled_image

PART_TITLES = {"gp": "GP", "svgp": "sparse GP", "bi": "independent edges", "ts": "Thompson sampling"}
PART_TITLES |= {"ts-joint": "joint Thompson sampling", "bucb": "Bayes-UCB", "ucb": "UCB"}
AGENT_TITLES = {name: ", ".join(PART_TITLES[part] for part in name.split("-", 1)) for name in bandits.POLICIES}
EXPLANATION = (
    "An electric car drives from A to B again and again, and learns what its roads need. Every change starts the drive "
    "again. Agents under the same settings face the same roads, and stay on the figure and the map to compare. "
    "Interrupt the kernel to stop a drive early."
)


def navigation_panel(
    net: RoadNetwork, start: int | str, end: int | str, *, horizon: int = 60, rng: Rng = None
) -> Panel:
    """Return a panel in which agents learn a route, with priors to change and roads to close.

    Raise if no path leads from ``start`` to ``end``.

    Parameters
    ----------
    net : RoadNetwork
        A map is shown only if it has ``polylines``.
    start, end : int or str
        First and last edge, by index or id.
    horizon : int
        Initial number of rounds, from 10 to 500.
    rng : int or Generator, optional
        Initial seed of the energies that edges need and of the noise. By default, one is drawn and shown.

    Returns
    -------
    Panel
        ``refs`` has ``agent``, ``closed`` (ids of closed edges, separated by commas), ``figures`` (table of all runs
        under the current settings) and others; ``panel.compute()`` returns these runs by title of the agent.

    Examples
    --------
    >>> import emsopt as eo
    >>> net = eo.roads.grid_roads(4, 4, jitter=0.2, rng=0)
    >>> list(eo.panels.navigation_panel(net, "r0c0-r0c1", "r3c2-r3c3", horizon=10, rng=0).compute())
    ['GP, Thompson sampling']
    """
    horizon = _validate.whole_number(horizon, "horizon", 10, 500)
    first, last = (int(net.edges([edge], name)[0]) for edge, name in ((start, "start"), (end, "end")))
    net.shortest_path(net.lengths, first, last)
    return _NavigationPanel(net, (first, last), horizon, rng)


class _NavigationPanel(Panel):
    """The panel that `navigation_panel` returns."""

    def __init__(self, net: RoadNetwork, route: tuple[int, int], horizon: int, rng: Rng) -> None:
        self.net, self.route, self.bar = net, route, ProgressBar("Driving")
        self.settings: tuple[Any, ...] = ()
        self.runs: dict[str, bandits.NavigationRun] = {}  # by title, under the current settings
        self.prior = lru_cache(maxsize=2)(partial(bandits.navigation_prior, net))  # each prior of Monaco takes 150 MB
        agents = [(title, name) for name, title in AGENT_TITLES.items()]
        about = "Its model of the edges, and its rule to choose a path"
        unlike = "How much two edges may differ in length, speed and incline and still inform about each other"
        noise = "Standard deviation of an observation, relative to that of the energies by formula"
        closed = "Ids of road edges, separated by commas; the map tells an edge's id"
        tip = "Close the edge that the latest agent drove most often and can do without"
        controls = {
            "agent": control(Dropdown, "gp-ts", "Agent", about, options=agents),
            "omega": control(FloatSlider, 1.0, "ω", "Larger: Bayes-UCB explores more", (0.2, 2.0, 0.1)),
            "xi": control(FloatSlider, 1.0, "ξ", "Larger: Bayes-UCB explores more in later rounds", (0.1, 2.0, 0.1)),
            "factor": control(FloatLogSlider, 1.0, "Factor of β", "Larger: UCB explores more", (-2, 0, 0.1)),
            "lengthscale": control(FloatLogSlider, 1.0, "Lengthscale", unlike, (-1, 0.5, 0.1)),
            "noise": control(FloatSlider, 0.1, "Noise", noise, (0.02, 0.5, 0.02)),
            "horizon": control(IntSlider, horizon, "Rounds", "How often the car drives", (10, 500, 10)),
            "seed": seed_input(rng, "Determines the energies that edges need, and the noise"),
            "closed": control(Text, "", "Closed roads", closed, placeholder="none"),
            "close": button("Close the road driven most", tip, self._close_road),
            "reopen": button("Open all", "Reopen all roads", lambda: setattr(self.controls["closed"], "value", "")),
        }
        view = LiveMap(sentence="This network has no polylines, so there is no map.")
        super().__init__(controls, ("figures", "regret"), view)
        self.refs["progress"] = self.bar
        above = "agent | omega xi factor | lengthscale noise | horizon seed | closed close reopen | message | progress"
        self.arrange_widgets(f"{net.name}: learning a route", EXPLANATION, f"{above} | figures || map | regret")
        self.respond()

    def disabled_controls(self) -> set[str]:
        used = {"bucb": {"omega", "xi"}, "ucb": {"factor"}}
        return {"omega", "xi", "factor"} - used.get(self.values.agent.split("-", 1)[1], set())

    def _chosen_agent(self) -> tuple[str, str | tuple[str, Any]]:
        """Return the title and the policy of the chosen agent."""
        at, title = self.values, AGENT_TITLES[self.values.agent]
        kind, rule = bandits.POLICIES[at.agent]
        if rule == bandits.BayesUCB() and (at.omega, at.xi) != (1, 1):
            return f"{title}, ω {at.omega:g}, ξ {at.xi:g}", (kind, bandits.BayesUCB(at.omega, at.xi))
        if rule == bandits.UCB() and at.factor != 1:
            return f"{title}, {at.factor:.2g} β", (kind, bandits.UCB(at.factor))
        return title, at.agent

    def compute(self) -> dict[str, bandits.NavigationRun]:
        """Return the runs under the current settings, by title of the agent; run the chosen agent if necessary."""
        at, (title, policy) = self.values, self._chosen_agent()
        closed = tuple(sorted(set(self.net.edges(_split_ids(at.closed), "closed").tolist())))
        settings = (at.lengthscale, at.noise, at.horizon, at.seed, closed)
        runs = dict(self.runs) if settings == self.settings else {}
        latest = runs.pop(title, None)
        if latest is None:
            prior = self.prior(lengthscale=at.lengthscale, noise_sd=at.noise)
            options = {"horizon": at.horizon, "rng": at.seed, "closed": closed, "prior": prior}
            with self.bar:
                latest = bandits.run(self.net, *self.route, policy, progress=self.bar.show_progress, **options)
            latest = replace(latest, regression=None)  # a posterior takes 8 n² bytes
        self.settings, self.runs = settings, {**runs, title: latest}
        return self.runs

    def draw(self, answer: dict[str, bandits.NavigationRun]) -> str:
        self.show(figures=_runs_table(self.net, answer, self.settings[-1]), regret=_regret_picture(answer))
        if self.net.polylines is not None:
            latest_first: dict[str, Any] = dict(reversed(answer.items()))
            rounds = max(len(run.history) for run in answer.values())
            best = next(iter(latest_first.values())).best_path
            self.view.draw(exploration_map(self.net, latest_first, route=self.route, best=best, rounds=rounds))
        latest = answer[self._chosen_agent()[0]]
        done = len(latest.history)
        return "" if done == self.values.horizon else f"Stopped after {done} rounds: {latest.message}."

    def clear(self) -> None:
        super().clear()
        self.settings, self.runs = (), {}

    def _close_road(self) -> str:
        """Close the edge with a detour that the latest agent drove most often, the longest of several.

        Return a message if there is no such edge, else an empty text.
        """
        if not self.runs:
            return "No agent has driven under these settings: change them, or open all roads."
        latest = next(reversed(self.runs.values()))
        seen = latest.visits.set_index("edge")["visits"].drop([*self.route], errors="ignore")
        shut = _split_ids(self.values.closed)
        for edge in sorted(seen.index, key=lambda edge: (-seen[edge], -self.net.lengths[edge])):
            closed = [*shut, self.net.ids[edge]]
            try:
                self.net.shortest_path(self.net.lengths, *self.route, closed=closed)
            except NoPathError:  # there is no detour around this edge
                continue
            self.controls["closed"].value = ", ".join(closed)
            return ""
        return "No further road can be closed, because there is no detour around any of the others."


def _split_ids(text: str) -> list[str]:
    """Return the ids in a list separated by commas or semicolons."""
    return [name.strip() for name in text.replace(";", ",").split(",") if name.strip()]


def _runs_table(net: RoadNetwork, runs: dict[str, bandits.NavigationRun], closed: tuple[int, ...]) -> str:
    """Return an HTML table of all runs, the latest last, with notes on the best path and closed roads."""
    rows = {}
    for title, run in runs.items():
        expected = run.history["expected_energy"]
        tenth = max(1, len(expected) // 10)
        numbers = (run.regret, run.excess_energy, expected[:tenth].mean(), expected[-tenth:].mean(), len(run.visits))
        rows[title] = [f"{number:,.0f}" for number in numbers]
    path, needed = run.best_path, run.expected[list(run.best_path)].sum()
    best = f"The path without regret has {len(path)} edges and needs {needed:,.0f} Wh on average."
    rectified = "Regret is rectified: energy gained downhill does not count."
    shut = f"Closed: {', '.join(net.ids[edge] for edge in closed)}." if closed else ""
    columns = ["regret, rectified (Wh)", "energy above the best path's (Wh)"]
    columns += ["first tenth (Wh per drive)", "last tenth (Wh per drive)", "edges driven"]
    caption = f"{len(run.history)} drives from {net.ids[path[0]]} to {net.ids[path[-1]]}"
    return table(caption, columns, rows.items()) + paragraphs(f"{best} {rectified} {shut}")


def _regret_picture(runs: dict[str, bandits.NavigationRun]) -> str:
    """Return a picture of cumulative regret as HTML."""

    def draw(axes: Any) -> None:
        for title, run in runs.items():
            style = line_style(styles.index(title))
            axes.plot(run.history["round"], run.history["cumulative_regret"], label=title, **style)
        axes.set(xlabel="Round", ylabel="Rectified regret (Wh)", ylim=(0, None))
        axes.legend(fontsize=9)

    styles = list(dict.fromkeys([*AGENT_TITLES.values(), *sorted(runs)]))
    ends = ", ".join(f"{title} {run.regret:,.0f} Wh" for title, run in runs.items())
    return titled_image(draw, "What was lost while learning", f"Cumulative regret at the end: {ends}.")
