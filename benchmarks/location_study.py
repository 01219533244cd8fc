"""Replicate the papers' location problems with every method: the studies that notebook 02 and the README quote.

    python benchmarks/location_study.py --part grid --backend processes

======== ==========================================================================================================
grid     Figure 3: six configurations (N, p), 10 random cities each (city and run share the seed), 120 evaluations
st-paul  St. Paul, 10 runs of 100 evaluations (SparBL 40; with a binary for each listed site 20)
layouts  random cities of (30, 15) by layout of demand and load, 10 cities each, 120 evaluations
tables   ten loads of Table 1, thirteen service rates of Table 3; 5 runs each, until the optimum or 100 evaluations
late     St. Paul, share of calls answered later than 7, 8, 9 min; 10 runs each, until the optimum or 100 evaluations
ablation the cities of ``grid`` with (50, 20): GP-pM with each of its repairs alone and without each; 120 evaluations
long     the cities of ``grid`` with (50, 20), by searches that learn no model; 5,000 evaluations
======== ==========================================================================================================

Sizes are the papers'. All values are those of the approximate evaluator. ``_studies.py`` says where the results go; the
tables are "location_grid", "location_st_paul" and so on. A new table replaces the stored runs that it repeats and keeps
the others, so that ``--methods sparbl`` is enough after a change to SparBL. Stored best known values take no search.
With ``--published`` the St. Paul parts are also run on the demand that the papers' authors published (``EMSOPT_DATA``).
In parts with random cities ``--runs`` counts cities.

Part layouts takes the cities of ``grid`` with (30, 15), seeds 0 to 9, at loads of 0.2, 0.5 and 0.8 per unit. "even" has
the demand of `grid_city`; "hot spot" multiplies it by exp(-distance to the centre / 1.5 km), "two towns" by the sum of
two such terms, for towns at (2.5, 2.5) and (7.5, 7.5) km. A turnout of 0 needs no runs: turnout is the same at all
sites, so it adds the same to every value, and methods ask for the same deployments up to rounding. Its gaps in percent
follow from the stored values minus 1.75 min. Cut were the other five sizes and independent travel times.

A name that ends with ", 17 sites" has a binary for each listed site of St. Paul, as the papers' x, so that stations
listed twice are not merged. "gp-zero-literal" leaves out our repairs. "printed cut" is Algorithm 1 with its graph as
printed (`PrintedCut`). "sparbl, Algorithm 1", which ``--methods`` can name and which is not stored, has the mended
graph, our multiplier and a final polish.

Each run is stored as the evaluations at which its best value improved, and its last one. ``best_known`` is the proven
optimum where there are at most a million deployments, otherwise the best of a long local search and of all runs;
``p_median`` is the value of the p-median deployment, which needs no evaluation. ``cpu_seconds`` is the time the
optimizer took until then, without evaluations.
"""

import time
from functools import cache, partial

import _studies
import numpy as np
import pandas as pd

import emsopt as eo
from emsopt.optimizers.deployments.binary_quadratic import _repair, minimum_cut
from emsopt.optimizers.deployments.gp_pm import REPAIRS, GPpM, GPzero
from emsopt.optimizers.deployments.sparbl import SparBL
from emsopt.optimizers.deployments.swaps import MAX_ENUMERATED, best_deployment, local_search

