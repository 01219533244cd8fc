"""boke-auto as a sampler of Optuna (https://optuna.org); install ``emsopt[optuna]``."""

import threading
from typing import Any

from .. import _validate
from .._types import FloatArray, Rng
from ..errors import InputError, MissingDependencyError
from ..problems.inputs import Categorical, Input, Integer, Real
from .boxes.boke_auto import BOKEAuto
from .boxes.box import on_box

try:
    from optuna.distributions import CategoricalDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.trial import TrialState
except ImportError as error:
    raise MissingDependencyError('The sampler needs Optuna. Install it with `pip install "emsopt[optuna]"`.') from error

_ONE_AT_A_TIME = threading.Lock()  # `study.optimize(n_jobs=...)` samples in threads; not an attribute, for pickling


class BOKEAutoSampler(BaseSampler):
    """Sampler of Optuna that chooses parameters by `BOKEAuto`.

    It handles parameters of all kinds, also with ``log`` and ``step``. Parameters that some trials do not have, or whose
    range changes, are drawn at random, as are those of the first trial. Pruned and failed trials are passed over: no
    value is learned from them. Running trials are taken into account, so that trials can run in parallel.

    Parameters
    ----------
    seed : int or Generator, optional
    noisy : bool
        Whether the same parameters can have different values.
    **options
        Passed to `BOKEAuto`, such as ``initial``, the number of trials of the initial design.

    Notes
    -----
    The study must have a single objective. Without noise, a point of the parameters is not proposed twice; when all are
    used up, parameters are drawn at random.

    Examples
    --------
    >>> import optuna
    >>> import emsopt as eo
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=eo.optimizers.BOKEAutoSampler(seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -10, 10) - 2) ** 2, n_trials=20)
    >>> round(study.best_params["x"], 2)
    2.0
    """

    def __init__(self, *, seed: Rng = None, noisy: bool = False, **options: Any) -> None:
        self._rng = _validate.generator(seed)
        self._options = options | {"noisy": _validate.truth(noisy, "noisy")}
        self._independent = RandomSampler(seed=int(self._rng.integers(2**32)))
        self._common = IntersectionSearchSpace()
        self._space: dict[str, Any] = {}
        self._noisy = False
        self._optimizer: BOKEAuto | None = None
        self._finished: set[int] = set()
        self._asked: dict[int, FloatArray] = {}

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the parameters that all completed trials have, with the same range, and more than one value."""
        return {name: one for name, one in self._common.calculate(study).items() if not one.single()}

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that boke-auto asks for, by name."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with _ONE_AT_A_TIME:
            noisy = self._options["noisy"] or self._has_others(study, search_space)
            if self._optimizer is None or (search_space, noisy) != (self._space, self._noisy):
                self._begin(search_space, noisy, study.direction.name[:3].lower())
            optimizer = self._optimizer
            assert optimizer is not None
            self._learn(optimizer, study, trial.number)
            if optimizer.exhausted:
                return {}
            named = optimizer.ask()
            self._asked[trial.number] = optimizer.space.canonical(named)
        return {name: _decoded(one, named[name]) for name, one in search_space.items()}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """Draw a parameter that not all trials have at random."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Draw a new seed for parameters that are sampled at random."""
        self._independent.reseed_rng()

    def _has_others(self, study: Any, space: dict[str, Any]) -> bool:
        """Return whether completed trials have further parameters; they make values of the same point differ."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        varied = ({name for name, one in trial.distributions.items() if not one.single()} for trial in trials)
        return any(names - space.keys() for names in varied)

    def _begin(self, space: dict[str, Any], noisy: bool, sense: str) -> None:
        """Create the optimizer of a search space; it has yet to learn from all trials."""
        bounds = {name: _input(one) for name, one in space.items()}
        objective = on_box(_unused, bounds=bounds, noisy=noisy, sense=sense)
        options = {name: value for name, value in self._options.items() if name != "noisy"}
        self._optimizer = BOKEAuto(objective, rng=self._rng.spawn(1)[0], **options)
        self._space, self._noisy, self._finished, self._asked = space, noisy, set(), {}

    def _learn(self, optimizer: BOKEAuto, study: Any, current: int) -> None:
        """Tell the optimizer of trials that finished since the last time, and of those that run elsewhere."""
        for trial in study.get_trials(deepcopy=False):
            number, done = trial.number, trial.state.is_finished()
            if number == current or number in self._finished or not self._space.keys() <= trial.params.keys():
                continue
            try:
                named = {name: _encoded(one, trial.params[name]) for name, one in self._space.items()}
                x = optimizer.space.canonical(named)
            except (InputError, ValueError):  # enqueued outside of the range
                continue
            asked = self._asked.get(number)
            if asked is not None and tuple(asked) != tuple(x):  # enqueued parameters took the place of those asked for
                optimizer.withdraw(asked)
            if done:
                optimizer.tell(x, trial.value if trial.state == TrialState.COMPLETE else float("nan"))
                self._finished.add(number)
            else:
                optimizer.taken.setdefault(tuple(x.tolist()), None)


def _unused(**parameters: Any) -> float:
    raise NotImplementedError  # Optuna evaluates


def _input(one: Any) -> Input:
    """Return the input of a box for a distribution of Optuna: choices and steps are numbered from 0."""
    if isinstance(one, CategoricalDistribution):
        return Categorical(range(len(one.choices)))
    if one.step is None:
        return Real(one.low, one.high, one.log)
    return Integer(one.low, one.high, one.log) if one.log else Integer(0, round((one.high - one.low) / one.step))


def _encoded(one: Any, value: Any) -> float:
    """Return the value of a parameter as the input of `_input` has it."""
    if isinstance(one, CategoricalDistribution):
        return int(one.to_internal_repr(value))
    return value if one.log or one.step is None else round((value - one.low) / one.step)


def _decoded(one: Any, value: Any) -> Any:
    """Return a parameter's value from that of its input."""
    if isinstance(one, CategoricalDistribution):
        return one.choices[value]
    return value if one.log or one.step is None else min(one.low + value * one.step, one.high)
