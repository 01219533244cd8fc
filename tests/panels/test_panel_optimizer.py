"""The optimizer panel without a kernel or a browser: honest predictions, true words, no traceback."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from shown import cells, words

import emsopt as eo
from emsopt.optimizers import METHODS, GPpM
from emsopt.surrogates.horseshoe import standardize

panels = pytest.importorskip("emsopt.panels", reason="needs the package ipywidgets")
from emsopt.panels.optimizer import (
    COLUMNS,
    Trace,
    best_swaps,
    describe_evaluation,
    describe_moves,
    largest_coefficients,
)


@pytest.fixture(scope="module")
def city():
    return eo.datasets.load_st_paul()


@pytest.fixture
def objective(city):
    return eo.Objective(city, 9, "approximate")


@pytest.fixture
def small():
    """Three deployments in all."""
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0], [5.0, 5.0]], turnout_times=1.5, service_times=40.0)
    return eo.Objective(city, 2, "approximate")


@pytest.fixture
def panel(objective):
    return eo.panels.optimizer_panel(objective, rng=0)


@pytest.fixture(scope="module")
def ran(city):
    """A panel after 30 evaluations, to look at."""
    panel = eo.panels.optimizer_panel(eo.Objective(city, 9, "approximate"), rng=0)
    advance(panel, 29)
    panel.refs["step"].click()
    return panel


def advance(panel, steps):
    """Make steps without showing them."""
    for _ in range(steps):
        panel.refs["trace"]().step()


def traced(objective, method="gp-pm", steps=0, rng=0):
    """Return the record of a search after some steps."""
    trace = Trace(objective, method, rng=rng)
    for _ in range(steps):
        trace.step()
    return trace


def place(panel, sites):
    for site, field in enumerate(panel.refs["sites"]):
        field.value = site in sites


# -- the recorder -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gp-pm", "sparbl"])
def test_looking_does_not_change_the_search(city, objective, method):
    """The same seed asks for the same deployments as `minimize`, where nobody predicts anything."""
    trace = Trace(objective, method, rng=3)
    for _ in range(24):
        trace.step()
        best_swaps(trace.optimizer) if hasattr(trace.optimizer, "acquisition") else None
    run = eo.minimize(eo.Objective(city, 9, "approximate"), method, budget=24, rng=3)
    history = trace.history
    assert (list(history.columns), history.value.tolist()) == (COLUMNS, run.history["value"].tolist())
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


def test_the_drawn_value_is_that_of_the_chain(objective):
    """Against the standardised model taken back to minutes (`Standardized.coefficients`)."""
    trace = traced(objective, "sparbl", 20, rng=2)
    assert trace.history.expected.isna().all()
    optimizer = trace.optimizer
    for _ in range(3):
        trace.step()
        X, y = optimizer.features(optimizer.sites[:-1]), optimizer.values[:-1]
        slopes = standardize(X, y).coefficients(optimizer.state.coef)
        drawn = np.mean(y) + (optimizer.features([trace.last_sites])[0] - X.mean(axis=0)) @ slopes
        assert trace.history.expected.iloc[-1] == pytest.approx(drawn, abs=1e-9)
        assert np.isnan(trace.history.deviation.iloc[-1])


def test_a_restart_of_the_region_is_noted(objective):
    trace = traced(objective, steps=21)
    trace.optimizer.edge, trace.optimizer._failures = 2.0, 9  # the next failure ends the region
    trace.optimizer._region_value = 0.0
    trace.step()
    assert trace.history.restart.tolist() == [False] * 21 + [True]
    assert "given up, and a new one starts with edge 20" in describe_evaluation(trace.history)


def test_swaps_are_ranked_by_expected_improvement(city, objective):
    """(18) in its textbook form, over every neighbour of the best, one by one."""
    assert best_swaps(traced(objective).optimizer).empty
    optimizer = traced(objective, steps=24).optimizer
    sites, goal = optimizer.best
    expected = {}
    for row in objective.space.neighbours(sites):
        if optimizer.is_taken(row):
            continue
        (mean,), (deviation,) = optimizer.predict([row])
        z = (goal - mean) / deviation
        before, after = (np.bincount(city.twin_groups[s], minlength=14) for s in (sites, row))
        out, to = np.flatnonzero(before > after)[0], np.flatnonzero(after > before)[0]
        names = [city.site_names[list(city.twin_groups).index(g)].split(" (")[0] for g in (out, to)]
        improvement = deviation * (z * norm.cdf(z) + norm.pdf(z))
        expected[" → ".join(names)] = np.log(improvement)
    shown = best_swaps(optimizer)
    best = sorted(expected, key=expected.get, reverse=True)
    assert shown.name.tolist() == best
    assert shown.value.tolist() == pytest.approx([expected[name] for name in best], rel=1e-6)
    assert shown.inside.all()
    optimizer.edge = -1.0
    assert not best_swaps(optimizer).inside.any()


def test_coefficients_are_named_by_what_they_do(city, objective):
    """The coefficient of a pair is what both add beyond each alone."""
    assert largest_coefficients(traced(objective, "sparbl").optimizer).empty
    optimizer = traced(objective, "sparbl", 22).optimizer
    at = {name.split(" (")[0]: site for site, name in reversed(list(enumerate(city.site_names)))}

    def drawn(*names):
        return (optimizer.features([[at[name] for name in names]]) @ optimizer._coef)[0] if names else 0.0

    shown = largest_coefficients(optimizer)  # all: which are largest depends on the processor
    kinds = set()
    for name, value in zip(shown.name, shown.value, strict=True):
        if " and " in name:
            a, b = name.split(" and ")
        else:
            a = b = name.removeprefix("two at ")
        both = drawn(a, b) - drawn(a) - drawn(b)
        single = " and " not in name and "two at " not in name
        kinds.add("single" if single else name[:6] if name.startswith("two") else "pair")
        assert value == pytest.approx(drawn(a) if single else both, abs=1e-9), name
    assert kinds == {"single", "pair", "two at"}
    assert shown.value.abs().is_monotonic_decreasing
    optimizer.told = optimizer.told[:3]  # nothing can be known of what these three share
    varying = (np.ptp(optimizer.features(optimizer.sites), axis=0) > 0).sum()
    assert len(largest_coefficients(optimizer)) == varying < len(optimizer._coef)


# -- words --------------------------------------------------------------------------------------------------------


def history(*rows):
    empty = dict.fromkeys(("expected", "deviation", "edge"), np.nan) | dict.fromkeys(
        ("restart", "initial", "own"), False
    )
    table = [empty | {"evaluation": k} | row for k, row in enumerate(rows, 26)]
    return pd.DataFrame(table)[COLUMNS]


BEFORE = {"value": 6.0, "best": 5.9, "edge": 20.0}
NONE = {"value": 0.04, "best": 0.04}
PREDICTED = {"expected": 5.95, "deviation": 0.05}
LATE = {"value": 0.05, "best": 0.04, "expected": 0.05, "deviation": 0.01}


@pytest.mark.parametrize(
    ("before", "row", "said"),
    [
        (BEFORE, {"value": 5.93, "best": 5.9, "edge": 40 / 3} | PREDICTED,
         "5.930 min, 0.5 % above the best; expected 5.950 ± 0.100 min; the edge of the trust region shrank to 13.3."),
        (BEFORE, {"value": 5.8, "best": 5.8, "edge": 20.0} | PREDICTED,
         "5.800 min, a new best, 1.7 % below the previous one; expected 5.950 ± 0.100 min, so a surprise."),
        (NONE, LATE, "5.00 %, 25.0 % above the best; expected 5.00 ± 2.00 %."),
    ],
)  # fmt: skip
def test_an_evaluation_in_words(before, row, said):
    metric = "mean_response" if before["value"] > 1 else ("late", 8.0)
    assert describe_evaluation(history(before, row), metric) == f"Evaluation 27: {said}"


def test_the_way_from_the_centre(city):
    """Twins are one place: a unit that changes from one to the other has not moved."""
    twins = np.flatnonzero(city.twin_groups == city.twin_groups[0])
    assert len(twins) == 2
    centre = np.bincount(city.twin_groups[[twins[0], 3, 4]], minlength=14)
    same = describe_moves(city, [twins[1], 3, 4], centre, 6.0)
    assert same == "It is the centre of the trust region (inside the region, which reaches 3 moved units)."
    moved = describe_moves(city, [*twins, 8], centre, 3.9)
    assert "it moves 2 units, away from Station 5, Station 7 and to Station 8, Station 1" in moved
    assert "outside the region, which reaches 1 moved unit)" in moved


# -- the panel ----------------------------------------------------------------------------------------------------


def test_step_shows_what_was_asked(city, objective, panel, drawn):
    refs = panel.refs
    assert words(refs["said"]) == "Nothing is evaluated yet."
    assert refs["take"].disabled
    before = objective.evaluations
    refs["step"].click()
    trace = refs["trace"]()
    assert (objective.evaluations, words(refs["said"])) == (before + 1, describe_evaluation(trace.history))
    assert refs["map"].kind == "deployments"
    assert "alt='Values of 1 evaluations" in refs["convergence"].value
    assert "has no model" in refs["predictions"].value
    fed = refs["map"].views
    refs["step"].click()
    assert refs["map"].views != fed
    assert (refs["edges"].value, refs["message"].value) == ("", "")


def test_it_shows_what_the_method_thinks(city, ran):
    refs = ran.refs
    trace = refs["trace"]()
    assert len(trace.history) == 30
    assert words(refs["said"]).startswith("Evaluation 30: ")
    best = best_swaps(trace.optimizer)[:12]
    shown = [(name, row[0]) for name, row in cells(refs["thoughts"]).items()]
    assert shown == [(name, f"{value:.2f}") for name, value in zip(best.name, best.value, strict=True)]
    known = trace.history[20:]
    within = ((known.value - known.expected).abs() <= 2 * known.deviation).sum()
    assert f"{within} of 10 values are within two" in refs["predictions"].value
    assert f"Edge {trace.optimizer.edge:.3g} after evaluation 30" in refs["edges"].value
    assert describe_moves(city, trace.last_sites, trace.centre, trace.edge) in words(refs["where"])
    assert not refs["step"].disabled


@pytest.mark.parametrize("method", ["sparbl+", "genetic"])
def test_another_method_begins_anew_and_shows_what_it_can(panel, method):
    refs = panel.refs
    refs["step"].click()
    refs["method"].value = method
    trace = refs["trace"]()
    assert type(trace.optimizer) is METHODS[method]
    assert len(trace.history) == 0
    advance(panel, 23)
    refs["step"].click()
    assert len(refs["trace"]().history) == 24
    assert refs["message"].value == refs["edges"].value == ""
    assert "Values of 24 evaluations" in refs["convergence"].value
    has_model = hasattr(trace.optimizer, "_coef")
    assert ("Largest coefficients" in refs["thoughts"].value) == has_model
    assert ("Predictions of sampled models before each of 4" in refs["predictions"].value) == has_model
    assert bool(refs["thoughts"].value) == bool(refs["predictions"].value) == has_model


def test_a_deployment_of_ones_own_is_told_and_counted(objective, panel):
    refs = panel.refs
    own = [0, 1, 2, 3, 4, 8, 9, 10, 11]
    place(panel, own)
    assert words(refs["placed"]) == "9 of 9 units placed"
    before = objective.evaluations
    refs["evaluate"].click()
    trace = refs["trace"]()
    assert objective.evaluations == before + 1
    row = trace.history.iloc[-1]
    assert row.own
    assert not row.initial
    assert row.value == trace.optimizer.values[-1] == objective(own)
    assert trace.optimizer.is_taken(objective.space.canonical(own))
    assert words(refs["said"]).startswith("Evaluation 1, your own: ")
    refs["evaluate"].click()
    assert "already evaluated, as evaluation 1" in words(refs["message"])
    assert len(refs["trace"]().history) == 1
    refs["step"].click()
    assert refs["message"].value == ""
    advance(panel, 19)
    place(panel, [0, 1, 2, 3, 4, 8, 9, 10, 12])
    refs["evaluate"].click()
    row = refs["trace"]().history.iloc[-1]
    assert row.own
    assert np.isfinite([row.expected, row.deviation]).all()


def test_a_bad_deployment_is_said_and_nothing_is_told(objective, panel):
    refs = panel.refs
    before = objective.evaluations
    place(panel, range(12))
    refs["evaluate"].click()
    assert "9 units must be placed; you placed 12" in words(refs["message"])
    assert objective.evaluations == before
    assert not refs["evaluate"].disabled
    assert words(refs["said"]) == "Nothing is evaluated yet."


def test_take_and_clear_fill_the_form_and_restart_begins_anew(panel):
    refs = panel.refs
    refs["step"].click()
    refs["take"].click()
    placed = [site for site, field in enumerate(refs["sites"]) if field.value]
    assert placed == refs["trace"]().optimizer.best[0].tolist()
    refs["clear"].click()
    assert words(refs["placed"]) == "0 of 9 units placed"
    first = refs["trace"]().history
    refs["restart"].click()
    assert (words(refs["said"]), refs["map"].layout.visibility) == ("Nothing is evaluated yet.", "hidden")
    assert refs["convergence"].value == refs["where"].value == ""
    for seed, same in ((0, True), (1, False)):
        refs["seed"].value = seed
        assert len(refs["trace"]().history) == 0
        refs["step"].click()
        assert (refs["trace"]().history.value.tolist() == first.value.tolist()) == same
    assert refs["map"].layout.visibility == "visible"


def test_when_all_is_tried_there_is_no_step_left(small, drawn):
    refs = eo.panels.optimizer_panel(small, rng=0).refs
    assert small.space.count == 3
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


def test_sites_that_hold_several_are_numbers_and_pinned_ones_stay(city):
    objective = eo.Objective(city, eo.DeploymentSpace(city, 4, colocation=2, pinned=[3], closed=[4]), "approximate")
    panel = eo.panels.optimizer_panel(objective, rng=0)
    refs = panel.refs
    refs["method"].value = "sparbl"
    advance(panel, 22)
    refs["step"].click()
    fields = refs["sites"]
    assert fields[4].disabled
    refs["clear"].click()
    assert [field.value for field in fields] == [0, 0, 0, 1] + [0] * 13
    fields[3].value = 0
    assert fields[3].value == 1
    fields[8].value = 9
    assert fields[8].value == 2
    fields[9].value = 1
    refs["evaluate"].click()
    assert sorted(refs["trace"]().last_sites.tolist()) == [3, 8, 8, 9]
    assert "Evaluated last, units at: Station 5, 1 x 2, " in words(refs["where"])


def test_a_noisy_objective_may_see_a_deployment_twice(small):
    noisy = eo.Objective(small.city, 2, "simulation", calls=200)
    panel = eo.panels.optimizer_panel(noisy, rng=0)
    place(panel, [0, 1])
    for _ in range(2):
        panel.refs["evaluate"].click()
    history = panel.refs["trace"]().history
    assert history.own.all()
    assert history.value[0] != history.value[1]
    assert not panel.refs["step"].disabled
    panel.refs["step"].click()
