"""Malformed input ends in a result or in an `EmsoptError`: no other exception reaches the user, whatever is read.

A case follows from the name of its kind and a number. The plain suite takes a few of each kind.
``EMSOPT_FUZZ=2000 python -m pytest tests/files/test_malformed.py`` takes as many, each kind in a process of its own, and then
no case may take over 10 s or 1 GB either. ``python tests/files/test_malformed.py KIND NUMBER`` repeats one and shows what it
raises.
"""

import bz2
import contextlib
import functools
import gzip
import io
import json
import operator
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import emsopt as eo
from emsopt.__main__ import main
from emsopt.roads import RoadNetwork, grid_roads

CASES = int(os.environ.get("EMSOPT_FUZZ", "40"))
MOST_SECONDS, MOST_KB = 10, 2**20

# -- what can be wrong with a file --------------------------------------------------------------------------------

# fmt: off
NUMBERS = ["0", "-1", "1", "2", "0.5", "999", "1e20", "1e308", "-1e308", "5e-324", "1e999", "nan", "inf", "-inf", "1_0", "0x1",
           "१", "1,5", str(2**63), "9" * 25, "9" * 400, "-" + "9" * 5_000]
TEXTS = ["", " ", "\x00", "a\x00b", "\u202e", "\ufeff", "é", "e\u0301", "x" * 5_000, "\n", '"', ",", ";", "\\", "<", "&x;", "&#0;",
         "~nouser/x", "..", ".", "/", "null", "true", "no", "now", "NaT", "=1+1", "%", "%q", "%d%d", "{}", "name", "lon", "utm",
         "2025-13-45", "0001-01-01", "9999-12-31T23:59:60Z", "2025-03-14T16:05+99:99", "2025-03-14 16:05-05", "2098-01-01 00:00",
         "utf-7", "idna", "hex", "utf-16", "cp037", "unicode_escape", "bogus", "a" + "\u0301" * 1_000]
PATHS = ["/dev/null", "/dev/full", "x/y", "x" * 300] if os.name == "posix" else ["x/y"]
JSON = ["null", "true", "[]", "{}", "NaN", "-Infinity", '"\\ud800"', '"\\u0000"', "[[]]", "[null]", '{"a":1,"a":2}', "-0", "1.0",
        "[0,0]", '[["0","0"]]', "[" * 500 + "]" * 500, "[" * 10**5, '{"a":' * 10**5]
LAUGHS = "".join(f'<!ENTITY x{k} "{f"&x{k - 1};" * 20}">' for k in range(1, 9))
PIECES = [b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80", b"\n", b"\r", b",", b'"', b"\\", b"<", b"&", b"{", b"<!--", b"\x1f\x8b",
          b"[" * 10**5, b"," * 10**6, b"9" * 5_000, b"x" * 10**6, b"\n" * 10**6, b"1,1\n" * 10**5, b"<a>" * 10**5,
          f'<!DOCTYPE a [<!ENTITY x0 "x">{LAUGHS}]>'.encode(), b'<?xml version="1.0" encoding="x"?>']
WHOLE = [b"", b"\n", b"null", b"[]", b"{}", b"[" * 10**6, b"\x1f\x8b\x08" + bytes(20), b"PK\x03\x04", b"\xff" * 1_000, b'{"a":' * 10**5,
         b"," * 7_000_000, b"a\n" * 10**6, b"<a>" * 10**6, b'"' + b"x" * 10**6]
# fmt: on
SPACES = gzip.compress(b" " * 2**24, mtime=0)  # repeated, it is the start of a file of any size
ENCODINGS = ("utf-16", "utf-32", "utf-7", "cp037", "latin-1", "utf-8-sig")
TOKENS = {
    "csv": r"[^,\r\n]+",
    "json": r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|true|false|null|\[[^][{}]*\]|\{[^][{}]*\}',
    "xml": r'"[^"]*"|<[^<>]*>',
}
FAMILIES = {"geojson": "json", "jsonl": "json", "osm": "xml"}


def odd_token(rng, family):
    """Return what may stand in place of a cell, a value or an attribute."""
    text = rng.choice(rng.choice((NUMBERS, TEXTS, PATHS)))
    if family == "json":
        quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return rng.choice((quoted, rng.choice(JSON), rng.choice(NUMBERS)))
    return f'"{text}"' if family == "xml" else text


