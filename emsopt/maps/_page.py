"""Self-contained pages: the common part of the maps of cities and roads.

A page is made from ``templates/page.html``. Its placeholders, such as %TITLE%, are replaced by the style, body and
script of its kind (``deployments`` or ``roads``), by Leaflet (`vendor`), the title, the notes, constants and the data
that the script draws. A page without background tiles sends no requests to any server.
"""

import json
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from .. import _validate
from .._files import atomic
from .._types import PathLike
from ._colours import DIVERGING, LINES

FOLDER = files(__package__)
PLACE = re.compile(r"%([A-Z_]+)%")
TILE_HOST = "https://tile.openstreetmap.org"
TILES = f"{TILE_HOST}/{{z}}/{{x}}/{{y}}.png"
ROADS = "#b9bdc1"
CONSTANTS = {"LINES": LINES, "ROADS": ROADS, "GAIN": DIVERGING[0], "LOSS": DIVERGING[-1]}


@dataclass(frozen=True, eq=False, repr=False)
class Page:
    """A map that displays in a notebook and can be saved as one HTML file.

    Attributes
    ----------
    kind : {"deployments", "roads"}
        Which templates make the page.
    title, notes : str
        Title of the page, and notes on the data shown on it.
    data : dict
        Data drawn by the page's script: plain lists, strings and numbers.
    height : int
        Height in a notebook, pixels.
    tiles : str or None
        Name of the background map, if any.
    html : str
        The complete, self-contained page.
    """

    kind: str
    title: str
    notes: str
    data: dict[str, Any]
    height: int
    tiles: str | None

    def __post_init__(self) -> None:
        _validate.whole_number(self.height, "height", 150, 5000)

    @property
    def html(self) -> str:
        """The complete, self-contained page."""
        texts = {"TITLE": escape(self.title), "NOTES": escape(self.notes), "DATA": json_text(self.data)}
        return PLACE.sub(lambda place: texts[place[1]], _frame(self.kind, self.tiles is not None))

    def _repr_html_(self) -> str:
        page = self.html.replace("&", "&amp;").replace('"', "&quot;")  # enough inside an attribute
        style = f"width:100%;height:{self.height}px;border:1px solid #ccc;box-sizing:border-box"
        return f'<iframe srcdoc="{page}" title="Map: {escape(self.title)}" style="{style}"></iframe>'

    def save(self, path: PathLike) -> Path:
        """Write the page to ``path`` atomically and return the path.

        Raises
        ------
        InputError, WriteError
            If the path is invalid or the file cannot be written. An existing file is left unchanged.
        """
        return atomic.write_file(path, self.html)


def json_text(data: Any) -> str:
    """Return JSON that is safe inside a script element, because no character can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def template(name: str) -> str:
    """Return the text of a template."""
    return (FOLDER / "templates" / name).read_text("utf-8")


@lru_cache(maxsize=4)
def _frame(kind: str, tiles: bool) -> str:
    """Return a page in which only title, notes and data are still placeholders."""
    texts = {end.upper(): template(f"{kind}.{end}") for end in ("css", "html", "js")} | _leaflet() | CONSTANTS
    texts |= {"IMAGES": TILE_HOST, "TILES": TILES} if tiles else {"IMAGES": "", "TILES": ""}
    page = template("page.html")
    for _ in range(2):  # first the parts of the page, then the constants in them
        page = PLACE.sub(lambda place: texts.get(place[1], place[0]), page)
    return page


def _leaflet() -> dict[str, str]:
    """Return Leaflet's style sheet, with images embedded, and its script."""
    folder = FOLDER / "vendor" / "leaflet"

    def picture(found: re.Match[str]) -> str:
        image = folder / found[1]
        if not image.is_file():  # the image of a marker that these maps do not use
            return "none"
        return f"url(data:image/png;base64,{b64encode(image.read_bytes()).decode()})"

    return {
        "LEAFLET_CSS": re.sub(r"url\((images/[^)]+)\)", picture, (folder / "leaflet.css").read_text("utf-8")),
        "LEAFLET_JS": re.sub(r"\n//# sourceMappingURL.*", "", (folder / "leaflet.js").read_text("utf-8")),
    }
