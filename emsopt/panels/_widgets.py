"""Building blocks of the panels: inputs, work in the background, messages, tables and pictures as HTML."""

from __future__ import annotations

import logging
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from html import escape
from io import BytesIO
from threading import Event, Lock, Thread, get_native_id
from time import monotonic
from typing import Any

import ipywidgets as widgets
import numpy as np
from traitlets.log import get_logger

from ..errors import EmsoptError, _validate
from ..errors._types import Rng
from ..plots._style import STYLE

LABEL_STYLE = {"description_width": "9.5em"}
WIDE_INPUT, NARROW_INPUT = "min(32em, 98%)", "19em"
PARAGRAPH_STYLE = "margin:0.2em 0;line-height:1.4;max-width:56em"
# Matplotlib's settings are global, and a search in the background may draw at the same time.
DRAWING_LOCK = Lock()
NICENESS = 10  # leaves about eight ninths of a busy processor to threads of normal priority
ESTIMATE_AFTER_S = 3.0  # seconds until a progress bar estimates the rest, as earlier estimates are poor
MAX_SEED = 2**53 - 1  # the largest integer that JavaScript stores exactly
MAX_MESSAGE_LENGTH = 1000  # characters; a message about a file may quote one of its lines
TABLE_STYLE = """<style>
.emsopt-figures {border-collapse: collapse; line-height: 1.5}
.emsopt-figures th, .emsopt-figures td {padding: 0.15em 0.9em; text-align: right; border-bottom: 1px solid #8886;
  white-space: nowrap; font-variant-numeric: tabular-nums}
.emsopt-figures th[scope=row] {text-align: left; font-weight: normal}
</style>"""


def control(
    kind: Any,
    value: object,
    label: str,
    tip: str,
    limits: Sequence[float] = (),
    action: Callable[[], object] | None = None,
    **options: Any,
) -> Any:
    """Return an input of the ipywidgets class ``kind`` for a panel's dict of controls.

    ``limits`` are its lowest value, highest value and, optionally, step; those of a `FloatLogSlider` are exponents of
    ten. ``action`` is called without arguments after a change; by default that is `Panel.respond`.
    """
    if "Slider" in kind.__name__ or kind is widgets.Text:
        options["continuous_update"] = False
    width = NARROW_INPUT if "Bounded" in kind.__name__ else WIDE_INPUT
    options = dict(zip(("min", "max", "step"), limits, strict=False)) | {"style": LABEL_STYLE} | options
    made = kind(value=value, description=label, tooltip=tip, layout={"width": width}, **options)
    made.action = action
    return made


def button(label: str, tip: str, action: Callable[[], object], *, slow: bool = False) -> Any:
    """Return a button for a panel's dict of controls; a ``slow`` one is disabled while the panel computes."""
    layout, style = {"width": "auto", "min_width": "9em"}, "primary" if slow else ""
    made = widgets.Button(description=label, tooltip=tip, button_style=style, layout=layout)
    made.action, made.slow = action, slow
    return made


def seed_input(rng: Rng, tip: str, action: Callable[[], object] | None = None) -> Any:
    """Return the input for a seed; it begins with ``rng`` or, if this is a generator or None, at random."""
    if _validate.is_real(rng):
        seed = _validate.whole_number(rng, "rng", low=0, high=MAX_SEED)
    else:
        seed = int(_validate.generator(rng).integers(2**31))
    return control(widgets.BoundedIntText, seed, "Seed", tip, (0, MAX_SEED), action)


