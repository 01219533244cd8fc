"""`minimize` and `maximize` on boxes: directions, sign, checkpoint; ask and tell; points of rare allowed regions."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from own_functions import BOX, INPUTS, METHODS, played, same
from refusals import refused

import emsopt as eo
from emsopt.optimizers import BOX_METHODS, BOKEAuto, Categorical, Integer, RandomSearch, Real
from emsopt.optimizers.boxes._base import RandomPoints, to_box_objective
from emsopt.optimizers.deployments.swaps import LocalSearchPlus
from emsopt.problems.box import Box

BUDGET = 12
VERBS = {"min": eo.minimize, "max": eo.maximize}


def settings(method, **options):
    return {"method": method, "budget": BUDGET, "rng": 0, **options}


@pytest.mark.parametrize("method", METHODS)
def test_the_sign_is_handled_once(method):
    """A function to be minimised and its negative to be maximised give the same points."""
    f = eo.problems.forrester()
    down = eo.minimize(f, **settings(method, budget=9))
    up = eo.maximize(lambda x: -f(x), bounds=f.bounds, **settings(method, budget=9))
    np.testing.assert_allclose(down.history["x"].tolist(), up.history["x"].tolist(), atol=1e-9)
    assert up.fun == pytest.approx(-down.fun, abs=1e-9)
    assert up.history["best"].equals(up.history["value"].cummax())


def plain(x):
    return float((x[0] - 0.3) ** 2)


def saying(sense):
    """Return a function that says itself how it is to be optimised, and its box."""
    f = lambda x: plain(x)
    f.sense, f.bounds = sense, [(0, 1)]
    return f


@pytest.fixture(scope="module")
def deployments():
    return eo.Objective(eo.datasets.grid_city(8, 3, rng=0), 3, "approximate")


@pytest.mark.parametrize("sense", VERBS)
def test_what_knows_its_direction_refuses_the_other_verb(sense, deployments):
    """A Problem, an Objective, a function on a box, and a function with an attribute `sense`; the verb is named."""
    problem = eo.problems.Problem("line", lambda x: x[:, 0], [(0, 1)], sense)
    on_its_box = to_box_objective(plain, bounds=[(0, 1)], sense=sense)
    known = [problem, saying(sense), on_its_box] + ([deployments] if sense == "min" else [])
    other, optimizer = "max" if sense == "min" else "min", RandomPoints(on_its_box, rng=0)
    message = f"has the `sense` '{sense}': use `{sense}imize`, not `{other}imize`"
    for objective in known:
        refused(f"`objective` {message}", VERBS[other], objective, budget=3)
        run = VERBS[sense](objective, "random", budget=3, rng=0)
        assert run.fun == getattr(run.history["value"], sense)()
    refused("`sense` must be one of 'min', 'max'", VERBS[sense], saying("up"), budget=3)
    refused(f"`method` {message}", VERBS[other], plain, optimizer, budget=3)
    run = VERBS[sense](plain, optimizer, budget=3)
    assert run.fun == getattr(run.history["value"], sense)() == optimizer.best[1]


def test_methods_left_out(deployments):
    used = []
    for objective in (deployments, eo.problems.forrester()):
        eo.minimize(objective, budget=1, callback=used.append)
    eo.maximize(plain, bounds=[(0, 1)], budget=1, callback=used.append)
    assert [type(optimizer) for optimizer in used] == [LocalSearchPlus, BOKEAuto, BOKEAuto]


def test_a_function_on_a_box_has_one_direction_and_one_box():
    refused('`sense` is missing: pass sense="min" to minimise or', to_box_objective, plain, bounds=[(0, 1)])
    on_its_box = to_box_objective(saying("min"))
    assert on_its_box.sense == "min"
    refused("must be that of `f`, 'min', or be omitted; got 'max'", to_box_objective, saying("min"), sense="max")
    refused("A BoxObjective already has `bounds`", eo.minimize, on_its_box, bounds=[(0, 2)], budget=3)


@pytest.mark.parametrize(("sense", "sign"), [("min", -1), ("max", 1)])
def test_it_stops_at_the_target(sense, sign):
    f = eo.problems.Problem("line", lambda x: x[:, 0], [(-1, 1)], sense, 1.0, [1.0])
    full, run = (VERBS[sense](f, "random", budget=40, rng=0, target=target) for target in (None, 0.5 * sign))
    assert run.message == f"target of {0.5 * sign:g} reached"
    assert run.nfev == 1 + (sign * full.history["best"] >= 0.5).idxmax()
    assert sign * run.fun >= 0.5


def test_noise_is_decided_by_the_run():
    one, other = (eo.problems.forrester(noise_sd=0.5, rng=seed) for seed in (1, 2))
    runs = [eo.minimize(f, **settings("random")) for f in (one, other)]
    assert same(*runs)
    clean = one.noise_free_value(np.array(runs[0].history["x"].tolist()))
    noise = runs[0].history["value"] - clean
    assert 0.2 < noise.std() < 1.0


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    any_loss = lambda **inputs: 0.0
    options = settings("random", checkpoint=tmp_path / "run.jsonl", budget=3, bounds=INPUTS)
    eo.minimize(any_loss, **options)
    renamed = {("pace" if name == "rate" else name): one for name, one in INPUTS.items()}
    for key, bounds in (
        ("bounds", INPUTS | {"decay": (0.0, 0.5)}),
        ("names", renamed),
        ("logarithmic", INPUTS | {"rate": Real(1e-5, 1.0)}),
        ("choices", INPUTS | {"solver": Categorical(["sgd", "adam", "lbfgs"])}),
    ):
        refused(f"to another run: its {key} is", eo.minimize, any_loss, **options | {"bounds": bounds})
    refused("to another run: its sense is 'min', but that of this run is 'max'", eo.maximize, any_loss, **options)
    assert eo.minimize(any_loss, **options).nfev == 3
    options = settings("random", checkpoint=tmp_path / "problem.jsonl")
    eo.minimize(eo.problems.forrester(), **options)
    for key, f in (("function", eo.problems.hartmann3()), ("noise_sd", eo.problems.forrester(noise_sd=0.1))):
        refused(f"to another run: its {key} is", eo.minimize, f, **options)


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_holds_different_points_and_minimize_is_ask_and_tell(name):
    f = eo.problems.six_hump_camel()
    optimizer, by_hand, last = (BOX_METHODS[name](f, rng=4) for _ in range(3))
    for x in optimizer.ask(10):
        optimizer.tell(x, f(x))
    batch = optimizer.ask(5)  # of the model, each knowing of the others
    apart = np.linalg.norm(batch[:, None] - batch, axis=2) + np.eye(5)
    assert apart.min() > 1e-3
    run = eo.minimize(f, last, budget=BUDGET)
    assert run.history["value"].tolist() == played(by_hand, BUDGET).values
    assert by_hand.best[1] == run.fun
    np.testing.assert_array_equal(by_hand.best[0], run.x)


def test_an_optimizer_of_another_function_is_refused(deployments):
    """And what is no function, has no box, or names a method of deployments; options of boxes for an Objective."""
    for name, value in {"bounds": [(0, 1)], "noisy": True, "constraints": len}.items():
        refused(f"`{name}` does not apply to an Objective", eo.minimize, deployments, budget=3, **{name: value})
    f, g = eo.problems.forrester(), eo.problems.forrester()
    of_deployments, of_f = {"method": RandomSearch(deployments), "bounds": BOX}, {"method": RandomPoints(f)}
    for objective, options, message in (
        (3, {}, r"`objective` must be an Objective, a Problem or a function .* got int"),
        (plain, {}, "`bounds` is missing: pass"),
        (plain, {"method": "gp-pm"}, "`method` must be one of 'boke'"),
        (plain, of_deployments, "an instance of BoxOptimizer .* got RandomSearch"),
        (plain, {"method": BOX}, r"`method` must be .* got list\. To give inputs .* write bounds="),
        (g, of_f, "created for this `objective`"),
        (f, of_f | {"bounds": [(0, 1)]}, "`bounds` is already set in the optimizer given as `method`"),
    ):
        refused(message, eo.minimize, objective, budget=3, **options)


# -- ask and tell


@pytest.mark.parametrize("noisy", [False, True])
def test_named_inputs_are_asked_for_and_told_by_name(noisy):
    optimizer = BOKEAuto(bounds=INPUTS, sense="min", noisy=noisy, rng=0)
    first = {"rate": 0.1, "layers": 2, "units": 8, "solver": "sgd", "shuffle": True, "decay": 0.0}
    optimizer.enqueue(first)
    optimizer.enqueue([first | {"units": 9}])
    assert optimizer.ask() == first
    optimizer.tell(first, 1.0)
    batch = optimizer.ask(4)
    assert batch[0] == first | {"units": 9}
    assert [list(x) for x in batch] == [[*INPUTS]] * 4
    for x in batch:
        assert type(x["layers"]) is int
        optimizer.tell(x, np.array([x["rate"]]))
    assert optimizer.best[0] == min([first, *batch], key=lambda x: 1.0 if x is first else x["rate"])
    assert optimizer.recommend()[0] in [first, *batch]
    optimizer.withdraw(optimizer.ask())
    assert len(optimizer.pending_points) == 0


def test_points_wait_in_the_queue_and_what_has_no_function_or_value_yet_says_so():
    refused("`bounds` is missing", RandomPoints, sense="min")
    optimizer = RandomPoints(bounds=BOX, sense="min", noisy=True, rng=0)
    refused("has no function: evaluate the points it asks for yourself", optimizer.objective, [0.5, 0.5])
    optimizer.enqueue([0.25, 0.5])
    optimizer.enqueue([[0.5, 0.5], (0.75, 0.5)])
    assert optimizer.ask(3).tolist() == [[0.25, 0.5], [0.5, 0.5], [0.75, 0.5]]
    optimizer.tell(optimizer.ask(), np.nan)
    refused("nothing is known to recommend yet: `tell` at least one finite value first", optimizer.recommend)


@pytest.mark.parametrize("kind", ["box", "deployments"])
def test_threads_take_turns(kind, deployments):
    optimizer, value = BOKEAuto(bounds=BOX, sense="min", rng=0), lambda x: float(np.sum((x - 0.3) ** 2))
    if kind == "deployments":
        optimizer, value = eo.optimizers.GPpM(deployments, rng=0), deployments

    def work(_):
        x = optimizer.ask()
        optimizer.tell(x, value(x))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    assert len(optimizer.values) == len({tuple(x) for x in optimizer.told}) == 24
    twins, x = (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))), optimizer.ask()
    assert all(np.array_equal(twin.ask(), x) for twin in twins)


def simplex(x):
    return bool(x.sum() <= 1)


@pytest.mark.parametrize("d", [2, 5])
def test_a_walk_draws_uniformly(d):
    """On the simplex, each coordinate has mean 1 / (d + 1) and variance d / ((d + 1)² (d + 2)) (Dirichlet)."""
    box, rng = Box([(0, 2)] * d, constraints=simplex), np.random.default_rng(0)
    drawn = np.array([box.sample_by_walk([[1e-3] * d], rng=rng) for _ in range(200)])
    assert drawn.min() >= 0
    assert drawn.sum(axis=1).max() <= 1
    np.testing.assert_allclose(drawn.mean(axis=0), 1 / (d + 1), rtol=0.2)
    assert drawn.std(axis=0).mean() == pytest.approx(np.sqrt(d / (d + 2)) / (d + 1), rel=0.1)


def test_a_walk_goes_through_whole_numbers_and_choices():
    inputs = {"n": Integer(1, 9), "s": Categorical(["a", "b", "c"]), "x": (0, 1)}
    box = Box(inputs, constraints=lambda n, s, x: x <= 0.1 * n and s != "b")
    rng, start = np.random.default_rng(0), box.canonical({"n": 9, "s": "a", "x": 0.5}).tolist()
    drawn = np.array([box.sample_by_walk([start], rng=rng) for _ in range(400)])
    assert set(drawn[:, 1]) == {0, 2}
    shares = np.unique(drawn[:, 0], return_counts=True)[1] / 400
    np.testing.assert_allclose(shares, np.arange(1, 10) / 45, atol=0.06)  # the range of x is proportional to n


@pytest.mark.parametrize(("method", "known"), [("boke-auto", "x0"), ("random", "initial")])
def test_one_feasible_point_is_enough(method, known, monkeypatch):
    """The nearest point of the simplex to the target is, by symmetry, at 0.1 each. One random point in 10! is in it."""
    monkeypatch.setattr("emsopt.problems.box.MAX_TRIES", 300)
    f, start = lambda x: float(((x - 0.2) ** 2).sum()), [0.0] * 10
    given = {"x0": start} if known == "x0" else {"initial": [(start, f(np.array(start)))]}
    run = eo.minimize(f, method, bounds=[(0, 1)] * 10, constraints=simplex, budget=30, rng=0, **given)
    points = np.array(run.history["x"].tolist())
    assert run.nfev == len(np.unique(points, axis=0)) == 30
    assert points.sum(axis=1).max() <= 1
    assert run.fun < 0.3  # 0.4 at the start, 0.1 at best


def test_without_a_feasible_point_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr("emsopt.problems.box.MAX_TRIES", 300)
    optimizer = BOKEAuto(bounds=[(0, 1)] * 10, sense="min", constraints=simplex, rng=0)
    refused(r"no feasible point was found: .* pass a feasible point as `x0` \(with ask", optimizer.ask)
    optimizer.enqueue([0.1] * 10)
    assert optimizer.ask(3).sum(axis=1).max() <= 1 + 1e-12
