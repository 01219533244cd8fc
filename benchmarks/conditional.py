"""Compare boke-auto as a sampler of Optuna with Optuna's own samplers where some trials lack parameters of others.

    pip install optuna
    python benchmarks/conditional.py                    # ten minutes of CPU; prints the table of RESULTS.md
    python benchmarks/conditional.py --functions svm --samplers boke-auto random --seeds 3

Every function has the optimum 0. How the sampler treats conditional parameters, and its share of random trials, were
chosen on "branches", "layers", "optional" and "shared"; "svm" and "ladder" took no part in that. In "branches" and
"svm" the branch that holds the optimum is the worse one on average.
"""

import argparse
import time

import numpy as np
import optuna

import emsopt as eo


def branches(trial):
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    if kind == "a":
        return 0.2 + (trial.suggest_float("x", 0, 1) - 0.7) ** 2
    if kind == "b":
        return 0.1 + (trial.suggest_float("y", -1, 1) - 0.2) ** 2 + (trial.suggest_float("z", -1, 1) + 0.5) ** 2
    return 1.1 * abs(trial.suggest_float("w", 0, 1) - 0.62) ** 0.5


def layers(trial):
    n = trial.suggest_int("n", 1, 4)
    return (n - 3) ** 2 / 10 + sum((trial.suggest_float(f"u{k}", 0, 1) - 0.2 * k - 0.1) ** 2 for k in range(n))


def optional(trial):
    loss = (np.log10(trial.suggest_float("rate", 1e-5, 1, log=True)) + 3) ** 2 / 4
    if trial.suggest_categorical("augment", [True, False]):
        return loss + 2 * (trial.suggest_float("strength", 0, 1) - 0.3) ** 2
    return loss + 0.3


def shared(trial):
    rate = np.log10(trial.suggest_float("rate", 1e-4, 1, log=True))
    if trial.suggest_categorical("kind", ["linear", "tree"]) == "linear":
        penalty = np.log10(trial.suggest_float("penalty", 1e-4, 1, log=True))
        return 0.15 + (rate + 2) ** 2 / 4 + (penalty + 1) ** 2 / 4
    depth, leaves = trial.suggest_int("depth", 1, 12), trial.suggest_int("leaves", 1, 20)
    return (rate + 1) ** 2 / 3 + (depth - 7) ** 2 / 36 + (leaves - 4) ** 2 / 100


def svm(trial):
    if trial.suggest_categorical("kind", ["svm", "forest"]) == "svm":
        return 0.3 + 0.02 * abs(np.log10(trial.suggest_float("c", 1e-3, 1e3, log=True)))
    return 1.2 * abs(trial.suggest_float("depth", 0, 1) - 0.3) ** 0.5


def ladder(trial):
    steps = trial.suggest_int("steps", 1, 3)
    widths = [trial.suggest_float(f"width {k}", 1, 256, log=True) for k in range(steps)]
    return abs(steps - 2) * 0.2 + sum((np.log2(width) - 5 + k) ** 2 / 40 for k, width in enumerate(widths))


FUNCTIONS = {f.__name__: f for f in (branches, layers, optional, shared, svm, ladder)}
SAMPLERS = {
    "boke-auto": lambda seed: eo.optimizers.BOKEAutoSampler(seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe, groups": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=[*FUNCTIONS])
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=[*SAMPLERS])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=40)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print("| function | sampler | median best | worst | CPU seconds per run |\n|---|---|---|---|---|")
    for function in args.functions:
        for sampler in args.samplers:
            ends, start = [], time.process_time()
            for seed in range(args.seeds):
                study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
                study.optimize(FUNCTIONS[function], n_trials=args.trials)
                ends.append(study.best_value)
            seconds = (time.process_time() - start) / args.seeds
            print(f"| {function} | {sampler} | {np.median(ends):.2g} | {max(ends):.2g} | {seconds:.2g} |", flush=True)


if __name__ == "__main__":
    main()
