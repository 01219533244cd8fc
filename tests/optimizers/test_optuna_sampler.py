"""boke-auto as a sampler of Optuna: kinds of parameters, conditional ones, failures, parallel trials, reproducibility."""

import doctest
import pickle
import subprocess
import sys
import threading

import numpy as np
import optuna  # a part of the test extra
import pytest

import emsopt as eo
from emsopt.errors import InputError, MissingDependencyError

MISSING = """
import sys
sys.modules["optuna"] = None
import emsopt as eo
from emsopt.optimizers import *
assert "BOKEAutoSampler" in dir(eo.optimizers)
try:
    eo.optimizers.BOKEAutoSampler
except eo.errors.MissingDependencyError as error:
    print(error)
"""


def test_without_optuna_it_is_said_how_to_install_it():
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    assert done.stdout == 'The sampler needs Optuna. Install it with `pip install "emsopt[optuna]"`.\n'
    assert issubclass(MissingDependencyError, ImportError)


optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_example_of_the_docstring():
    """The other modules' examples are collected by pytest, which must not import this one where Optuna is missing."""
    from emsopt.optimizers import optuna_sampler

    ran = doctest.testmod(optuna_sampler)
    assert ran.attempted > 3
    assert ran.failed == 0


def study_of(objective, n=30, *, seed=0, direction="minimize", n_jobs=1, **options):
    study = optuna.create_study(sampler=eo.optimizers.BOKEAutoSampler(seed=seed, **options), direction=direction)
    study.optimize(objective, n_trials=n, n_jobs=n_jobs, catch=(ArithmeticError,))
    return study


def all_kinds(trial):
    """Return a loss of 0 at rate 0.001, 3 layers, 32 units, step 0.5, even 4, lbfgs."""
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 9)
    units = trial.suggest_int("units", 1, 512, log=True)
    step = trial.suggest_float("a step", 0.0, 1.0, step=0.25)
    even = trial.suggest_int("even", 2, 10, step=2)
    solver = trial.suggest_categorical("solver", ["adam", "lbfgs", None, True, 1.5])
    trial.suggest_float("fixed", 2.0, 2.0)
    loss = (np.log10(rate) + 3) ** 2 / 4 + (layers - 3) ** 2 / 10 + np.log2(units / 32) ** 2 / 10
    return loss + (step - 0.5) ** 2 + (even - 4) ** 2 / 20 + (solver != "lbfgs") * 0.5


def test_parameters_of_all_kinds_are_proposed_within_their_ranges():
    study = study_of(all_kinds, 50)
    assert study.best_value < 0.4  # with random parameters 0.3 to 1.4
    for trial in study.trials:
        for name, distribution in trial.distributions.items():
            assert distribution._contains(distribution.to_internal_repr(trial.params[name]))
    assert {type(trial.params["units"]) for trial in study.trials} == {int}
    assert {trial.params["a step"] for trial in study.trials} <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert {trial.params["even"] for trial in study.trials} <= {2, 4, 6, 8, 10}


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_it_is_as_good_as_the_method_itself(direction):
    """Forty trials of Hartmann's function end near its best value, in both directions."""
    f, sign = eo.problems.hartmann3(), 1 if direction == "minimize" else -1
    study = study_of(
        lambda trial: sign * f([trial.suggest_float(f"x{k}", 0, 1) for k in range(3)]), 40, direction=direction
    )
    assert sign * study.best_value == pytest.approx(f.best_value, abs=0.1)


def test_the_same_seed_gives_the_same_study():
    one, again, other = (study_of(all_kinds, 15, seed=seed) for seed in (1, 1, 2))
    assert [t.params for t in one.trials] == [t.params for t in again.trials]
    assert [t.params for t in one.trials] != [t.params for t in other.trials]


def conditional(trial):
    kind = trial.suggest_categorical("kind", ["forest", "network"])
    if kind == "forest":
        return trial.suggest_float("depth", 0, 1) ** 2 + 0.5
    return (trial.suggest_float("width", -1, 1) ** 2 + trial.suggest_float("shared", 0, 1 + trial.number % 2)) / 4


def test_the_better_branch_is_learned_although_a_range_changes():
    study = study_of(conditional, 40)
    assert {len(trial.params) for trial in study.trials} == {2, 3}
    assert study.best_value < 0.1  # of 0; the other branch has 0.5
    counts = [trial.params["kind"] for trial in study.trials].count("network")
    assert counts > 20
    assert [*study.sampler._space] == ["depth", "kind", "width"]  # without "shared", whose range changes


def branches(trial):
    """Return a loss with a broad bottom of 0.2 and, in a branch that is worse on average, a narrow one of 0."""
    if trial.suggest_categorical("kind", ["broad", "narrow"]) == "broad":
        return 0.2 + (trial.suggest_float("x", 0, 1) - 0.7) ** 2 / 10
    return 1.1 * abs(trial.suggest_float("y", 0, 1) - 0.62) ** 0.5


