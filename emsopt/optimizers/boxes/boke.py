r"""BOKE and BOKE+: kernel regression estimates the values, and kernel density measures how well a point is explored.

Algorithms 2 and 3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration".

======  ============================  ============================================================================
symbol  name                          meaning
======  ============================  ============================================================================
m, W    `KernelRegression`            regression (3.1) and density (3.9) of the t observed points, on the unit cube
h_t     `bandwidth`                   Scott's rule (5.1): ``scale`` · d · t^(-1/(d+4)), or another one, see `BOKE`
β_t     `exploration_weight`          2 ς² log(2 π² t² / (3 δ)), Theorem 4.13 with kernel constant M_Ψ = 1
ς       ``noise_sd``                  noise level, in standard deviations of the observed values
δ       ``DELTA``                     probability that the bound fails
p       ``exploring``                 BOKE+: probability of a step by (3.12); otherwise (3.14)
======  ============================  ============================================================================

.. math:: x_{t+1} = \arg\max_x \; m_t(x) + \sqrt{β_t / W_t(x)} \quad (3.12), \qquad \arg\max_x m_t(x) \quad (3.14)

The paper specifies neither the factor in h_t nor ς, p and δ, although the results depend strongly on them. The defaults
were tuned on functions that appear in no reported study (``benchmarks/boke_training.py``). The factor of h_t grows with
d because distances grow with the dimension.

The optimizer maximises the logarithm of (3.12) after subtracting the smallest observed value from m. This has the same
maximiser and does not overflow where W underflows. An evaluation of (3.12) costs O(t d), and no parameters are fitted.

Limits. A weighted mean never exceeds the best observed value, and convergence close to the optimum is therefore slow.
The exploration term grows like exp(u²/4) in the scaled distance u, so that in many dimensions (3.12) is largest in
corners. With six inputs, L-BFGS-B therefore also starts from corners. With other numbers it starts from ten random
points only and often ends at a lower maximum near the data, so that BOKE explores less than (3.12) demands.

**KR-UCB** with progressive widening, a baseline of the paper, chooses one of the evaluated points, then a new point
close to it: algorithm 5, (A.4) and (A.5), after Yee, Lisý and Bowling (2016), Monte Carlo tree search in continuous
action spaces with execution uncertainty.

======  =================  =====================================================================================
symbol  name               meaning
======  =================  =====================================================================================
C       ``confidence``     weight of exploration, in standard deviations of the observed values
τ       ``closeness``      smallest kernel value between the chosen point and the next point
α       ``widening``       a new point is added while there are at most t^α distinct points
======  =================  =====================================================================================

.. math:: \tilde x = \arg\max_{x_i} \; m(x_i) + C \sqrt{\log \textstyle\sum_j W(x_j) / W(x_i)} \quad (A.4), \qquad
          x_{t+1} = \arg\min_{k(x, \tilde x) > τ} W(x) \quad (A.5)

Without noise, every step adds a new point. Preparing a step costs O(t² d). Limits. A new point is always close to an
evaluated one, so regions far from all points are reached only in many small steps.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import _validate
from ...errors._types import ArrayLike, FloatArray, Rng
from ...surrogates.kernel_regression import KERNELS, KernelRegression, condition, scott, silverman
from ..recommendation import standard_deviation, standardize_values
from ._base import BoxFunction, BoxOptimizer
from ._search import MAX_STARTS, SmoothFunction, corners_of_cube, draw_starts, maximize_on_box, maximize_on_cube

if TYPE_CHECKING:
    import pandas as pd

BANDWIDTH_SCALE = 0.05
NOISE_SD = 0.005
DELTA = 0.1
BANDWIDTH_RULES = {"scott": scott, "silverman": silverman}
EXPLORING_SHARE = 0.6
MIN_LOG_DENSITY = -1000.0  # points with smaller log W count as equally unexplored
N_PROBES = 10_000


class BOKE(BoxOptimizer):
    """Bayesian optimisation by kernel regression and density-based exploration.

    Algorithm 2 of "Bayesian Optimization by Kernel Regression and Density-based Exploration". Each step maximises
    m + √(β_t / W), where m is the regression of the observed values, standardised and for minimisation with reversed
    sign, and W the kernel density of the observed points. In a noise-free run, a maximiser that has already been
    evaluated is replaced by the point of lowest density (3.10). A point that has been asked for but not observed is
    treated as observed, with the value predicted by the regression, which keeps the points of a batch apart.

    Parameters
    ----------
    scale : float
        Factor of a bandwidth that follows a rule, see `bandwidth`.
    noise_sd : float
        ς, the assumed noise level, in standard deviations of the observed values. Larger values explore more.
    kernel : str
        "gaussian", "epanechnikov" or "uniform".
    bandwidth : {"scott", "silverman"} or float
        Rule of the bandwidth, (5.1) or (5.2) of the paper, or a fixed bandwidth in widths of the box.
    f, **options
        As in `BoxOptimizer`.

    Examples
    --------
    >>> BOKE(bounds=[(0, 1)], sense="min", rng=0).ask().shape
    (1,)
    """

    def __init__(
        self,
        f: BoxFunction = None,
        *,
        scale: float = BANDWIDTH_SCALE,
        noise_sd: float = NOISE_SD,
        kernel: str = "gaussian",
        bandwidth: str | float = "scott",
        **options: Any,
    ) -> None:
        super().__init__(f, **options)
        self.scale = _validate.positive_number(scale, "scale")
        self.noise_sd = _validate.positive_number(noise_sd, "noise_sd", zero=True)
        self.kernel = _validate.choice(kernel, "kernel", KERNELS)
        self.bandwidth = (
            _validate.choice(bandwidth, "bandwidth", BANDWIDTH_RULES)
            if isinstance(bandwidth, str)
            else _validate.positive_number(bandwidth, "bandwidth")
        )

    def surrogate(self) -> KernelRegression:
        """Return the kernel regression of standardised gains, with those that it predicts at pending points."""
        X, y = self.points, standardize_values(self.gains)
        h = self.bandwidth
        if isinstance(h, str):
            h = bandwidth(len(y), X.shape[1], self.scale, h)
        model = condition(X, y, h, kernel=self.kernel)
        if len(waiting := self.pending_points):
            y = np.append(y, model.predict(waiting)[0])
            model = condition(np.vstack([X, waiting]), y, h, kernel=self.kernel)
        return model

    def _yield_points(self) -> Iterator[FloatArray]:
        model = self.surrogate()
        beta = exploration_weight(len(model.y), self.noise_sd)
        yield self._climb(lambda x: log_upper_bound(model, beta, x))
        yield self._climb(lambda x: negative_log_density(model, x))

    def _climb(self, function: SmoothFunction, **options: Any) -> FloatArray:
        return super()._climb(function, corners=self.space.coordinates == 6)  # see the module's notes


class BOKEPlus(BOKE):
    """BOKE+: a step of BOKE with probability ``exploring``, else the point where the regression is largest.

    Algorithm 3 of "Bayesian Optimization by Kernel Regression and Density-based Exploration". ``exploring``, p, must be
    above 0 and at most 1; other options are those of `BOKE`.

    Examples
    --------
    >>> BOKEPlus(bounds=[(0, 1)], sense="min", rng=0).ask().shape
    (1,)
    """

    def __init__(self, f: BoxFunction = None, *, exploring: float = EXPLORING_SHARE, **options: Any) -> None:
        super().__init__(f, **options)
        self.exploring = _validate.probability(exploring, "exploring")

    def _yield_points(self) -> Iterator[FloatArray]:
        if self.rng.random() >= self.exploring:
            model = self.surrogate()
            yield self._climb(lambda x: model.predict_with_slopes(x)[::2])  # mean and its slopes
        yield from super()._yield_points()


def bandwidth(t: int, d: int, scale: float = BANDWIDTH_SCALE, rule: str = "scott") -> float:
    """Return the bandwidth h_t for t points on the unit cube by (5.1) or (5.2), with the factor scale · d."""
    return BANDWIDTH_RULES[rule](t, d, scale * d)


def exploration_weight(t: int, noise_sd: float = NOISE_SD, delta: float = DELTA) -> float:
    """Return the weight of exploration β_t = 2 ς² log(2 π² t² / (3 δ)) of Theorem 4.13 after t observations.

    ``noise_sd`` is ς, ``delta`` is δ. With δ = 2 π² / 3, which is no probability, it is 4 ς² log t of Theorem 4.10.
    """
    return 2 * noise_sd**2 * float(np.log(2 * np.pi**2 * t**2 / (3 * delta)))


def profile(optimizer: BOKE) -> "pd.DataFrame":
    """Tabulate the model of an optimizer with one input along that input, in the units of the values.

    At least one value must have been observed. The table is indexed by x, 501 values that are evenly spaced between the
    bounds of the input. Columns: "mean", the regression; "bonus", √(β / W) times the values' standard deviation;
    "bound", the sum of the two, which (3.12) maximises (for minimisation: mean minus bonus, which is minimised); and
    "density", W.
    """
    import pandas as pd

    unit = np.linspace(0, 1, 501)[:, None]
    model, gains = optimizer.surrogate(), optimizer.gains
    mean, log_density = model.predict(unit)
    scale, sign = standard_deviation(gains) or 1.0, 1 if optimizer.pick_best is max else -1
    beta = exploration_weight(len(model.y), optimizer.noise_sd)
    bonus = scale * np.sqrt(beta) * np.exp(-np.maximum(log_density, MIN_LOG_DENSITY) / 2)
    mean = sign * (gains.mean() + scale * mean)
    columns = {"mean": mean, "bonus": bonus, "bound": mean + sign * bonus, "density": np.exp(log_density)}
    return pd.DataFrame(columns, index=pd.Index(optimizer.space.from_unit(unit)[:, 0], name="x"))


def negative_log_density(model: KernelRegression, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return minus the logarithm of the density W, (n,), and its slopes, (n, d), at points x, (n, d)."""
    _, log_density, _, slope = model.predict_with_slopes(x)
    return -np.maximum(log_density, MIN_LOG_DENSITY), -slope


