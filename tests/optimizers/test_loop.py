"""`minimize`: what a run counts, why it stops, and what it refuses."""

import signal

import numpy as np
import pytest
from own_functions import BUDGET, CHEAP, noisy, same
from refusals import refused

import emsopt as eo
from emsopt.errors import InputError
from emsopt.optimizers import RandomSearch
from emsopt.optimizers.deployments._base import Optimizer


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


@pytest.mark.parametrize("method", CHEAP)
def test_rng_decides_everything(city, objective, method):
    for problem in (objective, noisy(city)):
        one, again, other = (eo.minimize(problem, method, budget=15, rng=seed) for seed in (1, 1, 2))
        assert same(one, again)
        assert not same(one, other)
    generators = [np.random.default_rng(7), np.random.default_rng(7)]
    assert same(*(eo.minimize(objective, method, budget=5, rng=rng) for rng in generators))


@pytest.mark.parametrize("method", CHEAP)
def test_the_whole_space_is_seen_and_the_optimum_proven(city, method):
    space = eo.DeploymentSpace(city, 3, colocation=2)
    objective = eo.Objective(city, space, "exact")
    run = eo.minimize(objective, method, budget=10_000, rng=0)
    everything = eo.evaluators.evaluate_all(city, space, "exact")
    assert run.nfev == objective.space.count == len(everything.values)
    assert run.fun == pytest.approx(everything.values.min(), abs=1e-12)
    assert "optimum" in run.message


def test_it_stops_at_the_time_limit(timed):
    for limit, nfev in ((0.5, 1), (3.0, 3), (3.5, 4)):
        run = eo.minimize(timed, "random", budget=10, rng=0, time_limit=limit)
        assert run.history["seconds"].tolist() == list(range(1, nfev + 1))
        assert run.message == f"time limit of {limit:g} s reached"


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


def test_the_bar_shows_the_best_value(objective, capsys):
    run = eo.minimize(objective, "random", budget=3, progress=True)
    assert f"best {run.fun:.6g}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "`method` must be one of 'gp-pm'"),
        ({"budget": 0}, "`budget` must be a whole number of at least 1; got 0"),
        ({"rng": 1.5}, "`rng` must be a whole number"),
        ({"time_limit": 0}, "`time_limit` must be a number above 0"),
        ({"workers": 0}, "`workers` must be a whole number"),
        ({"workers": lambda f, items: []}, "`workers` must return the result of every item.* got 0 of 3"),
        ({"catch": KeyboardInterrupt}, "`catch` must be exceptions"),
    ],
)
def test_bad_options_are_refused(objective, options, message):
    refused(message, eo.minimize, objective, **{"method": "random", "budget": 3, **options})
    assert objective.evaluations == 0


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
    refused(f"all {len(rows)} allowed deployments have been asked for", optimizer.ask)
    assert (Stubborn(noisy(city), rng=0).ask(5) == np.arange(4)).all()


def test_tell_takes_any_allowed_deployment_and_nothing_else(objective):
    optimizer = RandomSearch(objective, rng=0)
    assert optimizer.best == (None, np.inf)
    optimizer.tell([3, 1, 0, 2], 5.0)
    optimizer.tell([4, 5, 6, 7], np.float32(4.0))
    assert [x.tolist() for x in optimizer.sites] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert optimizer.values == [5.0, 4.0]
    assert optimizer.best[0].tolist() == [4, 5, 6, 7]
    for sites in ([0, 1, 2], [0, 0, 1, 2], [0, 1, 2, 99]):
        with pytest.raises(InputError):
            optimizer.tell(sites, 1.0)
    for value in ("low", [1.0, 2.0]):
        refused("`value` must be a number or an array of one number; got", optimizer.tell, [0, 1, 2, 4], value)
    optimizer.withdraw([3, 1, 0, 2])  # its value is known
    assert len(optimizer.sites) == len(optimizer.values) == len(optimizer.taken) == 2
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
