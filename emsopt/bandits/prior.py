"""Prior of a bandit: a Gaussian process over the base arms and the noise of an observation.

In navigation an arm is a road edge at an hour of the day. Its prior mean is the energy needed at constant speed. The
covariance is a kernel of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", section 4.1 and appendix B.1.

============  ==================  ============================================================================
symbol        name                meaning
============  ==================  ============================================================================
E_det         ``mean``            deterministic energy, equation (8), Wh
σ_det²        -                   variance of E_det over all arms, Wh²
-             ``covariance``      kernel k_G k_f + k_f; mean prior variance by default 0.25² σ_det²
ς²            ``noise_variance``  noise variance of an observation, by default 0.1² σ_det² on every edge
============  ==================  ============================================================================

k_G is the graph Matérn kernel of the road network, and k_f the Matérn kernel of length, speed and incline
(`emsopt.surrogates.graph_matern.ContextKernel`).

`Prior` stores the covariance, 8 n² bytes for n arms. `LazyPrior` computes rows by two sparse solves when needed, and
draws by random features of k_f (Rahimi and Recht 2007), each of which multiplies one draw of the graph process.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray, Rng
from ..roads.energy import edge_energy, standardize_columns
from ..roads.network import RoadNetwork
from ..surrogates.graph_matern import ContextKernel, GraphMatern, graph_matern, incidence_laplacian

MEMORY_LIMIT_GB = 4.0  # memory limit for one covariance matrix; several are needed at a time
ROWS_AT_ONCE = 32  # rows of a lazy covariance computed at a time, to save memory
PRODUCT_FEATURES = 128  # random features of k_G k_f in a draw, each with a draw of the graph process of its own
CONTEXT_FEATURES = 1024  # random features of k_f'
JITTER = 1e-10  # fraction of the mean variance added to the diagonal, as a covariance may be numerically singular


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """Mean and covariance of the arms' expected values, and the noise of an observation.

    Raise InputError if a value is invalid or the covariance is not symmetric. Whether it is positive semi-definite is
    checked only when `factor` is computed.

    Parameters
    ----------
    mean, covariance : array_like, shapes (n,) and (n, n)
    noise_variance : float
        Variance of the noise of an observation, above 0.
    kernel : ContextKernel, optional
        What the covariance was computed with. Only needed to move the contexts of inducing points (`SparseGP`).

    Examples
    --------
    >>> import emsopt as eo
    >>> prior = eo.bandits.Prior([0.0, 0.0], [[3.0, 0.0], [0.0, 1.0]], noise_variance=1.0)
    >>> prior
    <Prior: 2 arms, mean standard deviation 1.37, noise 1>
    """

    mean: FloatArray
    covariance: FloatArray
    noise_variance: float
    kernel: ContextKernel | None = None

    def __post_init__(self) -> None:
        mean = _validate.real_array(self.mean, "mean", (None,))
        covariance, shape = self.covariance, (len(mean), len(mean))
        if not (isinstance(covariance, np.ndarray) and covariance.dtype == float):  # avoids a copy of a large matrix
            covariance = _validate.real_array(covariance, "covariance", shape)
        if covariance.shape != shape:
            raise InputError(f"`covariance` must have shape {shape} to match `mean`; got {covariance.shape}.")
        diagonal = np.diag(covariance)
        # one product with a random vector detects NaN and asymmetry without a second matrix
        probe = np.random.default_rng(0).standard_normal(len(mean))
        forth, back = covariance @ probe, probe @ covariance
        if not np.isfinite(forth).all() or (diagonal < 0).any():
            raise InputError("`covariance` must be finite, with no negative value on its diagonal.")
        if np.abs(forth - back).max() > 1e-9 * (1e-300 + np.abs(forth).max()):  # 1e-300 accepts a covariance of zeros
            raise InputError("`covariance` must be symmetric. Against rounding errors, average it with its transpose.")
        noise_variance = _validate.positive_number(self.noise_variance, "noise_variance")
        vars(self).update(mean=mean, covariance=covariance, noise_variance=noise_variance)

    @property
    def n_arms(self) -> int:
        """Number of base arms n."""
        return len(self.mean)

    @property
    def variance(self) -> FloatArray:
        """Variance of every arm, shape (n,)."""
        return np.diag(self.covariance)

    def rows(self, arms: ArrayLike) -> FloatArray:
        """Return the covariances of k arms with all arms, shape (k, n)."""
        return self.covariance[np.asarray(arms, dtype=np.intp)]

    @cached_property
    def factor(self) -> FloatArray:
        """Lower Cholesky factor of the covariance, shape (n, n), computed by `jittered_cholesky`."""
        return jittered_cholesky(self.covariance)

    def draw(self, n: int = 1, *, rng: Rng = None) -> FloatArray:
        """Return ``n`` joint samples of the arms' expected values, one per column, shape (arms, n)."""
        rng = _validate.generator(rng)
        return self.mean[:, None] + self.factor @ rng.standard_normal((self.n_arms, n))

    def __repr__(self) -> str:
        deviation, noise = np.sqrt(self.variance).mean(), np.sqrt(self.noise_variance)
        deviations = f"mean standard deviation {deviation:.3g}, noise {noise:.3g}"
        return f"<{type(self).__name__}: {self.n_arms} arms, {deviations}>"


