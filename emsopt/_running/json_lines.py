"""A file of JSON lines that is only ever appended to, survives being killed at any moment, and has one writer.

The first line says what the file is; it is read and judged before the rest. Each line is on disk before
`JsonLines.append` returns. A last line that a kill cut short is removed when the file is opened again. A line that does
not fit on the disk is removed at once.
"""

import json
import os
from contextlib import suppress

from .. import _validate
from .._files.inflate import values_in
from .._files.writing import errors_explained
from ..errors import InputError, WriteError

LONGEST_LINE = 16 * 2**20
MOST_BYTES = 256 * 2**20
MOST_VALUES = 16 * 10**6


class JsonLines:
    """The lines of such a file, and a way to add more; a context manager.

    Parameters
    ----------
    path : path-like
        Created if it does not exist.
    kind : str
        First key of the first line.
    noun : str
        What messages call the file.
    name : str
        The argument it came by.

    Attributes
    ----------
    lines : list of dict
        Found on file.

    Raises
    ------
    InputError
        If the file is something else, is damaged, or another run is writing to it.
    WriteError
        If it cannot be written.
    """

    def __init__(self, path, kind, noun, name):
        self.path, self.noun, self._values = _validate.path(path, name), noun, 0
        if os.path.lexists(self.path) and not os.path.isfile(self.path):  # `is_file` may raise
            msg = (
                f"`{name}` must be a file; {path} is a folder, a device or a broken link. Name another file."
            )
            raise InputError(msg)
        with errors_explained(self.path):
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 - closed by close()
        try:
            if not _claim(self._file):
                msg = (
                    f"another run is writing to the {noun} {path}. Wait for it to end, or name another file. "
                    "A run that was killed no longer counts as writing."
                )
                raise InputError(msg)
            self.lines = self._read(kind)
        except BaseException:
            self._file.close()
            raise

    def _read(self, kind):
        """Return the lines on file, and cut off what follows the last line end."""
        lines, end = [], 0
        size = os.fstat(self._file.fileno()).st_size
        with open(self.path, "rb") as file:
            for line in iter(lambda: file.readline(LONGEST_LINE), b""):
                if end == 0:
                    self._check_start(line, kind)
                    if size > MOST_BYTES:
                        msg = f"{self.path} has {size / 2**20:.0f} MB; a {self.noun} has at most {MOST_BYTES >> 20}. Name another file."
                        raise InputError(msg)
                if not line.endswith(b"\n"):
                    if len(line) == LONGEST_LINE:
                        self.refuse(len(lines) + 1)
                    break
                self._values += values_in(line)
                if self._values > MOST_VALUES:
                    msg = f"{self.path} has more than {MOST_VALUES:,} values, the most that a {self.noun} has. Name another file."
                    raise InputError(msg)
                lines.append(self._parsed(line, len(lines) + 1))
                end += len(line)
        if end < size:
            with errors_explained(self.path):
                self._file.truncate(end)
        return lines

    def _check_start(self, line, kind):
        """Refuse a file that does not begin as one of this kind does, or as far as a kill let it begin."""
        start = f'{{"{kind}"'.encode()
        if not (line.startswith(start) or (start.startswith(line) and not line.endswith(b"\n"))):
            msg = f"{self.path} is not a {self.noun} of {kind.split()[0]}; name another file."
            raise InputError(msg)

    def _parsed(self, line, number):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            self.refuse(number)
        return content

    def refuse(self, number):
        """Raise the error for a line that cannot be read."""
        msg = (
            f"line {number} of the {self.noun} {self.path} is damaged. Cut the file off before that line to resume "
            "from there, or name another file."
        )
        raise InputError(msg)

    def append(self, line):
        """Put a line on file; it is on disk when this returns."""
        content = json.dumps(line).encode() + b"\n"
        before, self._values = os.fstat(self._file.fileno()).st_size, self._values + values_in(content)
        if before + len(content) > MOST_BYTES or len(content) > LONGEST_LINE or self._values > MOST_VALUES:
            msg = (
                f"the {self.noun} {self.path} is full: it would hold more than {MOST_BYTES >> 20} MB or {MOST_VALUES:,} "
                "values, and could not be read again. What is on file is whole. Name another file."
            )
            raise WriteError(msg)
        rest = memoryview(content)
        with errors_explained(self.path):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
                os.fsync(self._file.fileno())
            except OSError:
                with suppress(OSError):
                    self._file.truncate(before)
                    if before == 0:
                        self.path.unlink()
                raise

    def close(self):
        """Close the file."""
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _claim(file):
    """Return whether this is now the only writer; the system ends the claim with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(2**62)  # a byte that nobody reads: there a claim keeps others from reading, too
        lock, arguments = msvcrt.locking, (file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        lock, arguments = fcntl.flock, (file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        lock(*arguments)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # some network disks have no locks; a run there is still better than none
        return True
    return True
