"""A limit on the number of calls that run at the same time."""

from __future__ import annotations

import asyncio
import threading
from weakref import WeakKeyDictionary

from crosswalk.service.waits import ThreadWait, Wait

__all__ = ["CallSlots"]

_STEP = 0.1
"""The number of seconds that a thread waits for a slot before it checks whether its call was cancelled."""


class CallSlots:
    """Lets a number of calls run at once. Further calls wait.

    Args:
        number: the limit: in each event loop, or in all threads together.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._of_threads = threading.Semaphore(number)
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def take(self, wait: Wait) -> None:
        """Wait for a free slot.

        Raises:
            TimeoutError: the call was cancelled.
        """
        if isinstance(wait, ThreadWait):
            while not self._of_threads.acquire(timeout=_STEP):
                if wait.is_cancelled:
                    raise TimeoutError
            return
        await wait.within(None, self._here().acquire())

    def give_back(self, wait: Wait) -> None:
        """Free the slot of a call that has ended."""
        (self._of_threads if isinstance(wait, ThreadWait) else self._here()).release()

    def _here(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop not in self._of_loops:
            self._of_loops[loop] = asyncio.Semaphore(self._number)
        return self._of_loops[loop]
