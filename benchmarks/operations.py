"""Check the simulation of operations where the truth is known, and measure its speed beside simpy.

    python benchmarks/operations.py             # Auckland: calls a second, all features; simpy doing the same
    python benchmarks/operations.py --growth    # calls a second by policy, at three sizes
    python benchmarks/operations.py --truth     # 20 cities of ten million calls beside the exact hypercube: minutes
    python benchmarks/operations.py --dispatch  # closest unit and offsets beside the optimal dispatch, 50 small cities
    python benchmarks/operations.py --joint     # offsets and deployment together, published St. Paul
    python benchmarks/operations.py --search    # a better deployment for Auckland than the one that comes with it
    python benchmarks/operations.py --policies  # searches of deployment and offsets at equal simulated calls: minutes
    python benchmarks/operations.py --relocation  # rules of relocation beside none and perfect relocation: minutes

The simpy model has the same priorities, transport, trips home, interpolated places, redispatch, queues and random
laws. It draws other numbers, so its means must agree within their errors; they are printed side by side.
"""

import argparse
import heapq
import time
from dataclasses import replace
from functools import partial
from itertools import count, product

import numpy as np
from _timing import growth_exponent, median_seconds

import emsopt as eo

operations = eo.operations

CITIES, CALLS, LEVEL = 20, 10_000_000, 0.99


def random_city(seed, units, n_sites, n_atoms):
    """Return a city in the plane with a load of 0.2 to 0.9 per unit."""
    rng = np.random.default_rng(seed)
    sites, atoms = rng.uniform(0, 10, (n_sites, 2)), rng.uniform(0, 10, (n_atoms, 2))
    minutes = 1.5 * np.linalg.norm(sites[:, None] - atoms[None], axis=2) + 1
    city = eo.City(rng.uniform(0.2, 1, n_atoms), minutes, turnout_times=1.2, service_times=30)
    return city.with_offered_load(rng.uniform(0.2, 0.9), units=units)


def truth():
    """Print the exact mean response and loss of random cities, with the simulated 99 % intervals."""
    inside = np.zeros(2, int)
    for seed in range(CITIES):
        rng = np.random.default_rng(seed)
        units = int(rng.integers(4, 11))
        city, where = random_city(seed, units, 15, 40), rng.choice(15, units, replace=False)
        exact = eo.evaluators.exact_hypercube(city, where)
        found = operations.simulate(operations.System(city), where, capacity="loss", calls=CALLS, rng=seed)
        for k, (name, value) in enumerate([("mean_response", exact.mean_response), ("loss", exact.loss_probability)]):
            low, high = found.interval(name, level=LEVEL)
            inside[k] += low < value < high
            print(f"city {seed:2} {name:14} exact {value:.5f}, simulated {low:.5f} to {high:.5f}")
    print(f"inside of {CITIES}: mean response {inside[0]}, loss {inside[1]}")


