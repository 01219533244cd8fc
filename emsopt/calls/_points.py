"""Read tables of places from files, DataFrames or uploads, and parse places that stand in one cell.

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
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from .._files import columns, geography
from .._files import formats as _formats
from .._files.columns import Table, are_blank, list_columns, positions_of, table_name, texts
from ..errors import InputError, Message
from ..errors._types import FloatArray, PathLike
from ..errors._validate import existing_file, quote, unwrap

Cells: TypeAlias = Mapping[str, Sequence[object]]
ColumnChoice: TypeAlias = Callable[[str, Sequence[str], Cells], dict[str, str]]

FRAME_READERS = {".parquet": _formats.read_parquet} | dict.fromkeys(geography.LAYER_ENDINGS, geography.read_layer)
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".psv", ".dat", ".log", ".asc", ".out")
GEOJSON_ENDINGS = (".geojson", ".json")
PACKED_ENDINGS = (*(ending + ".gz" for ending in TEXT_ENDINGS + GEOJSON_ENDINGS), ".zip")
ENDINGS = (*TEXT_ENDINGS, *GEOJSON_ENDINGS, *_formats.WORKBOOK_READERS, *FRAME_READERS, *PACKED_ENDINGS)
LARGEST_METRES = 2.1e7  # above all northings of projected coordinates
SOUTHERNMOST_LATITUDE = -60  # latitude of a city; the longitudes of many cities are below it
X_FIRST_NAMES = re.compile(r"lo?ng?(?:itude)?[\W_]*(?:and)?[\W_]*lat|x[\W_]*y", re.IGNORECASE)
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_DECIMAL = r"[-+]?\d+\.\d+"
_PAIR = rf"({_NUMBER})\s*[,;]\s*({_NUMBER})"
_OPEN, _CLOSE = r"[(\[{<]\s*", r"\s*[)\]}>]"
_ADDRESS = r"(?:[^()\[\]]|\([^()\d]*\))*?"  # an address, in which brackets hold no digits
PAIR_FORMS = [
    re.compile(pattern, re.ASCII | re.DOTALL)
    for pattern in (
        rf"(?=.*\.){_PAIR}",  # one decimal point at least, as two whole numbers may be anything
        rf"{_OPEN}{_PAIR}{_CLOSE}",
        rf"(?:{_OPEN})?([-+]?\d+,\d+)\s*[;\s]\s*([-+]?\d+,\d+)(?:{_CLOSE})?",
        rf"{_ADDRESS}{_OPEN}(?=.*\.){_PAIR}{_CLOSE}",
        rf"(?=.*[^\W\d])(?:(?!\d\.\d).)*[\s,;:](?<!\d[\s,;])({_DECIMAL})\s*[,;]\s*({_DECIMAL})",
    )
]
_FLAGS = re.IGNORECASE | re.DOTALL
WKT_POINT = re.compile(
    rf"(?:SRID\s*=\s*(\d+)\s*;)?\s*POINT\s*(?:ZM?|M)?\s*\(\s*({_NUMBER})[\s,]+({_NUMBER})(?:\s+\S+){{0,2}}\s*\)", _FLAGS
)
GEOJSON_POINT = re.compile(
    rf".*\bcoordinates['\"]?\s*[:=]\s*[(\[]\s*({_NUMBER})\s*,\s*({_NUMBER})(?:\s*,\s*{_NUMBER})?\s*[)\]].*", _FLAGS
)
_VALUE = rf"\b['\"]?\s*[:=]?\s*['\"]?({_NUMBER})(?![\d°NSEW]|[.,]\d|\s+[\d°NSEW])"
NAMED_COORDINATES = [
    re.compile(rf"(?<![^\W_])(?:{names}){_VALUE}", re.IGNORECASE)
    for names in ("lon|lng|long|longitude", "lat|latitude")
]
DEGREE_SIGN = re.compile("[°º]")
SEXAGESIMAL = re.compile(
    r"([-+]?)\s*(\d{1,3}(?:[.,]\d+)?)\s*[°º]\s*(?:(\d{1,2}(?:[.,]\d+)?)\s*['′’]\s*)?(?:(\d{1,2}(?:[.,]\d+)?)\s*(?:[\"″”]|'')\s*)?"
    r"([NSEW]?)",
    re.IGNORECASE,
)


def read_table(
    source: PathLike | IO[Any] | pd.DataFrame, argument: str, choose: ColumnChoice, crs: object = None
) -> tuple[Table, dict[str, str]]:
    """Read a table of places; return it, and the names of the columns that ``choose`` selects, by role.

    ``source`` is a file with one of `ENDINGS`, an object with ``name`` and ``read``, or a table; ``argument`` is its
    name in messages. Of a file, only the selected columns are kept. Columns get lower-case names. Geometries are
    converted to degrees; the system of other coordinates is in ``frame.attrs[CRS_KEY]``, by default ``crs``.
    """
    taken: dict[str, str] = {}

    def choose_columns(names: Sequence[str], cells: Mapping[str, Sequence[object]]) -> Collection[str]:
        taken.update(choose(where, names, cells))
        return taken.values()

    if isinstance(source, pd.DataFrame):
        where = table_name(source, argument)
        frame, crs = _read_frame(source, argument, choose_columns, crs)
    else:
        file = open_file(source, argument)
        if file.name.lower().endswith(".zip"):
            content = _formats.read_content(file, _formats.MAX_BYTES, _formats.SPLIT_ADVICE, (".zip",))
            file = _formats.Upload(_formats.name_inside(file), content)
        where = file.name
        frame, crs = _read_file(file, argument, choose_columns, crs)
    if len(frame) > _formats.MAX_ROWS:
        raise InputError(f"{where} has {len(frame):,} rows; at most {_formats.MAX_ROWS:,} can be read.")
    table = Table.of(frame, argument)
    table.frame.attrs[columns.CRS_KEY] = crs
    return table, taken


def _read_file(
    file: Path | _formats.Upload, argument: str, choose: _formats.ColumnChooser, crs: object
) -> tuple[pd.DataFrame, object]:
    """Return the table in a file, and the reference system of its coordinates (None: degrees)."""
    *_, kind = ("", *Path(file.name.lower().removesuffix(".gz")).suffixes)
    if kind in FRAME_READERS:
        return _read_frame(FRAME_READERS[kind](file), argument, choose, crs)
    if kind in TEXT_ENDINGS:
        return _formats.read_csv(file, choose=choose), crs
    if kind in GEOJSON_ENDINGS:
        return _read_geojson(file, choose, crs), None
    if kind in _formats.WORKBOOK_READERS:
        return _formats.WORKBOOK_READERS[kind](file, choose), crs
    kinds = ", ".join([*TEXT_ENDINGS, *GEOJSON_ENDINGS, *_formats.WORKBOOK_READERS, *FRAME_READERS, ".zip"])
    raise InputError(f"{file.name}: expected a file ending in {kinds}; got {kind or 'no ending'!r}.")


def _read_frame(
    source: pd.DataFrame, argument: str, choose: _formats.ColumnChooser, crs: object
) -> tuple[pd.DataFrame, object]:
    """Return a table with its geometry and index as columns, and the system of its coordinates (None: degrees)."""
    frame, _ = geography.geometry_to_columns(source, argument, ("Point",), crs=crs, blanks=True)
    crs = crs if frame is source else None
    if frame.index.nlevels == 1 and frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    if len(frame) > 0:
        head = frame.head(_formats.SAMPLE_ROWS)
        names = list(map(str, frame.columns))
        choose(names, {name: head.iloc[:, k].tolist() for k, name in enumerate(names)})
    return frame, crs


def read_places(table: Table, key: Mapping[str, str]) -> FloatArray:
    """Return longitudes and latitudes in degrees, shape (K, 2), NaN for blank places; ``key`` has columns by role."""
    crs, scale = table.frame.attrs.get(columns.CRS_KEY), 1.0
    if "place" in key:
        table, crs = _split_pairs(table, key["place"], crs)
        names = list(map(str, table.frame))
    else:
        names = [key["lon"], key["lat"]]
        table = table.with_decimal_points(names[0], always=True).with_decimal_points(names[1], always=True)
        first, start = _parse_decimals(table.frame[names].head(_formats.SAMPLE_ROWS))
        scale = _units_per_degree(names, start.dropna())
        if scale != 1 or any(map(DEGREE_SIGN.search, first.to_numpy().ravel())):
            written, numbers = _parse_decimals(table.frame[names])
            table = table._replace(frame=table.frame.assign(**(numbers / scale).astype(object).fillna(written)))
            crs = None
    degrees = geography.read_degrees(table, names[0], names[1], crs)
    if scale != 1 or geography.is_projected(crs):
        degrees[~degrees.any(axis=1)] = np.nan  # programs write 0, 0 for unknown places
    south = degrees[:, 1] < SOUTHERNMOST_LATITUDE
    if south.sum() > (~south & ~np.isnan(degrees[:, 1])).sum():
        got = f"the first place has longitude and latitude {degrees[south][0].tolist()}"
        hint = f"Are {names[0]!r} and {names[1]!r} swapped?"
        raise InputError(f"{table.where}: most latitudes lie south of all cities; {got}. {hint}")
    return degrees


def project(places: FloatArray, middle: tuple[float, float]) -> FloatArray:
    """Project longitudes and latitudes, (K, 2), to a plane on which distances within a city are true, at 180° too.

    Coordinates are in degrees of latitude to the east and north, shape (K, 2); places are within 180° of ``middle``, a
    longitude and a latitude.
    """
    # one scale for all places, as x = lon cos(lat) would turn a step to the north into one to the east as well
    return unwrap(places, middle[0]) * [np.cos(np.radians(middle[1])), 1.0]


def read_text(table: Table, key: str) -> pd.Series[Any]:
    """Return a column as text, with None for blank cells."""
    cells = table.frame[key].tolist()
    filled = [
        None if empty else columns.text(cell).strip() for cell, empty in zip(cells, are_blank(cells), strict=True)
    ]
    return pd.Series(filled, dtype=object)


def _split_pairs(table: Table, name: str, crs: object) -> tuple[Table, object]:
    """Parse a column of places; return a table with a column of x and one of y, and their reference system."""
    cells = table.frame[name].tolist()
    found = pd.DataFrame([parse_place(cell) or NO_PLACE for cell in texts(cells)], columns=Place._fields)
    nowhere = (found["x"] == NO_PLACE.x).to_numpy()
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
    x_first = X_FIRST_NAMES.search(name) or geography.is_projected(crs)
    if pairs.any() and not (x_first or np.abs(first).max() > 90 or np.median(first) < SOUTHERNMOST_LATITUDE):
        points[pairs] = points[pairs, ::-1]
    return table._replace(frame=pd.DataFrame(points, columns=[f"{name} (longitude)", f"{name} (latitude)"])), crs


def _parse_decimals(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the cells of a table as text, and as numbers, NaN for other text; both of its shape."""
    written = pd.DataFrame({name: texts(cells[name].tolist()) for name in cells}, cells.index, dtype=object)
    return written, written.map(parse_decimal).astype(float)


