"""Check arguments: each function returns the checked value as a number, array, name or path, or raises InputError.

Messages name the argument and say what was expected and what came.
"""

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import InputError
from ._types import ArrayLike, BoolArray, FloatArray, PathLike, Rng

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

# Unicode categories: controls, directions of writing, which can make names look alike, surrogates and line ends.
INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
JOINERS = "\u200c\u200d"  # invisible too, but part of the spelling of Persian and Indic scripts


def real_array(
    values: ArrayLike,
    name: str,
    shape: Sequence[int | None],
    *,
    unit: str = "",
    low: float = -np.inf,
    high: float = np.inf,
    strictly: bool = False,
) -> FloatArray:
    """Return ``values`` as a read-only float array; raise if it is empty, not finite, or not of the required shape.

    In ``shape``, None is any length. Values must be from ``low`` to ``high`` (``unit``), above ``low`` if ``strictly``.
    """
    array = floats(values, name, unit)
    if array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        wanted = str(tuple(None if n is None else int(n) for n in shape)).replace("None", "any")
        raise InputError(f"`{name}` must have shape {wanted}; got {array.shape}.")
    if array.size == 0:
        raise InputError(f"`{name}` is empty; at least one value is needed.")
    too_low = (f"greater than {low:g}", array <= low) if strictly else (f"at least {low:g}", array < low)
    for wanted, bad in (("finite", ~np.isfinite(array)), too_low, (f"at most {high:g}", array > high)):
        if bad.any():
            said = f"{bad.sum()} value(s) are not, the first at {_index_text(bad)}: {array[bad][0]:g}"
            raise InputError(f"`{name}` must be {wanted}{_unit_text(unit)}; {said}.")
    array.flags.writeable = False
    return array


def array_of_length(values: ArrayLike, name: str, n: int, **limits: Any) -> FloatArray:
    """Return an array of n numbers; a single number is repeated. ``limits`` are keyword arguments of `real_array`."""
    each = np.full(n, values) if is_real(values) else values
    return real_array(each, name, (n,), **limits)


def floats(values: ArrayLike, name: str, unit: str = "") -> FloatArray:
    """Convert real numbers to floats, and None to NaN; refuse text, truth values, complex numbers and masked arrays."""
    if np.ma.isMaskedArray(values):
        raise InputError(f"`{name}` must be numbers{_unit_text(unit)}; got an array with a mask. Fill it first.")
    try:
        array: NDArray[Any] = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must be numbers{_unit_text(unit)} in rows of equal length: {error}") from error
    if array.dtype.kind == "O":
        # None becomes NaN, and an int too large for a float becomes infinity; callers refuse both and name their index
        cells = [np.nan if v is None else v for v in array.flat]
        if all(map(is_real, cells)):
            array = np.array([as_float(v) for v in cells]).reshape(array.shape)
    if array.dtype.kind not in "iuf":
        strange = next((v for v in array.ravel().tolist() if not is_real(v)), values)  # as Python's own types
        raise InputError(f"`{name}` must be real numbers{_unit_text(unit)}; got {quote(strange)}.")
    return np.array(array, dtype=float, order="C")  # rows follow each other, as compiled code expects


def check_degrees(points: FloatArray, name: str) -> FloatArray:
    """Return points, shape (n, 2); raise unless all are NaN or valid longitudes and latitudes in degrees."""
    outside = (np.abs(points) > (190, 90)).any(axis=1)  # a city at the date line may go on beyond 180 degrees
    if outside.any():
        got = f"{points[outside][0].tolist()}.{degrees_hint(points)}"
        raise InputError(f"{name} must be longitude and latitude in degrees; got {got}")
    return points


def unwrap(points: FloatArray, lon: float) -> FloatArray:
    """Return points, (n, 2), in degrees, with full turns added so that longitudes are within 180 of ``lon``."""
    return points + [360, 0] * np.round((lon - points) / 360)


def degrees_hint(points: FloatArray, *, plane: bool = True, names: tuple[str, str] | None = None) -> str:
    """Return a sentence, after a space, with the likely reason why points, (n, 2), are not degrees; empty if unknown.

    ``plane`` is whether km may be given instead, ``names`` the two columns that hold the points, if known.
    """
    known = np.abs(points[~np.isnan(points).any(axis=1)])
    longitude, latitude = np.median(known, axis=0) if len(known) else (0, 0)
    if longitude <= 90 < latitude <= 180:
        if names is not None and names[0] != names[1]:
            return f" Columns {names[0]!r} and {names[1]!r} look swapped: {names[1]!r} holds the longitudes."
        return " Latitude and longitude look swapped: longitude comes first."
    if max(longitude, latitude) > 180:
        if not plane:
            return " They look projected: give their reference system by `crs`, such as 'EPSG:3857'."
        return (
            " Convert projected coordinates to degrees (a GeoDataFrame without a CRS needs `set_crs`, a file of areas "
            "`crs`). Coordinates in km need columns x and y, or geographic=False."
        )
    return ""


