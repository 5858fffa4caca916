"""One asynchronous stream of deltas, many consumers."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable

from crosswalk.errors import CrosswalkError
from crosswalk.stream.source import Source, StreamState as StreamState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse


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
        location = position - source.read + len(source.buffer)
        if location < 0:
            raise CrosswalkError("this stream was made with replay=False, and response() has read on")
        delta = source.buffer[location]
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
