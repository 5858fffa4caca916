"""Updates of a response, and the displays that show them."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import attrs
import orjson

from crosswalk.responses.reading import to_dict
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponsesError, ResponsesValueError
from crosswalk.text import brief, clean_message, harmless, short_repr

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live
    from rich.text import Text


class UpdateKind(StrEnum):
    """The kinds of updates of the shipped processors. Others may use custom words."""

    TEXT = "text"
    REASONING = "reasoning"
    REFUSAL = "refusal"
    TOOL = "tool"
    CITATION = "citation"
    END = "end"
    ERROR = "error"

    @property
    def is_written(self) -> bool:
        """Whether its texts form one text. Each text of another kind is a line."""
        return self in {UpdateKind.TEXT, UpdateKind.REASONING, UpdateKind.REFUSAL}


@brief
@attrs.frozen(kw_only=True, repr=False)
class Update:
    """An update to show.

    Attributes:
        kind: an :class:`UpdateKind`, or a custom word, which is shown as a line.
        text: the text as the model wrote it. A display escapes it.
        key: the subject. An update continues the earlier ones with the same kind and key, or replaces them if
            ``replaces`` is set. ``None`` means no particular subject.
        replaces: whether it replaces everything with its kind and key.
        response: the whole response, with the last update of a stream.

    Raises:
        ResponsesValueError: kind or text is not a string.
    """

    kind: str
    text: str
    key: str | None = None
    replaces: bool = False
    response: Response | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("kind", "text"):
            if not isinstance(getattr(self, name), str):
                raise ResponsesValueError("expected string", path=f"Update.{name}")

    @property
    def is_written(self) -> bool:
        """Whether it continues what was written, see :attr:`UpdateKind.is_written`."""
        return self.kind in _WRITTEN_KINDS

    __repr__ = short_repr("kind", "key", "text")


_WRITTEN_KINDS = frozenset(kind for kind in UpdateKind if kind.is_written)


class DisplayStrategy(ABC):
    """A way to show a stream.

    Any of its methods may be a coroutine function. You can then use it with :meth:`StreamHandler.ahandle` only.
    """

    def open(self) -> Awaitable[None] | None:
        """Called once before the first event."""
        return None

    @abstractmethod
    def show(self, update: Update) -> Awaitable[None] | None:
        """Show *update*. Its text is a stranger's: :func:`crosswalk.text.harmless` makes it fit for a terminal."""

    def close(self) -> Awaitable[None] | None:
        """Called once at the end, however the stream ended, even after ``show`` failed."""
        return None


DisplayFactory: TypeAlias = Callable[[TextIO], DisplayStrategy]
"""Makes a display that writes to a file."""


class UnknownDisplayError(ResponsesError, LookupError):
    """No display has that name.

    Attributes:
        known: the names that there are.
    """

    def __init__(self, name: str, *, known: tuple[str, ...]) -> None:
        super().__init__(f"no display {clean_message(name, 40)!r}; there are {', '.join(known)}")
        self.known = known


class DisplayRegistry:
    """Displays by name."""

    def __init__(self) -> None:
        self._factories: dict[str, DisplayFactory] = {}

    def register(self, name: str, factory: DisplayFactory) -> None:
        """Add a display, replacing one with the same name."""
        self._factories[name] = factory

    @property
    def names(self) -> tuple[str, ...]:
        """The names that there are, in order of registration."""
        return tuple(self._factories)

    def make(self, name: str, out: TextIO) -> DisplayStrategy:
        """Create the display of that name, which writes to *out*.

        Raises:
            UnknownDisplayError: the name is not registered.
        """
        if name not in self._factories:
            raise UnknownDisplayError(name, known=self.names)
        return self._factories[name](out)


# ------------------------------------------------------------------------------- displays
# The displays that are shipped.


class PlainTextDisplay(DisplayStrategy):
    """Writes the answer as it arrives, and other updates as lines like ``[tool] stock({"sku":9}): completed``.

    Args:
        out: a text file. Characters outside its encoding are escaped.
        details: whether to write other updates too. Errors and refusals are always written.
    """

    def __init__(self, out: TextIO, *, details: bool = True) -> None:
        self._out = out
        self._shows_details = details
        self._open_block_key: tuple[str, str | None] | None = None
        self._is_at_line_start = True

    def show(self, update: Update) -> None:
        """See :meth:`DisplayStrategy.show`. A replacement is written below the original."""
        if not self._shows_details and update.kind not in _ESSENTIAL_KINDS:
            return
        if update.is_written:
            if (update.kind, update.key) != self._open_block_key or update.replaces:
                self._end_line()
                if update.kind != UpdateKind.TEXT:
                    self._write(f"[{update.kind}] ")
                self._open_block_key = (update.kind, update.key)
            self._write(harmless(update.text, lines=True))
        else:
            self._end_line()
            self._write(f"[{harmless(update.kind)}] {harmless(update.text)}\n")
        self._out.flush()

    def close(self) -> None:
        """End the last line."""
        self._end_line()
        self._out.flush()

    def _end_line(self) -> None:
        if not self._is_at_line_start:
            self._write("\n")
        self._open_block_key = None

    def _write(self, text: str) -> None:
        if text:
            self._is_at_line_start = text.endswith("\n")
            encoding = getattr(self._out, "encoding", None) or "utf-8"
            self._out.write(text.encode(encoding, errors="backslashreplace").decode(encoding))


_ESSENTIAL_KINDS = frozenset({UpdateKind.TEXT, UpdateKind.REFUSAL, UpdateKind.ERROR})


class JSONLinesDisplay(DisplayStrategy):
    """Writes each update as a line of JSON in ASCII: ``kind``, ``text``, and ``key``, ``replaces``, ``response`` if any.

    Args:
        out: a text file.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, update: Update) -> None:
        """See :meth:`DisplayStrategy.show`."""
        line: dict[str, Any] = {"kind": str(update.kind), "text": update.text}
        if update.key is not None:
            line["key"] = update.key
        if update.replaces:
            line["replaces"] = True
        if update.response is not None:
            line["response"] = to_dict(update.response)
        # ASCII is harmless to a terminal, and the same in nearly every encoding.
        self._out.write(_NON_ASCII_CHARACTER.sub(_json_escape, orjson.dumps(line).decode()) + "\n")
        self._out.flush()


_NON_ASCII_CHARACTER = re.compile("[^\x20-\x7e]")


def _json_escape(match: re.Match[str]) -> str:
    utf16_bytes = match[0].encode("utf-16-be")
    return "".join(f"\\u{utf16_bytes[offset : offset + 2].hex()}" for offset in range(0, len(utf16_bytes), 2))


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
        from rich.console import Console  # an extra

        self._console = console or Console(file=out)
        self._rate = refresh_per_second
        self._screen = _Screen()
        self._live: Live | None = None

    def open(self) -> None:
        """Begin to draw."""
        from rich.live import Live

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
        from rich.text import Text

        text = Text("\n").join(self._texts())
        if self.whole:
            yield text
            return
        lines = text.wrap(console, options.max_width)
        yield Text("\n").join(lines[-max(console.height - 1, 1) :])

    def _texts(self) -> list[Text]:
        """The blocks, or those at the end that may be on the screen, in order."""
        from rich.text import Text

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


displays = DisplayRegistry()
"""The displays that there are: ``plain``, ``live`` and ``jsonl``, and those that a program adds."""
displays.register("plain", PlainTextDisplay)
displays.register("live", LiveDisplay)
displays.register("jsonl", JSONLinesDisplay)