def with_odd_token(rng, content, family):
    """Return a text with one of its cells, values or attributes replaced, left out, repeated or swapped with another."""
    text = content.decode("utf-8", "surrogateescape")
    places = [found.span() for found in re.finditer(TOKENS[family], text)]
    if not places:
        return content
    (a, b), (c, d) = sorted((rng.choice(places), rng.choice(places)))
    token = text[a:b]
    new = rng.choice((odd_token(rng, family),) * 4 + ("", f"{token},{token}", text[c:d]))
    return (text[:a] + new + text[b:]).encode("utf-8", "surrogateescape")


def with_odd_bytes(rng, content):
    """Return a file cut, torn, mixed up, re-encoded or compressed."""
    n = len(content)
    a, b = sorted(rng.randrange(n + 1) for _ in range(2))
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], rng.choice((lines[i], b"", lines[j]))
    flipped = bytearray(content)
    for _ in range(rng.randrange(1, 4) if n else 0):
        flipped[rng.randrange(n)] ^= 1 << rng.randrange(8)
    piece = rng.choice(PIECES)
    ways = (
        lambda: content[:a],
        lambda: content[:a] + content[b:],
        lambda: content[:b] + content[a:],
        lambda: content[:a] + piece + content[a:],
        lambda: piece + content,
        lambda: content[:a] + rng.randbytes(b - a) + content[b:],
        lambda: bytes(flipped),
        lambda: b"".join(lines),
        lambda: content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b" "))),
        lambda: content.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace"),
        lambda: rng.choice((gzip.compress, bz2.compress))(content),
        lambda: rng.choice((SPACES * rng.choice((1, 100)), b"")) + gzip.compress(content) + SPACES * 100,
        lambda: rng.choice(WHOLE),
    )
    return rng.choice(ways)()


def damaged(rng, name, content):
    """Return the content of a file with one to three things wrong with it."""
    if name.endswith(".gz") and rng.random() < 0.7:
        return gzip.compress(damaged(rng, name.removesuffix(".gz"), gzip.decompress(content)), 1)
    ending = name.rpartition(".")[2]
    family = FAMILIES.get(ending, ending)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if family in TOKENS and rng.random() < 0.6:
            content = with_odd_token(rng, content, family)
        else:
            content = with_odd_bytes(rng, content)
    return content


def put(rng, files, *, damage=True):
    """Write the files here, one of them damaged, or, now and then, no file at all; return its name."""
    broken = rng.choice(sorted(files)) if damage else None
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        if name != broken:
            path.write_bytes(content)
        elif rng.random() < 0.95:
            path.write_bytes(damaged(rng, name, content))
        elif os.name == "posix" and rng.random() < 0.7:
            path.symlink_to(rng.choice((*PATHS, path.name)))
        elif rng.random() < 0.5:
            path.mkdir()
    return broken


# -- files of every kind, and what reads them ---------------------------------------------------------------------

TIMES = [f"2025-01-0{day}T{hour:02d}:30" for day in (1, 2, 3) for hour in (0, 6, 12, 18)]
CALLS = [(time, -93 + k / 1000, 45 - k / 2000, 30 + k) for k, time in enumerate(TIMES)]
STATIONS = [("North", -93.0, 45.0, 1.0), ("South", -92.99, 44.99, 1.5), ("Éast", -92.98, 45.0, 2.0)]
SUMO = """<?xml version="1.0" encoding="UTF-8"?>
<net><location netOffset="-372000.00,-4842000.00" projParameter="+proj=utm +zone=32 +ellps=WGS84 +units=m +no_defs"/>
<edge id="a" type="road"><lane id="a_0" index="0" disallow="tram" speed="13.89" length="90.5" shape="0.0,0.0,5 90.5,0,6"/>
</edge><edge id="b"><lane id="b_0" index="0" allow="passenger" speed="13.89" length="50" shape="90.5,0.0 90,50"/></edge>
<connection from="a" to="b" fromLane="0" toLane="0"/><connection from="b" to="a" fromLane="0" toLane="0"/></net>
"""
OSM = """<?xml version="1.0" encoding="UTF-8"?>
<osm version="0.6"><node id="1" lon="7.41" lat="43.73"/><node id="2" lon="7.42" lat="43.73"/>
<node id="3" lon="7.42" lat="43.74"><tag k="barrier" v="bollard"/></node><node id="4" lon="7.43" lat="43.73"/>
<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="4"/><tag k="highway" v="residential"/><tag k="maxspeed" v="30 mph"/></way>
<way id="2"><nd ref="2"/><nd ref="3"/><tag k="highway" v="tertiary"/><tag k="oneway" v="-1"/></way>
<relation id="1"><member type="way" ref="1" role="from"/><member type="node" ref="2" role="via"/>
<member type="way" ref="2" role="to"/><tag k="type" v="restriction"/><tag k="restriction" v="no_left_turn"/></relation></osm>
"""
HAND = {
    "hand/city.json": b'{"name": "Town", "geographic": true, "speed_kmh": 40, "detour": 1.3}',
    "hand/atoms.csv": b"name,lon,lat,arrival_rate\nWest,-93,45,1\nEast,-92.9,45,0.5\n",
    "hand/sites.csv": b"name,lon,lat,turnout_min,service_min\nA,-93,45,1,30\nB,-92.9,45,1,31\n",
}