class SiteInputs(widgets.GridBox):
    """A grid of one input per site, ``fields``: checkboxes, or numbers of units if some site may hold several.

    ``changed`` is called after a change, and only once if several inputs change together. ``kept`` and ``room`` are the
    minimum and maximum number of units at each site, by default 0 and 1.
    """

    def __init__(
        self,
        names: Sequence[str],
        changed: Callable[[], object],
        kept: Sequence[int] | None = None,
        room: Sequence[int] | None = None,
    ) -> None:
        self._kept, room = kept or [0] * len(names), room or [1] * len(names)
        self._changed, self._quiet, self.fields = changed, False, []
        for name, low, high in zip(names, self._kept, room, strict=True):
            shared = {"description": name, "tooltip": f"Units at {name}", "layout": {"width": "auto"}}
            if max(room) > 1:
                shared["style"] = {"description_width": "8em"}
                field = widgets.BoundedIntText(low, min=low, max=high, disabled=low == high, **shared)
            else:
                field = widgets.Checkbox(bool(low), indent=False, disabled=low == high, **shared)
            field.observe(self._notify, "value")
            self.fields.append(field)
        columns = "repeat(auto-fill, minmax(13em, 1fr))"
        layout = {"grid_template_columns": columns, "max_height": "14em", "overflow": "auto"}
        super().__init__(self.fields, layout=layout)

    def _notify(self, _: object) -> None:
        """Call ``changed`` after a change of one input."""
        if not self._quiet:
            self._changed()

    @property
    def deployment(self) -> tuple[int, ...]:
        """The deployment entered: one site index per unit, in ascending order."""
        return tuple(site for site, field in enumerate(self.fields) for _ in range(int(field.value)))

    def set_units(self, sites: Iterable[int]) -> None:
        """Place one unit for each site index in ``sites``, and remove all others except those that a site must keep."""
        counts = np.bincount(np.array([*sites], dtype=int), minlength=len(self.fields))
        self._quiet = True
        try:
            for field, units in zip(self.fields, np.maximum(counts, self._kept), strict=True):
                field.value = type(field.value)(units)
        finally:
            self._quiet = False
        self._changed()

    def toggle(self, places: Sequence[int], left: int = 0) -> None:
        """Add a unit at one of the sites ``places``, or remove all their units.

        One is added if a site is empty or, where sites hold several units, if units are ``left`` to place and there is
        room. If no unit of any site would remain, nothing changes.
        """
        chosen = self.deployment
        few = min(places, key=chosen.count)
        several = not isinstance(self.fields[few], widgets.Checkbox)
        if chosen.count(few) == 0 or (several and left > 0 and chosen.count(few) < self.fields[few].max):
            self.set_units([*chosen, few])
        elif kept := [site for site in chosen if site not in places]:
            self.set_units(kept)


