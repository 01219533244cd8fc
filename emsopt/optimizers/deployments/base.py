"""`Optimizer`, the common base class of all optimizers of deployments."""

import numpy as np

from ..._types import FloatArray, IntArray, Rng
from ...city.deployment_space import DeploymentSpace
from ...errors import InputError
from ...evaluators.objective import Objective
from ..ask_tell import AskTell
from ..recommendation import posterior_means


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

    def _estimates(self) -> FloatArray:
        from ...surrogates.kernels import DeploymentKernel

        shares, costs = self.space.city.demand_shares, self.objective.costs
        prior = np.array([shares @ costs[sites].min(axis=0) for sites in self.told])  # the p-median objective
        kernels = [DeploymentKernel(gamma=gamma, gamma_bounds=(1.0, 5.0)) for gamma in (1.5, 2.0, 3.0)]
        return prior + posterior_means(kernels, self.space.group_counts(self.told), np.array(self.values) - prior)
