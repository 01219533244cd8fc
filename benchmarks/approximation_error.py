"""Measure the error of the approximate hypercube: the papers' Figure 7, by load and geometry.

    python benchmarks/approximation_error.py                # 100 random cities of 15 units each, and all of St. Paul
    python benchmarks/approximation_error.py --units 20     # the papers' medium size: 25 minutes
    python benchmarks/approximation_error.py --units 30     # the large one, against a simulation: 15 minutes
    python benchmarks/approximation_error.py --light        # 15, 20 and 30 units at light loads: a minute
    python benchmarks/approximation_error.py --unequal      # units whose mean service times differ: takes a minute
    python benchmarks/approximation_error.py --hundreds     # 100 and 300 units, against a simulation: two minutes

Writes emsopt/data/studies/approximation_error_15.csv.gz (a row per city) and approximation_error_st_paul.csv (a summary
over all deployments). Seeds are 0, 1, 2, ...; finished rows are kept, so that an interrupted run can be resumed. The
stored tables of 20 and 30 units have 30 and 100 cities with plane travel times, and 20 with uniform ones
(``--geometries``, ``--cities``). Fleets that are too large for the exact model are simulated with CALLS calls;
``half_width_min`` is half the width of the 95 % confidence interval. ``--light`` writes approximation_error_light,
of 4 cities for each size, geometry and load of LIGHT.
"""

import argparse
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from tqdm import tqdm

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, evaluate_all, exact_hypercube, simulate, values

FOLDER = Path(__file__).parents[1] / "emsopt" / "data" / "studies"
LOADS, LIGHT = (0.2, 0.5, 0.8), (0.02, 0.05, 0.1)
GEOMETRIES = ("plane", "uniform")
MOST_EXACT, CALLS = 20, 10_000_000


def random_cities(sizes, cities, geometries, loads, name):
    """Store the error of the mean response in random grid cities with one unit per site, by size, city, load, geometry.

    The table has a column ``units`` if there are several sizes.
    """
    path = FOLDER / f"approximation_error_{name}.csv.gz"
    done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["geometry", "load", "seed"])
    of = done["units"] if len(sizes) > 1 and len(done) else [sizes[0]] * len(done)
    keys = set(zip(of, done["geometry"], done["load"], done["seed"], strict=True))
    wanted = [(units, g, load, seed) for units in sizes for seed in range(cities) for g in geometries for load in loads]
    for units, geometry, load, seed in tqdm([key for key in wanted if key not in keys]):
        city = eo.datasets.grid_city(n_sites=units, units=units, load=load, geometry=geometry, rng=seed)
        sites = np.arange(units)
        approximate = approximate_hypercube(city, sites)
        exact = exact_hypercube(city, sites) if units <= MOST_EXACT else simulate(city, sites, calls=CALLS, rng=seed)
        row = {"units": units} if len(sizes) > 1 else {}
        row |= {
            "geometry": geometry,
            "load": load,
            "seed": seed,
            "exact_min": round(exact.mean_response, 6),
            "approximate_min": round(approximate.mean_response, 6),
            "utilization_error": round(np.abs(exact.utilizations - approximate.utilizations).max(), 6),
        }
        if max(sizes) > MOST_EXACT:
            low, high = exact.intervals["mean_response"] if units > MOST_EXACT else (0, 0)
            row["half_width_min"] = round((high - low) / 2, 6)
        pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False)


