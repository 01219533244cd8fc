"""The optimizer panel without a kernel or a browser: honest predictions, true words, no traceback."""

import numpy as np
import pytest
from scipy.stats import norm
from shown import cells, words

import emsopt as eo
from emsopt.optimizers import METHODS, GPpM
from emsopt.panels.optimizer import Trace, best_swaps, describe_evaluation, describe_moves, largest_coefficients


@pytest.fixture
def objective(city):
    return eo.Objective(city, 9, "approximate")


@pytest.fixture
def panel(objective):
    return eo.panels.optimizer_panel(objective, rng=0)


def advance(trace, steps):
    """Make steps without showing them; return the record."""
    for _ in range(steps):
        trace.step()
    return trace


def traced(objective, method="gp-pm", steps=0, rng=0):
    """Return the record of a search after some steps."""
    return advance(Trace(objective, method, rng=rng), steps)


@pytest.mark.parametrize("method", ["gp-pm", "sparbl"])
def test_looking_does_not_change_the_search(city, objective, method):
    """The same seed asks for the same deployments as `minimize`, where nobody predicts anything."""
    trace = Trace(objective, method, rng=3)
    for _ in range(24):
        trace.step()
        best_swaps(trace.optimizer) if hasattr(trace.optimizer, "acquisition") else None
    run = eo.minimize(eo.Objective(city, 9, "approximate"), method, budget=24, rng=3)
    history = trace.history
    assert history.value.tolist() == run.history["value"].tolist()
    assert (history.best.tolist(), history.evaluation.tolist()) == (run.history["best"].tolist(), list(range(1, 25)))
    assert not history.own.any()


def test_predictions_are_made_before_the_evaluation(objective):
    """Each is what another optimizer says that was told only the evaluations before."""
    trace, other = traced(objective, steps=26, rng=1), GPpM(objective, rng=1)
    history = trace.history
    assert history.initial.tolist() == [True] * 20 + [False] * 6
    assert history.expected[:20].isna().all()
    for k in range(20):
        other.tell(trace.optimizer.sites[k], history.value[k])
    for k in range(20, 26):
        mean, deviation = other.predict([trace.optimizer.sites[k]])
        assert (history.expected[k], history.deviation[k]) == (mean[0], deviation[0])
        other.tell(trace.optimizer.sites[k], history.value[k])
    assert (history.expected[20:] - history.value[20:]).abs().min() > 1e-6


@pytest.mark.parametrize("method", ["sparbl+", "genetic"])
def test_another_method_begins_anew_and_shows_what_it_can(panel, method):
    refs = panel.refs
    refs["step"].click()
    refs["method"].value = method
    trace = refs["trace"]()
    assert type(trace.optimizer) is METHODS[method]
    assert len(trace.history) == 0
    advance(trace, 23)
    refs["step"].click()
    assert len(refs["trace"]().history) == 24
    assert refs["message"].value == refs["edges"].value == ""
    assert "Values of 24 evaluations" in refs["convergence"].value
    has_model = hasattr(trace.optimizer, "_coef")
    assert ("Largest coefficients" in refs["thoughts"].value) == has_model
    assert ("Predictions of sampled models before each of 4" in refs["predictions"].value) == has_model
    assert bool(refs["thoughts"].value) == bool(refs["predictions"].value) == has_model


def test_when_all_is_tried_there_is_no_step_left(drawn):
    """Three deployments in all."""
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0], [5.0, 5.0]], turnout_times=1.5, service_times=40.0)
    refs = eo.panels.optimizer_panel(eo.Objective(city, 2, "approximate"), rng=0).refs
    refs["run"].click()
    assert len(refs["trace"]().history) == 3
    assert refs["step"].disabled
    assert refs["run"].disabled
    assert "All allowed deployments are evaluated" in words(refs["message"])
    assert "no coordinates" in refs["map"].scene["sentence"]
    refs["restart"].click()
    assert not refs["step"].disabled
    for method in METHODS:
        refs["method"].value = method
        refs["run"].click()
        assert len(refs["trace"]().history) == 3, method


def test_it_shows_what_was_asked_and_what_the_method_thinks(city, panel):
    refs, trace = panel.refs, advance(panel.refs["trace"](), 29)
    refs["step"].click()
    row, before = trace.history.iloc[-1], trace.history.iloc[-2]
    said = words(refs["said"])
    assert said == describe_evaluation(trace.history)
    above = 100 * (row.value / before.best - 1)
    assert said.startswith(f"Evaluation 30: {row.value:.3f} min, {above:.1f} % above the best")
    assert f"expected {row.expected:.3f} ± {2 * row.deviation:.3f} min" in said
    best = best_swaps(trace.optimizer)[:12]
    shown = [(name, found[0]) for name, found in cells(refs["thoughts"]).items()]
    assert shown == [(name, f"{value:.2f}") for name, value in zip(best.name, best.value, strict=True)]
    known = trace.history[20:]
    within = ((known.value - known.expected).abs() <= 2 * known.deviation).sum()
    assert f"{within} of 10 values are within two" in refs["predictions"].value
    assert f"Edge {trace.optimizer.edge:.3g} after evaluation 30" in refs["edges"].value
    assert describe_moves(city, trace.last_sites, trace.centre, trace.edge) in words(refs["where"])


