"""Ask / tell: what every optimizer of deployments has in common.

``ask`` names a deployment worth evaluating, ``tell`` reports what it is worth; who evaluates it (the objective, a
simulator, a person) is the caller's business. A method fills in `_propose` and, if it learns, `_learn`.
"""

import numpy as np

from .. import _validate
from .._threads import one_thread
from ..deployment import DeploymentSpace
from ..errors import InputError

# Draws from the space before the deployments that are left get listed instead.
DRAWS = 100


def check_value(value, name="value"):
    """Return the value of a deployment as a finite float."""
    if not _validate.is_real(value) or not np.isfinite(value):
        msg = f"`{name}` must be a finite number; got {value!r}."
        raise InputError(msg)
    return float(value)


class Optimizer:
    """Base of the optimizers: keeps what was told and never asks for the same deployment twice.

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

    def __init__(self, objective, *, rng=None):
        if not isinstance(getattr(objective, "space", None), DeploymentSpace):
            msg = f"`objective` must be an emsopt.Objective; got {type(objective).__name__}."
            raise InputError(msg)
        self.objective = objective
        self.space = objective.space
        self.rng = np.random.default_rng(rng)
        self.sites = []
        self.values = []
        self.taken = {}

    @property
    def best(self):
        """Best deployment told so far, shape (p,), and its value (None, inf before the first)."""
        if not self.values:
            return None, np.inf
        k = int(np.argmin(self.values))
        return self.sites[k], self.values[k]

    @property
    def exhausted(self):
        """Whether no allowed deployment is left to ask for."""
        return not self.objective.noisy and len(self.taken) >= self.space.count

    def ask(self, n=None):
        """Return a deployment to evaluate, shape (p,), or ``n`` different ones, shape (n, p).

        Fewer than ``n`` rows come where fewer allowed deployments are left.

        Raises
        ------
        InputError
            If every allowed deployment has been asked for already; see `exhausted`.
        """
        if n is not None:
            rows = []
            for _ in range(_validate.whole_number(n, "n")):
                if rows and self.exhausted:
                    break
                rows.append(self.ask())
            return np.array(rows)
        if self.exhausted:
            msg = f"all {self.space.count} allowed deployments have been asked for; there is none left."
            raise InputError(msg)
        with one_thread():
            sites = self.space.canonical(self._propose())
        if not self.objective.noisy and self.is_taken(sites):
            sites = self.draw()
        self.taken.setdefault(tuple(sites.tolist()), None)
        return sites

    def tell(self, sites, value):
        """Report the value of a deployment, whether it was asked for or not.

        Parameters
        ----------
        sites : array_like of int, shape (p,)
            An allowed deployment.
        value : float
            Finite; smaller is better.
        """
        sites, value = self.space.canonical(sites), check_value(value)
        self.taken[tuple(sites.tolist())] = value
        self.sites.append(sites)
        self.values.append(value)
        with one_thread():
            self._learn(sites, value)

    def is_taken(self, sites):
        """Return whether this canonical deployment was asked for or told."""
        return tuple(np.asarray(sites).tolist()) in self.taken

    def draw(self):
        """Return a random allowed deployment, shape (p,), that is not taken unless the objective is noisy."""
        for _ in range(DRAWS):
            sites = self.space.sample(self.rng)
            if self.objective.noisy or not self.is_taken(sites):
                return sites
        left = [row for rows in self.space.chunks() for row in rows if not self.is_taken(row)]
        return left[self.rng.integers(len(left))]

    def _propose(self):
        """Return the deployment to try next, shape (p,); a taken one is replaced by a random one."""
        raise NotImplementedError

    def _learn(self, sites, value):
        """Take in a value just told (already in `sites`, `values` and `taken`)."""

    def __repr__(self):
        return f"<{type(self).__name__}: best {self.best[1]:.6g} of {len(self.values)} told>"
