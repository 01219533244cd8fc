"""Loaders: the city and tables of published papers, random cities, road networks, stored studies and practice data.

==========================  ==================================================================================
`load_st_paul`              St. Paul, Minnesota: 71 atoms, 17 sites for 9 units; demand is a proxy by default
`paper_table`               tables of "Optimizing Server Locations in Spatial Queues", to compare your figures with
`load_claims`               what five papers claim: their number, ours, a verdict, and where it is shown
`grid_city`                 a random city on a square grid
`load_study`                stored results of the package's own studies
`load_roads`                the road networks of Monaco and Luxembourg, and `ROUTES` through them
`practice_calls`            a log of calls and the stations of a fictitious town, with some errors to find
`write_templates`           template files for your own calls and stations
==========================  ==================================================================================

The embedded St. Paul is built by ``data/build_st_paul.py``. Sources and licences of all data are in
``emsopt/data/LICENSES.md``.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ._files import atomic, locate, pickles
from ._types import PathLike, Rng
from ._validate import choice, generator, positive_number, whole_number
from .city import travel
from .city.city import City
from .errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from .calls import CallLog
    from .roads import RoadNetwork

# "Optimizing Server Locations in Spatial Queues", section 7, and the code published with it.
ST_PAUL_CALLS_PER_DAY = 84.68
ST_PAUL_SERVED_PER_DAY = 42.17  # calls that one unit would serve if it never waited, mu
ST_PAUL_SERVICE_MIN = 24 * 60 / ST_PAUL_SERVED_PER_DAY
ST_PAUL_TURNOUT_MIN = 1.75

PUBLISHED = "YyyyyyiZ/Optimizing-Server-Locations-using-Bayesian-Optimization/6ef27802d854a08f9bc95be51631a7709c39aaae"
PUBLISHED_URL = f"https://raw.githubusercontent.com/{PUBLISHED}/Saint_Paul.pkl"
PUBLISHED_SHA256 = "2d75885d302108d9707ea2ed0a54c8d2c0f98b1b2e1c1ae31f58a76832b85e34"

LUST = "lcodeca/LuSTScenario/5edb7ecb9ad196c39172b6eb95d19ed789f4b1a6"
LUXEMBOURG_URL = f"https://raw.githubusercontent.com/{LUST}/scenario/lust.net.xml"
LUXEMBOURG_GIT_BLOB = "c507ce16eb340bede88ac0c8e74c19519e09409f"

ROUTES = {
    "monaco": {"A": ("125974224#0", "157294578#3"), "B": ("214636589#0", "-196017194#1")},
    "luxembourg": {"A": ("-31118#2", "--32646#1"), "B": ("-30436#5", "-30946#0")},
    "luxembourg, rebuilt": {"A": ("-31118#1", "--32646#1"), "B": ("-30436#1", "-30946")},
}
"""First and last edge of two routes per network. Luxembourg: the edges of the paper, appendix B.2; in the rebuilt
network, other pieces of the same streets. Monaco: the paper's four ids do not exist there, so these are routes of
similar extent: A from Cap-d'Ail along the coast to Roquebrune, B from the port of Monaco up to La Turbie."""

VERDICTS = ("reproduced", "in part", "refuted", "cannot be tested")  # of `load_claims`

GRID_SPEED_KMH = 40
GRID_UNIFORM_MIN = (5, 30)  # as in the code published with the papers