def names(values: Iterable[object] | None, name: str, length: int, prefix: str) -> tuple[str, ...]:
    """Return ``values`` as a tuple of ``length`` distinct names; None gives ``prefix`` with numbers from 1."""
    if values is None:
        return tuple(f"{prefix} {k + 1}" for k in range(length))
    where = f"`{name}`" if name.isidentifier() else name
    result: dict[str, int] = {}
    for k, value in enumerate(as_tuple(values, where, length, "names"), 1):
        if is_missing(value) or (np.iterable(value) and not isinstance(value, str)):
            raise InputError(f"{where}, entry {k}: a name must be text; got {quote(value)}.")
        text = visible_text(value, f"{where}, entry {k}")
        if not text.strip():
            raise InputError(f"{where}, entry {k}: the name is blank.")
        if result.setdefault(text, k) != k:
            raise InputError(f"{where}: entries {result[text]} and {k} are both {text!r}; names must be distinct.")
    return tuple(result)


def as_tuple(values: Iterable[T], where: str, length: int, kind: str) -> tuple[T, ...]:
    """Return a sequence as a tuple; raise unless it has the given length. ``kind`` names its entries in messages."""
    entries = () if isinstance(values, (str, dict)) or not np.iterable(values) else tuple(values)
    if len(entries) != length:
        raise InputError(f"{where} must be a sequence of {length} {kind}; got {len(entries)}: {quote(values)}.")
    return entries


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas or NumPy."""
    if value is None or value is np.ma.masked:
        return True
    if np.iterable(value):  # text too
        return False
    import pandas as pd

    return bool(pd.isna(value))  # type: ignore[call-overload]


def first_repeated(values: Iterable[K]) -> K | None:
    """Return the first of the values that occur more than once, or None."""
    return next((value for value, count in Counter(values).items() if count > 1), None)


def visible_text(value: object, where: str, allowed: str = "") -> str:
    """Return a value as text; raise if it contains invisible characters, except those in ``allowed``."""
    text = str(value) if isinstance(value, str) else quote(value, str)
    for character in "" if text.isprintable() else text:
        if unicodedata.category(character) in INVISIBLE_CATEGORIES and character not in JOINERS + allowed:
            raise InputError(f"{where}: {quote(text)} contains the invisible character {character!a}. Remove it.")
    return text


def quote(value: object, write: Callable[[Any], str] = repr, most: int = 100) -> str:
    """Return a value, converted by ``write``, as text for a message, cut after ``most`` characters."""
    try:
        text = write(value)
    except (ValueError, RecursionError):  # an int of over 4300 digits, or a list nested too deeply
        size = f" with {value.bit_length()} bits" if isinstance(value, int) else ""
        return f"a value of type {type(value).__name__}{size}"
    return text if len(text) <= most else f"{text[:most]}..."


def as_float(value: Any) -> float:
    """Convert a real number to a float; an int beyond the range of floats becomes infinite."""
    if value is np.ma.masked:  # `float` would convert it to NaN with a warning
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def single_number(value: object) -> float | None:
    """Convert a number, truth value or array with one entry to a float, finite or not; return None for other values."""
    if is_real(value) or value is np.ma.masked:
        return as_float(value)
    if np.ma.isMaskedArray(value):
        return np.nan if np.ma.getmaskarray(value).all() else single_number(np.ma.getdata(value))
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # lists of unequal length, tensors with gradients
        return None
    return float(array.item()) if array.size == 1 and array.dtype.kind in "biuf" else None


def as_bool(value: object, name: str) -> bool:
    """Return ``value`` as a bool; raise unless it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"`{name}` must be True or False; got {quote(value)}.")
    return bool(value)


