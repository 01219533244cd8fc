r"""Learners of a control problem: which variables to control next, and at what values.

=================  ================================================================================================
`UnknownCost`      Algorithm 1 of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret
                   Costs": explore every set, then play the cheapest one that may be good enough
`UCBPSQ`           largest E[u] of all sets, whatever the cost (Hayashi et al. 2022)
`TSPSQ`            largest expected value of a random function from the posterior (Hayashi et al. 2022)
`UCBCVS`           the cheapest set whose E[u] comes within ε_t of the largest; costs must be known (Tay et al. 2023)
`ETC50`            50 plays of every group of equally large sets, smallest first, then as UCB-PSQ
=================  ================================================================================================

All are used by ask / tell: ``ask`` returns a set and values for it, ``tell`` reports what happened.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _validate
from ..._types import ArrayLike, FloatArray, Rng
from ...errors import InputError
from ...problems.control._checks import check_alpha
from ...problems.control.problem import ControlProblem, Play
from .model import ControlModel, Hyperparameters, PosteriorSample


class ControlLearner:
    """Base of the learners: a model of the values, and the costs observed.

    Parameters
    ----------
    problem : ControlProblem
        A learner uses its control sets, marginals and ``worst``, but not its mean costs (except `UCBCVS`) and never
        its objective: to play in a laboratory, tell a `Play` of what was observed.
    rng : int or Generator, optional
    budget : float, optional
        Maximum total cost. The caller must keep to it, as `bocvs` does.
    alpha : float
        Share of the best expected value, counted from ``worst``, that may be given up. Used by `UnknownCost` only.
    beta : float or "theorem"
        Weight of the posterior standard deviation in bounds.
    norm, delta : float
        B and δ of the theorem's β; δ is in (0, 1].
    hyperparameters : Hyperparameters, optional
        Default: estimated.

    Attributes
    ----------
    model : ControlModel
    counts : ndarray of int, shape (m,)
        Plays of each set, T_i.
    paid : ndarray, shape (m,)
        Their total cost.
    plays : list of (int, ndarray)
        Set and values of each play.
    phase : str
        What the learner does at present.

    Raises
    ------
    InputError
        If an option is invalid.

    Examples
    --------
    >>> import emsopt as eo
    >>> problem = eo.problems.hill_control()
    >>> learner = eo.optimizers.UCBPSQ(problem, rng=0)
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
        """Mean cost observed of each set, NaN before its first play, shape (m,)."""
        return np.divide(self.paid, self.counts, out=np.full(len(self.paid), np.nan), where=self.counts > 0)

    def ask(self) -> tuple[int, FloatArray]:
        """Return the set to play next and the values of its variables, shape (k,)."""
        if self.model.process is None:
            i = self._first_set()
            return i, self.rng.random(len(self.problem.control_sets[i]))
        return self._propose()

    def tell(self, i: int, x: ArrayLike, play: Play) -> None:
        """Report a play.

        Parameters
        ----------
        i : int
            Its control set.
        x : array_like, shape (k,)
            Values given to its variables.
        play : Play
            The outcome.

        Raises
        ------
        InputError
            If an argument does not fit the problem.
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
        """Return the set and values, shape (k,), of the play with the largest posterior mean of the expected value.

        Raises
        ------
        InputError
            If no play has been observed.
        """
        if not self.plays:
            raise InputError("there is no recommendation yet: call `tell` with the outcome of at least one play.")
        if self.model.process is None:
            return self.plays[int(np.argmax(self.model.values))]
        found = []
        for i in sorted({i for i, _ in self.plays}):
            points = np.array([x for j, x in self.plays if j == i])
            values = self.model.bound(i, "mean").rough(points)[0]
            found.append((values.max(), i, points[np.argmax(values)]))
        return max(found, key=lambda entry: entry[0])[1:]

    def _candidates(self) -> list[int]:
        """Return the sets among which to choose."""
        return self.model.maximal

    def _first_set(self) -> int:
        """Return the set to play while there is no model."""
        return int(self.rng.choice(self._candidates()))

    def _propose(self) -> tuple[int, FloatArray]:
        """Return the set to play next and the values of its variables, from the model."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.plays)} plays, spent {self.spent:.4g}, {self.phase}>"


def _best(found: dict[int, tuple[float, FloatArray]]) -> tuple[int, FloatArray]:
    """Return the set of the largest value, and where it is reached."""
    i = max(found, key=lambda j: found[j][0])
    return i, found[i][1]


class UCBPSQ(ControlLearner):
    """Largest E[u] of all sets, which a set within another never has."""

    def _propose(self) -> tuple[int, FloatArray]:
        return _best({i: self.model.best(i, "upper") for i in self._candidates()})


