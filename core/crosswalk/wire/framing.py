"""What all framings share: the frame, and the push decoder that turns chunks into frames.

A decoder does no I/O: it is fed chunks as they come, cut anywhere, and gives the frames that are
complete. What it gives never depends on where the chunks were cut, and what it has to keep for later
is never scanned again.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from crosswalk.errors import LineTooLongError, MappingError, StreamTooLargeError
from crosswalk.wire.limits import DEFAULT, Limits

__all__ = ["Decoder", "Frame", "LineDecoder", "PushDecoder", "is_done"]

BOM = b"\xef\xbb\xbf"
CR = ord("\r")
LF = ord("\n")  # `in` finds a number seven times as fast as a byte string of length 1


Frame: TypeAlias = tuple[bytes, str | None]
"""
One undecoded unit of a stream, or one whole body: its bytes without their framing, usually JSON, and
the name from an SSE ``event:`` line; ``None`` when the server gave none, and in every other framing.

A plain tuple, because a named one costs as much to make as all the rest of cutting it out.
"""


class Decoder(Protocol):
    """
    Turn the chunks of one stream into frames.

    Every decoder serves one stream and raises, from either method, the two errors of its
    :class:`~crosswalk.wire.Limits`: :class:`~crosswalk.errors.LineTooLongError` and
    :class:`~crosswalk.errors.StreamTooLargeError`. Frames that were complete before the limit was
    passed come out first: the call that finds some returns them, and the next call raises.
    """

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes, of any length, and give the frames that they complete, in order."""

    def flush(self) -> list[Frame]:
        """Take the end of the input and give what was left, if it makes a frame."""


def is_done(data: bytes) -> bool:
    """
    Tell whether a frame's *data* is OpenAI's end-of-stream sentinel ``[DONE]`` instead of JSON.

    Whitespace before it and anything after it are let pass; the openai SDK, too, looks at the start alone.
    """
    # The first test alone settles all frames that hold an object.
    return data[:1] != b"{" and data.lstrip().startswith(b"[DONE]")


class PushDecoder:
    """
    Do for a decoder what does not depend on the framing; the base of all of them.

    It counts the bytes, takes off a leading byte order mark, and holds an error back until the frames
    before it are out. A framing implements ``_decode`` and ``_finish``, which
    append to *frames*.

    Attributes:
        limits: what holds.
        room: how many bytes may still come; who reads some between two events, in its place, counts them.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self.room = limits.total_bytes
        # What may yet turn out to be a byte order mark; None once that is settled.
        self._head: bytes | None = b""
        self._failure: MappingError | None = None

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and give the frames that they complete; see :class:`Decoder`."""
        if self._failure is not None:
            raise self._failure
        too_large = len(chunk) > self.room
        if too_large:
            chunk = chunk[: self.room]
        self.room -= len(chunk)
        if self._head is not None:
            chunk = self._without_bom(chunk)
        frames: list[Frame] = []
        try:
            if chunk:
                self._decode(chunk, frames)
            if too_large:
                limit = self.limits.total_bytes
                raise StreamTooLargeError(f"the stream is longer than {limit} bytes", limit=limit)
        except MappingError as error:
            self._failure = error
            if not frames:
                raise
        return frames

    def flush(self) -> list[Frame]:
        """Take the end of the input and give what was left; see :class:`Decoder`."""
        if self._failure is not None:
            raise self._failure
        frames: list[Frame] = []
        if self._head:
            self._decode(self._head, frames)
        self._head = None
        self._finish(frames)
        return frames

    def _without_bom(self, chunk: bytes) -> bytes:
        assert self._head is not None
        head = self._head + chunk
        if len(head) < len(BOM) and BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(BOM)

    def _too_long(self, what: str) -> LineTooLongError:
        limit = self.limits.line_bytes
        return LineTooLongError(f"{what} is longer than {limit} bytes", limit=limit)

    def _decode(self, chunk: bytes, frames: list[Frame]) -> None:
        raise NotImplementedError

    def _finish(self, frames: list[Frame]) -> None:
        raise NotImplementedError


class LineDecoder(PushDecoder):
    r"""
    Cut the input into lines at ``\n``, on bytes; the base of the framings that are made of lines.

    ``str.splitlines`` and httpx's ``iter_lines`` also cut at U+2028, U+0085 and more, which JSON
    strings may hold. A framing implements ``_read`` for complete lines, which come without their
    ``\n``, and finds the last, unterminated one in ``_tail``.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self._tail = bytearray()

    def _decode(self, chunk: bytes, frames: list[Frame]) -> None:
        if LF in chunk:
            # The tail is joined only once its line is complete, so that it is scanned once.
            if self._tail:
                chunk = b"".join((self._tail, chunk))
                self._tail.clear()
            chunk = self._take_lines(chunk, frames)
        self._tail += chunk
        if len(self._tail) > self.limits.line_bytes:
            raise self._too_long("a line")

    def _take_lines(self, text: bytes, frames: list[Frame]) -> bytes:
        """Read the complete lines of *text* and give what is left after the last of them."""
        lines = text.split(b"\n")
        tail = lines.pop()
        limit = self.limits.line_bytes
        if len(text) > limit:
            for number, line in enumerate(lines):
                if len(line) > limit:
                    self._read(lines[:number], frames)
                    raise self._too_long("a line")
        self._read(lines, frames)
        return tail

    def _read(self, lines: list[bytes], frames: list[Frame]) -> None:
        raise NotImplementedError
