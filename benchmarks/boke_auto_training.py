"""Choose the form of boke-auto for five inputs or more, on functions that no study or comparison reports.

    python benchmarks/boke_auto_training.py boke-auto gp-ei --seeds 4

The functions (`CASES`) have 2 to 10 inputs on [-1, 1]^d. Beside draws from Gaussian processes, bumps and rotated
valleys of ``boke_training.py`` they are

======  ================================================================================================================
sum     Σ_j g_j(x_j), each g_j a draw from a Gaussian process with one input and the lengthscale of the name
pairs   the same for pairs of inputs
funnel  r^p + a Σ_j (1 - cos 2π k (x_j - c_j)) / d, where r is the root mean square of x - c in random widths; p, a, k
        and the centre c are random
======  ================================================================================================================

A run has 60 evaluations beyond the first design, from six inputs on 100 in all. Seeds start at 7000. Reported is the
regret of each run in units of the median regret of 60 random points: per function the geometric mean, regrets below a
thousandth counting as a thousandth, and the CPU seconds of a run. Finished runs are kept in ``emsopt-results/``.
"""

import argparse
import time
from functools import cache
from pathlib import Path

import boke_training
import numpy as np

import emsopt as eo

FIRST_SEED = 7000
CASES = [
    ("branin", 2), ("gp 0.2", 2), ("sum 0.15", 2), ("bumps 5", 3), ("gp 0.5", 4), ("dixon-price", 4), ("sum 0.15", 5),
    ("funnel", 5), ("gp 0.5", 5), ("bumps 6", 5), ("sum 0.3", 6), ("pairs 0.3", 6), ("gp 0.6", 6), ("ard gp 0.6", 6),
    ("bumps 8", 6), ("styblinski-tang", 6), ("dixon-price", 6), ("zakharov", 8), ("sum 0.2", 10), ("funnel", 10),
    ("bowl", 10),
]  # fmt: skip


@cache
def problem(name, d, seed):
    """Return a function of the family, to be minimised, with its best value."""
    kind, *size = name.split()
    if kind not in ("sum", "pairs", "funnel"):
        return boke_training.problem(name, d, 0.0, seed)
    rng = np.random.default_rng([seed, d, *name.encode()])
    if kind == "funnel":
        power, ripple, waves = rng.uniform(0.4, 1.5), rng.uniform(0.05, 0.3), rng.uniform(2, 6)
        centre, widths = rng.uniform(-0.5, 0.5, d), 2 ** rng.uniform(-0.5, 0.5, d)

        def function(x):
            apart = x - centre
            return np.mean((apart / widths) ** 2, axis=1) ** (power / 2) + ripple * np.mean(
                1 - np.cos(2 * np.pi * waves * apart), axis=1
            )

        return eo.problems.Problem(name, function, [(-1, 1)] * d, "min", 0.0, centre, 0.0, seed)
    width = 1 if kind == "sum" else 2
    parts = [boke_training.problem(f"gp {size[0]}", width, 0.0, 100 * seed + j) for j in range(d // width)]

    def function(x):
        return sum(part.function(x[:, width * j : width * (j + 1)]) for j, part in enumerate(parts))

    best = np.concatenate([part.best_x for part in parts])
    return eo.problems.Problem(
        name, function, [(-1, 1)] * d, "min", sum(part.best_value for part in parts), best, 0.0, seed
    )


@cache
def yardstick(name, d, seed):
    """Return the median regret of 60 random points."""
    f = problem(name, d, seed)
    points = np.random.default_rng(seed).uniform(-1, 1, (200, 60, d))
    return float(np.median(f.noise_free_value(points.reshape(-1, d)).reshape(200, 60).min(axis=1)) - f.best_value)


def budget(d):
    """Return the number of evaluations of a run with d inputs."""
    return 100 if d >= 6 else 60 + max(5, 2 * (d + 1))


def trial(method, name, inputs, seed):
    """Task: the regret of one run over that of random points, and CPU seconds."""
    f, start = problem(name, inputs, seed), time.process_time()
    run = eo.minimize(f, method, budget=budget(inputs), rng=seed)
    seconds = time.process_time() - start
    return {"ratio": max(run.fun - f.best_value, 0.0) / yardstick(name, inputs, seed), "seconds": round(seconds, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path("emsopt-results"), help="of the finished runs")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = [
        {"method": method, "name": name, "inputs": d, "seed": FIRST_SEED + k}
        for k in range(options.seeds)
        for method in options.methods
        for name, d in CASES
    ]
    results = eo.study.run(trial, cases, file=options.folder / "boke_auto_training.jsonl", progress=True)
    results["log"] = np.log10(results["ratio"].clip(lower=1e-3))
    by = {"index": ["name", "inputs"], "columns": "method", "sort": False}
    table = 10 ** results.pivot_table(values="log", aggfunc="mean", **by)
    seconds = results.pivot_table(values="seconds", aggfunc="mean", **by).add_suffix(", s")
    print(table.join(seconds).round(3).to_string())
    print((10 ** np.log10(table).mean()).round(4).to_string())


if __name__ == "__main__":
    main()
