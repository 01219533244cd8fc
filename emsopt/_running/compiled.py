"""Choose the folder in which numba caches compiled code.

Numba keeps it beside the package or in the user's cache, and fails where it can write neither, as in a container
without a home. There it gets a temporary folder that belongs to the user.
"""

import os
from pathlib import Path


def choose_cache_folder() -> None:
    """Set the variable ``NUMBA_CACHE_DIR``, before numba is imported, if numba could not write to its own folders."""
    package = Path(__file__).parents[1]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))  # as numba has it
    home = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(folder, os.W_OK) for folder in (package, home)):
        import getpass  # seldom needed, and every import of the package would pay for these
        import tempfile

        user = os.getuid() if os.name == "posix" else getpass.getuser()  # a container's may have no name
        folder = Path(tempfile.gettempdir()) / f"emsopt-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.name == "posix" and folder.stat().st_uid != user:  # whose code would then run here
            folder = Path(tempfile.mkdtemp(prefix="emsopt-"))
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
