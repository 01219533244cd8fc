"""Measure how often the table of uses trusts a table of stations that is right, and one that is damaged.

    python benchmarks/uses.py              # 200 logs with the right table and 200 with a damaged one; resumable
    python benchmarks/uses.py --smoke      # ten logs
    python benchmarks/uses.py --san-jose   # a real log with its table of stations, and with 25 damaged ones

Every log comes from its own city of 8 to 30 stations: people live in towns of different sizes, stations stand near
them, roads form a grid or not, some districts are slower than others, and some stations have two units. Logs last 2 to
8 weeks, with 1,500 to 6,000 calls and an offered load of 0.1 to 0.4 per unit. Half of them are stamped to the minute,
and half do not say which unit answered. The last third of the days tests what the others calibrate.

A damaged table lacks a third of the stations; or has all of them 2 km away, together or each in its own direction; or
has their names permuted, which matters only where the names of units tell their stations; or has their places rounded
to 0.02 degrees; or the places of the calls are rounded so. Thresholds were chosen on other logs (`TRAINING`).

San José's log of 14 days is cut three times: days 1 to 9 predict the others, 1 to 7, and 5 to 14. Its damaged tables
have every second, third or fifth station, from each start; 10 to 22 stations drawn at random, twelve times; or all of
them 2 km away in one direction, three times.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from _studies import parser, run
from synthetic_log import Truth, synthetic_log

import emsopt as eo
from emsopt.calls.back_test import calibrate_and_test

DAMAGES = ("missing", "shifted", "scattered", "rounded", "rounded calls", "permuted")
LOGS = 200
UNITS = ("numbers", "letters", "none", "none")  # how the log names units
TRAINING, REPORTED = 20_000, 30_000  # first seeds, of logs with the right table; those of the others follow after 200
SAN_JOSE, SPLITS = 40_000, ((1, 9), (1, 7), (5, 14))  # the seed of its tables, and the days that calibrate
KM = np.pi / 180 * 6371


def city(rng):
    """Draw stations, with the places where people live after them, a truth, and the size of a log."""
    n, spacing = int(rng.integers(8, 31)), np.exp(rng.uniform(np.log(2.0), np.log(5.0)))
    side, lat = spacing * np.sqrt(n), rng.uniform(-50, 50)
    towns, homes = rng.uniform(0, side, (int(rng.integers(2, 9)), 2)), []
    wide, large = rng.uniform(0.1, 0.35, len(towns)) * side, rng.dirichlet(np.ones(len(towns)))
    while len(homes) < 400:
        k = rng.choice(len(towns), p=large)
        place = rng.normal(towns[k], wide[k]) if rng.random() < 0.7 else rng.uniform(0, side, 2)
        if ((place >= 0) & (place <= side)).all():
            homes.append(place)
    homes = np.array(homes)
    sites = homes[rng.choice(len(homes), n, replace=False)]
    for _ in range(int(rng.integers(0, 4))):  # some cities place stations well, others do not
        nearest = ((homes[:, None] - sites) ** 2).sum(axis=2).argmin(axis=1)
        sites = np.array([homes[nearest == k].mean(axis=0) if (nearest == k).any() else sites[k] for k in range(n)])
    sites = sites + rng.normal(0, 0.3, sites.shape)
    degrees = np.vstack([sites, homes]) / KM / [np.cos(np.radians(lat)), 1] + [10.0, lat]
    names = [f"Station {k + 1}" for k in range(n)] + [f"home {k}" for k in range(len(homes))]
    places = pd.DataFrame({"name": names, "lon": degrees[:, 0], "lat": degrees[:, 1]})
    waves = np.sin((np.arange(24)[:, None] - rng.uniform(0, 24, 2)) * np.array([1, 2]) * np.pi / 12)
    turnout = rng.uniform(0.8, 2.0)
    truth = Truth(
        fixed_min=rng.uniform(0.5, 3),
        minutes_per_km=rng.uniform(0.9, 2.0),
        travel_cv=rng.uniform(0.15, 0.5),
        hour_factors=1 + (rng.random() < 0.7) * waves @ rng.uniform(0, 0.12, 2),
        turnout_min=turnout,
        turnout_night_min=turnout * rng.uniform(1, 1.5),
        turnout_cv=rng.uniform(0.3, 0.8),
        service_min=rng.uniform(30, 70),
        service_cv=rng.uniform(0.3, 0.6),
        wrong=rng.uniform(0, 0.03),
        resolution_s=60.0 if rng.random() < 0.5 else 1.0,
    )
    units = np.sort(np.r_[np.arange(n), rng.choice(n, n // 5 if rng.random() < 0.3 else 0, replace=False)])
    while True:
        load, days = rng.uniform(0.1, 0.4), int(rng.integers(14, 57))
        per_day = load * len(units) * 1440 / truth.service_min
        if 1500 <= per_day * days <= 6000:
            break
    return places, n, truth, units, {"calls_per_day": per_day, "days": days}, _distances(rng, side, lat)


def _distances(rng, side, lat):
    """Return drawn distances (km): along a turned grid of streets or straight, longer in some districts."""
    angle, along, waves = rng.uniform(0, np.pi), rng.choice([0.0, 1.0]), rng.uniform(0, 2 * np.pi, (3, 3))
    turn, slow = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]), rng.uniform(0, 0.12)

    def distances(stations, places):
        a, b = ((np.asarray(p) - [10.0, lat]) * KM * [np.cos(np.radians(lat)), 1] for p in (stations, places))
        apart = (a[:, None] - b) @ turn.T
        grid, straight = np.abs(apart).sum(axis=2) / 1.27, np.hypot(*np.moveaxis(apart, 2, 0))
        field = sum(np.sin(b @ [np.cos(d), np.sin(d)] * 4 / side * f + g) for d, f, g in waves / [1, 2 * np.pi, 1])
        return (along * grid + (1 - along) * straight) * (1 + slow * field)

    return distances


def drawn(seed):
    """Return a log and the right table of its stations, with the way in which the log names units."""
    rng = np.random.default_rng(seed)
    places, n, truth, units, size, distances = city(rng)
    log = synthetic_log(places, truth, deployment=units, spread_km=0.5, distances=distances, rng=rng, **size)
    named = UNITS[seed % 4]
    if named == "none":
        log = replace(log, details=log.details.drop(columns="unit"))
    elif named == "letters":
        letters = {u: f"unit {chr(97 + k // 26)}{chr(97 + k % 26)}" for k, u in enumerate(log.details["unit"].unique())}
        log = replace(log, details=log.details.assign(unit=log.details["unit"].map(letters)))
    return log, places.iloc[:n].reset_index(drop=True), named


def damaged(log, stations, damage, rng):
    """Return the log and the stations after a damage; ``damage`` is None or one of `DAMAGES`."""
    n, places, km = len(stations), stations[["lon", "lat"]].to_numpy(), KM * np.cos(np.radians(stations["lat"].mean()))
    angle = rng.uniform(0, 2 * np.pi, 1 if damage == "shifted" else n)
    if damage == "missing":
        stations = stations.iloc[np.sort(rng.choice(n, n - round(n / 3), replace=False))]
    elif damage in ("shifted", "scattered"):
        moved = places + 2.0 * np.column_stack([np.cos(angle) / km, np.sin(angle) / KM])
        stations = stations.assign(lon=moved[:, 0], lat=moved[:, 1])
    elif damage == "permuted":
        stations = stations.assign(name=rng.permutation(stations["name"].to_numpy()))
    elif damage == "rounded":
        stations = stations.assign(lon=np.round(places[:, 0] / 0.02) * 0.02, lat=np.round(places[:, 1] / 0.02) * 0.02)
        stations = stations.drop_duplicates(["lon", "lat"])
    elif damage == "rounded calls":
        log = replace(log, locations=np.round(log.locations / 0.02) * 0.02)
    return log, stations.reset_index(drop=True)


def case(seed):
    """Return the damage of a log: none for the first half of the seeds, then one kind after the other."""
    if seed % 10_000 < LOGS:
        return None
    kinds = DAMAGES if UNITS[seed % 4] == "numbers" else DAMAGES[:-1]
    return kinds[seed // 4 % len(kinds)]


def one_log(seed):
    """Return which uses of the model are granted for a log."""
    log, stations, named = drawn(seed)
    damage = case(seed)
    log, stations = damaged(log, stations, damage, np.random.default_rng([seed, 1]))
    days = np.unique(log.times.astype("datetime64[D]"))
    row = {"damage": damage or "none", "units": named, "calls": len(log), "stations": len(stations)}
    try:
        _, report = calibrate_and_test(log, stations, days[2 * len(days) // 3], draws=40)
    except eo.EmsoptError as error:
        return [row | {"moves": False, "why": f"refused: {error}"}]
    return [row | report.uses["usable"].to_dict() | {"why": report.uses.loc["moves", "why"]}]


def tables(stations):
    """Return San José's own table, its thinned ones, halves drawn at random and shifted ones, by name."""
    rng, found = np.random.default_rng(SAN_JOSE), {"own": stations}
    found |= {f"every {k}. from {j + 1}": stations.iloc[j::k] for k in (2, 3, 5) for j in range(k)}
    for k in range(12):
        n = int(rng.integers(10, 23))
        found[f"{n} drawn, {k}"] = stations.iloc[np.sort(rng.choice(len(stations), n, replace=False))]
    found |= {f"shifted, {k}": damaged(None, stations, "shifted", rng)[1] for k in range(3)}
    return {name: table.reset_index(drop=True) for name, table in found.items()}


