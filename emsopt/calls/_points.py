"""Tables of points, from CSV, GeoJSON, a DataFrame or an upload: bounded, and with messages that name the row."""

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
BLANK = ("", "na", "n/a", "nan", "null", "none", "-")  # what programs write where they know nothing


class Table(NamedTuple):
    """Rows of a file, and how messages call it."""

    frame: pd.DataFrame  # columns in lower case; locations, if any, as columns "lon" and "lat"
    where: str

    def column(self, options, needed):
        """Return the name of the first of some columns that is there; without ``needed`` None if none is."""
        found = _columns.column(self.frame, options)
        if found is None and needed:
            raise _columns.missing(self.frame, self.where, needed)
        return found

    def numbers(self, column, expected, *, low, high, strictly=False):
        """Return a column as floats, NaN where blank; refuse whatever is neither blank nor in the range."""
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
            hint = (
                " Write a decimal point, not a comma, and no separator of thousands." if "," in cell else ""
            )
            msg = (
                f"{self.where}, column {column!r}, row {k + 1}: expected {expected}, but got {cell!r}"
                f"{others(bad)}.{hint}"
            )
            raise InputError(msg)
        return values

    def points(self):
        """Return longitude and latitude in degrees, shape (rows, 2), NaN where either is blank."""
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
                msg = f"{error} Coordinates of a map projection have to be converted to degrees (WGS 84)."
            else:
                raise
            raise InputError(msg) from error
        points = np.column_stack([longitude, latitude])
        points[np.isnan(points).any(axis=1)] = np.nan
        return points


def _typical(cells):
    """Return the median size of the numbers in a column, 0 without any."""
    values = np.abs(_columns.floats(cells))
    values = values[~np.isnan(values)]
    return np.median(values) if values.size else 0.0


def blank(cells):
    """Return which cells hold nothing, whatever a program wrote there for it."""
    return cells.isna().to_numpy(dtype=bool) | np.array(
        [text.lower() in BLANK for text in texts(cells)], bool
    )


def texts(cells):
    """Return a column as a list of texts without space around them."""
    return [(cell if isinstance(cell, str) else shown(cell, str)).strip() for cell in cells]


def read_table(source, argument, columns):
    """Return a table of points.

    Parameters
    ----------
    source : path_like, file, DataFrame or GeoDataFrame
        A file ending in .csv, .geojson or .json; anything with ``name`` and ``read`` counts as one.
    argument : str
        How messages call it if it has no name.
    columns : collection of str
        What is read of a file besides places, in lower case: the rest would only take memory.

    Raises
    ------
    InputError
        If there is no such file, it is of another kind, too large, broken or empty.
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
        msg = f"{file.name}: a file of points ends in .csv or .geojson; got {kind or 'no ending'!r}.{hint}"
        raise InputError(msg)
    return _checked(frame, argument)


def open_file(source, argument):
    """Return a path, or an upload with as much of a path's manners as reading needs."""
    if hasattr(source, "read"):
        return _Upload.of(source)
    return existing_file(source, argument, "a file, or pass an open file or a table")


class _Upload(NamedTuple):
    """A file that came through a form."""

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
        msg = f"`{argument}` must have points as its geometry; got {sorted(set(geometry.geom_type.astype(str)))}."
        raise InputError(msg)
    points = geometry if geometry.crs is None else geometry.to_crs(4326)
    plain = pd.DataFrame(frame.drop(columns=[geometry.name, *LONGITUDE, *LATITUDE], errors="ignore"))
    return _checked(plain.assign(lon=points.x.to_numpy(), lat=points.y.to_numpy()), argument)


def _checked(frame, argument):
    where = _columns.label(frame, argument)
    if len(frame) > _plain.MOST_ROWS:
        msg = (
            f"{where} has {len(frame):,} rows; at most {_plain.MOST_ROWS:,} are read. Split it by year, say."
        )
        raise InputError(msg)
    return Table(_columns.tidy(frame, argument, ()), where)


def _from_geojson(file, columns):
    """Return one row per feature: the properties to be kept, and the coordinates of its point."""
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
            msg = f"{file.name}, feature {k + 1} has more than one property {twice!r}. Remove all but one."
            raise InputError(msg)
        rows.append(row | ({"lon": point[0], "lat": point[1]} if usable else {"lon": None, "lat": None}))
    frame = pd.DataFrame(rows, dtype=object)
    frame.attrs.update({_columns.FILE: file.name, _columns.FOUND: _columns.found([*found, "lon", "lat"])})
    return frame


def others(bad):
    """Return how many further rows have the same fault, to follow the first in a message."""
    more = int(bad.sum()) - 1
    return f" (and {more:,} more like it)" if more else ""
