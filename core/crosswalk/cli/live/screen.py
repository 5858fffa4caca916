"""An answer on the screen while it arrives.

The answer goes to standard output. The model's reasoning goes to standard error, dimmed on a terminal, so that a pipe
gets only the answer. Control characters that a model wrote are escaped.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from crosswalk.cli.terminal import write_text
from crosswalk.text import harmless
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import SegmentType

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

__all__ = ["Screen"]


class Screen:
    """Shows one answer. Use it as a context manager around all of it.

    Args:
        reasoning: whether to show the model's reasoning; ``None`` shows it if standard error is a terminal.
        silent: show only that the command is waiting.
    """

    def __init__(self, *, reasoning: bool | None = None, silent: bool = False) -> None:
        on_terminal = sys.stderr.isatty()
        shows_reasoning = on_terminal if reasoning is None else reasoning
        self._answer = _Channel(shown=not silent)
        self._refusal = _Channel(shown=not silent)
        self._reasoning = _ReasoningChannel(shown=shows_reasoning and not silent, dimmed=on_terminal)
        self._channels = {
            SegmentType.REASONING: self._reasoning,
            SegmentType.TEXT: self._answer,
            SegmentType.REFUSAL: self._refusal,
        }
        self._last: _Channel = self._answer
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.status import Status

            self._status = Status("waiting for the model", console=Console(stderr=True))
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_waiting()

    def show(self, delta: ResponseDelta) -> None:
        """Show the text that *delta* adds to the first choice."""
        if delta.choice != 0:
            return
        self._write(self._reasoning, delta.reasoning_delta)
        self._write(self._answer, delta.content_delta)
        self._write(self._refusal, delta.refusal_delta)
        if delta.segment is not None and delta.segment.type in self._channels:
            self._write(self._channels[delta.segment.type], delta.segment.content)

    def finish(self, response: ChatResponse) -> None:
        """Show the text of *response* that was in no delta. For a whole answer that is all of it."""
        refusal = "".join(part.content for part in response.segments if part.type is SegmentType.REFUSAL)
        for channel, whole in (
            (self._reasoning, response.reasoning),
            (self._answer, response.text),
            (self._refusal, refusal),
        ):
            self._write(channel, channel.rest_of(whole))
        self._stop_waiting()
        self._last.end_line()

    def _write(self, channel: _Channel, text: str | None) -> None:
        if not text:
            return
        channel.said.append(text)
        if not channel.is_shown:
            return
        self._stop_waiting()
        if channel is not self._last and self._last.is_separable:
            self._last.end_line()
        self._last = channel
        channel.write(text)

    def _stop_waiting(self) -> None:
        status, self._status = self._status, None
        if status is not None:
            status.stop()


class _Channel:
    """One kind of text: the answer or a refusal, on standard output.

    Attributes:
        said: the text so far.
        is_shown: whether to write it.
    """

    def __init__(self, *, shown: bool) -> None:
        self.said: list[str] = []
        self.is_shown = shown
        self._is_in_line = False

    @property
    def is_separable(self) -> bool:
        """Whether a line break may separate two kinds of text: yes on a terminal, no in a pipe."""
        return sys.stdout.isatty()

    def rest_of(self, whole: str) -> str:
        """The rest of *whole* after the text so far, or empty if *whole* begins otherwise."""
        raw = "".join(self.said)
        return whole[len(raw) :] if whole.startswith(raw) else ""

    def write(self, text: str) -> None:
        """Write *text*, which is not empty."""
        self._put(harmless(text, lines=True))
        self._is_in_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Begin a new line if the current one is not empty."""
        if self._is_in_line:
            self._put("\n")
            self._is_in_line = False

    def _put(self, text: str) -> None:
        write_text(text)


class _ReasoningChannel(_Channel):
    """The model's reasoning, on standard error."""

    def __init__(self, *, shown: bool, dimmed: bool) -> None:
        super().__init__(shown=shown)
        self._is_dimmed = dimmed
        self._console: Console | None = None

    @property
    def is_separable(self) -> bool:
        """Always true, since reasoning is not data."""
        return True

    def _put(self, text: str) -> None:
        if not self._is_dimmed:
            print(text, end="", file=sys.stderr, flush=True)
            return
        from rich.console import Console
        from rich.text import Text

        if self._console is None:
            self._console = Console(stderr=True)
        self._console.print(Text(text, style="dim"), end="", soft_wrap=True)
