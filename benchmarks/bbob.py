"""Compare boke-auto with gp-ei, Optuna, CMA-ES and scikit-optimize on COCO's bbob: 24 functions of 2 to 10 inputs.

    pip install coco-experiment optuna cma scikit-optimize torch
    python benchmarks/bbob.py --file bbob.jsonl                 # prints the table of RESULTS.md; resumes

The functions are those of Hansen, Auger, Ros, Mersmann, Tusar and Brockhoff (2021), instances 1 to 5, each from -5 to
5. A run has 20 evaluations an input, the first design included. It is scored by the share that it reaches of 17
targets: regrets of 1e2 to 1e-6, two for each power of ten but the last. The instance is also the seed. Methods are
those of ``box_peers.py`` with **cma**, CMA-ES from the middle of the box with a step of a fifth of its width, restarted
from a random point where it stops early. Optuna's GPSampler runs on instance 1 alone, as it needs minutes a run.

Differences to a peer are paired over functions and instances; the interval resamples functions. No constant of
boke-auto was chosen on these functions.
"""

import argparse
import os
import tempfile
import time
import warnings
from contextlib import chdir
from functools import cache

import numpy as np
from box_peers import METHODS, warm

import emsopt as eo
from emsopt._running.parallel import one_thread
from emsopt.optimizers import Real

DIMENSIONS = (2, 3, 5, 10)
EVALUATIONS = 20  # an input
TARGETS = 10.0 ** np.arange(2, -6.1, -0.5)
WIDTH = 10.0
ONLY_FIRST = ("optuna-gp",)


@cache
def problem_of(function, dimension, instance):
    """Return a function of named inputs, the inputs, and the function's smallest value."""
    import cocoex

    suite = cocoex.Suite("bbob", f"instances:{instance}", f"dimensions:{dimension} function_indices:{function}")
    problem = suite.get_problem_by_function_dimension_instance(function, dimension, instance)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # it writes its optimum there
        problem._best_parameter("print")
        best = problem(np.loadtxt(os.listdir(folder)[0]))
    inputs = {f"x{k}": Real(-WIDTH / 2, WIDTH / 2) for k in range(dimension)}

    def value(**x):
        return problem(list(x.values()))

    value.suite = suite  # its problems end with it
    return value, inputs, best


def by_cma(f, inputs, budget, seed, method):
    import cma

    rng, values, start = np.random.default_rng(seed), [], np.zeros(len(inputs))
    while len(values) < budget:
        settings = {"bounds": [-WIDTH / 2, WIDTH / 2], "seed": 1 + int(rng.integers(2**31)), "verbose": -9}
        search = cma.CMAEvolutionStrategy(start, WIDTH / 5, settings)
        while not search.stop() and len(values) < budget:
            points = search.ask()
            found = [f(**dict(zip(inputs, x, strict=True))) for x in points]
            values += found
            search.tell(points, found)
        start = rng.uniform(-WIDTH / 2, WIDTH / 2, len(inputs))
    return values[:budget]


RUNS = {name: METHODS[name] for name in ("boke-auto", "gp-ei", "random", "optuna-tpe", "optuna-gp", "skopt")}
RUNS["cma"] = by_cma


def run(function, dimension, instance, method):
    """Return regret and CPU seconds of one run."""
    f, inputs, best = problem_of(function, dimension, instance)
    with one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method != "cma":
            warm(method)
        start = time.process_time()
        values = RUNS[method](f, inputs, EVALUATIONS * dimension, instance, method)
        return {"regret": max(min(values) - best, 0.0), "seconds": time.process_time() - start}


def share(regret):
    """Return the share of targets that each regret reaches."""
    return (np.asarray(regret)[..., None] <= TARGETS).mean(axis=-1)


def difference(rows, peer, draws=10_000):
    """Return the mean difference in the share of targets to a peer, and the ends of its 90 % interval."""
    paired = rows.pivot_table(index=["function", "instance"], columns="method", values="share")[["boke-auto", peer]]
    by_function = paired.dropna().diff(axis=1)[peer].mul(-1).groupby("function").mean().to_numpy()
    some = np.random.default_rng(0).integers(len(by_function), size=(draws, len(by_function)))
    return by_function.mean(), *np.quantile(by_function[some].mean(axis=1), [0.05, 0.95])


def table(rows):
    """Return a table for each number of inputs: share of targets, median regret, seconds and the paired difference."""
    lines, rows = [], rows.assign(share=share(rows["regret"]))
    for dimension, group in rows.groupby("dimension"):
        lines += [f"{dimension} inputs, {EVALUATIONS * dimension} evaluations", ""]
        lines += [
            "| method | share of targets | boke-auto more by (90 %) | median regret | CPU s |",
            "|---|---|---|---|---|",
        ]
        for method, of in group.groupby("method", sort=False):
            more = "" if method == "boke-auto" else "{:+.3f} ({:+.3f} to {:+.3f})".format(*difference(group, method))
            reached, regret, seconds = of["share"].mean(), of["regret"].median(), of["seconds"].median()
            lines.append(f"| {method} | {reached:.3f} | {more} | {regret:.2g} | {seconds:.1f} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--dimensions", nargs="+", type=int, default=list(DIMENSIONS))
    parser.add_argument("--instances", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--file", help="JSON lines; finished runs in it are not repeated")
    arguments = parser.parse_args()
    cases = eo.study.cases(
        dimension=arguments.dimensions, instance=arguments.instances, function=range(1, 25), method=arguments.methods
    )
    cases = [case for case in cases if case["method"] not in ONLY_FIRST or case["instance"] == 1]
    print(table(eo.study.run(run, cases, file=arguments.file, progress=True)))
