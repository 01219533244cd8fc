"""Replicate BOKE and its rivals on the paper's problems: Figures 3 and 6 to 9, and the regret of Section 4.3.

    python benchmarks/boke_study.py --part noise-free                         # about 5 min CPU
    python benchmarks/boke_study.py --part noise-free --smoke                 # one minute, nothing stored

========== ========================================================================================================
noise-free Figure 6: Forrester, Goldstein-Price, camel, Hartmann 3, Rosenbrock 4, Sphere 6; others by ``--problems``
noisy      Figure 7: the same, with noise of 5 % of each function's standard deviation over its box
sprinkler  Figure 8: the spray range of the garden sprinkler, 8 inputs
tuning     Figure 9: random forest and XGBoost on wine and California housing (needs emsopt[tuning])
constant   BOKE and BOKE+ with other noise constants ς than the default, on Figures 6 (A to E), 8 and 9 (C, D)
fill       Figure 3: how well density, a Gaussian process, Latin hypercubes and uniform points fill cubes of 1, 2, 3 and
           5 inputs
forms      Sphere 6 and Goldstein-Price in the forms of the paper's source, with and without noise
sensitivity BOKE+ with other p, factors of the bandwidth and ς, and GP-UCB with other bandwidths
noise      what a run returns with noise: the problems of Figure 7, and three with noise of another size
seconds    CPU seconds of whole runs of all methods on the problems of Figures 6 to 8
theory     Theorems 4.10 and 4.13: cumulative regret on finite sets, and its bounds
========== ========================================================================================================

Each run has 60 evaluations, including the first design; there are 30 seeds. At a given seed all methods
but random search start with the same design. Constants are the defaults, which were chosen on other functions
(``benchmarks/boke_training.py``, which also says when boke-auto was changed after its first run here). ``_studies.py``
says where the results go.

Two tables are stored. "boke_noise_free_curves" (and so on for the other parts) has the mean, median and quartiles of
the simple regret (2.4) after every other evaluation. "boke_noise_free_ends" has the regret of each run after its last
evaluation. Those of the sprinkler also have the CPU seconds of the optimizer until then, without evaluations. Regret is
that of the noise-free values at the points evaluated; in tuning, where no best value is known, it is 1 - R².
"boke_fill" has the mean and quartiles of the fill distance (3.11) of 100 designs by number of points t. "boke_constant"
has the regret of each run with another ς after its last evaluation; the default was not chosen by these runs.
"boke_noise" has the noise-free regret of each run's recommended point ``run.x``, of the luckiest point
``run.best_observed`` and of the best point evaluated, which only these tables know. "boke_theory" has cumulative regret
(2.3) and the bounds on it; see `on_finite_set`.

"boke_sensitivity" has thirty seeds after five runs of each of eight training functions with five or six inputs, whose
mean is given (14 minutes; "boke_forms" takes four). One run does not tell the best constants: rounding decides among
those with factor 0.02. With six inputs BOKE's search also starts from corners: the runs of Sphere 6 were made with it,
"boke_seconds" before, and "boke_constant" has no Sphere 6.

CPU seconds are compared across methods only within the parts "sprinkler" (but boke-auto, which was run again alone) and
"seconds" ("boke_seconds": mean and standard error), where the methods take turns in one process, run in one go. Tuning
takes two and a half hours of one core, nearly all of it for growing trees; ``--problems`` runs one task at a time and
keeps the stored rows of the others.
"""

import time
from functools import cache, partial
from itertools import combinations

import _studies
import boke_training
import numpy as np
import pandas as pd
from _designs import process_design

import emsopt as eo
from emsopt.optimizers import BOX_METHODS
from emsopt.optimizers.boxes._base import to_box_objective
from emsopt.optimizers.boxes.boke import DELTA, density_design, exploration_weight, fill_distance
from emsopt.surrogates.kernel_regression import condition

