"""`Optimizer`, the common base class of all optimizers of deployments."""

from ..._types import IntArray, Rng
from ...city.deployment_space import DeploymentSpace
from ...errors import InputError
from ...evaluators.objective import Objective
from ..ask_tell import AskTell


class Optimizer(AskTell[IntArray]):
    """Base of the optimizers of deployments: see `AskTell`.

    Parameters
    ----------
    objective : Objective
        Its ``space`` defines the allowed deployments. If it is ``noisy``, a deployment can be asked for again.
    rng : int or Generator, optional

    Attributes
    ----------
    space : DeploymentSpace
    """

    noun, column = "deployment", "sites"
    space: DeploymentSpace

    def __init__(self, objective: Objective, *, rng: Rng = None) -> None:
        if not isinstance(getattr(objective, "space", None), DeploymentSpace):
            raise InputError(f"`objective` must be an emsopt.Objective; got {type(objective).__name__}.")
        super().__init__(objective, rng)

    @property
    def sites(self) -> list[IntArray]:
        """Deployments observed so far, each of shape (p,), in canonical form (`DeploymentSpace.canonical`)."""
        return self.told
