"""Compare times learned from 500 trips in Monaco with speed limits and one fitted factor.

    python benchmarks/trip_times.py

Truth is synthetic: the time on an edge is 1.3 times that at the speed limit, times factors with the standard deviations
(of logarithms) below: by class of road, by district, by edge, and of the energy model's kernel (length, speed limit,
incline and graph). Trips start at ten stations, take the truly quickest way and vary by 10 %. Each line has the mean
absolute error over ten stations and 300 places, in minutes and relative to one factor, and how often 90 % intervals
hold the truth: median (smallest to largest) over the seeds.
"""

import numpy as np

from emsopt import datasets
from emsopt.bandits.prior import navigation_prior
from emsopt.surrogates.trip_times import learn_times

SEEDS, TRIPS, STATIONS, PLACES = range(5), 500, 10, 300
TRUTHS = {
    "classes": {"class": 0.3},
    "districts": {"district": 0.4},
    "classes, districts, edges": {"class": 0.3, "district": 0.4, "edge": 0.25},
    "the bandits' kernel": {"kernel": 0.35},
}


def true_slowness(net, middles, prior, rng, sizes):
    km = (middles - middles.mean(axis=0)) * [80.4, 111.2]
    _, classes = np.unique(net.classes, return_inverse=True)
    hills = np.exp(-((km[:, None] - rng.normal(0, [1.5, 1.0], (6, 2))) ** 2).sum(axis=2) / 1.28)
    logs = sizes.get("class", 0) * rng.normal(size=classes.max() + 1)[classes]
    logs += sizes.get("district", 0) * hills @ rng.normal(size=6)
    logs += sizes.get("edge", 0) * rng.normal(size=net.n_edges)
    if "kernel" in sizes:
        drawn = prior.draw(rng=rng)[:, 0] - prior.mean
        logs += sizes["kernel"] * drawn / np.sqrt(np.diag(prior.covariance).mean())
    return 1.3 * np.exp(logs)


def trial(net, middles, prior, sizes, seed):
    rng = np.random.default_rng(seed)
    speeds = net.speed_limits / true_slowness(net, middles, prior, rng, sizes)
    stations = middles[rng.choice(net.n_edges, STATIONS, replace=False)]
    starts, ends = stations[rng.integers(0, STATIONS, TRIPS)], middles[rng.choice(net.n_edges, TRIPS)]
    apart = (starts != ends).any(axis=1)
    starts, ends = starts[apart], ends[apart]
    minutes = net.ways(starts, ends, speeds=speeds) @ net.edge_minutes(speeds) * rng.lognormal(-0.005, 0.1, len(starts))
    learned = learn_times(net, starts, ends, minutes)
    places, options = middles[rng.choice(net.n_edges, PLACES)], {"off_road_kmh": np.inf}
    true = net.travel_times(stations, places, speeds=speeds, **options)
    free = net.ways(starts, ends) @ net.edge_minutes()
    scaled = minutes @ free / (free @ free) * net.travel_times(stations, places, **options)
    error, before = (np.abs(t - true).mean() for t in (learned.travel_times(stations, places, **options), scaled))
    mean, sd = learned.predict(np.repeat(stations, 30, axis=0), np.tile(places[:30], (STATIONS, 1)))
    inside = (np.abs(mean - true[:, :30].ravel()) <= 1.645 * sd).mean()
    return before, error, error / before, inside


def main():
    net = datasets.load_roads("monaco")
    middles = np.array([(line[0] + line[-1]) / 2 for line in net.polylines])
    prior = navigation_prior(net)
    print("| truth | one factor, min | learned, min | ratio | 90 % intervals hold |\n|---|---|---|---|---|")
    for name, sizes in TRUTHS.items():
        rows = np.array([trial(net, middles, prior, sizes, seed) for seed in SEEDS])
        cells = [f"{np.median(c):.2f} ({c.min():.2f} to {c.max():.2f})" for c in rows.T]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
