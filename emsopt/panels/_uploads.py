"""The user's own city in the dashboard: the form, with the options of ``emsopt city``, and the uploaded files.

The names of uploaded files are never used as paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from anywidget import AnyWidget
from ipywidgets import HTML, Checkbox, Text, VBox
from traitlets import Bool, Int, Tuple, Unicode

from .._files import formats, geography
from .._files.atomic import explain_errors
from .._files.formats import Upload
from ..calls import CallLog, read_calls, read_stations
from ..calls._points import ENDINGS
from ..calls.profile import hours_a_year
from ..city import tables
from ..city.city import City
from ..errors import Argument, EmsoptError, InputError, Message, _validate
from ..errors._types import FloatArray
from ..planning import LogModel, Project, Settings, build, units_needed
from ..planning.project import Result
from ..planning.settings import OPTIONS, name_station_columns
from ..roads import RoadNetwork
from ._widgets import button, control, group, paragraphs

DEFAULT_NAME = "Your city"  # if the files do not name the city
MAX_MB = 200  # all files together
MAX_ROWS = {tables.SITES_FILE: 200, tables.ATOMS_FILE: 2000}
ROAD_ENDINGS = (".osm.pbf", ".osm", ".net.xml", ".net.xml.gz")
EXPECTED_FILES = (
    f"Choose either {tables.CITY_FILE}, {tables.ATOMS_FILE} and {tables.SITES_FILE}, as City.save writes them, "
    "or a log of calls and a table of stations."
)
# Options of `read_calls` and `read_stations`, besides ``crs``: those of the command, with the same defaults.
READ_OPTIONS = {"columns": None, "station_columns": None, "time_zone": None, "time_format": None, "where": None,
           "on_bad": "leave out"}  # fmt: skip
Uploads = Sequence[Mapping[str, Any]]
CITY_ARRAYS = ("travel_times", "service_times", "preference", "travel_cv", "turnout_cv")

UPLOAD_HINT = (
    "One or more logs of calls, a table of stations, and perhaps areas, roads or travel times; or a city's files. At "
    f"most {MAX_MB} MB together. Their content tells which is which."
)
AUTO_TEXT = "as the files say"
FIELD_DEFAULTS = {name: format(getattr(Settings, name), "g" if name in ("detour", "reach_km") else "")
         for name in ("detour", "reach_km", "others", "dispatch")} | {"name": DEFAULT_NAME}  # fmt: skip
CHECKBOXES = {
    "drop_repeats": ("Count repeated calls once", "Calls with the same time and place count once"),
    "skip_empty_days": ("Days without calls were not recorded", "They do not count as quiet days"),
    "refuse_bad": ("Refuse unreadable rows", "Else a log is read without the rows that cannot be read"),
}
FIELD_GROUPS = {
    "Times": ("speed_kmh", "detour", "turnout_times", "service_times"),
    "Calls": ("cell_km", "reach_km", "hours", "weekdays", "area_name", "dispatch", "drop_repeats", "skip_empty_days"),
    "Reading": ("columns", "station_columns", "time_format", "time_zone", "crs", "where", "others", "refuse_bad"),
    "Today and name": ("today", "name"),
}
# Python arguments in messages, and the controls of the page that set them.
CONTROL_NAMES = {name: option.label for name, option in OPTIONS.items() if name != "name"} | {
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
    "empty_days": f"the tick {CHECKBOXES['skip_empty_days'][0]}",
    "on_bad": f"the tick {CHECKBOXES['refuse_bad'][0]}",
    "accept_findings": "the command's --accept-findings",
    "without_repeats()": f"the tick {CHECKBOXES['drop_repeats'][0]}",
    "between()": "a shorter log",
}


class FileChooser(AnyWidget):
    """A button to choose files, which the browser sends in pieces, as servers may refuse large messages.

    Once all have arrived, ``value`` has a dict for each file, with name, size (bytes) and content; ``count`` is their
    number. The content of files that are too large together is not sent: `check_size` refuses them.
    """

    _esm = Path(__file__).with_name("files.js")
    description, tooltip, accept = (Unicode().tag(sync=True) for _ in range(3))
    multiple, most, count = Bool().tag(sync=True), Int(MAX_MB * 2**20).tag(sync=True), Int().tag(sync=True)
    value = Tuple()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, layout={"width": "auto", "min_width": "9em"})
        self.observe(lambda change: setattr(self, "count", len(change.new)), "value")
        self.on_msg(self._receive)

    def _receive(self, _: object, message: dict[str, Any], pieces: Sequence[memoryview]) -> None:
        """Handle a message of the browser: a list of files, a piece of one, or their end; then ask for the next."""
        try:
            if "files" in message:
                self.value, self._files = (), [file | {"content": BytesIO()} for file in message["files"]]
            for piece in pieces:
                if sum(file["content"].tell() for file in self._files) + piece.nbytes <= self.most:
                    self._files[message["file"]]["content"].write(piece)
            if "done" in message:
                self.value = tuple(file | {"content": file["content"].getvalue()} for file in self._files)
                self._files = []
        finally:  # or the button would stay as it is while files are on their way
            self.send({})


class CityForm(VBox):
    """The form for the files and options of the user's city; ``controls`` has its buttons and fields by name.

    ``read`` is called to read the chosen files, and ``again`` to read the last files with other options.
    """

    def __init__(self, read: Callable[[], object], again: Callable[[], object]) -> None:
        accept = ",".join((*ENDINGS, *ROAD_ENDINGS, ".pbf", ".xml", ".gz"))
        tip = "A log of calls and a table of stations, or the files of a city"
        self.controls: dict[str, Any] = {
            "files": FileChooser(description="Choose files", tooltip=tip, accept=accept, multiple=True),
            "read": button("Read files", "Make a city of the files", read),
            "again": button("Apply options", "Read the same files again, with the options below", again),
        }
        self.controls["files"].action = lambda: check_size(self.controls["files"].value)
        for name, option in OPTIONS.items():
            given: dict[str, Any] = {"placeholder": "" if name in FIELD_DEFAULTS else AUTO_TEXT}
            self.controls[name] = control(Text, FIELD_DEFAULTS.get(name, ""), option.label, option.help, **given)
        for name, (label, tip) in CHECKBOXES.items():
            self.controls[name] = control(Checkbox, False, label, tip, indent=False)
        for name in (*OPTIONS, *CHECKBOXES):
            self.controls[name].action = lambda: None  # fields are read when a button is pressed
        named = {title: [self.controls[name] for name in names] for title, names in FIELD_GROUPS.items()}
        groups = [group(title, fields, opened=False) for title, fields in named.items()]
        first = [HTML(paragraphs(UPLOAD_HINT)), *(self.controls[name] for name in ("files", "read", "again"))]
        super().__init__([*first, *groups])

    def options(self) -> dict[str, Any]:
        """Return the options of `city_from_uploads` that are not empty; messages of errors name the field."""
        found: dict[str, Any] = {"name": DEFAULT_NAME}
        tick = {name: self.controls[name].value for name in CHECKBOXES}
        for name, option in OPTIONS.items():
            text = self.controls[name].value.strip()
            parts = [part.strip() for part in text.split(",") if part.strip()]
            if parts:
                found[name] = option.read(parts if option.several else text, name)
        return found | {
            "on_bad": "raise" if tick["refuse_bad"] else "leave out",
            "drop_repeats": tick["drop_repeats"],
            "empty_days": "missing" if tick["skip_empty_days"] else "counted",
        }

    def show_file_values(self, opened: OpenedCity) -> None:
        """Show what the files of a city say as placeholders of the empty fields."""
        city, about, log = opened.city, opened.about, opened.log
        found = {"turnout_times": f"{city.turnout_times.mean():.2f}", "service_times": f"{city.mean_service_time:.1f}"}
        if log is not None:
            found["columns"] = ", ".join(f"{role}={name}" for role, name in log.calls.taken.items())
            found["time_zone"] = log.calls.clock
            found["speed_kmh"] = "calibrated" if log.fit is not None else f"{about.get('speed_kmh', AUTO_TEXT)}"
            found["cell_km"] = f"{about.get('cell_km', AUTO_TEXT)}"
            found["today"] = f"{len(opened.today)} units by the log" if opened.today else "not known"
        for name, text in found.items():
            self.controls[name].placeholder = text


def with_control_names(text: object) -> str:
    """Return a message, or that of an error, with the page's controls in place of Python arguments."""
    return Message.of(text).write_arguments(_control_text, CONTROL_NAMES)


