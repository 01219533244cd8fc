"""Read files that may be gzip-compressed, without trusting their declared sizes.

A few kilobytes of gzip data can expand to gigabytes. Content is therefore read in pieces and refused once its
size, or its ratio to the compressed size, exceeds that of any genuine file. Readers of JSON estimate with `values_in`
whether the parsed values would fit into memory.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError

DAMAGED = (OSError, EOFError, zlib.error)  # errors raised by truncated or unreadable files
GZIP_START = b"\x1f\x8b"
PIECE = 2**18  # bytes
FREE = 2**24  # bytes of content below which the ratio is not checked
RATIO = 100  # maximum compression ratio; road networks have 5 to 10


class Upload(NamedTuple):
    """A file in memory; it has the attribute ``name`` and the method ``open`` of a `Path`, which the readers use."""

    name: str
    content: bytes

    def open(self, _mode: str) -> io.BytesIO:
        """Return the content as an open file in binary mode, whatever the mode asked for."""
        return io.BytesIO(self.content)


def values_in(text: bytes) -> int:
    """Estimate how many values JSON text holds, without parsing it, by counting its commas and opening brackets."""
    return sum(map(text.count, (b",", b"[", b"{")))


def pieces(path: Path | Upload, most: int, remedy: str = "Cut out the area you need.") -> Iterator[bytes]:
    """Yield the content of a file, decompressed if necessary, in pieces of at most `PIECE` bytes.

    Parameters
    ----------
    path : pathlib.Path or Upload
    most : int
        Maximum number of bytes of content.
    remedy : str
        What to do about longer content, for the message.

    Raises
    ------
    InputError
        If the content is longer than ``most``, or is compressed more than `RATIO` times and longer than `FREE` bytes.
    OSError, EOFError, zlib.error
        If the file cannot be read to its end.
    """
    total = 0
    with path.open("rb") as file:
        packed = file.read(len(GZIP_START)) == GZIP_START
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        while piece := stream.read(PIECE):
            total += len(piece)
            if total > most:
                raise InputError(f"It has more than {most / 1e6:g} MB. {remedy}")
            if packed and total > max(FREE, RATIO * file.tell()):
                raise InputError(f"It is compressed more than {RATIO} times. Decompress it first.")
            yield piece
