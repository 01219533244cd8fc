"""Read names and numbers from tables, with errors that name the table, the row and the column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, _validate
from ..errors._types import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

LONGITUDE, LATITUDE = ("lon", "longitude", "lng", "intptlon", "intptlong"), ("lat", "latitude", "intptlat")
BLANKS = {  # programs write missing values in many ways; in lower case
    *("", "na", "n/a", "n.a.", "#n/a", "#n/a n/a", "#na", "<na>", "nan", "-nan", "nat", "nil", "none", "(none)"),
    *("null", "(null)", "<null>", "[null]", "\\n", "-", "--", "---", ".", "?", "-999", "-9999", "-99999"),
    *("unknown", "unk", "missing", "undefined", "blank", "(blank)", "empty", "not known", "not available"),
    *("not applicable", "not recorded", "#value!", "#ref!", "#div/0!", "#name?", "#num!", "#null!"),
    *("k.a.", "k. a.", "keine angabe", "unbekannt", "nc", "n.c.", "s/d", "n/d", "n.d.", "onbekend"),
}
DECIMAL_COMMA = re.compile(r"([-+]?\d+),(\d+)", re.ASCII)  # a comma may be decimal or separate thousands
LONG_FORM_COLUMNS = (  # routing programs write one row per pair of places: origin, destination, minutes
    ("from_id", "origin_id", "from", "origin", "site"),
    ("to_id", "destination_id", "to", "destination", "atom"),
    ("travel_time", "travel_time_p50", "travel_time_min", "minutes", "duration_min"),
)
MAX_COLUMNS_SHOWN = 20  # columns per message: more would bury the sentence
FILE_KEY = "emsopt_file"  # key of `DataFrame.attrs`: the file that a table was read from, which messages name
NAMES_KEY = "emsopt_found"  # key of `DataFrame.attrs`: the columns of the file, for messages
HEADER_KEY = "emsopt_header"  # key of `DataFrame.attrs`: the line of the file that holds the header
CRS_KEY = "emsopt_crs"  # key of `DataFrame.attrs`: the reference system of coordinates in columns; None for degrees


class Table(NamedTuple):
    """A table with lower-case column names, and the names that it (``where``) and its rows have in messages."""

    frame: pd.DataFrame
    where: str
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, argument: str, name_columns: Sequence[str] = ()) -> Table:
        """Make a table from a DataFrame; an index that holds names becomes a column.

        ``argument`` is its name in messages if it was not read from a file. Rows are named by the first of the columns
        ``name_columns`` with distinct cells, or, if there is none of these columns, by the last of them and a number.
        """
        from pandas import DataFrame

        if not isinstance(frame, DataFrame):
            raise InputError(f"`{argument}` must be a pandas DataFrame or a GeoDataFrame; got {type(frame).__name__}.")
        where = table_name(frame, argument)
        if frame.index.nlevels > 1:  # such as osmnx's edges, by u, v and key
            frame = frame.reset_index([key for key in frame.index.names if key not in (None, *frame.columns)])
        columns = [str(column).strip().lower() for column in frame.columns]
        if (repeated := _validate.first_repeated(columns)) is not None:
            raise InputError(f"{where} has more than one column {repeated!r}; {_known_columns(frame)}.")
        if len(frame) == 0:
            raise InputError(f"{where} has no rows; at least one is needed.")
        table = cls(frame.set_axis(columns, axis=1), where)._with_index(name_columns)
        return table._replace(names=table._names(name_columns)) if name_columns else table

    def _with_index(self, name_columns: Sequence[str]) -> Table:
        """Return the table with the index as a column of names, if it holds names and no column does."""
        from pandas.api.types import is_numeric_dtype

        index = self.frame.index
        own = None if index.name is None else str(index.name).strip().lower()
        options = name_columns or (own or "name",)
        named = own in options or not is_numeric_dtype(index)  # numbers only count rows
        if index.nlevels > 1 or not named or self.column(options) is not None:
            return self
        return self._replace(frame=self.frame.rename_axis(options[0]).reset_index())

    def _names(self, options: Sequence[str]) -> tuple[str, ...]:
        """Return names of rows from one of the columns ``options``, else numbered ones; raise unless distinct."""
        keys = [key for key in options if key in self.frame.columns]
        # repeated ids name no row
        key = next((key for key in keys if are_distinct(self.frame[key])), keys[0] if keys else None)
        cells = None if key is None else [text(cell) for cell in self.frame[key]]
        return _validate.names(cells, f"{self.where}, column {key!r}", len(self.frame), options[-1])

    def column(self, options: Iterable[str]) -> str | None:
        """Return the first of the names ``options`` that is a column, or None."""
        return next((option for option in options if option in self.frame.columns), None)

    def require(self, options: Iterable[str], what: str) -> str:
        """Return the first of the names ``options`` that is a column; raise, asking for ``what``, if none is."""
        if (key := self.column(options)) is None:
            raise self.missing_error(what)
        return key

    def missing_error(self, what: str) -> InputError:
        """Return the error that the table needs ``what``; it lists the columns found."""
        return InputError(f"{self.where} needs {what}; {_known_columns(self.frame)}.")

    def numbers(self, key: str, expected: str, *, blanks: bool = False, **limits: Any) -> FloatArray:
        """Return a column as floats, (rows,); ``expected``, ``blanks`` and ``limits`` are as in `_numbers`."""

        def place(index: tuple[int, ...]) -> str:
            name = f" ({self.names[index[0]]!r})" if self.names else ""
            return f"{self.where}, column {key!r}, row {index[0] + 1}{name}"

        return _numbers(self.frame[key].to_numpy(dtype=object), place, expected, blanks=blanks, **limits)

    def with_decimal_points(self, key: str, *, always: bool = False) -> Table:
        """Return the table with decimal commas in a column replaced by points.

        Commas that all have three digits after them may separate thousands, and are replaced only if ``always``.
        """
        cells = self.frame[key].tolist()
        commas = [
            DECIMAL_COMMA.fullmatch(cell.strip()) if isinstance(cell, str) and "," in cell else None for cell in cells
        ]
        if not any(match is not None and (always or len(match[2]) != 3) for match in commas):
            return self
        changed = [f"{match[1]}.{match[2]}" if match else cell for cell, match in zip(cells, commas, strict=True)]
        return self._replace(frame=self.frame.assign(**{key: changed}))


def read_matrix(
    frame: pd.DataFrame, argument: str, sites: Sequence[str], atoms: Sequence[str], expected: str, **limits: Any
) -> FloatArray:
    """Return a table of numbers by site and atom as floats, shape (N, M), in the order of the given names."""
    where = table_name(frame, argument)
    frame = _to_wide(frame, where)
    cells = frame.astype(object).set_axis([*map(text, frame.index)]).set_axis([*map(text, frame.columns)], axis=1)
    if set(cells.index) != set(sites) and set(cells.index) == set(atoms) and set(cells.columns) == set(sites):
        raise InputError(f"{where} is transposed: rows must be sites and columns must be atoms. Pass its `.T`.")
    check_labels(cells.index, sites, where, "row per site")
    check_labels(cells.columns, atoms, where, "column per atom")

    def place(index: tuple[int, ...]) -> str:
        return f"{where}, row {sites[index[0]]!r}, column {atoms[index[1]]!r}"

    return _numbers(cells.loc[list(sites), list(atoms)].to_numpy(), place, expected, **limits)


def _to_wide(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Convert a table of one row per pair of places (as of r5py) to one row per origin; return others unchanged."""
    keys = [next((key for key in frame.columns if str(key).lower() in options), None) for options in LONG_FORM_COLUMNS]
    if any(key is None for key in keys):
        return frame
    start, end, value = keys
    pairs = frame[[start, end]].map(text)
    if pairs.duplicated().any():
        twice = pairs[pairs.duplicated()].iloc[0].tolist()
        raise InputError(f"{where} must have one row per pair of places; it has more than one from and to {twice}.")
    return frame.assign(**pairs).pivot(index=start, columns=end, values=value)


