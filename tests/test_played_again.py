"""Stored studies are played again: the first rounds of two replications of each method, beside their rows.

`STUDIES` says of each study how. A new study needs an entry; new methods of a stored one are found by themselves.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from papers.control_regret import gain_bound

import emsopt as eo
from emsopt._files import locate

SECONDS = {"boke_seconds", "boke_complexity", "boke_runs"}  # of one computer: there is nothing to compare
ENDS = {"boke_tuning_ends"}  # of the runs of "boke_tuning_curves", each of which grows trees for ten seconds
# One of each paper is also played with the linear algebra of other processors: `.ci/processors` selects "stored".
ROUNDED = {"location_grid", "navigation_agents", "bocvs", "boke_noise_free_curves"}


@dataclass(frozen=True)
class Study:
    """How a study is played again.

    ``play`` takes the script's module and cases, dicts of the columns that tell runs apart, and returns rows as stored.
    ``values`` are the columns to compare with their tolerances. ``at`` numbers the rows of a run, and ``until`` is the
    last one played. ``equal`` is the last row that is equal with the linear algebra of every processor
    (`.ci/processors`), by method, and "" for all others. The last row played lies in the range of all stored
    replications, give or take a tenth of its width. ``runs`` are those played, if not the first two; if ``run`` is "",
    a row sums up all. ``methods`` are all stored ones, if not told.
    """

    script: str
    play: Callable
    instances: Sequence[dict]
    values: dict[str, float]
    at: str = ""
    until: float = np.inf
    equal: dict[str, float] = field(default_factory=dict)
    method: str = "method"
    methods: tuple = ()
    run: str = "seed"
    runs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    relative: bool = False

    def values_of(self, table, case):
        """Return the values of a run by its rows' numbers; of improvements, one row per evaluation."""
        own = table[(table[list(case)] == pd.Series(case)).all(axis=1)]
        own = own.sort_values(self.at, kind="stable").set_index(self.at) if self.at else own.reset_index(drop=True)
        own = own.loc[: self.until, list(self.values)].astype(float)
        return own.reindex(range(1, self.until + 1)).ffill() if "best" in self.values and self.at else own


def task(name, **more):
    """Return a way to play: a study of a task of the script, with further arguments."""
    return lambda made, cases: eo.study.run(getattr(made, name), [{**more, **case} for case in cases])


def location(part, *instances, until=26, **options):
    """Return the entry of a part of the location study; in random cities a replication is a city of its own."""
    options = {"run": "run", "at": "evaluation", "until": until} | options
    more = {"part": part, "budget": until, **({"run": 0} if options["run"] == "seed" else {})}
    search = task("search", **more)
    whole = lambda made, cases: search(made, cases).groupby([*instances[0], "method", "run"], sort=False).tail(1)
    return Study(
        "location_study", search if options["at"] else whole, instances, **{"values": {"best": 1.1e-8}} | options
    )


def navigation(until=20, name="regret", routes=("A",), **more):
    """Return the entry of a part of the navigation study in Monaco."""
    instances = [{"network": "monaco", "route": route, **more} for route in routes]
    play = task(name, **{"lengthscale": 1.0, "horizon": until} | more)
    columns = {"cumulative_regret": 0.06, "edges_seen": 0}
    return Study("navigation_study", play, instances, columns, "round", until, method="policy", run="run")


def boke_task(name, **more):
    """Return a way to play a task of BOKE's study, whose problems have another name in the tables."""

    def play(made, cases):
        rows = task(name, **more)(made, [{"problem_name": case.pop("problem")} | case for case in map(dict, cases)])
        return rows.rename(columns={"problem_name": "problem"})

    return play


def boke(problem, until=None, noisy=False, **options):
    """Return the entry of a table of BOKE's runs: the last rows or, up to ``until``, curves that sum up 30 runs."""
    runs, total = boke_task("search", noisy=noisy, budget=until or 60), range(30 if until else 0)

    def play(made, cases):
        rows = runs(made, [case | {"seed": seed} for case in cases for seed in total] or cases)
        return (made.curves if until else made.ends)(rows.rename(columns={"problem": "problem_name"}))

    columns = dict.fromkeys(["mean", "median", "q25", "q75"] if until else ["regret"], 1e-3)
    options |= {"at": "evaluation", "until": until, "run": ""} if until else {}
    return Study("boke_study", play, [{"problem": problem}], columns, relative=True, **options)


