"""Live sheets: one HTML file in which a reader moves units and sees the results of the approximate model immediately.

The page computes everything itself (``pages/hypercube.js`` is a port of `emsopt.evaluators.approximate_hypercube`), so
it needs neither Python nor a server nor the internet. It draws with the code of `emsopt.maps.deployment_map`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..city import City
from ..city.deployment_space import check_sites
from ..city.travel import GAUSS_NODES, GAUSS_WEIGHTS, ResponseLaw
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, PathLike, Sites
from ..evaluators.evaluation import LATE_MIN, is_queue
from . import _colours
from ._page import Page
from .deployments import city_data


def live_sheet(
    city: City,
    deployments: Sites | Mapping[str, Sites],
    path: PathLike | None = None,
    threshold: float = LATE_MIN,
    *,
    capacity: str = "loss",
) -> Page:
    """Make a page in which units, demand and threshold can be changed, and which computes the results itself.

    The page is one file that works offline, on phones too. It shows the changed deployment beside the first one, finds
    the best relocation of one unit, and keeps its state in its address. Results are of `approximate_hypercube`.

    Parameters
    ----------
    city : City
        Needs ``atom_locations`` and ``site_locations``.
    deployments : sites, or dict of str to sites
        Site of each unit. The first deployment, usually today's, stays for comparison; the page begins with the last.
    path : path-like, optional
        Where to write the page; by default it is only returned, to be displayed in a notebook.
    threshold : float
        Minutes from which a response is late.
    capacity : {"loss", "queue"}
        Whether calls that find every unit busy are lost or wait, until the reader chooses otherwise.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> page = eo.maps.live_sheet(city, {"today": [0, 1, 2, 3], "proposed": [0, 1, 2, 8]})
    """
    _colours.require_locations(city)
    named = deployments if isinstance(deployments, Mapping) else {"today": deployments}
    if not named:
        raise InputError("`deployments` must hold at least one deployment, such as today's; got an empty mapping.")
    checked = {str(name): check_sites(city, sites) for name, sites in named.items()}
    near = np.sort(city.response_times[next(iter(checked.values()))], axis=0)[:2]  # these units answer most calls
    scene = {
        "title": city.name,
        "notes": city.notes,
        "city": city_data(city),
        "streets": None,
        "model": encode_model(city),
        "siteNames": list(city.site_names),
        "placeOf": _colours.locate_sites(city)[0].tolist(),
        "most": max(int(np.bincount(sites).max()) for sites in checked.values()),  # best moves put no more at a site
        "own": "your plan",
        "start": {"threshold": _validate.positive_number(threshold, "threshold", "min"), "queue": is_queue(capacity)},
        "scales": {"response": _scales(_colours.colour_limits(near)), "late": _scales(_colours.class_edges(0, 100))},
    }
    views = [{"name": name, "sites": sorted(sites.tolist())} for name, sites in checked.items()]
    page = Page("sheet", scene, views, 520)
    if path is not None:
        page.save(path)
    return page


def encode_model(city: City) -> dict[str, Any]:
    """Return the inputs of the approximate model for a city, unrounded, in the form that the page's script reads."""
    law = city.response_law
    if law is None:
        law = ResponseLaw.of(city.turnout_times, city.travel_times, 0.0, 0.0)  # without a law, times do not vary
    arrays = {
        "rates": city.arrival_rates,
        "turnout": city.turnout_times,
        "travel": city.travel_times,
        "service": city.service_times,
        "turnoutSpread": law.turnout_spread,
        "travelSpread": law.travel_spread,
        "nodes": GAUSS_NODES,
        "weights": GAUSS_WEIGHTS,
    }
    texts = {name: _encode_array(array, "<f8") for name, array in arrays.items()}  # little-endian on every machine
    texts["ranks"] = _encode_array(city.preference_ranks, "<u2")  # 16 bits are enough for ranks of sites
    return {"sites": city.n_sites, "atoms": city.n_atoms, "twins": city.twin_groups.tolist(), "arrays": texts}


def _encode_array(array: ArrayLike, kind: str) -> dict[str, str]:
    """Encode an array in base64; a matrix with equal columns is reduced to one column, or to one number."""
    array = np.asarray(array)
    if array.ndim == 2 and (array == array[:, :1]).all():  # most cities have one service time: one number, not N M
        array = array[:1, :1] if (array == array[0, 0]).all() else array[:, :1]
    return {"type": kind[1:], "text": b64encode(np.ascontiguousarray(array, kind).tobytes()).decode()}


def _scales(edges: FloatArray) -> list[dict[str, Any]]:
    """Return two colour scales: one for values, with the given class limits, and one for differences of values."""
    none = np.empty(0)
    around = np.median(np.diff(edges)) / 4 * (np.arange(8) - 3.5)  # differences are smaller than values
    return [_colours.colour_scale(none, edges), _colours.colour_scale(none, around, _colours.DIVERGING_COLOURS)]
