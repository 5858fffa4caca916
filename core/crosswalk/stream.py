"""One stream of deltas for many consumers."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
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
# The reading side of a stream: for many consumers a task that asks for a delta whenever one is wanted, for one itself.


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
    """The source of the deltas. One read of a connection may bring many.

    If *deltas* has a method ``ready``, which gives the next delta that needs no waiting or ``None``, a consumer gets that
    delta at once.

    Attributes:
        state: whether it is active, or how it has ended.
        failure: what ended it, if it did not end by itself.
    """

    def __init__(self, deltas: AsyncIterator[ResponseDelta]) -> None:
        self.state = StreamState.ACTIVE
        self.failure: Exception | None = None
        self._deltas = deltas
        self._ready: Callable[[], ResponseDelta | None] = getattr(deltas, "ready", lambda: None)
        self._has_final = False

    def take_ready(self) -> ResponseDelta | None:
        """Return the next delta, if it is there already. A failure to make it ends the source."""
        if self.state is not StreamState.ACTIVE:
            return None
        try:
            delta = self._ready()
        except Exception as error:
            self._end(StreamState.ERROR, error)
            return None
        if delta is not None:
            self._note(delta)
        return delta

    def _note(self, delta: ResponseDelta) -> None:
        self._has_final = delta.finish_reason is not None and delta.choice == 0

    async def _close(self) -> None:
        """Close where the deltas come from. It is complete if nothing has ended it before."""
        close = getattr(self._deltas, "aclose", None)
        try:
            if close is not None:
                await close()
        except Exception as error:
            self._end(StreamState.ERROR, error)
        finally:
            self._end(StreamState.COMPLETE)

    def _end(self, state: StreamState, failure: Exception | None = None) -> None:
        if self.state is StreamState.ACTIVE:
            self.state, self.failure = state, failure

    def _end_by(self, failure: CrosswalkError) -> None:
        """End it for a consumer that wants no more: with *failure*, unless the final delta has been read."""
        if self._has_final:
            self._end(StreamState.COMPLETE)
        self._end(StreamState.CANCELLED, failure)


class SharedSource(Source):
    """A source for many consumers: deltas are read on demand into a buffer.

    It is read and closed in one separate task, from the first delta to the end: whatever it opens there and
    must close in the same task or context (a time limit, a trace span) works, and no consumer's
    cancellation reaches it. The task knows nothing of the consumers' stream, so that a stream which nobody
    holds any longer goes away, and tells it to :meth:`abandon` its work.

    Attributes:
        read: the deltas that were read.
    """

    def __init__(self, deltas: AsyncIterator[ResponseDelta]) -> None:
        super().__init__(deltas)
        self.read: list[ResponseDelta] = []
        self._wanted_count = 0
        self._is_reading = False  # its task may be cancelled: it has begun, and is not closing
        self._task: asyncio.Task[None] | None = None
        self._idle_future: asyncio.Future[None] | None = (
            None  # what the task waits for while no consumer wants a delta
        )
        self._waiting_futures: list[asyncio.Future[None]] = []  # what consumers wait for

    async def reach(self, position: int) -> bool:
        """Whether there is a delta at *position*, once that is known.

        Raises:
            Exception: what ended the source before it.
        """
        while position >= len(self.read):
            if self.failure is not None:
                self._wake()  # to close
                if self._task is not None and not self._task.done():
                    await asyncio.wait([self._task])  # it closes where the deltas come from
                raise self.failure
            if self.state is not StreamState.ACTIVE:
                return False
            task = self._task or self._start()
            if position >= self._wanted_count:
                self._wanted_count = position + 1
                self._wake()
            arrival = task.get_loop().create_future()
            self._waiting_futures.append(arrival)
            await arrival
        return True

    async def stop(self, failure: CrosswalkError) -> None:
        """Stop reading and close. Consumers get *failure*, unless the final delta has been read."""
        self._end_by(failure)
        task = self._task or self._start()
        if self._is_reading:
            self._is_reading = False
            task.cancel()
        await asyncio.wait([task])

    def abandon(self) -> None:
        """Stop reading, without waiting. Callable from any thread."""
        if self._task is not None and not self._task.done() and not self._task.get_loop().is_closed():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _note(self, delta: ResponseDelta) -> None:
        super()._note(delta)
        self.read.append(delta)
        if self._waiting_futures:
            self._tell()

    def _wake(self) -> None:
        """Wake the task, if it is idle."""
        if self._idle_future is not None and not self._idle_future.done():
            self._idle_future.set_result(None)

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
        try:
            await self._close()
        finally:
            self._tell()

    async def _read_on_demand(self) -> None:
        loop = asyncio.get_running_loop()
        read_next = self._deltas.__anext__
        while self.state is StreamState.ACTIVE:
            try:
                delta = await read_next()
            except StopAsyncIteration:
                return
            self._note(delta)
            await asyncio.sleep(0)  # the consumers' turn: most want the next one at once
            if self._wanted_count <= len(self.read) and self.state is StreamState.ACTIVE:
                self._idle_future = loop.create_future()
                await self._idle_future

    def _tell(self) -> None:
        """Wake every consumer that waits."""
        for arrival in self._waiting_futures:
            if not arrival.done():
                arrival.set_result(None)
        self._waiting_futures.clear()


class OwnSource(Source, AsyncIterator[ResponseDelta]):
    """A source for one consumer, which reads it in its own task: without a task, a queue or a wake-up for each delta.

    The consumer's cancellation reaches it, and ends it.
    """

    def __init__(self, deltas: AsyncIterator[ResponseDelta]) -> None:
        super().__init__(deltas)
        self._reader: asyncio.Task[None] | None = None  # the task that waits for a delta
        self._busy_future: asyncio.Future[None] | None = (
            None  # done once that delta has come, or it has been closed
        )
        self._cancel_count = 0  # of that task, before it waited
        self._is_stopped = False  # by another task than its reader
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __anext__(self) -> ResponseDelta:
        """Return the next delta.

        Raises:
            StopAsyncIteration: there are no more. Exception: what ended the source.
        """
        if self._busy_future is not None:
            await self._wait_for_others()
        if (ready_delta := self.take_ready()) is not None:
            return ready_delta
        cancellation: asyncio.CancelledError | None = None
        if self.state is StreamState.ACTIVE:
            task = self._reader = asyncio.current_task()
            assert task is not None, "coroutines run in tasks"
            self._cancel_count = task.cancelling()
            self._loop = loop = task.get_loop()
            busy = self._busy_future = loop.create_future()
            try:
                delta = await self._deltas.__anext__()
                self._note(delta)
                return delta
            except StopAsyncIteration:
                pass
            except asyncio.CancelledError as error:
                self._end(StreamState.CANCELLED, CrosswalkError("the stream was cancelled"))
                cancellation = error if task.cancelling() > self._is_stopped else None
            except Exception as error:
                self._end(StreamState.ERROR, error)
            finally:
                self._reader = self._busy_future = None
                busy.set_result(None)
                if self._is_stopped:
                    task.uncancel()
        await self._close()
        if cancellation is not None:
            raise cancellation
        if self.failure is not None:
            raise self.failure
        raise StopAsyncIteration

    async def stop(self, failure: CrosswalkError) -> None:
        """Stop reading and close. The consumer gets *failure*, unless the final delta has been read."""
        self._end_by(failure)
        reader = self._reader
        # A second cancellation would cut short what a source does to end after the first.
        if reader is not None and not self._is_stopped and reader.cancelling() == self._cancel_count:
            self._is_stopped = True
            reader.cancel()
        await self._wait_for_others()
        await self._close()

    def abandon(self) -> None:
        """Close, without waiting. Callable from any thread."""
        loop = self._loop
        if loop is not None and not self._is_closed and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: loop.create_task(self._close()))

    async def _wait_for_others(self) -> None:
        while self._busy_future is not None:
            await asyncio.wait([self._busy_future])

    async def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            busy = self._busy_future = asyncio.get_running_loop().create_future()
            try:
                await super()._close()
            finally:
                self._busy_future = None
                busy.set_result(None)


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
        replay: whether to store the deltas for further consumers. ``False`` allows only one, which reads in its own task.
    """

    def __init__(
        self,
        deltas: AsyncIterator[ResponseDelta],
        finish: Callable[[], ChatResponse],
        *,
        replay: bool = True,
    ) -> None:
        self._source = SharedSource(deltas) if replay else OwnSource(deltas)
        self._finish = finish
        self._is_taken = self._has_read_on = False  # without replay: by its consumer, and by response()
        self._consumers: weakref.WeakSet[_Consumer] = weakref.WeakSet()
        weakref.finalize(self, self._source.abandon).atexit = False

    @property
    def state(self) -> StreamState:
        """The state of the stream: open, or how it ended."""
        return self._source.state

    def __aiter__(self) -> AsyncIterator[ResponseDelta]:
        if isinstance(self._source, SharedSource):
            return _Consumer(self, self._source, 0)
        if self._is_taken:
            raise CrosswalkError("this stream was made with replay=False: it can be read once")
        self._is_taken = True
        return _OnlyConsumer(self, self._source)

    async def response(self) -> ChatResponse:
        """Return the complete response, after reading the rest of the stream.

        Raises:
            CrosswalkError: the error that ended the stream, if it failed or was cancelled.
        """
        if isinstance(self._source, SharedSource):
            async for _ in _Consumer(self, self._source, len(self._source.read)):
                pass
        else:
            async for _ in self._source:
                self._has_read_on = True
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

    def __init__(self, stream: StreamingChatResponse, source: SharedSource, position: int) -> None:
        self._stream = stream
        self._source = source
        self._position = position
        self._has_left = False
        stream._consumers.add(self)

    async def __anext__(self) -> ResponseDelta:
        source, position = self._source, self._position
        if position >= len(source.read):
            if self._has_left:
                self._return()
            if source.take_ready() is None:
                try:
                    is_there = await source.reach(position)
                except asyncio.CancelledError:
                    await self._leave()
                    raise
                if not is_there:
                    raise StopAsyncIteration
        self._position = position + 1
        return source.read[position]

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


class _OnlyConsumer(AsyncIterator[ResponseDelta]):
    """The reader of a stream without replay."""

    def __init__(self, stream: StreamingChatResponse, source: OwnSource) -> None:
        self._stream = stream  # it is closed when nobody holds it
        self._source = source

    def __anext__(self) -> Awaitable[ResponseDelta]:
        if self._stream._has_read_on:
            raise CrosswalkError("this stream was made with replay=False, and response() has read on")
        return self._source.__anext__()
