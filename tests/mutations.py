"""Break one thing at a time in the package, and see whether the evidence of a claim notices.

    python tests/mutations.py                                # all breaks, a quarter of an hour
    python tests/mutations.py sign-of-the-expected-improvement    # some of them, by name

Each break replaces one piece of the package's code as it is imported (no file is changed), and belongs to a row of the
register (`load_claims`). The test that this row names as evidence is run, and the stored runs that a break lists are
played again (``tests/test_played_again.py``), on which rows rest that compare tables. Printed is a table in Markdown of
what was broken, the row, and the test that failed. The exit status is 1 if a break went unnoticed, or if one of the
tests fails without a break.
"""

import argparse
import contextlib
import importlib.machinery
import multiprocessing
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
AGAIN = "tests/test_played_again.py::test_first_rounds_are_those_of_the_table"
V2, V1, NAVIGATION, BOCVS, BOKE = ("server locations", "server locations, version one", "navigation", "bocvs", "boke")


class Break(NamedTuple):
    """One break: the paper and the place of its row; file, code and what replaces it; stored runs to play, or tests."""

    paper: str
    name: str
    place: str
    file: str
    code: str
    broken: str
    again: tuple[str, ...]


BROKEN = {  # by paper: what is broken, its place and file; the code, what replaces it, and runs or tests besides
    V2: {
        ("equation 3 without the scaling of utilisations", "Equation (3)", "evaluators/_approximate_equations.py"): (
            "    _scale_to(V, total)\n",
            "",
            "approximation_error_15-0.2-plane",
        ),
        ("correction factors of another rank", "Equation (2)", "evaluators/_approximate_equations.py"): (
            "((p - r) * mean)",
            "((p - r + 1) * mean)",
        ),
        ("a unit answers also while it is busy", "Theorem 5, proof", "evaluators/_approximate_equations.py"): (
            "shares[i, j] = Q[k] * busy * (1 - rho[i])",
            "shares[i, j] = Q[k] * busy",
        ),
        ("SparBL's coefficients permuted", "Algorithm 2 (SparBL)", "optimizers/deployments/sparbl.py"): (
            "        return self._coef\n",
            "        return self._coef[::-1]\n",
            "location_grid-10-5-sparbl-stored",
        ),
        ("SparBL takes the mean of the posterior", "Appendix C, equation (26)", "surrogates/horseshoe.py"): (
            "scaled @ from_prior - rng.standard_normal(n)",
            "scaled @ from_prior",
        ),
        (
            "local scales of the horseshoe from twice the squares",
            "Appendix C, equation (26)",
            "surrogates/horseshoe.py",
        ): ("coef**2 / (2 * noise)", "coef**2 / noise"),
        ("minimum cut without its linear terms", "Algorithm 1, graph", "optimizers/deployments/binary_quadratic.py"): (
            "linear = b - edges.sum(axis=1)",
            "linear = b",
        ),
        ("sign of the expected improvement", "Equation (18)", "optimizers/recommendation.py"): (
            "z = (goal - mean) / deviation",
            "z = (mean - goal) / deviation",
        ),
        ("GP-pM without a scale of its kernel", "Algorithm 4", "optimizers/deployments/gp_pm.py"): (
            'amplitude=None if "scale" in self._repairs else 1.0',
            "amplitude=1.0",
            "location_ablation-50-20-gp-pm",
        ),
        ("a trust region that never shrinks", "Theorem 14, proof", "optimizers/deployments/gp_pm.py"): (
            "            self.edge *= self._shrink[1]\n",
            "",
        ),
        ("centres chosen without the variance", "Equation (16)", "optimizers/deployments/gp_pm.py"): (
            "np.sqrt(BETA) * deviation - mean",
            "-mean",
        ),
        ("centres chosen without the optima of earlier regions", "Equation (16)", "optimizers/deployments/gp_pm.py"): (
            "rows = [*range(self.initial), *self.optima]",
            "rows = [*range(self.initial)]",
        ),
        ("kernel 13 without decay", "Section 5.2, example of kernel (13)", "surrogates/kernels.py"): (
            "np.exp(np.log(np.tanh(self.gamma)) * swaps), swaps",
            "np.exp(0 * swaps), swaps",
        ),
        ("posterior without what the data explain", "Equations (14) and (15)", "surrogates/gaussian_process.py"): (
            'variance = self.kernel.diag(X) - np.einsum("ij,ij->j", explained, explained)',
            "variance = self.kernel.diag(X)",
        ),
    },
    V1: {
        ("GP-pM without the p-median as prior mean", "Section 5.1, mean", "optimizers/deployments/gp_pm.py"): (
            "return self._p_median_values(counts)",
            "return 0 * self._p_median_values(counts)",
        ),
    },
    NAVIGATION: {
        ("Thompson sampling that takes the mean", "Section 4.1, Thompson sampling", "bandits/policies.py"): (
            "values = mean + np.sqrt(variance) * self.rng.standard_normal(len(mean))",
            "values = mean + 0 * self.rng.standard_normal(len(mean))",
            "navigation_agents-monaco-A-gp-ts-stored",
        ),
        ("confidence bounds without beta", "Algorithm 2", "bandits/policies.py"): (
            "np.sqrt(self.rule.beta(t, self.regression.n_arms) * variance)",
            "np.sqrt(variance)",
        ),
        ("Bayes-UCB's quantile without omega in its constant", "Section 2.2, Bayes-UCB", "bandits/policies.py"): (
            "log_eta = 0.5 * omega * np.log(2 * np.pi)",
            "log_eta = 0.5 * np.log(2 * np.pi)",
        ),
        ("regret measured from the shortest path by length", "Section 2.1, regret", "bandits/navigation.py"): (
            "self.oracle(self.costs[arms], is_open)",
            "self.oracle(self.net.lengths, is_open)",
            "navigation_agents-monaco-A-bi-ts-stored",
        ),
        ("costs not rectified", "Algorithm 2", "bandits/policies.py"): (
            "return rectified_mean(values - self._shift[arms], deviation) if self.rectify else values",
            "return np.maximum(values - self._shift[arms], 0) if self.rectify else values",
        ),
        ("posterior of edges without its variance", "Equations (2) and (3)", "bandits/exact.py"): (
            'variance = self._base_variance - np.einsum("ij,ij->j", explained, explained)',
            "variance = self._base_variance",
        ),
        ("arms drawn one by one where joint samples are asked for", "Section 2.2, GP-TS", "bandits/policies.py"): (
            "values = self.regression.sample(arms, self.rng)",
            "values = np.array([self.regression.sample(arms[[k]], self.rng)[0] for k in range(len(arms))])",
        ),
        ("joint samples conditioned without noise", "Section 2.2, GP-TS", "bandits/exact.py"): (
            "surprise = sums / counts - samples[self._arms] - noise",
            "surprise = sums / counts - samples[self._arms]",
            "tests/bandits/test_bandit_regressions.py::test_joint_samples_have_the_posterior_moments",
        ),
        (
            "weights of the graph by the edge after the turn",
            "Equations (132) and (133)",
            "surrogates/graph_matern.py",
        ): ("lengths.mean() / lengths[turns[:, 0]]", "lengths.mean() / lengths[turns[:, 1]]"),
        ("lengthscale of the prior ignored", "Figure 5, GP-TS", "bandits/prior.py"): (
            "scale_of_k_f = np.asarray(lengthscale)",
            "scale_of_k_f = np.asarray(1.0)",
            "navigation_lengthscale-monaco-A-0.5-gp-ts",
        ),
        ("sparse process that counts an edge once a batch", "Algorithm 3", "bandits/sparse.py"): (
            "weight * (across * counts) @ across.T",
            "weight * across @ across.T",
            "navigation_sparse-monaco-A-svgp-ts",
        ),
    },
    BOCVS: {
        ("sets chosen without their costs", "Algorithm 1, lines 25 and 26", "optimizers/control/learners.py"): (
            "for i in self.feasible if costs[i] == lowest",
            "for i in self.feasible",
        ),
        ("costs filed under other sets", "Algorithm 1, lines 22 to 24", "optimizers/control/learners.py"): (
            "self.paid[i] += play.cost",
            "self.paid[-1 - i] += play.cost",
            "bocvs-hartmann-moderate-0.02-unknown-cost-stored",
            "bocvs_horizon-20-60 %",
        ),
        ("exploration skipped", "Experiments, settings of the method", "optimizers/control/learners.py"): (
            "self.spent + 1 > self.exploration * self.budget",
            "len(self.plays) >= len(self.counts)",
            "bocvs_horizon-20-60 %",
        ),
        ("alpha that stays", "Experiments, settings of the method", "optimizers/control/learners.py"): (
            "self.first_alpha * 0.5**times",
            "self.first_alpha",
        ),
        (
            "bounds kept when hyperparameters are estimated again",
            "Algorithm 1, lines 10, 11, 14 and 15",
            "optimizers/control/learners.py",
        ): (
            "        if self._bounded_by != self.model.fits:\n            self._restart_bounds()\n",
            "",
            "tests/optimizers/test_bocvs.py::test_bounds_start_anew_where_hyperparameters_are_estimated_again",
        ),
        ("expected bounds without the deviation", "Appendix C, β", "optimizers/control/model.py"): (
            "self.prior + pull.sum(axis=1) + self.weight * deviation.mean(axis=1)",
            "self.prior + pull.sum(axis=1) + 0 * self.weight * deviation.mean(axis=1)",
        ),
        (
            "feasible sets by the tolerance the wrong way round",
            "Algorithm 1, line 16",
            "optimizers/control/learners.py",
        ): ("(1 - self.alpha) * (self.lower - worst)", "(1 + self.alpha) * (self.lower - worst)"),
        (
            "cost regret that cheaper plays pay back",
            "Problem Definition, cost regret",
            "optimizers/control/search.py",
        ): ("np.cumsum(np.maximum(above, 0))", "np.cumsum(above)"),
        ("groups of ETC-50 in the other order", "Experiments, ETC-50", "optimizers/control/learners.py"): (
            "for size in np.unique(sizes)]",
            "for size in np.unique(sizes)[::-1]]",
        ),
    },
    BOKE: {
        ("BOKE without the density", "Section 3.3 (3.12)-(3.13)", "optimizers/boxes/boke.py"): (
            "0.5 * (np.log(beta) - np.maximum(log_density, MIN_LOG_DENSITY))",
            "0.5 * (np.log(beta) - 0 * log_density)",
        ),
        ("a bandwidth that never shrinks", "Section 5 (5.1)", "surrogates/kernel_regression.py"): (
            "return scale * t ** (-1 / (d + 4))",
            "return scale * 60 ** (-1 / (d + 4))",
        ),
        ("sign of the gains", "Algorithm 2 (BOKE)", "optimizers/boxes/boke.py"): (
            "X, y = self.points, standardize_values(self.gains)",
            "X, y = self.points, -standardize_values(self.gains)",
            "boke_noise_free_ends-six_hump_camel-boke",
        ),
        ("BOKE+ that explores with probability 1 - p", "Algorithm 3 (BOKE+)", "optimizers/boxes/boke.py"): (
            "if self.rng.random() >= self.exploring:",
            "if self.rng.random() < self.exploring:",
            "boke_noise_free_ends-six_hump_camel-boke+",
        ),
        ("exploration that does not grow with t", "Theorem 4.13 (beta_t)", "optimizers/boxes/boke.py"): (
            "np.log(2 * np.pi**2 * t**2 / (3 * delta))",
            "np.log(2 * np.pi**2 / (3 * delta))",
        ),
        ("KR-UCB's bonus without the root of the logarithm", "Section A.2 (A.4)-(A.5)", "optimizers/boxes/boke.py"): (
            "np.sqrt(max(total, 0.0))",
            "max(total, 0.0)",
            "boke_noise_free_ends-six_hump_camel-kr-ucb",
        ),
        ("GP-UCB without its confidence", "Section 5 (GP-UCB)", "optimizers/boxes/gp_ucb.py"): (
            "return mean + confidence * deviation, mean_slope",
            "return mean, mean_slope",
        ),
    },
}
BREAKS = [
    Break(paper, *what, code, broken, tuple(again))
    for paper, breaks in BROKEN.items()
    for what, (code, broken, *again) in breaks.items()
]


