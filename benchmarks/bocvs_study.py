"""Every method on the paper's control problems, replicated: the study behind Figures 1 and 2.

    python benchmarks/bocvs_study.py --backend processes

Four objectives, cheap and moderate costs, variances 0.02 and 0.04, five methods, a budget of 100 units; "Bayesian
Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs". Hyperparameters are re-estimated, bounds
have beta = 2. Play number t of all methods meets the same luck. Finished cases are kept in ``emsopt-results/``, so that
a run cut off goes on where it was; remove its file there after a change to a method. The result goes to where
`emsopt.datasets.load_study` finds it: "bocvs". The plant needs its published file (``EMSOPT_DATA``).

Each run is stored at GRID costs, as it stood with so much spent: the ``plays`` made, those ``on_target`` among them
(of the cheapest tolerable set), simple, quality and cost regret; ``covered``, the share of the sets played whose mean
cost lies within line 23's radius of its estimate, and ``cost_error``, the largest error of an estimate. A run of more
than MOST plays is cut off there and its last rows repeat (their ``plays`` say so); only very cheap sets bring it about.

Seeds come outermost, so that a study cut off holds whole replications. Where all control sets are equally large, as
the airfoil's are, ETC-50 has one group and is UCB-PSQ play by play: its rows are copied.

    python benchmarks/bocvs_study.py --horizon

is a small study of its own, "bocvs_horizon": how the cost regret of the paper's method grows with the budget, on the
two variables of `emsopt.problems.hill_control`, with a fixed tolerance. Exploration takes 60 % of every budget, as in
the experiments, or a share that shrinks like budget^(-1/3), as Theorem 1 wants.
"""

import argparse
from functools import cache
from pathlib import Path

import numpy as np

import emsopt as eo
from emsopt import study
from emsopt.optimizers import bocvs, control_verdicts

STORED = Path(eo.datasets.__file__).parent / "data" / "studies"
OBJECTIVES = ["hartmann", "ackley", "plant", "airfoil"]
METHODS = ["unknown-cost", "ucb-psq", "ts-psq", "ucb-cvs", "etc-50"]
RUNS, BUDGET, MOST = 3, 100, 700
GRID = [1, 2, 5, 10, 20, 30, 40, 50, 55, 60, 65, 70, 80, 90, 100]
KEYS = ["objective", "costs", "variance"]
HORIZONS = [10, 20, 40, 80, 160]
SHARES = {"60 %": lambda budget: 0.6, "shrinking": lambda budget: 0.6 * (10 / budget) ** (1 / 3)}


@cache
def problem(objective, costs, variance):
    """Return a problem with its optima."""
    return getattr(eo.problems, f"{objective}_control")(costs, variance).solved()


def search(objective, costs, variance, method, seed, budget, most):
    """Task: one run of a method; a row for every cost of the grid."""
    solved = problem(objective, costs, variance)
    history = bocvs(
        solved, method, budget=budget, rng=seed, callback=lambda learner: len(learner.plays) == most
    ).history
    target, rows = solved.target(0.1), []
    for cost in [c for c in GRID if c <= budget]:
        done = int(np.searchsorted(history["spent"], cost, side="right"))
        if not done:
            continue
        before, last = history.iloc[:done], history.iloc[done - 1]
        row = {"cost": cost, "plays": done, "on_target": int((before["set"] == target).sum())}
        row |= {name: float(last[name]) for name in ("simple_regret", "quality_regret", "cost_regret")}
        seen = before.groupby("set")["cost"].agg(["mean", "count"])
        errors = np.abs(seen["mean"] - solved.costs[seen.index])
        radius = np.sqrt(2 * np.log(len(history)) / seen["count"])
        rows.append({**row, "covered": float((errors <= radius).mean()), "cost_error": float(errors.max())})
    return rows


