r"""Diagonal of the inverse, and of negative powers, of a large sparse symmetric matrix: selected inversion.

With P A Pᵀ = L D Lᵀ, the entries of Z = A⁻¹ on the pattern of L follow from its last column to its first (Takahashi,
Fagan and Chen 1973),

.. math:: Z_{Sj} = -Z_{SS} L_{Sj}, \quad Z_{jj} = 1 / D_{jj} - L_{Sj}^\top Z_{Sj}

where S are the rows of L below the diagonal in column j. All entries of Z_SS lie on the pattern, because elimination
fills it. Nothing else of the inverse is computed.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse.linalg import SuperLU, splu

from .._types import FloatArray


def factorised(matrix: Any) -> SuperLU:
    """Return a sparse factorisation of a symmetric matrix that needs no pivoting, such as a positive definite one.

    Examples
    --------
    >>> factorised(np.diag([2.0, 4.0])).solve(np.ones(2))
    array([0.5 , 0.25])
    """
    options = {"SymmetricMode": True}
    return splu(sparse.csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)


def inverse_power_diagonal(matrix: Any, power: int, least: float) -> FloatArray:
    r"""Return the diagonal of matrix^-power.

    The diagonal of (matrix + s I)⁻¹ is an analytic function of s whose k-th Taylor coefficient is (-1)^k times the
    diagonal of matrix^-(k + 1). Cauchy's formula on a small circle with 2 k points, half of which are conjugates of the
    others, gives this coefficient from k selected inversions. For k = 1 this is the complex-step derivative.

    Parameters
    ----------
    matrix : sparse array, shape (n, n)
        Symmetric and positive definite, with no positive entry off the diagonal.
    power : int
        At least 1.
    least : float
        Positive lower bound on the eigenvalues.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from emsopt.surrogates import selected_inverse
    >>> matrix = np.array([[2.0, -1.0], [-1.0, 2.0]])
    >>> selected_inverse.inverse_power_diagonal(matrix, 2, 1.0).round(12).tolist()
    [0.555555555556, 0.555555555556]
    """
    k = power - 1
    if not k:
        return _inverse_diagonal(matrix)
    # the error of the formula is of relative order radius^(2 k); rounding grows with radius^-k, but not for k = 1
    radius = least * (1e-20 if k == 1 else np.finfo(float).eps ** (1 / (3 * k)))
    total = np.zeros(matrix.shape[0])
    for j in range(k):
        s = radius * (1j if k == 1 else np.exp(1j * math.pi * (j + 0.5) / k))
        total += (_inverse_diagonal(matrix + sparse.diags_array(np.full(len(total), s))) / s**k).real
    return (-1) ** k * total / k


def _inverse_diagonal(matrix: Any) -> Any:
    """Return the diagonal of the inverse of a symmetric matrix."""
    factor = factorised(matrix)
    L = sparse.csc_array(factor.L)
    L.sort_indices()
    inverse = _takahashi(L.indptr, L.indices, L.data, factor.U.diagonal())
    return inverse[factor.perm_c]


@njit(cache=True, nogil=True)
def _takahashi(starts, rows, L, D):  # type: ignore[no-untyped-def]
    """Return the diagonal of (L diag(D) Lᵀ)⁻¹, for L by columns, with sorted rows and a unit diagonal."""
    n = len(D)
    Z, place = np.empty_like(L), np.full(n, -1, np.int64)
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
                if other >= 0:
                    sums[other] += Z[q] * L[p]
                    sums[p - first] += Z[q] * L[first + other]
        value = 1.0 / D[j]
        for p in range(first, last):
            Z[p] = -sums[p - first]
            value += L[p] * sums[p - first]
            place[rows[p]] = -1
        diagonal[j] = value
    return diagonal