AVERAGED = "sparbl, 10 draws"
LISTED = ", 17 sites"  # a binary for each listed site, as in the paper: stations listed twice are not merged
PRINTED = [
    f"sparbl{LISTED}",
    f"sparbl, printed cut{LISTED}",
    f"gp-pm-literal{LISTED}",
    "gp-zero-literal",
    f"gp-zero-literal{LISTED}",
]
MODELS = ["gp-pm", "gp-pm-literal", "gp-zero", "sparbl", "sparbl+", "bocs"]
METHODS = [*MODELS, "genetic", "random", "annealing", "local", "local+"]
PAPERS = ["gp-pm", "gp-pm-literal", "sparbl", AVERAGED]
PLAIN = ["local", "annealing", "genetic", "local+"]
VARIANTS = [f"{name} {repair}" for name in ("literal +", "gp-pm -") for repair in sorted(REPAIRS)]
CONFIGURATIONS = {
    "grid": [(10, 5), (20, 10), (30, 5), (30, 15), (50, 20), (50, 30)],
    "ablation": [(50, 20)],
    "long": [(50, 20)],
}
LAYOUTS = {"even": [], "hot spot": [(5.0, 5.0)], "two towns": [(2.5, 2.5), (7.5, 7.5)]}  # km
LOADS, FALL_KM = [0.2, 0.5, 0.8], 1.5
RANDOM_CITIES = (*CONFIGURATIONS, "layouts")
COMPARED = {
    "grid": METHODS,
    "st-paul": [*METHODS, AVERAGED, *PRINTED],
    "layouts": ["gp-pm", "sparbl", "genetic"],
    "tables": [*PAPERS, "local+"],
    "late": [*PAPERS, "literal + scale", "local+"],
    "ablation": ["gp-pm-literal", "gp-pm", *VARIANTS],
    "long": PLAIN,
}
BUDGET = {"grid": 120, "st-paul": 100, "layouts": 120, "tables": 100, "late": 100, "ablation": 120, "long": 5000}
RUNS = {"grid": 10, "st-paul": 10, "layouts": 10, "tables": 5, "late": 10, "ablation": 10, "long": 10}
MORE_RUNS = {("st-paul", "sparbl"): 40, ("st-paul", f"sparbl{LISTED}"): 20}  # a median of ten runs is too uncertain
RESTARTS = 24  # of the long local search
TOLERANCE = 1e-9  # in value, for the optimum to count as found
DIGITS = {"best": 8, "best_known": 8, "p_median": 8, "cpu_seconds": 4}
MEASURED = ["evaluation", *DIGITS]  # all other columns tell runs apart


class Ablated(GPpM):
    """GP-pM with the repairs that the name of a variant leaves: "literal + climbs", "gp-pm - climbs"."""

    def __init__(self, objective, variant, rng):
        base, _, repair = variant.partition(" ")
        repairs = REPAIRS if base == "gp-pm" else frozenset()
        repairs = repairs ^ ({repair[2:]} if repair else set())
        super().__init__(objective, rng=rng, literal="climbs" not in repairs)
        self._repairs = repairs


class PrintedCut(SparBL):
    """SparBL with Algorithm 1 as printed: the capacities of its graph lack the terms Σ_j A⁻_ij.

    The cut seldom has p places, and a minimum cut of exactly p places is NP-complete (Chen et al. 2016, whom the paper
    cites for it). So places are added or removed greedily until there are p, which is ours, as are STEP and STEPS.
    """

    STEP, STEPS, SETTLED = 0.1, 30, 1e-6

    def _minimize_model(self, coef):
        A, b = self._quadratic_terms(coef)
        plus, minus, gamma = np.maximum(A, 0), np.minimum(A, 0), np.ones_like(A)
        for _ in range(self.STEPS):
            linear = b + 2 * (plus * gamma).sum(axis=1)
            x = minimum_cut(minus, linear - minus.sum(axis=1))[0]  # `minimum_cut` adds the terms taken off here
            slope = plus * (x[:, None] + x - 1)
            loss = x @ plus @ x - (gamma * slope).sum()
            before, gamma = gamma, np.clip(gamma + 2 * self.STEP * loss * slope, 0, 1)
            if np.linalg.norm(gamma - before) < self.SETTLED:
                break
        return self.space.deployment(_repair(A, b, x, self.space.units))


class Averaged(SparBL):
    """SparBL that minimises the mean of ten draws."""

    draws = 10


class Relaxed(SparBL):
    """SparBL that minimises its draws by Algorithm 1."""

    method = "relaxation"


BUILT = {
    AVERAGED: Averaged,
    "sparbl, Algorithm 1": Relaxed,
    "sparbl, printed cut": PrintedCut,
    "gp-zero-literal": partial(GPzero, literal=True),
}


class Timed(eo.Objective):
    """An objective that counts the CPU seconds of its evaluations."""

    seconds = 0.0

    def __call__(self, sites):
        """Return the value, and count the time."""
        start = time.thread_time()
        value = super().__call__(sites)
        self.seconds += time.thread_time() - start
        return value