def check_labels(labels: Iterable[str], wanted: Sequence[str], where: str, kind: str) -> None:
    """Raise unless ``labels`` are the ``wanted`` names, each once; ``kind`` says of what, such as "row per site"."""
    got = list(labels)
    repeated = _validate.first_repeated(got)
    absent = [name for name in wanted if name not in set(got)]
    unknown = [name for name in got if name not in set(wanted)]
    problems = [] if repeated is None else [f"{repeated!r} occurs more than once"]
    problems += [f"{len(absent)} of {len(wanted)} names are missing, the first is {absent[0]!r}"] if absent else []
    problems += [f"{unknown[0]!r} is an unknown name"] if unknown else []
    if problems:
        raise InputError(f"{where} must have one {kind}, labelled with its name: {', and '.join(problems)}.")


def _numbers(
    cells: np.ndarray[Any, np.dtype[Any]],
    place: Callable[[tuple[int, ...]], str],
    expected: str,
    *,
    blanks: bool = False,
    low: float = -math.inf,
    high: float = math.inf,
    strictly: bool = False,
) -> FloatArray:
    """Convert an array of objects to floats from ``low`` to ``high``; raise an error for the first that is not one.

    If ``blanks``, blank cells become NaN; if ``strictly``, ``low`` is excluded. ``place`` returns the name of a cell.
    """
    values = to_floats(cells)
    bad = ~np.isfinite(values) | (values < low) | (values > high) | (strictly & (values == low))
    if blanks:
        bad[bad] = ~are_blank(cells[bad])  # only the cells that failed, as comparing words is slow
    if bad.any():
        index = tuple(np.argwhere(bad)[0].tolist())
        cell = _validate.quote(text(cells[index]), str, 80)
        got = f"got {cell!r}" if cell.strip() else "the cell is blank"
        hint = " Use a decimal point, not a comma, and no thousands separator." if "," in cell else ""
        rows = bad if bad.ndim == 1 else None
        raise InputError(f"{place(index)}: expected {expected}, but {got}{more_text(bad)}.{hint}", rows)
    return values


