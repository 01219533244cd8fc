r"""Kernels between the edges of a road network, based on the graph, on edge features, or on both.

The graph Matérn kernel of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", equations (132) to
(134), correlates edges that lie close to each other on the line graph. A connection c = (e1, e2) is a legal
turn from e1 into e2. Its column of the incidence matrix B holds -W at e1 and +W at e2, where W = mean length
/ length of e1.

.. math:: K \propto (\tfrac{2ν}{κ^2} I + B B^\top)^{-ν}

===========  ==================  =============================================================================
symbol       name                meaning
===========  ==================  =============================================================================
B Bᵀ         ``laplacian``       incidence Laplacian of the line graph, shape (E, E), sparse
ν            ``nu``              smoothness; 2 in the paper
κ            ``kappa``           lengthscale along the network; 1 in the paper
k_G          ``graph``           the graph Matérn kernel with outputscale 1
k_f          -                   Matérn 5/2 between contexts, one lengthscale per column, (135) and (136)
σ²           ``outputscale``     a variance; (135) prints σ_f but means σ_f²
===========  ==================  =============================================================================

The kernel is not stationary: edges with few neighbours have a larger variance. It is scaled to make the
*mean* prior variance equal to the outputscale. An integer ν needs only ν sparse solves; any other ν needs all
eigenvectors, which takes minutes for about 5,000 edges or more. In both cases the result is dense and takes 8
E² bytes.

The weight 1 / length is unbounded, and one very short edge would dominate all other weights. Lengths below 1
m therefore count as 1 m.
"""

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from .._validate import positive_number, real_array
from ..errors import InputError

SHORTEST_M = 1.0  # shorter edges count as this long
COLUMNS = 32  # right-hand sides per solve: few enough for the processor's cache, which halves the time
ROWS = 256  # rows of a dense kernel computed at a time, to avoid a second matrix of its size


