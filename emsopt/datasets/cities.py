"""Cities and road networks: St. Paul, random cities on a grid, Auckland, Monaco and Luxembourg."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._files import locate, pickles
from ..city import travel
from ..city.city import City
from ..errors._types import IntArray, Rng
from ..errors._validate import choice, generator, positive_number, whole_number

if TYPE_CHECKING:
    from ..operations import System
    from ..roads import RoadNetwork

# "Optimizing Server Locations in Spatial Queues", section 7, and the code published with it.
ST_PAUL_CALLS_PER_DAY = 84.68
ST_PAUL_SERVED_PER_DAY = 42.17  # calls that one unit would serve if it never waited, mu
ST_PAUL_SERVICE_MIN = 24 * 60 / ST_PAUL_SERVED_PER_DAY
ST_PAUL_TURNOUT_MIN = 1.75

REPOSITORY = "YyyyyyiZ/Optimizing-Server-Locations-using-Bayesian-Optimization/6ef27802d854a08f9bc95be51631a7709c39aaae"
PUBLISHED_URL = f"https://raw.githubusercontent.com/{REPOSITORY}/Saint_Paul.pkl"
PUBLISHED_SHA256 = "2d75885d302108d9707ea2ed0a54c8d2c0f98b1b2e1c1ae31f58a76832b85e34"

GRID_SPEED_KMH = 40


def load_st_paul(version: str = "embedded") -> City:
    """Return St. Paul, Minnesota, as in "Optimizing Server Locations in Spatial Queues", section 7.

    Nine units are placed at 17 listed sites. Three stations are listed twice because they may hold two units (sites 0
    and 5, 1 and 6, 2 and 7). This leaves 14 distinct locations and 9,691 distinct deployments out of 24,310.

    Parameters
    ----------
    version : {"embedded", "published"}
        "embedded" needs only the package's own files. Its **demand is a proxy**, not call records: population in the
        census of 2010 times exp(-beta x km to downtown), with the one parameter beta fitted to figures in that paper
        and its first version, called the papers below. "published" has the demand shares that the papers' authors
        published with their code. The file ``Saint_Paul.pkl`` is looked for in ``$EMSOPT_DATA`` and its folder
        ``st_paul_published``; if it is not found, it is downloaded and its checksum verified. Like the papers, it
        combines the rates of one group of calls (84.68 per day, mu 42.17 per day) with the split of the other group.

    Returns
    -------
    City
        `City.notes` describe its demand. The atoms' outlines are schematic Voronoi cells, not census tracts, unless the
        version is "published" and ``tract_polygons_71.geojson`` is found in the same folders.

    Notes
    -----
    Travel times are computed from road distances by ``data/build_st_paul.py``. Turnout takes 1.75 min and
    service 1440/42.17 = 34.15 min everywhere. The embedded optimum is within 0.1 min of every optimum in the papers'
    tables. Part of this is circular: beta was fitted to three of their values, the p-median bound (5.33 min) and the
    optima at service rates of 42.17 and 10 per day (5.86 and 8.25 min). For the papers' figures use the published one.

    Examples
    --------
    >>> city = load_st_paul()
    >>> city.n_sites, city.n_atoms, round(24 * city.total_rate, 2)
    (17, 71, 84.68)
    """
    choice(version, "version", ("embedded", "published"))
    city = _read_package_city("st_paul")
    return _with_published_demand(city) if version == "published" else city


def _read_package_city(folder: str) -> City:
    """Load a city from a folder of the package's data as `City.load` does, without the slow import of pandas."""
    from .._files.geography import read_shapes

    path = locate.package_file(folder)
    about = json.loads((path / "city.json").read_text("utf-8"))
    tables = [(path / f"{name}.csv").read_text("utf-8").splitlines() for name in ("atoms", "sites", "travel_times")]
    (atoms, *places), (sites, *stations), (_, *minutes) = (np.array([*csv.reader(lines)][1:]).T for lines in tables)
    *where, rates = np.array(places, float)
    *homes, turnout, service = np.array(stations, float)
    return City(
        arrival_rates=rates,
        travel_times=np.array(minutes, float).T,
        turnout_times=turnout,
        service_times=service,
        atom_names=atoms,
        site_names=sites,
        atom_locations=np.column_stack(where),
        site_locations=np.column_stack(homes),
        atom_shapes=read_shapes(path / "atoms.geojson", atoms),
        # `version` is of the file's format, not of the city
        **{key: value for key, value in about.items() if key != "version"},
    )