def to_floats(cells: np.ndarray[Any, np.dtype[Any]]) -> FloatArray:
    """Convert an array of objects to floats, also text that reads as a number; other cells become NaN."""
    from pandas.api.types import infer_dtype

    with suppress(OverflowError, TypeError, ValueError):  # raised if a cell is not a number
        if infer_dtype(cells.ravel()) in ("floating", "integer", "string"):
            return cells.astype(float)

    def convert(cell: object) -> float:
        try:
            return _validate.as_float(cell)
        except (TypeError, ValueError):
            return math.nan

    return np.array([convert(cell) for cell in cells.flat], dtype=float).reshape(cells.shape)


def text(cell: object) -> str:
    """Return a cell as text: empty if missing, and whole numbers without a decimal point."""
    if isinstance(cell, str):
        return str(cell)
    if _validate.is_missing(cell):
        return ""
    whole = isinstance(cell, (float, np.floating)) and float(cell).is_integer()
    return _validate.quote(int(cell) if whole else cell, str)  # type: ignore[call-overload]


def texts(cells: Iterable[object]) -> list[str]:
    """Return cells as stripped strings; a missing one becomes "nan", "None" or the like."""
    return [(cell if isinstance(cell, str) else _validate.quote(cell, str)).strip() for cell in cells]


def are_blank(cells: Iterable[object]) -> BoolArray:
    """Return a mask of the blank cells, including those marked with a word in `BLANKS`."""

    def is_blank(cell: object) -> bool:
        if isinstance(cell, float) and cell % 1 > 0:  # as most coordinates; no word in `BLANKS` is such a number
            return False
        return text(cell).strip().lower() in BLANKS

    return np.array([is_blank(cell) for cell in cells], dtype=bool)


def are_distinct(cells: Iterable[object]) -> bool:
    """Return whether all cells are filled and differ as text."""
    words = [text(cell).strip() for cell in cells]
    return all(words) and len(set(words)) == len(words)


def more_text(bad: BoolArray) -> str:
    """Return the text " (and N more like it)", where N + 1 entries of ``bad`` are true; an empty text if N is 0."""
    more = int(bad.sum()) - 1
    return f" (and {more:,} more like it)" if more else ""


def positions_of(names: Sequence[object], kept: Iterable[object]) -> list[int]:
    """Return the positions of those ``names`` that are in ``kept``, ignoring case and surrounding blanks."""
    wanted = {str(name).strip().lower() for name in kept}
    return [k for k, name in enumerate(names) if str(name).strip().lower() in wanted]


def table_name(frame: pd.DataFrame, argument: str) -> str:
    """Return the name of a table for messages: the name of its file if known, else the name of the argument."""
    return str(frame.attrs.get(FILE_KEY, f"`{argument}`"))


def _known_columns(frame: pd.DataFrame) -> str:
    """Return the text "columns found: ...", with the columns of a table or of the file it was read from."""
    return str(frame.attrs.get(NAMES_KEY) or list_columns(frame.columns))


def list_columns(columns: Collection[object]) -> str:
    """Return the text "columns found: ...", with at most `MAX_COLUMNS_SHOWN` names of columns, for messages."""
    more = f" and {len(columns) - MAX_COLUMNS_SHOWN} more" if len(columns) > MAX_COLUMNS_SHOWN else ""
    return "columns found: " + ", ".join(_validate.quote(c, str) for c in islice(columns, MAX_COLUMNS_SHOWN)) + more
