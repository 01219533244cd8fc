"""`minimize` and `maximize`: search for the best deployment, or the best point of a box, within a budget."""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from inspect import signature
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd

from .._running.checkpoint import CheckpointFormat, are_indices, are_numbers, array_summary
from .._running.loop import RunOptions, Steps, run_loop
from .._running.parallel import Workers, make_parallel_map
from ..errors import InputError, _validate, warn
from ..errors._types import Callback, PathLike, Progress, Rng
from ..evaluators.metrics import is_mean
from ..evaluators.objective import Objective
from ..problems import Problem
from ..problems.box import Bounds
from . import evaluations
from .ask_tell import AskTell, read_candidates, read_initial_values
from .boxes._base import BoxObjective, BoxOptimizer, RandomPoints, to_box_objective
from .boxes.boke import BOKE, KRUCB, BOKEPlus
from .boxes.boke_auto import BOKEAuto
from .boxes.gp_ucb import GPEI, GPUCB, GPUCBFixed
from .deployments._base import Optimizer, RandomSearch
from .deployments.genetic_annealing import Genetic, SimulatedAnnealing
from .deployments.gp_pm import GPpM, GPzero
from .deployments.sparbl import BOCS, SparBL, SparBLPlus
from .deployments.swaps import LocalSearch, LocalSearchPlus
from .result import Run

AnyObjective: TypeAlias = Objective | Problem | BoxObjective | Callable[..., Any]

METHODS: dict[str, Callable[..., Optimizer]] = {
    "gp-pm": GPpM,
    "gp-zero": GPzero,
    "sparbl": SparBL,
    "sparbl+": SparBLPlus,
    "bocs": BOCS,
    "random": RandomSearch,
    "genetic": Genetic,
    "annealing": SimulatedAnnealing,
    "local": LocalSearch,
    "local+": LocalSearchPlus,
    "gp-pm-literal": partial(GPpM, literal=True),
}
"""Methods on deployments by name.

>>> import emsopt as eo
>>> sorted(eo.optimizers.METHODS)
['annealing', 'bocs', 'genetic', 'gp-pm', 'gp-pm-literal', 'gp-zero', 'local', 'local+', 'random', 'sparbl', 'sparbl+']
"""

BOX_METHODS: dict[str, type[BoxOptimizer]] = {
    "boke": BOKE,
    "boke+": BOKEPlus,
    "boke-auto": BOKEAuto,
    "kr-ucb": KRUCB,
    "gp-ucb-fixed": GPUCBFixed,
    "gp-ucb": GPUCB,
    "random": RandomPoints,
    "gp-ei": GPEI,
}
"""Methods on boxes by name.

>>> import emsopt as eo
>>> sorted(eo.optimizers.BOX_METHODS)
['boke', 'boke+', 'boke-auto', 'gp-ei', 'gp-ucb', 'gp-ucb-fixed', 'kr-ucb', 'random']
"""

METHODS_BY_BASE: dict[type[AskTell[Any]], Mapping[str, Any]] = {Optimizer: METHODS, BoxOptimizer: BOX_METHODS}
DEFAULT_METHODS: dict[type[AskTell[Any]], str] = {Optimizer: "local+", BoxOptimizer: "boke-auto"}
FUNCTION_BY_SENSE = {"min": "minimize", "max": "maximize"}


