"""An event loop whose clock a test moves on, so that a time limit or a pause passes without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class DrivenLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock that also goes on when a test says so.

    All that waits in an event loop reads this clock: ``asyncio.sleep``, ``asyncio.timeout``, ``call_later``, anyio.
    """

    def __init__(self) -> None:
        self._passed_seconds = 0.0
        super().__init__()

    def time(self) -> float:
        """The time in seconds."""
        return super().time() + self._passed_seconds

    def pass_time(self, seconds: float) -> None:
        """Let *seconds* pass at once. Any thread may call this."""
        self.call_soon_threadsafe(self._pass, seconds)

    def _pass(self, seconds: float) -> None:
        self._passed_seconds += seconds


def run_driven(main: Coroutine[Any, Any, T]) -> T:
    """Run *main*, like ``asyncio.run``, in such a loop."""
    with asyncio.Runner(loop_factory=DrivenLoop) as runner:
        return runner.run(main)
