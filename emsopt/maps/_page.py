"""`Page`, a self-contained HTML page with an interactive map, and the script of live maps.

A map is drawn by a function of its ``kind`` in ``pages/KIND.js``. `Page` puts the function, the data, and Leaflet
(`vendor`) into ``pages/page.html``; `widget_script` puts those of `KINDS` into the script of `live.LiveMap`. A page
sends no requests to any server.
"""

import json
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .._files import atomic
from ..errors import _validate
from ..errors._types import ArrayLike, PathLike
from ._colours import DIVERGING_COLOURS, LINE_COLOUR

MAPS_FOLDER = files(__package__)
KINDS = ("deployments", "roads", "replay")
EXTRA_SCRIPTS = {"sheet": ("deployments", "hypercube", "sheet")}  # kinds that need more scripts than their own
PLACEHOLDER = re.compile(r"%([A-Z_]+)%")
PAGE_HEIGHT = 520
ROAD_COLOUR = "#b9bdc1"
CONSTANTS = {"LINES": LINE_COLOUR, "ROADS": ROAD_COLOUR, "GAIN": DIVERGING_COLOURS[0], "LOSS": DIVERGING_COLOURS[-1]}


@dataclass(frozen=True, eq=False, repr=False)
class Page:
    """A map that displays in a notebook and can be saved as one HTML file.

    Attributes
    ----------
    kind : {"deployments", "roads", "replay", "sheet"}
        Which script draws the map.
    scene : dict
        What every view shows, as JSON has it: a "title", "notes", and further keys that depend on ``kind``.
    views : list of dict
        The results, one of which is shown at a time; each has a "name".
    height : int
        Height in a notebook, pixels.
    """

    kind: str
    scene: dict[str, Any]
    views: list[dict[str, Any]]
    height: int

    def __post_init__(self) -> None:
        _validate.whole_number(self.height, "height", 150, 5000)

    @property
    def data(self) -> dict[str, Any]:
        """All data that the page draws: the keys of ``scene``, and ``views``."""
        return self.scene | {"views": self.views}

    @property
    def html(self) -> str:
        """The page as HTML text, with everything that it needs."""
        texts = {"TITLE": escape(self.scene["title"]), "DATA": json_text(self.data)}  # names come from users' files
        return PLACEHOLDER.sub(lambda place: texts[place[1]], _page_template(self.kind))

    def _repr_html_(self) -> str:
        page = self.html.replace("&", "&amp;").replace('"', "&quot;")  # enough inside an attribute
        style = f"width:100%;height:{self.height}px;border:1px solid #ccc;box-sizing:border-box"
        return f'<iframe srcdoc="{page}" title="Map: {escape(self.scene["title"])}" style="{style}"></iframe>'

    def save(self, path: PathLike) -> Path:
        """Write the page to ``path`` and return it; raise if that fails, and leave an existing file unchanged."""
        return atomic.write_file(path, self.html)


def json_text(data: Any) -> str:
    """Return data as JSON that is safe inside an HTML script element, because no character can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)  # NaN is not JSON
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def delta_encode(line: ArrayLike, scale: int) -> list[int]:
    """Return a line's first point and the steps between points, latitude first, times ``scale`` and rounded."""
    points = np.round(np.asarray(line)[:, ::-1] * scale).astype(int)
    return np.diff(points, axis=0, prepend=0).ravel().tolist()  # small steps take fewer digits than coordinates


@cache
def widget_script() -> str:
    """Return the JavaScript module of the widget, which draws the maps of `KINDS`."""
    return _fill_constants(_script(*KINDS) + f"const kinds = {{{', '.join(KINDS)}}};\n" + _read_page_file("live.js"))


@cache
def style_sheet() -> str:
    """Return the style sheet of all maps: Leaflet's, with images embedded, and the package's."""
    folder = MAPS_FOLDER / "vendor" / "leaflet"

    def picture(found: re.Match[str]) -> str:
        image = folder / found[1]
        if not image.is_file():  # the image of a marker that these maps do not use
            return "none"
        return f"url(data:image/png;base64,{b64encode(image.read_bytes()).decode()})"

    leaflet = re.sub(r"url\((images/[^)]+)\)", picture, (folder / "leaflet.css").read_text("utf-8"))
    return _fill_constants(f"{leaflet}\n{_read_page_file('maps.css')}")


@cache
def _page_template(kind: str) -> str:
    """Return the HTML of a page for maps of a kind, with placeholders for its title and data."""
    texts = {"CSS": style_sheet(), "JS": f'"use strict";\n{_script(*EXTRA_SCRIPTS.get(kind, (kind,)))}', "KIND": kind}
    return _fill_constants(PLACEHOLDER.sub(lambda place: texts.get(place[1], place[0]), _read_page_file("page.html")))


def _script(*kinds: str) -> str:
    """Return JavaScript: Leaflet as the constant L, and the functions that draw maps of the given kinds."""
    leaflet = (MAPS_FOLDER / "vendor" / "leaflet" / "leaflet.js").read_text("utf-8")
    leaflet = re.sub(r"\n//# sourceMappingURL.*", "", leaflet)  # the source map is not in the package
    own = "".join(_read_page_file(f"{name}.js") for name in ("common", *kinds))
    return f"const L = (exports => {{ const module = {{}};\n{leaflet}\nreturn exports; }})({{}});\n{own}"


def _fill_constants(text: str) -> str:
    """Return a text in which the placeholders named in ``CONSTANTS`` are replaced by their values."""
    return PLACEHOLDER.sub(lambda place: CONSTANTS.get(place[1], place[0]), text)


def _read_page_file(name: str) -> str:
    """Return the text of a file in the folder ``pages``."""
    return (MAPS_FOLDER / "pages" / name).read_text("utf-8")
