"""Slots that limit how many tool calls run at a time, over all runs, threads and event loops."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from contextlib import suppress
from contextvars import ContextVar

import attrs

_LATE_THREADS_PER_SLOT = 4  # threads that may run past their time limit


@attrs.define(eq=False)
class ToolSlot:
    """The slot of one call, running or waiting to run.

    Attributes:
        thread: the thread that runs the call, or ``None`` if it runs in its event loop.
        deadline: when its time limit ends, on the monotonic clock, or ``None`` for no limit.
        is_abandoned: whether its run was cancelled while its thread, which cannot be stopped, keeps running.
    """

    thread: threading.Thread | None = None
    deadline: float | None = None
    is_abandoned: bool = False


class ToolSlots:
    """Limits how many calls run at the same time, and tracks threads that run past their time limit.

    A call releases its slot when it ends or its time limit does. If its run is cancelled, it holds the slot while its
    thread runs within the time limit: the limited resource is still in use.

    Args:
        number: how many calls may run at the same time.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._lock = threading.Lock()
        self._running: set[ToolSlot] = set()
        self._late_threads: set[threading.Thread] = set()
        self._waiting: deque[tuple[ToolSlot, asyncio.Event, asyncio.AbstractEventLoop]] = deque()

    @property
    def has_too_many_late(self) -> bool:
        """Whether so many threads run past their time limit that no other may start."""
        with self._lock:
            self._late_threads = {thread for thread in self._late_threads if thread.is_alive()}
            return len(self._late_threads) >= _LATE_THREADS_PER_SLOT * self._number

    async def acquire(self) -> ToolSlot:
        """Wait for a slot, first come, first served.

        A call made by a running call, by an agent inside a tool, shares the slot of the outer call.
        """
        slot, free = ToolSlot(), asyncio.Event()
        if self in _held_slots.get():
            return slot
        with self._lock:
            self._waiting.append((slot, free, asyncio.get_running_loop()))
        try:
            while not free.is_set():
                # Nothing is notified when the time limit of an abandoned call ends, so check again then.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._grant_free_slots(slot)):
                        await free.wait()
        except BaseException:
            self.release(slot)
            raise
        _held_slots.set((*_held_slots.get(), self))
        return slot

    def release(self, slot: ToolSlot, *, is_late: bool = False) -> None:
        """Release *slot* for the next call, from any thread. Releasing it again has no effect.

        Args:
            slot: the slot that :meth:`acquire` returned or was about to return.
            is_late: whether its thread runs past its time limit.
        """
        with self._lock:
            self._waiting = deque(one for one in self._waiting if one[0] is not slot)
            self._running.discard(slot)
            if is_late and slot.thread is not None:
                self._late_threads.add(slot.thread)
        self._grant_free_slots(slot)

    def _grant_free_slots(self, own: ToolSlot) -> float | None:
        """Give free slots to waiting calls.

        Returns the seconds until another slot may become free, or ``None`` if that is unknown.
        """
        with self._lock:
            now, ends = time.monotonic(), []
            for slot in list(self._running):
                if slot.thread is not None and slot.deadline is not None:
                    if slot.deadline > now:
                        ends.append(slot.deadline - now)
                    else:
                        self._running.discard(slot)
                        self._late_threads.add(slot.thread)
            while self._waiting and len(self._running) < self._number:
                slot, free, loop = self._waiting.popleft()
                with suppress(RuntimeError):  # its event loop has been closed
                    if slot is own:
                        free.set()
                    else:
                        loop.call_soon_threadsafe(free.set)
                    self._running.add(slot)
            return min(ends, default=None)


_held_slots: ContextVar[tuple[ToolSlots, ...]] = ContextVar("crosswalk_tool_places", default=())
"""The limits in which the current call holds a slot."""