def _units_per_degree(names: Sequence[str], points: pd.DataFrame) -> float:
    """Return by how much coordinates, (K, 2), exceed degrees: 1, or for integers such as -93100000 1e5, 1e6 or 1e7."""
    said = [re.search(r"e_?([567])$|(micro)", name) for name in names]
    most = points.abs().max().to_numpy()
    if not len(points) or (most <= (180, 90)).all():
        return 1.0
    if all(said):
        return float(10 ** int((said[0] and said[0][1]) or 6))
    if most[-1] < LARGEST_METRES or (points % 1).any(axis=None):
        return 1.0
    return next((scale for scale in (1e6, 1e7) if (most <= (180 * scale, 90 * scale)).all()), 1.0)


@contextmanager
def explain_rows() -> Iterator[None]:
    """Add to errors within a ``with`` block that name a row how rows are counted."""
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
    content = source.read(_formats.MAX_BYTES + 1)
    content = content.encode() if isinstance(content, str) else bytes(content)
    return _formats.Upload(Path(str(getattr(source, "name", "upload.csv"))).name, content)


def _read_geojson(file: Path | _formats.Upload, choose: _formats.ColumnChooser, crs: object) -> pd.DataFrame:
    """Return the chosen properties of each feature as a row, with ``lon`` and ``lat`` of its Point, None without."""
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
    frame.attrs.update({columns.FILE_KEY: file.name, columns.NAMES_KEY: list_columns(names)})
    return frame


