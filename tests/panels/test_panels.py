"""Panels without a kernel or a browser: every control changes what it should, and nothing ends in a traceback."""

import pytest
from shown import cells

import emsopt as eo
from emsopt import panels
from emsopt.evaluators import evaluate_all, exact_hypercube, p_median, simulate

MEAN, LATE = "mean response (min)", "responses of {:g} min or more"


@pytest.fixture
def load_panel(city):
    return eo.panels.load_panel(city, 9)


@pytest.fixture(scope="module")
def shared_deployment_panel(city):
    return eo.panels.deployment_panel(city, 9)


@pytest.fixture
def deployment_panel(shared_deployment_panel):
    shared_deployment_panel.refs["p_median"].click()
    return shared_deployment_panel


def test_it_starts_with_the_city_as_it_is(city, drawn, load_panel):
    sites = (evaluate_all(city, 9, "approximate").best_sites, p_median(city, 9).sites)
    both, shown = [exact_hypercube(city, each) for each in sites], cells(load_panel.refs["figures"])
    assert shown[MEAN] == [f"{e.mean_response:.3f}" for e in both]
    assert shown[LATE.format(8)] == [f"{e.late_fraction(8.0):.2%}" for e in both]
    assert shown["90th percentile (min)"] == [f"{e.percentile_90:.2f}" for e in both]
    assert shown["calls lost to the fleet"] == [f"{e.loss_probability:.2%}" for e in both]
    assert shown["units busy, on average"] == [f"{e.utilizations.mean():.1%}" for e in both]
    assert shown["busiest unit"] == [f"{e.utilizations.max():.1%}" for e in both]
    assert f"below {p_median(city, 9).objective:.3f} min" in load_panel.refs["figures"].value
    assert load_panel.refs["message"].value == ""
    assert [view["name"] for view in load_panel.refs["map"].views][1:] == ["p-median", "best found minus p-median"]
    for name, value, kept in (("load", 1e9, 1e3), ("load", 0, 1e-3), ("units", 99, 17), ("threshold", -1, 3.0)):
        load_panel.refs[name].value = value
        assert load_panel.refs[name].value == pytest.approx(kept)
        assert not load_panel.refs[name].continuous_update


@pytest.mark.parametrize("theta", [1e-3, 2, 1e3])
def test_the_search_finds_what_enumeration_finds(city, load_panel, theta):
    """Without colocation all 9,691 deployments can be tried."""
    load_panel.refs["colocation"].value = False
    load_panel.refs["evaluator"].value = "approximate"
    for objective, metric in (("mean_response", "mean_response"), ("late", ("late", 8.0))):
        load_panel.refs["objective"].value = objective
        load_panel.refs["load"].value = theta
        best = evaluate_all(city.scaled(theta), 9, "approximate", metric=metric).values.min()
        shown = cells(load_panel.refs["figures"])[MEAN if objective == "mean_response" else LATE.format(8)]
        assert shown[0] == (f"{best:.3f}" if objective == "mean_response" else f"{best:.2%}")


def test_light_load_gives_the_p_median_and_heavy_load_the_one_median(city, load_panel):
    """Theorems 4 and 5: the papers' Figure 5, from end to end."""
    load_panel.refs["load"].value = 1e-3
    light = load_panel.refs["figures"].value
    assert "is that of the p-median" in light
    assert cells(load_panel.refs["figures"])[MEAN] == [f"{p_median(city, 9).objective:.3f}"] * 2
    load_panel.refs["load"].value = 1e3
    heavy = load_panel.refs["figures"].value
    center = p_median(city, 1)
    assert f"All 9 units are at the 1-median, {city.site_names[center.sites[0]]}" in heavy
    assert cells(load_panel.refs["figures"])[MEAN][0] == f"{center.objective:.3f}"
    load_panel.refs["colocation"].value = False
    assert "1-median" not in load_panel.refs["figures"].value


def test_every_control_changes_figures_and_map(load_panel):
    """Some at a busy load, where everything matters."""
    load_panel.refs["load"].value = 5.0
    moves = {"units": 6, "objective": "late", "threshold": 10.0, "colocation": False, "evaluator": "approximate"}
    for name, value in {**moves, "load": 0.5}.items():
        before, fed = load_panel.refs["figures"].value, load_panel.refs["map"].views
        load_panel.refs[name].value = value
        assert load_panel.refs["figures"].value != before, name
        assert load_panel.refs["map"].views != fed, name


