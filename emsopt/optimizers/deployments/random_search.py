"""Random search: the baseline that every other method has to beat."""

from .base import Optimizer


class RandomSearch(Optimizer):
    """Ask for random deployments, with each unit at a random free place.

    No deployment is asked for twice, unless the objective is noisy.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.load_st_paul(), 9, "approximate")
    >>> optimizer = eo.optimizers.RandomSearch(objective, rng=0)
    >>> for _ in range(10):
    ...     x = optimizer.ask()
    ...     optimizer.tell(x, objective(x))
    >>> optimizer
    <RandomSearch: sense='min', best 6.06744 of 10 observed, noisy=False>
    """