def _control_text(argument: Argument) -> str:
    """Return the control of the page for a Python argument, with the value to enter there, if there is one, as text."""
    name, value = argument
    word = CONTROL_NAMES.get(name)
    if word is None:
        return str(argument)
    field = word if word.startswith(("a ", "the ")) else f"the field {word}"
    if isinstance(value, dict):
        pairs = (f"{role}={'...' if column is ... else column}" for role, column in value.items())
        return f"{field} ({', '.join(pairs)})"
    return field if value is None or field.startswith("the tick") else f"{field} ({value})"


@dataclass(frozen=True, eq=False)
class OpenedCity:
    """A city with what the dashboard needs to show it.

    ``units`` is the initial fleet size, ``today`` the site of each of today's units, ``about`` the origin of the city
    (columns of the table of scenarios), ``results`` those of checks and calibration, ``by_hour`` the calls per hour of
    each atom at each hour of the day, shape (24, M), ``log`` the model of a log, which is never saved, ``settings`` the
    initial ones, as `Workbench.state` returns them, and ``sentences`` say what was read and assumed.
    """

    city: City
    units: int
    today: tuple[int, ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[Result] = ()
    by_hour: FloatArray | None = None
    log: LogModel | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Sums depend on how arrays lie in memory, in the last digit, and a file does not keep that.
        arrays = {name: getattr(self.city, name) for name in CITY_ARRAYS}
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items() if np.ndim(array)}
        vars(self)["city"] = self.city.replace(**plain)
        if self.by_hour is not None:
            vars(self)["by_hour"] = np.ascontiguousarray(self.by_hour)

    @classmethod
    def from_project(cls, project: Project) -> OpenedCity:
        """Return the city of a project with its settings and results."""
        p, units = project, project.settings.get("units", 1)
        units = units if isinstance(units, int) and units > 0 else 1
        return cls(p.city, units, about=p.about, results=p.results, by_hour=p.by_hour, settings=p.settings)


