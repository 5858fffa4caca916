"""The displays that are shipped: plain text and JSON Lines for any file, and a live one for a terminal."""

from __future__ import annotations

import re
from typing import Any, TextIO

import orjson

from crosswalk.responses.display import DisplayRegistry, DisplayStrategy, Update, UpdateKind
from crosswalk.responses.reading import to_dict
from crosswalk.text import harmless


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


def live_display(out: TextIO) -> DisplayStrategy:
    """A live display on the terminal *out*, see :class:`crosswalk.responses.terminal_display.LiveDisplay`."""
    from crosswalk.responses.terminal_display import LiveDisplay  # which loads rich

    return LiveDisplay(out)


displays = DisplayRegistry()
"""The displays that there are: ``plain``, ``live`` and ``jsonl``, and those that a program adds."""
displays.register("plain", PlainTextDisplay)
displays.register("live", live_display)
displays.register("jsonl", JSONLinesDisplay)