FUNCTIONS = ["forrester", "goldstein_price", "six_hump_camel", "hartmann3", "rosenbrock4", "sphere6"]
METHODS = ["boke", "boke+", "boke-auto", "kr-ucb", "gp-ucb-fixed", "gp-ucb", "random"]
TUNING = ["forest on wine", "forest on california", "xgboost on wine", "xgboost on california"]
PROBLEMS = {
    "noise-free": FUNCTIONS,
    "noisy": FUNCTIONS,
    "sprinkler": ["sprinkler"],
    "tuning": TUNING,
}
RUNS = {"noise-free": 30, "noisy": 30, "sprinkler": 30, "tuning": 30, "seconds": 3}
BUDGET = 60
CONSTANTS = [5e-5, 5e-4, 5e-2]  # ς, in tuning the second alone; the default 5e-3 is in the other tables
DESIGNS, FILL_INPUTS = ["density", "process", "latin hypercube", "uniform"], [1, 2, 3, 5]
TRAINING_SEEDS = range(1100, 1105)  # not among those by which the defaults were chosen
FILL_AT, FILL_RUNS = [4, 8, 16, 32], 100
NOISE_SD = 0.1  # of the theorems' searches
FINITE = 2 * np.pi**2 / 3  # the δ with which β_t of Theorem 4.13 becomes that of Theorem 4.10
SETTINGS = ["finite", "wave, h = 0.02", "wave, h = 0.05", "wave, h = 0.1"]
NOISE = 0.05  # in standard deviations of the function on its box
FORMS = ["sphere6 as cited", "sphere6 in DiceOptim", "goldstein_price as cited"]
RIVALS = ["boke", "boke+", "gp-ucb-fixed"]
VARIANTS = [
    ("boke+", {"exploring": p, "scale": h, "noise_sd": s})
    for p in (0.3, 0.6)
    for h in (0.02, 0.05, 0.1)
    for s in (5e-4, 5e-3)
]
VARIANTS += [("gp-ucb-fixed", {"bandwidth": h}) for h in (0.3, 0.5, 0.8, 1.5)]
REPORTED = [VARIANTS[k] for k in (0, 1, 7, 9, 12, 13, 14, 15)]  # the two best of training, others, the rival's
SENSITIVE = ["sphere6", "sphere6 in DiceOptim", "sprinkler"]
NOISES = {"six_hump_camel": 0.5, "rosenbrock4": 2000.0, "hartmann3": 0.3}  # for the part "noise"


def cited(name, noise_sd):
    """Return a function in the form of Picheny, Wagner and Ginsbourger (2013) or of their R package DiceOptim.

    There Sphere 6 is (Σ 2^i x_i² - 1745) / 899 on the unit cube. In DiceOptim it is that of
    10 x - 5 + (-5, -3, -1, 1, 3, 5), turned by 22.5 degrees in each of the 15 coordinate planes, with the minimum at
    (1, 0.8, 0.6, 0.4, 0.2, 0). With uniform x this has mean 0 and standard deviation 1.
    Goldstein-Price is (log f - 8.693) / 2.427, with inputs scaled to the unit square.
    """
    if name == "goldstein_price as cited":
        plain = eo.problems.goldstein_price()
        low, high = plain.bounds.T
        values = lambda x: (np.log(plain.noise_free_value(low + (high - low) * x)) - 8.693) / 2.427
        return eo.problems.Problem(name, values, [(0, 1)] * 2, "min", (np.log(3) - 8.693) / 2.427, None, noise_sd)
    factors, turn, shift = 2.0 ** np.arange(1, 7), np.eye(6), np.array([-5.0, -3, -1, 1, 3, 5])
    if name == "sphere6 as cited":
        return eo.problems.Problem(
            name, lambda x: (x**2 @ factors - 1745) / 899, [(0, 1)] * 6, "min", -1745 / 899, None, noise_sd
        )
    for i, j in combinations(range(6), 2):
        plane = np.eye(6)
        plane[[i, j], [i, j]] = np.cos(np.pi / 8)
        plane[[i, j], [j, i]] = -np.sin(np.pi / 8), np.sin(np.pi / 8)
        turn = turn @ plane
    values = lambda x: (((10 * x - 5 + shift) @ turn) ** 2 @ factors - 1745.3796) / 899.0367
    return eo.problems.Problem(name, values, [(0, 1)] * 6, "min", -1745.3796 / 899.0367, None, noise_sd)