def test_a_deployment_of_ones_own_is_told_and_counted(objective, panel):
    refs, own = panel.refs, [0, 1, 2, 3, 4, 8, 9, 10, 11]
    for site in range(12):
        refs["sites"][site].value = True
    refs["evaluate"].click()
    assert "9 units must be placed; you placed 12" in words(refs["message"])
    assert words(refs["said"]) == "Nothing is evaluated yet."
    for site, field in enumerate(refs["sites"]):
        field.value = site in own
    before = objective.evaluations
    refs["evaluate"].click()
    trace = refs["trace"]()
    assert objective.evaluations == before + 1
    row = trace.history.iloc[-1]
    assert (row.own, row.initial, row.value) == (True, False, objective(own))
    assert trace.optimizer.is_taken(objective.space.canonical(own))
    assert words(refs["said"]).startswith("Evaluation 1, your own: ")
    refs["evaluate"].click()
    assert "already evaluated, as evaluation 1" in words(refs["message"])
    refs["step"].click()
    assert (len(trace.history), refs["message"].value) == (2, "")


def test_take_and_clear_fill_the_form_and_restart_begins_anew(panel):
    refs = panel.refs
    refs["step"].click()
    refs["take"].click()
    assert [k for k, field in enumerate(refs["sites"]) if field.value] == refs["trace"]().optimizer.best[0].tolist()
    refs["clear"].click()
    assert words(refs["placed"]) == "0 of 9 units placed"
    first = refs["trace"]().history
    refs["restart"].click()
    assert (words(refs["said"]), refs["map"].layout.visibility) == ("Nothing is evaluated yet.", "hidden")
    for seed, same in ((0, True), (1, False)):
        refs["seed"].value = seed
        refs["step"].click()
        assert (refs["trace"]().history.value.tolist() == first.value.tolist()) == same


def test_pinned_and_closed_sites_bind_ones_own_deployment(city):
    space = eo.DeploymentSpace(city, 4, colocation=2, pinned=[3], closed=[4])
    refs = eo.panels.optimizer_panel(eo.Objective(city, space, "approximate"), rng=0).refs
    refs["clear"].click()
    fields = refs["sites"]
    assert ([field.value for field in fields], fields[4].disabled) == ([0, 0, 0, 1] + [0] * 13, True)
    fields[3].value, fields[8].value, fields[9].value = 0, 9, 1
    refs["evaluate"].click()
    assert sorted(refs["trace"]().last_sites.tolist()) == [3, 8, 8, 9]


def test_swaps_are_ranked_by_expected_improvement(city, objective):
    """(18) in its textbook form, over every neighbour of the best, one by one."""
    assert best_swaps(traced(objective).optimizer).empty
    optimizer = traced(objective, steps=24).optimizer
    sites, goal = optimizer.best
    expected = {}
    for row in objective.space.neighbours(sites):
        if not optimizer.is_taken(row):
            (mean,), (deviation,) = optimizer.predict([row])
            z = (goal - mean) / deviation
            gone, new = (set(city.twin_groups[a]) - set(city.twin_groups[b]) for a, b in ((sites, row), (row, sites)))
            expected[tuple(gone), tuple(new)] = np.log(deviation * (z * norm.cdf(z) + norm.pdf(z)))
    shown = best_swaps(optimizer)
    assert shown.value.tolist() == pytest.approx(sorted(expected.values(), reverse=True), rel=1e-6)
    ((gone,), (new,)) = max((key for key in expected if all(key)), key=expected.get)
    name = lambda group: city.site_names[list(city.twin_groups).index(group)].split(" (")[0]
    assert f"{name(gone)} → {name(new)}" in shown.name.tolist()
    assert shown.inside.all()
    optimizer.edge = -1.0
    assert not best_swaps(optimizer).inside.any()


def test_coefficients_are_named_by_what_they_do(city, objective):
    """The coefficient of a pair is what both add beyond each alone."""
    assert largest_coefficients(traced(objective, "sparbl").optimizer).empty
    optimizer = traced(objective, "sparbl", 22).optimizer
    at = {name.split(" (")[0]: site for site, name in reversed(list(enumerate(city.site_names)))}
    drawn = lambda *names: (optimizer.features([[at[name] for name in names]]) @ optimizer._coef)[0]
    shown, kinds = largest_coefficients(optimizer), set()  # all: which are largest depends on the processor
    for name, value in zip(shown.name, shown.value, strict=True):
        names = name.removeprefix("two at ").split(" and ")
        kinds.add("two" if name.startswith("two") else len(names))
        pair = names * 2 if name.startswith("two") else names
        alone = sum(drawn(one) for one in pair) if len(pair) == 2 else 0.0
        assert value == pytest.approx(drawn(*pair) - alone, abs=1e-9), name
    assert kinds == {1, 2, "two"}
    assert shown.value.abs().is_monotonic_decreasing
