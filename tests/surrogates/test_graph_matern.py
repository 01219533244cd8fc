"""Graph Matérn: the definition entry by entry, the two methods against each other, moments; Matérn 5/2 by Bessel."""

import numpy as np
import pytest
from refusals import refused
from scipy.special import gamma, kv

from emsopt.datasets import load_roads
from emsopt.surrogates.graph_matern import ContextKernel, graph_matern, incidence_laplacian, matern


def random_network(rng, n, turns):
    connections = np.unique(rng.integers(n, size=(turns, 2)), axis=0)
    return rng.lognormal(4.0, 1.5, n), connections[connections[:, 0] != connections[:, 1]]


def by_definition(lengths, connections):
    """Equations (132) and (133), entry by entry."""
    lengths = np.maximum(lengths, 1.0)
    B = np.zeros((len(lengths), len(connections)))
    for c, (e1, e2) in enumerate(connections):
        B[[e1, e2], c] = np.array([-1, 1]) * lengths.mean() / lengths[e1]
    return B @ B.T


def test_laplacian_is_132_and_133_with_lengths_clipped():
    lengths, connections = random_network(np.random.default_rng(0), 30, 90)
    lengths[3] = 0.2
    expected = by_definition(lengths, connections)
    assert np.allclose(incidence_laplacian(lengths, connections).toarray(), expected, rtol=1e-13, atol=0)
    monaco = load_roads("monaco").lengths
    assert (len(monaco), (monaco < 1).sum()) == (3003, 1)
    refused("greater than 0", incidence_laplacian, [1.0, 0.0], [[0, 1]])
    refused("from 0 to 1", incidence_laplacian, [1.0, 2.0], [[0, 2]])


def test_solves_equal_the_eigendecomposition_of_134():
    lengths, connections = random_network(np.random.default_rng(1), 300, 700)
    K = graph_matern(incidence_laplacian(lengths, connections))
    values, vectors = np.linalg.eigh(by_definition(lengths, connections))
    nu, kappa = 2, 1  # as in the paper
    expected = vectors @ np.diag((2 * nu / kappa**2 + values) ** -float(nu)) @ vectors.T
    expected *= len(expected) / np.trace(expected)
    assert np.abs(K - expected).max() < 1e-8
    assert (K == K.T).all()


def test_matern_is_135_with_its_bessel_function():
    X, scales = np.random.default_rng(2).normal(size=(300, 3)), np.array([0.5, 1.0, 3.0])
    z = np.sqrt(5 * (((X[:, None] - X) / scales) ** 2).sum(axis=2)) + 1e-9 * np.eye(300)  # 0 times infinity at 0
    expected = 2**-1.5 / gamma(2.5) * z**2.5 * kv(2.5, z)
    assert np.allclose(matern(X / scales, X / scales), expected, rtol=1e-12, atol=1e-15)


def test_kernel_of_the_experiments_is_a_product_plus_a_sum_with_the_variance_it_says():
    rng = np.random.default_rng(3)
    lengths, connections = random_network(rng, 80, 180)
    X, scales, graph = rng.normal(size=(80, 3)), np.array([1, 2, 3]), incidence_laplacian(lengths, connections)
    K, product, alone = graph_matern(graph), matern(X / scales, X / scales), matern(2 * X, 2 * X)
    kernel = ContextKernel(X, lambda: K, 0.3, 0.25, (scales, np.array(0.5)))
    assert kernel.covariance() == pytest.approx(0.3 * (0.25 * K * product + 0.75 * alone), rel=1e-12)
    same = ContextKernel(X, lambda: K, 0.3, 0.25, (scales, scales)).covariance()
    assert np.allclose(same, 0.3 * (0.25 * K + 0.75) * product, rtol=1e-13, atol=1e-15)
    assert np.diag(same).mean() == pytest.approx(0.3, rel=1e-12)
