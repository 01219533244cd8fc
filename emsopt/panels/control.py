"""The control panel: which variables to control, as tolerance and costs change, and how well a method learns it."""

from __future__ import annotations

from dataclasses import replace

import ipywidgets as widgets
import numpy as np
from ipywidgets import BoundedFloatText, Checkbox, Dropdown, FloatSlider

from .. import plots, problems
from ..errors import _validate
from ..errors._types import Rng
from ..optimizers import LEARNERS, bocvs
from ..optimizers.control.search import ControlRun
from ..problems import ControlProblem
from ..problems.control.ready_made import COSTS, MARGINAL_VARIANCES
from ._panel import Panel
from ._widgets import button, control, image, paragraphs, seed_input, table

MAX_PLAYS = 300  # otherwise a run with very cheap sets could take minutes
MIN_COST, AS_GIVEN = 0.01, "as given"
EXPLANATION = (
    "α is the share of the best expected value that may be given up for a cheaper set. The table shows "
    "the answer for known expected values and costs. Play lets a method, which does not know them, learn them within "
    "the budget."
)


def control_panel(problem: ControlProblem, *, budget: float = 20, rng: Rng = None) -> Panel:
    """Return a panel that shows which control set to use as tolerance and costs change, and lets a method learn it.

    Parameters
    ----------
    problem : ControlProblem
        If it is not solved yet, it is solved first (see `ControlProblem.with_set_values`), which takes a while.
    budget : float
        Initial budget, from 1 to 100: upper limit on the total cost of all plays.
    rng : int or Generator, optional
        Initial seed. By default, one is drawn and shown.

    Returns
    -------
    Panel
        ``refs`` has ``alpha`` (tolerance: fraction of the best expected value, measured from the problem's ``worst``
        value, that may be given up for a cheaper set), ``costs`` (a list of inputs, the mean cost of a play of each
        set), ``play`` (the button that spends the budget) and others. Functions: ``problem`` returns the problem with
        the edited costs, and ``run`` the `ControlRun` that is shown, or None.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.panels.control_panel(eo.problems.hill_control(), rng=0).refs["alpha"].value
    0.1
    """
    _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
    return _ControlPanel(problem, _validate.finite_number(budget, "budget", 1, 100), rng)


class _ControlPanel(Panel):
    """The panel that `control_panel` returns."""

    def __init__(self, problem: ControlProblem, budget: float, rng: Rng) -> None:
        share, cost = "Share of the best value that may be given up", "Upper limit on the cost of all plays"
        left_out, filled = "Of every variable that is left to chance", "Fills in the mean costs of all sets"
        halving = "As in the paper's experiments: in the end, only the best set is good enough"
        self.original = problem.with_set_values()
        self.variants = _variance_variants(self.original)
        self.sets = {AS_GIVEN: tuple(problem.costs.tolist())} | (COSTS if len(problem.costs) == 7 else {})
        controls = {
            "alpha": control(FloatSlider, 0.1, "Tolerance α", share, (0.0, 0.5, 0.01)),
            "variance": control(Dropdown, AS_GIVEN, "Variance", left_out, options=[*self.variants]),
            "cost_set": control(Dropdown, AS_GIVEN, "Costs", filled, action=self._fill_costs, options=[*self.sets]),
            "method": control(Dropdown, next(iter(LEARNERS)), "Method", "Method that plays", options=list(LEARNERS)),
            "budget": control(BoundedFloatText, budget, "Budget", cost, (1.0, 100.0)),
            "seed": seed_input(rng, "Seed of all random choices"),
            "halving": control(Checkbox, False, "halve α as it plays", halving),
            "play": button("Play", "Spend the budget by this method", self._play, slow=True),
        }
        super().__init__(controls, ("sets", "picture", "figures"))
        self.run: ControlRun | None = None
        least = min(MIN_COST, float(problem.costs.min()))
        tip, style = "Mean cost of a play that controls {}, from {:g} to 1", {"description_width": "11em"}
        self.costs, columns = [], "repeat(auto-fill, minmax(20em, 1fr))"
        for name, mean in zip(problem.set_names, problem.costs.tolist(), strict=True):
            limits, about = (least, 1.0, 0.05), tip.format(name, least)
            self.costs.append(control(BoundedFloatText, mean, name, about, limits, style=style))
            self.connect(self.costs[-1])
        self.refs |= {"costs": self.costs, "problem": self.compute, "run": lambda: self.run}
        grid = widgets.GridBox(self.costs, layout={"grid_template_columns": columns})
        editor = widgets.Accordion([grid], titles=("Mean cost of a play of each set",))
        above = "alpha | variance cost_set editor | sets | method budget seed halving play | message"
        layout = f"{above} | figures || picture"
        self.arrange_widgets(f"{problem.objective.name}: what to control", EXPLANATION, layout, editor=editor)
        self.respond()

    def disabled_controls(self) -> set[str]:
        return set() if self.values.method == "unknown-cost" else {"halving"}

    def compute(self) -> ControlProblem:
        """Return the problem with the chosen variance and the edited costs."""
        return replace(self.variants[self.values.variance], costs=np.array([field.value for field in self.costs]))

    def _fill_costs(self) -> None:
        """Set the cost inputs to the costs chosen in ``cost_set``."""
        for field, mean in zip(self.costs, self.sets[self.values.cost_set], strict=True):
            field.value = mean

    def draw(self, answer: ControlProblem) -> None:
        """Show which sets are good enough for the known values, and remove a run made under other settings."""
        self.show(sets=_sets_table(answer, self.values.alpha), picture="", figures="")
        self.run = None

    def _play(self) -> str:
        """Run the method and show its plays, result and regret; return a message if it stopped early, else ""."""
        self.refresh()
        problem, at = self.compute(), self.values
        halving = {"halving": at.halving} if at.method == "unknown-cost" else {}
        options = {"budget": at.budget, "rng": at.seed, "alpha": at.alpha, **halving}
        run = bocvs(problem, at.method, callback=lambda learner: len(learner.plays) == MAX_PLAYS, **options)
        self.show(picture=_run_picture(run, problem, at.alpha), figures=_run_table(run, problem, at.alpha))
        self.run = run
        return f"Stopped after {MAX_PLAYS} plays, within the budget." if run.plays == MAX_PLAYS else ""


