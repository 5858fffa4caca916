"""Sends requests over kept connections: the interface that a service needs, and the parts that all transports share.

There are two, which behave the same: :class:`~crosswalk.service.http.client.ClientTransport` over httpx2, and
:class:`~crosswalk.service.http.aiohttp_transport.AiohttpTransport`. Answers are decompressed within bounds, because a few
bytes can expand to gigabytes.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

import attrs

from crosswalk.errors import CrosswalkError, StreamTooLargeError
from crosswalk.service.http.deadlines import RESEND_SECONDS, Wait
from crosswalk.service.policy import Timeouts

C = TypeVar("C")


@attrs.frozen
class Answer:
    """An answer that has begun.

    Attributes:
        status: the HTTP status.
        headers: its headers, by their names in lower case.
        chunks: the bytes of its body, decoded, as they arrive.
        aclose: releases the connection: back to the pool if the answer was read to its end, else closed.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    aclose: Callable[[], Awaitable[None]]


class Transport(Protocol):
    """Sends requests over connections that it keeps."""

    async def ready(self) -> None:
        """Prepare for sending, when it is first needed: this reads certificates, which takes some time.

        Raises:
            CrosswalkError: the transport is closed.
            ConfigurationError: its options are wrong.
        """

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: Wait,
    ) -> Answer:
        """Send a request, after :meth:`ready`. The bytes of the answer are still to be read.

        Raises:
            CrosswalkError: the transport was closed meanwhile.
            Exception: one of the HTTP library's, which :func:`crosswalk.service.failures.failure_of` explains.
        """

    async def aclose(self) -> None:
        """Close the connections. Nothing can be sent afterwards."""


class Kept(ABC, Generic[C]):
    """The client of a transport: made when first needed, and again in a forked process and in another event loop.

    It is made in a thread, so that it does not block the loop.
    """

    def __init__(self) -> None:
        self._client: C | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process: int | None = None
        self._is_closed = False
        self._making: asyncio.Future[C] | None = None
        self._left: list[C] = []  # of the process from which this one was forked

    @property
    def client(self) -> C:
        """The client.

        Raises:
            CrosswalkError: it is closed.
        """
        if self._client is None:
            raise CrosswalkError("the service is closed")
        return self._client

    @abstractmethod
    def _make(self, loop: asyncio.AbstractEventLoop) -> C:
        """Make one for *loop*, in any thread."""

    @abstractmethod
    async def _close(self, client: C) -> None:
        """Close *client* and its connections."""

    def _is_forked(self) -> bool:
        """Whether this process was forked from the one that used it first.

        Raises:
            CrosswalkError: it is closed.
        """
        if self._is_closed:
            raise CrosswalkError("the service is closed")
        process = os.getpid()
        if self._process is None:
            self._process = process
        return self._process != process

    def _is_wanted(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether one has to be made, for *loop*. Connections belong to the loop in which they were made.

        Raises:
            CrosswalkError: it is closed.
        """
        if self._is_forked():
            self._process = os.getpid()
            if self._client is not None:
                self._left.append(self._client)  # closing it would end requests of that process
                self._client = None
        return self._client is None or self._loop is not loop

    async def ready(self) -> None:
        """See :class:`Transport`. Callers that come at the same time share one future."""
        loop = asyncio.get_running_loop()
        while self._is_wanted(loop):
            making = self._making
            if making is None or making.get_loop() is not loop:
                self._making = making = loop.run_in_executor(None, self._make, loop)
                making.add_done_callback(self._made)
            # A caller that is cancelled does not cancel it for the others.
            await asyncio.shield(making)
            self._made(making)  # the callback of one that was done already has not run yet

    def _made(self, making: asyncio.Future[C]) -> None:
        self._making = None if self._making is making else self._making
        if making.cancelled() or making.exception() is not None:
            return
        if self._is_closed:
            self._drop(making.result())
        else:
            self._client, self._loop = making.result(), making.get_loop()

    def _drop(self, client: C) -> None:
        """Give up *client*, whose connections, if any, are gone with their event loop."""

    async def aclose(self) -> None:
        """See :class:`Transport`. The connections of another event loop are gone with it."""
        self._is_closed = True
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await self._close(client)
        elif client is not None:
            self._drop(client)


class Sending:
    """One sending of a request, which the HTTP library reports on.

    Attributes:
        was_kept: whether it was sent over a reused connection, and no head of an answer has arrived.
    """

    was_kept = False

    def begin(self) -> None:
        """The request is sent over a reused connection."""
        self.was_kept, self._at = True, time.monotonic()

    @property
    def may_repeat(self) -> bool:
        """Whether the loss of the connection can mean that the server had closed it before: see :data:`RESEND_SECONDS`."""
        return self.was_kept and time.monotonic() - self._at <= RESEND_SECONDS


_FREE: Final = 32 * 2**20
"""The size up to which any ratio is allowed: a model that repeats itself compresses well."""
_RATIO: Final = 100
"""The highest ratio of an answer's size to its compressed size beyond that."""
_PIECE: Final = 2**20


def decoded(chunks: AsyncIterator[bytes], headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Return the decoded bytes of *chunks*, the body of an answer with *headers*, as they arrive.

    While they are read:

    Raises:
        StreamTooLargeError: they are far more than the server has sent.
        httpx2.DecodingError: they do not match their encoding.
    """
    encoding = headers.get("content-encoding", "").strip().lower()
    return chunks if encoding in ("", "identity") else _Bounded(chunks, encoding)


class _Counted(AsyncIterator[bytes]):
    """Bytes, and their number so far."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self.number = 0

    async def __anext__(self) -> bytes:
        chunk = await self._chunks.__anext__()
        self.number += len(chunk)
        return chunk


class _Bounded(AsyncIterator[bytes]):
    def __init__(self, chunks: AsyncIterator[bytes], encoding: str) -> None:
        self._received = _Counted(chunks)
        is_gzip = encoding in ("gzip", "x-gzip")
        pieces = _unpacked(self._received) if is_gzip else _by_httpx2(self._received, encoding)
        self._decoded = _Counted(pieces)

    async def __anext__(self) -> bytes:
        piece = await self._decoded.__anext__()
        if self._decoded.number > _FREE and self._decoded.number > self._received.number * _RATIO:
            raise StreamTooLargeError(
                f"the answer unpacks to more than {_RATIO} times what was sent", limit=_RATIO
            )
        return piece


async def _unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the content of gzip data, which may have several members. HTTP clients read the first one alone."""
    import httpx2

    unpack = zlib.decompressobj(31)
    try:
        async for chunk in chunks:
            unread = chunk
            while unread:
                if unpack.eof:
                    if not unread.startswith(b"\x1f"):
                        break  # padding behind the last member
                    unpack = zlib.decompressobj(31)
                yield unpack.decompress(unread, _PIECE)
                unread = unpack.unconsumed_tail or unpack.unused_data
        yield unpack.flush()
    except zlib.error as error:
        raise httpx2.DecodingError(str(error)) from error


def _by_httpx2(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks

    return httpx2.Response(200, headers={"content-encoding": encoding}, stream=Stream()).aiter_bytes()
