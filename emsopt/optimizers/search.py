"""`minimize` and `maximize`: search for the best deployment, or the best point of a box, within a budget."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from .. import _validate
from .._running.checkpoint import Form, are_indices, are_numbers
from .._running.loop import RunOptions, Steps, loop
from .._types import Callback, FloatArray, IntArray, PathLike, Progress, Rng
from ..errors import InputError
from ..evaluators.objective import Objective
from ..problems import Problem
from ..problems.box import Box
from ..problems.inputs import Bounds
from .ask_tell import AskTell
from .deployments.base import Optimizer
from .description import describe
from .methods import BY_KIND, Function, chosen, goal_of
from .outcomes import Catch, Outcome, Workers, check_catch, in_parallel, is_outcome, outcome_of, value_of
from .run import Run
from .starts import candidates, pairs

Candidate: TypeAlias = IntArray | FloatArray


def minimize(
    objective: Function,
    method: str | AskTell[Any] | None = None,
    *,
    budget: int,
    bounds: Bounds | None = None,
    integers: Sequence[int | str] | None = None,
    noisy: bool | None = None,
    constraints: Callable[..., object] | None = None,
    x0: Any = None,
    initial: Any = None,
    catch: Catch = (),
    workers: Workers = 1,
    batch: int | None = None,
    rng: Rng = None,
    progress: Progress = False,
    callback: Callback | None = None,
    checkpoint: PathLike | None = None,
    target: float | None = None,
    time_limit: float | None = None,
) -> Run:
    """Search for the deployment, or the point of a box, with the smallest value.

    Parameters
    ----------
    objective : Objective, Problem or callable
        What to minimise: an `emsopt.Objective` over deployments, a `Problem` over its box, or your own function. This
        takes a point, shape (d,), or, if ``bounds`` is a dict, the inputs as keyword arguments, and returns a number or
        an array of one number. If it has an attribute ``sense``, this must be "min". NaN and infinite values are
        recorded in the history, count in the budget and are passed over; the method learns no value from them.
    method : str or optimizer, optional
        For deployments one of `METHODS`: "gp-pm" (default), "gp-pm-literal" (without our repairs), "gp-zero", "sparbl",
        "sparbl+", "bocs", "local", "annealing", "genetic" or "random"; "local" is faster than "gp-pm" if an evaluation
        takes less than about 0.015 s. For boxes one of `BOX_METHODS`: "boke-auto" (default), "boke", "boke+", "kr-ucb",
        "gp-ucb-fixed", "gp-ucb", "gp-ei" or "random". Or an optimizer that you created for this objective; to minimise
        a function, create it with ``sense="min"``.
    budget : int
        Maximum number of evaluations. Nothing is evaluated twice unless the objective is noisy (or by
        "gp-pm-literal", which follows the paper in this too).
    bounds : array_like, shape (d, 2); sequence or dict of inputs; or scipy.optimize.Bounds, optional
        Boxes only: the inputs, each a pair (low, high), `Real` or `Integer` (both also on a logarithmic scale), or, in
        a dict from name to input, `Categorical`. Default: the ``bounds`` of the objective.
    integers : sequence of int or str, optional
        Boxes only: indices or names of further inputs that are whole numbers. Default: the ``integers`` of the objective, or
        none.
    noisy : bool, optional
        Boxes only: whether the same point can have different values. Default: False for your own function, for a
        Problem whether its ``noise_sd`` is above 0.
    constraints : callable, optional
        Boxes only: called like your function, it returns True if the point is allowed, else False. Points that are not
        allowed are never evaluated. It should be fast, as it is called some hundred times per evaluation.
    x0 : array_like, dict, or a list of these, optional
        Candidate or candidates to evaluate first; a dict if the inputs have names.
    initial : list of (candidate, value), or tuple of two arrays (X, y), optional
        Candidates whose values are already known. The method learns from them, and the best of them can be the result,
        but they cost no budget and are not in the history.
    catch : exception or tuple of exceptions, optional
        Errors that count as a failed evaluation, such as ``(ValueError,)``. Failures are passed over like NaN; the
        column ``error`` of the history then holds the message. All other errors end the run, which can be resumed from
        its checkpoint.
    workers : int or callable, optional
        Number of processes that evaluate in parallel through joblib (-1: one per core), or a function that is called
        like `map`, such as ``pool.map``. Joblib's other backends are chosen by `joblib.parallel_config`, for instance
        ``parallel_config("dask")`` to use a Dask cluster.
    batch : int, optional
        Number of candidates asked for at once. Default: the number of workers, or 4 if ``workers`` is a function.
        Without ``workers``, larger batches only change which candidates the method asks for.
    rng : int or Generator, optional
        Source of all randomness in the run, which also depends on ``batch``: the method (unless ``method`` is an optimizer, which has its own), the
        calls that a noisy `Objective` simulates and the noise of a Problem, whatever their own ``rng``. The noise of
        your own function is not controlled.
    progress : bool or callable
        Whether to show a progress bar, or a function called with (evaluations done, budget).
    callback : callable, optional
        Called with the optimizer after each evaluation, including those read from the checkpoint. The run stops if it
        returns True.
    checkpoint : path-like, optional
        File to which each evaluation is written. If it exists, the run resumes from it and yields the same result as
        an uninterrupted run; if ``rng`` is omitted, the stored seed is used. An optimizer must be in its original
        state. Unless it is noisy, your own function is evaluated once more at the first point on file, to check that it
        is the same function. On another processor a method may ask for another candidate; the run then continues with
        the stored one and issues a `ResumeWarning`. Only one run at a time may write to a file.
    target : float, optional
        Stop at a value at least as good as this: at most ``target`` in `minimize`, at least in `maximize`.
    time_limit : float, optional
        Wall-clock limit in seconds, checked after each evaluation. With a checkpoint, time spent before an
        interruption counts.

    Returns
    -------
    Run
        The best deployment or point evaluated, ``x``, and its value ``fun``, in the objective's own sign; ``message``
        says why the run ended. Ctrl-C also ends it. The history has a column ``sites`` or ``x``. If the objective is
        noisy, ``x`` is the evaluated point that a model recommends and ``fun`` its estimated value; the luckiest value
        and its point are ``best_observed_value`` and ``best_observed``.

    Raises
    ------
    InputError
        If the objective or the optimizer is to be maximised, an option is invalid, or the checkpoint belongs to
        another run.

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
    >>> from emsopt.optimizers import Categorical, Real
    >>> inputs = {"rate": Real(1e-4, 1.0, log=True), "solver": Categorical(["adam", "sgd"])}
    >>> loss = lambda rate, solver: abs(rate - 0.1) + (solver == "sgd")
    >>> run = eo.minimize(loss, bounds=inputs, budget=20, rng=0, constraints=lambda rate, solver: rate < 0.5)
    >>> run.x["solver"], run.success, run.history.columns.tolist()
    ('adam', True, ['evaluation', 'rate', 'solver', 'value', 'best', 'seconds'])
    """
    box = {"bounds": bounds, "integers": integers, "noisy": noisy, "constraints": constraints}
    plan = _Plan(budget, target, x0, initial, catch, workers, batch)
    run = RunOptions(rng, progress, callback, checkpoint, time_limit)
    return _search("min", objective, method, plan, box, run)


def maximize(
    objective: Function,
    method: str | AskTell[Any] | None = None,
    *,
    budget: int,
    bounds: Bounds | None = None,
    integers: Sequence[int | str] | None = None,
    noisy: bool | None = None,
    constraints: Callable[..., object] | None = None,
    x0: Any = None,
    initial: Any = None,
    catch: Catch = (),
    workers: Workers = 1,
    batch: int | None = None,
    rng: Rng = None,
    progress: Progress = False,
    callback: Callback | None = None,
    checkpoint: PathLike | None = None,
    target: float | None = None,
    time_limit: float | None = None,
) -> Run:
    """Search for the point of a box with the largest value.

    All parameters, the result and the errors are those of `minimize`. An `emsopt.Objective` can only be minimised.

    Examples
    --------
    >>> import emsopt as eo
    >>> run = eo.maximize(lambda x: -((x[0] - 0.3) ** 2), "gp-ucb", bounds=[(0, 1)], budget=15, rng=0)
    >>> run.x.round(2)
    array([0.3])
    """
    box = {"bounds": bounds, "integers": integers, "noisy": noisy, "constraints": constraints}
    plan = _Plan(budget, target, x0, initial, catch, workers, batch)
    run = RunOptions(rng, progress, callback, checkpoint, time_limit)
    return _search("max", objective, method, plan, box, run)


class _Plan(NamedTuple):
    """Arguments of `minimize` on what is evaluated and how."""

    budget: int
    target: float | None
    x0: Any
    initial: Any
    catch: Catch
    workers: Workers
    batch: int | None


def _search(
    sense: str,
    objective: Function,
    method: str | AskTell[Any] | None,
    plan: _Plan,
    box: dict[str, Any],
    run: RunOptions,
) -> Run:
    """Ask for candidates, evaluate them and tell their values until the run ends.

    ``box`` holds the caller's ``bounds``, ``integers``, ``noisy`` and ``constraints`` for `on_box`, None if omitted.
    """
    method, name, kind = chosen(sense, objective, method)
    goal = goal_of(sense, objective, method, box)
    budget, target = _validate.whole_number(plan.budget, "budget"), plan.target
    target = None if target is None else _validate.finite_number(target, "target")
    catch = check_catch(plan.catch)
    spread, size = in_parallel(plan.workers, plan.batch)
    space = method.space if isinstance(method, AskTell) else goal.space
    first = [space.canonical(x) for x in candidates(plan.x0)]
    given = [(space.canonical(x), _validate.finite_number(value, "initial")) for x, value in pairs(plan.initial)]
    column, fits = kind.column, are_indices if kind is Optimizer else are_numbers
    names = getattr(space, "names", ()) or (column,)
    columns = ["evaluation", *names, "value", "best", *(["error"] if catch else []), "seconds"]
    if len(set(columns)) < len(columns):
        taken = next(name for name in names if columns.count(name) > 1)
        raise InputError(f"`bounds`: {taken!r} is a column of the history; rename this input.")
    about = {
        "batch": size,
        "x0": [x.tolist() for x in first],
        "initial": [[x.tolist(), value] for x, value in given],
    }
    form = Form("emsopt run", "evaluation", asked={column: fits}, told={"value": is_outcome})
    message = f"budget of {budget} evaluations used"
    with loop(form, lambda: describe(goal, name, method) | about, run, steps=budget, message=message) as steps:
        seed = steps.file.seed
        optimizer = method if isinstance(method, AskTell) else BY_KIND[kind][name](goal, rng=seed)
        task = partial(outcome_of, goal, seed, catch)
        for x, value in given:
            optimizer.tell(x, value)
        optimizer.enqueue(first)
        best = optimizer.better((value for _, value in given), default=np.inf if sense == "min" else -np.inf)
        failed = list[str]()
        evaluations = _evaluations(steps, optimizer, task, spread, size, budget)
        for _ in steps:
            x, outcome, waiting = next(evaluations)
            value = value_of(outcome)
            steps.write(**{column: x.tolist()}, value=outcome)
            optimizer.tell(x, value)
            if np.isfinite(value):
                given.append((x, value))
                best = optimizer.better(best, value)
            else:
                failed.append(f"{outcome} at {_presented(space, x)}")
            end = ""
            if target is not None and optimizer.better(best, target) == best:
                end = f"target of {target:g} reached"
            elif optimizer.exhausted and not waiting:
                end = f"every allowed {optimizer.noun} evaluated, so this is the optimum"
            shown = space.named(x).values() if isinstance(space, Box) and space.names else (tuple(x.tolist()),)
            error = (outcome if np.isnan(value) and outcome != "nan" else "",)
            row = (*shown, value, best if np.isfinite(best) else np.nan, *(error if catch else ()))
            steps.finish(row, optimizer, f"best {best:.6g}", end=end)
        evaluations.close()  # cancels evaluations that nobody waits for
    history, message = pd.DataFrame(steps.rows, columns=columns), steps.message
    if failed:
        message += f"; {len(failed)} of {len(history)} evaluations gave no finite value, the first {failed[0]}"
    if not given:
        return Run(None, np.nan, len(history), message, history, None, np.nan, goal.noisy)
    luckiest = next(x for x, value in given if value == best)
    among = {tuple(x.tolist()) for x, _ in given}
    observed = _presented(space, luckiest)
    x, fun = optimizer.recommend(among) if goal.noisy else (observed, best)
    return Run(x, fun, len(history), message, history, observed, best, goal.noisy)


def _evaluations(
    steps: Steps,
    optimizer: AskTell[Any],
    task: Callable[..., Outcome],
    spread: Callable[..., Any],
    size: int,
    budget: int,
) -> Generator[tuple[Candidate, Outcome, int]]:
    """Yield each candidate, the outcome of its evaluation, and how many of its batch are still to come.

    Candidates are asked for ``size`` at a time. Those whose outcomes are on file are not evaluated again.
    """
    objective = optimizer.objective
    counted = getattr(objective, "evaluations", 0)
    while True:
        asked = [optimizer.space.canonical(x) for x in optimizer.ask(min(size, budget - steps.number + 1))]
        filed = max(0, len(steps.file.rows) - steps.number + 1)
        results = iter(spread(task, list(enumerate(asked, steps.number))[filed:]))
        for waiting, x in zip(range(len(asked))[::-1], asked, strict=True):
            if steps.row is not None:
                yield (*_on_file(steps, optimizer, x, task), waiting)
                continue
            outcome, counted = next(results), counted + 1
            if isinstance(objective, Objective):  # copies with a seed and those in other processes count for themselves
                objective.evaluations = max(objective.evaluations, counted)
            yield x, outcome, waiting


def _on_file(
    steps: Steps, optimizer: AskTell[Any], asked: Candidate, task: Callable[..., Outcome]
) -> tuple[Candidate, Outcome]:
    """Return the next candidate in the checkpoint, which replaces the one asked for, and its outcome.

    ``asked`` is the candidate that the optimizer proposes now. Warn if the two differ. Raise if the stored candidate is
    not allowed, or if, in the first evaluation, a user's own function without noise gives another value there than the
    stored one.
    """
    number, objective, row = steps.number, optimizer.objective, steps.row or {}
    try:
        x = optimizer.space.canonical(row[optimizer.column])
    except InputError:
        steps.file.refuse(number)
    steps.file.compare(number, asked.tolist())
    if not np.array_equal(x, asked):
        optimizer.withdraw(asked)
    # objectives and problems are recognised by the first line, and the values of noisy functions vary
    own = not isinstance(getattr(objective, "function", objective), (Objective, Problem))
    value = value_of(row["value"])
    if number == 1 and own and not objective.noisy:
        again = value_of(task((number, x)))
        if not np.isclose(again, value, rtol=1e-3, atol=1e-9, equal_nan=True):
            raise InputError(
                f"the checkpoint {steps.file.path} is of another function: at {_presented(optimizer.space, x)} it has "
                f"{value:.6g}, but this function gives {again:.6g}. Choose another file, or pass noisy=True if the "
                "values are noisy."
            )
    return x, row["value"]


def _presented(space: Any, x: Any) -> Any:
    """Return a candidate as the user writes it: a dict if the inputs have names, else an array."""
    return space.presented(x) if isinstance(space, Box) else x
