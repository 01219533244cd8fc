"""Trade-off fronts against brute force, and hypervolumes against counted cells."""

from itertools import product

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError
from emsopt.planning import front, hypervolume
from emsopt.planning.trade_off import non_dominated

CITY = eo.datasets.grid_city(n_sites=9, units=3, rng=1)
DISTRICTS = CITY.response_times.argmin(axis=0)
METRICS = ["mean_response", ("late", 5.0), ("worst", DISTRICTS)]


@pytest.fixture(scope="module")
def st_paul():
    """St. Paul, with the atoms nearest to each of its 14 stations as districts, and its exact front."""
    city = eo.datasets.load_st_paul()
    districts = city.twin_groups[city.response_times.argmin(axis=0)]
    metrics = ["mean_response", ("late", 8.0), ("worst", districts)]
    return city, metrics, front(city, 9, metrics, "approximate")


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_hypervolume_counts_the_dominated_cells_of_a_grid(m):
    rng = np.random.default_rng(m)
    for k in (1, 5, 30):
        points = rng.integers(0, 8, (k, m))
        cells = sum(any((p <= cell).all() for p in points) for cell in map(np.array, product(range(6), repeat=m)))
        assert hypervolume(points, np.full(m, 6)) == pytest.approx(cells)


def test_hypervolume_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="reference"):
        hypervolume([[1, 2]], [3])
    with pytest.raises(InputError, match="finite"):
        hypervolume([[1, np.nan]], [3, 3])


def test_non_dominated_rows_are_those_of_all_comparisons():
    rng = np.random.default_rng(0)
    for m in (2, 3):
        values = rng.integers(0, 6, (80, m)).astype(float)
        beaten = [any((v <= u).all() and (v < u).any() for v in values) for u in values]
        expected = {tuple(v) for v, lost in zip(values, beaten, strict=True) if not lost}
        kept = non_dominated(values)
        assert {tuple(v) for v in values[kept]} == expected
        assert kept.sum() == len(expected)  # of equal rows one


def test_the_front_of_few_deployments_is_exact():
    found = front(CITY, 3, METRICS, "exact")
    objectives = [eo.Objective(CITY, 3, "exact", metric) for metric in METRICS]
    rows = objectives[0].space.listing()
    values = np.column_stack([objective.values(rows) for objective in objectives])
    beaten = [any((v <= u + 1e-9).all() and (v < u - 1e-9).any() for v in values) for u in values]
    assert found.exact
    assert found.evaluations == len(rows)
    assert {tuple(x) for x in found.sites} == {tuple(x) for x, lost in zip(rows, beaten, strict=True) if not lost}
    for sites, row in zip(found.sites, found.values, strict=True):
        np.testing.assert_allclose([objective(sites) for objective in objectives], row)
    assert np.all(np.diff(found.values[:, 0]) >= 0)
    assert found.evaluation(0).mean_response == pytest.approx(found.values[0, 0])
    table = found.to_frame()
    assert table.shape == (len(found.sites), 4)
    assert table.columns[0] == "mean response (min)"


def test_means_take_the_batched_path_to_the_same_front():
    metrics = ["mean_response", ("late", 5.0)]
    batched = front(CITY, 3, metrics, "exact")
    single = front(CITY, 3, [lambda e: e.mean_response, lambda e: e.late_fraction(5.0)], "exact")
    np.testing.assert_array_equal(batched.sites, single.sites)
    np.testing.assert_allclose(batched.values, single.values)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_the_front_of_st_paul(st_paul, seed):
    city, metrics, exact = st_paul
    found = front(city, 9, metrics, "approximate", budget=500, rng=seed)
    assert not found.exact
    assert found.evaluations == 500
    assert found.hypervolume(exact.reference) >= 0.99 * exact.hypervolume()


def test_a_search_is_repeatable_and_ends_whatever_its_budget():
    total = 84  # 9 sites, 3 units
    for budget in (1, 40, total - 1):
        first, again = (front(CITY, 3, METRICS, "approximate", budget=budget, rng=5) for _ in range(2))
        np.testing.assert_array_equal(first.sites, again.sites)
        assert first.evaluations == budget
    assert front(CITY, 3, METRICS, "approximate", budget=1000).exact


def test_units_may_share_sites_and_progress_is_told():
    told = []
    space = eo.DeploymentSpace(CITY, 3, colocation=2, pinned=[4])
    found = front(CITY, space, METRICS[:2], "approximate", budget=20, rng=0, progress=lambda *at: told.append(at))
    assert all(4 in sites for sites in found.sites)
    assert told[-1] == (20, 20)


def test_simulations_meet_the_same_calls():
    found = front(CITY, 2, ["mean_response", "busiest"], "simulation", calls=500, rng=1)
    for sites, row in zip(found.sites, found.values, strict=True):
        np.testing.assert_allclose([objective(sites) for objective in found.objectives], row)


@pytest.mark.parametrize(
    ("metrics", "options", "words"),
    [
        ("mean_response", {}, "list of at least two"),
        (["mean_response"], {}, "list of at least two"),
        (("late", 8.0), {}, "list of at least two"),
        (["mean_response", "speed"], {}, "metric"),
        (METRICS, {"budget": 0}, "budget"),
    ],
)
def test_wrong_input_is_refused(metrics, options, words):
    with pytest.raises(InputError, match=words):
        front(CITY, 3, metrics, **options)
