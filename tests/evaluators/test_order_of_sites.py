"""The order in which units or candidate sites are listed changes nothing, in no function that takes them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import emsopt as eo
from emsopt.evaluators import approximate_hypercube, evaluate_near, exact_hypercube


@st.composite
def cities(draw, ties):
    """A city with few distinct times or with none alike, up to five units of it, and orders of units and of sites."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, p = draw(st.integers(2, 7)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    drive = rng.integers(2, 6, (n, m)) if ties else rng.uniform(2, 10, (n, m))
    service = rng.choice([40.0, 40.0, 80.0], (n, 1)) if ties else rng.uniform(20, 80, (n, 1))
    turnout = rng.integers(0, 3, n) if ties else rng.uniform(0, 3, n)
    cv = draw(st.sampled_from([0.0, 0.3]))
    city = eo.City(rng.uniform(0.1, 1, m), drive, turnout, np.repeat(service, m, axis=1), travel_cv=cv)
    city = city.with_offered_load(draw(st.sampled_from([0.1, 0.3, 0.45])), units=p)
    return city, rng.integers(0, n, p), rng.permutation(p), rng.permutation(n)


def of_units(city, sites):
    """Everything that is said of units at sites, with one number a unit at the end."""
    space = eo.DeploymentSpace(city, len(sites), colocation=True)
    for model in (exact_hypercube, approximate_hypercube):
        for capacity in ("loss", "queue"):
            e = model(city, sites, capacity=capacity)
            yield from (e.mean_response, e.late_fraction(5.0), e.loss_probability, e.mean_wait, *e.atom_response)
            yield from np.bincount(sites, e.utilizations)
    best = eo.operations.optimal_dispatch(city, sites, ("late", 5.0))
    yield from (best.cost, best.preferred_cost, best.gap, best.loss_probability)
    yield evaluate_near(eo.Objective(city, space, "approximate"), sites, 1).values.min()
    yield from eo.planning.evaluate_table(city, {"these": sites}, threshold=5.0).select_dtypes("number").iloc[0]


def of_city(city, units):
    """Everything that is said of the best deployments."""
    space, models = eo.DeploymentSpace(city, units, colocation=True), eo.evaluators
    yield from (models.p_median(city, 1).objective, models.p_median(city, space).objective)
    yield from (models.mclp(city, space, 6.0).coverage, models.mexclp(city, space, 6.0).coverage)
    yield from (models.set_cover(city, 15.0).units, models.p_center(city, space).longest_response)
    yield models.malp(city, space, 6.0).coverage
    yield models.double_standard(city, space, 6.0, 15.0, 0.0).coverage
    for metric in ("mean_response", ("late", 6.0)):
        yield models.evaluate_all(city, space, "exact", metric=metric).values.min()


@given(drawn=cities(ties=True))
@settings(max_examples=20)
def test_of_units(drawn):
    city, sites, order, _ = drawn
    assert np.allclose([*of_units(city, sites)], [*of_units(city, sites[order])], rtol=0, atol=1e-12, equal_nan=True)


@given(drawn=cities(ties=False))
@settings(max_examples=20)
def test_of_candidate_sites(drawn):
    city, sites, _, order = drawn
    times = {name: getattr(city, name)[order] for name in ("travel_times", "turnout_times", "service_times")}
    again = eo.City(city.arrival_rates, **times, travel_cv=city.travel_cv)
    assert np.allclose([*of_city(city, len(sites))], [*of_city(again, len(sites))], rtol=0, atol=1e-12)
