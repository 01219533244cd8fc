"""Layout of the dashboard: its style, groups of controls that fold, and tabs; and tasks left to the browser.

The groups and tabs are made of buttons, so that they work by keyboard. The style asks for the width of the dashboard
itself, not of the window: it also fits into the cell of a notebook.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from anywidget import AnyWidget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

STYLE = """<style>
.emsopt-dashboard { container-type: inline-size; overflow: visible; --line: #d5d9de; --soft: #f5f7f9; --spare: 430px; }
.emsopt-dashboard .widget-html, .emsopt-dashboard .widget-html-content { height: auto; line-height: 1.4;
  min-width: 0; }
.emsopt-bar { display: flex; flex-flow: row wrap; align-items: center; gap: 4px 14px; padding: 4px 8px;
  background: #143a5a; color: #fff; border-radius: 4px; }
.emsopt-bar .widget-label, .emsopt-bar h1, .emsopt-bar p, .emsopt-bar a { color: #fff !important; }
.emsopt-bar h1 { font-size: 17px; margin: 0; font-weight: 600; }
.emsopt-bar .widget-dropdown .widget-label { width: auto !important; }
.emsopt-main { display: grid; gap: 10px; overflow: visible; grid-template: minmax(0, 1fr) / 20em minmax(0, 1fr) 30em;
  height: clamp(430px, calc(100vh - var(--spare)), 1300px); }
.emsopt-column, .emsopt-results { overflow: hidden auto; min-width: 0; max-height: 100%; flex-wrap: nowrap; }
.emsopt-column > *, .emsopt-results > *, .emsopt-body > * { flex-shrink: 0; }
.emsopt-place { min-width: 0; min-height: 0; overflow: hidden; display: flex; }
.emsopt-place > * { flex: 1 1 auto; height: 100%; min-width: 0; }
.emsopt-head { width: auto !important; text-align: left; font-weight: 600; background: var(--soft); margin: 0;
  border-bottom: 1px solid var(--line); box-shadow: none !important; }
.emsopt-head::before { content: "\\25B8"; margin-right: 0.5em; }
.emsopt-head.mod-active::before { content: "\\25BE"; }
.emsopt-head.mod-active { background: var(--soft); color: inherit; }
.emsopt-fold { overflow: visible; }
.emsopt-fold > .emsopt-body { display: none; overflow: visible; padding: 4px 0; }
.emsopt-fold:has(> .emsopt-head.mod-active) > .emsopt-body { display: flex; }
.emsopt-column .widget-inline-hbox, .emsopt-column .widget-inline-vbox { width: auto !important; min-width: 0; }
.emsopt-column .widget-inline-hbox > .widget-label { width: 8.2em !important; min-width: 8.2em; text-align: left; }
.emsopt-column .widget-readout { min-width: 3.2em; width: 3.2em; }
.emsopt-column .widget-select-multiple select { min-width: 0; }
.emsopt-tabs { overflow: visible; min-height: 60vh; }
.emsopt-tabs > .widget-toggle-buttons { width: auto; border-bottom: 1px solid var(--line); }
.emsopt-tabs .widget-toggle-buttons .widget-toggle-button { width: auto; padding: 0 14px; margin: 0 2px 0 0;
  border-radius: 4px 4px 0 0; box-shadow: none !important; }
.emsopt-tabs .widget-toggle-button.mod-active { background: #143a5a; color: #fff; }
.emsopt-tabs > .emsopt-sheet { overflow: visible; padding: 6px 2px; }
.emsopt-dashboard :focus-visible { outline: 2px solid #0b67c2; outline-offset: 1px; }
.emsopt-results .emsopt-figures th, .emsopt-results .emsopt-figures td { padding: 0.15em 0.3em; }
.emsopt-results .emsopt-figures th[scope=row] { white-space: normal; min-width: 8em; }
.emsopt-results .emsopt-figures td { white-space: normal; }
.emsopt-results div[role=group] { max-height: none !important; }
.emsopt-said [role=status] { max-width: none !important; max-height: 2.9em; overflow: auto; }
.emsopt-dashboard:has(> .emsopt-said [role=status]) { --spare: 485px; }
@container (max-width: 1320px) {
  .emsopt-main { grid-template: minmax(20em, 1fr) auto / 20em minmax(0, 1fr); height: auto; }
  .emsopt-place { height: clamp(360px, 60vh, 900px); }
  .emsopt-column { grid-row: 1 / 3; }
}
@container (max-width: 860px) {
  .emsopt-main { grid-template: none / minmax(0, 1fr); }
  .emsopt-column { grid-row: auto; }
}
</style>"""


def fold(title: str, children: Sequence[Any], *, opened: bool = True) -> Any:
    """Return a group of widgets below a button that shows and hides them, without asking the kernel."""
    head = widgets.ToggleButton(opened, description=title, tooltip=f"Show or hide: {title}")
    body = add_class(widgets.VBox(children), "emsopt-body")
    head.add_class("emsopt-head")
    return add_class(widgets.VBox([head, body]), "emsopt-fold")


class Tabs(widgets.VBox):
    """A row of buttons, one per sheet, and the sheet that is chosen, whose title is their value.

    ``sheets`` has the content of each sheet by title; ``chosen`` is called when another one is chosen.
    """

    def __init__(self, sheets: Mapping[str, Sequence[Any]], chosen: Callable[[], object]) -> None:
        self.buttons = widgets.ToggleButtons(options=list(sheets), tooltips=list(sheets))
        self.sheets = [add_class(widgets.VBox(content), "emsopt-sheet") for content in sheets.values()]
        super().__init__([self.buttons, *self.sheets])
        self.add_class("emsopt-tabs")
        self._turn()

        def turned(_: object) -> None:
            self._turn()
            chosen()

        self.buttons.observe(turned, "index")

    @property
    def shown(self) -> str:
        """The title of the sheet shown."""
        return str(self.buttons.value)

    def _turn(self) -> None:
        for k, sheet in enumerate(self.sheets):
            sheet.layout.display = "" if k == self.buttons.index else "none"


def add_class(widget: Any, *names: str) -> Any:
    """Return a widget after giving it CSS classes."""
    for name in names:
        widget.add_class(name)
    return widget


class Browser(AnyWidget):
    """An invisible widget in the dashboard that saves files, and names controls for screen readers."""

    _esm = Path(__file__).with_name("browser.js")

    def __init__(self) -> None:
        super().__init__(layout={"height": "0", "margin": "0", "overflow": "hidden"})

    def download(self, name: str, kind: str, content: bytes) -> None:
        """Save a file where the browser keeps downloads."""
        self.send({"name": name, "kind": kind}, buffers=[content])