def by_simpy(system, sites, calls, seed):
    """Simulate Auckland with simpy; return the response times by priority."""
    import simpy

    rng, env = np.random.default_rng(seed), simpy.Environment()
    city, kinds, minutes, tie = system.city, system.priorities, system.minutes, count()
    n, first = city.n_sites, city.n_sites + city.n_atoms
    chance, shares = np.cumsum(city.demand_shares), np.cumsum([kind.share for kind in kinds])
    home_mode = len(minutes) - 1
    units = [{"home": s, "origin": s, "goal": s, "leave": 0.0, "arrive": 0.0, "call": None, "run": None} for s in sites]
    waiting, responses = [], [[] for _ in kinds]

    def minutes_from(unit, place, mode):
        there = minutes[mode, unit["goal"], place]
        if unit["arrive"] <= env.now:
            return there
        left = min((unit["arrive"] - env.now) / (unit["arrive"] - unit["leave"]), 1)
        return left * minutes[mode, unit["origin"], place] + (1 - left) * there

    def set_out(unit, place, leave, arrive):
        if unit["arrive"] - env.now <= (unit["arrive"] - unit["leave"]) / 2:
            unit["origin"] = unit["goal"]
        unit["goal"], unit["leave"], unit["arrive"] = place, leave, arrive

    def serve(unit, call):
        time, k, j = call
        minute = minutes_from(unit, n + j, kinds[k].mode)
        leave = max(env.now, time + kinds[k].delay)
        set_out(unit, n + j, leave, leave + minute)
        try:
            yield env.timeout(leave + minute - env.now)
        except simpy.Interrupt:
            return
        responses[k].append(env.now - time)
        unit["origin"] = unit["goal"]
        yield env.timeout(rng.exponential(kinds[k].on_scene.mean))
        if rng.random() < kinds[k].transport:
            hospital = first + system.hospital_of[j]
            yield env.timeout(minutes[home_mode, n + j, hospital])
            yield env.timeout(rng.exponential(system.handover.mean))
            unit["origin"] = unit["goal"] = hospital
        unit["leave"] = unit["arrive"] = env.now
        unit["call"] = None
        if waiting:
            send(unit, heapq.heappop(waiting)[2])
        else:
            set_out(unit, unit["home"], env.now, env.now + minutes[home_mode, unit["goal"], unit["home"]])

    def send(unit, call):
        unit["call"] = call
        unit["run"] = env.process(serve(unit, call))

    def dispatch(call):
        k, j = call[1:]
        best, chosen = np.inf, None
        for unit in units:
            if unit["call"] and (unit["arrive"] <= env.now or kinds[unit["call"][1]].name not in kinds[k].takes_from):
                continue
            minute = minutes_from(unit, n + j, kinds[k].mode)
            if minute < best:
                best, chosen = minute, unit
        if chosen is None:
            heapq.heappush(waiting, (k, next(tie), call))
            return
        taken = chosen["call"]
        if taken:
            chosen["run"].interrupt()
        send(chosen, call)
        if taken:
            dispatch(taken)

    def arrivals():
        for _ in range(calls):
            yield env.timeout(rng.exponential(60 / city.total_rate))
            j, k = np.searchsorted(chance, rng.random() * chance[-1]), np.searchsorted(shares, rng.random())
            dispatch((env.now, int(k), int(j)))

    env.process(arrivals())
    env.run()
    return responses


def speed():
    """Print calls a second, by policy, and beside simpy."""
    system, sites = eo.datasets.load_auckland()
    policies = {
        "closest unit": operations.Policy(),
        "compliance table": operations.Policy(table=[tuple(sorted(sites[:k])) for k in range(1, len(sites) + 1)]),
        "expected coverage": operations.Policy(coverage=8 - 50 / 60, busy=0.5),
    }
    print(f"Auckland, {len(sites)} units, three priorities: million calls a second")
    for name, policy in policies.items():
        seconds = median_seconds(
            lambda policy=policy: operations.simulate(system, sites, policy=policy, calls=1_000_000, rng=0), 3
        )
        print(f"{name:18} {1.1 / seconds:6.2f}")
        if name == "closest unit":
            ours = 1.1e6 / seconds
    try:
        import simpy  # noqa: F401
    except ImportError:
        print("simpy is not installed; it is left out.")
        return
    theirs = by_simpy(system, sites, 100, 0)
    seconds = median_seconds(lambda: theirs.__setitem__(slice(None), by_simpy(system, sites, 20_000, 1)), 1)
    print(f"simpy              {20_000 / seconds / 1e6:6.4f}, {ours / (20_000 / seconds):,.0f} times slower")
    table = operations.simulate(system, sites, calls=1_000_000, rng=2).to_frame()
    for priority, times in zip(system.priorities, theirs, strict=True):
        error = np.std(times) / np.sqrt(len(times))
        ours = f"mean response {table.mean_response_min[priority.name]:.2f}"
        print(f"{priority.name:8} {ours}, simpy {np.mean(times):.2f} ± {error:.2f}")


def growth(calls=20_000, sizes=((10, 20, 70), (30, 60, 500), (100, 200, 2000))):
    """Print thousand calls a second by policy and size, and how the time of a call grows with the units."""
    seconds = {}
    for units, n_sites, n_atoms in sizes:
        rng = np.random.default_rng(0)
        places = rng.uniform(0, 20, (n_sites + n_atoms, 2))
        minutes = np.linalg.norm(places[:, None] - places, axis=2)
        rates = rng.exponential(size=n_atoms)
        city = eo.City(rates, minutes[:n_sites, n_sites:], turnout_times=0, service_times=35)
        kinds = [operations.Priority(on_scene=operations.Duration(30))]
        system = operations.System(city.with_offered_load(0.4, units), minutes, priorities=kinds)
        for name, policy in {
            "closest unit": operations.Policy(),
            "compliance table": operations.best_table(system, range(units), steps=0),
            "expected coverage": operations.Policy(coverage=4.0),
            "dispatch by coverage": operations.Policy("coverage", coverage=4.0, relocate=False),
        }.items():
            run = partial(operations.simulate, system, range(units), policy=policy, calls=calls, warmup=0, rng=0)
            seconds.setdefault(name, []).append(median_seconds(run, 3))
    for name, times in seconds.items():
        rates = np.round(calls / 1e3 / np.array(times), 1)
        print(f"| {name} | {rates} | {growth_exponent([size[0] for size in sizes], times):.2f} |")