def load_st_paul(version: str = "embedded", *, call_group: str = "f") -> City:
    """Return St. Paul, Minnesota, as in "Optimizing Server Locations in Spatial Queues", section 7.

    Nine units are placed at 17 listed sites. Three stations are listed twice because they may hold two units (sites 0
    and 5, 1 and 6, 2 and 7). This leaves 14 distinct locations and 9,691 distinct deployments out of 24,310.

    Parameters
    ----------
    version : {"embedded", "published"}
        "embedded" needs only the package's own files. Its **demand is a proxy**, not call records: population in the
        census of 2010 times exp(-beta x km to downtown), with the one parameter beta fitted to figures in
        "Optimizing Server Locations in Spatial Queues" and its first version, called the papers below.
        "published" has the demand shares that the papers' authors published with their code. The file
        ``Saint_Paul.pkl`` is looked for in ``$EMSOPT_DATA`` and ``$EMSOPT_DATA/st_paul_published``; if it is not found,
        it is downloaded and its checksum verified.
    call_group : {"f", "e"}
        Which of the two demand splits in the authors' file to use. The papers combine the rates of one group of calls
        (84.68 per day, mu 42.17 per day) with the split of the other group, key ``f``; use it to reproduce their
        figures. Key ``e`` is the split that belongs to these rates.

    Returns
    -------
    City
        `City.notes` describe its demand. The atoms' outlines are schematic Voronoi cells, not census tracts, unless the
        version is "published" and ``tract_polygons_71.geojson`` is found in the same folders.

    Raises
    ------
    DataUnavailableError
        If the published file is not found and cannot be downloaded.

    Notes
    -----
    Travel times are computed from road distances by `emsopt.city.travel.st_paul_law`. Turnout takes 1.75 min and
    service 1440/42.17 = 34.15 min everywhere. The embedded optimum is within 0.1 min of every optimum in the papers'
    tables; for higher accuracy use the published version.

    Examples
    --------
    >>> city = load_st_paul()
    >>> city.n_sites, city.n_atoms, round(24 * city.total_rate, 2)
    (17, 71, 84.68)
    """
    choice(version, "version", ("embedded", "published"))
    choice(call_group, "call_group", ("f", "e"))
    city = City.load(locate.package_file("st_paul"))
    if version == "published":
        return _with_published_demand(city, call_group)
    if call_group != "f":
        raise InputError(
            f"`call_group` requires version='published'; got call_group={call_group!r}, version='embedded'."
        )
    return city


def _with_published_demand(city: City, call_group: str) -> City:
    """Return the city with the authors' demand and, if the file is found, the outlines of census tracts."""
    from ._files.formats import read_shapes

    path = locate.find_data("st_paul_published/Saint_Paul.pkl", PUBLISHED_URL, PUBLISHED_SHA256)
    shares = np.ravel(pickles.read_arrays(path, PUBLISHED_SHA256)[call_group])
    outlines = locate.find_local("st_paul_published/tract_polygons_71.geojson")
    kind = "schematic (Voronoi cells of the atoms), not census tracts"
    if outlines is not None:
        city = city.replace(atom_shapes=read_shapes(outlines, [str(k + 1) for k in range(city.n_atoms)]))
        kind = "census tracts, merged to atoms"
    return city.replace(
        arrival_rates=ST_PAUL_CALLS_PER_DAY / 24 * shares / shares.sum(),
        name="St. Paul, published demand" + ("" if call_group == "f" else f" ({call_group})"),
        notes=f"Demand: shares of 71 atoms as published by the papers' authors (key {call_group} of Saint_Paul.pkl), "
        f"scaled to {ST_PAUL_CALLS_PER_DAY} calls a day. Outlines: {kind}.",
    )


