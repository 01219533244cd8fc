"""Read files that may be compressed: by gzip, or as the one file in a .zip."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from ..errors import InputError

# Which of these a truncated or unreadable file raises depends on where it is damaged.
DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
GZIP_START, ZIP_START = b"\x1f\x8b", b"PK\x03\x04"


@dataclass(frozen=True, eq=False)
class Upload:
    """A file in memory, which readers take for a `Path` with ``open`` or for an open file with ``read``."""

    name: str
    content: bytes

    def open(self, _mode: str) -> io.BytesIO:
        """Return the content as an open file in binary mode; ``mode`` is ignored."""
        return io.BytesIO(self.content)

    def read(self, _most: int = -1) -> bytes:
        """Return the whole content, also if it was read before."""
        return self.content


def name_inside(path: Path | Upload) -> str:
    """Return the name of the one file in a .zip."""
    try:
        with path.open("rb") as file:
            return _member(file, path.name)[0]
    except DAMAGED as error:
        raise InputError(f"{path.name} is no .zip, or is damaged: {error}.") from error


def _member(file: IO[bytes], name: str) -> tuple[str, IO[bytes]]:
    """Return the one file in a .zip, and its name; files of macOS beside it do not count."""
    archive = zipfile.ZipFile(file)
    names = [name for name in archive.namelist() if not PurePosixPath(name).name.startswith(".")]
    names = [name for name in names if not name.endswith("/") and "__MACOSX" not in name]
    if len(names) != 1:
        raise InputError(f"{name} must hold one file; it holds {len(names)}. Unpack it, and give the one you need.")
    return PurePosixPath(names[0]).name, archive.open(names[0])


@contextmanager
def unpack(path: Path | Upload) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressing gzip and .zip files; errors of damaged files are those in `DAMAGED`."""
    with path.open("rb") as file:
        start = file.read(len(ZIP_START))
        file.seek(0)
        if start == ZIP_START:
            yield _member(file, path.name)[1]
        elif start.startswith(GZIP_START):
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file))
        else:
            yield file
