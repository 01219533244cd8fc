"""Self-contained pages: the common part of the maps of cities and roads.

A page is a template in this package with %PLACES% for the title, the notes, the data drawn by its script,
Leaflet (`vendor`) and its own constants. It sends no requests to any server.
"""

import json
import re
from base64 import b64encode
from functools import lru_cache
from html import escape
from importlib.resources import files

from .._files import writing

FOLDER = files(__package__)


class Page:
    """A page that displays in a notebook and can be saved as one HTML file.

    Subclasses define the content: ``data``, ``height`` in pixels, ``_title``, ``_notes``, ``_template`` (a
    file's name) and ``_constants`` (pairs of a place's name and its text).
    """

    @property
    def html(self):
        """The complete, self-contained page."""
        return "".join(self._parts(lambda text: text))

    def _repr_html_(self):
        page = "".join(self._parts(lambda text: text.replace("&", "&amp;").replace('"', "&quot;")))
        style = f"width:100%;height:{self.height}px;border:1px solid #ccc;box-sizing:border-box"
        return f'<iframe srcdoc="{page}" title="Map: {escape(self._title)}" style="{style}"></iframe>'

    def save(self, path):
        """Write the page to ``path`` atomically and return the path.

        Raises
        ------
        InputError
            If the path is not valid for a file, or its folder does not exist.
        WriteError
            If the disk is full or read-only, or permission is denied. An existing file is left unchanged.
        """
        return writing.write_file(path, self.html)

    def _parts(self, encode):
        """Yield the pieces of the page; constant pieces are encoded only once."""
        texts = {
            "TITLE": escape(self._title),
            "NOTES": escape(self._notes),
            "DATA": json_text(self.data),
        }
        for piece in _pieces(self._template, self._constants, encode("&") != "&"):
            yield encode(texts[piece[1:-1]]) if piece[:1] == "%" else piece


def json_text(data):
    """Return JSON that is safe inside a script element, because no character can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@lru_cache(maxsize=8)
def _pieces(template, constants, quoted):
    """Return a template as a tuple of constant pieces and %PLACES%; ``quoted`` for use inside an attribute."""
    texts = _leaflet() | dict(constants)
    pieces = []
    for piece in re.split(r"(%[A-Z_]+%)", (FOLDER / "templates" / template).read_text("utf-8")):
        name = piece[1:-1] if re.fullmatch(r"%[A-Z_]+%", piece) else None
        if name in ("TITLE", "NOTES", "DATA"):
            pieces.append(piece)
        else:
            text = texts[name] if name else piece
            pieces.append(text.replace("&", "&amp;").replace('"', "&quot;") if quoted else text)
    return tuple(pieces)


def _leaflet():
    """Return Leaflet's style sheet, with images embedded, and its script."""
    folder = FOLDER / "vendor" / "leaflet"

    def picture(match):
        image = folder / match[1]
        if not image.is_file():  # the image of a marker that these maps do not use
            return "none"
        return f"url(data:image/png;base64,{b64encode(image.read_bytes()).decode()})"

    return {
        "LEAFLET_CSS": re.sub(r"url\((images/[^)]+)\)", picture, (folder / "leaflet.css").read_text("utf-8")),
        "LEAFLET_JS": re.sub(r"\n//# sourceMappingURL.*", "", (folder / "leaflet.js").read_text("utf-8")),
    }
