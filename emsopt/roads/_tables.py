"""Read a road network from two tables: nodes with coordinates, and arcs with distances and times.

Column names are case-insensitive, and the first of these that a table has is used:

========  ===============================================================================================
nodes     name `NODE_COLUMNS`; coordinates ``lon, lat`` or ``x, y`` (degrees, or metres on a plane); optional:
          ``offRoadAccess``, 0 where vehicles cannot leave the road
arcs      ends `TAIL_COLUMNS`, `HEAD_COLUMNS`; distance `DISTANCE_COLUMNS`, by default the straight line; time
          `TIME_COLUMNS`, the unit by the name, or speed `SPEED_COLUMNS` in km/h; optional: class `CLASS_COLUMNS` and
          id `NODE_COLUMNS`
========  ===============================================================================================

Columns ``x, y`` are taken for degrees if all values could be. An arc leads straight from node to node, one way. Files
may begin with other lines before the names of the columns, as those of the simulator JEMSS do.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._files.columns import LATITUDE, LONGITUDE, Table, texts
from .._files.formats import READ_ERRORS, Upload, read_csv
from .._files.geography import read_degrees
from ..city.travel import EARTH_RADIUS_KM, central_angle
from ..errors import InputError, _validate
from ..errors._types import FloatArray, PathLike
from .shortest_paths import MAX_LENGTH_M, MAX_SPEED_M_S, legal_turns

NODE_COLUMNS = ("index", "id", "node", "name", "osmid")
TAIL_COLUMNS = ("fromnode", "from_node", "from", "source", "tail", "u")
HEAD_COLUMNS = ("tonode", "to_node", "to", "target", "head", "v")
CLASS_COLUMNS = ("class", "road_class", "highway", "type")
DISTANCE_COLUMNS = {"distance": 1000.0, "distance_km": 1000.0, "length_km": 1000.0, "distance_m": 1.0, "length_m": 1.0}
DISTANCE_COLUMNS |= {"length": 1.0}  # metres, as osmnx writes them
TIME_COLUMNS = {"minutes": 1.0, "time_min": 1.0, "seconds": 1 / 60, "time_s": 1 / 60, "travel_time": 1 / 60}
TIME_COLUMNS |= {"hours": 60.0, "time_h": 60.0, "mode_1": 1440.0}  # mode_1 is in days, as JEMSS writes it
SPEED_COLUMNS = ("speed_kmh", "speed_kph", "maxspeed")
MIN_LENGTH_M = 0.1  # nodes may coincide, but a length must be above 0
FILE_NAMES = ("nodes.csv", "arcs.csv")


def read_tables(
    nodes: pd.DataFrame | PathLike, arcs: pd.DataFrame | PathLike | None, *, two_way: bool
) -> dict[str, Any]:
    """Return the keyword arguments of `RoadNetwork` from tables of nodes and arcs."""
    node, arc = map(Table.of, _frames(nodes, arcs), ("nodes", "arcs"))
    names = _cell_texts(node, NODE_COLUMNS, "a column 'index' or 'id', the name of each node")
    row = pd.Series(np.arange(len(names)), index=pd.Index(_validate.names(names, "nodes", len(names), "node")))
    points, geographic = _coordinates(node)
    ends = []
    for options, what in ((TAIL_COLUMNS, "a column 'fromNode'"), (HEAD_COLUMNS, "a column 'toNode'")):
        named = _cell_texts(arc, options, what)
        found = row.reindex(named)
        if found.isna().any():
            k = int(found.isna().to_numpy().argmax())
            raise InputError(f"{arc.where}, row {k + 1}: there is no node {named[k]!r} in {node.where}.")
        ends.append(found.to_numpy(dtype=np.int64))
    tails, heads = ends
    a, b = points[tails], points[heads]
    straight = 1000 * EARTH_RADIUS_KM * central_angle(a, b) if geographic else np.hypot(*(b - a).T)
    lengths = np.maximum(_lengths(arc, straight), MIN_LENGTH_M)
    speeds = _speeds(arc, lengths)
    classes = ["unknown"] * len(tails)
    if key := arc.column(CLASS_COLUMNS):
        classes = texts(arc.frame[key])
    elif "offroadaccess" in node.frame:
        access = node.numbers("offroadaccess", "0 or 1", low=0, high=1)
        # `emsopt.roads.snapping` treats motorways as roads that cannot be left
        classes = np.where((access[tails] == 0) & (access[heads] == 0), "motorway", "unknown").tolist()
    numbered = [f"arc {k + 1}" for k in range(len(tails))]
    ids = _cell_texts(arc, NODE_COLUMNS, "") if arc.column(NODE_COLUMNS) else numbered
    if _validate.as_bool(two_way, "two_way"):
        tails, heads = np.append(tails, heads), np.append(heads, tails)
        lengths, speeds, classes = np.tile(lengths, 2), np.tile(speeds, 2), np.tile(classes, 2).tolist()
        ids += [f"-{name}" for name in ids]
    return {
        "lengths": lengths,
        "speed_limits": speeds,
        "connections": legal_turns(tails, heads),
        "ids": ids,
        "classes": classes,
        "polylines": list(points[np.column_stack([tails, heads])]),
        "geographic": geographic,
        "notes": f"From tables of {len(names):,} nodes and {len(arc.frame):,} arcs, which are straight lines.",
    }


def _frames(nodes: pd.DataFrame | PathLike, arcs: pd.DataFrame | PathLike | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of nodes and arcs; without ``arcs``, ``nodes`` is a folder or .zip file with `FILE_NAMES`."""
    if arcs is None:
        if isinstance(nodes, pd.DataFrame):
            raise InputError("`arcs` is missing: give a table of nodes and a table of arcs.")
        path = _validate.path(nodes, "nodes")
        if not path.is_dir():
            wanted = f"a folder or a .zip file with {' and '.join(FILE_NAMES)}"
            return _read_zip(_validate.existing_file(path, "nodes", wanted))
        nodes, arcs = path / FILE_NAMES[0], path / FILE_NAMES[1]
    first, second = (
        each if isinstance(each, pd.DataFrame) else _read_table(_validate.existing_file(each, name, file))
        for each, name, file in zip((nodes, arcs), ("nodes", "arcs"), FILE_NAMES, strict=True)
    )
    return first, second


