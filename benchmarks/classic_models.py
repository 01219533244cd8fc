"""Compare the classical location models with spopt, and prove the p-centres of the OR-Library.

    python benchmarks/classic_models.py                  # beside spopt, if it is installed: 200 sites, 1,000 atoms
    python benchmarks/classic_models.py --orlib          # pmed1.txt to pmed40.txt in the folder of EMSOPT_DATA

Random cities have sites and atoms anywhere in a square of 20 km. Seconds are of the wall clock and include building the
model; the median of the seeds counts. The optima must agree. spopt solves with PuLP's CBC.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np
from p_median import orlib_city, random_city

from emsopt import evaluators as models


def spopt_models(times, demand, p, threshold):
    """Return a function per model that solves it by spopt and returns the optimum."""
    import pulp
    from spopt.locate import LSCP, LSCPB, MCLP, PCenter, PMedian

    solver, costs = pulp.PULP_CBC_CMD(msg=False), times.T
    within = np.nextafter(threshold, 0)  # spopt counts the threshold as in time

    def backup():
        solved = LSCPB.from_cost_matrix(costs, within, solver).solve()
        sites = np.flatnonzero([variable.varValue > 0.5 for variable in solved.fac_vars])
        return int(((times[sites] <= within).sum(axis=0) > 1).sum())  # its objective counts up to two atoms more

    return {
        "set_cover": lambda: pulp.value(LSCP.from_cost_matrix(costs, within).solve(solver).problem.objective),
        "set_cover, backup": backup,
        "mclp": lambda: pulp.value(
            MCLP.from_cost_matrix(costs, demand, within, p_facilities=p).solve(solver).problem.objective
        ),
        "p_center": lambda: pulp.value(PCenter.from_cost_matrix(costs, p).solve(solver).problem.objective),
        "p_median": lambda: (
            pulp.value(PMedian.from_cost_matrix(costs, demand, p).solve(solver).problem.objective) / demand.sum()
        ),
    }


def emsopt_models(city, p, threshold):
    total = city.total_rate
    return {
        "set_cover": lambda: models.set_cover(city, threshold).units,
        "set_cover, backup": lambda: models.set_cover(city, threshold, backup=True).backup,
        "mclp": lambda: models.mclp(city, p, threshold).coverage * total,
        "p_center": lambda: models.p_center(city, p).longest_response,
        "p_median": lambda: models.p_median(city, p).objective,
    }


def timed(function):
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def beside_spopt(n, m, p, threshold, seeds, only):
    try:
        import spopt  # noqa: F401

        there = True
    except ImportError:
        there = False
        print("spopt is not installed and left out")
    for function in emsopt_models(random_city("plane", 20, 60, 0), 4, 9.0).values():
        function()  # compiles
    for name in only or MODELS:
        ours, theirs = [], []
        for seed in range(seeds):
            city = random_city("plane", n, m, seed)
            end = max(threshold, np.nextafter(city.response_times.min(axis=0).max(), np.inf))  # every atom is in reach
            seconds, value = timed(emsopt_models(city, p, end)[name])
            ours.append(seconds)
            if there:
                seconds, known = timed(spopt_models(city.response_times, city.arrival_rates, p, end)[name])
                theirs.append(seconds)
                assert np.isclose(value, known, rtol=1e-6), (name, seed, value, known)
        row = f"{name:>18} {statistics.median(ours):9.4f} s"
        if there:
            ratio = statistics.median(theirs) / statistics.median(ours)
            row += f", spopt {statistics.median(theirs):9.3f} s, {ratio:.0f} times as long"
        print(row, flush=True)


MODELS = ("set_cover", "set_cover, backup", "mclp", "p_center", "p_median")


def centres(numbers):
    models.p_center(random_city("plane", 20, 60, 0), 4)
    for k in numbers:
        city, p = orlib_city(Path(os.environ["EMSOPT_DATA"]) / "orlib" / f"pmed{k}.txt")
        start = time.process_time()
        seconds, found = timed(lambda: models.p_center(city, p))  # noqa: B023
        cpu = time.process_time() - start
        state = "proven" if found.proven else "open"
        print(
            f"pmed{k:<3} p = {p:<4} {found.longest_response:6g} {state} {seconds:7.2f} s, {cpu:.2f} CPU s", flush=True
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orlib", action="store_true", help="prove the p-centres of the OR-Library")
    parser.add_argument("--numbers", type=int, nargs="+", default=range(1, 41), help="instances of the OR-Library")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threshold", type=float, default=5.0)
    parser.add_argument("--only", nargs="+", choices=MODELS)
    options = parser.parse_args()
    if options.orlib:
        centres(options.numbers)
    else:
        beside_spopt(200, 1000, 10, options.threshold, options.seeds, options.only)


if __name__ == "__main__":
    main()
