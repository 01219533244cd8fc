"""Projects: a city with settings, deployments and results, saved as one file that can be opened again.

The file is a zip archive of plain files, and nothing in it is ever executed:

===================  ===========================================================================================
``project.json``     version of the format and of emsopt, settings, how the city was made, scenarios, results
``city/``            the city, in the files that `City.save` writes
``by_hour.csv``      optional: calls per hour of each atom at each hour of the day
===================  ===========================================================================================

A project holds counts by atom, not the log. But a cell and an hour with one call in the whole log show where and at
what hour that call came.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._files import atomic, formats
from .._files.formats import READ_ERRORS, Upload
from .._files.version import __version__
from ..city import tables
from ..city.city import City, check_city
from ..errors import InputError, _validate
from ..errors._types import FloatArray, PathLike

FORMAT_VERSION = 1
ABOUT_FILE, BY_HOUR_FILE, CITY_FOLDER = "project.json", "by_hour.csv", "city/"
ARCHIVE_FILES = (ABOUT_FILE, BY_HOUR_FILE, *(CITY_FOLDER + name for name in tables.FILES))
MOST_BYTES = 2**26  # all files unpacked: a zip bomb must not fill the memory
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # of all files in the archive, so that equal projects give identical files
ENTRY_TYPES = {
    "emsopt_project": int,
    "version": str,
    "settings": dict,
    "about": dict,
    "scenarios": list,
    "results": list,
}


@dataclass(frozen=True, eq=False)
class Result:
    """Sentences and a table on one analysis of a project's city, such as the back-test.

    Attributes
    ----------
    kind, title : str
        Name of the kind of result, such as "calibration", and heading.
    sentences, details : tuple of str
        What was found; printed reports leave out the ``details``.
    table : DataFrame or None
    """

    kind: str
    title: str
    sentences: tuple[str, ...] = ()
    table: pd.DataFrame | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Project:
    """A city with settings, deployments and results, as the dashboard saves it.

    Attributes
    ----------
    city : City
    settings : mapping
        Settings of the dashboard by name, and the deployments that were found: texts, numbers, lists and mappings.
    scenarios : sequence of mapping
        Rows of the dashboard's table of scenarios: texts and numbers by column.
    results : sequence of Result
    about : mapping
        How the city was made: texts and numbers by name, such as ``speed_kmh``.
    by_hour : ndarray, shape (24, M), optional
        Calls per hour of each atom at each hour of the day.
    version : str
        Version of emsopt that made the project.

    Examples
    --------
    >>> import emsopt as eo
    >>> project = eo.planning.Project(eo.datasets.load_st_paul(), settings={"units": 9})
    >>> again = eo.planning.Project.from_bytes(project.to_bytes())
    >>> again.city.n_sites, again.settings
    (17, {'units': 9})
    """

    city: City
    settings: Mapping[str, Any] = field(default_factory=dict)
    scenarios: Sequence[Mapping[str, Any]] = ()
    results: Sequence[Result] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    by_hour: FloatArray | None = None
    version: str = __version__

    def __post_init__(self) -> None:
        check_city(self.city)
        if self.by_hour is not None:
            shape = (24, self.city.n_atoms)
            vars(self)["by_hour"] = _validate.real_array(self.by_hour, "by_hour", shape, unit="calls/h", low=0)

    def to_bytes(self) -> bytes:
        """Return the content of the project's file; raise unless all is texts, finite numbers, lists and mappings."""
        content = {"emsopt_project": FORMAT_VERSION, "version": self.version, "settings": self.settings}
        content |= {"about": self.about, "scenarios": list(self.scenarios)}
        content["results"] = [_result_entry(result) for result in self.results]
        try:
            text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=_to_json_type)
        except (TypeError, ValueError) as error:
            raise InputError(f"a project can hold texts, finite numbers, lists and mappings only: {error}.") from error
        saved = tables.as_files(self.city.replace())
        files = {ABOUT_FILE: text} | {CITY_FOLDER + name: text for name, text in saved.items()}
        if self.by_hour is not None:
            files[BY_HOUR_FILE] = formats.csv_text(["hour", *self.city.atom_names], [range(24), *self.by_hour.T])
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, each in files.items():
                archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), each.encode(), zipfile.ZIP_DEFLATED)
        return packed.getvalue()

    def save(self, path: PathLike) -> Path:
        """Write the project to a file and return its path; if that fails, raise and keep an existing file."""
        return atomic.write_file(path, self.to_bytes())

    @classmethod
    def load(cls, path: PathLike) -> Project:
        """Read a project that `save` wrote; raise if the file is missing, damaged or not a project."""
        file = _validate.existing_file(path, "path", "a project, as the dashboard saves it (.zip)")
        return cls.from_bytes(formats.read_content(file, MOST_BYTES, "It is not a project of emsopt."), file.name)

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the file") -> Project:
        """Read a project from the content of a file, as `load` does; ``name`` stands for the file in messages."""
        files = _unpack_archive(content, name)
        about = _check_entries(formats.read_json(Upload(ABOUT_FILE, files[ABOUT_FILE])), name)
        parts = {key.removeprefix(CITY_FOLDER): text for key, text in files.items() if key.startswith(CITY_FOLDER)}
        try:
            city = tables.from_files(City, parts)
            by_hour = None
            if BY_HOUR_FILE in files:
                by_hour = formats.read_csv(Upload(BY_HOUR_FILE, files[BY_HOUR_FILE]), labelled=True).to_numpy(float)
            results, rows = list(map(_read_result, about["results"])), [dict(row) for row in about["scenarios"]]
            return cls(city, about["settings"], rows, results, about["about"], by_hour, about["version"])
        except (InputError, ValueError, TypeError, KeyError, AttributeError) as error:
            why = error if isinstance(error, InputError) else "a result or a table has another form than `save` writes."
            raise InputError(f"{name} is a project of emsopt, but is damaged: {why}") from error

    def __repr__(self) -> str:
        held = f"{len(self.scenarios)} scenarios, {len(self.results)} results"
        return f"<Project: {self.city!r}, {held}, emsopt {self.version}>"


