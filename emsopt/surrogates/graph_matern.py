r"""Kernels between the edges of a road network, based on the graph, on edge features, or on both.

The graph Matérn kernel of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", equations (132) to (134),
correlates edges that lie close to each other on the line graph. A connection c = (e1, e2) is a legal turn from e1 into
e2. Its column of the incidence matrix B holds -W at e1 and +W at e2, where W = mean length / length of e1.

.. math:: K \propto (\tfrac{2ν}{κ^2} I + B B^\top)^{-ν}, \qquad ν = 2, \quad κ = 1

===========  ==================  =============================================================================
symbol       name                meaning
===========  ==================  =============================================================================
B Bᵀ         ``laplacian``       incidence Laplacian of the line graph, shape (E, E), sparse
ν, κ         -                   smoothness, and lengthscale along the network, as in the paper
k_G          ``graph``           the graph Matérn kernel with mean variance 1
k_f          -                   Matérn 5/2 between contexts, one lengthscale per column, (135) and (136)
σ²           ``outputscale``     mean prior variance of an arm; (135) prints σ_f but means σ_f²
===========  ==================  =============================================================================

Edges with few neighbours have a larger variance; the *mean* prior variance is 1. `graph_matern` returns all entries, 8
E² bytes. `GraphMatern` computes rows, variances and draws when they are needed, on networks of any size.

**Selected inversion** gives the diagonal of the inverse of a large sparse matrix. With P A Pᵀ = L D Lᵀ, the entries of
Z = A⁻¹ on the pattern of L follow from its last column to its first (Takahashi, Fagan and Chen 1973),

.. math:: Z_{Sj} = -Z_{SS} L_{Sj}, \quad Z_{jj} = 1 / D_{jj} - L_{Sj}^\top Z_{Sj}

where S are the rows of L below the diagonal in column j. All entries of Z_SS lie on the pattern, because elimination
fills it. Nothing else of the inverse is computed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse.linalg import SuperLU, splu

from ..errors._types import ArrayLike, FloatArray, IntArray
from ..errors._validate import real_array
from ..roads.shortest_paths import validate_connections

__all__ = ["graph_matern", "incidence_laplacian"]

SparseMatrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"

DIAGONAL_SHIFT = 4.0  # 2ν/κ² for the paper's ν and κ; no eigenvalue of the shifted matrix is smaller
MIN_LENGTH_M = 1.0  # shorter edges count as 1 m: their weights would dominate all others
COLUMNS_AT_ONCE = 32  # right-hand sides per solve: few enough for the processor's cache, which halves the time
HALO_TURNS = 6  # turns around a district of edges, beyond which the rest of the network hardly matters to it
ROWS_AT_ONCE = 256  # rows of a dense kernel computed at a time, to avoid a second matrix of its size


def incidence_laplacian(lengths: ArrayLike, connections: ArrayLike) -> SparseMatrix:
    """Return B Bᵀ, the incidence Laplacian of the line graph, (E, E), by (132) and (133) of the module's paper.

    ``lengths``, (E,), are those of the edges (m). ``connections``, (C, 2), has one row per legal turn: the indices of
    the edges before and after it.

    Examples
    --------
    >>> incidence_laplacian([50.0, 50.0], [[0, 1]]).toarray().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    lengths = real_array(lengths, "lengths", (None,), unit="m", low=0.0, strictly=True)
    turns = validate_connections(connections, len(lengths))
    lengths = np.maximum(lengths, MIN_LENGTH_M)
    # W is a ratio, so the kernel does not depend on the unit of lengths
    weights = lengths.mean() / lengths[turns[:, 0]]
    entries = np.concatenate([-weights, weights]), (turns.T.ravel(), np.tile(np.arange(len(turns)), 2))
    B = sparse.csr_array(entries, shape=(len(lengths), len(turns)))
    return sparse.csr_array(B @ B.T)


