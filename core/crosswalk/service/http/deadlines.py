"""How a call waits: with time limits, until the caller ends it, and for one of a number of slots."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

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


class CallSlots:
    """Lets a number of calls run at once. Further calls wait.

    Args:
        number: the limit in each event loop.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def take(self, wait: Wait) -> None:
        """Wait for a free slot.

        Raises:
            TimeoutError: the call was cancelled.
        """
        await wait.within(None, self._here().acquire())

    def give_back(self) -> None:
        """Free the slot of a call that has ended."""
        self._here().release()

    def _here(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop not in self._of_loops:
            self._of_loops[loop] = asyncio.Semaphore(self._number)
        return self._of_loops[loop]


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
