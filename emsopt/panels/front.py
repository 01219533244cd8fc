"""The front panel: move along a trade-off front, and see what each deployment costs in the other metrics."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from ipywidgets import Dropdown, IntSlider

from .. import _validate, plots
from ..evaluators import Evaluation
from ..planning.trade_off import Front
from . import _charts
from ._city import CityPanel
from ._widgets import control, lines, picture, table

if TYPE_CHECKING:
    from ._panel import Panel

EXPLANATION = (
    "No deployment beats one of these in every metric. The slider goes from the best to the worst deployment in the "
    "metric chosen; table, points and map show what the others then cost."
)


def front_panel(front: Front) -> Panel:
    """Move along a trade-off front by a slider.

    Parameters
    ----------
    front : Front
        What `emsopt.planning.front` found.

    Returns
    -------
    Panel
        With ``refs``, a dict of its inputs and outputs by name. Inputs: ``metric`` (index of the metric in whose order
        the slider goes) and ``place`` (place of the deployment in this order, from 1). Outputs: ``message`` (errors and
        remarks), ``figures`` (table of the metrics, and where the units are), ``points`` (picture of the front) and
        ``map`` (the deployment and the best one in the chosen metric).

    Raises
    ------
    InputError
        If ``front`` is not a `Front`.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=8, units=3, rng=1)
    >>> panel = eo.panels.front_panel(eo.planning.front(city, 3, ["mean_response", ("late", 5.0)]))
    >>> panel.refs["place"].value
    1
    """
    return _FrontPanel(_validate.instance(front, "front", Front, "emsopt.planning.Front"))


class _FrontPanel(CityPanel):
    """The panel that `front_panel` returns."""

    def __init__(self, front: Front) -> None:
        self.front, self.evaluate = front, lru_cache(maxsize=512)(front.evaluation)
        options = [(label, k) for k, label in enumerate(front.labels)]
        order, place = "The slider goes from its best to its worst value", "Place of the deployment in this order"
        controls = {
            "metric": control(Dropdown, 0, "In the order of", order, options=options),
            "place": control(IntSlider, 1, "Deployment", place, (1, len(front.sites))),
        }
        super().__init__(front.objectives[0].city, controls, ("figures", "points"))
        self.arrange(f"{self.city.name}: trade-offs", EXPLANATION, "metric | place | message | figures | points | map")
        self.respond()

    def compute(self) -> tuple[int, dict[str, Evaluation]]:
        """Return the index of the deployment on the front; the evaluations of it and of the best in the metric."""
        order = np.argsort(self.front.values[:, self.at.metric], kind="stable")
        k, best = int(order[self.at.place - 1]), int(order[0])
        return k, {"chosen": self.evaluate(k), "best in this metric": self.evaluate(best)}

    def draw(self, answer: tuple[int, dict[str, Evaluation]]) -> str:
        k, evaluations = answer
        front, (chosen, best) = self.front, (e.sites for e in evaluations.values())
        shown = [front.values[k], front.values.min(axis=0), front.values.max(axis=0)]
        rows = [(label, [f"{row[m]:.4g}" for row in shown]) for m, label in enumerate(front.labels)]
        how = "of all deployments" if front.exact else f"of {front.evaluations:,} deployments that a search evaluated"
        caption = f"Deployment {self.at.place} of the {len(front.sites)} on the front {how}."
        counts = [_charts.place_counts(self.city, sites) for sites in (chosen, best)]
        moved = int(np.maximum(counts[0] - counts[1], 0).sum())
        said = lines(
            f"Units at: {_charts.units_at(self.city, chosen)}.",
            f"{moved} of {len(chosen)} units wait elsewhere than in the best deployment in this metric.",
        )
        names = ["chosen", "best on the front", "worst on the front"]
        self.show(
            figures=table(caption, names, rows) + said,
            points=picture(
                partial(plots.trade_off, front, chosen=k),
                "The front; the deployment is ringed",
                f"Points of the front: {front.labels[1]} against {front.labels[0]}. {caption}",
                size=(7.2, 4.4),
                box=(0.12, 0.14, 0.8, 0.82),
            ),
        )
        self.view.show(self.city, evaluations)
        return ""
