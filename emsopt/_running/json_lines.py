"""An append-only file of JSON lines that survives interruptions at any moment and allows one writer at a time.

An incomplete last line is removed when the file is opened again, and a line that does not fit on the disk immediately.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, NoReturn

from .._files.atomic import explain_errors
from ..errors import InputError, _validate
from ..errors._types import PathLike


@contextmanager
def json_lines(path: PathLike, kind: str, noun: str, name: str) -> Iterator["JsonLines"]:
    """Open or create a file and lock it, so that no other run can write to it in the meantime.

    ``kind`` is the first key of the first line; ``noun`` is the word for the file in messages, such as "checkpoint",
    and ``name`` the argument that gave the path. Raise if the file is of another kind, damaged, locked or read-only.
    """
    path = _validate.path(path, name)
    if os.path.lexists(path) and not os.path.isfile(path):  # `is_file` may raise
        raise InputError(f"`{name}` must be a file; {path} is a folder, a device or a broken link.")
    with explain_errors(path):
        file = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed below, outside `explain_errors`
    with file:
        if not _lock_file(file):
            raise InputError(f"another run is writing to the {noun} {path}. Wait for it, or name another file.")
        yield JsonLines(path, file, kind, noun)


class JsonLines:
    """An open file of JSON lines: ``lines`` holds those found when it was opened, as dicts; `append` adds one."""

    def __init__(self, path: Path, file: FileIO, kind: str, noun: str) -> None:
        self.path, self._file, self.noun = path, file, noun
        self.lines = self._read(kind)

    def _read(self, kind: str) -> list[dict[str, Any]]:
        """Return the complete lines of the file as dicts, and cut off an incomplete last line."""
        lines, end, size = list[dict[str, Any]](), 0, os.fstat(self._file.fileno()).st_size
        start = f'{{"{kind}"'.encode()
        with open(self.path, "rb") as file:
            for line in file:
                # an interruption may have cut off the first line
                if end == 0 and not (line.startswith(start) or (start.startswith(line) and line[-1:] != b"\n")):
                    raise InputError(f"{self.path} is not a {self.noun} of emsopt; name another file.")
                if not line.endswith(b"\n"):  # all before it is complete
                    break
                try:
                    content = json.loads(line)
                except (ValueError, RecursionError):
                    content = None
                if not isinstance(content, dict):
                    self.raise_damaged(len(lines) + 1)
                lines.append(content)
                end += len(line)
        if end < size:
            with explain_errors(self.path):
                self._file.truncate(end)
        return lines

    def raise_damaged(self, number: int) -> NoReturn:
        """Raise the error for a damaged line, whose ``number`` counts from 1."""
        remedy = "Delete it and all lines after it to resume from there, or name another file."
        raise InputError(f"line {number} of the {self.noun} {self.path} is damaged. {remedy}")

    def append(self, line: dict[str, Any]) -> None:
        """Append a line; it is on disk when this returns."""
        before = os.fstat(self._file.fileno()).st_size
        rest = memoryview(json.dumps(line).encode() + b"\n")
        with explain_errors(self.path):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]  # a write may take only a part
                os.fsync(self._file.fileno())
            except OSError:
                with suppress(OSError):
                    self._file.truncate(before)
                    if before == 0:
                        self.path.unlink()  # an empty file is of no use
                raise


def _lock_file(file: FileIO) -> bool:
    """Lock the file until it is closed, if the disk has locks; return False if another run has locked it, else True."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**62)  # a byte beyond the content, because Windows locks also block reading
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # some network disks have no locks; run without one there
        pass
    return True
