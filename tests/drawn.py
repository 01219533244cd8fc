"""Cities drawn at random for tests of siting models, and closed forms of queues."""

from math import factorial

import numpy as np

import emsopt as eo


def plane_city(n_sites, n_atoms, rng):
    """Sites and atoms anywhere in a square of 20 minutes' drive; random demand."""
    rng = np.random.default_rng(rng)
    atoms, sites = rng.uniform(0, 20, (n_atoms, 2)), rng.uniform(0, 20, (n_sites, 2))
    return eo.City(rng.uniform(size=n_atoms), eo.city.travel.plane_km(sites, atoms), 1.75, 30.0)


def tied_city(n_sites, n_atoms, rng):
    """Few different times, some atoms without demand, some sites listed twice: ties everywhere."""
    rng = np.random.default_rng(rng)
    times = rng.integers(0, 4, (n_sites, n_atoms)).astype(float)
    times[rng.integers(n_sites)] = times[rng.integers(n_sites)]
    rates = rng.integers(0, 3, n_atoms)
    rates[rng.integers(n_atoms)] = 1
    return eo.City(rates, times, 0.0, 30.0)


def erlang_b(units, offered):
    terms = [offered**k / factorial(k) for k in range(units + 1)]
    return terms[-1] / sum(terms)


def erlang_c(units, offered):
    b = erlang_b(units, offered)
    return b / (1 - offered / units * (1 - b))
