"""Turn what callers pass into arrays, or say clearly why that cannot be done."""

import os
import unicodedata
from pathlib import Path

import numpy as np

from .errors import InputError

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode: controls, formats, surrogates, line ends
JOINERS = "\u200c\u200d"  # unseen too, but part of the spelling of Persian and of Indic scripts


def real_array(values, name, shape, *, unit="", low=None, strictly=False):
    """Return ``values`` as a read-only float array of the given shape.

    Parameters
    ----------
    values : array_like
        What the caller passed.
    name, unit : str
        How the message names it.
    shape : tuple
        Wanted shape; ``None`` in a place accepts any length there.
    low : float, optional
        Smallest admissible value; excluded itself if ``strictly``.
    """
    array = floats(values, name, unit)
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        raise InputError(f"`{name}` must have shape {wanted}; got {array.shape}.")
    if array.size == 0:
        raise InputError(f"`{name}` is empty; at least one value is needed.")
    bad = ~np.isfinite(array)
    if bad.any():
        raise InputError(
            f"`{name}` must be finite{_in(unit)}; {bad.sum()} value(s) are NaN or infinite, the first at {_where(bad)}."
        )
    if low is not None:
        bad = array <= low if strictly else array < low
        if bad.any():
            sign = "greater than" if strictly else "at least"
            raise InputError(
                f"`{name}` must be {sign} {low:g}{_in(unit)}; {bad.sum()} value(s) are not, "
                f"the first at {_where(bad)}: {array[bad][0]:g}."
            )
    array.flags.writeable = False
    return array


def floats(values, name, unit=""):
    """Convert to floats only what is plainly numbers: no text, truth values, complex numbers or masks."""
    if np.ma.isMaskedArray(values):
        raise InputError(f"`{name}` must be plain numbers{_in(unit)}; got an array with a mask. Fill it first.")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        msg = f"`{name}` must be numbers{_in(unit)} in rows of equal length; got {type(values).__name__}: {error}"
        raise InputError(msg) from error
    if array.dtype.kind == "O" and array.size and all(v is None or is_real(v) for v in array.flat):
        # None becomes NaN and an int too large for a float infinity: both are refused by their index
        array = np.array([np.nan if v is None else as_float(v) for v in array.flat]).reshape(array.shape)
    if array.dtype.kind not in "iuf":
        strange = next((v for v in array.flat if not is_real(v)), values)
        msg = f"`{name}` must be real numbers{_in(unit)}; got {type(values).__name__} with {shown(strange)}."
        raise InputError(msg)
    return np.array(array, dtype=float)


def names(values, name, length, prefix):
    """Return ``length`` distinct names, numbered from 1 with ``prefix`` if none were given."""
    if values is None:
        return tuple(f"{prefix} {k + 1}" for k in range(length))
    if isinstance(values, str):
        raise InputError(f"`{name}` must be a sequence of {length} names; got the single string {shown(values)}.")
    if not np.iterable(values):
        raise InputError(f"`{name}` must be a sequence of {length} names; got {shown(values)}.")
    values = list(values)  # a generator can be read only once
    for value in values:
        _check_is_name(value, name)
    result = tuple(visible(value, f"`{name}`") for value in values)
    if len(result) != length:
        raise InputError(f"`{name}` must hold {length} names; got {len(result)}.")
    seen = set()
    for value in result:
        if value in seen:
            raise InputError(f"`{name}` must be distinct; {value!r} occurs more than once. Number the duplicates.")
        if not value.strip():
            raise InputError(f"`{name}` must not be blank; entry {result.index(value)} is.")
        seen.add(value)
    return result


def _check_is_name(value, name):
    """Refuse what is no name: nothing, NaN, an array or a list."""
    try:
        missing = value is None or bool(value != value)  # noqa: PLR0124 - NaN is no name
    except (TypeError, ValueError):  # pandas.NA, arrays
        missing = True
    if missing or (np.iterable(value) and not isinstance(value, str)):
        raise InputError(f"`{name}` must be names, each a text; got {shown(value)}.")


def visible(value, where, allowed=""):
    """Return a value as text, or refuse it if that holds characters that cannot be seen.

    These are line ends and other controls, lone surrogates, which no file can hold, and characters that turn the
    direction of writing, so that a name looks like another.
    """
    text = str(value) if isinstance(value, str) else shown(value, str)
    if not text.isprintable():
        for character in text:
            if unicodedata.category(character) in UNSEEN and character not in JOINERS + allowed:
                msg = f"{where}: {shown(text)} holds a character that cannot be seen, {character!a}. Remove it."
                raise InputError(msg)
    return text


