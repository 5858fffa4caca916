"""Reads the body of a stream past the HTTP library, in which chunks would be most of the cost of a token.

``httpcore2`` keeps the connections, sends requests and reads the beginning and the end of an answer. It asks its network
backend, which is ours, for bytes. A :class:`Tap` gives it those of a head and retains the following ones, until
:class:`Chunked` has taken the data out of plain chunks (RFC 9112, section 7.1). The last chunk, and any that is not
plain, goes back to the library, which validates it. So the library sees an empty answer, and its end.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from crosswalk.service.waits import RESEND_SECONDS

__all__ = ["HEAD_BYTES", "Address", "Chunked", "Tap", "UntilClosed", "past"]

HEAD_BYTES: Final = 100 * 1024
"""The maximum size of an answer's head, including all heads of interim answers before it."""

_HEAD_END: Final = re.compile(rb"\n\r?\n")
"""The limit of ``h11``."""
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,7})\r\n")
_BEGUN_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{0,7}\r?\Z")


class Address:
    """The shared state of the connections to one address.

    Attributes:
        losses: the number of kept connections that the server turned out to have closed.
    """

    def __init__(self) -> None:
        self.losses = 0


class Tap:
    """Divides the bytes of a connection into those that the HTTP library sees now, and those that wait.

    Args:
        address: the address of the server.

    Attributes:
        is_answered: whether a byte has arrived since the last request.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._losses = address.losses
        self._requests = 0
        self._sent_at = 0.0
        self.is_answered = True
        self._head: bytes | None = None  # the part of it that arrived, or None if none is awaited
        self._interim_bytes = 0  # of heads before it
        self._held = b""
        self._unsent: list[bytes] = []

    def send(self, data: bytes) -> bytes:
        """Return the bytes to send for *data*: a whole request at once, which the library ends by sending no bytes."""
        if data:
            self._unsent.append(data)
            return b""
        request = b"".join(self._unsent)
        self._unsent.clear()
        self._head = b""
        self._interim_bytes = 0
        self._requests += 1
        self._sent_at = time.monotonic()
        self.is_answered = False
        return request

    def look_at_end(self) -> None:
        """The server has closed the connection. Make the HTTP library take another one, if this one was lost.

        It was lost if it served an earlier request, and no byte of this one's answer arrived: servers close idle connections
        without notice, perhaps while the next request is on its way. This is possible within :data:`RESEND_SECONDS` of
        sending. On a connection made since, the request is sent once more. Older connections may be closed as well.

        Raises:
            ConnectionNotAvailable: the HTTP library's, which then asks its pool.
        """
        was_just_sent = time.monotonic() - self._sent_at <= RESEND_SECONDS
        if self._requests > 1 and not self.is_answered and was_just_sent:
            import httpcore2

            self._address.losses += 1
            raise httpcore2.ConnectionNotAvailable

    @property
    def is_doubtful(self) -> bool:
        """Whether another connection to the same address was lost since this one was made."""
        return self._losses != self._address.losses

    def give(self, data: bytes) -> bytes:
        """Return the part of *data*, just read, that the HTTP library sees: a head to its end, or all of it.

        Raises:
            RemoteProtocolError: the HTTP library's: endless interim answers, such as "100 Continue".
        """
        if not data:
            self.look_at_end()
        self.is_answered = True
        if self._head is None:
            return data
        head = self._head + data
        end = _HEAD_END.search(head, max(len(self._head) - 3, 0))
        if end is None:
            self._head = head
            return data
        shown = end.end() - len(self._head)
        self._held = data[shown:]
        if head[9:10] != b"1":
            self._head = None
            return data[:shown]
        self._head = b""  # behind "100 Continue" another head follows
        self._interim_bytes += end.end()
        if self._interim_bytes > HEAD_BYTES:
            import httpcore2

            raise httpcore2.RemoteProtocolError("the head of the answer is too long")
        return data[:shown]

    def take(self) -> bytes:
        """Return the waiting bytes, or none. The HTTP library sees the part of them that :meth:`give` returns."""
        held, self._held = self._held, b""
        return held

    def put_back(self, data: bytes) -> None:
        """Put *data* back, for the HTTP library to read next."""
        self._held = data


class UntilClosed(AsyncIterator[bytes]):
    """The data of an answer that ends with its connection.

    Args:
        tap: of the connection. The HTTP library has read the head.
        receive: returns the next bytes of the connection, empty at its end.
        rest: the HTTP library's own reader, for bytes that are put back.
    """

    def __init__(self, tap: Tap, receive: Callable[[], Awaitable[bytes]], rest: AsyncIterator[bytes]) -> None:
        self._tap = tap
        self._receive = receive
        self._rest = rest

    async def __anext__(self) -> bytes:
        return self._tap.take() or await self._receive() or await self._rest.__anext__()


class Chunked(UntilClosed):
    """The data of an answer in chunks, as much as has arrived at once. Takes the arguments of :class:`UntilClosed`."""

    _is_ours = True
    _fault: str | None = None
    _pending = b""
    """Less than a chunk's size, or than its line end."""
    _left = -1
    """The remaining size of the open chunk and the line end behind it, or -1 if none is open."""

    async def __anext__(self) -> bytes:
        while self._is_ours:
            if self._fault is None:
                data = self._tap.take() or await self._receive()
                if not data:
                    self._fault = "the connection was closed in the middle of the body"
                elif found := self._data_in(data):
                    return found
            if self._fault is not None:
                import httpcore2

                raise httpcore2.RemoteProtocolError(self._fault)
        return await self._rest.__anext__()

    def _data_in(self, data: bytes) -> bytes:
        """Return the chunks' content in *data*, the next bytes of the connection, up to their end or a fault."""
        if self._pending:
            data = self._pending + data
            self._pending = b""
        elif self._left < 0 and (size := _SIZE.match(data)) is not None:
            start, length = size.end(), int(size[1], 16)
            if length and start + length + 2 == len(data) and data.endswith(b"\r\n"):
                return data[start:-2]  # a chunk and nothing else, as most servers flush an event
        found: list[bytes] = []
        at = self._read(data, 0, self._left, found) if self._left >= 0 else 0
        while self._left < 0 and self._fault is None:
            size = _SIZE.match(data, at)
            if size is not None and (length := int(size[1], 16)):
                at = self._read(data, size.end(), length + 2, found)
            elif size is None and _BEGUN_SIZE.match(data, at):
                self._pending = data[at:]
                break
            else:  # the last chunk, or an extension, blanks, nonsense
                self._is_ours = False
                self._tap.put_back(data[at:])
                break
        return found[0] if len(found) == 1 else b"".join(found)

    def _read(self, data: bytes, at: int, left: int, found: list[bytes]) -> int:
        """Take the available part of a chunk with *left* bytes to come, including its line end. Return its end."""
        end = at + left
        if end - 2 > at:
            found.append(data[at : end - 2])
        if end > len(data):
            taken = min(len(data), end - 2)
            self._pending = data[taken:]
            self._left = end - taken
        else:
            self._left = -1
            if data[end - 2 : end] != b"\r\n":
                self._fault = "a chunk does not end where it should"
        return end


def past(
    status: int,
    headers: Mapping[str, str],
    tap: Tap,
    receive: Callable[[], Awaitable[bytes]],
    rest: AsyncIterator[bytes],
) -> AsyncIterator[bytes]:
    """Return the data of an answer after its head, past the HTTP library if possible, else *rest*."""
    if status not in (204, 304):
        if headers.get("transfer-encoding", "").strip().lower() == "chunked":
            return Chunked(tap, receive, rest)
        if "transfer-encoding" not in headers and "content-length" not in headers:
            return UntilClosed(tap, receive, rest)
    return rest
