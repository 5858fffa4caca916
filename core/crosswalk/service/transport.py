"""Sends requests over kept connections: the interface that a service needs, and the parts that all transports share.

There are two, which behave the same. Most services have a :class:`~crosswalk.service.pools.LoopPool`, with Crosswalk's
own connections. A service with a custom HTTP client, options for one, or a proxy from its environment uses a
:class:`~crosswalk.service.client.ClientTransport`. Answers are decompressed within bounds, because a few bytes can expand
to gigabytes.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import attrs

from crosswalk.errors import CrosswalkError, StreamTooLargeError
from crosswalk.service.deadlines import Wait
from crosswalk.service.policy import Timeouts

if TYPE_CHECKING:
    import httpx2

__all__ = ["Answer", "Kept", "Transport", "body_of", "decoded"]

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
    def _make(self) -> C:
        """Make one, in any thread."""

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
                self._making = making = loop.run_in_executor(None, self._make)
                making.add_done_callback(self._made)
            # A caller that is cancelled does not cancel it for the others.
            await asyncio.shield(making)
            self._made(making)  # the callback of one that was done already has not run yet

    def _made(self, making: asyncio.Future[C]) -> None:
        self._making = None if self._making is making else self._making
        if not making.cancelled() and making.exception() is None and not self._is_closed:
            self._client, self._loop = making.result(), making.get_loop()

    async def aclose(self) -> None:
        """See :class:`Transport`. The connections of another event loop are gone with it."""
        self._is_closed = True
        client: Any = self._client
        self._client = None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


_FREE: Final = 32 * 2**20
"""The size up to which any ratio is allowed: a model that repeats itself compresses well."""
_RATIO: Final = 100
"""The highest ratio of an answer's size to its compressed size beyond that."""


def decoded(chunks: AsyncIterator[bytes], headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Return the decoded bytes of *chunks*, the body of an answer with *headers*. See :func:`body_of`."""
    if not _is_encoded(headers):
        return chunks
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks

    payload = {"content-encoding": headers["content-encoding"].lower().replace("x-gzip", "gzip")}
    return body_of(httpx2.Response(200, headers=payload, stream=Stream()))


def body_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the bytes of the body of *response*, as they arrive.

    While they are read:

    Raises:
        StreamTooLargeError: they are far more than the server has sent.
        httpx2.DecodingError: they do not match their encoding.
    """
    return _Bounded(response) if _is_encoded(response.headers) else response.aiter_bytes()


def _is_encoded(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "").strip().lower() not in ("", "identity")


class _Bounded(AsyncIterator[bytes]):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()  # each of a megabyte at most
        self._given = 0

    async def __anext__(self) -> bytes:
        piece = await self._pieces.__anext__()
        self._given += len(piece)
        if self._given > _FREE and self._given > self._response.num_bytes_downloaded * _RATIO:
            raise StreamTooLargeError(
                f"the answer unpacks to more than {_RATIO} times what was sent", limit=_RATIO
            )
        return piece
