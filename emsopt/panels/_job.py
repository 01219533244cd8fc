"""Long work in the background, with a progress bar and a cancel button, while the panel stays responsive."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Event, Thread, get_native_id
from typing import TYPE_CHECKING

import ipywidgets as widgets

from ._widgets import Bar, Message, button, guarded

if TYPE_CHECKING:
    from collections.abc import Callable

NICENESS = 10  # leaves about eight ninths of a busy processor to threads of normal priority


class _Cancelled(BaseException):
    """Raised within the work to end it. Not an Exception, so that no `except Exception` on the way catches it."""


class Job(widgets.HBox):
    """A button that starts work in a background thread, a button that cancels it, and a progress bar.

    A second piece of work cannot start before the first has ended.

    Parameters
    ----------
    label, tip : str
        Label and tooltip of the start button.
    message : Message
        Line that reports how the work ended.
    prepare : callable
        Called in the panel's thread; returns the work, a function without arguments. The work must call
        `tell` often, and may return a text for the message line.

    Attributes
    ----------
    start, cancel : Button
    bar : Bar
        Progress of the work; visible while it runs.
    """

    def __init__(self, label: str, tip: str, message: Message, prepare: Callable[[], Callable[[], object]]) -> None:
        self.start, self.cancel = button(label, tip, prepare, slow=True), button("Cancel", "End the search", self.stop)
        self.bar, self.cancel.disabled = Bar("Working"), True
        self._message, self._stop, self._thread = message, Event(), Thread()
        self.start.on_click(guarded(message, self._begin))
        self.cancel.on_click(lambda _: self.stop())
        super().__init__([self.start, self.cancel, self.bar], layout={"flex_flow": "row wrap"})

    def _begin(self) -> None:
        """Start the work, unless earlier work is still running."""
        if self._thread.is_alive():
            return
        work = self.start.action()
        self._stop.clear()
        self.start.disabled, self.cancel.disabled = True, False
        # The current context says which notebook cell the widgets belong to, so the thread needs a copy of it.
        target = guarded(self._message, partial(self._run, work))
        self._thread = Thread(target=copy_context().run, args=(target,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> object:
        """Do the work; return a text on how it ended."""
        try:
            with self.bar:
                _give_way()
                return work()
        except _Cancelled:
            return "Cancelled. The previous result stays."
        finally:
            self.start.disabled, self.cancel.disabled = False, True

    def tell(self, done: int, total: int) -> None:
        """Show how much of the work is done; raise, which ends the work, if it was cancelled."""
        if self._stop.is_set():
            raise _Cancelled
        self.bar.tell(done, total)

    def stop(self) -> None:
        """Ask the work to end, which it does when it next calls `tell`."""
        self._stop.set()
        self.cancel.disabled, self.bar.description = True, "Cancelling after this step"

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the work has ended, or for this many seconds."""
        if self._thread.is_alive():
            self._thread.join(seconds)


def _give_way() -> None:
    """Lower the priority of this thread and of those it starts, so that panels stay responsive.

    Outside Linux this does nothing, because single threads have no priority there.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a container may forbid it
            here = get_native_id()
            os.setpriority(os.PRIO_PROCESS, here, max(NICENESS, os.getpriority(os.PRIO_PROCESS, here)))
