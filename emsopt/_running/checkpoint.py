"""Checkpoints of runs: a file with one line of JSON for the problem, then one per step.

Resuming repeats the steps with the stored results, which restores the exact state at the interruption.

On another processor linear algebra rounds differently, and a method may propose another step than the one on file. The
step on file is then passed to the method as if it had been proposed, and one `ResumeWarning` reports the first
difference. For the same reason the first line stores a weighted sum of the problem's numbers, compared within a
tolerance, instead of a checksum.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .._files.version import version_with_commit
from ..errors import InputError, ResumeWarning, _validate, warn
from ..errors._types import ArrayLike, Rng
from ..errors._validate import quote
from .json_lines import JsonLines

_FORMAT_VERSION = 2
RELATIVE_TOLERANCE = 1e-8  # relative difference up to which two numbers count as equal, as processors round differently


@dataclass(frozen=True)
class CheckpointFormat:
    """Format of the checkpoint files of one kind of runs, such as searches or bandits.

    ``kind`` is the first key of the first line, and ``step`` the word for a step, such as "evaluation", which is also
    the key of its number in a line. A line stores what the method proposed under the keys of ``proposal_keys``, and its
    result under those of ``result_keys``; each key has a function that returns whether a stored value is valid. Values
    of ``variable_keys`` in the first line may differ when a run resumes.
    """

    kind: str
    step: str
    proposal_keys: dict[str, Callable[[object], bool]]
    result_keys: dict[str, Callable[[object], bool]]
    variable_keys: tuple[str, ...] = ()


class RunFile:
    """The checkpoint of a run, with the steps stored in it; if ``log`` is None, nothing is stored.

    ``about`` has values that identify the run, by name; without a "seed", that in the file is used, or a new one drawn.
    ``header`` is the first line of the file, and ``rows`` has the steps that it held when it was opened, by number.
    ``differing`` has, by ``variable_keys`` of the format, (value on file, value of this run) if these differ. Raise if
    the file belongs to another run, has another format, is damaged or cannot be written.
    """

    def __init__(self, log: JsonLines | None, form: CheckpointFormat, about: dict[str, Any]) -> None:
        self.path, self.form, self.rows = log and log.path, form, dict[int, dict[str, Any]]()
        self._log, self._has_differed, self.differing = log, False, dict[str, tuple[Any, Any]]()
        if log is not None and log.lines:
            self.header = log.lines[0]
            self._check({"seed": self.header.get("seed")} | about)
            self._read(log.lines[1:])
        else:
            self.header = {"seed": run_seed(None)} | about
            if log is not None:
                log.append({form.kind: _FORMAT_VERSION, "version": version_with_commit(), **self.header})
        self.seed: int = self.header["seed"]

    def _check(self, about: dict[str, Any]) -> None:
        """Raise unless the first line of the file matches ``about``, apart from the ``variable_keys`` of its format."""
        header = self.header
        if not is_index(header.get("seed")) or not is_index(header.get("batch", 1)):
            self.raise_damaged(0)
        if (found := header[self.form.kind]) != _FORMAT_VERSION:
            raise InputError(
                f"the checkpoint {self.path} has format {quote(found)}, but this emsopt reads format {_FORMAT_VERSION}"
                f". Resume with emsopt {quote(header.get('version'), str)}, which wrote it, or name another file."
            )
        about = json.loads(json.dumps(about))  # tuples become lists, as on file
        pairs = {key: (header.get(key), value) for key, value in about.items()}
        self.differing = {key: pair for key, pair in pairs.items() if not _equal_values(*pair)}
        for key in [key for key in self.differing if key not in self.form.variable_keys]:
            before, now = map(quote, self.differing[key])
            raise InputError(
                f"the checkpoint {self.path} belongs to another run: its {key} is {before}, but that of this run is "
                f"{now}. Resume with the same problem, method, options and rng, or name another file."
            )

    def _read(self, lines: list[dict[str, Any]]) -> None:
        """Store the steps in the lines after the first in ``rows``; raise if one is damaged or out of order."""
        step, batch = self.form.step, self.header.get("batch", 1)  # those of a batch are stored in any order
        checks = {step: is_index, **self.form.proposal_keys, **self.form.result_keys, "seconds": is_number}
        for line, row in enumerate(lines, 1):
            valid = row.keys() == checks.keys() and all(checks[name](value) for name, value in row.items())
            if not valid or not 1 <= row[step] < line + batch or row[step] in self.rows:
                self.raise_damaged(line)
            self.rows[row[step]] = row

    def raise_damaged(self, number: int) -> NoReturn:
        """Raise the error for a damaged line: 0 is the description of the run, k ≥ 1 the k-th stored step."""
        assert self._log is not None
        self._log.raise_damaged(number + 1)

    def warn_if_different(self, number: int, *proposed: object) -> None:
        """Warn, once per run, if stored step ``number`` differs from ``proposed``, which the run proposes now."""
        before = [self.rows[number][name] for name in self.form.proposal_keys]
        # once: later steps differ as a consequence
        if not self._has_differed and not _equal_values(before, list(proposed)):
            self._has_differed = True
            warn(
                f"{self.form.step} {number} in the checkpoint {self.path} holds {quote(before)}, but the run would now "
                f"ask for {quote(list(proposed))}: the file was written on another processor, with other versions of "
                "the libraries, or with other options. The run continues with the stored steps.",
                ResumeWarning,
            )

    def add(self, number: int, **values: object) -> None:
        """Append a step; it is on disk when this returns."""
        if self._log is not None:
            self._log.append({self.form.step: number, **values})


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a real number with absolute value below 1e300."""
    return _validate.is_real(value) and abs(value) < 1e300


