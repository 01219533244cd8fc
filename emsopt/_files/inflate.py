"""Read files that may be compressed by gzip, without trusting what they say about themselves.

A few kilobytes of gzip can hold gigabytes. Content is therefore read a piece at a time and refused once it is longer than
any honest file would be: as a whole, or in relation to what has been read of the file on the disk. JSON is refused if
it holds more values than fit into memory once parsed.
"""

import gzip
import zlib

from ..errors import InputError

DAMAGED = (OSError, EOFError, zlib.error)  # what reading a file that is cut short or unreadable raises
GZIP_START = b"\x1f\x8b"
PIECE = 2**18  # bytes
FREE = 2**24  # bytes of content for which no ratio is asked
RATIO = 100  # bytes of content to one on the disk; road networks are compressed 5 to 10 times


def values_in(text):
    """Return about how many values JSON holds, as bytes: before it is parsed, when each may take 100 bytes or more."""
    return sum(map(text.count, (b",", b"[", b"{")))


def pieces(path, most):
    """Yield the content of a file, decompressed if need be, in pieces of at most `PIECE` bytes.

    Parameters
    ----------
    path : pathlib.Path
    most : int
        Bytes of content that are accepted.

    Raises
    ------
    InputError
        If the content is longer, or was compressed more than `RATIO` times.
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
                msg = f"It holds more than {most / 1e6:g} MB, the most that is read. Cut it to the area that you need."
                raise InputError(msg)
            if packed and total > max(FREE, RATIO * file.tell()):
                msg = (
                    f"It is compressed more than {RATIO} times, as no road network is. If it is sound, decompress it "
                    "first."
                )
                raise InputError(msg)
            yield piece
