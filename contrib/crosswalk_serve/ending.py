"""How a signal ends the gateway: it listens until its answers have ended, and says meanwhile that it is to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette

from crosswalk_serve.gateway import Gateway

__all__ = ["ends_gently"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def ends_gently(app: Starlette) -> Starlette:
    """*app*, which keeps signals from its server until its answers have ended.

    A server that has one does not listen any more: a balancer would be refused where it asks whether to send requests here.
    """
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[Any]:
        async with inner(app) as state:
            ending = _Ending(app.state.gateway)
            try:
                yield state
            finally:
                ending.close()

    app.router.lifespan_context = lifespan
    return app


class _Ending:
    """Takes signals in place of the server, whose handlers are there already, and hands the first one on in time."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._handlers: dict[int, Any] = {one: signal.signal(one, self._receive) for one in _SIGNALS}

    def close(self) -> None:
        """Give signals back to the server."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: object) -> None:
        self._loop.call_soon_threadsafe(self._end, number)

    def _end(self, number: int) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._hand_on(number))
        elif number == signal.SIGINT:  # somebody does not want to wait
            self._gateway.end_all()

    async def _hand_on(self, number: int) -> None:
        await self._gateway.drained()
        self._handlers[number](number, None)
