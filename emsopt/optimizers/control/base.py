"""Base of the learners of a control problem: the model of values, the observed costs, and ask / tell."""

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray, Rng
from ...errors import InputError
from ...problems.control._checks import check_alpha
from ...problems.control.problem import ControlProblem, Play
from .model import ControlModel, Hyperparameters


class ControlLearner:
    """Base of the learners: holds a model of the values and the observed costs.

    Parameters
    ----------
    problem : ControlProblem
        A learner uses the problem's control sets, marginals and ``worst``. It never calls the objective, and only
        `UCBCVS` reads the mean costs. In a laboratory, pass the observed outcome to ``tell`` as a `Play`.
    rng : int or Generator, optional
    budget : float, optional
        Maximum total cost. The learner does not enforce it; the caller must, as `bocvs` does.
    alpha : float
        Tolerated loss, as a fraction of the difference between the best expected value and ``worst``. Used by
        `UnknownCost` only.
    beta : float or "theorem"
        Weight of the posterior standard deviation in the confidence bounds; "theorem" computes it from Theorem 1.
    norm, delta : float
        B, a bound on the function's norm, and δ, the probability that the confidence bounds fail, of Theorem 1's β;
        δ is in (0, 1].
    hyperparameters : Hyperparameters, optional
        Default: estimated from the plays.

    Attributes
    ----------
    model : ControlModel
    counts : ndarray of int, shape (m,)
        Number of plays of each set, T_i.
    paid : ndarray, shape (m,)
        Total cost of the plays of each set.
    plays : list of (int, ndarray)
        Set and values of each play.
    phase : str
        Current phase of the method, such as "search".

    Examples
    --------
    >>> import emsopt as eo
    >>> problem = eo.problems.hill_control()
    >>> learner = eo.optimizers.LEARNERS["ucb-psq"](problem, rng=0)
    >>> i, x = learner.ask()
    >>> problem.set_names[i]
    'all'
    >>> learner.tell(i, x, eo.problems.Play(point=x, value=0.2, cost=0.9))
    >>> learner
    <UCBPSQ: 1 plays, spent 0.9, search>
    """

    phase = "search"

    def __init__(
        self,
        problem: ControlProblem,
        *,
        rng: Rng = None,
        budget: float = np.inf,
        alpha: float = 0.1,
        beta: float | str = 2.0,
        norm: float = 1.0,
        delta: float = 0.1,
        hyperparameters: Hyperparameters | None = None,
    ) -> None:
        _validate.instance(problem, "problem", ControlProblem, "emsopt.problems.ControlProblem")
        if beta != "theorem" and not (_validate.is_real(beta) and 0 < beta < np.inf):
            raise InputError(f"`beta` must be a number above 0, or 'theorem'; got {beta!r}.")
        check_alpha(alpha)
        norm, delta = _validate.positive_number(norm, "norm"), _validate.probability(delta, "delta")
        if budget != np.inf:
            budget = _validate.positive_number(budget, "budget")
        self.problem, self.budget, self.alpha = problem, budget, alpha
        self.rng = _validate.generator(rng)
        self.model = ControlModel(problem, self.rng, hyperparameters, beta=beta, norm=norm, delta=delta)
        m = len(problem.control_sets)
        self.counts, self.paid = np.zeros(m, dtype=int), np.zeros(m)
        self.plays: list[tuple[int, FloatArray]] = []

    @property
    def spent(self) -> float:
        """Total cost of all plays."""
        return float(self.paid.sum())

    @property
    def mean_costs(self) -> FloatArray:
        """Mean observed cost of each set, shape (m,); NaN for a set that has not been played."""
        return np.divide(self.paid, self.counts, out=np.full(len(self.paid), np.nan), where=self.counts > 0)

    def ask(self) -> tuple[int, FloatArray]:
        """Return the set to play next and the values of its variables, shape (k,)."""
        if self.model.process is None:
            i = self._first_set()
            return i, self.rng.random(len(self.problem.control_sets[i]))
        return self._propose()

    def tell(self, i: int, x: ArrayLike, play: Play) -> None:
        """Report the outcome of a play.

        Parameters
        ----------
        i : int
            Control set that was played.
        x : array_like, shape (k,)
            Values of the controlled variables, as recorded in the plays.
        play : Play
            Outcome of the play. The model learns from ``play.point``, which should contain ``x`` but is not compared
            with it.
        """
        i, x = self.problem.checked_query(i, x)
        d = self.problem.dimension
        if not isinstance(play, Play) or len(play.point) != d:
            got = f"{len(play.point)} variables" if isinstance(play, Play) else repr(play)
            raise InputError(f"`play` must be an emsopt.problems.Play of {d} variables; got {got}.")
        self.model.tell(play.point, play.value)
        self.counts[i] += 1
        self.paid[i] += play.cost
        self.plays.append((i, x.copy()))

    def recommend(self) -> tuple[int, FloatArray]:
        """Return set and values, shape (k,), of the play whose expected value has the largest posterior mean.

        Before there are enough plays for a model, the play with the largest observed value counts.

        Raises
        ------
        InputError
            If no play has been observed.
        """
        if not self.plays:
            raise InputError("There is no recommendation yet: report at least one play with `tell` first.")
        if self.model.process is None:
            return self.plays[int(np.argmax(self.model.values))]
        found = []
        for i in sorted({i for i, _ in self.plays}):
            points = np.array([x for j, x in self.plays if j == i])
            values = self.model.bound(i, "mean").rough(points)[0]
            found.append((values.max(), i, points[np.argmax(values)]))
        return max(found, key=lambda entry: entry[0])[1:]

    def _candidates(self) -> list[int]:
        """Return the sets that the learner may choose from."""
        return self.model.maximal

    def _first_set(self) -> int:
        """Return the set to play before there is a model."""
        return int(self.rng.choice(self._candidates()))

    def _propose(self) -> tuple[int, FloatArray]:
        """Choose the set to play next and the values of its variables, based on the model."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.plays)} plays, spent {self.spent:.4g}, {self.phase}>"
