"""Rebuild the embedded St. Paul from the raw files, and fit the one parameter of its demand proxy.

    python data/build_st_paul.py            fit, print the residuals, write emsopt/data/st_paul
    python data/build_st_paul.py --dry-run  fit and print only

**Why a proxy.** The call records are not public. Calls follow people, and more so downtown, where people work; so
demand of an atom is taken as its population by the census of 2010 times exp(-beta x km to downtown).

**The fit.** beta minimises the largest difference to three published response times of the best deployment, which span
the loads at which the city is used: never busy (the p-median bound, 5.33 min), the original service rate (5.86 min at
42.17 calls a day) and the slowest one in version one's Table 3 (8.25 min at 10 a day). The other optima in the papers'
tables take no part and are printed as a check, and so is the p-median deployment at the original rate (5.92 min).
Figures at the original rate alone would give beta = 0.22 and miss the optimum under heavy load by 0.2 min.
"""

import argparse
import csv
import hashlib
import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

import emsopt as eo

HERE = Path(__file__).resolve().parent
RAW = HERE / "raw" / "st_paul"
PACKAGE = HERE.parent / "emsopt" / "data"
EMBEDDED = tuple(
    PACKAGE / name
    for name in ("st_paul", "papers", "practice", "templates", "san_jose", "monaco", "tuning", "bocvs", "auckland")
)  # not the studies
REGISTER = PACKAGE / "papers" / "claims.csv"  # grows with the tests and is checked by tests/test_claims.py
CHECKSUMS = HERE / "SHA256SUMS"

UNITS = 9
DOWNTOWN = (-93.0930, 44.9475)  # longitude, latitude
# published response times (min) of the best deployment, by calls a unit could serve in a day
FITTED = {np.inf: 5.33, eo.datasets.cities.ST_PAUL_SERVED_PER_DAY: 5.86, 10.0: 8.25}
BETA_RANGE = (0.0, 0.6)
# Fitted to St. Paul by the authors of "Optimizing Server Locations in Spatial Queues" (published with their
# code, MIT licence, (c) 2025 Yi Zhang): acceleration, cruising speed and the coefficients of the variation.
ST_PAUL_COEFFICIENTS = (1.04729917e-4, 9.98233204e-3, -7.13341809, 4.16082726, 1.39337617e-2)
METRES_PER_UNIT = 1600


def budge_median_seconds(distance, a, v):
    r"""Return the median travel time of Budge, Ingolfsson and Zerom (2010), in seconds.

    A vehicle accelerates at ``a`` until it cruises at ``v`` (any consistent unit of length):
    :math:`m(d) = 2\sqrt{d/a}` for :math:`d \le v^2/a`, else :math:`v/a + d/v`.
    """
    d = np.asarray(distance, float)
    return np.where(d <= v**2 / a, 2 * np.sqrt(d / a), v / a + d / v)


def st_paul_law(distance_km):
    r"""Return mean travel times (min) in St. Paul by road distance, by the law of Budge, Ingolfsson and Zerom (2010).

    With the median travel time :math:`m(d)` of `budge_median_seconds`, coefficient of variation
    :math:`c(d) = \sqrt{b_0(b_2+1) + b_1(b_2+1)m + b_2 m^2}/m` and lognormal spread, the mean is
    :math:`m \exp(c^2/2)`.

    Notes
    -----
    The law is valid only for distances in the range to which it was fitted. Below roughly 100 m the coefficient of
    variation is not a real number and is replaced by 0.

    References
    ----------
    Budge, S., Ingolfsson, A. and Zerom, D. (2010). Empirical analysis of ambulance travel times: the case of
    Calgary emergency medical services. Management Science 56(4), 716-723.
    """
    a, v, b0, b1, b2 = ST_PAUL_COEFFICIENTS
    m = budge_median_seconds(np.asarray(distance_km, float) * 1000 / METRES_PER_UNIT, a, v)
    spread = np.maximum(b0 * (b2 + 1) + b1 * (b2 + 1) * m + b2 * m**2, 0)  # negative below the fitted range
    squared_variation = np.divide(spread, m**2, out=np.zeros_like(m), where=m > 0)
    return m * np.exp(squared_variation / 2) / 60