def is_real(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is a single real number, not a truth value, text or an array."""
    # NumPy counts a timedelta64 as an integer
    numbers = (int, float, np.integer, np.floating)
    return isinstance(value, numbers) and not isinstance(value, (bool, np.timedelta64))


def whole_number(value: object, name: str, low: int = 1, high: int | None = None) -> int:
    """Return ``value`` as an int; raise unless it is a whole number in [low, high]."""
    # an int is not converted to float, because seeds may have more digits than a float
    if is_real(value) and (isinstance(value, int) or (np.isfinite(value) and int(value) == value)):
        value = int(value)
        if value >= low and (high is None or value <= high):
            return value
    limit = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise InputError(f"`{name}` must be a whole number {limit}; got {quote(value)}.")


def generator(rng: Rng) -> np.random.Generator:
    """Return a random generator from a seed or a generator; None gives fresh entropy."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        wanted = "a whole number of at least 0, a Generator or None"
        raise InputError(f"`rng` must be {wanted}; got {quote(rng)}.") from None


def finite_number(value: object, name: str, low: float = -np.inf, high: float = np.inf) -> float:
    """Return ``value`` as a float; raise unless it is a finite number in [low, high]."""
    if is_real(value) and np.isfinite(number := as_float(value)) and low <= number <= high:
        return number
    bounds = "" if low == -np.inf else f" of at least {low:g}" if high == np.inf else f" from {low:g} to {high:g}"
    raise InputError(f"`{name}` must be a finite number{bounds}; got {quote(value)}.")


def positive_number(value: object, name: str, unit: str = "", *, zero: bool = False) -> float:
    """Return ``value`` as a float; raise unless it is finite and positive. With ``zero``, 0 is allowed too."""
    number = as_float(value) if is_real(value) else np.nan
    if np.isfinite(number) and (number > 0 or (zero and number == 0)):
        return number
    kind, sign = "finite number" if np.isinf(number) else "number", "of at least 0" if zero else "above 0"
    raise InputError(f"`{name}` must be a {kind} {sign}{_unit_text(unit)}; got {quote(value)}.")


def probability(value: object, name: str) -> float:
    """Return ``value`` as a float; raise unless it is above 0 and at most 1."""
    if not is_real(value) or not 0 < value <= 1:
        raise InputError(f"`{name}` must be a probability in (0, 1]; got {quote(value)}.")
    return float(value)


def choice(value: object, name: str, options: Iterable[str]) -> str:
    """Return ``value``; raise unless it is one of ``options``."""
    if not isinstance(value, str) or value not in options:
        raise InputError(f"`{name}` must be one of {', '.join(map(repr, options))}; got {quote(value)}.")
    return value


def path(value: PathLike, name: str) -> Path:
    """Return ``value`` as a `Path`, with a leading ``~`` replaced by the home folder."""
    with suppress(RuntimeError, TypeError, UnicodeEncodeError):  # RuntimeError: the home folder is unknown
        result = Path(value).expanduser()
        if os.fspath(value) and b"\0" not in os.fsencode(result):
            return result
    unknown = "; no such home folder is known" if str(value).startswith("~") else ""
    raise InputError(f"`{name}` must be the path of a file or folder, as text or a Path; got {quote(value)}{unknown}.")


def existing_file(value: PathLike, name: str, wanted: str) -> Path:
    """Return the path of a file; raise unless it exists. ``wanted`` describes the file in the message."""
    result = path(value, name)
    if not os.path.isfile(result):  # `Path.is_file` raises if the name is too long
        raise InputError(f"`{name}`: there is no file {quote(str(result))}; give the path of {wanted}.")
    return result


def instance(value: object, name: str, kind: type[T], title: str) -> T:
    """Return ``value``; raise unless it is an instance of ``kind``. ``title`` is the public name of that class."""
    if not isinstance(value, kind):
        raise InputError(f"`{name}` must be an {title}; got {type(value).__name__}.")
    return value


def check_columns(frame: "pd.DataFrame", wanted: Iterable[str], name: str = "frame", like: str = "") -> "pd.DataFrame":
    """Return ``frame``; raise unless it is a table with all ``wanted`` columns. ``like`` is a table that has them."""
    has = list(getattr(frame, "columns", ()))
    missing = [column for column in wanted if column not in has]
    if missing:
        wanted = f"a column {missing[0]!r}" + (f", as {like} has" if like else "")
        raise InputError(f"`{name}` must have {wanted}; it has {', '.join(map(str, has)) or 'none'}.")
    return frame


def nonempty_mapping(value: Any, name: str) -> Mapping[str, Any]:
    """Return a mapping with at least one entry; raise unless ``value`` is one."""
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"`{name}` must be a dict with a name per entry; got {quote(value)}.")
    return value


def _unit_text(unit: str) -> str:
    """Return a unit in parentheses, after a space, for a message; an empty text without a unit."""
    return f" ({unit})" if unit else ""


def _index_text(mask: BoolArray) -> str:
    """Return the text "index i", with the index of the first true value, for a message."""
    index = tuple(int(i) for i in np.argwhere(mask)[0])
    return f"index {index[0] if len(index) == 1 else index}"
