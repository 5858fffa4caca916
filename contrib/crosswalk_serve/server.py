"""Runs the gateway in uvicorn: its processes, their log, their signals and their end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors import Multiprocess

from crosswalk.errors import CrosswalkError
from crosswalk_serve.app import create_app
from crosswalk_serve.config import Config
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.guard import ServerConfig
from crosswalk_serve.telemetry import forget

_log = logging.getLogger("crosswalk.serve")
_KEEP_ALIVE = 75
"""The seconds for which an idle connection is kept, and between signs to an idle WebSocket. Load balancers close earlier."""
_GARBAGE = (2000, 10, 10)
"""The number of new objects after which Python looks for garbage, as for :func:`gc.set_threshold`."""
_GRACE = 10
"""The seconds between the time when all answers are ended and the time when waiting stops."""
_SILENCE = 120
"""The seconds for which a process, or the client of a WebSocket, may be silent. Startup takes long on a slow machine."""


@attrs.frozen
class AppOf:
    """Creates the application in another process.

    Attributes:
        config: the configuration.
        load: reads the file again.
    """

    config: Config
    load: Callable[[], Config]

    def __call__(self) -> Starlette:
        """Create the application."""
        _prepare(self.config)
        return ends_gently(create_app(self.config), self.load)


class _Workers(Multiprocess):
    """The processes of uvicorn, without signals to dead ones. They reload the file without a restart."""

    def keep_subprocess_alive(self) -> None:
        """Start another process for each dead one."""
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in filter(None, before.difference(process.pid for process in self.processes)):
            forget(pid)

    def handle_hup(self) -> None:
        """Make each process reload the file. A process that starts later has the new one, too."""
        made = self.config.app
        assert isinstance(made, AppOf), "serve() gives it"
        try:
            self.config.app = attrs.evolve(made, config=made.load())
        except CrosswalkError as error:
            _log.error("the configuration was not reloaded: %s", error)
            return
        for pid in filter(None, (process.pid for process in self.processes)):
            os.kill(pid, signal.SIGHUP)


def server_config(app: Any, config: Config, **options: Any) -> ServerConfig:
    """Return uvicorn's settings for *app*, or for its factory, according to *config*."""
    tls, limits, proxies = config.tls, config.limits, config.listen.trusted_proxies
    return ServerConfig(
        app,
        head_seconds=limits.head_seconds,
        send_seconds=limits.send_seconds,
        ws_max_size=limits.body_bytes,
        ws_ping_interval=_KEEP_ALIVE,
        ws_ping_timeout=_SILENCE,
        workers=config.listen.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.shutdown_seconds) + _GRACE,
        timeout_worker_healthcheck=_SILENCE,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
        **options,
    )


def serve(app: Starlette, config: Config, listener: socket.socket, load: Callable[[], Config]) -> bool:
    """Serve *app* on *listener* until a signal ends it. Return whether it ended without an error.

    Args:
        app: the application.
        config: the configuration.
        listener: a listening socket.
        load: reads the file again, at SIGHUP.
    """
    for name in ("SIGINT", "SIGTERM"):
        signal.signal(getattr(signal, name), lambda *_: None)  # uvicorn raises it again when it has ended
    if config.listen.workers > 1:
        _Workers(server_config(AppOf(config, load), config, factory=True), [listener]).run()
        return True
    _prepare(config)
    server = uvicorn.Server(server_config(ends_gently(app, load), config))
    server.run([listener])
    return server.started


def _prepare(config: Config) -> None:
    """Log each request on standard error, if the configuration asks for it, and collect garbage soon.

    The process runs for weeks, unlike a command, which collects garbage as late as possible.
    """
    gc.freeze()  # loaded objects stay
    gc.set_threshold(*_GARBAGE)
    logger = logging.getLogger("crosswalk.serve")
    if config.log.requests and not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_RELOAD: Final = tuple(one for one in signal.Signals if one.name == "SIGHUP")  # Windows has none


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
