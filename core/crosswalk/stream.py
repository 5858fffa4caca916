"""One stream of deltas for many consumers."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from enum import StrEnum

from crosswalk.errors import CrosswalkError
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import (
    DeltaAccumulator as DeltaAccumulator,
    PartialResponse as PartialResponse,
)

__all__ = ["DeltaAccumulator", "PartialResponse", "StreamState", "StreamingChatResponse"]

# ---------------------------------------------------------------------------------- source
# The reading side of a stream: one task that asks the source for a delta whenever a consumer wants one.


class StreamState(StrEnum):
    """The state of a stream."""

    ACTIVE = "active"
    """More may come."""
    COMPLETE = "complete"
    """It has been read to its end."""
    ERROR = "error"
    """Its source failed."""
    CANCELLED = "cancelled"
    """It was closed, or its last consumer cancelled, before its end."""


class Source:
    """Reads deltas on demand into a buffer, and closes where they come from.

    It is read and closed in one task of its own, from the first delta to the end: whatever it opens there and
    must close in the same task or context (a time limit, a trace span) works, and no consumer's
    cancellation reaches it. The task knows nothing of the consumers' stream, so that a stream which nobody
    holds any longer goes away, and tells it to :meth:`abandon` its work.

    One read of a connection may bring many deltas. If *deltas* has a method ``ready``, which gives the next delta that
    needs no waiting or ``None``, a consumer gets that delta at once, and the task is left alone.

    Attributes:
        state: where it stands.
        failure: what ended it, if it did not end by itself.
        buffer: deltas that were read, without those that were dropped.
        read: how many were read, those dropped included.
    """

    def __init__(self, deltas: AsyncIterator[ResponseDelta]) -> None:
        self.state = StreamState.ACTIVE
        self.failure: Exception | None = None
        self.buffer: list[ResponseDelta] = []
        self.read = 0
        self._deltas = deltas
        self._ready: Callable[[], ResponseDelta | None] | None = getattr(deltas, "ready", None)
        self._wanted = 0
        self._has_final = False
        self._is_reading = False  # its task may be cancelled: it has begun, and is not closing
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.Future[None] | None = (
            None  # what the task waits for while no consumer wants a delta
        )
        self._waiting: list[asyncio.Future[None]] = []  # what consumers wait for

    def drop(self) -> None:
        """Drop the deltas that were read."""
        self.buffer.clear()

    def take_ready(self) -> bool:
        """Whether the next delta was there already; where it cannot be made, the task closes, and then tells why."""
        if self._ready is None or self.state is not StreamState.ACTIVE:
            return False
        try:
            delta = self._ready()
        except Exception as error:
            self._end(StreamState.ERROR, error)
            self._wake()  # to close
            return False
        if delta is None:
            return False
        self._add(delta)
        return True

    async def reach(self, position: int) -> bool:
        """Whether there is a delta at *position*, once that is known.

        Raises:
            Exception: what ended the source before it.
        """
        while position >= self.read:
            if self.failure is not None:
                if self._task is not None and not self._task.done():
                    await asyncio.wait([self._task])  # it closes where the deltas come from
                raise self.failure
            if self.state is not StreamState.ACTIVE:
                return False
            task = self._task or self._start()
            if position >= self._wanted:
                self._wanted = position + 1
                self._wake()
            news = task.get_loop().create_future()
            self._waiting.append(news)
            await news
        return True

    async def stop(self, failure: CrosswalkError) -> None:
        """Stop reading and close. Consumers get *failure*, unless the final delta has been read."""
        if self._has_final:
            self._end(StreamState.COMPLETE)
        self._end(StreamState.CANCELLED, failure)
        task = self._task or self._start()
        if self._is_reading:
            self._is_reading = False
            task.cancel()
        await asyncio.wait([task])

    def abandon(self) -> None:
        """Stop reading, without waiting. Callable from any thread."""
        if self._task is not None and not self._task.done() and not self._task.get_loop().is_closed():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _add(self, delta: ResponseDelta) -> None:
        self.buffer.append(delta)
        self.read += 1
        self._has_final = delta.finish_reason is not None and delta.choice == 0
        if self._waiting:
            self._tell()

    def _wake(self) -> None:
        """Wake the task, if it is idle."""
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _start(self) -> asyncio.Task[None]:
        self._task = asyncio.create_task(self._run(), name="crosswalk stream")
        return self._task

    async def _run(self) -> None:
        self._is_reading = True
        try:
            await self._read_on_demand()
        except asyncio.CancelledError:
            self._end(StreamState.CANCELLED, CrosswalkError("the stream was cancelled"))
        except Exception as error:
            self._end(StreamState.ERROR, error)
        self._is_reading = False
        close = getattr(self._deltas, "aclose", None)
        try:
            if close is not None:
                await close()
        except Exception as error:
            self._end(StreamState.ERROR, error)
        finally:
            self._end(StreamState.COMPLETE)
            self._tell()

    async def _read_on_demand(self) -> None:
        loop = asyncio.get_running_loop()
        read_next = self._deltas.__anext__
        while self.state is StreamState.ACTIVE:
            try:
                delta = await read_next()
            except StopAsyncIteration:
                return
            self._add(delta)
            await asyncio.sleep(0)  # the consumers' turn: most want the next one at once
            if self._wanted <= self.read and self.state is StreamState.ACTIVE:
                self._idle = loop.create_future()
                await self._idle

    def _tell(self) -> None:
        """Wake every consumer that waits."""
        for news in self._waiting:
            if not news.done():
                news.set_result(None)
        self._waiting.clear()

    def _end(self, state: StreamState, failure: Exception | None = None) -> None:
        if self.state is StreamState.ACTIVE:
            self.state, self.failure = state, failure


# ---------------------------------------------------------------------------------- replay
# One asynchronous stream of deltas, many consumers.


class StreamingChatResponse:
    """The deltas of an answer as they arrive, for one consumer or several.

    Each consumer reads from the start. The next delta is requested from the source only when a consumer wants
    one, and reaches it before the one after is requested. A slow, failing or cancelled consumer does not
    affect another. When the last one is cancelled while it waits for a delta, the source is closed. A consumer
    that stops reading closes nothing, because the stream may be read on: use ``async with`` to be sure. Belongs
    to one event loop.

    Args:
        deltas: the source of the deltas. It is read and closed in a separate task.
        finish: returns the complete response once the deltas are exhausted.
        replay: whether to store the deltas for further consumers. ``False`` allows only one.
    """

    def __init__(
        self,
        deltas: AsyncIterator[ResponseDelta],
        finish: Callable[[], ChatResponse],
        *,
        replay: bool = True,
    ) -> None:
        self._source = Source(deltas)
        self._finish = finish
        self._replay = replay
        self._is_taken = False
        self._consumers: weakref.WeakSet[_Consumer] = weakref.WeakSet()
        weakref.finalize(self, self._source.abandon).atexit = False

    @property
    def state(self) -> StreamState:
        """The state of the stream: open, or how it ended."""
        return self._source.state

    def __aiter__(self) -> AsyncIterator[ResponseDelta]:
        if not self._replay and self._is_taken:
            raise CrosswalkError("this stream was made with replay=False: it can be read once")
        self._is_taken = True
        return _Consumer(self, 0)

    async def response(self) -> ChatResponse:
        """Return the complete response, after reading the rest of the stream.

        Raises:
            CrosswalkError: the error that ended the stream, if it failed or was cancelled.
        """
        async for _ in _Consumer(self, self._source.read):
            pass
        return self._finish()

    async def aclose(self) -> None:
        """Stop reading and close the source. Deltas that have arrived can still be read.

        If the stream is closed before its final delta, it is ``cancelled``: consumers and :meth:`response` get an
        error.
        """
        await self._source.stop(CrosswalkError("the stream was closed"))

    async def __aenter__(self) -> StreamingChatResponse:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Consumer(AsyncIterator[ResponseDelta]):
    """One reader of the stream, at its own position."""

    def __init__(self, stream: StreamingChatResponse, position: int) -> None:
        self._stream = stream
        self._source = stream._source
        self._position = position
        self._has_left = False
        stream._consumers.add(self)

    async def __anext__(self) -> ResponseDelta:
        source, position = self._source, self._position
        if position >= source.read:
            if self._has_left:
                self._return()
            if not source.take_ready():
                try:
                    is_there = await source.reach(position)
                except asyncio.CancelledError:
                    await self._leave()
                    raise
                if not is_there:
                    raise StopAsyncIteration
        index = position - source.read + len(source.buffer)
        if index < 0:
            raise CrosswalkError("this stream was made with replay=False, and response() has read on")
        delta = source.buffer[index]
        self._position = position + 1
        if not self._stream._replay:
            source.drop()
        return delta

    async def _leave(self) -> None:
        """Handle a cancellation, which may be final: without other readers, the source is not needed."""
        self._has_left = True
        self._stream._consumers.discard(self)
        if not self._stream._consumers:
            await self._source.stop(CrosswalkError("the stream was cancelled"))

    def _return(self) -> None:
        """Resume reading: the cancellation was only a time limit."""
        self._has_left = False
        self._stream._consumers.add(self)
