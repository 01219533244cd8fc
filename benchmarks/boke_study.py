"""Replicate BOKE and its rivals on the paper's problems: Figures 3 and 6 to 9.

    python benchmarks/boke_study.py --part noise-free --backend processes     # about 40 min CPU
    python benchmarks/boke_study.py --part noise-free --smoke                 # one minute, nothing stored

========== ========================================================================================================
noise-free Figure 6: Forrester, Goldstein-Price, camel, Hartmann 3, Rosenbrock 4, Sphere 6; Hartmann, Ackley, Levy 6
noisy      Figure 7: the same, with noise of 5 % of each function's standard deviation over its box
sprinkler  Figure 8: the spray range of the garden sprinkler, 8 inputs
tuning     Figure 9: random forest and XGBoost on wine and California housing (needs emsopt[tuning])
fill       Figure 3: how well density, a Gaussian process and Latin hypercubes fill cubes of 1, 2, 3 and 5 inputs
========== ========================================================================================================

Each run has 60 evaluations, including the first design; there are 30 seeds (10 for tuning). At a given seed all methods
but random search start with the same design. Constants are the defaults, which were chosen on other functions
(``benchmarks/boke_training.py``, which also says when boke-auto was changed after its first run here). ``_studies.py``
says where the results go.

Two tables are stored. "boke_noise_free_curves" (and so on for the other parts) has the mean, median and quartiles of the
simple regret (2.4) after every other evaluation, and the mean CPU seconds of the optimizer until then, without
evaluations. "boke_noise_free_ends" has the regret and CPU seconds of each run after its last evaluation. Regret is that
of the noise-free values at the points evaluated; in tuning, where no best value is known, it is 1 - R². "boke_fill" has
the mean and quartiles of the fill distance (3.11) of the designs by number of points t.

The stored tables of Figures 6 and 7 contain only the paper's functions, selected by ``--problems``; Hartmann, Ackley and
Levy 6 are not in them. Tuning takes under two hours on two cores, nearly all of it for growing trees.
"""

import time
from functools import cache

import _studies
import numpy as np

import emsopt as eo
from emsopt import study
from emsopt.optimizers import BOX_METHODS, Box, density_design, fill_distance, process_design

FUNCTIONS = ["forrester", "goldstein_price", "six_hump_camel", "hartmann3", "rosenbrock4", "sphere6"]
FURTHER = ["hartmann6", "ackley6", "levy6"]
TUNING = ["forest on wine", "forest on california", "xgboost on wine", "xgboost on california"]
PROBLEMS = {
    "noise-free": FUNCTIONS + FURTHER,
    "noisy": FUNCTIONS + FURTHER,
    "sprinkler": ["sprinkler"],
    "tuning": TUNING,
}
RUNS = {"noise-free": 30, "noisy": 30, "sprinkler": 30, "tuning": 10}
BUDGET = 60
DESIGNS, FILL_INPUTS = ["density", "process", "latin hypercube"], [1, 2, 3, 5]
FILL_AT, FILL_RUNS = [4, 8, 16, 32], 5
NOISE = 0.05  # in standard deviations of the function on its box


@cache
def problem(name, noisy):
    """Return a problem of the paper."""
    if name in TUNING:
        model, data = name.split(" on ")
        return getattr(eo.problems, f"{model}_tuning")(data)
    make = getattr(eo.problems, name)
    if not noisy:
        return make()
    f = make()
    low, high = f.bounds.T
    points = low + (high - low) * np.random.default_rng(0).random((100_000, f.dimension))
    return make(noise_sd=NOISE * float(f(points).std()))