def evidence(one):
    """Return the tests of a break: the evidence of its row, unless that is a notebook, and the runs to play again."""
    claims = pd.read_csv(ROOT / "emsopt/data/papers/claims.csv", dtype=str, keep_default_na=False)
    (row,) = claims[(claims["paper"] == one.paper) & (claims["place"] == one.place)].itertuples()
    own = [] if row.evidence == AGAIN or ".ipynb" in row.evidence else [row.evidence]
    return own + [run if "::" in run else f"{AGAIN}[{run}]" for run in one.again]


def install(one):
    """Let this process import the broken code. Compiled functions of the file are not taken from numba's cache."""
    path = ROOT / "emsopt" / one.file
    text = path.read_text("utf-8")
    if text.count(one.code) != 1:
        raise ValueError(f"{one.name}: the code to break is {text.count(one.code)} times in {one.file}: {one.code!r}")
    broken = compile(text.replace(one.code, one.broken).replace("cache=True", "cache=False"), path, "exec")
    code_of = importlib.machinery.SourceFileLoader.get_code
    loaders = importlib.machinery.SourceFileLoader
    loaders.get_code = lambda self, name: broken if self.path == str(path) else code_of(self, name)


class First:
    """A plugin of pytest that keeps the name of the first test that fails."""

    name = ""

    def pytest_runtest_logreport(self, report):
        """Note a failure."""
        self.name = self.name or report.nodeid * report.failed