def one_table(name, first, last):
    """Return which uses are granted if some days of January calibrate the model and the others test it."""
    log, stations = eo.datasets.san_jose_calls()
    day = (log.times.astype("datetime64[D]") - np.datetime64("2014-12-31")).astype(int)
    past = (day >= first) & (day <= last)
    row = {"table": name, "calibrated by": f"{first} to {last}", "stations": len(tables(stations)[name])}
    try:
        report = eo.calls.back_test(eo.calls.calibrate(log.where(past), tables(stations)[name]), log.where(~past))
    except eo.EmsoptError as error:
        return [row | {"moves": False, "why": f"refused: {error}"}]
    return [row | report.uses["usable"].to_dict() | {"why": report.uses.loc["moves", "why"]}]


def san_jose(options):
    """Print the uses granted with San José's own table and with damaged ones."""
    names = list(tables(eo.datasets.san_jose_calls()[1]))
    cases = [{"name": name, "first": a, "last": b} for a, b in SPLITS for name in names]
    rows = run(one_table, cases, "verdict_san_jose", options)
    own = rows["table"] == "own"
    print(rows[own].drop(columns="why").to_string(index=False))
    print(rows[~own].groupby("calibrated by")["moves"].agg(["size", "sum"]).to_string())
    print(rows[~own & rows["moves"].astype(bool)].to_string(index=False))


def main():
    described = parser(__doc__, runs=LOGS)
    described.add_argument("--san-jose", action="store_true")
    options = described.parse_args()
    if options.san_jose:
        san_jose(options)
        return
    first, runs = (TRAINING, 5) if options.smoke else (REPORTED, options.runs)
    seeds = [first + k for k in range(runs)] + [first + LOGS + k for k in range(runs)]
    rows = run(one_log, [{"seed": seed} for seed in seeds], "verdict", options)
    rows["units"] = np.where(rows["units"] == "none", "without units", "with units")
    table = rows.groupby(["damage", "units"]).agg(logs=("moves", "size"), usable=("moves", "mean")).unstack("units")
    print(table.round(3).to_string())
    by = rows.assign(damaged=rows["damage"] != "none").groupby(["damaged", "units"])["moves"].agg(["size", "mean"])
    print(by.round(3).to_string())


if __name__ == "__main__":
    main()
