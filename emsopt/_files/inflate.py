"""Read files that may be compressed (gzip, or a .zip of one file), without trusting their declared sizes.

A few kilobytes of compressed data can expand to gigabytes. Content is therefore read in pieces and refused once its
size, or its ratio to the compressed size, exceeds that of any genuine file. Readers of JSON estimate with `values_in`
whether the parsed values would fit into memory.
"""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import InputError

# Errors raised by truncated or unreadable files.
DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
GZIP_START, ZIP_START = b"\x1f\x8b", b"PK\x03\x04"
PIECE = 2**18  # bytes
FREE = 2**24  # bytes of content below which the ratio is not checked
RATIO = 100  # maximum compression ratio; road networks have 5 to 10


@dataclass(frozen=True, eq=False)
class Upload:
    """A file in memory, which readers take for a `Path` with ``open`` or for an open file with ``read``."""

    name: str
    content: bytes

    def open(self, _mode: str) -> io.BytesIO:
        """Return the content as an open file in binary mode, whatever the mode asked for."""
        return io.BytesIO(self.content)

    def read(self, _most: int = -1) -> bytes:
        """Return the whole content, also if it was read before."""
        return self.content


def values_in(text: bytes) -> int:
    """Estimate how many values JSON text holds, without parsing it, by counting its commas and opening brackets."""
    return sum(map(text.count, (b",", b"[", b"{")))


def name_inside(path: Path | Upload) -> str:
    """Return the name of the one file in a .zip."""
    try:
        with path.open("rb") as file:
            return _member(file)[0]
    except InputError as error:
        raise InputError(f"{path.name} cannot be read: {error}") from error
    except DAMAGED as error:
        raise InputError(f"{path.name} is no .zip, or is damaged: {error}.") from error


def _member(file: IO[bytes]) -> tuple[str, IO[bytes]]:
    """Return the one file in a .zip, and its name; files of macOS beside it do not count."""
    archive = zipfile.ZipFile(file)
    names = [name for name in archive.namelist() if not PurePosixPath(name).name.startswith(".")]
    names = [name for name in names if not name.endswith("/") and "__MACOSX" not in name]
    if len(names) != 1:
        raise InputError(f"It must hold one file; it holds {len(names)}. Unpack it, and give the one you need.")
    return PurePosixPath(names[0]).name, archive.open(names[0])


def pieces(path: Path | Upload, most: int, remedy: str = "Cut out the area you need.") -> Iterator[bytes]:
    """Yield the content of a file, decompressed if necessary, in pieces of at most `PIECE` bytes.

    Raises
    ------
    InputError
        If the content is longer than ``most`` bytes, for which ``remedy`` says what to do, or is compressed more than
        `RATIO` times and longer than `FREE` bytes.
    OSError, EOFError, zlib.error
        If the file cannot be read to its end.
    """
    total = 0
    with path.open("rb") as file:
        start = file.read(len(ZIP_START))
        packed = start.startswith((GZIP_START, ZIP_START))
        file.seek(0)
        stream: IO[bytes] = file
        if packed:
            stream = _member(file)[1] if start == ZIP_START else gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
        while piece := stream.read(PIECE):
            total += len(piece)
            if total > most:
                raise InputError(f"It has more than {most / 1e6:g} MB. {remedy}")
            if packed and total > max(FREE, RATIO * file.tell()):
                raise InputError(f"It is compressed more than {RATIO} times. Decompress it first.")
            yield piece
