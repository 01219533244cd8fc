"""Measure how much of a trade-off front the search finds, beside NSGA-II and random deployments.

    pip install pymoo                                # may be missing
    python benchmarks/trade_off.py                   # St. Paul, where enumeration gives the exact front
    python benchmarks/trade_off.py --large           # random cities, against what all methods found together
    python benchmarks/trade_off.py --growth          # CPU seconds by number of sites
    python benchmarks/trade_off.py --hypervolume     # against pymoo's

Metrics are mean response, late fraction after 8 minutes and mean response of the worst district, by the approximate
hypercube. Districts are the atoms nearest to each station, or the cells of a coarse grid of three by three. The share
is that of the hypervolume of the best known front, below a reference a tenth of its range beyond its worst values.

Budgets count distinct deployments. NSGA-II is pymoo's with its defaults and 50 individuals over one key in [0, 1] per
site; the p sites with the largest keys are used.
"""

import argparse
import sys
import time

import numpy as np
from _timing import growth_exponent

import emsopt as eo
from emsopt.planning.trade_off import _valuation, front, hypervolume, non_dominated

SEEDS = range(10)


def nearest(city):
    """Return the nearest station of each atom."""
    return city.twin_groups[city.response_times.argmin(axis=0)]


def cells(city):
    """Return the cell of each atom in a grid of three by three cells over the city."""
    points = city.atom_locations
    place = (points - points.min(axis=0)) / np.ptp(points, axis=0)
    column, row = np.minimum((3 * place).astype(int), 2).T
    return 3 * row + column


def metrics_of(city, districts):
    return ["mean_response", ("late", 8.0), ("worst", districts(city))]


def by_search(city, units, metrics, budget, seed):
    return front(city, units, metrics, "approximate", budget=budget, rng=seed).values


def by_random(city, units, metrics, budget, seed):
    objectives = [eo.Objective(city, units, "approximate", metric) for metric in metrics]
    rng, rows = np.random.default_rng(seed), {}
    while len(rows) < budget:
        rows[tuple(objectives[0].space.sample(rng=rng).tolist())] = None
    values = _valuation(objectives)(np.array(list(rows)))
    return values[non_dominated(values)]


def by_nsga2(city, units, metrics, budget, seed):
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.problem import Problem

    objectives = [eo.Objective(city, units, "approximate", metric) for metric in metrics]
    value, space, known = _valuation(objectives), objectives[0].space, {}

    class Siting(Problem):
        def __init__(self):
            super().__init__(n_var=city.n_sites, n_obj=len(metrics), xl=0.0, xu=1.0)

        def _evaluate(self, keys, out, *_, **__):
            rows = [tuple(space.canonical(np.argsort(row)[-units:]).tolist()) for row in keys]
            new = [row for row in dict.fromkeys(rows) if row not in known][: budget - len(known)]
            if new:
                known.update(zip(new, value(np.array(new)), strict=True))
            out["F"] = np.array([known.get(row, np.full(len(metrics), 1e9)) for row in rows])

    algorithm = NSGA2(pop_size=50)
    algorithm.setup(Siting(), seed=seed, verbose=False)
    for _ in range(20 * budget // 50):
        algorithm.next()
        if len(known) >= budget:
            break
    values = np.array(list(known.values()))
    return values[non_dominated(values)]


METHODS = {"search": by_search, "nsga-ii": by_nsga2, "random": by_random}


def st_paul(methods):
    city = eo.datasets.load_st_paul()
    for districts in (nearest, cells):
        metrics = metrics_of(city, districts)
        start = time.process_time()
        exact = front(city, 9, metrics, "approximate")
        print(f"{districts.__name__}: {exact}, {time.process_time() - start:.2f} CPU s")
        for budget in (200, 300, 500, 1000):
            for name in methods:
                start = time.process_time()
                values = [METHODS[name](city, 9, metrics, budget, seed) for seed in SEEDS]
                seconds = (time.process_time() - start) / len(SEEDS)
                shares = [hypervolume(each, exact.reference) / exact.hypervolume() for each in values]
                print(
                    f"| {districts.__name__} | {budget} | {name} | {min(shares):.4f} | {np.median(shares):.4f} "
                    f"| {seconds:.2f} |",
                    flush=True,
                )


def large(methods, seeds=3, budget=2000):
    for n, units in ((50, 20), (200, 40)):
        for seed in range(seeds):
            city = eo.datasets.grid_city(n, units, 0.5, size=20, rng=seed)
            metrics = metrics_of(city, cells)
            found, seconds = {}, {}
            for name in methods:
                start = time.process_time()
                found[name] = METHODS[name](city, units, metrics, budget, seed)
                seconds[name] = time.process_time() - start
            union = np.concatenate(list(found.values()))
            union = union[non_dominated(union)]
            reference = union.max(axis=0) + 0.1 * np.ptp(union, axis=0)
            whole = hypervolume(union, reference)
            for name, values in found.items():
                share = hypervolume(values, reference) / whole
                print(f"| {n}, {units} | {seed} | {name} | {share:.3f} | {seconds[name]:.1f} |", flush=True)


def growth(budget=300):
    sizes, seconds = (50, 100, 200, 400), []
    front(eo.datasets.grid_city(20, 8, 0.5, rng=0), 8, ["mean_response", "busiest"], "approximate", budget=20, rng=0)
    for n in sizes:
        city = eo.datasets.grid_city(n, n // 5, 0.5, size=20, rng=0)
        start = time.process_time()
        front(city, n // 5, metrics_of(city, cells), "approximate", budget=budget, rng=0)
        seconds.append(time.process_time() - start)
        print(f"| {n} | {city.n_atoms} | {n // 5} | {seconds[-1]:.2f} |", flush=True)
    print(f"exponent {growth_exponent(sizes, seconds):.2f}")
    rng, sizes, seconds = np.random.default_rng(0), (100, 200, 400, 800), []
    for k in sizes:
        points = rng.exponential(size=(k, 3))
        points = 1 - points / points.sum(axis=1, keepdims=True)  # none dominates another
        start = time.process_time()
        hypervolume(points, np.ones(3))
        seconds.append(time.process_time() - start)
        print(f"| hypervolume of {k} points | {seconds[-1]:.4f} |")
    print(f"exponent {growth_exponent(sizes, seconds):.2f}")


def check_hypervolume():
    from pymoo.indicators.hv import HV

    rng, worst = np.random.default_rng(0), 0.0
    for m in (2, 3):
        for k in (1, 10, 100):
            points, reference = rng.random((k, m)), np.full(m, 0.9)
            worst = max(worst, abs(hypervolume(points, reference) - HV(ref_point=reference)(points)))
    print(f"largest difference to pymoo's hypervolume: {worst:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("large", "growth", "hypervolume"):
        parser.add_argument(f"--{name}", action="store_true")
    chosen = parser.parse_args()
    methods = list(METHODS)
    try:
        import pymoo  # noqa: F401
    except ImportError:
        methods.remove("nsga-ii")
        print("pymoo is not installed, so NSGA-II is left out.", file=sys.stderr)
    if chosen.growth:
        growth()
    elif chosen.hypervolume:
        check_hypervolume()
    elif chosen.large:
        large(methods)
    else:
        st_paul(methods)


if __name__ == "__main__":
    main()
