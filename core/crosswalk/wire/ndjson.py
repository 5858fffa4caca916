"""Newline-delimited JSON on bytes: one JSON document a line, as Ollama streams it."""

from __future__ import annotations

from itertools import dropwhile, repeat

from crosswalk.wire.body import BodyDecoder
from crosswalk.wire.framing import Frame, LineDecoder
from crosswalk.wire.limits import DEFAULT, Limits


class NDJSONDecoder(LineDecoder):
    r"""
    Decode newline-delimited JSON (``application/x-ndjson``, JSON Lines).

    A line ends with ``\n``, with or without a ``\r`` before it, and nowhere else: U+2028 and U+0085
    are content. Whitespace around a line is dropped, blank lines are skipped, and the last line needs
    no end.

    Servers also answer with one JSON document printed over many lines, or with a page of HTML. So if
    the first line that is not blank is complete and does not end in ``}`` or ``]``, the input from
    there on is one frame, returned by :meth:`flush`.

    Args:
        limits: ``line_bytes`` applies to each line, and to the whole of such a document.

    Raises:
        LineTooLongError: a line, or such a document, is longer than ``line_bytes``.
        StreamTooLargeError: the stream is longer than ``total_bytes``.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self._longest = limits.line_bytes
        self._is_idle = False  # whether the next bytes are read as if nothing had come before
        self._begun = False
        self._document: BodyDecoder | None = None

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
        # A server that flushes each line sends it as one chunk, which needs no line loop.
        size = len(chunk)
        if self._is_idle and chunk.find(b"\n") == size - 1 and size <= self._longest and size <= self.room:
            line = chunk.strip()
            if line:
                self.room -= size
                return [(line, None)]
        frames = super().decode(chunk)
        self._is_idle = self._head is None and self.is_between_events
        return frames

    @property
    def is_between_events(self) -> bool:
        """Whether the next bytes are read as if nothing had come before."""
        return self._begun and self._document is None and not (self.tail or self._failure)

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        if self._document is None:
            super().read(chunk, frames)
            if self._document is None:
                return
            chunk = bytes(self.tail)
            self.tail.clear()
        self._document.read(chunk, frames)

    def read_lines(self, lines: list[bytes], frames: list[Frame]) -> None:
        """Return the frames that *lines* complete, see :class:`LineDecoder`."""
        if not self._begun:
            lines = list(dropwhile(_is_blank, lines))
            if not lines:
                return
            self._begun = True
            if not lines[0].rstrip().endswith((b"}", b"]")):
                self._document = BodyDecoder(self.limits)
                self._document.read(b"\n".join([*lines, b""]), frames)
                return
        frames += zip(filter(None, map(bytes.strip, lines)), repeat(None))  # endless

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._document is not None:
            self._document.finish(frames)
        elif last := self.tail.strip():
            frames.append((bytes(last), None))
        self.tail.clear()


def _is_blank(line: bytes) -> bool:
    return not line or line.isspace()
