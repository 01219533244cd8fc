"""Limit the pages that the dashboard's server keeps: each has a process of its own, of some 340 MB."""

# mypy: disable-error-code="no-untyped-call"
import asyncio
from typing import Any

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError
from traitlets import Integer


class Visitors(AsyncMappingKernelManager):
    """Starts a process for a page while there are fewer than ``most``, and ends those of pages that were left first."""

    most = Integer(4, config=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._one_at_a_time, self._left = asyncio.Lock(), set[str]()

    async def start_kernel(self, **options: Any) -> Any:  # type: ignore[override]
        """Start a process, or refuse it with status 503."""
        async with self._one_at_a_time:  # twenty pages asked for at once are counted, too
            if len(self) >= self.most:
                for name in self._left & set(self.list_kernel_ids()):
                    await self.shutdown_kernel(name, now=True)
                self._left.clear()
            if len(self) >= self.most:
                raise HTTPError(503, reason=f"{self.most} pages are open. Close one, or serve more with --visitors.")
            return await super().start_kernel(**options)

    def notify_connect(self, kernel_id: str) -> None:
        """Record that a page is connected to the process."""
        super().notify_connect(kernel_id)
        self._left.discard(kernel_id)

    def notify_disconnect(self, kernel_id: str) -> None:
        """Record that the page was closed or is being reloaded."""
        super().notify_disconnect(kernel_id)
        if not self._kernel_connections.get(kernel_id):
            self._left.add(kernel_id)
