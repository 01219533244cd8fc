"""Files of results say which commit wrote them, wherever git stores it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import emsopt
from emsopt._files.version import _commit, version_with_commit


def test_the_version_names_the_commit_of_this_checkout():
    """As git says; without git or a checkout it is the plain version."""
    assert re.fullmatch(r"\d+\.\d+\.\d+(\+g[0-9a-f]{7})?", version_with_commit())
    assert version_with_commit().startswith(emsopt.__version__)
    folder = Path(emsopt.__file__).parents[1]
    if (folder / ".git").exists():
        told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
        if told.returncode == 0:
            assert version_with_commit() == f"{emsopt.__version__}+g{told.stdout[:7]}"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_worktree_has_its_own_commit_also_where_branches_are_packed(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    for words in ("init", "commit --allow-empty -m one", "worktree add -b other tree", "commit --allow-empty -m two"):
        git(*words.split())
    for _ in range(2):
        first, second = git("rev-parse", "HEAD~", "HEAD").split()
        assert [_commit(tmp_path / place / ".git") for place in ("tree", "")] == [first, second]
        git("pack-refs", "--all")
