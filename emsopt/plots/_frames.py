"""Frames that figures are drawn from: their columns, and what a reader calls them."""

from ..errors import InputError


def require_columns(frame, wanted):
    missing = [name for name in wanted if name not in getattr(frame, "columns", ())]
    if missing:
        has = ", ".join(map(str, getattr(frame, "columns", ()))) or "no columns"
        msg = f"the frame must have a column {missing[0]!r}; it has {has}."
        raise InputError(msg)


def words(name):
    """Return a column's name as a reader would say it."""
    return str(name).replace("p_median", "p-median").replace("_", " ").replace("utiliz", "utilis")
