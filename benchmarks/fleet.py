"""Measure what fleet curves take, and how often their searches find what enumeration proves.

    python benchmarks/fleet.py            # 20 small random cities: searches against enumeration
    python benchmarks/fleet.py --growth   # CPU seconds at 50, 100 and 200 sites

Approximate hypercube.
"""

import argparse
import time
from functools import partial

import numpy as np
from _timing import growth_exponent

import emsopt as eo

SIZES = [50, 100, 200]


def against_enumeration(cities=20):
    """Print how far searches end above the optimum."""
    gaps = []
    for seed in range(cities):
        city, found = eo.datasets.grid_city(14, 6, 0.3, size=10, rng=seed), []
        for most in (20_000, 1):
            eo.planning.fleet.MOST_ENUMERATED = most
            curve = eo.planning.fleet_curve(city, range(3, 8), budget=60, evaluator="approximate", rng=seed)
            found.append(curve.values)
        gaps += list(100 * (found[1] / found[0] - 1))
    print(f"optimum in {np.sum(np.array(gaps) < 1e-6)} of {len(gaps)}, largest gap {max(gaps):.2f} %")


def growth():
    """Print CPU seconds by size."""
    rows = {"fleet curve, 5 sizes": [], "with start, 5 sizes": []}
    for n in SIZES:
        city = eo.datasets.grid_city(n, n // 10, 0.3, size=20, rng=0)
        fleet = eo.planning.fleet_curve(city, [n // 10], evaluator="approximate").sites[0]  # compiles too
        sizes, options = range(n // 10, n // 10 + 5), {"evaluator": "approximate"}
        calls = [
            partial(eo.planning.fleet_curve, city, sizes, **options),
            partial(eo.planning.fleet_curve, city, sizes, start=fleet, **options),
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
