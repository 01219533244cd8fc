"""Turn what callers pass into arrays, or say clearly why that cannot be done."""

import numpy as np

from .errors import InputError


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
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        msg = f"`{name}` must be numbers{_in(unit)}; got {type(values).__name__}: {error}"
        raise InputError(msg) from error
    wanted = (
        "("
        + ", ".join("any" if n is None else str(n) for n in shape)
        + ("," if len(shape) == 1 else "")
        + ")"
    )
    if array.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, array.shape, strict=True)
    ):
        msg = f"`{name}` must have shape {wanted}; got {array.shape}."
        raise InputError(msg)
    if array.size == 0:
        msg = f"`{name}` is empty; at least one value is needed."
        raise InputError(msg)
    bad = ~np.isfinite(array)
    if bad.any():
        msg = f"`{name}` must be finite{_in(unit)}; {bad.sum()} value(s) are NaN or infinite, the first at {_where(bad)}."
        raise InputError(msg)
    if low is not None:
        bad = array <= low if strictly else array < low
        if bad.any():
            sign = "greater than" if strictly else "at least"
            msg = (
                f"`{name}` must be {sign} {low:g}{_in(unit)}; {bad.sum()} value(s) are not, "
                f"the first at {_where(bad)}: {array[bad][0]:g}."
            )
            raise InputError(msg)
    array.flags.writeable = False
    return array


def names(values, name, length, prefix):
    """Return ``length`` distinct names, numbered from 1 with ``prefix`` if none were given."""
    if values is None:
        return tuple(f"{prefix} {k + 1}" for k in range(length))
    if isinstance(values, str):
        msg = f"`{name}` must be a sequence of {length} names; got the single string {values!r}."
        raise InputError(msg)
    result = tuple(str(value) for value in values)
    if len(result) != length:
        msg = f"`{name}` must hold {length} names; got {len(result)}."
        raise InputError(msg)
    seen = set()
    for value in result:
        if value in seen:
            msg = f"`{name}` must be distinct; {value!r} occurs more than once. Number the duplicates."
            raise InputError(msg)
        if not value.strip():
            msg = f"`{name}` must not be blank; entry {result.index(value)} is."
            raise InputError(msg)
        seen.add(value)
    return result


def whole_number(value, name, low=1, high=None):
    """Return ``value`` as an int in [low, high]."""
    limit = f"from {low} to {high}" if high is not None else f"of at least {low}"
    is_whole = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_whole or not np.isfinite(value) or int(value) != value:
        msg = f"`{name}` must be a whole number {limit}; got {value!r}."
        raise InputError(msg)
    if value < low or (high is not None and value > high):
        msg = f"`{name}` must be a whole number {limit}; got {int(value)}."
        raise InputError(msg)
    return int(value)


def positive_number(value, name, unit="", *, zero=False):
    """Return ``value`` as a finite float above zero (or from zero, if ``zero``)."""
    sign = "a number of at least 0" if zero else "a number above 0"
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        msg = f"`{name}` must be {sign}{_in(unit)}; got {value!r}."
        raise InputError(msg) from error
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        msg = f"`{name}` must be {sign}{_in(unit)}; got {value!r}."
        raise InputError(msg)
    return number


def choice(value, name, options):
    """Return ``value`` if it is one of ``options``."""
    if not isinstance(value, str) or value not in options:
        msg = f"`{name}` must be one of {', '.join(map(repr, options))}; got {value!r}."
        raise InputError(msg)
    return value


def _in(unit):
    return f" ({unit})" if unit else ""


def _where(mask):
    index = tuple(int(i) for i in np.argwhere(mask)[0])
    return f"index {index[0] if len(index) == 1 else index}"
