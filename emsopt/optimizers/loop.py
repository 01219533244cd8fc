"""`minimize`: let an optimizer ask, evaluate, tell, until there is a reason to stop."""

import time
from copy import copy
from importlib import import_module

import numpy as np

from .. import _validate
from .._progress import shown
from ..errors import InputError
from ..objective import Objective
from .checkpoint import Checkpoint, describe
from .optimizer import Optimizer, check_value
from .run import Run

METHODS = {
    "gp-pm": ("gp_pm", "GPpM"),
    "gp-zero": ("gp_pm", "GPzero"),
    "sparbl": ("sparbl", "SparBL"),
    "sparbl+": ("sparbl", "SparBLPlus"),
    "bocs": ("bocs", "BOCS"),
    "random": ("random_search", "RandomSearch"),
    "genetic": ("genetic", "Genetic"),
    "annealing": ("annealing", "SimulatedAnnealing"),
    "local": ("local_search", "LocalSearch"),
}
"""Methods by name: module and class of each."""


def minimize(
    objective,
    method="gp-pm",
    *,
    budget,
    rng=None,
    progress=False,
    callback=None,
    checkpoint=None,
    target=None,
    time_limit=None,
):
    """Search for the deployment of the smallest value.

    Parameters
    ----------
    objective : Objective
    method : str or Optimizer
        One of `METHODS`, or an optimizer of this objective, set up to taste.
    budget : int
        Most evaluations. No deployment is evaluated twice unless the objective is noisy.
    rng : int or Generator, optional
        Decides everything random in the run: the method (unless ``method`` is an optimizer, which has its own) and
        the calls that a noisy objective simulates, whatever its own ``rng``.
    progress : bool or callable
        Show a bar, or call with (evaluations done, budget).
    callback : callable, optional
        Called with the optimizer after each evaluation, those on file included; the run stops if it returns True.
    checkpoint : path-like, optional
        File to which each evaluation is written. If it exists the run goes on from there, to the result it would
        have had uninterrupted; with ``rng`` left out its seed is on file, and an optimizer must be set up as it was
        at first.
    target : float, optional
        Stop at a value of at most this.
    time_limit : float, optional
        Stop after the evaluation in which so many seconds are up (of all attempts together, with a checkpoint).

    Returns
    -------
    Run
        The best deployment evaluated; ``message`` says why the run ended. Ctrl-C ends it too. With a noisy objective
        ``fun`` is the best of noisy values, hence too good on average: evaluate ``x`` anew.

    Raises
    ------
    InputError
        If an option is invalid, no deployment is left to evaluate, or the checkpoint is of another run.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.load_st_paul(), 9, "approximate")
    >>> run = eo.minimize(objective, "local", budget=200, rng=0)
    >>> round(run.fun, 2), run.nfev, run.message
    (5.93, 200, 'budget of 200 evaluations used')
    """
    if not isinstance(objective, Objective):
        msg = f"`objective` must be an emsopt.Objective; got {type(objective).__name__}."
        raise InputError(msg)
    budget = _validate.whole_number(budget, "budget")
    if callback is not None and not callable(callback):
        msg = f"`callback` must be a function of (the optimizer); got {callback!r}."
        raise InputError(msg)
    target = -np.inf if target is None else check_value(target, "target")
    time_limit = np.inf if time_limit is None else _validate.positive_number(time_limit, "time_limit", "s")
    name = method
    if isinstance(method, Optimizer):
        name = f"{type(method).__name__}, {len(method.values)} told"
        if method.objective is not objective:
            msg = "`method` must be an optimizer of this very `objective`; it was set up with another one."
            raise InputError(msg)
    else:
        _validate.choice(method, "method", tuple(METHODS))
    problem = None if checkpoint is None else describe(objective, name)
    with Checkpoint(checkpoint, problem, _seed(rng)) as log, shown(progress, budget, "evaluation") as show:
        optimizer = method if isinstance(method, Optimizer) else _optimizer(method)(objective, rng=log.seed)
        rows, best, clock = [], np.inf, time.perf_counter()
        message = f"budget of {budget} evaluations used"
        try:
            for number in range(1, budget + 1):
                sites = optimizer.ask()
                row = log.replay(number, sites)
                if row is not None:
                    value, seconds = row["value"], row["seconds"]
                    clock = time.perf_counter() - seconds
                else:
                    value = check_value(_evaluate(objective, sites, log.seed, number))
                    seconds = round(time.perf_counter() - clock, 6)
                    log.add(number, sites, value, seconds)
                optimizer.tell(sites, value)
                best = min(best, value)
                rows.append((number, tuple(sites.tolist()), value, best, seconds))
                show(number, f"best {best:.6g}")
                stop = callback is not None and callback(optimizer)
                if best <= target:
                    message = f"target of {target:g} reached"
                elif optimizer.exhausted:
                    message = "every allowed deployment evaluated, so this is the optimum"
                elif seconds >= time_limit:
                    message = f"time limit of {time_limit:g} s reached"
                elif stop:
                    message = "stopped by the callback"
                else:
                    continue
                break
        except KeyboardInterrupt:
            if not rows:
                raise
            message = "interrupted"
    return _run(rows, message)


def _optimizer(name):
    module, attribute = METHODS[name]
    return getattr(import_module(f".{module}", __package__), attribute)


def _seed(rng):
    """Return the seed of a run; None if there is nothing to take it from."""
    if rng is None:
        return None
    if _validate.is_real(rng):
        return _validate.whole_number(rng, "rng", low=0)
    return int(np.random.default_rng(rng).integers(2**63))


def _evaluate(objective, sites, seed, number):
    """Return the value of a deployment; noise depends on the run's seed and the evaluation's number alone."""
    if not (objective.noisy and objective.evaluator == "simulation"):
        return objective(sites)
    seeded = copy(objective)
    noise = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)
    seeded.options = {**objective.options, "rng": int(noise[0])}
    objective.evaluations += 1
    return seeded(sites)


def _run(rows, message):
    import pandas as pd

    history = pd.DataFrame(rows, columns=["evaluation", "sites", "value", "best", "seconds"])
    best = history["value"].idxmin()
    x = np.array(history["sites"][best], dtype=np.intp)
    return Run(x, float(history["value"][best]), len(rows), message, history)
