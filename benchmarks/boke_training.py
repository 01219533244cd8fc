"""Choose the constants of BOKE and its rivals by trials on functions that no study of this package reports.

    python benchmarks/boke_training.py boke            # also boke+, boke-auto, kr-ucb, gp-ucb-fixed, gp-ucb
    python benchmarks/boke_training.py boke --seeds 3 --wide

The training functions (`FAMILY`) are draws from Gaussian processes; Branin, Styblinski-Tang, Michalewicz, Griewank,
Zakharov, a cubic-quartic Dixon-Price valley and a stretched bowl, each rotated and shifted at random; and sums of
random Gaussian bumps, of which one is the highest but seldom the widest. They have 1 to 6 inputs, and some are noisy.
In those called "ard" (automatic relevance determination) the inputs matter unequally, by factors of up to 16 (bumps:
32). ``WIDE``, which ``--wide`` adds, has such functions of up to ten inputs, and some called "edge", whose optimum
mostly lies on the border of the box: half of the inputs (rounded up) have their optimum outside of it, or gain ever
less towards one side. None is a reported function: Forrester, Goldstein-Price, camel, Hartmann, Rosenbrock, Sphere,
Ackley, Levy, the sprinkler and the tuning tasks. Seeds start at 1000, which no study uses.

A run has 60 evaluations. Its regret is that of the best point evaluated, without noise, divided by the median regret of
60 random points. The table shows, over all training functions, the geometric mean (regrets below a thousandth count as
a thousandth), the mean of the worst function, and the share of runs that were worse than random points. From the regret
relative to the function's range on its box it shows the share of runs above a tenth ("wrong": they climbed the wrong
peak) and the mean of the worst tenth ("tail"). Finished runs are kept in ``emsopt-results/``. The chosen constants are
at the top of ``boke.py``, ``boke_auto.py`` and ``gp_ucb.py`` in ``emsopt/optimizers/boxes/``. The trials
and their results are in ``benchmarks/RESULTS.md``.
"""

import argparse
import math
from functools import cache
from pathlib import Path

import numpy as np

import emsopt as eo
from emsopt.optimizers import BOX_METHODS
from emsopt.optimizers.boxes._search import maximize_on_box

BUDGET, FIRST_SEED, LEAST = 60, 1000, 1e-3
FEATURES = 300  # of a draw from a Gaussian process
FAMILY = [
    # name, inputs, noise (in standard deviations of the function on its box)
    ("gp 0.08", 1, 0.0),
    ("gp 0.2", 2, 0.0),
    ("gp 0.3", 2, 0.1),
    ("gp 0.35", 3, 0.0),
    ("gp 0.5", 4, 0.0),
    ("gp 0.6", 5, 0.1),
    ("gp 0.8", 6, 0.0),
    ("branin", 2, 0.0),
    ("styblinski-tang", 2, 0.1),
    ("styblinski-tang", 4, 0.0),
    ("michalewicz", 2, 0.0),
    ("michalewicz", 5, 0.1),
    ("griewank", 3, 0.0),
    ("griewank", 6, 0.1),
    ("zakharov", 3, 0.0),
    ("dixon-price", 4, 0.0),
    ("bowl", 5, 0.0),
    ("bowl", 6, 0.1),
    ("bumps 5", 3, 0.0),
    ("bumps 8", 3, 0.0),
    ("bumps 6", 4, 0.0),
    ("bumps 6", 4, 0.1),
    ("bumps 8", 5, 0.0),
    ("bumps 8", 6, 0.0),
    ("ard gp 0.35", 3, 0.0),
    ("ard gp 0.5", 4, 0.0),
    ("ard bumps 5", 3, 0.0),
    ("ard bumps 8", 3, 0.0),
    ("ard bumps 6", 4, 0.0),
]
WIDE = [
    ("gp 1.0", 8, 0.0),
    ("gp 1.2", 10, 0.1),
    ("ard gp 1.0", 8, 0.0),
    ("styblinski-tang", 8, 0.0),
    ("michalewicz", 8, 0.0),
    ("griewank", 10, 0.1),
    ("dixon-price", 10, 0.0),
    ("zakharov", 8, 0.1),
    ("bowl", 8, 0.0),
    ("bowl", 10, 0.1),
    ("bumps 6", 8, 0.0),
    ("ard bumps 6", 10, 0.0),
    ("edge gp 0.3", 2, 0.0),
    ("edge gp 0.5", 4, 0.1),
    ("edge gp 0.8", 6, 0.0),
    ("edge ard gp 1.0", 8, 0.0),
    ("edge gp 0.5", 3, 0.0),
    ("edge gp 0.6", 5, 0.0),
    ("edge bowl", 3, 0.1),
    ("edge bowl", 5, 0.0),
    ("edge bowl", 10, 0.0),
    ("edge dixon-price", 4, 0.0),
    ("edge zakharov", 7, 0.0),
    ("edge gp 1.2", 10, 0.0),
]
TRIALS = {
    "boke": [{"noise_sd": noise} for noise in (5e-5, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 2e-2)]
    + [{"scale": scale, "noise_sd": noise} for scale in (0.035, 0.07) for noise in (1e-3, 5e-3, 2e-2)],
    "boke+": [{"exploring": p} for p in (0.3, 0.5, 0.7, 0.9)],
    "boke-auto": [{}, {"confidence": 1.0}, {"exploring": 0.7}],
    "kr-ucb": [{"confidence": c, "closeness": tau} for c in (0.05, 0.2) for tau in (0.01, 0.1, 0.5)],
    "gp-ucb-fixed": [{"bandwidth": h, "confidence": c} for h in (0.4, 0.7, 1.2) for c in (1.0, 2.0)],
    "gp-ucb": [{"confidence": c} for c in (1.0, 2.0, 3.0)],
}


