"""Cities: what is derived from them, the law of response times, and every malformed one refused by name."""

import copy
import pickle

import numpy as np
import pytest
from refusals import refused
from scipy.integrate import quad
from scipy.stats import lognorm

import emsopt as eo
from emsopt.city import travel
from emsopt.city.travel import ResponseLaw

RATES = [1.0, 0.5, 0.3]
TRAVEL = np.array([[3.0, 8.0, 5.0], [9.0, 2.0, 4.0], [6.0, 6.0, 1.0], [4.0, 5.0, 9.0]])
MONACO, ST_PAUL = [7.42, 43.73], [-93.09, 44.95]
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}


def city(**changes):
    given = {"arrival_rates": RATES, "travel_times": TRAVEL, "turnout_times": 1.5, "service_times": 40.0}
    return eo.City(**{**given, **changes})


# (what is wrong, how to provoke it, words the message must hold)
MALFORMED = [
    ("latitude first at the atoms", lambda: city(atom_locations=[MONACO[::-1]] * 3, site_locations=[MONACO] * 4), "atom_locations.*swapped"),
    ("shape with NaN in a ring", lambda: city(atom_shapes=[SQUARE, {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [np.nan, 1]]]}, SQUARE]), "atom_shapes.*number 1.*two finite numbers"),
    ("negative rate", lambda: city(arrival_rates=[-1, 1, 1]), "arrival_rates.*at least 0.*index 0"),
    ("text as a rate", lambda: city(arrival_rates=["many", 1, 1]), "arrival_rates.*numbers.*many"),
    ("rates with a mask", lambda: city(arrival_rates=np.ma.masked_array(RATES, [0, 1, 0])), "arrival_rates.*mask"),
    ("rates all zero", lambda: city(arrival_rates=[0, 0, 0]), "arrival_rates.*zero"),
    ("too few rates", lambda: city(arrival_rates=[1, 1]), "travel_times.*2.*\\(4, 3\\)"),
    ("unreachable atom", lambda: city(travel_times=np.where(TRAVEL > 8, np.inf, TRAVEL)), "travel_times.*finite.*\\(1, 0\\)"),
    ("transposed travel", lambda: city(travel_times=TRAVEL.T), "travel_times.*transposed"),
    ("travel in seconds", lambda: city(travel_times=TRAVEL * 600), "travel_times.*minutes.*60"),
    ("turnout of a minute in seconds", lambda: city(turnout_times=[1, 60, 1, 1]), "turnout_times.*at most 15.*got 60.*Divide seconds by 60"),
    ("service of zero", lambda: city(service_times=0), "service_times.*greater than 0"),
    ("service in hours", lambda: city(service_times=0.4), "service_times.*minutes.*60"),
    ("negative variation", lambda: city(travel_cv=-0.1), "travel_cv.*at least 0.*-0\\.1"),
    ("variation in percent", lambda: city(travel_cv=40), "travel_cv.*from 0 to 3.*got 40.*divide percent by 100"),
    ("name with a line end", lambda: city(site_names=["a\nb", "b", "c", "d"]), "site_names.*invisible character"),
    ("geographic is text", lambda: city(geographic="no"), "geographic.*True or False.*'no'"),
    ("sites and atoms on two continents", lambda: city(atom_locations=[MONACO] * 3, site_locations=[ST_PAUL] * 4), "site_locations.*km from.*atom_locations"),
    ("kilometres as degrees", lambda: city(atom_locations=[[500, 200]] * 3), "atom_locations.*geographic=False"),
    ("unknown field", lambda: city().replace(rates=1), "'rates'.*arrival_rates"),
    ("theta is zero", lambda: city().scaled(0), "theta.*above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("provoke", "words"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_malformed_cities_are_refused_by_name(provoke, words):
    refused(words, provoke)


def test_arrays_are_spread_owned_and_read_only():
    by_site = city(turnout_times=[1, 2, 3, 4], service_times=[30, 40, 50, 60])
    np.testing.assert_array_equal(by_site.service_times, np.outer([30, 40, 50, 60], [1, 1, 1]))
    np.testing.assert_array_equal(by_site.response_times, TRAVEL + np.array([[1], [2], [3], [4]]))
    assert city().turnout_times.tolist() == [1.5] * 4
    square = eo.City([1, 1], [[1, 2], [3, 4]], 1, [30, 60])  # as many sites as atoms: a value a site
    assert square.service_times.tolist() == [[30, 30], [60, 60]]
    rates, minutes = np.array(RATES), np.asfortranarray(TRAVEL)
    built = city(arrival_rates=rates, travel_times=minutes)
    rates[0], minutes[0, 0] = 99, 99
    assert (built.arrival_rates[0], built.travel_times[0, 0]) == (1, 3)
    built.preference_ranks  # is kept
    for same in (built, copy.deepcopy(built), pickle.loads(pickle.dumps(built))):
        arrays = [value for value in vars(same).values() if isinstance(value, np.ndarray)]
        assert len(arrays) >= 7
        assert not any(array.flags.writeable or not array.flags.c_contiguous for array in arrays)
    with pytest.raises(AttributeError):
        built.name = "other"


def test_load_is_calls_times_minutes_over_units():
    """λ / (p μ) = (1.8 / 60) 40 / p."""
    assert (city().total_rate, city().offered_load(1)) == (pytest.approx(1.8), pytest.approx(1.2))
    assert city().offered_load(4) == pytest.approx(0.3)
    assert city().with_offered_load(0.7, units=3).offered_load(3) == pytest.approx(0.7)
    assert city().scaled(2.5).total_rate == pytest.approx(4.5)
    assert city().scaled(2.5).demand_shares == pytest.approx(city().demand_shares)
    # service that depends on the site: the mean over calls and over sites alike
    assert city(service_times=[20, 40, 60, 80]).mean_service_time == pytest.approx(50)


def test_preferred_order_is_by_response_then_by_lower_index():
    for changes, expected in (
        ({}, [[0, 3, 2, 1], [1, 3, 2, 0], [2, 1, 0, 3]]),
        ({"travel_times": np.ones((4, 3))}, [[0, 1, 2, 3]] * 3),
        ({"preference": np.arange(4)[::-1, None] * np.ones(3)}, [[3, 2, 1, 0]] * 3),
        ({"turnout_times": [6, 0, 0, 0]}, [[3, 2, 0, 1], [1, 3, 2, 0], [2, 1, 3, 0]]),  # turnout counts
    ):
        assert city(**changes).preferred_order.tolist() == expected


def test_variation_is_one_number_if_it_is_the_same_everywhere():
    assert city().travel_cv == city().turnout_cv == 0
    assert city().response_law is None
    for same in (0.4, [0.4] * 4, np.full((4, 3), 0.4)):
        assert isinstance(city(travel_cv=same).travel_cv, float)
    by_site = city(travel_cv=[0.1, 0.2, 0.3, 0.4], turnout_cv=[0, 0, 0, 1])
    np.testing.assert_array_equal(by_site.travel_cv, np.repeat([[0.1], [0.2], [0.3], [0.4]], 3, axis=1))
    assert by_site.turnout_cv.tolist() == [0, 0, 0, 1]
    np.testing.assert_array_equal(by_site.scaled(2).replace(name="b").travel_cv, by_site.travel_cv)


def test_twins_are_alike_in_every_time_and_preference():
    for changes, groups in (
        ({}, [0, 1, 0, 1]),
        ({"turnout_times": [1, 1, 2, 1]}, [0, 1, 2, 1]),
        ({"service_times": [1, 1, 1, 2]}, [0, 1, 0, 2]),
        ({"preference": np.arange(4)[:, None] * np.ones(3)}, [0, 1, 2, 3]),
        ({"travel_cv": [0.4, 0.4, 0.3, 0.4]}, [0, 1, 2, 1]),
        ({"turnout_cv": [0.4, 0.4, 0.3, 0.4]}, [0, 1, 2, 1]),
    ):
        assert city(travel_times=TRAVEL[[0, 1, 0, 1]], **changes).twin_groups.tolist() == groups
    assert city().twin_groups.tolist() == [0, 1, 2, 3]


def test_great_circles():
    """A quarter of a meridian is 90 degrees of the mean radius; a degree of longitude shrinks with cos(latitude)."""
    quarter, degree = np.pi / 2 * travel.EARTH_RADIUS_KM, np.radians(1) * travel.EARTH_RADIUS_KM
    found = travel.great_circle_km([[0, 0]], [[0, 90], [0, 0], [180, 0]])
    assert found == pytest.approx(np.array([[quarter, 0, 2 * quarter]]))
    assert travel.great_circle_km([[179.9, 0]], [[-179.9, 0]])[0, 0] == pytest.approx(0.2 * degree, rel=1e-9)
    assert travel.plane_km([[0, 0], [1, 1]], [[3, 4]]).tolist() == [[5.0], [np.hypot(2, 3)]]


def lognormal(mean, cv):
    """Scipy's lognormal distribution of this mean and coefficient of variation."""
    sigma = np.sqrt(np.log1p(cv**2))
    return lognorm(sigma, scale=mean * np.exp(-(sigma**2) / 2))


def pair(turnout, travel, turnout_cv, travel_cv):
    return ResponseLaw.of(np.array([turnout]), np.array([[travel]]), turnout_cv, travel_cv)


@pytest.mark.parametrize("cv", [0.05, 0.4, 1.0, 3.0])
def test_fixed_turnout_shifts_the_lognormal(cv):
    for t in (0.0, 1.4, 1.5, 2, 4, 5.5, 8, 40):
        assert pair(1.5, 4, 0, cv).late_probabilities(t)[0, 0] == pytest.approx(lognormal(4, cv).sf(t - 1.5), abs=1e-14)
        assert pair(4, 1.5, cv, 0).late_probabilities(t)[0, 0] == pytest.approx(lognormal(4, cv).sf(t - 1.5), abs=1e-14)


@pytest.mark.parametrize("cvs", [(0.2, 0.1), (0.6, 0.4), (1.0, 1.0), (0.2, 1.0), (1.0, 0.1)])
@pytest.mark.parametrize("means", [(1.5, 4.0), (2.0, 0.7)])
def test_random_turnout_by_convolution(means, cvs):
    law, (one, other) = pair(*means, *cvs), map(lognormal, means, cvs)
    for t in (1.0, 3.0, 5.5, 8.0, 15.0):
        breaks = [x for x in (one.median(), t - other.median()) if 0 < x < t]
        whole, _ = quad(lambda x, t=t: one.pdf(x) * other.sf(t - x), 0, t, points=breaks, limit=400, epsabs=1e-10)
        assert law.late_probabilities(t)[0, 0] == pytest.approx(whole + one.sf(t), abs=2e-4)


def test_times_that_do_not_vary_and_places_at_the_station():
    """0.1 + 0.2 is above 0.3 in floating point, and t - 0.1 would be rounded."""
    law = ResponseLaw.of(np.array([0.1, 0.1]), np.array([[0.2], [0.2]]), 0, np.array([[0.0], [0.5]]))
    assert (law.late_probabilities(0.1 + 0.2)[0, 0], law.late_probabilities(np.nextafter(0.1 + 0.2, 1))[0, 0]) == (1, 0)
    assert 0 < law.late_probabilities(0.3)[1, 0] < 1
    assert (
        pair(1.0, 0.0, 0, 0.5).late_probabilities(1.0)[0, 0],
        pair(1.0, 0.0, 0, 0.5).late_probabilities(1.01)[0, 0],
    ) == (1, 0)
    assert pair(0.0, 0.0, 0.5, 0.5).late_probabilities(0.01)[0, 0] == 0
    assert pair(0.0, 4.0, 0.5, 0.5).late_probabilities(5)[0, 0] == pytest.approx(lognormal(4, 0.5).sf(5))
    assert pair(1.0, 0.0, 0.5, 0.5).late_probabilities(2)[0, 0] == pytest.approx(lognormal(1, 0.5).sf(2))
    assert pair(1.0, 4.0, 0.5, 0.5).late_probabilities(0)[0, 0] == 1


def test_samples_have_the_law():
    cvs, n, rng = np.array([[0.3, 0.4], [0.6, 0.2]]), 200_000, np.random.default_rng(0)
    law = ResponseLaw.of(np.array([1.0, 2.0]), np.array([[3.0, 5.0], [8.0, 1.0]]), 0.5, cvs)
    for i, j in np.ndindex(2, 2):
        minutes = law.sample(np.full(n, i), np.full(n, j), rng.standard_normal((2, n)))
        mean = law.turnout[i] + law.travel[i, j]
        variance = (0.5 * law.turnout[i]) ** 2 + (cvs[i, j] * law.travel[i, j]) ** 2
        assert minutes.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / n))
        assert minutes.var() == pytest.approx(variance, rel=0.05)
        for t in (0.8 * mean, 1.3 * mean):
            late = law.late_probabilities(t)[i, j]
            assert (minutes >= t).mean() == pytest.approx(late, abs=4 * np.sqrt(late * (1 - late) / n))
    late = law.late_probabilities(4.0)
    assert law.at_sites(np.array([1, 1, 0])).late_probabilities(4.0).tolist() == late[[1, 1, 0]].tolist()
