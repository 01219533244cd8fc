"""Measure the speed of the simulation, and the benefit of common random numbers.

    python benchmarks/simulation.py
    python benchmarks/simulation.py --coverage    # how often 95 % intervals contain the exact values near saturation

One city of St. Paul's size: 71 atoms, 17 sites, 9 units. Times are medians of several runs.
"""

import sys
import time
import warnings
from functools import partial

import numpy as np
from _timing import median_seconds

import emsopt as eo
from emsopt.evaluators import exact_hypercube, simulate, values

UNITS = 9


def grid_city(n_sites=17, n_atoms=71, seed=0):
    rng = np.random.default_rng(seed)
    atoms, sites = rng.random((n_atoms, 2)) * 15, rng.random((n_sites, 2)) * 15
    minutes = np.abs(atoms[None] - sites[:, None]).sum(axis=2)
    return eo.City(rng.exponential(size=n_atoms), minutes, turnout_times=1.75, service_times=34.15)


def coverage(units=6, runs=300):
    """Print in how many of 100 runs the intervals contain the exact values, by load and length of the run."""
    city = grid_city(units, 20)
    print(f"95 % intervals of {runs} runs, {units} units that queue calls: runs out of 100 that hold the exact value")
    names = "mean_wait", "queue_probability", "mean_response", "mean_utilization"
    print(f"{'load':>6} {'calls':>8} {'relaxation times':>17}", *names)
    for load in (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999):
        loaded = city.with_offered_load(load, units)
        exact = exact_hypercube(loaded, range(units), capacity="queue")
        true = {name: getattr(exact, name) for name in names[:3]} | {"mean_utilization": load}
        for calls in (10_000, 100_000):
            held = dict.fromkeys(names, 0)
            for seed in range(runs):
                run = simulate(loaded, range(units), capacity="queue", calls=calls, rng=seed)
                for name in names:
                    low, high = run.intervals[name]
                    held[name] += low <= true[name] <= high
            shares = (f"{100 * held[name] / runs:{len(name)}.0f}" for name in names)
            print(f"{load:6g} {calls:8,} {calls * (1 - load**0.5) ** 2 / load:17.3g}", *shares)


def main():
    if "--coverage" in sys.argv[1:]:
        warnings.simplefilter("ignore", eo.errors.AccuracyWarning)
        coverage()
        return
    city, calls = grid_city(), 1_000_000
    print(f"One deployment, {UNITS} units, {city.n_atoms} atoms, one core: million calls a second")
    print(f"{'load':>6} {'loss':>8} {'queue':>8} {'lognormal':>10} {'gamma':>8} {'observed':>9}")
    observed = np.random.default_rng(1).gamma(3, 12, 1000)
    laws = [{"service": "lognormal", "cv": 0.5}, {"service": "gamma", "cv": 0.5}, {"service": observed}]
    for load in (0.1, 0.3, 0.6, 0.9):
        loaded = city.with_offered_load(load, UNITS)
        cases = [{}, {"capacity": "queue"}, *laws]
        speeds = []
        for case in cases:
            run = partial(simulate, loaded, range(UNITS), calls=calls, warmup=0, **case)
            speeds.append(calls / 1e6 / median_seconds(run, 5, time.perf_counter))
        widths = 8, 8, 10, 8, 9
        print(f"{load:6.1f}", *(f"{speed:{width}.1f}" for speed, width in zip(speeds, widths, strict=True)))

    loaded = city.with_offered_load(0.4, UNITS)
    deployments = eo.DeploymentSpace(loaded, UNITS).sample(200, rng=0)
    print("\n200 deployments of 100,000 calls each on the same calls: million calls a second")
    for workers in (1, None):
        simulate_all = partial(values, loaded, deployments, None, "simulation", rng=0, workers=workers)
        seconds = median_seconds(simulate_all, 3, time.perf_counter)
        name = "all cores" if workers is None else "one core"
        print(f"  {name}: {200 * 0.11 / seconds:.1f} ({seconds:.2f} s)")

    print("\nVariance of a difference between deployments, independent calls over the same calls (median)")
    near = np.vstack([deployments[:1], eo.DeploymentSpace(loaded, UNITS).neighbours(deployments[0])[:20]])
    for name, rows in (("random deployments", deployments[:20]), ("one unit relocated", near)):
        found = np.array([values(loaded, rows, None, "simulation", calls=10_000, rng=seed) for seed in range(50)])
        same = np.var(found[:, :1] - found[:, 1:], axis=0)
        independent = np.var(found[1:, :1] - found[:-1, 1:], axis=0)
        print(f"  {name}: {np.median(independent / same):.1f} times")


if __name__ == "__main__":
    main()