def boke_ends(task, *instances, values=("regret",), equal=None):
    """Return the entry of a table of the last rows of BOKE's runs; ``task`` is one of the script or plays by itself."""
    play = task if callable(task) else boke_task(task, budget=60)
    values, equal = dict.fromkeys(values, 1e-3), equal or {"": NONE}
    return Study("boke_study", play, instances, values, equal=equal, relative=True)


def with_constants(made, cases):
    """Play runs with those of the reported constants that the cases name."""
    rows = []
    for case in cases:
        fits = lambda more, case=case: all(more.get(name, value) == value for name, value in case.items())
        (chosen,) = [more for method, more in made.REPORTED if method == case["method"] and fits(more)]
        rows.append(case | made.last(case["problem"], case["method"], False, 60, case["seed"], chosen))
    return pd.DataFrame(rows)


def fill(made, cases):
    """Fill the unit interval with four points, a hundred times."""
    made.FILL_AT = [4]
    table = eo.study.run(made.filled, [case | {"seed": seed} for case in cases for seed in range(made.FILL_RUNS)])
    means = table.groupby(["inputs", "design", "t"])["distance"].agg(mean="mean", q25=lambda d: d.quantile(0.25))
    return means.reset_index()


def theory(made, cases):
    """Play the first twenty steps of fifty searches of a finite set."""
    cases = [case | {"steps": 20, "seed": seed} for case in cases for seed in range(50)]
    rows = eo.study.run(made.on_finite_set, cases).groupby(["setting", "t"])
    return rows["regret"].agg(mean="mean", largest="max").assign(bound=rows["bound"].min()).reset_index()


def on_the_hill(name, instance, **options):
    """Return the entry of a study of BOCVS's theorems, with the bound on the gain for as many plays as are made."""

    def play(made, cases):
        bound = gain_bound(made.instance()[0], 20_000)
        made.gain_of_the_hill = lambda: bound
        return task(name)(made, cases)

    return Study("bocvs_theory_study", play, [instance], BOUNDS, **options)


def written(made, function, *arguments):
    """Return the table that a function of a script writes."""
    with TemporaryDirectory() as folder:
        made.FOLDER = Path(folder)
        function(*arguments)
        (file,) = made.FOLDER.iterdir()
        return pd.read_csv(file)


def random_cities(sizes, instance, **options):
    """Return the entry of the approximation's error in random cities, some of which are written to a new table."""

    def play(made, cases):
        (load,), (geometry,) = ({case[key] for case in cases} for key in ("load", "geometry"))
        return written(made, made.random_cities, sizes, 1 + max(c["seed"] for c in cases), [geometry], [load], "again")

    values = dict.fromkeys(["exact_min", "approximate_min", "utilization_error"], 1.1e-6)
    return Study("approximation_error", play, [instance], values, method="geometry", **options)


def all_deployments(made, cases):
    """Compare all deployments of St. Paul, at the first of the loads."""
    made.tqdm = lambda loads: loads[:1]
    return written(made, made.st_paul)


