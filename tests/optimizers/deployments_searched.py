"""What the tests of searches over deployments share."""

import numpy as np

import emsopt as eo

BUDGET = 40
CHEAP = ("random", "genetic", "annealing", "local")
"""The methods that need no model."""


def noisy(city):
    return eo.Objective(city, 4, "simulation", calls=300)


def same(one, other):
    """Return whether two runs are the same in all but the clock."""
    columns = ["evaluation", "sites", "value", "best"]
    return (
        one.history[columns].equals(other.history[columns])
        and np.array_equal(one.x, other.x)
        and (one.fun, one.nfev, one.message) == (other.fun, other.nfev, other.message)
    )
