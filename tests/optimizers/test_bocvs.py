"""Learners of control problems: bounds against direct averages, Algorithm 1, budgets, resuming, bad input."""

import json
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from _known_model import Hyperparameters, KnownModel
from differences import slopes_of
from refusals import refused

import emsopt as eo
from emsopt.optimizers import bocvs
from emsopt.optimizers.control.learners import LEARNERS, UCBCVS, UnknownCost
from emsopt.optimizers.control.model import ControlModel, PosteriorSample
from emsopt.optimizers.control.search import NODES, with_regret
from emsopt.problems import ControlProblem, Play, Problem, TruncatedNormal, Uniform
from emsopt.surrogates.kernels import SquaredExponential

SETS = [[0], [1, 2], [0, 1], [0, 1, 2]]
KNOWN = Hyperparameters([0.4, 0.5, 0.7], amplitude=1.0, noise_variance=1e-4)


def random_problem(seed, costs=(0.05, 0.1, 0.2, 0.5), marginals=None):
    """Return a problem whose objective is a draw from the process that `KNOWN` describes (by random waves)."""
    rng = np.random.default_rng(seed)
    waves = rng.standard_normal((800, 3)) / KNOWN.lengthscales
    phases, weights = rng.uniform(0, 2 * np.pi, 800), rng.standard_normal(800) * np.sqrt(2 / 800)
    function = lambda u: np.cos(u @ waves.T + phases) @ weights
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 13)] * 3), axis=-1).reshape(-1, 3)
    best = grid[np.argmax(function(grid))]
    f = Problem("draw", function, [(0, 1)] * 3, "max", float(function(best[None])[0]), best)
    marginals = TruncatedNormal(0.04) if marginals is None else marginals
    return ControlProblem(f, SETS, costs, marginals, noise_sd=0.01, worst=float(function(grid).min()) - 0.2)


def told(problem, n, seed=0, model=ControlModel):
    """Return a model that was told n random plays."""
    model, rng = model(problem, np.random.default_rng(seed)), np.random.default_rng(seed + 1)
    for point in rng.random((n, problem.dimension)):
        model.tell(point, problem.objective(point) + 0.01 * rng.standard_normal())
    return model


def informed(learner):
    """Let a learner know the hyperparameters."""
    learner.model = KnownModel(learner.problem, learner.rng, KNOWN)
    return learner


@pytest.mark.parametrize(("i", "kind"), [(0, "upper"), (0, "mean"), (1, "lower"), (2, "upper"), (3, "lower")])
def test_expected_bounds_equal_direct_averages_and_their_slopes_differences(kind, i):
    """Rough ones have the root of the mean variance: by Jensen's inequality no nearer to the mean than E[u] is."""
    problem = random_problem(1)
    model, controlled = told(problem, 25), list(problem.control_sets[i])
    assert type(model.process.kernel) is SquaredExponential
    assert len(model.process.kernel.length_scale) == 3
    bound, x = model.expected_bound(i, kind), np.random.default_rng(2).random((3, len(controlled)))
    weight = {"upper": 2, "mean": 0, "lower": -2}[kind]
    values, approximate = (function(x)[0] for function in (bound, bound.approximate))
    for k, row in enumerate(x):
        points = problem.nodes(64).copy()
        points[:, controlled] = row
        mean, variance = model.expected_bound(i, "mean")(row[None])[0][0], model.process.predict(points, model.prior)[1]
        assert values[k] == pytest.approx(mean + weight * np.sqrt(variance).mean(), abs=1e-7)
        assert approximate[k] == pytest.approx(mean + weight * np.sqrt(variance.mean()), abs=1e-7)
    assert (np.sign(weight) * (approximate - values) >= -1e-9).all()
    if i == 3:  # nothing is left to chance
        np.testing.assert_allclose(approximate, values, atol=1e-9)
    for function in (bound, bound.approximate):
        numeric = slopes_of(lambda x, function=function: function(x)[0], x, 1e-5)
        np.testing.assert_allclose(function(x)[1], numeric, rtol=1e-3, atol=1e-4)