def _unpack_archive(content: bytes, name: str) -> dict[str, bytes]:
    """Return the content of each file of a project's archive by name; raise for foreign names or too large files."""
    foreign = f"{name} is not a project of emsopt"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if ABOUT_FILE not in names or not set(names) <= set(ARCHIVE_FILES) or len(set(names)) < len(names):
                held = ", ".join(_validate.quote(each) for each in names[:3]) or "nothing"
                raise InputError(f"{foreign}: the archive holds {held}. Choose a file that the dashboard saved.")
            files, left = {}, MOST_BYTES
            for each in names:
                with archive.open(each) as file:
                    files[each] = file.read(left + 1)
                left -= len(files[each])
                if left < 0:
                    raise InputError(f"{foreign}: it would take more than {MOST_BYTES / 2**20:g} MB of memory.")
            return files
    except READ_ERRORS as error:
        raise InputError(
            f"{foreign}, or it was cut off or damaged on its way. Choose a file that the dashboard saved, or copy it "
            "again."
        ) from error


def _check_entries(about: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the entries of project.json; raise unless they are complete and of the right types."""
    for key, kind in ENTRY_TYPES.items():
        if not isinstance(about.get(key), kind):
            raise InputError(f"{name} is a project of emsopt, but is damaged: {key!r} is missing or of another kind.")
    if about["emsopt_project"] != FORMAT_VERSION:
        raise InputError(
            f"{name} has version {about['emsopt_project']} of the format, and this is for {FORMAT_VERSION}: it was "
            f"saved by emsopt {_validate.quote(about['version'])}. Use that version, or update emsopt."
        )
    return about


def _result_entry(result: Result) -> dict[str, Any]:
    """Return a result as types that JSON can hold."""
    entry: dict[str, Any] = {"kind": result.kind, "title": result.title}
    entry |= {"said": list(result.sentences), "details": list(result.details)}
    if result.table is not None:
        frame = result.table.astype(object).where(result.table.notna(), None)
        entry["table"] = {"rows": list(map(str, frame.index)), "columns": list(map(str, frame.columns))}
        entry["table"]["cells"] = frame.to_numpy().tolist()
    return entry


def _read_result(entry: dict[str, Any]) -> Result:
    """Return the result that `_result_entry` made an entry of."""
    table, given = None, entry.get("table")
    if given is not None:
        rows, columns = (list(map(str, given[name])) for name in ("rows", "columns"))
        table = pd.DataFrame(given["cells"], index=rows, columns=columns)
    sentences, details = (tuple(map(str, entry.get(name, ()))) for name in ("said", "details"))
    return Result(str(entry["kind"]), str(entry["title"]), sentences, table, details)


def _to_json_type(value: Any) -> Any:
    """Convert numpy's arrays and numbers, mappings and ranges to types that JSON can hold; raise for others."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (Mapping, range)):
        return dict(value) if isinstance(value, Mapping) else list(value)
    raise TypeError(f"got {type(value).__name__}")
