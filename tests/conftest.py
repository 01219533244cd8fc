"""What several test files need."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores; linear algebra on all of them in each is slower
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import pytest
from hypothesis import HealthCheck, settings
from register_numbers import NUMBER, agrees

from emsopt._files import locate
from emsopt.datasets import load_claims, load_st_paul
from emsopt.errors import DataUnavailableError

# How fast examples run and are drawn says something about the machine only.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
ROOT = Path(__file__).resolve().parents[1]
collect_ignore_glob = ["*conftest.py"]  # which have no examples, and the same name in several folders


@pytest.fixture(scope="session")
def script():
    """A function that loads a script of the repository as a module: ``script("benchmarks/boke.py")``."""

    def load(path):
        file = ROOT / path
        if not file.is_file():
            pytest.skip(f"needs the repository: {path} is not part of the package")
        if str(file.parent) not in sys.path:
            sys.path.append(str(file.parent))  # scripts import what they share
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def claim():
    """A function that binds a row of the register of claims to what a test has computed.

    ``claim("boke", "Theorem 4.1", 0.9, 16)`` fails unless the numbers of the row's column ``ours`` include 0.9 and 16
    in this order, each to its last printed digit; others may stand between them. ``column="error"`` and ``"theirs"`` do
    the same there. Use it in the test that the row names as evidence, on values computed in that test or read from a
    stored study. Without numbers it returns the row: ``claim("boke", "Theorem 4.1").ours``.
    """

    def row(paper, place, *values, column="ours"):
        claims = load_claims(paper)
        (found,) = claims[claims["place"] == place].itertuples(index=False)
        printed = iter(NUMBER.findall(getattr(found, column)))
        for value in values:
            if not any(agrees(number, value) for number in printed):
                pytest.fail(f"{paper}, {place}: {value} is not in its turn in {column} = '{getattr(found, column)}'.")
        return found

    return row


@pytest.fixture(scope="session")
def published():
    """St. Paul with the authors' demand: from ``$EMSOPT_DATA``, the cache, or a download, tried for ten seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locate, "DOWNLOAD_TIMEOUT_S", 10)
        try:
            return load_st_paul("published")
        except DataUnavailableError as error:
            if not isinstance(error.__cause__, OSError):  # a file that is not the published one
                raise
            reason = type(error.__cause__).__name__
            pytest.skip(f"needs Saint_Paul.pkl, in the folder EMSOPT_DATA or downloaded ({reason})")


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C interrupt, also in processes started from here: jobs in the background of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def client():
    """Two workers of a Dask cluster, each a process."""
    distributed = pytest.importorskip("distributed", reason="needs emsopt[scale]")

    class Nanny(distributed.Nanny):
        async def close(self, timeout=600, **reason):  # Dask's five seconds are too few under load
            return await super().close(timeout, **reason)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}  # any free port
    with distributed.LocalCluster(worker_class=Nanny, **options) as cluster, distributed.Client(cluster) as client:
        yield client
