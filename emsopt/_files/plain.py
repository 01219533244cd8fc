"""Read and write plain files: comma-separated tables, JSON and GeoJSON."""

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
    """Return columns as comma-separated text, with all digits of numbers."""
    rows = [header, *zip(*columns, strict=True)]
    return "".join(",".join(map(_csv_cell, row)) + "\n" for row in rows)


def _csv_cell(value):
    if not isinstance(value, str):
        return repr(float(value))
    plain = value == value.strip() and not set(value) & set(',"\r\n')
    return value if plain else '"' + value.replace('"', '""') + '"'


def json_text(content):
    """Return a dict as human-readable JSON text."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def shapes_text(names, shapes, note):
    """Return the outlines of atoms as GeoJSON text, one feature per line."""
    features = []
    for name, shape in zip(names, shapes, strict=True):
        feature = {"type": "Feature", "properties": {"atom": name}, "geometry": shape}
        features.append(json.dumps(feature, ensure_ascii=False, default=_as_list))
    start = '{"type": "FeatureCollection", "note": ' + json.dumps(note, ensure_ascii=False) + ', "features": [\n'
    return start + ",\n".join(features) + "\n]}\n"


def _as_list(array):
    """Convert a NumPy array or number to its JSON equivalent."""
    return array.tolist()


# -- reading ------------------------------------------------------------------------------------------------------


# Together these bounds limit reading to about 1 GB of memory.
MOST_BYTES = 2**28
MOST_COLUMNS = 100_000
MOST_ROWS = 2_000_000
MOST_CELLS = 10**7
LONGEST_RECORD = 2**23  # characters per row, because cells are counted only after a row is read
MOST_JSON_BYTES = 2**26
MOST_VALUES = 8 * 10**6  # in JSON, including empty lists and objects
MOST_DIGITS = 300  # of an integer in JSON; more do not fit into a float


def _content(file, most, remedy):
    """Return the bytes of a file, without the byte-order mark that spreadsheets write."""
    try:
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        raise InputError(f"{file.name} cannot be read: {error.strerror}.") from error
    if len(content) > most:
        raise InputError(f"{file.name} has more than {most / 2**20:g} MB, the maximum that is read. {remedy}")
    marks = re.match(b"(?:%b)*" % BOM_UTF8, content).end()
    return content[marks:] if marks else content


def read_csv(path, *, labelled=False, kept=None):
    """Read a comma-separated file as a table of text; if ``labelled``, the first column is the index.

    Parameters
    ----------
    path : pathlib.Path
        Or an object with ``name`` and ``open``.
    labelled : bool
    kept : collection of str, optional
        Columns to keep, in lower case, to save memory. Default: all.

    Raises
    ------
    InputError
        If the file is not UTF-8, not comma-separated, empty, ragged or too large.
    """
    records = _records(path)
    _, header = next(records, (0, None))
    if header is None:
        raise InputError(f"{path.name} is empty; its first line must name the columns.")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise InputError(f"{path.name} must be separated by commas; its first line is {shown(header[0])}.")
    places = [k for k, key in enumerate(header) if kept is None or key.strip().lower() in kept]
    rows, most_rows = [], min(MOST_ROWS, MOST_CELLS // max(len(places), 1))
    for number, row in records:
        if len(row) != len(header):
            msg = f"{path.name}, line {number}: expected {len(header)} cells as in the first line, but got {len(row)}."
            raise InputError(msg)
        if len(rows) == most_rows:
            raise InputError(
                f"{path.name} has more than {most_rows:,} rows, the maximum for {len(places)} columns. Split it, for "
                "example by year."
            )
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
    """Yield the rows of a comma-separated file with their line numbers."""
    content = _content(path, MOST_BYTES, "Split it, for example by year.")
    file = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    size, first = 0, True

    def lines():
        nonlocal size
        while line := file.readline(LONGEST_RECORD + 1):
            size += len(line)
            if first and (width := re.sub('"[^"]*"', "", line).count(",") + 1) > MOST_COLUMNS:
                msg = f"{path.name} has {width:,} columns in its first line; at most {MOST_COLUMNS:,} are allowed."
                raise InputError(msg)
            if size > LONGEST_RECORD:
                raise InputError(
                    f"{path.name}, line {reader.line_num + 1}: a row has more than {LONGEST_RECORD:,} "
                    "characters, the maximum that is read."
                )
            yield line

    reader = csv.reader(lines(), strict=True)
    try:
        for row in reader:
            size = 0
            if row:
                first = False
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{path.name}, line {reader.line_num}: {error}.") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path, content) from error


def _not_utf8(path, content):
    """Build the error for a file that is not UTF-8, naming the first invalid byte."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        msg = f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8."
    return InputError(msg)


