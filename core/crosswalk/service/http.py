"""HTTP over kept connections: time limits of waits, the interface of a transport, and those over httpx2 and aiohttp."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache, partial
from io import BytesIO
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError, StreamTooLargeError
from crosswalk.plain_errors import interruption_of
from crosswalk.service.client_options import KEPT_SECONDS, made_client, proxy_for, refused, with_context
from crosswalk.service.endpoint import OpeningTimeout, StepTimeout, Timeouts

if TYPE_CHECKING:
    import ssl

    import aiohttp
    import httpcore2
    import httpx2
    import yarl


# ------------------------------------------------------------------------------- deadlines
# How a call waits: with time limits, until the caller ends it, and for one of a number of slots.


RESEND_SECONDS: Final = 0.5
"""The number of seconds after sending a request over a kept connection in which the loss of that connection can still mean
that the server had closed it before. Later, the server may have worked on the request and charged for it, so the loss is
a failed attempt. So it is at any time if nothing may be paid twice: see :attr:`CallWait.may_resend`.
"""

T = TypeVar("T")


class CallWait(ABC):
    """The waits of one call, in an event loop or in a thread.

    Attributes:
        is_cancelled: whether the caller has ended the call. Every further wait ends at once.
        is_late: whether the last wait was ended by its time limit, or in an event loop by the caller.
        is_new: whether the request has opened a connection.
        has_received: whether bytes have come since the request was written, or ``None`` if unknown: over HTTP/2, over
            aiohttp, and over a connection or a transport of the application's.
        now: the clock of the limits, in seconds.
        resent: the number of times that the request was sent once more, over another connection.
        may_resend: whether that is allowed.
    """

    is_cancelled = is_late = is_new = False
    has_received: bool | None = None
    now: Callable[[], float]
    resent = 0
    may_resend = True
    _deadline: float | None = None
    _later_deadline: float | None = None
    _step_error: type[StepTimeout] | None = None  # that of the step that bounds the present wait further

    @property
    def is_read_here(self) -> bool:
        """Whether who asks is called by what reads the call now."""
        return False

    @abstractmethod
    def begin(self) -> None:
        """Begin the call here."""

    @abstractmethod
    def end(self) -> None:
        """End the call."""

    def tear(self) -> None:
        """Note that a signal has interrupted the call, and may have damaged what it uses."""
        return

    @abstractmethod
    def is_here(self) -> bool:
        """Return whether the call began here."""

    @abstractmethod
    async def within(self, deadline: float | None, work: Awaitable[T]) -> T:
        """Return the result of *work*. Raises if it is late, at the time *deadline*, and if the caller ends it."""

    @abstractmethod
    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of *work*, which reads the call. Nothing else reads it meanwhile."""

    def begin_step(self, seconds: float | None, error_type: type[StepTimeout]) -> None:
        """Bound the present wait further until :meth:`end_step`, or else raise an error of this type."""
        end = None if seconds is None else self.now() + seconds
        if end is not None and (self._deadline is None or end < self._deadline):
            self._later_deadline, self._deadline, self._step_error = self._deadline, end, error_type

    def end_step(self) -> None:
        """Note that the step is over, if there is one."""
        if self._step_error is not None:
            self._deadline, self._step_error = self._later_deadline, None

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Wait for this time, or until the caller ends it."""

    @abstractmethod
    def nested(self, work: Awaitable[T]) -> Awaitable[T]:
        """Return *work* so that its asynchronous generators end with the one that awaits it."""

    @abstractmethod
    def cancel(self) -> None:
        """End the wait, and any that follows."""


class TimedWait(CallWait):
    """The waits of one call in an event loop. One timer serves all of them: it is set again only when it rings."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.now = time.monotonic  # until it begins
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None  # the task that waits now

    def begin(self) -> None:
        """Begin the call here."""
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time

    def is_here(self) -> bool:
        """Return whether the call began in this event loop."""
        return self._loop is asyncio.get_running_loop()

    async def within(self, deadline: float | None, work: Awaitable[T]) -> T:
        """Return the result of *work*. Raises, with :attr:`is_late` set, at the time *deadline* or if the caller ends it.

        Its first step is taken before a timer is set, because without a wait it needs none.
        """
        self.end_step()
        self._deadline, self.is_late = deadline, False
        steps = work.__await__()
        try:
            awaited = steps.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        self._task = task
        self._limit(0.0 if self.is_cancelled else self._deadline)  # that step may have ended the call
        cancel_requests = task.cancelling()
        try:
            return await _further(steps, awaited)
        except asyncio.CancelledError:
            if self.is_late and cancel_requests >= task.cancelling() - 1:
                # It was not the task that was cancelled, but this wait.
                raise (self._step_error or TimeoutError) from None
            raise
        finally:
            self._task = None
            if self.is_late:
                task.uncancel()

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """See :class:`CallWait`."""
        await self._lock.acquire()
        try:
            return await work()
        finally:
            self._lock.release()

    def begin_step(self, seconds: float | None, error_type: type[StepTimeout]) -> None:
        """See :class:`CallWait`."""
        super().begin_step(seconds, error_type)
        self._limit(self._deadline)

    async def pause(self, seconds: float) -> None:
        """Wait for this time, or until the caller ends it."""
        try:
            await self.within(None, asyncio.sleep(seconds))
        except TimeoutError:
            if not self.is_late:  # the caller did not end it
                raise

    def nested(self, work: Awaitable[T]) -> Awaitable[T]:
        """See :class:`Nested`."""
        return Nested(work)

    def cancel(self) -> None:
        """End the wait, and any that follows."""
        self.is_cancelled = True
        self._interrupt()

    def end(self) -> None:
        """End the call."""
        if self._timer is not None:
            self._timer.cancel()

    def _limit(self, deadline: float | None) -> None:
        """End the present wait at the time *deadline*."""
        self._deadline, timer = deadline, self._timer
        if deadline is not None and (timer is None or timer.when() > deadline):
            self._set(deadline)

    def _set(self, deadline: float) -> None:
        assert self._loop is not None, "the call has begun"
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._task is not None and self._deadline is not None:
            if self._deadline > self.now():
                self._set(self._deadline)
            else:
                self._interrupt()

    def _interrupt(self) -> None:
        if self._task is not None and not self.is_late:
            self.is_late = True
            self._task.cancel()


