"""`minimize` and `maximize`: search for the best deployment, or the best point of a box, within a budget."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .. import _validate
from .._running.checkpoint import Form, are_indices, are_numbers, is_number
from .._running.loop import RunOptions, Steps, loop
from .._types import ArrayLike, Callback, FloatArray, IntArray, PathLike, Progress, Rng
from ..errors import InputError
from ..evaluators.objective import Objective
from ..problems import Problem
from .ask_tell import AskTell
from .boxes.base import BoxOptimizer
from .boxes.boke import BOKE, BOKEPlus
from .boxes.boke_auto import BOKEAuto
from .boxes.box import BoxObjective, on_box
from .boxes.gp_ucb import GPUCB, GPUCBFixed
from .boxes.kr_ucb import KRUCB
from .boxes.random_points import RandomPoints
from .deployments.annealing import SimulatedAnnealing
from .deployments.base import Optimizer
from .deployments.bocs import BOCS
from .deployments.genetic import Genetic
from .deployments.gp_pm import GPpM, GPzero
from .deployments.random_search import RandomSearch
from .deployments.sparbl import SparBL, SparBLPlus
from .deployments.swaps import LocalSearch
from .description import describe
from .run import Run

METHODS: dict[str, type[Optimizer]] = {
    "gp-pm": GPpM,
    "gp-zero": GPzero,
    "sparbl": SparBL,
    "sparbl+": SparBLPlus,
    "bocs": BOCS,
    "random": RandomSearch,
    "genetic": Genetic,
    "annealing": SimulatedAnnealing,
    "local": LocalSearch,
}
"""Methods on deployments by name."""

BOX_METHODS: dict[str, type[BoxOptimizer]] = {
    "boke": BOKE,
    "boke+": BOKEPlus,
    "boke-auto": BOKEAuto,
    "kr-ucb": KRUCB,
    "gp-ucb-fixed": GPUCBFixed,
    "gp-ucb": GPUCB,
    "random": RandomPoints,
}
"""Methods on boxes by name."""

_VERBS = {"min": "minimize", "max": "maximize"}

Candidate: TypeAlias = IntArray | FloatArray
Function: TypeAlias = Objective | Problem | BoxObjective | Callable[[FloatArray], float]


def minimize(
    objective: Function,
    method: str | AskTell[Any] | None = None,
    *,
    budget: int,
    bounds: ArrayLike | None = None,
    integers: Sequence[int] | None = None,
    noisy: bool | None = None,
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
        What to minimise: an `emsopt.Objective` over deployments, a `Problem` over its box, or your own function from
        a point, shape (d,), to a number. If it has an attribute ``sense``, this must be "min".
    method : str or optimizer, optional
        For deployments one of `METHODS`: "gp-pm" (default), "gp-zero", "sparbl", "sparbl+", "bocs", "local",
        "annealing", "genetic" or "random"; "local" is faster than "gp-pm" if an evaluation takes less than about
        0.015 s. For boxes one of `BOX_METHODS`: "boke-auto" (default), "boke", "boke+", "kr-ucb", "gp-ucb-fixed",
        "gp-ucb" or "random". Or an optimizer that you created for this objective; to minimise a function, create it
        with ``on_box(f, sense="min")``.
    budget : int
        Maximum number of evaluations. Nothing is evaluated twice unless the objective is noisy.
    bounds : array_like, shape (d, 2), optional
        Boxes only: lowest and highest value of each input. Default: the ``bounds`` of the objective.
    integers : sequence of int, optional
        Boxes only: indices of the inputs that are whole numbers. Default: the ``integers`` of the objective, or none.
    noisy : bool, optional
        Boxes only: whether the same point can have different values. Default: whether the objective has a ``noise_sd``
        above 0.
    rng : int or Generator, optional
        Source of all randomness in the run: the method (unless ``method`` is an optimizer, which has its own), the
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
        noisy, ``fun`` is the best of noisy values and therefore too good on average: evaluate ``x`` again.

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
    """
    box = {"bounds": bounds, "integers": integers, "noisy": noisy}
    run = RunOptions(rng, progress, callback, checkpoint, time_limit)
    return _search("min", objective, method, budget, target, box, run)