def _read_zip(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of nodes and arcs in a .zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            members = [name for file in FILE_NAMES for name in names if name.split("/")[-1] == file]
            if len(members) != len(FILE_NAMES):
                raise InputError(f"{path} must hold {' and '.join(FILE_NAMES)}; it holds {', '.join(names[:9])}.")
            contents = [Upload(name, archive.read(name)) for name in members]
    except READ_ERRORS as error:
        raise InputError(f"{path} is damaged or not a .zip file ({error}).") from error
    return _read_table(contents[0]), _read_table(contents[1])


def _read_table(file: Path | Upload) -> pd.DataFrame:
    """Read a table from a .csv file, skipping the lines before the names of the columns."""
    with file.open("rb") as stream:
        lines = stream.read().splitlines()
    for k, line in enumerate(lines[:20]):
        cells = {cell.strip(b' "').lower().decode(errors="replace") for cell in line.split(b",")}
        if k and not cells.isdisjoint({"x", *LONGITUDE, *TAIL_COLUMNS}):  # line 0 is the usual case
            rows = [line.rstrip(b","), *(row for row in lines[k + 1 :] if row.strip(b", "))]
            return read_csv(Upload(file.name, b"\n".join(rows)))
    return read_csv(file)


def _cell_texts(table: Table, options: tuple[str, ...], noun: str) -> list[str]:
    """Return the cells of the first of the columns ``options`` that a table has, as text, without a final ".0"."""
    return [cell.removesuffix(".0") for cell in texts(table.frame[table.require(options, noun)])]


def _coordinates(nodes: Table) -> tuple[FloatArray, bool]:
    """Return the coordinates of the nodes, shape (n, 2), and whether they are degrees."""
    if nodes.column(LONGITUDE + LATITUDE):
        return read_degrees(nodes), True
    x, y = (nodes.require((key,), "columns 'lon' and 'lat', or 'x' and 'y'") for key in "xy")
    points = np.column_stack([nodes.numbers(key, "degrees or metres") for key in (x, y)])
    return points, bool((np.abs(points) <= (180, 90)).all())


def _lengths(arcs: Table, straight: FloatArray) -> FloatArray:
    """Return the lengths of arcs (m), by default ``straight``; raise if the median ratio to that is 50 or more."""
    key = arcs.column(DISTANCE_COLUMNS)
    if key is None:
        return straight
    metres = DISTANCE_COLUMNS[key]
    lengths = metres * arcs.numbers(key, "a distance of at least 0", low=0, high=MAX_LENGTH_M / metres)
    apart = straight > MIN_LENGTH_M  # the nodes may coincide
    ratio = float(np.median(lengths[apart] / straight[apart])) if apart.any() else 1.0
    if ratio >= 50:  # metres taken for km give 1000; no real detour comes near
        raise InputError(
            f"{arcs.where}, column {key!r}: most distances are {ratio:.3g} times the straight lines between their "
            "nodes. Name the column by its unit: 'distance_km', 'distance_m'."
        )
    return lengths


def _speeds(arcs: Table, lengths: FloatArray) -> FloatArray:
    """Return the speeds of arcs in m/s, from their times or else from a column of speeds."""
    key = arcs.column(TIME_COLUMNS)
    above_0: dict[str, Any] = {"low": 0.0, "strictly": True}
    if key is None:
        what = f"a column of times ({', '.join(TIME_COLUMNS)}) or 'speed_kmh'"
        return arcs.numbers(arcs.require(SPEED_COLUMNS, what), "km/h above 0", **above_0) / 3.6
    minutes = arcs.numbers(key, "a time above 0", **above_0) * TIME_COLUMNS[key]
    kmh = float(np.median(lengths / minutes)) * 0.06  # from metres a minute
    if not 1 < kmh < 300:
        raise InputError(
            f"{arcs.where}, column {key!r}: most arcs would be driven at {kmh:.3g} km/h. Name the columns by their "
            "units: 'seconds', 'minutes', 'hours'; 'distance_km', 'distance_m'."
        )
    return np.minimum(lengths / minutes / 60, MAX_SPEED_M_S)
