"""The reading side of a stream: one task that asks the source for a delta whenever a consumer wants one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from enum import StrEnum

from crosswalk.errors import CrosswalkError
from crosswalk.types.delta import ResponseDelta


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
