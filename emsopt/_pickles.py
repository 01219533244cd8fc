"""How a pickle of numbers is read without running what is in it."""

import pickle

import numpy as np

from .errors import InputError


def read_numbers(path):
    """Read a pickle that holds numbers, text, containers and NumPy arrays, and nothing else.

    Plain unpickling calls whatever the file names. This reader knows three names, those an array is made of, and
    refuses every other before anything is called.

    Parameters
    ----------
    path : path_like
        File to read.

    Raises
    ------
    InputError
        If the file names anything else, or is damaged.
    """
    with open(path, "rb") as file:
        try:
            return _NumbersOnly(file).load()
        except InputError as error:
            msg = f"{path} was not read: {error}"
            raise InputError(msg) from error
        except Exception as error:  # a damaged pickle can fail in any way
            msg = f"{path} is not a readable pickle of numbers ({type(error).__name__}: {error})."
            raise InputError(msg) from error


def read_parameters(path):
    """Read the arrays in a pickle of a TensorFlow model's parameters, without TensorFlow and without running anything.

    The objects that hold the arrays become inert stand-ins, which are only searched for the one array in each. Names
    that such a file has no need of are refused.

    Parameters
    ----------
    path : path_like
        A pickled dict from names to parameters.

    Returns
    -------
    dict of str to ndarray
        Raw values: before whatever transform the model applies.

    Raises
    ------
    InputError
        If the file names anything else, or is damaged.
    """
    with open(path, "rb") as file:
        try:
            content = _ParametersOnly(file).load()
            return {name: _only_array(value, name) for name, value in content.items()}
        except InputError as error:
            msg = f"{path} was not read: {error}"
            raise InputError(msg) from error
        except Exception as error:  # a damaged pickle can fail in any way
            msg = f"{path} is not a readable pickle of parameters ({type(error).__name__}: {error})."
            raise InputError(msg) from error


def _only_array(value, name):
    """Return the one array within a stand-in."""
    found, seen, left = [], set(), [value]
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            found.append(item)
        elif isinstance(item, _StandIn):
            left.append(item.held)
        elif isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, (list, tuple)):
            left.extend(item)
    if len(found) != 1:
        msg = f"parameter {name!r} should hold one array; it holds {len(found)}."
        raise InputError(msg)
    return found[0]


def _scalar(dtype, content):
    """Stand in for NumPy's own constructor of single numbers."""
    if dtype.hasobject:
        msg = "it holds a number of the kind object; only plain numbers are read."
        raise InputError(msg)
    return np.frombuffer(content, dtype, 1)


class _StandIn:
    """Takes the place of an object of a foreign class: keeps what it was made of, does nothing."""

    held = ()

    def __init__(self, *arguments, **named):
        self.held = [arguments, named]

    def __setstate__(self, state):
        self.held = [self.held, state]

    def __call__(self, *arguments, **named):
        return _StandIn(self, *arguments, **named)


def _empty_array(kind, shape, _typecode):
    """Stand in for NumPy's own constructor: an array that the pickle's next step fills."""
    if kind is not np.ndarray:
        msg = f"it holds an array of the kind {kind!r}; only plain arrays are read."
        raise InputError(msg)
    return np.empty(shape, np.int8)


class _NumbersOnly(pickle.Unpickler):
    known = {  # noqa: RUF012 - never changed
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): _empty_array,
        ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    }

    def find_class(self, module, name):
        try:
            return self.known[module, name]
        except KeyError:
            msg = f"it names {module}.{name}, which a file of numbers has no need of and which could do harm."
            raise InputError(msg) from None


class _ParametersOnly(_NumbersOnly):
    holders = frozenset({"gpflow", "tensorflow", "tensorflow_probability"})
    numbers = {  # noqa: RUF012 - never changed
        **_NumbersOnly.known,
        ("numpy.core.multiarray", "scalar"): _scalar,
        ("numpy._core.multiarray", "scalar"): _scalar,
    }

    def find_class(self, module, name):
        if module.split(".")[0] in self.holders or (module, name) == ("functools", "partial"):
            return _StandIn
        try:
            return self.numbers[module, name]
        except KeyError:
            return super().find_class(module, name)
