"""Compare emsopt's optimizers with Optuna's TPE and a Gaussian process of BoTorch.

    pip install optuna botorch                  # either may be missing
    python benchmarks/peers.py                  # 335 s of CPU
    python benchmarks/peers.py --peers optuna --methods gp-pm random --seeds 10

Embedded St. Paul (9 units, optimum by enumeration, 100 evaluations) and ``grid_city(50, 20, 0.5, rng=seed)`` (80
evaluations; best known value by local search from the p-median, the 1-median and 4 random deployments, or by a run if
that is lower). Each method starts with 20 random deployments and never evaluates one twice. The gap is that of the best
value to the best known one, in percent. Seconds are the CPU time of ask and tell per evaluation, median after the first
20, one thread. Results are in ``benchmarks/RESULTS.md``.

The peers see only deployments and values, and no city, as SparBL and BOCS do; GP-pM and SparBL+ know the p-median
objective.

- **optuna**: TPE (multivariate) over one key in [0, 1] per site; the p sites with the largest keys are used. On two
  development cities (rng 900 and 901, two seeds each) it ended 3.5 % above the best known value after 100 evaluations,
  and 5.2 % with one categorical choice of a site per unit. A deployment that is already known is told again with its
  known value, and the next one is requested; after ten in a row, a random one is taken.
- **botorch**: ``SingleTaskGP`` with its defaults, over the number of units per place. Hyperparameters are trained at
  every fifth evaluation from the previous ones (training takes seconds, which the median leaves out). The logarithm of
  expected improvement is climbed by best swaps from the two best known deployments and a random one, so that every
  candidate is allowed.
"""

import argparse
import statistics
import sys
import time
import warnings
from importlib import metadata, util

import numpy as np

import emsopt as eo
from emsopt.optimizers.deployments._base import Optimizer
from emsopt.optimizers.recommendation import log_expected_improvement

INITIAL = 20
TRAIN_EVERY = 5
REPEATS = 10  # of known deployments that TPE may propose before a random one is taken
OURS = ("gp-pm", "sparbl", "sparbl+", "bocs", "genetic", "random")


class TPE(Optimizer):
    """Optuna's tree-structured Parzen estimator over one key a site; the p largest keys are taken."""

    def __init__(self, objective, *, rng=None):
        import optuna

        super().__init__(objective, rng=rng)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(
            n_startup_trials=INITIAL, multivariate=True, seed=int(self.rng.integers(2**31))
        )
        self.study, self.trial = optuna.create_study(sampler=sampler), None

    def _propose(self):
        for _ in range(REPEATS):
            self.trial = self.study.ask()
            keys = [self.trial.suggest_float(f"site{i}", 0.0, 1.0) for i in range(self.space.city.n_sites)]
            sites = self.space.canonical(np.argsort(keys)[-self.space.units :])
            if not self.is_taken(sites):
                return sites
            self.study.tell(self.trial, self.taken[tuple(sites.tolist())])
        self.trial = None
        return self.draw()

    def _learn(self, sites, value):
        if self.trial is not None:
            self.study.tell(self.trial, value)


class GaussianProcess(Optimizer):
    """BoTorch's model with its defaults; log expected improvement climbed by swaps."""

    trained = None  # hyperparameters last found

    def _propose(self):
        if len(self.values) < INITIAL:
            return self.draw()
        model, space = self._model(), self.space
        told, known = self._counts(self.sites), {tuple(row) for row in self._counts(self.taken)}

        def climb(at):
            """Return the highest log expected improvement reached by best swaps from these counts, and where."""
            reached = -np.inf
            while True:
                i, j = np.nonzero((at > space.floors)[:, None] & (at < space.capacities))
                near = np.repeat(at[None], len(i), axis=0)
                near[np.arange(len(i)), i] -= 1
                near[np.arange(len(i)), j] += 1
                near = np.array([row for row in near if tuple(row) not in known])
                if len(near) == 0:
                    return reached, at
                scores = self._score(model, near)
                k = int(scores.argmax())
                if scores[k] <= reached:
                    return reached, at
                reached, at = scores[k], near[k]

        starts = [*told[np.argsort(self.values)[:2]], *self._counts([space.sample(rng=self.rng)])]
        best = max((climb(at) for at in starts), key=lambda found: found[0])[1].astype(int)
        return space.deployment(best)

    def _score(self, model, counts):
        import torch

        posterior = model.posterior(torch.tensor(counts))
        mean, variance = (t.detach().numpy()[:, 0] for t in (posterior.mean, posterior.variance))
        return log_expected_improvement(min(self.values), -mean, np.sqrt(variance))

    def _model(self):
        """Return the model of -value, its hyperparameters trained anew each fifth time."""
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.set_num_threads(1)
        X, y = torch.tensor(self._counts(self.sites)), torch.tensor(self.values, dtype=torch.double)[:, None]
        model = SingleTaskGP(X, -y)
        if self.trained is not None:
            model.load_state_dict(self.trained, strict=False)
        if self.trained is None or len(self.values) % TRAIN_EVERY == 0:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            self.trained = dict(model.named_parameters())
        return model.eval()

    def _counts(self, rows):
        """Units a place, (K, G), as floats."""
        return np.array([self.space.group_counts(np.array(row)) for row in rows], dtype=float)


