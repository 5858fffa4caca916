"""A display for a terminal that is drawn anew as the stream goes on, with rich."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from crosswalk.responses.display import DisplayStrategy, Update, UpdateKind
from crosswalk.text import harmless

_STYLES = {
    UpdateKind.TEXT: "",
    UpdateKind.REASONING: "dim italic",
    UpdateKind.REFUSAL: "yellow",
    UpdateKind.TOOL: "cyan",
    UpdateKind.CITATION: "blue",
    UpdateKind.END: "dim",
    UpdateKind.ERROR: "bold red",
}
_MAX_DRAWN_CHARACTERS = 20_000
"""The length of the end of a long answer that each update draws, in characters."""


class LiveDisplay(DisplayStrategy):
    """Shows the end of the answer while it arrives, and the complete answer at the end.

    Tool calls are lines that change in place. If the output is not a terminal, the complete answer is written at the
    end. The cost of an update does not grow with the answer, because drawing is done a few times a second.

    Args:
        out: a terminal.
        console: rich's console, in place of *out*.
        refresh_per_second: how often to draw.
    """

    def __init__(
        self, out: TextIO | None = None, *, console: Console | None = None, refresh_per_second: float = 10
    ) -> None:
        self._console = console or Console(file=out)
        self._rate = refresh_per_second
        self._screen = _Screen()
        self._live: Live | None = None

    def open(self) -> None:
        """Begin to draw."""
        self._screen = _Screen()
        self._live = Live(self._screen, console=self._console, refresh_per_second=self._rate)
        self._live.start()

    def show(self, update: Update) -> None:
        """See :meth:`DisplayStrategy.show`."""
        self._screen.add(update)

    def close(self) -> None:
        """Draw the whole, and stop."""
        self._screen.whole = True
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
            if not self._console.is_terminal:
                self._console.line()


class _Screen:
    """The updates so far, as an object that rich can draw.

    Attributes:
        whole: whether to draw all of it, however high the terminal.
    """

    def __init__(self) -> None:
        self.whole = False
        self._blocks: list[tuple[str, list[str]]] = []
        self._pieces_by_key: dict[tuple[str, str], list[str]] = {}
        self._last: tuple[str, str | None] | None = None

    def add(self, update: Update) -> None:
        block_key = (update.kind, update.key)
        pieces = None if update.key is None else self._pieces_by_key.get((update.kind, update.key))
        if pieces is None and block_key == self._last and update.is_written:
            pieces = self._blocks[-1][1]
        if pieces is None:
            pieces = []
            self._blocks.append((update.kind, pieces))
            if update.key is not None:
                self._pieces_by_key[update.kind, update.key] = pieces
        if update.replaces or not update.is_written:
            pieces.clear()
        if update.text:
            pieces.append(harmless(update.text, lines=update.is_written))
        self._last = block_key

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text("\n").join(self._texts())
        if self.whole:
            yield text
            return
        lines = text.wrap(console, options.max_width)
        yield Text("\n").join(lines[-max(console.height - 1, 1) :])

    def _texts(self) -> list[Text]:
        """The blocks, or those at the end that may be on the screen, in order."""
        texts = []
        remaining_characters = sys.maxsize if self.whole else _MAX_DRAWN_CHARACTERS
        for kind, pieces in reversed(self._blocks.copy()):  # drawn in a thread of rich's
            if remaining_characters <= 0:
                break
            # A slice is atomic. No piece is empty, so it has enough characters.
            content = "".join(pieces[-remaining_characters:])[-remaining_characters:].strip("\n")
            remaining_characters -= len(content) + 1
            label = "" if kind in (UpdateKind.TEXT, UpdateKind.REASONING) else f"[{harmless(kind)}] "
            texts.append(Text(label + content, style=_STYLES.get(kind, "")))  # type: ignore[call-overload]
        return texts[::-1]