def search(problem_name, method, noisy, budget, seed):
    """Task: one run of a method; one row per evaluation."""
    f, clock = problem(problem_name, noisy), [0.0]
    spent = 0.0

    def timed(x):
        nonlocal spent
        start = time.thread_time()
        value = f(x)
        spent += time.thread_time() - start
        return value

    start = time.thread_time()

    def note(_):
        clock.append(time.thread_time() - start - spent)

    verb = eo.minimize if f.sense == "min" else eo.maximize
    options = {"budget": budget, "rng": seed, "callback": note}
    # with noise the run needs the Problem, whose noise it draws itself at no cost
    run = verb(f, method, **options) if noisy else verb(timed, method, bounds=f.bounds, integers=f.integers, **options)
    points = np.array(run.history["x"].tolist())
    values = f.exact(points) if noisy else run.history["value"].to_numpy()
    best = f.best_value if f.best_value is not None else 1.0
    gaps = values - best if f.sense == "min" else best - values
    rows = zip(np.minimum.accumulate(gaps), clock[1:], strict=True)
    return [
        {"evaluation": k, "regret": float(f"{gap:.6g}"), "cpu_seconds": round(seconds, 5)}
        for k, (gap, seconds) in enumerate(rows, 1)
    ]


def curves(table):
    """Return mean, median and quartiles of the regret over the seeds, and mean CPU seconds, at every other evaluation."""
    table = table[table["evaluation"] % 2 == 0]
    groups = table.groupby(["problem_name", "method", "evaluation"], sort=False)
    result = groups["regret"].agg(mean="mean", median="median", **_studies.QUARTILES)
    result["cpu_seconds"] = groups["cpu_seconds"].mean()
    return result.reset_index().rename(columns={"problem_name": "problem"})


def ends(table):
    """Return the last row of each run."""
    last = table.groupby(["problem_name", "method", "seed"], sort=False).tail(1)
    last = last.rename(columns={"problem_name": "problem"})
    return last[["problem", "method", "seed", "regret", "cpu_seconds"]].reset_index(drop=True)


def filled(design, inputs, seed):
    """Task: the fill distance of the first t points; one row per t. A Latin hypercube is drawn anew for each t."""
    if design == "latin hypercube":
        box, rng = Box([(0, 1)] * inputs), np.random.default_rng(seed)
        return [{"t": t, "distance": fill_distance(box.latin_hypercube(t, rng=rng))} for t in FILL_AT]
    points = {"density": density_design, "process": process_design}[design](FILL_AT[-1], inputs, rng=seed)
    return [{"t": t, "distance": fill_distance(points[:t])} for t in FILL_AT]


def fill(options):
    """Run and store Figure 3."""
    cases = study.cases(inputs=FILL_INPUTS, design=DESIGNS, seed=range(options.runs or FILL_RUNS))
    table = _studies.run(filled, cases, "boke_fill", options)
    groups = table.groupby(["inputs", "design", "t"], sort=False)["distance"]
    means = groups.agg(mean="mean", **_studies.QUARTILES)
    means.reset_index().to_csv(_studies.table_file("boke_fill", options), index=False, float_format="%.4g")


def results(name, options):
    """Run a part and return all its rows."""
    names = options.problems or PROBLEMS[options.part]
    runs = options.runs or (2 if options.smoke else RUNS[options.part])
    cases = study.cases(
        problem_name=names[:2] if options.smoke else names,
        method=options.methods or list(BOX_METHODS),
        noisy=options.part == "noisy",
        budget=20 if options.smoke else options.budget,
        seed=range(runs),
    )
    return _studies.run(search, cases, name, options)


def main():
    parser = _studies.parser(__doc__)
    parser.add_argument("--part", choices=[*PROBLEMS, "fill"], required=True)
    parser.add_argument("--problems", nargs="+", help="these only, instead of all of the part")
    parser.add_argument("--methods", nargs="+", help="these only, instead of all")
    parser.add_argument("--budget", type=int, default=BUDGET, help="evaluations per run")
    options = parser.parse_args()
    if options.part == "fill":
        fill(options)
        return
    name = f"boke_{options.part.replace('-', '_')}"
    table = results(name, options)
    for what, part in (("curves", curves(table)), ("ends", ends(table))):
        file = _studies.table_file(f"{name}_{what}", options)
        part.to_csv(file, index=False, float_format="%.4g")
        print(f"{len(part)} rows in {file}")
    print("Median regret after the last evaluation:")
    last = ends(table).pivot_table(index="problem", columns="method", values="regret", aggfunc="median", sort=False)
    print(last.to_string(float_format="%.4g"))


if __name__ == "__main__":
    import boke_study  # by its name, as worker processes import it

    boke_study.main()
