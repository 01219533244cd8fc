"""Read tables of points from files, DataFrames or uploads, and parse places that stand in one cell.

=========================================  =====================================================================
form                                       example
=========================================  =====================================================================
pair, latitude first, in any brackets      ``44.91, -93.1``; ``[44.91, -93.1]``; ``44,91; -93,1``
the same behind an address                 ``12 Main St, St. Paul (44.91, -93.1)``
well-known text, x first                   ``POINT (-93.1 44.91)``; ``SRID=3857;POINT (-10363844 5607891)``
GeoJSON, x first                           ``{"type": "Point", "coordinates": [-93.1, 44.91]}``
names before the numbers                   ``lat: 44.91, lon: -93.1``; ``{'longitude': '-93.1', 'latitude': '44.91'}``
=========================================  =====================================================================

A cell must have one of these forms from its first character to its last; numbers are never taken from a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from .._files import columns, geography
from .._files import formats as _formats
from .._files.columns import CRS, FILE, FOUND, Table, are_blank, list_columns, positions_of, table_name, texts
from ..errors import InputError, Message
from ..errors._types import BoolArray, FloatArray, PathLike
from ..errors._validate import existing_file, quote

if TYPE_CHECKING:
    from typing import IO

Cells: TypeAlias = Mapping[str, Sequence[object]]
Choose: TypeAlias = Callable[[str, Sequence[str], Cells], dict[str, str]]

FRAMES = {".parquet": _formats.read_parquet} | dict.fromkeys(geography.LAYERS, geography.read_layer)
TEXT, GEOJSON = (".csv", ".tsv", ".tab", ".txt", ".psv", ".dat", ".log", ".asc", ".out"), (".geojson", ".json")
ENDINGS = (*TEXT, *GEOJSON, *(ending + ".gz" for ending in (*TEXT, *GEOJSON)), *_formats.READERS, *FRAMES, ".zip")
LONGEST_M = 2.1e7  # above all northings of projected coordinates
SOUTHERNMOST = -60  # latitude of a city; the longitudes of many cities are below it
X_FIRST = re.compile(r"lo?ng?(?:itude)?[\W_]*(?:and)?[\W_]*lat|x[\W_]*y", re.IGNORECASE)
_N = r"[-+]?\d+(?:\.\d+)?"
_D = r"[-+]?\d+\.\d+"
_PAIR = rf"({_N})\s*[,;]\s*({_N})"
_OPEN, _CLOSE = r"[(\[{<]\s*", r"\s*[)\]}>]"
_BEFORE = r"(?:[^()\[\]]|\([^()\d]*\))*?"  # an address, in which brackets hold no digits
_DECIMAL_COMMAS = r"([-+]?\d+,\d+)\s*[;\s]\s*([-+]?\d+,\d+)"
PAIRS = [
    re.compile(pattern, re.ASCII | re.DOTALL)
    for pattern in (
        rf"(?=.*\.){_PAIR}",  # one decimal point at least, as two whole numbers may be anything
        rf"{_OPEN}{_PAIR}{_CLOSE}",
        rf"(?:{_OPEN})?{_DECIMAL_COMMAS}(?:{_CLOSE})?",
        rf"{_BEFORE}{_OPEN}(?=.*\.){_PAIR}{_CLOSE}",
        rf"(?=.*[^\W\d])(?:(?!\d\.\d).)*[\s,;:](?<!\d[\s,;])({_D})\s*[,;]\s*({_D})",
    )
]
_ANY = re.IGNORECASE | re.DOTALL
WKT = re.compile(
    rf"(?:SRID\s*=\s*(\d+)\s*;)?\s*POINT\s*(?:ZM?|M)?\s*\(\s*({_N})[\s,]+({_N})(?:\s+\S+){{0,2}}\s*\)", _ANY
)
JSON = re.compile(rf".*\bcoordinates['\"]?\s*[:=]\s*[(\[]\s*({_N})\s*,\s*({_N})(?:\s*,\s*{_N})?\s*[)\]].*", _ANY)
_VALUE = rf"\b['\"]?\s*[:=]?\s*['\"]?({_N})(?![\d°NSEW]|[.,]\d|\s+[\d°NSEW])"
NAMED_NUMBERS = [
    re.compile(rf"(?<![^\W_])(?:{names}){_VALUE}", re.IGNORECASE)
    for names in ("lon|lng|long|longitude", "lat|latitude")
]
DEGREE_SIGN = re.compile("[°º]")
DMS = re.compile(
    r"([-+]?)\s*(\d{1,3}(?:[.,]\d+)?)\s*[°º]\s*(?:(\d{1,2}(?:[.,]\d+)?)\s*['′’]\s*)?(?:(\d{1,2}(?:[.,]\d+)?)\s*(?:[\"″”]|'')\s*)?"
    r"([NSEW]?)",
    re.IGNORECASE,
)


def read_table(
    source: PathLike | IO[Any] | pd.DataFrame, argument: str, choose: Choose, crs: object = None
) -> tuple[Table, dict[str, str]]:
    """Read a table of points; return it, and the names of the columns that ``choose`` takes, by role.

    ``source`` is a file with one of `ENDINGS`, an object with ``name`` and ``read``, or a table; ``argument`` is its
    name in messages. Of a file, only the chosen columns are kept. Columns get lower-case names. A geometry is converted
    to degrees; other coordinates are in the system ``frame.attrs[CRS]``, by default ``crs``.
    """
    taken: dict[str, str] = {}

    def choosing(names: Sequence[str], cells: Mapping[str, Sequence[object]]) -> Collection[str]:
        taken.update(choose(where, names, cells))
        return taken.values()

    if isinstance(source, pd.DataFrame):
        where = table_name(source, argument)
        frame, crs = _from_frame(source, argument, choosing, crs)
    else:
        file = _unzip(open_file(source, argument))
        where = file.name
        frame, crs = _from_file(file, argument, choosing, crs)
    if len(frame) > _formats.MOST_ROWS:
        raise InputError(f"{where} has {len(frame):,} rows; at most {_formats.MOST_ROWS:,} can be read.")
    table = Table.of(frame, argument)
    table.frame.attrs[CRS] = crs
    return table, taken


def _from_file(
    file: Path | _formats.Upload, argument: str, choose: _formats.Choose, crs: object
) -> tuple[pd.DataFrame, object]:
    """Return the table in a file, and the reference system of its coordinates."""
    *_, kind = ("", *Path(file.name.lower().removesuffix(".gz")).suffixes)
    if kind in FRAMES:
        return _from_frame(FRAMES[kind](file), argument, choose, crs)
    if kind in TEXT:
        return _formats.read_csv(file, choose=choose), crs
    if kind in GEOJSON:
        return _from_geojson(file, choose, crs), None
    if kind in _formats.READERS:
        return _formats.READERS[kind](file, choose), crs
    kinds = ", ".join([*TEXT, *GEOJSON, *_formats.READERS, *FRAMES, ".zip"])
    raise InputError(f"{file.name}: expected a file ending in {kinds}; got {kind or 'no ending'!r}.")


def _unzip(file: Path | _formats.Upload) -> Path | _formats.Upload:
    """Return the file or, if it is a .zip, the one file in it."""
    if not file.name.lower().endswith(".zip"):
        return file
    content = _formats.read_content(file, _formats.MOST_BYTES, _formats.SPLIT_ADVICE, (".zip",))
    return _formats.Upload(_formats.name_inside(file), content)


def _from_frame(
    source: pd.DataFrame, argument: str, choose: _formats.Choose, crs: object
) -> tuple[pd.DataFrame, object]:
    """Return a table with its geometry and index as columns, and the reference system (None: degrees)."""
    frame, _ = geography.without_geometry(source, argument, ("Point",), crs=crs, blanks=True)
    crs = crs if frame is source else None
    if frame.index.nlevels == 1 and frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    if len(frame) > 0:
        head = frame.head(_formats.SAMPLE_ROWS)
        names = list(map(str, frame.columns))
        choose(names, {name: head.iloc[:, k].tolist() for k, name in enumerate(names)})
    return frame, crs


def read_places(table: Table, key: Mapping[str, str]) -> FloatArray:
    """Return longitude and latitude in degrees, shape (rows, 2), from the columns ``key``; blank places are NaN."""
    crs, scale = table.frame.attrs.get(CRS), 1.0
    if "place" in key:
        table, crs = _split_pairs(table, key["place"], crs)
        names = list(map(str, table.frame))
    else:
        names = [key["lon"], key["lat"]]
        table = table.with_decimal_points(names[0], always=True).with_decimal_points(names[1], always=True)
        first, start = _decimals(table.frame[names].head(_formats.SAMPLE_ROWS))
        scale = _scale(names, start.dropna())
        if scale != 1 or any(map(DEGREE_SIGN.search, first.to_numpy().ravel())):
            written, numbers = _decimals(table.frame[names])
            table = table._replace(frame=table.frame.assign(**(numbers / scale).astype(object).fillna(written)))
            crs = None
    degrees = geography.degrees(table, names[0], names[1], crs)
    if scale != 1 or geography.is_projected(crs):
        degrees[~degrees.any(axis=1)] = np.nan  # programs write 0, 0 for unknown places
    south = degrees[:, 1] < SOUTHERNMOST
    if south.sum() > (~south & ~np.isnan(degrees[:, 1])).sum():
        got = f"the first place has longitude and latitude {degrees[south][0].tolist()}"
        hint = f"Are {names[0]!r} and {names[1]!r} swapped?"
        raise InputError(f"{table.where}: most latitudes lie south of all cities; {got}. {hint}")
    return degrees


def read_text(table: Table, key: str) -> pd.Series[Any]:
    """Return a column as text, with None for blank cells."""
    cells = table.frame[key].tolist()
    filled = [
        None if empty else columns.text(cell).strip() for cell, empty in zip(cells, are_blank(cells), strict=True)
    ]
    return pd.Series(filled, dtype=object)


def blank_rows(table: Table, rows: BoolArray) -> Table:
    """Return a table with blank cells in some rows; whole numbers stay whole."""
    plain = {name: object for name, cells in table.frame.items() if cells.dtype.kind in "biuf"}
    return table._replace(frame=table.frame.astype(plain).apply(lambda cells: cells.mask(rows)))


def _split_pairs(table: Table, name: str, crs: object) -> tuple[Table, object]:
    """Parse a column of places; return a table with columns for x and y, and their reference system."""
    cells = table.frame[name].tolist()
    found = pd.DataFrame([parse_place(cell) or NOWHERE for cell in texts(cells)], columns=Place._fields)
    nowhere = (found["x"] == NOWHERE.x).to_numpy()
    bad, systems = ~are_blank(cells) & nowhere, found["crs"][~nowhere].unique().tolist()
    if bad.any() or len(systems) > 1:
        k = int(bad.argmax())
        expected = "a place such as POINT (-93.1 44.9) or (44.9, -93.1), all in one reference system"
        raise InputError(
            f"{table.where}, column {name!r}, row {k + 1}: expected {expected}, but got {quote(cells[k])}.",
            bad if len(systems) < 2 else None,
        )
    crs = systems[0] if crs is None and systems else crs
    points, pairs = found[["x", "y"]].to_numpy(float), found["pair"].to_numpy(bool)
    first = points[pairs, 0]
    x_first = X_FIRST.search(name) or geography.is_projected(crs)
    if pairs.any() and not (x_first or np.abs(first).max() > 90 or np.median(first) < SOUTHERNMOST):
        points[pairs] = points[pairs, ::-1]
    return table._replace(frame=pd.DataFrame(points, columns=[f"{name} (longitude)", f"{name} (latitude)"])), crs


def _decimals(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the cells of a table as text, and as numbers, NaN for other text; both of its shape."""
    written = pd.DataFrame({name: texts(cells[name].tolist()) for name in cells}, cells.index, dtype=object)
    return written, pd.DataFrame(
        {name: [*map(parse_decimal, written[name])] for name in cells}, cells.index, dtype=float
    )