def layers(trial):
    n = trial.suggest_int("n", 1, 4)
    return (n - 3) ** 2 / 10 + sum((trial.suggest_float(f"u{k}", 0, 1) - 0.2 * k - 0.1) ** 2 for k in range(n))


def test_no_branch_is_given_up():
    """Of the last 40 trials some are of the branch that looks worse, and of all trials with one more layer too."""
    for seed in range(3):
        kinds = [trial.params["kind"] for trial in study_of(branches, 60, seed=seed).trials[20:]]
        assert 0 < kinds.count("narrow") < 40
    ends = [study_of(layers, 40, seed=seed).best_value for seed in range(3)]
    assert np.median(ends) < 0.002  # random parameters: 0.03


def lacking(trial):
    """Fail between two parameters in trials 5 to 7."""
    x = trial.suggest_float("x", 0, 1)
    if 5 <= trial.number < 8:
        raise ArithmeticError
    return x + trial.suggest_float("y", 0, 1)


def test_no_point_waits_for_a_value_that_never_comes():
    optimizer = study_of(lacking, 14).sampler._optimizer
    assert (len(optimizer.values), len(optimizer.failed), len(optimizer.pending)) == (10, 3, 1)  # of the last trial
    study = optuna.create_study(sampler=eo.optimizers.BOKEAutoSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    study.enqueue_trial({"x": 0.5})
    study.enqueue_trial({"x": 7.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    assert len(study.sampler._optimizer.pending) == 1


@pytest.mark.parametrize(
    "options", [{"n_startup_trials": 5}, {"constraints_func": len}, {"exploring": 5}, {"initial": -1}]
)
def test_bad_options_are_refused_at_once(options):
    with pytest.raises((TypeError, InputError), match=f"{next(iter(options))}"):
        eo.optimizers.BOKEAutoSampler(**options)


def test_pruned_and_failed_trials_are_passed_over():
    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if x < 0.2:
            raise ArithmeticError
        if y < 0.2:
            raise optuna.TrialPruned
        return float("nan") if x + y > 1.7 else (x - 0.3) ** 2 + (y - 0.3) ** 2

    study = study_of(objective, 40)
    states = {trial.state.name for trial in study.trials}
    assert {"COMPLETE", "FAIL", "PRUNED"} <= states
    assert study.best_value < 0.01
    optimizer = study.sampler._optimizer
    complete = [t.value for t in study.trials if t.state.name == "COMPLETE"]
    assert set(optimizer.values) <= set(complete)


def test_enqueued_trials_and_those_of_another_sampler_are_learned_from():
    def objective(trial):
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=10)
    study.enqueue_trial({"x": 0.5})
    study.enqueue_trial({"x": 0.5})
    study.sampler = eo.optimizers.BOKEAutoSampler(seed=0)
    study.optimize(objective, n_trials=6)
    assert [trial.params["x"] for trial in study.trials[10:12]] == [0.5, 0.5]
    optimizer = study.sampler._optimizer
    assert len(optimizer.values) == 15  # all but the last
    assert len(optimizer.pending) == 1
    assert study.best_value < 1e-4


def test_two_values_at_one_point_name_noisy():
    values = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    def objective(trial):
        trial.suggest_float("x", 0, 1)
        return next(values)

    for noisy in (False, True):
        values = iter(range(6))
        study = optuna.create_study(sampler=eo.optimizers.BOKEAutoSampler(seed=0, noisy=noisy))
        study.enqueue_trial({"x": 0.5})
        study.enqueue_trial({"x": 0.5})
        if noisy:
            study.optimize(objective, n_trials=5)
        else:
            with pytest.raises(InputError, match=r"two values at one point: 0 and 1 .* pass noisy=True"):
                study.optimize(objective, n_trials=5)


def test_trials_run_in_parallel_and_the_sampler_can_be_pickled():
    met = threading.Barrier(2, timeout=60)

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number > 3:
            met.wait()  # two trials run at the same time
        return (x - 0.3) ** 2

    study = study_of(objective, 14, n_jobs=2)
    assert len({trial.params["x"] for trial in study.trials}) == 14
    sampler = pickle.loads(pickle.dumps(study.sampler))
    study.sampler = sampler
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=5)
    assert study.best_value < 1e-3


def test_a_finite_space_is_searched_and_then_sampled_at_random():
    study = study_of(lambda trial: trial.suggest_int("n", 1, 4), 10)
    assert {trial.params["n"] for trial in study.trials[:5]} == {1, 2, 3, 4}
    assert study.best_value == 1


def test_several_objectives_are_refused():
    study = optuna.create_study(sampler=eo.optimizers.BOKEAutoSampler(), directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=3)
