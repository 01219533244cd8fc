"""The study runner: the same rows on every backend, in any order, killed and resumed or not; clear errors."""

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from refusals import refused

import emsopt as eo
from emsopt import study

GRID = study.cases(method=["gp-pm", "sparbl"], seed=range(2))


def draws(x, seed):
    """Two rows a case, numpy types on purpose; cases finish out of order."""
    time.sleep(0.01 * (-x % 3))
    rng = np.random.default_rng(study.seed_of({"x": x, "seed": seed}))
    return [{"part": k, "value": np.float64(rng.standard_normal()), "whole": np.int64(x)} for k in range(2)]


def search(method, seed):
    objective = eo.Objective(eo.datasets.load_st_paul(), 9, "approximate")
    return eo.minimize(objective, method, budget=12, rng=seed).history[["evaluation", "sites", "value"]]


def noted(x, folder):
    """Leave a note of every call; fail on 3 until a file called "cured" is there."""
    with open(Path(folder) / "calls", "a") as file:
        file.write(f"{x}\n")
    if x == 3 and not (Path(folder) / "cured").exists():
        raise ValueError("three is not to my taste")
    return {"tenfold": 10 * x}


def third(x):
    return {"third": x / 3}


def hindered(x, study, folder):
    """Case 4 does not finish at first: it presses the study's Ctrl-C."""
    if x == 4 and not (Path(folder) / "cured").exists():
        (Path(folder) / "cured").touch()
        while not finished(Path(folder) / "study.jsonl"):
            time.sleep(0.01)
        os.kill(study, signal.SIGINT)
        time.sleep(0.5)
    return third(x)


def processes(x):
    return [{"pid": pid} for pid in joblib.Parallel(2)(joblib.delayed(os.getpid)() for _ in range(4))]


def threads(x):
    from threadpoolctl import threadpool_info

    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {"blas": blas, "numba": os.environ.get("NUMBA_NUM_THREADS")}


def returns(what):
    return {"number": 3, "other": {"what": 1}, "object": {"y": object()}}[what]


@pytest.fixture(scope="module")
def serial():
    return study.run(search, GRID)


def calls(folder):
    return sorted(int(line) for line in (folder / "calls").read_text().split())


def test_rows_come_in_the_order_of_the_cases():
    table = study.run(draws, study.cases(x=range(5), seed=[7]), backend="processes", workers=2)
    assert list(table.columns) == ["x", "seed", "part", "value", "whole"]
    assert (table["x"].tolist(), table["part"].tolist()) == ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [0, 1] * 5)
    rng = np.random.default_rng(study.seed_of({"seed": 7, "x": 3}))
    assert table["value"][table["x"] == 3].tolist() == [rng.standard_normal(), rng.standard_normal()]


@pytest.mark.filterwarnings("default")  # the cluster's own
@pytest.mark.parametrize("backend", ["processes", "dask", "executor"])
def test_every_backend_gives_what_serial_gives(backend, serial, tmp_path, request):
    assert len(serial) == 12 * len(GRID)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        given = {"processes": {"backend": "processes", "workers": 2}, "executor": {"backend": pool}}.get(backend)
        given = given or {"backend": request.getfixturevalue("client")}
        table = study.run(search, GRID, file=tmp_path / "study.jsonl", **given)
    pd.testing.assert_frame_equal(table, serial, check_exact=True)
    pd.testing.assert_frame_equal(study.run(search, GRID, file=tmp_path / "study.jsonl"), serial, check_exact=True)


@pytest.mark.parametrize("backend", ["serial", "processes", "threads"])
def test_one_thread_each(backend):
    with ThreadPoolExecutor(2) as pool:
        # with one core the default is one worker, which is this process
        options = {"workers": 2} if backend == "processes" else {}
        options["backend"] = pool if backend == "threads" else backend
        table = study.run(threads, study.cases(x=range(4)), **options)
    assert all(pools and set(pools) == {1} for pools in table["blas"])
    if backend == "processes":
        assert table["numba"].tolist() == ["1"] * 4


def test_serial_tasks_stay_in_this_process():
    """Also if they ask for processes themselves."""
    table = study.run(processes, study.cases(x=range(2)))
    assert set(table["pid"]) == {os.getpid()}


def test_cases_on_file_are_not_run_again(tmp_path):
    file, shown = tmp_path / "study.jsonl", []
    study.run(noted, study.cases(x=[1, 2], folder=str(tmp_path)), file=file)
    cases = study.cases(x=[5, 2, 1], folder=str(tmp_path))
    table = study.run(noted, cases, file=file, progress=lambda done, total: shown.append((done, total)))
    assert (calls(tmp_path), table["tenfold"].tolist(), shown) == ([1, 2, 5], [50, 20, 10], [(2, 3), (3, 3)])
    assert len(file.read_text().splitlines()) == 4


