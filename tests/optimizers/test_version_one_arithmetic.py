"""Arithmetic on "Optimizing Server Locations for Stochastic Emergency Service Systems", the location paper's first version.

Nothing here calls the package: these tests support rows of the register.
"""

import itertools
from math import comb, exp, log, sqrt

import numpy as np
import pytest
from scipy.integrate import quad

N, P = 17, 9  # St. Paul
D = 1 + N + comb(N, 2)

A, B = -np.array([[0, 2, 3], [2, 0, 1], [3, 1, 0]]), np.array([9, 8, -7])  # the second version's Example 7; A+ is zero
SIDES = np.array(list(itertools.product([0, 1], repeat=3)))


def cuts(large=0.0):
    """Return the cuts of version one's graph by x, 1 on the side of the source; ``large`` is L on all arcs to the sink."""
    source, sink = np.maximum(B, 0), np.maximum(-B, 0) + large
    between = np.einsum("ki,ij,kj->k", SIDES, -A, 1 - SIDES)
    return (1 - SIDES) @ source + SIDES @ sink + between


def test_the_sides_of_version_ones_cut_pick_the_worst_point_of_example_7():
    """Line 8 of Algorithm 1 and "source-side corresponding to x = 1": (1, 1, 0), which has the largest value of all."""
    values = np.einsum("ki,ij,kj->k", SIDES, A, SIDES) + SIDES @ B
    assert SIDES[cuts().argmin()].tolist() == SIDES[values.argmax()].tolist() == [1, 1, 0]
    assert (SIDES[values.argmin()].tolist(), values.min(), values.max()) == ([0, 0, 1], -7, 13)
    b = np.array([3, 2, -7])  # with this linear term a cut with the sides exchanged misses the least value too
    values += SIDES @ (b - B)
    between = np.einsum("ki,ij,kj->k", SIDES, -A, 1 - SIDES)
    exchanged = SIDES @ np.maximum(b, 0) + (1 - SIDES) @ np.maximum(-b, 0) + between
    assert (values[exchanged.argmin()], values.min()) == (-7, -14)


