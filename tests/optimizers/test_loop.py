"""`minimize`: what a run counts, why it stops, how it resumes from a checkpoint, and what it refuses."""

import signal
from functools import partial

import numpy as np
import pytest
from own_functions import BUDGET, CHEAP, cut, evaluations_on_file, noisy, same
from refusals import refused

import emsopt as eo
from emsopt.optimizers import METHODS, Genetic, RandomSearch
from emsopt.optimizers.deployments._base import Optimizer


@pytest.mark.parametrize("method", CHEAP)
def test_a_run_is_its_history_and_the_bar_shows_the_best_value(objective, method, capsys):
    run = eo.minimize(objective, method, budget=BUDGET, rng=0, progress=True)
    assert f"best {run.fun:.6g}" in capsys.readouterr().err
    history = run.history
    assert run.nfev == len(history) == objective.evaluations == BUDGET
    assert list(history.columns) == ["evaluation", "sites", "value", "best", "seconds"]
    assert history["evaluation"].tolist() == list(range(1, BUDGET + 1))
    assert history["sites"].is_unique
    np.testing.assert_allclose(history["value"], objective.values(history["sites"].tolist()), rtol=1e-12)
    assert history["best"].equals(history["value"].cummin())
    assert history["seconds"].is_monotonic_increasing
    assert run.fun == history["value"].min() == objective(run.x)
    assert run.message == f"budget of {BUDGET} evaluations used"


@pytest.mark.parametrize("method", CHEAP)
def test_rng_decides_everything(city, objective, method):
    for problem in (objective, noisy(city)):
        seeds = 1, 1, 2, np.random.default_rng(7), np.random.default_rng(7)
        one, again, other, *drawn = (eo.minimize(problem, method, budget=15, rng=seed) for seed in seeds)
        assert same(one, again)
        assert same(*drawn)
        assert not same(one, other)