def city_from_uploads(uploads: Uploads, **options: Any) -> OpenedCity:
    """Return the city that uploaded files describe, with today's units, notes and settings.

    Each upload has ``name``, ``size`` and ``content`` (bytes), as in `FileChooser.value`. Together they are the files
    of a city; or logs of calls and a table of stations and, optionally, areas, roads and travel times, recognised by
    their content. Files that macOS adds (``._calls.csv``) are ignored. Options are those in `READ_OPTIONS`, and fields
    of `emsopt.planning.Settings`.
    """
    files = _unpack_uploads(uploads)
    if {tables.CITY_FILE, tables.ATOMS_FILE, tables.SITES_FILE} & {file.name.lower() for file in files}:
        for file in files:
            if file.name.lower() not in tables.FILES:
                raise InputError(f"{file.name!r} is not a file of a city. Choose only {', '.join(tables.FILES)}.")
            _check_rows(len(file.content.splitlines()) - 1, file.name, MAX_ROWS.get(file.name.lower()))
        city = tables.from_files(City, {file.name: file.content for file in files}, DEFAULT_NAME)
        return OpenedCity(city, min(units_needed(city), city.n_sites), about={"files": _file_names(files)})
    reading = {name: options.pop(name, start) for name, start in READ_OPTIONS.items()} | {"crs": options.get("crs")}
    calls, stations, found = _read_uploads(files, reading)
    _check_rows(len(stations), found["stations"][0].name, MAX_ROWS[tables.SITES_FILE])
    for what, read in OTHER_FILES.items():
        options |= {what.replace(" ", "_"): read(file) for file in found[what]}
    model = build(calls, stations, Settings(**options))
    _check_rows(model.city.n_atoms, "the grid of cells", MAX_ROWS[tables.ATOMS_FILE])
    return city_of_model(model, files="; ".join(f"{what}: {_file_names(kept)}" for what, kept in found.items() if kept))


def check_size(uploads: Uploads) -> None:
    """Raise if uploaded files are too large together."""
    size = sum(upload.get("size", len(upload["content"])) for upload in uploads) / 2**20
    if size > MAX_MB:
        raise InputError(
            f"files may have at most {MAX_MB} MB together; got {size:.1f} MB: compress the log (.csv.gz), shorten "
            "it, or use the command emsopt city, which reads files of up to 256 MB."
        )


def files_text(uploads: Uploads) -> str:
    """Return the names and sizes of uploaded files in one line."""
    return ", ".join(f"{base_name(upload)} ({len(upload['content']) / 2**10:,.1f} KB)" for upload in uploads)


