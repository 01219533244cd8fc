r"""KR-UCB with progressive widening: choose one of the evaluated points, then try a new point close to it.

Algorithm 5, (A.4) and (A.5) of "Bayesian Optimization by Kernel Regression and Density-based Exploration", after Yee,
Lisý and Bowling (2016), Monte Carlo tree search in continuous action spaces with execution uncertainty.

======  =================  =====================================================================================
symbol  name               meaning
======  =================  =====================================================================================
C       ``confidence``     weight of exploration, in standard deviations of the observed values
τ       ``closeness``      smallest kernel value between the chosen point and the next point
α       ``widening``       a new point is added while there are at most t^α distinct points
======  =================  =====================================================================================

.. math:: \tilde x = \arg\max_{x_i} \; m(x_i) + C \sqrt{\log \textstyle\sum_j W(x_j) / W(x_i)} \quad (A.4), \qquad
          x_{t+1} = \arg\min_{k(x, \tilde x) > τ} W(x) \quad (A.5)

Without noise, repeating an evaluation gives no information, and every step adds a new point. Preparing a step costs
O(t² d).

Limits. A new point is always close to an evaluated one, so regions far from all points are reached only in many small
steps.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import _validate
from ..._types import FloatArray
from ...errors import InputError
from ...surrogates.kernel_regression import KernelRegression
from ._search import STARTS, maximize_on_box, starts_on_box
from .boke import BOKE, emptiness
from .box import Function

CONFIDENCE = 0.05
CLOSENESS = 0.5
WIDENING = 0.8


class KRUCB(BOKE):
    """Kernel regression UCB with progressive widening, Algorithm 5 of the BOKE paper, where it is a baseline.

    Parameters
    ----------
    f, scale, bandwidth, sense, bounds, integers, noisy, constraints, initial, rng
        As in `BOKE`; the kernel is Gaussian.
    confidence : float
        Weight C of exploration in (A.4), in standard deviations of the observed values.
    closeness : float
        τ, above 0 and below 1: smallest kernel value between the chosen point and the next point.
    widening : float
        α, above 0 and at most 1: a new point is added while there are at most t^α distinct ones. It has no effect in
        noise-free runs.
    """

    def __init__(
        self,
        f: Function | None = None,
        *,
        confidence: float = CONFIDENCE,
        closeness: float = CLOSENESS,
        widening: float = WIDENING,
        **options: Any,
    ) -> None:
        super().__init__(f, **options, kernel="gaussian")
        self.confidence = _validate.positive_number(confidence, "confidence", zero=True)
        self.closeness = _validate.probability(closeness, "closeness")
        self.widening = _validate.probability(widening, "widening")
        if self.closeness == 1:
            raise InputError("`closeness` must be below 1, as no new point has a kernel value above 1; got 1.")

    def scores(self, model: KernelRegression) -> FloatArray:
        """Return m + C √(log(Σ_j W(x_j)) / W) at each point of the model, shape (t,); a negative logarithm counts as 0.

        (A.4) of the paper chooses the point with the largest score; m is the regression and W the density.
        """
        mean, log_density = model.predict(model.X)
        total = np.logaddexp.reduce(log_density)
        return mean + self.confidence * np.sqrt(max(total, 0.0)) * np.exp(-log_density / 2)

    def _choose(self) -> Iterator[FloatArray]:
        model = self.surrogate()
        different = len(np.unique(model.X, axis=0))
        for k in np.argsort(-self.scores(model), kind="stable"):
            if self.objective.noisy and len(model.y) ** self.widening < different:
                yield model.X[k]
            yield self._beside(model, model.X[k])

    def _beside(self, model: KernelRegression, centre: FloatArray) -> FloatArray:
        """Return the point of lowest density in the ball around ``centre`` where the kernel is at least τ, (A.5)."""
        radius = model.bandwidth[0] * np.sqrt(-2 * np.log(self.closeness))

        def within(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            apart = x - centre
            far = np.maximum(np.linalg.norm(apart, axis=1) / radius, 1.0)[:, None]
            values, slopes = emptiness(model, centre + apart / far)
            outward = apart / (far * radius)  # a unit vector outside the ball
            along = (slopes * outward).sum(axis=1, keepdims=True)
            return values, np.where(far > 1, (slopes - along * outward) / far, slopes)

        box = np.clip(np.column_stack([centre - radius, centre + radius]), 0, 1)
        x, _ = maximize_on_box(within, starts_on_box(box, STARTS, self.rng), box)
        return centre + (x - centre) / max(np.linalg.norm(x - centre) / radius, 1.0)
