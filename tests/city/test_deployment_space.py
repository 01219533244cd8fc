"""Deployments: every malformed one refused by name, and the set of allowed ones against brute force."""

from collections import Counter
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import emsopt as eo
from emsopt import evaluators as ev
from emsopt.city.deployment_space import DeploymentSpace, check_sites
from emsopt.errors import EmsoptError, InputError, UnstableQueueError

examples = settings(max_examples=40, deadline=None, derandomize=True)

CITY = eo.City([1.0, 0.5, 0.3], [[3, 8, 5], [9, 2, 4], [6, 6, 1], [4, 5, 9]], turnout_times=1.5, service_times=40)


def many_sites(n_sites):
    travel = np.random.default_rng(0).uniform(1, 10, (n_sites, 3))
    return eo.City([1.0, 0.5, 0.3], travel, turnout_times=1.5, service_times=40.0)


def space(units=2, **options):
    return DeploymentSpace(CITY, units, **options)


# (what is wrong, how to provoke it, words the message must hold)
MALFORMED = [
    ("transposed costs", lambda: ev.values(CITY, [[0, 1]], CITY.response_times.T, "approximate"), "costs.*\\(4, 3\\).*\\(3, 4\\)"),
    ("no sites", lambda: check_sites(CITY, []), "sites.*at least one"),
    ("half a site", lambda: check_sites(CITY, [0.5, 1]), "sites.*whole.*0\\.5"),
    ("too many units", lambda: check_sites(CITY, [0] * 2_001), "sites.*at most 2,000 units.*2,001"),
    ("site beyond the last", lambda: check_sites(CITY, [4, 1]), "sites.*0 to 3.*4"),
    ("unknown site", lambda: check_sites(CITY, ["site 1", "nowhere"]), "nowhere.*site 4"),
    ("more units than room", lambda: space(5), "5 units.*hold 4.*colocation"),
    ("more pinned than units", lambda: space(1, pinned=[1, 2]), "2 units are pinned.*only 1"),
    ("pinned and closed", lambda: space(pinned=[1], closed=[1, 2]), "site 2.*pinned and closed"),
    ("form of what is not allowed", lambda: space().canonical([1, 1]), "\\[1, 1\\].*at most 1 must be at 'site 2'.*has 2"),
    ("form without the pinned", lambda: space(pinned=[3]).canonical([0, 1]), "\\[0, 1\\].*at least 1 must be at 'site 4'"),
    ("unknown evaluator", lambda: ev.evaluate(CITY, [0, 1], "magic"), "evaluator.*'exact'.*'magic'"),
    ("tolerance out of reach", lambda: ev.approximate_hypercube(CITY, [0, 1, 2], tol=1e-30), "did not converge.*`tol`"),
    ("masked sites", lambda: ev.evaluate(CITY, np.ma.array([0, 1], mask=[0, 1])), "masked array"),
    ("too many units for the exact model", lambda: ev.exact_hypercube(many_sites(31), np.arange(31)), "30.*31.*approximate"),
    ("too many deployments", lambda: ev.evaluate_all(many_sites(60), 10), "75,394,027,566.*20,000,000.*minimize"),
    ("minutes where there are none", lambda: ev.evaluate_all(CITY, 2, metric=("late", 8)).mean_response, "8 min or more.*values"),
]  # fmt: skip


@pytest.mark.parametrize(("provoke", "words"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_malformed_deployments_and_options_are_refused_by_name(provoke, words):
    with pytest.raises(EmsoptError, match=words):
        provoke()


@pytest.mark.parametrize("evaluator", ["approximate", "exact", "simulation"])
def test_a_queue_that_never_settles_is_refused(evaluator):
    busy = CITY.with_offered_load(1.0, 2)
    with pytest.raises(UnstableQueueError, match="queue"):
        ev.evaluate(busy, [0, 1], evaluator, capacity="queue")
    with pytest.raises(UnstableQueueError, match="queue"):
        ev.values(busy, [[0, 1], [1, 2]], None, evaluator, capacity="queue")


def test_sites_may_be_any_whole_numbers_or_names():
    for sites in ([2, 0], (2, 0), np.array([2, 0], dtype=np.uint8), [2.0, 0.0], ["site 3", "site 1"]):
        assert (check_sites(CITY, sites).tolist(), check_sites(CITY, sites).dtype) == ([2, 0], np.intp)


def brute_force(city, units, each, pinned, closed):
    """Count, by twin groups, the sets of listed sites (each as often as it has room) that are allowed."""
    places = [site for site in range(city.n_sites) if site not in closed for _ in range(each)]
    pinned_by_group = Counter(city.twin_groups[list(pinned)].tolist())
    found = Counter()
    for chosen in combinations(range(len(places)), units):
        groups = tuple(sorted(int(city.twin_groups[places[k]]) for k in chosen))
        if all(groups.count(group) >= n for group, n in pinned_by_group.items()):
            found[groups] += 1
    return found


@st.composite
def spaces(draw):
    """Draw a space with twins, colocation, pinned and closed sites, and what brute force finds in it."""
    kinds = draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))  # sites of one kind are twins
    city = eo.City([1.0], np.array(kinds)[:, None] + 1.0, turnout_times=0, service_times=30)
    units, colocation = draw(st.integers(1, 4)), draw(st.sampled_from([False, True, 1, 2]))
    each = {False: 1, True: units}[colocation] if isinstance(colocation, bool) else colocation
    closed = draw(st.sets(st.integers(0, len(kinds) - 1), max_size=2))
    places = [site for site in range(len(kinds)) if site not in closed for _ in range(each)]
    pinned = draw(st.lists(st.sampled_from(range(len(places))), unique=True, max_size=2)) if places else []
    pinned = [places[k] for k in pinned]
    options = {"colocation": colocation, "pinned": pinned, "closed": sorted(closed)}
    if len(places) < units or len(pinned) > units:
        with pytest.raises(InputError):
            DeploymentSpace(city, units, **options)
        city, units, options, each, pinned, closed = CITY, 2, {}, 1, [], []
    return DeploymentSpace(city, units, **options), brute_force(city, units, each, pinned, closed)