def unequal_units(cities=20):
    """Print the largest errors by the ratio of the longest to the shortest mean service time of the units.

    Fleets of 2 to 9 units, loads of 0.05 to 10 (queue: to 0.95), every unit at a site of its own or all at few sites.
    """
    rng, rows = np.random.default_rng(0), []
    for seed, units, ratio, colocated in product(
        range(cities), (2, 3, 5, 8, 9), (1, 1.5, 2, 3, 5, 10, 40), (False, True)
    ):
        n_sites = max(2, units // 2) if colocated else units
        sites = np.sort(np.r_[np.arange(n_sites), rng.integers(n_sites, size=units - n_sites)])
        minutes = 30 * np.exp(rng.uniform(0, np.log(ratio), n_sites))
        minutes[rng.choice(n_sites, 2, replace=False)] = 30, 30 * ratio
        city = eo.datasets.grid_city(n_sites, units, rng=seed, size=6).replace(service_times=minutes)
        served = 60 * (1 / minutes[sites]).sum()
        for capacity, load in product(("loss", "queue"), (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.5, 3, 10)):
            if capacity == "queue" and load > 1:
                continue
            loaded = city.scaled(load * served / city.total_rate)
            exact = exact_hypercube(loaded, sites, capacity=capacity)
            row = {"ratio": ratio, "runs": 1}
            try:
                found = approximate_hypercube(loaded, sites, capacity=capacity)
            except eo.errors.ConvergenceError:
                rows.append(row | {"not converged": 1})
                continue
            row["response, min"] = abs(found.mean_response - exact.mean_response)
            row["response, %"] = 100 * row["response, min"] / exact.mean_response
            name = "loss_probability" if capacity == "loss" else "queue_probability"
            true, modelled = getattr(exact, name), getattr(found, name)
            row[capacity] = abs(modelled - true)
            if load in (0.2, 0.5, 0.8):
                row[f"{capacity} at {load}, times"] = max(modelled / true, true / modelled)
            rows.append(row)
    table = pd.DataFrame(rows).groupby("ratio")
    summary = table.max().drop(columns=["runs", "not converged"])
    summary["not converged, %"] = 100 * table["not converged"].sum() / table["runs"].sum()
    print(summary.T.round(3).to_string())


def hundreds(cities=3, calls=2_000_000):
    """Print the errors in large fleets against a simulation: means over cities with 95 % intervals, and the largest.

    Sites and atoms lie anywhere in a square of 20 km, and units drive 60 km/h. They stand at sites drawn at random, or
    at those of the p-median.
    """
    print("units load sites    response, s: simulated, error             largest   late at 5 min, %: simulated, error")
    for units, load, best in product((100, 300), (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), (False, True)):
        rows = []
        for seed in range(cities):
            rng = np.random.default_rng(seed)
            times = eo.city.travel.plane_km(rng.uniform(0, 20, (2 * units, 2)), rng.uniform(0, 20, (10 * units, 2)))
            city = eo.City(rng.uniform(size=10 * units), times, turnout_times=1.75, service_times=30)
            city = city.with_offered_load(load, units)
            sites = rng.choice(2 * units, units, replace=False)
            if best:
                sites = eo.evaluators.p_median(city, units, time_limit=5).sites
            found, true = approximate_hypercube(city, sites), simulate(city, sites, calls=calls, rng=seed)
            low, high = true.intervals["mean_response"]
            few, many = true.late_interval(5.0)
            response = 60 * true.mean_response, 60 * (found.mean_response - true.mean_response), 30 * (high - low)
            late = (100 * x for x in (true.late_fraction(5.0), found.late_fraction(5.0), (many - few) / 2))
            rows.append([*response, *late])
        response, error, width, late, modelled, late_width = np.mean(rows, axis=0)
        largest = max((row[1] for row in rows), key=abs)
        place, few = "p-median" if best else "random", np.sqrt(cities)
        row = f"{units:5} {load:4} {place:8} {response:6.1f} {error:+6.1f} ± {width / few:.2f}"
        row += f" ({100 * error / response:+.1f} %) {largest:+8.1f} s"
        print(f"{row} {late:10.2f} {modelled - late:+6.2f} ± {late_width / few:.2f}", flush=True)


def st_paul():
    """Store a summary of the error over all deployments of embedded St. Paul, one row per load."""
    rows = []
    for load in tqdm([0.1, 0.225, 0.5, 0.8]):
        city = eo.datasets.load_st_paul().with_offered_load(load, 9)
        everything = evaluate_all(city, 9, "approximate")
        exact = values(city, everything.sites, None, "exact")
        error = everything.values - exact
        rows.append(
            {
                "load": load,
                "deployments": len(error),
                "mean_abs_error": np.abs(error).mean(),
                "median_error": np.median(error),
                "largest_abs_error": np.abs(error).max(),
                "share_too_low": (error < 0).mean(),
                "spearman": spearmanr(exact, everything.values).statistic,
                "exact_optimum": exact.min(),
                "exact_value_of_approximate_optimum": exact[everything.values.argmin()],
            }
        )
    pd.DataFrame(rows).round(6).to_csv(FOLDER / "approximation_error_st_paul.csv", index=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=15)
    parser.add_argument("--cities", type=int, default=100)
    parser.add_argument("--geometries", nargs="+", choices=GEOMETRIES, default=GEOMETRIES)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--unequal", action="store_true")
    parser.add_argument("--hundreds", action="store_true")
    options = parser.parse_args()
    if options.hundreds:
        hundreds()
        return
    if options.unequal:
        warnings.simplefilter("ignore", eo.errors.AccuracyWarning)
        unequal_units()
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.light:
        random_cities((15, 20, 30), 4, GEOMETRIES, LIGHT, "light")
        return
    random_cities((options.units,), options.cities, options.geometries, LOADS, options.units)
    if options.units == 15:
        st_paul()


if __name__ == "__main__":
    main()