def maximize(
    objective: Function,
    method: str | AskTell[Any] | None = None,
    *,
    budget: int,
    bounds: ArrayLike | None = None,
    integers: Sequence[int] | None = None,
    noisy: bool | None = None,
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
    box = {"bounds": bounds, "integers": integers, "noisy": noisy}
    run = RunOptions(rng, progress, callback, checkpoint, time_limit)
    return _search("max", objective, method, budget, target, box, run)


def _search(
    sense: str,
    objective: Function,
    method: str | AskTell[Any] | None,
    budget: int,
    target: float | None,
    box: dict[str, Any],
    run: RunOptions,
) -> Run:
    """Ask for candidates, evaluate them and tell their values until the run ends.

    ``box`` holds the caller's ``bounds``, ``integers`` and ``noisy`` for `on_box`, None if omitted.
    """
    if not callable(objective):
        got = type(objective).__name__
        raise InputError(f"`objective` must be an Objective, a Problem or a function of a point; got {got}.")
    on_deployments = isinstance(objective, Objective)
    methods: Mapping[str, type[AskTell[Any]]] = METHODS if on_deployments else BOX_METHODS
    kind: type[AskTell[Any]] = Optimizer if on_deployments else BoxOptimizer
    if method is None:
        method = "gp-pm" if on_deployments else "boke-auto"
    if isinstance(method, kind):
        name = f"{type(method).__name__}, {len(method.values)} told"
    elif isinstance(method, str):
        name = _validate.choice(method, "method", tuple(methods))
    else:
        raise InputError(
            f"`method` must be one of {', '.join(map(repr, methods))}, or an instance of {kind.__name__} created for "
            f"this objective; got {getattr(method, '__name__', type(method).__name__)}."
        )
    known = method.objective if isinstance(method, AskTell) else objective
    own = getattr(known, "sense", None)
    if own is not None and _validate.choice(own, "sense", tuple(_VERBS)) != sense:
        who = "`objective`" if known is objective else "`method` (see `on_box`)"
        raise InputError(f"{who} has the `sense` {own!r}: use `{_VERBS[own]}`, not `{_VERBS[sense]}`.")
    goal = _goal(sense, objective, method, box)
    budget = _validate.whole_number(budget, "budget")
    target = None if target is None else _validate.finite_number(target, "target")
    column, fits = kind.column, are_indices if on_deployments else are_numbers
    form = Form("emsopt run", "evaluation", asked={column: fits}, told={"value": is_number})
    message = f"budget of {budget} evaluations used"
    with loop(form, lambda: describe(goal, name, method), run, steps=budget, message=message) as steps:
        seed = steps.file.seed
        optimizer = method if isinstance(method, kind) else methods[name](goal, rng=seed)
        best = np.inf if sense == "min" else -np.inf
        for number in steps:
            x = optimizer.ask()
            row = steps.row
            if row is None:
                value = _validate.finite_number(_evaluate(goal, x.copy(), seed, number), "value")
            else:
                x, value = _on_file(steps, row[column], row["value"], optimizer, x)
            steps.write(**{column: x.tolist()}, value=value)
            optimizer.tell(x, value)
            best = optimizer.better(best, value)
            end = ""
            if target is not None and optimizer.better(best, target) == best:
                end = f"target of {target:g} reached"
            elif optimizer.exhausted:
                end = f"every allowed {optimizer.noun} evaluated, so this is the optimum"
            steps.finish((tuple(x.tolist()), value, best), optimizer, f"best {best:.6g}", end=end)
    history = pd.DataFrame(steps.rows, columns=["evaluation", column, "value", "best", "seconds"])
    x = history.loc[history["value"] == best, column].iloc[0]
    return Run(np.array(x), best, len(history), steps.message, history)


def _goal(sense: str, objective: Function, method: str | AskTell[Any], box: dict[str, Any]) -> Objective | BoxObjective:
    """Return the objective to search, with the given sense; raise if the arguments do not fit together."""
    given = [name for name, value in box.items() if value is not None]
    if given and (isinstance(objective, Objective) or isinstance(method, AskTell)):
        why = (
            "is already set in the optimizer given as `method`"
            if isinstance(method, AskTell)
            else ("does not apply to an Objective, which has its own set of deployments and knows whether it is noisy")
        )
        raise InputError(f"`{given[0]}` {why}. Leave it out.")
    if isinstance(method, str):
        return objective if isinstance(objective, Objective) else on_box(objective, **box, sense=sense)
    goal = method.objective
    if objective is not goal and objective is not getattr(goal, "function", goal):
        raise InputError("`method` must be an optimizer created for this `objective`; it was created for another one.")
    return goal


def _on_file(
    steps: Steps, filed: list[float], value: float, optimizer: AskTell[Any], asked: Candidate
) -> tuple[Candidate, float]:
    """Return the candidate stored in the checkpoint (``filed``) and its value, to be used instead of ``asked``.

    ``asked`` is the candidate that the optimizer proposes now. Warn if the two differ. Raise if the stored candidate is
    not allowed, or if, in the first evaluation, a user's own function without noise gives another value there than the
    stored one.
    """
    number, objective = steps.number, optimizer.objective
    try:
        x = optimizer.space.canonical(filed)
    except InputError:
        steps.file.refuse(number)
    steps.file.compare(number, asked.tolist())
    optimizer.withdraw(asked)
    # objectives and problems are recognised by the first line, and the values of noisy functions vary
    own = not isinstance(getattr(objective, "function", objective), (Objective, Problem))
    if number == 1 and own and not objective.noisy:
        again = _validate.finite_number(objective(x.copy()), "value")
        if not np.isclose(again, value, rtol=1e-3, atol=1e-9):
            raise InputError(
                f"the checkpoint {steps.file.path} is of another function: at {x.tolist()} it has {value:.6g}, but "
                f"this function gives {again:.6g}. Choose another file, or pass noisy=True if the values are noisy."
            )
    return x, value


def _evaluate(objective: Objective | BoxObjective, x: Any, seed: int, number: int) -> float:
    """Return the value of a candidate; its noise depends only on the run's seed and the evaluation's number."""
    if not objective.noisy:
        return objective(x)
    noise = int(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)[0])
    if isinstance(objective, Objective):
        objective.evaluations += 1  # the copy has a counter of its own
    return objective.seeded(noise)(x)