class TSPSQ(ControlLearner):
    """Largest expected value of a posterior sample, which a set within another never has."""

    def _propose(self) -> tuple[int, FloatArray]:
        sample = PosteriorSample(self.model)
        return _best({i: self.model.best_of_sample(sample, i) for i in self._candidates()})


class UCBCVS(ControlLearner):
    """The cheapest set whose largest E[u] comes within ε_t of the largest of all; costs are known.

    Parameters
    ----------
    problem : ControlProblem
    epsilon : float or callable, optional
        ε_t in units of the objective: a number, or a function of the play's number t = 1, 2, ... Default: the square
        root of (amplitude / t).
    **options
        As of `ControlLearner`.
    """

    def __init__(
        self, problem: ControlProblem, *, epsilon: float | Callable[[int], float] | None = None, **options: Any
    ) -> None:
        super().__init__(problem, **options)
        if epsilon is not None and not callable(epsilon):
            epsilon = _validate.positive_number(epsilon, "epsilon", zero=True)
        self.epsilon = epsilon

    def _propose(self) -> tuple[int, FloatArray]:
        t = len(self.plays) + 1
        slack = np.sqrt(self.model.process.amplitude / t) if self.epsilon is None else self.epsilon
        if callable(slack):
            slack = _validate.positive_number(slack(t), f"epsilon({t})", zero=True)
        found = [self.model.best(i, "upper") for i in range(len(self.counts))]
        bounds = np.array([value for value, _ in found])
        close = np.flatnonzero(bounds + slack >= bounds.max())
        cheapest = close[self.problem.costs[close] == self.problem.costs[close].min()]
        i = int(cheapest[np.argmax(bounds[cheapest])])
        return i, found[i][1]


class ETC50(UCBPSQ):
    """Play every group of sets of equal size for a while, smallest first, by the largest E[u]; then as UCB-PSQ.

    Parameters
    ----------
    problem : ControlProblem
    plays_per_group : int
        50 in the paper.
    **options
        As of `ControlLearner`.
    """

    def __init__(self, problem: ControlProblem, *, plays_per_group: int = 50, **options: Any) -> None:
        super().__init__(problem, **options)
        self.plays_per_group = _validate.whole_number(plays_per_group, "plays_per_group")
        sizes = np.array([len(s) for s in problem.control_sets])
        self.groups: list[list[int]] = [np.flatnonzero(sizes == size).tolist() for size in np.unique(sizes)]

    @property
    def phase(self) -> str:  # type: ignore[override]
        """Which group is explored, or "commit" after the last one."""
        k = len(self.plays) // self.plays_per_group
        return f"explore group {k + 1}" if k < len(self.groups) else "commit"

    def _candidates(self) -> list[int]:
        k = len(self.plays) // self.plays_per_group
        return self.groups[k] if k < len(self.groups) else self.model.maximal


