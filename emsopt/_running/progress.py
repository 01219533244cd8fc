"""Show the progress of long computations."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from .._types import Progress
from ..errors import InputError


class Show(Protocol):
    """Function that shows the number of items done, a note beside the bar, and the total number of items if given."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> object: ...


def bar(progress: Progress | None, total: int | None, unit: str) -> AbstractContextManager[Show]:
    """Return a context that yields a function of (number done, note, total) that shows progress.

    A function given as ``progress`` is called with (done, total); True shows a bar, False or None nothing. Pass
    ``total`` to the result only if it changes during the work; it is None while it is not known.
    """
    if progress is None or progress is False:
        return nullcontext(lambda done, note="", total=None: None)
    if progress is True:
        return _tqdm_bar(total, unit)
    if not callable(progress):
        raise InputError(f"`progress` must be True, False or a function of (done, total); got {progress!r}.")
    return nullcontext(lambda done, note="", total=total: progress(done, total))


@contextmanager
def _tqdm_bar(total: int | None, unit: str) -> Iterator[Show]:
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, miniters=0) as shown:  # so that a new note is shown although nothing is done

        def show(done: int, note: str = "", total: int | None = total) -> None:
            shown.total = total
            shown.set_postfix_str(note, refresh=False)
            shown.update(done - shown.n)  # tqdm counts what is new

        yield show