class LazyPrior(Prior):
    """Prior that computes covariances when they are needed, as for networks whose covariance does not fit into memory.

    Rows and variances equal those of the dense `Prior` up to rounding. Draws have its mean and covariance, and are
    nearly Gaussian.
    """

    kernel: ContextKernel

    def __init__(self, mean: ArrayLike, noise_variance: float, kernel: ContextKernel) -> None:
        mean = _validate.real_array(mean, "mean", (len(kernel.contexts),))
        noise_variance = _validate.positive_number(noise_variance, "noise_variance")
        _validate.instance(kernel.graph, "kernel.graph", GraphMatern, "emsopt.surrogates.graph_matern.GraphMatern")
        vars(self).update(mean=mean, noise_variance=noise_variance, kernel=kernel)

    @property
    def graph(self) -> GraphMatern:
        """The graph kernel k_G of the road edges."""
        graph: Any = self.kernel.graph
        return graph

    @cached_property
    def variance(self) -> FloatArray:
        """Variance of every arm, shape (n,)."""
        k, on_graph = self.kernel, np.tile(self.graph.variance, self.n_arms // self.graph.n_edges)
        return k.outputscale * (k.share * on_graph + (1 - k.share))  # k_f(x, x) = 1

    def rows(self, arms: ArrayLike) -> FloatArray:
        """Return the covariances of k arms with all arms, shape (k, n)."""
        arms, X, every = np.asarray(arms, dtype=np.intp), self.kernel.contexts, np.arange(self.n_arms)
        found = np.empty((len(arms), self.n_arms))
        for start in range(0, len(arms), ROWS_AT_ONCE):
            part = arms[start : start + ROWS_AT_ONCE]
            found[start : start + ROWS_AT_ONCE] = self.kernel.cross_covariance(part, X[part], every, X)
        return found

    def neighbour_covariance(self, arms: IntArray) -> FloatArray:
        """Return the covariances between k neighbouring arms, (k, k), with k_G by `GraphMatern.local_covariance`."""
        edges, place = np.unique(arms % self.graph.n_edges, return_inverse=True)
        X = self.kernel.contexts[arms]
        return self.kernel.combine_kernels(self.graph.local_covariance(edges)[np.ix_(place, place)], X, X)

    @cached_property
    def covariance(self) -> FloatArray:
        """Dense covariance, shape (n, n); raises InputError above ``MEMORY_LIMIT_GB``."""
        if (size := 8e-9 * self.n_arms**2) > MEMORY_LIMIT_GB:
            raise InputError(
                f"The covariance of {self.n_arms} arms would take {size:.0f} GB; at most {MEMORY_LIMIT_GB:g} GB are "
                "allowed. Use `rows` and `variance`, or a smaller network."
            )
        covariance = self.rows(np.arange(self.n_arms))
        return (covariance + covariance.T) / 2  # rows are solved one by one and differ by rounding errors

    def draw(self, n: int = 1, *, rng: Rng = None) -> FloatArray:
        """Return ``n`` joint samples of the arms' expected values, one per column, shape (arms, n)."""
        rng, kernel = _validate.generator(rng), self.kernel
        on_graph, additive = kernel.outputscale * kernel.share, kernel.outputscale * (1 - kernel.share)
        hours, draws = self.n_arms // self.graph.n_edges, np.tile(self.mean[:, None], n)
        for column in draws.T:
            for start in range(0, PRODUCT_FEATURES, ROWS_AT_ONCE):
                heights = np.tile(self.graph.draw(min(ROWS_AT_ONCE, PRODUCT_FEATURES - start), rng), (hours, 1))
                waves = _random_features(kernel.contexts / kernel.lengthscales[0], heights.shape[1], rng)
                column += np.sqrt(on_graph / PRODUCT_FEATURES) * np.einsum("ij,ij->i", waves, heights)
            for _ in range(0, CONTEXT_FEATURES, ROWS_AT_ONCE):
                waves = _random_features(kernel.contexts / kernel.lengthscales[1], ROWS_AT_ONCE, rng)
                column += np.sqrt(additive / CONTEXT_FEATURES) * (waves @ rng.standard_normal(ROWS_AT_ONCE))
        return draws


def _random_features(contexts: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Return random features of n contexts, (n, count), whose products have the Matérn 5/2 kernel as their mean."""
    # frequencies of Matérn 5/2 have a Student distribution with 5 degrees of freedom
    frequencies = rng.standard_normal((count, contexts.shape[1])) / np.sqrt(rng.chisquare(5, (count, 1)) / 5)
    return np.sqrt(2) * np.cos(contexts @ frequencies.T + rng.uniform(0, 2 * np.pi, count))


def jittered_cholesky(covariance: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a covariance plus ``JITTER`` times its mean variance on the diagonal."""
    jittered = np.array(covariance, order="F")
    jittered[np.diag_indices(len(jittered))] += JITTER * max(np.diag(covariance).mean(), 1e-300)
    try:
        return cholesky(jittered, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise InputError("The covariance must be positive semi-definite, but it has a negative eigenvalue.") from error


def navigation_prior(
    net: RoadNetwork,
    *,
    lengthscale: ArrayLike = 1.0,
    noise_sd: float = 0.1,
    congestion: ArrayLike | None = None,
    lazy: bool | None = None,
) -> Prior:
    """Return the prior over the edges of a road network or, with ``congestion``, over edges and hours.

    Parameters
    ----------
    net : RoadNetwork
    lengthscale : float or array_like, shape (3,)
        Lengthscale of the Matérn kernel k_f on length, speed and incline, each scaled to unit variance.
    noise_sd : float
        Standard deviation of the observation noise, relative to that of the deterministic energies.
    congestion : array_like, shape (H,) or (H, E), optional
        Ratio of speed to speed limit in each of H hours (and on each of E edges), above 0 and at most 1. Each edge
        is a separate arm in each hour, which gives H E arms. Default: one hour at the speed limit.
    lazy : bool, optional
        Whether to return a `LazyPrior`, which stores no covariance. Default: above 10,000 arms.

    Returns
    -------
    Prior
        Arm h E + e is edge e in hour h. Energies are in Wh. Raise InputError if all edges need the same energy, or a
        covariance that is to be stored does not fit into memory (above about 22,000 arms).

    Examples
    --------
    >>> from emsopt.roads import grid_roads
    >>> navigation_prior(grid_roads(4, 4))
    <Prior: 48 arms, mean standard deviation 0.358, noise 0.143>
    """
    noise_sd = _validate.positive_number(noise_sd, "noise_sd")
    ratios = [1.0] if congestion is None else congestion
    shape = (None,) if np.ndim(ratios) == 1 else (None, net.n_edges)
    ratios = _validate.real_array(ratios, "congestion", shape, low=0.0, strictly=True, high=1.0)
    hours = len(ratios)
    size = 8e-9 * (hours * net.n_edges) ** 2  # GB, found before anything is allocated
    # above 10,000 arms, the factor of a dense covariance takes minutes and a round seconds
    lazy = hours * net.n_edges > 10_000 if lazy is None else _validate.as_bool(lazy, "lazy")
    if size > MEMORY_LIMIT_GB and not lazy:
        raise InputError(
            f"{net.n_edges} edges at {hours} hours are {hours * net.n_edges} arms, whose covariance would take "
            f"{size:.0f} GB; at most {MEMORY_LIMIT_GB:g} GB are allowed. Leave out `lazy`, or use a smaller network."
        )
    speeds = (ratios.reshape(hours, -1) * net.speed_limits).ravel()
    lengths, inclines = np.tile(net.lengths, hours), np.tile(net.inclines, hours)
    mean = edge_energy(lengths, speeds, inclines)
    scale = mean.var()
    if not scale > 1e-12 * np.abs(mean).max() ** 2:  # equal energies differ by rounding errors
        raise InputError(
            "edges must differ in energy, because the prior is scaled by the variance of their energies; got equal "
            "ones. Use a network whose edges differ in length, speed or incline."
        )
    contexts = standardize_columns(np.column_stack([lengths, speeds, inclines]))
    scale_of_k_f = np.asarray(lengthscale)
    _validate.array_of_length(scale_of_k_f.tolist(), "lengthscales", contexts.shape[1], low=0.0, strictly=True)
    on_graph: Any = partial(GraphMatern, net.lengths, net.connections)
    if not lazy:
        on_graph = partial(graph_matern, incidence_laplacian(net.lengths, net.connections))
    # a quarter of the deterministic energies' standard deviation, and half of the variance for k_G k_f
    kernel = ContextKernel(contexts, on_graph, 0.25**2 * scale, 0.5, (scale_of_k_f, scale_of_k_f))
    noise_variance = noise_sd**2 * scale
    if lazy:
        return LazyPrior(mean, noise_variance, kernel)
    return Prior(mean, kernel.covariance(), noise_variance, kernel)
