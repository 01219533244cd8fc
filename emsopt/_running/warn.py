"""Warn at the line outside this package that led to the warning."""

import sys
import warnings


def warn(message, category):
    """Warn as if at the caller's line that is not of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "emsopt":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
