"""Read tables of points from files of several formats, a DataFrame or an upload, with limits on their size."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._files import formats as _formats
from .._files import geography, sheets
from .._files import inflate as _inflate
from .._files.columns import CRS, FILE, FOUND, Table, alike, blank, found, label, texts, without_geometry
from .._validate import existing_file, shown
from ..errors import InputError
from ._places import DEGREE_SIGN, decimal, place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import IO

    from .._types import FloatArray, PathLike
    from ._roles import Choose

TEXT, GEOJSON = (".csv", ".tsv", ".tab", ".txt", ".psv", ".dat", ".log", ".asc", ".out"), (".geojson", ".json")
ENDINGS = (*TEXT, *GEOJSON, *(ending + ".gz" for ending in (*TEXT, *GEOJSON)), *sheets.READERS, *sheets.LAYERS, ".zip")
LONGEST_M = 2.1e7  # above all northings of projected coordinates
SOUTHERNMOST = -60  # latitude of a city; the longitudes of many cities are below it
X_FIRST = re.compile(r"lo?ng?(?:itude)?[\W_]*(?:and)?[\W_]*lat|x[\W_]*y", re.IGNORECASE)


def read_table(
    source: PathLike | IO[Any] | pd.DataFrame, argument: str, choose: Choose, crs: object = None
) -> tuple[Table, dict[str, str]]:
    """Read a table of points.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        A file with one of `ENDINGS`; an object with ``name`` and ``read`` counts as a file.
    argument : str
        Name of the argument, for messages about a source without a name.
    choose : callable
        Function that chooses columns by role, as `_roles.call_columns` returns it. Of a file, only these columns are
        kept, to save memory.
    crs : object
        Reference system of the coordinates, if the source does not say.

    Returns
    -------
    table : Table
        Its columns have lower-case names. Coordinates of a geometry are converted to degrees; other columns are in the
        reference system that ``frame.attrs[CRS]`` names.
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

    kind = ""
    if not isinstance(source, pd.DataFrame):
        file = open_file(source, argument)
        if file.name.lower().endswith(".zip"):
            content = _formats.content_of(file, _formats.MOST_BYTES, _formats.SPLIT, (".zip",))
            file = _inflate.Upload(_inflate.name_inside(file), content)
        where = file.name
        *_, kind = ("", *Path(where.lower().removesuffix(".gz")).suffixes)
        source = sheets.read_layer(file) if kind in sheets.LAYERS else source
    if isinstance(source, pd.DataFrame):
        where = label(source, argument)
        frame, _ = without_geometry(source, argument, ("Point",), crs=crs, blanks=True)
        crs = None if frame is not source else crs
        if frame.index.nlevels == 1 and frame.index.name is not None and frame.index.name not in frame.columns:
            frame = frame.reset_index()
        if len(frame) > 0:
            head = frame.head(_formats.SAMPLE)
            cells = {str(name): head.iloc[:, k].tolist() for k, name in enumerate(frame.columns)}
            choosing(list(map(str, frame.columns)), cells)
    elif kind in TEXT:
        frame = _formats.read_csv(file, choose=choosing, forgiving=True)
    elif kind in GEOJSON:
        frame, crs = _from_geojson(file, choosing, crs), None
    elif kind in sheets.READERS:
        frame = sheets.READERS[kind](file, choosing)
    else:
        kinds = ", ".join([*TEXT, *GEOJSON, *sheets.READERS, *sheets.LAYERS, ".zip"])
        hint = " Save the sheet as .xlsx or .csv." if kind in (".xls", ".xlsb", ".ods") else ""
        raise InputError(f"{where}: expected a file ending in {kinds}; got {kind or 'no ending'!r}.{hint}")
    if len(frame) > _formats.MOST_ROWS:
        raise InputError(f"{where} has {len(frame):,} rows; at most {_formats.MOST_ROWS:,} can be read.")
    table = Table.of(frame, argument)
    table.frame.attrs[CRS] = crs
    return table, taken