def _scale(names: Sequence[str], points: pd.DataFrame) -> float:
    """Return the units per degree, by names and sizes of the columns: 1, or 1e5, 1e6 or 1e7 for whole numbers."""
    said = [re.search(r"e_?([567])$|(micro)", name) for name in names]
    most = points.abs().max().to_numpy()
    if not len(points) or (most <= (180, 90)).all():
        return 1.0
    if all(said):
        return float(10 ** int((said[0] and said[0][1]) or 6))
    if most[-1] < LONGEST_M or (points % 1).any(axis=None):
        return 1.0
    return next((scale for scale in (1e6, 1e7) if (most <= (180 * scale, 90 * scale)).all()), 1.0)


@contextmanager
def explain_rows() -> Iterator[None]:
    """Within a ``with`` block, append to errors that name a row how rows are counted."""
    try:
        yield
    except InputError as error:
        if not re.match(r"[^`].*, row \d", str(error), re.DOTALL):
            raise
        parts = (*Message.of(error).parts, " (Rows are counted from 1, without the header.)")
        raise InputError(Message(*parts), error.rows) from error


def open_file(source: PathLike | IO[Any], argument: str) -> Path | _formats.Upload:
    """Return the path of an existing file, or the name and content of an open file as an `Upload`."""
    if not hasattr(source, "read"):
        return existing_file(source, argument, "a file, or pass an open file or a table")
    content = source.read(_formats.MOST_BYTES + 1)
    content = content.encode() if isinstance(content, str) else bytes(content)
    return _formats.Upload(Path(str(getattr(source, "name", "upload.csv"))).name, content)