def is_index(value: object) -> bool:
    """Return whether ``value`` is a whole number of at least 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def are_numbers(values: object) -> bool:
    """Return whether ``values`` is a list of numbers for which `is_number` is true."""
    return isinstance(values, list) and all(map(is_number, values))


def are_indices(values: object) -> bool:
    """Return whether ``values`` is a list of whole numbers from 0 to 2³¹ - 1."""
    return isinstance(values, list) and all(is_index(value) and value < 2**31 for value in values)


def run_seed(rng: Rng) -> int:
    """Return the seed of a run: ``rng`` itself if it is a whole number, else drawn from it (None: at random)."""
    if _validate.is_real(rng):
        return _validate.whole_number(rng, "rng", low=0)
    return int(_validate.generator(rng).integers(2**63))


def random_stream(seed: int, *purpose: int) -> np.random.Generator:
    """Return a random generator that depends on a run's seed and on whole numbers for its use, such as a step's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


def array_summary(*arrays: ArrayLike) -> dict[str, Any]:
    """Return a few numbers by which `RunFile` tells arrays from others: rounding errors hardly change them.

    They are the shapes; as ``scale`` the sum S of the absolute values of all numbers x_k; and as ``weighted`` 1 + Σ_k
    w_k x_k / S, where w_k is the fractional part of k (√5 - 1) / 2 for k = 1, 2, ... (1 if S is 0).
    """
    numbers = np.concatenate([np.ravel(array).astype(float) for array in arrays])
    weights = np.modf(np.arange(1, len(numbers) + 1) * (math.sqrt(5) - 1) / 2)[0]
    scale = np.abs(numbers).sum()
    return {
        "shapes": [list(np.shape(array)) for array in arrays],
        "scale": float(scale),
        "weighted": float(1 + weights @ numbers / scale) if scale > 0 else 1.0,
    }


def _equal_values(one: Any, other: Any) -> bool:
    """Return whether two values from JSON are equal, floats within `RELATIVE_TOLERANCE` or 1e-12."""
    if isinstance(one, float) and is_number(other):
        return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12)
    if type(one) is not type(other):  # as True == 1
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal_values(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal_values, one, other))
    return bool(one == other)
