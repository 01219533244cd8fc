"""Animated maps of a day: units drive to the calls of a log or of simulated operations, in one HTML file.

The page holds one row per call or drive and moves the units itself. Drives are straight lines, not roads. In a day of a
log, a unit is back at its station as soon as it is free; as in the models, service times do not depend on drives, so
this may be before it arrives. Simulated operations also have drives to hospitals and back, and units that turn around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calls.areas import assign_to_cells
from ..calls.replaying import Replay
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, IntArray
from ..operations import Operations
from . import _colours
from ._page import PAGE_HEIGHT, Page
from .deployments import lat_lon, place_names, rounded_shapes

CELL_KM = 1.0  # calls of a log are moved to the centres of such cells, to hide addresses


def replay_map(played: Replay | Operations, *, start: float = 0.0, hours: float = 24.0) -> Page:
    """Draw units on their way to calls as an animation with a clock, which displays in a notebook.

    Its ``save(path)`` writes one HTML file. Raise InputError if no call comes in these hours, or the city or its
    hospitals have no coordinates.

    Parameters
    ----------
    played : Replay or Operations
        The replayed calls of a log (`emsopt.calls.replay`), of which the first draw is shown, or operations that were
        simulated with ``trace`` (`emsopt.operations.simulate`).
    start, hours : float
        Start of the animation, in hours after the first call of the log or the start of the simulation, and its length.

    Notes
    -----
    Calls of a log lie at the centres of cells of 1 km, come at whole minutes, and the clock is shifted by a random
    number of hours and minutes, so that a call cannot be looked up directly. The page still has one row per call, and
    whoever has the log can match the sequence: do not publish it without permission.

    Examples
    --------
    >>> import emsopt as eo
    >>> system, sites = eo.datasets.load_auckland()
    >>> page = eo.maps.replay_map(eo.operations.simulate(system, sites, calls=100, trace=300, rng=0))
    """
    start = _validate.positive_number(start, "start", "h", zero=True)
    hours = _validate.positive_number(hours, "hours", "h")
    if isinstance(played, Operations):
        return _page_of_operations(played, 60 * start, 60 * (start + hours))
    _validate.instance(played, "played", Replay, "emsopt.calls.Replay or emsopt.operations.Operations")
    scene, places, sites, columns = _scene_of_log(played)
    minute, place, unit, *after = columns
    begin, end = 60 * start, 60 * (start + hours)
    last = np.fmax(minute, minute + after[-1])  # a lost call has no later times
    shown = np.flatnonzero((minute < end) & (last >= begin))  # a call that is under way at the start is shown, too
    if len(shown) == 0:
        raise InputError(f"no call comes between {start:g} and {start + hours:g} h from the start. Choose other hours.")
    at = minute[shown] - begin
    times = {name: at + column[shown] for name, column in zip(("go", "there", "free"), after, strict=True)}
    events = {
        "at": _to_tenths(at),
        "place": place[shown].tolist(),
        "unit": unit[shown].tolist(),
        **{name: _to_tenths(column) for name, column in times.items()},
        "release": [0] * len(sites),
    }
    early, answered = (times["free"] < times["there"]).sum(), (unit[shown] >= 0).sum()
    note = "Service times do not depend on drives, as in the models: "
    note += f"in {early} of {answered} calls, the unit is free, and back at its station, before it arrives."
    used, home = np.unique(sites, return_inverse=True)
    scene |= {
        "notes": f"{scene['notes']} {note}",
        "clock": (int(_validate.generator(None).integers(24 * 60)) + begin) % (24 * 60),  # never seeded: a secret shift
        "minutes": 60 * hours,
        "calls": places,
        "stations": [scene["stations"][k] for k in used.tolist()],
        "home": home.tolist(),
    }
    return Page("replay", scene, [{"name": "replay", **events}], PAGE_HEIGHT)


def _page_of_operations(played: Operations, begin: float, end: float) -> Page:
    """Return the page of a simulation's recorded drives between minutes ``begin`` and ``end``."""
    city, trace, locations = played.system.city, played.trace, played.system.hospital_locations
    if trace is None or not ((trace["leave"] < end) & (trace["until"] > begin)).any():
        missing = f"no recorded drive between {begin / 60:g} and {end / 60:g} h"
        raise InputError(f"`played` has {missing}; simulate with a larger `trace`.")
    _colours.require_locations(city)
    if played.system.hospitals and locations is None:
        raise InputError("the system has hospitals without places; make it with `hospital_locations`.")
    scale, digits = (1, 5) if city.geographic else (1000, 1)  # metres, for the scale bar
    n, m = city.travel_times.shape
    which, stations = _colours.locate_sites(city)
    hospitals = np.empty((0, 2)) if locations is None else locations
    last, trace = trace["leave"].max(), trace[trace["leave"] < end]  # after the last drive nothing is known
    sent = trace[(trace["goal"] >= n) & (trace["goal"] < n + m)]  # goals are numbered: sites, atoms, hospitals
    done = trace[trace["goal"] < n + m].groupby("unit")["leave"].shift(-1)  # the next drive that is not to a hospital
    goal = trace["goal"].to_numpy()
    place = np.where(goal < n, which[np.minimum(goal, n - 1)], goal - n + len(stations))  # goals of sites become places
    drives = sent[(sent["until"] > begin) | (done[sent.index].fillna(last) > begin)]
    scene = {
        "plane": not city.geographic,
        "bounds": lat_lon(scale * np.array(_colours.extent(city)), digits),
        "shapes": rounded_shapes(city.atom_shapes, scale, digits),
        "stations": _station_entries(place_names(city), lat_lon(scale * stations, digits)),
        "date": "",
        "title": f"{city.name}: {len(played.sites)} units, simulated operations",
        "notes": f"{city.notes} A call appears when its unit sets out. What units do after their last recorded drive, "
        "and where they are when they go on duty, is not drawn.".strip(),
        "clock": begin % (24 * 60),
        "minutes": end - begin,
        "calls": lat_lon(scale * np.array(city.atom_locations), digits),
        "hospitals": lat_lon(scale * hospitals, digits),
        "home": which[played.sites].tolist(),
        "counted": ["units sent", "Units sent", "Mean drive, min"],
    }
    events = {
        "at": _to_tenths(drives["leave"] - begin),
        "place": (drives["goal"] - n).tolist(),
        "unit": drives["unit"].tolist(),
        "go": _to_tenths(drives["leave"] - begin),
        "there": _to_tenths(drives["arrive"] - begin),
        "free": _to_tenths(done[drives.index].fillna(last) - begin),
        "release": [0] * len(played.sites),
        "drives": {
            "unit": trace["unit"].tolist(),
            "go": _to_tenths(trace["leave"] - begin),
            "there": _to_tenths(trace["arrive"] - begin),
            "to": place.tolist(),
        },
    }
    return Page("replay", scene, [{"name": "replay", **events}], PAGE_HEIGHT)


