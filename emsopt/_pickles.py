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