def test_it_stops_at_the_time_limit_and_time_already_spent_counts(timed, tmp_path):
    for limit, nfev in ((0.5, 1), (3.0, 3), (3.5, 4)):
        run = eo.minimize(timed, "random", budget=10, rng=0, time_limit=limit)
        assert run.history["seconds"].tolist() == list(range(1, nfev + 1))
        assert run.message == f"time limit of {limit:g} s reached"
    options = {"rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    eo.minimize(timed, "random", budget=5, **options)
    more = eo.minimize(timed, "random", budget=10, time_limit=7.5, **options)
    assert more.history["seconds"].tolist() == list(range(1, 9))
    again = eo.minimize(timed, "random", budget=10, time_limit=2.5, **options)
    assert (again.nfev, again.message) == (3, "time limit of 2.5 s reached")


class Interrupted(eo.Objective):
    """An objective during whose evaluations somebody presses Ctrl-C."""

    at = 6

    def __call__(self, sites):
        if self.evaluations + 1 == self.at:
            signal.raise_signal(signal.SIGINT)
        return super().__call__(sites)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_returns_what_was_found(city, objective, tmp_path):
    options = {"method": "genetic", "budget": BUDGET, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    interrupted = Interrupted(city, 4, "approximate")
    run, full = eo.minimize(interrupted, **options), eo.minimize(objective, "genetic", budget=BUDGET, rng=0)
    assert (run.nfev, run.message) == (5, "interrupted")
    assert run.history["value"].tolist() == full.history["value"][:5].tolist()
    assert same(eo.minimize(objective, **options), full)
    interrupted.at = interrupted.evaluations + 1
    with pytest.raises(KeyboardInterrupt):  # before the first value
        eo.minimize(interrupted, "random", budget=3)


def test_bad_options_are_refused(objective):
    for options, message in (
        ({"method": "best"}, "`method` must be one of 'gp-pm'"),
        ({"budget": 0}, "`budget` must be a whole number of at least 1; got 0"),
        ({"rng": 1.5}, "`rng` must be a whole number"),
        ({"time_limit": 0}, "`time_limit` must be a number above 0"),
        ({"workers": 0}, "`workers` must be a whole number"),
        ({"workers": lambda f, items: []}, "`workers` must return the result of every item.* got 0 of 3"),
        ({"catch": KeyboardInterrupt}, "`catch` must be exceptions"),
    ):
        refused(message, eo.minimize, objective, **{"method": "random", "budget": 3, **options})
    assert objective.evaluations == 0


def test_a_proposal_already_made_is_replaced(city, objective):
    class Stubborn(Optimizer):
        def _propose(self):
            return np.arange(self.space.units)

    optimizer = Stubborn(objective, rng=0)
    rows = optimizer.ask(objective.space.count + 5)
    assert rows.shape == (objective.space.count, 4)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert optimizer.exhausted
    refused(f"all {len(rows)} allowed deployments have been asked for", optimizer.ask)
    assert (Stubborn(noisy(city), rng=0).ask(5) == np.arange(4)).all()


def test_tell_takes_any_allowed_deployment_and_nothing_else(objective):
    optimizer = RandomSearch(objective, rng=0)
    assert optimizer.best == (None, np.inf)
    optimizer.tell([3, 1, 0, 2], 5.0)
    optimizer.tell([4, 5, 6, 7], np.float32(4.0))
    assert [x.tolist() for x in optimizer.sites] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert optimizer.best[0].tolist() == [4, 5, 6, 7]
    for sites in ([0, 1, 2], [0, 0, 1, 2], [0, 1, 2, 99]):
        refused("deployment|sites|units", optimizer.tell, sites, 1.0)
    for value in ("low", [1.0, 2.0]):
        refused("`value` must be a number or an array of one number; got", optimizer.tell, [0, 1, 2, 4], value)
    optimizer.withdraw([3, 1, 0, 2])  # its value is known
    assert len(optimizer.sites) == len(optimizer.taken) == 2
    for value in (np.nan, np.inf):
        optimizer.tell([0, 1, 2, 4], value)
    assert optimizer.values == [5.0, 4.0]
    asked = optimizer.ask(objective.space.count)
    assert len(asked) == objective.space.count - 3  # what was told or failed is not asked for
    refused(r"`objective` must be an emsopt\.Objective", RandomSearch, None)


def test_a_function_may_change_the_point_it_is_given():
    def f(x):
        x -= 0.3
        return -float(x @ x)

    run = eo.maximize(f, "random", bounds=[(0, 1), (0, 1)], budget=5, rng=0)
    assert f(run.x.copy()) == run.fun


def test_noise_is_fresh_in_each_evaluation(city):
    """Common random numbers in all evaluations would let a search exploit one sample's luck."""
    objective = eo.Objective(city, 8, "simulation", calls=300)  # one allowed deployment: all sites
    run = eo.minimize(objective, "random", budget=5, rng=0)
    assert run.nfev == objective.evaluations == 5
    assert run.history["value"].is_unique


# -- checkpoints


def test_a_checkpoint_changes_nothing_and_can_be_extended(objective, tmp_path):
    file = tmp_path / "run.jsonl"
    full, options = eo.minimize(objective, "genetic", budget=BUDGET, rng=0), {"method": "genetic", "checkpoint": file}
    assert same(eo.minimize(objective, **options, budget=BUDGET, rng=0), full)
    before, content = objective.evaluations, file.read_bytes()
    for seed in ({"rng": 0}, {}):  # the seed is on file
        assert same(eo.minimize(objective, **options, budget=BUDGET, **seed), full)
    assert (objective.evaluations, file.read_bytes()) == (before, content)
    longer = eo.minimize(objective, **options, budget=BUDGET + 5)
    assert objective.evaluations == before + 5
    assert same(longer, eo.minimize(objective, "genetic", budget=BUDGET + 5, rng=0))


@pytest.mark.parametrize("method", METHODS)
def test_a_run_cut_off_resumes_to_the_same_result(objective, method, tmp_path):
    options = {"method": method, "budget": 23, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    full = eo.minimize(objective, **options)
    cut(options["checkpoint"], 23)
    assert same(eo.minimize(objective, **options), full)
    assert len(evaluations_on_file(options["checkpoint"])) == 23


def test_a_file_cut_anywhere_resumes(city, tmp_path):
    """Whatever a kill leaves of the last line: cut there at every ninth byte, and in the rest here and there."""
    objective, file = noisy(city), tmp_path / "run.jsonl"
    full = eo.minimize(objective, "genetic", budget=4, rng=0, checkpoint=file)
    content = file.read_bytes()
    last = content[:-1].rfind(b"\n")
    for end in (*range(0, last, 197), *range(last, len(content), 9), len(content) - 1):
        file.write_bytes(content[:end])
        objective.evaluations = 0
        assert same(eo.minimize(objective, "genetic", budget=4, rng=0, checkpoint=file), full)
        assert objective.evaluations == 4 - max(0, content[:end].count(b"\n") - 1)  # less the header
        assert evaluations_on_file(file) == [1, 2, 3, 4]
        assert file.read_bytes().endswith(b"\n")


def test_a_checkpoint_of_another_run_is_refused(city, objective, tmp_path):
    options = {"objective": objective, "method": "random", "budget": 5, "rng": 0, "checkpoint": tmp_path / "run.jsonl"}
    eo.minimize(**options)
    content = options["checkpoint"].read_bytes()
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
        refused(f"belongs to another run: its {key} is", eo.minimize, **options | other)
    assert options["checkpoint"].read_bytes() == content
    times = city.travel_times.tolist(), 1.0, city.service_times.tolist()
    again = eo.City(city.arrival_rates.tolist(), *times, name="another")  # built again: its name does not matter
    assert eo.minimize(**options | {"objective": eo.Objective(again, 4, "approximate")}).nfev == 5


def test_an_optimizer_that_asks_otherwise_is_refused(objective, tmp_path):
    options, sparbl = {"budget": 25, "checkpoint": tmp_path / "run.jsonl"}, partial(eo.optimizers.SparBL, objective)
    full = eo.minimize(objective, sparbl(sweeps=5, rng=0), **options)
    assert same(eo.minimize(objective, sparbl(sweeps=5, rng=0), **options), full)
    for other in (sparbl(sweeps=5, rng=1), sparbl(sweeps=6, rng=0), Genetic(objective, rng=0)):
        message = r"its (rng|method|settings) is .* Resume with the same problem, method, options"
        refused(message, eo.minimize, objective, other, **options)