def by_groups(space, sites):
    return tuple(sorted(space.city.twin_groups[sites].tolist()))


@examples
@given(spaces())
def test_the_listing_holds_every_distinct_deployment_once(case):
    """And those in it are the canonical forms of all that are allowed."""
    space, expected = case
    rows = space.listing()
    listed = {by_groups(space, row): row for row in rows}
    assert set(listed) == set(expected)
    assert [by_groups(space, row) for row in rows] == sorted(listed)
    assert len(space) == len(rows) == len(expected)
    assert [space.multiplicity(row) for row in rows] == [expected[by_groups(space, row)] for row in rows]
    assert (np.apply_along_axis(np.bincount, 1, rows, minlength=space.city.n_sites) <= space.site_capacities).all()
    for sites in combinations_with_replacement(range(space.city.n_sites), space.units):
        backwards, groups = np.array(sites[::-1]), by_groups(space, list(sites))
        assert (backwards in space) == (groups in listed)
        if groups in listed:
            np.testing.assert_array_equal(space.canonical(backwards), listed[groups])


@examples
@given(spaces())
def test_neighbours_are_all_at_one_move(case):
    space, _ = case
    rows = space.listing()
    counts = {tuple(row): Counter(space.city.twin_groups[row].tolist()) for row in rows}
    for row, count in counts.items():
        found = space.neighbours(np.array(row))
        near = {tuple(other) for other in found}
        assert len(found) == len(near)
        assert near == {other for other in counts if (counts[other] - count).total() == 1}


@examples
@given(spaces(), st.integers(0, 1000))
def test_samples_are_allowed_and_reach_everything(case, seed):
    space, expected = case
    drawn = space.sample(40, rng=np.random.default_rng(seed))
    assert drawn.shape == (40, space.units)
    assert all(row in space for row in drawn)
    np.testing.assert_array_equal(drawn, space.sample(40, rng=np.random.default_rng(seed)))
    if len(expected) <= 4:
        assert {by_groups(space, row) for row in space.sample(400, rng=seed)} == set(expected)


def test_samples_follow_the_listed_sites():
    """Ten sites of which three are twins: a set of sites is as likely as any other, so a form as its multiplicity."""
    travel = np.r_[[5.0, 5.0, 5.0], np.arange(6, 13)][:, None]
    space = DeploymentSpace(eo.City([1.0], travel, turnout_times=0, service_times=30), 2)
    drawn = Counter(map(tuple, space.sample(9000, rng=0).tolist()))
    for row in space.listing():
        expected = 9000 * space.multiplicity(row) / 45
        assert abs(drawn[tuple(row.tolist())] - expected) < 5 * np.sqrt(expected)


def test_large_fleets_are_told_what_fits_and_spaces_serve_other_cities():
    """The number that is named is the least that fits."""
    city = eo.datasets.grid_city(n_sites=6, units=2, rng=1)
    refused(r"do not fit: .* 6\. .*colocation=3\)`", eo.Objective, city, 13)
    assert DeploymentSpace(city, 13, colocation=3).count > 0
    refused(r"close fewer sites, or .*colocation=7", DeploymentSpace, city, 13, closed=[0, 1, 2, 3])
    space = DeploymentSpace(CITY, 2, closed=[0])
    assert DeploymentSpace.of(CITY, space) is space
    busy = CITY.scaled(3)
    moved = DeploymentSpace.of(busy, space)
    assert moved.city is busy
    assert (moved.closed, eo.Objective(busy, space)([1, 2])) == ((0,), eo.Objective(busy, 2)([1, 2]))
    refused("other sites", eo.Objective, CITY.replace(site_names=["a", "b", "c", "d"]), space)
