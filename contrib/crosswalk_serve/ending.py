"""The signals of a gateway's process. SIGINT and SIGTERM end it once its answers have ended; SIGHUP reloads the file."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette

from crosswalk.errors import CrosswalkError
from crosswalk_serve.config import Config
from crosswalk_serve.gateway import Gateway

__all__ = ["ends_gently", "reload"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_RELOAD: Final = tuple(one for one in signal.Signals if one.name == "SIGHUP")  # Windows has none
_log = logging.getLogger("crosswalk.serve")


def ends_gently(app: Starlette, load: Callable[[], Config]) -> Starlette:
    """Return *app* with its own handling of signals: its server ends after its answers, and SIGHUP reloads the file.

    A server that has received a signal does not listen any more, so a balancer that asks for readiness would be refused.

    Args:
        app: the application.
        load: reads the file.
    """
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[Any]:
        async with inner(app) as state:
            ending = _Ending(app.state.gateway, load)
            try:
                yield state
            finally:
                ending.close()

    app.router.lifespan_context = lifespan
    return app


class _Ending:
    """Receives signals in place of the server's own handlers, and passes the first one on in time."""

    def __init__(self, gateway: Gateway, load: Callable[[], Config]) -> None:
        self._gateway = gateway
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._handlers: dict[int, Any] = {one: signal.signal(one, self._receive) for one in _SIGNALS}
        for one in _RELOAD:
            self._handlers[one] = signal.signal(
                one, lambda *_: self._loop.call_soon_threadsafe(reload, gateway, load)
            )

    def close(self) -> None:
        """Restore the server's handlers."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: object) -> None:
        self._loop.call_soon_threadsafe(self._end, number)

    def _end(self, number: int) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._hand_on(number))
        elif number == signal.SIGINT:  # the user does not want to wait
            self._gateway.end_all()

    async def _hand_on(self, number: int) -> None:
        await self._gateway.drained()
        self._handlers[number](number, None)


def reload(gateway: Gateway, load: Callable[[], Config]) -> None:
    """Reload *gateway* with the file that *load* reads. A wrong file is refused, and the old one stays in force."""
    try:
        stored = gateway.reload(load())
    except CrosswalkError as error:
        _log.error("the configuration was not reloaded: %s", error)
        return
    _log.warning("the configuration was reloaded; models: %s", ", ".join(gateway.router.names))
    if stored:
        _log.warning("a restart is needed for: %s", ", ".join(stored))