def minimize(
    objective: AnyObjective,
    method: str | AskTell[Any] | None = None,
    *,
    budget: int,
    bounds: Bounds | None = None,
    noisy: bool | None = None,
    constraints: Callable[..., object] | None = None,
    x0: Any = None,
    initial: Any = None,
    catch: evaluations.ErrorTypes = (),
    workers: Workers = 1,
    batch: int | None = None,
    rng: Rng = None,
    progress: Progress = False,
    callback: Callback | None = None,
    checkpoint: PathLike | None = None,
    target: float | None = None,
    time_limit: float | None = None,
) -> Run:
    """Search for the deployment, or the point of a box, with the smallest value; `maximize` does so for the largest.

    Parameters
    ----------
    objective : Objective, Problem or callable
        What to minimise: an `emsopt.Objective` over deployments, a `Problem` over its box, or your own function. This
        takes a point, shape (d,), or, if ``bounds`` is a dict, the inputs as keyword arguments, and returns a number or
        an array of one number. If it has an attribute ``sense``, this must be "min". Where evaluations fail, return
        NaN, not a large number, which would distort the models: NaN and infinite values only count in the budget.
    method : str or optimizer, optional
        For deployments one of `METHODS`: "local+" (default, see Notes), "gp-pm", "gp-pm-literal" (without our repairs),
        "gp-zero", "sparbl", "sparbl+", "bocs", "local", "annealing", "genetic" or "random". For boxes one of
        `BOX_METHODS`: "boke-auto" (default), "boke", "boke+", "kr-ucb", "gp-ucb-fixed", "gp-ucb", "gp-ei" or "random".
        Or an optimizer that you created for this objective; to minimise a function, create it with ``sense="min"``.
    budget : int
        Maximum number of evaluations. Nothing is evaluated twice unless the objective is noisy (or by
        "gp-pm-literal", which follows the paper in this too).
    bounds : array_like, shape (d, 2); sequence or dict of inputs; or scipy.optimize.Bounds, optional
        Boxes only: the inputs, each a pair (low, high), `Real` or `Integer` (both also on a logarithmic scale), or, in
        a dict from name to input, `Categorical`. Default: the ``bounds`` of the objective.
    noisy : bool, optional
        Boxes only: whether the same point can have different values. Default: False for your own function, for a
        Problem whether its ``noise_sd`` is above 0.
    constraints : callable, optional
        Boxes only: called like your function, it returns True if the point is allowed, else False. Points that are not
        allowed are never evaluated. It should be fast, as it is called some hundred times per evaluation. If almost no
        random point is allowed, pass one in ``x0`` or ``initial``.
    x0 : array_like or dict, or a list of these, optional
        Candidate or candidates to evaluate first; a dict if the inputs have names.
    initial : list of (candidate, value), tuple (X, y) or Run, optional
        Candidates whose values are already known: pairs, candidates and values, or an earlier run. The method learns
        from them, and the best of them can be the result, but they cost no budget and are not in the history. NaN and
        infinite values are failures.
    catch : exception or tuple of exceptions, optional
        Errors that count as a failed evaluation, such as ``(ValueError,)``; the column ``error`` of the history then
        holds the message. Any other error ends the run as soon as evaluations under way have ended; it can be resumed
        from its checkpoint.
    workers : int or callable, optional
        Number of processes that evaluate in parallel through joblib (-1: one per core), or a function that is called
        like `map`, such as ``pool.imap_unordered`` of `multiprocessing`. With the same ``batch``, workers do not change
        the run. Joblib's other backends are chosen by `joblib.parallel_config`, such as ``parallel_config("dask")``.
    batch : int, optional
        Number of candidates asked for at once. At most this many workers are busy, so give at least their number.
        Default: the batch of the checkpoint if there is one, else 1 with one worker and 4 with any other ``workers``.
        With one worker, larger batches only change which candidates the method asks for.
    rng : int or Generator, optional
        Source of all randomness in the run, which also depends on ``batch``: the method (unless ``method`` is an
        optimizer, which has its own), the calls that a noisy `Objective` simulates and the noise of a Problem, whatever
        their own ``rng``. The noise of your own function is not controlled.
    progress : bool or callable
        Whether to show a progress bar, or a function called with (evaluations done, budget).
    callback : callable, optional
        Called with the optimizer after each evaluation, including those read from the checkpoint. The run stops after
        the current batch if it returns True or raises StopIteration.
    checkpoint : path-like, optional
        File to which each evaluation is written as soon as it ends. If it exists, the run resumes from it, with any
        ``workers``, and yields the same result as an uninterrupted run; if ``rng`` or ``batch`` is omitted, the stored
        one is used. An optimizer must be in its original state. Unless it is noisy, your own function is evaluated once
        more at the first point on file, to check that it is the same function. On another processor a method may ask
        for another candidate; the run then continues with the stored one and issues a `ResumeWarning`.
    target : float, optional
        Stop after the batch in which ``run.fun`` reaches this: at most ``target`` in `minimize`, at least in
        `maximize`. With noise, the recommended candidate is first evaluated again until it has five values, as a single
        lucky value is not enough.
    time_limit : float, optional
        Wall-clock limit in seconds, after which no evaluation but the first begins; those under way are completed. With
        a checkpoint, time spent before an interruption counts.

    Returns
    -------
    Run
        The best deployment or point evaluated, ``x``, and its value ``fun``, in the objective's own sign; ``message``
        says why the run ended. Ctrl-C also ends it, unless nothing has been evaluated yet: in a loop of runs, check
        ``run.interrupted``. If the objective is noisy, ``x`` is the evaluated point that a model recommends and ``fun``
        its estimated value; the luckiest value and its point are ``best_observed_value`` and ``best_observed``.

    Notes
    -----
    "local+", ours, needs fewer evaluations and less time than "gp-pm" in nearly all stored runs. "gp-pm", the paper's
    with our repairs, is the better choice where the estimate of "local+" misleads: in the stored runs only at light
    load. Noise misleads "local+", which compares single values; a simulation with a whole number as ``rng`` has none.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.load_st_paul(), 9, "approximate")
    >>> run = eo.minimize(objective, "local", budget=200, rng=0)
    >>> round(run.fun, 2), run.nfev, run.message
    (5.93, 200, 'budget of 200 evaluations used')
    """
    return _search("min", SimpleNamespace(**locals()))