def _scene_of_log(played: Replay) -> tuple[dict[str, Any], list[list[float]], IntArray, tuple[Any, ...]]:
    """Return the scene, the points of calls, the station of each unit, (p,), and columns of calls, (K,) each.

    The columns are the minute of dispatch, the index of the point, the unit, and the minutes from dispatch until the
    unit leaves, arrives and is free.
    """
    stations = played.stations[["lon", "lat"]].to_numpy(float)
    when = played.dispatched
    minute = np.floor((when - when.min()).astype("timedelta64[s]").astype(float) / 60)  # without seconds
    grid = assign_to_cells(played.calls.locations, stations, CELL_KM)
    note = (
        f"Calls lie at the centres of cells of {CELL_KM:g} km and the clock is shifted, so that a call cannot be "
        "looked up directly. Whoever has the log can still match the sequence: do not publish this page without "
        "permission."
    )
    corners = np.concatenate([grid.locations, stations])
    scene = {
        "title": f"Calls of a log, {len(played.deployment)} units",
        "notes": f"{note} Turnout, travel and service times are drawn from what was fitted to the log.",
        "plane": False,
        "bounds": lat_lon(np.array([corners.min(axis=0), corners.max(axis=0)]), 5),
        "shapes": rounded_shapes(grid.shapes, 1, 5),
        "stations": _station_entries(played.stations["name"].tolist(), lat_lon(stations, 5)),
        "date": "",
    }
    columns = minute, grid.index, played.unit[0], played.turnout[0], played.response[0], played.service[0]
    return scene, lat_lon(grid.locations, 5), played.deployment, columns


def _station_entries(names: list[str], points: list[list[float]]) -> list[dict[str, Any]]:
    """Return one dict per station with its name and its point, latitude first."""
    return [{"name": name, "at": at} for name, at in zip(names, points, strict=True)]


def _to_tenths(minutes: ArrayLike) -> list[int | None]:
    """Return times (min) as whole tenths of a minute, with None for NaN and infinite times."""
    return [round(10 * t) if np.isfinite(t) else None for t in np.asarray(minutes, dtype=float).tolist()]