def test_an_error_of_the_progress_function_cancels_what_is_left(tmp_path):
    def stop(done, total):
        if done:
            raise KeyError("stop")

    # `held` keeps the traceback, and with it the frame that submitted the cases.
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyError) as held:
        study.run(noted, study.cases(x=range(10, 1000), folder=[str(tmp_path)]), backend=pool, progress=stop)
    assert held.value.args == ("stop",)
    assert len((tmp_path / "calls").read_text().splitlines()) < 990


def finished(file):
    return file.read_text().count('{"case"') if file.exists() else 0


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("backend", ["serial", "processes", "dask"])
def test_interrupted_and_resumed_no_finished_case_is_lost(tmp_path, backend, request):
    """By Ctrl-C; then a line is torn, as if the study had been killed amid it."""
    backend = request.getfixturevalue("client") if backend == "dask" else backend
    options = {"backend": backend} | ({"workers": 2} if backend == "processes" else {})
    cases, file = study.cases(x=range(12), study=os.getpid(), folder=str(tmp_path)), tmp_path / "study.jsonl"
    with pytest.raises(KeyboardInterrupt):
        study.run(hindered, cases, file=file, **options)
    assert 1 <= finished(file) < len(cases)
    stored = set(file.read_text().splitlines())
    with open(file, "a") as torn:
        torn.write('{"case": {"x": 11}, "ro')
    table = study.run(hindered, cases, file=file, **options)
    lines = file.read_text().splitlines()
    assert stored < set(lines)
    assert len(lines) == len(set(lines)) == 1 + len(cases)
    pd.testing.assert_frame_equal(table, study.run(hindered, cases), check_exact=True)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("backend", ["serial", "processes", "dask"])
def test_a_failure_names_its_case_and_loses_no_other(tmp_path, backend, request):
    backend = request.getfixturevalue("client") if backend == "dask" else backend
    cases, file = study.cases(x=range(6), folder=str(tmp_path)), tmp_path / "study.jsonl"
    with pytest.raises(study.StudyError, match=r"1 of 6 cases failed: .*'x': 3.*ValueError: three") as caught:
        study.run(noted, cases, file=file, backend=backend)
    assert caught.value.failures == [(cases[3], "ValueError: three is not to my taste")]
    assert caught.value.results["x"].tolist() == [0, 1, 2, 4, 5]
    assert "in noted" in caught.value.__notes__[0]
    (tmp_path / "cured").touch()
    assert study.run(noted, cases, file=file, backend=backend)["tenfold"].tolist() == [0, 10, 20, 30, 40, 50]
    assert calls(tmp_path) == [0, 1, 2, 3, 3, 4, 5]


def test_files_of_other_studies_are_refused(tmp_path):
    file = tmp_path / "study.jsonl"
    study.run(third, [{"x": 1}], file=file)
    written = file.read_text()
    refused("its task is 'third'.* is 'draws'", study.run, draws, [{"x": 1, "seed": 2}], file=file)
    refused(r"\['x'\], but .* \['x', 'y'\]", study.run, third, [{"x": 1, "y": 2}], file=file)
    assert file.read_text() == written
    file.write_text(written.replace('"rows"', "rows"))
    refused("line 2 .* damaged", study.run, third, [{"x": 1}], file=file)


def framed(x, pair):
    kind = f"{type(x).__name__} {type(pair).__name__}"
    return pd.DataFrame({"kind": [kind]}, index=pd.Index(["mon"], name="day")) if x else []


def test_values_reach_the_task_plain_and_an_index_with_a_name_is_kept():
    table = study.run(framed, [{"x": np.int64(3), "pair": (1, 2)}])
    assert table.iloc[0].to_dict() == {"x": 3, "pair": [1, 2], "day": "mon", "kind": "int list"}
    assert study.run(framed, [{"x": 0, "pair": 1}]).columns.tolist() == ["x", "pair"]


def test_bad_input_and_bad_results_are_refused():
    for cases, options, says in (
        ([], {}, "at least one case"),
        ([{"x": 1}, {"x": 1}], {}, "distinct"),
        ([{"x": 1}, {"y": 1}], {}, "same keys"),
        ([{"x": object()}], {}, "not a plain value"),
        ([{"x": float("nan")}], {}, "finite"),
        ([{"x": 1}], {"backend": "dask"}, "got 'dask'"),
        ([{"x": 1}], {"backend": np.array(["serial", "dask"])}, "must be 'serial'"),
        ([{"x": 1}], {"workers": 2}, "requires backend='processes'"),
    ):
        refused(says, study.run, third, cases, **options)
    for what, says in {"number": "; got 3", "other": "rename what", "object": "not a plain value"}.items():
        with pytest.raises(study.StudyError, match=says):
            study.run(returns, [{"what": what}])


def test_seeds_stay_what_they_are():
    """A stored study can be recomputed only if seeds never change: SHA-256 of {"method": "a", "seed": 1}."""
    assert study.seed_of({"seed": 1, "method": "a"}) == 8631498634889288418
    seeds = {study.seed_of(case) for case in study.cases(x=range(100), y=range(100))}
    assert len(seeds) == 10_000
    assert all(0 <= seed < 2**63 for seed in seeds)
