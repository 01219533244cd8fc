"""Cities with what happens between a call and the unit's return: Auckland, New Zealand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._files import locate
from ..city import City

if TYPE_CHECKING:
    from .._types import IntArray
    from ..operations import System

# The Auckland case of JEMSS.jl (github.com/uoa-ems-research/JEMSS.jl, data/cities/auckland).
CALLS_PER_DAY, UNITS = 280, 16
DELAY_MIN, SCENE_MIN, HANDOVER_MIN, TRANSPORTED = 50 / 60, 12.0, 12.0, 0.8
STATIONS_OF_UNITS = (1, 2, 3, 3, 4, 4, 6, 7, 7, 9, 9, 10, 11, 11, 12, 14)  # by a local search of JEMSS, from 1
UNIT_MIN = 0.02  # stored times are multiples
REGULAR = 1.42314  # ratio of driving times without and with lights and sirens


def load_auckland() -> tuple[System, IntArray]:
    """Return Auckland as in a case of the simulator JEMSS, and the deployment that comes with it.

    280 calls a day from 470 blocks of about 1.4 km, of three priorities with targets of 8, 8 and 20 minutes from the
    call; 14 stations, 4 hospitals, 16 units. Units reach low priorities without lights and sirens, and may be taken
    from them for high priorities. A call is dispatched after 50 s, keeps its unit on scene for 12 min (exponential),
    and is taken to the nearest hospital with probability 0.8, where the unit is free after another 12 min.

    **Demand is a stand-in**: where people lived in the census of 2013. Driving times follow from speeds by class of
    road, not from records.

    Source: the Auckland case of JEMSS.jl (Apache License 2.0), reduced; roads (c) OpenStreetMap contributors (ODbL);
    population Statistics New Zealand (CC BY 4.0). ``data/README.md`` of the source says how.

    Returns
    -------
    system : emsopt.operations.System
    sites : ndarray of int, shape (16,)
        Site of each unit, found by a local search of JEMSS. `System.city` has mean service times that include
        transport, so that it serves the hypercube evaluators too.

    Examples
    --------
    >>> system, sites = load_auckland()
    >>> system
    System(14 sites, 470 atoms, 4 hospitals, 3 priorities, 2 modes)
    >>> round(system.city.offered_load(len(sites)), 2)
    0.65
    """
    import pandas as pd

    from ..operations import Duration, Priority, System

    folder = locate.package_file("auckland")
    places = pd.read_csv(folder / "places.csv")
    urgent = np.load(folder / "steps.npz")["steps"].cumsum(axis=1, dtype=int) * UNIT_MIN
    minutes = np.stack([urgent, urgent * REGULAR])
    kinds = {kind: np.flatnonzero(places["kind"] == kind) for kind in ("station", "atom", "hospital")}
    stations, atoms, hospitals = kinds.values()
    share = places["weight"].to_numpy()[atoms]
    where = places[["lon", "lat"]].to_numpy()
    travel, nearest = urgent[np.ix_(stations, atoms)], minutes[1][np.ix_(atoms, hospitals)].min(axis=1)
    names = places["name"].to_numpy()
    city = City(
        CALLS_PER_DAY / 24 * share / share.sum(),
        travel,
        turnout_times=0,
        service_times=DELAY_MIN + travel + SCENE_MIN + TRANSPORTED * (nearest + HANDOVER_MIN),
        atom_names=names[atoms],
        site_names=names[stations],
        atom_locations=where[atoms],
        site_locations=where[stations],
        name="Auckland, New Zealand",
        notes="Demand is population in the census of 2013, a stand-in for calls. Case of JEMSS.jl (Apache-2.0); roads "
        "(c) OpenStreetMap contributors (ODbL); population Statistics New Zealand (CC BY 4.0).",
    )  # fmt: skip
    on_scene = Duration(SCENE_MIN)
    priorities = [
        Priority("high", 0.57, 8, DELAY_MIN, on_scene=on_scene, transport=TRANSPORTED, takes_from=("low",)),
        Priority("medium", 0.245, 8, DELAY_MIN, on_scene=on_scene, transport=TRANSPORTED),
        Priority("low", 0.185, 20, DELAY_MIN, mode=1, on_scene=on_scene, transport=TRANSPORTED),
    ]
    system = System(
        city,
        minutes,
        len(hospitals),
        priorities=priorities,
        handover=Duration(HANDOVER_MIN),
        hospital_locations=where[hospitals],
    )
    return system, np.array(STATIONS_OF_UNITS) - 1
