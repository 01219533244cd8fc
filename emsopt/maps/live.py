"""A live map: a widget that takes new results and reports clicks, with the drawing code of the saved pages.

Leaflet and the drawing code travel with the widget (anywidget), so nothing is downloaded. Zoom, layers and the chosen
view stay as the reader left them when results change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from traitlets import Dict, List, Unicode

from ..errors import InputError, MissingDependencyError
from . import _colours
from ._page import Page, style_sheet, widget_script
from .deployments import DeploymentMap, Evaluations

try:
    from anywidget import AnyWidget
except ImportError as error:
    raise MissingDependencyError("a live map needs the package anywidget: pip install 'emsopt[notebooks]'.") from error


class LiveMap(AnyWidget):
    """Notebook widget with a map that can be redrawn and whose stations can be clicked.

    Parameters
    ----------
    sentence : str
        Text in place of a map, until one is drawn.

    Attributes
    ----------
    page : Page or None
        The map shown; ``page.save("map.html")`` writes it. Its ``kind``, ``scene`` and ``views`` go to the browser.
    edit : str
        Name of the evaluation whose stations can be clicked; a click on another opens the list of units.
    clicked : callable or None
        Called when a station is clicked, with the list of indices of the sites at its location.
    shown : str
        Name of the view selected on the map, which may also be set.

    Examples
    --------
    >>> import emsopt as eo
    >>> city = eo.datasets.load_st_paul()
    >>> first, second = (eo.evaluators.approximate_hypercube(city, sites) for sites in ([0, 3], [1, 4]))
    >>> live = LiveMap()  # displayed by a notebook
    >>> live.draw(eo.maps.deployment_map(city, first))
    >>> live.update(second)
    >>> f"{second.mean_response:.2f}" in live.views[0]["summary"]
    True
    """

    _esm = widget_script()
    _css = style_sheet()
    kind = Unicode().tag(sync=True)
    scene = Dict().tag(sync=True)
    views: Any = List().tag(sync=True)
    edit = Unicode().tag(sync=True)
    shown = Unicode().tag(sync=True)

    def __init__(self, *, sentence: str = "") -> None:
        super().__init__(scene={"sentence": sentence}, layout={"width": "auto", "min_width": "0"})
        self.page: Page | None = None
        self.clicked: Callable[[list[int]], object] | None = None
        self.on_msg(lambda _, message, __: self.press(message["place"]))  # a message holds a click only

    def draw(self, page: Page) -> None:
        """Show a map in place of the present one; only what differs is sent to the browser."""
        with self.hold_sync():  # one message, or the browser would draw twice
            if self.layout.height is None:
                self.layout.height = f"{page.height}px"
            if self.page is None or page.scene is not self.page.scene:  # outlines are large: sent only if new
                self.kind, self.scene = page.kind, page.scene
            self.views = page.views
            self.layout.visibility = "visible"
        self.page = page

    def hide(self) -> None:
        """Hide the map, as when it is out of date, until the next one is drawn."""
        self.layout.visibility = "hidden"  # not removed: zoom and layers stay

    def update(self, evaluation: Evaluations) -> None:
        """Show other evaluations of the same city on the map of deployments."""
        self.draw(self._deployment_page().with_evaluations(evaluation))

    def press(self, place: int) -> None:
        """Call ``clicked`` as after a click on the station at a place, an index of ``scene["city"]["places"]``."""
        which, _ = _colours.locate_sites(self._deployment_page().city)
        if self.clicked is not None:
            self.clicked(np.flatnonzero(which == place).tolist())

    def _deployment_page(self) -> DeploymentMap:
        if not isinstance(self.page, DeploymentMap):
            raise InputError("only a map of deployments can be updated or clicked: draw a `deployment_map` first.")
        return self.page

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return the widget and, for viewers without a kernel such as a notebook on a site, the page as HTML."""
        shown = super()._repr_mimebundle_(**options)
        data = shown[0] if isinstance(shown, tuple) else shown
        if data and self.page is not None:
            data["text/html"] = self.page._repr_html_()
        return shown