def dispatch():
    """Print by how much the closest unit and offsets exceed the optimal dispatch, on 50 cities of four units."""
    for metric in ("mean_response", ("late", 8.0)):
        gaps = []
        for seed in range(50):
            city = random_city(seed, 4, 12, 30)
            sites = np.random.default_rng(seed).choice(12, 4, replace=False)
            best = operations.optimal_dispatch(city, sites, metric)
            shifted = operations.best_offsets(city, sites, metric, steps=300, rng=seed, evaluator="exact")
            gaps.append((best.gap, shifted.value / best.cost - 1))
        for name, gap in zip(("closest", "offsets"), 100 * np.array(gaps).T, strict=True):
            parts = np.quantile(gap, [0.25, 0.5, 0.75, 1])
            print(f"{metric}: {name} above the optimum by {parts.round(2)} % (quartiles and largest)")


def joint():
    """Print by how much offsets, deployments and both lower late calls of published St. Paul, and in what time."""
    metric = ("late", 8.0)
    for load in (0.225, 0.5, 0.8):
        city = eo.datasets.load_st_paul(version="published").with_offered_load(load, units=9)
        mean = eo.evaluators.evaluate_all(city, 9, evaluator="approximate").best.sites
        late = eo.evaluators.evaluate_all(city, 9, evaluator="approximate", metric=metric).best.sites
        before = eo.Objective(city, 9, metric=metric)(mean)
        print(f"load {load}: late {100 * before:.3f} % at the optimum of the mean response")
        for name, sites, options in (
            ("offsets", mean, {}),
            ("deployment for late calls", late, {"steps": 1}),
            ("deployment for late calls, offsets", late, {}),
            ("both, from the optimum of the mean", mean, {"steps": 2100, "moves": 0.3}),
            ("both, from that for late calls", late, {"steps": 2100, "moves": 0.3}),
        ):
            start = time.process_time()
            found = [operations.best_offsets(city, sites, metric, rng=seed, **options) for seed in range(3)]
            seconds = (time.process_time() - start) / 3
            gains = [100 * (1 - one.value / before) for one in found]
            print(f"| {name} | {np.round(gains, 2)} | {seconds:.1f} s |", [sorted(one.sites.tolist()) for one in found])


class Logged(operations.OperationsObjective):
    """Late share of Auckland by deployment and offsets; keeps each value and the CPU seconds until then."""

    def __init__(self):
        system, self.given = eo.datasets.load_auckland()
        super().__init__(system, eo.DeploymentSpace(system.city, 16, colocation=5), calls=20_000, rng=7)
        self.found, self.clock, self.begin = [], [], time.process_time()

    def evaluation(self, sites, offsets=None):
        """Return the simulation, and keep its late share."""
        played = operations.simulate(self.system, sites, policy=operations.Policy(offsets=offsets), calls=20_000, rng=7)
        self.found.append((played.late_share, sites, offsets))
        self.clock.append(time.process_time() - self.begin)
        return played

    def best(self):
        """Return the least late share, its deployment and its offsets."""
        return min(self.found, key=lambda one: one[0])


