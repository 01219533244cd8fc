"""Linear algebra on one thread, so that rounding does not depend on the number of cores; a place for compiled code."""

import os
import tempfile
import threading

import pytest
import scipy.linalg  # noqa: F401 - its libraries are limited too
from threadpoolctl import threadpool_info, threadpool_limits

import emsopt as eo
from emsopt._running.compiled import choose_cache_folder
from emsopt._running.parallel import one_thread


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def several_threads():
    with threadpool_limits(3, user_api="blas"):
        if blas_threads() != {3}:
            pytest.skip("the linear algebra installed here cannot use several threads")
        yield


@pytest.mark.usefixtures("several_threads")
def test_optimizers_propose_and_learn_on_one_thread():
    seen = []

    class Spy(eo.optimizers.RandomSearch):
        def _propose(self):
            seen.append(blas_threads())
            return super()._propose()

        def _learn(self, sites, value):
            seen.append(blas_threads())

    objective = eo.Objective(eo.datasets.grid_city(6, 2, rng=0), 2, "approximate")
    optimizer = Spy(objective, rng=0)
    optimizer.tell(optimizer.ask(), 1.0)
    assert seen == [{1}, {1}]


@pytest.mark.usefixtures("several_threads")
def test_several_threads_may_be_inside_in_any_order():
    """The first in sets the limit, the last out lifts it, whoever that is."""
    inside, leave = threading.Event(), threading.Event()

    def other():
        with one_thread:
            inside.set()
            leave.wait(600)

    thread = threading.Thread(target=other)
    with one_thread:
        thread.start()
        assert inside.wait(600)
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == {3}


@pytest.mark.skipif(os.name != "posix", reason="folders have owners on POSIX systems")
def test_compiled_code_goes_to_a_folder_of_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    choose_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == "mine"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    choose_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / f"emsopt-{os.getuid()}")
    assert (tmp_path / f"emsopt-{os.getuid()}").stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (tmp_path / "emsopt-12345").mkdir()  # of another user, who could put code there
    choose_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] != str(tmp_path / "emsopt-12345")