def test_searches_find_the_best_of_a_grid():
    problem = random_problem(3)
    model, axis = told(problem, 30), np.linspace(0, 1, 41)
    grids = axis[:, None], np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    best_of_grid = lambda bound, i, x: bound(x[None])[0][0] >= bound(grids[i])[0].max() - 0.01
    for i, kind in ((0, "upper"), (0, "lower"), (1, "upper"), (1, "lower")):
        bound, (value, x) = model.expected_bound(i, kind), model.best_bound(i, kind)
        assert value == pytest.approx(bound(x[None])[0][0])
        assert best_of_grid(bound, i, x)
    learner, rng, cases = informed(UnknownCost(problem, rng=0, budget=2.0)), np.random.default_rng(0), set()
    for _ in range(20):
        i, x = learner.ask()
        if i < 2 and learner.plays:
            assert best_of_grid(learner.model.expected_bound(i, "upper"), i, x)
            cases.add((learner.phase, len(x)))
        learner.tell(i, x, problem.play(i, x, rng=rng))
    assert cases == {("explore", 2), ("exploit", 2)}


def test_posterior_samples_have_the_posteriors_moments():
    model = told(random_problem(5), 8, model=partial(KnownModel, known=KNOWN))
    point = np.array([[0.3, 0.8, 0.1]])
    draws = np.array([PosteriorSample(model).expectation(3)(point)[0][0] for _ in range(400)])
    mean, variance = (v[0] for v in model.process.predict(point, model.prior))
    assert draws.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / 400))
    assert draws.var() == pytest.approx(variance, rel=0.35)


def test_bounds_start_anew_where_hyperparameters_are_estimated_again():
    """Bounds of other hyperparameters are no bounds: after a fit (ever more rarely) only the set in turn has one."""
    assert 8 < told(random_problem(8), 40).fits < 20
    problem, rng = eo.problems.hill_control(), np.random.default_rng(1)
    learner, anew, fits = UnknownCost(problem, budget=60, rng=0), 0, 1
    for _ in range(14):
        i, x = learner.ask()
        if learner.model.fits > fits:
            assert np.flatnonzero(np.isfinite(learner.upper)).tolist() == [i]
            anew += 1
        fits = max(learner.model.fits, 1)
        learner.tell(i, x, problem.play(i, x, rng=rng))
    assert anew > 2