@cache
def problem(name, noisy):
    """Return a problem of the paper."""
    if name in TUNING:
        model, data = name.split(" on ")
        return getattr(eo.problems, f"{model}_tuning")(data)
    make = partial(cited, name) if name in FORMS else getattr(eo.problems, name)
    if not noisy:
        return make(noise_sd=0.0) if name in FORMS else make()
    f = make(noise_sd=0.0)
    low, high = f.bounds.T
    points = low + (high - low) * np.random.default_rng(0).random((100_000, f.dimension))
    return make(noise_sd=NOISE * float(f(points).std()))


@cache
def warm_up(method):
    """Make a short run, once a process, so that no other run's seconds include imports and compiling."""
    eo.minimize(eo.problems.forrester(), method, budget=8, rng=0)


def search(problem_name, method, noisy, budget, seed, **constants):
    """Task: one run of a method; one row per evaluation."""
    warm_up(method)
    f, clock = problem(problem_name, noisy), [0.0]
    spent = 0.0

    def timed(x):
        nonlocal spent
        start = time.thread_time()
        value = f(x)
        spent += time.thread_time() - start
        return value

    start = time.thread_time()

    def note(_):
        clock.append(time.thread_time() - start - spent)

    verb = eo.minimize if f.sense == "min" else eo.maximize
    # with noise the run needs the Problem, whose noise it draws itself at no cost
    goal = f if noisy else to_box_objective(timed, bounds=f.space.inputs, sense=f.sense)
    optimizer = BOX_METHODS[method](goal, rng=seed)
    vars(optimizer).update(constants)
    run = verb(goal, optimizer, budget=budget, rng=seed, callback=note)
    points = np.array(run.history["x"].tolist())
    values = f.noise_free_value(points) if noisy else run.history["value"].to_numpy()
    best = f.best_value if f.best_value is not None else 1.0
    gaps = values - best if f.sense == "min" else best - values
    rows = zip(np.minimum.accumulate(gaps), clock[1:], strict=True)
    return [
        {"evaluation": k, "regret": float(f"{gap:.6g}"), "cpu_seconds": round(seconds, 5)}
        for k, (gap, seconds) in enumerate(rows, 1)
    ]


def curves(table):
    """Return mean, median and quartiles of the regret over the seeds, and mean CPU seconds, every other evaluation."""
    table = table[table["evaluation"] % 2 == 0]
    groups = table.groupby(["problem_name", "method", "evaluation"], sort=False)
    result = groups["regret"].agg(mean="mean", median="median", **_studies.QUARTILES)
    if "cpu_seconds" in table:
        result["cpu_seconds"] = groups["cpu_seconds"].mean()
    return result.reset_index().rename(columns={"problem_name": "problem"})


def ends(table):
    """Return the last row of each run."""
    last = table.groupby(["problem_name", "method", "seed"], sort=False).tail(1)
    last = last.rename(columns={"problem_name": "problem"})
    return last.filter(["problem", "method", "seed", "regret", "cpu_seconds"]).reset_index(drop=True)


def filled(design, inputs, seed):
    """Task: the fill distance of the first t points; one row per t. A Latin hypercube is drawn anew for each t."""
    if design == "uniform":
        points = np.random.default_rng(seed).random((FILL_AT[-1], inputs))
        return [{"t": t, "distance": fill_distance(points[:t])} for t in FILL_AT]
    if design == "latin hypercube":
        box, rng = eo.problems.box.Box([(0, 1)] * inputs), np.random.default_rng(seed)
        return [{"t": t, "distance": fill_distance(box.latin_hypercube(t, rng=rng))} for t in FILL_AT]
    points = {"density": density_design, "process": process_design}[design](FILL_AT[-1], inputs, rng=seed)
    return [{"t": t, "distance": fill_distance(points[:t])} for t in FILL_AT]


def fill(options):
    """Run and store Figure 3."""
    cases = eo.study.cases(inputs=FILL_INPUTS, design=DESIGNS, seed=range(options.runs or FILL_RUNS))
    table = _studies.run(filled, cases, "boke_fill", options)
    groups = table.groupby(["inputs", "design", "t"], sort=False)["distance"]
    means = groups.agg(mean="mean", **_studies.QUARTILES)
    means.reset_index().to_csv(_studies.table_file("boke_fill", options), index=False, float_format="%.4g")


