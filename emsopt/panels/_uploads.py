"""Make a city from uploaded files, after checking size and content. Their names are never used as paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from .. import _validate
from .._files.atomic import errors_explained, write_folder
from ..calls import Checks, calibrate, check_calls, city_from_calls, read_calls, read_stations
from ..calls.log import FILES as ENDINGS
from ..city.city import City
from ..city.tables import ATOMS, CITY, FILES, SITES
from ..city.travel import PLAUSIBLE_KMH
from ..errors import InputError

NAME = "Your city"  # if the files do not name the city
MOST_MB = 8  # all files together; notebook servers accept messages of up to 10 MB
MOST_ROWS = {SITES: 200, ATOMS: 2000}
WANTED = (
    f"Choose either {CITY}, {ATOMS} and {SITES}, as City.save writes them, or a log of calls and a table of stations."
)
Uploads = Sequence[Mapping[str, Any]]
DETOUR, TURNOUT_MIN = 1.3, 1.5  # assumed


class Uploaded(NamedTuple):
    """The city of uploaded files.

    ``checks`` says what looks wrong, and is None for the files of a city, which raise an error if anything is wrong.
    ``today`` is the site of each of the units in the log, ``about`` how travel times were made, and ``said`` what was
    calibrated or assumed.
    """

    city: City
    checks: Checks | None
    today: tuple[int, ...] | None
    about: dict[str, float]
    said: str


def city_from_uploads(uploads: Uploads, *, speed_kmh: float) -> Uploaded:
    """Return the city that uploaded files describe, and what looks wrong in them.

    Parameters
    ----------
    uploads : sequence of mapping
        Each with ``name`` and ``content`` (bytes), as `ipywidgets.FileUpload` has them.
    speed_kmh : float
        Average driving speed, from 5 to 150 km/h; used for travel times if the files are a log of calls and a table
        of stations, and the log does not have the times to calibrate it.

    Returns
    -------
    Uploaded

    Raises
    ------
    InputError
        If the files are neither those of a city nor a log of calls with a table of stations, too many, too large or
        invalid (the message names file and row), or if the speed is out of range.
    """
    files = _named(uploads)
    if {CITY, ATOMS, SITES} & set(map(str.lower, files)):
        return Uploaded(_from_folder(files), None, None, {}, "")
    return _from_calls(files, speed_kmh)


def summary(uploads: Uploads) -> str:
    """Return the names and sizes of uploaded files in one line."""
    return ", ".join(f"{bare_name(upload)} ({len(upload['content']) / 2**10:,.1f} KB)" for upload in uploads)


def bare_name(upload: Mapping[str, Any]) -> str:
    """Return the name of an uploaded file, without folders."""
    return Path(str(upload["name"]).replace("\\", "/")).name[:100]


def _named(uploads: Uploads) -> dict[str, bytes]:
    """Return the content of every file by its bare name."""
    size = sum(len(upload["content"]) for upload in uploads) / 2**20
    if not uploads:
        raise InputError(f"no files have arrived, or they are larger than {MOST_MB} MB together. {WANTED}")
    if size > MOST_MB:
        raise InputError(
            f"the files must have at most {MOST_MB} MB together; got {size:.1f} MB. Shorten the log of calls."
        )
    names = [bare_name(upload) for upload in uploads]
    if twice := _validate.first_repeated(map(str.lower, names)):
        raise InputError(
            f"{twice} is chosen twice (upper and lower case are not distinguished). Choose each file once."
        )
    return {name: bytes(upload["content"]) for name, upload in zip(names, uploads, strict=True)}


def _from_folder(files: dict[str, bytes]) -> City:
    """Return the city that `City.load` reads from a folder of these files."""
    for file, content in files.items():
        if file.lower() not in FILES:
            raise InputError(f"{file!r} is not a file of a city. Choose only {', '.join(FILES)}.")
        _check_rows(len(content.splitlines()) - 1, file, MOST_ROWS.get(file.lower()))
    with errors_explained("the folder for temporary files"), TemporaryDirectory() as scratch:
        plain = {file.lower(): content for file, content in files.items()}
        folder = write_folder(Path(scratch) / NAME, plain, marker=CITY, replaceable=FILES)
        try:
            return City.load(folder)
        except InputError as error:  # name the user's files, not the temporary folder
            text = str(error.__cause__ or error)
            for file in files:
                text = text.replace(file.lower(), file)
            raise InputError(text) from error


def _check_rows(rows: int, file: str, most: int | None) -> None:
    """Raise if a table has more than ``most`` rows, because the city would need too much memory."""
    if most is not None and rows > most:
        raise InputError(f"{file} has {rows:,} rows; the dashboard takes at most {most:,}. Remove some rows.")


def _from_calls(files: dict[str, bytes], speed_kmh: float) -> Uploaded:
    """Return the city of a log of calls and a table of stations, and the checks of these data."""
    slowest, fastest = PLAUSIBLE_KMH
    if not slowest <= speed_kmh <= fastest:
        raise InputError(
            f"the speed must be from {slowest} to {fastest} km/h; got {speed_kmh:g}. "
            "Change it, then choose and read the files again."
        )
    if len(files) != 2 or not all(file.lower().endswith(ENDINGS) for file in files):
        got = ", ".join(sorted(files))[:200]
        raise InputError(
            f"one file of calls and one of stations ({', '.join(ENDINGS)}) are needed; got {got}. {WANTED}"
        )
    log, table = _log_first(files)
    calls, stations = read_calls(log), read_stations(table)
    _check_rows(len(stations), table.name, MOST_ROWS[SITES])
    if calls.service_min is not None and "service_min" in stations:
        raise InputError("calls and stations both have a column 'service_min'. Remove one of them.")
    checks = check_calls(calls, stations)
    try:
        fit = calibrate(calls, stations)
        today = None if fit.homes_from == "unknown" else tuple(fit.deployment.tolist())
        said = f"Travel times are calibrated from {fit.law.drives:,} drives in the log; the speed is not used."
        return Uploaded(fit.city(name=NAME), checks, today, {}, said)
    except InputError:  # no stamps, or too few
        pass
    options: dict[str, float] = {"speed_kmh": speed_kmh, "detour": DETOUR}
    said = "" if "turnout_min" in stations else f"Turnout is assumed to take {TURNOUT_MIN:g} min."
    turnout = {"turnout_times": TURNOUT_MIN} if said else {}
    city = city_from_calls(calls, stations, **options, **turnout, name=NAME)
    return Uploaded(city, checks, None, options | turnout, said)


def _log_first(files: dict[str, bytes]) -> list[BytesIO]:
    """Return the log of calls and the table of stations: as their names say, or else the first that reads as a log."""
    opened = []
    for file, content in files.items():
        opened.append(BytesIO(content))
        opened[-1].name = file
    said = [("call" in file.lower()) - ("station" in file.lower()) for file in files]
    if said[0] == said[1]:
        try:
            read_calls(opened[1])
            said = [0, 1]
        except InputError:
            said = [1, 0]
        opened[1].seek(0)
    return opened if said[0] > said[1] else opened[::-1]
