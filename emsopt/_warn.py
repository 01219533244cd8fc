"""Warn that a number should not be trusted, at the caller's line."""

import sys
import warnings

from .errors import AccuracyWarning


def inaccurate(message):
    """Warn with `AccuracyWarning`, as if at the line outside this package that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "emsopt":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, AccuracyWarning, stacklevel=level)
