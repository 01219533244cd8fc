"""Road networks of which some streets are open in one direction only."""

from dataclasses import replace

import numpy as np


def one_way_streets(net, share, rng):
    """Return the largest component of a grid after closing a direction, drawn at random, of a share of its streets."""
    rng = np.random.default_rng(rng)
    both = [(k, net.ids.index("-".join(name.split("-")[::-1]))) for k, name in enumerate(net.ids)]
    closed = [pair[rng.integers(2)] for pair in both if pair[0] < pair[1] and rng.random() < share]
    return replace(net, connections=net.connections[~np.isin(net.connections, closed).any(axis=1)]).largest_component()
