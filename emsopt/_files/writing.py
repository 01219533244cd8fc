"""Write files and folders atomically, with clear errors.

Content is written to a temporary file or folder beside the target, flushed to disk, and then renamed. A full
disk or an interruption therefore never damages existing content.
"""

import errno
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from .. import _validate
from ..errors import InputError, WriteError

# Cause and remedy by the number of an OSError. The first group concerns the given path and raises an
# InputError; the second concerns the machine.
_WRONG_PATHS = {
    errno.ENOENT: ("a folder of this path does not exist", "Create it"),
    errno.ENOTDIR: ("a file is in the place of a folder", "Rename the file"),
    errno.EEXIST: ("a file is in the place of a folder", "Rename the file"),
    errno.EISDIR: ("the path is a folder, but a file is to be written", "Add a file name"),
    errno.ENAMETOOLONG: ("the path or a name in it is too long", "Shorten it"),
    errno.EINVAL: ("the operating system does not accept the path", "Correct it"),
    errno.ELOOP: ("symbolic links in the path form a loop", "Remove the loop"),
}
_OBSTACLES = {
    errno.ENOSPC: ("the disk is full", "Free some space"),
    errno.EDQUOT: ("your quota of disk space is used up", "Free some space"),
    errno.EFBIG: ("the file would be larger than the system allows", "Raise the limit"),
    errno.EROFS: ("the disk is read-only", "Make it writable"),
    errno.EACCES: (
        "permission was denied (on Windows, perhaps because another program has it open)",
        "Change the permissions",
    ),
    errno.EPERM: ("permission was denied", "Change the permissions"),
}


@contextmanager
def errors_explained(path):
    """Convert an OSError during writing to an error that names the path, the cause and a remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        kind = InputError if error.errno in _WRONG_PATHS else WriteError
        cause, remedy = (_WRONG_PATHS | _OBSTACLES).get(error.errno, (error.strerror or str(error), "Remove the cause"))
        name = str(path)
        name = name if len(name) <= 300 else f"{name[:140]} ... {name[-140:]}"
        msg = f"{name} could not be written: {cause}. Existing content was not changed. {remedy}, or write elsewhere."
        raise kind(msg) from error


def write_file(path, content, name="path"):
    """Write a file atomically and return its path.

    Parameters
    ----------
    path : path_like
        A path in an existing folder. An existing file is replaced, and its permissions are kept.
    content : str or bytes
        Text is written as UTF-8.
    name : str
        Name of the argument in messages.

    Raises
    ------
    InputError
        If the path is not valid for a file.
    WriteError
        If the file cannot be written, for example because the disk is full.
    """
    path = _validate.path(path, name)
    with errors_explained(path):
        target = Path(os.path.realpath(path))  # replace the target of a link, not the link
        mode = _mode_to_keep(target, stat.S_ISREG)
        draft = _neighbour(target)
        try:
            _write(draft, content)
            if mode is not None:
                _set_mode(draft, mode)
            os.replace(draft, target)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    return path


def write_folder(folder, files, *, marker, replaceable):
    """Write a folder of files atomically and return its path.

    Parameters
    ----------
    folder : path_like
        A new or empty folder, or one written by an earlier call, which is replaced. Parent folders are
        created.
    files : dict of str to str or bytes
        Content of each file by name.
    marker : str
        File that an existing folder must contain to be replaced.
    replaceable : collection of str
        The only files that a folder may contain to be replaced.

    Raises
    ------
    InputError
        If the folder contains anything else, or the path is not valid for a folder.
    WriteError
        If the folder cannot be written, for example because the disk is full.
    """
    folder = Path(os.path.realpath(_validate.path(folder, "folder")))
    with errors_explained(folder):
        mode = _mode_to_keep(folder, stat.S_ISDIR)
        check_replaceable(folder, marker, replaceable)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = _neighbour(folder)
        unfinished.mkdir()
        try:
            for name, content in files.items():
                _write(unfinished / name, content)
            if mode is not None:
                _set_mode(unfinished, mode)
            _put_in_place(unfinished, folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def make_folder(folder, name="folder"):
    """Return a writable folder, creating it if necessary; call this before a long computation."""
    folder = _validate.path(folder, name)
    with errors_explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        trial = _neighbour(folder / "trial")
        trial.touch()
        trial.unlink()
    return folder


def encoded(text):
    """Return text as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        msg = f"the text contains {text[error.start]!r}, which is not a valid character. Remove it."
        raise InputError(msg) from error


def _write(path, content):
    """Write a new file; it is on disk when this returns."""
    content = encoded(content) if isinstance(content, str) else content
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _mode_to_keep(target, is_wanted):
    """Return the permissions of an existing target, or None; raise if it must not be replaced."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not is_wanted(mode):
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if stat.S_ISREG(mode):
            raise NotADirectoryError(errno.ENOTDIR, "is a file")
        raise InputError(f"{target} is a device or a pipe, which cannot be replaced by a file. Write elsewhere.")
    if not os.access(target, os.W_OK):  # renaming would succeed, but against the owner's intent
        raise PermissionError(errno.EACCES, "is write-protected")
    return stat.S_IMODE(mode)


def _set_mode(path, mode):
    """Set permissions if they differ; some file systems do not support changing them."""
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def check_replaceable(folder, marker, replaceable):
    """Raise if a folder exists and was not written by an earlier call of `write_folder`."""
    if not folder.is_dir():
        return
    held = sorted(path.name for path in folder.iterdir())
    if held and (marker not in held or not set(held) <= set(replaceable)):
        raise InputError(
            f"{folder} was left as it is: a folder is replaced only if it holds {marker} and nothing foreign; it "
            f"holds {', '.join(sorted(set(held) - set(replaceable))[:5] or held[:5])}. Choose a new folder."
        )


def _put_in_place(unfinished, folder):
    """Rename a finished folder to its target, and only then delete the old one."""
    if not folder.exists():
        unfinished.rename(folder)
        return
    old = _neighbour(folder)
    folder.rename(old)
    try:
        unfinished.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)  # ignore errors, since the new folder is in place


def _neighbour(path):
    """Return an unused name in the folder of ``path``."""
    return path.parent / f".{uuid4().hex}.part"
