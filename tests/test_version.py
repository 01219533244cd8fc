"""Files of results say which commit wrote them, wherever git stores it."""

import re
import subprocess
from pathlib import Path

import pytest

import emsopt
from emsopt._files.version import _commit, provenance

COMMIT = "1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b"


PACKED = f"# pack-refs with: peeled\n{'0' * 40} refs/heads/other\n{COMMIT} refs/heads/main\n"


@pytest.mark.parametrize(
    "files", [{"refs/heads/main": COMMIT}, {"packed-refs": PACKED}, {"HEAD": COMMIT}], ids=["loose", "packed", "none"]
)
def test_the_commit_is_read(files, tmp_path):
    for name, content in ({"HEAD": "ref: refs/heads/main"} | files).items():
        (tmp_path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".git" / name).write_text(content + "\n")
    assert _commit(tmp_path / ".git") == COMMIT


def test_the_version_names_the_commit_of_this_checkout():
    """As git says; without git or a checkout it is the plain version."""
    assert re.fullmatch(r"\d+\.\d+\.\d+(\+g[0-9a-f]{7})?", provenance())
    assert provenance().startswith(emsopt.__version__)
    folder = Path(emsopt.__file__).parents[1]
    if (folder / ".git").exists():
        told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
        if told.returncode == 0:
            assert provenance() == f"{emsopt.__version__}+g{told.stdout[:7]}"
