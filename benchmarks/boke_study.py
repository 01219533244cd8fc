"""BOKE and its rivals on the paper's problems, replicated: Figures 6 to 9 of its paper, and what they leave open.

    python benchmarks/boke_study.py --part noise-free --backend processes     # about 40 min CPU
    python benchmarks/boke_study.py --part noise-free --smoke                 # a minute, nothing stored

========== ========================================================================================================
noise-free Figure 6: Forrester, Goldstein-Price, camel, Hartmann 3, Rosenbrock 4, Sphere 6; Hartmann, Ackley, Levy 6
noisy      Figure 7: the same, noise of a twentieth of each function's standard deviation on its box
sprinkler  Figure 8: the spray range of the garden sprinkler, 8 inputs
tuning     Figure 9: random forest and XGBoost on wine and California housing (needs emsopt[tuning])
fill       Figure 3: how well density, a Gaussian process and Latin hypercubes fill cubes of 1, 2, 3 and 5 inputs
========== ========================================================================================================

60 evaluations, first design included; 30 seeds (10 for tuning), the same first design for all methods but random
search at a seed. Constants are the defaults, chosen on other functions (``benchmarks/boke_training.py``, which also
says when boke-auto was changed after it had been run here). Finished cases are kept in
``emsopt-results/``, so that a run cut off goes on where it was; remove its files there after a change to a method.

Two tables go to where `emsopt.datasets.load_study` finds them: "boke_noise_free_curves" (and so on for the other parts)
has mean, median and quartiles of the simple regret (2.4) after every other evaluation, and mean CPU seconds of the
optimizer up to there, evaluations not counted; "boke_noise_free_ends" each run's regret and CPU seconds after the last.
Regret is that of the noise-free values at the points evaluated; in tuning, where no best value is known, it is 1 - R².
"boke_fill" has mean and quartiles of the fill distance (3.11) of five designs by number of points t.

The stored tables of Figures 6 and 7 are of the paper's functions, as ``--problems`` names them; Hartmann, Ackley and
Levy 6 are not in them. Tuning takes under two hours on two cores, nearly all of it for growing trees.
"""

import argparse
import time
from functools import cache
from pathlib import Path

import numpy as np

import emsopt as eo
from emsopt import study
from emsopt.optimizers import BOX_METHODS, Box, density_design, fill_distance, process_design

STORED = Path(eo.datasets.__file__).parent / "data" / "studies"
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
    """Task: one run of a method; a row an evaluation."""
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
    result = groups["regret"].agg(
        mean="mean", median="median", q25=lambda x: x.quantile(0.25), q75=lambda x: x.quantile(0.75)
    )
    result["cpu_seconds"] = groups["cpu_seconds"].mean()
    return result.reset_index().rename(columns={"problem_name": "problem"})


def ends(table):
    """Return the last row of each run."""
    last = table.groupby(["problem_name", "method", "seed"], sort=False).tail(1)
    last = last.rename(columns={"problem_name": "problem"})
    return last[["problem", "method", "seed", "regret", "cpu_seconds"]].reset_index(drop=True)


def filled(design, inputs, seed):
    """Task: the fill distance of the first t points; a row a t. A Latin hypercube is drawn anew for each t."""
    if design == "latin hypercube":
        box, rng = Box([(0, 1)] * inputs), np.random.default_rng(seed)
        return [{"t": t, "distance": fill_distance(box.latin_hypercube(t, rng))} for t in FILL_AT]
    points = {"density": density_design, "process": process_design}[design](FILL_AT[-1], inputs, rng=seed)
    return [{"t": t, "distance": fill_distance(points[:t])} for t in FILL_AT]


def fill(options):
    """Run and store Figure 3."""
    cases = study.cases(inputs=FILL_INPUTS, design=DESIGNS, seed=range(options.runs or FILL_RUNS))
    options.folder.mkdir(parents=True, exist_ok=True)
    table = study.run(
        filled,
        cases,
        file=options.folder / "boke_fill.jsonl",
        backend=options.backend,
        workers=options.workers,
        progress=True,
    )
    groups = table.groupby(["inputs", "design", "t"], sort=False)["distance"]
    means = groups.agg(mean="mean", q25=lambda x: x.quantile(0.25), q75=lambda x: x.quantile(0.75))
    means.reset_index().to_csv(STORED / "boke_fill.csv", index=False, float_format="%.4g")


def results(options):
    """Run a part and return every row of it."""
    names = options.problems or PROBLEMS[options.part]
    runs = options.runs or (2 if options.smoke else RUNS[options.part])
    cases = study.cases(
        problem_name=names[:2] if options.smoke else names,
        method=options.methods or list(BOX_METHODS),
        noisy=options.part == "noisy",
        budget=20 if options.smoke else options.budget,
        seed=range(runs),
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    name = ("smoke_" if options.smoke else "") + options.part.replace("-", "_")
    return study.run(
        search,
        cases,
        file=options.folder / f"boke_{name}.jsonl",
        backend=options.backend,
        workers=options.workers,
        progress=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=[*PROBLEMS, "fill"], required=True)
    parser.add_argument("--problems", nargs="+", help="these only, instead of all of the part")
    parser.add_argument("--methods", nargs="+", help="these only, instead of all")
    parser.add_argument("--runs", type=int, help="seeds, from 0")
    parser.add_argument("--budget", type=int, default=BUDGET, help="evaluations a run")
    parser.add_argument("--backend", choices=["serial", "processes"], default="serial")
    parser.add_argument("--workers", type=int, help="processes")
    parser.add_argument("--folder", type=Path, default=Path("emsopt-results"), help="of the finished cases")
    parser.add_argument("--smoke", action="store_true", help="a tiny study, kept in the folder and not stored")
    options = parser.parse_args()
    if options.part == "fill":
        fill(options)
        return
    table = results(options)
    folder, prefix = (options.folder, "smoke_") if options.smoke else (STORED, "")
    name = f"{prefix}boke_{options.part.replace('-', '_')}"
    for what, part in (("curves", curves(table)), ("ends", ends(table))):
        part.to_csv(folder / f"{name}_{what}.csv", index=False, float_format="%.4g")
    print(f"{name}_curves.csv and {name}_ends.csv in {folder}; median regret after the last evaluation:")
    last = ends(table).pivot_table(index="problem", columns="method", values="regret", aggfunc="median", sort=False)
    print(last.to_string(float_format="%.4g"))


if __name__ == "__main__":
    import boke_study  # by its name, as worker processes import it

    boke_study.main()
