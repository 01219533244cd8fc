"""Read tables of points from files of several formats, a DataFrame or an upload, with limits on their size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from .._files import formats as _formats
from .._files.columns import FILE, FOUND, Table, alike, found, label, without_geometry
from .._validate import existing_file, shown
from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import IO

    from .._types import PathLike
    from ._roles import Choose


def read_table(
    source: PathLike | IO[Any] | pd.DataFrame, argument: str, choose: Choose
) -> tuple[Table, dict[str, str]]:
    """Read a table of points.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        A .csv, .geojson or .json file; an object with ``name`` and ``read`` counts as a file.
    argument : str
        Name of the argument, for messages about a source without a name.
    choose : callable
        Function that chooses columns by role: from the names of all columns, and the first cells of each by name. Of a
        file, only these columns are kept, to save memory.

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

    def choosing(names: Sequence[str], cells: Mapping[str, Sequence[object]]) -> Collection[str]:
        taken.update(choose(names, cells))
        return taken.values()

    if isinstance(source, pd.DataFrame):
        frame, _ = without_geometry(source, argument, ("Point",))
        if frame.index.name is not None and frame.index.nlevels == 1 and frame.index.name not in frame.columns:
            frame = frame.reset_index()
        head = frame.head(_formats.SAMPLE)
        choosing(
            [str(c) for c in frame.columns], {str(c): head.iloc[:, k].tolist() for k, c in enumerate(frame.columns)}
        )
    else:
        file = open_file(source, argument)
        kind = Path(file.name).suffix.lower()
        if kind == ".csv":
            frame = _formats.read_csv(file, choose=choosing, forgiving=True)
        elif kind in (".geojson", ".json"):
            frame = _from_geojson(file, choosing)
        else:
            hint = " Save the sheet as CSV." if kind in (".xls", ".xlsx", ".ods") else ""
            raise InputError(
                f"{file.name}: expected a file ending in .csv, .geojson or .json; got {kind or 'no ending'!r}.{hint}"
            )
    if len(frame) > _formats.MOST_ROWS:
        raise InputError(
            f"{label(frame, argument)} has {len(frame):,} rows; at most {_formats.MOST_ROWS:,} can be read."
        )
    return Table.of(frame, argument), taken


def open_file(source: PathLike | IO[Any], argument: str) -> Path | _formats.Upload:
    """Return the path of a file, or the content of an open file as an `Upload`; raise if there is no such file."""
    if not hasattr(source, "read"):
        return existing_file(source, argument, "a file, or pass an open file or a table")
    content = source.read(_formats.MOST_BYTES + 1)
    content = content.encode() if isinstance(content, str) else bytes(content)
    return _formats.Upload(Path(str(getattr(source, "name", "upload.csv"))).name, content)


def _from_geojson(file: Path | _formats.Upload, choose: _formats.Choose) -> pd.DataFrame:
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