def test_a_large_capacity_to_the_sink_leaves_every_site_out():
    """ "Exactly p nodes will be assigned to the source" if L is added to each arc to the sink: none is."""
    counts = [SIDES[cuts(large).argmin()].sum() for large in (0, 5, 10, 1000)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0


def theorem_6(T, s0, W=1.0, C=1.0):
    """Return (59) with the T_0 of (60), and the last line of the proof."""
    start = np.ceil(C**2 * s0**2 * log(D))
    regret = W * start + C * s0 * sqrt(log(D)) * (sqrt(T) - sqrt(start)) + W * log(T)
    return regret, W * C**2 * s0**2 * sqrt(T * log(D)) + log(T)


def test_the_order_of_theorem_6_is_linear_in_the_sparsity_and_its_proofs_last_line_is_not():
    """(59) doubles with s_0 for large T, as stated; the last line, W s_0² √(T log D), has four times as much."""
    for s0 in (1, 5):
        ratios = [np.divide(*(theorem_6(T, k * s0)[part] for k in (2, 1))) for T, part in ((1e12, 0), (1e12, 1))]
        assert ratios == pytest.approx([2, 4], rel=0.01)
    assert theorem_6(1e12, 5, W=3.0)[0] == pytest.approx(theorem_6(1e12, 5)[0], rel=1e-3)
    start = theorem_6(1e12, 10, W=2.0)[0] - theorem_6(1e12, 10)[0]  # W s_0² log D + W log T
    assert start == pytest.approx(100 * log(D) + log(1e12), rel=0.01)


def test_the_bad_event_of_58_adds_up_linearly():
    """(58) sums W (2 / t + D^-s_0) and keeps "O(1)" of the second part, W T D^-s_0, which passes the bound's order √T."""
    rounds = np.arange(1, 100_001)
    for s0, crossing in ((1, 1.2e5), (2, 1.13e10)):
        excess = np.cumsum(2 / rounds + float(D) ** -s0) - np.cumsum(2 / rounds)
        assert log(excess[-1] / excess[999]) / log(100) == pytest.approx(1, abs=1e-3)
        assert crossing * excess[-1] / rounds[-1] == pytest.approx(s0 * sqrt(crossing * log(D)), rel=0.05)


def test_the_second_term_of_lemma_12_does_not_fall():
    """At τ = s_0 / D it is s_0 (1 - s_0/D) √log(D/s_0): the bound is not s_0 log D / t, as concluded."""
    s0, tau = 5, 5 / D
    t = np.logspace(1, 4, 4)
    ratio = (s0 * log(D) / t + (D - s0) * tau * sqrt(log(1 / tau))) / (s0 * log(D) / t)
    assert (np.diff(ratio) > 0).all()
    assert ratio[0] > 4
    assert ratio[-1] > 1000


def shrunk(y, tau):
    """Return the posterior mean of θ under the horseshoe, y ~ N(θ, 1) and θ ~ N(0, λ² τ²), λ half-Cauchy.

    With λ integrated out it is y times a ratio of integrals over u = √κ, the root of the weight of y, on [0, 1].
    """

    def integral(power):
        weight = lambda u: u**power * exp(y * y * (u * u - 1) / 2) / (tau**2 + (1 - tau**2) * u * u)
        return quad(weight, 0, 1, points=[min(tau, 0.5), min(10 * tau, 0.9)], limit=400)[0]

    return y * integral(2) / integral(0)


def test_large_observations_are_hardly_shrunk():
    """Lemma 13: beyond √(3 log 1/τ) the largest difference falls with τ, though slowly; below √(2 log 1/τ) it grows."""
    difference = lambda y, tau: y - shrunk(y, tau)
    taus = (1e-2, 1e-4, 1e-8, 1e-16)
    beyond = [max(difference(y, tau) for y in sqrt(3 * log(1 / tau)) + np.linspace(0, 10, 21)) for tau in taus]
    below = [difference(0.8 * sqrt(2 * log(1 / tau)), tau) for tau in taus]
    assert beyond == pytest.approx([2.57, 1.77, 0.34, 0.20], abs=0.01)
    assert below == sorted(below)


def test_steps_of_the_proof_of_lemma_12():
    """(47): the estimate is off by less than ζ, ζ² = 2 log 1/τ. (49): for a zero coefficient its mean square is below ζ τ."""
    for tau in (1e-2, 1e-4, 1e-8, 1e-16):
        zeta = sqrt(2 * log(1 / tau))
        assert 0.94 < max(y - shrunk(y, tau) for y in np.linspace(0.1, 2 * zeta, 60)) / zeta < 1
        if tau > 1e-16:
            y = np.linspace(0, zeta + 8, 400)
            density = np.exp(-y * y / 2) / sqrt(2 * np.pi)
            square = 2 * np.trapezoid([shrunk(one, tau) ** 2 for one in y] * density, y)
            assert square < 0.06 * zeta * tau


def test_steps_47_and_49_do_not_add_up_to_lemma_12(claim):
    """(iii): at τ = s_0 / D the sum of (47) over s_0 coefficients is no multiple of s_0 log D / t; with σ²/t for σ² it is."""
    t, tau = np.array([10, 10_000]), 5 / D
    times = (1 / t + 2 * log(1 / tau)) / (log(D) / t)
    claim("server locations, version one", "Proof of Lemma 12, (iii)", times[0], 10, times[1], 10_000)
    assert (1 / t + 2 * log(1 / tau) / t) / (log(D) / t) == pytest.approx(1.56, abs=0.005)
    taus = np.array([1e-2, 1e-4, 1e-8])  # nor of both terms of the lemma, as τ falls: here at t = 10,000
    both = 5 * log(D) / t[1] + (D - 5) * taus * np.sqrt(np.log(1 / taus))
    assert (np.diff(5 * (1 / t[1] + 2 * np.log(1 / taus)) / both) > 1000).all()


def test_small_observations_are_shrunk_as_lemma_14_says():
    """At most y exp(y²/2) 2τ/3 for y > 0, nearly attained near 0; as printed it is false for y < 0."""
    for tau in (0.9, 0.3, 0.05, 1e-3):
        for y in np.linspace(0.01, 3, 12):
            bound = y * exp(y * y / 2) * 2 * tau / 3
            assert 0 < shrunk(y, tau) <= bound
            assert shrunk(-y, tau) > -bound
    assert shrunk(0.01, 1e-3) / 0.01 == pytest.approx(2e-3 / np.pi, rel=0.01)


def test_an_edge_of_20_is_the_whole_space_of_small_cities():
    """Lemma 16 with C.1's d_0 = 20: all deployments of three of the six sizes and of St. Paul are in the first region."""

    def share(sites, units, edge=20):
        inside = sum(comb(units, i) * comb(sites - units, i) for i in range(edge // 2 + 1))
        return inside / comb(sites, units)

    assert [share(*size) for size in ((10, 5), (20, 10), (30, 5), (N, P))] == [1] * 4
    assert share(30, 15) == pytest.approx(0.99, abs=5e-3)
    assert share(50, 20) == share(50, 30) < 0.3
    corners = np.array([x for x in itertools.product([0, 1], repeat=7) if sum(x) == 3])
    assert share(7, 3, edge=4) == pytest.approx((np.abs(corners - corners[0]).sum(axis=1) <= 4).mean())
