"""Check late fractions and percentiles with travel times that vary, by simulations of a million calls.

    python benchmarks/random_travel.py            # half a minute

Random cities have seeds 0, 1, ...; the simulation of a city has its seed too. Fleets have 2 to 8 units, loads 0.1 to
0.8, coefficients of variation of travel from 0 to 0.8 (the same everywhere, by site or by pair) and, in every second
city, of turnout from 0.1 to 0.6. Calls are lost or queue. Printed are in how many of the first 20 cities the exact
model lies within the 99 % interval of the simulation, and the error of the approximate model against the exact one with
and without variation, in 200 cities.
"""

import warnings

import numpy as np
import pandas as pd

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, exact_hypercube, simulate

CITIES, CALLS, LATE_MIN = 20, 1_000_000, (5.0, 8.0, 12.0)
APPROXIMATED = 200
MEASURES = ["percentile_90", *(f"late_{t:g}" for t in LATE_MIN)]


def varied_city(seed):
    """Return a random city, the sites of its units, and what becomes of calls that find all units busy."""
    rng = np.random.default_rng(seed)
    units, n_atoms = 2 + seed % 7, int(rng.integers(10, 60))
    n_sites = units + int(rng.integers(0, 4))
    atoms, sites = rng.uniform(0, 15, (n_atoms, 2)), rng.uniform(0, 15, (n_sites, 2))
    mean_cv = 0.8 * (seed % CITIES) / (CITIES - 1)
    cv = mean_cv * rng.uniform(0.5, 1.0, [(), (n_sites, 1), (n_sites, n_atoms)][seed % 3])
    city = eo.City(
        rng.exponential(size=n_atoms),
        np.abs(atoms[None] - sites[:, None]).sum(axis=2) * 0.6 + 0.5,
        turnout_times=rng.uniform(0.5, 2, n_sites),
        service_times=rng.uniform(25, 40, n_sites),
        travel_cv=np.broadcast_to(cv / np.max(cv) * mean_cv if mean_cv else 0 * cv, (n_sites, n_atoms)),
        turnout_cv=rng.uniform(0.1, 0.6) if seed % 2 else 0.0,
    ).with_offered_load(rng.uniform(0.1, 0.8), units)
    return city, np.sort(rng.choice(n_sites, units, replace=False)), "queue" if seed % 4 == 3 else "loss"


def measures(evaluation):
    """Return the 90th percentile (min) and the late fractions."""
    return np.r_[evaluation.percentile_90, evaluation.late_fraction(LATE_MIN)]


def inside(seed, calls=CALLS, level=0.99):
    """Return for each measure whether the exact value lies in the interval of the simulation of one city."""
    city, sites, capacity = varied_city(seed)
    exact = measures(exact_hypercube(city, sites, capacity=capacity))
    run = simulate(city, sites, capacity=capacity, calls=calls, level=level, rng=seed)
    low, high = np.transpose([run.percentile_interval(90), *(run.late_interval(t) for t in LATE_MIN)])
    return (low - 1e-9 <= exact) & (exact <= high + 1e-9)  # times that do not vary have no width


def approximation_errors(seed):
    """Return the absolute error of each measure of the approximate model, with variation and without."""
    city, sites, capacity = varied_city(seed)
    pairs = [
        [evaluate(each, sites, capacity=capacity) for evaluate in (approximate_hypercube, exact_hypercube)]
        for each in (city, city.replace(travel_cv=0, turnout_cv=0))
    ]
    return [np.abs(measures(approximate) - measures(exact)) for approximate, exact in pairs]


def main():
    warnings.simplefilter("ignore", eo.errors.AccuracyWarning)  # of different service times
    held = np.sum([inside(seed) for seed in range(CITIES)], axis=0)
    errors = np.array(
        [approximation_errors(seed) for seed in range(APPROXIMATED)]
    )  # (cities, with or without, measures)
    table = pd.DataFrame({f"within the 99 % interval, of {CITIES}": held}, index=MEASURES)
    for k, name in enumerate(("with", "without")):
        table[f"mean error {name}"] = errors[:, k].mean(axis=0)
        table[f"largest {name}"] = errors[:, k].max(axis=0)
    table["standard error of the difference"] = np.std(errors[:, 0] - errors[:, 1], axis=0) / np.sqrt(APPROXIMATED)
    print(table.round(5).T.to_string())


if __name__ == "__main__":
    main()
