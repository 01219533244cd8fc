"""The navigation experiments of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4.2, replicated.

    python benchmarks/navigation_study.py --part agents --backend processes

=============== ===================================================================================================
agents          Figure 2: UCB, Bayes-UCB and Thompson sampling on the Gaussian process and on independent edges; and
                Thompson sampling of all edges jointly, which the paper does not have
sparse          Figure 2 again, with inducing points as in the paper (Algorithm 3) in place of the exact process
parametrisation Figure 3: Bayes-UCB with ω = 1 and ξ = 1 or 0.5, UCB with β_t as in Theorem 3.1 and half of it
lengthscale     Figures 4 and 5: Bayes-UCB and Thompson sampling at lengthscales from 0.1 to 2
exploration     Figures 6 to 9: which edges each of the six agents drove, how often and since when; first run only
=============== ===================================================================================================

Sizes are the paper's own: two routes in Monaco and two in Luxembourg, five runs, 500 rounds. What is stored is smaller
in two parts: "lengthscale" and "sparse" were run with ``--networks monaco --runs 3``. Runs of the same number
face the same drawn energies and noise, whatever the policy. But for "sparse" the Gaussian process is exact. Luxembourg
is left out where its file is not found (see `emsopt.datasets.load_roads`); Monaco's routes are of our own choice, see
`emsopt.datasets.ROUTES`. Luxembourg is flat here, where the paper added heights; Monaco's are a surrogate. Regret is
rectified (`emsopt.bandits.navigation`).

The lengthscale is that of the Matérn kernel on length, speed and incline; the graph kernel's κ stays 1.

Finished cases are kept in ``emsopt-results/``, so that a run cut off goes on where it was; remove its files there after
a change to a policy. The result goes to where `emsopt.datasets.load_study` finds it: "navigation_agents" and so on. Of
each run every tenth round is stored, of "lengthscale" every fiftieth.
"""

import argparse
from functools import lru_cache
from pathlib import Path

import numpy as np

from emsopt import bandits, datasets, study
from emsopt.errors import DataUnavailableError

STORED = Path(datasets.__file__).parent / "data" / "studies"
SIX = ["gp-ts", "gp-bucb", "gp-ucb", "bi-ts", "bi-bucb", "bi-ucb"]
VARIANTS = {
    "gp-bucb, xi 0.5": ("gp", bandits.BayesUCB(omega=1.0, xi=0.5)),
    "gp-ucb, half beta": ("gp", bandits.UCB(factor=0.5)),
}
COMPARED = {
    "agents": [*SIX, "gp-ts-joint"],
    "sparse": ["svgp-ts", "svgp-bucb", "svgp-ucb"],
    "parametrisation": ["gp-bucb", *VARIANTS, "gp-ucb"],
    "lengthscale": ["gp-ts", "gp-bucb", "bi-ts", "bi-bucb"],
    "exploration": SIX,
}
LENGTHSCALES = [0.1, 0.25, 0.5, 1.0, 1.5, 2.0]
RUNS, HORIZON, EVERY = 5, 500, 10


@lru_cache(maxsize=1)
def roads(network):
    return datasets.load_roads(network)


@lru_cache(maxsize=1)
def prior(network, lengthscale):
    return bandits.navigation_prior(roads(network), lengthscale=lengthscale)


def drive(network, route, lengthscale, run, policy, horizon):
    net = roads(network)
    seed = study.seed_of({"network": network, "route": route, "run": run})
    return bandits.run(
        net,
        *datasets.ROUTES[net.name][route],
        VARIANTS.get(policy, policy),
        horizon=horizon,
        rng=seed,
        prior=prior(network, lengthscale),
    )


def regret(network, route, lengthscale, run, policy, horizon):
    """Task: one run; a row for every tenth round."""
    result = drive(network, route, lengthscale, run, policy, horizon)
    seen = seen_so_far(result.arms)
    history = result.history.assign(edges_seen=seen)[EVERY - 1 :: EVERY]
    return history[["round", "cumulative_regret", "edges_seen"]]


def seen_so_far(rounds):
    """Return how many distinct arms were observed up to each round."""
    seen, counts = set(), []
    for arms in rounds:
        seen.update(arms.tolist())
        counts.append(len(seen))
    return counts


def exploration(network, route, lengthscale, run, policy, horizon):
    """Task: one run; a row for every edge driven."""
    return drive(network, route, lengthscale, run, policy, horizon).visits


def networks(wanted):
    """Return those of the networks whose files are here."""
    found = []
    for network in wanted:
        try:
            roads(network)
        except DataUnavailableError as error:
            print(f"{network} is left out: {error}")
        else:
            found.append(network)
    return found


def cases(part, options):
    """Return the cases of a part, in an order in which each prior is made once."""
    lengthscales = LENGTHSCALES if part == "lengthscale" else [1.0]
    small = options.smoke
    return study.cases(
        network=networks(options.networks[: 1 if small else None]),
        lengthscale=lengthscales[: 2 if small else None],
        route=["A", "B"][: 1 if small else None],
        run=range(1 if small or part == "exploration" else options.runs),
        policy=options.policies or COMPARED[part],
        horizon=2 * EVERY if small else options.horizon,
    )


def for_store(table, part):
    """Return the table without columns that say nothing, and of the largest part fewer rounds."""
    if part == "exploration":
        return table.drop(columns=["horizon", "lengthscale", "run"])
    table = table[table["round"] % (5 * EVERY) == 0] if part == "lengthscale" else table.drop(columns="lengthscale")
    return table.drop(columns="horizon").round({"cumulative_regret": 1})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=list(COMPARED), required=True)
    parser.add_argument("--policies", nargs="+", help="these only, instead of all of the part")
    parser.add_argument("--networks", nargs="+", default=["monaco", "luxembourg"])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--horizon", type=int, default=HORIZON)
    parser.add_argument("--backend", choices=["serial", "processes"], default="serial")
    parser.add_argument("--workers", type=int, help="processes; each needs a gigabyte for Luxembourg")
    parser.add_argument("--folder", type=Path, default=Path("emsopt-results"), help="of the finished cases")
    parser.add_argument("--smoke", action="store_true", help="a tiny study, kept in the folder and not stored")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    name = f"{'smoke_' if options.smoke else ''}navigation_{options.part}"
    table = study.run(
        exploration if options.part == "exploration" else regret,
        cases(options.part, options),
        file=options.folder / f"{name}.jsonl",
        backend=options.backend,
        workers=options.workers,
        progress=True,
    )
    kept = for_store(table, options.part)
    file = (options.folder if options.smoke else STORED) / f"{name}.csv{'.gz' * (options.part == 'exploration')}"
    file.parent.mkdir(parents=True, exist_ok=True)
    kept.to_csv(file, index=False, compression={"method": "gzip", "mtime": 0} if file.suffix == ".gz" else None)
    print(f"{len(kept)} rows in {file}")
    if options.part != "exploration":
        keys = ["network", "lengthscale", "route", "policy"]
        ends = table.groupby([*keys, "run"], sort=False)["cumulative_regret"].last()
        summary = ends.groupby(keys, sort=False).agg(
            mean="mean", standard_error=lambda values: values.std(ddof=1) / np.sqrt(len(values))
        )
        print(f"regret in Wh after the last round:\n{summary.round(0)}")


if __name__ == "__main__":
    import navigation_study  # by its name, as worker processes import it

    navigation_study.main()
