"""Recognise places that are written in one cell, such as ``(44.91, -93.1)`` or ``POINT (-93.1 44.91)``.

=========================================  =====================================================================
form                                       example
=========================================  =====================================================================
pair, latitude first, in any brackets      ``44.91, -93.1``; ``[44.91, -93.1]``; ``44,91; -93,1``
the same behind an address                 ``12 Main St, St. Paul (44.91, -93.1)``
well-known text, x first                   ``POINT (-93.1 44.91)``; ``SRID=3857;POINT (-10363844 5607891)``
GeoJSON, x first                           ``{"type": "Point", "coordinates": [-93.1, 44.91]}``
names before the numbers                   ``lat: 44.91, lon: -93.1``; ``{'longitude': '-93.1', 'latitude': '44.91'}``
=========================================  =====================================================================

A cell must have one of these forms from its first character to its last; numbers are never taken from a part of it.
"""

import re
from contextlib import suppress
from typing import NamedTuple

_N = r"[-+]?\d+(?:\.\d+)?"
_D = r"[-+]?\d+\.\d+"
_PAIR = rf"({_N})\s*[,;]\s*({_N})"
_OPEN, _CLOSE = r"[(\[{<]\s*", r"\s*[)\]}>]"
_BEFORE = r"(?:[^()\[\]]|\([^()\d]*\))*?"  # an address, in which brackets hold no digits
_DECIMAL_COMMAS = r"([-+]?\d+,\d+)\s*[;\s]\s*([-+]?\d+,\d+)"
PAIRS = [
    re.compile(pattern, re.ASCII | re.DOTALL)
    for pattern in (
        rf"(?=.*\.){_PAIR}",  # one decimal point at least, as two whole numbers may be anything
        rf"{_OPEN}{_PAIR}{_CLOSE}",
        rf"(?:{_OPEN})?{_DECIMAL_COMMAS}(?:{_CLOSE})?",
        rf"{_BEFORE}{_OPEN}(?=.*\.){_PAIR}{_CLOSE}",
        rf"(?=.*[^\W\d])(?:(?!\d\.\d).)*[\s,;:](?<!\d[\s,;])({_D})\s*[,;]\s*({_D})",
    )
]
_ANY = re.IGNORECASE | re.DOTALL
WKT = re.compile(
    rf"(?:SRID\s*=\s*(\d+)\s*;)?\s*POINT\s*(?:ZM?|M)?\s*\(\s*({_N})[\s,]+({_N})(?:\s+\S+){{0,2}}\s*\)", _ANY
)
JSON = re.compile(rf".*\bcoordinates['\"]?\s*[:=]\s*[(\[]\s*({_N})\s*,\s*({_N})(?:\s*,\s*{_N})?\s*[)\]].*", _ANY)
_VALUE = rf"\b['\"]?\s*[:=]?\s*['\"]?({_N})(?![\d°NSEW]|[.,]\d|\s+[\d°NSEW])"
NAMED = [
    re.compile(rf"(?<![^\W_])(?:{names}){_VALUE}", re.IGNORECASE)
    for names in ("lon|lng|long|longitude", "lat|latitude")
]


DEGREE_SIGN = re.compile("[°º]")
DMS = re.compile(
    r"([-+]?)\s*(\d{1,3}(?:[.,]\d+)?)\s*[°º]\s*(?:(\d{1,2}(?:[.,]\d+)?)\s*['′’]\s*)?(?:(\d{1,2}(?:[.,]\d+)?)\s*(?:[\"″”]|'')\s*)?"
    r"([NSEW]?)",
    re.IGNORECASE,
)


class Place(NamedTuple):
    """Coordinates x and y as text; whether they are a pair, x being latitude; a reference system, or None.

    A pair has no order of its own: which number comes first is the column's custom.
    """

    x: str
    y: str
    pair: bool = False
    crs: str | None = None


def decimal(text: str) -> float | None:
    """Return a number, or degrees, minutes and seconds such as 45°28'14.7"N, as a decimal number; None for all else."""
    if found := DMS.fullmatch(text):
        degrees, minutes, seconds = (float((part or "0").replace(",", ".")) for part in found.group(2, 3, 4))
        sign = -1 if found[1] == "-" or found[5].upper() in ("S", "W") else 1
        return sign * (degrees + minutes / 60 + seconds / 3600)
    with suppress(ValueError):
        return float(text)
    return None


def place(text: str) -> Place | None:
    """Return the place that a cell holds, None if it has none of the forms."""
    if found := WKT.fullmatch(text):
        return Place(found[2], found[3], crs=found[1] and f"EPSG:{found[1]}")
    for form in PAIRS:
        if found := form.fullmatch(text):
            return Place(found[1].replace(",", "."), found[2].replace(",", "."), pair=True)
    if found := JSON.fullmatch(text):
        return Place(found[1], found[2])
    named = [form.findall(text) for form in NAMED]
    return Place(named[0][0], named[1][0]) if list(map(len, named)) == [1, 1] else None
