"""Read tables of points from files of several formats, a DataFrame or an upload, with limits on their size."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from .._files import formats as _formats
from .._files import inflate as _inflate
from .._files import sheets
from .._files.columns import FILE, FOUND, Table, alike, blank, found, label, texts, without_geometry
from .._validate import existing_file, shown
from ..errors import InputError
from ._roles import PAIR, WKT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import IO

    from .._types import FloatArray, PathLike
    from ._roles import Choose

TEXT, GEOJSON = (".csv", ".tsv", ".tab", ".txt"), (".geojson", ".json")
ENDINGS = (*TEXT, *GEOJSON, *(ending + ".gz" for ending in (*TEXT, *GEOJSON)), *sheets.READERS)


def read_table(
    source: PathLike | IO[Any] | pd.DataFrame, argument: str, choose: Choose
) -> tuple[Table, dict[str, str]]:
    """Read a table of points.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        A file with an ending of `TEXT`, `GEOJSON` or `sheets.READERS`, the first two also with .gz behind it; an object
        with ``name`` and ``read`` counts as a file.
    argument : str
        Name of the argument, for messages about a source without a name.
    choose : callable
        Function that chooses columns by role, as `_roles.call_columns` returns it. Of a file, only these columns are
        kept, to save memory.

    Returns
    -------
    table : Table
        Its columns have lower-case names.
    taken : dict of str to str
        Names of the chosen columns as they stand in the source, by role.

    Raises
    ------
    InputError
        If the file does not exist, or is of another type, too large, damaged or empty.
    """
    taken: dict[str, str] = {}
    where = ""

    def choosing(names: Sequence[str], cells: Mapping[str, Sequence[object]]) -> Collection[str]:
        taken.update(choose(where, names, cells))
        return taken.values()

    if isinstance(source, pd.DataFrame):
        where = label(source, argument)
        frame, _ = without_geometry(source, argument, ("Point",))
        if frame.index.nlevels == 1 and frame.index.name is not None and frame.index.name not in frame.columns:
            frame = frame.reset_index()
        if len(frame) > 0:
            head = frame.head(_formats.SAMPLE)
            cells = {str(name): head.iloc[:, k].tolist() for k, name in enumerate(frame.columns)}
            choosing(list(map(str, frame.columns)), cells)
    else:
        file = open_file(source, argument)
        where = file.name
        *_, kind = ("", *Path(where.lower().removesuffix(".gz")).suffixes)
        if kind in TEXT:
            frame = _formats.read_csv(file, choose=choosing, forgiving=True)
        elif kind in GEOJSON:
            frame = _from_geojson(file, choosing)
        elif kind in sheets.READERS:
            frame = sheets.READERS[kind](file, choosing)
        else:
            kinds = ", ".join([*TEXT, *GEOJSON, *sheets.READERS])
            hint = " Save the sheet as .xlsx or .csv." if kind in (".xls", ".xlsb", ".ods") else ""
            raise InputError(f"{where}: expected a file ending in {kinds}; got {kind or 'no ending'!r}.{hint}")
    if len(frame) > _formats.MOST_ROWS:
        raise InputError(f"{where} has {len(frame):,} rows; at most {_formats.MOST_ROWS:,} can be read.")
    return Table.of(frame, argument), taken


def places(table: Table, key: Mapping[str, str]) -> FloatArray:
    """Return longitude and latitude in degrees from two columns, or from one that holds both, shape (rows, 2).

    Places of rows with a blank cell are NaN. ``key`` has the columns by role: "lon" and "lat", or "place".
    """
    if "place" not in key:
        return (
            table.with_points(key["lon"], always=True)
            .with_points(key["lat"], always=True)
            .degrees(key["lon"], key["lat"])
        )
    cells = table.frame[key["place"]].tolist()
    points = []
    for k, (cell, empty) in enumerate(zip(texts(cells), blank(cells), strict=True), 1):
        wkt, pair = WKT.fullmatch(cell), PAIR.fullmatch(cell)
        if not (wkt or pair or empty):
            expected = "a place such as POINT (-93.1 44.9) or (44.9, -93.1)"
            raise InputError(
                f"{table.where}, column {key['place']!r}, row {k}: expected {expected}, but got {shown(cell)}."
            )
        points.append((wkt[1], wkt[2]) if wkt else (pair[2], pair[1]) if pair else (None, None))
    names = [f"{key['place']} ({part})" for part in ("longitude", "latitude")]
    return table._replace(frame=pd.DataFrame(points, columns=names, dtype=object)).degrees(*names)


@contextmanager
def rows_explained() -> Iterator[None]:
    """Say in errors that name a row of a file how rows are counted."""
    try:
        yield
    except InputError as error:
        if not re.match(r"[^`].*, row \d", str(error), re.DOTALL):
            raise
        raise InputError(f"{error} (Rows are counted from 1, without the header.)") from error


def open_file(source: PathLike | IO[Any], argument: str) -> Path | _inflate.Upload:
    """Return the path of a file, or the content of an open file as an `Upload`; raise if there is no such file."""
    if not hasattr(source, "read"):
        return existing_file(source, argument, "a file, or pass an open file or a table")
    content = source.read(_formats.MOST_BYTES + 1)
    content = content.encode() if isinstance(content, str) else bytes(content)
    return _inflate.Upload(Path(str(getattr(source, "name", "upload.csv"))).name, content)


def _from_geojson(file: Path | _inflate.Upload, choose: _formats.Choose) -> pd.DataFrame:
    """Return one row per feature, with the chosen properties and the coordinates of its Point.

    The coordinates of a feature without geometry are None.
    """
    points: list[Any] = []
    features = _formats.read_features(file)
    for k, (_, geometry) in enumerate(features):
        point: Any = [None, None]
        if geometry is not None:
            point = geometry.get("coordinates") if isinstance(geometry, dict) else None
            if not isinstance(point, list) or len(point) < 2 or geometry.get("type") != "Point":
                raise InputError(f"{file.name}, feature {k + 1}: expected a Point, but got {shown(geometry, most=80)}.")
        points.append(point)
    head = range(min(len(features), _formats.SAMPLE))
    names = list(
        dict.fromkeys(
            key for properties, _ in features for key in properties if key.strip().lower() not in ("lon", "lat")
        )
    )
    cells = {name: [features[k][0].get(name) for k in head] for name in names}
    cells |= {"lon": [points[k][0] for k in head], "lat": [points[k][1] for k in head]}
    chosen = [names[k] for k in alike(names, choose([*names, "lon", "lat"], cells))]
    rows = [
        {name: properties[name] for name in chosen if name in properties} | {"lon": point[0], "lat": point[1]}
        for (properties, _), point in zip(features, points, strict=True)
    ]
    frame = pd.DataFrame(rows, dtype=object)
    frame.attrs.update({FILE: file.name, FOUND: found([*names, "lon", "lat"])})
    return frame
