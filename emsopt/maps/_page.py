"""Pages that carry all they need: what the maps of a city and of its roads have in common.

A page is a template in this package with %PLACES%: the title, the notes, the data that its script draws, Leaflet
(`vendor`), and constants of its own. It asks no server for anything.
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
    """Shows itself in a notebook and saves itself as one HTML file.

    Its kinds say what to show: ``data``, ``height`` in pixels, ``_title``, ``_notes``, ``_template`` (a file's name) and
    ``_constants`` (pairs of a place's name and its text).
    """

    @property
    def html(self):
        """The whole page, self-contained."""
        return "".join(self._parts(lambda text: text))

    def _repr_html_(self):
        page = "".join(self._parts(lambda text: text.replace("&", "&amp;").replace('"', "&quot;")))
        style = f"width:100%;height:{self.height}px;border:1px solid #ccc;box-sizing:border-box"
        return f'<iframe srcdoc="{page}" title="Map: {escape(self._title)}" style="{style}"></iframe>'

    def save(self, path):
        """Write the page to ``path``, whole or not at all, and return the path.

        Raises
        ------
        InputError
            If the path cannot be that of a file, or its folder does not exist.
        WriteError
            If the disk is full or read-only, or permission is denied. An earlier file is left as it was.
        """
        return writing.write_file(path, self.html)

    def _parts(self, encode):
        """Pieces of the page; the constant ones are encoded once and for all."""
        texts = {
            "TITLE": escape(self._title),
            "NOTES": escape(self._notes),
            "DATA": json_text(self.data),
        }
        for piece in _pieces(self._template, self._constants, encode("&") != "&"):
            yield encode(texts[piece[1:-1]]) if piece[:1] == "%" else piece


def json_text(data):
    """JSON that can stand inside a script element: no character there can end it."""
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
    """Return Leaflet's style, with its pictures inside, and its script."""
    folder = FOLDER / "vendor" / "leaflet"

    def picture(match):
        image = folder / match[1]
        if not image.is_file():  # the picture of a marker that these maps do not use
            return "none"
        return f"url(data:image/png;base64,{b64encode(image.read_bytes()).decode()})"

    return {
        "LEAFLET_CSS": re.sub(r"url\((images/[^)]+)\)", picture, (folder / "leaflet.css").read_text("utf-8")),
        "LEAFLET_JS": re.sub(r"\n//# sourceMappingURL.*", "", (folder / "leaflet.js").read_text("utf-8")),
    }
