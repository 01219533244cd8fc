"""Read the arrays of a published pickle as data: nothing in the file is imported, made or called.

Two published files that the package uses are pickles. They are recognised by their checksums, and no other file is read. The
pickle module is not used either: of its instructions, the few below are followed on a stack of plain values, where a
named class is no more than its name and a call no more than a record of what it was made of. An array or a number is
taken from the records that NumPy leaves of it; all else is left where it is.
"""

import hashlib
import pickletools
from pathlib import Path

import numpy as np

from ..errors import InputError

ARRAY, SCALAR = (f"numpy.core.multiarray {name}" for name in ("_reconstruct", "scalar"))
PLAIN_NUMBERS = ("f8", "i8")  # 64 bits, floating-point or whole

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
    """Name of a class or function, which stays a name."""

    __slots__ = ()


class _Record:
    """What an object would have been made of: its class, its arguments, and its state if one follows."""

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts


def read_arrays(path, sha256):
    """Return the arrays in a pickled dict, by key, from a file with a given checksum.

    Parameters
    ----------
    path : path_like
    sha256 : str
        Checksum of the published file, in hexadecimal digits. It is taken of the very bytes that are then read.

    Returns
    -------
    dict of str to ndarray
        Read-only. Entries that hold no array, or several, are left out.

    Raises
    ------
    InputError
        If the file is another one, or holds anything but plain values, names and records.
    """
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        msg = f"{path} was not read: it has the sha256 {found}, and the published file has {sha256}. Fetch it again."
        raise InputError(msg)
    try:
        entries = {key: _arrays_in(value) for key, value in _value(content).items()}
    except InputError:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        msg = f"{path} is not a readable pickle of numbers ({type(error).__name__}: {error})."
        raise InputError(msg) from error
    return {key: arrays[0] for key, arrays in entries.items() if len(arrays) == 1}


def _value(content):
    """Return what a pickle holds, with records in place of objects."""
    stack, marks, memo = [], [], {}

    def popped(n):
        """Take the last n values, none from before the last mark."""
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
                raise ValueError("a key that is no text")
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
            msg = f"instruction {name} at byte {position}, which a pickle of numbers has no need of"
            raise ValueError(msg)
    raise ValueError("no end")


def _last(stack, kind):
    if type(stack[-1]) is not kind:
        msg = f"a {type(stack[-1]).__name__} where a {kind.__name__} is needed"
        raise ValueError(msg)
    return stack[-1]


def _arrays_in(value):
    """Return all arrays within a value."""
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
    """Return the array or number that NumPy's records describe, None if they are not NumPy's."""
    if parts[0] == ARRAY:
        _, _, (_, shape, kind, by_column, content) = parts
        return np.frombuffer(content, _dtype(kind)).reshape(shape, order="F" if by_column else "C")
    if parts[0] == SCALAR:
        _, (kind, content) = parts
        return np.frombuffer(content, _dtype(kind), 1)
    return None


def _dtype(record):
    """Return the type of numbers a record names, one of `PLAIN_NUMBERS`."""
    name, (kind, *_), (_, order, *_) = record.parts
    if name != "numpy dtype" or kind not in PLAIN_NUMBERS or order != "<":
        msg = "an array of anything but plain 64-bit numbers"
        raise ValueError(msg)
    return np.dtype(order + kind)
