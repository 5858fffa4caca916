"""Slots that limit how many tool calls run at a time, over all runs, threads and event loops."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from contextlib import suppress
from contextvars import ContextVar

import attrs

__all__ = ["ToolSlot", "ToolSlots"]

_MANY = 4
"""So many times as many calls as may run at a time may run on behind their time limit."""


@attrs.define(eq=False)
class ToolSlot:
    """Where a call runs, or waits for that.

    Attributes:
        thread: what runs it; ``None`` where it runs in its event loop.
        deadline: when its time is over, by the monotonic clock; ``None`` for never.
        is_left: whether its run was cancelled while its thread, which cannot be stopped, runs on.
    """

    thread: threading.Thread | None = None
    deadline: float | None = None
    is_abandoned: bool = False


class ToolSlots:
    """Who runs, who waits for it, and what runs on that nobody waits for any longer.

    A call gives its place back when it is over, or its time is. One whose run was cancelled keeps it for as long as its
    thread runs on within its time: what the number protects is still in use.

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
        """Whether so many threads run on behind their time that no other may begin."""
        with self._lock:
            self._late_threads = {thread for thread in self._late_threads if thread.is_alive()}
            return len(self._late_threads) >= _MANY * self._number

    async def acquire(self) -> ToolSlot:
        """A place, once there is one; first come, first served.

        A call that a running one makes, by an agent in a tool, runs in that one's place.
        """
        slot, free = ToolSlot(), asyncio.Event()
        if self in _held_slots.get():
            return slot
        with self._lock:
            self._waiting.append((slot, free, asyncio.get_running_loop()))
        try:
            while not free.is_set():
                # Looked at again when the time of a call that was left is over: nothing else would tell.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._grant_free_slots(slot)):
                        await free.wait()
        except BaseException:
            self.release(slot)
            raise
        _held_slots.set((*_held_slots.get(), self))
        return slot

    def release(self, slot: ToolSlot, *, is_late: bool = False) -> None:
        """Let the next call have *slot*; may be said twice, and by any thread.

        Args:
            place: what :meth:`take` gave, or was about to give.
            is_late: whether its thread runs on behind its time.
        """
        with self._lock:
            self._waiting = deque(one for one in self._waiting if one[0] is not slot)
            self._running.discard(slot)
            if is_late and slot.thread is not None:
                self._late_threads.add(slot.thread)
        self._grant_free_slots(slot)

    def _grant_free_slots(self, own: ToolSlot) -> float | None:
        """Give what is free to those who wait; in how many seconds more may be free, ``None`` if nobody knows."""
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
"""Where the call that runs has a place."""
