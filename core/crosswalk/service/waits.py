"""How a call waits: in an event loop or in the calling thread, with time limits, and until the caller ends it.

A call is written once, with ``await``. In an event loop its waits are the loop's. Without one, none of its awaits ever
suspends, because its sockets block. :func:`run` then runs it to its end as a plain function, in the calling thread.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, Protocol, TypeVar

__all__ = ["RESEND_SECONDS", "LoopWait", "ThreadWait", "Wait", "run"]

RESEND_SECONDS: Final = 0.5
"""The number of seconds after sending a request over a kept connection in which the loss of that connection can still mean
that the server had closed it before. Later, the server may have worked on the request and charged for it, so the loss is
a failed attempt.
"""

T = TypeVar("T")


class Wait(Protocol):
    """The waits of one call.

    Attributes:
        is_cancelled: whether the caller has ended it. Every further wait ends at once.
        is_late: whether the last wait was ended, by its time limit or the caller.
        lock: held while the call is read.
        now: the clock of the limits, in seconds.
        resent: the number of times that the request was sent once more, over another connection.
    """

    resent: int
    is_cancelled: bool
    is_late: bool
    lock: AbstractAsyncContextManager[Any]
    now: Callable[[], float]

    def begin(self) -> None:
        """Begin the call here."""

    def is_here(self) -> bool:
        """Whether the call began here: in this event loop, or in this process."""

    def holds(self) -> bool:
        """Whether the caller is already reading, further up the stack: a signal's handler, in the middle of a wait."""

    def within(self, when: float | None, work: Awaitable[T]) -> Awaitable[T]:
        """Return the result of *work*. Raises, with :attr:`is_late` set, at the time *when* or if the caller ends it."""

    async def pause(self, seconds: float) -> None:
        """Wait for this time, or until the caller ends it."""

    def cancel(self) -> None:
        """End the wait, and any that follows."""

    def end(self) -> None:
        """End the call."""


class LoopWait:
    """A :class:`Wait` in an event loop. One timer serves all waits of a call: it is set again only when it rings."""

    def __init__(self) -> None:
        self.resent = 0
        self.is_cancelled = self.is_late = False
        self.lock: AbstractAsyncContextManager[Any] = asyncio.Lock()
        self.now: Callable[[], float] = time.monotonic  # until it begins
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._when: float | None = None
        self._task: asyncio.Task[Any] | None = None  # the task that waits now

    def begin(self) -> None:
        """See :class:`Wait`."""
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time

    def is_here(self) -> bool:
        """See :class:`Wait`."""
        return self._loop is asyncio.get_running_loop()

    def holds(self) -> bool:
        """See :class:`Wait`."""
        return False

    async def within(self, when: float | None, work: Awaitable[T]) -> T:
        """See :class:`Wait`."""
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
        """See :class:`Wait`."""
        with suppress(TimeoutError):  # the caller ended it
            await self.within(None, asyncio.sleep(seconds))

    def cancel(self) -> None:
        """See :class:`Wait`."""
        self.is_cancelled = True
        self._interrupt()

    def end(self) -> None:
        """See :class:`Wait`."""
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


class ThreadWait:
    """A :class:`Wait` that blocks the thread. Sockets ask it for their limits, and are shut when another thread cancels."""

    def __init__(self) -> None:
        self.resent = 0
        self.is_cancelled = self.is_late = False
        self._turns = _Turns()
        self.lock: AbstractAsyncContextManager[Any] = self._turns
        self.now: Callable[[], float] = time.monotonic
        self._guard = threading.RLock()  # a signal's handler may cancel the wait of its own thread
        self._cancelled = threading.Event()
        self._when: float | None = None
        self._socket: socket.socket | None = None  # the connection that serves it
        self._process: int | None = None

    def begin(self) -> None:
        """See :class:`Wait`."""
        self._process = os.getpid()

    def is_here(self) -> bool:
        """See :class:`Wait`."""
        return self._process == os.getpid()

    def holds(self) -> bool:
        """See :class:`Wait`."""
        return self._turns.owner == threading.get_ident()

    def within(self, when: float | None, work: Awaitable[T]) -> Awaitable[T]:
        """See :class:`Wait`. *work* itself asks for its limit."""
        self._when, self.is_late = when, False
        return work

    async def pause(self, seconds: float) -> None:
        """See :class:`Wait`."""
        self._cancelled.wait(seconds)

    def cancel(self) -> None:
        """See :class:`Wait`."""
        with self._guard:
            self.is_cancelled = True
            self._cancelled.set()
            if self._socket is not None:
                with suppress(OSError):  # it is not connected yet, or no longer
                    # Not the method of a TLS socket, which forgets its keys while the other thread reads with them.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def end(self) -> None:
        """See :class:`Wait`."""

    # For the sockets.

    def hold(self, waiting: socket.socket) -> float | None:
        """Return the number of seconds for which *waiting*, which is about to block, may do so, or ``None`` for no limit.

        From now on :meth:`cancel` shuts it, until :meth:`let_go`.

        Raises:
            TimeoutError: the time is over, or the caller has ended the call.
        """
        left = None if self._when is None else self._when - time.monotonic()
        if waiting is not self._socket:
            with self._guard:
                self._socket = waiting
        if self.is_cancelled or (left is not None and left <= 0):
            self.is_late = True
            raise TimeoutError
        return left

    def look(self) -> None:
        """Check whether the time is over."""
        if self._when is not None and time.monotonic() >= self._when:
            self.is_late = True

    def let_go(self) -> None:
        """Release the connection, which may serve another call now."""
        with self._guard:
            self._socket = None


class _Turns:
    """A lock between threads, for code with ``await`` that is run by :func:`run`.

    Attributes:
        owner: the thread that holds it, or ``None`` if it is free.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.owner: int | None = None

    async def __aenter__(self) -> None:
        self._lock.acquire()
        self.owner = threading.get_ident()

    async def __aexit__(self, *_: object) -> None:
        self.owner = None
        self._lock.release()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of *work*, which never suspends."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    work.close()
    raise RuntimeError("a call without an event loop has waited for one")
