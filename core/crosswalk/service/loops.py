"""Connections of an event loop: what ``httpcore2`` asks of a network backend, without a time limit for each read.

Its own one sets a limit for each read, and stops listening behind it. Here a read is a future, and its limit is the call's,
by one timer (:class:`crosswalk.service.waits.LoopWait`); connecting and writing alone have limits here. As long as nobody
reads, little more than one piece is taken from the system, and the rest is left there.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, cast

import httpcore2

from crosswalk.service.chunks import Address, Tap
from crosswalk.service.sockets import is_readable

__all__ = ["LoopBackend", "LoopStream"]


class _Pipe(asyncio.Protocol):
    """What comes over a connection, for one reader, and whether more can be written.

    Attributes:
        has_ended: whether nothing more will come.
        error: what ended it; ``None`` for an orderly end.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self.error: Exception | None = None
        self._data: deque[bytes] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._is_paused = self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._loop = asyncio.get_running_loop()
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=0)  # so that all is written when writing may go on

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._data.append(bytes(data))  # some loops give a bytearray
        if self._reader is None:
            self._is_paused = True
            self.transport.pause_reading()
        else:
            _wake(self._reader)

    def eof_received(self) -> None:
        """Nothing more will come; the transport closes itself."""
        self.has_ended = True
        _wake(self._reader)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is no more."""
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
        """Whether something, or the end, can be read without waiting."""
        return bool(self._data) or self.has_ended

    async def read(self) -> bytes:
        """The next bytes; none at the end.

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

    async def write(self, data: bytes) -> None:
        """Send all of *data*.

        Raises:
            OSError: the connection broke.
        """
        if not self.has_ended:
            self.transport.write(data)
            if self._is_full:
                self._writer = self._loop.create_future()
                await self._writer
        if self.has_ended:
            raise self.error or ConnectionResetError("the connection is closed")


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


class LoopStream(httpcore2.AsyncNetworkStream):
    """One connection.

    Attributes:
        tap: parts what comes over it.
    """

    def __init__(self, pipe: _Pipe, tap: Tap) -> None:
        self.tap = tap
        self._pipe = pipe

    async def receive(self) -> bytes:
        """The next bytes from the network; none at the end."""
        try:
            return await self._pipe.read()
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What the HTTP library is to see next, which takes more than it asks for; or that the connection is lost."""
        try:
            data = self.tap.take() or await self.receive()
        except httpcore2.ReadError:
            self.tap.look_at_end()
            raise
        return self.tap.give(data)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send the request that ends with *buffer*."""
        if data := self.tap.send(buffer):
            try:
                async with asyncio.timeout(timeout):
                    await self._pipe.write(data)
            except TimeoutError as error:
                raise httpcore2.WriteTimeout("too late") from error
            except OSError as error:
                raise httpcore2.WriteError(str(error)) from error

    async def aclose(self) -> None:
        """Close the connection."""
        self._pipe.transport.abort()
        await asyncio.sleep(0)  # it is closed behind this

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> LoopStream:
        """The same connection, encrypted from now on."""
        pipe = self._pipe
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                encrypted = await loop.start_tls(
                    pipe.transport, pipe, ssl_context, server_hostname=server_hostname
                )
            if encrypted is None:
                raise ConnectionResetError("the connection was closed")
        except BaseException as error:
            await self.aclose()
            if isinstance(error, TimeoutError):
                raise httpcore2.ConnectTimeout("too late") from error
            if isinstance(error, OSError):
                raise httpcore2.ConnectError(str(error)) from error
            raise
        pipe.connection_made(encrypted)
        return LoopStream(pipe, self.tap)

    def get_extra_info(self, info: str) -> Any:
        """What ``httpcore2`` wants to know: whether an idle connection is not to be used again, and the protocol."""
        transport = self._pipe.transport
        if info == "is_readable":
            return (
                self.tap.is_doubtful or self._pipe.has_news or is_readable(transport.get_extra_info("socket"))
            )
        if info == "ssl_object":
            return transport.get_extra_info("ssl_object")
        return None


class LoopBackend(httpcore2.AsyncNetworkBackend):
    """Makes connections."""

    def __init__(self) -> None:
        self._addresses: defaultdict[tuple[str, int], Address] = defaultdict(Address)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> LoopStream:
        """A connection to the first of the host's addresses that answers."""
        loop = asyncio.get_running_loop()
        # Other loops than Python's own try one address after the other.
        race: dict[str, Any] = (
            {"happy_eyeballs_delay": 0.25} if isinstance(loop, asyncio.BaseEventLoop) else {}
        )
        try:
            async with asyncio.timeout(timeout):
                _, pipe = await loop.create_connection(_Pipe, host, port, **race)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("too late") from error
        except (OSError, UnicodeError) as error:  # nobody answers; nobody knows the host; its name is none
            raise httpcore2.ConnectError(str(error)) from error
        return LoopStream(pipe, Tap(self._addresses[host, port]))