def policies(budget=200, seeds=10):
    """Print how soon searches of deployment and offsets come within 1 % of the best value known, Auckland."""

    def staged(method):
        def run(log, seed):
            sites = eo.minimize(log, method, budget=budget // 2, rng=seed).x
            used = np.unique(sites)

            def late(minutes):
                offsets = np.zeros(log.city.n_sites)
                offsets[used] = minutes
                return log.evaluation(sites, offsets).late_share

            rng = np.random.default_rng(seed)
            if method == "gp-pm":
                box, start = [(-6, 6)] * len(used), np.zeros(len(used))
                eo.minimize(late, bounds=box, x0=start, budget=budget - len(log.found), rng=seed)
            best, least = np.zeros(len(used)), log.best()[0]
            while len(log.found) < budget:
                tried = best.copy()
                tried[rng.integers(len(used))] += rng.choice([0.3, 1.0, 3.0]) * rng.standard_normal()
                if (value := late(tried)) <= least:
                    best, least = tried, value

        return run

    def random(log, seed):
        rng = np.random.default_rng(seed)
        while len(log.found) < budget:
            offsets = rng.uniform(-6, 6, log.city.n_sites) * (len(log.found) >= budget // 2)
            log.evaluation(log.space.sample(rng=rng), offsets)

    runs = {}
    for name, run in {"gp-pm, boke-auto": staged("gp-pm"), "local": staged("local"), "random": random}.items():
        runs[name] = [Logged() for _ in range(seeds)]
        for seed, log in enumerate(runs[name]):
            log.begin = time.process_time()
            run(log, seed)
    least = min(log.best()[0] for logs in runs.values() for log in logs)
    print(f"least late share on the calls of the search: {100 * least:.2f} %")
    for name, logs in runs.items():
        when = []
        for log in logs:
            near = [n for n, one in enumerate(log.found) if one[0] <= 1.01 * least]
            when.append((near[0] + 1, log.clock[near[0]]) if near else (np.inf, np.inf))
        evaluations, seconds = np.median(when, axis=0)
        gaps = [100 * (log.best()[0] / least - 1) for log in logs]
        found = [(sites, operations.Policy(offsets=offsets)) for _, sites, offsets in (log.best() for log in logs)]
        fresh = [
            100 * operations.compare(log.system, log.given, one, calls=200_000, rng=99).difference().value
            for log, one in zip(logs, found, strict=True)
        ]
        print(
            f"| {name} | {np.isfinite(when).all(axis=1).sum()} of {seeds} | {evaluations:.0f} | {seconds:.1f} "
            f"| {np.median(gaps):.2f} (largest {max(gaps):.2f}) | {np.median([log.clock[-1] for log in logs]):.1f} "
            f"| {np.median(fresh):+.2f} |"
        )


def search():
    """Print what searches find for Auckland, and the paired difference in late calls, on calls not searched with."""
    system, sites = eo.datasets.load_auckland()
    space = eo.DeploymentSpace(system.city, len(sites), colocation=5)  # as many fit into a station of the case
    for method, budget in (("gp-pm", 100), ("local+", 100), ("local", 300)):
        for seed in range(3):
            objective = operations.OperationsObjective(system, space, calls=100_000, rng=seed)
            run = eo.minimize(objective, method, budget=budget, rng=seed)
            found = operations.compare(system, sites, run.x, calls=2_000_000, rng=99)
            print(f"{method:6} {budget} evaluations, seed {seed}, JEMSS {100 * found.a.late_share:.2f} %: {found!r}")


def st_paul():
    """Return published St. Paul with driving times between all places, and the nine sites of fewest late calls.

    Driving times that the case lacks follow a line in the distance as the crow flies, fitted to those it has. Calls end
    on scene, after as long as makes the mean service time that of the case.
    """
    city = eo.datasets.load_st_paul(version="published")
    where = np.vstack([city.site_locations, city.atom_locations]) * [np.cos(np.radians(44.95)), 1] * 111.2
    km, n = np.linalg.norm(where[:, None] - where, axis=2), city.n_sites
    slope, start = np.polyfit(km[:n, n:].ravel(), city.travel_times.ravel(), 1)
    minutes = np.where(km > 0, start + slope * km, 0)
    minutes[:n, n:], minutes[n:, :n] = city.travel_times, city.travel_times.T
    best = eo.evaluators.evaluate_all(city, 9, evaluator="approximate", metric=("late", 8.0)).best
    scene = city.service_times.mean() - best.mean_response
    system = operations.System(city, minutes, priorities=[operations.Priority(on_scene=operations.Duration(scene))])
    return system, best.sites


def with_load(system, load):
    """Return the system with another rate of calls: the load of the city's mean service times per unit of nine."""
    return replace(system, city=system.city.with_offered_load(load, units=9))


def medians(system, units):
    """Return the sites from which k free units would come late to fewest of the calls, for k = 1 to ``units``."""
    city, table = system.city, []
    late = eo.City(city.arrival_rates, operations.searches.late_shares(system), turnout_times=0, service_times=1)
    for k in range(1, units + 1):
        found = eo.evaluators.p_median(late, min(k, city.n_sites)).sites
        table.append([*found, *[found[0]] * (k - len(found))])
    return table


class Entry(operations.OperationsObjective):
    """Late calls by one entry of a compliance table, all others given."""

    def __init__(self, system, sites, policy, k, seed):
        space = eo.DeploymentSpace(system.city, k, colocation=len(sites))
        super().__init__(system, space, calls=50_000, rng=seed)
        self.sites, self.policy, self.k = sites, policy, k

    def evaluation(self, entry):
        """Return the operations with this entry."""
        return operations.simulate(
            self.system, self.sites, policy=self.with_entry(entry), calls=50_000, rng=self.options["rng"]
        )

    def with_entry(self, entry):
        """Return the policy with this entry in its table."""
        table = [*self.policy.table[: self.k - 1], tuple(map(int, entry)), *self.policy.table[self.k :]]
        return replace(self.policy, table=tuple(table))


def table_by_gp(system, sites, policy, simulations=400, seed=2):
    """Search a compliance table by GP-pM, entry by entry from the largest on, with its start as the first proposal."""
    policy = operations.best_table(system, sites, policy, steps=0)
    for k in range(len(sites), 0, -1):
        entry = Entry(system, sites, policy, k, seed)
        start = sorted(policy.table[k - 1])
        policy = entry.with_entry(eo.minimize(entry, "gp-pm", budget=simulations // len(sites), x0=[start], rng=seed).x)
    return policy


def relocation():
    """Print rules of relocation beside none and perfect relocation, judged on calls that they were not chosen with."""
    area = st_paul()
    cases = {"Auckland": eo.datasets.load_auckland()}
    cases |= {f"St. Paul at {load}": (with_load(area[0], load), area[1]) for load in (0.225, 0.5)}
    for name, (system, sites) in cases.items():
        delay = system.priorities[0].delay + system.city.turnout_times[0]

        def best_of(rules, system=system, sites=sites):
            return min(
                rules, key=lambda rule: operations.simulate(system, sites, policy=rule, calls=50_000, rng=1).late_share
            )

        def rules(delay=delay, **options):
            """Return one rule for each busy fraction and combination of options."""
            keys, values = zip(*({"busy": (0.05, 0.1, 0.2, 0.3, 0.5, 0.65)} | options).items(), strict=True)
            return [
                operations.Policy(coverage=8 - delay, **dict(zip(keys, each, strict=True))) for each in product(*values)
            ]

        table = medians(system, len(sites))
        policies = {
            "expected coverage (DMEXCLP)": best_of(rules()),
            "the same with patience (ours)": (ours := best_of(rules(patience=(10, 15, 20, 30, 45)))),
            "table of medians, freed unit": operations.Policy(table=table, moves=0),
            "table nested by loss, freed unit": operations.best_table(system, sites, steps=0),
            "table searched, freed unit (ours)": operations.best_table(system, sites, steps=400, rng=2),
            "table searched, one more moves (ours)": operations.best_table(
                system, sites, operations.Policy(moves=1), steps=400, rng=2
            ),
            "table by GP-pM, freed unit": table_by_gp(system, sites, operations.Policy(moves=0)),
            "table by GP-pM, one more moves": table_by_gp(system, sites, operations.Policy(moves=1)),
            "dispatch by coverage": (spare := best_of(rules(dispatch=["coverage"], relocate=[False]))),
            "dispatch by coverage, and ours": replace(ours, dispatch="coverage"),
            "perfect relocation (bound)": operations.Policy(table=table, instant=True),
        }
        print(f"{name}: busy {ours.busy}, patience {ours.patience}; dispatch busy {spare.busy}")
        for label, policy in ({"none": operations.Policy()} | policies).items():
            found = operations.compare(system, sites, (sites, policy), calls=1_000_000, rng=99)
            value, low, high = 100 * np.array(found.difference())
            print(
                f"| {label} | {100 * found.b.late_share:.2f} | {value:+.2f} ({low:.2f} to {high:.2f}) "
                f"| {found.b.mean_response:.2f} | {found.b.relocations:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = (growth, truth, dispatch, joint, search, relocation, policies)
    for part in parts:
        parser.add_argument(f"--{part.__name__}", action="store_true")
    options = parser.parse_args()
    chosen = [part for part in parts if getattr(options, part.__name__)]
    for part in chosen or [speed]:
        part()