def test_alpha_is_halved_after_every_d_plays_and_costs_are_bounded_from_below(claim):
    alphas, horizons = [], set()

    def note(learner):
        if learner.phase == "exploit":
            alphas.append((len(learner.plays) - 1 - learner._explored, learner.alpha))
            radius = np.sqrt(2 * np.log(learner.horizon) / learner.counts)
            expected = np.maximum(learner.paid / learner.counts - radius, 0)
            np.testing.assert_allclose(learner.cost_bounds(), expected)
            horizons.add(learner.horizon)
        return len(learner.plays) == 45

    history = bocvs(random_problem(1), budget=8, rng=0, callback=note, regret=False).history
    assert len(alphas) > 6
    assert [alpha for _, alpha in alphas] == [0.1 * 0.5 ** (k // 3) for k, _ in alphas]
    explored = history[history["phase"] == "explore"]
    assert 0.6 * 8 - 1 < explored["cost"].sum() <= 0.6 * 8
    claim("bocvs", "Experiments, settings of the method", 100 * 0.6, 100, alphas[0][1])
    assert list(horizons) == pytest.approx([8 / explored.groupby("set")["cost"].mean().min()])


def test_costs_of_nothing_leave_a_finite_horizon():
    """A cost may be 0 by chance: T is not the budget over that."""
    learner = UnknownCost(random_problem(2), budget=20, rng=0, exploration=0.1)
    for price in (0.0, 0.5, 1.0):
        learner.tell(*learner.ask(), Play(np.zeros(3), 0.0, price))
    learner.ask()
    assert (learner.phase, learner.horizon) == ("exploit", 40)


def test_the_cheapest_good_set_is_played_once_costs_are_known_well_enough():
    """The first variable alone decides: set 0 is as good as all three, and cheap; set 1 is cheap, and bad."""
    f = Problem("first", lambda u: 1 - (u[:, 0] - 0.8) ** 2, [(0, 1)] * 3, "max", 1.0, [0.8, 0.5, 0.5])
    problem = ControlProblem(f, SETS, [0.1, 0.1, 0.5, 1.0], Uniform())
    learner = UnknownCost(problem, budget=100, rng=0, exploration=0)
    for point in np.random.default_rng(0).random((30, 3)):
        learner.model.tell(point, problem.objective(point))
    learner.counts[:], learner.paid[:] = 400, 400 * problem.costs
    i, x = learner.ask()
    assert (i, x[0], learner.feasible) == (0, pytest.approx(0.8, abs=0.05), [0, 2, 3])
    learner.counts[:], learner.paid[:] = 5, 5 * problem.costs  # every cost bound is 0: the largest bound decides
    largest = {k: learner.model.best_bound(k, "upper")[0] for k in (0, 2, 3)}
    assert learner.ask()[0] == max(largest, key=largest.get) != 0, "though set 0 has the lowest mean cost"
    assert (learner.cost_bounds() == 0).all()


@pytest.mark.parametrize("method", LEARNERS)
def test_learners_never_read_the_costs_but_the_one_that_must_know_them(method):
    known, hidden = random_problem(0), random_problem(0)
    vars(hidden).pop("costs")  # to read them is an AttributeError
    learner, rng = LEARNERS[method](hidden, rng=0, budget=4.0), np.random.default_rng(0)
    reads = pytest.raises(AttributeError, match="costs") if method == "ucb-cvs" else nullcontext()
    with reads:
        for _ in range(16):
            i, x = learner.ask()
            learner.tell(i, x, known.play(i, x, rng=rng))
        assert learner.phase != "explore"


def test_ucb_cvs_plays_the_cheapest_close_set():
    problem = random_problem(3)
    for epsilon, wanted in ((lambda t: 0.0, 3), (lambda t: 1e9, 0), (lambda t: 1e9 if t > 3 else 0.0, 0)):
        learner, rng = informed(UCBCVS(problem, budget=9, rng=0)), np.random.default_rng(1)
        learner.epsilon = epsilon
        for _ in range(4):
            i, x = learner.ask()
            learner.tell(i, x, problem.play(i, x, rng=rng))
        assert learner.ask()[0] == wanted
    assert UCBCVS.epsilon(learner, 4) == pytest.approx(np.sqrt(KNOWN.amplitude / 4))


@pytest.mark.parametrize("method", LEARNERS)
def test_budget_is_never_exceeded_and_the_seed_decides(method):
    problem = random_problem(5)
    first, again = (bocvs(problem, method, budget=1.6, rng=3, regret=False) for _ in range(2))
    assert first.spent == pytest.approx(first.history["cost"].sum())
    assert first.spent <= 1.6
    assert first.history["x"].tolist() == again.history["x"].tolist()
    assert first.message == "the next play does not fit into the budget"
    i = first.control_set
    assert first.set_name == problem.set_names[i]
    assert first.inputs == dict(zip([f"x{k + 1}" for k in problem.control_sets[i]], first.x.tolist(), strict=True))


def test_a_run_cut_off_goes_on_to_the_same_end(tmp_path):
    path, options = tmp_path / "run.jsonl", {"problem": random_problem(6), "budget": 3, "regret": False}
    whole = bocvs(**options, rng=4)
    bocvs(**options, rng=4, checkpoint=path, callback=lambda learner: len(learner.plays) == 9)
    with open(path, "ab") as file:
        file.write(b'{"play": 10, "set"')
    options["checkpoint"] = path
    resumed = bocvs(**options)
    assert resumed.history.drop(columns="seconds").equals(whole.history.drop(columns="seconds"))
    assert resumed.control_set == whole.control_set
    head, first, *others = path.read_text().splitlines()
    assert len(others) == len(whole.history) - 1
    refused("to another run: its seed is 4", bocvs, **options, rng=5)
    refused("its method is 'unknown-cost'", bocvs, **options, method="ucb-psq")
    refused(r"its (worst|numbers) is", bocvs, **options | {"problem": random_problem(7)})
    change = lambda play: path.write_text("\n".join([head, json.dumps(json.loads(first) | play), *others]) + "\n")
    change({"x": [0.123]})
    with pytest.warns(eo.errors.ResumeWarning, match="play 1 in the checkpoint .* continues with the stored steps"):
        assert bocvs(**options).history["x"][0] == (0.123,)
    for damage in ({"x": [0.1, 0.2]}, {"x": [7.0]}, {"set": 99}, {"point": [0.1]}, {"cost": -1.0}):
        change(damage)
        refused(r"line 2 of the checkpoint .* is damaged", bocvs, **options)


def test_why_a_run_ends():
    def interrupt(learner):
        if len(learner.plays) == 3:
            raise KeyboardInterrupt

    for options, plays, message in (
        ({"callback": interrupt}, 3, "interrupted"),
        ({"callback": lambda learner: len(learner.plays) == 4}, 4, "stopped by the callback"),
        ({"time_limit": 1e-9}, 1, "time limit of 1e-09 s reached"),
    ):
        run = bocvs(random_problem(7), budget=5, rng=0, regret=False, **options)
        assert (run.plays, run.message) == (plays, message)


def test_regrets_are_those_of_the_definition():
    problem = eo.problems.hill_control()
    history = bocvs(problem, "ucb-psq", budget=3, rng=1, alpha=0.2).history
    solved, costs = problem.with_set_values(), problem.costs[history["set"]]
    optimum = solved.expected(2, solved.set_points[2], NODES)
    expected = np.array([problem.expected(i, x, NODES) for i, x in zip(history["set"], history["x"], strict=True)])
    for name, wanted in (
        ("expected", expected),
        ("quality_regret", np.cumsum(0.8 * optimum - expected)),
        ("simple_regret", optimum - np.maximum.accumulate(expected)),
        ("cost_regret", np.cumsum(np.maximum(costs - problem.costs[solved.target(0.2)], 0))),
        ("weighted_regret", np.cumsum(costs * (optimum - expected))),
    ):
        np.testing.assert_allclose(history[name], wanted)
    assert (with_regret(history, problem, 0.0)["quality_regret"] > history["quality_regret"]).all()
    cheap = history.assign(set=0, x=[x[:1] for x in history["x"]])
    assert problem.costs[0] < problem.costs[solved.target(0.0)]
    assert (with_regret(cheap, problem, 0.0)["cost_regret"] == 0).all()  # what plays cost less is no gain


def test_bad_options_are_refused():
    for options, message in (
        ({"method": "best"}, "`method` must be one of 'unknown-cost', 'ucb-psq'"),
        ({"budget": 0}, "`budget` must be a number above 0"),
        ({"budget": 1e-3}, "`budget` must pay for at least one play; the first one cost"),
        ({"alpha": 1.0}, "`alpha` must be a fraction"),
        ({"exploration": 2}, "`exploration` must be a finite number .*0 .* 1"),
        ({"bta": 2}, "'unknown-cost' takes no option 'bta'. Its options are exploration, halving"),
        ({"problem": eo.problems.hartmann6()}, r"must be an emsopt\.problems\.ControlProblem; got Problem"),
    ):
        refused(message, bocvs, **{"problem": random_problem(0), "budget": 5, "rng": 0, **options})
    learner, play = UCBCVS(random_problem(0), budget=9, rng=0), Play([0.5] * 3, 1.0, 0.1)
    refused("`budget`.*inf", UnknownCost, learner.problem, budget=np.inf)
    refused("`budget`.*-1", UnknownCost, learner.problem, budget=-1)
    refused("`alpha`.*5", UnknownCost, learner.problem, budget=5, alpha=5)
    refused("There is no recommendation yet", learner.recommend)
    refused("`i` must be a whole number from 0 to 3", learner.tell, 9, [0.5], play)
    refused(r"`x` must have shape \(1,\) for set 0", learner.tell, 0, [0.5] * 2, play)
    refused("must be of 3 variables; got 2", learner.tell, 0, [0.5], Play([0.5] * 2, 1.0, 0.1))
    assert not learner.plays
