"""The version of the package, which the build reads too, and the commit of a git checkout."""

from functools import cache
from pathlib import Path

__version__ = "0.1.0"


@cache
def version_with_commit() -> str:
    """Return the version of the package, in a git checkout with the commit, as in "0.1.0+g1a2b3c4"."""
    try:
        return f"{__version__}+g{_commit(Path(__file__).parents[2] / '.git')[:7]}"
    except (OSError, ValueError, StopIteration):  # installed from a wheel, or git stores its branches in another form
        return __version__


def _commit(git: Path) -> str:
    """Return the checked-out commit, read from ``.git``."""
    if git.is_file():  # in a worktree, a file that names the folder
        git = git.parent / git.read_text().removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    branch = head.removeprefix("ref: ")
    if (git / "commondir").exists():
        git = git / (git / "commondir").read_text().strip()
    if (git / branch).exists():
        return (git / branch).read_text().strip()
    packed = (git / "packed-refs").read_text().splitlines()
    return next(line.split()[0] for line in packed if line.endswith(f" {branch}"))
