r"""Kernels between the edges of a road network, based on the graph, on edge features, or on both.

The graph Matérn kernel of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", equations (132) to (134),
correlates edges that lie close to each other on the line graph. A connection c = (e1, e2) is a legal turn from e1 into
e2. Its column of the incidence matrix B holds -W at e1 and +W at e2, where W = mean length / length of e1.

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

The kernel is not stationary: edges with few neighbours have a larger variance. It is scaled to make the *mean* prior
variance equal to the outputscale. An integer ν needs only ν sparse solves; any other ν needs all eigenvectors, which
takes minutes for about 5,000 edges or more. In both cases the result is dense and takes 8 E² bytes.

The weight 1 / length is unbounded, and one very short edge would dominate all other weights. Lengths below 1 m
therefore count as 1 m.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from .._types import ArrayLike, FloatArray
from .._validate import finite_number, one_each, positive_number, real_array
from ..errors import InputError
from ..roads.line_graph import checked_connections

SparseMatrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"

SHORTEST_M = 1.0  # shorter edges are treated as 1 m long
COLUMNS = 32  # right-hand sides per solve: few enough for the processor's cache, which halves the time
ROWS = 256  # rows of a dense kernel computed at a time, to avoid a second matrix of its size


def incidence_laplacian(lengths: ArrayLike, connections: ArrayLike) -> SparseMatrix:
    """Return B Bᵀ, the incidence Laplacian of the line graph: edges of the road network joined by legal turns.

    The column of B for a turn from e1 into e2 holds -W at e1 and W at e2, W = mean length / length of e1: (132) and
    (133) of "Bayesian Analysis of Combinatorial Gaussian Process Bandits".

    Parameters
    ----------
    lengths : array_like, shape (E,)
        Length of every edge in metres, positive. Lengths below 1 m count as 1 m.
    connections : array_like of int, shape (C, 2)
        Legal turns, one row per turn: the index of the edge before the turn and of the edge after it.

    Returns
    -------
    scipy.sparse.csr_array, shape (E, E)

    Examples
    --------
    Two edges of equal length with one turn between them:

    >>> incidence_laplacian([50.0, 50.0], [[0, 1]]).toarray().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    turns = checked_connections(connections, len(lengths))
    lengths = np.maximum(lengths, SHORTEST_M)
    weights = lengths.mean() / lengths[turns[:, 0]]
    entries = np.concatenate([-weights, weights]), (turns.T.ravel(), np.tile(np.arange(len(turns)), 2))
    B = sparse.csr_array(entries, shape=(len(lengths), len(turns)))
    return sparse.csr_array(B @ B.T)