def _with_published_demand(city: City) -> City:
    """Return St. Paul with the demand that the papers' authors published, and census tracts if their file is found."""
    from .._files.geography import read_shapes

    path = locate.find_data("st_paul_published/Saint_Paul.pkl", PUBLISHED_URL, PUBLISHED_SHA256)
    shares = np.ravel(pickles.read_arrays(path)["f"])  # key e would be the other group's split
    outlines = locate.find_local("st_paul_published/tract_polygons_71.geojson")
    kind = "schematic (Voronoi cells of the atoms), not census tracts"
    if outlines is not None:
        city = city.replace(atom_shapes=read_shapes(outlines, [str(k + 1) for k in range(city.n_atoms)]))
        kind = "census tracts, merged to atoms"
    return city.replace(
        arrival_rates=ST_PAUL_CALLS_PER_DAY / 24 * shares / shares.sum(),
        name="St. Paul, published demand",
        notes=f"Demand: shares of 71 atoms as published by the papers' authors (key f of Saint_Paul.pkl), "
        f"scaled to {ST_PAUL_CALLS_PER_DAY} calls a day. Outlines: {kind}.",
    )


def grid_city(
    n_sites: int = 30, units: int = 15, load: float = 0.5, *, rng: Rng = None, size: int = 10, geometry: str = "plane"
) -> City:
    """Return a random city on a square grid, as in the experiments of "Optimizing Server Locations in Spatial Queues".

    Parameters
    ----------
    n_sites : int
        Number of candidate sites N, at the centres of distinct random cells.
    units : int
        Fleet size p that ``load`` refers to.
    load : float
        Offered load per unit, lambda / (p mu). Arrival rates are scaled to it.
    rng : int, Generator or None
        Source of randomness.
    size : int
        Number of cells along each side. Each cell is one atom, 1 km wide.
    geometry : {"plane", "uniform"}
        "plane": straight lines between centres at 40 km/h. "uniform": every travel time is drawn independently between
        5 and 30 min, as in the code published with that paper; such times do not correspond to distances.

    Returns
    -------
    City
        Its coordinates are kilometres on a plane; its demand shares are drawn from (0, 1] and normalised. Turnout (1.75
        min) and service time (34.15 min everywhere) are those of St. Paul, because that paper does not state them.

    Examples
    --------
    >>> city = grid_city(30, units=15, load=0.5, rng=1)
    >>> city.n_sites, city.n_atoms, round(city.offered_load(15), 3)
    (30, 100, 0.5)
    """
    size = whole_number(size, "size")
    n_sites = whole_number(n_sites, "n_sites", 1, size**2)
    load = positive_number(load, "load")
    choice(geometry, "geometry", ("plane", "uniform"))
    draws = generator(rng)

    corners = np.stack(np.meshgrid(np.arange(size), np.arange(size)), axis=-1).reshape(-1, 2)
    centres = corners + 0.5
    cells = np.sort(draws.choice(size**2, n_sites, replace=False))
    demand = 1 - draws.random(size**2)  # in (0, 1], so that no atom is without demand
    if geometry == "plane":
        times = travel.plane_km(centres[cells], centres) / GRID_SPEED_KMH * 60
        how = f" of 1 km; straight lines at {GRID_SPEED_KMH} km/h."
    else:
        low, high = 5, 30  # minutes, as in the code published with the papers
        times = draws.uniform(low, high, (n_sites, size**2))
        how = f"; times drawn between {low} and {high} min, whatever the distance."
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    return City(
        arrival_rates=demand,
        travel_times=times,
        turnout_times=ST_PAUL_TURNOUT_MIN,
        service_times=ST_PAUL_SERVICE_MIN,
        atom_locations=centres,
        site_locations=centres[cells],
        atom_shapes=[{"type": "Polygon", "coordinates": [(corner + square).tolist()]} for corner in corners],
        geographic=False,
        name=f"grid city, {geometry}",
        notes=f"Random demand on {size} x {size} cells{how}",
    ).with_offered_load(load, units)  # only the shares were drawn: the load sets the rates


