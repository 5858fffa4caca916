"""The base of all framings: the frame, and the push decoder that turns chunks into frames.

A decoder does no I/O. You feed it chunks of any length, and it returns the complete frames.
The result never depends on the lengths of the chunks, and buffered bytes are never scanned
again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol, TypeAlias

from crosswalk.errors import LineTooLongError, MappingError, StreamTooLargeError
from crosswalk.wire.limits import DEFAULT, Limits

BOM = b"\xef\xbb\xbf"
CR = ord("\r")
LF = ord("\n")  # `in` finds a number seven times as fast as a byte string of length 1


Frame: TypeAlias = tuple[bytes, str | None]
"""
One undecoded unit of a stream, or one whole body: its bytes without their framing, usually JSON, and
the name from an SSE ``event:`` line, or ``None`` without any and in every other framing.

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


class NeedMore(Enum):
    """The type of :data:`NEED_MORE`."""

    NEED_MORE = "need more"


NEED_MORE: Final = NeedMore.NEED_MORE
"""The answer of a :data:`CustomFraming` that the first bytes do not decide yet."""


CustomFraming: TypeAlias = Callable[[bytes, Limits, str], Decoder | NeedMore | None]
"""
Chooses the decoder of an answer: ``framing(start, limits, content_type)``.

``start`` has the first bytes of the answer, at least one, without white space and a byte order mark before it.
``content_type`` is that of the HTTP answer, in lower case without parameters, or ``""`` if unknown. The result
is a decoder, ``None`` for SSE, NDJSON and JSON, or :data:`NEED_MORE` to be asked again with more bytes.
"""


def is_done(data: bytes) -> bool:
    """
    Tell whether a frame's *data* is OpenAI's end-of-stream sentinel ``[DONE]`` instead of JSON.

    Whitespace before it and anything after it are allowed. The openai SDK too only checks the start.
    """
    # The first test alone settles all frames that hold an object.
    return data[:1] != b"{" and data.lstrip().startswith(b"[DONE]")


class PushDecoder:
    """
    The parts of a decoder that do not depend on the framing.

    It counts the bytes, removes a leading byte order mark, and delays an error until the frames
    before it are returned. A framing implements :meth:`read` and :meth:`finish`.

    Attributes:
        limits: the limits.
        room: the number of bytes that may follow. A reader that bypasses the decoder counts its bytes here.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self.room = limits.total_bytes
        # The beginning of a possible byte order mark, or None once that is decided.
        self._head: bytes | None = b""
        self._failure: MappingError | None = None

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
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
                self.read(chunk, frames)
            if too_large:
                limit = self.limits.total_bytes
                raise StreamTooLargeError(f"the stream is longer than {limit} bytes", limit=limit)
        except MappingError as error:
            self._failure = error
            if not frames:
                raise
        return frames

    def flush(self) -> list[Frame]:
        """Take the end of the input and return the remaining frames, see :class:`Decoder`."""
        if self._failure is not None:
            raise self._failure
        frames: list[Frame] = []
        if self._head:
            self.read(self._head, frames)
        self._head = None
        self.finish(frames)
        return frames

    def _without_bom(self, chunk: bytes) -> bytes:
        assert self._head is not None
        head = self._head + chunk
        if len(head) < len(BOM) and BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(BOM)

    def too_long(self, what: str) -> LineTooLongError:
        """The error for a frame, called *what*, that is longer than ``limits.line_bytes``."""
        limit = self.limits.line_bytes
        return LineTooLongError(f"{what} is longer than {limit} bytes", limit=limit)

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Append to *frames* those that *chunk*, the next bytes, completes. Store the remainder for the next call.

        Raise a :class:`~crosswalk.errors.FramingError` for bytes that are not a frame. Frames before it still come out.
        """
        raise NotImplementedError

    def finish(self, frames: list[Frame]) -> None:
        """Append to *frames* a last one that needs no end, once the input has ended.

        Raise :class:`~crosswalk.errors.IncompleteStreamError` if the input ended inside a frame.
        """
        raise NotImplementedError


class LineDecoder(PushDecoder):
    r"""
    Cut the input into lines at ``\n``, on bytes; the base of the framings that are made of lines.

    ``str.splitlines`` and httpx's ``iter_lines`` also cut at U+2028, U+0085 and more, which JSON
    strings may hold. A framing implements :meth:`read_lines`.

    Attributes:
        tail: the bytes behind the last ``\n``.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self.tail = bytearray()

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Cut *chunk* into lines, see :class:`PushDecoder`."""
        if LF in chunk:
            # The tail is joined only once its line is complete, so that it is scanned once.
            if self.tail:
                chunk = b"".join((self.tail, chunk))
                self.tail.clear()
            chunk = self._take_lines(chunk, frames)
        self.tail += chunk
        if len(self.tail) > self.limits.line_bytes:
            raise self.too_long("a line")

    def _take_lines(self, text: bytes, frames: list[Frame]) -> bytes:
        """Read the complete lines of *text* and give what is left after the last of them."""
        lines = text.split(b"\n")
        tail = lines.pop()
        limit = self.limits.line_bytes
        if len(text) > limit:
            for number, line in enumerate(lines):
                if len(line) > limit:
                    self.read_lines(lines[:number], frames)
                    raise self.too_long("a line")
        self.read_lines(lines, frames)
        return tail

    def finish(self, frames: list[Frame]) -> None:
        """Read the last line, which needs no end."""
        if self.tail:
            self.read_lines([bytes(self.tail)], frames)
        self.tail.clear()

    def read_lines(self, lines: list[bytes], frames: list[Frame]) -> None:
        r"""Append to *frames* those that *lines* complete: complete lines, in order, without their ``\n``."""
        raise NotImplementedError