def read_json(path):
    """Read a JSON file that contains one object, as a dict.

    Raises
    ------
    InputError
        If the file is not UTF-8, not JSON or too large, does not contain an object, repeats an entry, or
        contains a number with too many digits.
    """
    remedy = "Split it, or save a table of points as CSV."
    content = _content(path, MOST_JSON_BYTES, remedy)
    if values_in(content) > MOST_VALUES:
        raise InputError(f"{path.name} has more than {MOST_VALUES:,} values, the maximum that is read. {remedy}")

    def refuse(constant):
        raise InputError(f"{path.name} contains {constant}, which is not a number in JSON.")

    def whole(digits):
        if len(digits) > MOST_DIGITS:
            raise InputError(
                f"{path.name} contains a number of {len(digits):,} digits, {digits[:20]}...; at most "
                f"{MOST_DIGITS} are allowed."
            )
        return int(digits)

    def distinct(pairs):
        result = dict(pairs)
        if len(result) < len(pairs):
            twice = _columns.first_repeated(key for key, _ in pairs)
            msg = f"{path.name} has the entry {shown(twice)} more than once in one object. Remove all but one."
            raise InputError(msg)
        return result

    try:
        content = json.loads(content.decode(), parse_constant=refuse, parse_int=whole, object_pairs_hook=distinct)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, content) from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} is not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path.name} must hold one JSON object, {{...}}; got a {type(content).__name__}.")
    return content


def read_features(file):
    """Return the features of a GeoJSON FeatureCollection, at least one and at most `MOST_ROWS`."""
    content = read_json(file)
    features = content.get("features")
    if content.get("type") != "FeatureCollection" or not isinstance(features, list):
        raise InputError(f"{file.name} must be a GeoJSON FeatureCollection; its type is {shown(content.get('type'))}.")
    if not 0 < len(features) <= MOST_ROWS:
        raise InputError(f"{file.name} must have from 1 to {MOST_ROWS:,} features; it has {len(features):,}.")
    return features


def read_shapes(path, names, *, geographic=True, key="atom"):
    """Read the outlines of atoms from a GeoJSON FeatureCollection.

    Parameters
    ----------
    path : pathlib.Path
    names : sequence of str
        Names of the atoms; each needs one feature, in any order.
    geographic : bool
        Whether coordinates are longitude and latitude, which must be in range.
    key : str
        Property that holds the name.

    Returns
    -------
    list of dict
        GeoJSON geometries in the order of ``names``.

    Raises
    ------
    InputError
        If the file is damaged, an atom is missing, unknown or repeated, or an outline is invalid.
    """
    shapes = {}
    for k, feature in enumerate(read_features(path)):
        where = f"{path.name}, feature {k + 1}"
        properties = feature.get("properties") if isinstance(feature, dict) else None
        if not isinstance(properties, dict) or key not in properties:
            raise InputError(f"{where} needs the property {key!r}, the name of its atom.")
        name = _columns.text(properties[key])
        if name in shapes or name not in names:
            raise InputError(f"{where}: the atom {name!r} {'occurs twice' if name in shapes else 'is not known'}.")
        check_shape(feature.get("geometry"), f"{where} ({name!r})", geographic=geographic)
        shapes[name] = feature["geometry"]
    absent = [name for name in names if name not in shapes]
    if absent:
        raise InputError(f"{path.name} lacks {len(absent)} of {len(names)} atoms; the first is {absent[0]!r}.")
    return [shapes[name] for name in names]
