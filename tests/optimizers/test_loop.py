"""`minimize`: what a run counts, why it stops, and that a killed run resumes to the same end."""

import json
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

import emsopt as eo
from emsopt._running import loop
from emsopt.errors import InputError
from emsopt.optimizers import METHODS, Genetic, Optimizer, RandomSearch

BUDGET = 40
CHEAP = ("random", "genetic", "annealing", "local")  # the methods that need no model
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is started in a moment by fork alone")


@pytest.fixture(scope="module")
def city():
    """Eight sites and twelve atoms on a plane."""
    rng = np.random.default_rng(5)
    sites, atoms = rng.random((8, 2)) * 10, rng.random((12, 2)) * 10
    travel = np.linalg.norm(sites[:, None] - atoms[None], axis=2)
    return eo.City(rng.uniform(0.2, 1.0, 12), travel, turnout_times=1.0, service_times=30)


@pytest.fixture
def objective(city):
    return eo.Objective(city, 4, "approximate")


def noisy(city):
    return eo.Objective(city, 4, "simulation", calls=300)


def same(one, other):
    """Return whether two runs are the same in all but the clock."""
    columns = ["evaluation", "sites", "value", "best"]
    return (
        one.history[columns].equals(other.history[columns])
        and np.array_equal(one.x, other.x)
        and (one.fun, one.nfev, one.message) == (other.fun, other.nfev, other.message)
    )


# -- one run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", CHEAP)
def test_a_run_is_its_history(objective, method):
    run = eo.minimize(objective, method, budget=BUDGET, rng=0)
    history = run.history
    assert run.nfev == len(history) == objective.evaluations == BUDGET
    assert list(history.columns) == ["evaluation", "sites", "value", "best", "seconds"]
    assert history["evaluation"].tolist() == list(range(1, BUDGET + 1))
    assert history["sites"].is_unique
    np.testing.assert_allclose(history["value"], objective.values(history["sites"].tolist()), rtol=1e-12)
    assert history["best"].equals(history["value"].cummin())
    assert history["seconds"].is_monotonic_increasing
    assert run.fun == history["value"].min() == objective(run.x)
    assert "budget" in run.message


def test_the_default_is_gp_pm(objective):
    runs = (eo.minimize(objective, *method, budget=22, rng=0) for method in ((), ("gp-pm",)))
    assert same(*runs)


def test_minimize_is_ask_evaluate_tell(objective):
    """The same numbers by hand, as the public contract shows it."""
    by_hand = Genetic(objective, rng=3)
    for _ in range(BUDGET):
        x = by_hand.ask()
        by_hand.tell(x, objective(x))
    for method in ("genetic", Genetic(objective, rng=3)):
        run = eo.minimize(objective, method, budget=BUDGET, rng=3)
        assert run.history["value"].tolist() == by_hand.values


@pytest.mark.parametrize("method", CHEAP)
def test_rng_decides_everything(city, objective, method):
    for problem in (objective, noisy(city)):
        one, again, other = (eo.minimize(problem, method, budget=BUDGET, rng=seed) for seed in (1, 1, 2))
        assert same(one, again)
        assert not same(one, other)
    generators = [np.random.default_rng(7), np.random.default_rng(7)]
    assert same(*(eo.minimize(objective, method, budget=5, rng=rng) for rng in generators))


def test_noise_is_fresh_in_each_evaluation(city):
    """Common random numbers in all evaluations would let a search exploit one sample's luck."""
    objective = eo.Objective(city, 8, "simulation", calls=300)  # one allowed deployment: all sites
    run = eo.minimize(objective, "random", budget=10, rng=0)
    assert run.nfev == objective.evaluations == 10
    assert run.history["value"].is_unique


