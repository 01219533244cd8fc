"""Read tables of points from CSV, GeoJSON, a DataFrame or an upload, with limits on their size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from .._files import formats as _formats
from .._files.columns import FILE, FOUND, LATITUDE, LONGITUDE, Table, found, label, without_geometry
from .._validate import existing_file, shown
from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import IO

    from .._types import PathLike


def read_table(source: PathLike | IO[Any] | pd.DataFrame, argument: str, columns: Collection[str]) -> Table:
    """Read a table of points.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        A .csv, .geojson or .json file; an object with ``name`` and ``read`` counts as a file.
    argument : str
        Name of the argument, for messages about a source without a name.
    columns : collection of str
        Lower-case names of the columns to read from a file besides the coordinates. Others are skipped to save memory.
        A DataFrame keeps all its columns.

    Raises
    ------
    InputError
        If the file does not exist, or is of another type, too large, damaged or empty.
    """
    if isinstance(source, pd.DataFrame):
        frame, _ = without_geometry(source, argument, ("Point",))
    else:
        file = open_file(source, argument)
        kind = Path(file.name).suffix.lower()
        if kind == ".csv":
            frame = _formats.read_csv(file, kept={*LONGITUDE, *LATITUDE, *columns})
        elif kind in (".geojson", ".json"):
            frame = _from_geojson(file, columns)
        else:
            hint = " Save the sheet as CSV." if kind in (".xls", ".xlsx", ".ods") else ""
            raise InputError(
                f"{file.name}: expected a file ending in .csv, .geojson or .json; got {kind or 'no ending'!r}.{hint}"
            )
    if len(frame) > _formats.MOST_ROWS:
        raise InputError(
            f"{label(frame, argument)} has {len(frame):,} rows; at most {_formats.MOST_ROWS:,} can be read."
        )
    return Table.of(frame, argument)


def open_file(source: PathLike | IO[Any], argument: str) -> Path | _formats.Upload:
    """Return the path of a file, or the content of an open file as an `Upload`; raise if there is no such file."""
    if not hasattr(source, "read"):
        return existing_file(source, argument, "a file, or pass an open file or a table")
    content = source.read(_formats.MOST_BYTES + 1)
    content = content.encode() if isinstance(content, str) else bytes(content)
    return _formats.Upload(Path(str(getattr(source, "name", "upload.csv"))).name, content)


def _from_geojson(file: Path | _formats.Upload, columns: Collection[str]) -> pd.DataFrame:
    """Return one row per feature, with the properties in ``columns`` and the coordinates of its Point.

    The coordinates of a feature without geometry are None.
    """
    rows: list[dict[str, Any]] = []
    features = _formats.read_features(file)
    for k, (properties, geometry) in enumerate(features):
        point: Any = [None, None]
        if geometry is not None:
            point = geometry.get("coordinates") if isinstance(geometry, dict) else None
            if not isinstance(point, list) or len(point) < 2 or geometry.get("type") != "Point":
                raise InputError(f"{file.name}, feature {k + 1}: expected a Point, but got {shown(geometry, most=80)}.")
        kept = {key: value for key, value in properties.items() if key.strip().lower() in columns}
        rows.append(kept | {"lon": point[0], "lat": point[1]})
    frame = pd.DataFrame(rows, dtype=object)
    named = next((list(properties) for properties, _ in features if properties), [])
    frame.attrs.update({FILE: file.name, FOUND: found([*named, "lon", "lat"])})
    return frame
