"""Read tables of points, with limits on their size, from CSV, GeoJSON, a DataFrame or an upload."""

from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._files import columns as _columns
from .._files import plain as _plain
from .._validate import existing_file, shown
from ..errors import InputError

LONGITUDE, LATITUDE = ("lon", "longitude", "lng"), ("lat", "latitude")
BLANK = ("", "na", "n/a", "nan", "null", "none", "-")  # how programs write a missing value


class Table(NamedTuple):
    """The rows of a file and its name in messages."""

    frame: pd.DataFrame  # lower-case column names; locations, if any, in "lon" and "lat"
    where: str

    def column(self, options, needed):
        """Return the first option that is a column. If none is: None, or an error with ``needed``."""
        found = _columns.column(self.frame, options)
        if found is None and needed:
            raise _columns.missing(self.frame, self.where, needed)
        return found

    def numbers(self, column, expected, *, low, high, strictly=False):
        """Return a column as floats, with NaN for blanks; raise for any other cell outside the range."""
        cells = self.frame[column]
        values = _columns.floats(cells)
        unread = ~np.isfinite(values)
        unread[unread] = ~blank(cells[unread])
        with np.errstate(invalid="ignore"):
            outside = (values < low) | (values > high) | (strictly & (values == low))
        bad = unread | outside
        if bad.any():
            k = int(np.argmax(bad))
            cell = shown(cells.iloc[k], str, 80)
            hint = " Use a decimal point, not a comma, and no thousands separator." if "," in cell else ""
            raise InputError(
                f"{self.where}, column {column!r}, row {k + 1}: expected {expected}, but got {cell!r}"
                f"{others(bad)}.{hint}"
            )
        return values

    def points(self):
        """Return longitude and latitude in degrees, shape (rows, 2), with NaN where either is blank."""
        x = self.column(LONGITUDE, "columns 'lon' and 'lat' (degrees)")
        y = self.column(LATITUDE, "a column 'lat' beside 'lon' (degrees)")
        try:
            longitude = self.numbers(x, "degrees from -180 to 180", low=-180, high=180)
            latitude = self.numbers(y, "degrees from -90 to 90", low=-90, high=90)
        except InputError as error:
            typical = [_typical(self.frame[key]) for key in (x, y)]
            if typical[0] <= 90 < typical[1] <= 180:
                msg = f"{error} Longitude and latitude look swapped."
            elif max(typical) > 180:
                msg = f"{error} Convert projected coordinates to degrees (WGS 84)."
            else:
                raise
            raise InputError(msg) from error
        points = np.column_stack([longitude, latitude])
        points[np.isnan(points).any(axis=1)] = np.nan
        return points


def _typical(cells):
    """Return the median absolute value of the numbers in a column, or 0 if there are no numbers."""
    values = np.abs(_columns.floats(cells))
    values = values[~np.isnan(values)]
    return np.median(values) if values.size else 0.0


def blank(cells):
    """Return a mask of the blank cells, including those marked with a word in `BLANK`."""
    return cells.isna().to_numpy(dtype=bool) | np.array([text.lower() in BLANK for text in texts(cells)], bool)


def texts(cells):
    """Return a column as a list of stripped strings."""
    return [(cell if isinstance(cell, str) else shown(cell, str)).strip() for cell in cells]


def read_table(source, argument, columns):
    """Return a table of points.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        A .csv, .geojson or .json file; an object with ``name`` and ``read`` counts as a file.
    argument : str
        Its name in messages if the source has no name.
    columns : collection of str
        Lower-case names of the columns to read besides the coordinates. Others are skipped to save memory.

    Raises
    ------
    InputError
        If the file does not exist, or is of another type, too large, damaged or empty.
    """
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, argument)
    file = open_file(source, argument)
    kind = Path(file.name).suffix.lower()
    if kind in (".geojson", ".json"):
        frame = _from_geojson(file, columns)
    elif kind == ".csv":
        frame = _plain.read_csv(file, kept={*LONGITUDE, *LATITUDE, *columns})
    else:
        hint = " Save the sheet as CSV." if kind in (".xls", ".xlsx", ".ods") else ""
        msg = f"{file.name}: expected a file ending in .csv or .geojson, but got {kind or 'no ending'!r}.{hint}"
        raise InputError(msg)
    return _checked(frame, argument)