def test_a_fleet_that_does_not_fit_is_said_in_the_panel():
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40.0)
    panel = eo.panels.load_panel(city, 3)
    assert cells(panel.refs["figures"])
    assert "no coordinates" in panel.refs["map"].scene["sentence"]
    panel.refs["colocation"].value = False
    assert "3 units" in panel.refs["message"].value
    assert (panel.refs["figures"].value, panel.refs["map"].layout.visibility) == ("", "hidden")
    panel.refs["units"].value = 2
    assert panel.refs["message"].value == ""
    assert cells(panel.refs["figures"])
    assert panel.refs["map"].layout.visibility == "visible"


def test_own_deployment_stands_beside_optimum_and_p_median(city, drawn, deployment_panel):
    best, median = evaluate_all(city, 9, "approximate").best_sites, p_median(city, 9).sites
    own = [0, 1, 2, 3, 4, 8, 9, 10, 11]
    for site, box in enumerate(deployment_panel.refs["sites"]):
        box.value = site in own
    shown = cells(deployment_panel.refs["figures"])
    expected = [exact_hypercube(city, sites) for sites in (own, best, median)]
    assert shown["mean response (min), exact"] == [f"{e.mean_response:.3f}" for e in expected]
    assert (shown[LATE.format(8)], shown["units"]) == ([f"{e.late_fraction(8.0):.2%}" for e in expected], ["9"] * 3)
    assert "proven by enumeration" in deployment_panel.refs["figures"].value
    deployment_panel.refs["threshold"].value = 6.0
    shown = cells(deployment_panel.refs["figures"])
    assert shown[LATE.format(6)] == [f"{e.late_fraction(6.0):.2%}" for e in expected]
    deployment_panel.refs["threshold"].value = 8.0


def test_run_simulates_and_a_change_takes_the_figures_away(city, deployment_panel):
    refs = deployment_panel.refs
    refs["calls"].value = 20_000
    for label, how in {"exponential": {}, "lognormal, cv 2": {"service": "lognormal", "cv": 2.0}}.items():
        refs["service"].value = label
        assert refs["simulation"].value == ""
        refs["run"].click()
        shown = cells(refs["simulation"])
        run = simulate(city, p_median(city, 9).sites, calls=20_000, rng=1, **how)
        low, high = run.intervals["mean_response"]
        assert shown[MEAN][0] == shown[MEAN][2] == f"{run.mean_response:.3f}"
        assert shown["95% interval"][0] == f"{low:.3f} to {high:.3f}"
        assert not refs["run"].disabled
    refs["sites"][2].value = True
    assert refs["simulation"].value == ""


@pytest.mark.parametrize("make", [panels.load_panel, panels.deployment_panel])
def test_the_demand_of_st_paul_can_change(city, published, make):
    """The figures then are those of a panel made for the other demand, and back again."""
    panel, other = make(city, 9), make(published, 9)
    before = panel.refs["figures"].value
    for demand, expected in (("published", other.refs["figures"].value), ("embedded", before)):
        panel.refs["demand"].value = demand
        if make is panels.deployment_panel:
            panel.refs["p_median"].click()
        assert panel.refs["figures"].value == expected


def test_buttons_and_boxes_place_units(city, deployment_panel):
    refs = deployment_panel.refs
    refs["optimum"].click()
    means = cells(refs["figures"])["mean response (min), approximate"]
    assert means[0] == means[1] < means[2]
    refs["clear"].click()
    assert "No site is ticked" in refs["message"].value
    assert (refs["figures"].value, refs["map"].layout.visibility) == ("", "hidden")
    refs["sites"][0].value = True
    assert "You placed 1 of 9 units" in refs["message"].value
    assert cells(refs["figures"])["units"] == ["1", "9", "9"]
    for box in refs["sites"]:
        box.value = True
    assert "mean response (min), exact" not in cells(refs["figures"])  # 17 units: more than the exact model takes
    refs["p_median"].click()
    assert [site for site, box in enumerate(refs["sites"]) if box.value] == p_median(city, 9).sites.tolist()
    assert (refs["message"].value, refs["map"].layout.visibility) == ("", "visible")
