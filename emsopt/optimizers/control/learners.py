r"""Learners of a control problem, which choose the variables to control next, and their values.

`UnknownCost` is Algorithm 1 of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs".
Its rivals are `UCBPSQ` and `TSPSQ` of Hayashi et al. (2022), `UCBCVS` of Tay et al. (2023), and `ETC50`.

E[u] is the expected upper confidence bound, maximised over the values of the controlled variables. ``ask`` returns a
set and values for its variables, ``tell`` reports the outcome of the play.
"""

from typing import Any

import numpy as np

from ...errors import InputError, _validate
from ...errors._types import ArrayLike, FloatArray, Rng
from ...problems.control.problem import ControlProblem, Play, check_alpha
from .model import ControlModel, PosteriorSample


class ControlLearner:
    """Base class of the learners, which choose the plays of a control problem by a model of values and observed costs.

    Parameters
    ----------
    problem : ControlProblem
        A learner uses the problem's control sets, marginals and ``worst``. It never calls the objective, and only
        `UCBCVS` reads the mean costs.
    budget : float
        Maximum total cost, finite. The learner does not enforce it; the caller must, as `bocvs` does.
    alpha : float
        Tolerated loss, as a fraction of the difference between the best expected value and ``worst``. Used by
        `UnknownCost` only.

    Attributes
    ----------
    model : ControlModel
    counts, paid : ndarray, shape (m,)
        Number of plays of each set, T_i, and their total cost.
    plays : list of (int, ndarray)
        Set of each play, and the values of its variables.
    phase : str
        Current phase of the method, such as "search".
    """

    phase = "search"

    def __init__(self, problem: ControlProblem, *, budget: float, alpha: float = 0.1, rng: Rng = None) -> None:
        check_alpha(alpha)
        self.problem, self.budget, self.alpha = problem, _validate.positive_number(budget, "budget"), alpha
        self.rng = _validate.generator(rng)
        self.model = ControlModel(problem, self.rng)
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
        """Return the index of the set to play next, and values of its variables, shape (k,)."""
        if self.model.process is None:
            i = self._first_set()
            return i, self.rng.random(len(self.problem.control_sets[i]))
        return self._propose()

    def tell(self, i: int, x: ArrayLike, play: Play) -> None:
        """Report the outcome of a play of set ``i`` at the values ``x``, shape (k,), of its variables."""
        i, x = self.problem.check_query(i, x)
        d = self.problem.dimension
        if len(play.point) != d:
            raise InputError(f"`play` must be of {d} variables; got {len(play.point)}.")
        self.model.tell(play.point, play.value)
        self.counts[i] += 1
        self.paid[i] += play.cost
        self.plays.append((i, x.copy()))

    def recommend(self) -> tuple[int, FloatArray]:
        """Return set and values, (k,), of the play with the largest posterior mean; without a model, largest value."""
        if not self.plays:
            raise InputError("There is no recommendation yet: report at least one play with `tell` first.")
        if self.model.process is None:
            return self.plays[int(np.argmax(self.model.values))]
        found = []
        for i in sorted({i for i, _ in self.plays}):
            points = np.array([x for j, x in self.plays if j == i])
            # the rough mean is exact, as its weight of the deviation is 0
            values = self.model.expected_bound(i, "mean").approximate(points)[0]
            found.append((values.max(), i, points[np.argmax(values)]))
        return max(found, key=lambda entry: entry[0])[1:]

    def _candidate_sets(self) -> list[int]:
        """Return the indices of the sets from which the learner chooses."""
        return self.model.maximal_sets

    def _first_set(self) -> int:
        """Return the index of the set to play while there is no model yet."""
        return int(self.rng.choice(self._candidate_sets()))

    def _propose(self) -> tuple[int, FloatArray]:
        """Return the index of the set to play next, and values of its variables, (k,), both chosen by the model."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.plays)} plays, spent {self.spent:.4g}, {self.phase}>"


def _best_set(found: dict[int, tuple[float, FloatArray]]) -> tuple[int, FloatArray]:
    """Return the set with the largest value, and its point, from a dict of sets to pairs of value and point, (k,)."""
    i = max(found, key=lambda j: found[j][0])
    return i, found[i][1]


class UCBPSQ(ControlLearner):
    """Play the set with the largest expected upper bound E[u], whatever its cost, of the sets that lie in no other."""

    def _propose(self) -> tuple[int, FloatArray]:
        return _best_set({i: self.model.best_bound(i, "upper") for i in self._candidate_sets()})


class TSPSQ(ControlLearner):
    """Play the set with the largest expected value of a posterior sample, of the sets that lie in no other."""

    def _propose(self) -> tuple[int, FloatArray]:
        sample = PosteriorSample(self.model)
        return _best_set({i: self.model.best_of_sample(sample, i) for i in self._candidate_sets()})


class UCBCVS(ControlLearner):
    """Play the cheapest set, by mean cost, whose expected upper bound E[u] is within ε_t of the largest of all sets."""

    def epsilon(self, t: int) -> float:
        """Return ε_t at play t = 1, 2, ..., in units of the objective: the square root of (amplitude / t)."""
        return float(np.sqrt(self.model.process.amplitude / t))

    def _propose(self) -> tuple[int, FloatArray]:
        found, costs = [self.model.best_bound(i, "upper") for i in range(len(self.counts))], self.problem.costs
        bounds = np.array([value for value, _ in found])
        close = np.flatnonzero(bounds + self.epsilon(len(self.plays) + 1) >= bounds.max())
        # E[u] decides among equally cheap sets
        return _best_set({i: found[i] for i in close.tolist() if costs[i] == costs[close].min()})


class ETC50(UCBPSQ):
    """Play 50 times by largest E[u] in each group of equally large sets, smallest sets first, then as UCB-PSQ."""

    plays_per_group = 50

    def __init__(self, problem: ControlProblem, **options: Any) -> None:
        super().__init__(problem, **options)
        sizes = np.array([len(s) for s in problem.control_sets])
        self.groups: list[list[int]] = [np.flatnonzero(sizes == size).tolist() for size in np.unique(sizes)]

    @property
    def _group_index(self) -> int:
        """Index of the group that is explored; the number of groups or more once all were."""
        return len(self.plays) // self.plays_per_group

    @property
    def phase(self) -> str:  # type: ignore[override]
        """Current phase: "explore group k" while the k-th group is explored, k = 1, 2, ..., then "commit"."""
        return f"explore group {self._group_index + 1}" if self._group_index < len(self.groups) else "commit"

    def _candidate_sets(self) -> list[int]:
        return self.groups[self._group_index] if self._group_index < len(self.groups) else self.model.maximal_sets


class UnknownCost(ControlLearner):
    r"""Explore every set in turn, then play the cheapest set that may still be good enough.

    Algorithm 1 of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs", whose lines
    are numbered here.

    In the second phase a set is feasible while u - worst > (1 - α) (l - worst), where u is the set's smallest upper
    bound so far, l the largest lower bound so far and ``worst`` a known lower bound of the objective (line 16). Of the
    feasible sets it plays the one with the lowest cost bound, see `cost_bounds`, and among equal ones that with the
    largest E[u] (line 26).

    Choices that the paper leaves open:

    - **Exploration** continues while the next play, which costs at most 1, is certain to fit into its share of the
      budget.
    - **T** is the budget divided by the smallest positive mean cost observed in the exploration, but at least 2.
    - **Line 11** of the paper uses an index that exceeds the exploration. Here a set's upper bound is the minimum over
      the rounds in which it was computed. In the exploration of m sets the lower bound of line 10, which starts at
      ``worst``, is computed once in every m rounds.
    - **Bounds are reset** when hyperparameters are estimated again. When no set is feasible, only the bounds of the
      current round are kept.
    - **An infeasible set stays infeasible** until the bounds are reset, because lower bounds only rise and α only
      falls. Its bound is not computed in the meantime.

    Parameters
    ----------
    exploration : float
        Share of the budget spent on the first phase, the exploration; 0.6 in the experiments.
    halving : bool
        Whether α is halved after every d plays of the second phase, as in the experiments; d is the number of
        variables of the problem.
    **options
        As in `ControlLearner`.

    Attributes
    ----------
    lower, upper : float, ndarray of shape (m,)
        Largest lower bound so far on the best expected value, and smallest upper bound so far on that of each set.
    feasible : list of int
        Feasible sets (line 16) in the second phase.
    restarts : int
        Number of rounds in which no set was feasible, so that the bounds were reset (lines 17 to 20).
    """

    def __init__(
        self, problem: ControlProblem, *, exploration: float = 0.6, halving: bool = True, **options: Any
    ) -> None:
        super().__init__(problem, **options)
        self.exploration, self.halving = _validate.finite_number(exploration, "exploration", 0, 1), halving
        self.first_alpha, self.phase = self.alpha, "explore"
        self.feasible: list[int] = []
        self.restarts = 0
        self.horizon, self._explored = np.nan, 0  # known once the exploration ends
        self._restart_bounds()

    def _restart_bounds(self) -> None:
        """Forget all confidence bounds: ``lower`` becomes ``worst``, ``upper`` infinity; every set may be feasible."""
        self.lower = self.problem.worst
        self.upper = np.full(len(self.counts), np.inf)
        self._possibly_feasible = list(range(len(self.counts)))  # others stay infeasible until a reset
        self._bounded_by = self.model.fits

    def ask(self) -> tuple[int, FloatArray]:
        """Return the index of the set to play next, and values of its variables, shape (k,)."""
        if self.phase == "explore" and self.spent + 1 > self.exploration * self.budget:
            self.phase = "exploit"
            self.feasible = self._possibly_feasible  # all sets, until bounds are computed
            self._explored = len(self.plays)
            # 1, the largest cost, if none was positive
            self.horizon = max(2.0, self.budget / self.mean_costs[self.paid > 0].min(initial=1.0))
        return super().ask()

    def _first_set(self) -> int:
        return len(self.plays) % len(self.counts)

    def _propose(self) -> tuple[int, FloatArray]:
        if self._bounded_by != self.model.fits:
            self._restart_bounds()
        if self.phase == "exploit":
            return self._exploit()
        i = self._first_set()  # lines 4 and 5, and the bounds in lines 10 and 11
        value, x = self.model.best_bound(i, "upper")
        self.upper[i] = min(self.upper[i], value)
        if i == len(self.counts) - 1:
            self.lower = max(self.lower, self._lower_bound())
        return i, x

    def _exploit(self) -> tuple[int, FloatArray]:
        """Return the set to play in the second phase, and values of its variables, (k,): lines 14 to 26."""
        if self.halving:
            times = (len(self.plays) - self._explored) // self.problem.dimension
            self.alpha = self.first_alpha * 0.5**times
        lower = self._lower_bound()
        self.lower = max(self.lower, lower)
        bounds = {i: self.model.best_bound(i, "upper") for i in self._possibly_feasible}
        for i, (value, _) in bounds.items():
            self.upper[i] = min(self.upper[i], value)
        self.feasible = self._feasible_sets()
        if not self.feasible:  # lines 17 to 20
            self.restarts += 1
            # sets that had been ruled out have no bound of this round yet
            bounds |= {i: self.model.best_bound(i, "upper") for i in range(len(self.counts)) if i not in bounds}
            self.lower = max(self.problem.worst, lower)
            self.upper = np.array([bounds[i][0] for i in range(len(self.counts))])
            # searches are inexact: `lower` may exceed all of them
            self.feasible = self._feasible_sets() or [int(np.argmax(self.upper))]
        self._possibly_feasible = self.feasible  # no other set can become feasible until bounds start anew
        costs = self.cost_bounds()
        lowest = costs[self.feasible].min()
        return _best_set({i: bounds[i] for i in self.feasible if costs[i] == lowest})

    def _lower_bound(self) -> float:
        """Return the largest expected lower confidence bound, E[l], of all sets and all values of their variables."""
        return max(self.model.best_bound(i, "lower")[0] for i in self.model.maximal_sets)

    def _feasible_sets(self) -> list[int]:
        """Return the indices of the feasible sets, those with upper - worst > (1 - α) (lower - worst): line 16."""
        worst = self.problem.worst
        return np.flatnonzero(self.upper - worst > (1 - self.alpha) * (self.lower - worst)).tolist()

    def cost_bounds(self) -> FloatArray:
        """Return the lower confidence bound on the mean cost of every set, shape (m,): lines 22 to 24.

        It is max(mean observed cost - √(2 log T / T_i), 0) after T_i plays of set i, and 0 for a set not played. During
        the exploration T is not known yet, and the bounds of the sets played are NaN.
        """
        radius = np.sqrt(2 * np.log(self.horizon) / np.maximum(self.counts, 1))
        return np.where(self.counts > 0, np.maximum(np.nan_to_num(self.mean_costs) - radius, 0), 0)


LEARNERS: dict[str, type[ControlLearner]] = {
    "unknown-cost": UnknownCost,
    "ucb-psq": UCBPSQ,
    "ts-psq": TSPSQ,
    "ucb-cvs": UCBCVS,
    "etc-50": ETC50,
}
"""Learner classes by method name.

>>> import emsopt as eo
>>> sorted(eo.optimizers.LEARNERS)
['etc-50', 'ts-psq', 'ucb-cvs', 'ucb-psq', 'unknown-cost']
"""