def branin(x):
    a, b = 7.5 * x[:, 0] + 2.5, 7.5 * x[:, 1] + 7.5
    return (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a)


def styblinski_tang(x):
    x = 5 * x
    return 0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1)


def michalewicz(x):
    x = np.pi / 2 * (x + 1)
    return -(np.sin(x) * np.sin(np.arange(1, x.shape[1] + 1) * x**2 / np.pi) ** 20).sum(axis=1)


def griewank(x):
    x = 10 * x
    return 1 + (x**2).sum(axis=1) / 4000 - np.cos(x / np.sqrt(np.arange(1, x.shape[1] + 1))).prod(axis=1)


def zakharov(x):
    x = 5 * x
    tilt = 0.5 * (np.arange(1, x.shape[1] + 1) * x).sum(axis=1)
    return (x**2).sum(axis=1) + tilt**2 + tilt**4


def dixon_price(x):
    x = 10 * x
    k = np.arange(2, x.shape[1] + 1)
    return (x[:, 0] - 1) ** 2 + (k * (2 * x[:, 1:] ** 2 - x[:, :-1]) ** 2).sum(axis=1)


def bowl(x):
    return (10 ** np.linspace(0, 1, x.shape[1]) * x**2).sum(axis=1)


TEXTBOOK = {
    "branin": branin,
    "styblinski-tang": styblinski_tang,
    "michalewicz": michalewicz,
    "griewank": griewank,
    "zakharov": zakharov,
    "dixon-price": dixon_price,
    "bowl": bowl,
}


