r"""The kernel k_G k_f + k_f' between road edges whose contexts may differ from those of the network.

From "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4.1 and appendix B.1. The graph kernel k_G
depends on the edges only, the Matérn 5/2 kernels k_f and k_f' on the contexts x (length, speed and incline, each of
unit variance), so that their slope in x is known in closed form:

.. math:: \partial k_f / \partial x_d = -\tfrac53 (1 + z) e^{-z} (x_d - x'_d) / ℓ_d^2
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import FloatArray, IntArray
from .graph_matern import GraphMatern


@dataclass(frozen=True, eq=False)
class ContextKernel:
    """outputscale · (share · k_G k_f + (1 - share) · k_f') between arms, each of which is an edge at an hour.

    Parameters
    ----------
    contexts : ndarray, shape (n, d)
        Context of every arm.
    make_graph : callable
        Returns the graph kernel between all E edges, as an array of shape (E, E) or as a `GraphMatern`. Called once,
        when it is first needed. Arm a is edge a mod E.
    outputscale, share : float
        Mean prior variance, and the fraction of it that the product has.
    lengthscales : tuple of two ndarrays, each broadcastable to shape (d,)
        Lengthscales of k_f and of k_f'.

    Examples
    --------
    >>> import numpy as np
    >>> from emsopt.surrogates import context_kernel
    >>> contexts, one = np.array([[0.0], [1.0]]), np.ones(1)
    >>> kernel = context_kernel.ContextKernel(contexts, lambda: np.eye(2), 2.0, 0.5, (one, one))
    >>> arms = np.arange(2)
    >>> kernel.between(arms, contexts, arms, contexts).shape
    (2, 2)
    """

    contexts: FloatArray
    make_graph: Callable[[], FloatArray | GraphMatern]
    outputscale: float
    share: float
    lengthscales: tuple[FloatArray, FloatArray]

    @cached_property
    def graph(self) -> FloatArray | GraphMatern:
        """The graph kernel k_G."""
        return self.make_graph()

    def between(self, arms: IntArray, contexts: FloatArray, others: IntArray, their_contexts: FloatArray) -> FloatArray:
        """Return the covariances of arms at some contexts, (k, d), with others at theirs, (m, d): shape (k, m)."""
        return self.with_graph(self._graph_between(arms, others), contexts, their_contexts)

    def with_graph(self, graph: FloatArray, contexts: FloatArray, their_contexts: FloatArray) -> FloatArray:
        """Return the covariances between contexts, (k, d) and (m, d), whose graph kernel is given, shape (k, m)."""
        product, alone = self.lengthscales
        K = matern(contexts / product, their_contexts / product)
        other = K if np.array_equal(product, alone) else matern(contexts / alone, their_contexts / alone)
        return self.outputscale * self.share * graph * K + self.outputscale * (1 - self.share) * other

    def slope(
        self, weights: FloatArray, arms: IntArray, contexts: FloatArray, others: IntArray, their_contexts: FloatArray
    ) -> FloatArray:
        """Return the gradient in ``contexts``, (k, d), of the sum of ``weights``, (k, m), times the covariances."""
        total = np.zeros(contexts.shape)
        product: FloatArray | float = self.outputscale * self.share * self._graph_between(arms, others)
        for weight, scale in zip((product, self.outputscale * (1 - self.share)), self.lengthscales, strict=True):
            z = _distance(contexts / scale, their_contexts / scale)
            pull = -5 / 3 * weights * weight * ((1 + z) * np.exp(-z))
            total += (pull.sum(axis=1)[:, None] * contexts - pull @ their_contexts) / np.square(scale)
        return total

    def _graph_between(self, arms: IntArray, others: IntArray) -> FloatArray:
        graph = self.graph
        if isinstance(graph, GraphMatern):
            return graph.rows(arms % graph.n_edges, others % graph.n_edges)
        return graph[np.ix_(arms % len(graph), others % len(graph))]


def matern(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the Matérn 5/2 kernel with variance and lengthscale 1 between rows, (k, d) and (m, d): shape (k, m).

    >>> import numpy as np
    >>> matern(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(4).tolist()
    [[1.0, 0.1387]]
    """
    z = _distance(left, right)
    return (1 + z + z**2 / 3) * np.exp(-z)


def _distance(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return √5 times the distances of rows."""
    return np.sqrt(5 * sum(np.square(a[:, None] - b) for a, b in zip(left.T, right.T, strict=True)))
