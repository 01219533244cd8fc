"""Files of results say which commit wrote them, wherever git stores it."""

import re
import subprocess
from pathlib import Path

import emsopt
from emsopt._files.version import version_with_commit


def test_the_version_names_the_commit_of_this_checkout():
    """As git says; without git or a checkout it is the plain version."""
    assert re.fullmatch(r"\d+\.\d+\.\d+(\+g[0-9a-f]{7})?", version_with_commit())
    assert version_with_commit().startswith(emsopt.__version__)
    folder = Path(emsopt.__file__).parents[1]
    if (folder / ".git").exists():
        told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
        if told.returncode == 0:
            assert version_with_commit() == f"{emsopt.__version__}+g{told.stdout[:7]}"