@cache
def problem(name, d, noise, seed):
    """Return a function of the family on [-1, 1]^d, to be minimised, with its best value by a long search."""
    rng = np.random.default_rng([seed, d, *name.encode()])
    words = name.split()
    edge, uneven = "edge" in words, "ard" in words
    kind, size = (words[-1], "0") if words[-1] in TEXTBOOK else words[-2:]
    stretch = 4 ** rng.uniform(-1, 1, d) if uneven else np.ones(d)
    stretch = stretch / np.exp(np.log(stretch).mean())
    if kind == "gp":
        waves = rng.normal(size=(FEATURES, d)) / (2 * float(size) * stretch)
        phases, weights = (
            rng.uniform(0, 2 * np.pi, FEATURES),
            rng.normal(size=FEATURES) * np.sqrt(2 / FEATURES),
        )

        def function(x):
            return np.cos(x @ waves.T + phases) @ weights

    elif kind == "bumps":
        count = int(size)
        centres = rng.uniform(-0.8, 0.8, (count, d))
        spread = rng.random((count, d))
        widths = (0.3 * 2**spread if uneven else 0.2 * 4**spread) * np.sqrt(d / 3) * stretch
        heights = np.r_[1.0, rng.uniform(0.5, 0.95, count - 1)]

        def function(x):
            return -np.exp(-0.5 * (((x[:, None] - centres) / widths) ** 2).sum(axis=2)) @ heights

    else:
        turn, shift = np.linalg.qr(rng.normal(size=(d, d)))[0], rng.uniform(-0.3, 0.3, d)
        if edge:
            turn = np.eye(d)
            shift[: (d + 1) // 2] = rng.choice([-1, 1], (d + 1) // 2) * rng.uniform(1, 1.5, (d + 1) // 2)

        def function(x):
            return TEXTBOOK[kind]((x - shift) @ turn)

    if edge and kind not in TEXTBOOK:
        inside, side = function, rng.choice([-1, 1], (d + 1) // 2)

        def function(x):
            return inside(x) + 2 * np.exp(-(1 + side * x[:, : len(side)])).sum(axis=1)

    many = function(rng.uniform(-1, 1, (4000, d)))
    x = best_point(function, d, rng)
    return eo.problems.Problem(name, function, [(-1, 1)] * d, "min", function(x[None])[0], x, noise * many.std(), seed)


def best_point(function, d, rng, tried=20_000, starts=60, step=1e-6):
    """Return the best point of a long search with slopes by differences."""
    box = np.tile([-1.0, 1.0], (d, 1))

    def climb(x):
        moves = step * np.eye(d)
        slopes = [function(x + move) - function(x - move) for move in moves]
        return -function(x), -np.column_stack(slopes) / (2 * step)

    points = rng.uniform(-1, 1, (tried, d))
    best = points[np.argsort(function(points))[:starts]]
    ends = [maximize_on_box(climb, best[k : k + 10], box, steps=200) for k in range(0, starts, 10)]
    return max(ends, key=lambda end: end[1])[0]


@cache
def yardsticks(name, d, noise, seed):
    """Return the median regret of 60 random points, and that of the worst point seen."""
    f = problem(name, d, noise, seed)
    points = np.random.default_rng(seed).uniform(-1, 1, (300, BUDGET, d))
    values = f.noise_free_value(points.reshape(-1, d)).reshape(300, BUDGET)
    return float(np.median(values.min(axis=1)) - f.best_value), float(values.max() - f.best_value)


def trial(method, options, name, inputs, noise, seed):
    """Task: the regret of one run, over that of random search and over the range of the function."""
    f = problem(name, inputs, noise, seed)
    optimizer = BOX_METHODS[method](f, rng=seed)
    vars(optimizer).update(options)
    run = eo.minimize(f, optimizer, budget=BUDGET, rng=seed)
    regret = f.noise_free_value(np.array(run.history["x"].tolist())).min() - f.best_value
    random, largest = yardsticks(name, inputs, noise, seed)
    return {"ratio": max(regret, 0.0) / random, "share": max(regret, 0.0) / largest}


def table(results):
    """Return a row for each trial: geometric mean, worst function, shares of bad ends, mean of the worst tenth."""
    results = results.assign(
        log=np.log10(results["ratio"].clip(lower=LEAST)),
        worse=results["ratio"] > 1,
        options=results["options"].map(str),
    )
    trials = results.groupby("options")
    each = results.groupby(["options", "name", "inputs"])["log"].mean().groupby("options")
    return (10 ** each.agg(["mean", "max"])).assign(
        worse=trials["worse"].mean(),
        wrong=trials["share"].agg(lambda share: (share > 0.1).mean()),
        tail=trials["share"].agg(lambda share: share.nlargest(math.ceil(len(share) / 10)).mean()),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=list(TRIALS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--wide", action="store_true", help="add functions of up to ten inputs and on the border")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--folder", type=Path, default=Path("emsopt-results"), help="of the finished runs")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = [
        {
            "method": options.method,
            "options": chosen,
            "name": name,
            "inputs": d,
            "noise": noise,
            "seed": options.first_seed + k,
        }
        for chosen in TRIALS[options.method]
        for name, d, noise in FAMILY + WIDE * options.wide
        for k in range(options.seeds)
    ]
    results = eo.study.run(trial, cases, file=options.folder / "boke_training.jsonl", progress=True)
    print(table(results).sort_values("mean").round(3).to_string())


if __name__ == "__main__":
    main()