def log_upper_bound(model: KernelRegression, beta: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(m(x) - min y + √(β / W(x))), (n,), and its slopes, (n, d), at points x, (n, d): see (3.12)."""
    mean, log_density, mean_slope, density_slope = model.predict_with_slopes(x)
    with np.errstate(divide="ignore"):  # the worst point has a lift of log 0
        lift = np.log(np.maximum(mean - model.y.min(), 0))
        bonus = 0.5 * (np.log(beta) - np.maximum(log_density, MIN_LOG_DENSITY))
    value = np.maximum(np.logaddexp(lift, bonus), -300.0)  # without exploration, -inf at the worst point
    # slopes of log(e^lift + e^bonus): each part has its share of the sum
    rise, share = np.where(np.isfinite(lift), np.exp(-value), 0.0), np.exp(bonus - value)
    return value, rise[:, None] * mean_slope - 0.5 * share[:, None] * density_slope


def density_design(n: int, d: int, *, rng: Rng) -> FloatArray:
    """Return n points of the unit cube, (n, d): the first at random, others where the density W is least, (3.10)."""
    rng = _validate.generator(rng)
    X = rng.random((1, d))
    while len(X) < n:
        model = condition(X, np.zeros(len(X)), bandwidth(len(X), d))
        X = np.vstack([X, maximize_on_cube(partial(negative_log_density, model), d, rng)])
    return X


def fill_distance(points: ArrayLike) -> float:
    """Return a lower bound on the fill distance of a design, (3.11) of the BOKE paper.

    The fill distance is the largest distance from a point of the unit cube to the nearest of the ``points``, (n, d).
    The bound is the largest from ``N_PROBES`` fixed random points and from (at most as many) corners of the cube.
    """
    from scipy.spatial import KDTree

    design = np.asarray(points)
    d = design.shape[1]
    rng = np.random.default_rng(0)  # fixed: all designs are measured by the same probes
    probes = rng.random((N_PROBES, d))
    return float(np.max(KDTree(design).query(np.vstack([corners_of_cube(d, N_PROBES, rng), probes]))[0]))


class KRUCB(BOKE):
    """Kernel regression UCB with progressive widening, Algorithm 5 of the BOKE paper."""

    confidence = 0.05  # C of (A.4)
    closeness = 0.5  # τ of (A.5)
    widening = 0.8  # α of the widening

    def upper_bounds(self, model: KernelRegression) -> FloatArray:
        """Return the upper bounds m + C √(log(Σ_j W(x_j)) / W), (A.4), at the t points of a model, (t,)."""
        mean, log_density = model.predict(model.X)
        total = np.logaddexp.reduce(log_density)
        return mean + self.confidence * np.sqrt(max(total, 0.0)) * np.exp(-log_density / 2)

    def _yield_points(self) -> Iterator[FloatArray]:
        model = self.surrogate()
        different = len(np.unique(model.X, axis=0))
        for k in np.argsort(-self.upper_bounds(model), kind="stable"):
            # there are more than t^α distinct points: repeat one instead of adding another
            if self.objective.noisy and len(model.y) ** self.widening < different:
                yield model.X[k]
            yield self._least_dense_point(model, model.X[k])

    def _least_dense_point(self, model: KernelRegression, centre: FloatArray) -> FloatArray:
        """Return the point, (d,), of lowest density in the ball around ``centre`` where the kernel exceeds τ, (A.5)."""
        radius = model.bandwidth[0] * np.sqrt(-2 * np.log(self.closeness))  # where the Gaussian kernel falls to τ

        def projected_density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            apart = x - centre
            # a point outside the ball has the value of its projection onto it
            far = np.maximum(np.linalg.norm(apart, axis=1) / radius, 1.0)[:, None]
            values, slopes = negative_log_density(model, centre + apart / far)
            outward = apart / (far * radius)  # a unit vector outside the ball
            along = (slopes * outward).sum(axis=1, keepdims=True)
            return values, np.where(far > 1, (slopes - along * outward) / far, slopes)

        box = np.clip(np.column_stack([centre - radius, centre + radius]), 0, 1)
        x, _ = maximize_on_box(projected_density, draw_starts(box, MAX_STARTS, self.rng), box)
        return centre + (x - centre) / max(np.linalg.norm(x - centre) / radius, 1.0)
