"""Name the options of ``emsopt city`` in messages that name arguments of functions."""

from __future__ import annotations

import re
import shlex

OPTIONS = {  # by the argument of a function
    "columns": "--columns",
    "homes": "--homes",
    "hold_out": "--hold-out",
    "time_zone": "--time-zone",
    "time_format": "--time-format",
    "cell_km": "--cell",
    "reach_km": "--reach",
    "area_name": "--area-name",
    "areas": "--areas",
    "speed_kmh": "--speed",
    "detour": "--detour",
    "turnout_times": "--turnout",
    "service_times": "--service",
    "travel_times": "--travel-times",
    "threshold": "--threshold",
    "pinned": "--pinned",
    "closed": "--closed",
    "moves": "--moves",
}


def in_options(text: str) -> str:
    """Return a message with the command's options in place of Python arguments."""
    text = text.replace("` of `read_calls` or `read_stations`", "` or `--station-columns`")
    text = text.replace("a speed to `city_from_calls`", "`--speed`")
    text = re.sub(r"\w+\(\),? or (?=[-\w]+)", "", text)  # without_repeats() or --drop-repeats
    text = re.sub(r"use between\(\)( to select a part)?", "read a shorter log", text)
    text = re.sub(r"[`\w]+(?:=\S+)? \((--[\w-]+)\)", r"\1", text)  # `time_zone` (--time-zone)
    text = re.sub(
        r"(?:read_calls\(\.\.\., )?columns=\{(.*?)\}\)?", lambda m: f"--columns {_as_words(m[1])}".strip(), text
    )
    names = "|".join(OPTIONS)
    text = re.sub(rf"\b({names})=('[^']*')", lambda m: f"{OPTIONS[m[1]]} {m[2]}", text)
    return re.sub(rf"`({names})`", lambda m: f"`{OPTIONS[m[1]]}`", text)


def _as_words(mapping: str) -> str:
    """Return the inside of a mapping, "'time': 'Alarm at', 'lon': ...", as words of a shell: time='Alarm at' lon=..."""
    pairs = re.findall(r"'(\w+)': ('[^']*'|[^,]+)", mapping)
    return " ".join(f"{role}={name if name == '...' else shlex.quote(name.strip(chr(39)))}" for role, name in pairs)