class UnknownCost(ControlLearner):
    r"""Algorithm 1: explore every set in turn, then play the cheapest set that may still be good enough.

    In the second phase a set is feasible while u - worst > (1 - α) (l - worst), where u is the set's smallest upper
    bound so far, l the largest lower bound so far and ``worst`` a known lower bound of the objective (line 16). Of the
    feasible sets it plays the one with the lowest cost bound,

    .. math:: \max(\hat c_i - \sqrt{2 \log T / T_i}, 0)

    (lines 22 to 25); a tie goes to the set with the largest E[u] (line 26).

    Where the paper leaves a choice:

    - **Exploration** continues while the next play, which costs at most 1, is certain to fit into its share of the
      budget, 60 of 100 in the experiments.
    - **T** is the budget divided by the smallest mean cost above 0 that was observed in the exploration.
    - **Line 11** of the paper has an index beyond the exploration. Here a set's upper bound is the minimum over the
      rounds in which it was computed. The lower bound of line 10 is computed once in every m rounds.
    - **Bounds are compared only if they come from the same hyperparameters.** When these are estimated again, the
      bounds start again.
    - **An infeasible set stays infeasible** until the bounds start again, because lower bounds only rise and α only
      falls. Its bound is not computed in the meantime. The bounds also start again when no set is feasible.
    - The lower bound starts at ``worst``.

    The cost bounds are wide: until a set has been played 2 log(T) / c² times, its bound is 0. In the paper's settings
    (cheap costs, 45 plays per set in the exploration) they distinguish the set of mean cost 1 from the others, but not
    0.1 from 0.01. Among sets tied at 0 the largest E[u] decides, not the cost.

    Parameters
    ----------
    problem : ControlProblem
    exploration : float
        Share of the budget for the first phase.
    alpha : float
        Tolerance at the start of the second phase.
    halving : bool
        Whether α is halved after every d plays of the second phase, as in the experiments.
    **options
        As of `ControlLearner`; a finite ``budget`` is needed.

    Attributes
    ----------
    lower : float
        Largest lower bound so far on the best expected value.
    upper : ndarray, shape (m,)
        Smallest upper bound so far on the best expected value of each set.
    feasible : list of int
        Sets of line 16, in the second phase.
    """

    def __init__(
        self, problem: ControlProblem, *, exploration: float = 0.6, halving: bool = True, **options: Any
    ) -> None:
        super().__init__(problem, **options)
        self.exploration, self.halving = _validate.finite_number(exploration, "exploration", 0, 1), halving
        if not np.isfinite(self.budget):
            raise InputError("the method needs a finite `budget`, of which it explores a share.")
        self.first_alpha, self.phase = self.alpha, "explore"
        self.feasible: list[int] = []
        self.horizon, self._explored = np.nan, 0  # known once the exploration ends
        self._restart_bounds()

    def _restart_bounds(self) -> None:
        """Forget the bounds, which come from other hyperparameters."""
        self.lower = self.problem.worst
        self.upper = np.full(len(self.counts), np.inf)
        self._open = list(range(len(self.counts)))  # sets that may be feasible
        self._bounded_by = self.model.fits

    def ask(self) -> tuple[int, FloatArray]:
        """Return the set to play next and the values of its variables, shape (k,)."""
        if self.phase == "explore" and self.spent + 1 > self.exploration * self.budget:
            self.phase = "exploit"
            self.feasible = self._open  # all, until there are bounds
            self._explored = len(self.plays)
            self.horizon = max(2.0, self.budget / self.mean_costs[self.paid > 0].min(initial=1.0))
        return super().ask()

    def _first_set(self) -> int:
        return len(self.plays) % len(self.counts)

    def _propose(self) -> tuple[int, FloatArray]:
        if self._bounded_by != self.model.fits:
            self._restart_bounds()
        if self.phase == "exploit":
            return self._exploit()
        i = self._first_set()  # lines 4 and 5, and the terms of lines 10 and 11
        value, x = self.model.best(i, "upper")
        self.upper[i] = min(self.upper[i], value)
        if i == len(self.counts) - 1:
            self.lower = max(self.lower, self._lower_bound())
        return i, x

    def _exploit(self) -> tuple[int, FloatArray]:
        """Lines 14 to 26."""
        if self.halving:
            times = (len(self.plays) - self._explored) // self.problem.dimension
            self.alpha = self.first_alpha * 0.5**times
        lower = self._lower_bound()
        self.lower = max(self.lower, lower)
        bounds = {i: self.model.best(i, "upper") for i in self._open}
        for i, (value, _) in bounds.items():
            self.upper[i] = min(self.upper[i], value)
        self.feasible = self._good_enough()
        if not self.feasible:  # lines 17 to 20
            bounds |= {i: self.model.best(i, "upper") for i in range(len(self.counts)) if i not in bounds}
            self.lower = max(self.problem.worst, lower)
            self.upper = np.array([bounds[i][0] for i in range(len(self.counts))])
            self.feasible = self._good_enough() or [int(np.argmax(self.upper))]
        self._open = self.feasible
        costs = self.cost_bounds()
        lowest = costs[self.feasible].min()
        return _best({i: bounds[i] for i in self.feasible if costs[i] == lowest})

    def _lower_bound(self) -> float:
        """Return the largest E[l] of all sets."""
        return max(self.model.best(i, "lower")[0] for i in self.model.maximal)

    def _good_enough(self) -> list[int]:
        """Return the sets of line 16."""
        worst = self.problem.worst
        return np.flatnonzero(self.upper - worst > (1 - self.alpha) * (self.lower - worst)).tolist()

    def cost_bounds(self) -> FloatArray:
        """Return the lower confidence bound of every set's mean cost, lines 22 to 24, shape (m,)."""
        radius = np.sqrt(2 * np.log(self.horizon) / np.maximum(self.counts, 1))
        return np.where(self.counts > 0, np.maximum(np.nan_to_num(self.mean_costs) - radius, 0), 0)


LEARNERS: dict[str, type[ControlLearner]] = {
    "unknown-cost": UnknownCost,
    "ucb-psq": UCBPSQ,
    "ts-psq": TSPSQ,
    "ucb-cvs": UCBCVS,
    "etc-50": ETC50,
}
"""Learners by the name of their method."""
