"""Measure what one call of an objective costs beyond its kernel.

    python benchmarks/objective_call.py

Microseconds per deployment of St. Paul with 9 units, approximate hypercube, one thread: the fastest of several rounds
that alternate between the kernel and the calls. The kernel is the compiled function on prepared arrays.
"""

import time

import numpy as np

import emsopt as eo
from emsopt.evaluators import _approximate_equations

TARGET = 2.5  # times the kernel


def microseconds(functions, rounds=15, repeats=200):
    """Return the time of each function of one deployment, in the fastest round."""
    best = [np.inf] * len(functions)
    for _ in range(rounds):
        for k, (function, rows) in enumerate(functions):
            runs = max(1, repeats // rows)
            start = time.perf_counter()
            for _ in range(runs):
                function()
            best[k] = min(best[k], (time.perf_counter() - start) / runs / rows * 1e6)
    return best


def main():
    city = eo.datasets.load_st_paul()
    objective, serial = eo.Objective(city, 9, "approximate"), eo.Objective(city, 9, "approximate", workers=1)
    many = objective.space.sample(4000, rng=0)
    one = many[:1].copy()
    rates, service = city.arrival_rates / 60, city.service_times
    site_rates = _approximate_equations.service_rates(np.arange(city.n_sites), rates, service)
    arrays = city.preference_ranks, rates, service, site_rates, objective.costs, False, 1e-8
    for sites, value in zip(many[:20], _approximate_equations.mean_costs(many[:20], *arrays), strict=True):
        assert objective(sites) == value

    kernel, call, kernel_many, values = microseconds(
        [
            (lambda: _approximate_equations.mean_costs(one, *arrays), 1),
            (lambda: objective(one[0]), 1),
            (lambda: _approximate_equations.mean_costs(many, *arrays), len(many)),
            (lambda: serial.values(many), len(many)),
        ]
    )
    print(f"{'per deployment':30} {'kernel':>9} {'objective':>9} {'ratio':>6}   (target {TARGET})")
    for name, inner, outer in (
        ("objective(sites)", kernel, call),
        ("the same, kernel on 4,000", kernel_many, call),
        ("objective.values, 4,000 rows", kernel_many, values),
    ):
        print(f"{name:30} {inner:6.2f} us {outer:6.2f} us {outer / inner:6.2f}")


if __name__ == "__main__":
    main()