def maximize(objective: AnyObjective, method: str | AskTell[Any] | None = None, *, budget: int, **options: Any) -> Run:
    """Search for the point of a box with the largest value.

    All parameters, the result and the errors are those of `minimize`. An `emsopt.Objective` can only be minimised.

    Examples
    --------
    >>> import emsopt as eo
    >>> run = eo.maximize(lambda x: -((x[0] - 0.3) ** 2), "gp-ucb", bounds=[(0, 1)], budget=15, rng=0)
    >>> run.x.round(2)
    array([0.3])
    """
    try:
        given = signature(minimize).bind(objective, method, budget=budget, **options)
    except TypeError as error:
        raise TypeError(f"maximize() {error}") from None
    given.apply_defaults()
    return _search("max", SimpleNamespace(**given.arguments))


maximize.__signature__ = signature(minimize)  # type: ignore[attr-defined]  # for help and completion


def _search(sense: str, given: SimpleNamespace) -> Run:
    """Search as `minimize` does for the ``sense`` "min", and `maximize` for "max"; ``given`` holds its arguments."""
    method, name, kind = resolve_method(sense, given.objective, given.method)
    box = {name: getattr(given, name) for name in ("bounds", "noisy", "constraints")}
    goal, column = build_objective(sense, given.objective, method, box), kind.column
    budget, catch = _validate.whole_number(given.budget, "budget"), evaluations.check_catch(given.catch)
    target = None if given.target is None else _validate.finite_number(given.target, "target")
    batch = None if given.batch is None else _validate.whole_number(given.batch, "batch")
    parallel_map = make_parallel_map(given.workers)
    first, known = read_candidates(given.x0, goal.space), read_initial_values(given.initial, goal.space, column)
    _warn_about_starts(sense, given, len(first))
    record = _RunRecord(goal, sense, column, bool(catch), known)
    about: dict[str, Any] = {
        "batch": batch or (1 if given.workers == 1 else evaluations.DEFAULT_BATCH),
        "x0": [x.tolist() for x in first],
        "initial": [[x.tolist(), value if np.isfinite(value) else str(value)] for x, value in known],
    }
    run = RunOptions(*(getattr(given, name) for name in RunOptions._fields))
    form, message = _checkpoint_format(kind, goal, batch), f"budget of {budget} evaluations used"
    with run_loop(form, lambda: describe(goal, name, method) | about, run, steps=budget, message=message) as steps:
        seed, size = steps.file.seed, evaluations.batch_size(steps.file, given.workers, about["batch"])
        optimizer = method if isinstance(method, AskTell) else METHODS_BY_BASE[kind][name](goal, rng=seed)
        for x, value in known:
            optimizer.tell(x, value)
        optimizer.enqueue(first)
        task = partial(evaluations.evaluate_candidate, goal, seed, catch)
        reason = evaluations.StoppingRule(optimizer, target, record.given)
        for x, outcome in evaluations.run_evaluations(steps, optimizer, task, parallel_map, size, budget, reason):
            steps.write(**{column: x.tolist()}, value=outcome)
            optimizer.tell(x, evaluations.outcome_value(outcome))  # an error counts as NaN
            steps.finish(record.add(x, outcome), optimizer, f"best {record.best:.6g}")
    return record.to_run(steps, optimizer)


def _checkpoint_format(kind: type[AskTell[Any]], goal: Objective | BoxObjective, batch: int | None) -> CheckpointFormat:
    """Return the format of a run's checkpoint, and which keys of its first line may differ when the run resumes."""
    # the value of a function is checked instead of its name, and noise may turn out only when a run resumes
    loose = {"batch": batch is None, "function": evaluations.is_user_function(goal), "noisy": goal.noisy}
    fits: Any = are_indices if kind is Optimizer else are_numbers
    free = tuple(name for name, differs in loose.items() if differs)
    return CheckpointFormat("emsopt run", "evaluation", {kind.column: fits}, {"value": evaluations.is_outcome}, free)


