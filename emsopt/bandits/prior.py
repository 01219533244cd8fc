"""Prior of a bandit: a Gaussian process over the base arms and the noise of an observation.

In navigation an arm is a road edge at an hour of the day. Its prior mean is the energy needed at constant
speed. The covariance is the product-plus-sum kernel of "Bayesian Analysis of Combinatorial Gaussian Process
Bandits", section 4.1 and appendix B.1.

============  ==================  ============================================================================
symbol        name                meaning
============  ==================  ============================================================================
E_det         ``mean``            deterministic energy, equation (8), Wh
σ_det²        -                   variance of E_det over all arms, Wh²
-             ``covariance``      kernel k_G k_f + k_f; mean prior variance by default 0.25² σ_det²
ς²            ``noise_variance``  noise variance of an observation, by default 0.1² σ_det² on every edge
============  ==================  ============================================================================

k_G is the graph Matérn kernel of the road network, and k_f the Matérn kernel of length, speed and incline
(`emsopt.surrogates.graph_matern.product_plus_sum`, which also weights the two terms).

The covariance is dense: 8 n² bytes for n arms, 258 MB for the 5,680 edges of Luxembourg.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from .. import _validate
from .._types import ArrayLike, FloatArray, Rng
from ..errors import InputError
from ..roads.energy import Vehicle, edge_energy, unit_variance
from ..roads.network import RoadNetwork
from ..surrogates.context_kernel import ContextKernel
from ..surrogates.graph_matern import graph_matern, incidence_laplacian, product_plus_sum

LARGEST_GB = 4.0  # memory limit for one covariance matrix; several are needed at a time
JITTER = 1e-10  # fraction of the mean variance added to the diagonal before a factorisation


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """Mean and covariance of the arms' expected values, and the noise of an observation.

    Parameters
    ----------
    mean : array_like, shape (n,)
    covariance : array_like, shape (n, n)
        Symmetric.
    noise_variance : float
        Positive.
    kernel : ContextKernel, optional
        What the covariance was computed with. Only needed to move the contexts of inducing points (`SparseGP`).

    Raises
    ------
    InputError
        If shapes do not match, a number is not finite, or the covariance is not symmetric or has a negative entry on
        its diagonal. Whether it is positive semi-definite is checked only when `factor` is computed.

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
        if np.abs(forth - back).max() > 1e-9 * (1e-300 + np.abs(forth).max()):
            raise InputError(
                "`covariance` must be symmetric. To remove rounding errors, average it with its transpose."
            )
        noise_variance = _validate.positive_number(self.noise_variance, "noise_variance")
        vars(self).update(mean=mean, covariance=covariance, noise_variance=noise_variance)

    @property
    def n_arms(self) -> int:
        """Number of base arms n."""
        return len(self.mean)

    @cached_property
    def factor(self) -> FloatArray:
        """Lower Cholesky factor of the covariance, computed by `jittered_cholesky`."""
        return jittered_cholesky(self.covariance)

    def draw(self, n: int = 1, *, rng: Rng = None) -> FloatArray:
        """Return ``n`` joint samples of the arms' expected values, one per column, shape (number of arms, n)."""
        rng = _validate.generator(rng)
        return self.mean[:, None] + self.factor @ rng.standard_normal((self.n_arms, n))

    def __repr__(self) -> str:
        deviation, noise = np.sqrt(np.diag(self.covariance)).mean(), np.sqrt(self.noise_variance)
        return f"<Prior: {self.n_arms} arms, mean standard deviation {deviation:.3g}, noise {noise:.3g}>"