def open_file(source, argument):
    """Return a path, or an upload wrapped to offer the parts of a path that reading needs."""
    if hasattr(source, "read"):
        return _Upload.of(source)
    return existing_file(source, argument, "a file, or pass an open file or a table")


class _Upload(NamedTuple):
    """A file uploaded through a form."""

    name: str
    content: bytes

    @classmethod
    def of(cls, file):
        content = file.read(_plain.MOST_BYTES + 1)
        content = content.encode() if isinstance(content, str) else bytes(content)
        return cls(Path(str(getattr(file, "name", "upload.csv"))).name, content)

    def open(self, _mode):
        return BytesIO(self.content)


def _from_frame(frame, argument):
    geometry = getattr(frame, "geometry", None) if type(frame).__name__ == "GeoDataFrame" else None
    if geometry is None:
        return _checked(frame, argument)
    if not (geometry.geom_type == "Point").all():
        raise InputError(f"`{argument}` must have Point geometries; got {sorted(set(geometry.geom_type.astype(str)))}.")
    points = geometry if geometry.crs is None else geometry.to_crs(4326)
    plain = pd.DataFrame(frame.drop(columns=[geometry.name, *LONGITUDE, *LATITUDE], errors="ignore"))
    return _checked(plain.assign(lon=points.x.to_numpy(), lat=points.y.to_numpy()), argument)


def _checked(frame, argument):
    where = _columns.label(frame, argument)
    if len(frame) > _plain.MOST_ROWS:
        raise InputError(
            f"{where} has {len(frame):,} rows; at most {_plain.MOST_ROWS:,} can be read. Split it, for example by year."
        )
    return Table(_columns.tidy(frame, argument, ()), where)


def _from_geojson(file, columns):
    """Return one row per feature, with the kept properties and the coordinates of its Point."""
    rows, found = [], []
    for k, feature in enumerate(_plain.read_features(file)):
        geometry = feature.get("geometry") if isinstance(feature, dict) else None
        properties = feature.get("properties") if isinstance(feature, dict) else None
        point = geometry.get("coordinates") if isinstance(geometry, dict) else None
        usable = isinstance(point, list) and len(point) >= 2 and isinstance(geometry.get("type"), str)
        if geometry is not None and not (usable and geometry["type"] == "Point"):
            kind = geometry.get("type") if isinstance(geometry, dict) else type(geometry).__name__
            msg = f"{file.name}, feature {k + 1}: expected a Point, but got {shown(kind, most=80)} with {shown(point, str, 80)}."
            raise InputError(msg)
        if properties is not None and not isinstance(properties, dict):
            msg = f"{file.name}, feature {k + 1}: its properties must be an object; got {shown(properties, most=80)}."
            raise InputError(msg)
        found = found or list(properties or ())
        named = [(key.strip().lower(), value) for key, value in (properties or {}).items()]
        row = {key: value for key, value in named if key in columns}
        if len(row) < sum(key in columns for key, _ in named):
            twice = _columns.first_repeated(key for key, _ in named if key in columns)
            raise InputError(f"{file.name}, feature {k + 1} has more than one property {twice!r}. Remove all but one.")
        rows.append(row | ({"lon": point[0], "lat": point[1]} if usable else {"lon": None, "lat": None}))
    frame = pd.DataFrame(rows, dtype=object)
    frame.attrs.update({_columns.FILE: file.name, _columns.FOUND: _columns.found([*found, "lon", "lat"])})
    return frame


def others(bad):
    """Return a note on how many more rows have the same fault, for use after the first in a message."""
    more = int(bad.sum()) - 1
    return f" (and {more:,} more like it)" if more else ""
