"""``emsopt dashboard``: serve the dashboard by Voila, to oneself or to visitors."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .._validate import whole_number
from ..errors import InputError
from .notebooks import notebooks_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

DESCRIPTION = (
    "Serve the dashboard, which needs no code. It opens in the browser; Ctrl-C ends it. PROJECT is opened, not "
    "changed: Save downloads a new file."
)
PROJECT = "EMSOPT_PROJECT"  # environment variable that names the project to open
# End the process of a page that was closed without saying so.
CULLING = ("--MappingKernelManager.cull_idle_timeout=60", "--MappingKernelManager.cull_interval=15")


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("project", nargs="?", metavar="PROJECT", help="project to open, as the dashboard saved it")
    parser.add_argument("--port", type=int, default=8866, metavar="N", help="port to serve on (default: %(default)s)")
    parser.add_argument(
        "--visitors",
        type=int,
        default=4,
        metavar="N",
        help="pages open at once, of some 340 MB each (default: %(default)s)",
    )
    parser.add_argument("--no-browser", action="store_true", help="only serve, at the address that is printed")


def run(options: Namespace) -> None:
    """Serve the dashboard until it is interrupted."""
    if find_spec("voila") is None:
        raise InputError("the dashboard needs Voila: pip install 'emsopt[notebooks]'.")
    environment = dict(os.environ)
    if options.project is not None:
        project = Path(options.project)
        if not project.exists():
            raise InputError(f"`PROJECT`: there is no file {options.project}.")
        environment[PROJECT] = str(project.resolve())
    arguments = [sys.executable, "-m", "voila", str(notebooks_folder() / "dashboard.ipynb"), *CULLING]
    # Only who has the printed address gets a page: other pages in the same browser do not know it, whatever name
    # of this machine they ask for.
    arguments += ["--Voila.auto_token=True", "--Voila.tornado_settings={'allow_remote_access': False}"]
    arguments += ["--VoilaConfiguration.multi_kernel_manager_class=emsopt.commands._visitors.Visitors"]
    arguments += [f"--Visitors.most={whole_number(options.visitors, 'visitors')}"]
    arguments += [f"--port={options.port}", *(["--no-browser"] if options.no_browser else [])]
    if os.name == "posix":  # this process becomes the server, so that what ends one ends the other
        sys.stdout.flush()
        os.execve(sys.executable, arguments, environment)
    subprocess.run(arguments, env=environment, check=False)
