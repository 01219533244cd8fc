"""SparBL and GP-pM as printed in the location paper's first version, and what its section 6 says of random cities."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.optimizers import GPpM, SparBL


class Printed(SparBL):
    """SparBL with the argmax of (9) and of line 9 of Algorithm 2."""

    def _minimize_model(self, coef):
        return super()._minimize_model(-coef)


def test_thompson_sampling_has_to_minimise_its_draw():
    """With argmax, as printed, proposals are worse than random deployments; with argmin they are better."""
    city = eo.datasets.grid_city(9, 4, 0.5, rng=2)
    every = eo.evaluators.evaluate_all(city, 4, evaluator="approximate")
    asked = {}
    for method in (SparBL, Printed):
        optimizer = method(eo.Objective(city, 4, "approximate"), rng=0)
        for k in range(30):
            sites = optimizer.ask()
            if k >= 20:
                drawn = optimizer.features(every.sites) @ optimizer._coef
                wanted = drawn.argmin() if method is SparBL else drawn.argmax()
                assert optimizer._minimize_model(optimizer._coef).tolist() == every.sites[wanted].tolist()
            optimizer.tell(sites, optimizer.objective(sites))
        asked[method] = np.mean(optimizer.values[20:])
    assert asked[SparBL] < np.mean(every.values) < asked[Printed]


def test_the_margin_condition_fails_for_listed_sites_and_holds_for_distinct_deployments(published, every_deployment):
    """Assumption 4(b) with ω = 1: the optimum has no lead where twins tie, and one over the next distinct value."""
    of_published = eo.evaluators.evaluate_all(published, 9, evaluator="approximate")
    for every, lead in ((every_deployment, 0.005), (of_published, 0.040)):
        best, second = np.sort(every.values)[:2]
        assert every.space.multiplicity(every.best_sites) > 1  # listings with the same value: no lead
        assert second - best == pytest.approx(lead, abs=5e-4)  # min: the condition can hold for Δ below it


def test_an_edge_of_two_ends_with_the_first_reduction():
    """Section 5.4: a region of d = 2 restarts after one row of failures, n_f = 10 in C.1, as 2 x 2/3 is below 2."""
    city = eo.datasets.grid_city(9, 4, 0.5, rng=0)
    optimizer = GPpM(eo.Objective(city, 4, "approximate"), initial=5, rng=0)
    for _ in range(6):
        optimizer.tell(optimizer.ask(), 7 - 0.01 * len(optimizer.values))
    optimizer.edge, seen = 2.0, []
    for _ in range(10):
        optimizer.tell(optimizer.ask(), 8.0)
        seen.append(optimizer.restarts)
    assert (seen, optimizer.edge) == ([0] * 9 + [1], 20)


def behind(city, units):
    """Gap of the p-median to the best found, in percent, with St. Paul's turnout and with none."""
    objective = eo.Objective(city, units, "approximate")
    best = eo.optimizers.local_search(objective, restarts=0, rng=0).fun
    median, turnout = objective(eo.evaluators.p_median(city, units).sites), city.turnout_times[0]
    return 100 * (median / best - 1), 100 * ((median - turnout) / (best - turnout) - 1)


def test_no_load_brings_the_p_median_as_far_behind_as_printed(claim):
    """23 % below the p-median is 30 % of the best value: not in our cities, even with a turnout of 0 at a load of 20."""
    for sites, units, geometry in ((30, 15, "plane"), (30, 15, "uniform"), (50, 20, "plane")):
        cities = [eo.datasets.grid_city(sites, units, load, rng=1, geometry=geometry) for load in (0.2, 0.95, 20)]
        low, high, extreme = np.array([behind(city, units) for city in cities])
        assert (low < high).all()
        assert max(extreme) < 100 / 0.77 - 100 == pytest.approx(30, abs=0.5)
        assert max(high) < 17
        assert (geometry == "plane") == (extreme[0] > 10)
    ends = eo.study.outcomes(eo.datasets.load_study("location_grid")).groupby(["n_sites", "units", "seed"])
    one = ends[["p_median", "best_known"]].first()
    gaps = (100 * (one["p_median"] / one["best_known"] - 1)).groupby(level=[0, 1])
    medians, errors = gaps.median(), gaps.sem()
    assert (gaps.size() == 10).all()
    of_cities = medians.min(), medians.max(), gaps.max().max()
    claim("server locations, version one", "Section 6, p-median", 0.5, *of_cities, *high, *extreme)
    claim("server locations, version one", "Section 6, p-median", errors.min(), errors.max(), column="error")
