"""One connection of the replay server: the HTTP/1.1 that it needs, and invalid HTTP if a fault requires it."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType

from crosswalk.testing.exchange import ReceivedRequest
from crosswalk.testing.faults import Abort, Chunk, Close, End, Hang, Head, Pause, Raw, Step


class ClientLeftError(Exception):
    """The client closed the connection."""


class BadRequestError(Exception):
    """The received bytes are not an HTTP request."""


class Connection(asyncio.StreamReaderProtocol):
    """A TCP connection that reads requests and sends answers.

    Attributes:
        number: its number among the server's connections, from 1.
        closed: set when the connection is closed.
    """

    def __init__(self, accept: Callable[[Connection], None]) -> None:
        self._reader = asyncio.StreamReader()
        super().__init__(self._reader)
        self._accept = accept
        self._left = asyncio.Event()
        self._is_chunked = False
        self.closed = asyncio.Event()
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(
            high=0
        )  # so that drain() waits until the system has taken everything
        self._tcp = transport
        loop = asyncio.get_running_loop()
        self._writer = asyncio.StreamWriter(transport, self, self._reader, loop)
        self._accept(self)

    def eof_received(self) -> bool | None:
        """Treat the end of the client's data as the client having left, as HTTP does."""
        self._left.set()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the connection is closed."""
        self._left.set()
        self.closed.set()
        super().connection_lost(error)

    def close(self) -> None:
        """Close it, once everything that was written has been sent."""
        self._tcp.close()

    def abort(self) -> None:
        """Close it at once."""
        self._tcp.abort()

    async def read_request(self) -> ReceivedRequest | None:
        """Return the next request, or ``None`` if the client has closed the connection.

        Raises:
            BadRequestError: the received bytes are not an HTTP request.
        """
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            line, *fields = head.decode("latin-1").split("\r\n")[:-2]
            method, target, _ = line.split(" ")
            headers = {}
            for field in fields:
                name, _, value = field.partition(":")
                headers[name.strip().lower()] = value.strip()
            body = await self._read_body(headers)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise BadRequestError from None
            return None
        except (asyncio.LimitOverrunError, ValueError):
            raise BadRequestError from None
        return ReceivedRequest(method, target, MappingProxyType(headers), body, self.number)

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        pieces = []
        while size := int((await self._reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            pieces.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readuntil(b"\r\n")
        return b"".join(pieces)

    async def play(self, steps: Sequence[Step]) -> bool:
        """Do *steps*. Return whether the connection can be used again.

        Raises:
            ClientLeftError: the client closed the connection before the end.
        """
        for step in steps:
            match step:
                case Head(status, headers, length):
                    self._is_chunked = length is None
                    await self._send(_head(status, headers, length))
                case Chunk(data) if data:  # an empty HTTP chunk would be the end
                    await self._send(b"%x\r\n%s\r\n" % (len(data), data) if self._is_chunked else data)
                case Raw(data):
                    await self._send(data)
                case Pause(seconds):
                    await self._wait(seconds)
                case Hang():
                    await self._wait(None)
                case End():
                    await self._send(b"0\r\n\r\n" if self._is_chunked else b"")
                case Abort():
                    raw = self._tcp.get_extra_info("socket")
                    # A reset throws away unsent bytes, but all bytes before a fault must reach the client.
                    while _on_its_way(raw) and not self._left.is_set():
                        await asyncio.sleep(0.001)
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self._tcp.abort()
                    return False
                case Close():
                    return False
        return True

    async def _send(self, data: bytes) -> None:
        if self._left.is_set():
            raise ClientLeftError
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            raise ClientLeftError from None

    async def _wait(self, seconds: float | None) -> None:
        """Wait, forever if ``None``, unless the client leaves."""
        try:
            await asyncio.wait_for(self._left.wait(), seconds)
        except TimeoutError:
            return
        raise ClientLeftError


def _on_its_way(sock: socket.socket) -> int:
    """Return the number of bytes that the peer's system has not confirmed, or 0 if this system does not report it."""
    if sys.platform != "linux":
        return 0
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def _head(status: int, headers: Mapping[str, str], length: int | None) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"  # 529, which Anthropic sends, has no name
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
        framing,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