def paper_table(number: int) -> "pd.DataFrame":
    """Return a table of "Optimizing Server Locations in Spatial Queues", for comparison with your own figures.

    The paper has two versions.

    Parameters
    ----------
    number : {1, 2, 3}
        1: St. Paul by offered load per unit (both versions); 2: utilisation of ambulances in 17 cities of the United
        States; 3: St. Paul by service rate with bounds (first version only).

    Returns
    -------
    DataFrame
        1: ``offered_load`` (rounded; 0.225 is the original load, more precisely 0.2231), ``optimum_min`` and
        ``p_median_min``, the mean response (min) of the best and of the p-median deployment. 2: ``city``;
        ``calls_per_year``; ``calls_per_minute``; ``ambulances``; ``utilization``, a fraction, as printed; and ``note``,
        which is empty unless the row contradicts itself. 3: ``mu_per_day`` (42.17 is the original rate, printed as
        42), ``optimum_min``, ``lower_bound_min``, ``upper_bound_min``. The methods SparBL and GP-pM reach the
        optimum in every row of tables 1 and 3.

    Notes
    -----
    At the original rate, table 1 lists 6.01 min for the p-median deployment, but table 3 lists 5.92 min for the same
    quantity, its upper bound. The published inputs yield 5.92 min.

    The paper estimates table 2 from the survey of Firehouse Magazine, 2019, and assumes St. Paul's service time for
    every city. ``calls_per_year / (365 * ambulances * 42.17)`` is within 0.004 of every ``utilization``, but no row
    agrees to the printed digit: the first seven rows are lower by at most 0.6 %, as if service took 34.0 min, and the
    others higher by up to 1.2 %, as if it took 34.46 min, whereas 1440/42.17 is 34.15 min. St. Paul's 0.07 calls per
    minute should read 0.06.
    """
    import pandas as pd

    number = whole_number(number, "number", 1, 3)
    return pd.read_csv(locate.package_file("papers", f"table_{number}.csv"), keep_default_na=False)


def load_claims(paper: str = "", place: str = "") -> "pd.DataFrame":
    """Return the register of claims: what the five papers say, what we found, and where that is shown.

    Parameters
    ----------
    paper : str
        "server locations" is "Optimizing Server Locations in Spatial Queues"; "server locations, version one" is its
        first version; "navigation" is "Bayesian Analysis of Combinatorial Gaussian Process Bandits"; "bocvs" is
        "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs"; "boke" is "Bayesian
        Optimization by Kernel Regression and Density-based Exploration". All five if left out.
    place : str
        Return only claims whose place in the paper begins so, such as "Table 1".

    Returns
    -------
    DataFrame
        One row per claim, in the order of the papers. No two claims of a paper have the same ``place``. ``claim`` is
        in our words; ``theirs`` and ``ours`` are the numbers that the paper and this package give, with the ``error``
        of ours. ``verdict`` is "reproduced", "in part", "refuted" or "cannot be tested", and ``why`` gives the reason.
        ``evidence`` is a test that holds the row (``tests/FILE.py::NAME``) or a section of a notebook
        (``notebooks/FILE.ipynb#HEADING``). All columns are strings; what does not apply is empty.

    Examples
    --------
    >>> claim = load_claims("server locations", "Theorem 2").iloc[0]
    >>> claim.theirs, claim.ours, claim.verdict
    ('5.33 min at St. Paul', '5.33 min (published), 5.37 (embedded)', 'reproduced')
    """
    import pandas as pd

    claims = pd.read_csv(locate.package_file("papers", "claims.csv"), dtype=str, keep_default_na=False)
    if paper:
        claims = claims[claims["paper"] == choice(paper, "paper", tuple(claims["paper"].unique()))]
    return claims[claims["place"].str.startswith(place)]