def returned(problem_name, method, noise_sd, budget, seed):
    """Task: noise-free regrets of the recommended, the luckiest and the best point of a noisy run."""
    f = problem(problem_name, True) if noise_sd is None else getattr(eo.problems, problem_name)(noise_sd=noise_sd)
    run = (eo.minimize if f.sense == "min" else eo.maximize)(f, method, budget=budget, rng=seed)
    points = {"recommended": run.x[None], "luckiest": run.best_observed[None]}
    points["best_evaluated"] = np.array(run.history["x"].tolist())
    return {name: float(f"{np.abs(f.noise_free_value(x) - f.best_value).min():.4g}") for name, x in points.items()}


def noise(options):
    """Run and store what runs with noise return."""
    cases = [
        {"problem_name": name, "method": method, "noise_sd": noise_sd, "budget": options.budget, "seed": seed}
        for seed in range(options.runs or RUNS["noisy"])
        for name, noise_sd in [*NOISES.items(), *((name, None) for name in FUNCTIONS)]
        for method in options.methods or ["boke-auto", "random"]
    ]
    table = _studies.run(returned, cases, "boke_noise", options).rename(columns={"problem_name": "problem"})
    table["noise_sd"] = table["noise_sd"].fillna({k: problem(n, True).noise_sd for k, n in table["problem"].items()})
    table = table.drop(columns="budget").sort_values(["problem", "noise_sd", "method", "seed"])
    table.to_csv(_studies.table_file("boke_noise", options), index=False, float_format="%.4g")
    print(table.groupby(["problem", "noise_sd", "method"]).median(numeric_only=True).drop(columns="seed"))


def with_constant(problem_name, method, noise_sd, budget, seed):
    """Task: the last row of a run of BOKE or BOKE+ with a given ς."""
    return search(problem_name, method, False, budget, seed, noise_sd=noise_sd)[-1]


def constant(options):
    """Run and store BOKE and BOKE+ with other noise constants."""
    names = options.problems or [*FUNCTIONS[:-1], "sprinkler", *TUNING[2:]]
    cases = [
        case
        for name in names
        for case in eo.study.cases(
            problem_name=name,
            method=["boke", "boke+"],
            noise_sd=CONSTANTS[1:2] if name in TUNING else CONSTANTS,
            budget=options.budget,
            seed=range(options.runs or RUNS["tuning" if name in TUNING else "noisy"]),
        )
    ]
    table = _studies.run(with_constant, cases, "boke_constant", options).rename(columns={"problem_name": "problem"})
    file = _studies.table_file("boke_constant", options)
    beside_stored(table[["problem", "method", "noise_sd", "seed", "regret"]], file).to_csv(
        file, index=False, float_format="%.4g"
    )


def last(problem_name, method, noisy, budget, seed, constants=None):
    """Task: the regret after the last evaluation."""
    return {"regret": search(problem_name, method, noisy, budget, seed, **(constants or {}))[-1]["regret"]}


def forms(options):
    """Run and store the functions in the forms of their source."""
    cases = eo.study.cases(
        seed=range(options.runs or RUNS["noisy"]),
        problem_name=FORMS,
        noisy=[False, True],
        method=RIVALS,
        budget=options.budget,
    )
    table = _studies.run(last, cases, "boke_forms", options).rename(columns={"problem_name": "problem"})
    table.drop(columns="budget").to_csv(_studies.table_file("boke_forms", options), index=False, float_format="%.4g")
    print(table.groupby(["problem", "noisy", "method"])["regret"].median().unstack())


