"""Measure a round of each policy on the road networks of Monaco and Luxembourg.

    python benchmarks/bandits.py                  # Monaco, all policies, 500 rounds
    python benchmarks/bandits.py --network luxembourg --policies gp-ts gp-ucb

Seconds per round, averaged over all rounds, in wall-clock and CPU time (all threads), without drawing the city and the
joint samples; the time of the prior; and the peak memory of the process. Luxembourg needs its file, see
`emsopt.datasets.load_roads`. Each target is printed next to the measurement, with whether it is met.
"""

import argparse
import resource
import time

from emsopt import bandits, datasets
from emsopt.surrogates.graph_matern import graph_matern, incidence_laplacian

ROUND_S = {"monaco": 0.15, "luxembourg": 0.35}  # exact process, mean of 500 rounds, two cores
MEMORY_GB, KERNEL_S, SIX_AGENTS_S = 2.0, 10.0, 300.0
SIX = ["gp-ts", "gp-bucb", "gp-ucb", "bi-ts", "bi-bucb", "bi-ucb"]


def against(what, measured, target, unit):
    """Print a measurement next to its target."""
    verdict = "met" if measured <= target else "MISSED"
    print(f"{what}: {measured:.3g} {unit}, target {target:g} {unit}: {verdict}")


def measure(net, route, policy, horizon, prior):
    """Return the run, and wall-clock and CPU seconds per round; the first round includes the set-up."""
    marks = []

    def mark(step):
        marks.append((time.perf_counter(), time.process_time()))

    run = bandits.run(net, *route, policy, horizon=horizon, rng=0, prior=prior, callback=mark)
    wall, cpu = ((last - first) / (horizon - 1) for first, last in zip(marks[0], marks[-1], strict=True))
    return run, wall, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=["monaco", "luxembourg"], default="monaco")
    parser.add_argument("--route", choices=["A", "B"], default="A")
    parser.add_argument("--policies", nargs="+", choices=list(bandits.POLICIES), default=list(bandits.POLICIES))
    parser.add_argument("--horizon", type=int, default=500)
    options = parser.parse_args()
    net = datasets.load_roads(options.network)
    route = datasets.ROUTES[net.name][options.route]
    start = time.perf_counter(), time.process_time()
    prior = bandits.navigation_prior(net)
    prior.factor  # noqa: B018 - computed once for all policies
    print(
        f"{net}\nprior and its factor: {time.perf_counter() - start[0]:.1f} s by the clock, "
        f"{time.process_time() - start[1]:.1f} s of the processor\n"
    )
    laplacian = incidence_laplacian(net.lengths, net.connections)
    began = time.process_time()
    graph_matern(laplacian, nu=2)
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
