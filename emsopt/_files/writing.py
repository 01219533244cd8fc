"""Write files and folders whole or not at all, and say clearly why that was not possible.

Content goes to a neighbour with a name of its own, is flushed to the disk, and only then gets its name. A disk that
is full, or a kill, therefore never damages what had the name before.
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

# Cause and remedy by the number of an OSError. The first group is about the path that was given, which makes it an
# InputError; the second is about the machine.
_WRONG_PATHS = {
    errno.ENOENT: ("a folder of this path does not exist", "Create it"),
    errno.ENOTDIR: ("there is a file where a folder is needed", "Rename the file"),
    errno.EEXIST: ("there is a file where a folder is needed", "Rename the file"),
    errno.EISDIR: ("this is a folder, and a file was to be written", "Add the name of a file"),
    errno.ENAMETOOLONG: ("the path or a name in it is too long", "Shorten it"),
    errno.EINVAL: ("this system does not accept the path", "Correct it"),
    errno.ELOOP: ("symbolic links of this path lead in a circle", "Remove the circle"),
}
_OBSTACLES = {
    errno.ENOSPC: ("the disk is full", "Free some space"),
    errno.EDQUOT: ("your quota of disk space is used up", "Free some space"),
    errno.EFBIG: ("the file would be larger than this system allows", "Raise the limit"),
    errno.EROFS: ("the disk is read-only", "Make it writable"),
    errno.EACCES: (
        "permission was denied (on Windows also: another program has it open)",
        "Change the permissions",
    ),
    errno.EPERM: ("permission was denied", "Change the permissions"),
}


@contextmanager
def errors_explained(path):
    """Turn an OSError that occurs while ``path`` is written into an error that names path, cause and remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        kind = InputError if error.errno in _WRONG_PATHS else WriteError
        cause, remedy = (_WRONG_PATHS | _OBSTACLES).get(
            error.errno, (error.strerror or str(error), "Remove the cause")
        )
        name = str(path)
        name = name if len(name) <= 300 else f"{name[:140]} ... {name[-140:]}"
        msg = f"{name} could not be written: {cause}. Nothing that was there was changed. {remedy}, or write elsewhere."
        raise kind(msg) from error


def write_file(path, content, name="path"):
    """Write a file whole or not at all, and return its path.

    Parameters
    ----------
    path : path_like
        In a folder that exists. A file of this name is replaced, and its permissions are kept.
    content : str or bytes
        Text is written as UTF-8.
    name : str
        What messages call the path.

    Raises
    ------
    InputError
        If the path cannot be that of a file.
    WriteError
        If the disk is full, or the file cannot be written for another reason.
    """
    path = _validate.path(path, name)
    with errors_explained(path):
        target = Path(os.path.realpath(path))  # the file behind a link is replaced, not the link
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
    """Write a folder of files, all of them or none, and return its path.

    Parameters
    ----------
    folder : path_like
        A new folder, an empty one, or one that an earlier call wrote, which is replaced. Folders above it are made.
    files : dict of str to str or bytes
        Content of each file by name.
    marker : str
        File without which an existing folder is not replaced.
    replaceable : collection of str
        The only files that a folder may hold to be replaced.

    Raises
    ------
    InputError
        If the folder holds anything else, or the path cannot be that of a folder.
    WriteError
        If the disk is full, or the folder cannot be written for another reason.
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
    """Return a folder that exists and takes files, made if it is not there; try this before a long computation."""
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
        msg = f"the text to be written holds {text[error.start]!r}, which is no character. Remove it."
        raise InputError(msg) from error


def _write(path, content):
    """Write a new file; it is on disk when this returns."""
    content = encoded(content) if isinstance(content, str) else content
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _mode_to_keep(target, is_wanted):
    """Return the permissions of what is to be replaced, None if there is nothing; refuse what must stay."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not is_wanted(mode):
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if stat.S_ISREG(mode):
            raise NotADirectoryError(errno.ENOTDIR, "is a file")
        msg = f"{target} is a device or a pipe, which cannot be replaced by a file. Write elsewhere."
        raise InputError(msg)
    if not os.access(target, os.W_OK):  # replacing it would be possible, but against its owner's will
        raise PermissionError(errno.EACCES, "is write-protected")
    return stat.S_IMODE(mode)


def _set_mode(path, mode):
    """Set permissions where they differ; some disks have the same for all files, and refuse."""
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def check_replaceable(folder, marker, replaceable):
    """Refuse to replace a folder that an earlier call of `write_folder` did not write; one that is not there is fine."""
    if not folder.is_dir():
        return
    held = sorted(path.name for path in folder.iterdir())
    if held and (marker not in held or not set(held) <= set(replaceable)):
        msg = (
            f"{folder} was left as it is: a folder is replaced only if it holds {marker} and nothing foreign; it "
            f"holds {', '.join(sorted(set(held) - set(replaceable))[:5] or held[:5])}. Choose a new folder."
        )
        raise InputError(msg)


def _put_in_place(unfinished, folder):
    """Give a finished folder its name; what had the name before goes only when that is done."""
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
    shutil.rmtree(old, ignore_errors=True)  # the new one is in place, whatever becomes of the old one


def _neighbour(path):
    """Return a free name beside ``path``, short enough wherever that of ``path`` is allowed."""
    return path.parent / f".{uuid4().hex}.part"
