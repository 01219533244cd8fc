"""Read the arrays of a published pickle without importing or calling anything that it names.

Two published files that the package uses are pickles. They are identified by their checksums, and no other file is
read. Every class or function that such a file names is replaced by a `_Record`, which only stores the arguments and the
state that the pickle passes to it. Arrays are reconstructed from NumPy's records; all other records are ignored.
"""

import hashlib
import io
import pickle
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._types import PathLike
from ..errors import InputError

ARRAY, SCALAR = (f"numpy.core.multiarray {name}" for name in ("_reconstruct", "scalar"))
PLAIN_NUMBERS = ("f8", "i8")  # 64-bit floats and integers


class _Record:
    """The arguments and the state that a pickle passes to an object, in the list ``parts``.

    Each class or function that a pickle names is replaced by a subclass of this class, with that name in ``name``.
    """

    name = ""
    parts: list[Any]

    def __new__(cls, *arguments: Any) -> Self:  # a pickle may call this without `__init__`
        record = super().__new__(cls)
        record.parts = list(arguments)
        return record

    def __call__(self, *arguments: Any) -> "_Record":
        return _Record(self, *arguments)

    def __setstate__(self, state: Any) -> None:
        self.parts.append(state)


# The unpickler in C would allocate as much memory as a forged file asks for; the unpickler in Python does not.
class _Reader(pickle._Unpickler):
    """Read a pickle, with a `_Record` in place of every object that is not a plain value."""

    def find_class(self, module: str, name: str) -> type[_Record]:
        return type("_Record", (_Record,), {"name": f"{module} {name}"})

    def get_extension(self, code: int) -> None:
        raise ValueError(f"it uses the extension {code}, which a pickle of numbers does not need")


def read_arrays(path: PathLike, sha256: str) -> dict[str, NDArray[Any]]:
    """Return the arrays in a pickled dict, by key, from a file with a given checksum.

    Parameters
    ----------
    path : path_like
    sha256 : str
        Checksum of the published file, in hexadecimal. It is computed from the same bytes that are then read.

    Returns
    -------
    dict of str to ndarray
        Read-only. Entries with no array or with several arrays are left out.

    Raises
    ------
    InputError
        If the checksum differs, or the file is not a readable pickle of a dict whose keys are text.
    """
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InputError(f"{path} was not read: its sha256 is {found}, but {sha256} was published.")
    try:
        value = _Reader(io.BytesIO(content)).load()
        if not all(isinstance(key, str) for key in value):
            raise ValueError("it has a key that is not text")
        entries = {key: _arrays_in(item) for key, item in value.items()}
    except Exception as error:  # a damaged pickle can fail in any way
        raise InputError(f"{path} is not a readable pickle ({type(error).__name__}: {error}).") from error
    return {key: array for key, arrays in entries.items() if len(arrays) == 1 for array in arrays.values()}


def _arrays_in(value: Any) -> dict[int, NDArray[Any]]:
    """Return all arrays contained in a value at any depth, by the ``id`` of their records, so that each occurs once."""
    arrays: dict[int, NDArray[Any]] = {}
    seen: set[int] = set()
    left = [value]  # a loop instead of recursion, because models nest deeply
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, _Record) and (array := _array(value)) is not None:
            arrays[id(value)] = array
            continue
        inside = value.parts if isinstance(value, _Record) else value
        left += inside.values() if isinstance(inside, dict) else inside if isinstance(inside, (list, tuple)) else ()
    return arrays


def _array(record: _Record) -> NDArray[Any] | None:
    """Return the array that a record of NumPy describes, with one entry for a number; None for other records."""
    if record.name == ARRAY:
        _, _, _, (_, shape, kind, by_column, content) = record.parts
        return np.frombuffer(content, _dtype(kind)).reshape(shape, order="F" if by_column else "C")
    if record.name == SCALAR:
        kind, content = record.parts
        return np.frombuffer(content, _dtype(kind), 1)
    return None


def _dtype(record: _Record) -> np.dtype[Any]:
    """Return the number type named by a record; raise unless it is one of `PLAIN_NUMBERS`, little-endian."""
    kind, _, _, (_, order, *_) = record.parts
    if record.name != "numpy dtype" or kind not in PLAIN_NUMBERS or order != "<":
        raise ValueError("it has an array that does not contain plain 64-bit numbers")
    return np.dtype(order + kind)
