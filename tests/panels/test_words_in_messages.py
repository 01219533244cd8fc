"""Findings and errors name fields on the page, and options in the command: nothing of Python is left in them."""

import re

import numpy as np
import pandas as pd
import pytest

import emsopt as eo
from emsopt.calls.recorded import recorded_responses
from emsopt.commands.own_city import with_option_names
from emsopt.errors import InputError
from emsopt.panels._uploads import CHECKBOXES, CONTROL_NAMES, city_from_uploads, with_control_names
from emsopt.planning.settings import OPTIONS

STATIONS = pd.DataFrame({"name": ["a", "b"], "lon": [0.03, 0.08], "lat": [45.05, 45.05]})
# Calls, mappings and arguments of Python.
PYTHON = re.compile(r"\w\((?!s\))|\{|\w=['{]|empty_days|without_repeats|read_calls|read_stations|city_from")


def log(n=3000, *, days=60, power=1.0, zone=""):
    rng = np.random.default_rng(0)
    seconds = np.sort(86400 * days * rng.random(n) ** power).astype("timedelta64[s]")
    times = pd.Series(np.datetime64("2025-01-06") + seconds).astype(str) + zone
    return pd.DataFrame({"time": times, "lon": rng.uniform(0, 0.1, n), "lat": rng.uniform(45, 45.1, n)})


def test_a_column_of_the_stations_is_sent_to_their_own_field():
    tables = {"calls.csv": log(50), "stations.csv": STATIONS.rename(columns={"lon": "Ost West", "lat": "Nord"})}
    with pytest.raises(InputError) as raised:
        city_from_uploads([{"name": name, "content": t.to_csv(index=False).encode()} for name, t in tables.items()])
    assert "by the field Columns of stations (lon=..., lat=...)" in with_control_names(raised.value)


def messages():
    """Return findings and errors as Python says them."""
    calls = log()
    calls = pd.concat([calls[~calls["time"].between("2025-02-01", "2025-02-02 12")], calls[:200]])
    logs = (calls, log(power=0.5), log(zone="Z"))
    found = {f.what: f.text for data in logs for f in eo.calls.check_calls(data, STATIONS)}
    assert {"gaps in time", "repeated calls", "trend", "time zone"} <= set(found)
    few, read = log(50), eo.calls.read_calls(log(50))
    swapped = STATIONS.rename(columns={"lon": "lat", "lat": "lon"})
    tries = {
        "no stamps": lambda: eo.calls.calibrate(read, STATIONS),
        "recorded": lambda: recorded_responses(read),
        "swapped": lambda: eo.calls.aggregate_calls(read, swapped),
        "no column": lambda: eo.calls.read_calls(few.drop(columns="lat")),
        "columns": lambda: eo.calls.read_calls(few, {"hour": "x"}),
        "day or month": lambda: eo.calls.read_calls(few.assign(time="3/4/2025 10:00")),
        "zone": lambda: eo.calls.read_calls(log(50, zone="Z"), time_zone="Mars/Base"),
        "cells": lambda: eo.calls.aggregate_calls(read, STATIONS, cell_km=0.001),
        "no service": lambda: eo.calls.aggregate_calls(read, STATIONS).city(speed_kmh=40),
    }
    for name, attempt in tries.items():
        with pytest.raises(InputError) as raised:
            attempt()
        found[name] = raised.value.args[0]
    return found | {"homes": "Give the home of each unit by `homes`."}


@pytest.mark.parametrize("words", [with_control_names, with_option_names])
def test_no_python_and_no_word_of_the_other_is_left(words):
    own = {*CONTROL_NAMES.values(), OPTIONS["name"].label, *(label for label, _ in CHECKBOXES.values())}
    own -= {"a shorter log"}
    for name, text in messages().items():
        said = words(text)
        for label in own:  # some have parentheses
            said = said.replace(label, "LABEL") if " " in label else said
        assert not any(name in said for name in CONTROL_NAMES if "_" in name), (name, said)
        assert not PYTHON.search(said), (name, said)
        assert ("--" not in said) if words is with_control_names else "LABEL" not in said, (name, said)
        assert not re.search("between|field a ", said), (name, said)
