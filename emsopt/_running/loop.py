"""The loop of every run, with its clock, checkpoint, progress bar, callback and Ctrl-C.

For each number that `Steps` yields, the caller proposes a step, takes its result from `Steps.stored_row` or computes
it, stores it by `Steps.write` before anything is learned from it, and calls `Steps.finish`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError, _validate
from ..errors._types import Callback, PathLike, Progress, Rng
from .checkpoint import CheckpointFormat, RunFile, run_seed
from .json_lines import JsonLines, json_lines


class ShowProgress(Protocol):
    """Function that shows the number of items done, a note beside the bar, and the total number of items."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> object: ...


def progress_bar(progress: Progress | None, total: int | None, unit: str) -> AbstractContextManager[ShowProgress]:
    """Return a context that shows progress by a bar if ``progress`` is True, or by calling it if it is a function.

    It yields a function that updates the bar. ``total`` is the number of items, None if unknown, and ``unit`` the word
    for one. Pass a total to the yielded function only if it changes during the work.
    """
    if progress is None or progress is False:
        return nullcontext(lambda done, note="", total=None: None)
    if progress is True:
        return _tqdm_bar(total, unit)
    if not callable(progress):
        raise InputError(f"`progress` must be True, False or a function of (done, total); got {progress!r}.")
    return nullcontext(lambda done, note="", total=total: progress(done, total))


@contextmanager
def _tqdm_bar(total: int | None, unit: str) -> Iterator[ShowProgress]:
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, miniters=0) as shown:  # so that a new note is shown although nothing is done

        def show(done: int, note: str = "", total: int | None = total) -> None:
            shown.total = total
            shown.set_postfix_str(note, refresh=False)
            shown.update(done - shown.n)  # tqdm counts what is new

        yield show


class RunOptions(NamedTuple):
    """The options that all runs share; `emsopt.minimize` describes them."""

    rng: Rng
    progress: Progress | None
    callback: Callback | None
    checkpoint: PathLike | None
    time_limit: float | None


class Steps:
    """The steps of a run: iterate over their numbers, which start at 1; ``number`` is the current one.

    ``seconds`` is the time from the start of the run to the result of the current step, with that before an
    interruption. ``rows`` has one row per finished step: its number, the entries passed to `finish`, and ``seconds``.
    ``message`` is why the run ended: at a limit or by the callback (``ended``), or by Ctrl-C (``interrupted``).
    """

    def __init__(self, options: RunOptions, file: RunFile, most: int | None, show: ShowProgress, message: str) -> None:
        self.file, self.message = file, message
        self.number, self.seconds, self.rows = 0, 0.0, list[tuple[Any, ...]]()
        self._most, self._show, self._callback = most, show, options.callback
        self._time_limit = np.inf if options.time_limit is None else options.time_limit
        self._start, self.ended, self.interrupted = time.perf_counter(), False, False
        self._new = dict[int, float]()  # results of a batch are stored before their turn: their seconds, by step

    def __iter__(self) -> Iterator[int]:
        while not self.ended and self.number != self._most:  # without a limit `_most` is None
            self.number += 1
            yield self.number

    @property
    def stored_row(self) -> dict[str, Any] | None:
        """The current step as stored in the checkpoint before an interruption, or None if it is new."""
        return self.file.rows.get(self.number)

    def write(self, **values: object) -> None:
        """Store ``values`` of the current step unless the checkpoint already has the step, and set ``seconds``."""
        if self.stored_row is not None:
            self.seconds = max(self.seconds, self.stored_row["seconds"])  # batches may end in another order
            self._start = time.perf_counter() - self.seconds  # as if there had been no interruption
            return
        if self.number not in self._new:
            self.store(self.number, **values)
        self.seconds = max(self.seconds, self._new.pop(self.number))

    def store(self, number: int, **values: object) -> None:
        """Store ``values`` of a step, perhaps before those of earlier steps; call `write` for it in order, too."""
        self._new[number] = seconds = round(time.perf_counter() - self._start, 6)
        self.file.add(number, **values, seconds=seconds)

    def time_is_up(self) -> bool:
        """Return whether the time limit is reached; if so, the run ends."""
        if time.perf_counter() - self._start >= self._time_limit:
            self._end_run(f"time limit of {self._time_limit:g} s reached")
            return True
        return False

    def _end_run(self, message: str) -> None:
        if not self.ended:
            self.message, self.ended = message, True

    def finish(self, row: tuple[Any, ...], argument: object, note: str, *, done: int | None = None) -> None:
        """Add a row to the history, show progress, and end the run at the time limit or if the callback asks for it.

        ``row`` has the entries of ``rows`` between the number of the step and the seconds, ``argument`` is passed to
        the user's callback, and ``note`` and ``done`` (default: the number of the step) are for the progress bar.
        """
        self.rows.append((self.number, *row, self.seconds))
        self._show(self.number if done is None else done, note)
        try:
            stopped = self._callback is not None and self._callback(argument)
        except StopIteration:  # scipy's way to stop
            stopped = True
        if self.seconds >= self._time_limit:
            self._end_run(f"time limit of {self._time_limit:g} s reached")
        if stopped:
            self._end_run("stopped by the callback")


@contextmanager
def run_loop(
    form: CheckpointFormat,
    describe: Callable[[], dict[str, Any]],
    options: RunOptions,
    *,
    message: str,
    steps: int | None = None,
    total: int | None = None,
    unit: str | None = None,
) -> Iterator[Steps]:
    """Open the checkpoint and progress bar of a run and yield its `Steps`; Ctrl-C ends it and keeps finished steps.

    ``describe`` returns the description of the run that a checkpoint must match. ``message`` is the reason for the end
    of a run that reaches its last step; by default, ``steps`` are not limited. ``total`` and ``unit`` are number and
    name of the items that the progress bar counts, by default the steps.
    """
    if options.callback is not None and not callable(options.callback):
        raise InputError(f"`callback` must be a function of one argument; got {options.callback!r}.")
    if options.time_limit is not None:
        _validate.positive_number(options.time_limit, "time_limit", "s")
    seed = {} if options.rng is None else {"seed": run_seed(options.rng)}  # without one, the seed on file is taken
    about, noun = {}, "checkpoint"  # also the name of the argument
    stored: AbstractContextManager[JsonLines | None] = nullcontext()
    if options.checkpoint is not None:
        about, stored = describe(), json_lines(options.checkpoint, form.kind, noun, noun)
    with stored as log, progress_bar(options.progress, total or steps or 1, unit or form.step) as show:
        run = Steps(options, RunFile(log, form, about | seed), steps, show, message)
        try:
            yield run
        except KeyboardInterrupt:
            if not run.rows:
                raise
            run.message, run.interrupted = "interrupted", True