def _warn_about_starts(sense: str, given: SimpleNamespace, starts: int) -> None:
    """Warn if the budget is too small for all of ``x0``, or ``initial`` is a run of the other sense."""
    if starts > given.budget:
        message = f"`x0` has {starts} candidates, but the budget is {given.budget}: the last are not evaluated."
        warn(message, UserWarning)
    if isinstance(given.initial, Run) and given.initial.sense != sense:
        warn(
            f"`initial` is a run with the sense {given.initial.sense!r}, but this one has {sense!r}: its values are "
            "taken to be of the same function, not of its negative.",
            UserWarning,
        )


class _RunRecord:
    """Observations of a run, for its history and its result: finite values in ``given``, failures in ``failed``."""

    def __init__(
        self, goal: Objective | BoxObjective, sense: str, column: str, catches: bool, known: list[tuple[Any, float]]
    ) -> None:
        self.goal, self.sense, self.catches, self.space = goal, sense, catches, cast(Any, goal.space)
        self.pick_best: Callable[..., float] = max if sense == "max" else min
        # failures have no value to be best
        self.given: evaluations.Observations = [pair for pair in known if np.isfinite(pair[1])]
        self.best = self.pick_best((value for _, value in self.given), default=np.inf if sense == "min" else -np.inf)
        self.failed: list[str] = []
        inputs = self.space.names or (column,)
        self.columns = ["evaluation", *inputs, "value", "best", *(["error"] if catches else []), "seconds"]
        for name in self.space.names:
            if self.columns.count(name) > 1:
                raise InputError(f"`bounds`: {name!r} is a column of the history; rename this input.")

    def add(self, x: Any, outcome: evaluations.Outcome) -> tuple[Any, ...]:
        """Record the outcome of an evaluation; return its row of the history without its number and the seconds."""
        value, point = evaluations.outcome_value(outcome), self.space.to_user_form(x)
        if np.isfinite(value):
            self.given.append((x, value))
            self.best = self.pick_best(self.best, value)
        else:
            self.failed.append(f"{outcome} at {point}")
        inputs = point.values() if self.space.names else (tuple(x.tolist()),)
        error = (outcome if np.isnan(value) and outcome != "nan" else "",) if self.catches else ()
        return (*inputs, value, self.best if self.given else np.nan, *error)

    def to_run(self, steps: Steps, optimizer: AskTell[Any]) -> Run:
        """Return the `Run` of the recorded evaluations."""
        history, message = pd.DataFrame(steps.rows, columns=self.columns), steps.message
        for k, name in enumerate(self.space.names, 1):
            if self.space.inputs[k - 1].choices:  # else pandas turns None into NaN
                history[name] = pd.Series([row[k] for row in steps.rows], dtype=object)
        if self.failed:
            count = f"{len(self.failed)} of {len(history)} evaluations"
            message += f"; {count} gave no finite value, the first {self.failed[0]}"
        x, fun, luckiest, best, noisy = None, np.nan, None, np.nan, self.goal.noisy
        if self.given:
            best = self.best
            luckiest = next(x for x, value in self.given if value == best)  # the first of equals
            x, fun = evaluations.recommend_candidate(optimizer, self.given) if noisy else (luckiest, best)
            x, luckiest = self.space.to_user_form(x), self.space.to_user_form(luckiest)
        return Run(x, fun, len(history), message, history, luckiest, best, noisy, steps.interrupted, self.sense)


def describe(objective: Objective | BoxObjective, name: str, method: str | AskTell[Any]) -> dict[str, Any]:
    """Return a dict of plain values that identifies a run, which must equal the one stored in a checkpoint."""
    of = _describe_deployments(objective) if isinstance(objective, Objective) else _describe_box(objective)
    if isinstance(method, str):
        return {"method": name, **of}
    plain = {  # public attributes are options, those with _ are state
        key: value
        for key, value in sorted(vars(method).items())
        if key[0] != "_" and (value is None or isinstance(value, (bool, int, float, str)))
    }
    state = repr(method.rng.bit_generator.state)  # equal settings may go on with other random numbers
    return {"method": name, "settings": plain, "rng": sha256(state.encode()).hexdigest()[:16], **of}


