r"""Replicate the paper's control problems with every method: the study behind Figures 1 and 2.

    python benchmarks/bocvs_study.py --backend processes

"Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs": four objectives and Levy's
function, which only the appendix names; cheap and moderate costs, variances 0.02 and 0.04, five methods and a budget
of 100 units of cost. Five seeds, as in the paper, and twelve in the problems of MORE, where five left most open (twenty
were planned; also not done: Hartmann's function, of 15 to 30 CPU seconds per seed and problem). Hyperparameters are
re-estimated; bounds have beta = 2. Play number t meets the same random draws with every method. ``_studies.py`` says
where the results go; the table is "bocvs". The plant needs its published file (``EMSOPT_DATA``). Two hours on one core,
three quarters of them for the airfoil, and ten minutes for the seeds of MORE. ``--objectives``, ``--variances`` and
``--seeds`` run a part and keep the stored rows of the others.

Each run is stored at the costs of GRID: the number of ``plays`` made so far, and of those ``on_target`` (of the
cheapest set within the tolerance); simple, quality, cost and weighted regret; ``restarts``, how often no set was
feasible; ``covered``, the share of the sets played whose mean cost lies within line 23's radius of its estimate; and
``cost_error``, the largest error of an estimate.

Seeds vary slowest, so that an interrupted study holds complete replications. Where all control sets are equally large,
as the airfoil's are, ETC-50 has one group and makes the same plays as UCB-PSQ; its rows are copied.

    python benchmarks/bocvs_study.py --authors-code --seeds 0 10 --objectives hartmann ackley levy plant

"bocvs_authors_code": the learners of ``bocvs_authors.py``, which have the constants and rules of the authors' code, on
the same problems and with the same draws; seeds 0 to 9. A run of "authors-code" takes 5 to 20 CPU seconds, one of
"etc-by-index" two; 64 runs took 14 minutes, and the study has 320. Cut for time: the airfoil, of 38 CPU seconds or more
per run.

    python benchmarks/bocvs_study.py --horizon

A small study of its own, "bocvs_horizon": the growth of the paper's method's regrets with the budget, on the two
variables of `emsopt.problems.hill_control`, with a fixed tolerance. Exploration takes 60 % of every budget, as in the
experiments, or a share that shrinks like budget^(-1/3), as Theorem 1 requires. UCB-CVS, which knows the costs, is run
too.
"""

from functools import cache

import _studies
import bocvs_authors
import numpy as np
from papers.control_regret import control_verdicts

import emsopt as eo
from emsopt.optimizers import bocvs
from emsopt.optimizers.control.search import with_regret

OBJECTIVES = ["hartmann", "ackley", "levy", "plant", "airfoil"]
METHODS = ["unknown-cost", "ucb-psq", "ts-psq", "ucb-cvs", "etc-50"]
IGNORANT = ["ucb-psq", "ts-psq"]  # of costs
RUNS, BUDGET = 5, 100
MORE = {("ackley", 0.02): 12, ("plant", 0.04): 12}  # seeds, by objective and variance
GRID = [1, 2, 5, 10, 20, 30, 40, 50, 55, 60, 65, 70, 80, 90, 100]
KEYS = ["objective", "costs", "variance"]
REGRETS = ["simple_regret", "quality_regret", "cost_regret", "weighted_regret"]
HORIZONS = [10, 20, 40, 80, 160]
UCB_CVS = "none, UCB-CVS"
SHARES = {"60 %": lambda budget: 0.6, "shrinking": lambda budget: 0.6 * (10 / budget) ** (1 / 3)}


@cache
def problem(objective, costs, variance):
    """Return a problem with its optima."""
    return getattr(eo.problems, f"{objective}_control")(costs, variance).with_set_values()


@cache
def played(objective, costs, variance, method, seed, budget, until):
    """Return the history of a run without regrets, and the number of restarts after every play."""
    restarts = []

    def count(learner):
        restarts.append(getattr(learner, "restarts", 0))
        return learner.spent > until

    options = {"budget": budget, "rng": seed, "callback": count, "regret": False}
    return bocvs(problem(objective, costs, variance), method, **options).history, restarts


def search(objective, costs, variance, method, seed, budget, until=np.inf):
    """Task: one run of a method, at least ``until`` so much is spent; one row per cost of the grid."""
    solved = problem(objective, costs, variance)
    alike = method in IGNORANT and objective != "airfoil"  # the set of all variables, at a cost of 1, in all settings
    history, restarts = played(
        objective, *(("cheap", 0.02) if alike else (costs, variance)), method, seed, budget, until
    )
    return rows_of(with_regret(history, solved), solved, min(budget, until), restarts)