def graph_matern(laplacian: SparseMatrix) -> FloatArray:
    """Return the graph Matérn kernel between all edges, (E, E): (2ν/κ² I + laplacian)^(-ν), scaled to mean variance 1.

    Equation (134) of the module's paper; the ``laplacian``, (E, E), is that of `incidence_laplacian`.

    Examples
    --------
    >>> K = graph_matern(incidence_laplacian([50.0, 50.0, 50.0], [[0, 1], [1, 2]]))
    >>> round(float(np.diag(K).mean()), 12), bool(K[0, 1] > K[0, 2] > 0)
    (1.0, True)
    """
    n = laplacian.shape[0]
    factor = _factorise(sparse.csc_array(laplacian, dtype=float) + DIAGONAL_SHIFT * sparse.eye_array(n))
    K = np.empty((n, n))
    for start in range(0, n, COLUMNS_AT_ONCE):  # ν = 2: two solves by A give columns of A⁻²
        block = np.asfortranarray(np.eye(n, min(COLUMNS_AT_ONCE, n - start), -start))
        K[start : start + COLUMNS_AT_ONCE] = factor.solve(factor.solve(block)).T  # K is symmetric: columns are rows
    for rows in _row_blocks(n):  # symmetrise K blockwise to remove rounding errors, without a second matrix
        block = (K[rows, rows.start :] + K[rows.start :, rows].T) / 2
        K[rows, rows.start :] = block
        K[rows.start :, rows] = block.T
    K *= 1 / np.diag(K).mean()
    return K


class GraphMatern:
    """The kernel of `graph_matern` without its dense matrix, from arguments of `incidence_laplacian`.

    With A = 2ν/κ² I + B Bᵀ, a row costs two sparse solves, all variances a selected inversion, and a draw one solve.
    """

    def __init__(self, lengths: ArrayLike, connections: ArrayLike) -> None:
        laplacian = incidence_laplacian(lengths, connections)
        self.n_edges = laplacian.shape[0]
        self.matrix: Any = sparse.csr_array(laplacian + DIAGONAL_SHIFT * sparse.eye_array(self.n_edges))

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the factorisation, which cannot be pickled."""
        return {key: value for key, value in vars(self).items() if key != "_factor"}

    @cached_property
    def _factor(self) -> SuperLU:
        return _factorise(self.matrix)

    @cached_property
    def _unscaled_variance(self) -> FloatArray:
        """Diagonal, (E,), of A⁻², by selected inversion."""
        # minus the derivative of the diagonal of (A + s I)⁻¹ at s = 0, without cancellation by an imaginary step s
        step = 1e-20j * DIAGONAL_SHIFT  # the error of the slope is of the order of its square
        factor = _factorise(self.matrix + sparse.diags_array(np.full(self.n_edges, step)))
        L = sparse.csc_array(factor.L)
        L.sort_indices()
        inverse: Any = _inverse_diagonal(L.indptr, L.indices, L.data, factor.U.diagonal())
        return -(inverse[factor.perm_c] / step).real

    @cached_property
    def variance(self) -> FloatArray:
        """Variance of every edge, shape (E,), with mean 1."""
        return self._unscaled_variance / self._unscaled_variance.mean()

    def rows(self, edges: ArrayLike, others: IntArray | slice = slice(None)) -> FloatArray:
        """Return the covariances, (k, m), between edges, (k,), and others, (m,), by default all edges."""
        # arms at several hours share an edge, and a row is expensive
        unique, place = np.unique(np.asarray(edges, dtype=np.intp), return_inverse=True)
        columns = np.arange(self.n_edges)[others]
        found = np.empty((len(unique), len(columns)))
        for start in range(0, len(unique), COLUMNS_AT_ONCE):
            part = unique[start : start + COLUMNS_AT_ONCE]
            block = np.zeros((self.n_edges, len(part)), order="F")
            block[part, np.arange(len(part))] = 1 / self._unscaled_variance.mean()
            block = self._factor.solve(self._factor.solve(block))
            found[start : start + len(part)] = block[columns].T
        return found if np.array_equal(place, np.arange(len(unique))) else found[place]

    def local_covariance(self, edges: IntArray) -> FloatArray:
        """Return nearly exact covariances, (k, k), of edges, (k,), ignoring all more than `HALO_TURNS` away."""
        inside = np.zeros(self.n_edges, dtype=bool)
        inside[edges] = True
        for _ in range(HALO_TURNS):
            inside[self.matrix[inside].indices] = True  # two edges share an entry if a legal turn joins them
        patch = np.flatnonzero(inside)
        factor = _factorise(self.matrix[patch][:, patch])
        own = np.zeros((len(patch), len(edges)), order="F")
        own[np.searchsorted(patch, edges), np.arange(len(edges))] = 1.0
        columns = factor.solve(own)  # so K is positive semi-definite, although A⁻¹ is that of the patch
        K = columns.T @ columns / self._unscaled_variance.mean()
        # A is an M-matrix: these are no smaller than those of the patch, and K stays semi-definite
        K[np.diag_indices(len(K))] = self.variance[edges]
        return (K + K.T) / 2

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``count`` independent functions of the Gaussian process with mean 0 and this kernel: (E, count)."""
        draws = self._factor.solve(np.asfortranarray(rng.standard_normal((self.n_edges, count))))
        return draws / np.sqrt(self._unscaled_variance.mean())


