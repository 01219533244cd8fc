"""Extract names and numbers from tables, with errors that name the table, the row and the column."""

import math

import numpy as np
import pandas as pd

from .. import _validate
from ..errors import InputError

MOST_SAID = 20  # maximum number of rows or columns listed in a message
FILE = "emsopt_file"  # key of `DataFrame.attrs`: the name of the file that a table was read from
FOUND = "emsopt_found"  # key of `DataFrame.attrs`: the columns of the file, for messages


def label(frame, argument):
    """Return the name of a table for messages: that of its file, or else that of the argument."""
    return frame.attrs.get(FILE, f"`{argument}`")


def tidy(frame, argument, name_columns):
    """Return a table with lower-case columns, and with names moved from the index to a column.

    Raises
    ------
    InputError
        If it is not a DataFrame, has no rows, or has two columns of the same name.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"`{argument}` must be a pandas DataFrame or a GeoDataFrame; got {type(frame).__name__}.")
    where = label(frame, argument)
    columns = [str(column).strip().lower() for column in frame.columns]
    repeated = first_repeated(columns)
    if repeated is not None:
        raise InputError(f"{where} has more than one column {repeated!r}; {_found(frame)}.")
    if len(frame) == 0:
        raise InputError(f"{where} has no rows; at least one is needed.")
    frame = frame.set_axis(columns, axis=1)
    own = None if frame.index.name is None else str(frame.index.name).strip().lower()
    name_columns = name_columns or (own or "name",)
    index_is_names = own in name_columns or not pd.api.types.is_numeric_dtype(frame.index)
    if frame.index.nlevels == 1 and index_is_names and column(frame, name_columns) is None:
        frame = frame.rename_axis(name_columns[0]).reset_index()
    return frame


def column(frame, options):
    """Return the first option that is a column of a tidy table, or None."""
    return next((option for option in options if option in frame.columns), None)


def missing(frame, where, needed):
    """Build the error for a missing column."""
    msg = f"{where} needs {needed}; {_found(frame)}."
    return InputError(msg)


def names(frame, where, options):
    """Return the distinct names of the rows; without a column of names, rows are numbered from 1."""
    key = column(frame, options)
    if key is None:
        return [f"{options[-1]} {k + 1}" for k in range(len(frame))]
    result = []
    for k, cell in enumerate(frame[key]):
        name = text(cell)
        if not name.strip():
            raise InputError(f"{where}, column {key!r}, row {k + 1}: the name is blank.")
        result.append(_validate.visible(name, f"{where}, column {key!r}, row {k + 1}"))
    repeated = first_repeated(result)
    if repeated is not None:
        rows = [k + 1 for k, name in enumerate(result) if name == repeated]
        more = f" and {len(rows) - MOST_SAID} more" if len(rows) > MOST_SAID else ""
        raise InputError(
            f"{where}, column {key!r}: names must be distinct, but rows {rows[:MOST_SAID]}{more} are all {repeated!r}."
        )
    return result


def text(cell):
    """Return a name as text: empty if missing, and whole numbers without a decimal point."""
    if _is_missing(cell):
        return ""
    if isinstance(cell, str):
        return str(cell)
    whole = isinstance(cell, (float, np.floating)) and float(cell).is_integer()
    return _validate.shown(int(cell) if whole else cell, str)


def numbers(frame, key, where, row_names, expected, **limits):
    """Return a column as floats.

    Parameters
    ----------
    frame : DataFrame
        Tidy table.
    key, where : str
        Column, and the name of the table in messages.
    row_names : sequence of str
        Names of the rows in messages.
    expected : str
        Description of a valid number in messages.
    **limits
        ``low``, ``high`` and ``strictly`` (greater than ``low``), as in `_convert`.
    """

    def place(index):
        return f"{where}, column {key!r}, row {index[0] + 1} ({row_names[index[0]]!r})"

    return _convert(frame[key].to_numpy(dtype=object), place, expected, **limits)


def matrix(frame, argument, sites, atoms, expected, **limits):
    """Return a table of one row per site and one column per atom as floats, in the order of the given names.

    Raises
    ------
    InputError
        If its labels do not match the names, or a cell is not a number within the limits.
    """
    where = label(frame, argument)
    rows, columns = [text(row) for row in frame.index], [text(key) for key in frame.columns]
    if set(rows) != set(sites) and set(rows) == set(atoms) and set(columns) == set(sites):
        raise InputError(f"{where} is transposed: rows must be sites and columns atoms. Pass its transpose, `.T`.")
    for got, wanted, kind in ((rows, sites, "row per site"), (columns, atoms, "column per atom")):
        _match(got, wanted, where, kind)
    cells = frame.to_numpy(dtype=object)[np.ix_(_positions(rows, sites), _positions(columns, atoms))]

    def place(index):
        return f"{where}, row {sites[index[0]]!r}, column {atoms[index[1]]!r}"

    return _convert(cells, place, expected, **limits)


def _positions(labels, wanted):
    place = {name: k for k, name in enumerate(labels)}
    return [place[name] for name in wanted]


def _match(got, wanted, where, kind):
    """Raise unless the labels are the wanted names, in any order."""
    repeated = first_repeated(got)
    absent = [name for name in wanted if name not in set(got)]
    unknown = [name for name in got if name not in set(wanted)]
    if repeated is not None:
        problem = f"{repeated!r} occurs more than once"
    elif absent:
        problem = f"{len(absent)} of {len(wanted)} missing, the first {absent[0]!r}"
        problem += f", and {unknown[0]!r} is not known" if unknown else ""
    elif unknown:
        problem = f"{unknown[0]!r} is not known"
    else:
        return
    raise InputError(
        f"{where} must have one {kind}, labelled with its name: {problem}. "
        "(Arrays without labels follow the order of the tables.)"
    )


def _convert(cells, place, expected, *, low=-math.inf, high=math.inf, strictly=False):
    """Convert an array of objects to floats, or name the first that is not a number within the limits."""

    def problem(cell):
        if _is_missing(cell) or (isinstance(cell, str) and not cell.strip()):
            return "the cell is blank"
        try:
            number = _validate.as_float(cell)
        except (TypeError, ValueError):
            return f"got {_validate.shown(cell)}"
        outside = not math.isfinite(number) or not low <= number <= high or (strictly and number == low)
        return f"got {number:g}" if outside else None

    for index, cell in np.ndenumerate(cells):
        found = problem(cell)
        if found:
            raise InputError(f"{place(index)}: expected {expected}, but {found}.")
    return cells.astype(float)


def floats(cells):
    """Return a column as floats, with NaN where a cell is not a number."""
    try:
        values = pd.to_numeric(cells, errors="coerce")
        if not np.iscomplexobj(values):
            return values.to_numpy(dtype=float, na_value=np.nan)
    except (OverflowError, TypeError, ValueError):  # an int beyond the range of floats
        pass
    return np.array([_float(cell) for cell in cells], dtype=float)


def _float(cell):
    try:
        return _validate.as_float(cell)
    except (TypeError, ValueError):
        return math.nan


def _is_missing(cell):
    nothing = any(cell is kind for kind in (None, pd.NA, pd.NaT, np.ma.masked))
    return nothing or (isinstance(cell, float) and math.isnan(cell))


def first_repeated(values):
    """Return the first value that occurs twice, or None."""
    seen = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _found(frame):
    return frame.attrs.get(FOUND) or found(frame.columns)


def found(columns):
    """Return a list of the columns of a table for messages."""
    more = f" and {len(columns) - MOST_SAID} more" if len(columns) > MOST_SAID else ""
    return "columns found: " + ", ".join(_validate.shown(c, str) for c in columns[:MOST_SAID]) + more
