"""Issue warnings that point to the caller's code."""

import sys
import warnings


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the innermost caller outside this package."""
    level, frame = 2, sys._getframe(1)  # 1 would be this function
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "emsopt":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