def _row_blocks(n: int) -> Iterator[slice]:
    """Yield slices of at most `ROWS_AT_ONCE` rows that together cover n rows."""
    return (slice(start, start + ROWS_AT_ONCE) for start in range(0, n, ROWS_AT_ONCE))


def _factorise(matrix: Any) -> SuperLU:
    """Return a sparse LU factorisation of a symmetric matrix that needs no pivoting."""
    # SuperLU then pivots on the diagonal and orders rows as columns, on which selected inversion relies
    options = {"SymmetricMode": True}
    return splu(sparse.csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)


@njit(cache=True, nogil=True)
def _inverse_diagonal(starts, rows, L, D):  # type: ignore[no-untyped-def]
    """Return the diagonal of (L diag(D) Lᵀ)⁻¹, (E,), for a sparse L by columns, with sorted rows and unit diagonal."""
    n = len(D)
    Z, place = np.empty_like(L), np.full(n, -1, np.int64)  # position of each row in column j, or -1
    sums = np.empty(n, L.dtype)
    diagonal = np.empty(n, L.dtype)
    for j in range(n - 1, -1, -1):
        first, last = starts[j] + 1, starts[j + 1]
        for p in range(first, last):
            place[rows[p]] = p - first
            sums[p - first] = 0.0
        for p in range(first, last):  # sums = Z_SS L_Sj, with each entry of Z_SS below the diagonal used twice
            k = rows[p]
            sums[p - first] += diagonal[k] * L[p]
            for q in range(starts[k] + 1, starts[k + 1]):
                other = place[rows[q]]
                if other >= 0:  # column k may have rows that column j lacks
                    sums[other] += Z[q] * L[p]
                    sums[p - first] += Z[q] * L[first + other]
        value = 1.0 / D[j]
        for p in range(first, last):
            Z[p] = -sums[p - first]
            value += L[p] * sums[p - first]
            place[rows[p]] = -1  # resets only what was set, or each column would cost O(n)
        diagonal[j] = value
    return diagonal


