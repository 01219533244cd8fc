"""Animated maps of a day: units drive to the calls of a simulation or of a log, for notebooks or as one HTML file.

The page holds one row per call or drive and moves the units between them, so it needs no kernel and stays small. Drives
are straight lines, whatever the roads. In a day of the hypercube model or of a log, a unit is back at its station as
soon as it is free, as in the models. There, service times do not depend on drives, so that this may be before it
arrives. Simulated operations have drives to hospitals and back to a station too, and units that turn around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _validate
from ..calls.areas import cells
from ..calls.replaying import Replay
from ..errors import InputError
from ..evaluators.day import Day
from ..operations import Operations
from . import _colours
from ._page import Page
from .deployments import lat_lon, place_names, rounded

if TYPE_CHECKING:
    from .._types import ArrayLike, IntArray, Rng
    from ..city import City

TENTHS = 10  # times on the page are whole tenths of a minute


def replay_map(
    played: Day | Replay | Operations,
    *,
    start: float = 0.0,
    hours: float = 24.0,
    draw: int = 0,
    cell_km: float = 1.0,
    exact: bool = False,
    rng: Rng = None,
    height: int = 520,
) -> Page:
    """Draw units on their way to calls as an animation, with a clock, a slider, Play and Pause.

    Parameters
    ----------
    played : Day, Replay or Operations
        A simulated day (`emsopt.evaluators.simulate_day`), the replayed calls of a log (`emsopt.calls.replay`), or
        operations that were simulated with ``trace`` (`emsopt.operations.simulate`).
    start, hours : float
        What to show: hours from the first call of a log, or from the start of a day or simulation, and how many.
    draw : int
        Which draw of a `Replay`.
    cell_km, exact : float, bool
        For a log. If not ``exact``, calls lie at the centres of cells of this width, come at whole minutes, and the
        clock is shifted by a random number of hours and minutes, so that a call cannot be looked up directly. The
        page still has one row per call, and whoever has the log can match the sequence: do not publish it without
        permission. If ``exact``, the page holds places and times of single calls: do not pass it on.
    rng : numpy.random.Generator or seed, optional
        Of the shift of the clock.
    height : int
        Height in a notebook, pixels.

    Returns
    -------
    Page
        Displays in a notebook; ``save(path)`` writes one self-contained HTML file.

    Raises
    ------
    InputError
        If no call comes in these hours, the city or its hospitals have no coordinates, or an option is invalid.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> page = eo.maps.replay_map(eo.evaluators.simulate_day(city, [0, 3, 7, 9], rng=0))
    >>> len(page.html) < 1_000_000
    True
    """
    start = _validate.positive_number(start, "start", "h", zero=True)
    hours = _validate.positive_number(hours, "hours", "h")
    if isinstance(played, Operations):
        return _of_operations(played, 60 * start, 60 * (start + hours), height)
    if isinstance(played, Day):
        scene, places, sites, columns = _of_day(played)
        release = played.release
    else:
        _validate.instance(played, "played", Replay, "emsopt.evaluators.Day, emsopt.calls.Replay or Operations")
        draw = _validate.whole_number(draw, "draw", 0, len(played.unit) - 1)
        exact = _validate.truth(exact, "exact")
        scene, places, sites, columns = _of_log(played, draw, None if exact else cell_km)
        release = np.zeros(len(sites))
        if not exact:
            scene |= {"date": "", "clock": int(_validate.generator(rng).integers(24 * 60))}
    minute, place, unit, *after = columns
    begin, end = 60 * start, 60 * (start + hours)
    last = np.fmax(minute, minute + after[-1])  # a lost call has no later times
    shown = np.flatnonzero((minute < end) & (last >= begin))
    if len(shown) == 0:
        raise InputError(f"no call comes between {start:g} and {start + hours:g} h from the start. Choose other hours.")
    at = minute[shown] - begin
    times = {name: at + column[shown] for name, column in zip(("go", "there", "free"), after, strict=True)}
    events = {
        "at": _tenths(at),
        "place": place[shown].tolist(),
        "unit": unit[shown].tolist(),
        **{name: _tenths(column) for name, column in times.items()},
        "release": _tenths(np.maximum(release - begin, 0)),
    }
    early, answered = (times["free"] < times["there"]).sum(), (unit[shown] >= 0).sum()
    note = "Service times do not depend on drives, as in the models: "
    note += f"in {early} of {answered} calls, the unit is free, and back at its station, before it arrives."
    used, home = np.unique(sites, return_inverse=True)
    scene |= {
        "notes": f"{scene['notes']} {note}",
        "clock": (scene["clock"] + begin) % (24 * 60),
        "minutes": 60 * hours,
        "calls": places,
        "stations": [scene["stations"][k] for k in used.tolist()],
        "home": home.tolist(),
    }
    return Page("replay", scene, [{"name": "replay", **events}], height, None)


def _of_day(day: Day) -> tuple[dict[str, Any], list[list[float]], IntArray, tuple[Any, ...]]:
    """Return the scene, the places of the calls, the station of each unit, and a column per property of the calls."""
    city = day.city
    _colours.require_locations(city)
    scale, digits = (1, 5) if city.geographic else (1000, 1)
    which, _ = _colours.stations(city)
    scene = _scene_of_city(city, scale, digits) | {
        "title": f"{city.name}: {len(day.sites)} units, a simulated day",
        "notes": f"{city.notes} Units still busy with calls from before the start are counted, but not drawn.".strip(),
        "clock": 0,
    }
    columns = day.minute, day.atom, day.unit, day.turnout, day.response, day.service
    return scene, lat_lon(scale * np.array(city.atom_locations), digits), which[day.sites], columns


def _scene_of_city(city: City, scale: int, digits: int) -> dict[str, Any]:
    """Return what the map of a city shows whatever happens there."""
    return {
        "plane": not city.geographic,
        "bounds": lat_lon(scale * np.array(_colours.extent(city)), digits),
        "shapes": [
            {"type": shape["type"], "coordinates": rounded(shape["coordinates"], scale, digits)}
            for shape in city.atom_shapes or ()
        ],
        "stations": _stations(place_names(city), lat_lon(scale * _colours.stations(city)[1], digits)),
        "date": "",
    }


def _of_operations(played: Operations, begin: float, end: float, height: int) -> Page:
    """Return the page of the drives that a simulation recorded."""
    city, trace, locations = played.system.city, played.trace, played.system.hospital_locations
    if trace is None or not ((trace["leave"] < end) & (trace["until"] > begin)).any():
        raise InputError(
            f"`played` has no recorded drive between {begin / 60:g} and {end / 60:g} h; simulate with a larger `trace`."
        )
    _colours.require_locations(city)
    if played.system.hospitals and locations is None:
        raise InputError("the system has hospitals without places; make it with `hospital_locations`.")
    scale, digits = (1, 5) if city.geographic else (1000, 1)
    n, m = city.travel_times.shape
    which, stations = _colours.stations(city)
    hospitals = np.empty((0, 2)) if locations is None else locations
    last, trace = trace["leave"].max(), trace[trace["leave"] < end]
    sent = trace[(trace["goal"] >= n) & (trace["goal"] < n + m)]
    done = trace[trace["goal"] < n + m].groupby("unit")["leave"].shift(-1)  # the next drive that is not to a hospital
    goal = trace["goal"].to_numpy()
    place = np.where(goal < n, which[np.minimum(goal, n - 1)], goal - n + len(stations))
    gone = (sent["until"] > begin) | (done[sent.index].fillna(last) > begin)
    shown = sent[gone]
    scene = _scene_of_city(city, scale, digits) | {
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
        "at": _tenths(shown["leave"] - begin),
        "place": (shown["goal"] - n).tolist(),
        "unit": shown["unit"].tolist(),
        "go": _tenths(shown["leave"] - begin),
        "there": _tenths(shown["arrive"] - begin),
        "free": _tenths(done[shown.index].fillna(last) - begin),
        "release": [0] * len(played.sites),
        "drives": {
            "unit": trace["unit"].tolist(),
            "go": _tenths(trace["leave"] - begin),
            "there": _tenths(trace["arrive"] - begin),
            "to": place.tolist(),
        },
    }
    return Page("replay", scene, [{"name": "replay", **events}], height, None)


def _of_log(
    played: Replay, draw: int, cell_km: float | None
) -> tuple[dict[str, Any], list[list[float]], IntArray, tuple[Any, ...]]:
    """Return the same for calls of a log: in cells of this width (km), or with None as they were recorded."""
    calls, stations = played.calls, played.stations[["lon", "lat"]].to_numpy(float)
    when = played.dispatched
    minute = (when - when.min()).astype("timedelta64[s]").astype(float) / 60
    if cell_km is None:
        points, place, shapes = calls.locations, np.arange(len(calls)), []
        note = "Places and times of single calls: do not pass this page on."
    else:
        grid = cells(calls.locations, stations, cell_km)
        points, place, shapes, minute = grid.locations, grid.index, grid.shapes, np.floor(minute)
        note = (
            f"Calls lie at the centres of cells of {cell_km:g} km and the clock is shifted, so that a call cannot be "
        )
        note += (
            "looked up directly. Whoever has the log can still match the sequence: do not publish this page without "
        )
        note += "permission."
    corners = np.concatenate([points, stations])
    scene = {
        "title": f"Calls of a log, {len(played.deployment)} units",
        "notes": f"{note} Turnout, travel and service times are drawn from what was fitted to the log.",
        "plane": False,
        "bounds": lat_lon(np.array([corners.min(axis=0), corners.max(axis=0)]), 5),
        "shapes": [{"type": s["type"], "coordinates": rounded(s["coordinates"], 1, 5)} for s in shapes or ()],
        "stations": _stations(played.stations["name"].tolist(), lat_lon(stations, 5)),
        "date": str(when.min())[:10],
        "clock": int((when.min() - when.min().astype("datetime64[D]")).astype("timedelta64[s]").astype(int)) / 60,
    }
    columns = minute, place, played.unit[draw], played.turnout[draw], played.response[draw], played.service[draw]
    return scene, lat_lon(points, 5), played.deployment, columns


def _stations(names: list[str], points: list[list[float]]) -> list[dict[str, Any]]:
    """Return a dict per station, of its name and its point."""
    return [{"name": name, "at": at} for name, at in zip(names, points, strict=True)]


def _tenths(minutes: ArrayLike) -> list[int | None]:
    """Return times in whole tenths of a minute, with None where there is none."""
    return [round(TENTHS * t) if np.isfinite(t) else None for t in np.asarray(minutes, dtype=float).tolist()]
