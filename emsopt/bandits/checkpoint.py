"""The file that lets a killed run go on: a line of JSON for the run, then one for each round.

Resuming plays the rounds on file again, with what was observed then, so that agent and random numbers end in the very
state in which the run was killed.
"""

import hashlib
import json

import numpy as np

from .. import __version__
from .._json_lines import JsonLines
from ..errors import InputError

_KIND, _FORMAT = "emsopt bandit run", 1


class RoundsOnFile:
    """The rounds on file; a context manager.

    Parameters
    ----------
    path : path-like or None
        None keeps nothing.
    problem : dict
        What makes two runs the same apart from the seed.
    seed : int, optional
        Left out: the one on file, or a fresh one.

    Attributes
    ----------
    seed : int

    Raises
    ------
    InputError
        If the file is of another run, is no checkpoint, is damaged, or cannot be written.
    """

    def __init__(self, path, problem, seed=None):
        self.path, self.version, self._rows, self._file = path, __version__, [], None
        self.seed = int(np.random.SeedSequence().entropy) if seed is None else seed
        if path is None:
            return
        self._file = JsonLines(path, _KIND, "checkpoint", "checkpoint")
        try:
            if not self._file.lines:
                self._file.append({_KIND: _FORMAT, "version": __version__, "seed": self.seed, **problem})
                return
            header, *self._rows = self._file.lines
            wanted = {_KIND: _FORMAT, **json.loads(json.dumps(problem))}
            if seed is not None:
                wanted["seed"] = seed
            for key, value in wanted.items():
                if header.get(key) != value:
                    self._refuse(f"is of another run: its {key} is {header.get(key)!r}, this one's {value!r}")
            self.seed, self.version = header["seed"], header["version"]
            for number, row in enumerate(self._rows, 1):
                if set(row) != {"round", "arms", "values", "seconds"} or row["round"] != number:
                    self._file.refuse(number + 1)
        except BaseException:
            self._file.close()
            raise

    def replay(self, number, arms):
        """Return the row of a round on file, or None; ``arms`` is what the agent chooses now."""
        if number > len(self._rows):
            return None
        row = self._rows[number - 1]
        if row["arms"] != arms.tolist():
            made = f"It was written by emsopt {self.version}, this is {__version__}"
            self._refuse(f"has other arms in round {number} than the agent now chooses. {made}")
        return row

    def add(self, number, arms, values, seconds):
        """Put a round on file; it is on disk when this returns."""
        if self._file is not None:
            row = {"round": number, "arms": arms.tolist(), "values": values.tolist(), "seconds": seconds}
            self._file.append(row)

    def _refuse(self, problem):
        msg = f"the checkpoint {self.path} {problem}. Resume with the same options and version, or name another file."
        raise InputError(msg)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._file is not None:
            self._file.close()


def digest(*arrays):
    """Return a short fingerprint of the numbers in some arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(repr(np.shape(array)).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:16]