def city_of(layout, load, seed):
    """Return a random city of part layouts."""
    city = eo.datasets.grid_city(30, 15, load, rng=seed)
    away = [np.linalg.norm(city.atom_locations - town, axis=1) for town in LAYOUTS[layout]]
    weights = sum(np.exp(-km / FALL_KM) for km in away) if away else 1
    return city.replace(arrival_rates=city.arrival_rates * weights).with_offered_load(load, 15)


def problem(part, **instance):
    """Return the objective of an instance."""
    if part in CONFIGURATIONS:
        N, p = instance["n_sites"], instance["units"]
        return Timed(eo.datasets.grid_city(N, p, 0.5, rng=instance["seed"]), p, "approximate")
    if part == "layouts":
        return Timed(city_of(**instance), 15, "approximate")
    city, units, metric = eo.datasets.load_st_paul(instance["version"]), 9, "mean_response"
    if part == "late":
        metric = ("late", instance["minutes"])
    elif part == "tables" and instance["table"] == 1:
        city = city.with_offered_load(instance["row"], units)
    elif part == "tables":
        city = city.replace(service_times=24 * 60 / instance["row"])
    return Timed(city, units, "approximate", metric)


@cache
def optimum(part, **instance):
    objective = problem(part, **instance)
    if objective.space.count <= MAX_ENUMERATED["approximate"]:
        return best_deployment(objective, rng=0).fun
    return local_search(objective, restarts=RESTARTS, rng=0).fun


def best_known(part, **instance):
    """Task: the best known value of an instance, and that of its p-median deployment."""
    objective = problem(part, **instance)
    median = eo.evaluators.p_median(objective.city, objective.units).sites
    return {"best_known": optimum(part, **instance), "p_median": objective(median)}


@cache
def warm(method):
    """Load what a method has compiled, which is no part of its time."""
    eo.minimize(problem("grid", n_sites=8, units=3, seed=0), method, budget=24, rng=0)


def search(part, method, budget, run, **instance):
    """Task: one run of a method; one row per improvement, and one for the last evaluation."""
    objective, clock = problem(part, **instance), []
    target = optimum(part, **instance) + TOLERANCE if part in ("tables", "late") else None
    paired = {} if part == "ablation" else {"method": method}  # variants begin with the same random deployments
    seed = eo.study.seed_of({"part": part, "run": run, **paired, **instance})
    if method.endswith(LISTED):  # turnout times that differ by nothing that matters
        city = objective.city.replace(turnout_times=objective.city.turnout_times + 1e-9 * np.arange(17))
        objective, method = Timed(city, 9, "approximate"), method.removesuffix(LISTED)
    if method in BUILT:
        method = BUILT[method](objective, rng=seed)
    if part == "ablation" or (isinstance(method, str) and method in VARIANTS):
        method = Ablated(objective, method, seed)
    if isinstance(method, str):
        warm(method)
    start = time.thread_time()

    def note(_):
        clock.append(time.thread_time() - start - objective.seconds)

    result = eo.minimize(objective, method, budget=budget, rng=seed, callback=note, target=target)
    history = result.history.assign(cpu_seconds=clock)
    keep = history["best"].diff().fillna(-1) < 0
    keep.iloc[-1] = True
    return history.loc[keep, ["evaluation", "best", "cpu_seconds"]]


def instances(part, options):
    """Return the problems of a part and the number of runs of each; a random city is run once, with its own seed."""
    versions = ["embedded", "published"] if options.published else ["embedded"]
    runs = options.runs or (1 if options.smoke else RUNS[part])
    if part in CONFIGURATIONS:
        sizes = CONFIGURATIONS[part][: 2 if options.smoke else None]
        return [{"n_sites": N, "units": p, "seed": seed} for N, p in sizes for seed in range(runs)], 1
    if part == "layouts":
        layouts, loads = ([*LAYOUTS][:1], LOADS[:1]) if options.smoke else ([*LAYOUTS], LOADS)
        return eo.study.cases(seed=range(runs), layout=layouts, load=loads), 1  # a city after the other
    if part == "st-paul":
        return eo.study.cases(version=versions), runs
    if part == "late":
        return eo.study.cases(version=versions, minutes=[7.0, 8.0, 9.0][: 1 if options.smoke else 3]), runs
    loads, rates = eo.datasets.paper_table(1)["offered_load"], eo.datasets.paper_table(3)["mu_per_day"]
    rows = [(1, float(load)) for load in loads] + [(3, float(rate)) for rate in rates]
    rows = [rows[0], rows[-1]] if options.smoke else rows
    return [{"version": v, "table": table, "row": row} for v in versions for table, row in rows], runs