def csv(header, rows):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]).encode()


def collection(features):
    """Return GeoJSON text of (properties, kind of geometry, coordinates)."""
    rows = [{"type": "Feature", "properties": p, "geometry": {"type": t, "coordinates": c}} for p, t, c in features]
    return json.dumps({"type": "FeatureCollection", "features": rows}, indent=1).encode()


def squares():
    for k, x in enumerate((-93.001, -92.985)):
        ring = [[x, 44.9], [x + 0.016, 44.9], [x + 0.016, 45.1], [x, 45.1], [x, 44.9]]
        yield {"name": f"area {k}"}, "Polygon", [ring]


@functools.cache
def written(write, *names):
    """Return what a function writes into an empty folder: content by name."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write(*names)
        return {path.as_posix(): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


@functools.cache
def town():
    """A city that is evaluated in no time, with all that a city can have."""
    city = eo.datasets.grid_city(4, 2, 0.4, rng=0, size=3)
    services = city.service_times * np.linspace(1, 1.2, 9)
    return city.replace(service_times=services, preference=city.travel_times + 1)


@functools.cache
def roads():
    return grid_roads(3, 3, jitter=0.2, rng=0)


@functools.cache
def log():
    return eo.calls.read_calls(pd.DataFrame(CALLS, columns=["time", "lon", "lat", "service_min"]))


@functools.cache
def stations():
    return eo.calls.read_stations(pd.DataFrame(STATIONS, columns=["name", "lon", "lat", "turnout_min"]))


def count(log, stations, **options):
    """Do what follows the reading of calls and stations."""
    eo.calls.check_calls(log, stations)
    return eo.calls.aggregate_calls(log, stations, **options).city(speed_kmh=40, service_times=30)


def read_city(folder):
    city = eo.City.load(folder)
    eo.evaluators.approximate_hypercube(city, [0])
    eo.City.load(city.save("again"))


def drive(net):
    net.save("again.json.gz")
    net = RoadNetwork.load("again.json.gz")
    net.shortest_path(net.lengths, 0, net.n_edges - 1)


def both_osm():
    Path("town.osm").write_text(OSM)
    with contextlib.suppress(ImportError):
        import osmium

        bare = osmium.io.File("town.osm.pbf", "pbf,pbf_compression=none")  # no checksum notices damage
        with osmium.SimpleWriter(bare) as writer:
            for element in osmium.FileProcessor("town.osm"):
                writer.add(element)


def minimize(file="minimize.jsonl"):
    eo.minimize(eo.Objective(town(), 2, "approximate"), "genetic", budget=5, checkpoint=file)


def maximize(file="maximize.jsonl"):
    eo.maximize(eo.problems.sprinkler(), "random", budget=5, checkpoint=file)


def bocvs(file="bocvs.jsonl"):
    problem = eo.problems.hill_control()
    eo.optimizers.bocvs(
        problem, "etc-50", budget=3, callback=lambda learner: len(learner.plays) == 5, regret=False, checkpoint=file
    )


def navigate(file="navigate.jsonl"):
    eo.bandits.run(roads(), 0, 5, "gp-ts", horizon=4, checkpoint=file)


def power(base, exponent):
    return [{"result": base**exponent, "text": "a"}]


def squared(file="squares.jsonl"):
    eo.study.run(power, eo.study.cases(base=[1, 2, 3], exponent=2), file=file)


# fmt: off
FILES = {  # kind: its files, and what reads the damaged one
    "calls": (lambda: {
        "calls.csv": csv("time,lon,lat,service_min", CALLS),
        "calls.geojson": collection(({"time": t, "service_min": s}, "Point", [x, y]) for t, x, y, s in CALLS),
    }, lambda name: count(eo.calls.read_calls(name), stations())),
    "stations": (lambda: {
        "stations.csv": csv("name,lon,lat,turnout_min", STATIONS),
        "stations.geojson": collection(({"name": n, "turnout_min": t}, "Point", [x, y]) for n, x, y, t in STATIONS),
    }, lambda name: count(log(), eo.calls.read_stations(name))),
    "areas": (lambda: {"areas.geojson": collection(squares())}, lambda name: count(log(), stations(), areas=name)),
    "cities": (lambda: HAND | written(town().save, "town"), lambda name: read_city(name.split("/")[0])),
    "sumo": (
        lambda: {"town.net.xml": SUMO.encode(), "town.net.xml.gz": gzip.compress(SUMO.encode())},
        lambda name: drive(RoadNetwork.from_sumo(name)),
    ),
    "osm": (lambda: written(both_osm), lambda name: drive(RoadNetwork.from_osm(name))),
    "roads": (lambda: written(roads().save, "roads.json.gz"), lambda name: drive(RoadNetwork.load(name))),
    **{run.__name__: (functools.partial(written, run), run) for run in (minimize, maximize, bocvs, navigate, squared)},
}
# fmt: on


@functools.cache
def everything():
    """Return the files of all kinds."""
    files = {"times.csv": "station,area 0,area 1\nNorth,1,2\nSouth,2,1\nÉast,3,1\n".encode()}
    return functools.reduce(operator.or_, (make() for make, _ in FILES.values()), files)


def read_file(rng, kind):
    files, read = FILES[kind]
    read(put(rng, files()))


# -- tables, options and the command line -------------------------------------------------------------------------


# fmt: off
def odd_value(rng):
    """Return what nobody should pass, as Python and numpy have it."""
    return rng.choice([
        None, True, [], {}, (), set(), b"x", 1j, object(), lambda *_: None, NotImplemented, ..., range(0), iter([1, 2]), Path("x" * 300),
        0, -1, 3, 0.5, -0.0, 1e308, 5e-324, np.nan, np.inf, -np.inf, 2**63, 10**400, -(10**400), Decimal("1e999"), Fraction(1, 3),
        np.int8(-1), np.float32("inf"), np.bool_(True), np.datetime64("NaT", "s"), np.timedelta64(1, "s"), pd.NaT, pd.NA,
        np.ma.masked, pd.Timestamp("2025-01-01", tz="UTC"), pd.DataFrame(), pd.Series([1.0, 2.0]), pd.DataFrame({"a": [1]}), pd.Index([1]),
        np.array([]), np.zeros(3), np.ones((2, 2)), np.zeros((1, 1, 1)), np.array(3), np.array(["a", "a", "b"]), np.array([10**400, 1]),
        np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), np.array([1, None, "x"], dtype=object), [[1], [1, 2]], [[]], ["a", "a"], [None],
        [True], [np.nan] * 3, [10**400] * 2, {"a": None}, {1: 2}, "\ud800", *NUMBERS, *TEXTS, *PATHS,
    ])
# fmt: on


def odd_frame(rng, frame):
    """Return a table with one to three things wrong with it."""
    frame = frame.copy()
    for _ in range(rng.choice((1, 1, 2, 3))):
        n, k = frame.shape
        if not n or not k:
            break
        row, column = rng.randrange(n), rng.randrange(k)
        cells = frame.iloc[:, column].astype(object).tolist()
        value, way = odd_value(rng), rng.randrange(9)
        if way < 4:
            cells[row] = value
            frame.isetitem(column, pd.Series(cells, index=frame.index, dtype=object))
        elif way == 4:
            names = [value if j == column else name for j, name in enumerate(frame.columns)]
            frame.columns = pd.Index(names, dtype=object)
        elif way == 5:
            frame = frame.iloc[:, [j for j in range(k) if j != column] + rng.choice(([], [0, 0]))]
        elif way == 6:
            kinds = "category string complex datetime64[ns] bool Float64 int8 bytes timedelta64[ns]"
            with contextlib.suppress(Exception):
                frame.isetitem(column, frame.iloc[:, column].astype(rng.choice(kinds.split())))
        elif way == 7:
            levels = pd.MultiIndex.from_product([[1], range(n)])
            frame.index = rng.choice((pd.Index([value] * n, dtype=object), levels))
        else:
            frame = frame.iloc[: rng.choice((0, 1, n))]
    return frame


# fmt: off
def read_frame(rng, _):
    """Read tables that never were files."""
    frames = {
        "demand": pd.DataFrame({"name": ["w", "e"], "lon": [-93.0, -92.9], "lat": [45.0, 45.0], "arrival_rate": [1.0, 0.5]}),
        "sites": pd.DataFrame({"name": ["A"], "lon": [-93.0], "lat": [45.0], "turnout_min": [1.0], "service_min": [30.0]}),
        "times": pd.DataFrame([[1.0, 2.0]], index=["A"], columns=["w", "e"]),
        "log": log().to_frame(),
        "stations": stations(),
    }
    which = rng.choice(sorted(frames))
    frames[which] = odd_frame(rng, frames[which])
    if which in ("log", "stations"):
        count(eo.calls.read_calls(frames["log"]), eo.calls.read_stations(frames["stations"]))
    else:
        eo.City.from_frames(frames["demand"], frames["sites"], travel_times=frames["times"]).save("town")
        eo.City.load("town")


# fmt: off
@functools.cache
def functions():
    """Return public functions, each with arguments that are right and take no time."""
    city, net, objective, demand = town(), roads(), eo.Objective(town(), 2, "approximate"), eo.calls.aggregate_calls(log(), stations())
    found, hill = eo.evaluators.approximate_hypercube(city, [0, 1]), eo.problems.hill_control()
    fields = "arrival_rates travel_times turnout_times service_times preference atom_names site_names atom_locations site_locations"
    edges = "lengths speed_limits connections inclines ids classes polylines geographic name notes"
    space = {"city": city, "units": 2, "colocation": False, "pinned": [0], "closed": [3]}
    model = {"city": city, "sites": [0, 1], "capacity": "loss"}
    search = {"budget": 3, "rng": 0, "progress": False, "callback": None, "target": None, "time_limit": 60}
    times = {"speed_kmh": 40, "detour": 1.3, "turnout_times": None, "service_times": 30, "travel_times": None}
    p = functools.partial
    return [
        p(eo.City, **{key: getattr(city, key) for key in f"{fields} atom_shapes geographic name notes".split()}),
        p(eo.City.load, folder="town"), p(city.save, folder="new"), p(city.replace, service_times=30, geographic=False),
        p(city.scaled, theta=0.5), p(city.with_offered_load, rho=0.3, units=2), p(city.sites_named, names=list(city.site_names[:2])),
        p(eo.datasets.grid_city, n_sites=4, units=2, load=0.4, rng=0, size=3, geometry="plane"), p(eo.datasets.paper_table, number=1),
        p(eo.datasets.load_study, name="location_tables"), p(eo.datasets.load_st_paul, version="embedded"),
        p(eo.datasets.load_roads, name="monaco"), p(eo.datasets.write_templates, folder="templates"),
        p(eo.DeploymentSpace, **space), p(eo.Objective, city=city, units=2, evaluator="approximate", metric=("late", 8.0), capacity="loss"),
        p(objective, sites=[0, 1]), p(objective.values, deployments=[[0, 1], [1, 2]]),
        p(eo.evaluators.approximate_hypercube, **model, tol=1e-8), p(eo.evaluators.exact_hypercube, **model),
        p(eo.evaluators.values, city=city, deployments=[[0, 1]], costs=None, evaluator="approximate", capacity="loss", tol=1e-8),
        p(eo.evaluators.simulate, **model, calls=200, rng=0), p(eo.evaluators.evaluate, **model, evaluator="exact"),
        p(eo.evaluators.p_median, city=city, units=2, time_limit=5), p(eo.evaluators.one_median, city=city),
        p(eo.evaluators.bounds, city=city, units=2, evaluator="approximate"), p(found.late_fraction, threshold=8.0),
        p(eo.evaluators.evaluate_all, city=city, units=2, evaluator="approximate", metric="mean_response"),
        p(eo.evaluators.mclp, city=city, units=2, threshold=8.0), p(eo.evaluators.mexclp, city=city, units=2, threshold=8.0, busy_fraction=0.3),
        p(eo.planning.load_sweep, city=city, units=2, loads=[0.3], metric="mean_response"),
        p(eo.planning.service_rate_sweep, city=city, units=2, rates=[40.0]),
        p(eo.planning.hourly_plan, cities=[city, city], units=2, moves=1, evaluator="approximate", metric="mean_response"),
        p(eo.minimize, objective=objective, method="random", checkpoint="a", **search),
        p(eo.maximize, objective=eo.problems.sprinkler(), method="random", noisy=None, bounds=None, checkpoint="b", **search),
        p(eo.optimizers.bocvs, problem=hill, method="etc-50", budget=3, callback=lambda _: True, regret=False, alpha=0.1, checkpoint="c", rng=0),
        p(eo.bandits.run, net=net, start=0, end=5, policy="gp-ts", horizon=2, rng=0, checkpoint="d", closed=None, expected=None),
        p(RoadNetwork, **{key: getattr(net, key) for key in edges.split()}), p(RoadNetwork.load, path="roads.json.gz"),
        p(RoadNetwork.from_sumo, path="town.net.xml", name="a", strongly_connected=True),
        p(RoadNetwork.from_osm, path="town.osm", heights=None, vehicle="emergency", name="a"),
        p(net.save, path="net.json.gz"), p(net.shortest_path, costs=net.lengths, start=0, end=5, closed=[3]), p(net.subset, edges=[0, 1]),
        p(grid_roads, rows=3, columns=3, block=100.0, jitter=0.1, relief=1.0, one_way=0.1, rng=0),
        p(eo.calls.read_calls, source="calls.csv", time_zone=None, time_format="%Y-%m-%dT%H:%M"),
        p(eo.calls.read_calls, source=log().to_frame().assign(time="2025-01-01T10:00Z"), time_zone="America/Chicago"),
        p(eo.calls.read_stations, source="stations.csv"), p(eo.calls.read_areas, source="areas.geojson", key="name"),
        p(eo.calls.check_calls, calls=log(), stations=stations(), reach_km=50), p(log().between, start="2025-01-01", end="2025-01-03"),
        p(eo.calls.aggregate_calls, calls=log(), stations=stations(), cell_km=1, areas=None, reach_km=50, empty_days="counted"),
        p(eo.calls.city_from_calls, calls=log(), stations=stations(), speed_kmh=40), p(log().where, kept=np.ones(len(log()), dtype=bool)),
        p(demand.city, hours=[6, 12], weekdays=["Wed"], name="a", **times), p(demand.rates, hours=[6], weekdays=[2]),
        p(demand.cities_by_hour, weekdays=None, **times),
        p(eo.study.run, task=power, cases=[{"base": 1, "exponent": 2}], file="e", backend="serial", workers=None),
        p(eo.study.seed_of, case={"a": 1}), p(eo.problems.forrester(), x=[0.5]), p(hill.objective, x=[0.5, 0.5]),
        p(eo.maps.deployment_map, city=city, evaluation=found, value="response", limits=None, tiles=None, height=520),
    ]


WORK = {"budget", "horizon", "calls", "n_sites", "units", "size", "rows", "columns", "moves"}  # may be large


def is_much(value):
    return isinstance(value, (int, float)) and value > 1_000


def call_function(rng, _):
    """Call a public function with one or two of its arguments wrong."""
    put(rng, everything(), damage=False)
    function = rng.choice(functions())
    names = sorted(function.keywords)
    odd = {name: odd_value(rng) for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2))))}
    function(**{name: value for name, value in odd.items() if not (name in WORK and is_much(value))})


# fmt: off
COMMANDS = (
    "--city town --units 2 --load 0.4 --threshold 6 --metric late --evaluator exact --out out",
    "--city hand --units 1 --queue --colocate --closed A --out out",
    "city calls.csv stations.csv --units 2 --speed 40 --service calls --name Town --detour 1.2 --reach 30 --cell 1 --out out",
    "city calls.csv stations.csv --units 1 --speed 40 --service 30 --hours 6-20 --weekdays Mon-Fri --drop-repeats",
    "city calls.csv stations.csv --units 1 --speed 40 --areas areas.geojson --area-name name --moves 1 --skip-empty-days",
    "city calls.csv stations.csv --units 1 --areas areas.geojson --travel-times times.csv --time-format %Y-%m-%dT%H:%M --pinned North",
    "city --templates forms",
)
OPTIONS = "--time-zone UTC --turnout 1 --practice --help --moves 2 --evaluator approximate --city --weekdays --"
# fmt: on


def run_command(rng, _):
    """Run the command with one to three of its words changed, or with a damaged file."""
    put(rng, everything(), damage=rng.random() < 0.2)
    words = rng.choice(COMMANDS).split()
    for _ in range(rng.choice((1, 1, 2, 3))):
        k = rng.randrange(len(words))
        odd = str(rng.choice(rng.choice((NUMBERS, TEXTS, PATHS, OPTIONS.split()))))
        words[k : k + rng.choice((0, 1, 1, 1, 2))] = rng.choice(([odd], [odd], [odd], []))
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(words)
    except SystemExit as end:
        if end.code not in (0, 2):
            raise


KINDS = dict.fromkeys(FILES, read_file)
KINDS |= {"frames": read_frame, "functions": call_function, "commands": run_command}

# -- running them -------------------------------------------------------------------------------------------------


def undamaged(kind):
    """Do with sound files and arguments what the cases of a kind do with others."""
    put(None, everything(), damage=False)
    files, read = FILES.get(kind, (dict, None))
    for name in files():
        with contextlib.suppress(eo.errors.MissingDependencyError):
            read(name)
    for function in functions() if kind == "functions" else ():
        with contextlib.suppress(eo.errors.MissingDependencyError):
            function()
    for words in COMMANDS if kind == "commands" else ():
        assert main(words.split()) == 0, words


def fault(kind, number):
    """Return the traceback of a case that ends in anything but a result or an `EmsoptError`, else an empty string."""
    rng = random.Random(f"{kind} {number}")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for own in (eo.errors.AccuracyWarning, eo.errors.ResumeWarning):  # the answer to some numbers
            warnings.simplefilter("ignore", own)
        try:
            KINDS[kind](rng, kind)
        except eo.EmsoptError:
            pass
        except Exception:  # noqa: BLE001 - that is what is looked for
            return traceback.format_exc()
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_malformed_is_read(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    undamaged(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_malformed(kind):
    if CASES > 200:
        command = [sys.executable, __file__, kind, f"0-{CASES}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        sys.stdout.write(done.stdout)
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        faults = [f"{kind} {number}:\n{found}" for number in range(CASES) if (found := fault(kind, number))]
        assert not faults, "\n".join(faults)


# fmt: off
def masked():
    return np.ma.array([0, 1], mask=[0, 1])


FOUND = {  # what cases above once raised something else for
    "no city to evaluate": lambda: eo.evaluators.approximate_hypercube("town", [0]),
    "no city for the 1-median": lambda: eo.evaluators.one_median("town"),
    "no city to sweep": lambda: eo.planning.load_sweep("town", 2, [0.3]),
    "no city to sweep by rate": lambda: eo.planning.service_rate_sweep("town", 2, [40.0]),
    "no city to site stations in": lambda: eo.problems.siting("town", 2),
    "no city to draw": lambda: eo.maps.deployment_map("town"),
    "a map of a table": lambda: eo.maps.deployment_map(town(), eo.evaluators.exact_hypercube(town(), [0]), value=pd.DataFrame()),
    "a fleet without a label": lambda: eo.planning.sweep({"a": town()}, {"b": 2}),
    "masked sites": lambda: eo.evaluators.approximate_hypercube(town(), masked()),
    "masked pins": lambda: eo.DeploymentSpace(town(), 2, pinned=masked()),
    "a masked time": lambda: town().replace(service_times=np.ma.masked),
    "a duration for a number": lambda: eo.minimize(eo.Objective(town(), 2), budget=np.timedelta64(1, "s")),
    "a target beyond all floats": lambda: eo.minimize(eo.Objective(town(), 2), budget=3, target=10**400),
    "a play beyond all floats": lambda: eo.problems.Play(np.array([0.5]), 10**400, 0.5),
    "a point of text": lambda: eo.problems.forrester()(["hex"]),
    "noise as an array": lambda: eo.minimize(eo.problems.forrester(), budget=3, noisy=np.ones(3)),
    "energies as text": lambda: eo.bandits.run(roads(), 0, 5, horizon=2, expected="no", checkpoint="run"),
    "heights that are no function": lambda: RoadNetwork.from_osm("town.osm", heights={1}),
    "a speed as text": lambda: eo.calls.city_from_calls(log(), stations(), speed_kmh="fast", service_times=30),
    "next to no speed": lambda: eo.calls.city_from_calls(log(), stations(), speed_kmh=5e-324, service_times=30),
    "a table for a truth value": lambda: RoadNetwork.from_sumo("town.net.xml", strongly_connected=pd.DataFrame()),
    "a table for a choice": lambda: eo.optimizers.bocvs(eo.problems.hill_control(), budget=1, regret=pd.DataFrame()),
    "a tolerance as an array": lambda: eo.optimizers.bocvs(eo.problems.hill_control(), budget=1, alpha=np.array(3), checkpoint="run"),
    "a table of evaluations": lambda: eo.maps.deployment_map(town(), pd.DataFrame()),
    "a property that is a list": lambda: eo.calls.read_areas("areas.geojson", key=["name"]),
    "calls kept by ragged rows": lambda: log().where([[1], [1, 2]]),
    "cases that are a number": lambda: eo.study.run(power, np.array(3)),
}
# fmt: on


@pytest.mark.parametrize("what", FOUND)
def test_found_before(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(None, everything(), damage=False)
    with pytest.raises(eo.errors.InputError):
        FOUND[what]()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_links_to_names_that_are_too_long(tmp_path):
    (tmp_path / "run.jsonl").symlink_to("x" * 300)
    with pytest.raises(eo.errors.InputError, match="broken link"):
        minimize(tmp_path / "run.jsonl")
    folder = town().save(tmp_path / "town")
    (folder / "atoms.geojson").unlink()
    (folder / "atoms.geojson").symlink_to("x" * 300)
    with pytest.raises(eo.errors.InputError, match="broken link"):
        eo.City.load(folder)


@pytest.mark.parametrize("setting", ["~nouser/x", "x" * 5_000])
def test_a_data_folder_that_cannot_be(setting, monkeypatch):
    monkeypatch.setenv("EMSOPT_DATA", setting)
    with pytest.raises(eo.errors.DataUnavailableError, match="must name an existing folder"):
        eo.datasets.load_st_paul("published")


def test_tables_may_have_their_names_and_times_as_index():
    frames = log().to_frame().set_index("time"), stations().set_index("name")
    assert len(eo.calls.read_calls(frames[0])) == len(CALLS)
    assert eo.calls.read_stations(frames[1])["name"].tolist() == ["North", "South", "Éast"]


def test_what_can_be_read_only_once_is_read_once():
    names = town().site_names
    assert town().replace(site_names=iter(names)).site_names == names
    assert eo.DeploymentSpace(town(), 2, pinned=iter([1])).pinned == (1,)


def test_the_command_leaves_no_figure_behind(tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="needs emsopt[maps]")
    monkeypatch.chdir(tmp_path)
    put(None, HAND, damage=False)
    before = pyplot.get_fignums()
    assert main(COMMANDS[1].split()) == 0
    assert pyplot.get_fignums() == before


def watched(kind, numbers):
    """Write the cases that raise, or take too long or too much memory; return how many."""
    import resource
    import signal

    def late(*_):
        raise TimeoutError(f"over {MOST_SECONDS} s")

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        undamaged(kind)  # compiles what numba compiles, which is not to be measured
    # seconds of work; and of waiting, six times as long because other programs work too
    timers = {signal.ITIMER_PROF: 1, signal.ITIMER_REAL: 6}
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, late)
    base, longest, bad = peak(), 0.0, 0
    for number in numbers:
        start = time.process_time()
        try:
            for timer, factor in timers.items():
                signal.setitimer(timer, factor * MOST_SECONDS)
            found = fault(kind, number)
        except TimeoutError:  # while files were written or removed
            found = traceback.format_exc()
        for timer in timers:
            signal.setitimer(timer, 0)
        seconds, kb = time.process_time() - start, peak() - base
        if kb > MOST_KB:
            base, found = peak(), found + f"{kb / 2**20:.1f} GB more"
        longest, bad = max(longest, seconds), bad + bool(found)
        if found:
            sys.stdout.write(f"--- {kind} {number}, {seconds:.1f} s\n{found}\n")
    size = f"longest {longest:.1f} s, peak {peak() / 2**20:.2f} GB"
    sys.stdout.write(f"{kind}: {len(numbers)} cases, {bad} bad, {size}\n")
    return bad


if __name__ == "__main__":
    first, _, end = sys.argv[2].partition("-")
    sys.exit(bool(watched(sys.argv[1], range(int(first), int(end or int(first) + 1)))))