def _describe_deployments(objective: Objective) -> dict[str, Any]:
    """Return plain values that identify an objective over deployments: all that its values depend on."""
    city, space, metric = objective.city, objective.space, objective.metric
    skipped = ("workers", "progress", *(("rng",) if objective.noisy else ()))  # these do not change values
    numbers = [city.arrival_rates, city.travel_times, city.turnout_times, city.service_times, city.preference]
    numbers += [] if city.response_law is None else [np.asarray(cv) for cv in (city.travel_cv, city.turnout_cv)]
    # arguments of the metric, or of each part of a weighted one, such as a threshold or targets by atom
    parts = [part for part in (metric if isinstance(metric, Mapping) else [metric]) if not is_mean(part)]
    lists = [[np.asarray(one).tolist() for one in part] for part in parts if isinstance(part, tuple)]
    return {
        "city": array_summary(*(array for array in numbers if array is not None)),
        "units": space.units,
        "metric": objective.label,
        **({"labels": sha256(repr(lists).encode()).hexdigest()[:16]} if lists else {}),
        "costs": array_summary(objective.costs),
        "evaluator": objective.evaluator,
        "options": {k: repr(v) for k, v in sorted(objective.options.items()) if k not in skipped},
        "capacities": space.site_capacities.tolist(),
        "pinned": sorted(space.pinned),
    }


def _describe_box(objective: BoxObjective) -> dict[str, Any]:
    """Return plain values that identify an objective on a box: name of the function, noise, sense and inputs."""
    f, space = objective.function, objective.space
    return {
        "function": str(getattr(f, "name", getattr(f, "__qualname__", type(f).__qualname__))),
        "sense": objective.sense,
        "noise_sd": float(getattr(f, "noise_sd", 0) or 0),  # `or 0`, as it may be None
        "noisy": objective.noisy,
        "bounds": space.bounds.tolist(),
        "integers": list(space.integers),
        "names": list(space.names),
        "logarithmic": [k for k, one in enumerate(space.inputs) if one.log],
        "choices": [list(one.choices) for one in space.inputs],
    }


def resolve_method(
    sense: str, objective: Any, method: str | AskTell[Any] | None
) -> tuple[str | AskTell[Any], str, type[AskTell[Any]]]:
    """Return the method, its name, and the class of optimizers that the objective needs; raise if they do not fit."""
    if not callable(objective):
        got = type(objective).__name__
        raise InputError(f"`objective` must be an Objective, a Problem or a function of a point; got {got}.")
    kind: type[AskTell[Any]] = Optimizer if isinstance(objective, Objective) else BoxOptimizer
    methods = METHODS_BY_BASE[kind]
    method = DEFAULT_METHODS[kind] if method is None else method
    if isinstance(method, kind):
        name = f"{type(method).__name__}, {len(method.values)} told"  # an optimizer that knows more is another one
    elif isinstance(method, str):
        name = _validate.choice(method, "method", tuple(methods))
    else:
        raise InputError(
            f"`method` must be one of {', '.join(map(repr, methods))}, or an instance of {kind.__name__} created for "
            f"this objective; got {getattr(method, '__name__', type(method).__name__)}."
            + (" To give inputs or a starting point, write bounds=... or x0=..." if np.iterable(method) else "")
        )
    _check_sense(sense, objective, method)
    return method, name, kind


def _check_sense(sense: str, objective: Any, method: str | AskTell[Any]) -> None:
    """Raise if ``method`` is an optimizer of another sense, or else ``objective`` has another sense."""
    known = method.objective if isinstance(method, AskTell) else objective
    own = getattr(known, "sense", None)
    if own is not None and _validate.choice(own, "sense", tuple(FUNCTION_BY_SENSE)) != sense:
        who = "`objective`" if known is objective else "`method`"
        right, wrong = FUNCTION_BY_SENSE[own], FUNCTION_BY_SENSE[sense]
        raise InputError(f"{who} has the `sense` {own!r}: use `{right}`, not `{wrong}`.")


def build_objective(
    sense: str, objective: AnyObjective, method: str | AskTell[Any], box: dict[str, Any]
) -> Objective | BoxObjective:
    """Return the objective that a search evaluates; ``box`` holds the arguments of `minimize` for boxes only."""
    if isinstance(method, str) and not isinstance(objective, Objective):
        return to_box_objective(objective, **box, sense=sense)
    given = [name for name, value in box.items() if value is not None]
    if given:
        why = "does not apply to an Objective, which has its own set of deployments and knows whether it is noisy"
        why = why if isinstance(method, str) else "is already set in the optimizer given as `method`"
        raise InputError(f"`{given[0]}` {why}. Leave it out.")
    if isinstance(method, str):
        return cast(Objective, objective)
    goal = method.objective
    # an optimizer on a box holds the function that it was created for within its objective
    if objective is not goal and objective is not getattr(goal, "function", goal):
        raise InputError(
            "`method` must be an optimizer created for this `objective`; it was created for another one, or for none."
        )
    return goal
