"""The body of an answer, read past the HTTP library where it is a stream: most of what a token costs would be its chunk.

``httpcore2`` keeps the connections, sends requests and reads what begins and what ends an answer. It asks its network
backend, which is ours, for bytes: so a :class:`Tap` gives it those of a head and keeps what follows, until
:class:`Chunked` has taken the data out of plain chunks (RFC 9112, section 7.1). The last chunk, and any that is not
plain, goes back to the library, which judges it: it then knows of an answer that was empty, and that it has ended.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from crosswalk.service.waits import RESEND_SECONDS

__all__ = ["HEAD_BYTES", "Address", "Chunked", "Tap", "UntilClosed", "past"]

HEAD_BYTES: Final = 100 * 1024
"""How long the head of an answer may be, with all those of interim answers before it."""

_HEAD_END: Final = re.compile(rb"\n\r?\n")
"""As ``h11`` has it."""
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,7})\r\n")
_BEGUN_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{0,7}\r?\Z")


class Address:
    """What the connections to one address have in common.

    Attributes:
        losses: how often one that was kept turned out to have been closed by the server.
    """

    def __init__(self) -> None:
        self.losses = 0


class Tap:
    """Parts the bytes of a connection: what the HTTP library is to see now, and what waits.

    Args:
        address: where the connection leads.

    Attributes:
        is_answered: whether a byte has come since the last request.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._losses = address.losses
        self._requests = 0
        self._sent_at = 0.0
        self.is_answered = True
        self._head: bytes | None = None  # what came of it; None where none is awaited
        self._interim_bytes = 0  # of heads before it
        self._held = b""
        self._unsent: list[bytes] = []

    def send(self, data: bytes) -> bytes:
        """What to send now that *data* is to be sent: a request at once, which the library ends with no bytes at all."""
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
        """The server has closed the connection: tell the HTTP library to take another one, if this one was lost.

        It was where it served an earlier request, and of this one's answer no byte came: servers close what is idle without
        a word, perhaps while the next request is on its way. That is over within :data:`RESEND_SECONDS` of sending. On a
        connection made since, it is sent once more; those that were made before may be closed as well.

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
        """Of *data*, which was just read, what the HTTP library is to see: a head to its end, or all of it.

        Raises:
            RemoteProtocolError: the HTTP library's: interim answers, such as "100 Continue", without an end.
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
        """The bytes that wait; none if there are none. The HTTP library sees of them what :meth:`give` gives."""
        held, self._held = self._held, b""
        return held

    def put_back(self, data: bytes) -> None:
        """The HTTP library is to read *data* next."""
        self._held = data


class UntilClosed(AsyncIterator[bytes]):
    """The data of an answer that ends with its connection.

    Args:
        tap: of the connection, of which the HTTP library has read the head.
        receive: gives the next bytes of the connection; none at its end.
        rest: what the HTTP library reads, of what is put back.
    """

    def __init__(self, tap: Tap, receive: Callable[[], Awaitable[bytes]], rest: AsyncIterator[bytes]) -> None:
        self._tap = tap
        self._receive = receive
        self._rest = rest

    async def __anext__(self) -> bytes:
        return self._tap.take() or await self._receive() or await self._rest.__anext__()


class Chunked(UntilClosed):
    """The data of an answer in chunks, all that has come at once; takes what :class:`UntilClosed` does."""

    _is_ours = True
    _fault: str | None = None
    _pending = b""
    """Less than a chunk's size, or than its line end."""
    _left = -1
    """How much is to come of the open chunk and the line end behind it; -1 for no open one."""

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
        """What of *data*, the next bytes of the connection, is in chunks, up to their end or a fault."""
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
            else:  # the last chunk; or an extension, blanks, nonsense
                self._is_ours = False
                self._tap.put_back(data[at:])
                break
        return found[0] if len(found) == 1 else b"".join(found)

    def _read(self, data: bytes, at: int, left: int, found: list[bytes]) -> int:
        """Take what is there of a chunk of which *left* bytes are to come, its line end among them; where it ends."""
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
    """The data of an answer whose head has been read, past the HTTP library where that can be; else *rest*."""
    if status not in (204, 304):
        if headers.get("transfer-encoding", "").strip().lower() == "chunked":
            return Chunked(tap, receive, rest)
        if "transfer-encoding" not in headers and "content-length" not in headers:
            return UntilClosed(tap, receive, rest)
    return rest
