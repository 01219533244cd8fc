"""The largest floats as values, and several threads on one optimizer."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import emsopt as eo

BIG = sys.float_info.max
FUNCTIONS = {
    "penalty": lambda x: BIG if x[0] > 0.6 else (x[0] - 0.3) ** 2 - 5,
    "both signs": lambda x: BIG * (2 * x[0] - 1),
    "all but equal": lambda x: BIG * (1 - 1e-9 * x[0]),
    "mixed": lambda x: (-BIG, BIG, 0.0, 1e-300)[int(4 * x[0]) % 4] * (1 - x[0] / 2),
}


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", sorted({*eo.optimizers.BOX_METHODS} - {"random", "boke+", "gp-ucb"}))
def test_values_up_to_the_largest_float(method, name, noisy):
    run = eo.minimize(FUNCTIONS[name], method, bounds=[(0, 1)], budget=9, rng=1, noisy=noisy)
    assert run.nfev == 9
    if not noisy:
        assert run.fun == run.history["value"].min()


@pytest.mark.parametrize("kind", ["box", "deployments"])
def test_threads_take_turns(kind):
    if kind == "box":
        optimizer = eo.optimizers.BOKEAuto(bounds=[(0, 1)] * 2, sense="min", rng=0)
        value = lambda x: float(np.sum((x - 0.3) ** 2))
    else:
        objective = eo.Objective(eo.datasets.grid_city(n_sites=8, units=3, rng=1), 3)
        optimizer, value = eo.optimizers.GPpM(objective, rng=0), objective

    def work(_):
        x = optimizer.ask()
        optimizer.tell(x, value(x))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(32)))
    assert len(optimizer.values) == 32
    assert len({tuple(x) for x in optimizer.told}) == 32
    twins, x = (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))), optimizer.ask()
    assert all(np.array_equal(twin.ask(), x) for twin in twins)
