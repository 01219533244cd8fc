"""A city from files that came through a form: bounded, checked, and never written under a name of theirs."""

from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from .._files.writing import errors_explained, write_folder
from ..calls import check_calls, city_from_calls, read_calls, read_stations
from ..city.city import City
from ..city.tables import ATOMS, CITY, FILES, SITES
from ..errors import InputError

MOST_FILES = 10
MOST_MB = 8  # together: servers of notebooks take messages of 10 MB
MOST_SITES, MOST_ATOMS = 200, 2000
SLOWEST, FASTEST = 5, 150  # km/h, of ambulances on their way
POINTS = (".csv", ".geojson", ".json")
WANTED = (
    f"either {CITY}, {ATOMS} and {SITES}, as City.save writes them, or a log of calls and a table of stations, with "
    "'call' and 'station' in their names"
)


def city_from_uploads(uploads, *, speed_kmh, name="Your city"):
    """Return the city that some uploaded files describe, and what looks wrong in them.

    Parameters
    ----------
    uploads : sequence of mapping
        With ``name`` and ``content`` (bytes), as `ipywidgets.FileUpload` has them.
    speed_kmh : float
        For travel times, where the files are a log of calls and stations; from 5 to 150.
    name : str
        Title, where the files have none.

    Returns
    -------
    city : City
    checks : emsopt.calls.Checks or None
        None for the files of a city, which are right or refused.

    Raises
    ------
    InputError
        If the files are none of the two kinds, too many, too large, or broken, the message names file and row; or if
        the speed is out of its range.
    """
    files = _named(uploads)
    if {CITY, ATOMS, SITES} & set(map(str.lower, files)):
        return _from_folder(files, name), None
    return _from_calls(files, speed_kmh, name)


def summary(uploads):
    """Return the names and sizes of uploaded files, in a line."""
    return ", ".join(f"{bare_name(upload)} ({len(upload['content']) / 2**10:,.1f} KB)" for upload in uploads)


def bare_name(upload):
    """Return the name of an uploaded file, without folders."""
    return Path(str(upload["name"]).replace("\\", "/")).name[:100]


def _named(uploads):
    """Return the content of every file by its bare name."""
    if not uploads:
        raise InputError(
            "no files have arrived: none were chosen since files were last read, they are still on their way, or they are "
            f"larger than {MOST_MB} MB together. Choose {WANTED}."
        )
    if len(uploads) > MOST_FILES:
        raise InputError(f"{len(uploads)} files are chosen; at most {MOST_FILES} are read. Choose {WANTED}.")
    size = sum(len(upload["content"]) for upload in uploads) / 2**20
    if size > MOST_MB:
        msg = f"the files have {size:.1f} MB together; at most {MOST_MB} are read here. Split a log by year, say."
        raise InputError(msg)
    files = {}
    for upload in uploads:
        name = bare_name(upload)
        if name.lower() in map(str.lower, files):
            raise InputError(f"{name} is chosen twice, upper and lower case taken alike; choose each file once.")
        files[name] = bytes(upload["content"])
    return files


def _from_folder(files, name):
    foreign = sorted(file for file in files if file.lower() not in FILES)
    if foreign:
        raise InputError(f"{foreign[0]!r} is no file of a city; those are {', '.join(FILES)}.")
    most = {SITES: MOST_SITES, ATOMS: MOST_ATOMS}
    for file, content in files.items():
        if file.lower() in most:
            _check_rows(len(content.splitlines()) - 1, most[file.lower()], file)
    plain = {file.lower(): content for file, content in files.items()}
    with errors_explained("the folder for temporary files"):
        made = TemporaryDirectory()
    with made as scratch:
        folder = write_folder(Path(scratch) / name, plain, marker=CITY, replaceable=FILES)
        try:
            return City.load(folder)
        except InputError as error:  # without the folder, which nobody chose
            msg = str(error.__cause__ or error)
            for file in files:
                msg = msg.replace(file.lower(), file)
            raise InputError(msg) from error


def _check_rows(rows, most, where):
    """Refuse what is too long before it is worked on: times between sites and atoms take rows times rows."""
    if rows > most:
        msg = f"{where} has {rows:,} rows; the dashboard takes at most {most:,}. Leave some out, or use emsopt in a notebook."
        raise InputError(msg)


def _from_calls(files, speed_kmh, name):
    if not SLOWEST <= speed_kmh <= FASTEST:
        raise InputError(
            f"the speed must be from {SLOWEST} to {FASTEST} km/h; got {speed_kmh:g}. Change it, then choose and read the files "
            "again."
        )
    parts = {}
    for what in ("call", "station"):
        found = [file for file in files if what in file.lower() and file.lower().endswith(POINTS)]
        if len(found) != 1:
            got = ", ".join(sorted(files))[:200]
            many = f"{len(found)} files have" if found else "no file has"
            raise InputError(f"{many} {what!r} in the name and end in {', '.join(POINTS)}; got {got}. Choose {WANTED}.")
        parts[what] = _File(found[0], files[found[0]])
    if len(files) != 2 or parts["call"].name == parts["station"].name:
        msg = f"two files are needed, one of calls and one of stations; got {', '.join(sorted(files))[:200]}."
        raise InputError(msg)
    calls, stations = read_calls(parts["call"]), read_stations(parts["station"])
    _check_rows(len(stations), MOST_SITES, parts["station"].name)
    if calls.service_min is not None and "service_min" in stations:
        msg = "calls and stations both have a column 'service_min'. Remove it from the one that is not to count."
        raise InputError(msg)
    return city_from_calls(calls, stations, speed_kmh=speed_kmh, name=name), check_calls(calls, stations)


class _File(BytesIO):
    """Bytes with a name."""

    def __init__(self, name, content):
        super().__init__(content)
        self.name = name
