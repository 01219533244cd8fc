"""Where data files are found.

A file is looked for in three places, in this order:

1. the folder named by the environment variable ``EMSOPT_DATA``,
2. the data that come with the package,
3. the user's cache, which a download fills.

Whatever has a checksum is checked wherever it lies; a file that does not match is never used.
"""

import hashlib
import os
from importlib import resources
from io import BytesIO
from pathlib import Path

from ..errors import DataUnavailableError, EmsoptError
from . import writing

DOWNLOAD_TIMEOUT_S = 30


def package_file(*parts):
    """Return the path of a file or folder among the data that come with the package.

    Parameters
    ----------
    *parts : str
        Path below ``emsopt/data``, one argument a level.

    Raises
    ------
    DataUnavailableError
        If the package holds no such file.
    """
    path = Path(str(resources.files("emsopt").joinpath("data", *parts)))
    if not path.exists():
        msg = f"the package should hold {path}, but does not; reinstall emsopt."
        raise DataUnavailableError(msg)
    return path


def cache_folder():
    """Return the folder where downloads are kept, by the custom of the operating system."""
    import pooch

    return Path(pooch.os_cache("emsopt"))


def data_folder():
    """Return the folder named by ``EMSOPT_DATA``, or None where that is not set.

    Raises
    ------
    DataUnavailableError
        If it names something that is not a folder.
    """
    setting = os.environ.get("EMSOPT_DATA")
    if not setting:
        return None
    folder = Path(os.path.expanduser(setting))  # unlike the methods of Path, these two never raise
    if not os.path.isdir(folder):
        msg = f"the environment variable EMSOPT_DATA must name a folder; {setting!r} is none."
        raise DataUnavailableError(msg)
    return folder


def find_local(relative_names):
    """Return the first of some files that is on this machine, or None.

    Parameters
    ----------
    relative_names : str or sequence of str
        Paths below a data folder, the preferred one first.
    """
    for where in (data_folder, package_file, cache_folder):
        folder = where()
        for name in _listed(relative_names):
            if folder is not None and (folder / name).is_file():
                return folder / name
    return None


def find_data(relative_names, url=None, sha256=None, *, git_blob=None):
    r"""Return the path of a data file, from this machine or else from its public home.

    Parameters
    ----------
    relative_names : str or sequence of str
        Paths below a data folder at which the file may lie. The first is where messages ask for it, and where a
        download is kept in the cache.
    url : str, optional
        Public home. Left out: the file is never fetched.
    sha256 : str, optional
        Checksum of the content, in hexadecimal digits.
    git_blob : str, optional
        Checksum as git computes it: SHA-1 of ``b"blob SIZE\0"`` and the content. Needed with ``url`` if there is
        no ``sha256``.

    Raises
    ------
    DataUnavailableError
        If the file is neither here nor could be fetched, or has the wrong checksum.
    """
    names = _listed(relative_names)
    target = names[0]
    found = find_local(names)
    if found is not None:
        wrong = _mismatch(found.read_bytes(), sha256, git_blob)
        if not wrong:
            return found
        if not found.is_relative_to(cache_folder()):
            msg = f"{found} is not the file that was published: {wrong}. {_advice(target, url, sha256, git_blob)}"
            raise DataUnavailableError(msg)
    if url is None:
        msg = f"{target} is not on this machine. {_advice(target, url, sha256, git_blob)}"
        raise DataUnavailableError(msg)
    if not (sha256 or git_blob):
        msg = f"{url} has no checksum to check a download by."
        raise ValueError(msg)
    return _download(url, target, sha256, git_blob)


def _download(url, target, sha256, git_blob):
    """Fetch a file, check it, and only then put it in the cache."""
    import pooch

    advice = _advice(target, url, sha256, git_blob)
    kept = cache_folder() / target
    received = BytesIO()
    try:
        writing.make_folder(kept.parent)
        pooch.HTTPDownloader(timeout=DOWNLOAD_TIMEOUT_S)(url, received, None)
        wrong = _mismatch(received.getvalue(), sha256, git_blob)
        if not wrong:
            return writing.write_file(kept, received.getvalue())
    except EmsoptError as error:
        msg = f"{target} is not on this machine, and a download cannot be kept: {error} {advice}"
        raise DataUnavailableError(msg) from error
    except OSError as error:  # every failure of `requests` is one
        msg = f"{target} is not on this machine and could not be fetched ({type(error).__name__}: {error}). {advice}"
        raise DataUnavailableError(msg) from error
    msg = f"{url} did not send the file that was published: {wrong}. It was not kept. {advice}"
    raise DataUnavailableError(msg)


def _mismatch(content, sha256, git_blob):
    """Say what is wrong with the content of a file, or return an empty string."""
    for kind, wanted, got in (
        ("sha256", sha256, hashlib.sha256(content).hexdigest()),
        ("git blob id", git_blob, hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()),
    ):
        if wanted and got != wanted.lower():
            return f"its {kind} is {got}, where {wanted} was expected"
    return ""


def _advice(target, url, sha256, git_blob):
    folder = data_folder()
    place = (
        f"EMSOPT_DATA (now {folder})"
        if folder
        else "a folder that the environment variable EMSOPT_DATA names"
    )
    source = f"Fetch {url} by other means" if url else "Obtain the file"
    checks = [f"sha256 {sha256}"] * bool(sha256) + [f"git blob id {git_blob}"] * bool(git_blob)
    return f"{source} and put it at {target} in {place}" + (
        f"; it has {' and '.join(checks)}." if checks else "."
    )


def _listed(names):
    return [names] if isinstance(names, (str, os.PathLike)) else list(names)
