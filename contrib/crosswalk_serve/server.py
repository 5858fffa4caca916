"""Runs the gateway in uvicorn: its processes, their log, their signals, their end, and the limits of connections."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import attrs
import uvicorn
from httptools import HttpParserUpgrade
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.supervisors import Multiprocess

from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorInfo, ErrorKind
from crosswalk_serve.app import create_app
from crosswalk_serve.config import Config
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.http import failed, form_at, id_headers
from crosswalk_serve.telemetry import LogLines, forget

# ----------------------------------------------------------------------------------- guard
# Connections of uvicorn with further limits: slow and long heads, clients that do not read, a gentle end.


_HEAD_BYTES: Final = 65536
_HEAD_FIELDS: Final = 100
"""The most headers of a request, as in Apache and Envoy."""
_BEHIND_MESSAGE: Final = "this offers another protocol behind a request"
_NO_REQUEST_MESSAGE: Final = "not a valid HTTP/1.1 request"
_LONG: Final = f"the head of the request is longer than {_HEAD_BYTES} bytes"
_MANY: Final = f"the request has more than {_HEAD_FIELDS} headers"


class ServerConfig(uvicorn.Config):
    """Return uvicorn's settings, and the further ones of :class:`GuardedProtocol`.

    Args:
        app: the application, or its factory.
        head_seconds: until the head of a request is complete.
        send_seconds: until a client with a full buffer accepts more.
        options: uvicorn's own.
    """

    def __init__(self, app: Any, *, head_seconds: float, send_seconds: float, **options: Any) -> None:
        for kind in (GuardedProtocol, GuardedSocket):
            unknown_names = [name for name in _replaced(kind) if not hasattr(kind.__bases__[0], name)]
            if unknown_names:  # it would never be called, and would protect nothing
                version = f"uvicorn {uvicorn.__version__}"
                raise ConfigurationError(f"{version} is unknown: its connections have no {unknown_names[0]}")
        super().__init__(app, http=GuardedProtocol, ws=GuardedSocket, ws_per_message_deflate=False, **options)
        self.head_seconds = head_seconds
        self.send_seconds = send_seconds


def _replaced(kind: type) -> list[str]:
    """Return the names of the methods of uvicorn's connections that *kind* replaces."""
    return [name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")]


class _BadHeadError(Exception):
    """A gateway should not serve a request with such a head."""


class _Parser:
    """A parser that ignores the offer of another protocol, as Java's client makes it: the body comes in this one.

    For the parser that protocol has begun after the head. So it gets another head, with only the end of the body.

    Args:
        connection: the connection with the data.
        parser: its parser.
    """

    def __init__(self, connection: GuardedProtocol, parser: Any) -> None:
        self._connection = connection
        self._parser = parser

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._parser, name)
        setattr(self, name, method)  # several requests ask for each
        return method

    def feed_data(self, data: bytes) -> None:
        """Parse *data*."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as offer:
            framing_lines = self._connection._framing_behind_offer()
            if framing_lines is None:
                raise
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%s\r\n" % framing_lines)
            self._connection._is_head_repeated = False
            self.feed_data(data[offer.args[0] :])


class GuardedProtocol(HttpToolsProtocol):
    """A connection of HTTP/1.1 by llhttp, which is strict about the ends of messages. Further checks are made here.

    It replaces only methods of asyncio's protocols and of httptools' callbacks, and methods of uvicorn with public names.
    """

    config: ServerConfig
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    url = b""  # of the last request that has begun
    _head_bytes = 0
    _is_in_head = False
    _has_stopped_reading = False
    _is_websocket = False
    _is_head_repeated = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.parser: Any = _Parser(self, self.parser)
        self._cycles: deque[Any] = deque()  # the request that is answered, and those that wait behind it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the connection of a client. Its first request has to come soon."""
        super().connection_made(transport)
        # asyncio does this only for sockets marked as TCP, which those of a listener need not be. Without it the
        # client's system, which acknowledges late, delays the body after the head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head_timer = self.loop.call_later(self.config.head_seconds, self._abort)

    def data_received(self, data: bytes) -> None:
        """Take data. The rest of a head that has begun has to come soon, and must not be long."""
        if self._has_stopped_reading:
            return
        super().data_received(data)
        if self._is_in_head or not self._is_answering:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES and not self._has_stopped_reading:
                self._refuse(431, _LONG)
        if self._is_answering or self._has_stopped_reading:
            _stop(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.config.head_seconds, self._abort)

    @property
    def _is_answering(self) -> bool:
        return bool(self._cycles)

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        if not self._is_head_repeated:
            super().on_message_begin()
            self._is_in_head = True

    def on_url(self, url: bytes) -> None:
        """Take a part of the request's URL."""
        if self._is_in_head:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. A trailer after the body is ignored."""
        if self._is_in_head:
            super().on_header(name, value)
            if len(self.headers) > _HEAD_FIELDS:
                self._refuse(431, _MANY)
                raise _BadHeadError

    def on_headers_complete(self) -> None:
        """Check the complete head: it must state the request's end and its host once, and in the usual way."""
        if not self._is_in_head:
            return
        self._is_in_head = False
        self._head_bytes = 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > _HEAD_BYTES:
            self._refuse(431, _LONG)  # it came in one packet with its end
            raise _BadHeadError
        names = [name for name, _ in self.headers]
        is_new, hosts = self.parser.get_http_version() == "1.1", names.count(b"host")
        if not is_new and (self.parser.get_http_version() != "1.0" or b"transfer-encoding" in names):
            raise _BadHeadError
        if hosts != 1 and (is_new or hosts):
            raise _BadHeadError
        if b"transfer-encoding" in names:
            codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
            if codings != [b"chunked"]:
                raise _BadHeadError
        cycle_before = self.cycle
        super().on_headers_complete()
        self._is_websocket = self.cycle is cycle_before
        if not self._is_websocket:
            self._cycles.append(self.cycle)

    def on_response_complete(self) -> None:
        """Note that a request is answered. The next one may begin."""
        self._cycles.popleft()
        super().on_response_complete()

    def _framing_behind_offer(self) -> bytes | None:
        """Return the headers that say where the body behind the offer of another protocol ends, or ``None`` to take it."""
        if self._is_websocket:
            return None
        if len(self._cycles) > 1:
            self._refuse(400, _BEHIND_MESSAGE)
            return None
        self._is_head_repeated = True
        framing_headers = (b"content-length", b"transfer-encoding")
        return b"".join(b"%s: %s\r\n" % header for header in self.headers if header[0] in framing_headers)

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is not a request."""
        if not self._has_stopped_reading:
            self._refuse(400, _NO_REQUEST_MESSAGE)

    def on_message_complete(self) -> None:
        """End the request. If it offers another protocol, the parser reports the end after the head alone."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to the protocol of WebSockets. Nothing more is read here."""
        if self._is_answering:
            return self._refuse(400, _BEHIND_MESSAGE)
        self._has_stopped_reading = True
        super().handle_websocket_upgrade()
        websocket = self.transport.get_protocol()
        if (
            isinstance(websocket, GuardedSocket) and not websocket.handshake_initiated
        ):  # it waits for another head
            self._refuse(400, _NO_REQUEST_MESSAGE)

    def _refuse(self, status: int, message: str) -> None:
        """Read nothing more. Send the reason, unless an answer is on its way, which is then the last one."""
        self._has_stopped_reading = True
        if self._is_answering and not (self._cycles[0] is self.cycle and self.cycle.more_body):
            self._cycles[0].keep_alive = False
            return
        header_names = {name.decode("latin-1") for name, _ in self.headers or ()}
        error = ErrorInfo(ErrorKind.INVALID_REQUEST, message, status=status)
        form, id = form_at(self.url.decode("latin-1"), header_names), str(uuid4())
        body, _ = failed(form, error, id)
        head = "".join(f"{name}: {value}\r\n" for name, value in id_headers(form, id).items()).encode()
        head += b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head % len(body) + body)
        self.transport.close()

    def pause_writing(self) -> None:
        """Note that the client takes less than it is sent."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.config.send_seconds, self._abort)

    def resume_writing(self) -> None:
        """Note that the client has taken most of it."""
        super().resume_writing()
        _stop(self._send_timer)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection after the timeout, at once if the client does not take its data."""
        super().timeout_keep_alive_handler()
        _stop(self._send_timer)
        self._send_timer = self.loop.call_later(self.config.send_seconds, self._abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is lost."""
        _stop(self._head_timer)
        super().connection_lost(exc)
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()
        _stop(self._send_timer)

    def shutdown(self) -> None:
        """Shut down: the answers of the server end in a while, too."""
        super().shutdown()
        self.app_state["gateway"].drain()

    def _abort(self) -> None:
        self.transport.abort()


class GuardedSocket(WebSocketsSansIOProtocol):
    """A WebSocket whose client has to take what it is sent."""

    config: ServerConfig
    _send_timer: asyncio.TimerHandle | None = None

    async def send(self, message: Any) -> None:
        """Take a message of the application. A handshake that it refuses is complete, too."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True

    def pause_writing(self) -> None:
        """Note that the client takes less than it is sent."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.config.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client has taken most of it."""
        super().resume_writing()
        _stop(self._send_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is lost."""
        super().connection_lost(exc)
        _stop(self._send_timer)


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


# ---------------------------------------------------------------------------------- server
# Runs the gateway in uvicorn: its processes, their log, their signals and their end.


_log = logging.getLogger("crosswalk.serve")
_KEEP_ALIVE_SECONDS = 75
"""The seconds for which an idle connection is kept, and between signs to an idle WebSocket. Load balancers close earlier."""
_GARBAGE_THRESHOLDS = (2000, 10, 10)
"""The number of new objects after which Python looks for garbage, as for :func:`gc.set_threshold`."""
_GRACE_SECONDS = 10
"""The seconds between the time when all answers are ended and the time when waiting stops."""
_SILENCE_SECONDS = 120
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
        pids_before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in filter(None, pids_before.difference(process.pid for process in self.processes)):
            forget(pid)

    def handle_hup(self) -> None:
        """Make each process reload the file. A process that starts later has the new one, too."""
        app_factory = self.config.app
        assert isinstance(app_factory, AppOf), "serve() gives it"
        try:
            self.config.app = attrs.evolve(app_factory, config=app_factory.load())
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
        ws_ping_interval=_KEEP_ALIVE_SECONDS,
        ws_ping_timeout=_SILENCE_SECONDS,
        workers=config.listen.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(limits.shutdown_seconds) + _GRACE_SECONDS,
        timeout_worker_healthcheck=_SILENCE_SECONDS,
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
    """Log on standard error as the configuration asks for it, and collect garbage soon.

    The process runs for weeks, unlike a command, which collects garbage as late as possible.
    """
    gc.freeze()  # loaded objects stay
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    # No line of the log shows the place in the code, or the thread, and it takes long to look for them.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    is_json = config.log.format == "json"
    if config.log.requests:
        _log.setLevel(logging.INFO)
    logger = logging.getLogger() if is_json else _log  # whatever another library says is a line of JSON, too
    if (is_json or config.log.requests) and not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LogLines() if is_json else logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)


_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_RELOAD_SIGNALS: Final = tuple(one for one in signal.Signals if one.name == "SIGHUP")  # Windows has none


def ends_gently(app: Starlette, load: Callable[[], Config]) -> Starlette:
    """Return *app* with its own handling of signals: its server ends after its answers, and SIGHUP reloads the file.

    A server that has received a signal does not listen any more, so a balancer that asks for readiness would be refused.

    Args:
        app: the application.
        load: reads the file.
    """
    inner_lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[Any]:
        async with inner_lifespan(app) as state:
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
        self._handlers: dict[int, Any] = {one: signal.signal(one, self._receive) for one in _END_SIGNALS}
        for one in _RELOAD_SIGNALS:
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
        restart_sections = gateway.reload(load())
    except CrosswalkError as error:
        _log.error("the configuration was not reloaded: %s", error)
        return
    _log.warning("the configuration was reloaded; models: %s", ", ".join(gateway.router.names))
    if restart_sections:
        _log.warning("a restart is needed for: %s", ", ".join(restart_sections))
