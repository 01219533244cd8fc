"""Times learned from trips: against the posterior in information form, the likelihood, and a known truth in Monaco."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import multivariate_normal

from emsopt import datasets
from emsopt.errors import InputError
from emsopt.roads import RoadNetwork, grid_roads
from emsopt.surrogates import trip_times
from emsopt.surrogates.trip_times import learn_times


def grid_trips(rng, n=120, **options):
    net = grid_roads(4, 4, block=500, jitter=0.2, rng=rng, **options)
    starts, ends = rng.uniform([0, -1500], [1500, 0], (2, n, 2))
    slowness = 1.4 + 0.5 * (np.array(net.classes) == "arterial") + rng.normal(0, 0.15, net.n_edges)
    minutes = net.ways(starts, ends) @ (net.edge_minutes() * slowness) * rng.lognormal(0, 0.08, n)
    return net, starts, ends, minutes, slowness


def test_the_posterior_is_that_in_information_form():
    net, starts, ends, minutes, _ = grid_trips(np.random.default_rng(0))
    ways = net.ways(starts, ends)
    loads, kernels = ways.toarray() * net.edge_minutes(), trip_times.edge_kernels(net)
    _, variances, factor, _ = trip_times._fitted(csr_array(loads), minutes, kernels)
    K = trip_times.FACTOR_VARIANCE + sum(v * k for v, k in zip(variances, kernels, strict=False))
    precision = loads.T @ (loads / (variances[-1] * loads.sum(axis=1) ** 2)[:, None])
    covariance = np.linalg.solve(np.eye(len(K)) + K @ precision, K)
    noise = variances[-1] * loads.sum(axis=1) ** 2
    mean = factor + covariance @ loads.T @ ((minutes - factor * loads.sum(axis=1)) / noise)
    learned = learn_times(net, starts, ends, minutes, ways=ways)
    np.testing.assert_allclose(learned.slowness, mean, rtol=1e-6)
    np.testing.assert_allclose(learned.covariance, covariance, atol=1e-6)
    assert learned.noise == pytest.approx(np.sqrt(variances[-1]) / factor)
    expected, sd = learned.predict(starts[:9], ends[:9])
    rows = net.ways(starts[:9], ends[:9], speeds=learned.speeds).toarray() * net.edge_minutes()
    np.testing.assert_allclose(expected, rows @ mean, rtol=1e-6)
    np.testing.assert_allclose(sd, np.sqrt(np.diag(rows @ covariance @ rows.T)), rtol=1e-4)
    roads = np.diag(learned.travel_times(starts[:9], ends[:9], off_road_kmh=np.inf))
    np.testing.assert_allclose(expected, roads, rtol=1e-9)


def test_variances_maximise_the_likelihood_times_the_prior():
    net, starts, ends, minutes, _ = grid_trips(np.random.default_rng(1))
    loads, kernels = net.ways(starts, ends).toarray() * net.edge_minutes(), trip_times.edge_kernels(net)
    _, variances, factor, _ = trip_times._fitted(csr_array(loads), minutes, kernels)
    total = loads.sum(axis=1)
    medians = np.append(np.full(len(kernels), trip_times.KERNEL_SD), trip_times.NOISE_SD) * factor

    def value(logs):
        K = trip_times.FACTOR_VARIANCE + sum(v * k for v, k in zip(np.exp(logs), kernels, strict=False))
        S = loads @ K @ loads.T + np.diag(np.exp(logs[-1]) * total**2)
        prior = ((logs - 2 * np.log(medians)) / trip_times.PRIOR_SD) ** 2
        return multivariate_normal.logpdf(minutes, factor * total, S) - prior.sum() / 2

    best = value(np.log(variances))
    for k in range(len(variances)):
        for step in (-0.3, 0.3):
            assert value(np.log(variances) + step * (np.arange(len(variances)) == k)) < best


def test_lines_to_the_road_are_taken_off():
    rng = np.random.default_rng(2)
    net, starts, ends, minutes, _ = grid_trips(rng)
    ways = net.ways(starts, ends)
    with_lines = minutes + net.off_road_minutes(starts, 30) + net.off_road_minutes(ends, 30)
    learned = learn_times(net, starts, ends, with_lines, ways=ways, off_road_kmh=30)
    np.testing.assert_allclose(learned.slowness, learn_times(net, starts, ends, minutes, ways=ways).slowness, rtol=1e-6)
    assert "120 trips on 48 edges" in repr(learned)


def test_trips_teach_the_times_of_monaco():
    """500 trips from ten stations, with classes, districts and edges slower than known, and trips varying by 10 %."""
    net, rng = datasets.load_roads("monaco"), np.random.default_rng(3)
    middles = np.array([(line[0] + line[-1]) / 2 for line in net.polylines])
    km = (middles - middles.mean(axis=0)) * [80.4, 111.2]
    _, classes = np.unique(net.classes, return_inverse=True)
    districts = np.exp(-((km[:, None] - rng.normal(0, 1.5, (6, 2))) ** 2).sum(axis=2) / 1.28) @ rng.normal(0, 0.4, 6)
    slowness = 1.3 * np.exp(districts + rng.normal(0, 0.25, 11)[classes] + rng.normal(0, 0.2, net.n_edges))
    speeds = net.speed_limits / slowness
    stations = middles[rng.choice(net.n_edges, 10, replace=False)]
    starts, ends = stations[rng.integers(0, 10, 500)], middles[rng.choice(net.n_edges, 500)]
    apart = (starts != ends).any(axis=1)
    starts, ends = starts[apart], ends[apart]
    expected = net.ways(starts, ends, speeds=speeds) @ net.edge_minutes(speeds)
    minutes = expected * rng.lognormal(-0.005, 0.1, len(starts))
    learned = learn_times(net, starts, ends, minutes, rounds=2)

    places, options = middles[rng.choice(net.n_edges, 200)], {"off_road_kmh": np.inf}
    true = net.travel_times(stations, places, speeds=speeds, **options)
    free = net.ways(starts, ends) @ net.edge_minutes()
    factor = minutes @ free / (free @ free)
    scaled = factor * net.travel_times(stations, places, **options)
    error, before = (
        np.abs(times - true).mean() for times in (learned.travel_times(stations, places, **options), scaled)
    )
    assert error < 0.5 * before
    mean, sd = learned.predict(np.repeat(stations, 20, axis=0), np.tile(places[:20], (10, 1)))
    inside = np.abs(mean - true[:, :20].ravel()) <= 1.645 * sd
    assert 0.75 <= inside.mean() <= 0.99  # of 90 % intervals, whose errors share edges
    assert learned.noise == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minutes": [1.0, 2.0]}, "3 to 3,000 trips; got 2"),
        ({"minutes": [1.0, -2.0, 3.0]}, "`minutes` must be greater than 0"),
        ({"origins": [(0, 0)]}, r"`origins` must have shape \(3, 2\)"),
        ({"destinations": [(0, 0), (1000, 0), (0, -100)]}, "trip 0 starts and ends at the same place"),
        ({"ways": csr_array((3, 7))}, r"`ways` must have shape \(3, 48\); got \(3, 7\)"),
        ({"rounds": 0}, "`rounds` must be a whole number"),
        ({"off_road_kmh": 0.0}, "`off_road_kmh` must be a number above 0"),
    ],
)
def test_bad_trips_are_refused(change, message):
    arguments = {"origins": [(0, 0)] * 3, "destinations": [(500, 0), (900, 0), (0, -900)], "minutes": [1.0, 2.0, 2.0]}
    with pytest.raises(InputError, match=message):
        learn_times(grid_roads(4, 4, block=500), **{**arguments, **change})


def test_networks_too_large_for_dense_kernels_are_refused():
    n = trip_times.MOST_EDGES + 1
    net = RoadNetwork(np.ones(n), np.ones(n), [])
    with pytest.raises(InputError, match=r"at most 10,000 edges; it has 10,001. Use `subset`"):
        learn_times(net, [(0, 0)], [(1, 1)], [1.0])
