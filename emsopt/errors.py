"""What can go wrong, by kind. Every message says what was expected, what came and what to do."""


class EmsoptError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(EmsoptError, ValueError):
    """An argument or a file does not describe a valid city, deployment or option."""


class NoWayError(InputError):
    """No open road leads from the start to the end; the message names both and, if it is a closure, says so."""


class UnstableQueueError(InputError):
    """Calls arrive faster than the fleet can serve them, so an infinite queue never settles."""


class ConvergenceError(EmsoptError, RuntimeError):
    """An iteration stopped before it reached its tolerance."""


class DataUnavailableError(EmsoptError, RuntimeError):
    """A data set is neither on disk nor could be fetched; the message says where to put it."""


class MissingDependencyError(EmsoptError, ImportError):
    """An optional package is needed for this; the message says how to install it."""


class ResumeWarning(UserWarning):
    """A run resumed from a checkpoint would now ask for something else than it did; it goes on from what is on file."""


class WriteError(EmsoptError, OSError):
    """A file or folder could not be written; what was there before is intact."""


class AccuracyWarning(UserWarning):
    """A result was computed outside the range in which it was measured to be accurate; the message says by how much.

    ``warnings.simplefilter("ignore", emsopt.errors.AccuracyWarning)`` silences it.
    """
