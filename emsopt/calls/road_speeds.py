"""Calibrate the speeds of classes of roads from the recorded drives of a log.

The mean of drive k is ``a + Σ_c b_c m_kc``. Here ``m_kc`` are the minutes at free flow on roads of class c, on the
quickest way from the unit's home; ``b_c`` is the ratio of driven to free-flow minutes on that class; and ``a`` does not
depend on the way. The standard deviation of a drive is proportional to its mean. Ratios are normal around a common one
with a variance estimated by restricted likelihood, so a class on which little was driven keeps about the common ratio.
Ways are found again with the new speeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import linalg, optimize

from ..errors import InputError
from ._dispatch import dispatch_times
from ._durations import Z90
from ._times import hour_of_week
from .calibration import Fit
from .demand import REACH_KM

if TYPE_CHECKING:
    from .._types import FloatArray
    from ..roads import RoadNetwork

PASSES = 3  # ways and weights depend on the ratios
STRAY = 4.0  # standard deviations of log(drive / mean) from which a stamp is taken for wrong
SLOWEST = 0.05, 20.0  # least and largest ratio, for a class on which hardly anything was driven


@dataclass(frozen=True, eq=False)
class RoadSpeeds:
    """Speeds of classes of roads, as a log shows them.

    Attributes
    ----------
    roads : RoadNetwork
        The network with these speeds in place of its speed limits; `calibrate` takes it.
    ratios : DataFrame
        One row per class: ``ratio`` of driven to free-flow minutes, ``low`` and ``high`` (90 %, given the ways), and
        the free-flow ``minutes`` driven on it.
    fixed_min : float
        Minutes of a drive that do not depend on the way.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> from emsopt.roads import grid_roads
    >>> speeds = eo.calls.RoadSpeeds(grid_roads(2, 3), pd.DataFrame({"ratio": [1.3]}, index=["unknown"]), 0.5)
    >>> float(speeds.to_frame().loc["unknown", "ratio"])
    1.3
    """

    roads: RoadNetwork
    ratios: pd.DataFrame
    fixed_min: float

    def to_frame(self) -> pd.DataFrame:
        """Return `ratios`."""
        return self.ratios


def road_speeds(fit: Fit) -> RoadSpeeds:
    """Calibrate the speed of each class of road from the drives of a log.

    Parameters
    ----------
    fit : Fit
        Calibrated with ``roads``. Units with known homes tell most.

    Returns
    -------
    RoadSpeeds

    Raises
    ------
    InputError
        If ``fit`` was calibrated without roads.

    Examples
    --------
    >>> import emsopt as eo
    >>> import pandas as pd
    >>> net = eo.datasets.load_roads("monaco")
    >>> stations = pd.DataFrame({"name": ["Station 1", "Station 2"], "lon": [7.415, 7.43], "lat": [43.732, 43.745]})
    >>> log = eo.calls.synthetic_log(stations, days=14, spread_km=0.5, distances=net.travel_times, rng=0)
    >>> fit = eo.calls.calibrate(log, stations, roads=net)
    >>> speeds = eo.calls.road_speeds(fit)
    >>> again = eo.calls.calibrate(log, stations, roads=speeds.roads)
    >>> bool(speeds.ratios.loc["primary", "low"] < 1.4 < speeds.ratios.loc["primary", "high"])  # the truth of this log
    True
    """
    net = fit.roads
    if net is None:
        raise InputError("speeds of roads need a fit with roads: `calibrate(calls, stations, roads=net)`.")
    drives = fit.drives
    call = drives["call"].to_numpy()
    homes = fit.stations[["lon", "lat"]].to_numpy(float)[drives["station"].to_numpy()]
    places = fit.calls.locations[call]
    hour = hour_of_week(dispatch_times(fit.calls))[call] % 24
    minutes = drives["minutes"].to_numpy(float) / fit.law.hour_factors[hour]
    names, class_of_edge = np.unique(net.classes, return_inverse=True)
    ratios = np.full(len(names), fit.law.per_distance.value)
    fixed = float(fit.law.mean(np.zeros(1))[0])
    off_road = 0.0
    for attempt in range(PASSES):
        speeds = net.speed_limits / ratios[class_of_edge]
        on_class = net.minutes_by_class(homes, places, speeds=speeds, off_road_km=REACH_KM).to_numpy() / ratios
        if not attempt:
            off_road = np.maximum(drives["distance"].to_numpy(float) - on_class.sum(axis=1), 0)
        mean = np.maximum(fixed + off_road + on_class @ ratios, 1e-3)
        log_ratio = np.log(np.maximum(minutes, 0.5) / mean)
        middle = np.median(log_ratio)
        scale = np.median(np.abs(log_ratio - middle)) / 0.6745
        used = np.abs(log_ratio - middle) <= STRAY * scale
        weighted = np.column_stack([np.ones(len(mean)), on_class.sum(axis=1), on_class]) / mean[:, None]
        effects, covariance = _shrunken(weighted[used], ((minutes - off_road) / mean)[used])
        fixed = float(effects[0])
        ratios = np.clip(effects[1] + effects[2:], *SLOWEST)
    to_class = np.hstack([np.zeros((len(names), 1)), np.ones((len(names), 1)), np.eye(len(names))])
    error = np.sqrt(np.einsum("ci,ij,cj->c", to_class, covariance, to_class))
    columns = {"ratio": ratios, "low": np.maximum(ratios - Z90 * error, 0), "high": ratios + Z90 * error}
    table = pd.DataFrame(columns | {"minutes": on_class.sum(axis=0)}, index=pd.Index(names, name="road_class"))
    return RoadSpeeds(replace(net, speed_limits=net.speed_limits / ratios[class_of_edge]), table, fixed)


def _shrunken(design: FloatArray, response: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the effects of a linear model and their covariance; all but the first two are normal around 0.

    Their variance is the one of largest restricted likelihood (Henderson's mixed model equations).
    """
    gram, right, total = design.T @ design, design.T @ response, response @ response
    n, random = len(response), design.shape[1] - 2
    penalty = np.r_[0.0, 0.0, np.ones(random)]

    def solve(log_precision: float) -> tuple[FloatArray, FloatArray, float]:
        factor = linalg.cho_factor(gram + np.exp(log_precision) * np.diag(penalty))
        effects = linalg.cho_solve(factor, right)
        rest = max(float(total - effects @ right), 1e-12)
        misfit = 2 * np.log(np.diag(factor[0])).sum() - random * log_precision + (n - 2) * np.log(rest)
        return effects, linalg.cho_solve(factor, np.eye(len(right))) * rest / (n - 2), float(misfit)

    best = optimize.minimize_scalar(lambda x: solve(x)[2], bounds=(-8, 16), method="bounded")
    return solve(best.x)[:2]
