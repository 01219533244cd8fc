r"""`ControlProblem`: which variables to control, at what values, when control is costly and the rest random.

Section "Problem definition" of "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs".

=============  ==================  ===========================================================================
symbol         name                meaning
=============  ==================  ===========================================================================
f              ``objective``       function on [0, 1]^d, to be maximised
I_1, ..., I_m  ``control_sets``    variables that may be controlled together
x^i            -                   values of the variables in set i
P_l            ``marginals``       known distribution of variable l when not controlled; all independent
c_i            ``costs``           mean cost of a play of set i, in (0, 1]; unknown to the learner
ξ              ``noise_sd``        standard deviation of the noise on an observed value
α              -                   tolerance: acceptable loss, as a fraction of the best value above ``worst``
=============  ==================  ===========================================================================

.. math:: E_i(x^i) = E[f([x^i, X^{-i}])], \qquad v_i = \max_{x^i} E_i(x^i), \qquad
          C_* = \{i : v_i - \text{worst} \ge (1 - α) (\max_j v_j - \text{worst})\}

E_i(x^i) is the expected value of f when set i is held at x^i and the other variables, X^{-i}, are drawn from their
marginals; C_* holds the acceptable sets. A play holds one set at chosen values, draws the other variables, and yields a
value and a cost.

Expected values are means over NODES common quasi-Monte-Carlo points, Sobol points with a fixed scrambling that the
quantile functions of the marginals map, and therefore deterministic and comparable between sets and points.

The cost of a play is its mean plus normal noise, or exactly its mean if that is below 0.1. The noise is truncated
symmetrically, which keeps the cost in [0, 1], as the theory requires, and preserves the mean: a set of mean cost 1
always costs 1. The paper adds N(0, 0.02) to mean costs of at least 0.1; 0.02 is taken as the standard deviation,
because as a variance it would often make a cost of mean 0.1 negative.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...errors import InputError, _validate
from ...errors._types import ArrayLike, FloatArray, IntArray, Rng
from ..problem import Problem
from .marginals import Marginal

NODES = 16_384  # errors of about 1e-4 of a standard deviation of f
CHUNK_SIZE = 65_536  # points evaluated at a time, few enough for the processor's cache
SCREENING_POINTS, SCREEN_NODES = 4096, 128  # screened points, and nodes for each: a few suffice to rank points
CLIMB_STARTS, CLIMB_NODES, DIFFERENCE_STEP = 6, 2048, 1e-6  # a step well above rounding errors


@dataclass(frozen=True, eq=False, repr=False)
class ControlProblem:
    """A function to maximise, of which each play controls one set of variables at a cost while the others are random.

    Attributes
    ----------
    objective : Problem
        Noise-free problem of sense "max" on the unit cube, a function of all d variables.
    control_sets : tuple of tuple of int
        Indices of the variables in each set, in ascending order. Names are accepted as input.
    costs, marginals : ndarray of shape (m,), tuple
        Mean cost of a play of each set, in (0, 1], and `TruncatedNormal`, `Uniform` or `Empirical` per variable, or a
        single one for all.
    noise_sd, cost_noise_sd : float
        Standard deviations of the noise on an observed value, and on a cost before it is truncated.
    worst : float
        Lower bound of the objective, from which the tolerance α is measured. Default: 0.
    set_values, set_points : ndarray of shape (m,), tuple of ndarray
        Best expected value v_i of each set and the values of its variables that attain it, or empty; see
        `with_set_values`. If anything but the costs changes, such as the marginals, they must be recomputed.

    Examples
    --------
    >>> import emsopt as eo
    >>> f = eo.problems.Problem("hill", lambda u: 1 - ((u - 0.3) ** 2).sum(axis=1), [(0, 1)] * 2, "max", 1, [0.3, 0.3])
    >>> X = eo.problems.Uniform()
    >>> problem = eo.problems.ControlProblem(f, [[0], [0, 1]], [0.1, 1.0], X)
    >>> round(float(problem.expected(0, [0.3])), 3)  # 1 - 1/12 - 0.2²
    0.877
    """

    objective: Problem
    control_sets: Any
    costs: Any
    marginals: Any
    noise_sd: float = 0.01
    cost_noise_sd: float = 0.02
    worst: float = 0.0
    set_values: Any = ()
    set_points: Any = ()

    def __post_init__(self) -> None:
        f = _validate.instance(self.objective, "objective", Problem, "emsopt.problems.Problem")
        if f.sense != "max" or (f.bounds != (0, 1)).any():
            raise InputError(
                f"`objective` must have sense 'max' and bounds 0 and 1; {f.name} has {f.sense!r} and "
                f"{f.bounds.tolist()}. Convert it by its method on_unit_cube."
            )
        if f.noise_sd:
            raise InputError(f"`objective` must have no noise, but {f.name} has; pass `noise_sd` to ControlProblem.")
        variables = f.variables
        control_sets = parse_control_sets(self.control_sets, variables)
        m = len(control_sets)
        n, k = len(self.set_values), len(self.set_points)
        if (n, k) not in ((0, 0), (m, m)):
            raise InputError(f"`set_values` and `set_points` must both hold {m} values, or none; got {n} and {k}.")
        costs = _validate.real_array(self.costs, "costs", (m,), low=0.0, strictly=True)
        if costs.max() > 1:
            most = f"that of set {costs.argmax()} is {costs.max():g}"
            raise InputError(f"`costs` must be mean costs in (0, 1]; {most}. Divide all costs by the largest.")
        vars(self).update(
            control_sets=control_sets,
            costs=costs,
            marginals=parse_marginals(self.marginals, variables),
            noise_sd=_validate.positive_number(self.noise_sd, "noise_sd", zero=True),
            cost_noise_sd=_validate.positive_number(self.cost_noise_sd, "cost_noise_sd", zero=True),
            worst=_validate.finite_number(self.worst, "worst"),
            set_values=np.array(self.set_values, dtype=float),
            set_points=tuple(np.array(x, dtype=float) for x in self.set_points),
        )

    @property
    def dimension(self) -> int:
        """Number of variables d."""
        return self.objective.dimension

    @property
    def set_names(self) -> tuple[str, ...]:
        """Names of the control sets: their variables, shortened to "x1 to x6", "all" or "all but x2"."""
        return tuple(map(self._control_set_name, range(len(self.control_sets))))

    def _control_set_name(self, i: int) -> str:
        members, left = self.control_sets[i], self.uncontrolled_variables(i)
        names = [self.objective.variables[k] for k in members]
        if not len(left):
            return "all"
        if len(left) == 1 and len(members) > 2:
            return f"all but {self.objective.variables[left[0]]}"
        if len(members) > 4 and members[-1] - members[0] == len(members) - 1:
            return f"{names[0]} to {names[-1]}"
        return ", ".join(names)

    def uncontrolled_variables(self, i: int) -> IntArray:
        """Return the indices of the variables that set ``i`` does not control."""
        return np.setdiff1d(np.arange(self.dimension), self.control_sets[i])

    def nodes(self, n: int = NODES) -> FloatArray:
        """Return the n quasi-random points, (n, d), over which expected values are means; n is a power of 2."""
        n = _validate.whole_number(n, "nodes", high=2**22)  # for 12 variables, 400 MB
        if n & (n - 1):
            raise InputError(f"`nodes` must be a power of 2, for which Sobol points are balanced; got {n}.")
        u = sobol_points(self.dimension, n)
        return np.column_stack([X.quantile(u[:, k]) for k, X in enumerate(self.marginals)])

    def expected(self, i: int, x: ArrayLike, nodes: int = NODES) -> FloatArray:
        """Return the expected value of the objective with set ``i`` held at ``x`` and the other variables random.

        ``x`` holds the values of its k variables, shape (k,) or (K, k); the result has the shape () or (K,).
        """
        i, given = self.check_query(i, x, several=True)
        controlled = list(self.control_sets[i])
        common = self.nodes(nodes if len(controlled) < self.dimension else 1)  # one node if nothing is random

        def mean_over_nodes(chunk: FloatArray) -> FloatArray:
            points = np.repeat(common[None], len(chunk), axis=0)
            points[:, :, controlled] = chunk[:, None]
            each = np.asarray(self.objective.noise_free_value(points.reshape(-1, self.dimension)))
            return each.reshape(len(chunk), len(common)).mean(axis=1)

        values = evaluate_in_chunks(mean_over_nodes, np.atleast_2d(given), max(1, CHUNK_SIZE // len(common)))
        return values if given.ndim == 2 else values[0]

    def play(self, i: int, x: ArrayLike, *, rng: Rng = None) -> "Play":
        """Play set ``i`` with its variables at ``x``, shape (k,), and return the outcome."""
        i, x = self.check_query(i, x)
        draws = _validate.generator(rng)
        u = draws.random(self.dimension)  # all variables draw, so that the chosen set does not change the stream
        point = np.array([float(X.quantile(p)) for X, p in zip(self.marginals, u, strict=True)])
        point[list(self.control_sets[i])] = x
        value = self.objective.noise_free_value(point) + self.noise_sd * draws.standard_normal()
        return Play(point, float(value), self._cost_quantile(self.costs[i], draws.random()))

    def _cost_quantile(self, mean: float, u: float) -> float:
        """Return the ``u``-quantile of the cost of a play with this mean cost."""
        from scipy.special import ndtr, ndtri

        room = min(mean, 1 - mean)  # the distance to the nearer end, which keeps the truncation symmetric
        if mean < 0.1 or room == 0 or self.cost_noise_sd == 0:  # the paper adds noise only from 0.1 on
            return float(mean)
        with np.errstate(over="ignore"):  # very small noise has no tail
            tail = ndtr(-room / self.cost_noise_sd)
        cost = mean + self.cost_noise_sd * ndtri(tail + u * (1 - 2 * tail))  # inverse transform of the truncated normal
        return float(np.clip(cost, mean - room, mean + room))  # rounding may exceed these bounds

    def check_query(self, i: int, x: ArrayLike, *, several: bool = False) -> tuple[int, FloatArray]:
        """Return set ``i`` and values of its variables, (k,) or with ``several`` also (K, k), checked."""
        i = _validate.whole_number(i, "i", 0, len(self.control_sets) - 1)
        values, k = _validate.floats(x, "x"), len(self.control_sets[i])
        if values.shape != (k,) and not (several and values.ndim == 2 and values.shape[1] == k):
            rows = f" or (K, {k})" if several else ""
            raise InputError(f"`x` must have shape ({k},){rows} for set {i}; got {values.shape}.")
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError(f"`x` must lie in [0, 1]; it ranges from {values.min():g} to {values.max():g}.")
        return i, values

    def with_set_values(self) -> "ControlProblem":
        """Return the problem with `set_values` and `set_points`, computed by a long search if missing."""
        if len(self.set_values):
            return self
        values, points = zip(*(self.best_of_set(i) for i in range(len(self.control_sets))), strict=True)
        return replace(self, set_values=np.array(values), set_points=points)

    def best_of_set(self, i: int) -> tuple[float, FloatArray]:
        """Search thoroughly for the best expected value of set ``i``; return it and the values that attain it, (k,)."""
        controlled, known = list(self.control_sets[i]), self.objective.best_x
        return maximize_mean(partial(self.expected, i), len(controlled), None if known is None else known[controlled])

    def acceptable(self, alpha: float) -> IntArray:
        """Return the indices of the acceptable sets, C_*, for the tolerance α = ``alpha``.

        Their best expected value is at least 1 - alpha times the largest of all sets, both measured from ``worst``.
        """
        check_alpha(alpha)
        values = self.with_set_values().set_values
        if values.max() <= self.worst:
            found = f"it is {self.worst:g}, but the best expected value is {values.max():g}"
            raise InputError(f"`worst` must be a lower bound of the objective; {found}.")
        values = values - self.worst
        return np.flatnonzero(values >= (1 - alpha) * values.max())

    def target(self, alpha: float) -> int:
        """Return the index of the set that a learner should identify: the cheapest `acceptable` one."""
        sets = self.acceptable(alpha)
        return int(sets[np.argmin(self.costs[sets])])

    def __repr__(self) -> str:
        size = f"{self.dimension} variables, {len(self.control_sets)} control sets"
        return f"<ControlProblem {self.objective.name}: {size}, costs {self.costs.min():g} to {self.costs.max():g}>"


@dataclass(frozen=True)
class Play:
    """Outcome of a play: the values of all variables, the observed value with its noise, and the cost, in [0, 1].

    Examples
    --------
    >>> Play([0.5, 0.2], value=0.7, cost=0.1).cost
    0.1
    """

    point: FloatArray
    value: float
    cost: float

    def __post_init__(self) -> None:
        point = _validate.real_array(self.point, "point", (None,))
        if point.min() < 0 or point.max() > 1:
            raise InputError(f"`point` must lie in [0, 1]; it ranges from {point.min():g} to {point.max():g}.")
        _validate.finite_number(self.value, "value")
        if not _validate.is_real(self.cost) or not 0 <= self.cost <= 1:
            raise InputError(f"`cost` must lie in [0, 1]; got {self.cost!r}. Divide all costs by the largest possible.")
        object.__setattr__(self, "point", point)


def evaluate_in_chunks(function: Callable[[FloatArray], FloatArray], points: FloatArray, size: int) -> FloatArray:
    """Return the values, (n,), of a function at points, (n, d), which it gets in chunks of ``size`` rows."""
    return np.concatenate([function(points[k : k + size]) for k in range(0, max(len(points), 1), size)])


def maximize_mean(expected: Callable[..., FloatArray], d: int, start: FloatArray | None) -> tuple[float, FloatArray]:
    """Return the largest value of ``expected(x, nodes)``, x of shape (n, d), on the unit cube, and its point, (d,)."""
    from scipy.optimize import minimize

    screened = sobol_points(d, SCREENING_POINTS)  # few nodes are enough to rank points
    starts = screened[np.argsort(-expected(screened, SCREEN_NODES))[:CLIMB_STARTS]]
    if start is not None:
        starts = np.vstack([starts, start])

    def negated_value(x: FloatArray) -> tuple[float, FloatArray]:
        shifts = np.where(x > 0.5, -DIFFERENCE_STEP, DIFFERENCE_STEP)  # beyond the border there are no values
        values = expected(np.vstack([x, x + np.diag(shifts)]), CLIMB_NODES)
        return -values[0], -(values[1:] - values[0]) / shifts

    ends = [minimize(negated_value, x, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * d).x for x in starts]
    candidates = np.vstack([starts, np.clip(ends, 0, 1)])
    x = candidates[np.argmax(expected(candidates, CLIMB_NODES))]
    return float(expected(x)), x  # the maximum over few nodes is biased upwards


def sobol_points(d: int, n: int) -> FloatArray:
    """Return n Sobol points of the unit cube with a fixed scrambling, shape (n, d)."""
    from scipy.stats import qmc

    return qmc.Sobol(d, seed=1).random(n)  # fixed: all sets and runs have the same nodes


def parse_control_sets(
    control_sets: Iterable[Iterable[int | str]], variables: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """Return control sets, given by indices or names of variables, as ascending tuples of indices; raise if invalid."""
    result: list[tuple[int, ...]] = []
    for i, members in enumerate(control_sets):
        if isinstance(members, str) or not np.iterable(members):
            raise InputError(f"Control set {i} must be a list of variables; got {_validate.quote(members)}.")
        indices = tuple(sorted(_variable_index(k, i, variables) for k in members))
        if not indices or _validate.first_repeated(indices) is not None:
            raise InputError(f"Control set {i} must name one or more variables, each once; got {list(members)}.")
        if indices in result:  # a learner could never prefer the dearer one
            both = f"{result.index(indices)} and {i}"
            raise InputError(f"Control sets {both} hold the same variables. Keep the cheaper one.")
        result.append(indices)
    return tuple(result)


def _variable_index(member: int | str, i: int, variables: Sequence[str]) -> int:
    """Return the index of a variable of set ``i`` that is given by its index or name."""
    if not isinstance(member, str):
        return _validate.whole_number(member, f"control_sets[{i}]", 0, len(variables) - 1)
    if member not in variables:
        raise InputError(f"Control set {i} must name variables among {', '.join(variables)}; got {member!r}.")
    return variables.index(member)


def parse_marginals(marginals: Marginal | Sequence[Marginal], variables: Sequence[str]) -> tuple[Marginal, ...]:
    """Return the marginals as a tuple of one per variable, where a single one applies to all; raise if invalid."""
    d = len(variables)
    each = (marginals,) * d if isinstance(marginals, Marginal) else marginals
    if not isinstance(each, (list, tuple)) or len(each) != d or not all(isinstance(X, Marginal) for X in each):
        raise InputError(
            "`marginals` must be one of TruncatedNormal, Uniform, Empirical (emsopt.problems), or a list of "
            f"{d}, one per variable; got {_validate.quote(each)}."
        )
    return tuple(each)


def check_alpha(alpha: float) -> None:
    """Raise InputError unless the tolerance ``alpha`` is at least 0 and below 1."""
    if not _validate.is_real(alpha) or not 0 <= alpha < 1:
        raise InputError(f"`alpha` must be a fraction of at least 0 and below 1; got {_validate.quote(alpha)}.")
