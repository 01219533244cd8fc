"""Ask / tell: the common interface of all optimizers, of deployments and of points of a box.

A method implements `_propose` and, if it learns from values, `_learn`.
"""

import re
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._running.parallel import one_thread
from ..errors import InputError, NoCandidateError, _validate
from ..errors._types import ArrayLike, FloatArray, Rng
from ..problems.box import MAX_LISTED
from .result import Run

X = TypeVar("X", bound=NDArray[Any])  # a candidate: the sites of a deployment, (p,), or a point of a box, (d,)
F = TypeVar("F", bound=Callable[..., Any])
MAX_DRAWS = 100  # random draws tried before the remaining candidates are listed, which takes longer


def lock_calls(method: F) -> F:
    """Decorate a method of an optimizer so that only one thread at a time runs a decorated method of this optimizer."""

    @wraps(method)
    def call_locked(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return call_locked  # type: ignore[return-value]


class AskTell(Generic[X]):
    """Base class of all optimizers: ``ask`` returns a candidate to evaluate, ``tell`` reports its value.

    Several threads may ask and tell.

    Parameters
    ----------
    objective : object
        Its ``space`` defines the allowed candidates; ``noisy`` says whether values are noisy, so that a candidate may
        be asked for again; ``sense``, "min" or "max", says whether to minimise or maximise.

    Attributes
    ----------
    told, values : list of ndarray, list of float
        Candidates observed so far, in canonical form, and their values.
    taken : dict
        From each candidate, as a tuple, to its last observed value, to None if it is asked for but not observed, or to
        NaN if its evaluation failed.
    repeats : bool
        Whether a candidate may be asked for again although its value is known; otherwise a random new one replaces it.
    noun, column : str
        Name of a candidate in messages, and of its column in tables and checkpoints.
    """

    noun, column = "candidate", "x"
    repeats = False

    def __init__(self, objective: Any, rng: Rng) -> None:
        self.objective, self.space, self.rng = objective, objective.space, _validate.generator(rng)
        self.told: list[X] = []
        self.values: list[float] = []
        self.taken: dict[tuple[float, ...], float | None] = {}
        self._queue: list[X] = []
        self._lock = threading.RLock()  # reentrant: `ask` of several candidates calls `ask`

    def __getstate__(self) -> dict[str, Any]:
        # a lock cannot be pickled or copied, which joblib needs
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    def pick_best(self) -> Callable[..., Any]:
        """The function that returns the best of some values: `min` or `max`, by the sense of the objective."""
        return max if self.objective.sense == "max" else min

    @property
    def best(self) -> tuple[Any, float]:
        """Best observed candidate, as `ask` returns it, and its value; at first None and infinity (-inf for "max")."""
        if not self.values:
            return None, np.inf if self.pick_best is min else -np.inf
        k = self.values.index(self.pick_best(self.values))
        return self._to_user_form(self.told[k]), self.values[k]

    def recommend(self, among: Collection[tuple[float, ...]] | None = None) -> tuple[Any, float]:
        """Return the observed candidate that is probably best, as `ask` returns it, and its estimated value.

        Without noise these are the best observed candidate and its value. With noise, whose best value is too good, it
        is the candidate with the best estimate by a Gaussian process. If ``among`` is given, a collection of tuples,
        only these candidates are considered.
        """
        if not self.values:
            raise InputError("nothing is known to recommend yet: `tell` at least one finite value first.")
        estimates = self._estimates() if self.objective.noisy else np.array(self.values)
        rows = [k for k, x in enumerate(self.told) if among is None or tuple(x.tolist()) in among]
        k = self.pick_best(rows, key=lambda k: estimates[k])
        return self._to_user_form(self.told[k]), float(estimates[k])

    @property
    def exhausted(self) -> bool:
        """Whether every allowed candidate was asked for or observed; always False if the objective is noisy."""
        return not self.objective.noisy and len(self.taken) >= self.space.count

    @lock_calls
    def ask(self, n: int | None = None) -> Any:
        """Return a candidate to evaluate, or ``n`` candidates: an array with one per row.

        If the inputs of a box have names, a candidate is a dict from name to value, and ``n`` of them are a list. If
        fewer than ``n`` allowed candidates are left, only these are returned; if none is, a NoCandidateError is raised.
        """
        if n is not None:
            n = _validate.whole_number(n, "n")
            rows = [self.ask()]
            with suppress(NoCandidateError):
                while len(rows) < n:
                    rows.append(self.ask())
            return rows if isinstance(rows[0], dict) else np.array(rows)
        if self.exhausted:
            raise NoCandidateError(f"all {self.space.count} allowed {self.noun}s have been asked for; none is left.")
        x = self._next_in_queue()
        if x is None:
            with one_thread:  # many threads on small matrices cost more time than they save
                x = self.space.canonical(self._propose())
            if not (self.repeats or self.is_free(x)):
                x = self.draw()
        # `setdefault`, as a noisy candidate may already have a value, which must stay
        self.taken.setdefault(tuple(x.tolist()), None)
        return self._to_user_form(x)

    @lock_calls
    def enqueue(self, given: Any) -> None:
        """Queue one or several candidates for `ask` to return first; without noise, it skips those that are not new."""
        self._queue += read_candidates(given, self.space, "candidates")

    def _next_in_queue(self) -> X | None:
        """Remove candidates from the queue up to the first that may be asked for, and return this one, or None."""
        while self._queue:
            x = self._queue.pop(0)
            if self.is_free(x):
                return x
        return None

    @lock_calls
    def tell(self, x: Any, value: ArrayLike) -> None:
        """Report the value of a candidate, whether it was asked for or not.

        ``x`` is an allowed candidate: an array, or a dict if the inputs of a box have names. ``value`` is a number or
        an array of one number; never reverse its sign, even if the objective is maximised. NaN or an infinite value
        says that the evaluation failed: the method then learns no value, but without noise it does not ask for the
        candidate again.
        """
        told: X = self.space.canonical(x)
        number, key = _validate.single_number(value), tuple(told.tolist())
        if number is None:
            raise InputError(f"`value` must be a number or an array of one number; got {_validate.quote(value)}.")
        if not np.isfinite(number):
            if self.taken.get(key) is None:  # a failure must not hide a value observed before
                self.taken[key] = np.nan
            return
        self.taken[key] = number
        self.told.append(told)
        self.values.append(number)
        with one_thread:
            self._learn(told, number)

    @lock_calls
    def withdraw(self, x: ArrayLike) -> None:
        """Allow a candidate that was asked for to be asked for again, unless its value has been reported."""
        key = tuple(self.space.canonical(x).tolist())
        if self.taken.get(key, 0.0) is None:  # 0.0 for candidates that were never asked for
            del self.taken[key]

    def is_taken(self, x: X) -> bool:
        """Return whether this canonical candidate was asked for or observed."""
        return tuple(np.asarray(x).tolist()) in self.taken

    def is_free(self, x: X) -> bool:
        """Return whether this canonical candidate may be asked for: always with noise, otherwise only if it is new."""
        return self.objective.noisy or not self.is_taken(x)

    def draw(self) -> X:
        """Draw an allowed candidate at random; without noise, one that has not yet been asked for or observed."""
        for _ in range(MAX_DRAWS):
            x = self._sample()
            if self.is_free(x):
                return x
        every = self.space.listing() if self.space.count <= MAX_LISTED else []
        left = [row for row in every if self.is_free(row)]
        if not left:
            raise NoCandidateError(f"no {self.noun} was found that is allowed and has not been asked for yet.")
        return left[self.rng.integers(len(left))]

    def _sample(self) -> X:
        """Draw an allowed candidate at random, even one that was asked for before."""
        x: X = self.space.sample(rng=self.rng)
        return x

    def _to_user_form(self, x: X) -> Any:
        """Convert a candidate from canonical form to the form that `ask` returns; the base class changes nothing."""
        return x

    def _propose(self) -> X:
        """Return the candidate to evaluate next; without noise, `ask` replaces one that was asked for before."""
        return self.draw()

    def _learn(self, x: X, value: float) -> None:
        """Update the method after an observation, which is already in ``told``, ``values`` and ``taken``."""

    def _estimates(self) -> FloatArray:
        """Return a model's estimates of the noise-free values of the observed candidates, shape (len(told),)."""
        raise NotImplementedError

    def __repr__(self) -> str:
        observed = f"best {self.best[1]:.6g} of {len(self.values)} observed" if self.values else "nothing observed"
        sense, noisy = self.objective.sense, self.objective.noisy
        return f"<{type(self).__name__}: sense={sense!r}, {observed}, noisy={noisy}>"


def read_candidates(x0: Any, space: Any, name: str = "x0") -> list[Any]:
    """Return candidates, in any form that ``x0`` of `minimize` takes, as a canonical list; messages say ``name``."""
    if x0 is None:
        return []
    # a list of numbers is one candidate, a list of lists or dicts several
    if isinstance(x0, Mapping) or not np.iterable(x0) or not all(isinstance(x, Mapping) or np.ndim(x) > 0 for x in x0):
        return [_to_canonical(x0, space, name)]
    return [_to_canonical(x, space, f"{name}[{k}]") for k, x in enumerate(x0)]


def read_initial_values(initial: Any, space: Any, column: str) -> list[tuple[Any, float]]:
    """Return pairs of a canonical candidate and its value, maybe NaN; a run's ``column`` holds unnamed candidates."""
    found = []
    for k, (x, given) in enumerate(_to_pairs(initial, space, column)):
        value = np.nan if given is None else _validate.single_number(given)
        if value is None:
            raise InputError(f"`initial[{k}]`: the value must be a number; got {_validate.quote(given)}.")
        found.append((_to_canonical(x, space, f"initial[{k}]"), value))
    return found


def _to_pairs(initial: Any, space: Any, column: str) -> list[Any]:
    """Convert ``initial`` from any of its forms to a list of pairs; raise if it has none of these forms."""
    if initial is None:
        return []
    if isinstance(initial, Run):
        history, columns = initial.history, list(space.names) or [column]
        _validate.check_columns(history, [*columns, "value"], "initial", "a run of the same inputs")
        initial = history[columns].to_dict("records") if space.names else history[column], history["value"]
    if isinstance(initial, tuple) and len(initial) == 2 and all(map(np.iterable, initial)):
        X, y = map(list, initial)
        if len(X) != len(y):
            counts = f"{len(X)} candidates and {len(y)} values"
            raise InputError(f"`initial` must hold one value per candidate; got {counts}.")
        initial = zip(X, y, strict=True)
    rows = list(initial) if np.iterable(initial) else [initial]
    if not all(np.iterable(row) and not isinstance(row, (str, Mapping)) and len(list(row)) == 2 for row in rows):
        raise InputError(
            "`initial` must be pairs (candidate, value), a tuple of candidates and values, or a Run; got "
            f"{_validate.quote(initial)}."
        )
    return rows


def _to_canonical(x: Any, space: Any, name: str) -> Any:
    """Convert a candidate to canonical form, or raise if it is not allowed; ``name`` is its name in the message."""
    try:
        return space.canonical(x)
    except InputError as error:
        message, start = str(error), re.compile("^`(x|sites)`")
        message = start.sub(f"`{name}`", message) if start.match(message) else f"`{name}`: {message}"
        if space.names and not isinstance(x, Mapping):
            message += f" As the inputs have names, give a dict with the keys {', '.join(space.names)}."
        raise InputError(message) from None