def search_horizon(budget, exploration, seed):
    """Task: cost regret of one run on the hill, in both phases."""
    run = bocvs(
        eo.problems.hill_control().solved(),
        budget=budget,
        rng=seed,
        exploration=SHARES[exploration](budget),
        halving=False,
    )
    regret, explored = run.history["cost_regret"], run.history["phase"] == "explore"
    return {
        "plays": run.plays,
        "explored": int(explored.sum()),
        "cost_regret_explored": float(regret[explored].iloc[-1]),
        "cost_regret": float(regret.iloc[-1]),
    }


def summary(table):
    """Return mean and standard error of the last simple regret, a row a problem, a pair of columns a method."""
    last = table[table["cost"] == table["cost"].max()]
    groups = last.groupby([*KEYS, "method"])["simple_regret"]
    return groups.agg(mean="mean", error="sem").unstack("method")


def whole(table):
    """Return the table with rows of ETC-50 where it is UCB-PSQ, in the order of the study's cases."""
    import pandas as pd

    alike = table[(table["objective"] == "airfoil") & (table["method"] == "ucb-psq")]
    table = pd.concat([table, alike.assign(method="etc-50")], ignore_index=True)
    for name, order in (("objective", [*OBJECTIVES, "levy"]), ("method", METHODS)):
        table[name] = pd.Categorical(table[name], order)
    table = table.sort_values([*KEYS, "method", "seed", "cost"]).astype({"objective": str, "method": str})
    first = [*KEYS, "method", "seed", "cost"]
    return table[first + [name for name in table.columns if name not in first]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", action="store_true", help="the small study of the cost regret's growth")
    parser.add_argument("--objectives", nargs="+", choices=[*OBJECTIVES, "levy"], default=OBJECTIVES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--backend", choices=["serial", "processes"], default="serial")
    parser.add_argument("--workers", type=int, help="processes")
    parser.add_argument("--folder", type=Path, default=Path("emsopt-results"), help="of the finished cases")
    parser.add_argument("--smoke", action="store_true", help="a tiny study, kept in the folder and not stored")
    options = parser.parse_args()
    tiny = options.smoke
    if options.horizon:
        name, task = "bocvs_horizon", search_horizon
        budgets, seeds = (HORIZONS[:1], 1) if tiny else (HORIZONS, 3)
        cases = study.cases(budget=budgets, exploration=list(SHARES), seed=range(seeds))
    else:
        name, task = "bocvs", search
        cases = study.cases(
            seed=range(1 if tiny else options.runs),
            objective=options.objectives,
            costs=["cheap", "moderate"],
            variance=[0.02] if tiny else [0.02, 0.04],
            method=METHODS,
            budget=2 if tiny else BUDGET,
            most=15 if tiny else MOST,
        )
        cases = [c for c in cases if (c["objective"], c["method"]) != ("airfoil", "etc-50")]
    options.folder.mkdir(parents=True, exist_ok=True)
    name = f"smoke_{name}" if tiny else name
    file = options.folder / f"{name}.jsonl"
    table = study.run(task, cases, file=file, backend=options.backend, workers=options.workers, progress=True)
    stored = (options.folder if tiny else STORED) / f"{name}.csv"
    stored.parent.mkdir(parents=True, exist_ok=True)
    if options.horizon:
        table.round(4).to_csv(stored, index=False)
        print(table.groupby(["exploration", "budget"]).mean().round(3).to_string())
        return
    table = whole(table.drop(columns=["budget", "most"]))
    digits = dict.fromkeys(("quality_regret", "cost_regret"), 3) | {"simple_regret": 6, "cost_error": 4}
    table.round(digits).to_csv(stored, index=False)
    print(f"{len(table)} rows in {stored}\n\nsimple regret at the end:\n{summary(table).round(4).to_string()}\n")
    print(control_verdicts(table).round(4).to_string())


if __name__ == "__main__":
    import bocvs_study  # by its name, as worker processes import it

    bocvs_study.main()
