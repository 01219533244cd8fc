"""Compare GP-pM with GP-zero: evaluations to the optimum of St. Paul, gaps on grid cities, seconds per iteration.

    python benchmarks/gp_pm.py st-paul             # 10 runs, embedded demand (and published, if it is found)
    python benchmarks/gp_pm.py grid                # (50, 20) and (50, 30), 120 evaluations, GP-pM and GP-zero
    python benchmarks/gp_pm.py grid --cities 1     # only one city, with all seeds

Nothing was tuned on seeds 0-9. The best known value is that of `local_search` from the p-median and 12 random
deployments. Seconds are the CPU time of ask and tell together.
"""

import argparse
import statistics
import time

import numpy as np

import emsopt as eo
from emsopt.optimizers.deployments.gp_pm import GPpM, GPzero


def run(method, objective, seed, budget, target=-np.inf):
    """Return the values of up to ``budget`` evaluations, until the target, and CPU seconds of every iteration."""
    optimizer, seconds = method(objective, rng=seed), []
    while len(seconds) < budget and optimizer.best[1] > target + 1e-7:
        start = time.thread_time()
        sites = optimizer.ask()
        asked = time.thread_time() - start
        value = objective(sites)
        start = time.thread_time()
        optimizer.tell(sites, value)
        seconds.append(asked + time.thread_time() - start)
    return optimizer.values, seconds


def st_paul(seeds):
    for version in ("embedded", "published"):
        try:
            city = eo.datasets.load_st_paul(version)
        except eo.errors.DataUnavailableError as error:
            print(f"{version}: skipped, {error}")
            continue
        target = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").values.min()
        objective = eo.Objective(city, 9, "approximate")
        for method in (GPpM, GPzero):
            runs = [run(method, objective, seed, 100, target)[0] for seed in seeds]
            found = [len(values) if min(values) <= target + 1e-7 else np.inf for values in runs]
            print(
                f"St. Paul {version}, {method.__name__}: found in {np.isfinite(found).sum()} of {len(found)}, "
                f"median {np.median(found):g}, most {max(found):g}: {found}",
                flush=True,
            )


def grid(seeds, cities):
    for units in (20, 30):
        gaps = {GPpM: [], GPzero: []}
        seconds = []
        for seed in seeds:
            city = eo.datasets.grid_city(50, units, 0.5, rng=seed % cities)
            objective = eo.Objective(city, units, "approximate")
            known = eo.optimizers.local_search(objective, restarts=12, rng=0).fun
            for method, gap in gaps.items():
                values, spent = run(method, objective, seed, 120)
                gap.append(100 * (min(values) / known - 1))
                if method is GPpM:
                    seconds += spent[95:105]
            print(
                f"  ({units}) seed {seed}: " + ", ".join(f"{m.__name__} {g[-1]:.2f} %" for m, g in gaps.items()),
                flush=True,
            )
        for method, gap in gaps.items():
            print(
                f"(50, {units}), {method.__name__}: median gap {statistics.median(gap):.2f} %, largest {max(gap):.2f} %"
            )
        print(
            f"(50, {units}): {statistics.median(seconds):.3f} s CPU an iteration at 100 observations",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("st-paul", "grid"))
    parser.add_argument("--cities", type=int, default=10, help="different grid cities among the seeds")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    seeds = range(options.seeds)
    if options.part == "st-paul":
        st_paul(seeds)
    else:
        grid(seeds, options.cities)


if __name__ == "__main__":
    main()
