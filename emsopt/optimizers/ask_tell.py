"""Ask / tell: what every optimizer has in common, whether it moves ambulances or numbers on a box.

``ask`` names a candidate worth evaluating, ``tell`` reports what it is worth; who evaluates it (the objective, a
simulator, a person) is the caller's business. A method fills in `_propose` and, if it learns, `_learn`.
"""

import numpy as np

from .. import _validate
from .._running.threads import one_thread
from ..errors import InputError

# Draws from the space before the candidates that are left get listed instead.
DRAWS = 100


class AskTell:
    """Keeps what was told and never asks for the same candidate twice, unless the objective is noisy.

    Parameters
    ----------
    objective : object
        Its ``space`` says what may be proposed (``canonical``, ``sample``, ``count``, ``chunks``), ``noisy`` whether
        it is worth asking for the same again, ``sense`` whether "min" or "max" is wanted.
    rng : int or Generator, optional

    Attributes
    ----------
    space : object
    rng : Generator
    told : list of ndarray
        Candidates told so far, in canonical form.
    values : list of float
        Their values.
    taken : dict
        From a candidate, as a tuple, to the value last told, or None while it is asked for but not told.
    noun, column : str
        What messages call a candidate, and tables and checkpoints their column of them.
    """

    noun, column = "candidate", "x"

    def __init__(self, objective, rng=None):
        self.objective = objective
        self.space = objective.space
        self.rng = _validate.generator(rng)
        self.told = []
        self.values = []
        self.taken = {}

    @property
    def better(self):
        """Which of two values is better: `min` or `max`."""
        return max if self.objective.sense == "max" else min

    @property
    def best(self):
        """Best candidate told so far and its value (None and the worst of values before the first)."""
        if not self.values:
            return None, np.inf if self.better is min else -np.inf
        k = self.values.index(self.better(self.values))
        return self.told[k], self.values[k]

    @property
    def exhausted(self):
        """Whether no allowed candidate is left to ask for."""
        return not self.objective.noisy and len(self.taken) >= self.space.count

    def ask(self, n=None):
        """Return a candidate to evaluate, one row, or ``n`` different ones, n rows.

        Fewer than ``n`` rows come where fewer allowed candidates are left.

        Raises
        ------
        InputError
            If every allowed candidate has been asked for already; see `exhausted`.
        """
        if n is not None:
            rows = []
            for _ in range(_validate.whole_number(n, "n")):
                if rows and self.exhausted:
                    break
                rows.append(self.ask())
            return np.array(rows)
        if self.exhausted:
            raise InputError(f"all {self.space.count} allowed {self.noun}s have been asked for; there is none left.")
        with one_thread:
            x = self.space.canonical(self._propose())
        if not self.objective.noisy and self.is_taken(x):
            x = self.draw()
        self.taken.setdefault(tuple(x.tolist()), None)
        return x

    def tell(self, x, value):
        """Report the value of a candidate, whether it was asked for or not.

        Parameters
        ----------
        x : array_like
            An allowed candidate.
        value : float
            Finite, in the objective's own sign.
        """
        x, value = self.space.canonical(x), _validate.finite_number(value, "value")
        self.taken[tuple(x.tolist())] = value
        self.told.append(x)
        self.values.append(value)
        with one_thread:
            self._learn(x, value)

    def withdraw(self, x):
        """Take back that a candidate was asked for, if its value has not been told: it may be asked for again."""
        key = tuple(self.space.canonical(x).tolist())
        if key in self.taken and self.taken[key] is None:
            del self.taken[key]

    def is_taken(self, x):
        """Return whether this canonical candidate was asked for or told."""
        return tuple(np.asarray(x).tolist()) in self.taken

    def draw(self):
        """Return a random allowed candidate that is not taken unless the objective is noisy."""
        for _ in range(DRAWS):
            x = self.space.sample(rng=self.rng)
            if self.objective.noisy or not self.is_taken(x):
                return x
        left = [row for rows in self.space.chunks() for row in rows if not self.is_taken(row)]
        return left[self.rng.integers(len(left))]

    def _propose(self):
        """Return the candidate to try next; a taken one is replaced by a random one."""
        raise NotImplementedError

    def _learn(self, x, value):
        """Take in a value just told (already in the lists and in `taken`)."""

    def __repr__(self):
        return f"<{type(self).__name__}: best {self.best[1]:.6g} of {len(self.values)} told>"
