"""``emsopt notebooks FOLDER``: copy the notebooks of the package; `emsopt.datasets.check_answer` checks exercises."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import resources
from pathlib import Path

from .._files.atomic import make_folder, write_file
from ..errors import DataUnavailableError, InputError

DESCRIPTION = "Copy the notebooks to a folder. Open them there by: jupyter lab 00_start_here.ipynb"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folder", metavar="FOLDER", help="created if it does not exist")
    parser.add_argument("--force", action="store_true", help="replace notebooks of the same names")


def run(options: Namespace) -> None:
    """Copy the notebooks with their pictures and modules; raise if some exist, unless ``--force`` is given."""
    source = notebooks_folder()
    files = [path.relative_to(source) for path in sorted(source.rglob("*")) if path.suffix in (".ipynb", ".png", ".py")]
    files = [path for path in files if not path.parts[0].startswith(".")]
    target = make_folder(options.folder, "FOLDER")
    there = [str(path) for path in files if (target / path).exists()]
    if there and not options.force:
        raise InputError(
            f"{target} already has {len(there)} of the files, such as {there[0]}; nothing was copied. Name another "
            "folder, or replace them by --force."
        )
    for path in files:
        make_folder((target / path).parent, "FOLDER")
        write_file(target / path, (source / path).read_bytes())
    print(f"{len(files)} files copied to {target.resolve()}. Open them by: jupyter lab {target / files[0]}")


def notebooks_folder() -> Path:
    """Return the folder of the notebooks: that of the installed package, or that of the repository."""
    package = Path(str(resources.files("emsopt")))
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / "dashboard.ipynb").is_file():
            return folder
    raise DataUnavailableError(f"the notebooks are missing from {package}. Reinstall emsopt.")
