"""The sparse process of "Bayesian Analysis of Combinatorial Gaussian Process Bandits" with all that appendix B prints.

`emsopt.bandits.SparseGP` knows the kernel. Here its parameters are learned as well: appendix B calls lengthscales and
outputscales tunable and gives starting values, and a rate of Adam. In every round one step of Adam at this rate moves
the contexts of the inducing points and the logarithms of eight parameters: outputscales of k_G k_f and of k_f', and
three lengthscales of each. What the paper does not say: Adam keeps its moments for the parameters from round to round,
and forgets them for the contexts, which return to their edges; noise, ν and κ are not learned.
"""

import numpy as np

import emsopt as eo
from emsopt.surrogates.graph_matern import ContextKernel, _scaled_distances, matern

RATE = 0.01


class KernelPrior(eo.bandits.Prior):
    """A prior whose covariances are computed by its kernel when asked."""

    def __init__(self, mean, kernel, noise_variance):
        vars(self).update(mean=mean, kernel=kernel, noise_variance=noise_variance)

    @property
    def variance(self):
        """Variance of every arm, shape (n,)."""
        kernel = self.kernel
        return kernel.outputscale * (kernel.share * np.diag(kernel.graph) + 1 - kernel.share)

    def rows(self, arms):
        """Return the covariances of k arms with all arms, shape (k, n)."""
        every = np.arange(self.n_arms)
        return self.kernel.cross_covariance(arms, self.kernel.contexts[arms], every, self.kernel.contexts)


def kernel_at(kernel, parameters):
    """Return a kernel with other parameters: logarithms of two outputscales and of two times d lengthscales."""
    scales = np.exp(parameters)
    lengthscales = tuple(scales[2:].reshape(2, -1))
    total = scales[:2].sum()
    return ContextKernel(kernel.contexts, lambda: kernel.graph, total, scales[0] / total, lengthscales)


def parameters_of(kernel):
    """Return the logarithms of a kernel's parameters, shape (2 + 2 d,)."""
    product = kernel.outputscale * kernel.share
    lengthscales = np.broadcast_arrays(*kernel.lengthscales, kernel.contexts[0])[:2]
    return np.log(np.concatenate([[product, kernel.outputscale - product], *lengthscales]))


def slopes_in_parameters(kernel, weights, arms, contexts, others, their_contexts):
    """Return the gradient of the sum of weights times covariances in the logarithms of the parameters."""
    scales = np.exp(parameters_of(kernel))
    graph = kernel._graph_kernel(arms, others)
    outer, inner = np.empty(2), []
    for k, (weight, lengths) in enumerate(
        zip((scales[0] * graph * weights, scales[1] * weights), scales[2:].reshape(2, -1), strict=True)
    ):
        left, right = contexts / lengths, their_contexts / lengths
        outer[k] = (weight * matern(left, right)).sum()
        z = _scaled_distances(left, right)
        pull = 5 / 3 * weight * ((1 + z) * np.exp(-z))
        inner += [(pull * np.square(a[:, None] - b)).sum() for a, b in zip(left.T, right.T, strict=True)]
    return np.concatenate([outer, inner])


class PrintedGP(eo.bandits.SparseGP):
    """Sparse process whose inducing contexts move and whose kernel parameters are learned, each by Adam."""

    def __init__(self, prior, **options):
        super().__init__(prior, context_rate=RATE, **options)
        self.prior = KernelPrior(prior.mean, prior.kernel, prior.noise_variance)
        self.parameters, self.moments, self.count = parameters_of(prior.kernel), np.zeros((2, 1)), 0

    def _context_gradient(self, kernel, arms, counts, sums):
        """Return the gradient in the contexts, and move the parameters of the kernel by one step of Adam."""
        found = []
        gradient_of = type(kernel).context_gradient

        class Watched(ContextKernel):  # hands on the weights of the covariances, which are those of both gradients
            def context_gradient(self, weights, *places):
                found.append((weights, *places))
                return gradient_of(self, weights, *places)

        watched = Watched(kernel.contexts, lambda: kernel.graph, kernel.outputscale, kernel.share, kernel.lengthscales)
        gradient = super()._context_gradient(watched, arms, counts, sums)
        self.gradient = self._in_parameters(kernel, found, arms, counts)
        self._move()
        return gradient

    def _in_parameters(self, kernel, found, arms, counts):
        """Return the gradient of the evidence lower bound in the parameters, for a batch."""
        (across, *at_arms), (within, *at_points) = found
        total = slopes_in_parameters(kernel, across, *at_arms) + slopes_in_parameters(kernel, within / 2, *at_points)
        on_graph = np.diag(kernel.graph)[arms % len(kernel.graph)]
        own = kernel.outputscale * np.array([kernel.share * counts @ on_graph, (1 - kernel.share) * counts.sum()])
        total[:2] -= own / (2 * self.prior.noise_variance)
        return total

    def _move(self):
        self.count += 1
        first, second = self.moments
        self.moments = np.array([0.9 * first + 0.1 * self.gradient, 0.999 * second + 0.001 * self.gradient**2])
        first, second = self.moments[0] / (1 - 0.9**self.count), self.moments[1] / (1 - 0.999**self.count)
        self.parameters = self.parameters + RATE * first / (np.sqrt(second) + 1e-8)
        kernel = kernel_at(self.prior.kernel, self.parameters)
        kernel.graph  # noqa: B018 - hold it, not a chain of kernels
        self.prior = KernelPrior(self.prior.mean, kernel, self.prior.noise_variance)
        self._jitter = 1e-10 * self.prior.variance.mean()