def rows_of(history, solved, budget, restarts):
    """Return one row per cost of the grid from the history of a run."""
    target, rows = solved.target(0.1), []
    for cost in [c for c in GRID if c <= budget]:
        done = int(np.searchsorted(history["spent"], cost, side="right"))
        if not done:
            continue
        before, last = history.iloc[:done], history.iloc[done - 1]
        row = {"cost": cost, "plays": done, "on_target": int((before["set"] == target).sum())}
        row |= {name: float(last[name]) for name in REGRETS} | {"restarts": restarts[done - 1]}
        seen = before.groupby("set")["cost"].agg(["mean", "count"])
        errors = np.abs(seen["mean"] - solved.costs[seen.index])
        radius = np.sqrt(2 * np.log(len(history)) / seen["count"])
        rows.append({**row, "covered": float((errors <= radius).mean()), "cost_error": float(errors.max())})
    return rows


def search_authors(objective, costs, variance, method, seed, budget):
    """Task: one run of a learner after the authors' code; one row per cost of the grid."""
    solved = problem(objective, costs, variance)
    history = bocvs_authors.run(solved, method, seed, budget)
    return rows_of(history, solved, budget, [0] * len(history))


def search_horizon(budget, exploration, seed):
    """Task: regrets of one run on the hill, of the cost also in the exploration alone."""
    hill = eo.problems.hill_control().with_set_values()
    if exploration == UCB_CVS:
        run = bocvs(hill, "ucb-cvs", budget=budget, rng=seed)
    else:
        run = bocvs(hill, budget=budget, rng=seed, exploration=SHARES[exploration](budget), halving=False)
    explored = run.history[run.history["phase"] == "explore"]
    return {
        "plays": run.plays,
        "explored": len(explored),
        "cost_regret_explored": float(explored["cost_regret"].max()) if len(explored) else 0.0,
        **{name: float(run.history[name].iloc[-1]) for name in REGRETS[1:]},
    }


def summary(table):
    """Return mean and standard error of the last simple regret: one row per problem, two columns per method."""
    last = table[table["cost"] == table["cost"].max()]
    groups = last.groupby([*KEYS, "method"])["simple_regret"]
    return groups.agg(mean="mean", error="sem").unstack("method")


def sorted_rows(table):
    """Sort a table as the study's cases, after adding the rows of ETC-50 that equal those of UCB-PSQ."""
    import pandas as pd

    airfoil = table["objective"] == "airfoil"
    alike = table[airfoil & (table["method"] == "ucb-psq")]
    table = pd.concat([table[~(airfoil & (table["method"] == "etc-50"))], alike.assign(method="etc-50")])
    for name, order in (("objective", OBJECTIVES), ("method", METHODS + list(bocvs_authors.METHODS))):
        table[name] = pd.Categorical(table[name], order)
    table = table.sort_values([*KEYS, "method", "seed", "cost"]).astype({"objective": str, "method": str})
    first = [*KEYS, "method", "seed", "cost"]
    return table[first + [name for name in table.columns if name not in first]]


def main():
    parser = _studies.parser(__doc__)
    parser.add_argument("--horizon", action="store_true", help="run the small study of the growth of regrets")
    parser.add_argument("--authors-code", action="store_true", help="run the learners after the authors' code")
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    parser.add_argument("--variances", nargs="+", type=float, default=[0.02, 0.04])
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, RUNS], help="first seed, and the one after the last")
    options = parser.parse_args()
    tiny = options.smoke
    if options.horizon:
        name, task = "bocvs_horizon", search_horizon
        budgets, seeds = (HORIZONS[:1], 1) if tiny else (HORIZONS, 5)
        cases = eo.study.cases(budget=budgets, exploration=[*SHARES, UCB_CVS], seed=range(seeds))
    else:
        name, task, methods = "bocvs", search, METHODS
        if options.authors_code:
            name, task, methods = "bocvs_authors_code", search_authors, list(bocvs_authors.METHODS)
        cases = eo.study.cases(
            seed=[0] if tiny else range(*options.seeds),
            objective=options.objectives,
            costs=["cheap", "moderate"],
            variance=[0.02] if tiny else options.variances,
            method=methods,
            budget=2 if tiny else BUDGET,
        )
        cases = [c for c in cases if (c["objective"], c["method"]) != ("airfoil", "etc-50")]
    table = _studies.run(task, cases, name, options)
    if options.horizon:
        table.round(4).to_csv(_studies.table_file(name, options), index=False)
        print(table.groupby(["exploration", "budget"]).mean().round(3).to_string())
        return
    digits = dict.fromkeys(REGRETS, 3) | {"simple_regret": 6, "cost_error": 4}
    stored = _studies.table_file(name, options, ".csv.gz")
    table = sorted_rows(_studies.beside_stored(table.drop(columns="budget"), stored, ["objective", "variance", "seed"]))
    table.round(digits).to_csv(stored, index=False, compression={"method": "gzip", "mtime": 0})
    print(f"{len(table)} rows in {stored}\n\nsimple regret at the end:\n{summary(table).round(4).to_string()}\n")
    if not options.authors_code:
        print(control_verdicts(table).round(4).to_string())


if __name__ == "__main__":
    import bocvs_study  # by its name, as worker processes import it

    bocvs_study.main()