def tried(breaks):
    """Run the tests of some breaks, with the code broken if it is one; return the first that fails, "" if none does."""
    if len(breaks) == 1:
        install(*breaks)
    tests, first = dict.fromkeys(test for one in breaks for test in evidence(one)), First()
    if not tests:
        raise ValueError(f"{breaks[0].name}: there is no test to run, as the row's evidence is a notebook")
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=[first])
    if code not in (0, 1):
        raise ValueError(f"pytest could not run {', '.join(tests)}: exit code {code}")
    return first.name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these breaks only, words joined by hyphens")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    breaks = {one.name.replace(" ", "-"): one for one in BREAKS}
    if unknown := set(options.names) - set(breaks):
        parser.error(f"no such break: {', '.join(sorted(unknown))}. There are: {', '.join(breaks)}.")
    chosen, unnoticed = [breaks[name] for name in options.names] or BREAKS, 0
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(ROOT))
    for name in ("numba", "scipy.optimize", "scipy.stats", "sklearn.gaussian_process"):
        importlib.import_module(name)  # once, and not in every process
    print("| paper | what is broken | row of the register | noticed by |\n|---|---|---|---|", flush=True)
    with multiprocessing.get_context("fork").Pool(options.workers, maxtasksperchild=1) as pool:
        found = pool.imap(tried, [*([one] for one in chosen), chosen], chunksize=1)
        for one in chosen:
            test = next(found)
            unnoticed += not test
            noticed = f"`{test}`" if test else "**nothing**"
            print(f"| {one.paper} | {one.name} | {one.place} | {noticed} |", flush=True)
        print(f"\n{len(chosen) - unnoticed} of {len(chosen)} breaks were noticed.")
        if unsound := next(found) if len(chosen) > 1 else "":
            print(f"Without a break, `{unsound}` fails.")
    return int(bool(unnoticed or unsound))


if __name__ == "__main__":
    sys.exit(main())
