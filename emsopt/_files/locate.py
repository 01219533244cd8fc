"""Find data files: in the folder that ``EMSOPT_DATA`` names, else in the package, else in the user's cache.

Downloads are stored in the cache. Files with a known checksum are verified in all three places.
"""

import hashlib
import os
from importlib import resources
from io import BytesIO
from pathlib import Path

from ..errors import DataUnavailableError, EmsoptError
from . import atomic

DOWNLOAD_TIMEOUT_S = 30


def package_file(*parts: str) -> Path:
    """Return the path of a file or folder below ``emsopt/data``, given in parts; raise if the package lacks it."""
    path = Path(str(resources.files("emsopt").joinpath("data", *parts)))
    if not path.exists():
        raise DataUnavailableError(f"{path} is missing from the installed package. Reinstall emsopt.")
    return path


def cache_folder() -> Path:
    """Return the folder for downloads, which depends on the operating system."""
    import pooch

    return Path(pooch.os_cache("emsopt"))


def data_folder() -> Path | None:
    """Return the folder named by ``EMSOPT_DATA``, or None if it is not set; raise if there is no such folder."""
    if not (setting := os.environ.get("EMSOPT_DATA")):
        return None
    folder = Path(os.path.expanduser(setting))  # these functions never raise, unlike the methods of Path
    if not os.path.isdir(folder):
        raise DataUnavailableError(f"the variable EMSOPT_DATA must name an existing folder; got {setting!r}.")
    return folder


def find_local(relative: str) -> Path | None:
    """Return the path of a data file, below a data folder or by its name directly in it; None if it is in none."""
    folders = (folder for where in (data_folder, package_file, cache_folder) if (folder := where()))
    paths = (folder / name for folder in folders for name in (relative, Path(relative).name))
    return next((path for path in paths if path.is_file()), None)


def find_data(target: str, url: str | None = None, checksum: str = "") -> Path:
    """Return the path of a data file, after downloading it from ``url`` if it is not on this machine.

    Its ``checksum``, in hexadecimal, is a sha256 or as git computes it, and is needed with ``url``.
    """
    source = f"Download {url} by other means" if url else "Obtain the file"
    proof = f"; it has {_hash_name(checksum)} {checksum}" if checksum else ""
    advice = f"{source} and put it at {target} in EMSOPT_DATA (now {data_folder() or 'no folder'}){proof}."

    if (found := find_local(target)) is not None:
        wrong = _describe_mismatch(found.read_bytes(), checksum)
        if not wrong:
            return found
        if not found.is_relative_to(cache_folder()):  # a damaged download is replaced
            raise DataUnavailableError(f"{found} is not the file that was published: {wrong}. {advice}")
    if url is None:
        raise DataUnavailableError(f"{target} is not on this machine. {advice}")

    import pooch

    kept, received = cache_folder() / target, BytesIO()
    try:
        atomic.make_folder(kept.parent)
        pooch.HTTPDownloader(timeout=DOWNLOAD_TIMEOUT_S)(url, received, None)
        wrong = _describe_mismatch(received.getvalue(), checksum)  # before it is stored
        if not wrong:
            return atomic.write_file(kept, received.getvalue())
    except (EmsoptError, OSError) as error:  # all errors of `requests` are OSErrors
        cause = f"could not be downloaded to the cache ({type(error).__name__}: {error})"
        raise DataUnavailableError(f"{target} {cause}. {advice}") from error
    raise DataUnavailableError(f"{url} did not send the published file: {wrong}. It was not kept. {advice}")


def _hash_name(checksum: str) -> str:
    return "sha256" if len(checksum) == 64 else "git blob id"


def _describe_mismatch(content: bytes, checksum: str) -> str:
    """Return a description of a wrong checksum, or an empty string if it is correct or not given."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content)  # as git hashes a file
    found = (hashlib.sha256(content) if len(checksum) == 64 else blob).hexdigest()
    return f"its {_hash_name(checksum)} is {found}, but {checksum} was expected" if checksum not in ("", found) else ""
