"""Road networks of which some streets are open in one direction only, and the costs of reaching their edges."""

from dataclasses import replace

import numpy as np


def one_way_streets(net, share, rng):
    """Return the largest component of a grid after closing a direction, drawn at random, of a share of its streets."""
    rng = np.random.default_rng(rng)
    both = [(k, net.ids.index("-".join(name.split("-")[::-1]))) for k, name in enumerate(net.ids)]
    closed = [pair[rng.integers(2)] for pair in both if pair[0] < pair[1] and rng.random() < share]
    return replace(net, connections=net.connections[~np.isin(net.connections, closed).any(axis=1)]).largest_component()


def bellman_ford(net, costs, starts, closed=()):
    """Return the cheapest cost of reaching the end of every edge, by relaxing all connections until nothing changes."""
    best, before = np.full(net.n_edges, np.inf), None
    best[starts] = costs[starts]
    onto, new = net.connections[~np.isin(net.connections, list(closed)).any(axis=1)].T
    while not np.array_equal(best, before):
        before = best.copy()
        np.minimum.at(best, new, best[onto] + costs[new])
    return best
