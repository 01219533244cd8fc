"""`minimize` and `maximize`: let an optimizer ask, evaluate, tell, until there is a reason to stop."""

import time
from copy import copy
from importlib import import_module

import numpy as np

from .. import _validate
from .._running.checkpoint import RunFile, are_indices, are_numbers, is_number, run_seed
from .._running.progress import shown
from ..errors import InputError
from ..evaluators.objective import Objective
from ..problems import Problem
from .ask_tell import AskTell
from .boxes.base import BoxOptimizer
from .boxes.box import on_box
from .checkpoint import describe
from .deployments.base import Optimizer
from .run import Run

METHODS = {
    "gp-pm": ("deployments.gp_pm", "GPpM"),
    "gp-zero": ("deployments.gp_pm", "GPzero"),
    "sparbl": ("deployments.sparbl", "SparBL"),
    "sparbl+": ("deployments.sparbl", "SparBLPlus"),
    "bocs": ("deployments.bocs", "BOCS"),
    "random": ("deployments.random_search", "RandomSearch"),
    "genetic": ("deployments.genetic", "Genetic"),
    "annealing": ("deployments.annealing", "SimulatedAnnealing"),
    "local": ("deployments.swaps", "LocalSearch"),
}
"""Methods on deployments by name: module and class of each."""

BOX_METHODS = {
    "boke": ("boxes.boke", "BOKE"),
    "boke+": ("boxes.boke", "BOKEPlus"),
    "boke-auto": ("boxes.boke_auto", "BOKEAuto"),
    "kr-ucb": ("boxes.kr_ucb", "KRUCB"),
    "gp-ucb-fixed": ("boxes.gp_ucb", "GPUCBFixed"),
    "gp-ucb": ("boxes.gp_ucb", "GPUCB"),
    "random": ("boxes.random_points", "RandomPoints"),
}
"""Methods on boxes by name: module and class of each."""

_VERBS = {"min": "minimize", "max": "maximize"}

_IN_A_ROW = {
    "kind": "emsopt run",
    "step": "evaluation",
    "told": {"value": is_number, "seconds": is_number},
}


def minimize(
    objective,
    method=None,
    *,
    budget,
    bounds=None,
    integers=None,
    noisy=None,
    rng=None,
    progress=False,
    callback=None,
    checkpoint=None,
    target=None,
    time_limit=None,
):
    """Search for the deployment, or the point of a box, of the smallest value.

    Parameters
    ----------
    objective : Objective, Problem or callable
        What to optimise: an `emsopt.Objective` over deployments, a `Problem` over its box, or a function of your own
        that takes a point, shape (d,), and returns a number. The first two know by their ``sense`` whether they are to
        be minimised; a function need not say.
    method : str or optimizer, optional
        For deployments one of `METHODS`: "gp-pm" (used if left out), "gp-zero", "sparbl", "sparbl+", "bocs", "local",
        "annealing", "genetic" or "random". Where an evaluation takes less than about 0.015 s (measured with 50 sites
        and 20 units) "local" is quicker than "gp-pm". For boxes one of `BOX_METHODS`: "boke-auto" (used if left out),
        "boke", "boke+", "kr-ucb", "gp-ucb-fixed", "gp-ucb" or "random". Or an optimizer of this very objective, set up
        to taste for the same direction; that of a function to be minimised is made with ``on_box(f, sense="min")``.
    budget : int
        Most evaluations. Nothing is evaluated twice unless the objective is noisy.
    bounds : array_like, shape (d, 2), optional
        Boxes only: lowest and highest value of each input; left out, the ``bounds`` of the objective.
    integers : sequence of int, optional
        Boxes only: inputs, by index, that are whole numbers; left out, the ``integers`` of the objective, or none.
    noisy : bool, optional
        Boxes only: whether the same point can get different values; left out, whether the objective has ``noise_sd``.
    rng : int or Generator, optional
        Decides everything random in the run: the method (unless ``method`` is an optimizer, which has its own), the
        calls that a noisy `Objective` simulates and the noise of a Problem, whatever their own ``rng``. The noise of a
        function of your own is its own.
    progress : bool or callable
        Show a bar, or call with (evaluations done, budget).
    callback : callable, optional
        Called with the optimizer after each evaluation, those on file included; the run stops if it returns True.
    checkpoint : path-like, optional
        File to which each evaluation is written. If it exists the run goes on from there, to the result it would
        have had uninterrupted; with ``rng`` left out its seed is on file, and an optimizer must be set up as it was
        at first. A function of your own is evaluated once more at the first point on file, to see that it is still
        the same function. On another processor, where a method may ask for something else, the run goes on from what
        is on file, with a `ResumeWarning`. One run at a time may write to a file.
    target : float, optional
        Stop at a value at least as good as this.
    time_limit : float, optional
        Stop after the evaluation in which so many seconds are up (of all attempts together, with a checkpoint).

    Returns
    -------
    Run
        The best deployment or point evaluated, ``x``, and its value ``fun``, in the objective's own sign; ``message``
        says why the run ended. Ctrl-C ends it too. The history has a column ``sites`` or ``x``. With a noisy objective
        ``fun`` is the best of noisy values, hence too good on average: evaluate ``x`` anew.

    Raises
    ------
    InputError
        If the objective or the optimizer is to be maximised, an option is invalid, nothing is left to evaluate, or the
        checkpoint is of another run.

    See Also
    --------
    maximize : The same for the largest value.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.load_st_paul(), 9, "approximate")
    >>> run = eo.minimize(objective, "local", budget=200, rng=0)
    >>> round(run.fun, 2), run.nfev, run.message
    (5.93, 200, 'budget of 200 evaluations used')
    >>> run = eo.minimize(lambda x: (x[0] - 0.3) ** 2, bounds=[(0, 1)], budget=15, rng=0)
    >>> run.x.round(2)
    array([0.3])
    """
    return _search(
        "min",
        objective,
        method,
        budget=budget,
        box={"bounds": bounds, "integers": integers, "noisy": noisy},
        rng=rng,
        progress=progress,
        callback=callback,
        checkpoint=checkpoint,
        target=target,
        time_limit=time_limit,
    )


