"""A progress bar for long work, shown on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from crosswalk.cli import terminal
from crosswalk.cli.terminal import harmless, say

if TYPE_CHECKING:
    from rich.progress import Progress as Bar, TaskID


_LONG: Final = 1.0
"""The seconds of work after which the bar appears."""


class Progress:
    """Progress of the work: a bar on standard error after a while, nothing if that is not a terminal.

    It disappears while something else is written to the same terminal, and comes back later.

    Args:
        what: the work, in a word.
        total: its size, or ``None`` if unknown.
        in_bytes: whether the size is in bytes, so that the rate is shown, too.
    """

    def __init__(self, what: str, total: int | None, *, in_bytes: bool = False) -> None:
        self._what = what
        self._total = total
        self._in_bytes = in_bytes
        self._done = 0
        self._visible = sys.stderr.isatty()
        self._started = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        terminal.before_writing = self._hide
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        terminal.before_writing = None
        self._hide()

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._started = time.monotonic()

    def advance(self, size: int) -> None:
        """Count *size* more as done."""
        self._done += size
        if not self._visible:
            return
        if self._bar is None and time.monotonic() - self._started >= _LONG:
            self._bar = self._begin()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def say(self, text: str) -> None:
        """Write a line to standard error, above the bar if there is one."""
        if self._bar is None:
            say(text)
        else:
            self._bar.console.print(harmless(text), markup=False, highlight=False, soft_wrap=True)

    def _begin(self) -> Bar:
        from rich.console import Console
        from rich.progress import Progress as Bar, TransferSpeedColumn

        rate = [TransferSpeedColumn()] if self._in_bytes else []
        bar = Bar(*Bar.get_default_columns(), *rate, console=Console(stderr=True), transient=True)
        self._task = bar.add_task(self._what, total=self._total, completed=self._done)
        bar.start()
        return bar
