"""Write files and folders atomically: a full disk or an interruption never damages existing content.

Content is written to a temporary file or folder beside the target, flushed to disk, and then renamed.
"""

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ..errors import InputError, WriteError, _validate
from ..errors._types import PathLike

# Cause and remedy by the number of an OSError, whose own text names no remedy.
_WRONG_PATHS = {  # these concern the given path and raise an InputError
    errno.ENOENT: ("a folder of this path does not exist", "Create it"),
    errno.ENOTDIR: ("a file is in the place of a folder", "Rename the file"),
    errno.EEXIST: ("a file is in the place of a folder", "Rename the file"),
    errno.EISDIR: ("the path is a folder, but a file is to be written", "Add a file name"),
    errno.ENAMETOOLONG: ("the path or a name in it is too long", "Shorten it"),
    errno.EINVAL: ("the operating system does not accept the path", "Correct it"),
}
_CAUSES = _WRONG_PATHS | {  # the others concern the machine
    errno.ENOSPC: ("the disk is full", "Free some space"),
    errno.EDQUOT: ("your quota of disk space is used up", "Free some space"),
    errno.EROFS: ("the disk is read-only", "Make it writable"),
    errno.EACCES: ("permission was denied, or the file is open in another program", "Change the permissions"),
    errno.EPERM: ("permission was denied", "Change the permissions"),
}


@contextmanager
def explain_errors(path: PathLike) -> Iterator[None]:
    """Convert an OSError into an InputError if the path is the cause, else into a WriteError; both name a remedy."""
    try:
        yield
    except WriteError:  # an OSError too, but explained already
        raise
    except OSError as error:
        kind = InputError if error.errno in _WRONG_PATHS else WriteError
        cause, remedy = _CAUSES.get(error.errno or 0, (error.strerror or str(error), "Remove the cause"))
        remedy = f"Existing content was not changed. {remedy}, or write elsewhere."
        name = _validate.quote(path, str, 300)
        raise kind(f"{name} could not be written: {cause}. {remedy}") from error


def write_file(path: PathLike, content: str | bytes) -> Path:
    """Write or replace a file, text as UTF-8, atomically in an existing folder, and return its path."""
    path = _validate.path(path, "path")
    with explain_errors(path):
        target = Path(os.path.realpath(path))  # replace the target of a link, not the link
        mode = _mode_to_keep(target, stat.S_IFREG)
        draft = _temporary_path(target)
        try:
            _write_new_file(draft, content)
            _set_mode(draft, mode)
            os.replace(draft, target)
        finally:
            with suppress(OSError):
                draft.unlink()
    return path


def write_folder(
    folder: PathLike, files: Mapping[str, str | bytes], *, marker: str, replaceable: Collection[str]
) -> Path:
    """Write a folder of files, given as content by name, atomically and return its path; parent folders are created.

    A folder that is not empty is replaced only if `check_replaceable` finds it written by an earlier call.
    """
    folder = Path(os.path.realpath(_validate.path(folder, "folder")))
    with explain_errors(folder):
        mode = _mode_to_keep(folder, stat.S_IFDIR)
        check_replaceable(folder, marker, replaceable)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft, old = _temporary_path(folder), _temporary_path(folder)
        draft.mkdir()
        try:
            for name, content in files.items():
                _write_new_file(draft / name, content)
            _set_mode(draft, mode)
            if mode is not None:
                folder.rename(old)  # a folder with content cannot be replaced in one step
            try:
                draft.rename(folder)
            except BaseException:
                if mode is not None:
                    old.rename(folder)
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)  # ignore errors, since the new folder is in place
    return folder


def make_folder(folder: PathLike, name: str = "folder") -> Path:
    """Create a folder if it is absent and return its path; raise unless files can be written there."""
    folder = _validate.path(folder, name)
    with explain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        trial = _temporary_path(folder / "trial")
        trial.touch()
        trial.unlink()
    return folder


def check_replaceable(folder: Path, marker: str, replaceable: Collection[str]) -> None:
    """Raise unless a folder is absent, empty, or holds the file ``marker`` and only files named in ``replaceable``."""
    held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    foreign = [name for name in held if name not in replaceable]
    if foreign or (held and marker not in held):
        got = f"{folder} contains {', '.join((foreign or held)[:5])}{'' if foreign else f' but no {marker}'}"
        raise InputError(f"`folder` must be new, empty or written by emsopt; {got}. It was left unchanged.")


def _write_new_file(path: Path, content: str | bytes) -> None:
    """Write a new file; it is on disk when this returns."""
    with open(path, "xb") as file:  # x: never overwrites
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def _set_mode(path: Path, mode: int | None) -> None:
    """Set the permissions of a file or folder to ``mode`` if they differ: some mounts refuse every change."""
    if mode is not None and stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def _mode_to_keep(target: Path, kind: int) -> int | None:
    """Return the permissions of a file or folder, None if absent; raise if it is write-protected or not of ``kind``."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    found = stat.S_IFMT(mode)
    if found not in (stat.S_IFREG, stat.S_IFDIR):
        raise InputError(f"{target} is a device or a pipe. Write elsewhere.")
    if found != kind:
        raise OSError(errno.EISDIR if found == stat.S_IFDIR else errno.ENOTDIR, "of another kind")
    if not os.access(target, os.W_OK):  # renaming would succeed, but against the owner's intent
        raise OSError(errno.EACCES, "write-protected")
    return stat.S_IMODE(mode)


def _temporary_path(path: Path) -> Path:
    """Return the path of a new temporary file or folder, with a random name, in the folder of ``path``."""
    return path.parent / f".{uuid4().hex}.part"  # beside it, as renaming does not cross disks
