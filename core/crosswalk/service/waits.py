"""How a call waits: with time limits, and until the caller ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

__all__ = ["RESEND_SECONDS", "Wait"]

RESEND_SECONDS: Final = 0.5
"""The number of seconds after sending a request over a kept connection in which the loss of that connection can still mean
that the server had closed it before. Later, the server may have worked on the request and charged for it, so the loss is
a failed attempt.
"""

T = TypeVar("T")


class Wait:
    """The waits of one call. One timer serves all of them: it is set again only when it rings.

    Attributes:
        is_cancelled: whether the caller has ended the call. Every further wait ends at once.
        is_late: whether the last wait was ended, by its time limit or the caller.
        lock: held while the call is read.
        now: the clock of the limits, in seconds.
        resent: the number of times that the request was sent once more, over another connection.
    """

    def __init__(self) -> None:
        self.resent = 0
        self.is_cancelled = self.is_late = False
        self.lock = asyncio.Lock()
        self.now: Callable[[], float] = time.monotonic  # until it begins
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._when: float | None = None
        self._task: asyncio.Task[Any] | None = None  # the task that waits now

    def begin(self) -> None:
        """Begin the call here."""
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time

    def is_here(self) -> bool:
        """Return whether the call began in this event loop."""
        return self._loop is asyncio.get_running_loop()

    async def within(self, when: float | None, work: Awaitable[T]) -> T:
        """Return the result of *work*. Raises, with :attr:`is_late` set, at the time *when* or if the caller ends it."""
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        self.is_late = False
        self._task, self._when = task, when
        timer = self._timer
        if when is not None and (timer is None or timer.when() > when):
            self._set(when)
        cancelling = task.cancelling()
        try:
            return await work
        except asyncio.CancelledError:
            if self.is_late and cancelling >= task.cancelling() - 1:
                raise TimeoutError from None  # it was not the task that was cancelled, but this wait
            raise
        finally:
            self._task = None
            if self.is_late:
                task.uncancel()

    async def pause(self, seconds: float) -> None:
        """Wait for this time, or until the caller ends it."""
        with suppress(TimeoutError):  # the caller ended it
            await self.within(None, asyncio.sleep(seconds))

    def cancel(self) -> None:
        """End the wait, and any that follows."""
        self.is_cancelled = True
        self._interrupt()

    def end(self) -> None:
        """End the call."""
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, when: float) -> None:
        assert self._loop is not None, "the call has begun"
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._task is not None and self._when is not None:
            if self._when > self.now():
                self._set(self._when)
            else:
                self._interrupt()

    def _interrupt(self) -> None:
        if self._task is not None and not self.is_late:
            self.is_late = True
            self._task.cancel()
