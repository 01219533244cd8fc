"""Measure the speed of the simulation, and the benefit of common random numbers.

    python benchmarks/simulation.py
    python benchmarks/simulation.py --growth      # at three sizes, alone and two side by side
    python benchmarks/simulation.py --coverage    # how often 95 % intervals contain the exact values near saturation

One city of St. Paul's size: 71 atoms, 17 sites, 9 units. Times are medians of several runs, with --growth the
shortest of them.

Two threads are twice as fast as one only on two idle cores. The CPU time of a thread is shown too: it grows if
the two wait for memory or caches that they share. A loop that only calculates shows what the processor allows.
"""

import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import numpy as np
from _timing import growth_exponent, median_seconds
from numba import njit

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


@njit(cache=True, nogil=True)
def calculate(n):
    a, b, c, d = 1, 2, 3, 4
    for k in range(n):
        a, b, c, d = (a * 3) ^ k, (b * 5) ^ k, (c * 7) ^ k, (d * 9) ^ k
    return a ^ b ^ c ^ d


def side_by_side(run, threads, repeats=15):
    """Return the least wall-clock seconds, and CPU seconds of a thread, of ``run(k)`` in threads that start at once."""
    barrier = Barrier(threads)

    def timed(k):
        barrier.wait()
        start, used = time.perf_counter(), time.thread_time()
        run(k)
        return time.perf_counter() - start, time.thread_time() - used

    with ThreadPoolExecutor(threads) as pool:
        runs = np.array([list(pool.map(timed, range(threads))) for _ in range(repeats)])
    return runs[:, :, 0].max(axis=1).min(), runs[:, :, 1].mean(axis=1).min()


def growth(calls=1_000_000, sizes=((10, 20, 70), (30, 60, 500), (100, 200, 2000))):
    """Print the speed by size, alone and with two side by side, and how the time of a call grows with the units."""
    print("One deployment a thread, load 0.4: million calls (or rounds) a second")
    print(
        f"{'units, sites, atoms':>20} {'one':>7} {'two':>7}    by CPU time of a thread: {'one':>7} {'one of two':>11}"
    )

    def report(name, run, n):
        run(0), run(1)
        (wall, alone), (both, each) = (side_by_side(run, threads) for threads in (1, 2))
        rates = (n / 1e6 / seconds for seconds in (wall, both / 2, alone, each))
        print("{:>20} {:7.1f} {:7.1f} {:>32.1f} {:11.1f}".format(name, *rates))
        return alone, each

    report("calculation only", lambda k: calculate(100_000_000), 100_000_000)
    seconds = []
    for units, sites, atoms in sizes:
        city = grid_city(sites, atoms).with_offered_load(0.4, units)
        run = partial(one_deployment, city, units, calls)
        seconds.append(report(f"{units}, {sites}, {atoms}", run, calls))
    for name, times in zip(("alone", "side by side"), zip(*seconds, strict=True), strict=True):
        print(f"{name}: CPU time of a call grows as units ** {growth_exponent([size[0] for size in sizes], times):.2f}")


def one_deployment(city, units, calls, k):
    return simulate(city, (np.arange(units) + k) % city.n_sites, calls=calls, warmup=0, rng=k)


def main():
    if "--growth" in sys.argv[1:]:
        growth()
        return
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
