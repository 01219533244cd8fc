"""Read the NumPy arrays in a pickle without importing or calling anything else that it names.

Two published files are pickles; `locate.find_data` checks what they contain.
"""

import pickle
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors._types import PathLike

NUMPY_OBJECTS = {  # by name, because NumPy has moved these functions between modules
    "_reconstruct": np.zeros(0).__reduce__()[0],
    "scalar": np.float64(0).__reduce__()[0],
    "ndarray": np.ndarray,
    "dtype": np.dtype,
}


class _PickledObject:
    """Replacement for an object of a pickle that only stores the arguments and state that the pickle has for it."""

    parts: list[Any]

    def __new__(cls, *arguments: Any) -> Self:  # a pickle may call this without `__init__`
        record = super().__new__(cls)
        record.parts = list(arguments)
        return record

    def __call__(self, *arguments: Any) -> "_PickledObject":
        return _PickledObject(self, *arguments)

    def __setstate__(self, state: Any) -> None:
        self.parts.append(state)


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickler with a `_PickledObject` in place of every object that is neither a plain value nor an array."""

    def find_class(self, module: str, name: str) -> Any:
        known = NUMPY_OBJECTS.get(name) if module.split(".")[0] == "numpy" else None
        return type("_PickledObject", (_PickledObject,), {}) if known is None else known


def read_arrays(path: PathLike) -> dict[str, NDArray[Any]]:
    """Return the arrays in a pickled dict, by key, read-only.

    Entries with no array or with several arrays are left out; a number of NumPy counts as an array of one entry.
    """
    with Path(path).open("rb") as file:
        entries = {key: _arrays_in(item) for key, item in _ArrayUnpickler(file).load().items()}
    return {key: array for key, arrays in entries.items() if len(arrays) == 1 for array in arrays.values()}


def _arrays_in(value: Any) -> dict[int, NDArray[Any]]:
    """Return all arrays in a value, at any depth, by their ``id``, so that each occurs once."""
    arrays: dict[int, NDArray[Any]] = {}
    visited: set[int] = set()
    left = [value]  # a loop instead of recursion, because models nest deeply
    while left:
        value = left.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, (np.ndarray, np.generic)):
            arrays[id(value)] = array = np.atleast_1d(value)
            array.flags.writeable = False
            continue
        inside = value.parts if isinstance(value, _PickledObject) else value
        left += inside.values() if isinstance(inside, dict) else inside if isinstance(inside, (list, tuple)) else ()
    return arrays
