"""Random points of a box: the rival that every other method has to beat."""

from .base import BoxOptimizer


class RandomPoints(BoxOptimizer):
    """Ask for points drawn evenly from the box, without a first design.

    Parameters
    ----------
    f, bounds, integers, noisy, rng
        As of `BoxOptimizer`.

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

    def __init__(self, f, *, bounds=None, integers=None, noisy=None, rng=None):
        super().__init__(f, bounds=bounds, integers=integers, noisy=noisy, initial=0, rng=rng)

    def _propose(self):
        return self.draw()
