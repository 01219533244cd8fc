"""Plain files: comma-separated tables, JSON and GeoJSON, as text and from files."""

import csv
import io
import json

import pandas as pd

from . import _cells
from ._shapes import check_shape
from .errors import InputError

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


def _read_text(path):
    try:
        return path.read_bytes().decode("utf-8-sig")  # spreadsheets put a byte-order mark first
    except UnicodeDecodeError as error:
        msg = f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8."
        raise InputError(msg) from error


def read_csv(path, *, labelled=False):
    """Return a comma-separated file as a table of text; if ``labelled``, its first column is the index.

    Raises
    ------
    InputError
        If it is not UTF-8, not separated by commas, empty, or ragged.
    """
    lines = csv.reader(io.StringIO(_read_text(path), newline=""), strict=True)
    try:
        rows = [(lines.line_num, row) for row in lines if row]
    except csv.Error as error:
        msg = f"{path.name}, line {lines.line_num}: {error}."
        raise InputError(msg) from error
    if not rows:
        msg = f"{path.name} is empty; its first line must name the columns."
        raise InputError(msg)
    header = rows[0][1]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        msg = f"{path.name} must be separated by commas; its first line is {header[0]!r}."
        raise InputError(msg)
    for number, row in rows[1:]:
        if len(row) != len(header):
            msg = f"{path.name}, line {number}: expected {len(header)} cells as in the first line, but got {len(row)}."
            raise InputError(msg)
    table = pd.DataFrame([row for _, row in rows[1:]], columns=header, dtype=object)
    if labelled:
        table = pd.DataFrame(table.to_numpy()[:, 1:], index=table.iloc[:, 0].array, columns=header[1:])
    table.attrs[_cells.FILE] = path.name
    return table


def read_json(path):
    """Return the object that a JSON file holds, as a dict.

    Raises
    ------
    InputError
        If it is not UTF-8, not JSON, or holds anything but an object.
    """

    def refuse(constant):
        msg = f"{path.name} holds {constant}, which is no number in JSON."
        raise InputError(msg)

    try:
        content = json.loads(_read_text(path), parse_constant=refuse)
    except (json.JSONDecodeError, RecursionError) as error:
        msg = f"{path.name} is not valid JSON: {error}."
        raise InputError(msg) from error
    if not isinstance(content, dict):
        msg = f"{path.name} must hold one JSON object, {{...}}; got a {type(content).__name__}."
        raise InputError(msg)
    return content


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
    content = read_json(path)
    features = content.get("features")
    if content.get("type") != "FeatureCollection" or not isinstance(features, list):
        msg = f"{path.name} must be a GeoJSON FeatureCollection; its type is {content.get('type')!r}."
        raise InputError(msg)
    shapes = {}
    for k, feature in enumerate(features):
        where = f"{path.name}, feature {k + 1}"
        properties = feature.get("properties") if isinstance(feature, dict) else None
        if not isinstance(properties, dict) or key not in properties:
            msg = f"{where} needs the property {key!r}, the name of its atom."
            raise InputError(msg)
        name = _cells.text(properties[key])
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
