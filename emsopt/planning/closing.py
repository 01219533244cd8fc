"""Which station of a deployment hurts least if it is closed."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .. import _validate
from ..city.city import City
from ..city.deployment_space import DeploymentSpace, check_sites
from ..errors import InputError
from ..evaluators.by_name import check_evaluator
from ..evaluators.metrics import Metric, metric_label
from ..evaluators.objective import Objective
from .comparison import LEAST_DRAWS, TAIL
from .fleet_curve import best_of, drawn_values, estimated, extensions

if TYPE_CHECKING:
    from .._types import FloatArray, IntArray, Sites
    from ..calls.calibration import Fit
    from .comparison import UncertainCity


@dataclass(frozen=True, eq=False, repr=False)
class Closures:
    """What closing each station of a deployment costs, the least harmful first.

    Attributes
    ----------
    stations : tuple of str
        Names of the K stations, by the value after closing.
    value : float
        Metric of today's deployment; smaller is better.
    values : ndarray, shape (K,)
        Metric after closing each station.
    sites : tuple of ndarray of int
        Deployment after closing each station.
    metric : str, tuple or mapping
        What is measured.
    draws : ndarray, shape (draws, K), or None
        By how much each closure raises the metric in cities drawn from what a log leaves open; None for a city
        without uncertainty.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.grid_city(n_sites=6, units=3, rng=1)
    >>> closures = eo.planning.closing(city, [0, 2, 4])
    >>> closures.to_frame()["harm"].is_monotonic_increasing
    True
    """

    stations: tuple[str, ...]
    value: float
    values: FloatArray
    sites: tuple[IntArray, ...]
    metric: Metric
    draws: FloatArray | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per station: metric after closing it, by how much that is worse, the remaining deployment.

        With draws, ``low`` and ``high`` are the 90 % interval of ``harm``, and ``probability_least`` is the probability
        that no other closure harms less.
        """
        table = pd.DataFrame({"value": self.values, "harm": self.values - self.value}, index=list(self.stations))
        if self.draws is not None:
            table["low"], table["high"] = np.quantile(self.draws, [TAIL, 1 - TAIL], axis=0)
            least = self.draws == self.draws.min(axis=1, keepdims=True)
            table["probability_least"] = (least / least.sum(axis=1, keepdims=True)).mean(axis=0)
        return table.assign(sites=[x.tolist() for x in self.sites]).rename_axis("station")

    def __repr__(self) -> str:
        change = f"{self.value:.4g} to {self.values[0]:.4g}"
        return f"<Closures: {self.stations[0]!r} hurts least, {metric_label(self.metric)} {change}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" + self.to_frame().round(3).to_html()


def closing(
    city: City | Fit | UncertainCity,
    sites: Sites,
    *,
    metric: Metric = "mean_response",
    draws: int = 200,
    **options: Any,
) -> Closures:
    """Rank the stations of a deployment by what closing each of them costs.

    The units of a closed station move to other stations of the deployment, one after the other to where it is best.
    Fleets of up to 12 units are evaluated exactly, larger ones approximately.

    Parameters
    ----------
    city : City, or what `emsopt.calls.calibrate` returns, or another `UncertainCity`
    sites : sequence of int or str
        Today's deployment, at two or more stations. Interchangeable sites (twins) are one station.
    metric : str, tuple or mapping
        What is measured, as for `Objective`.
    draws : int
        Number of cities drawn from a fit, at least 100; always the same ones.
    **options
        For a fit: as for `Fit.city`, such as ``cell_km``.

    Returns
    -------
    Closures

    Raises
    ------
    InputError
        If the deployment has fewer than two stations, or a site or option is invalid.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.City([0.1, 0.2, 0.4], [[0, 6, 9], [4, 0, 5], [9, 5, 0]], turnout_times=1, service_times=30)
    >>> eo.planning.closing(city, [0, 1, 2]).stations[0]
    'site 1'
    """
    centre, known = estimated(city, options)
    today = np.sort(check_sites(centre, sites))
    draws, evaluator = _validate.whole_number(draws, "draws", LEAST_DRAWS), check_evaluator(None, len(today))
    places = centre.twin_groups
    stations = np.unique(places[today])
    if len(stations) < 2:
        raise InputError(
            f"`sites` must name two or more stations, of which one is closed; got {_validate.shown(sites)}."
        )

    def objective(p: int) -> Objective:
        return Objective(centre, DeploymentSpace(centre, p, colocation=True), evaluator, metric)

    after = []
    for station in stations:
        rest = today[places[today] != station]
        others = np.where(np.isin(np.arange(centre.n_sites), rest), len(today), 0)
        while len(rest) < len(today):
            rest = best_of(objective(len(rest) + 1), extensions(rest, others))[0]
        after.append(rest)
    values = np.array([objective(len(rest))(rest) for rest in after])
    order = np.argsort(values, kind="stable")
    harm = None
    if known is not None:
        cities = known.draws(draws, _validate.generator(0))
        drawn = drawn_values(cities, [today, *(after[k] for k in order)], evaluator, "loss", metric)
        harm = drawn[:, 1:] - drawn[:, :1]
    return Closures(
        stations=tuple(centre.site_names[today[places[today] == k][0]] for k in stations[order]),
        value=objective(len(today))(today),
        values=values[order],
        sites=tuple(after[k] for k in order),
        metric=metric,
        draws=harm,
    )
