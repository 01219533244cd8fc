"""Errors and warnings by kind; checks of arguments are in `_validate`, names of types in `_types`.

A message says what was expected, what came and what to do.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from ._types import BoolArray

__all__ = ["EmsoptError", "InputError"]


class Argument(NamedTuple):
    """An argument of a function that a message names, with the value that it should have, if known."""

    name: str
    value: object = None

    def __str__(self) -> str:
        value = str(self.value).replace("Ellipsis", "...") if isinstance(self.value, dict) else repr(self.value)
        return f"`{self.name}`" if self.value is None else f"`{self.name}={value}`"


class Message(str):
    """Text of a message whose ``parts`` mark the arguments that it names, so that a command can name options."""

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Self:
        """Join texts and arguments to one text."""
        self = super().__new__(cls, "".join(map(str, parts)))
        self.parts = parts
        return self

    @classmethod
    def of(cls, text: object) -> Message:
        """Return the message of an error, or a text, as a `Message`."""
        held = text.args[0] if isinstance(text, EmsoptError) and text.args else text
        return held if isinstance(held, cls) else cls(str(text))

    @property
    def values(self) -> dict[str, Any]:
        """The values of the arguments in ``parts``, by their names."""
        return {part.name: part.value for part in self.parts if isinstance(part, Argument)}

    def write_arguments(self, spell: Callable[[Argument], str], names: Iterable[str]) -> str:
        """Return the text with its arguments, in ``parts`` or as ``names`` in backticks, written by ``spell``."""
        text = "".join(part if isinstance(part, str) else spell(part) for part in self.parts)
        for name in names:
            text = text.replace(f"`{name}`", spell(Argument(name)))
        return text


class EmsoptError(Exception):
    """Base class of all errors that this package raises on purpose; its message may be a `Message`.

    Examples
    --------
    >>> import emsopt as eo
    >>> issubclass(eo.errors.InputError, eo.EmsoptError)
    True
    """


class InputError(EmsoptError, ValueError):
    """An argument, an option or the content of a file is invalid.

    If the message is about cells of a table, ``rows`` is a boolean mask of their rows, and otherwise None.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.Objective(eo.datasets.load_st_paul(), units=-1)
    Traceback (most recent call last):
    emsopt.errors.InputError: `units` must be a whole number from 1 to 2000; got -1.
    """

    def __init__(self, message: str = "", rows: BoolArray | None = None) -> None:
        super().__init__(message)
        self.rows = rows


class ContradictionError(InputError):
    """A log contradicts the table of stations: for instance, drives hardly take longer at a larger distance."""


class NoCandidateError(InputError):
    """An optimizer has no further candidate: every allowed one was proposed already, or no other was found."""


class NoPathError(InputError):
    """No open road leads from the start to the end. The message names the edges concerned and a remedy."""


class UnstableQueueError(InputError):
    """Calls arrive at least as fast as the fleet can serve them, so an infinite queue has no steady state."""


class ConvergenceError(EmsoptError, RuntimeError):
    """An iteration stopped before it reached its tolerance, or a search before it found a solution."""


class DataUnavailableError(EmsoptError, RuntimeError):
    """A data file or data folder is missing, or a file is not the published one. The message says what to do."""


class MissingDependencyError(EmsoptError, ImportError):
    """An optional package is missing. The message says how to install it."""


class ResumeWarning(UserWarning):
    """A resumed run would now propose other points than its checkpoint has. It continues with the stored points."""


class WriteError(EmsoptError, OSError):
    """A file or folder could not be written. Existing content is intact."""


class AccuracyWarning(UserWarning):
    """A result was computed outside the range in which its accuracy was measured. The message gives the extent."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the innermost caller outside this package."""
    level, frame = 2, sys._getframe(1)  # 1 would be this function
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "emsopt":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
