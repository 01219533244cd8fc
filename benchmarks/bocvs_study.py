"""Every method on the paper's control problems, replicated: the study behind Figures 1 and 2.

    python benchmarks/bocvs_study.py --backend processes

Four objectives, cheap and moderate costs, variances 0.02 and 0.04, five methods, a budget of 100 units; "Bayesian
Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs". Hyperparameters are re-estimated, bounds
have beta = 2. Play number t of all methods meets the same luck. Finished cases are kept in ``emsopt-results/``, so that
a run cut off goes on where it was; remove its file there after a change to a method. The result goes to where
`emsopt.datasets.load_study` finds it: "bocvs". The plant needs its published file (``EMSOPT_DATA``).

Each run is stored at GRID costs: the simple, quality and cost regret and the plays made with so much spent. A run of
more than MOST plays is cut off there (its column ``plays`` says so), which only very cheap sets bring about.
"""

import argparse
from functools import cache
from pathlib import Path

import numpy as np

import emsopt as eo
from emsopt import study
from emsopt.optimizers.bocvs import bocvs

STORED = Path(eo.datasets.__file__).parent / "data" / "studies"
OBJECTIVES = ["hartmann", "ackley", "plant", "airfoil"]
METHODS = ["unknown-cost", "ucb-psq", "ts-psq", "ucb-cvs", "etc-50"]
RUNS, BUDGET, MOST = 3, 100, 700
GRID = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
KEYS = ["objective", "costs", "variance"]


@cache
def problem(objective, costs, variance):
    """Return a problem with its optima."""
    return getattr(eo.problems, f"{objective}_control")(costs, variance).solved()


def search(objective, costs, variance, method, seed, budget, most):
    """Task: one run of a method; a row for every cost of the grid."""
    run = bocvs(problem(objective, costs, variance), method, budget=budget, rng=seed, most_plays=most)
    history, rows = run.history, []
    for cost in [c for c in GRID if c <= budget]:
        done = int(np.searchsorted(history["spent"], cost, side="right"))
        if done:
            last = history.iloc[done - 1]
            names = ("simple_regret", "quality_regret", "cost_regret", "seconds")
            rows.append({"cost": cost, "plays": done, **{name: float(last[name]) for name in names}})
    return rows


def summary(table):
    """Return mean and standard error of the last simple regret, a row a problem, a pair of columns a method."""
    last = table[table["cost"] == table["cost"].max()]
    groups = last.groupby([*KEYS, "method"])["simple_regret"]
    return groups.agg(mean="mean", error="sem").unstack("method")


def claim(table):
    """Return, for each problem, whether the paper's method has the lowest mean or is tied within two errors."""
    wide, rows = summary(table), []
    for key, row in wide.iterrows():
        ours, error = row["mean"]["unknown-cost"], row["error"]["unknown-cost"]
        rivals = row["mean"].drop("unknown-cost")
        best = rivals.idxmin()
        apart = 2 * np.hypot(error, row["error"][best])
        verdict = "lowest" if ours <= rivals.min() else "tied" if ours - rivals.min() <= apart else "behind"
        rows.append((*key, ours, best, rivals.min(), verdict))
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objectives", nargs="+", choices=[*OBJECTIVES, "levy"], default=OBJECTIVES)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--backend", choices=["serial", "processes"], default="serial")
    parser.add_argument("--workers", type=int, help="processes")
    parser.add_argument("--folder", type=Path, default=Path("emsopt-results"), help="of the finished cases")
    parser.add_argument(
        "--smoke", action="store_true", help="a tiny study, kept in the folder and not stored"
    )
    options = parser.parse_args()
    cases = study.cases(
        objective=options.objectives,
        costs=["cheap", "moderate"],
        variance=[0.02] if options.smoke else [0.02, 0.04],
        method=options.methods,
        seed=range(1 if options.smoke else options.runs),
        budget=2 if options.smoke else BUDGET,
        most=15 if options.smoke else MOST,
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    name = "smoke_bocvs" if options.smoke else "bocvs"
    table = study.run(
        search,
        cases,
        file=options.folder / f"{name}.jsonl",
        backend=options.backend,
        workers=options.workers,
        progress=True,
    ).drop(columns=["budget", "most"])
    file = (options.folder if options.smoke else STORED) / f"{name}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    digits = {"simple_regret": 6, "quality_regret": 4, "cost_regret": 4, "seconds": 2}
    table.round(digits).to_csv(file, index=False)
    print(
        f"{len(table)} rows in {file}\n\nsimple regret at the end:\n{summary(table).round(4).to_string()}\n"
    )
    if "unknown-cost" in options.methods and len(options.methods) > 1:
        for *key, ours, best, theirs, verdict in claim(table):
            print(*key, f"unknown-cost {ours:.4f}, {best} {theirs:.4f}: {verdict}")


if __name__ == "__main__":
    import bocvs_study  # by its name, as worker processes import it

    bocvs_study.main()