# -- why it stops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", CHEAP)
def test_the_whole_space_is_seen_and_the_optimum_proven(city, method):
    space = eo.DeploymentSpace(city, 3, colocation=2)
    objective = eo.Objective(city, space, "exact")
    run = eo.minimize(objective, method, budget=10_000, rng=0)
    everything = eo.evaluators.evaluate_all(city, space, "exact")
    assert run.nfev == objective.space.count == len(everything.values)
    assert run.fun == pytest.approx(everything.values.min(), abs=1e-12)
    assert "optimum" in run.message


def test_it_stops_at_the_target(objective):
    full = eo.minimize(objective, "random", budget=BUDGET, rng=0)
    target = full.history["best"][BUDGET // 2]
    run = eo.minimize(objective, "random", budget=BUDGET, rng=0, target=target)
    assert run.nfev == 1 + (full.history["best"] <= target).idxmax() <= BUDGET // 2 + 1
    assert run.fun <= target
    assert "target" in run.message


@pytest.fixture
def timed(city, monkeypatch):
    """An objective whose evaluations take a second each, by a clock that only they move."""
    now = [100.0]
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    class Timed(eo.Objective):
        def __call__(self, sites):
            now[0] += 1.0
            return super().__call__(sites)

    return Timed(city, 4, "approximate")


def test_it_stops_at_the_time_limit(timed):
    for limit, nfev in ((0.5, 1), (3.0, 3), (3.5, 4)):
        run = eo.minimize(timed, "random", budget=10, rng=0, time_limit=limit)
        assert run.history["seconds"].tolist() == list(range(1, nfev + 1))
        assert run.message == f"time limit of {limit:g} s reached"


def test_the_callback_sees_the_optimizer_and_may_stop_the_run(objective):
    seen = []

    def watch(optimizer):
        assert isinstance(optimizer, RandomSearch)
        seen.append(optimizer.values[-1])
        return len(seen) == 5

    run = eo.minimize(objective, "random", budget=BUDGET, callback=watch)
    assert run.history["value"].tolist() == seen
    assert (run.nfev, run.message) == (5, "stopped by the callback")


class Interrupted(eo.Objective):
    """An objective during whose evaluations somebody presses Ctrl-C."""

    at = 6

    def __call__(self, sites):
        if self.evaluations + 1 == self.at:
            signal.raise_signal(signal.SIGINT)
        return super().__call__(sites)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_returns_what_was_found(city, objective, tmp_path):
    file = tmp_path / "run.jsonl"
    run = eo.minimize(Interrupted(city, 4, "approximate"), "genetic", budget=BUDGET, rng=0, checkpoint=file)
    full = eo.minimize(objective, "genetic", budget=BUDGET, rng=0)
    assert (run.nfev, run.message) == (5, "interrupted")
    assert run.history["value"].tolist() == full.history["value"][:5].tolist()
    assert same(eo.minimize(objective, "genetic", budget=BUDGET, rng=0, checkpoint=file), full)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_before_the_first_value_is_an_interrupt(city):
    objective = Interrupted(city, 4, "approximate")
    objective.at = 1
    with pytest.raises(KeyboardInterrupt):
        eo.minimize(objective, "random", budget=3)


def test_progress_is_a_bar_or_a_function(objective, capsys):
    calls = []
    eo.minimize(objective, "random", budget=3, progress=lambda *done: calls.append(done))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    run = eo.minimize(objective, "random", budget=3, progress=True)
    assert "3/3" in (shown := capsys.readouterr().err)
    assert f"best {run.fun:.6g}" in shown


# -- the checkpoint -----------------------------------------------------------------------------------------


def evaluations_on_file(file):
    """Return the numbers of the evaluations in a checkpoint, every line of which must be whole."""
    text = file.read_text()
    assert text.endswith("\n")
    return [json.loads(line)["evaluation"] for line in text.splitlines()[1:]]


@pytest.mark.parametrize("method", CHEAP)
def test_a_checkpoint_changes_nothing_and_can_be_extended(objective, method, tmp_path):
    file = tmp_path / "run.jsonl"
    full = eo.minimize(objective, method, budget=BUDGET, rng=0)
    assert same(eo.minimize(objective, method, budget=BUDGET, rng=0, checkpoint=file), full)
    before, content = objective.evaluations, file.read_bytes()
    assert same(eo.minimize(objective, method, budget=BUDGET, rng=0, checkpoint=file), full)
    assert same(eo.minimize(objective, method, budget=BUDGET, checkpoint=file), full)  # the seed is on file
    assert (objective.evaluations, file.read_bytes()) == (before, content)
    longer = eo.minimize(objective, method, budget=BUDGET + 5, rng=0, checkpoint=file)
    assert objective.evaluations == before + 5
    assert same(longer, eo.minimize(objective, method, budget=BUDGET + 5, rng=0))
    assert evaluations_on_file(file) == list(range(1, BUDGET + 6))


@pytest.mark.parametrize("method", sorted({*METHODS} - {*CHEAP}))
def test_methods_with_a_model_resume_to_the_same_result(objective, method, tmp_path):
    file = tmp_path / "run.jsonl"
    full = eo.minimize(objective, method, budget=24, rng=0, checkpoint=file)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:23]))
    assert same(eo.minimize(objective, method, budget=24, rng=0, checkpoint=file), full)
    assert file.read_bytes().count(b"\n") == len(lines)


