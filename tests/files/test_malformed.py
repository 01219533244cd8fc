"""Malformed files end in a result or in an `EmsoptError`: no other exception reaches the user, whatever is read.

A case follows from the name of its kind and a number. The plain suite takes a few of each kind, and
``EMSOPT_FUZZ=2000 python -m pytest tests/files/test_malformed.py`` as many.
"""

import bz2
import contextlib
import functools
import gzip
import json
import os
import random
import re
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import emsopt as eo
from emsopt.roads import RoadNetwork, grid_roads

CASES = int(os.environ.get("EMSOPT_FUZZ", "30"))


# fmt: off
NUMBERS = ["0", "-1", "1", "0.5", "999", "1e20", "1e308", "1e999", "nan", "-inf", "1_0", "0x1", "१", "1,5", str(2**63), "9" * 400]
TEXTS = ["", " ", "\x00", "\u202e", "\ufeff", "é", "x" * 5_000, "\n", '"', ",", ";", "\\", "<", "&x;", "~nouser/x", "..", "null", "true",
         "now", "NaT", "=1+1", "%q", "{}", "name", "lon", "2025-13-45", "0001-01-01", "9999-12-31T23:59:60Z", "2025-03-14T16:05+99:99",
         "2025-03-14 16:05-05", "2098-01-01 00:00", "utf-7", "cp037", "bogus"]
JSON = ["null", "[]", "{}", "NaN", '"\\ud800"', "[null]", '{"a":1,"a":2}', '[["0","0"]]', "[" * 500 + "]" * 500]
PIECES = [b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80", b"\n", b"\r", b",", b'"', b"\\", b"<", b"&", b"{", b"<!--", b"\x1f\x8b",
          b"," * 10**4, b"x" * 10**4, b"1,1\n" * 10**3, b'<?xml version="1.0" encoding="x"?>']
WHOLE = [b"", b"\n", b"null", b"[]", b"{}", b"[" * 10**5, b"\x1f\x8b\x08" + bytes(20), b"PK\x03\x04", b"\xff" * 1_000, b"a\n" * 10**4]
# fmt: on
ENCODINGS = ("utf-16", "utf-32", "utf-7", "cp037", "latin-1", "utf-8-sig")
TOKENS = {
    "csv": r"[^,\r\n]+",
    "json": r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|true|false|null|\[[^][{}]*\]|\{[^][{}]*\}',
    "xml": r'"[^"]*"|<[^<>]*>',
}
FAMILIES = {"geojson": "json", "osm": "xml"}


def odd_token(rng, family):
    """Return what may stand in place of a cell, a value or an attribute."""
    text = rng.choice(rng.choice((NUMBERS, TEXTS)))
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
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    lines = content.splitlines(keepends=True)
    ways = (
        lambda: content[:a],
        lambda: content[:a] + content[b:],
        lambda: content[:b] + content[a:],
        lambda: content[:a] + rng.choice(PIECES) + content[a:],
        lambda: rng.choice(PIECES) + content,
        lambda: content[:a] + rng.randbytes(min(b - a, 3)) + content[b:],
        lambda: b"".join(rng.sample(lines, len(lines))),
        lambda: content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b" "))),
        lambda: content.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace"),
        lambda: rng.choice((gzip.compress, bz2.compress))(content),
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
    """Write the files here, one of them damaged; return its name."""
    broken = rng.choice(sorted(files)) if damage else None
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(damaged(rng, name, content) if name == broken else content)
    return broken


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


TOWN = eo.datasets.grid_city(4, 2, 0.4, rng=0, size=3)  # below with all that a city can have
TOWN = TOWN.replace(service_times=TOWN.service_times * np.linspace(1, 1.2, 9), preference=TOWN.travel_times + 1)
ROADS = grid_roads(3, 3, jitter=0.2, rng=0)
LOG = eo.calls.read_calls(pd.DataFrame(CALLS, columns=["time", "lon", "lat", "service_min"]))
PLACES = eo.calls.read_stations(pd.DataFrame(STATIONS, columns=["name", "lon", "lat", "turnout_min"]))


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


# fmt: off
FILES = {  # kind: its files, and what reads the damaged one
    "calls": (lambda: {
        "calls.csv": csv("time,lon,lat,service_min", CALLS),
        "calls.geojson": collection(({"time": t, "service_min": s}, "Point", [x, y]) for t, x, y, s in CALLS),
    }, lambda name: count(eo.calls.read_calls(name), PLACES)),
    "stations": (lambda: {
        "stations.csv": csv("name,lon,lat,turnout_min", STATIONS),
        "stations.geojson": collection(({"name": n, "turnout_min": t}, "Point", [x, y]) for n, x, y, t in STATIONS),
    }, lambda name: count(LOG, eo.calls.read_stations(name))),
    "areas": (lambda: {"areas.geojson": collection(squares())}, lambda name: count(LOG, PLACES, areas=name)),
    "cities": (lambda: HAND | written(TOWN.save, "town"), lambda name: read_city(name.split("/")[0])),
    "sumo": (
        lambda: {"town.net.xml": SUMO.encode(), "town.net.xml.gz": gzip.compress(SUMO.encode())},
        lambda name: drive(RoadNetwork.from_sumo(name)),
    ),
    "osm": (lambda: written(both_osm), lambda name: drive(RoadNetwork.from_osm(name))),
    "roads": (lambda: written(ROADS.save, "roads.json.gz"), lambda name: drive(RoadNetwork.load(name))),
}
# fmt: on


def fault(kind, number):
    """Return the traceback of a case that ends in anything but a result or an `EmsoptError`, else an empty string."""
    rng, (files, read) = random.Random(f"{kind} {number}"), FILES[kind]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", eo.errors.AccuracyWarning)  # the answer to some numbers
        try:
            read(put(rng, files()))
        except eo.EmsoptError:
            pass
        except Exception:  # noqa: BLE001 - that is what is looked for
            return traceback.format_exc()
    return ""


@pytest.mark.parametrize("kind", FILES)
def test_malformed(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files, read = FILES[kind]
    put(None, files(), damage=False)
    for name in files():  # whole files are read
        with contextlib.suppress(eo.errors.MissingDependencyError):
            read(name)
    faults = [f"{kind} {number}:\n{found}" for number in range(CASES) if (found := fault(kind, number))]
    assert not faults, "\n".join(faults)
