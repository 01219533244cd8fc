"""Findings and errors name fields on the page, and options in the command: nothing of Python is left in them."""

import re

import numpy as np
import pandas as pd
import pytest

import emsopt as eo
from emsopt.calls.recorded import recorded_responses
from emsopt.commands.own_city import in_options
from emsopt.errors import InputError

pytest.importorskip("emsopt.panels", reason="needs the package ipywidgets")
from emsopt.panels._uploads import CHECKBOXES, CONTROL_NAMES, city_from_uploads, in_controls
from emsopt.planning.settings import OPTIONS

STATIONS = pd.DataFrame({"name": ["a", "b"], "lon": [0.03, 0.08], "lat": [45.05, 45.05]})
PYTHON = re.compile(
    r"\w\((?!s\))|\{|\w=['{]|empty_days|without_repeats|read_calls|read_stations|city_from"
)  # calls, mappings, arguments


def log(n=3000, *, days=60, power=1.0, zone=""):
    rng = np.random.default_rng(0)
    seconds = np.sort(86400 * days * rng.random(n) ** power).astype("timedelta64[s]")
    times = pd.Series(np.datetime64("2025-01-06") + seconds).astype(str) + zone
    return pd.DataFrame({"time": times, "lon": rng.uniform(0, 0.1, n), "lat": rng.uniform(45, 45.1, n)})


def findings():
    calls = log()
    calls = pd.concat([calls[~calls["time"].between("2025-02-01", "2025-02-02 12")], calls[:200]])
    found = {
        f.what: f.text for data in (calls, log(power=0.5), log(zone="Z")) for f in eo.calls.check_calls(data, STATIONS)
    }
    assert {"gaps in time", "repeated calls", "trend", "time zone"} <= set(found)
    return found


def errors():
    calls, stations = eo.calls.read_calls(log(50)), STATIONS
    swapped = stations.rename(columns={"lon": "lat", "lat": "lon"})
    unclear = log(50).assign(time="3/4/2025 10:00")
    tries = {
        "no stamps": lambda: eo.calls.calibrate(calls, stations),
        "recorded": lambda: recorded_responses(calls),
        "swapped": lambda: eo.calls.aggregate_calls(calls, swapped),
        "no column": lambda: eo.calls.read_calls(log(50).drop(columns="lat")),
        "columns": lambda: eo.calls.read_calls(log(50), {"hour": "x"}),
        "day or month": lambda: eo.calls.read_calls(unclear),
        "zone": lambda: eo.calls.read_calls(log(50, zone="Z"), time_zone="Mars/Base"),
        "cells": lambda: eo.calls.aggregate_calls(calls, stations, cell_km=0.001),
        "no service": lambda: eo.calls.aggregate_calls(calls, stations).city(speed_kmh=40),
    }
    found = {}
    for name, attempt in tries.items():
        with pytest.raises(InputError) as raised:
            attempt()
        found[name] = raised.value.args[0]
    return found | {"homes": "Give the home of each unit by `homes`."}


@pytest.mark.parametrize("words", [in_controls, in_options])
def test_no_python_and_no_word_of_the_other_is_left(words):
    for name, text in (findings() | errors()).items():
        said = words(text)
        own = {*CONTROL_NAMES.values(), OPTIONS["name"].label, *(label for label, _ in CHECKBOXES.values())} - {
            "a shorter log"
        }
        for label in own:  # some have parentheses
            said = said.replace(label, "LABEL") if " " in label else said
        assert not any(name in said for name in CONTROL_NAMES if "_" in name), (name, said)
        assert not PYTHON.search(said), (name, said)
        assert "between" not in said, (name, said)
        assert ("--" not in said) if words is in_controls else "LABEL" not in said, (name, said)
        assert "field a " not in said, (name, said)


def test_a_column_of_the_stations_is_sent_to_their_own_field():
    tables = {"calls.csv": log(50), "stations.csv": STATIONS.rename(columns={"lon": "Ost West", "lat": "Nord"})}
    with pytest.raises(InputError) as raised:
        city_from_uploads([{"name": name, "content": t.to_csv(index=False).encode()} for name, t in tables.items()])
    assert "by the field Columns of stations (lon=..., lat=...)" in in_controls(raised.value)
