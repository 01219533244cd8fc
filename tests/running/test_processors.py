"""Runs begun on one processor go on from their files on another.

OpenBLAS has kernels of its own for every kind of processor, which round differently; ``OPENBLAS_CORETYPE`` chooses them
when a process starts. So a run is begun here, and its file goes on in a child process that takes another kind. What
is on file must stand; what follows must be the same, or as good as the run that was not interrupted.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import emsopt as eo

CORE = "Prescott"  # a processor of 2004: any that runs this can take its kernels, which are not those of a later one


def deployments(method, **options):
    city = eo.datasets.grid_city(12, 5, rng=1)
    run = eo.minimize(eo.Objective(city, 5, "approximate"), method, budget=36, rng=3, **options)
    return run.history["sites"].tolist(), run.fun


def points(method, **options):
    run = eo.minimize(eo.problems.six_hump_camel(), method, budget=40, rng=3, **options)
    return run.history["x"].tolist(), run.fun


def services(method, **options):
    """A problem whose uncontrolled variables have a scale that every processor finds for itself."""
    run = eo.optimizers.bocvs(eo.problems.ems_control(), method, budget=8, rng=0, **options)
    return run.history[["set", "x"]].to_numpy().tolist(), float(run.history["simple_regret"].iloc[-1])


def paths(policy, **options):
    net = eo.roads.grid_roads(6, 6, jitter=0.2, rng=0)
    run = eo.bandits.run(net, "r0c0-r0c1", "r5c4-r5c5", policy, horizon=40, rng=1, **options)
    return run.history["path"].tolist(), run.regret


CASES = {  # how a run is made, and by how much its result (smaller is better) may be worse on another processor
    "gp-pm": (deployments, 0.05),
    "sparbl": (deployments, 0.15),
    "boke-auto": (points, 0.01),
    "unknown-cost": (services, 0.1),
    "gp-ts-joint": (paths, 8.0),
}
KEPT = 0.6  # share of the steps on file when the run goes on elsewhere

CHILD = """
    import json, sys, warnings
    sys.path.insert(0, sys.argv[1])
    import test_processors
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", test_processors.eo.errors.ResumeWarning)
    print(json.dumps([test_processors.CASES[name][0](name, checkpoint=file) for name, file in json.loads(sys.argv[2])]))
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return the whole run of every case, and the lines of its file up to where it is cut."""
    folder, runs = tmp_path_factory.mktemp("begun"), {}
    for name, (make, _) in CASES.items():
        file = folder / f"{name}.jsonl"
        run = make(name, checkpoint=file)
        lines = file.read_bytes().splitlines(keepends=True)
        runs[name] = run, lines[: 1 + int(KEPT * (len(lines) - 1))]
    return runs


def plain(value):
    return json.loads(json.dumps(value))


def test_runs_go_on_from_their_files_on_another_processor(begun, tmp_path):
    flags = Path("/proc/cpuinfo")
    if not flags.exists() or "pni" not in flags.read_text().split():
        pytest.skip("this processor has other instructions")
    files = {name: tmp_path / f"{name}.jsonl" for name in CASES}
    for name, (_, lines) in begun.items():
        files[name].write_bytes(b"".join(lines))
    command = [sys.executable, "-c", textwrap.dedent(CHILD), os.path.dirname(__file__)]
    pairs = json.dumps([(name, str(file)) for name, file in files.items()])
    environment = {**os.environ, "OPENBLAS_CORETYPE": CORE}
    said = subprocess.run([*command, pairs], env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[-2000:]
    for (name, (whole, lines)), (steps, result) in zip(begun.items(), json.loads(said.stdout), strict=True):
        on_file = len(lines) - 1
        assert steps[:on_file] == plain(whole[0])[:on_file], name
        assert len(files[name].read_bytes().splitlines()) == 1 + len(steps), name
        assert len(steps) >= 0.8 * len(whole[0]), name
        assert result <= whole[1] + CASES[name][1], name