def places(table: Table, key: Mapping[str, str]) -> FloatArray:
    """Return longitude and latitude in degrees from two columns, or from one that holds both, shape (rows, 2).

    Places of rows with a blank cell are NaN. ``key`` has the columns by role: "lon" and "lat", or "place". In pairs the
    latitude comes first, unless the column's name, its values or a projected reference system say otherwise.
    """
    crs, scale = table.frame.attrs.get(CRS), 1.0
    if "place" not in key:
        names = [key["lon"], key["lat"]]
        table = table.with_points(names[0], always=True).with_points(names[1], always=True)
        first, start = _decimals(table.frame[names].head(_formats.SAMPLE))
        scale = _scale(names, start.dropna())
        if scale != 1 or any(map(DEGREE_SIGN.search, first.to_numpy().ravel())):
            written, numbers = _decimals(table.frame[names])
            table = table._replace(frame=table.frame.assign(**(numbers / scale).astype(object).fillna(written)))
            crs = None
    else:
        name = key["place"]
        cells = table.frame[name].tolist()
        found = [place(text) for text in texts(cells)]
        bad = ~blank(cells) & np.array([point is None for point in found])
        systems = {point.crs for point in found if point is not None}
        if bad.any() or len(systems) > 1:
            k = int(bad.argmax())
            expected = "a place such as POINT (-93.1 44.9) or (44.9, -93.1), all in one reference system"
            raise InputError(
                f"{table.where}, column {name!r}, row {k + 1}: expected {expected}, but got {shown(cells[k])}.",
                bad if len(systems) < 2 else None,
            )
        crs = next(iter(systems), None) if crs is None else crs
        points = np.array([(None, None) if point is None else point[:2] for point in found], dtype=float)
        pairs = np.array([point is not None and point.pair for point in found])
        first = points[pairs, 0]
        x_first = X_FIRST.search(name) or geography.projected(crs)
        if pairs.any() and not (x_first or np.abs(first).max() > 90 or np.median(first) < SOUTHERNMOST):
            points[pairs] = points[pairs, ::-1]
        names = [f"{name} ({part})" for part in ("longitude", "latitude")]
        table = table._replace(frame=pd.DataFrame(points, columns=names))
    degrees = table.degrees(names[0], names[1], crs)
    if scale != 1 or geography.projected(crs):
        degrees[~degrees.any(axis=1)] = np.nan  # programs write 0, 0 for unknown places
    south = degrees[:, 1] < SOUTHERNMOST
    if south.sum() > (~south & ~np.isnan(degrees[:, 1])).sum():
        got = f"the first place has longitude and latitude {degrees[south][0].tolist()}"
        hint = f"Are {names[0]!r} and {names[1]!r} swapped?"
        raise InputError(f"{table.where}: most latitudes lie south of all cities; {got}. {hint}")
    return degrees


def _decimals(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return cells as texts, and as numbers, NaN where they are none."""
    written = pd.DataFrame({name: texts(cells[name].tolist()) for name in cells}, cells.index, dtype=object)
    return written, pd.DataFrame({name: [*map(decimal, written[name])] for name in cells}, cells.index, dtype=float)


def _scale(names: Sequence[str], points: pd.DataFrame) -> float:
    """Return by how much integers such as millionths of degrees exceed degrees; 1 if they are degrees or lengths.

    The names say so, or no length on earth is so great: `LONGEST_M` is above what projected coordinates reach.
    """
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


def _from_geojson(file: Path | _inflate.Upload, choose: _formats.Choose, crs: object) -> pd.DataFrame:
    """Return one row per feature, with the chosen properties and the coordinates of its Point, converted to degrees.

    The coordinates of a feature without geometry are None.
    """
    points: list[Any] = []
    features = _formats.read_features(file, crs)
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
