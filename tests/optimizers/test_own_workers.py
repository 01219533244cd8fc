"""Evaluation in batches and in parallel."""

import signal
from concurrent.futures import ThreadPoolExecutor
from functools import wraps

import joblib
import pytest
from own_functions import BOX, METHODS, bowl, half, same, unstable

import emsopt as eo
from emsopt.errors import InputError


def test_workers_give_the_same_run_however_they_work(tmp_path):
    options = {"bounds": BOX, "budget": 13, "rng": 0, "batch": 3}
    serial = eo.minimize(bowl, **options)
    assert serial.nfev == 13
    assert same(eo.minimize(bowl, **options, workers=2), serial)
    with ThreadPoolExecutor(2) as pool:
        assert same(eo.minimize(bowl, **options, workers=pool.map), serial)
    assert same(eo.minimize(bowl, **options, workers=lambda f, items: [f(item) for item in items]), serial)
    with joblib.parallel_config("threading"):
        assert same(eo.minimize(bowl, **options, workers=2), serial)
    assert not same(eo.minimize(bowl, **(options | {"batch": 1})), serial)
    of_two = eo.minimize(bowl, bounds=BOX, budget=8, rng=0, workers=2)
    assert same(eo.minimize(bowl, bounds=BOX, budget=8, rng=0, batch=2), of_two)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_in_batches_resumes_from_anywhere(method, tmp_path):
    file = tmp_path / "run.jsonl"
    options = {"bounds": BOX, "budget": 14, "rng": 0, "batch": 4, "checkpoint": file}
    full = eo.minimize(half, method, **options)
    lines = file.read_bytes().splitlines(keepends=True)
    for cut in (1, 3, 5, 8, 11, 14):
        file.write_bytes(b"".join(lines[:cut]))
        assert same(eo.minimize(half, method, **options), full)
    longer = eo.minimize(half, method, **(options | {"budget": 20}))
    assert same(longer, eo.minimize(half, method, **(options | {"budget": 20, "checkpoint": None})))
    with pytest.raises(InputError, match="belongs to another run: its batch is 4"):
        eo.minimize(half, method, **(options | {"batch": 2}))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_a_batch_keeps_what_is_done(tmp_path):
    file, done = tmp_path / "run.jsonl", []

    @wraps(bowl)
    def pressed(x):
        done.append(x)
        if len(done) == 7:
            raise KeyboardInterrupt
        return bowl(x)

    options = {"bounds": BOX, "budget": 12, "rng": 0, "batch": 4, "checkpoint": file}
    run = eo.minimize(pressed, **options)
    assert (run.nfev, run.message) == (6, "interrupted")
    assert same(eo.minimize(bowl, **options), eo.minimize(bowl, **(options | {"checkpoint": None})))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_workers_evaluate(tmp_path):
    options = {"bounds": BOX, "budget": 8, "rng": 0, "workers": 2, "checkpoint": tmp_path / "run.jsonl"}

    def press(optimizer):
        if len(optimizer.values) == 3:
            signal.raise_signal(signal.SIGINT)

    run = eo.minimize(bowl, **options, callback=press)
    assert (run.nfev, run.message) == (3, "interrupted")
    assert same(eo.minimize(bowl, **options), eo.minimize(bowl, bounds=BOX, budget=8, rng=0, batch=2))


def test_workers_stop_where_the_run_does():
    run = eo.minimize(bowl, bounds=BOX, budget=20, rng=0, workers=2, target=10.0)
    assert (run.nfev, run.message) == (1, "target of 10 reached")
    seen = []
    run = eo.minimize(
        bowl, bounds=BOX, budget=20, rng=0, batch=5, callback=lambda opt: seen.append(opt) or len(seen) == 7
    )
    assert run.nfev == 7


def test_an_error_in_a_worker_is_the_error():
    with pytest.raises(ArithmeticError, match="too cold") as raised:
        eo.minimize(unstable, bounds=BOX, budget=12, rng=0, workers=2)
    assert raised.value.__notes__[0].startswith("This happened in evaluation")
    run = eo.minimize(unstable, bounds=BOX, budget=12, rng=0, workers=2, catch=ArithmeticError)
    assert same(run, eo.minimize(unstable, bounds=BOX, budget=12, rng=0, batch=2, catch=ArithmeticError))


def test_deployments_in_parallel_are_counted_and_noise_is_that_of_the_evaluation():
    city = eo.datasets.grid_city(8, 3, rng=0)
    runs = []
    for workers in (1, 2):
        objective = eo.Objective(city, 3, "simulation", calls=300)
        runs.append(eo.minimize(objective, "genetic", budget=9, rng=0, workers=workers, batch=3))
        assert objective.evaluations == 9
    assert same(*runs)


def test_dask_evaluates_too(client):
    serial = eo.minimize(bowl, bounds=BOX, budget=7, rng=0, batch=2)
    with joblib.parallel_config("dask"):
        assert same(eo.minimize(bowl, bounds=BOX, budget=7, rng=0, workers=2), serial)
    gathered = lambda f, items: client.gather(client.map(f, items))
    assert same(eo.minimize(bowl, bounds=BOX, budget=7, rng=0, workers=gathered, batch=2), serial)


@pytest.mark.parametrize(
    ("options", "message"), [({"workers": 0}, "workers"), ({"workers": "two"}, "workers"), ({"batch": 0}, "batch")]
)
def test_bad_workers_are_refused(options, message):
    with pytest.raises(InputError, match=f"`{message}` must be a whole number"):
        eo.minimize(bowl, bounds=BOX, budget=3, **options)