def read_csv(name):
    with open(RAW / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def site_columns():
    """Return for every column X1 ... X17 of the distances its station, and its number if the station has two."""
    columns = {}
    for station in read_csv("stpaul_stations.csv"):
        listed = station["authors_columns"].split(",")
        for k, column in enumerate(listed):
            unit = f" (unit {k + 1})" if len(listed) > 1 else ""
            columns[column] = (
                f"Station {station['station']}{unit}",
                float(station["lon"]),
                float(station["lat"]),
            )
    return dict(sorted(columns.items(), key=lambda item: int(item[0][1:])))


def build(beta):
    """Return the city whose demand falls off with ``beta`` per km from downtown."""
    atoms, distances, sites = (
        read_csv("stpaul_atoms71.csv"),
        read_csv("road_distance_m_71x17.csv"),
        site_columns(),
    )
    locations = np.array([[float(atom["lon"]), float(atom["lat"])] for atom in atoms])
    population = np.array([float(atom["pop2010_6cat"]) for atom in atoms])
    demand = population * np.exp(-beta * eo.city.travel.great_circle_km([DOWNTOWN], locations)[0])
    road_km = np.array([[float(row[column]) / 1000 for row in distances] for column in sites])
    shapes = json.loads((RAW / "stpaul_voronoi_schematic.geojson").read_text(encoding="utf-8"))["features"]
    return eo.City(
        # rounded far below what is known, so that every machine writes the same digits
        arrival_rates=np.round(eo.datasets.cities.ST_PAUL_CALLS_PER_DAY / 24 * demand / demand.sum(), 12),
        travel_times=np.round(st_paul_law(road_km), 9),
        turnout_times=eo.datasets.cities.ST_PAUL_TURNOUT_MIN,
        service_times=eo.datasets.cities.ST_PAUL_SERVICE_MIN,
        atom_names=[f"Tract {atom['tract_base']}" for atom in atoms],
        site_names=[name for name, _, _ in sites.values()],
        atom_locations=locations,
        site_locations=[place for _, *place in sites.values()],
        atom_shapes=[shape["geometry"] for shape in shapes],
        name="St. Paul, demand proxy",
        notes=(
            "Demand is a proxy, not call records: population by the census of 2010 x exp(-"
            f"{beta:g} x km to downtown), with the one parameter fitted to three response times in the papers. "
            "Outlines are schematic (Voronoi cells of the atoms), not census tracts. Road distances as published by "
            "the papers' authors (MIT licence, (c) 2025 Yi Zhang)."
        ),
    )


def best_response(city, served_per_day):
    """Return the mean response of the best deployment, min; of the p-median bound if units are never busy."""
    if np.isinf(served_per_day):
        return eo.evaluators.p_median(city, UNITS).objective
    city = city.replace(service_times=24 * 60 / served_per_day)
    return eo.evaluators.evaluate_all(city, UNITS, evaluator="approximate").best.mean_response


def misfit(beta):
    """Return the largest difference to the published figures that are fitted, min."""
    city = build(beta)
    return max(abs(best_response(city, rate) - published) for rate, published in FITTED.items())


def fit():
    """Return the beta of least misfit, to the two digits that three rounded figures can bear."""
    return round(minimize_scalar(misfit, bounds=BETA_RANGE, options={"xatol": 1e-3}).x, 2)


def residuals(city):
    """Return rows of (what, published, here), min, of every optimum in Table 1 and version one's Table 3."""
    rows = [("p-median bound", FITTED[np.inf], best_response(city, np.inf))]
    upper = eo.evaluators.bounds(city, UNITS, evaluator="approximate").upper
    rows.append(("p-median deployment at mu = 42.17", 5.92, upper))
    for mu, published in eo.datasets.paper_table(3)[["mu_per_day", "optimum_min"]].to_numpy():
        rows.append((f"optimum, Table 3, mu = {mu:g}", published, best_response(city, mu)))
    for load, published in eo.datasets.paper_table(1)[["offered_load", "optimum_min"]].to_numpy():
        loaded = city.with_offered_load(load, UNITS)
        best = eo.evaluators.evaluate_all(loaded, UNITS, evaluator="approximate").best
        rows.append((f"optimum, Table 1, load = {load:g}", published, best.mean_response))
    return rows


def write_checksums():
    """List the sha256 of every raw and every package file, as ``sha256sum -c`` reads them from this folder."""
    files = sorted(path for folder in (HERE / "raw", *EMBEDDED) for path in folder.rglob("*") if path.is_file())
    files.remove(REGISTER)
    lines = []
    for path in files:
        name = path.relative_to(HERE) if path.is_relative_to(HERE) else Path("..") / path.relative_to(HERE.parent)
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name.as_posix()}\n")
    CHECKSUMS.write_text("".join(lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="fit and print, but write nothing")
    options = parser.parse_args()
    beta = fit()
    city = build(beta)
    print(f"beta = {beta:g} per km; response times in minutes\n")
    print(f"{'':38}{'published':>10}{'here':>8}{'residual':>10}")
    for what, published, here in residuals(city):
        print(f"{what:38}{published:10.2f}{here:8.3f}{here - published:+10.3f}")
    if not options.dry_run:
        print("\nwrote", city.save(PACKAGE / "st_paul"))
        write_checksums()


if __name__ == "__main__":
    main()
