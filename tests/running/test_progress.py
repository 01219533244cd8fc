"""`progress` means the same in every public function that has it: a bar, a function of (done, total), or nothing."""

import inspect
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import emsopt as eo

CITY = eo.datasets.grid_city(n_sites=5, units=2, size=3, rng=0)
SQUARE = eo.RoadNetwork([100.0, 200.0, 300.0, 400.0], [10.0] * 4, [(0, 1), (1, 2), (0, 3), (3, 2)])
PLAN = eo.planning.hourly_plan([CITY, CITY.scaled(2)], 2, 1)
WEEK = eo.calls.HeldOutCalls(np.tile(CITY.arrival_rates, (2, 1)), np.ones((2, CITY.n_atoms)))
TWO = {"a": [0, 1], "b": [2, 3]}
PRACTICE = eo.datasets.practice_calls()
ACCEPTED = eo.planning.Settings(units=3, cell_km=3.0, empty_days="missing", accept_findings=True)


# A city that a log of one week leaves no doubt about.
CERTAIN = SimpleNamespace(weeks=1.0, city=lambda: CITY, draws=lambda n, *_, **__: iter([CITY] * n))


def square(side):
    return {"area": side**2}


TASKS = {
    "bandits.run": lambda **p: eo.bandits.run(SQUARE, 0, 2, horizon=3, rng=0, **p),
    "operations.best_offsets": lambda **p: eo.operations.best_offsets(CITY, [0, 1], steps=3, rng=0, **p),
    "optimizers.best_deployment": lambda **p: eo.optimizers.best_deployment(eo.Objective(CITY, 2), **p),
    "optimizers.bocvs": lambda **p: eo.optimizers.bocvs(eo.problems.hill_control(), budget=2, rng=0, regret=False, **p),
    "optimizers.local_search": lambda **p: eo.optimizers.local_search(eo.Objective(CITY, 2), rng=0, **p),
    "optimizers.maximize": lambda **p: eo.maximize(np.sum, "random", bounds=[(0, 1)], budget=3, rng=0, **p),
    "optimizers.minimize": lambda **p: eo.minimize(eo.Objective(CITY, 2), "random", budget=3, rng=0, **p),
    "planning.advise": lambda **p: eo.planning.advise(*PRACTICE, ACCEPTED, **p),
    "planning.compare": lambda **p: eo.planning.compare(CERTAIN, TWO, draws=100, rng=0, **p),
    "planning.hourly_plan": lambda **p: eo.planning.hourly_plan([CITY, CITY.scaled(2)], 2, 1, **p),
    "planning.judge_plan": lambda **p: eo.planning.judge_plan(PLAN, [WEEK, WEEK], **p),
    "study.run": lambda **p: eo.study.run(square, [{"side": 1}, {"side": 2}], **p),
    "planning.sweep": lambda **p: eo.planning.sweep({"now": CITY, "later": CITY.scaled(2)}, 2, **p),
}


def public_functions():
    """Return every function of the public modules that takes `progress`, by its name there."""
    found = {}
    for room, module in ((name, getattr(eo, name)) for name in eo.__all__):
        for name, function in inspect.getmembers(module, inspect.isfunction) if isinstance(module, ModuleType) else ():
            here = function.__module__.startswith(module.__name__)
            if here and not name.startswith("_") and "progress" in inspect.signature(function).parameters:
                found[f"{room}.{name}"] = function
    return found


def test_every_function_with_progress_is_here():
    assert sorted(public_functions()) == sorted(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_progress_is_a_bar_a_function_or_nothing(name, capsys):
    task, steps = TASKS[name], []
    task(progress=lambda done, total: steps.append((done, total)))
    assert capsys.readouterr().err == ""
    assert steps[-1][0] >= steps[-1][1] - 1  # a budget of costs may be left with less than one play costs
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert name not in ("bandits.run", "optimizers.minimize") or steps == [(1, 3), (2, 3), (3, 3)]
    task(progress=True)
    assert f"{steps[-1][0]}/{steps[-1][1]}" in capsys.readouterr().err.replace(",", "")
    with pytest.raises(eo.errors.InputError, match=r"`progress` must be True, False or a function of \(done, total\)"):
        task(progress="yes")