def shown(value, write=repr, most=100):
    """Return how a message shows a value: whatever it is, as text that is not too long."""
    try:
        text = write(value)
    except (
        ValueError,
        RecursionError,
    ):  # an int of over 4300 digits, or one in a list; a list nested too deeply
        size = f" with {value.bit_length()} bits" if isinstance(value, int) else ""
        return f"a value of type {type(value).__name__}{size}"
    return text if len(text) <= most else f"{text[:most]}..."


def as_float(value):
    """Return a real number as a float; an int beyond its range becomes infinite."""
    if value is np.ma.masked:  # which `float` takes for NaN with a warning
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def truth(value, name):
    """Return ``value`` as a bool if it is one: the text "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"`{name}` must be True or False; got {shown(value)}.")
    return bool(value)


def is_real(value):
    """Return whether ``value`` is one real number (not a truth value, text or an array)."""
    # numpy takes a duration for a whole number
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.timedelta64))


def whole_number(value, name, low=1, high=None):
    """Return ``value`` as an int in [low, high]."""
    limit = f"from {low} to {high}" if high is not None else f"of at least {low}"
    # whole numbers as they are: seeds may have more digits than a float holds
    if not is_real(value) or not (isinstance(value, int) or (np.isfinite(value) and int(value) == value)):
        raise InputError(f"`{name}` must be a whole number {limit}; got {shown(value)}.")
    if value < low or (high is not None and value > high):
        raise InputError(f"`{name}` must be a whole number {limit}; got {shown(int(value))}.")
    return int(value)


def generator(rng):
    """Return a random generator from a seed, a generator, or None for one that nobody can repeat."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        msg = f"`rng` must be a whole number of at least 0, a numpy Generator, or None; got {shown(rng)}."
        raise InputError(msg) from None


def finite_number(value, name):
    """Return ``value`` as a finite float."""
    number = as_float(value) if is_real(value) else np.nan
    if not np.isfinite(number):
        raise InputError(f"`{name}` must be a finite number; got {shown(value)}.")
    return number


def positive_number(value, name, unit="", *, zero=False):
    """Return ``value`` as a finite float above zero (or from zero, if ``zero``)."""
    sign = "a number of at least 0" if zero else "a number above 0"
    number = as_float(value) if is_real(value) else np.nan
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise InputError(f"`{name}` must be {sign}{_in(unit)}; got {shown(value)}.")
    return number


def probability(value, name):
    """Return ``value`` as a float above 0 and at most 1."""
    if not is_real(value) or not 0 < value <= 1:
        raise InputError(f"`{name}` must be a probability in (0, 1]; got {shown(value)}.")
    return float(value)


def choice(value, name, options):
    """Return ``value`` if it is one of ``options``."""
    if not isinstance(value, str) or value not in options:
        raise InputError(f"`{name}` must be one of {', '.join(map(repr, options))}; got {shown(value)}.")
    return value


def path(value, name):
    """Return ``value`` as a `Path`, with a leading ``~`` replaced by the home folder."""
    reason = ""
    try:
        result = Path(value).expanduser()
        if os.fspath(value) and b"\0" not in os.fsencode(result):
            return result
    except RuntimeError as error:  # a home folder that is not known
        reason = f" ({error})"
    except (TypeError, UnicodeEncodeError):
        pass
    msg = f"`{name}` must be the path of a file or folder, as text or as a pathlib.Path; got {shown(value)}{reason}."
    raise InputError(msg)


def existing_file(value, name, wanted):
    """Return the path of a file that is there; ``wanted`` says what to give otherwise."""
    result = path(value, name)
    if not os.path.isfile(result):  # the method of `Path` raises on a name that is too long
        raise InputError(f"`{name}`: there is no file {shown(str(result))}; give the path of {wanted}.")
    return result


def instance(value, name, kind, title):
    """Return ``value`` if it is of a class, whose public name is ``title``."""
    if not isinstance(value, kind):
        raise InputError(f"`{name}` must be an {title}; got {type(value).__name__}.")
    return value


def columns(frame, wanted, name="frame", like=""):
    """Check that a DataFrame has some columns, as ``like`` has."""
    has = list(getattr(frame, "columns", ()))
    missing = [column for column in wanted if column not in has]
    if missing:
        example = f", as {like} has" if like else ""
        found = ", ".join(map(str, has)) or "none"
        raise InputError(f"`{name}` must have a column {missing[0]!r}{example}; its columns are {found}.")


def _in(unit):
    return f" ({unit})" if unit else ""


def _where(mask):
    index = tuple(int(i) for i in np.argwhere(mask)[0])
    return f"index {index[0] if len(index) == 1 else index}"
