"""A limit on the number of calls that run at the same time."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from crosswalk.service.waits import Wait

__all__ = ["CallSlots"]


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