def base_name(upload: Mapping[str, Any]) -> str:
    """Return the name of an uploaded file, without folders."""
    return Path(str(upload["name"]).replace("\\", "/")).name[:100]


def _unpack_uploads(uploads: Uploads) -> list[Upload]:
    """Return uploaded files under names without folders; raise if there are none or two have the same name."""
    check_size(uploads)
    files = [Upload(base_name(upload), bytes(upload["content"])) for upload in uploads]
    files = [file for file in files if not file.name.startswith("._")]
    if not files:
        raise InputError(f"no files have arrived yet. {EXPECTED_FILES}")
    if twice := _validate.first_repeated(file.name.lower() for file in files):
        raise InputError(f"{twice} is chosen twice (upper and lower case count as equal). Choose each file once.")
    return files


def _file_names(files: Iterable[Upload]) -> str:
    """Return the names of files, separated by commas."""
    return ", ".join(file.name for file in files)


def _check_rows(rows: int, file: str, most: int | None) -> None:
    """Raise if the number of rows in ``file`` exceeds ``most``, because the city would need too much memory."""
    if most is not None and rows > most:
        raise InputError(f"{file} has {rows:,} rows; the dashboard takes at most {most:,}. Remove some rows.")


def _read_uploads(
    files: Sequence[Upload], reading: Mapping[str, Any]
) -> tuple[CallLog, pd.DataFrame, dict[str, list[Upload]]]:
    """Return the log, the table of stations, and all files by kind of content ("calls", "stations", "areas", ...)."""
    if len(files) < 2:
        raise InputError(
            f"one file of calls and one of stations ({', '.join(ENDINGS)}) are needed; got {_file_names(files)[:200]}. "
            f"{EXPECTED_FILES}"
        )
    how = dict(reading)
    columns = how.pop("station_columns")
    found: dict[str, list[Upload]] = {kind: [] for kind in ("calls", "stations", *OTHER_FILES)}
    rest: list[Upload] = []
    for file in files:
        found.get(_kind_of_file(file), rest).append(file)
    logs, place, stations, others = _split_logs_and_stations(rest, how, columns)
    found |= {"calls": [*logs], "stations": [place] if place else []}
    found["travel times"] += [file for file in others if _is_matrix(file)]
    unknown = [file for file in others if file not in found["travel times"]]
    if unknown or not (logs and place) or any(found[what][1:] for what in OTHER_FILES):
        said = f"it is not clear what each file holds; got {_file_names(files)[:200]}. {EXPECTED_FILES}"
        why = ((f" {file.name} is no log, because ", *Message.of(others[file]).parts) for file in unknown)
        raise InputError(Message(said, *next(why, ())))
    if len({file.content for file in logs}) < len(logs):
        raise InputError(f"{_file_names(logs)[:200]}: two of these logs are the same. Choose each once.")
    return read_calls([*logs], **how) if len(logs) > 1 else next(iter(logs.values())), stations, found


def _kind_of_file(file: Upload) -> str:
    """Return "roads" for a file with such an ending, "areas" for GeoJSON with polygons, else ""."""
    name = file.name.lower()
    if name.endswith(ROAD_ENDINGS):
        return "roads"
    shapes: list[Any] = []
    if name.endswith((".json", ".geojson")):
        with suppress(InputError):
            shapes = [shape for _, shape in geography.read_features(file) if isinstance(shape, dict)]
    return "areas" if any("Polygon" in str(shape.get("type")) for shape in shapes) else ""


def _split_logs_and_stations(
    files: Sequence[Upload], reading: Mapping[str, Any], columns: Mapping[str, str] | None
) -> tuple[dict[Any, CallLog], Upload | None, Any, dict[Upload, EmsoptError]]:
    """Return the logs by file, the file of stations and its table, and for each other file the error of reading it.

    If logs or stations are missing, raise the error of the file that is most likely meant to be it.
    """
    logs, no_logs = _read_each(files, partial(read_calls, **reading))
    stations, no_stations = _read_each(files, partial(read_stations, columns=columns, crs=reading["crs"]))
    place = _find_station_file(logs, stations)
    logs.pop(place, None)
    others = {file: no_logs[file] for file in files if file not in (*logs, place)}
    if others and not (logs and place):
        likely = max(others, key=lambda f: ("call" in f.name.lower(), f not in stations, len(f.content)))
        raise name_station_columns(no_stations[likely]) if logs else no_logs[likely]
    return logs, place, stations.get(place), others


