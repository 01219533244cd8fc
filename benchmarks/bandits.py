"""Measure a round of each policy on the road networks of Monaco and Luxembourg.

    python benchmarks/bandits.py                  # Monaco, all policies, 500 rounds
    python benchmarks/bandits.py --network luxembourg --policies gp-ts gp-ucb
    python benchmarks/bandits.py --growth         # grids of 25,000, 50,000 and 100,000 edges, no covariance stored
    python benchmarks/bandits.py --agreement      # Monaco: districts and the lazy prior against the dense process

Seconds per round, averaged over all rounds, in wall-clock and CPU time (all threads), without drawing the city and the
joint samples; the time of the prior; and the peak memory of the process. Luxembourg needs its file, see
`emsopt.datasets.load_roads`. Each target is printed next to the measurement, with whether it is met.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from _timing import growth_exponent

import emsopt as eo
from emsopt.surrogates.graph_matern import graph_matern, incidence_laplacian

ROUND_S = {"monaco": 0.15, "luxembourg": 0.35}  # exact process, mean of 500 rounds, two cores
MEMORY_GB, KERNEL_S, SIX_AGENTS_S = 2.0, 10.0, 300.0
SIX = ["gp-ts", "gp-bucb", "gp-ucb", "bi-ts", "bi-bucb", "bi-ucb"]

SIDES = [80, 112, 159]  # junctions: 25,280, 49,728 and 100,488 edges
GROWTH = {"gp-ts": {112: (1.0, 1.2), 159: (2.5, 2.5)}, "bi-ts": {112: (0.03, 1.2), 159: (0.03, 2.5)}}  # s, GB


def against(what, measured, target, unit):
    """Print a measurement next to its target."""
    verdict = "met" if measured <= target else "MISSED"
    print(f"{what}: {measured:.3g} {unit}, target {target:g} {unit}: {verdict}")


def measure(net, route, policy, horizon, prior):
    """Return the run, and wall-clock and CPU seconds per round; the first round includes the set-up."""
    marks = []

    def mark(step):
        marks.append((time.perf_counter(), time.process_time()))

    run = eo.bandits.run(net, *route, policy, horizon=horizon, rng=0, prior=prior, callback=mark)
    wall, cpu = ((last - first) / (horizon - 1) for first, last in zip(marks[0], marks[-1], strict=True))
    return run, wall, cpu


def on_grid(side, policy, horizon):
    """Return what a policy takes from one corner of a grid to the opposite one, CPU seconds and GB."""
    net, marks = eo.roads.grid_roads(side, side, jitter=0.2, relief=60, rng=0), [time.process_time()]
    prior = eo.bandits.navigation_prior(net)
    prior.variance.sum()
    prior.rows([0])  # with the factorisation
    marks.append(time.process_time())
    prior.rows(np.arange(0, net.n_edges, net.n_edges // 20)[:20])
    marks.append(time.process_time())
    truth = prior.draw(rng=5)[:, 0]
    marks.append(time.process_time())
    rounds, route = [], ("r0c0-r0c1", f"r{side - 1}c{side - 2}-r{side - 1}c{side - 1}")
    options = {"horizon": horizon, "rng": 0, "prior": prior, "expected": truth}
    run = eo.bandits.run(net, *route, policy, callback=lambda _: rounds.append(time.process_time()), **options)
    taken = np.diff([marks[-1], *rounds])
    return {
        "policy": policy,
        "edges": net.n_edges,
        "prior": marks[1] - marks[0],
        "row": (marks[2] - marks[1]) / 20,
        "draw": marks[3] - marks[2],
        "first": taken[0],
        "round": taken.mean(),
        "median": np.median(taken),
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "seen": int((run.counts > 0).sum()),
        "path": run.history["path"].str.len().mean(),
        "regret": run.regret,
    }


def growth(policies, horizon):
    """Print the measurements on three grids, each in a process of its own, with exponents of growth in the edges."""
    for policy in policies:
        found = []
        for side in SIDES:
            command = [sys.executable, __file__, "--grid", str(side), "--policies", policy, "--horizon", str(horizon)]
            found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            print(found[-1], flush=True)
            if limits := GROWTH.get(policy, {}).get(side):
                against(f"{policy}, a round on {found[-1]['edges']} edges", found[-1]["round"], limits[0], "s")
                against("memory", found[-1]["GB"], limits[1], "GB")
        sizes = [row["edges"] for row in found]
        for key in ("prior", "row", "draw", "first", "round", "median", "GB"):
            exponent = growth_exponent(sizes, [row[key] for row in found])
            print(f"{policy}: {key} grows as edges ** {exponent:.2f}")


def agreement(policies, horizon, runs=20):
    """Compare runs on Monaco that learn by districts with runs that learn by the dense process."""
    net, route = eo.datasets.load_roads("monaco"), eo.datasets.ROUTES["monaco"]["A"]
    lazy, dense = (eo.bandits.navigation_prior(net, lazy=lazy) for lazy in (True, False))
    some = np.arange(0, net.n_edges, 7)
    print(f"rows differ by up to {np.abs(lazy.rows(some) - dense.rows(some)).max():.1e} Wh²")
    print(f"variances differ by up to {np.abs(lazy.variance - dense.variance).max():.1e} Wh²")
    truths = dense.draw(runs, rng=0)
    for policy in policies:
        regrets, seen = [], []
        for seed, truth in enumerate(truths.T):
            options = {"horizon": horizon, "rng": seed, "expected": truth}
            both = [eo.bandits.run(net, *route, policy, prior=prior, **options) for prior in (lazy, dense)]
            regrets.append([run.regret / 1000 for run in both])
            if not seed:  # the same observations, exactly
                exact = [eo.bandits.ExactGP(prior) for prior in (lazy, dense)]
                for gp in exact:
                    for arms in both[1].arms:
                        gp.update(arms, truth[arms])
                seen = [np.abs(a - b).max() for a, b in zip(*(gp.predict() for gp in exact), strict=True)]
        difference = np.subtract(*np.transpose(regrets))
        print(
            f"{policy}, {runs} runs of {horizon} rounds: districts {np.mean(regrets, axis=0)[0]:.2f} kWh, dense "
            f"{np.mean(regrets, axis=0)[1]:.2f}, paired difference {difference.mean():.2f} ± "
            f"{difference.std(ddof=1) / np.sqrt(runs):.2f}; exact updates differ by up to {max(seen):.1e}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    all_policies = list(eo.bandits.POLICIES)
    parser.add_argument("--network", choices=["monaco", "luxembourg"], default="monaco")
    parser.add_argument("--route", choices=["A", "B"], default="A")
    parser.add_argument("--policies", nargs="+", choices=all_policies, default=all_policies)
    parser.add_argument("--horizon", type=int, default=500)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--agreement", action="store_true")
    parser.add_argument("--grid", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.grid:
        print(json.dumps(on_grid(options.grid, options.policies[0], options.horizon)))
        return
    if options.growth:
        growth(options.policies if options.policies != all_policies else ["bi-ts", "gp-ts"], options.horizon)
        return
    if options.agreement:
        agreement(options.policies if options.policies != all_policies else ["gp-ts"], options.horizon)
        return
    net = eo.datasets.load_roads(options.network)
    route = eo.datasets.ROUTES[net.name][options.route]
    start = time.perf_counter(), time.process_time()
    prior = eo.bandits.navigation_prior(net)
    prior.factor  # noqa: B018 - computed once for all policies
    print(
        f"{net}\nprior and its factor: {time.perf_counter() - start[0]:.1f} s by the clock, "
        f"{time.process_time() - start[1]:.1f} s of the processor\n"
    )
    laplacian = incidence_laplacian(net.lengths, net.connections)
    began = time.process_time()
    graph_matern(laplacian)
    against(
        f"graph Matérn kernel of {net.n_edges} edges, nu = 2, processor",
        time.process_time() - began,
        KERNEL_S,
        "s",
    )
    print(f"{'policy':12}{'clock s':>10}{'cpu s':>10}{'edges':>8}{'seen':>8}{'regret Wh':>12}{'peak GB':>9}")
    rounds = {}
    for policy in options.policies:
        run, wall, cpu = measure(net, route, policy, options.horizon, prior)
        edges, seen = run.history["path"].str.len().mean(), (run.counts > 0).sum()
        rounds[policy] = wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{policy:12}{wall:10.4f}{cpu:10.4f}{edges:8.0f}{seen:8}{run.regret:12.0f}{peak:9.2f}", flush=True)
    print()
    exact = [seconds for policy, seconds in rounds.items() if policy.startswith("gp-")]
    if exact:
        against("a round, slowest exact agent", max(exact), ROUND_S[options.network], "s")
    against("memory", peak, MEMORY_GB, "GB")
    if set(SIX) <= set(rounds):
        against("six agents, 500 rounds", 500 * sum(rounds[policy] for policy in SIX), SIX_AGENTS_S, "s")


if __name__ == "__main__":
    main()