class Place(NamedTuple):
    """Coordinates that stand in one cell, as text."""

    x: str
    y: str
    pair: bool = False  # whether x may be the latitude, which is decided for the whole column
    crs: str | None = None


NO_PLACE = Place("nan", "nan")  # of a cell that holds no place


def parse_decimal(text: str) -> float | None:
    """Parse a number, or degrees, minutes and seconds such as 45°28'14.7"N, to a float; return None for other texts."""
    if found := SEXAGESIMAL.fullmatch(text):
        degrees, minutes, seconds = (float((part or "0").replace(",", ".")) for part in found.group(2, 3, 4))
        sign = -1 if found[1] == "-" or found[5].upper() in ("S", "W") else 1
        return sign * (degrees + minutes / 60 + seconds / 3600)
    with suppress(ValueError):
        return float(text)
    return None


def parse_place(text: str) -> Place | None:
    """Parse the place in a cell; return None if it has none of the forms that the module's docstring lists."""
    if found := WKT_POINT.fullmatch(text):
        return Place(found[2], found[3], crs=found[1] and f"EPSG:{found[1]}")
    for form in PAIR_FORMS:
        if found := form.fullmatch(text):
            return Place(found[1].replace(",", "."), found[2].replace(",", "."), pair=True)
    if found := GEOJSON_POINT.fullmatch(text):
        return Place(found[1], found[2])
    named = [form.findall(text) for form in NAMED_COORDINATES]
    return Place(named[0][0], named[1][0]) if list(map(len, named)) == [1, 1] else None