@dataclass(frozen=True, eq=False)
class ContextKernel:
    """Kernel outputscale · (share · k_G k_f + (1 - share) · k_f') between arms, each an edge at an hour.

    This is the kernel k_G k_f + k_f' of the paper's navigation experiments, which specify only the total variance.
    ``contexts`` has shape (n, d), and arm a is edge a mod E. ``make_graph`` returns the graph kernel of the edges, as
    an array (E, E) or a `GraphMatern`, and is called when it is first needed. ``lengthscales`` are those of k_f and of
    k_f', each a number or of shape (d,).
    """

    contexts: FloatArray
    make_graph: Callable[[], FloatArray | GraphMatern]
    outputscale: float
    share: float
    lengthscales: tuple[FloatArray, FloatArray]

    @cached_property
    def graph(self) -> FloatArray | GraphMatern:
        """The graph kernel k_G of the road edges, from ``make_graph``."""
        return self.make_graph()

    def covariance(self) -> FloatArray:
        """Return the covariances between all arms, (n, n), if the graph kernel is an array; they are not cached."""
        graph: Any = self.make_graph()  # not `self.graph`, which would keep a second matrix of this size
        X, n = self.contexts, len(self.contexts)
        K, edges = np.empty((n, n)), np.arange(n) % len(graph)
        for rows in _row_blocks(n):
            product, alone = self._context_kernels(X[rows], X)
            on_graph = graph[np.ix_(edges[rows], edges)]
            K[rows] = self.outputscale * (self.share * on_graph * product + (1 - self.share) * alone)
        return K

    def cross_covariance(
        self, arms: IntArray, contexts: FloatArray, others: IntArray, their_contexts: FloatArray
    ) -> FloatArray:
        """Return the covariances, (k, m), between k arms at contexts, (k, d), and m others at theirs, (m, d)."""
        return self.combine_kernels(self._graph_kernel(arms, others), contexts, their_contexts)

    def combine_kernels(self, graph: FloatArray, contexts: FloatArray, their_contexts: FloatArray) -> FloatArray:
        """Return the covariances, (k, m), between contexts, (k, d) and (m, d), for given values of k_G, (k, m)."""
        product, alone = self._context_kernels(contexts, their_contexts)
        return self.outputscale * self.share * graph * product + self.outputscale * (1 - self.share) * alone

    def _context_kernels(self, contexts: FloatArray, their_contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return k_f and k_f' between contexts, (k, d) and (m, d), each of shape (k, m)."""
        product, alone = self.lengthscales
        K = matern(contexts / product, their_contexts / product)
        return K, K if np.array_equal(product, alone) else matern(contexts / alone, their_contexts / alone)

    def context_gradient(
        self, weights: FloatArray, arms: IntArray, contexts: FloatArray, others: IntArray, their_contexts: FloatArray
    ) -> FloatArray:
        """Return the gradient, (k, d), by ``contexts`` of the sum of covariances, (k, m), times ``weights``."""
        total = np.zeros(contexts.shape)
        product: FloatArray | float = self.outputscale * self.share * self._graph_kernel(arms, others)
        for weight, scale in zip((product, self.outputscale * (1 - self.share)), self.lengthscales, strict=True):
            z = _scaled_distances(contexts / scale, their_contexts / scale)
            # derivative of the Matérn 5/2 kernel by half the squared distance
            pull = -5 / 3 * weights * weight * ((1 + z) * np.exp(-z))
            total += (pull.sum(axis=1)[:, None] * contexts - pull @ their_contexts) / np.square(scale)
        return total

    def _graph_kernel(self, arms: IntArray, others: IntArray) -> FloatArray:
        graph = self.graph
        if isinstance(graph, GraphMatern):
            return graph.rows(arms % graph.n_edges, others % graph.n_edges)
        return graph[np.ix_(arms % len(graph), others % len(graph))]


def matern(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the Matérn 5/2 kernel with variance and lengthscale 1 between rows, (k, d) and (m, d): shape (k, m)."""
    z = _scaled_distances(left, right)
    return (1 + z + z**2 / 3) * np.exp(-z)


def _scaled_distances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return √5 times the distances between rows, (k, d) and (m, d): shape (k, m)."""
    return np.sqrt(5 * sum(np.square(a[:, None] - b) for a, b in zip(left.T, right.T, strict=True)))
