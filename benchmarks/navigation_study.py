"""Replicate the experiments of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4.2.

    python benchmarks/navigation_study.py --part agents --backend processes  # Luxembourg: a gigabyte each

=============== ===================================================================================================
agents          Figure 2: UCB, Bayes-UCB and Thompson sampling with a Gaussian process and with independent edges; and
                joint Thompson sampling of all edges, which is not in the paper
shifted         Figure 2 again, with the potential energy subtracted before rectifying, an option of ours; Monaco only,
                because Luxembourg is flat here
sparse          Figure 2 again, with inducing points as in the paper (Algorithm 3) instead of the exact process
printed         Figure 2 with all that appendix B prints: inducing contexts move and the kernel's parameters are learned
parametrisation Figure 3: Bayes-UCB with ω = 1 and ξ = 1 or 0.5, UCB with β_t as in Theorem 3.1 and half of it
optimism        UCB with smaller β_t than in Figure 3: a quarter of that of Theorem 3.1 to a hundredth; not in the paper
lengthscale     Figures 4 and 5: Bayes-UCB and Thompson sampling at lengthscales from 0.1 to 2
exploration     Figures 6 to 9: which edges each of the six agents drove, how often and since when; first run only
simple          Figure 2 in Monaco with paths that pass no junction twice, as section 4.1 defines them
=============== ===================================================================================================

Sizes are the paper's: two routes each in Monaco and Luxembourg, five runs, 500 rounds; "agents" and "shifted" have
fifteen further runs of 150 rounds, because five are too few to tell the agents apart by energy. "agents" takes about 40
minutes of one processor, and "lengthscale" 45. Some stored tables hold less: "agents", "parametrisation" and
"lengthscale" have energies in Luxembourg up to round 150, and "agents" none of "gp-ts-joint"; "sparse" was run with
``--runs 3`` in Monaco and ``--runs 1 --horizon 150`` in Luxembourg, "optimism" with ``--networks monaco``, "simple"
with ``--networks monaco --horizon 150`` (two minutes), "printed" with ``--runs 1 --networks monaco`` (less than an
hour; Luxembourg and further runs were cut for time); and "sparse" has energies up to round 150. Runs of the same number
face the same drawn energies and noise with every policy. The Gaussian process is exact but in "sparse" and "printed".
Luxembourg is left out if its file is not found (see `emsopt.datasets.load_roads`); Monaco's routes are our own choice,
see `emsopt.datasets.ROUTES`. The paper added heights to Luxembourg, which is flat here; Monaco's heights are a
surrogate. Regret is rectified (`emsopt.bandits.navigation`). The lengthscale is that of the Matérn kernel on length,
speed and incline; the κ of the graph kernel stays 1.

``_studies.py`` says where the results go; the tables are "navigation_agents" and so on. Each row has the rectified
regret up to a round, and the expected energy up to it above that of the path of least rectified cost (without a shift),
which is not rectified; "agents" also has the rectified cost of one drive along that path. Every tenth round of a run is
stored, and every fiftieth of "lengthscale" and "optimism".
"""

import heapq
from functools import lru_cache

import _printed_agent
import _studies
import numpy as np
import pandas as pd

import emsopt as eo
from emsopt._running.checkpoint import random_stream

SIX = ["gp-ts", "gp-bucb", "gp-ucb", "bi-ts", "bi-bucb", "bi-ucb"]
VARIANTS = {
    "gp-bucb, xi 0.5": ("gp", eo.bandits.BayesUCB(omega=1.0, xi=0.5)),
    "gp-ucb, half beta": ("gp", eo.bandits.UCB(factor=0.5)),
}
SMALL = {f"gp-ucb, {factor:g} beta": ("gp", eo.bandits.UCB(factor=factor)) for factor in (0.25, 0.1, 0.03, 0.01)}
COMPARED = {
    "agents": [*SIX, "gp-ts-joint"],
    "shifted": SIX,
    "sparse": ["svgp-ts", "svgp-bucb", "svgp-ucb"],
    "printed": ["svgp-ts", "svgp-bucb", "svgp-ucb"],
    "parametrisation": ["gp-bucb", *VARIANTS, "gp-ucb"],
    "optimism": [*SMALL],
    "lengthscale": ["gp-ts", "gp-bucb", "bi-ts", "bi-bucb"],
    "exploration": SIX,
    "simple": SIX,
}
SPARSELY = ["lengthscale", "optimism"]  # every fiftieth round is stored
LENGTHSCALES = [0.1, 0.25, 0.5, 1.0, 1.5, 2.0]
STORED_BY = ["network", "lengthscale", "route", "policy", "run"]  # a new run replaces the stored one, others stay
RUNS, HORIZON, EVERY = 5, 500, 10
ALL_RUNS, SHORT = 20, 150  # runs from the sixth on, of the two parts that have them, and their number of rounds


