"""Plain files: comma-separated tables, JSON and GeoJSON, as text and from files."""

import csv
import io
import json
import re
from codecs import BOM_UTF8

import numpy as np
import pandas as pd

from .._validate import shown
from ..errors import InputError
from . import columns as _columns
from .inflate import values_in
from .shapes import check_shape

# -- writing ------------------------------------------------------------------------------------------------------


def csv_text(header, columns):
    """Return columns as comma-separated text with every digit of every number."""
    rows = [header, *zip(*columns, strict=True)]
    return "".join(",".join(map(_csv_cell, row)) + "\n" for row in rows)


def _csv_cell(value):
    if not isinstance(value, str):
        return repr(float(value))
    plain = value == value.strip() and not set(value) & set(',"\r\n')
    return value if plain else '"' + value.replace('"', '""') + '"'


def json_text(content):
    """Return a dict as JSON text for people to read."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def shapes_text(names, shapes, note):
    """Return the outlines of atoms as GeoJSON text, one feature a line."""
    features = []
    for name, shape in zip(names, shapes, strict=True):
        feature = {"type": "Feature", "properties": {"atom": name}, "geometry": shape}
        features.append(json.dumps(feature, ensure_ascii=False, default=_as_list))
    start = (
        '{"type": "FeatureCollection", "note": ' + json.dumps(note, ensure_ascii=False) + ', "features": [\n'
    )
    return start + ",\n".join(features) + "\n]}\n"


def _as_list(array):
    """Return what JSON has for an array or a number of NumPy's."""
    return array.tolist()


# -- reading ------------------------------------------------------------------------------------------------------


# All bounds together keep whatever is read within about 1 GB of memory.
MOST_BYTES = 2**28
MOST_COLUMNS = 100_000
MOST_ROWS = 2_000_000
MOST_CELLS = 10**7
LONGEST_RECORD = 2**23  # characters of a row: what is read before its cells can be counted
MOST_JSON_BYTES = 2**26
MOST_VALUES = 8 * 10**6  # in JSON, empty lists and objects included
MOST_DIGITS = 300  # of an int in JSON: more do not fit into a float


def _content(file, most, remedy):
    """Return the bytes of a file, without the byte-order marks that spreadsheets put first."""
    try:
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        msg = f"{file.name} cannot be read: {error.strerror}."
        raise InputError(msg) from error
    if len(content) > most:
        msg = f"{file.name} has more than {most / 2**20:g} MB, the most that is read. {remedy}"
        raise InputError(msg)
    marks = re.match(b"(?:%b)*" % BOM_UTF8, content).end()
    return content[marks:] if marks else content


def read_csv(path, *, labelled=False, kept=None):
    """Return a comma-separated file as a table of text; if ``labelled``, its first column is the index.

    Parameters
    ----------
    path : pathlib.Path
        Or anything with its ``name`` and ``open``.
    labelled : bool
    kept : collection of str, optional
        Columns to keep, in lower case: memory is bounded by these. All if left out.

    Raises
    ------
    InputError
        If it is not UTF-8, not separated by commas, empty, ragged, or too large.
    """
    records = _records(path)
    _, header = next(records, (0, None))
    if header is None:
        msg = f"{path.name} is empty; its first line must name the columns."
        raise InputError(msg)
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        msg = f"{path.name} must be separated by commas; its first line is {shown(header[0])}."
        raise InputError(msg)
    places = [k for k, key in enumerate(header) if kept is None or key.strip().lower() in kept]
    rows, most_rows = [], min(MOST_ROWS, MOST_CELLS // max(len(places), 1))
    for number, row in records:
        if len(row) != len(header):
            msg = f"{path.name}, line {number}: expected {len(header)} cells as in the first line, but got {len(row)}."
            raise InputError(msg)
        if len(rows) == most_rows:
            msg = (
                f"{path.name} has more than {most_rows:,} rows, the most that are read of {len(places)} columns. Split it "
                "by year, say."
            )
            raise InputError(msg)
        rows.append([row[k] for k in places])
    cells = np.array(rows, dtype=object).reshape(len(rows), len(places))
    columns = [header[k] for k in places]
    if labelled:
        names = pd.Index(cells[:, 0], dtype=object)
        table = pd.DataFrame(cells[:, 1:], index=names, columns=columns[1:], dtype=object)
    else:
        table = pd.DataFrame(cells, columns=columns, dtype=object)
    table.attrs.update({_columns.FILE: path.name, _columns.FOUND: _columns.found(header)})
    return table


def _records(path):
    """Yield the rows of a comma-separated file with their line numbers, one at a time."""
    content = _content(path, MOST_BYTES, "Split it by year, say.")
    file = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    size, first = 0, True

    def lines():
        nonlocal size
        while line := file.readline(LONGEST_RECORD + 1):
            size += len(line)
            if first and (width := re.sub('"[^"]*"', "", line).count(",") + 1) > MOST_COLUMNS:
                msg = (
                    f"{path.name} has {width:,} columns in its first line; at most {MOST_COLUMNS:,} are read."
                )
                raise InputError(msg)
            if size > LONGEST_RECORD:
                msg = f"{path.name}, line {reader.line_num + 1}: a row has over {LONGEST_RECORD:,} characters, which no table has."
                raise InputError(msg)
            yield line

    reader = csv.reader(lines(), strict=True)
    try:
        for row in reader:
            size = 0
            if row:
                first = False
                yield reader.line_num, row
    except csv.Error as error:
        msg = f"{path.name}, line {reader.line_num}: {error}."
        raise InputError(msg) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path, content) from error