def graph_matern(
    laplacian: SparseMatrix, *, nu: float = 2.0, kappa: float = 1.0, outputscale: float = 1.0
) -> FloatArray:
    """Return the graph Matérn kernel between all edges: (2ν/κ² I + laplacian)^(-ν), scaled to a given mean variance.

    Equation (134) of "Bayesian Analysis of Combinatorial Gaussian Process Bandits".

    Parameters
    ----------
    laplacian : sparse array, shape (E, E)
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
    L = sparse.csc_array(laplacian, dtype=float)
    n, m = L.shape
    if n != m or n == 0:
        raise InputError(f"`laplacian` must be square with at least one row; got shape {(n, m)}.")
    if not np.isfinite(L.data).all() or abs(L - L.T).max() > 1e-9 * abs(L).max():
        raise InputError("`laplacian` must be finite and symmetric. Compute it with `incidence_laplacian`.")
    shift = 2 * nu / kappa**2
    if nu == int(nu):
        K = _by_solves(L, shift, int(nu))
    else:
        values, vectors = linalg.eigh(L.toarray(), overwrite_a=True)
        vectors *= (shift + np.maximum(values, 0.0)) ** (-nu / 2)
        K = vectors @ vectors.T
    K *= outputscale / np.diag(K).mean()
    return K


def _by_solves(laplacian: "sparse.csc_array[np.float64]", shift: float, times: int) -> FloatArray:
    """Return (shift I + laplacian)^-times; the matrix is positive definite and needs no pivoting."""
    n = laplacian.shape[0]
    base = sparse.csc_array(laplacian + shift * sparse.eye_array(n))
    factor = splu(base, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    K = np.empty((n, n))
    for start in range(0, n, COLUMNS):
        block = np.asfortranarray(np.eye(n, min(COLUMNS, n - start), -start))
        for _ in range(times):
            block = factor.solve(block)
        K[start : start + COLUMNS] = block.T  # K is symmetric, so columns can be stored as rows
    for rows in _blocks(n):  # symmetrise K blockwise to remove rounding errors, without a second matrix
        block = (K[rows, rows.start :] + K[rows.start :, rows].T) / 2
        K[rows, rows.start :] = block
        K[rows.start :, rows] = block.T
    return K


def _blocks(n: int) -> Iterator[slice]:
    """Yield slices of at most `ROWS` rows that together cover n rows."""
    return (slice(start, start + ROWS) for start in range(0, n, ROWS))


def matern52(X: ArrayLike, *, lengthscales: ArrayLike = 1.0, outputscale: float = 1.0) -> FloatArray:
    """Return the Matérn 5/2 kernel between contexts, shape (n, n).

    It is outputscale · (1 + z + z²/3) exp(-z), with z = √5 times the distance of the contexts divided by lengthscales.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Contexts, one per row.
    lengthscales : float or array_like, shape (d,)
        Positive lengthscale of each column, or one lengthscale for all columns.
    outputscale : float
        Variance of every context.

    Examples
    --------
    >>> matern52([[0.0], [1.0]], lengthscales=0.5).round(4).tolist()
    [[1.0, 0.1387], [0.1387, 1.0]]
    """
    X = real_array(X, "X", (None, None))
    scaled = (X / one_each(lengthscales, "lengthscales", X.shape[1], low=0.0, strictly=True)).T
    outputscale = positive_number(outputscale, "outputscale")
    K = np.empty((len(X), len(X)))
    for rows in _blocks(len(X)):
        z = np.sqrt(5 * sum(np.square(column[rows, None] - column) for column in scaled))
        K[rows] = outputscale * ((1 + z + z**2 / 3) * np.exp(-z))
    return K


def product_plus_sum(
    graph: ArrayLike,
    X: ArrayLike,
    *,
    outputscale: float = 1.0,
    share: float = 0.5,
    lengthscales: ArrayLike = 1.0,
    sum_lengthscales: ArrayLike | None = None,
) -> FloatArray:
    """Return outputscale · (share · k_G k_f + (1 - share) · k_f'), shape (n, n), a kernel between edges with contexts.

    k_G is the graph kernel; k_f and k_f' are Matérn 5/2 kernels between contexts with variance 1. This is the kernel
    k_G k_f + k_f' of the paper's navigation experiments. The product models effects of location and context together,
    the second term effects of context at any location. The paper specifies only their total variance; ``share`` splits
    it between the product and the second term.

    Parameters
    ----------
    graph : array_like, shape (n, n)
        Graph Matérn kernel with outputscale 1 between the edges.
    X : array_like, shape (n, d)
        Contexts of the edges, one row per edge.
    outputscale : float
        Mean prior variance over all edges.
    share : float
        Fraction of the variance assigned to the product, from 0 to 1.
    lengthscales : float or array_like, shape (d,)
        Lengthscales of k_f.
    sum_lengthscales : float or array_like, shape (d,), optional
        Lengthscales of k_f'. Default: those of k_f.

    Examples
    --------
    >>> import numpy as np
    >>> from emsopt.surrogates import graph_matern
    >>> covariance = graph_matern.product_plus_sum(np.eye(2), [[0.0], [1.0]], outputscale=2.0)
    >>> covariance.shape, covariance[0, 0].round(2).item()
    ((2, 2), 2.0)
    """
    outputscale, share = positive_number(outputscale, "outputscale"), finite_number(share, "share", 0, 1)
    K, graph = matern52(X, lengthscales=lengthscales), np.asarray(graph, dtype=float)
    if graph.shape != K.shape:
        raise InputError(f"`graph` must have one row and column per row of X, shape {K.shape}; got {graph.shape}.")
    alone = K if sum_lengthscales is None else matern52(X, lengthscales=sum_lengthscales)
    for rows in _blocks(len(K)):
        K[rows] = outputscale * (share * graph[rows] * K[rows] + (1 - share) * alone[rows])
    return K