def maximize(
    objective,
    method=None,
    *,
    budget,
    bounds=None,
    integers=None,
    noisy=None,
    rng=None,
    progress=False,
    callback=None,
    checkpoint=None,
    target=None,
    time_limit=None,
):
    """Search for the point of a box of the largest value.

    Every parameter, the result and the errors are those of `minimize`. An `emsopt.Objective` is always to be
    minimised.

    Examples
    --------
    >>> import emsopt as eo
    >>> run = eo.maximize(lambda x: -((x[0] - 0.3) ** 2), "gp-ucb", bounds=[(0, 1)], budget=15, rng=0)
    >>> run.x.round(2)
    array([0.3])
    """
    return _search(
        "max",
        objective,
        method,
        budget=budget,
        box={"bounds": bounds, "integers": integers, "noisy": noisy},
        rng=rng,
        progress=progress,
        callback=callback,
        checkpoint=checkpoint,
        target=target,
        time_limit=time_limit,
    )


def _search(sense, objective, method, *, budget, box, rng, progress, callback, checkpoint, target, time_limit):
    """Run the loop that `minimize` and `maximize` share."""
    if not isinstance(objective, Objective) and not callable(objective):
        msg = "`objective` must be an emsopt.Objective, a Problem or a function of a point, shape (d,); "
        msg += f"got {type(objective).__name__}."
        raise InputError(msg)
    own = getattr(objective, "sense", None)
    if own is not None and _validate.choice(own, "sense", tuple(_VERBS)) != sense:
        msg = f"`objective` is to be {own}imised (its `sense` is {own!r}): use `{_VERBS[own]}`, not `{_VERBS[sense]}`."
        raise InputError(msg)
    if isinstance(objective, Objective):
        kind, methods, default = Optimizer, METHODS, "gp-pm"
    else:
        kind, methods, default = BoxOptimizer, BOX_METHODS, "boke-auto"
    method = default if method is None else method
    if isinstance(method, kind):
        name = f"{type(method).__name__}, {len(method.values)} told"
    elif isinstance(method, AskTell) or (isinstance(method, type) and issubclass(method, AskTell)):
        name = method.__name__ if isinstance(method, type) else type(method).__name__
        msg = f"`method` must be one of {', '.join(map(repr, methods))}, or an instance of {kind.__name__} set up with this objective; "
        msg += f"got {name}."
        raise InputError(msg)
    else:
        name = _validate.choice(method, "method", tuple(methods))
    objective = _goal(sense, objective, method, box)
    budget = _validate.whole_number(budget, "budget")
    if callback is not None and not callable(callback):
        raise InputError(f"`callback` must be a function of (the optimizer); got {callback!r}.")
    target = None if target is None else _validate.finite_number(target, "target")
    time_limit = np.inf if time_limit is None else _validate.positive_number(time_limit, "time_limit", "s")
    problem = None if checkpoint is None else describe(objective, name, method)
    asked = {"sites": are_indices} if isinstance(objective, Objective) else {"x": are_numbers}
    (column,) = asked
    with (
        RunFile(checkpoint, problem, run_seed(rng), **_IN_A_ROW, asked=asked) as log,
        shown(progress, budget, "evaluation") as show,
    ):
        optimizer = method if isinstance(method, kind) else _class(methods[method])(objective, rng=log.seed)
        rows, best, clock = [], None, time.perf_counter()
        message = f"budget of {budget} evaluations used"
        try:
            for number in range(1, budget + 1):
                x = optimizer.ask()
                row = log.row(number)
                if row is not None:
                    x = _on_file(log, number, row[column], optimizer, asked=x)
                    value, seconds = row["value"], row["seconds"]
                    if number == 1:
                        _check_function(objective, x, value, checkpoint)
                    clock = time.perf_counter() - seconds
                else:
                    value = _validate.finite_number(_evaluate(objective, x.copy(), log.seed, number), "value")
                    seconds = round(time.perf_counter() - clock, 6)
                    log.add(number, **{column: x.tolist()}, value=value, seconds=seconds)
                optimizer.tell(x, value)
                best = value if best is None else optimizer.better(best, value)
                rows.append((number, x, value, best, seconds))
                show(number, f"best {best:.6g}")
                stop = callback is not None and callback(optimizer)
                if target is not None and optimizer.better(best, target) == best:
                    message = f"target of {target:g} reached"
                elif optimizer.exhausted:
                    message = f"every allowed {optimizer.noun} evaluated, so this is the optimum"
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
    return _run(rows, optimizer, message)


