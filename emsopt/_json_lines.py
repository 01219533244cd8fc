"""A file of JSON lines that is only ever appended to, and survives being killed at any moment.

The first line says what the file is. Each line is on disk before `JsonLines.append` returns; a last line that a kill
cut short is cut off when the file is opened again.
"""

import json
import os
from pathlib import Path

from .errors import InputError


class JsonLines:
    """The lines of such a file, and a way to add more; a context manager.

    Parameters
    ----------
    path : path-like
        Made if it is not there.
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
        If the file is something else, is damaged, or cannot be written.
    """

    def __init__(self, path, kind, noun, name):
        self.path, self.noun = Path(path), noun
        try:
            self._file = open(self.path, "a+b")  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            msg = f"`{name}` must be a file that can be written to; {path} cannot: {error}."
            raise InputError(msg) from error
        try:
            self.lines = [self._parsed(line, k) for k, line in enumerate(self._complete_lines(kind), 1)]
        except BaseException:
            self._file.close()
            raise

    def _complete_lines(self, kind):
        """Return the lines on file, and cut off what follows the last line end."""
        self._file.seek(0)
        content = self._file.read()
        start = f'{{"{kind}"'.encode()
        if content[: len(start)] != start[: len(content)]:
            msg = f"{self.path} is not a {self.noun} of {kind.split()[0]}; name another file."
            raise InputError(msg)
        end = content.rfind(b"\n") + 1
        if end < len(content):
            self._file.truncate(end)
        return content[:end].splitlines()

    def _parsed(self, line, number):
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError):
            self.refuse(number)

    def refuse(self, number):
        """Raise the error for a line that cannot be read."""
        msg = (
            f"line {number} of the {self.noun} {self.path} is damaged. Cut the file off before that line to resume "
            "from there, or name another file."
        )
        raise InputError(msg)

    def append(self, line):
        """Put a line on file; it is on disk when this returns."""
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self):
        """Close the file."""
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