def test_a_drawn_seed_is_kept(objective, tmp_path):
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    runs = [eo.minimize(objective, "random", budget=10, checkpoint=file) for file in files]
    assert not same(*runs)
    for run, file in zip(runs, files, strict=True):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:4]))
        assert same(eo.minimize(objective, "random", budget=10, checkpoint=file), run)


def test_a_file_cut_at_any_byte_resumes(city, tmp_path):
    """Whatever a kill leaves of the last line: cut there at every byte, and in the rest here and there."""
    objective, file = noisy(city), tmp_path / "run.jsonl"
    full = eo.minimize(objective, "genetic", budget=4, rng=0, checkpoint=file)
    content = file.read_bytes()
    values = full.history["value"].tolist()
    last = content[:-1].rfind(b"\n")
    for cut in (*range(0, last, 23), *range(last, len(content))):
        file.write_bytes(content[:cut])
        objective.evaluations = 0
        run = eo.minimize(objective, "genetic", budget=4, rng=0, checkpoint=file)
        assert run.history["value"].tolist() == values
        whole = max(0, content[:cut].count(b"\n") - 1)  # less the header
        assert objective.evaluations == 4 - whole
        assert evaluations_on_file(file) == [1, 2, 3, 4]
    assert same(run, full)


def killed(work, file, lines, seconds=0.0):
    """Run ``work(pause)`` in a child process and kill it after ``file`` has ``lines`` lines; return the lines left.

    The kill comes ``seconds`` later. The work calls ``pause`` after each evaluation, which waits for the kill once four
    more lines are written: so the kill meets the run however late this process wakes.
    """

    def pause(seconds):
        time.sleep(seconds if lines_of(file) < lines + 4 else 600)

    child = os.fork()
    if child == 0:
        try:
            work(pause)
        finally:
            os._exit(0)
    while lines_of(file) < lines and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return lines_of(file)