def known_values(part, name, problems, options, stored):
    """Return ``best_known`` and ``p_median`` of the problems; only those that are not stored take a search."""
    if part == "ablation":  # its cities are among those of the stored study
        stored = eo.datasets.load_study("location_grid")
    columns = [*problems[0], "best_known", "p_median"]
    known = pd.DataFrame(columns=columns) if stored is None else stored[columns].drop_duplicates()
    have = set(known[list(problems[0])].itertuples(index=False, name=None))
    new = [{"part": part, **case} for case in problems if tuple(case.values()) not in have]
    return pd.concat([known, _studies.run(best_known, new, f"{name}_best_known", options)[columns]]) if new else known


def results(part, name, options, stored=None):
    """Run a part and return its table; ``stored`` is the earlier one, whose best known values are used."""
    problems, runs = instances(part, options)
    methods = options.methods or COMPARED[part]
    budget = 30 if options.smoke else BUDGET[part]
    cases = [
        {"part": part, **case, "method": method, "run": run, "budget": budget}
        for case in problems
        for method in methods
        for run in range(runs if options.smoke or options.runs else MORE_RUNS.get((part, method), runs))
    ]
    known = known_values(part, name, problems, options, stored)
    table = _studies.run(search, cases, name, options)
    keys = list(problems[0])
    table = table.merge(known, on=keys, how="left", sort=False)
    table["best_known"] = table.groupby(keys)["best"].transform("min").clip(upper=table["best_known"])
    table = table.drop(columns=["part", "budget", *(["run"] if part in RANDOM_CITIES else [])])
    if part == "tables":  # 690 runs: where each ended says enough
        table = table.groupby([*keys, "method", "run"], sort=False).tail(1)
    return table


def merged(stored, table, methods):
    """Return the stored runs, those of ``table`` replaced; instances keep their order, methods take that given."""
    keys = [name for name in table if name not in MEASURED]
    problem = [name for name in keys if name not in ("method", "run")]
    place = pd.concat([stored, table])[problem].drop_duplicates().reset_index(drop=True)
    repeated = pd.MultiIndex.from_frame(stored[keys]).isin(pd.MultiIndex.from_frame(table[keys]))
    both = pd.concat([stored[~repeated], table]).merge(place.assign(place=place.index), on=problem)
    both["rank"] = both["method"].map([*methods, *table["method"]].index)
    both["best_known"] = both.groupby("place")["best_known"].transform("min")
    order = ["place", "rank", *[name for name in ["run"] if name in both], "evaluation"]
    return both.sort_values(order)[list(table)].reset_index(drop=True)


def main():
    parser = _studies.parser(__doc__)
    parser.add_argument("--part", choices=list(BUDGET), required=True)
    parser.add_argument("--methods", nargs="+", help="these only, instead of all of the part")
    parser.add_argument("--published", action="store_true", help="also on the published St. Paul")
    options = parser.parse_args()
    name = f"location_{options.part.replace('-', '_')}"
    file = _studies.table_file(name, options, ".csv.gz")
    stored = pd.read_csv(file) if file.exists() and not options.smoke else None
    table = results(options.part, name, options, stored).round(DIGITS)
    if stored is not None:
        table = merged(stored, table, COMPARED[options.part])
    table.to_csv(file, index=False, compression={"method": "gzip", "mtime": 0})
    ends = table.groupby(["method"]).tail(1).set_index("method")[["evaluation", "best", "best_known"]]
    print(f"{len(table)} rows in {file}; the last run of each method:\n{ends}")


if __name__ == "__main__":
    import location_study  # by its name, as worker processes import it

    location_study.main()
