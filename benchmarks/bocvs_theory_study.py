"""Compare Algorithm 1's regret with the bounds of Theorems 1 and 3, and the exploration it needs with Lemma 2's.

    python benchmarks/bocvs_theory_study.py

"Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs". The bounds say something only
after hundreds of thousands of plays, for which the learners of emsopt are too slow. Here the two variables of
`emsopt.problems.hill_control` take 21 values each. The kernel has finitely many features then, and a play costs
microseconds. The hill is a single bump of the kernel, so that its norm B is 1.

Everything is as the theorems assume, and nothing as in the experiments: the kernel and B are known, the process has a
noise variance of 1 + 2/T, and β follows from the largest information gain, all bounded by
``notebooks/papers/control_regret.py``. Costs are 0 or 1 at random, the widest distribution of a given mean on [0, 1].

"bocvs_bounds": one row per number of plays T, tolerance and seed, with the plays per set in the exploration ``each``, 3
T^(2/3); quality and cost regret, their bounds (3), (5) and (4), and what they are if every play is the worst; and of
the plays after the exploration the shares ``on_target`` and ``exact``, with exactly the acceptable sets feasible.
"bocvs_exploration": the same for a few ``each`` at 20,000 plays. Four minutes.
"""

from functools import cache

import _studies
import numpy as np
from numba import njit
from papers import control_regret as bounds

import emsopt as eo

LENGTHSCALES = np.array([0.15, 0.5])
NORM, NOISE, DELTA, SIDE = 1.0, 0.01, 0.1, 21
PLAYS = [1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000]
EACH = [1, 2, 5, 10, 20, 50, 100, 300, 1_000]
ALPHAS = [0.0, 0.1]


def instance():
    """Return covariance, features, hill, weights of a variable's values, costs and expected values of the sets."""
    problem = eo.problems.hill_control()
    axis = np.linspace(0, 1, SIDE)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    K = np.exp(-(((grid[:, None] - grid) / LENGTHSCALES) ** 2).sum(axis=2) / 2)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-6
    features = np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
    weights = np.exp(-(((axis - 0.5) / problem.marginals[0].scale) ** 2) / 2)
    hill = problem.objective.noise_free_value(grid)
    return K, features, hill, weights / weights.sum(), problem.costs


@njit(cache=True)
def expected(values, weights, i):
    """Return the mean of ``values`` on the grid for each choice of set i: the second variable, the first, or both."""
    if i == 2:
        return values
    n = len(weights)
    square = values.reshape(n, n)
    result = np.zeros(n)
    for j in range(n):
        for k in range(n):
            result[j] += weights[k] * (square[k, j] if i == 0 else square[j, k])
    return result


@njit(cache=True)
def algorithm(features, hill, weights, costs, betas, each, alpha, lam, noise, rng):
    """Play Algorithm 1 of the paper line by line; return the sets, their expected values and whether S_1 was exact."""
    T, m, (n, r), side = len(betas), len(costs), features.shape, len(weights)
    best = np.array([expected(hill, weights, i).max() for i in range(m)])
    good = best >= (1 - alpha) * best.max()
    S, w, mean, variance = np.eye(r), np.zeros(r), np.zeros(n), (features**2).sum(axis=1)
    lower, upper = -np.inf, np.full(m, np.inf)
    counts, paid = np.zeros(m), np.zeros(m)
    sets, reached, exact = np.zeros(T, np.int64), np.zeros(T), np.zeros(T, np.bool_)
    now, at = np.zeros(m), np.zeros(m, np.int64)
    for t in range(T):
        spread = betas[t] * np.sqrt(np.maximum(variance, 0))
        u, worst = mean + spread, mean - spread
        low = -np.inf
        for i in range(m):
            if t >= m * each or i == t % m:
                found = expected(u, weights, i)
                at[i] = found.argmax()
                now[i] = found[at[i]]
            low = max(low, expected(worst, weights, i).max())
        lower = max(lower, low)  # lines 10 and 14
        if t < m * each:
            i = t % m
            upper[i] = min(upper[i], now[i])  # line 11
        else:
            upper = np.minimum(upper, now)  # line 15
            feasible = upper > (1 - alpha) * lower  # line 16
            if not feasible.any():  # lines 17 to 20
                lower, upper = low, now.copy()
                feasible = upper > (1 - alpha) * lower
            exact[t] = (feasible == good).all()
            bound = np.maximum(paid / counts - np.sqrt(2 * np.log(T) / counts), 0)  # lines 22 to 24
            least = bound[feasible].min()
            i = -1
            for j in range(m):  # lines 25 and 26
                if feasible[j] and bound[j] == least and (i < 0 or now[j] > now[i]):
                    i = j
        sets[t], reached[t] = i, expected(hill, weights, i)[at[i]]
        chance = min(np.searchsorted(np.cumsum(weights), rng.random()), side - 1)
        point = chance * side + at[i] if i == 0 else at[i] * side + chance if i == 1 else at[i]
        y = hill[point] + noise * rng.standard_normal()
        counts[i] += 1
        paid[i] += rng.random() < costs[i]
        phi = features[point].copy()
        gain = S @ phi
        scale = lam + phi @ gain
        w += gain * ((y - phi @ w) / scale)
        S -= np.outer(gain, gain / scale)
        mean = features @ w
        variance -= (features @ gain) ** 2 / scale
    return sets, reached, exact


