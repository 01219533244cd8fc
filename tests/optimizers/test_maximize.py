"""`minimize` and `maximize` on boxes: directions, space, sign, checkpoint; and asking by hand."""

import numpy as np
import pytest
from own_functions import BOX, INPUTS, METHODS, played, same
from refusals import refused

import emsopt as eo
from emsopt.optimizers import BOX_METHODS, BOKEAuto, Categorical, Integer, RandomSearch, Real
from emsopt.optimizers.boxes._base import RandomPoints, on_box
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

    def f(x):
        return plain(x)

    f.sense, f.bounds = sense, [(0, 1)]
    return f


@pytest.fixture(scope="module")
def deployments():
    return eo.Objective(eo.datasets.grid_city(8, 3, rng=0), 3, "approximate")


@pytest.mark.parametrize("sense", VERBS)
def test_what_knows_its_direction_refuses_the_other_verb(sense, deployments):
    """A Problem, an Objective, a function on a box, and a function with an attribute `sense`; the verb is named."""
    problem = eo.problems.Problem("line", lambda x: x[:, 0], [(0, 1)], sense)
    on_its_box = on_box(plain, bounds=[(0, 1)], sense=sense)
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
    refused(r'`sense` is missing: pass sense="min" to minimise or sense="max"', on_box, plain, bounds=[(0, 1)])
    assert on_box(saying("min")).sense == "min"
    refused("`sense` must be that of `f`, 'min', or be omitted; got 'max'", on_box, saying("min"), sense="max")
    refused("A BoxObjective already has `bounds`", eo.minimize, on_box(saying("min")), bounds=[(0, 2)], budget=3)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_it_stops_at_the_target(sense):
    f = eo.problems.Problem("line", lambda x: x[:, 0], [(-1, 1)], sense, 1.0, [1.0])
    sign = 1 if sense == "max" else -1
    full = VERBS[sense](f, **settings("random", budget=40))
    run = VERBS[sense](f, **settings("random", budget=40, target=0.5 * sign))
    assert run.message == f"target of {0.5 * sign:g} reached"
    assert run.nfev == 1 + (sign * full.history["best"] >= 0.5).idxmax()
    assert sign * run.fun >= 0.5


def test_noise_is_decided_by_the_run():
    one, other = (eo.problems.forrester(noise_sd=0.5, rng=seed) for seed in (1, 2))
    runs = [eo.minimize(f, **settings("random")) for f in (one, other)]
    assert same(*runs)
    clean = one.exact(np.array(runs[0].history["x"].tolist()))
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


def test_a_box_of_whole_numbers_lists_its_points():
    assert Box([(0.0, 2.0), Integer(3, 7)]).canonical([2.0 + 1e-10, 3 + 1e-10]).tolist() == [2.0, 3.0]
    box = Box([Integer(-1, 998), Integer(2, 11)])
    listed = box.listing()
    assert box.count == len(listed) == len(np.unique(listed, axis=0)) == 10_000
    assert listed.min(axis=0).tolist() == [-1, 2]
    assert listed.max(axis=0).tolist() == [998, 11]


def test_an_optimizer_of_another_function_is_refused(deployments):
    """And what is no function, has no box, or names a method of deployments; options of boxes for an Objective."""
    for name, value in {"bounds": [(0, 1)], "noisy": True, "constraints": len}.items():
        refused(f"`{name}` does not apply to an Objective", eo.minimize, deployments, budget=3, **{name: value})
    f, g = eo.problems.forrester(), eo.problems.forrester()
    of_deployments = {"method": RandomSearch(deployments), "bounds": BOX}
    for objective, options, message in (
        (3, {}, r"`objective` must be an Objective, a Problem or a function .* got int"),
        (plain, {}, "`bounds` is missing: pass"),
        (plain, {"method": "gp-pm"}, "`method` must be one of 'boke'"),
        (plain, of_deployments, "an instance of BoxOptimizer .* got RandomSearch"),
        (plain, {"method": BOX}, r"`method` must be .* got list\. To give inputs .* write bounds="),
        (g, {"method": RandomPoints(f)}, "created for this `objective`"),
        (
            f,
            {"method": RandomPoints(f), "bounds": [(0, 1)]},
            "`bounds` is already set in the optimizer given as `method`",
        ),
    ):
        refused(message, eo.minimize, objective, budget=3, **options)
