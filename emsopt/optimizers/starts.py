"""Where a run starts: read what the caller gives as ``x0`` and ``initial``."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from .. import _validate
from ..errors import InputError
from .run import Run


def candidates(x0: Any, space: Any, name: str = "x0") -> list[Any]:
    """Return one or several candidates in canonical form; ``name`` is the argument that holds them, for messages."""
    x0 = _rows(x0, space)
    if x0 is None:
        return []
    if isinstance(x0, Mapping) or not np.iterable(x0) or not all(isinstance(x, Mapping) or np.ndim(x) > 0 for x in x0):
        return [_canonical(x0, space, name)]
    return [_canonical(x, space, f"{name}[{k}]") for k, x in enumerate(x0)]


def pairs(initial: Any, space: Any, column: str) -> list[tuple[Any, float]]:
    """Return the candidates of ``initial``, in canonical form, with their values; NaN and infinity are kept."""
    if initial is None:
        return []
    if isinstance(initial, Run):
        initial = initial.history
    if isinstance(initial, pd.DataFrame):
        columns = list(space.names) or [column]
        _validate.columns(initial, [*columns, "value"], "initial", "the history of a run")
        initial = (initial[columns] if space.names else initial[column], initial["value"])
    table = isinstance(initial, tuple) and len(initial) == 2
    if table:
        initial = tuple(_rows(part, space) for part in initial)
    rows = [list(row) if np.iterable(row) else [] for row in initial] if np.iterable(initial) else [[]]
    if not all(len(row) == 2 and not isinstance(row[1], Mapping) and not (table and np.ndim(row[1])) for row in rows):
        if not (table and all(map(np.iterable, initial))):
            raise InputError(
                "`initial` must be pairs (candidate, value), a tuple of candidates and values, or a Run or its "
                f"history; got {_validate.shown(initial)}."
            )
        if len(rows[0]) != len(rows[1]):
            counts = f"{len(rows[0])} candidates and {len(rows[1])} values"
            raise InputError(f"`initial` must hold one value per candidate; got {counts}.")
        rows = [list(pair) for pair in zip(*rows, strict=True)]
    found = []
    for k, (x, given) in enumerate(rows):
        value = np.nan if given is None else _validate.single_number(given)
        if value is None:
            raise InputError(f"`initial[{k}]`: the value must be a number; got {_validate.shown(given)}.")
        found.append((_canonical(x, space, f"initial[{k}]"), value))
    return found


def _rows(x: Any, space: Any) -> Any:
    """Return a table as a list of candidates, by name if the inputs have names; all else is returned as it is."""
    if isinstance(x, pd.DataFrame):
        return x.to_dict("records") if space.names else x.to_numpy().tolist()
    return x


def _canonical(x: Any, space: Any, name: str) -> Any:
    """Return a candidate in canonical form; ``name`` is what the caller calls it, for messages."""
    if isinstance(x, pd.Series) and space.names:
        x = x.to_dict()
    try:
        return space.canonical(x)
    except InputError as error:
        message, start = str(error), re.compile("^`(x|sites)`")
        message = start.sub(f"`{name}`", message) if start.match(message) else f"`{name}`: {message}"
        if space.names and not isinstance(x, Mapping):
            message += f" As the inputs have names, give a dict with the keys {', '.join(space.names)}."
        raise InputError(message) from None