def sensitivity(options):
    """Run and store other constants: on training functions, by which one would choose, and on the paper's."""
    training, rows = [case for case in boke_training.FAMILY if case[1] >= 5], []
    cases = [
        {"method": method, "options": chosen, "name": name, "inputs": d, "noise": noise, "seed": seed}
        for method, chosen in VARIANTS
        for name, d, noise in training
        for seed in TRAINING_SEEDS
    ]
    table = _studies.run(boke_training.trial, cases, "boke_sensitivity_training", options)
    for method, chosen in VARIANTS:
        same = (table["method"] == method) & (table["options"] == chosen)
        mean = np.exp(np.log(table["ratio"][same].clip(lower=boke_training.LEAST)).mean())
        rows.append({"problem": "training", "method": method, **chosen, "seed": TRAINING_SEEDS[0], "regret": mean})
    cases = [
        {
            "problem_name": name,
            "method": method,
            "noisy": False,
            "budget": options.budget,
            "seed": seed,
            "constants": chosen,
        }
        for seed in range(options.runs or RUNS["noise-free"])
        for name in SENSITIVE
        for method, chosen in REPORTED
    ]
    for row in _studies.run(last, cases, "boke_sensitivity", options).to_dict("records"):
        rows.append(
            {"problem": row["problem_name"], **row["constants"], **{k: row[k] for k in ("method", "seed", "regret")}}
        )
    table = pd.DataFrame(rows)[["problem", "method", "exploring", "scale", "noise_sd", "bandwidth", "seed", "regret"]]
    table.to_csv(_studies.table_file("boke_sensitivity", options), index=False, float_format="%.4g")
    print(
        table.groupby(["problem", "method", "exploring", "scale", "noise_sd", "bandwidth"], dropna=False)["regret"].agg(
            ["mean", "median"]
        )
    )


def visits(grid, f, h, delta, first, steps, rng):
    """Search a finite set by (3.12) as the theorems have it: values in their own unit, known ς, an Epanechnikov kernel.

    ``grid`` holds the points, shape (n, d), and ``f`` their values; ``first`` lists the points evaluated before.
    ``h`` is the bandwidth, or a function of the number of values. Returns, for each step, the point visited, regression
    and log density there before the visit, and β, each of shape (steps,).
    """
    told = list(first)
    values = [f[k] + NOISE_SD * rng.standard_normal() for k in told]
    rows = []
    for _ in range(steps):
        mean, log_density, beta = np.zeros(len(grid)), np.full(len(grid), -np.inf), 0.0
        if told:
            width = h(len(told)) if callable(h) else h
            mean, log_density = condition(grid[told], values, width, kernel="epanechnikov").predict(grid)
            beta = exploration_weight(len(told), NOISE_SD, delta)
        k = int(np.argmax(mean + np.sqrt(beta) * np.exp(-np.maximum(log_density, -200) / 2)))
        rows.append((k, mean[k], log_density[k], beta))
        told.append(k)
        values.append(f[k] + NOISE_SD * rng.standard_normal())
    return tuple(map(np.array, zip(*rows, strict=True)))


def on_finite_set(setting, steps, seed):
    """Task: cumulative regret of a search on a finite set and its bounds; one row per ten steps.

    In "finite", 12 points with random values are searched from no data, with β of Theorem 4.10 and a bandwidth below
    their distance, so that (4.28) holds. The others search 201 points with the values of the wave (3.5), from one
    value at each fifth point, with β of Theorem 4.13 and a fixed bandwidth. "bound" is (4.29) with δ = 0.1 or (4.40),
    from which (4.34) follows; "violations" counts the steps so far whose regret exceeds (4.33).
    """
    rng, t = np.random.default_rng([seed, *setting.encode()]), np.arange(1, steps + 1)
    if setting == "finite":
        f = np.random.default_rng(0).random(12)
        points, *_ = visits(np.linspace(0, 1, 12)[:, None], f, 0.01, FINITE, [], steps, rng)
        n, violations = len(f), 0 * t
        bound = np.sqrt(256 / DELTA**2 * NOISE_SD**2 * n * t * np.log(t)) + 8 / DELTA * n * np.ptp(f)
    else:
        grid, h = np.linspace(0, 1, 201)[:, None], float(setting.split()[-1])
        f = eo.problems.decaying_wave()(grid)
        modulus = ((np.abs(grid - grid[:, 0]) <= h) * np.abs(f[:, None] - f)).max()
        points, _, log_density, beta = visits(grid, f, h, DELTA, range(0, 201, 5), steps, rng)
        bound = np.sqrt(4 * t * beta * np.cumsum(np.exp(-log_density))) + 2 * t * modulus
        allowed = 2 * np.sqrt(beta) * np.exp(-log_density / 2) + 2 * modulus
        violations = np.cumsum(f.max() - f[points] > allowed)
    regret = np.cumsum(f.max() - f[points])
    rows = zip(t.tolist(), regret.tolist(), bound.tolist(), violations.tolist(), strict=True)
    return [dict(zip(("t", "regret", "bound", "violations"), row, strict=True)) for row in rows if row[0] % 10 == 0]


