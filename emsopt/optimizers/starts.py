"""Where a run starts: read what the caller gives as ``x0`` and ``initial``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _validate
from ..errors import InputError


def candidates(x0: Any) -> list[Any]:
    """Return the candidates of ``x0``, which may be one candidate or several."""
    if x0 is None or isinstance(x0, Mapping):
        return [] if x0 is None else [x0]
    several = np.iterable(x0) and all(isinstance(x, Mapping) or np.ndim(x) > 0 for x in x0)
    return list(x0) if several else [x0]


def pairs(initial: Any) -> list[tuple[Any, Any]]:
    """Return (candidate, value) pairs from such pairs or from a tuple of candidates and values."""
    if initial is None:
        return []
    rows = [list(row) if np.iterable(row) else [] for row in initial] if np.iterable(initial) else []
    if rows and all(len(row) == 2 and np.ndim(row[1]) == 0 and not isinstance(row[1], Mapping) for row in rows):
        return [(x, value) for x, value in rows]
    if len(rows) == 2 and len(rows[0]) == len(rows[1]):
        return list(zip(*rows, strict=True))
    raise InputError(
        f"`initial` must be pairs (candidate, value), or candidates and values; got {_validate.shown(initial)}."
    )
