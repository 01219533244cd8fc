"""The form for a city of one's own: files, and all options of the command ``emsopt city``, in groups that fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipywidgets import HTML, Checkbox, FileUpload, Text, VBox

from .._validate import finite_number, positive_number, shown
from ..calls.log import FILES as ENDINGS
from ..calls.profile import hours_in, weekdays_in
from ..errors import InputError, Message
from ..planning.log_model import TURNOUT_MIN
from ._layout import fold
from ._uploads import NAME, ROADS, most_mb
from ._widgets import button, control, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..errors import Argument
    from ._uploads import Opened

HINT = (
    "One or more logs of calls, a table of stations, and perhaps areas, roads or travel times; or a city's files. At "
    "most {:g} MB together. Their content tells which is which."
)
AUTO = "as the files say"
# name: (label, tooltip)
FIELDS = {
    "speed": ("Speed (km/h)", "Empty: calibrated from the log or, if it has no times, 40 km/h"),
    "detour": ("Detour", "Road distance over straight-line distance; used with a speed"),
    "turnout": ("Turnout (min)", f"Minutes until a unit leaves. Empty: from the files, or {TURNOUT_MIN:g}"),
    "service": ("Service (min)", "Minutes that a call keeps a unit busy, or: calls, stations. Empty: as the files say"),
    "today": ("Today", "Station of each of today's units, separated by commas. Empty: as the log says"),
    "columns": ("Columns of calls", "Columns that are not found by themselves: time=Alarm, unit=Rig"),
    "station_columns": ("Columns of stations", "Likewise, of the table of stations: name=House"),
    "time_format": ("Form of times", "day first, month first, or a format such as %d.%m.%Y %H:%M"),
    "time_zone": ("Time zone", "Such as America/Chicago, if times have an offset"),
    "where": ("Rows that count", "A condition on columns, such as kind == 'medical'. Empty: all rows"),
    "crs": ("Coordinates", "Reference system of coordinates that are not degrees, such as EPSG:3857"),
    "cell": ("Cells (km)", "Width of the cells in which calls are counted. Empty: at most 200 cells"),
    "area_name": ("Name of areas", "Property of the areas that holds their names"),
    "reach": ("Reach (km)", "Calls further from every station are left out"),
    "hours": ("Hours", "Count only calls of these hours: 7-19 is until 19:00; 22-6"),
    "weekdays": ("Weekdays", "Count only calls of these days: Mon-Fri, or Sat,Sun"),
    "title": ("Name", "Title of tables and maps"),
}  # fmt: skip
START = {"detour": "1.3", "reach": "50", "title": NAME}
TICKS = {
    "drop_repeats": ("Count repeated calls once", "Calls with the same time and place count once"),
    "skip_empty_days": ("Days without calls were not recorded", "They do not count as quiet days"),
    "refuse_bad": ("Refuse unreadable rows", "Else a log is read without the rows that cannot be read"),
}
GROUPS = {
    "Times": ("speed", "detour", "turnout", "service"),
    "Calls": ("cell", "reach", "hours", "weekdays", "area_name", "drop_repeats", "skip_empty_days"),
    "Reading": ("columns", "station_columns", "time_format", "time_zone", "crs", "where", "refuse_bad"),
    "Today and name": ("today", "title"),
}
ARGUMENTS = {"speed": "speed_kmh", "turnout": "turnout_times", "service": "service_times", "cell": "cell_km",
             "reach": "reach_km", "title": "name"}  # set by fields of other names  # fmt: skip
# Python arguments in messages, and the controls of the page that set them.
WORDS = {ARGUMENTS.get(name, name): label for name, (label, _) in FIELDS.items() if name != "title"} | {
    "key": "Name of areas",
    "areas": "a file of areas",
    "roads": "a file of roads",
    "travel_times": "a file of travel times",
    "units": "Fleet (units)",
    "colocation": "Several units at a station",
    "threshold": "Late from (min)",
    "metric": "Minimise",
    "theta": "Load",
    "pinned": "Keep a unit",
    "closed": "Close",
    "moves": "Moves at once",
    "homes": "a column 'station' of the log",
    "hold_out": "Days held out",
    "capacity": "the choice All busy: calls are lost",
    "empty_days": f"the tick {TICKS['skip_empty_days'][0]}",
    "on_bad": f"the tick {TICKS['refuse_bad'][0]}",
    "accept_findings": "the command's --accept-findings",
    "without_repeats()": f"the tick {TICKS['drop_repeats'][0]}",
    "between()": "a shorter log",
}


class OwnCity(VBox):
    """The form.

    Parameters
    ----------
    read, again : callable
        Called when the user has chosen files to read, and to read the last files again with other options.

    Attributes
    ----------
    controls : dict of str to Widget
    """

    def __init__(self, read: Callable[[], object], again: Callable[[], object]) -> None:
        accept = ",".join((*ENDINGS, *ROADS, ".pbf", ".xml", ".gz"))
        tip = "A log of calls and a table of stations, or the files of a city"
        self.controls: dict[str, Any] = {
            "files": FileUpload(description="Choose files", tooltip=tip, accept=accept, multiple=True),
            "read": button("Read files", "Make a city of the files", read),
            "again": button("Apply options", "Read the same files again, with the options below", again),
        }
        self.controls["files"].action = _later
        for name, (label, tip) in FIELDS.items():
            empty = AUTO if name not in START else ""
            self.controls[name] = control(Text, START.get(name, ""), label, tip, action=_later, placeholder=empty)
        for name, (label, tip) in TICKS.items():
            self.controls[name] = control(Checkbox, False, label, tip, action=_later, indent=False)
        groups = [fold(title, [self.controls[name] for name in names], opened=False) for title, names in GROUPS.items()]
        first = [HTML(lines(HINT.format(most_mb()))), *(self.controls[name] for name in ("files", "read", "again"))]
        super().__init__([*first, *groups])

    def options(self) -> dict[str, Any]:
        """Return the options of `city_from_uploads`.

        Raises
        ------
        InputError
            If a field cannot be read; the message names it.
        """
        text = {name: self.controls[name].value.strip() for name in FIELDS}

        def number(name: str, least: float | None = None, zero: bool = False) -> float | None:
            if not text[name]:
                return None
            label = FIELDS[name][0]
            try:
                value = float(text[name].replace(",", "."))
            except ValueError as error:
                raise InputError(f"`{label}` must be a number; got {shown(text[name])}.") from error
            if least is not None:
                return finite_number(value, label, least)
            return positive_number(value, label, zero=zero)

        service: float | str | None = text["service"].lower() or None
        if service not in (None, "calls", "stations"):
            service = number("service")
        speed = text["speed"] and finite_number(number("speed", -1e9) or 0.0, FIELDS["speed"][0])
        found = {
            "speed_kmh": speed if text["speed"] else None,
            "detour": number("detour", 1.0),
            "turnout_times": number("turnout", zero=True),
            "service_times": service,
            "cell_km": number("cell"),
            "reach_km": number("reach"),
            "columns": _pairs(text["columns"], FIELDS["columns"][0]),
            "station_columns": _pairs(text["station_columns"], FIELDS["station_columns"][0]),
            "today": [name.strip() for name in text["today"].split(",") if name.strip()] or None,
            "hours": hours_in(text["hours"], "Hours") if text["hours"] else None,
            "weekdays": weekdays_in(text["weekdays"], "Weekdays") if text["weekdays"] else None,
            "name": text["title"] or NAME,
        }
        found |= {name: text[name] or None for name in ("time_zone", "time_format", "area_name", "where", "crs")}
        found["on_bad"] = "raise" if self.controls["refuse_bad"].value else "leave out"
        found["drop_repeats"] = self.controls["drop_repeats"].value
        found["empty_days"] = "missing" if self.controls["skip_empty_days"].value else "counted"
        unset = {name for name in ("detour", "reach_km") if found[name] is None}
        return {name: value for name, value in found.items() if name not in unset}

    def tell(self, opened: Opened) -> None:
        """Show in the fields that are empty what was found in the files."""
        city, about, log = opened.city, opened.about, opened.log
        found = {"turnout": f"{city.turnout_times.mean():.2f}", "service": f"{city.mean_service_time:.1f}"}
        if log is not None:
            found["columns"] = ", ".join(f"{role}={name}" for role, name in log.calls.taken.items())
            found["time_zone"] = log.calls.clock
            found["speed"] = "calibrated" if log.fit is not None else f"{about.get('speed_kmh', AUTO)}"
            found["cell"] = f"{about.get('cell_km', AUTO)}"
            found["today"] = f"{len(opened.today)} units by the log" if opened.today else "not known"
        for name, text in found.items():
            self.controls[name].placeholder = text


def _later() -> None:
    """Do nothing: fields are read when a button is pressed."""


def in_controls(text: object) -> str:
    """Return a message, or that of an error, with the page's controls in place of arguments."""
    return Message.of(text).by(_control, WORDS)


def _control(argument: Argument) -> str:
    """Return the control that sets an argument as it stands in a sentence, and what to write there."""
    name, value = argument
    word = WORDS.get(name)
    if word is None:
        return str(argument)
    field = word if word.startswith(("a ", "the ")) else f"the field {word}"
    if isinstance(value, dict):
        pairs = (f"{role}={'...' if column is ... else column}" for role, column in value.items())
        return f"{field} ({', '.join(pairs)})"
    return field if value is None or field.startswith("the tick") else f"{field} ({value})"


def _pairs(text: str, label: str) -> Mapping[str, str] | None:
    """Return the columns by role that ROLE=NAME, separated by commas, give."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(role.strip() and sign and name.strip() for role, sign, name in pairs):
        raise InputError(f"`{label}` must have the form ROLE=NAME, such as time=Alarm, unit=Rig; got {shown(text)}.")
    return {role.strip(): name.strip() for role, _, name in pairs} or None
