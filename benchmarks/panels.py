"""Measure how fast panels respond: a change of a slider, a step of a search, a map, and the import before them.

    python benchmarks/panels.py

Median and largest CPU milliseconds on St. Paul, after one call that compiles; the import in wall-clock milliseconds of
new processes.
"""

import statistics
import subprocess
import sys
import time

import numpy as np

import emsopt as eo

IMPORT = "from time import perf_counter; t = perf_counter(); import emsopt; print(perf_counter() - t)"


def timed(act, values):
    """Return the processor seconds of ``act(value)`` for each value but the first."""
    times = []
    for value in values:
        start = time.process_time()
        act(value)
        times.append(time.process_time() - start)
    return times[1:]


def moves(refs, name):
    return lambda value: setattr(refs[name], "value", value)


def report(name, times):
    print(f"{name:42} {statistics.median(times) * 1e3:7.1f} ms, at most {max(times) * 1e3:7.1f}")


def main():
    city = eo.datasets.load_st_paul()
    load = eo.panels.load_panel(city, 9).refs
    report("load panel, load", timed(moves(load, "load"), np.logspace(-3, 3, 13)))
    report("load panel, a load seen before", timed(moves(load, "load"), [1e3, 1e-3] * 10))
    refs = eo.panels.dashboard().refs
    for name, values in {
        "load": np.logspace(-0.5, 0.5, 9),
        "threshold": (7, 9, 10),
        "units": (8, 10, 9),
    }.items():
        report(f"dashboard, {name}", timed(moves(refs, name), values))
    panel = eo.panels.optimizer_panel(eo.Objective(city, 9, "approximate"), rng=0).refs
    for _ in range(25):
        panel["trace"]().step()
    report("optimizer panel, step", timed(lambda _: panel["step"].click(), range(6)))
    shown = eo.evaluators.exact_hypercube(city, range(9))
    report("map", timed(lambda _: eo.maps.deployment_map(city, shown)._repr_html_(), range(8)))
    python = [sys.executable, "-c", IMPORT]
    report("import", [float(subprocess.check_output(python)) for _ in range(8)][1:])


if __name__ == "__main__":
    main()