COSTS = dict.fromkeys(["plays", "on_target"], 0) | {"simple_regret": 5e-5, "cost_regret": 6e-4, "cost_error": 6e-5}
REGRETS = {"plays": 0, "explored": 0, "cost_regret": 6e-5, "quality_regret": 1e-3, "weighted_regret": 1e-3}
BOUNDS = {"cost_regret": 1e-3, "on_target": 1e-3, "bound_3": 1, "bound_4": 1e-3, "bound_5": 1}
STATED = {"weeks": 0, "calls": 0} | dict.fromkeys(["truth", "mean", "low", "high", "probability_better"], 1.1e-6)
NONE = -1  # not even the first row, which is the last of sixty evaluations
CHANCE = {"": NONE, "random": 0}
PLAIN = ["genetic", "random", "annealing", "local", "local+"]
SMALL, LARGE = {"n_sites": 10, "units": 5}, {"n_sites": 50, "units": 20}
HARTMANN = {"objective": "hartmann", "costs": "moderate", "variance": 0.02}
ERRORS = dict.fromkeys(["mean_abs_error", "largest_abs_error", "spearman", "exact_optimum"], 1.1e-6)
EDGES = task("exploration", lengthscale=1.0, run=0, horizon=10)
RETURNED = ("recommended", "luckiest", "best_evaluated")
SUMS = dict.fromkeys(["mean", "largest", "bound"], 1e-3)
STUDIES = {
    "location_grid": location("grid", SMALL, run="seed"),
    "location_st_paul": location(
        "st-paul",
        {"version": "embedded"},
        equal={"": 20, "sparbl": 22, "gp-pm-literal": 21} | dict.fromkeys(["gp-pm", "gp-zero", "bocs", *PLAIN], 26),
    ),
    "location_late": location("late", {"version": "embedded", "minutes": 7.0}, equal={"": 20}),
    "location_tables": location(  # whole runs
        "tables",
        *({"version": version, "table": 1, "row": 0.1} for version in ("embedded", "published")),
        until=100,
        at="",
        methods=("gp-pm", "local+"),  # after another rounding the others need more or fewer evaluations
        values={"evaluation": 0, "best": 1.1e-8},
    ),
    "location_ablation": location("ablation", LARGE, until=22, run="seed", equal={"": 21}),
    "location_layouts": location("layouts", {"layout": "hot spot", "load": 0.5}, run="seed", equal={"": 21}),
    "location_long": location("long", LARGE, until=200, run="seed"),
    "navigation_agents": navigation(),
    "navigation_shifted": navigation(10, "shifted"),
    "navigation_sparse": navigation(10),
    "navigation_printed": navigation(10, "printed"),
    "navigation_simple": navigation(10, "simple"),
    "navigation_parametrisation": navigation(10),
    "navigation_optimism": navigation(50),
    "navigation_lengthscale": navigation(50, lengthscale=0.5),
    "navigation_exploration": Study(  # edges by the round in which they were first driven; two routes, with one run each
        "navigation_study", EDGES, [{"network": "monaco"}], {"edge": 0}, "first_round", 10, method="policy", run="route"
    ),
    "bocvs": Study("bocvs_study", task("search", budget=20), [HARTMANN], COSTS, "cost", 10, {"etc-50": 5}),
    "bocvs_authors_code": Study(
        "bocvs_study", task("search_authors", budget=20), [HARTMANN], COSTS, "cost", 10, {"etc-by-index": 3}
    ),
    "bocvs_horizon": Study("bocvs_study", task("search_horizon"), [{"budget": 20}], REGRETS, method="exploration"),
    "bocvs_bounds": on_the_hill("search_plays", {"plays": 1000}, method="alpha"),
    "bocvs_exploration": on_the_hill("search_exploration", {"alpha": 0.1}, method="each", methods=(1, 100)),
    "boke_noise_free_ends": boke("six_hump_camel", equal=dict.fromkeys(["gp-ucb-fixed", "gp-ucb", "boke-auto"], NONE)),
    "boke_noisy_ends": boke("six_hump_camel", noisy=True, equal=CHANCE),
    "boke_sprinkler_ends": boke("sprinkler", equal=CHANCE),
    "boke_noise_free_curves": boke("six_hump_camel", 6),
    "boke_noisy_curves": boke("six_hump_camel", 8, noisy=True),
    "boke_sprinkler_curves": boke("sprinkler", 20, methods=("boke", "boke+", "kr-ucb", "random")),
    "boke_tuning_curves": boke("forest on wine", 2, methods=("boke",)),
    "boke_constant": boke_ends("with_constant", {"problem": "six_hump_camel", "noise_sd": 5e-4}),
    "boke_forms": boke_ends("last", {"problem": "goldstein_price as cited", "noisy": False}),
    "boke_sensitivity": boke_ends(
        with_constants,
        {"problem": "sphere6", "exploring": 0.3, "noise_sd": 0.005},
        {"problem": "sphere6", "bandwidth": 0.8},
    ),
    "boke_noise": boke_ends("returned", {"problem": "six_hump_camel", "noise_sd": 0.5}, values=RETURNED, equal=CHANCE),
    "boke_fill": Study(
        "boke_study", fill, [{"inputs": 1}], {"mean": 1e-3, "q25": 1e-3}, "t", 4, method="design", run=""
    ),
    "boke_theory": Study("boke_study", theory, [{}], SUMS, "t", 20, method="setting", run="", relative=True),
    "comparison": Study(
        "comparison_study", task("compare", draws=200), [{}], STATED, method="rule", run="log", runs={"chosen": (0,)}
    ),
    "approximation_error_15": random_cities([15], {"load": 0.2}),
    "approximation_error_20": random_cities([20], {"load": 0.2}, methods=("uniform",)),
    "approximation_error_30": random_cities([30], {"load": 0.2}),
    "approximation_error_light": random_cities([15, 20], {"units": 20, "load": 0.05}),
    "approximation_error_st_paul": Study(
        "approximation_error", all_deployments, [{}], ERRORS, method="load", methods=(0.1,), run=""
    ),
}


