"""How response times vary: against scipy's lognormal distribution, numerical convolution and samples."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm

from emsopt.city.travel import ResponseLaw


def lognormal(mean, cv):
    """Scipy's lognormal distribution of this mean and coefficient of variation."""
    sigma = np.sqrt(np.log1p(cv**2))
    return lognorm(sigma, scale=mean * np.exp(-(sigma**2) / 2))


def pair(turnout, travel, turnout_cv, travel_cv):
    return ResponseLaw.of(np.array([turnout]), np.array([[travel]]), turnout_cv, travel_cv)


@pytest.mark.parametrize("cv", [0.05, 0.4, 1.0, 3.0])
def test_fixed_turnout_shifts_the_lognormal(cv):
    for t in (0.0, 1.4, 1.5, 2, 4, 5.5, 8, 40):
        assert pair(1.5, 4, 0, cv).late(t)[0, 0] == pytest.approx(lognormal(4, cv).sf(t - 1.5), abs=1e-14)
        assert pair(4, 1.5, cv, 0).late(t)[0, 0] == pytest.approx(lognormal(4, cv).sf(t - 1.5), abs=1e-14)


@pytest.mark.parametrize("cvs", [(0.2, 0.1), (0.6, 0.4), (1.0, 1.0), (0.2, 1.0), (1.0, 0.1)])
@pytest.mark.parametrize("means", [(1.5, 4.0), (2.0, 0.7)])
def test_random_turnout_by_convolution(means, cvs):
    law, (one, other) = pair(*means, *cvs), map(lognormal, means, cvs)
    for t in (1.0, 3.0, 5.5, 8.0, 15.0):
        breaks = [x for x in (one.median(), t - other.median()) if 0 < x < t]
        whole, _ = quad(lambda x, t=t: one.pdf(x) * other.sf(t - x), 0, t, points=breaks, limit=400, epsabs=1e-10)
        assert law.late(t)[0, 0] == pytest.approx(whole + one.sf(t), abs=2e-4)


def test_times_that_do_not_vary_and_places_at_the_station():
    """0.1 + 0.2 is above 0.3 in floating point, and t - 0.1 would be rounded."""
    law = ResponseLaw.of(np.array([0.1, 0.1]), np.array([[0.2], [0.2]]), 0, np.array([[0.0], [0.5]]))
    assert (law.late(0.1 + 0.2)[0, 0], law.late(np.nextafter(0.1 + 0.2, 1))[0, 0]) == (1, 0)
    assert 0 < law.late(0.3)[1, 0] < 1
    assert (pair(1.0, 0.0, 0, 0.5).late(1.0)[0, 0], pair(1.0, 0.0, 0, 0.5).late(1.01)[0, 0]) == (1, 0)
    assert pair(0.0, 0.0, 0.5, 0.5).late(0.01)[0, 0] == 0
    assert pair(0.0, 4.0, 0.5, 0.5).late(5)[0, 0] == pytest.approx(lognormal(4, 0.5).sf(5))
    assert pair(1.0, 0.0, 0.5, 0.5).late(2)[0, 0] == pytest.approx(lognormal(1, 0.5).sf(2))
    assert pair(1.0, 4.0, 0.5, 0.5).late(0)[0, 0] == 1


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
            late = law.late(t)[i, j]
            assert (minutes >= t).mean() == pytest.approx(late, abs=4 * np.sqrt(late * (1 - late) / n))
    assert law.at(np.array([1, 1, 0])).late(4.0).tolist() == law.late(4.0)[[1, 1, 0]].tolist()
