"""Measure the time from a log of 30,000 calls to an optimised deployment and its map.

    python benchmarks/own_city.py

Three ways are measured in wall-clock and CPU seconds: the ten lines below in a new interpreter; the command ``emsopt
city``, which also checks the data, draws a figure and writes all tables; and this command with a plan of the day. The
log is fictitious: calls of the practice town, drawn repeatedly over three years. Kernels are compiled before, as they
are after the first use.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import emsopt as eo

CALLS, SEED, UNITS = 30_000, 1, 5
TEN_LINES = """\
import emsopt as eo

calls, stations = eo.calls.read_calls("calls.csv"), eo.calls.read_stations("stations.csv")
print(eo.calls.check_calls(calls, stations))
city = eo.calls.city_from_calls(calls, stations, speed_kmh=40)
best = eo.evaluators.evaluate_all(city, 5).best
print(best, best.site_names)
eo.maps.deployment_map(city, best).save("map.html")
"""
COMMAND = [
    "-m",
    "emsopt",
    "city",
    "calls.csv",
    "stations.csv",
    "--units",
    str(UNITS),
    "--speed",
    "40",
    "--accept-findings",
]


def write_log(folder):
    """Write calls of three years and the stations."""
    rng = np.random.default_rng(SEED)
    calls, stations = eo.datasets.practice_calls()
    drawn = rng.choice(len(calls), CALLS)
    weeks = rng.integers(0, 9, CALLS) * 16 * 7
    times = np.sort(calls.times[drawn] + weeks.astype("timedelta64[D]"))
    places = calls.locations[drawn] + rng.normal(0, 0.002, (CALLS, 2))
    columns = {
        "time": times,
        "lon": places[:, 0],
        "lat": places[:, 1],
        "service_min": calls.service_min[drawn],
    }
    pd.DataFrame(columns).to_csv(folder / "calls.csv", index=False)
    stations.to_csv(folder / "stations.csv", index=False)


def measure(name, arguments, folder):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    }
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, os.times()
    processor = sum(after[2:4]) - sum(before[2:4])
    print(f"{name:24} {wall:6.1f} s, {processor:5.1f} s of the processor")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_log(folder)
        print(f"{CALLS:,} calls, {UNITS} units")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "emsopt",
                "city",
                "--practice",
                "--units",
                "3",
                "--speed",
                "40",
                "--out",
                str(folder / "warm"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        measure("ten lines", ["-c", TEN_LINES], folder)
        measure("one command", COMMAND, folder)
        measure("with a plan of the day", [*COMMAND, "--moves", "1"], folder)


if __name__ == "__main__":
    main()
