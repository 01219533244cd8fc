"""Keep a road network in one compressed file of JSON, which any language can read.

Numbers are rounded far below what is known of them: lengths to a centimetre (and none below one), places to seven digits of a degree (a
centimetre), inclines to a hundred-thousandth.
"""

import gzip
import json
import zlib
from pathlib import Path

import numpy as np

from . import _writing
from .errors import InputError

_KIND, _FORMAT = "emsopt roads", 1
COLUMNS = ("ids", "lengths", "speed_limits", "inclines", "classes", "polylines", "connections")


def write_roads(net, path):
    """Write a network; the same network gives the same bytes."""
    places = 7 if net.geographic else 2
    content = {
        _KIND: _FORMAT,
        "name": net.name,
        "notes": net.notes,
        "geographic": net.geographic,
        "ids": list(net.ids),
        "lengths": np.maximum(net.lengths.round(2), 0.01).tolist(),
        "speed_limits": net.speed_limits.round(4).tolist(),
        "inclines": net.inclines.round(5).tolist(),
        "classes": list(net.classes),
        "polylines": None
        if net.polylines is None
        else [line.round(places).tolist() for line in net.polylines],
        "connections": net.connections.tolist(),
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    _writing.write_file(path, gzip.compress(_writing.encoded(text), mtime=0))


def read_roads(path):
    """Return the arguments of a `RoadNetwork`.

    Raises
    ------
    InputError
        If there is no such file, or it is no such network, or damaged.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        msg = f"there is no file {path}; give the path of a network that `RoadNetwork.save` wrote."
        raise InputError(msg)
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
        if content.pop(_KIND) != _FORMAT:
            raise ValueError("unknown format")
        wanted = {*COLUMNS, "name", "notes", "geographic"}
        if set(content) != wanted:
            raise ValueError(f"expected {', '.join(sorted(wanted))}")
    except (OSError, EOFError, zlib.error, ValueError, KeyError, AttributeError, TypeError) as error:
        msg = f"{path} is damaged or was not written by `RoadNetwork.save` ({type(error).__name__}: {error})."
        raise InputError(msg) from error
    return content