def _goal(sense, objective, method, box):
    """Return what is searched in this direction: an `Objective`, or a `BoxObjective`."""
    given = [name for name, value in box.items() if value is not None]
    if isinstance(objective, Objective) and given:
        msg = f"`{given[0]}` is for functions on a box; an emsopt.Objective says itself which deployments are allowed."
        raise InputError(msg)
    if not isinstance(method, AskTell):
        return objective if isinstance(objective, Objective) else on_box(objective, **box, sense=sense)
    goal = method.objective
    if objective is not goal and objective is not getattr(goal, "function", goal):
        raise InputError("`method` must be an optimizer of this very `objective`; it was set up with another one.")
    if given:
        raise InputError(f"`{given[0]}` is the optimizer's own: leave it out, or set up `method` with it.")
    if goal.sense != sense:  # of a function that does not say its own
        msg = f"`method` is set up to {goal.sense}imise: use `{_VERBS[goal.sense]}`, or set it up with "
        msg += f"emsopt.optimizers.on_box(f, bounds=..., sense={sense!r}) in place of the function f."
        raise InputError(msg)
    return goal


def _class(place):
    module, attribute = place
    return getattr(import_module(f".{module}", __package__), attribute)


def _on_file(log, number, filed, optimizer, asked):
    """Return the candidate on file in place of the one the optimizer asked for."""
    try:
        x = optimizer.space.canonical(filed)
    except InputError:
        log.refuse(number)
    log.compare(number, asked.tolist())
    optimizer.withdraw(asked)
    return x


def _check_function(objective, x, value, checkpoint):
    """Refuse to go on with another function of the same name: the first evaluation on file must come out again."""
    if isinstance(objective, Objective) or isinstance(objective.function, Problem) or objective.noisy:
        return  # which are told apart by what the first line says of them, or cannot be
    again = _validate.finite_number(objective(x.copy()), "value")
    if not np.isclose(again, value, rtol=1e-3, atol=1e-9):
        raise InputError(
            f"the checkpoint {checkpoint} is of another function: it has {value:.6g} at {x.tolist()}, where this one "
            f"gives {again:.6g}. Name another file; or pass noisy=True if its values vary."
        )


def _evaluate(objective, x, seed, number):
    """Return the value of a candidate; noise depends on the run's seed and the evaluation's number alone."""
    if not objective.noisy:
        return objective(x)
    noise = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)
    if not isinstance(objective, Objective):
        return objective.seeded(int(noise[0]))(x)
    if objective.evaluator != "simulation":
        return objective(x)
    seeded = copy(objective)
    seeded.options = {**objective.options, "rng": int(noise[0])}
    objective.evaluations += 1
    return seeded(x)


def _run(rows, optimizer, message):
    import pandas as pd

    columns = ["evaluation", optimizer.column, "value", "best", "seconds"]
    history = pd.DataFrame([(n, tuple(x.tolist()), *rest) for n, x, *rest in rows], columns=columns)
    values = history["value"]
    best = values.idxmin() if optimizer.better is min else values.idxmax()
    return Run(rows[best][1].copy(), float(values[best]), len(rows), message, history)
