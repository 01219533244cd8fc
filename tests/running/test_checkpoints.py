"""Files that a run goes on from: one writer, nothing foreign or damaged taken, nothing lost when the disk is full."""

import json
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from refusals import refused

import emsopt as eo
from emsopt import study
from emsopt._running.checkpoint import array_summary
from emsopt.errors import InputError, ResumeWarning, WriteError


def bowl(x):
    return -((x[0] - 0.3) ** 2)


def minimised(file, budget=5):
    objective = eo.Objective(eo.datasets.grid_city(8, 4, rng=0), 4, "approximate")
    return eo.minimize(objective, "random", budget=budget, rng=0, checkpoint=file)


def maximised(file, budget=5, f=bowl):
    return eo.maximize(f, "random", bounds=[(0, 1)], budget=budget, rng=0, checkpoint=file)


def controlled(file, budget=5):
    problem, options = eo.problems.hill_control(), {"regret": False, "checkpoint": file}
    options["callback"] = lambda learner: len(learner.plays) == budget
    return eo.optimizers.bocvs(problem, "ucb-psq", budget=9, rng=0, **options)


def driven(file, budget=5):
    net = eo.roads.grid_roads(4, 4, rng=0)
    return eo.bandits.run(net, "r0c0-r0c1", "r3c2-r3c3", "bi-ts", horizon=budget, rng=0, checkpoint=file)


def square(x):
    return {"y": x * x}


def studied(file, budget=5):
    return study.run(square, study.cases(x=range(budget)), file=file)


RUNS = [minimised, maximised, controlled, driven]


@pytest.fixture(params=[maximised, studied], ids=lambda run: run.__name__)
def run(request):
    """A run of a loop, and a study, whose file is not a checkpoint."""
    return request.param


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.jsonl"


def changed(line, **change):
    """Return a line with other values."""
    return json.dumps(json.loads(line) | change).encode()


CHILD = """
    import sys, emsopt as eo
    def bowl(x):
        return -((x[0] - 0.3) ** 2)
    def wait(_):
        print("ready", flush=True)
        sys.stdin.readline()
    eo.maximize(bowl, "random", bounds=[(0, 1)], budget=5, rng=0, checkpoint=sys.argv[1], callback=wait)
"""


@pytest.fixture
def writer(file):
    """Return a process that has made one evaluation of a run, and waits before each further one."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        yield child
        child.kill()


def test_two_processes_and_one_file(writer, file):
    """Whoever comes second is refused, however often it tries, and a writer that is killed leaves no claim."""
    for _ in range(20):
        with pytest.raises(InputError, match="another run is writing"):
            maximised(file)
    writer.kill()
    writer.wait()
    assert len(file.read_bytes().splitlines()) == 2
    assert maximised(file).history["x"].tolist() == maximised(None).history["x"].tolist()


def test_foreign_and_damaged_files_and_other_formats_are_refused_and_left_alone(run, file, tmp_path):
    refused("must be a file", run, tmp_path)
    run(file)
    first, second, _, *rest = file.read_bytes().splitlines()
    version = changed(first, **{next(iter(json.loads(first))): 99})
    cases = [([b'{"a": 1}'], "name another file"), ([version, second, *rest], "99")]
    cases += [([first, second, damage, *rest], r"line 3 of the \w+ .* is damaged") for damage in (b"[1]", b"\xff\xfe")]
    for lines, words in cases:
        file.write_bytes(content := b"\n".join([*lines, b""]))
        refused(words, run, file)
        assert file.read_bytes() == content


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)
def test_every_value_of_a_row_is_checked(run, file):
    """A number that is none, or that no float holds, in whichever column, names its line."""
    run(file)
    first, row, *rest = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([changed(first, seed=1.5), row, *rest, b""]))
    refused("line 1 of the checkpoint .* is damaged", run, file)
    for key in json.loads(row):
        for value in ("1", True, float("nan"), 10**400, [None]):
            file.write_bytes(b"\n".join([first, changed(row, **{key: value}), *rest, b""]))
            refused("line 2 of the checkpoint .* is damaged", run, file)
    file.write_bytes(b"\n".join([first, row, row, *rest, b""]))
    refused("line 3 of the checkpoint .* is damaged", run, file)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_full_disk_leaves_whole_lines(run, file):
    """The disk fills up in the midst of a line, the first or a later one: a clear error, and the run goes on later."""
    import resource

    run(file)
    whole = file.read_bytes().splitlines()
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    for full_at, left in ((len(whole[0]) + len(whole[1]) + 12, 2), (20, 0)):
        file.unlink()
        resource.setrlimit(resource.RLIMIT_FSIZE, (full_at, limits[1]))
        try:
            with pytest.raises(WriteError, match=f"{file} could not be written.* or write elsewhere"):
                run(file)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert file.exists() == (left > 0)
        if left:
            assert file.read_bytes().endswith(b"\n")
            assert len(file.read_bytes().splitlines()) == left
        run(file)
        assert len(file.read_bytes().splitlines()) == len(whole)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(("run", "key"), [(minimised, "sites"), (maximised, "x")])
def test_what_is_on_file_stands_where_the_run_now_asks_for_something_else(run, key, file):
    """As on another processor: the rows of the second and the fourth evaluation change places."""
    run(file, 4)
    first, *rows = map(json.loads, file.read_text().splitlines())
    rows[1], rows[3] = {**rows[3], "evaluation": 2}, {**rows[1], "evaluation": 4}
    file.write_text("".join(json.dumps(row) + "\n" for row in (first, *rows)))
    with pytest.warns(ResumeWarning, match=r"evaluation 2 in the checkpoint .* with the stored steps") as warned:
        history = run(file, 6).history
    assert (len(warned), [list(x) for x in history[key]][:4]) == (1, [row[key] for row in rows])
    assert len(history) == len(set(history[key])) == 6


def test_a_path_on_file_stands_where_the_agent_would_drive_another(file, tmp_path):
    driven(file, 3)
    first, *rows = map(json.loads, file.read_text().splitlines())
    options = {"horizon": 1, "rng": 0, "checkpoint": tmp_path / "other.jsonl", "closed": [rows[1]["arms"][3]]}
    eo.bandits.run(eo.roads.grid_roads(4, 4, rng=0), "r0c0-r0c1", "r3c2-r3c3", "bi-ts", **options)
    detour = json.loads((tmp_path / "other.jsonl").read_text().splitlines()[1])
    rows[1] = {**detour, "round": 2}
    file.write_text("".join(json.dumps(row) + "\n" for row in (first, *rows)))
    with pytest.warns(ResumeWarning, match="round 2 in the checkpoint"):
        run = driven(file, 5)
    assert (list(run.history["path"][1]), len(run.history)) == (detour["arms"], 5)


def test_a_summary_tells_numbers_apart_but_not_their_last_digits():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 30)), rng.random(30)
    wanted, rounded = array_summary(a, b), array_summary(a * (1 + 1e-13 * rng.normal(size=a.shape)), b)
    assert rounded["weighted"] == pytest.approx(wanted["weighted"], rel=1e-9)
    one = a.copy()
    one[7, 9] += 1e-3
    for other in (array_summary(one, b), array_summary(a[::-1], b), array_summary(a, b * 1.001)):
        assert other["weighted"] != pytest.approx(wanted["weighted"], rel=1e-8)
    assert array_summary(np.zeros(3)) != array_summary(np.zeros(4))
