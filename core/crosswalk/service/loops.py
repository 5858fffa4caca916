"""Connections of an event loop, each for one request at a time. ``llhttp`` parses the answers (``httptools``).

A general-purpose client costs several times as much as the rest of a call. Here a request is one write, a read is a future,
and its limit is the call's, by one timer (:class:`crosswalk.service.deadlines.Wait`). Only connecting and writing have
separate limits here. While the caller does not read, little more than one piece is taken from the system, and the rest
is left there. Failures are raised as the errors of ``httpcore2``, as by the other transports.
"""

from __future__ import annotations

import asyncio
import re
import select
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any, Final, cast

import httpcore2
import httptools

from crosswalk.service.deadlines import RESEND_SECONDS, Wait

__all__ = ["Connection", "Connections"]

_HEAD_BYTES: Final = 100 * 1024
_KEPT_SECONDS: Final = 5.0
_HEADER: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00-\x08\x0a-\x1f\x7f]*")
_METHOD: Final = re.compile(r"[A-Z]+")


class _Pipe(asyncio.Protocol):
    """The bytes of a connection, for one reader, and whether more can be written.

    Attributes:
        has_ended: whether it has ended.
        error: the error that ended it, or ``None`` for an orderly end.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self.error: Exception | None = None
        self._data: deque[bytes] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._is_paused = self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._loop = asyncio.get_running_loop()
        self.transport = cast(asyncio.Transport, transport)
        # So that all is written when writing may go on. At 0, TLS calls an empty buffer full.
        self.transport.set_write_buffer_limits(high=1)

    def data_received(self, data: bytes) -> None:
        """Data has arrived."""
        self._data.append(bytes(data))  # some loops give a bytearray
        if self._reader is None:
            self._is_paused = True
            self.transport.pause_reading()
        else:
            _wake(self._reader)

    def eof_received(self) -> None:
        """The data has ended. The transport closes itself."""
        self.has_ended = True
        _wake(self._reader)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self.has_ended, self.error = True, error
        _wake(self._reader)
        self.resume_writing()

    def pause_writing(self) -> None:
        """The system takes no more."""
        self._is_full = True

    def resume_writing(self) -> None:
        """The system has taken all."""
        self._is_full = False
        _wake(self._writer)

    @property
    def has_news(self) -> bool:
        """Whether data, or the end, can be read without waiting."""
        return bool(self._data) or self.has_ended

    async def read(self) -> bytes:
        """Return the next bytes, or empty at the end.

        Raises:
            OSError: the connection broke.
        """
        if not self._data and not self.has_ended:
            self._reader = self._loop.create_future()
            if self._is_paused:
                self._is_paused = False
                self.transport.resume_reading()
            try:
                await self._reader
            finally:
                self._reader = None
        if self._data:
            return self._data.popleft()
        if self.error is not None:
            raise self.error
        return b""

    async def write(self, data: bytes, seconds: float | None) -> None:
        """Send *data*, or as much of it as can be sent before the connection ends.

        Raises:
            TimeoutError: not within this number of *seconds*.
        """
        if not self.has_ended:
            self.transport.write(data)
            if self._is_full:
                self._writer = self._loop.create_future()
                async with asyncio.timeout(seconds):
                    await self._writer


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


class _LostError(Exception):
    """The server closed a kept connection before any byte of the answer: servers close idle connections without notice,
    perhaps while the next request is on its way."""


class Connection(AsyncIterator[bytes]):
    """One connection and an iterator of the body of the answer that :meth:`ask` has begun.

    Args:
        pipe: the connection.
        origin: its server.

    Attributes:
        status: the HTTP status of the answer.
        headers: its headers, as received.
        idle_since: the start of its idle time, by the loop's clock.
    """

    def __init__(self, pipe: _Pipe, origin: httpcore2.Origin) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self._pipe = pipe
        self._requests = 0

    async def ask(self, request: bytes, seconds: float | None) -> None:
        """Send *request* within this number of *seconds*, and wait for the head of its answer.

        Raises:
            _LostError: it is to be sent over another connection. httpcore2.WriteTimeout: it could not be sent in time.
            httpcore2.NetworkError: the connection broke. httpcore2.RemoteProtocolError: the answer is not HTTP.
        """
        self._parser = parser = httptools.HttpResponseParser(self)
        parser.set_dangerous_leniencies(  # some servers do this, and each connection serves one request at a time
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_data_after_close=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._requests += 1
        self._sent_at = asyncio.get_running_loop().time()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._fault: Exception | None = None
        self._head_bytes = 0
        self._has_head = self._has_ended = self._is_kept = False
        try:
            await self._pipe.write(request, seconds)
        except TimeoutError as error:
            raise httpcore2.WriteTimeout("too late") from error
        while not self._has_head:
            await self._read_on()

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._has_ended:
                raise StopAsyncIteration
            await self._read_on()
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _read_on(self) -> None:
        """Read the next piece of the answer, or its end."""
        if self._fault is not None:
            raise httpcore2.RemoteProtocolError("this is no HTTP") from self._fault
        may_be_lost = self._requests > 1 and not self._head_bytes and not self._has_head
        try:
            data = await self._pipe.read()
        except OSError as error:
            if may_be_lost and self._was_just_sent:
                raise _LostError from None
            raise httpcore2.ReadError(str(error)) from error
        if not data:
            if may_be_lost and self._was_just_sent:
                raise _LostError
            if not (self._has_head and self._ends_with_connection):
                raise httpcore2.RemoteProtocolError("the connection was closed in the middle of the answer")
            self._has_ended = True
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fault = error  # the data before it is read first
        if not self._has_head:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                raise httpcore2.RemoteProtocolError("the head of the answer is too long")

    @property
    def _was_just_sent(self) -> bool:
        return asyncio.get_running_loop().time() - self._sent_at <= RESEND_SECONDS

    @property
    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self.headers}
        return not names & {b"content-length", b"transfer-encoding"}

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """An answer begins. One behind the answer, without a request, makes the server untrustworthy."""
        if self._has_ended:
            self._is_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Fields behind a body are ignored."""
        if not self._has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete. Behind "100 Continue" another follows."""
        if self._has_head:
            return
        self.status = self._parser.get_status_code()
        if 100 <= self.status < 200:
            self.headers.clear()
            return
        codings = [
            value.strip().lower() for name, value in self.headers if name.lower() == b"transfer-encoding"
        ]
        if codings not in ([], [b"chunked"]):
            raise ValueError("nobody can tell where that ends")
        self._has_head = True
        self._is_kept = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """Add a piece of the body."""
        if not self._has_ended:
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        """The answer has ended."""
        self._has_ended = self._has_head

    # The end of the answer.

    @property
    def is_kept(self) -> bool:
        """Whether another request can be sent over it."""
        return self._has_ended and self._is_kept and self._fault is None and not self._pipe.has_news

    def is_usable(self, now: float) -> bool:
        """Whether an idle connection can be used at the time *now*: the loop may not have seen its end yet."""
        sock = self._pipe.transport.get_extra_info("socket")
        return now - self.idle_since < _KEPT_SECONDS and not (self._pipe.has_news or _is_readable(sock))

    def abort(self) -> None:
        """Close it."""
        self._pipe.transport.abort()


class Connections:
    """The connections of a service.

    Args:
        context: the trusted certificates.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._idle: list[Connection] = []  # the longest idle first
        self._open: set[Connection] = set()
        self.head = lru_cache(maxsize=64)(head_of)

    async def ask(
        self, origin: httpcore2.Origin, request: bytes, seconds: float | None, wait: Wait
    ) -> Connection:
        """Return the connection with the answer to *request*. Connecting and sending may each take this number of *seconds*.

        If a kept connection was lost, *wait* counts it, and another one is used.

        Raises:
            httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError: there is no answer.
        """
        while True:
            connection = self._kept(origin) or await _connected(origin, self._context, seconds)
            self._open.add(connection)
            try:
                await connection.ask(request, seconds)
            except _LostError:
                wait.resent += 1
                self._close(connection)
                for other in [one for one in self._idle if one.origin == origin]:  # may be closed as well
                    self._idle.remove(other)
                    self._close(other)
            except BaseException:
                self._close(connection)
                raise
            else:
                return connection

    async def let_go(self, connection: Connection) -> None:
        """Release the connection: the answer has been read, or is not wanted any more."""
        if connection.is_kept and connection in self._open:
            now = connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            idle = self._idle
            while idle and now - idle[0].idle_since >= _KEPT_SECONDS:
                self._close(idle.pop(0))
        else:
            self._close(connection)
            await asyncio.sleep(0)  # it is closed behind this

    async def aclose(self) -> None:
        """Close all of them."""
        self._idle.clear()
        for connection in [*self._open]:
            self._close(connection)
        await asyncio.sleep(0)

    def _kept(self, origin: httpcore2.Origin) -> Connection | None:
        now = asyncio.get_running_loop().time()
        for connection in reversed(self._idle):
            if connection.origin == origin:
                self._idle.remove(connection)
                if connection.is_usable(now):
                    return connection
                self._close(connection)
        return None

    def _close(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.abort()


def _is_readable(sock: socket.socket) -> bool:
    """Whether data, or the end, can be read from *sock* without waiting."""
    number = sock.fileno()
    if number < 0:
        return True
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


async def _connected(origin: httpcore2.Origin, context: ssl.SSLContext, seconds: float | None) -> Connection:
    """Open a connection to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    # Other loops than Python's own try one address after the other.
    options: dict[str, Any] = (
        {"happy_eyeballs_delay": 0.25} if isinstance(loop, asyncio.BaseEventLoop) else {}
    )
    host = origin.host.decode("ascii")
    if origin.scheme == b"https":
        options |= {"ssl": context, "server_hostname": host}
    try:
        async with asyncio.timeout(seconds):
            _, pipe = await loop.create_connection(_Pipe, host, origin.port, **options)
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout("too late") from error
    except (OSError, UnicodeError) as error:
        # The server does not answer or is not trusted, or the host's name is unknown or invalid.
        raise httpcore2.ConnectError(str(error)) from error
    return Connection(pipe, origin)


def head_of(method: str, target: bytes, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Return the head of a request, without the headers that declare the end of its body.

    Raises:
        httpcore2.LocalProtocolError: it would not be valid HTTP.
    """
    lines = [f"{name}: {value}".encode("ascii") for name, value in headers]
    is_framed = any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers)
    if is_framed or not (_METHOD.fullmatch(method) and all(map(_HEADER.fullmatch, lines))):
        raise httpcore2.LocalProtocolError("a header, or the method, is none")
    return b"\r\n".join([b"%s %s HTTP/1.1" % (method.encode(), target), *lines, b""])
