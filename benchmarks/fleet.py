"""Measure what fleet curves and budgets take, and how often their searches find what enumeration proves.

    python benchmarks/fleet.py            # 20 small random cities: searches against enumeration
    python benchmarks/fleet.py --growth   # CPU seconds at 50, 100 and 200 sites

Approximate hypercube. Stations cost between 2 and 8 at random, units 2.
"""

import argparse
import sys
import time
from functools import partial

import numpy as np
from _timing import growth_exponent

from emsopt.datasets import grid_city
from emsopt.planning import budget, fleet_curve, within_budget

SIZES = [50, 100, 200]


def setting(n_sites, units, seed, size):
    """Return a random city, prices of stations, and a deployment of a tenth of the units, at least one."""
    city = grid_city(n_sites, units, 0.3, size=size, rng=seed)
    rng = np.random.default_rng(seed)
    return city, rng.uniform(2, 8, n_sites), rng.choice(n_sites, max(1, units // 10), replace=False)


def against_enumeration(cities=20):
    """Print how far searches end above the optimum."""
    gaps = {"fleet curve": [], "budget": []}
    curves = sys.modules["emsopt.planning.fleet_curve"]
    for seed in range(cities):
        city, prices, start = setting(14, 6, seed, 10)
        found = []
        for most in (20_000, 1):
            budget.ENUMERATED = curves.ENUMERATED = most
            options = {"evaluator": "approximate", "rng": seed}
            plan = within_budget(city, 25, station_cost=prices, unit_cost=2, start=start, **options)
            found.append((fleet_curve(city, range(3, 8), budget=60, **options).values, plan.value))
            assert (plan.found == "proven by enumeration") == (most > 1)
        gaps["fleet curve"] += list(100 * (found[1][0] / found[0][0] - 1))
        gaps["budget"].append(100 * (found[1][1] / found[0][1] - 1))
    for name, percent in gaps.items():
        print(
            f"{name}: optimum in {np.sum(np.array(percent) < 1e-6)} of {len(percent)}, largest gap {max(percent):.2f} %"
        )


def growth():
    """Print CPU seconds by size."""
    rows = {"fleet curve, 5 sizes": [], "with start, 5 sizes": [], "budget": []}
    for n in SIZES:
        city, prices, _ = setting(n, n // 10, 0, 20)
        fleet = fleet_curve(city, [n // 10], evaluator="approximate").sites[0]  # compiles too
        sizes, options = range(n // 10, n // 10 + 5), {"evaluator": "approximate"}
        calls = [
            partial(fleet_curve, city, sizes, method="local+", **options),
            partial(fleet_curve, city, sizes, start=fleet, **options),
            partial(within_budget, city, 20, station_cost=prices, unit_cost=2, start=fleet, **options),
        ]
        for seconds, call in zip(rows.values(), calls, strict=True):
            began = time.process_time()
            call()
            seconds.append(time.process_time() - began)
    for name, seconds in rows.items():
        shown = ", ".join(f"{n} sites {s:.3g} s" for n, s in zip(SIZES, seconds, strict=True))
        print(f"{name}: {shown}; sites ** {growth_exponent(SIZES, seconds):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", action="store_true")
    (growth if parser.parse_args().growth else against_enumeration)()


if __name__ == "__main__":
    main()