PEERS = {"optuna": TPE, "botorch": GaussianProcess}


def search(method, objective, seed, budget, optimum):
    """Best value, evaluations to the optimum (None: not reached, or not known), seconds of asking and telling."""
    optimizer, seconds = method(objective, rng=seed), []
    for number in range(1, budget + 1):
        start = time.process_time()
        sites = optimizer.ask()
        asked = time.process_time() - start
        value = objective(sites)
        start = time.process_time()
        optimizer.tell(sites, value)
        seconds.append(asked + time.process_time() - start)
        if value <= optimum + 1e-9:
            return value, number, seconds[INITIAL:]
    return optimizer.best[1], None, seconds[INITIAL:]


def table(title, cases, methods, budget, known):
    """Run every method on every (seed, objective, best known) and print a row each."""
    results, least = {}, [best for _, _, best in cases]
    for name, method in methods.items():
        results[name] = [search(method, o, seed, budget, best if known else -np.inf) for seed, o, best in cases]
        least = [min(a, r[0]) for a, r in zip(least, results[name], strict=True)]
        print(f"  {name} done", file=sys.stderr, flush=True)
    results["p-median"] = [(o(eo.evaluators.p_median(o.city, o.space.units).sites), None, []) for _, o, _ in cases]
    print(f"{title}\n  {'method':9} {'gap, %: median':>14} {'each':>20} {'optimum after':>18} {'CPU s':>7}")
    for name, runs in results.items():
        gaps = [(r[0] / best - 1) * 100 for r, best in zip(runs, least, strict=True)]
        found = ", ".join("-" if r[1] is None else str(r[1]) for r in runs) if known else ""
        seconds = [t for r in runs for t in r[2]]
        each = ", ".join(f"{gap:.2f}" for gap in gaps)
        clock = f"{statistics.median(seconds):.4f}" if seconds else ""
        print(f"  {name:9} {statistics.median(gaps):14.2f} {each:>20} {found:>18} {clock:>7}", flush=True)


def chosen(ours_named, peers):
    """Classes by name; peers that are not installed are left out, with a word on it."""
    methods = {name: eo.optimizers.METHODS[name] for name in ours_named}
    for name in peers:
        if util.find_spec(name) is None:
            print(f"{name} is not installed, so it is left out: pip install {name}")
        else:
            methods[name] = PEERS[name]
    return methods


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--methods", nargs="*", choices=list(eo.optimizers.METHODS), default=list(OURS))
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds 0 to N - 1")
    options = parser.parse_args()
    methods, seeds = chosen(options.methods, options.peers), range(options.seeds)
    versions = {name: metadata.version(name) for name in (*options.peers, "torch") if util.find_spec(name)}
    if versions:
        print(", ".join(f"{name} {version}" for name, version in versions.items()))
    started = time.process_time()
    warnings.simplefilter("ignore")  # the peers' own

    city = eo.datasets.load_st_paul()
    optimum = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").values.min()
    cases = [(seed, eo.Objective(city, 9, "approximate"), optimum) for seed in seeds]
    table("St. Paul, 9 units", cases, methods, 100, known=True)

    cases = []
    for seed in seeds:
        objective = eo.Objective(eo.datasets.grid_city(50, 20, 0.5, rng=seed), 20, "approximate")
        cases.append((seed, objective, eo.optimizers.local_search(objective, restarts=4, rng=seed).fun))
    table("grid_city(50, 20)", cases, methods, 80, known=False)
    print(f"CPU in all: {time.process_time() - started:.0f} s")


if __name__ == "__main__":
    main()