def lines_of(file):
    return file.read_bytes().count(b"\n") if file.exists() else 0


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child uses no thread
@pytest.mark.parametrize(("method", "is_noisy"), [("genetic", False), ("annealing", True)])
def test_killed_at_20_random_moments_it_resumes_to_the_same_result(city, objective, method, is_noisy, tmp_path):
    objective = noisy(city) if is_noisy else objective
    budget, rng, left = 25, np.random.default_rng(0), []
    full = eo.minimize(objective, method, budget=budget, rng=0)
    for trial in range(20):
        file = tmp_path / f"{trial}.jsonl"

        def work(pause, file=file):
            spread = rng.uniform(0.001, 0.003)  # so that a kill meets the run anywhere
            eo.minimize(objective, method, budget=budget, rng=0, checkpoint=file, callback=lambda _: pause(spread))

        left.append(killed(work, file, rng.integers(budget), rng.uniform(0, 0.004)))
        assert same(eo.minimize(objective, method, budget=budget, rng=0, checkpoint=file), full)
        assert evaluations_on_file(file) == list(range(1, budget + 1))
    assert len({n for n in left if 1 < n <= budget}) >= 5, f"the kills came too early or too late: {left}"


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child uses no thread
def test_killed_again_and_again_it_still_gets_there(objective, tmp_path):
    file = tmp_path / "run.jsonl"

    def work(pause):
        eo.minimize(objective, "local", budget=BUDGET, rng=0, checkpoint=file, callback=lambda _: pause(0.02))

    left = [killed(work, file, lines, 0.01) for lines in range(2, BUDGET, 4)]
    assert len({n for n in left if 1 < n <= BUDGET}) >= 3  # the first line is the header
    full = eo.minimize(objective, "local", budget=BUDGET, rng=0)
    assert same(eo.minimize(objective, "local", budget=BUDGET, rng=0, checkpoint=file), full)
    assert evaluations_on_file(file) == list(range(1, BUDGET + 1))


def test_time_already_spent_counts(timed, tmp_path):
    options = {"rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    eo.minimize(timed, "random", budget=5, **options)
    more = eo.minimize(timed, "random", budget=10, time_limit=7.5, **options)
    assert more.history["seconds"].tolist() == list(range(1, 9))
    again = eo.minimize(timed, "random", budget=10, time_limit=2.5, **options)
    assert (again.nfev, again.message) == (3, "time limit of 2.5 s reached")


def test_a_checkpoint_of_another_run_is_refused(city, objective, tmp_path):
    file = tmp_path / "run.jsonl"

    def run(objective=objective, method="random", rng=0):
        return eo.minimize(objective, method, budget=5, rng=rng, checkpoint=file)

    run()
    content = file.read_bytes()
    others = {
        "seed": {"rng": 1},
        "method": {"method": "genetic"},
        "city": {"objective": eo.Objective(city.scaled(1.01), 4, "approximate")},
        "units": {"objective": eo.Objective(city, 5, "approximate")},
        "metric": {"objective": eo.Objective(city, 4, "approximate", ("late", 5.0))},
        "evaluator": {"objective": eo.Objective(city, 4, "exact")},
        "options": {"objective": eo.Objective(city, 4, "approximate", capacity="queue")},
        "capacities": {"objective": eo.Objective(city, eo.DeploymentSpace(city, 4, closed=[0]), "approximate")},
        "pinned": {"objective": eo.Objective(city, eo.DeploymentSpace(city, 4, pinned=[0]), "approximate")},
    }
    for key, other in others.items():
        with pytest.raises(InputError, match=f"belongs to another run: its {key} is"):
            run(**other)
    assert file.read_bytes() == content
    assert run().nfev == 5


def test_the_same_city_loaded_anew_is_the_same(city, tmp_path):
    """A resumed run has built its city again; its name and places do not matter."""
    file = tmp_path / "run.jsonl"
    eo.minimize(eo.Objective(city, 4, "approximate"), "random", budget=5, rng=0, checkpoint=file)
    renamed = eo.City(
        city.arrival_rates.tolist(),
        city.travel_times.tolist(),
        1.0,
        city.service_times.tolist(),
        name="another",
    )
    run = eo.minimize(eo.Objective(renamed, 4, "approximate"), "random", budget=5, rng=0, checkpoint=file)
    assert run.nfev == 5


def test_an_optimizer_that_asks_otherwise_is_refused(objective, tmp_path):
    file = tmp_path / "run.jsonl"
    full = eo.minimize(objective, Genetic(objective, rng=0), budget=30, checkpoint=file)
    assert same(eo.minimize(objective, Genetic(objective, rng=0), budget=30, checkpoint=file), full)
    for other in (Genetic(objective, rng=1), Genetic(objective, population=5, rng=0)):
        with pytest.raises(InputError, match=r"its (rng|settings) is .* Resume with the same problem, method, options"):
            eo.minimize(objective, other, budget=30, checkpoint=file)


def test_what_is_no_checkpoint_is_left_alone(objective, tmp_path):
    for content in (b"my notes", b"my notes\n", b'{"a": 1}\n', b"\x89PNG\r\n"):
        file = tmp_path / "other"
        file.write_bytes(content)
        with pytest.raises(InputError, match="is not a checkpoint"):
            eo.minimize(objective, "random", budget=5, checkpoint=file)
        assert file.read_bytes() == content
    with pytest.raises(InputError, match="could not be written: a folder of this path does not exist"):
        eo.minimize(objective, "random", budget=5, checkpoint=tmp_path / "nowhere" / "run.jsonl")


@pytest.mark.parametrize("damage", [b"nonsense", b"{}", b"[1, 2]", b"7", b""])
def test_a_damaged_line_is_named(objective, damage, tmp_path):
    file = tmp_path / "run.jsonl"
    eo.minimize(objective, "random", budget=5, rng=0, checkpoint=file)
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:3], damage, *lines[4:], b""]))
    with pytest.raises(InputError, match=r"line 4 of the checkpoint .* is damaged"):
        eo.minimize(objective, "random", budget=5, rng=0, checkpoint=file)
    file.write_bytes(b"\n".join([*lines[:3], lines[2], *lines[3:], b""]))  # a line doubled
    with pytest.raises(InputError, match=r"line 4 of the checkpoint .* is damaged"):
        eo.minimize(objective, "random", budget=5, rng=0, checkpoint=file)


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "`method` must be one of 'gp-pm'"),
        ({"method": 3}, "`method` must be one of"),
        ({"budget": 0}, "`budget` must be a whole number of at least 1; got 0"),
        ({"rng": -1}, "`rng` must be a whole number"),
        ({"rng": 1.5}, "`rng` must be a whole number"),
        ({"progress": "yes"}, "`progress` must be True, False or a function"),
        ({"callback": 3}, "`callback` must be a function of one argument"),
        ({"target": "low"}, "`target` must be a finite number"),
        ({"time_limit": 0}, "`time_limit` must be a number above 0"),
    ],
)
def test_bad_options_are_refused(objective, options, message):
    with pytest.raises(InputError, match=message):
        eo.minimize(objective, **{"method": "random", "budget": 3, **options})
    assert objective.evaluations == 0


