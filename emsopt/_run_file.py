"""The file that lets a killed run go on: a line of JSON for the problem, then one for each step.

Lines are only ever appended, each is on disk before the next step starts, and a last line that a kill cut short is
dropped. Resuming repeats the steps with what is on file, so that the run ends in the very state in which it was killed;
no state of its own is stored.
"""

import hashlib
import json

import numpy as np

from . import __version__, _validate
from ._json_lines import JsonLines
from .errors import InputError

_FORMAT = 1


class RunFile:
    """The steps on file; a context manager.

    Parameters
    ----------
    path : path-like or None
        None keeps nothing.
    problem : dict
        What makes two runs the same apart from the seed.
    seed : int, optional
        Left out: the one on file, or a fresh one.
    kind : str
        What the first line says the file is.
    step : str
        What a step is called, and the name of its number in a row.
    asked, told : tuple of str
        Names in a row of what is asked for, which must come out the same again, and of what came of it.

    Attributes
    ----------
    seed : int
    version : str
        Of the package that started the file.
    rows : list of dict
        The steps on file.

    Raises
    ------
    InputError
        If the file is of another problem or seed, is no checkpoint, is damaged, or cannot be written.
    """

    def __init__(self, path, problem, seed=None, *, kind, step, asked, told):
        self.path, self.seed, self.version, self.rows, self._file = path, seed, __version__, [], None
        self._step, self._asked, self._names = step, asked, {step, *asked, *told}
        if path is None:
            self._fresh_seed()
            return
        self._file = JsonLines(path, kind, "checkpoint", "checkpoint")
        try:
            if self._file.lines:
                header, *self.rows = self._file.lines
                self._check_header(header, {kind: _FORMAT, **problem})
                self._check_rows()
            else:
                self._fresh_seed()
                self._file.append({kind: _FORMAT, "version": __version__, "seed": self.seed, **problem})
        except BaseException:
            self._file.close()
            raise

    def _fresh_seed(self):
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().entropy)

    def _check_header(self, header, wanted):
        wanted = json.loads(json.dumps(wanted))
        if self.seed is not None:
            wanted["seed"] = self.seed
        for key, value in wanted.items():
            if header.get(key) != value:
                msg = (
                    f"the checkpoint {self.path} is of another run: its {key} is {header.get(key)!r}, this one's "
                    f"{value!r}. Resume with the same problem, method, options and rng, or name another file."
                )
                raise InputError(msg)
        self.seed, self.version = header["seed"], header["version"]

    def _check_rows(self):
        for number, row in enumerate(self.rows, 1):
            if set(row) != self._names or row[self._step] != number:
                self._file.refuse(number + 1)

    def replay(self, number, *asked):
        """Return the row of a step on file, or None; ``asked`` is what is asked for now."""
        if number > len(self.rows):
            return None
        row = self.rows[number - 1]
        before = tuple(row[name] for name in self._asked)
        if before != asked:
            msg = (
                f"{self._step} {number} in the checkpoint {self.path} is of {_shown(before)}, but the run now "
                f"asks for {_shown(asked)}. Resume with the same options and with emsopt {self.version} (this is "
                f"{__version__}) and the libraries that wrote it, or name another file."
            )
            raise InputError(msg)
        return row

    def add(self, number, **row):
        """Put a step on file; it is on disk when this returns."""
        if self._file is not None:
            self._file.append({self._step: number, **row})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._file is not None:
            self._file.close()


def _shown(asked):
    return ", ".join(map(str, asked))


def run_seed(rng):
    """Return the seed of a run; None if there is nothing to take it from."""
    if rng is None:
        return None
    if _validate.is_real(rng):
        return _validate.whole_number(rng, "rng", low=0)
    return int(_validate.generator(rng).integers(2**63))


def digest(*arrays):
    """Return a short fingerprint of the numbers in some arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(repr(np.shape(array)).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:16]