def grid_city(
    n_sites: int = 30,
    units: int = 15,
    load: float = 0.5,
    *,
    rng: Rng = None,
    size: int = 10,
    geometry: str = "plane",
) -> City:
    """Return a random city on a square grid.

    As in the experiments of "Optimizing Server Locations in Spatial Queues", it has 100 atoms on a 10 x 10 grid by
    default.

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
    units = whole_number(units, "units")
    load = positive_number(load, "load")
    choice(geometry, "geometry", ("plane", "uniform"))
    draws = generator(rng)

    corners = np.stack(np.meshgrid(np.arange(size), np.arange(size)), axis=-1).reshape(-1, 2)
    centres = corners + 0.5
    cells = np.sort(draws.choice(size**2, n_sites, replace=False))
    demand = 1 - draws.random(size**2)
    if geometry == "plane":
        times = travel.constant_speed(GRID_SPEED_KMH)(travel.plane_km(centres[cells], centres))
        how = f" of 1 km; straight lines at {GRID_SPEED_KMH} km/h."
    else:
        low, high = GRID_UNIFORM_MIN
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
    ).with_offered_load(load, units)


def load_study(name: str) -> "pd.DataFrame":
    """Return the stored results of a study, as written by the script that ran it.

    A regret is how much worse a method did than the best possible choice.

    Parameters
    ----------
    name : str
        "approximation_error_15": mean response by the exact and by the approximate hypercube (``exact_min``,
        ``approximate_min``) and the largest error of a unit's utilisation in 100 random cities of 15 units for each
        load and geometry; "approximation_error_20" and "approximation_error_30" for fewer cities, those of 30 units
        simulated, with half the width of the 95 % confidence interval (``half_width_min``).
        "approximation_error_st_paul": by load, the errors of the mean response (approximate minus
        exact, min) over all deployments of St. Paul, summarised in one row. All are written by
        ``benchmarks/approximation_error.py``.

        "location_grid", "location_st_paul", "location_late", "location_long": the ``best`` value of each run by
        ``evaluation``, one row per improvement and one for the end, with the optimizer's ``cpu_seconds``, the best
        known value (``best_known``) and the value of the p-median deployment (``p_median``); "location_tables": only
        the last row of each run. Read them with `emsopt.study.outcomes`. Written by ``benchmarks/location_study.py``.

        "navigation_agents", "navigation_parametrisation", "navigation_lengthscale", "navigation_sparse": cumulative
        regret (Wh, rectified, as `emsopt.bandits.navigation` defines it) and the number of distinct edges driven, at
        every tenth round or less often, for five runs of every policy on each route; the last two cover only Monaco,
        with three runs. "navigation_agents" also has ``excess_energy``, the expected energy up to the round above that
        of the path of least rectified cost (Wh, not rectified; not for "gp-ts-joint", in Luxembourg up to round 150),
        and further runs of 150 rounds: fifteen in Monaco, five in Luxembourg. "navigation_shifted": the same in Monaco
        with the potential energy subtracted before rectifying. "navigation_exploration": each edge driven in the first
        of these runs, with the number of visits and the round of the first visit. Written by
        ``benchmarks/navigation_study.py``.

        "bocvs": which variables to control. One row per run and amount spent (``cost``): the number of ``plays`` so
        far, how many of them played the cheapest set whose value is within the tolerance (``on_target``), the regrets
        ``simple_regret``, ``quality_regret``, ``cost_regret`` and ``weighted_regret`` that
        `emsopt.optimizers.control.regret` defines, the share of played sets whose mean cost lies within the confidence
        radius of its estimate (``covered``), and the largest error of such an estimate (``cost_error``). Read it with
        `emsopt.optimizers.control_verdicts` and `control_regrets`. "bocvs_horizon": regrets by budget of the method for
        unknown costs and of UCB-CVS. Both are written by ``benchmarks/bocvs_study.py``. "bocvs_bounds": regrets by
        number of plays, with the bounds of the theorems; "bocvs_exploration": in how many plays exactly the acceptable
        sets are feasible, by length of the exploration. Both are written by ``benchmarks/bocvs_theory_study.py``.

        "boke_noise_free_curves", "boke_noisy_curves", "boke_sprinkler_curves", "boke_tuning_curves": mean, median and
        quartiles of the simple regret (in tuning: 1 - R²) of the methods on boxes after every other ``evaluation``,
        with the optimizer's mean ``cpu_seconds``; "boke_noise_free_ends" and so on: the final regret of each run, for
        thirty seeds, ten in tuning. "boke_noise": with noise, regrets of the recommended, the luckiest and the best
        point of each run. "boke_fill": fill distance of designs. Written by ``benchmarks/boke_study.py``.
        "boke_complexity": CPU seconds of the parts of an optimizer's step by number of points t, written by
        ``benchmarks/boke.py``.

    Returns
    -------
    DataFrame
    """
    import pandas as pd

    files = {path.name.split(".")[0]: path for path in sorted(locate.package_file("studies").iterdir())}
    return pd.read_csv(files[choice(name, "name", tuple(files))])


def practice_calls() -> "tuple[CallLog, pd.DataFrame]":
    """Return a call log and the stations of a fictitious town, for practice.

    The log covers sixteen weeks and was generated by ``data/build_practice.py`` with a fixed seed. It contains errors
    for `emsopt.calls.check_calls` to find: missing, swapped and distant locations, missing times, repeated calls, one
    address with very many calls, and two days without records.

    Returns
    -------
    calls : emsopt.calls.CallLog
    stations : DataFrame
        ``name``, ``turnout_min``, ``lon``, ``lat``.

    Examples
    --------
    >>> calls, stations = practice_calls()
    >>> len(stations)
    10
    """
    from .calls import read_calls, read_stations

    folder = locate.package_file("practice")
    return read_calls(folder / "calls.csv"), read_stations(folder / "stations.csv")


def write_templates(folder: PathLike) -> list[Path]:
    """Write templates of the files that `emsopt.calls` reads, with example lines, and return their paths.

    Parameters
    ----------
    folder : path_like
        Created if it does not exist. Existing files are never overwritten.

    Returns
    -------
    list of pathlib.Path
        Paths of ``calls.csv`` and ``stations.csv``.

    Raises
    ------
    InputError
        If one of the files already exists, or the path cannot be used as a folder.
    WriteError
        If the disk is full or read-only, or permission is denied.
    """
    target = atomic.make_folder(folder)
    sources = {target / source.name: source for source in sorted(locate.package_file("templates").iterdir())}
    for path in sources:
        if path.exists():
            raise InputError(f"{path} already exists and was left unchanged. Choose another folder.")
    written = []
    try:
        for path, source in sources.items():
            written.append(atomic.write_file(path, source.read_bytes()))
    except BaseException:
        for path in written:
            path.unlink()
        raise
    return written


def load_roads(name: str = "monaco") -> "RoadNetwork":
    """Return a road network of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4.

    Parameters
    ----------
    name : {"monaco", "luxembourg"}
        "monaco" is embedded: OpenStreetMap of March 2016, with turn restrictions, default speeds by road class, and a
        **terrain that is a surrogate** (`RoadNetwork.notes`). It covers the same place as the network of that paper,
        which is not part of this package. "luxembourg" is the published network of the LuST scenario. It is flat,
        whereas that paper added elevations; no edge therefore recovers energy. ``lust.net.xml`` is searched in
        ``$EMSOPT_DATA`` and ``$EMSOPT_DATA/luxembourg``. If only ``luxembourg_rebuilt.net.xml.gz`` is found, a rebuild
        from the same map, it is read instead, and ``notes`` says so. Otherwise the published network is downloaded and
        its checksum verified.

    Returns
    -------
    RoadNetwork
        The largest strongly connected part of the network. `ROUTES` lists routes by ``net.name``.

    Raises
    ------
    DataUnavailableError
        If the Luxembourg network is not found and cannot be downloaded.

    Examples
    --------
    >>> net = load_roads("monaco")
    >>> net
    <RoadNetwork 'monaco': 3003 edges, 4654 connections, 473 km>
    >>> path = net.shortest_path(net.lengths, *ROUTES["monaco"]["B"])
    >>> len(path), round(float(net.lengths[path].sum()) / 1000, 1)
    (53, 8.0)
    """
    from .roads import RoadNetwork

    if choice(name, "name", ("monaco", "luxembourg")) == "monaco":
        return RoadNetwork.load(locate.package_file("monaco", "roads.json.gz"))
    published = "luxembourg/lust.net.xml"
    rebuilt = locate.find_local("luxembourg/luxembourg_rebuilt.net.xml.gz")
    if rebuilt is not None and locate.find_local(published) is None:
        net = RoadNetwork.from_sumo(rebuilt, name="luxembourg, rebuilt")
        note = "Not the published LuST network, but a rebuild from its OpenStreetMap source."
        return replace(net, notes=f"{note} {net.notes}")
    path = locate.find_data(published, LUXEMBOURG_URL, git_blob=LUXEMBOURG_GIT_BLOB)
    return RoadNetwork.from_sumo(path, name="luxembourg")