def _not_utf8(path, content):
    """Return the error that a file is not UTF-8 text, by its first wrong byte."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        msg = f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8."
    return InputError(msg)


def read_json(path):
    """Return the object that a JSON file holds, as a dict.

    Raises
    ------
    InputError
        If it is not UTF-8, not JSON, too large, holds anything but an object, names an entry twice, or holds a number
        of too many digits.
    """
    remedy = "Split it, or save a table of points as CSV."
    content = _content(path, MOST_JSON_BYTES, remedy)
    if values_in(content) > MOST_VALUES:
        msg = f"{path.name} has more than {MOST_VALUES:,} values, the most that are read. {remedy}"
        raise InputError(msg)

    def refuse(constant):
        msg = f"{path.name} holds {constant}, which is no number in JSON."
        raise InputError(msg)

    def whole(digits):
        if len(digits) > MOST_DIGITS:
            msg = f"{path.name} holds a number of {len(digits):,} digits, {digits[:20]}...; at most {MOST_DIGITS} are read."
            raise InputError(msg)
        return int(digits)

    def distinct(pairs):
        result = dict(pairs)
        if len(result) < len(pairs):
            twice = _columns.first_repeated(key for key, _ in pairs)
            msg = (
                f"{path.name} has the entry {shown(twice)} more than once in one object. Remove all but one."
            )
            raise InputError(msg)
        return result

    try:
        content = json.loads(
            content.decode(), parse_constant=refuse, parse_int=whole, object_pairs_hook=distinct
        )
    except UnicodeDecodeError as error:
        raise _not_utf8(path, content) from error
    except (json.JSONDecodeError, RecursionError) as error:
        msg = f"{path.name} is not valid JSON: {error}."
        raise InputError(msg) from error
    if not isinstance(content, dict):
        msg = f"{path.name} must hold one JSON object, {{...}}; got a {type(content).__name__}."
        raise InputError(msg)
    return content


def read_features(file):
    """Return the features of a GeoJSON FeatureCollection, at least one and at most `MOST_ROWS`."""
    content = read_json(file)
    features = content.get("features")
    if content.get("type") != "FeatureCollection" or not isinstance(features, list):
        msg = f"{file.name} must be a GeoJSON FeatureCollection; its type is {shown(content.get('type'))}."
        raise InputError(msg)
    if not 0 < len(features) <= MOST_ROWS:
        msg = f"{file.name} must have from 1 to {MOST_ROWS:,} features; it has {len(features):,}."
        raise InputError(msg)
    return features


def read_shapes(path, names, *, geographic=True, key="atom"):
    """Read the outlines of atoms from a GeoJSON FeatureCollection.

    Parameters
    ----------
    path : pathlib.Path
    names : sequence of str
        One feature of each is needed, in any order.
    geographic : bool
        Whether coordinates are longitude and latitude, and have to lie within their range.
    key : str
        Property that holds the name.

    Returns
    -------
    list of dict
        GeoJSON geometries in the order of ``names``.

    Raises
    ------
    InputError
        If the file is broken, an atom is missing, unknown or there twice, or an outline is not valid.
    """
    shapes = {}
    for k, feature in enumerate(read_features(path)):
        where = f"{path.name}, feature {k + 1}"
        properties = feature.get("properties") if isinstance(feature, dict) else None
        if not isinstance(properties, dict) or key not in properties:
            msg = f"{where} needs the property {key!r}, the name of its atom."
            raise InputError(msg)
        name = _columns.text(properties[key])
        if name in shapes or name not in names:
            msg = f"{where}: the atom {name!r} {'occurs twice' if name in shapes else 'is not known'}."
            raise InputError(msg)
        check_shape(feature.get("geometry"), f"{where} ({name!r})", geographic=geographic)
        shapes[name] = feature["geometry"]
    absent = [name for name in names if name not in shapes]
    if absent:
        msg = f"{path.name} lacks {len(absent)} of {len(names)} atoms, the first {absent[0]!r}."
        raise InputError(msg)
    return [shapes[name] for name in names]