@lru_cache(maxsize=1)
def roads(network):
    return eo.datasets.load_roads(network)


@lru_cache(maxsize=1)
def prior(network, lengthscale):
    return eo.bandits.navigation_prior(roads(network), lengthscale=lengthscale)


def drive(network, route, lengthscale, run, policy, horizon, **options):
    net = roads(network)
    return eo.bandits.run(
        net,
        *eo.datasets.ROUTES[net.name][route],
        (VARIANTS | SMALL).get(policy, policy),
        horizon=horizon,
        rng=seed(network, route, run),
        **options or {"prior": prior(network, lengthscale)},
    )


def seed(network, route, run):
    return eo.study.seed_of({"network": network, "route": route, "run": run})


def regret(network, route, lengthscale, run, policy, horizon, **options):
    """Task: one run; one row per ten rounds."""
    result = drive(network, route, lengthscale, run, policy, horizon, **options)
    best_energy, best_cost = reference(network, route, lengthscale, run)
    excess = result.history["expected_energy"].cumsum() - result.history["round"] * best_energy
    columns = {"excess_energy": excess, "edges_seen": seen_so_far(result.arms), "best_cost": best_cost}
    history = result.history.assign(**columns)[EVERY - 1 :: EVERY]
    return history[["round", "cumulative_regret", *columns]]


def shifted(network, **case):
    """Task: one run that subtracts the potential energy before rectifying."""
    net = roads(network)
    shift = eo.roads.energy.potential_energy(net.lengths, net.inclines)
    return regret(network, **case, prior=prior(network, case["lengthscale"]), shift=shift)


def printed(network, route, lengthscale, run, **case):
    """Task: one run with the agent of appendix B, in the world that the others face."""
    agent, world = _printed_agent.PrintedGP(prior(network, lengthscale)), drawn(network, route, lengthscale, run)
    return regret(network, route, lengthscale, run, **case, regression=agent, expected=world.expected)


def drawn(network, route, lengthscale, run):
    """Return the world that all policies face in one run."""
    net = roads(network)
    options = {"rng": seed(network, route, run)}
    return eo.bandits.Navigation(net, *eo.datasets.ROUTES[net.name][route], prior(network, lengthscale), **options)


@lru_cache(maxsize=1)
def reference(network, route, lengthscale, run):
    """Return energy and rectified cost of the path of least rectified cost, from which energies are measured."""
    world = drawn(network, route, lengthscale, run)
    best = world.best_path(1)
    return world.expected[best].sum(), world.costs[best].sum()


def seen_so_far(rounds):
    """Return how many distinct arms were observed up to each round."""
    seen, counts = set(), []
    for arms in rounds:
        seen.update(arms.tolist())
        counts.append(len(seen))
    return counts


def exploration(network, route, lengthscale, run, policy, horizon):
    """Task: one run; one row per edge driven."""
    return drive(network, route, lengthscale, run, policy, horizon).visits


class SimplePath:
    """Oracle of the cheapest legal path that passes no junction twice, by branch and bound.

    Turns where the route begins and ends are closed. If the shortest path still passes a junction twice, two branches
    close one of its two turns there: a simple path lacks at least one of them. `loops` counts the calls in which the
    shortest path by itself passes a junction twice.
    """

    def __init__(self, net, start, end):
        self.net, (self.start, self.end) = net, net.edges([start, end])
        starts, ends = ([line[k] for line in net.polylines] for k in (0, -1))
        self.tails, self.heads = eo.roads.snapping.number_junctions(net.connections, np.array(starts), np.array(ends)).T
        self.number = {tuple(turn): net.n_edges + k for k, turn in enumerate(net.connections.tolist())}
        places = self.heads[net.connections[:, 0]]
        at_ends = np.isin(places, [self.tails[self.start], self.heads[self.end]])
        self.at_ends, self.loops = np.concatenate([np.zeros(net.n_edges, dtype=bool), at_ends]), 0

    def repeated(self, path):
        """Return the two turns of a path at the junction that it passes twice first, or None."""
        turns = {}
        for turn in zip(path[:-1].tolist(), path[1:].tolist(), strict=True):
            if (place := self.heads[turn[0]]) in turns:
                return turns[place], turn
            turns[place] = turn
        return None

    def is_simple(self, path):
        """Return whether a path passes no junction twice."""
        return len({self.tails[path[0]], *self.heads[path]}) == len(path) + 1

    def __call__(self, costs, allowed=None):
        """Return the edges of the path."""
        path = self.net.shortest_path(costs, self.start, self.end)
        if self.is_simple(path):
            return path
        self.loops += 1
        is_ring = self.tails[self.start] == self.heads[self.end]
        waiting, count, closures = [], 0, [] if is_ring else [self.at_ends]
        while True:
            for shut in closures:
                try:
                    path = self.net.shortest_path(costs, self.start, self.end, closed=shut)
                except eo.errors.NoPathError:
                    continue
                count += 1
                heapq.heappush(waiting, (costs[path].sum(), count, path, shut))
            if not waiting:
                raise eo.errors.NoPathError("no legal path passes every junction at most once.")
            _, _, path, shut = heapq.heappop(waiting)
            if (turns := self.repeated(path)) is None:
                return path
            closures = [shut | (np.arange(len(shut)) == self.number[turn]) for turn in turns]


