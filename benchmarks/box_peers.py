"""Compare boke-auto on functions of one's own with Optuna, scikit-optimize and BoTorch.

    pip install optuna scikit-optimize torch botorch         # whatever is missing is left out
    python benchmarks/box_peers.py                           # 20 minutes of CPU; prints the table of RESULTS.md
    python benchmarks/box_peers.py --methods boke-auto optuna-tpe --seeds 3 --file box_peers.jsonl

All methods minimise the same noise-free functions with the same seeds, 60 evaluations each (80 with six inputs),
counting those of the initial design. Regret is the best value found minus the optimum; seconds are the CPU time of a
run on one thread, without loading packages, after a short run that compiles. Finished runs are kept in ``--file``, if
given, and are not repeated. Of the functions, "mixed6" has a logarithmic, a whole-number and a categorical input among
six.

- **optuna-tpe**, **optuna-gp**: ``TPESampler`` and ``GPSampler(deterministic_objective=True)`` with their defaults.
- **skopt**: ``gp_minimize`` with its defaults, but ``noise=1e-10``.
- **botorch**: ``SingleTaskGP`` with its defaults, trained before every step, and ``LogExpectedImprovement`` maximised
  from 10 of 256 points, after a Sobol design of 2 (d + 1) points. It is left out on mixed6.
"""

import argparse
import time
import warnings
from functools import cache
from importlib import util

import numpy as np

import emsopt as eo
from emsopt._running.parallel import one_thread
from emsopt.optimizers import BOX_METHODS, Categorical, Integer, Real

FUNCTIONS = {
    name: getattr(eo.problems, name) for name in ("six_hump_camel", "hartmann3", "rosenbrock4", "hartmann6", "levy6")
}
NEEDS = {"optuna-tpe": "optuna", "optuna-gp": "optuna", "skopt": "skopt", "botorch": "botorch"}
MIXED = {
    "rate": Real(1e-5, 1.0, log=True),
    "layers": Integer(1, 9),
    "units": Integer(1, 512, log=True),
    "solver": Categorical(["adam", "lbfgs", "sgd"]),
    "shuffle": Categorical([True, False]),
    "decay": Real(0.0, 1.0),
}


def mixed(rate, layers, units, solver, shuffle, decay):
    """Return a loss of 0 at rate 0.001, 3 layers of 32 units, lbfgs, shuffled, decay 0.4."""
    loss = (np.log10(rate) + 3) ** 2 / 4 + (layers - 3) ** 2 / 10 + np.log2(units / 32) ** 2 / 10 + (decay - 0.4) ** 2
    return float(loss + {"adam": 0.5, "lbfgs": 0.0, "sgd": 1.0}[solver] + (not shuffle) * 0.3)


def task_of(name):
    """Return a function of named inputs, the inputs, and the function's smallest value."""
    if name == "mixed6":
        return mixed, MIXED, 0.0
    problem = FUNCTIONS[name]()
    inputs = {f"x{k}": Real(*row) for k, row in enumerate(problem.bounds.tolist())}
    return lambda **x: problem(list(x.values())), inputs, problem.best_value


# -- the methods: each returns the values it finds ---------------------------------------------------------------------


def ours(f, inputs, budget, seed, method):
    return eo.minimize(f, method, bounds=inputs, budget=budget, rng=seed).history["value"].tolist()


def by_optuna(f, inputs, budget, seed, method):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if method == "optuna-tpe":
        sampler = optuna.samplers.TPESampler(seed=seed)
    else:
        sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)

    def objective(trial):
        x = {}
        for name, one in inputs.items():
            if one.choices:
                x[name] = trial.suggest_categorical(name, one.choices)
            else:
                suggest = trial.suggest_int if one.whole else trial.suggest_float
                x[name] = suggest(name, one.low, one.high, log=one.log)
        return f(**x)

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=budget)
    return [trial.value for trial in study.trials]


def by_skopt(f, inputs, budget, seed, method):
    from skopt import gp_minimize, space

    dimensions = []
    for one in inputs.values():
        if one.choices:
            dimensions.append(space.Categorical(one.choices))
        else:
            prior = "log-uniform" if one.log else "uniform"
            dimensions.append((space.Integer if one.whole else space.Real)(one.low, one.high, prior=prior))
    found = gp_minimize(
        lambda x: f(**dict(zip(inputs, x, strict=True))), dimensions, n_calls=budget, noise=1e-10, random_state=seed
    )
    return found.func_vals.tolist()


def by_botorch(f, inputs, budget, seed, method):
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from botorch.utils.sampling import draw_sobol_samples
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    d = len(inputs)
    low, high = np.array([[one.low, one.high] for one in inputs.values()]).T
    cube = torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.double)
    X = draw_sobol_samples(cube, 2 * (d + 1), 1, seed=seed).squeeze(1)
    at = lambda u: f(**dict(zip(inputs, (low + u.numpy() * (high - low)).tolist(), strict=True)))
    values = [at(u) for u in X]
    while len(values) < budget:
        y = -torch.tensor(values, dtype=torch.double)[:, None]
        model = SingleTaskGP(X, y, outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        improvement = LogExpectedImprovement(model, best_f=y.max())
        u, _ = optimize_acqf(improvement, cube, q=1, num_restarts=10, raw_samples=256)
        X = torch.cat([X, u])
        values.append(at(u[0]))
    return values


METHODS = dict.fromkeys(("boke-auto", "gp-ei", "random"), ours)
METHODS |= {"optuna-tpe": by_optuna, "optuna-gp": by_optuna, "skopt": by_skopt, "botorch": by_botorch}


@cache
def warm(method):
    """Load and compile what a method needs."""
    f, inputs, _ = task_of("six_hump_camel")
    METHODS[method](f, inputs, 14, 0, method)


def run(seed, function, method):
    """Return regret and CPU seconds of one run."""
    f, inputs, best = task_of(function)
    with one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm(method)
        start = time.process_time()
        values = METHODS[method](f, inputs, 80 if len(inputs) > 5 else 60, seed, method)
        return {"regret": min(values) - best, "seconds": time.process_time() - start, "evaluations": len(values)}


def table(rows):
    """Return a table of the median (smallest to largest) regret, and of median seconds, one row per method."""
    texts = {
        "Regret": lambda group: f"{group.regret.median():.2g} ({group.regret.min():.2g} to {group.regret.max():.2g})",
        "CPU seconds": lambda group: f"{group.seconds.median():.1f}",
    }
    groups = dict(iter(rows.groupby(["method", "function"], sort=False)))
    methods, functions = rows["method"].unique(), rows["function"].unique()
    lines = []
    for title, text in texts.items():
        lines += [title, "", f"| method | {' | '.join(functions)} |", f"|{'---|' * (len(functions) + 1)}"]
        for method in methods:
            cells = [text(groups[method, name]) if (method, name) in groups else "-" for name in functions]
            lines.append(f"| {method} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, *BOX_METHODS], default=list(METHODS))
    parser.add_argument("--functions", nargs="+", default=[*FUNCTIONS, "mixed6"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--file", help="JSON lines; finished runs in it are not repeated")
    arguments = parser.parse_args()
    METHODS |= dict.fromkeys((name for name in arguments.methods if name in BOX_METHODS), ours)
    methods = [name for name in arguments.methods if util.find_spec(NEEDS.get(name, "emsopt"))]
    cases = eo.study.cases(seed=range(arguments.seeds), function=arguments.functions, method=methods)
    cases = [case for case in cases if (case["method"], case["function"]) != ("botorch", "mixed6")]
    print(table(eo.study.run(run, cases, file=arguments.file, progress=True)))
