"""Long work beside a panel that goes on answering: a bar shows how far it is, a button ends it."""

import os
import sys
from contextlib import suppress
from contextvars import copy_context
from threading import Event, Thread, get_native_id

import ipywidgets as widgets

from ._widgets import complaint

NICENESS = 10  # a ninth of the processor where others want it too


class _Cancelled(BaseException):
    """Raised where the work asks whether to go on; not an Exception, so that nothing on the way takes it for one."""


class Job:
    """A button that starts work in a thread of its own, one at a time.

    Parameters
    ----------
    label, tip : str
        Of the button.
    message : Message
        Says what came of it.
    work : callable
        Called in the panel's thread; returns a function of ``progress(done, total)`` to call in the other.
    done : callable
        Called with the result in the other thread; may return a remark.

    Attributes
    ----------
    start, cancel, bar : Widget
    box : HBox
        The three of them.
    """

    def __init__(self, label, tip, message, work, done):
        self.start = widgets.Button(description=label, tooltip=tip, button_style="primary", layout={"width": "auto"})
        self.cancel = widgets.Button(description="Cancel", tooltip="End the search", disabled=True)
        self.bar = widgets.FloatProgress(
            value=0.0, min=0.0, max=1.0, description="Searching", layout={"visibility": "hidden"}
        )
        self.box = widgets.HBox([self.start, self.cancel, self.bar], layout={"flex_flow": "row wrap"})
        self._message, self._work, self._done = message, work, done
        self._stop, self._thread = Event(), None
        self.start.on_click(self._begin)
        self.cancel.on_click(lambda _: self.stop())

    def _begin(self, _):
        if self.running:
            return
        try:
            work = self._work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is said
            self._message.say(complaint(error))
            return
        self._stop = Event()
        self.start.disabled, self.cancel.disabled = True, False
        self.bar.value, self.bar.layout.visibility = 0.0, "visible"
        # Widgets that change say for which cell: a thread knows that only in a copy of this one's context.
        run = copy_context().run
        self._thread = Thread(target=run, args=(self._run, work, self._stop), daemon=True)
        self._thread.start()

    def _run(self, work, stop):
        def progress(done, total):
            if stop.is_set():
                raise _Cancelled
            self.bar.value = done / max(total, 1)

        remark = "The search was stopped; what was found before stays."
        try:
            _give_way()
            result = work(progress)
            progress(1, 1)
            remark = self._done(result) or ""
        except _Cancelled:
            remark = "Cancelled; what was found before stays."
        except Exception as error:  # noqa: BLE001 - whatever it is, it is said
            remark = complaint(error)
        finally:
            self.start.disabled, self.cancel.disabled = False, True
            self.bar.layout.visibility = "hidden"
            self._message.say(remark)

    @property
    def running(self):
        """Whether work is going on."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self):
        """Ask the work to end; it does when it next tells how far it is."""
        self._stop.set()

    def wait(self, seconds=None):
        """Wait until the work has ended."""
        if self._thread is not None:
            self._thread.join(seconds)


def _give_way():
    """Let whoever waits for an answer, here or in another kernel, go before this thread and those it starts.

    Only Linux has this for a single thread.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a container may forbid it
            here = get_native_id()
            os.setpriority(os.PRIO_PROCESS, here, max(NICENESS, os.getpriority(os.PRIO_PROCESS, here)))
