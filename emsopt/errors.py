"""Errors and warnings by kind. Messages say what was expected, what came and what to do."""


class EmsoptError(Exception):
    """Base class of all errors that this package raises on purpose."""


class InputError(EmsoptError, ValueError):
    """An argument, an option or the content of a file is invalid."""


class NoneLeftError(InputError):
    """Every allowed candidate has been asked for already, or no further one was found."""


class NoWayError(InputError):
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
    """A result was computed outside the range in which its accuracy was measured. The message says by how much.

    ``warnings.simplefilter("ignore", emsopt.errors.AccuracyWarning)`` silences it.
    """
