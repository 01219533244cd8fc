"""What every optimizer of deployments has in common, on top of `AskTell`."""

from ..._types import IntArray
from ...city.deployment import DeploymentSpace
from ...errors import InputError
from ..ask_tell import AskTell


class Optimizer(AskTell[IntArray]):
    """Base of the optimizers of deployments: never asks for the same one twice, unless the objective is noisy.

    Parameters
    ----------
    objective : Objective
        Its ``space`` says what may be proposed; with a ``noisy`` one a deployment can be asked for again.
    rng : int or Generator, optional

    Attributes
    ----------
    space : DeploymentSpace
    rng : Generator
    sites : list of ndarray, each of shape (p,)
        Deployments told so far, in canonical form (`DeploymentSpace.canonical`).
    values : list of float
        Their values, smaller is better.
    taken : dict
        From a deployment, as a tuple, to the value last told, or None while it is asked for but not told.
    """

    noun, column = "deployment", "sites"

    def __init__(self, objective, *, rng=None):
        if not isinstance(getattr(objective, "space", None), DeploymentSpace):
            raise InputError(f"`objective` must be an emsopt.Objective; got {type(objective).__name__}.")
        super().__init__(objective, rng)

    @property
    def sites(self):
        """Deployments told so far."""
        return self.told

    @sites.setter
    def sites(self, sites):
        self.told = sites