def _variance_variants(problem: ControlProblem) -> dict[str, ControlProblem]:
    """Return the problem and, if it is one of `emsopt.problems`, its versions with the paper's variances, by label."""
    make, u = getattr(problems, f"{problem.objective.name}_control", None), problem.nodes(4)
    others = {f"{v:g}": make(variance=v) for v in MARGINAL_VARIANCES} if make else {}
    sets, values = problem.control_sets, problem.objective.noise_free_value(u)
    given = ((p.control_sets, p.objective.noise_free_value(u)) for p in others.values())
    same = all(s == sets and np.array_equal(v, values) for s, v in given)
    return {AS_GIVEN: problem} | (others if same else {})


def _sets_table(problem: ControlProblem, alpha: float) -> str:
    """Return an HTML table of cost and best expected value of each set, and whether ``alpha`` tolerates it."""
    good, target = problem.acceptable(alpha), problem.target(alpha)
    values = problem.set_values - problem.worst
    rows = {}
    for i, name in enumerate(problem.set_names):
        answer = "yes, the cheapest" if i == target else "yes" if i in good else "no"
        share = f"{values[i] / values.max():.1%}"
        rows[name] = [f"{problem.costs[i]:g}", f"{problem.set_values[i]:.4g}", share, answer]
    columns = ["mean cost", "best expected value", "of the best", f"good enough at α = {alpha:.2f}"]
    caption = f"The target is the cheapest set that is good enough: {problem.set_names[target]}."
    return table(caption, columns, rows.items())


def _run_table(run: ControlRun, problem: ControlProblem, alpha: float) -> str:
    """Return the recommendation, spending and regret of a run as HTML."""
    history, name = run.history, problem.set_names[run.control_set]
    last, target = history.iloc[-1], problem.target(alpha)
    members = problem.control_sets[run.control_set]
    setting = ", ".join(f"{problem.objective.variables[k]} {v:.2f}" for k, v in zip(members, run.x, strict=True))
    late = history[~history["phase"].str.startswith("explore")]
    rows = {
        "plays": f"{run.plays}",
        "spent": f"{run.spent:.2f}",
        "plays of the target": f"{(history['set'] == target).mean():.0%}",
        "the same, after exploration": f"{(late['set'] == target).mean():.0%}" if len(late) else "–",
        "simple regret": f"{last['simple_regret']:.4f}",
        "cost regret": f"{last['cost_regret']:.2f}",
        "quality regret": f"{last['quality_regret']:.2f}",
    }
    cells = ((title, [text]) for title, text in rows.items())
    return paragraphs(f"Recommended: control {name}, at {setting}.") + table(f"A run of {run.method}", ["value"], cells)


def _run_picture(run: ControlRun, problem: ControlProblem, alpha: float) -> str:
    """Return an HTML image of the control sets played in a run, against the cost spent."""
    counts = np.bincount(run.history["set"], minlength=len(problem.costs))
    each = ", ".join(f"{name} {n}" for name, n in zip(problem.set_names, counts, strict=True) if n)
    alt = f"Which set was played as the budget was spent. Plays in all: {each}."
    return image(lambda figure: plots.control_run(run, problem, ax=figure, alpha=alpha), alt, dpi=80)