# The Auckland case of JEMSS.jl (github.com/uoa-ems-research/JEMSS.jl, data/cities/auckland).
DELAY_MIN, SCENE_MIN, HANDOVER_MIN, TRANSPORT_SHARE = 50 / 60, 12.0, 12.0, 0.8
STATIONS_OF_UNITS = (1, 2, 3, 3, 4, 4, 6, 7, 7, 9, 9, 10, 11, 11, 12, 14)  # by a local search of JEMSS, from 1


def load_auckland() -> tuple[System, IntArray]:
    """Return a system of Auckland, New Zealand, from a case of the simulator JEMSS, and a deployment of its 16 units.

    280 calls per day from 470 blocks of about 1.4 km, of three priorities with targets of 8, 8 and 20 minutes from the
    call; 14 stations, 4 hospitals, 16 units. Units reach low priorities without lights and sirens, and may be taken
    from them for high priorities. A call is dispatched after 50 s, keeps its unit on scene for 12 min (exponential),
    and is taken to the nearest hospital with probability 0.8, where the unit is free after another 12 min.

    **Demand is a stand-in**: where people lived in the census of 2013. Driving times follow from speeds by class of
    road, not from records.

    Source: the Auckland case of JEMSS.jl (Apache License 2.0), reduced as ``data/README.md`` describes; roads (c)
    OpenStreetMap contributors (ODbL); population Statistics New Zealand (CC BY 4.0).

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
    """
    import pandas as pd

    from ..operations import Duration, Priority, System

    folder = locate.package_file("auckland")
    places = pd.read_csv(folder / "places.csv")
    # rows are stored as differences, in whole multiples of 0.02 min
    urgent = np.load(folder / "steps.npz")["steps"].cumsum(axis=1, dtype=int) * 0.02
    minutes = np.stack([urgent, urgent * 1.42314])  # mode 0 with lights and sirens, mode 1 without
    kinds = {kind: np.flatnonzero(places["kind"] == kind) for kind in ("station", "atom", "hospital")}
    stations, atoms, hospitals = kinds.values()
    share = places["weight"].to_numpy()[atoms]
    where = places[["lon", "lat"]].to_numpy()
    travel, nearest = urgent[np.ix_(stations, atoms)], minutes[1][np.ix_(atoms, hospitals)].min(axis=1)
    names = places["name"].to_numpy()
    city = City(
        280 / 24 * share / share.sum(),  # 280 calls a day
        travel,
        turnout_times=0,
        service_times=DELAY_MIN + travel + SCENE_MIN + TRANSPORT_SHARE * (nearest + HANDOVER_MIN),
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
        Priority("high", 0.57, 8, DELAY_MIN, on_scene=on_scene, transport=TRANSPORT_SHARE, takes_from=("low",)),
        Priority("medium", 0.245, 8, DELAY_MIN, on_scene=on_scene, transport=TRANSPORT_SHARE),
        Priority("low", 0.185, 20, DELAY_MIN, mode=1, on_scene=on_scene, transport=TRANSPORT_SHARE),
    ]
    handover, locations = Duration(HANDOVER_MIN), where[hospitals]
    system = System(city, minutes, len(hospitals), None, priorities, handover, hospital_locations=locations)
    return system, np.array(STATIONS_OF_UNITS) - 1  # JEMSS counts from 1