def quality_bound(plays, each, sets, gain, *, norm, noise_sd, largest, delta=0.1, separated=False):
    """Return the bound (3) of Theorem 1 on the quality regret, or (5) of Theorem 3 if the sets are ``separated``.

    With T = ``plays``, τ = ``each``, m = ``sets`` and |f| <= M = ``largest`` they are 2 (m - 1) τ M + 2 β_T A_{T-mτ}(m)
    + 2 (T - (m - 1) τ) / τ · β_{mτ} A_τ(1), and 2 m τ M + 2 β_T A_{T-mτ}(m) if τ is at least
    `bounds.exploration_needed`, with probability 1 - 3δ - 2/T². The proof of Theorem 3 ends with 2 τ M for the
    exploration, its statement with m τ M.
    """
    known = {"norm": norm, "noise_sd": noise_sd, "delta": delta}
    later = 2 * bounds.theorem_beta(plays, gain, **known)
    later = later * bounds.deviations(plays - sets * each, gain, sets, delta, sets)
    if separated:
        return 2 * sets * each * largest + later
    early = bounds.theorem_beta(sets * each, gain, **known) * bounds.deviations(each, gain, sets, delta)
    return 2 * (sets - 1) * each * largest + later + 2 * (plays - (sets - 1) * each) / each * early


def cost_bound(plays, each, sets):
    """Return the bound (4) of Theorems 1 and 3 on the cost regret, m τ + 2 (T - m τ) √(2 log T / τ)."""
    return sets * each + 2 * (plays - sets * each) * np.sqrt(2 * np.log(plays) / each)


def search(plays, each, alpha, seed, gain):
    """Return one row: regrets of a run of the algorithm, and their bounds."""
    _, features, hill, weights, costs = instance()
    known = {"norm": NORM, "noise_sd": NOISE, "delta": DELTA}
    betas = bounds.theorem_beta(np.arange(1, plays + 1), gain, **known)
    lam, rng = 1 + 2 / plays, np.random.default_rng(seed)
    sets, reached, exact = algorithm(features, hill, weights, costs, betas, each, alpha, lam, NOISE, rng)
    values = [expected(hill, weights, i) for i in range(3)]
    best = np.array([v.max() for v in values])
    target = min(np.flatnonzero(best >= (1 - alpha) * best.max()), key=lambda i: costs[i])
    explored = 3 * each
    row = {
        "quality_regret": ((1 - alpha) * best.max() - reached).sum(),
        "cost_regret": np.maximum(costs[sets] - costs[target], 0).sum(),
        "on_target": (sets[explored:] == target).mean(),
        "exact": exact[explored:].mean(),
        "worst_quality": plays * ((1 - alpha) * best.max() - min(v.min() for v in values)),
        "worst_cost": plays * (costs.max() - costs[target]),
    }
    arguments = plays, each, 3, gain
    for name, separated in (("bound_3", False), ("bound_5", True)):
        row[name] = float(quality_bound(*arguments, largest=hill.max(), separated=separated, **known))
    return row | {"bound_4": float(cost_bound(plays, each, 3))}


def search_plays(plays, alpha, seed):
    """Task of "bocvs_bounds"."""
    each = min(int(np.ceil(3 * plays ** (2 / 3))), plays // 3)
    return {"each": each} | search(plays, each, alpha, seed, gain_of_the_hill())


def search_exploration(each, alpha, seed):
    """Task of "bocvs_exploration"."""
    return search(20_000, each, alpha, seed, gain_of_the_hill())


@cache
def gain_of_the_hill():
    """Return a bound on the information gain of plays on the hill's grid."""
    return bounds.gain_bound(instance()[0], PLAYS[-1])


def main():
    options = _studies.parser(__doc__, runs=3).parse_args()
    seeds = range(1 if options.smoke else options.runs)
    parts = {
        "bocvs_bounds": (
            search_plays,
            eo.study.cases(plays=PLAYS[: 2 if options.smoke else None], alpha=ALPHAS, seed=seeds),
        ),
        "bocvs_exploration": (
            search_exploration,
            eo.study.cases(each=EACH[: 2 if options.smoke else None], alpha=ALPHAS[1:], seed=seeds),
        ),
    }
    for name, (task, cases) in parts.items():
        table = _studies.run(task, cases, name, options)
        table.round(4).to_csv(_studies.table_file(name, options), index=False)
        print(table.groupby([table.columns[0], "alpha"]).mean().drop(columns="seed").round(3).to_string())


if __name__ == "__main__":
    import bocvs_theory_study  # by its name, as worker processes import it

    bocvs_theory_study.main()
