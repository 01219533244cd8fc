"""The base class of all panels: a table of controls, outputs for the results, and a message line."""

from __future__ import annotations

from functools import partial
from html import escape
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from ._widgets import Message, button, guarded, lines, seed_input

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._types import Rng
    from ..maps import LiveMap

WRAP = {"flex_flow": "row wrap", "grid_gap": "0 1.5em"}


class Panel(widgets.VBox):
    """A column of widgets that updates its outputs when one of its inputs changes.

    Each kind of panel is a subclass. It passes its controls to `__init__` and lays out the widgets with `arrange`.
    `compute` returns the result for the current settings, and `draw` displays it. Errors are shown in ``message``.

    Parameters
    ----------
    controls : dict of str to Widget
        Inputs and buttons by name, made by `control` and `button`. A button calls its action when
        clicked. An input calls its action when changed, or `respond` if it has none.
    outputs : sequence of str
        Names of the HTML widgets that show results.
    view : LiveMap, optional
        Map of the panel.

    Attributes
    ----------
    refs : dict of str to Widget
        All inputs and outputs by name: the controls, the outputs, ``message`` (a line for errors and remarks) and, with
        a view, ``map``.
    controls, outputs : dict of str to Widget
    message : Message
    view : LiveMap
        The same widgets, by kind.

    Examples
    --------
    >>> import emsopt as eo
    >>> panel = eo.panels.claims_panel()
    >>> panel.controls["words"].value = "theorem 2"
    >>> len(panel.compute()) > 0
    True
    """

    view: LiveMap  # only if one is given

    def __init__(
        self, controls: dict[str, Any], outputs: Iterable[str] = ("figures",), view: LiveMap | None = None
    ) -> None:
        super().__init__()
        self.controls, self.message, self.lock = controls, Message(), RLock()
        self.outputs = {name: widgets.HTML() for name in outputs}
        self.refs: dict[str, Any] = {**controls, "message": self.message, **self.outputs}
        if view is not None:
            self.view = view
            self.refs["map"] = view
        for widget in controls.values():
            self.connect(widget)

    @property
    def at(self) -> SimpleNamespace:
        """The values of the inputs, by name."""
        return SimpleNamespace(**{name: w.value for name, w in self.controls.items() if hasattr(w, "value")})

    # -- what a kind of panel defines ---------------------------------------------------------------------------------

    def compute(self) -> Any:
        """Return the result for the current settings."""

    def draw(self, answer: Any) -> str | None:
        """Display the result of `compute`; return a text for the message line, or None."""

    def clear(self) -> None:
        """Remove a displayed result that is out of date."""
        self.show(**dict.fromkeys(self.outputs, ""))
        if hasattr(self, "view"):
            self.view.hide()

    def unavailable(self) -> set[str]:
        """Return the names of the controls that cannot be used now."""
        return set()

    # -- what all panels do -------------------------------------------------------------------------------------------

    def refresh(self) -> str | None:
        """Compute and draw the result; return the text that `draw` returns."""
        with self.lock:  # a search in the background may call this at the same time
            return self.draw(self.compute())

    def respond(self) -> None:
        """Compute and draw the result. On an error, clear the outputs and show the error as the message."""
        guarded(self.message, self.refresh, self.clear)()

    def show(self, **answers: str) -> None:
        """Show HTML in the outputs of these names."""
        for name, html in answers.items():
            self.outputs[name].value = html

    def connect(self, widget: Any) -> None:
        """Call the action of a control when it is clicked or changed.

        Slow buttons are disabled until the action returns. A text that it returns is shown as the message.
        """
        respond = guarded(self.message, getattr(widget, "action", None) or self.respond)

        def callback(_: object) -> None:
            self.disable({name for name, each in self.controls.items() if getattr(each, "slow", False)})
            try:
                respond()
            finally:
                self.disable(self.unavailable())

        if isinstance(widget, widgets.Button):
            widget.on_click(callback)
        else:
            widget.observe(callback, "value")

    def disable(self, names: set[str]) -> None:
        """Disable these controls and no others."""
        for name, widget in self.controls.items():
            widget.disabled = name in names

    def arrange(self, title: str, explanation: str, layout: str, **parts: Any) -> None:
        """Stack rows of widgets below a title.

        Parameters
        ----------
        title, explanation : str
        layout : str
            Names from `refs` or ``parts``. Blanks separate the widgets of a row, and vertical bars separate rows.
        **parts
            Further widgets by name.
        """
        parts = {**self.refs, **parts}
        rows = [[parts[name] for name in row.split()] for row in layout.split("|")]
        stacked = [row[0] if len(row) == 1 else widgets.HBox(row, layout=WRAP) for row in rows]
        heading = f"<h3 style='margin:0.2em 0'>{escape(title)}</h3>{lines(explanation)}"
        self.children = [widgets.HTML(heading), *stacked] if title else stacked
        self.disable(self.unavailable())


class SteppedPanel(Panel):
    """A panel that runs a method by one or ten evaluations at a time, and restarts it when the seed changes.

    Parameters
    ----------
    controls : dict of str to Widget
        Further controls; ``seed``, ``step``, ``run`` and ``restart`` are added.
    rng : int, Generator or None
        Initial seed; if None, one is drawn.
    outputs, view
        As in `Panel`.
    enough : str
        Message when no further step is possible.
    """

    def __init__(
        self, controls: dict[str, Any], rng: Rng, outputs: Iterable[str], enough: str, view: LiveMap | None = None
    ) -> None:
        controls |= {
            "seed": seed_input(rng, "Seed of all random choices; changing it restarts the method", self.restart),
            "step": button("Step", "Evaluate the point that the method proposes", partial(self.advance, 1), slow=True),
            "run": button("Run 10", "Ten steps", partial(self.advance, 10), slow=True),
            "restart": button("Restart", "Forget all evaluations and start again", self.restart),
        }
        super().__init__(controls, outputs, view)
        self.enough = enough

    def begin(self) -> None:
        """Forget all evaluations and start again."""

    def step(self) -> None:
        """Make one evaluation."""

    def finished(self) -> bool:
        """Return whether no further step is possible."""
        return False

    def unavailable(self) -> set[str]:
        return {"step", "run"} if self.finished() else set()

    def restart(self) -> str | None:
        """Start again and show the result; return the text that `draw` returns."""
        self.begin()
        return self.refresh()

    def advance(self, steps: int) -> str:
        """Make up to ``steps`` steps and show the result; return a message if no further step is possible."""
        try:
            for _ in range(steps):
                if self.finished():
                    break
                self.step()
        finally:
            self.refresh()
        return self.enough if self.finished() else ""