ROADS_SOURCE = "https://raw.githubusercontent.com/lcodeca/"
LUST_URL = f"{ROADS_SOURCE}LuSTScenario/5edb7ecb9ad196c39172b6eb95d19ed789f4b1a6/scenario/lust.net.xml"
MOST_URL = f"{ROADS_SOURCE}MoSTScenario/b29b2f65f1096a9c69a601ec62a724815cb4a43f/scenario/in/most.net.xml"
PUBLISHED_ROADS = {  # the git blob is the checksum of the download
    "luxembourg": ("luxembourg/lust.net.xml", LUST_URL, "c507ce16eb340bede88ac0c8e74c19519e09409f"),
    "monaco, published": ("monaco_elevation/most.net.xml", MOST_URL, "6ffae75cfe63992c04a6395fbbe86cc39166140c"),
}

ROUTES = {
    "monaco": {"A": ("125974224#0", "157294578#3"), "B": ("214636589#0", "-196017194#1")},
    "luxembourg": {"A": ("-31118#2", "--32646#1"), "B": ("-30436#5", "-30946#0")},
    "auckland": {"A": ("road 2918", "road 776"), "B": ("road 891", "road 776")},
    "luxembourg, rebuilt": {"A": ("-31118#1", "--32646#1"), "B": ("-30436#1", "-30946")},
    "monaco, rebuilt": {"A": ("-271#4", "-2114"), "B": ("-1648#1", "3699#1")},
}
"""First and last edge of two routes per network, by ``net.name``; "monaco, published" has none.

Luxembourg: the edges of the paper, appendix B.2; in the rebuilt network, other pieces of the same streets. Monaco: the
paper's four ids do not exist there, so these are routes of similar extent: A from Cap-d'Ail along the coast to
Roquebrune, B from the port of Monaco up to La Turbie. Auckland: from the stations St John Western (A) and North Shore
(B) to Middlemore Hospital.

>>> ROUTES["monaco"]["A"]
('125974224#0', '157294578#3')
"""


def load_roads(name: str = "monaco") -> RoadNetwork:
    """Return a road network of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", or that of Auckland.

    Parameters
    ----------
    name : {"monaco", "luxembourg", "monaco, published", "auckland"}
        "monaco" is embedded: OpenStreetMap of March 2016, with turn restrictions, default speeds by road class, and a
        **terrain that is a surrogate** (`RoadNetwork.notes`). It covers the same place as the network of that paper,
        "monaco, published" (MoST scenario), whose heights come from an elevation model. "luxembourg" is the published
        network of the LuST scenario. It is flat, whereas that paper added elevations; no edge therefore recovers
        energy. Published networks are not part of this package: ``lust.net.xml`` and ``most.net.xml`` are sought in
        ``$EMSOPT_DATA`` and its folders ``luxembourg`` and ``monaco_elevation``. If only a rebuild from the same map is
        found there (``luxembourg_rebuilt.net.xml.gz``, ``monaco_rebuilt.net.xml.gz``), it is read instead, and ``name``
        and ``notes`` say so. Otherwise the published network is downloaded and its checksum verified. "auckland" is
        embedded: the main roads of the city of `load_auckland`, flat, with the speeds of that case, and few curves.

    Returns
    -------
    RoadNetwork
        The largest strongly connected part of the network. `ROUTES` lists routes by ``net.name``. An error is raised if
        a published network is not found and cannot be downloaded.

    Examples
    --------
    >>> load_roads("monaco")
    <RoadNetwork 'monaco': 3003 edges, 4654 connections, 473 km>
    """
    from ..roads import RoadNetwork

    if choice(name, "name", ("monaco", "luxembourg", "monaco, published", "auckland")) not in PUBLISHED_ROADS:
        return RoadNetwork.load(locate.package_file(name, "roads.json.gz"))
    (published, url, git_blob), place = PUBLISHED_ROADS[name], name.split(",")[0]
    rebuilt = locate.find_local(published.replace(Path(published).name, f"{place}_rebuilt.net.xml.gz"))
    if rebuilt is not None and locate.find_local(published) is None:
        net = RoadNetwork.from_sumo(rebuilt, name=f"{place}, rebuilt")
        note = "Not the published network, but a rebuild from its OpenStreetMap source."
        return replace(net, notes=f"{note} {net.notes}")
    return RoadNetwork.from_sumo(locate.find_data(published, url, git_blob), name=name)
