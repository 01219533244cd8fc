"""Does `planning.compare` state probabilities that come true? A thousand logs of St. Paul with known truth.

    python benchmarks/comparison_study.py

Each log is drawn from the embedded city: Poisson calls at the atoms, answered by the free unit that is closest by road,
for two, four or eight weeks, with turnouts and drives that vary, exponential service, stamps to the minute, and one
wrong stamp in a hundred calls. `calibrate` sees straight lines instead of roads. Two deployments are compared:

======== ==========================================================================================================
random   a random deployment within 15 % of the optimum drove, and is compared with a random one whose true mean
         response differs by at most 4 %
chosen   the same drove, and is compared with the best deployment by the log itself that moves one unit: a choice by
         the data that the comparison uses
======== ==========================================================================================================

The table "comparison" has one row per log: true difference, its mean, 90 % interval and the probability of being better
as stated, with 200 draws and the exact evaluator. `_studies.py` says where results go. One core takes about 25 minutes.
"""

from functools import cache

import _studies
import numpy as np
import pandas as pd

import emsopt as eo

UNITS, DRAWS = 9, 200
WITHIN, CLOSE = 1.15, 0.04  # of the optimum; of the other deployment's mean response
WEEKS = (2, 4, 8)
TURNOUT_CV, TRAVEL_CV, WRONG = 0.4, 0.35, 0.01
RULES = {"random": 1000, "chosen": 100}


@cache
def truth():
    """Return the city, all its deployments and their mean responses."""
    city = eo.datasets.load_st_paul()
    found = eo.evaluators.evaluate_all(city, UNITS, evaluator="approximate")
    return city, found.sites, found.mean_response


def pair(rng):
    """Draw two deployments that are close to each other and to the optimum."""
    _, sites, values = truth()
    first = rng.choice(np.flatnonzero(values <= WITHIN * values.min()))
    close = np.flatnonzero(np.abs(values - values[first]) <= CLOSE * values[first])
    second = rng.choice(close[close != first])
    return sites[first], sites[second]


def draw_log(city, sites, weeks, rng):
    """Draw the log of a deployment, as a table for `read_calls`."""
    n = rng.poisson(city.total_rate * 24 * 7 * weeks)
    called = np.sort(rng.uniform(0, weeks * 7 * 1440, n))
    atom = rng.choice(city.n_atoms, n, p=city.demand_shares)
    order = np.argsort(city.response_times[sites], axis=0, kind="stable")
    free, unit, service = np.zeros(len(sites)), np.full(n, -1), rng.exponential(1, n)
    for k in range(n):
        ready = order[:, atom[k]][free[order[:, atom[k]]] <= called[k]]
        if len(ready):
            unit[k] = ready[0]
            free[unit[k]] = called[k] + service[k] * city.service_times[sites[unit[k]], atom[k]]
    answered = unit >= 0
    called, atom, unit, service = called[answered], atom[answered], unit[answered], service[answered]
    site, spread = sites[unit], np.sqrt(np.log1p(TRAVEL_CV**2))
    left = called + city.turnout_times[site] * rng.gamma(TURNOUT_CV**-2, TURNOUT_CV**2, len(site))
    arrived = left + city.travel_times[site, atom] * rng.lognormal(-(spread**2) / 2, spread, len(site))
    cleared = np.maximum(called + service * city.service_times[site, atom], arrived)
    wrong = rng.random(len(site)) < WRONG
    arrived[wrong] = left[wrong] + rng.uniform(0, 60, wrong.sum())
    stamps = {
        "time": called - rng.exponential(1, len(site)),
        "dispatched": called,
        "en_route": left,
        "on_scene": arrived,
        "cleared": cleared,
    }
    start = np.datetime64("2024-01-01", "m")
    columns = {name: start + np.floor(minutes).astype("timedelta64[m]") for name, minutes in stamps.items()}
    lon, lat = city.atom_locations[atom].T
    names = {"unit": [f"U{k}" for k in unit], "station": np.array(city.site_names)[site]}
    return pd.DataFrame(columns | {"lon": lon, "lat": lat} | names)


def compare(rule, log, draws):
    """Task: draw a log, compare two deployments by it, and return truth and statement."""
    rng = np.random.default_rng(eo.study.seed_of({"log": log}))
    city, weeks = truth()[0], WEEKS[log % len(WEEKS)]
    first, second = pair(rng)
    calls = eo.calls.read_calls(draw_log(city, first, weeks, rng))
    lon, lat = city.site_locations.T
    fit = eo.calls.calibrate(calls, pd.DataFrame({"name": city.site_names, "lon": lon, "lat": lat}))
    if rule == "chosen":
        estimate = fit.city()
        moves = eo.DeploymentSpace(city, UNITS).neighbours(first)
        second = moves[eo.Objective(estimate, UNITS, "approximate").values(moves).argmin()]
    answer = eo.planning.compare(fit, {"today": first, "proposed": second}, draws=draws, rng=log)
    exact = [eo.evaluators.exact_hypercube(city, sites).mean_response for sites in (first, second)]
    stated = answer.difference._asdict() | {"probability_better": answer.probability_better}
    more = {"more_weeks": answer.more_weeks, "unlimited_sd": np.sqrt(answer.variances["unlimited"])}
    return {"weeks": weeks, "calls": len(calls), "truth": exact[1] - exact[0], **stated, **more}


def summary(table):
    """Return coverage of the intervals and how often stated probabilities came true, one row per rule."""
    rows = {}
    for rule, part in table.groupby("rule", sort=False):
        inside = (part["low"] <= part["truth"]) & (part["truth"] <= part["high"])
        sure = np.maximum(part["probability_better"], 1 - part["probability_better"])
        right = (part["probability_better"] > 0.5) == (part["truth"] < 0)
        row = {"logs": len(part), "coverage": inside.mean()}
        for low, high in ((0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01)):
            chosen = (sure >= low) & (sure < high)
            row |= {f"{low:g} to {min(high, 1):g}": f"{right[chosen].mean():.3f} of {chosen.sum()}"}
        rows[rule] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def main():
    parser = _studies.parser(__doc__)
    parser.add_argument("--rule", choices=list(RULES), nargs="+", default=list(RULES))
    options = parser.parse_args()
    runs = {rule: options.runs or (2 if options.smoke else RULES[rule]) for rule in options.rule}
    cases = [{"rule": rule, "log": k, "draws": DRAWS} for rule, n in runs.items() for k in range(n)]
    table = _studies.run(compare, cases, "comparison", options).drop(columns="draws").round(6)
    file = _studies.table_file("comparison", options, ".csv.gz")
    table.to_csv(file, index=False, compression={"method": "gzip", "mtime": 0})
    print(f"{len(table)} rows in {file}\n{summary(table).to_string()}")


if __name__ == "__main__":
    import comparison_study  # by its name, as worker processes import it

    comparison_study.main()
