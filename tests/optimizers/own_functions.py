"""Functions, boxes and inputs that the tests of searches share."""

import itertools
import json
from functools import wraps

import numpy as np

import emsopt as eo
from emsopt.optimizers import BOX_METHODS, Categorical, Integer, Real

METHODS = tuple(BOX_METHODS)
FEW = ("boke-auto", "kr-ucb", "random")  # where the others share the code that is tested
BUDGET = 40
CHEAP = ("random", "genetic", "annealing", "local")  # methods on deployments that need no model
BOX = [(0, 1), (0, 1)]
INPUTS = {
    "rate": Real(1e-5, 1.0, log=True),
    "layers": Integer(1, 9),
    "units": Integer(1, 512, log=True),
    "solver": Categorical(["adam", "lbfgs", "sgd"]),
    "shuffle": Categorical([True, False]),
    "decay": (0.0, 1.0),
}


def played(optimizer, evaluations):
    """Return an optimizer after so many evaluations, or all that there are."""
    for _ in range(evaluations):
        if optimizer.exhausted:
            break
        x = optimizer.ask()
        optimizer.tell(x, optimizer.objective(x))
    return optimizer


def listed(sites, units):
    """Return all deployments as rows of zeros and ones."""
    rows = itertools.combinations(range(sites), units)
    return np.array([np.isin(np.arange(sites), row) for row in rows]).astype(int)


def noisy(city):
    return eo.Objective(city, 4, "simulation", calls=300)


def recorded(seen):
    """Return the bowl, recording its points; a checkpoint takes it for the same function."""

    @wraps(bowl)
    def f(x):
        seen.append(tuple(x.tolist()))
        return bowl(x)

    return f


def bowl(x):
    return float(((x - 0.3) ** 2).sum())


def same(one, other):
    """Return whether two runs are the same in all but the clock."""
    histories = [run.history.drop(columns="seconds") for run in (one, other)]
    ends = [(run.x, run.nfev, run.message) for run in (one, other)]
    return histories[0].equals(histories[1]) and all(map(np.array_equal, *ends)) and one.fun == other.fun


def evaluations_on_file(file):
    """Return the numbers of the evaluations in a checkpoint, in the order of its lines."""
    return [json.loads(line)["evaluation"] for line in file.read_text().splitlines()[1:]]


def cut(file, lines):
    """Leave the first lines of a checkpoint, as if the run had been cut off."""
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:lines]))


def half(x):
    """Fail where the bowl has its bottom; the best of the other points is at (0.5, 0.3)."""
    return bowl(x) if x[0] >= 0.5 else np.nan


def unstable(x):
    if x[0] < 0.5:
        raise ArithmeticError("too cold")
    return bowl(x)


def inside(x):
    return bool(x.sum() >= 1.2)
