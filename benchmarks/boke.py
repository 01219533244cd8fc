"""Measure a step of BOKE and its rivals, and how its cost grows with the number t of points.

    python benchmarks/boke.py               # one step at t = 200, six inputs, ten starts
    python benchmarks/boke.py complexity    # preparing a step, and evaluating the acquisition, t = 50 to 3200
    python benchmarks/boke.py runs          # whole runs of T = 100 to 800 evaluations

The points are random points of the unit cube with Hartmann's values. Times are median CPU seconds with one thread of
linear algebra. Exponents are slopes on logarithmic axes over the largest three t, next to those of the paper's Table 1.
The tables of the other parts are stored with the studies ("boke_complexity", "boke_runs"). The second part prepares
boke-auto without the fit that is made when a tenth of the points is new; the steps of the first part include it, but
their median does not show it.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _timing import growth_exponent, median_seconds

import emsopt as eo
from emsopt._running.parallel import one_thread
from emsopt.optimizers import BOX_METHODS
from emsopt.optimizers.boxes.boke import exploration_weight, log_upper_bound
from emsopt.optimizers.boxes.boke_auto import density_upper_bound
from emsopt.optimizers.boxes.gp_ucb import upper_bound

STORED = Path(eo.__file__).parent / "data" / "studies"
METHODS = {name: BOX_METHODS[name] for name in ("boke", "boke+", "boke-auto", "kr-ucb", "gp-ucb-fixed", "gp-ucb")}
SIZES = (50, 100, 200, 400, 800, 1600, 3200)
LENGTHS = {"boke": (100, 200, 400, 800), "kr-ucb": (100, 200, 400), "gp-ucb-fixed": (100, 200, 400)}
PAPER = {("boke", "evaluation"): 1, ("gp-ucb-fixed", "evaluation"): 2, ("gp-ucb-fixed", "preparation"): 3}
PAPER |= {("kr-ucb", "preparation"): 2, ("boke", "preparation"): 0, ("gp-ucb", "preparation"): 3}
BATCH = 64  # points at which the acquisition is evaluated together


def told(method, t, seed=0):
    """Return an optimizer that was told t random points of Hartmann 6."""
    f = eo.problems.hartmann6()
    optimizer = method(f, initial=0, rng=seed)
    for x in np.random.default_rng(seed).random((t, 6)):
        optimizer.tell(x, f(x))
    return optimizer


def step(method, t, repeats):
    """Return the median CPU seconds of ask and tell, from t points on."""
    optimizer = told(method, t)
    f = eo.problems.hartmann6()

    def once():
        x = optimizer.ask()
        optimizer.tell(x, f(x))

    return median_seconds(once, repeats)


def parts(name, t):
    """Return CPU seconds to prepare a step and to evaluate the acquisition with slopes at one point."""
    optimizer = told(METHODS[name], t)
    points = np.random.default_rng(1).random((BATCH, 6))
    repeats = 21 if t <= 800 else 5
    with one_thread:
        if name == "boke":
            model = optimizer.surrogate()
            prepare = optimizer.surrogate
            evaluate = lambda: log_upper_bound(model, exploration_weight(t), points)
        elif name == "kr-ucb":
            model = optimizer.surrogate()
            prepare = lambda: optimizer.upper_bounds(optimizer.surrogate())
            evaluate = lambda: model.predict_with_slopes(points)
        else:
            repeats = 3 if name == "gp-ucb" or t > 400 else 7
            process = optimizer.process()
            prepare = optimizer.process  # boke-auto fits at the first call only
            bound = density_upper_bound if name == "boke-auto" else upper_bound
            evaluate = lambda: bound(process, 2.0, points)
        return median_seconds(prepare, repeats), median_seconds(evaluate, repeats) / BATCH


def complexity():
    rows = []
    for name in ("boke", "boke-auto", "kr-ucb", "gp-ucb-fixed", "gp-ucb"):
        for t in SIZES:
            if t > {"gp-ucb": 400, "boke-auto": 800, "gp-ucb-fixed": 1600}.get(name, t):
                continue  # more points take minutes
            prepare, evaluate = parts(name, t)
            rows += [(name, "preparation", t, prepare), (name, "evaluation", t, evaluate)]
            print(
                f"{name:13} t = {t:5}: {1e3 * prepare:9.3f} ms, {1e6 * evaluate:9.2f} us an evaluation",
                flush=True,
            )
    table = pd.DataFrame(rows, columns=["method", "part", "t", "cpu_seconds"])
    for (name, part), group in table.groupby(["method", "part"], sort=False):
        last = group.tail(3)
        slope = growth_exponent(last["t"], last["cpu_seconds"])
        print(f"{name:13} {part:12} exponent {slope:5.2f}   Table 1: {PAPER.get((name, part), '-')}")
    table["cpu_seconds"] = table["cpu_seconds"].map(lambda seconds: float(f"{seconds:.4g}"))
    table.to_csv(STORED / "boke_complexity.csv", index=False)


def runs():
    rows = []
    for name, lengths in LENGTHS.items():
        for length in lengths[:1] + lengths:  # the first run compiles
            optimizer, start = told(METHODS[name], 0), time.process_time()
            for _ in range(length):
                x = optimizer.ask()
                optimizer.tell(x, optimizer.objective(x))
            rows.append((name, length, float(f"{time.process_time() - start:.4g}")))
            print("{:13} T = {:4}: {:7.2f} s".format(*rows[-1]), flush=True)
    rows = list({row[:2]: row for row in rows}.values())
    pd.DataFrame(rows, columns=["method", "evaluations", "cpu_seconds"]).to_csv(STORED / "boke_runs.csv", index=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("step", "complexity", "runs"), default="step")
    part = parser.parse_args().part
    if part != "step":
        {"complexity": complexity, "runs": runs}[part]()
        return
    for name, method in METHODS.items():
        seconds = step(method, 200, 5 if name == "gp-ucb" else 25)
        print(f"{name:13} {1e3 * seconds:8.1f} ms CPU a step at t = 200, six inputs, ten starts", flush=True)


if __name__ == "__main__":
    main()
