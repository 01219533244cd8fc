"""Evaluation in batches and in parallel."""

from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from types import SimpleNamespace

import joblib
import pytest
from own_functions import BOX, FEW, bowl, cut, evaluations_on_file, half, recorded, same, unstable
from refusals import refused

import emsopt as eo
from emsopt._running import loop
from emsopt.errors import ResumeWarning


def test_the_number_of_workers_and_cores_does_not_change_a_run(monkeypatch):
    options = {"bounds": BOX, "budget": 10, "rng": 0}
    serial = eo.minimize(bowl, **options, batch=4)
    assert not same(eo.minimize(bowl, **options), serial)
    with ThreadPoolExecutor(2) as pool, joblib.parallel_config("threading"):
        for workers, cores in ((map, 1), (pool.map, 1), (2, 1), (3, 1), (-1, 1), (-1, 9)):
            monkeypatch.setattr("emsopt._running.parallel.cores", lambda cores=cores: cores)
            assert same(eo.minimize(bowl, **options, workers=workers), serial)
        with pytest.warns(UserWarning, match=r"only 4 of 5 workers are used, as batch=4\. Pass batch=5"):
            assert same(eo.minimize(bowl, **options, workers=5), serial)


@pytest.mark.parametrize("method", FEW)
def test_a_run_in_batches_resumes_from_anywhere_with_other_workers(method, tmp_path):
    options = {"method": method, "bounds": BOX, "budget": 14, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    with joblib.parallel_config("threading"):
        full = eo.minimize(half, **options, workers=2)
        for lines, workers in ((11, 1), (4, 3), (6, -1), (7, map)):
            cut(options["checkpoint"], lines)
            assert same(eo.minimize(half, **options, workers=workers), full)
    assert same(eo.minimize(half, **options, batch=4), full)
    refused("belongs to another run: its batch is 4", eo.minimize, half, **options, batch=2)


def test_a_run_with_one_worker_resumes_with_one_candidate_at_a_time(tmp_path):
    options = {"method": "random", "bounds": BOX, "rng": 0}
    eo.minimize(bowl, **options, budget=5, checkpoint=tmp_path / "run.jsonl")
    with pytest.warns(ResumeWarning, match="one candidate at a time, so `workers` has no effect.* as `initial`"):
        run = eo.minimize(bowl, **options, budget=9, workers=3, checkpoint=tmp_path / "run.jsonl")
    assert same(run, eo.minimize(bowl, **options, budget=9))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_ends_with_the_batch_in_which_there_is_a_reason(workers):
    """Whoever evaluates it: the values of a batch are all known, and the last can be the best."""
    options = {"method": "random", "bounds": BOX, "budget": 20, "rng": 0, "workers": workers, "batch": 4}
    run = eo.minimize(bowl, **options, target=10.0)
    assert (run.nfev, run.fun, run.message) == (4, min(run.history["value"]), "target of 10 reached")
    run = eo.minimize(bowl, **options, callback=lambda optimizer: len(optimizer.values) == 6)
    assert (run.nfev, run.message) == (8, "stopped by the callback")


def at_once(function, items):
    """Evaluate all items before the first result is returned, the last item first, as if all took equally long."""
    return [function(item) for item in reversed(items)]


def test_evaluations_under_way_at_the_time_limit_are_kept(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    @wraps(bowl)
    def slow(x):
        now[0] += 1.0
        return bowl(x)

    options, file = {"bounds": BOX, "budget": 12, "rng": 0, "batch": 4}, {"checkpoint": tmp_path / "run.jsonl"}
    run = eo.minimize(slow, **options, **file, workers=at_once, time_limit=0.5)
    assert (run.nfev, run.message) == (4, "time limit of 0.5 s reached")
    assert run.history["seconds"].is_monotonic_increasing
    again = eo.minimize(slow, **options, **file, workers=1, time_limit=5.5)  # nothing of the batch is under way then
    assert (again.nfev, again.message) == (6, "time limit of 5.5 s reached")
    assert same(eo.minimize(bowl, **options, **file), eo.minimize(bowl, **options))


@pytest.mark.parametrize(("workers", "which"), [(4, 2), (at_once, 1)])
def test_an_error_leaves_the_others_of_the_batch_on_file(workers, which, tmp_path):
    options = {"bounds": BOX, "budget": 12, "rng": 0, "batch": 4}
    full, file, seen = eo.minimize(bowl, **options), tmp_path / "run.jsonl", []
    bad = full.history["x"][4 + which - 1]

    @wraps(bowl)
    def failing(x):
        if tuple(x) == bad:
            raise OSError("the licence server is away")
        return bowl(x)

    for _ in range(2):
        with joblib.parallel_config("threading"), pytest.raises(OSError, match="licence"):
            eo.minimize(failing, **options, checkpoint=file, workers=workers)
        assert set(evaluations_on_file(file)) == {*range(1, 9)} - {4 + which}
    assert same(eo.minimize(recorded(seen), **options, checkpoint=file), full)
    assert len(seen) == 1 + 5  # the first point again, as a check; then the one that failed and those of the last batch


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_what_has_arrived_after_what_has_not(tmp_path):
    """The first of the second batch still runs; the others have ended."""

    def pool(function, items):
        for item in items[1:] if items[0][0] == 5 else items:
            yield function(item)
        if items[0][0] == 5:
            raise KeyboardInterrupt

    options = {"bounds": BOX, "budget": 12, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    run = eo.minimize(bowl, **options, workers=pool)
    assert run.history["evaluation"].tolist() == [1, 2, 3, 4, 6, 7, 8]
    assert (run.nfev, run.interrupted, run.fun) == (7, True, min(run.history["value"]))
    assert same(eo.minimize(bowl, **options), eo.minimize(bowl, bounds=BOX, budget=12, rng=0, batch=4))


def test_an_error_in_a_worker_is_the_error():
    with pytest.raises(ArithmeticError, match="too cold") as raised:
        eo.minimize(unstable, bounds=BOX, budget=12, rng=0, workers=2)
    assert raised.value.__notes__[0].startswith("This happened in evaluation")
    assert any("in unstable" in note for note in raised.value.__notes__)  # where it happened in the other process
    run = eo.minimize(unstable, bounds=BOX, budget=12, rng=0, workers=2, catch=ArithmeticError)
    assert same(run, eo.minimize(unstable, bounds=BOX, budget=12, rng=0, batch=4, catch=ArithmeticError))


class OddError(Exception):  # cannot be restored in another process
    def __init__(self, first, second):
        super().__init__(first)


def odd(x):
    raise OddError("no licence", x)


def test_an_error_that_cannot_be_sent_is_described():
    with pytest.raises(RuntimeError, match="OddError: no licence") as raised:
        eo.minimize(odd, bounds=BOX, budget=4, rng=0, workers=2)
    assert any("in odd" in note for note in raised.value.__notes__)


def test_deployments_in_parallel_are_counted_and_noise_is_that_of_the_evaluation():
    runs, city = [], eo.datasets.grid_city(8, 3, rng=0)
    for workers in (1, 2):
        objective = eo.Objective(city, 3, "simulation", calls=300)
        runs.append(eo.minimize(objective, "genetic", budget=9, rng=0, workers=workers, batch=3))
        assert objective.evaluations == 9
    assert same(*runs)


def test_dask_evaluates_too(client):
    options = {"bounds": BOX, "budget": 7, "rng": 0, "batch": 2}
    serial = eo.minimize(bowl, **options)
    with joblib.parallel_config("dask"):
        assert same(eo.minimize(bowl, **options, workers=2), serial)
    assert same(eo.minimize(bowl, **options, workers=lambda f, items: client.gather(client.map(f, items))), serial)
