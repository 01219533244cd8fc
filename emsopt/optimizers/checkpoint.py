"""The file that lets a killed run go on: a line of JSON for the problem, then one for each evaluation.

Lines are only ever appended, each is on disk before the next evaluation starts, and a last line that a kill cut short
is dropped. Resuming repeats the optimizer's steps with the values on file, so that it ends in the very state in which
it was killed; no state of its own is stored.
"""

import hashlib
import json

import numpy as np

from .. import __version__
from .._json_lines import JsonLines
from ..errors import InputError
from ..objective import Objective

_KIND, _FORMAT = "emsopt run", 1


class Checkpoint:
    """The evaluations on file; a context manager.

    Parameters
    ----------
    path : path-like or None
        None keeps nothing.
    problem : dict
        What makes two runs the same apart from the seed: see `describe`.
    seed : int, optional
        Left out: the one on file, or a fresh one.
    column : str
        What rows call the candidate evaluated.

    Attributes
    ----------
    seed : int
    version : str
        Of the package that started the file.
    rows : list of dict
        ``evaluation``, ``sites`` (on a box ``x``), ``value``, ``seconds`` of each evaluation on file.

    Raises
    ------
    InputError
        If the file is of another problem, method or seed, is no checkpoint, is damaged, or cannot be written.
    """

    def __init__(self, path, problem, seed=None, column="sites"):
        self.path, self.seed, self.version, self.rows, self._file = path, seed, __version__, [], None
        self.column = column
        if path is None:
            self._fresh_seed()
            return
        self._file = JsonLines(path, _KIND, "checkpoint", "checkpoint")
        try:
            if self._file.lines:
                header, *rows = self._file.lines
                self._check_header(header, problem)
                self.rows = [self._row(row, k) for k, row in enumerate(rows, 1)]
            else:
                self._fresh_seed()
                self._file.append({_KIND: _FORMAT, "version": __version__, "seed": self.seed, **problem})
        except BaseException:
            self._file.close()
            raise

    def _fresh_seed(self):
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().entropy)

    def _check_header(self, header, problem):
        wanted = {_KIND: _FORMAT, **json.loads(json.dumps(problem))}
        if self.seed is not None:
            wanted["seed"] = self.seed
        for key, value in wanted.items():
            if header.get(key) != value:
                msg = (
                    f"the checkpoint {self.path} is of another run: its {key} is {header.get(key)!r}, this one's "
                    f"{value!r}. Resume with the same problem, method and rng, or name another file."
                )
                raise InputError(msg)
        self.seed, self.version = header["seed"], header["version"]

    def _row(self, row, number):
        if set(row) != {"evaluation", self.column, "value", "seconds"} or row["evaluation"] != number:
            self._file.refuse(number + 1)
        return row

    def replay(self, number, x):
        """Return the row of an evaluation on file, or None; ``x`` is what the optimizer asks for now."""
        if number > len(self.rows):
            return None
        row = self.rows[number - 1]
        if row[self.column] != x.tolist():
            msg = (
                f"evaluation {number} in the checkpoint {self.path} is of {row[self.column]}, but the optimizer now "
                f"asks for {x.tolist()}. Resume with the same options and with emsopt {self.version} (this is "
                f"{__version__}), or name another file."
            )
            raise InputError(msg)
        return row

    def add(self, number, x, value, seconds):
        """Put an evaluation on file; it is on disk when this returns."""
        if self._file is not None:
            self._file.append(
                {"evaluation": number, self.column: x.tolist(), "value": value, "seconds": seconds}
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._file is not None:
            self._file.close()


def describe(objective, method):
    """Return what a checkpoint must agree on: the method, and what is optimised over what."""
    of = _deployments if isinstance(objective, Objective) else _box
    return {"method": method, **of(objective)}


def _deployments(objective):
    """City, fleet, metric, evaluator and allowed deployments."""
    city, space = objective.city, objective.space
    skipped = ("workers", "progress", *(("rng",) if objective.noisy else ()))
    times = [city.arrival_rates, city.travel_times, city.turnout_times, city.service_times]
    return {
        "city": _digest(*times, city.preferred_order),
        "units": space.units,
        "metric": objective.label,
        "costs": _digest(objective.costs),
        "evaluator": objective.evaluator,
        "options": {
            key: repr(value) for key, value in sorted(objective.options.items()) if key not in skipped
        },
        "room": space.room.tolist(),
        "pinned": sorted(space.pinned),
    }


def _box(objective):
    """Name of the function, as far as it has one, and the box."""
    f, space = objective.function, objective.space
    return {
        "function": str(getattr(f, "name", getattr(f, "__qualname__", type(f).__qualname__))),
        "sense": objective.sense,
        "noise": float(getattr(f, "noise", 0) or 0) or objective.noisy,
        "bounds": space.bounds.tolist(),
        "whole": list(space.whole),
    }


def _digest(*arrays):
    """Return a short fingerprint of the numbers in some arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(repr(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:16]
