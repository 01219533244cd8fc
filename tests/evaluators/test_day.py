"""A simulated day: the rules of dispatch hold call by call, and what is lost in the long run is Erlang's formula."""

import numpy as np
import pytest

import emsopt as eo
from emsopt.errors import InputError


@pytest.fixture(scope="module")
def city():
    return eo.datasets.grid_city(9, 4, rng=0).with_offered_load(0.5, units=3)


def test_each_call_gets_the_first_free_unit_in_its_order(city):
    sites = [0, 1, 3]
    day = eo.evaluators.simulate_day(city, sites, hours=24 * 20, rng=8)
    release = day.release.copy()
    assert (day.unit[day.minute < release.max()] < 0).any()  # lost to a unit that was busy from the start
    assert (np.diff(day.minute) > 0).all()
    assert day.minute[-1] < 60 * day.hours
    for n in range(len(day.minute)):
        free = [k for k in range(3) if release[k] <= day.minute[n]]
        if not free:
            assert day.unit[n] == -1
            assert np.isnan([day.turnout[n], day.response[n], day.service[n]]).all()
            continue
        chosen = day.unit[n]
        preferred = city.preferred_order[day.atom[n]].tolist()
        assert chosen == min(free, key=lambda k: preferred.index(sites[k]))
        assert day.response[n] == pytest.approx(city.response_times[sites[chosen], day.atom[n]])
        assert 0 <= day.turnout[n] <= day.response[n]
        release[chosen] = day.minute[n] + day.service[n]
    assert (day.unit < 0).any()
    assert repr(day).startswith(f"<Day: {len(day.minute):,} calls in 480 h, 3 units")


def test_erlangs_share_of_calls_is_lost():
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)
    day = eo.evaluators.simulate_day(city, [0, 1], hours=24 * 400, rng=1)
    assert np.mean(day.unit < 0) == pytest.approx(0.4, abs=0.012)  # 2 units, 2 calls in a service time: 2 / 5
    assert len(day.minute) == pytest.approx(3 * 24 * 400, rel=0.03)
    assert np.nanmean(day.service) == pytest.approx(40, rel=0.04)


def test_at_the_start_units_are_busy_as_at_any_time():
    """Each is busy with probability ρ / (1 + ρ), and then for half a mean service time more on average."""
    city = eo.City([2.0, 1.0], [[3.0, 8.0], [9.0, 2.0]], turnout_times=1.5, service_times=40)  # ρ = 1
    release = np.array([eo.evaluators.simulate_day(city, [0, 1], hours=1, rng=seed).release for seed in range(400)])
    assert (release > 0).mean() == pytest.approx(0.5, abs=0.07)  # four standard errors
    assert release[release > 0].mean() == pytest.approx(20, abs=2.4)


def test_times_vary_if_the_citys_do(city):
    varied = city.replace(travel_cv=0.5)
    same, other = (eo.evaluators.simulate_day(c, [0, 1, 3], hours=100, rng=0) for c in (city, varied))
    assert (same.unit == other.unit).all()
    ratio = other.response / same.response
    assert np.nanstd(ratio) > 0.1
    assert np.nanmean(ratio) == pytest.approx(1, abs=0.1)


def test_a_day_without_hours_is_refused(city):
    with pytest.raises(InputError, match="`hours`"):
        eo.evaluators.simulate_day(city, [0], hours=0)