def test_bad_objectives_and_optimizers_are_refused(city, objective):
    with pytest.raises(InputError, match=r"`bounds` is missing: .* an emsopt\.Objective"):
        eo.minimize(lambda sites: 0.0, "random", budget=3)
    with pytest.raises(InputError, match="created for this `objective`"):
        eo.minimize(objective, RandomSearch(eo.Objective(city, 4)), budget=3)


class Broken(eo.Objective):
    """An objective that goes wrong."""

    def __call__(self, sites):
        return "broken"


def test_a_value_that_is_no_number_is_refused_and_not_put_on_file(city, tmp_path):
    file = tmp_path / "run.jsonl"
    with pytest.raises(InputError, match=r"must return a number, .*; at \[.*\] it returned 'broken' \(str\)"):
        eo.minimize(Broken(city, 4, "approximate"), "random", budget=3, rng=0, checkpoint=file)
    assert evaluations_on_file(file) == []


# -- ask and tell -------------------------------------------------------------------------------------------


class Stubborn(Optimizer):
    """Proposes the same deployment again and again."""

    def _propose(self):
        return np.arange(self.space.units)


def test_a_proposal_already_made_is_replaced(city, objective):
    optimizer = Stubborn(objective, rng=0)
    rows = optimizer.ask(objective.space.count + 5)
    assert rows.shape == (objective.space.count, 4)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert optimizer.exhausted
    with pytest.raises(InputError, match=f"all {len(rows)} allowed deployments have been asked for"):
        optimizer.ask()
    assert (Stubborn(noisy(city), rng=0).ask(5) == np.arange(4)).all()


