"""Long work beside a panel that still answers: a bar shows its progress, and a button ends it."""

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

NICENESS = 10  # a ninth of the processor where others want it too


class _Cancelled(BaseException):
    """Ends the work from within; not an Exception, so that no handler on the way catches it."""


class Job(widgets.HBox):
    """A button that starts work in a thread of its own, one piece at a time, another that ends it, and a bar.

    Parameters
    ----------
    label, tip : str
        Of the button.
    message : Message
        Says how the work ended.
    prepare : callable
        Called in the panel's thread; returns the work, a function without arguments. The work calls `tell` often and may
        return a remark.

    Attributes
    ----------
    start, cancel, bar : Widget
    """

    def __init__(self, label: str, tip: str, message: Message, prepare: Callable[[], Callable[[], object]]) -> None:
        self.start, self.cancel = button(label, tip, prepare, slow=True), button("Cancel", "End the search", self.stop)
        self.bar, self.cancel.disabled = Bar("Searching"), True
        self._message, self._stop, self._thread = message, Event(), Thread()
        self.start.on_click(guarded(message, self._begin))
        self.cancel.on_click(lambda _: self.stop())
        super().__init__([self.start, self.cancel, self.bar], layout={"flex_flow": "row wrap"})

    def _begin(self) -> None:
        """Start the work, unless some is going on."""
        if self._thread.is_alive():
            return
        work = self.start.action()
        self._stop.clear()
        self.start.disabled, self.cancel.disabled = True, False
        # A widget that changes tells the page to which cell it belongs, which a thread knows only in a copy of this context.
        target = guarded(self._message, partial(self._run, work))
        self._thread = Thread(target=copy_context().run, args=(target,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> object:
        """Do the work; return a remark on how it ended."""
        try:
            with self.bar:
                _give_way()
                return work()
        except _Cancelled:
            return "Cancelled; what was found before stays."
        finally:
            self.start.disabled, self.cancel.disabled = False, True

    def tell(self, done: int, total: int) -> None:
        """Show how much of the work is done, or end it if it was cancelled."""
        if self._stop.is_set():
            raise _Cancelled
        self.bar.tell(done, total)

    def stop(self) -> None:
        """Ask the work to end; it does so at its next `tell`."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the work has ended."""
        if self._thread.is_alive():
            self._thread.join(seconds)


def _give_way() -> None:
    """Lower the priority of this thread and those it starts, for the sake of whoever waits for an answer.

    Only Linux has priorities of single threads.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a container may forbid it
            here = get_native_id()
            os.setpriority(os.PRIO_PROCESS, here, max(NICENESS, os.getpriority(os.PRIO_PROCESS, here)))
