"""Read the arrays of a published pickle without importing or calling anything that it names.

Two published files that the package uses are pickles. They are identified by their checksums, and no other
file is read. The pickle module is not used. Instead, the few instructions below are interpreted on a stack of
plain values: a class is represented by its name, and a call by a record of its arguments. Arrays and numbers
are reconstructed from NumPy's records; all other records are ignored.
"""

import hashlib
import pickletools
from pathlib import Path

import numpy as np

from ..errors import InputError

ARRAY, SCALAR = (f"numpy.core.multiarray {name}" for name in ("_reconstruct", "scalar"))
PLAIN_NUMBERS = ("f8", "i8")  # 64-bit floats and integers

VALUES = {
    "BININT",
    "BININT1",
    "BININT2",
    "BINFLOAT",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINBYTES",
    "SHORT_BINBYTES",
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Name(str):
    """Name of a class or function, never resolved."""

    __slots__ = ()


class _Record:
    """The parts of an object: its class, its arguments, and its state, if any."""

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts


def read_arrays(path, sha256):
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
        If the checksum differs, or the file contains anything but plain values, names and records.
    """
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InputError(
            f"{path} was not read: its sha256 is {found}, but that of the published file is {sha256}. "
            "Download it again."
        )
    try:
        entries = {key: _arrays_in(value) for key, value in _value(content).items()}
    except InputError:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        raise InputError(f"{path} is not a readable pickle of numbers ({type(error).__name__}: {error}).") from error
    return {key: arrays[0] for key, arrays in entries.items() if len(arrays) == 1}


def _value(content):
    """Return the content of a pickle, with records instead of objects."""
    stack, marks, memo = [], [], {}

    def popped(n):
        """Pop the last n values, not beyond the last mark."""
        start = len(stack) - n
        if start < (marks[-1] if marks else 0):
            raise ValueError("too few values")
        values = stack[start:]
        del stack[start:]
        return values

    def marked():
        return popped(len(stack) - marks.pop())

    for code, argument, position in pickletools.genops(content):
        name = code.name
        if name in VALUES:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name in EMPTY:
            stack.append(EMPTY[name]())
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE" or name in TUPLES:
            stack.append(tuple(popped(TUPLES[name]) if name in TUPLES else marked()))
        elif name in ("APPEND", "APPENDS"):
            items = popped(1) if name == "APPEND" else marked()
            _last(stack, list).extend(items)
        elif name == "SETITEMS":
            items = marked()
            if not all(type(key) is str for key in items[::2]):
                raise ValueError("a key that is not text")
            _last(stack, dict).update(zip(items[::2], items[1::2], strict=True))
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in ("BINPUT", "MEMOIZE"):
            memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            stack.append(_Name(argument if name == "GLOBAL" else " ".join(popped(2))))
        elif name in ("REDUCE", "NEWOBJ"):
            stack.append(_Record(popped(2)))
        elif name == "BUILD":
            (state,) = popped(1)
            _last(stack, _Record).parts.append(state)
        elif name == "STOP":
            (value,) = popped(len(stack))
            return value
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"instruction {name} at byte {position}, which a pickle of numbers does not need")
    raise ValueError("no end")


def _last(stack, kind):
    if type(stack[-1]) is not kind:
        raise ValueError(f"a {type(stack[-1]).__name__} where a {kind.__name__} is needed")
    return stack[-1]


def _arrays_in(value):
    """Return all arrays contained in a value."""
    found, seen, left = [], set(), [value]
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, (list, tuple)):
            left.extend(item)
        elif isinstance(item, _Record):
            array = _array(item.parts)
            if array is None:
                left.extend(item.parts)
            else:
                found.append(array)
    return found


def _array(parts):
    """Return the array or number described by NumPy's records, or None for other records."""
    if parts[0] == ARRAY:
        _, _, (_, shape, kind, by_column, content) = parts
        return np.frombuffer(content, _dtype(kind)).reshape(shape, order="F" if by_column else "C")
    if parts[0] == SCALAR:
        _, (kind, content) = parts
        return np.frombuffer(content, _dtype(kind), 1)
    return None


def _dtype(record):
    """Return the number type named by a record, one of `PLAIN_NUMBERS`."""
    name, (kind, *_), (_, order, *_) = record.parts
    if name != "numpy dtype" or kind not in PLAIN_NUMBERS or order != "<":
        raise ValueError("an array that does not contain plain 64-bit numbers")
    return np.dtype(order + kind)