def _from_geojson(file: Path | _formats.Upload, choose: _formats.Choose, crs: object) -> pd.DataFrame:
    """Return one row per feature: the chosen properties, and ``lon`` and ``lat`` of its Point, None if it has none."""
    rows = []
    for k, (properties, geometry) in enumerate(geography.read_features(file, crs), 1):
        is_point = isinstance(geometry, dict) and geometry.get("type") == "Point"
        at = geometry.get("coordinates") if is_point else None
        if geometry is not None and not (isinstance(at, list) and len(at) > 1):
            raise InputError(f"{file.name}, feature {k}: expected a Point, but got {quote(geometry, most=80)}.")
        own = {key: cell for key, cell in properties.items() if key.strip().lower() not in ("lon", "lat")}
        rows.append(own | dict(zip(("lon", "lat"), at or (None, None), strict=False)))
    frame = pd.DataFrame(rows, dtype=object)
    names, head = list(frame.columns), frame.head(_formats.SAMPLE_ROWS)
    chosen = choose(names, {name: head[name].tolist() for name in names})
    frame = frame.iloc[:, positions_of(names, [*chosen, "lon", "lat"])]
    frame.attrs.update({FILE: file.name, FOUND: list_columns(names)})
    return frame


class Place(NamedTuple):
    """Coordinates in one cell, as text."""

    x: str
    y: str
    pair: bool = False  # whether x may be the latitude, which is decided for the whole column
    crs: str | None = None


NOWHERE = Place("nan", "nan")  # of a cell that holds no place


def parse_decimal(text: str) -> float | None:
    """Parse a number, or degrees, minutes and seconds such as 45°28'14.7"N, to a float; return None for other texts."""
    if found := DMS.fullmatch(text):
        degrees, minutes, seconds = (float((part or "0").replace(",", ".")) for part in found.group(2, 3, 4))
        sign = -1 if found[1] == "-" or found[5].upper() in ("S", "W") else 1
        return sign * (degrees + minutes / 60 + seconds / 3600)
    with suppress(ValueError):
        return float(text)
    return None


def parse_place(text: str) -> Place | None:
    """Parse the place in a cell; return None if it has none of the forms that the module's docstring lists."""
    if found := WKT.fullmatch(text):
        return Place(found[2], found[3], crs=found[1] and f"EPSG:{found[1]}")
    for form in PAIRS:
        if found := form.fullmatch(text):
            return Place(found[1].replace(",", "."), found[2].replace(",", "."), pair=True)
    if found := JSON.fullmatch(text):
        return Place(found[1], found[2])
    named = [form.findall(text) for form in NAMED_NUMBERS]
    return Place(named[0][0], named[1][0]) if list(map(len, named)) == [1, 1] else None