@coroutine
def _further(steps: Generator[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """Take the *steps* that follow the one that waits for *awaited*."""
    try:
        while True:
            try:
                value = yield awaited
            except BaseException as error:
                awaited = steps.throw(error)
            else:
                awaited = steps.send(value)
    except StopIteration as done:
        result: T = done.value
        return result


class CallSlots:
    """Lets a number of calls run at once. Further calls wait.

    Args:
        number: the limit in each event loop.
    """

    def __init__(self, number: int) -> None:
        self._slot_count = number
        self._semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )
        self._holders: WeakSet[CallWait] = WeakSet()

    async def take(self, wait: CallWait) -> None:
        """Wait for a free slot.

        Raises:
            TimeoutError: the call was cancelled.
        """
        await wait.within(None, self._here().acquire())
        self._holders.add(wait)

    def give_back(self, wait: CallWait) -> None:
        """Free the slot of a call that has ended, if it has one."""
        if wait in self._holders:
            self._holders.remove(wait)
            self._here().release()

    def _here(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop not in self._semaphores:
            self._semaphores[loop] = asyncio.Semaphore(self._slot_count)
        return self._semaphores[loop]


class Nested(Awaitable[T], Generic[T]):
    """Awaits *work* without registering its inner async generators with the event loop.

    At its end a loop closes all registered generators at once. An inner one, which the outer one is closing, would be closed
    twice, which Python reports as an error.
    """

    def __init__(self, work: Awaitable[T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._work.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            hooks = sys.get_asyncgen_hooks()
            sys.set_asyncgen_hooks(None, None)
            try:
                waited = steps.send(value) if error is None else steps.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                sys.set_asyncgen_hooks(*hooks)
            value = error = None
            try:
                value = yield waited
            except BaseException as raised:
                error = raised


# ------------------------------------------------------------------------------- transport
# Sends requests over kept connections: the interface that a service needs, and the parts that all transports share.
#
# There are two, which behave the same: :class:`~crosswalk.service.http.ClientTransport` over httpx2, and
# :class:`~crosswalk.service.http.AiohttpTransport`. Answers are decompressed within bounds, because a few
# bytes can expand to gigabytes.


C = TypeVar("C")


@attrs.frozen
class HTTPAnswer:
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
        wait: CallWait,
    ) -> HTTPAnswer:
        """Send a request, after :meth:`ready`. The bytes of the answer are still to be read.

        Raises:
            CrosswalkError: the transport was closed meanwhile.
            Exception: one of the HTTP library's, which :func:`crosswalk.service.endpoint.failure_of` explains.
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
        self._client_future: asyncio.Future[C] | None = None
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
            client_future = self._client_future
            if client_future is None or client_future.get_loop() is not loop:
                self._client_future = client_future = loop.run_in_executor(None, self._make, loop)
                client_future.add_done_callback(self._made)
            # A caller that is cancelled does not cancel it for the others.
            await asyncio.shield(client_future)
            self._made(client_future)  # the callback of one that was done already has not run yet

    def _made(self, client_future: asyncio.Future[C]) -> None:
        self._client_future = None if self._client_future is client_future else self._client_future
        if client_future.cancelled() or client_future.exception() is not None:
            return
        if self._is_closed:
            self._drop(client_future.result())
        else:
            self._client, self._loop = client_future.result(), client_future.get_loop()

    def _drop(self, client: C) -> None:
        """Give up *client*. Its connections, if any, are gone with their event loop."""

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

    Args:
        wait: the waits of the call.

    Attributes:
        was_kept: whether it was sent over a reused connection, and no head of an answer has arrived.
    """

    was_kept = False

    def __init__(self, wait: CallWait) -> None:
        self.wait = wait

    def begin(self) -> None:
        """The request is sent over a reused connection."""
        self.was_kept, self._at = True, time.monotonic()

    @property
    def may_repeat(self) -> bool:
        """Whether the loss of the connection can mean that the server had closed it before: see :data:`RESEND_SECONDS`."""
        is_allowed = self.was_kept and self.wait.may_resend
        return is_allowed and time.monotonic() - self._at <= RESEND_SECONDS


class TracedSending(Sending):
    """One sending that httpx2 traces. Some of its transports give no trace.

    Args:
        wait: the waits of the call.
        timeouts: its limits.
    """

    def __init__(self, wait: CallWait, timeouts: Timeouts) -> None:
        super().__init__(wait)
        self.timeouts = timeouts
        wait.is_new, wait.has_received = False, None

    @property
    def may_repeat(self) -> bool:
        """See :class:`Sending`. After any byte the server has begun."""
        return not self.wait.has_received and super().may_repeat

    @property
    def is_answered_early(self) -> bool:
        """Whether the head of the answer lay unread behind an earlier answer: it belongs to no request, or to that one."""
        return self.wait.has_received is False

    def note(self, event: str, facts: Mapping[str, Any]) -> None:
        """Take the next *event* of the trace."""
        protocol, step, phase = event.split(".")
        if phase == "started":
            if step.startswith("connect_"):
                self.wait.is_new = True
                self.wait.begin_step(self.timeouts.connect, OpeningTimeout)
            elif step == "send_request_headers" and facts["request"].method != b"CONNECT":
                self.wait.end_step()
                if protocol == "http11" and not self.wait.is_new:
                    self.begin()
        elif phase == "complete" and step == "receive_response_headers":
            self.wait.end_step()
            self.was_kept = False


EARLY_SECONDS: Final = 0.5
"""The number of seconds to look for the head of an answer, if the server has stopped reading the request."""
_FREE_BYTES: Final = 32 * 2**20
"""The size up to which any ratio is allowed: a model that repeats itself compresses well."""
_MAX_RATIO: Final = 100
"""The highest ratio of an answer's size to its compressed size beyond that."""
_PIECE_BYTES: Final = 2**20


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
        self._received_chunks = _Counted(chunks)
        is_gzip = encoding in ("gzip", "x-gzip")
        pieces = _unpacked(self._received_chunks) if is_gzip else _by_httpx2(self._received_chunks, encoding)
        self._decoded_chunks = _Counted(pieces)

    async def __anext__(self) -> bytes:
        piece = await self._decoded_chunks.__anext__()
        if (
            self._decoded_chunks.number > _FREE_BYTES
            and self._decoded_chunks.number > self._received_chunks.number * _MAX_RATIO
        ):
            raise StreamTooLargeError(
                f"the answer unpacks to more than {_MAX_RATIO} times what was sent", limit=_MAX_RATIO
            )
        return piece


class GzipReader:
    """Unpacks gzip data, which may have several members. HTTP clients read the first one alone.

    Attributes:
        is_whole: whether the data so far ends where a member ends, or is empty.
    """

    is_whole = True

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(31)

    def unpack(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the content of the next *chunk*, in pieces of bounded size.

        Raises:
            zlib.error: it is not gzip data.
        """
        while chunk:
            if self._decompressor.eof:
                if not chunk.startswith(b"\x1f"):
                    break  # padding behind the last member
                self._decompressor = zlib.decompressobj(31)
            piece = self._decompressor.decompress(chunk, _PIECE_BYTES)
            self.is_whole = self._decompressor.eof
            chunk = self._decompressor.unconsumed_tail or self._decompressor.unused_data
            yield piece

    def flush(self) -> bytes:
        """Return the rest of the content."""
        return self._decompressor.flush()


async def _unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the content of gzip data."""
    import httpx2

    reader = GzipReader()
    try:
        async for chunk in chunks:
            for piece in reader.unpack(chunk):
                yield piece
        yield reader.flush()
    except zlib.error as error:
        raise httpx2.DecodingError(str(error)) from error
    if not reader.is_whole:
        raise httpx2.ReadError("the compressed body is cut")


def _by_httpx2(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks

    return httpx2.Response(200, headers={"content-encoding": encoding}, stream=Stream()).aiter_bytes()


# ---------------------------------------------------------------------------------- client
# Sends requests through httpx2: the application's own client, or one with its options.


class ClientTransport(Kept["httpx2.AsyncClient"]):
    """A :class:`Transport` over an ``httpx2.AsyncClient``.

    Args:
        client: the application's own HTTP client, which the application closes, or ``None`` for one that is created when it
            is needed, and closed here.
        options: arguments for that one, as for ``httpx2.AsyncClient``: ``proxy``, ``verify``, ``cert``, ``http2``.
    """

    def __init__(self, client: httpx2.AsyncClient | None, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._given_client = client
        self._options = options

    async def ready(self) -> None:
        """See :class:`Transport`."""
        if self._given_client is None:
            await super().ready()
        elif self._is_forked():
            raise CrosswalkError(
                "client= belongs to the process from which this one was forked; make a service here"
            )
        elif self._given_client.is_closed:
            raise CrosswalkError("client= is closed; keep it open as long as the service")

    def _make(self, _: asyncio.AbstractEventLoop) -> httpx2.AsyncClient:
        import anyio
        import httpx2  # only when something is sent: it takes as long to load as all of Crosswalk

        anyio.run(anyio.sleep, 0)  # loads what the first request would load in the event loop
        return made_client(httpx2.AsyncClient, httpx2.AsyncHTTPTransport, self._options)

    async def _close(self, client: httpx2.AsyncClient) -> None:
        await client.aclose()

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: CallWait,
    ) -> HTTPAnswer:
        """See :class:`Transport`."""
        import httpx2

        client = self._given_client or self.client
        timeout = httpx2.Timeout(None, connect=timeouts.connect, write=timeouts.connect, pool=timeouts.total)
        while True:
            trace = _Trace(wait, timeouts)
            request = client.build_request(
                method, url, headers=headers, content=content, timeout=timeout, extensions={"trace": trace}
            )
            outer_wait = _sending_wait.set(wait)
            try:
                # A redirect would carry the key to an unknown address.
                response = await client.send(request, stream=True, follow_redirects=False)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
                if not trace.may_repeat or interruption_of(error) is not None:
                    raise
                wait.resent += 1
            else:
                body = _Body(response)
                if trace.is_answered_early:
                    await body.aclose()
                    raise httpx2.RemoteProtocolError(EARLY_ANSWER)
                return HTTPAnswer(response.status_code, response.headers, body, body.aclose)
            finally:
                _sending_wait.reset(outer_wait)


_open: set[_Body] = set()
"""The answers that are being read.

httpx2 reads through generators that wait while they are closed. If nobody held them, the garbage collector would end them
before the stream that was forgotten can close its answer.
"""


class _Body(AsyncIterator[bytes]):
    """The bytes of an answer as they arrive."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        is_read = response.is_stream_consumed  # by a hook or a transport of the application
        self._steps = response.aiter_bytes() if is_read else response.aiter_raw()
        self._chunks = self._steps if is_read else decoded(self._steps, response.headers)
        _open.add(self)

    async def __anext__(self) -> bytes:
        return await self._chunks.__anext__()

    async def aclose(self) -> None:
        _open.discard(self)
        await self._response.aclose()
        await self._steps.aclose()  # or they would end outside the event loop, which they cannot


EARLY_ANSWER: Final = "the answer came before the request"
_sending_wait: Final[ContextVar[CallWait | None]] = ContextVar("crosswalk_sending_wait", default=None)
"""The waits of the call that sends a request now."""


class _Trace(TracedSending):
    def __init__(self, wait: CallWait, timeouts: Timeouts) -> None:
        super().__init__(wait, timeouts)
        self._opened: list[httpcore2.AsyncNetworkStream] = []

    async def __call__(self, event: str, facts: Mapping[str, Any]) -> None:
        self.note(event, facts)
        if event.endswith((".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")):
            self._opened.append(facts["return_value"])
            _note_bytes(facts["return_value"])
        elif event.endswith(".start_tls.failed"):  # httpcore2 forgets it if it was cancelled
            for stream in self._opened:
                await stream.aclose()
        if event == "http11.send_request_body.failed":
            import httpcore2

            if isinstance(facts["exception"], httpcore2.WriteTimeout):
                self.wait.begin_step(EARLY_SECONDS, StepTimeout)
                raise httpcore2.WriteError("too late")  # then httpcore2 reads the answer


def _note_bytes(stream: Any) -> None:
    """Let the waits of each call that uses *stream* know whether bytes have come since its request."""
    read, write = stream.read, stream.write
    is_shared = False

    async def first_read(wait: CallWait, max_bytes: int, timeout: float | None = None) -> bytes:
        received: bytes = await read(max_bytes, timeout)
        if received:
            wait.has_received, stream.read = True, read
        return received

    async def noted_write(buffer: bytes, timeout: float | None = None) -> None:
        nonlocal is_shared
        is_shared = is_shared or buffer.startswith(b"PRI * HTTP/2")  # as in HTTP/2
        wait = _sending_wait.get()
        if buffer and wait is not None and not is_shared:  # not a request of the application's own
            wait.has_received, stream.read = False, partial(first_read, wait)
        await write(buffer, timeout)

    stream.write = noted_write


# ------------------------------------------------------------------------------ aiohttp
# Sends requests through aiohttp, which costs programs with many concurrent calls less than httpx2. Failures are raised as
# errors of httpx2. Needs ``crosswalk-llm[aiohttp]``.


_HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
_MAX_LINE_BYTES = 100 * 1024
_MAX_HEADERS = 1000
_CAN_POLL: Final = hasattr(select, "poll")  # Windows cannot


class AiohttpTransport(Kept["aiohttp.ClientSession"]):
    """A :class:`Transport` over an ``aiohttp.ClientSession``. Writing a request has no separate limit.

    Args:
        options: ``proxy``, ``verify``, ``cert`` and ``trust_env``, as for ``httpx2.AsyncClient``.

    Raises:
        ConfigurationError: there is another option, or aiohttp is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__()
        unknown_options = sorted(set(options) - {"proxy", "verify", "cert", "trust_env"})
        if unknown_options:
            raise ConfigurationError(
                f"client_options: aiohttp has no option {unknown_options[0]!r:.60}", key="client_options"
            )
        try:
            import aiohttp  # noqa: F401
        except ImportError:
            raise ConfigurationError(
                "this needs the package aiohttp: pip install 'crosswalk-llm[aiohttp]'", key="transport"
            ) from None
        self._options = options
        self._cached_target = lru_cache(maxsize=64)(self._target)

    def _make(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        import aiohttp
        import httpx2

        with refused():
            options = with_context(self._options)
            names = ("verify", "cert", "trust_env")
            context = httpx2.create_ssl_context(**{name: options[name] for name in names if name in options})
        return aiohttp.ClientSession(
            connector=_connector(context, loop),
            cookie_jar=aiohttp.DummyCookieJar(loop=loop),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_LINE_BYTES,
            max_headers=_MAX_HEADERS,
        )

    async def _close(self, client: aiohttp.ClientSession) -> None:
        await client.close()

    def _drop(self, client: aiohttp.ClientSession) -> None:
        client.detach()  # or it would complain that nobody has closed it

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: CallWait,
    ) -> HTTPAnswer:
        """See :class:`Transport`."""
        import aiohttp
        import httpx2

        client = self.client
        target, proxy = self._cached_target(url)
        timeout = aiohttp.ClientTimeout(total=None, connect=timeouts.connect)
        # It would send what may be sent twice once more by itself, such as a GET.
        middlewares = () if method == "POST" else (_once,)
        while True:
            sending = Sending(wait)
            sending.begin()
            wait.is_new = True  # until a known connection is found
            outer_wait = _sending_wait.set(wait)
            try:
                response = await client.request(
                    method,
                    target,
                    headers={**_HEADERS, **headers},
                    # It warns of longer bytes, which it would write without a pause.
                    data=content if len(content) <= 2**20 else BytesIO(content),
                    allow_redirects=False,  # a redirect would carry the key to an unknown address
                    proxy=proxy,
                    timeout=timeout,
                    middlewares=middlewares,
                )
            except (aiohttp.ClientError, OSError, ValueError, httpx2.NetworkError) as error:
                failure = _as_httpx2(error)
                # With a part of an answer it has that as its message. After a reset nobody knows.
                is_unanswered = isinstance(failure, httpx2.NetworkError) and isinstance(
                    getattr(failure.__cause__, "message", ""), str
                )
                may_repeat = is_unanswered and not wait.is_new and sending.may_repeat
                if not may_repeat or interruption_of(error) is not None:
                    raise failure  # noqa: B904  # it has its cause
                wait.resent += 1
            else:
                break
            finally:
                _sending_wait.reset(outer_wait)
        answer = _answer(response)
        # aiohttp reads these, and leaves it to the application to decode them.
        if response.status < 200 or answer.headers.get("transfer-encoding", "chunked").lower() != "chunked":
            await answer.aclose()
            raise httpx2.RemoteProtocolError("the answer is in another protocol or encoding")
        return answer

    def _target(self, address: str) -> tuple[yarl.URL, str | None]:
        """Return the URL of *address* and the address of its proxy: that of the options, or of the environment.

        Raises:
            ConfigurationError: aiohttp cannot speak to the proxy.
        """
        import yarl

        url = yarl.URL(address, encoded=True)
        proxy = proxy_for(url.scheme, url.host or "", url.port, self._options)
        if proxy is not None and not proxy.startswith(("http://", "https://")):
            scheme = proxy.partition(":")[0]
            raise ConfigurationError(f"aiohttp cannot use a proxy of the kind {scheme!r:.40}", key="proxy")
        return url, proxy


def _answer(response: aiohttp.ClientResponse) -> HTTPAnswer:
    headers: dict[str, str] = {}
    for name, value in response.raw_headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    async def aclose() -> None:
        if response.connection is not None:  # it was not read to its end
            response.close()
            await asyncio.sleep(0)  # it is closed behind this

    return HTTPAnswer(response.status, headers, decoded(_Chunks(response.content), headers), aclose)


class _Chunks(AsyncIterator[bytes]):
    """The bytes of a body as they arrive."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def __anext__(self) -> bytes:
        import aiohttp

        try:
            piece = await self._content.readany()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _as_httpx2(error)  # noqa: B904  # it has its cause
        if not piece:
            raise StopAsyncIteration
        return piece


def _connector(context: ssl.SSLContext, loop: asyncio.AbstractEventLoop) -> aiohttp.TCPConnector:
    """Return connections that let the waits of a call know whether its request has opened one. None has ended before."""
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._known: WeakSet[Any] = WeakSet()

        async def connect(self, *request: Any, **limits: Any) -> aiohttp.connector.Connection:
            wait = _sending_wait.get()
            assert wait is not None, "a call sends"
            while True:
                connection = await super().connect(*request, **limits)
                wait.is_new = connection.protocol not in self._known
                if wait.is_new or not _CAN_POLL or not _is_readable(connection):
                    break
                connection.close()  # its server has ended it, which the event loop has not seen yet
            if wait.is_new:
                self._known.add(connection.protocol)
            return connection

    return Connector(
        ssl=context,
        limit=0,
        keepalive_timeout=KEPT_SECONDS,
        resolver=aiohttp.ThreadedResolver(loop=loop),  # the system's, even if aiodns is installed
        loop=loop,
    )


def _is_readable(connection: aiohttp.connector.Connection) -> bool:
    """Return whether *connection*, over which nothing is due, holds bytes or its end."""
    assert connection.transport is not None, "it is connected"
    poll = select.poll()
    poll.register(connection.transport.get_extra_info("socket"), select.POLLIN)
    return bool(poll.poll(0))


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send *request*. Raises the loss of its connection as an error that aiohttp does not know."""
    import aiohttp

    try:
        return await send(request)
    except aiohttp.ClientConnectionError as error:
        raise _as_httpx2(error)  # noqa: B904  # it has its cause


def _as_httpx2(error: Exception) -> Exception:
    """Return the error of httpx2 for *error*, with its cause."""
    import aiohttp
    import httpx2

    if isinstance(error, httpx2.HTTPError):
        return error
    httpx2_error: Exception
    match error:
        case aiohttp.ConnectionTimeoutError():
            httpx2_error = httpx2.ConnectTimeout("too late")
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            httpx2_error = httpx2.ProxyError("the proxy failed")
        case aiohttp.ClientConnectorError():
            httpx2_error = httpx2.ConnectError("no connection")
        case aiohttp.ClientConnectionError() | OSError():
            httpx2_error = httpx2.ReadError("the connection broke")
        case aiohttp.InvalidURL() | ValueError():
            httpx2_error = httpx2.LocalProtocolError("the request is not HTTP")
        case _:
            httpx2_error = httpx2.RemoteProtocolError("the answer is not HTTP")
    httpx2_error.__cause__ = getattr(error, "certificate_error", error)
    return httpx2_error