def incidence_laplacian(lengths, connections):
    """Return B Bᵀ of equations (132) and (133).

    Parameters
    ----------
    lengths : array_like, shape (E,)
        Length of every edge in metres, positive. Lengths below 1 m count as 1 m.
    connections : array_like of int, shape (C, 2)
        Legal turns, one row per turn: index of the edge left and of the edge entered.

    Returns
    -------
    scipy.sparse.csr_array, shape (E, E)

    Examples
    --------
    Two edges of equal length, one turn between them.

    >>> incidence_laplacian([50.0, 50.0], [[0, 1]]).toarray().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    n = len(lengths)
    turns = np.asarray(connections)
    if turns.size == 0:
        return sparse.csr_array((n, n))
    if turns.dtype.kind not in "iu" or turns.ndim != 2 or turns.shape[1] != 2:
        raise InputError(
            f"`connections` must be an integer array of edge indices, shape (C, 2); got {turns.dtype} of "
            f"shape {turns.shape}."
        )
    if turns.min() < 0 or turns.max() >= n:
        raise InputError(f"`connections` must be edge indices from 0 to {n - 1}; got {turns.min()} to {turns.max()}.")
    lengths = np.maximum(lengths, SHORTEST_M)
    weights = lengths.mean() / lengths[turns[:, 0]]
    columns = np.arange(len(turns))
    B = sparse.csr_array(
        (np.concatenate([-weights, weights]), (turns.T.ravel(), np.concatenate([columns, columns]))),
        shape=(n, len(turns)),
    )
    return sparse.csr_array(B @ B.T)


def graph_matern(laplacian, *, nu=2.0, kappa=1.0, outputscale=1.0):
    """Return the graph Matérn kernel between all edges, equation (134).

    Parameters
    ----------
    laplacian : sparse array or array_like, shape (E, E)
        Symmetric and positive semi-definite, as returned by `incidence_laplacian`.
    nu, kappa : float
        Smoothness and lengthscale, positive.
    outputscale : float
        Mean prior variance of an edge.

    Returns
    -------
    ndarray, shape (E, E)
        Symmetric.

    Examples
    --------
    >>> K = graph_matern(incidence_laplacian([50.0, 50.0, 50.0], [[0, 1], [1, 2]]), outputscale=4.0)
    >>> round(float(np.diag(K).mean()), 12), bool(K[0, 1] > K[0, 2] > 0)
    (4.0, True)
    """
    nu, kappa = positive_number(nu, "nu"), positive_number(kappa, "kappa")
    outputscale = positive_number(outputscale, "outputscale")
    laplacian = sparse.csc_array(laplacian, dtype=float)
    n, m = laplacian.shape
    if n != m or n == 0:
        raise InputError(f"`laplacian` must be square with at least one row; got shape {(n, m)}.")
    if not np.isfinite(laplacian.data).all() or abs(laplacian - laplacian.T).max() > 1e-9 * abs(laplacian).max():
        raise InputError("`laplacian` must be finite and symmetric, as `incidence_laplacian` returns it.")
    shift = 2 * nu / kappa**2
    if nu == int(nu):
        K = _by_solves(sparse.csc_array(laplacian + shift * sparse.eye_array(n)), int(nu))
    else:
        K = _by_eigenvectors(laplacian.toarray(), shift, nu)
    K *= outputscale / np.diag(K).mean()
    return K


def _by_solves(base, times):
    """Return base^-times for a sparse positive definite base, which needs no pivoting."""
    factor = splu(base, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    n = base.shape[0]
    K = np.empty((n, n))
    for start in range(0, n, COLUMNS):
        wide = min(COLUMNS, n - start)
        block = np.zeros((n, wide), order="F")
        block[start + np.arange(wide), np.arange(wide)] = 1.0
        for _ in range(times):
            block = factor.solve(block)
        K[start : start + wide] = block.T  # K is symmetric, so columns can be stored as rows
    _make_symmetric(K)
    return K


def _by_eigenvectors(laplacian, shift, nu):
    """Return (shift I + laplacian)^-nu from the eigendecomposition of the dense matrix."""
    values, vectors = linalg.eigh(laplacian, overwrite_a=True)
    vectors *= (shift + np.maximum(values, 0.0)) ** (-nu / 2)
    return vectors @ vectors.T


def _make_symmetric(K):
    """Remove rounding errors in K - Kᵀ in place, without a second matrix."""
    for start in range(0, len(K), ROWS):
        rows = slice(start, start + ROWS)
        block = (K[rows, start:] + K[start:, rows].T) / 2
        K[rows, start:] = block
        K[start:, rows] = block.T


def matern52(X, Y=None, *, lengthscales=1.0, outputscale=1.0):
    """Return the Matérn 5/2 kernel between contexts, equations (135) and (136) at ν = 5/2.

    Parameters
    ----------
    X, Y : array_like, shapes (n, d) and (m, d)
        Contexts, one per row. Default of Y: X.
    lengthscales : float or array_like, shape (d,)
        One per column, or one for all columns; positive.
    outputscale : float
        Variance of every context.

    Returns
    -------
    ndarray, shape (n, m)

    Examples
    --------
    >>> matern52([[0.0], [1.0]], lengthscales=0.5).round(4).tolist()
    [[1.0, 0.1387], [0.1387, 1.0]]
    """
    X, Y = _contexts(X, Y)
    scales = _lengthscales(lengthscales, "lengthscales", X.shape[1])
    outputscale = positive_number(outputscale, "outputscale")
    K = np.empty((len(X), len(Y)))
    for start in range(0, len(X), ROWS):
        K[start : start + ROWS] = outputscale * _matern52(X[start : start + ROWS], Y, scales)
    return K


def product_plus_sum(graph, X, Y=None, *, outputscale=1.0, share=0.5, lengthscales=1.0, sum_lengthscales=None):
    """Return k_G k_f + k_f', the kernel of the navigation experiments.

    The product models effects of location and context together, the sum effects of context at any location.
    The paper specifies only their total variance; ``share`` divides it.

    Parameters
    ----------
    graph : array_like, shape (n, m)
        Graph Matérn kernel with outputscale 1 between the edges in X and those in Y.
    X, Y : array_like, shapes (n, d) and (m, d)
        Contexts of these edges. Default of Y: X.
    outputscale : float
        Mean prior variance over all edges.
    share : float
        Fraction of the variance assigned to the product, from 0 to 1.
    lengthscales, sum_lengthscales : float or array_like, shape (d,)
        Lengthscales of k_f and of k_f'. Default of ``sum_lengthscales``: ``lengthscales``.

    Returns
    -------
    ndarray, shape (n, m)
    """
    X, Y = _contexts(X, Y)
    graph = np.asarray(graph, dtype=float)
    if graph.shape != (len(X), len(Y)):
        raise InputError(
            f"`graph` must have one row per row of X and one column per row of Y, shape {(len(X), len(Y))}; "
            f"got {graph.shape}."
        )
    outputscale, share = (
        positive_number(outputscale, "outputscale"),
        positive_number(share, "share", zero=True),
    )
    if share > 1:
        raise InputError(f"`share`, the product's fraction of the variance, must be from 0 to 1; got {share:g}.")
    scales = _lengthscales(lengthscales, "lengthscales", X.shape[1])
    others = scales
    if sum_lengthscales is not None:
        others = _lengthscales(sum_lengthscales, "sum_lengthscales", X.shape[1])
    K = np.empty(graph.shape)
    for start in range(0, len(X), ROWS):
        rows = slice(start, start + ROWS)
        feature = _matern52(X[rows], Y, scales)
        other = feature if others is scales else _matern52(X[rows], Y, others)
        K[rows] = outputscale * (share * graph[rows] * feature + (1 - share) * other)
    return K


def _matern52(X, Y, scales):
    """Return Matérn 5/2 with variance 1 between rows; called with few rows of X at a time to save memory."""
    squares = sum(np.square(X[:, None, k] / s - Y[None, :, k] / s) for k, s in enumerate(scales))
    z = np.sqrt(5 * squares)
    return (1 + z + z**2 / 3) * np.exp(-z)


def _contexts(X, Y):
    X = real_array(X, "X", (None, None))
    Y = X if Y is None else real_array(Y, "Y", (None, X.shape[1]))
    return X, Y


def _lengthscales(values, name, d):
    """Return d positive lengthscales."""
    values = np.full(d, values) if np.ndim(values) == 0 else values
    return real_array(values, name, (d,), low=0.0, strictly=True)
