"""Random search on a box, the baseline for all other methods."""

from typing import Any

from ..._types import FloatArray
from .base import BoxOptimizer
from .box import Function


class RandomPoints(BoxOptimizer):
    """Ask for points drawn uniformly from the box, without an initial design.

    Parameters
    ----------
    f, sense, bounds, integers, noisy, constraints, rng
        As in `BoxOptimizer`.

    Examples
    --------
    >>> import emsopt as eo
    >>> optimizer = eo.optimizers.RandomPoints(eo.problems.forrester(), rng=0)
    >>> for _ in range(20):
    ...     x = optimizer.ask()
    ...     optimizer.tell(x, optimizer.objective(x))
    >>> optimizer.told[0].round(3), round(optimizer.best[1], 2)
    (array([0.637]), -5.65)
    """

    def __init__(self, f: Function | None = None, **options: Any) -> None:
        super().__init__(f, **options, initial=0)

    def _propose(self) -> FloatArray:
        return self.draw()