def rounds():
    """Return what is played: name of the study, instance and method."""
    for name, entry in STUDIES.items():
        stored = eo.datasets.load_study(name)
        for instance in entry.instances:
            there = stored[(stored[list(instance)] == pd.Series(instance)).all(axis=1)]
            for method in entry.methods or there[entry.method].unique():
                rounded = name in ROUNDED and instance is entry.instances[0]
                words = [name, *map(str, instance.values()), str(method), *["stored"] * rounded]
                yield pytest.param(name, instance, method, id="-".join(words))


@pytest.fixture(scope="module")
def made(script):
    """Return a function that loads a script once."""
    return functools.cache(lambda name: script(f"benchmarks/{name}.py"))


def test_every_study_is_here():
    """Those that only measure seconds have no other column that a method decides."""
    stored = {path.name.split(".")[0] for path in locate.package_file("studies").iterdir()}
    assert stored - SECONDS - ENDS == set(STUDIES)
    for name in SECONDS:
        keys = {"noisy", "problem", "method", "part", "t", "evaluations"}
        assert set(eo.datasets.load_study(name)) - keys <= {"cpu_seconds", "mean", "error"}


@pytest.mark.parametrize(("name", "instance", "method"), list(rounds()))
def test_first_rounds_are_those_of_the_table(made, name, instance, method):
    entry, stored = STUDIES[name], eo.datasets.load_study(name)
    one = instance | {entry.method: method}
    there = stored[(stored[list(one)] == pd.Series(one)).all(axis=1)]
    all_cases = [one | {entry.run: run} for run in there[entry.run].unique()] if entry.run else [one]
    runs = entry.runs.get(method)
    cases = all_cases[:2] if runs is None else [one | {entry.run: run} for run in runs]
    try:
        again = entry.play(made(entry.script), cases)
    except eo.study.StudyError as error:
        if "EMSOPT_DATA" in str(error):
            pytest.skip(f"needs data that are not included: {error}")
        raise
    ends = pd.DataFrame([entry.values_of(stored, case).iloc[-1] for case in all_cases])
    for case in cases:
        own, played = entry.values_of(stored, case), entry.values_of(again, case)
        played = played[played.index.isin(own.index)]  # of some studies not every row is stored
        assert len(own) == len(played) > 0
        for column, tolerance in entry.values.items():
            close = {"rtol": tolerance if entry.relative else 0, "atol": 1e-9 if entry.relative else tolerance}
            equal = own.index <= entry.equal.get(method, entry.equal.get("", np.inf))
            message = f"{case}, {column}"
            np.testing.assert_allclose(played[column][equal], own[column][equal], **close, err_msg=message)
            low, high, last = ends[column].min(), ends[column].max(), played[column].iloc[-1]
            slack = tolerance * (ends[column].abs().max() if entry.relative else 1) + 0.1 * (high - low)
            assert low - slack <= last <= high + slack, message
