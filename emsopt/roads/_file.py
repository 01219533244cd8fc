"""Save and load a road network as one file of gzip-compressed JSON.

Numbers are rounded well below their accuracy: lengths to a centimetre (at least one), speed limits to 0.0001 m/s,
inclines to 0.00001 rad, coordinates to seven decimals of a degree (about a centimetre) or to a centimetre.
"""

import gzip
import json
from collections.abc import Collection
from typing import Any

import numpy as np

from .. import _validate
from .._files import atomic, inflate
from .._running.json_lines import MOST_VALUES
from .._types import PathLike
from ..errors import InputError

_KIND, _FORMAT = "emsopt roads", 1
MOST_TEXT = 2 * 10**8  # with `MOST_VALUES`, enough for any network that `emsopt.roads._sumo` reads


def write_roads(path: PathLike, content: dict[str, Any]) -> None:
    """Write the fields of a `RoadNetwork`, by name in ``content``; equal networks give identical bytes.

    The numbers in ``content`` are rounded in place.
    """
    content["lengths"] = np.maximum(content["lengths"].round(2), 0.01)
    content["speed_limits"] = content["speed_limits"].round(4)
    content["inclines"] = content["inclines"].round(5)
    if content["polylines"] is not None:
        content["polylines"] = [line.round(7 if content["geographic"] else 2) for line in content["polylines"]]
    text = json.dumps({_KIND: _FORMAT, **content}, ensure_ascii=False, separators=(",", ":"), default=np.ndarray.tolist)
    atomic.write_file(path, gzip.compress(atomic.encoded(text), mtime=0))


def read_roads(path: PathLike, names: Collection[str]) -> dict[str, Any]:
    """Return the fields of a `RoadNetwork` by name; raise above `MOST_TEXT` bytes or `MOST_VALUES` values."""
    path = _validate.existing_file(path, "path", "a network that `RoadNetwork.save` wrote")
    try:
        text = b"".join(inflate.pieces(path, MOST_TEXT))
        if inflate.values_in(text) > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values")
        content = json.loads(text)
        found = content.pop(_KIND)
        if found != _FORMAT:
            raise ValueError(f"format {found!r}, whereas this version of emsopt reads format {_FORMAT}")
        if set(content) != set(names):
            raise ValueError("an entry is missing or unknown")
        if not all(isinstance(value, str) for value in content["ids"] + content["classes"]):
            raise TypeError("'ids' and 'classes' must be text")
    except (*inflate.DAMAGED, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path} is damaged, or was not written by `RoadNetwork.save` of this version ({reason})."
        ) from error
    return content