def jittered_cholesky(covariance: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a covariance plus ``JITTER`` times its mean variance on the diagonal.

    The addition allows for a covariance that is numerically singular.
    """
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
    sum_lengthscale: ArrayLike | None = None,
    nu: float = 2.0,
    kappa: float = 1.0,
    share: float = 0.5,
    spread: float = 0.25,
    noise_sd: float = 0.1,
    congestion: ArrayLike | None = None,
    vehicle: Vehicle | None = None,
) -> Prior:
    """Return the prior over the edges of a road network or, with ``congestion``, over edges and hours.

    Parameters
    ----------
    net : RoadNetwork
    lengthscale : float or array_like, shape (3,)
        Lengthscale of the Matérn kernel k_f on length, speed and incline, each scaled to unit variance.
    sum_lengthscale : float or array_like, shape (3,), optional
        Lengthscale of k_f', the Matérn kernel that is added to the product. Default: that of k_f, as in the paper's
        experiments.
    nu, kappa : float
        Smoothness and lengthscale of the graph Matérn kernel.
    share : float
        Fraction of the variance assigned to the product k_G k_f of the two kernels; the rest is assigned to k_f alone.
    spread, noise_sd : float
        Standard deviation of the expected energies around the deterministic energies, and of the observation
        noise, both relative to the standard deviation of the deterministic energies.
    congestion : array_like, shape (H,) or (H, E), optional
        Ratio of speed to speed limit in each of H hours (and on each of E edges), above 0 and at most 1. Each edge
        is a separate arm in each hour, which gives H E arms. With one row per round, every round has speeds of its
        own. Default: one hour at the speed limit.
    vehicle : emsopt.roads.energy.Vehicle, optional
        Car whose energies are the prior mean. Default: `Vehicle` with its default parameters.

    Returns
    -------
    Prior
        Arm h E + e is edge e in hour h. Energies are in Wh.

    Raises
    ------
    InputError
        If an option is invalid, all edges need the same energy, or there are more than about 22,000 arms, the
        limit set by memory.

    Examples
    --------
    >>> from emsopt.roads import grid_roads
    >>> navigation_prior(grid_roads(4, 4))
    <Prior: 48 arms, mean standard deviation 0.358, noise 0.143>
    """
    spread = _validate.positive_number(spread, "spread")
    noise_sd = _validate.positive_number(noise_sd, "noise_sd")
    ratios = [1.0] if congestion is None else congestion
    shape = (None,) if np.ndim(ratios) == 1 else (None, net.n_edges)
    ratios = _validate.real_array(ratios, "congestion", shape, low=0.0, strictly=True)
    if ratios.max() > 1:
        raise InputError(f"`congestion` must be at most 1 (speed over speed limit); got {ratios.max():g}.")
    hours = len(ratios)
    size = 8e-9 * (hours * net.n_edges) ** 2
    if size > LARGEST_GB:
        raise InputError(
            f"{net.n_edges} edges at {hours} hours are {hours * net.n_edges} arms, whose covariance would take "
            f"{size:.0f} GB; at most {LARGEST_GB:g} GB are allowed. Use fewer hours or part of the network (`subset`)."
        )
    speeds = (ratios.reshape(hours, -1) * net.speed_limits).ravel()
    lengths, inclines = np.tile(net.lengths, hours), np.tile(net.inclines, hours)
    mean = edge_energy(lengths, speeds, inclines, vehicle=vehicle)
    scale = mean.var()
    if not scale > 1e-12 * np.abs(mean).max() ** 2:
        raise InputError(
            "edges must differ in energy, because the prior is scaled by the variance of their energies; got equal "
            "ones. Use a network whose edges differ in length, speed or incline."
        )
    contexts = unit_variance(np.column_stack([lengths, speeds, inclines]))
    laplacian, size = incidence_laplacian(net.lengths, net.connections), spread**2 * scale
    make_graph = partial(graph_matern, laplacian, nu=nu, kappa=kappa)
    covariance = product_plus_sum(
        np.tile(make_graph(), (hours, hours)),
        contexts,
        outputscale=size,
        share=share,
        lengthscales=lengthscale,
        sum_lengthscales=sum_lengthscale,
    )
    scales = np.asarray(lengthscale), np.asarray(lengthscale if sum_lengthscale is None else sum_lengthscale)
    return Prior(mean, covariance, noise_sd**2 * scale, ContextKernel(contexts, make_graph, size, share, scales))