def _read_each(files: Iterable[Any], read: Callable[[Any], Any]) -> tuple[dict[Any, Any], dict[Any, EmsoptError]]:
    """Return what ``read`` returns for each file, and the errors of files that it cannot read, both by file."""
    found: dict[Any, Any] = {}
    errors: dict[Any, EmsoptError] = {}
    for file in files:
        try:
            found[file] = read(file)
        except EmsoptError as error:
            errors[file] = error
    return found, errors


def _find_station_file(logs: Mapping[Upload, CallLog], stations: Mapping[Upload, pd.DataFrame]) -> Upload | None:
    """Return the file of the stations, or None. It may have been read as a log too, as stations may have dates."""
    likely = [file for file in stations if file not in logs]
    if not likely and len(logs) > 1:
        likely = [file for file, table in stations.items() if "name" in table and table["name"].is_unique]
    by_name = {file: ("station" not in file.name.lower(), "call" in file.name.lower()) for file in likely}
    return min(likely, key=lambda file: (*by_name[file], len(stations[file])), default=None)


def _is_matrix(file: Upload) -> bool:
    """Return whether a file is a table of numbers with names of rows and at least two columns."""
    with suppress(InputError, ValueError):
        return formats.read_csv(file, labelled=True).astype(float).shape[1] > 1
    return False


def _read_roads(file: Upload) -> RoadNetwork:
    """Return the road network in an uploaded file, by way of a temporary file whose name no message shows."""
    with explain_errors("the folder for temporary files"), TemporaryDirectory() as scratch:
        ending = max((end for end in ROAD_ENDINGS if file.name.lower().endswith(end)), key=len)
        path = Path(scratch) / f"roads{ending}"
        path.write_bytes(file.content)
        try:
            return RoadNetwork.read(path)
        except InputError as error:
            parts = (file.name if part == str(path) else part for part in Message.of(error).parts)
            raise InputError(Message(*parts)) from error


OTHER_FILES: dict[str, Callable[[Upload], Any]] = {  # files besides logs and stations, and how they are read
    "areas": lambda file: file,
    "roads": _read_roads,
    "travel times": lambda file: formats.read_csv(file, labelled=True),
}


def city_of_model(model: LogModel, **about: Any) -> OpenedCity:
    """Return the city of a model as an `OpenedCity`, and add how it was made to ``about``."""
    city, today, making, settings = model.city, model.today, model.making, model.settings
    about["cell_km"] = model.demand.cell_km
    about |= {key: making.get(key) for key in ("speed_kmh", "detour", "turnout_times", "service_times")}
    given = {key: v for key in ("hours", "weekdays") if (v := getattr(settings, key)) is not None}
    about |= {key: ", ".join(map(str, v)) if isinstance(v, (list, tuple)) else v for key, v in given.items()}
    about |= {key: getattr(settings, key) for key in ("drop_repeats", "empty_days", "others", "dispatch", "reach_km")}
    if given:
        about["hours_a_year"] = hours_a_year(settings.hours, settings.weekdays)
    about["calibrated"] = model.fit is not None
    about = {key: value for key, value in about.items() if value is not None}
    units, known = model.fleet[0], None if today is None else tuple(today.tolist())
    units = units if known else min(units, city.n_sites)
    sentences = (*model.data_notes[1:], *model.assumed)
    return OpenedCity(city, units, known, about, _results_of(model), model.rates_by_hour, model, sentences=sentences)


def _results_of(model: LogModel) -> list[Result]:
    """Return the result of the checks and of the calibration, if there is one, as a project stores them."""
    taken = "; ".join(f"{role} from {name!r}" for role, name in model.calls.taken.items())
    # Rows of the file are single calls, and this is saved in projects.
    said = [model.data_notes[0], f"Columns: {taken}."]
    for found in model.checks:
        head = f"{'Wrong' if found.level == 'wrong' else 'Look at'} {found.what}: "
        said.append(Message(head, *Message.of(found.text).parts))
    said += [] if len(model.checks) else ["Nothing looks wrong."]
    results = [Result("checks", "What looks wrong in the data", tuple(said))]
    if (fit := model.fit) is not None:
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in fit.left_out.items())
        told = (f"Homes of units: {fit.homes_from}. Left out: {left_out or 'nothing'}. Intervals of 90 %.",)
        results.append(Result("calibration", "Calibrated from the log", told, fit.to_frame()))
    return results
