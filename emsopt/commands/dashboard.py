"""``emsopt dashboard``: serve the dashboard with Voila, to a limited number of visitors."""

# mypy: disable-error-code="no-untyped-call, import-untyped"

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any

from ..errors import MissingDependencyError
from ..errors._validate import existing_file, whole_number
from .notebooks import notebooks_folder

try:
    import voila  # noqa: F401
    from jupyter_server import CallContext
    from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
    from tornado.web import HTTPError
    from traitlets import Integer
except ImportError as error:
    raise MissingDependencyError("the dashboard needs Voila: pip install 'emsopt[notebooks]'.") from error

DESCRIPTION = (
    "Serve the dashboard, which needs no code. It opens in the browser; Ctrl-C ends it. PROJECT is opened, not "
    "changed: Save downloads a new file."
)
PROJECT_VARIABLE = "EMSOPT_PROJECT"  # environment variable that names the project to open
# End the process of a page that was closed without saying so.
CULLING_OPTIONS = ("--MappingKernelManager.cull_idle_timeout=60", "--MappingKernelManager.cull_interval=15")


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("project", nargs="?", metavar="PROJECT", help="project to open, as the dashboard saved it")
    parser.add_argument("--port", type=int, default=8866, metavar="N", help="port to serve on (default: %(default)s)")
    visitors = "pages open at once, of some 340 MB each (default: %(default)s)"
    parser.add_argument("--visitors", type=int, default=4, metavar="N", help=visitors)
    parser.add_argument("--no-browser", action="store_true", help="only serve, at the address that is printed")


def run(options: Namespace) -> None:
    """Serve the dashboard until it is interrupted."""
    environment = dict(os.environ)
    if options.project is not None:
        environment[PROJECT_VARIABLE] = str(existing_file(options.project, "PROJECT", "a project, .zip").resolve())
    arguments = [sys.executable, "-m", "voila", str(notebooks_folder() / "dashboard.ipynb"), *CULLING_OPTIONS]
    # Only who has the printed address gets a page: other pages in the same browser do not know it, whatever name
    # of this machine they ask for.
    arguments += ["--Voila.auto_token=True", "--Voila.tornado_settings={'allow_remote_access': False}"]
    arguments += ["--VoilaConfiguration.multi_kernel_manager_class=emsopt.commands.dashboard.VisitorKernelManager"]
    arguments += [f"--VisitorKernelManager.most={whole_number(options.visitors, 'visitors')}"]
    arguments += [f"--port={options.port}", *(["--no-browser"] if options.no_browser else [])]
    if os.name == "posix":  # this process becomes the server, so that what ends one ends the other
        sys.stdout.flush()
        os.execve(sys.executable, arguments, environment)
    subprocess.run(arguments, env=environment, check=False)


class VisitorKernelManager(AsyncMappingKernelManager):
    """Kernel manager that starts one process per page, up to ``most``, and first ends those of closed pages if needed.

    A page that a browser, known by its cookie, reloads replaces the earlier one.
    """

    most = Integer(4, config=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._one_at_a_time, self._opened = asyncio.Lock(), set[str]()
        self._requests: dict[str, Any] = {}  # by process, the request that it was started for

    async def start_kernel(self, **options: Any) -> Any:  # type: ignore[override]
        """Start a process for a page, or refuse it with status 503 if too many pages are open."""
        request = CallContext.get(CallContext.JUPYTER_HANDLER)
        async with self._one_at_a_time:  # twenty pages asked for at once are counted, too
            closed = [n for n, earlier in self._requests.items() if self._is_closed_page(request, n, earlier)]
            await self._shut_down(closed)
            if len(self) >= self.most:
                await self._shut_down(name for name in self._opened if not self._kernel_connections.get(name))
            if len(self) >= self.most:
                raise HTTPError(503, reason=f"{self.most} pages are open. Close one, or serve more with --visitors.")
            started = await super().start_kernel(**options)
            self._requests[started] = request
            return started

    async def _shut_down(self, names: Iterable[str]) -> None:
        """End the processes with the ids ``names``, if they still run."""
        for name in list(names):
            if name in self:
                await self.shutdown_kernel(name, now=True)
        self._opened &= set(self.list_kernel_ids())  # others ended by themselves or were culled
        self._requests = {name: request for name, request in self._requests.items() if name in self}

    def _is_closed_page(self, request: Any, name: str, earlier: Any) -> bool:
        """Return whether process ``name``, started for ``earlier``, is of a page that the same browser has closed."""
        if earlier.current_user != request.current_user or self._kernel_connections.get(name):
            return False
        return name in self._opened or earlier.request.connection.stream.closed()

    def notify_connect(self, kernel_id: str) -> None:
        """Record that the page of a process was opened."""
        super().notify_connect(kernel_id)
        self._opened.add(kernel_id)
