"""Files of results say which commit wrote them, wherever git stores it."""

import re
import subprocess
from pathlib import Path

import pytest

import emsopt
from emsopt._version import _commit, provenance

COMMIT = "1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b"


@pytest.fixture
def git(tmp_path):
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return tmp_path / ".git"


def test_the_commit_is_read_from_a_branch(git):
    (git / "refs/heads/main").write_text(f"{COMMIT}\n")
    assert _commit(git) == COMMIT


def test_the_commit_is_read_from_packed_branches(git):
    (git / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{'0' * 40} refs/heads/other\n{COMMIT} refs/heads/main\n"
    )
    assert _commit(git) == COMMIT


def test_the_commit_is_read_without_a_branch(git):
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert _commit(git) == COMMIT


def test_the_commit_is_read_in_a_worktree(git, tmp_path):
    (git / "refs/heads/side").write_text(f"{COMMIT}\n")
    (git / "worktrees/side").mkdir(parents=True)
    (git / "worktrees/side/HEAD").write_text("ref: refs/heads/side\n")
    (git / "worktrees/side/commondir").write_text("../..\n")
    (tmp_path / "side").mkdir()
    (tmp_path / "side/.git").write_text(f"gitdir: {git / 'worktrees/side'}\n")
    assert _commit(tmp_path / "side/.git") == COMMIT


def test_the_version_names_the_commit_of_this_checkout():
    """As git says; without git or a checkout it is the plain version."""
    assert re.fullmatch(r"\d+\.\d+\.\d+(\+g[0-9a-f]{7})?", provenance())
    assert provenance().startswith(emsopt.__version__)
    folder = Path(emsopt.__file__).parents[1]
    if (folder / ".git").exists():
        told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
        if told.returncode == 0:
            assert provenance() == f"{emsopt.__version__}+g{told.stdout[:7]}"


def test_changelog_and_citation_have_the_version():
    root = Path(__file__).parents[1]
    if not (root / "CHANGELOG.md").is_file():
        pytest.skip("needs the repository: CHANGELOG.md is not part of the package")
    changelog, citation = ((root / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    newest, date = re.search(r"^## (\S+) \((\S+)\)$", changelog, re.MULTILINE).groups()
    assert newest == emsopt.__version__
    assert f"\nversion: {newest}\ndate-released: {date}\n" in citation