def test_tell_takes_any_allowed_deployment_and_nothing_else(objective):
    optimizer = RandomSearch(objective, rng=0)
    assert optimizer.best == (None, np.inf)
    optimizer.tell([3, 1, 0, 2], 5.0)
    optimizer.tell([4, 5, 6, 7], np.float32(4.0))
    assert [x.tolist() for x in optimizer.sites] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert optimizer.values == [5.0, 4.0]
    assert optimizer.best[0].tolist() == [4, 5, 6, 7]
    for sites, value in [([0, 1, 2], 1.0), ([0, 0, 1, 2], 1.0), ([0, 1, 2, 99], 1.0)]:
        with pytest.raises(InputError):
            optimizer.tell(sites, value)
    for value in (None, "low", [1.0, 2.0], 1j):
        with pytest.raises(InputError, match="`value` must be a number or an array of one number; got"):
            optimizer.tell([0, 1, 2, 4], value)
    assert len(optimizer.sites) == len(optimizer.values) == len(optimizer.taken) == 2
    for value in (np.nan, np.inf):
        optimizer.tell([0, 1, 2, 4], value)
    assert optimizer.values == [5.0, 4.0]
    asked = optimizer.ask(objective.space.count)
    assert len(asked) == objective.space.count - 3  # what was told or failed is not asked for
    with pytest.raises(InputError, match=r"`objective` must be an emsopt\.Objective"):
        RandomSearch(None)


def test_each_search_takes_its_own_kind_of_optimizer():
    """A box's optimizer cannot search deployments, nor the other way round, nor a class what an instance can."""
    objective = eo.Objective(eo.datasets.grid_city(6, 2, rng=0), 2, "approximate")
    bounds = [(0, 5), (0, 5)]
    points = eo.optimizers.RandomPoints(lambda x: x.sum(), bounds=bounds, sense="max", integers=[0, 1])
    sites = eo.optimizers.RandomSearch(objective)
    for method in (points, eo.optimizers.RandomSearch):
        with pytest.raises(InputError, match="or an instance of Optimizer created for this objective; got Random"):
            eo.minimize(objective, method, budget=3)
    with pytest.raises(
        InputError,
        match=r"'boke'.*or an instance of BoxOptimizer created for this objective; got RandomSearch",
    ):
        eo.maximize(lambda x: x.sum(), sites, bounds=bounds, budget=3)


def test_a_function_may_change_the_point_it_is_given():
    def f(x):
        x -= 0.3
        return -float(x @ x)

    run = eo.maximize(f, "random", bounds=[(0, 1), (0, 1)], budget=5, rng=0)
    same = eo.maximize(lambda x: f(x.copy()), "random", bounds=[(0, 1), (0, 1)], budget=5, rng=0)
    assert run.x.tolist() == same.x.tolist()
    assert f(run.x.copy()) == run.fun


@pytest.mark.parametrize("seed", ["a", -1, 1.5])
def test_what_is_no_seed_is_refused_everywhere(objective, seed):
    roads = eo.datasets.load_roads("monaco")
    for call in (
        lambda: eo.minimize(objective, "local", budget=3, rng=seed),
        lambda: RandomSearch(objective, rng=seed),
        lambda: eo.minimize(eo.problems.hartmann3(), "random", budget=3, rng=seed),
        lambda: eo.bandits.run(roads, *eo.datasets.ROUTES["monaco"]["A"], rng=seed),
        lambda: eo.datasets.grid_city(10, units=2, load=0.1, rng=seed),
        lambda: eo.evaluators.simulate(objective.city, [0, 1], calls=1000, rng=seed),
    ):
        with pytest.raises(InputError, match="`rng` must be a whole number"):
            call()
