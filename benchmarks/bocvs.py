"""Measure a round of a control-problem learner by the number of plays, with 12 variables and seven sets.

    python benchmarks/bocvs.py [--most 1000] [--repeats 5]

CPU time on one core: the median of some rounds of ``ask`` and ``tell``, with known hyperparameters (as between two
estimates) and every set bounded in each round. ``fit`` is one estimate of the hyperparameters from the previous one;
between n and 2 n plays there are five of them.
"""

import argparse
import time

import numpy as np
from _known_model import Hyperparameters, KnownModel

import emsopt as eo
from emsopt.optimizers import LEARNERS
from emsopt.surrogates.gaussian_process import fit
from emsopt.surrogates.kernels import SquaredExponential

LENGTHSCALES = np.array([0.4] * 6 + [8.0] * 6)
METHODS = ("ucb-psq", "ts-psq", "ucb-cvs", "unknown-cost")


def told(problem, method, n):
    """Return a learner after n random plays, in its second phase, with no set excluded."""
    known = Hyperparameters(LENGTHSCALES, amplitude=0.3, noise_variance=1e-4, mean=0.3)
    options = {"exploration": 0.0, "halving": False, "alpha": 0.9} if method == "unknown-cost" else {}
    learner = LEARNERS[method](problem, rng=0, budget=1e6, **options)
    learner.model = KnownModel(problem, learner.rng, known)
    rng = np.random.default_rng(1)
    points = problem.nodes(1 << (n - 1).bit_length())[:n]
    values = problem.objective(points) + 0.01 * rng.standard_normal(n)
    learner.model.points, learner.model.values = list(points[:-1]), list(values[:-1])
    learner.model.tell(points[-1], values[-1])
    learner.plays = [(0, points[0, :3])] * n
    learner.counts[:], learner.paid[:] = n, n * problem.costs
    return learner


def seconds_per_round(problem, method, n, repeats):
    learner, rng, times = told(problem, method, n), np.random.default_rng(2), []
    learner.ask()  # the first round has no end of the last one to start from
    for _ in range(repeats):
        start = time.process_time()
        i, x = learner.ask()
        play = problem.play(i, x, rng=rng)
        learner.tell(i, x, play)
        times.append(time.process_time() - start)
    bounded = len(learner._possibly_feasible) if method == "unknown-cost" else None
    return float(np.median(times)), bounded


def seconds_per_fit(problem, n):
    points = problem.nodes(1 << (n - 1).bit_length())[:n]
    values = problem.objective(points)
    kernel = SquaredExponential(LENGTHSCALES, (0.1, 20.0))
    start = time.process_time()
    fit(kernel, points, values, values.mean(), noise_ratio=1e-3, noise_ratio_bounds=(1e-6, 0.25), spread=1.0, steps=25)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    problem = eo.problems.hartmann_control("cheap", 0.04)
    print(f"{'plays':>6}" + "".join(f"{method:>14}" for method in METHODS) + f"{'fit':>10}   CPU seconds")
    for n in [n for n in (50, 100, 200, 400, 700, 1000) if n <= options.most]:
        rounds = [seconds_per_round(problem, method, n, options.repeats) for method in METHODS]
        row = "".join(f"{seconds:14.3f}" for seconds, _ in rounds)
        print(f"{n:6d}{row}{seconds_per_fit(problem, n):10.2f}   ({rounds[-1][1]} sets bounded)", flush=True)


if __name__ == "__main__":
    main()