def simple(network, route, lengthscale, run, policy, horizon):
    """Task: one run with simple paths; regret and energy are measured from the best of them."""
    world = drawn(network, route, lengthscale, run)
    world.oracle = SimplePath(world.net, world.oracle.start, world.oracle.end)
    best = world.best_path(1)
    world.oracle.loops = 0
    navigation = eo.bandits.navigation
    _, kind, rule = navigation.parse_policy(policy)
    model = navigation.new_regression(kind, prior(network, lengthscale))
    rng = random_stream(world.seed, navigation.AGENT_STREAM)
    agent = eo.bandits.Agent(model, rule, sense="min", rectify=True, rng=rng)
    found, seen = [], set()
    for done in eo.bandits.play(agent, world, world.oracle, horizon):
        seen.update(done.arms.tolist())
        change = [values[done.arms].sum() - values[best].sum() for values in (world.costs, world.expected)]
        found.append([done.number, *change, len(seen), world.oracle.loops])
    table = pd.DataFrame(found, columns=["round", "cumulative_regret", "excess_energy", "edges_seen", "loops"])
    table[["cumulative_regret", "excess_energy"]] = table[["cumulative_regret", "excess_energy"]].cumsum()
    return table.assign(best_cost=world.costs[best].sum())[EVERY - 1 :: EVERY]


def networks(wanted):
    """Return the networks whose files are found."""
    found = []
    for network in wanted:
        try:
            roads(network)
        except eo.errors.DataUnavailableError as error:
            print(f"{network} is left out: {error}")
        else:
            found.append(network)
    return found


def cases(part, options):
    """Return the cases of a part, ordered so that each prior is made once."""
    lengthscales = LENGTHSCALES if part == "lengthscale" else [1.0]
    small, found = options.smoke, []
    runs = (
        1 if small or part == "exploration" else options.runs or (ALL_RUNS if part in ("agents", "shifted") else RUNS)
    )
    for network in networks(options.networks[: 1 if small else None]):
        for first, last, horizon in ((0, min(runs, RUNS), options.horizon), (RUNS, runs, min(SHORT, options.horizon))):
            found += eo.study.cases(
                network=network,
                lengthscale=lengthscales[: 2 if small else None],
                route=["A", "B"][: 1 if small else None],
                run=range(first, last),
                policy=options.policies or COMPARED[part],
                horizon=2 * EVERY if small else horizon,
            )
    return found


def for_store(table, part):
    """Drop columns that are constant or not used, and four of five rounds of the part with most runs."""
    if part == "exploration":
        return table.drop(columns=["horizon", "lengthscale", "run"])
    table = table[table["round"] % (5 * EVERY) == 0] if part in SPARSELY else table
    table = table if part == "lengthscale" else table.drop(columns="lengthscale")
    table = table if part in ("agents", "simple") else table.drop(columns="best_cost")
    return table.drop(columns="horizon").round({"cumulative_regret": 1, "excess_energy": 1, "best_cost": 1})


def main():
    parser = _studies.parser(__doc__)
    parser.add_argument("--part", choices=list(COMPARED), required=True)
    parser.add_argument("--policies", nargs="+", help="these only, instead of all of the part")
    parser.add_argument("--networks", nargs="+", default=["monaco", "luxembourg"])
    parser.add_argument("--horizon", type=int, default=HORIZON)
    options = parser.parse_args()
    name, task = (
        f"navigation_{options.part}",
        {"exploration": exploration, "shifted": shifted, "simple": simple, "printed": printed}.get(
            options.part, regret
        ),
    )
    suffix = ".csv" if options.smoke else ".csv.gz"
    table = _studies.run(task, cases(options.part, options), name, options)
    kept, file = for_store(table, options.part), _studies.table_file(name, options, suffix)
    kept = _studies.beside_stored(kept, file, [key for key in STORED_BY if key in kept])
    kept.to_csv(file, index=False, compression={"method": "gzip", "mtime": 0} if file.suffix == ".gz" else None)
    print(f"{len(kept)} rows in {file}")
    if options.part != "exploration":
        keys = ["network", "lengthscale", "route", "policy"]
        ends = table.groupby([*keys, "run"], sort=False)[["cumulative_regret", "excess_energy"]].last()
        summary = ends.groupby(keys, sort=False).agg(["mean", "sem"])
        print(f"regret in Wh after the last round:\n{summary.round(0)}")


if __name__ == "__main__":
    import navigation_study  # by its name, as worker processes import it

    navigation_study.main()