def theory(options):
    """Run and store the regret on finite sets and its bounds."""
    cases = eo.study.cases(setting=SETTINGS, steps=100 if options.smoke else 1000, seed=range(options.runs or 50))
    table = _studies.run(on_finite_set, cases, "boke_theory", options)
    groups = table.groupby(["setting", "t"], sort=False)
    means = groups["regret"].agg(mean="mean", largest="max", **_studies.QUARTILES)
    means = means.assign(bound=groups["bound"].min(), violations=groups["violations"].max())
    means.reset_index().to_csv(_studies.table_file("boke_theory", options), index=False, float_format="%.4g")


def spent(problem_name, method, noisy, budget, seed):
    """Task: CPU seconds of a run."""
    return {"cpu_seconds": search(problem_name, method, noisy, budget, seed)[-1]["cpu_seconds"]}


def seconds(options):
    """Run and store the CPU seconds of whole runs."""
    cases = [
        {"problem_name": name, "method": method, "noisy": noisy, "budget": options.budget, "seed": seed}
        for seed in range(options.runs or RUNS["seconds"])
        for noisy, names in ((False, [*FUNCTIONS, "sprinkler"]), (True, FUNCTIONS))
        for name in names
        for method in options.methods or METHODS
    ]
    table = _studies.run(spent, cases, "boke_seconds", options).rename(columns={"problem_name": "problem"})
    groups = table.groupby(["noisy", "problem", "method"], sort=False)["cpu_seconds"]
    means = groups.agg(mean="mean", error="sem").reset_index()
    means.to_csv(_studies.table_file("boke_seconds", options), index=False, float_format="%.4g")


def results(name, options):
    """Run a part and return all its rows."""
    names = options.problems or PROBLEMS[options.part]
    runs = options.runs or (2 if options.smoke else RUNS[options.part])
    cases = eo.study.cases(
        seed=range(runs),  # first, so that the methods take turns on a machine that is not always equally fast
        problem_name=names[:2] if options.smoke else names,
        method=options.methods or METHODS,
        noisy=options.part == "noisy",
        budget=20 if options.smoke else options.budget,
    )
    return _studies.run(search, cases, name, options)


def beside_stored(table, file):
    """Return a table with the stored rows of other problems and methods, sorted."""
    table = _studies.beside_stored(table, file, ["problem", "method"])
    rank = {name: k for k, name in enumerate([*FUNCTIONS, "sprinkler", *TUNING, *METHODS])}
    return table.sort_values(["problem", "method"], key=lambda names: names.map(rank), kind="stable")


def main():
    parser = _studies.parser(__doc__)
    further = {
        "fill": fill,
        "constant": constant,
        "forms": forms,
        "sensitivity": sensitivity,
        "noise": noise,
        "seconds": seconds,
        "theory": theory,
    }
    parser.add_argument("--part", choices=[*PROBLEMS, *further], required=True)
    parser.add_argument("--problems", nargs="+", help="these only, instead of all of the part")
    parser.add_argument("--methods", nargs="+", help="these only, instead of all")
    parser.add_argument("--budget", type=int, default=BUDGET, help="evaluations per run")
    options = parser.parse_args()
    if options.part in further:
        further[options.part](options)
        return
    name = f"boke_{options.part.replace('-', '_')}"
    table = results(name, options)
    if options.part != "sprinkler":
        table = table.drop(columns="cpu_seconds")
    for what, part in (("curves", curves(table)), ("ends", ends(table))):
        file = _studies.table_file(f"{name}_{what}", options)
        part = beside_stored(part, file)
        part.to_csv(file, index=False, float_format="%.4g")
        print(f"{len(part)} rows in {file}")
    print("Median regret after the last evaluation:")
    last = ends(table).pivot_table(index="problem", columns="method", values="regret", aggfunc="median", sort=False)
    print(last.to_string(float_format="%.4g"))


if __name__ == "__main__":
    import boke_study  # by its name, as worker processes import it

    boke_study.main()
