"""Limit the pages that the dashboard's server keeps: each has a process of its own, of some 340 MB."""

# mypy: disable-error-code="no-untyped-call"
import asyncio
from collections.abc import Iterable
from typing import Any

from jupyter_server import CallContext
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError
from traitlets import Integer


class Visitors(AsyncMappingKernelManager):
    """Starts a process for a page while there are fewer than ``most``, and ends those of pages that were left first.

    A browser, which the server knows by its cookie, never has a second place for a page that it reloads.
    """

    most = Integer(4, config=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._one_at_a_time, self._opened = asyncio.Lock(), set[str]()
        self._asked: dict[str, Any] = {}  # by process, the request that it was started for

    async def start_kernel(self, **options: Any) -> Any:  # type: ignore[override]
        """Start a process, or refuse it with status 503."""
        request = CallContext.get(CallContext.JUPYTER_HANDLER)
        async with self._one_at_a_time:  # twenty pages asked for at once are counted, too
            await self._end(name for name, earlier in self._asked.items() if self._replaces(request, name, earlier))
            if len(self) >= self.most:
                await self._end(name for name in self._opened if not self._kernel_connections.get(name))
            if len(self) >= self.most:
                raise HTTPError(503, reason=f"{self.most} pages are open. Close one, or serve more with --visitors.")
            started = await super().start_kernel(**options)
            self._asked[started] = request
            return started

    async def _end(self, names: Iterable[str]) -> None:
        """End those of the processes that are still there."""
        for name in list(names):
            if name in self:
                await self.shutdown_kernel(name, now=True)
        self._opened &= set(self.list_kernel_ids())  # others ended by themselves or were culled
        self._asked = {name: request for name, request in self._asked.items() if name in self}

    def _replaces(self, request: Any, name: str, earlier: Any) -> bool:
        """Return whether a request comes from the browser of an earlier one whose page is neither open nor loading."""
        if earlier.current_user != request.current_user or self._kernel_connections.get(name):
            return False
        return name in self._opened or earlier.request.connection.stream.closed()

    def notify_connect(self, kernel_id: str) -> None:
        """Record that the page of the process has been open."""
        super().notify_connect(kernel_id)
        self._opened.add(kernel_id)