class ProgressBar(widgets.FloatProgress):
    """A progress bar that estimates the remaining time; it is visible only within a ``with`` statement."""

    def __init__(self, label: str) -> None:
        self.label, self.since, self.share = label, monotonic(), 0.0
        style = {"description_width": "initial"}
        super().__init__(value=0.0, min=0.0, max=1.0, description=label, style=style, layout={"visibility": "hidden"})

    def show_progress(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` steps are done, and after a while the remaining time."""
        share, passed = done / max(total, 1), monotonic() - self.since
        if share < self.share:  # another part of the work has begun
            self.since, passed = monotonic(), 0.0
        self.value = self.share = share
        left = passed * (1 / share - 1) if share else 0.0
        told = f"{left / 60:.0f} min" if left > 90 else f"{5 * np.ceil(left / 5):.0f} s"
        self.description = f"{self.label}, about {told} left" if passed > ESTIMATE_AFTER_S and left else self.label

    def __enter__(self) -> None:
        self.since, self.share, self.value, self.description = monotonic(), 0.0, 0.0, self.label
        self.layout.visibility = "visible"

    def __exit__(self, *_: object) -> None:
        self.layout.visibility = "hidden"


class _Cancellation(BaseException):
    """Raised in background work to end it; not an Exception, so that no `except Exception` in the work catches it."""


class BackgroundJob(widgets.HBox):
    """A button that starts work in a background thread, a button that cancels it, and a progress bar.

    Work cannot start again before it has ended. ``prepare``, which the button calls, returns the work: a function
    without arguments, which must call `show_progress` often and may return a text for ``message``.
    """

    def __init__(self, label: str, tip: str, message: Message, prepare: Callable[[], Callable[[], object]]) -> None:
        self.start, self.cancel = button(label, tip, prepare, slow=True), button("Cancel", "End the search", self.stop)
        self.bar, self.cancel.disabled = ProgressBar("Working"), True
        self._message, self._stop, self._thread = message, Event(), Thread()
        self.start.on_click(message_callback(message, self._begin))
        self.cancel.on_click(lambda _: self.stop())
        super().__init__([self.start, self.cancel, self.bar], layout={"flex_flow": "row wrap"})

    def _begin(self) -> None:
        """Start the work, unless it is running."""
        if self._thread.is_alive():
            return
        work = self.start.action()
        self._stop.clear()
        self.start.disabled, self.cancel.disabled = True, False
        # The current context says which notebook cell the widgets belong to, so the thread needs a copy of it.
        target = message_callback(self._message, partial(self._run, work))
        self._thread = Thread(target=copy_context().run, args=(target,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> object:
        """Do the work in the background thread; return its message, or one that it was cancelled."""
        try:
            with self.bar:
                _lower_priority()
                return work()
        except _Cancellation:
            return "Cancelled. The previous result stays."
        finally:
            self.start.disabled, self.cancel.disabled = False, True

    def show_progress(self, done: int, total: int) -> None:
        """Show how much of the work is done; raise, which ends the work, if it was cancelled."""
        if self._stop.is_set():
            raise _Cancellation
        self.bar.show_progress(done, total)

    def stop(self) -> None:
        """Ask the work to end, which it does when it next calls `show_progress`."""
        self._stop.set()
        self.cancel.disabled, self.bar.description = True, "Cancelling after this step"

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the work has ended, or for this many seconds."""
        if self._thread.is_alive():
            self._thread.join(seconds)


def _lower_priority() -> None:
    """On Linux, lower the priority of this thread and of those that it starts, so that panels respond quickly."""
    if sys.platform == "linux":
        with suppress(OSError):  # a container may forbid it
            here = get_native_id()
            os.setpriority(os.PRIO_PROCESS, here, max(NICENESS, os.getpriority(os.PRIO_PROCESS, here)))


def group(title: str, children: Sequence[Any], *, opened: bool = True) -> Any:
    """Return a group of widgets below a button that shows and hides them in the browser."""
    head = widgets.ToggleButton(opened, description=title, tooltip=f"Show or hide: {title}")
    body = add_class(widgets.VBox(children), "emsopt-body")
    head.add_class("emsopt-head")
    return add_class(widgets.VBox([head, body]), "emsopt-fold")


class Tabs(widgets.VBox):
    """A row of buttons, one per sheet, above the chosen sheet; the value of ``buttons`` is its title.

    ``sheets`` has the content of each sheet by title; ``chosen`` is called when another one is chosen.
    """

    def __init__(self, sheets: Mapping[str, Sequence[Any]], chosen: Callable[[], object]) -> None:
        self.buttons = widgets.ToggleButtons(options=list(sheets), tooltips=list(sheets))
        self.sheets = [add_class(widgets.VBox(content), "emsopt-sheet") for content in sheets.values()]
        super().__init__([self.buttons, *self.sheets])
        self.add_class("emsopt-tabs")
        self._show_sheet()
        self.buttons.observe(self._show_sheet, "index")
        self.buttons.observe(lambda _: chosen(), "index")

    @property
    def current_title(self) -> str:
        """The title of the sheet shown."""
        return str(self.buttons.value)

    def _show_sheet(self, _: object = None) -> None:
        for k, sheet in enumerate(self.sheets):
            sheet.layout.display = "" if k == self.buttons.index else "none"


def add_class(widget: Any, *names: str) -> Any:
    """Return a widget after giving it CSS classes."""
    for name in names:
        widget.add_class(name)
    return widget


class SuccessText(str):
    """A message about success, which `Message.show` shows in another colour than warnings."""


class Message(widgets.HTML):
    """A line for errors, remarks and success (`SuccessText`), which screen readers announce.

    ``times`` counts the calls of `show`; ``words`` converts an error to text, by default ``str``.
    """

    def __init__(self, words: Callable[[object], str] = str) -> None:
        super().__init__()
        self.times, self.words = 0, words

    def show(self, text: str = "") -> None:
        """Show ``text``, or nothing if it is empty."""
        edge, ground = ("#1a7f37", "#e9f6ec") if isinstance(text, SuccessText) else ("#b35900", "#fff4e5")
        style = f"border-left:4px solid {edge};background:{ground};padding:0.3em 0.7em;color:#222;max-width:56em"
        text = text if len(text) <= MAX_MESSAGE_LENGTH else text[:MAX_MESSAGE_LENGTH] + " …"
        self.times += 1
        self.value = f"<div role='status' style='{style}'>{escape(text)}</div>" if text else ""


def error_text(error: Exception, words: Callable[[object], str] = str) -> str:
    """Return the message for an error, converted to text by ``words``; log an error that is no `EmsoptError`."""
    if isinstance(error, EmsoptError):
        text = words(error)  # a leading name, such as calls.csv, is not capitalised
        return text[:1].upper() + text[1:] if text.split(" ")[0].isalpha() else text
    # In a kernel, "emsopt" logs to the notebook and the kernel's own logger to the log of the server.
    for log in {logging.getLogger("emsopt"), get_logger()}:
        log.error("A panel met an unexpected error.", exc_info=error)
    return (
        f"Something unexpected went wrong ({type(error).__name__}). Try another value or another file, or start "
        "again: reload the page, or run the notebook's cell again. The details are in the log of the server."
    )


def message_callback(
    message: Message, action: Callable[[], object], otherwise: Callable[[], object] = lambda: None
) -> Callable[..., None]:
    """Return a callback for a widget that calls ``action`` and shows the text that this returns in ``message``.

    If it raises, the error is shown, and ``otherwise`` is called to remove outdated results. If it returns nothing, the
    message becomes empty, unless ``action`` itself changed it.
    """

    def callback(_: object = None) -> None:
        before = message.times
        try:
            remark = action() or ""
            remark = remark if isinstance(remark, str) else str(remark)
        except Exception as error:  # noqa: BLE001 - the panel shows every error
            remark = error_text(error, message.words)
            message_callback(message, otherwise)()
        if remark or message.times == before:
            message.show(remark)

    return callback


class Markup(str):
    """Text of a table cell that is HTML, and is not escaped."""


def table(caption: str, columns: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return an HTML table; ``rows`` has pairs of a title and cells, one cell per column."""
    body, head = "", "".join(f"<th scope='col'>{escape(name)}</th>" for name in columns)
    for title, texts in rows:
        cells = "".join(f"<td>{text if isinstance(text, Markup) else escape(text)}</td>" for text in texts)
        name = title if isinstance(title, Markup) else escape(title)
        body += f"<tr><th scope='row'>{name}</th>{cells}</tr>"
    return (
        f"{TABLE_STYLE}{paragraphs(caption)}<div style='overflow:auto;max-height:30em' tabindex='0' role='group' "
        f"aria-label='{escape(caption)}'><table class='emsopt-figures' aria-label='{escape(caption)}'>"
        f"{head and f'<tr><td></td>{head}</tr>'}{body}</table></div>"
    )


def bar_cell(share: float, colour: str, text: str = "") -> Markup:
    """Return a table cell with a bar, 10 em wide for a ``share`` of 1, and a text beside it."""
    look = f"display:inline-block;height:0.8em;width:{10 * share:.2f}em;margin-right:0.4em;background:{colour}"
    return Markup(f"<div style='text-align:left'><span style='{look}'></span>{text}</div>")


def paragraphs(*texts: str) -> str:
    """Return texts as HTML paragraphs."""
    return "".join(f"<p style='{PARAGRAPH_STYLE}'>{escape(text)}</p>" for text in texts)


def png(draw: Callable[[Any], object], dpi: int, about: str = "") -> bytes:
    """Return what ``draw`` draws in an empty figure as a PNG file, with the description ``about`` in it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = STYLE | {"text.parse_math": False, "figure.constrained_layout.use": False}
    with DRAWING_LOCK, rc_context(settings):
        figure, content = Figure(), BytesIO()
        draw(figure)
        figure.savefig(content, format="png", dpi=dpi, metadata={"Description": about} if about else None)
    return content.getvalue()


def image(draw: Callable[[Any], object], alt: str, dpi: int = 85) -> str:
    """Return what ``draw`` draws in an empty figure as an HTML image; ``alt`` describes it in words."""
    source = b64encode(png(draw, dpi)).decode()
    return f"<img src='data:image/png;base64,{source}' alt='{escape(alt)}' style='max-width:100%'>"


def titled_image(
    draw: Callable[[Any], object],
    title: str,
    alt: str,
    size: tuple[float, float] = (5.6, 3.5),
    box: tuple[float, float, float, float] = (0.16, 0.17, 0.8, 0.78),
) -> str:
    """Return what ``draw`` draws in empty axes as an HTML image below a title; ``alt`` describes it in words.

    ``size`` is in inches. The axes fill ``box`` (left, bottom, width and height as fractions of the figure): fitting
    the margins would double the time.
    """

    def draw_in_box(figure: Any) -> None:
        figure.set_size_inches(*size)
        draw(figure.add_axes(box))

    return f"<figure style='margin:0.4em 0'>{paragraphs(title)}{image(draw_in_box, alt)}</figure>"


def download_link(name: str, kind: str, content: bytes) -> str:
    """Return an HTML link that saves ``content`` as a file; ``kind`` is its media type, such as "text/csv"."""
    source, size = f"data:{kind};base64,{b64encode(content).decode()}", f"{len(content) / 1024:,.0f} kB"
    style = "color:#0b5394;text-decoration:underline"
    return f"<a style='{style}' download='{escape(name)}' href='{source}'>{escape(name)}</a> ({size})"
