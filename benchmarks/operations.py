"""Check the simulation of operations where the truth is known, and measure its speed beside simpy.

    python benchmarks/operations.py             # Auckland: calls a second, all features; simpy doing the same
    python benchmarks/operations.py --truth     # 20 cities of ten million calls beside the exact hypercube: minutes
    python benchmarks/operations.py --dispatch  # closest unit and offsets beside the optimal dispatch, 50 small cities
    python benchmarks/operations.py --search    # a better deployment for Auckland than the one that comes with it

The simpy model has the same priorities, transport, trips home, interpolated places, redispatch, queues and random
laws. It draws other numbers, so its means must agree within their errors; they are printed side by side.
"""

import argparse
import heapq
from itertools import count

import numpy as np
from _timing import median_seconds

import emsopt as eo
from emsopt.operations import OperationsObjective, Policy, System, best_offsets, optimal_dispatch, simulate

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
        found = simulate(System(city), where, capacity="loss", calls=CALLS, rng=seed)
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
        "closest unit": Policy(),
        "compliance table": Policy(table=[tuple(sorted(sites[:k])) for k in range(1, len(sites) + 1)]),
        "expected coverage": Policy(coverage=8 - 50 / 60, busy=0.5),
    }
    print(f"Auckland, {len(sites)} units, three priorities: million calls a second")
    for name, policy in policies.items():
        seconds = median_seconds(
            lambda policy=policy: simulate(system, sites, policy=policy, calls=1_000_000, rng=0), 3
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
    table = simulate(system, sites, calls=1_000_000, rng=2).to_frame()
    for priority, times in zip(system.priorities, theirs, strict=True):
        error = np.std(times) / np.sqrt(len(times))
        ours = f"mean response {table.mean_response_min[priority.name]:.2f}"
        print(f"{priority.name:8} {ours}, simpy {np.mean(times):.2f} ± {error:.2f}")


def dispatch():
    """Print by how much the closest unit and offsets exceed the optimal dispatch, on 50 cities of four units."""
    for metric in ("mean_response", ("late", 8.0)):
        gaps = []
        for seed in range(50):
            city = random_city(seed, 4, 12, 30)
            sites = np.random.default_rng(seed).choice(12, 4, replace=False)
            best = optimal_dispatch(city, sites, metric)
            shifted = best_offsets(city, sites, metric, steps=300, rng=seed, evaluator="exact")
            gaps.append((best.gap, shifted.value / best.cost - 1))
        for name, gap in zip(("closest", "offsets"), 100 * np.array(gaps).T, strict=True):
            parts = np.quantile(gap, [0.25, 0.5, 0.75, 1])
            print(f"{metric}: {name} above the optimum by {parts.round(2)} % (quartiles and largest)")


def search():
    """Print what searches find for Auckland, and the paired difference in late calls, on calls not searched with."""
    system, sites = eo.datasets.load_auckland()
    space = eo.DeploymentSpace(system.city, len(sites), colocation=5)  # as many fit into a station of the case
    for method, budget in (("gp-pm", 100), ("local+", 100), ("local", 300)):
        for seed in range(3):
            objective = OperationsObjective(system, space, calls=100_000, rng=seed)
            run = eo.minimize(objective, method, budget=budget, rng=seed)
            ours, theirs = (simulate(system, x, calls=2_000_000, rng=99) for x in (run.x, sites))
            moves = (ours.late - theirs.late).sum(axis=1) / ours.calls.sum(axis=1)
            half = 2.09 * moves.std(ddof=1) / np.sqrt(len(moves))  # Student's t, 20 batches, 95 %
            print(
                f"{method:6} {budget} evaluations, seed {seed}: late {100 * ours.late_share:.2f} %, "
                f"JEMSS {100 * theirs.late_share:.2f} %, difference {100 * moves.mean():.2f} ± {100 * half:.2f} points"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--dispatch", action="store_true")
    parser.add_argument("--search", action="store_true")
    options = parser.parse_args()
    chosen = [part for part in (truth, dispatch, search) if getattr(options, part.__name__)]
    for part in chosen or [speed]:
        part()
