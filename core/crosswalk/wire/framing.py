"""From bytes to frames, for SSE, lines of JSON, whole bodies and inputs of unknown framing, and from a frame to its event.

All within limits, with every failure typed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from itertools import dropwhile, repeat
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn, Protocol, TypeAlias

import attrs
import orjson

from crosswalk.errors import (
    FramingError,
    InvalidJSONError,
    LineTooLongError,
    MappingError,
    NestingTooDeepError,
    StreamTooLargeError,
)
from crosswalk.lazy import pattern
from crosswalk.types.json import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Iterable


# ---------------------------------------------------------------------------------- limits
# The limits of untrusted input.


MIB = 2**20
GIB = 2**30


def _positive(limits: Limits, attribute: attrs.Attribute[int], value: Any) -> None:
    if type(value) is not int or value <= 0:
        raise ValueError(f"Limits.{attribute.name} must be a whole number above 0, got {value!r}")


@attrs.frozen(kw_only=True)
class Limits:
    """
    The bounds of the cost of one stream or body, each with a separate error.

    The defaults are far above any model's output. They stop a broken or hostile server,
    but not an answer. You cannot turn a limit off, but you can set a larger number.

    Attributes:
        line_bytes: the longest line, frame or single body, in bytes. Default: 64 MiB. Passing it raises
            :class:`crosswalk.errors.LineTooLongError`.
        depth: the deepest nesting of arrays and objects in one event, where ``[]`` is 1 deep. Default: 200.
            orjson itself reads no deeper than 1024. Passing it raises
            :class:`crosswalk.errors.NestingTooDeepError`.
        events: the most events of one stream. Default: 10 million. The reader counts them and raises
            :class:`crosswalk.errors.TooManyEventsError`.
        total_bytes: the most bytes of one stream, with framing. Default: 4 GiB. Passing it raises
            :class:`crosswalk.errors.StreamTooLargeError`.

    Raises:
        ValueError: a limit is not a whole number above 0.
    """

    line_bytes: int = attrs.field(default=64 * MIB, validator=_positive)
    depth: int = attrs.field(default=200, validator=_positive)
    events: int = attrs.field(default=10_000_000, validator=_positive)
    total_bytes: int = attrs.field(default=4 * GIB, validator=_positive)


DEFAULT = Limits()
"""The limits that apply where none are given."""


# --------------------------------------------------------------------------------- framing
# The base of all framings: the frame, and the push decoder that turns chunks into frames.
#
# A decoder does no I/O. You feed it chunks of any length, and it returns the complete frames.
# The result never depends on the lengths of the chunks, and buffered bytes are never scanned
# again.


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
        is_idle: whether the next bytes are read as if nothing had come before.
    """

    is_idle = False

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
        is_too_large = len(chunk) > self.room
        if is_too_large:
            chunk = chunk[: self.room]
        self.room -= len(chunk)
        if self._head is not None:
            chunk = self._without_bom(chunk)
        frames: list[Frame] = []
        try:
            if chunk:
                self.read(chunk, frames)
            if is_too_large:
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

    def around(self, data: bytes, chunk: bytes) -> tuple[bytes, bytes] | None:
        """Return what stands before and behind *data* in *chunk*, of which it was the only frame, or ``None``.

        While :attr:`is_idle`, other data of one line is the only frame between them, too. ``None`` says that it may not be.
        """
        return None

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
        before_data: what may stand before the data of a frame of one line, from the line end on.
        behind_data: what may stand behind it.
    """

    before_data: ClassVar[tuple[bytes, ...]] = ()
    behind_data: ClassVar[tuple[bytes, ...]] = ()

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

    def around(self, data: bytes, chunk: bytes) -> tuple[bytes, bytes] | None:
        """Return the bytes around *data*, see :class:`PushDecoder`."""
        before, _, behind = chunk.partition(data)
        is_last_line = (b"\n" + before).endswith(self.before_data) and behind in self.behind_data
        return (before, behind) if is_last_line and self.is_idle and not _has_line_end(data) else None

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


# ------------------------------------------------------------------------------------ body
# A whole payload as one frame: the framing of answers that are not streamed.


class BodyDecoder(PushDecoder):
    """
    Keep everything until :meth:`flush` and give it as one frame, less a leading byte order mark.

    An empty body, or one of only whitespace, has no frame. Any other body is returned unchanged,
    whether it is JSON, a proxy's HTML or plain text.

    Args:
        limits: ``line_bytes`` applies to the whole body.

    Raises:
        LineTooLongError: the body is longer than ``line_bytes``. Raised as early as possible.
        StreamTooLargeError: the body is longer than ``total_bytes``.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self._pieces: list[bytes] = []
        self._size = 0

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        self._size += len(chunk)
        if self._size > self.limits.line_bytes:
            raise self.too_long("the body")
        self._pieces.append(chunk)

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        body = b"".join(self._pieces)
        self._pieces.clear()
        if body and not body.isspace():
            frames.append((body, None))


# ---------------------------------------------------------------------------------- ndjson
# Newline-delimited JSON on bytes: one JSON document a line, as Ollama streams it.


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

    before_data = (b"\n",)
    behind_data = (b"\n", b"\r\n")

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self._longest = limits.line_bytes
        self._has_begun = False
        self._document: BodyDecoder | None = None

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
        # A server that flushes each line sends it as one chunk, which needs no line loop.
        size = len(chunk)
        if self.is_idle and chunk.find(b"\n") == size - 1 and size <= self._longest and size <= self.room:
            line = chunk.strip()
            if line.endswith(_ENDS):
                self.room -= size
                self._has_begun = True
                return [(line, None)]
        frames = super().decode(chunk)
        self.is_idle = self._head is None and self.is_between_events
        return frames

    @property
    def is_between_events(self) -> bool:
        """Whether the next bytes are read as if nothing had come before."""
        return self._has_begun and self._document is None and not (self.tail or self._failure)

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
        if not self._has_begun:
            lines = list(dropwhile(_is_blank, lines))
            if not lines:
                return
            self._has_begun = True
            if not lines[0].rstrip().endswith(_ENDS):
                self._document = BodyDecoder(self.limits)
                self._document.read(b"\n".join([*lines, b""]), frames)
                return
        frames += zip(filter(None, map(bytes.strip, lines)), repeat(None))  # endless

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._document is not None:
            self._document.finish(frames)
        elif last_line := self.tail.strip():
            frames.append((bytes(last_line), None))
        self.tail.clear()


_ENDS: Final = (b"}", b"]")


def _has_line_end(data: bytes) -> bool:
    return LF in data or CR in data


def _is_blank(line: bytes) -> bool:
    return not line or line.isspace()


# ------------------------------------------------------------------------------------- sse
# Server-sent events on bytes, after the WHATWG HTML standard, section 9.2 ("Server-sent events").


class SSEDecoder(LineDecoder):
    r"""
    Decode ``text/event-stream`` (WHATWG HTML, section 9.2.6, "Interpreting an event stream").

    Lines end with ``\r\n``, ``\n`` or ``\r``, comments and unknown fields are ignored, ``data:`` lines
    are joined with ``\n``, and a blank line dispatches the event if it has any. ``[DONE]`` is a frame like
    any other. Data stays bytes; in names invalid UTF-8 becomes U+FFFD. ``id`` and ``retry`` are ignored, too. They are for
    reconnecting, which cannot continue a model's answer.

    Beyond the standard, an event that has data but no blank line after it is dispatched at
    :meth:`flush`: servers end their streams so, and its loss would be silent. A field ``error``, as llama.cpp sends it,
    is a frame of its own: the object ``{"error": …}`` around its value, which is JSON, or else text.

    Args:
        limits: ``line_bytes`` applies to each line and to the data of each event.

    Raises:
        LineTooLongError: a line, or the joined data of an event, is longer than ``line_bytes``.
        StreamTooLargeError: the stream is longer than ``total_bytes``.
    """

    before_data = (b"\ndata: ", b"\ndata:")
    behind_data = (b"\n\n", b"\r\n\r\n")

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self._longest = limits.line_bytes
        self._last_name: tuple[bytes, str | None] = (b"", None)  # most events of a stream have one name
        self._is_after_cr = False
        self._held_bytes = b""  # complete lines of an incomplete event, before the tail
        # The fields of the event that is being read.
        self._data: list[bytes] = []
        self._size = 0
        self._event_name: str | None = None

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
        # A server that flushes each event sends it as one chunk, which needs no line loop.
        size = len(chunk)
        if self.is_idle and size <= self._longest and size <= self.room:
            start, name = (6, None) if chunk.startswith(b"data: ") else self._start_of_data(chunk)
            if chunk.endswith(b"\n\n"):
                is_one_event = chunk.find(b"\n", start) == size - 2 and CR not in chunk
                end = size - 2
            else:  # Google's line ends
                end = size - 4
                is_one_event = chunk.find(b"\r", start) == end and chunk.find(b"\n", start) == size - 3
                is_one_event = is_one_event and chunk.endswith(b"\r\n\r\n")
            if is_one_event:
                self.room -= size
                return [(chunk[start:end], name)] if start > 1 else []
        return super().decode(chunk)

    def _start_of_data(self, chunk: bytes) -> tuple[int, str | None]:
        """Where the data of *chunk* begins, and the name above it. 1 for a comment, and the end for anything else."""
        if chunk.startswith(b"data:"):
            return 5, None
        if chunk.startswith(b":"):
            return 1, None
        if chunk.startswith(b"event: "):
            end = chunk.find(b"\n")
            if chunk.startswith(b"data: ", end + 1) and CR not in chunk:
                name_bytes = chunk[7:end]
                if name_bytes != self._last_name[0]:
                    self._last_name = name_bytes, name_bytes.decode("utf-8", "replace") or None
                return end + 7, self._last_name[1]
        return len(chunk), None

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        self.is_idle = False  # also where this fails
        # A \r ends its line at once, since waiting for a \n might hold a live event back.
        if self._is_after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._is_after_cr = chunk.endswith(b"\r")
        if CR in chunk:
            # On bytes, splitlines knows the standard's three line ends and no others.
            lines = chunk.splitlines()
            if chunk.endswith((b"\r", b"\n")):
                lines.append(b"")
            chunk = b"\n".join(lines)
        super().read(chunk, frames)
        self.is_idle = self.is_between_events

    @property
    def is_between_events(self) -> bool:
        """Whether the next bytes are read as if nothing had come before."""
        has_begun = self.tail or self._held_bytes or self._data or self._event_name is not None
        return not (has_begun or self._is_after_cr or self._failure)

    def _take_lines(self, text: bytes, frames: list[Frame]) -> bytes:
        if self._held_bytes:
            text, self._held_bytes = self._held_bytes + text, b""
        if not self._data and self._event_name is None and len(text) <= self.limits.line_bytes:
            earlier_count = len(frames)
            if text.startswith(b"data: "):
                text = self._take_plain_events(text, frames)
            elif text.startswith(b"event: "):
                text = self._take_named_events(text, frames)
            if len(frames) > earlier_count:
                # No event is complete in what is left of so many: with the rest of its lines it may be another such one.
                end = text.rfind(b"\n") + 1
                self._held_bytes = text[:end]
                return text[end:]
        return super()._take_lines(text, frames)

    def _take_plain_events(self, text: bytes, frames: list[Frame]) -> bytes:
        r"""
        Read the one shape that nearly all servers send, in C, and give what is left of *text*.

        It is ``data: {...}\n\n`` over and over: when no ``\n`` is left between the separators, what is
        left are the events. Anything else is for the line loop.
        """
        end = text.rfind(b"\n\n")
        if end < 0:
            return text
        events = text[6:end].split(b"\n\ndata: ")
        if LF in b"".join(events):
            return text
        frames += zip(events, repeat(None))  # endless
        return text[end + 2 :]

    def _take_named_events(self, text: bytes, frames: list[Frame]) -> bytes:
        r"""The same for ``event: name\ndata: {...}\n\n``: one ``\n`` in each event, before its data."""
        end = text.rfind(b"\n\n")
        if end < 0:
            return text
        name_end = text.find(b"\ndata: ", 0, end)
        name = text[7:name_end]
        if name_end > 0 and LF not in name:
            # Most often a whole read is of one name.
            head = text[: name_end + 7]
            events = text[name_end + 7 : end].split(b"\n\n" + head)
            if LF not in b"".join(events):
                frames += zip(events, repeat(name.decode("utf-8", "replace") or None))  # endless
                return text[end + 2 :]
        events = text[:end].split(b"\n\n")
        names, separators, data = zip(*[event.partition(b"\ndata: ") for event in events], strict=True)
        if not all(separators) or [event for event in data if LF in event]:
            return text
        decoded_names = {name: name[7:].decode("utf-8", "replace") or None for name in {*names}}
        if not all(name.startswith(b"event: ") and LF not in name for name in decoded_names):
            return text
        frames += zip(data, map(decoded_names.__getitem__, names), strict=True)
        return text[end + 2 :]

    def read_lines(self, lines: list[bytes], frames: list[Frame]) -> None:
        """Return the frames that *lines* complete, see :class:`LineDecoder`."""
        data = self._data
        for line in lines:
            if not line:
                if data:
                    frames.append((b"\n".join(data), self._event_name))
                    data.clear()
                self._event_name = None
            elif not data and line.startswith(b"data: "):
                data.append(line[6:])
                self._size = len(line) - 6
            elif line.startswith(b"event: "):
                self._event_name = line[7:].decode("utf-8", "replace") or None
            elif line.startswith(b"error:"):
                frames.append((_error_of(line[6:].strip()), self._event_name))
            else:
                self._read_field(line)

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add_data(value)
        elif name == b"event":
            self._event_name = value.decode("utf-8", "replace") or None

    def _add_data(self, value: bytes) -> None:
        self._size = self._size + 1 + len(value) if self._data else len(value)
        if self._size > self.limits.line_bytes:
            raise self.too_long("the data of one event")
        self._data.append(value)

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._held_bytes:
            held_bytes, self._held_bytes = self._held_bytes, b""
            super()._take_lines(held_bytes, frames)
        # Only data of a truncated line is used, because half a name or id would be wrong.
        if self.tail.startswith((b"data:", b"error:")):
            self.read_lines([bytes(self.tail)], frames)
        self.tail.clear()
        self.read_lines([b""], frames)


def _error_of(value: bytes) -> bytes:
    """The JSON object around the *value* of a field ``error``."""
    if value.startswith(b"{") and value.endswith(b"}"):
        return b'{"error":' + value + b"}"
    return dump_json({"error": value.decode("utf-8", "replace")})


class TextEventDecoder(SSEDecoder):
    """
    Decode server-sent events, some of them with text instead of JSON.

    The data of such an event comes out as the JSON object ``{"data": text}``, for any text, also
    ``[DONE]``, or a text that is JSON. All other events are as in :class:`SSEDecoder`.

    Args:
        limits: as for :class:`SSEDecoder`.
        names: the names of the events that carry text.

    Raises:
        FramingError: a text is not UTF-8, or as for :class:`SSEDecoder`.
    """

    def __init__(self, limits: Limits, names: Collection[str]) -> None:
        super().__init__(limits)
        self._names = frozenset(names)

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
        return PushDecoder.decode(self, chunk)

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        raw_frames: list[Frame] = []
        try:
            super().read(chunk, raw_frames)
        finally:
            frames.extend(map(self._as_json, raw_frames))

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        raw_frames: list[Frame] = []
        super().finish(raw_frames)
        frames.extend(map(self._as_json, raw_frames))

    def _as_json(self, frame: Frame) -> Frame:
        data, name = frame
        if name not in self._names:
            return frame
        try:
            return dump_json({"data": data.decode()}), name
        except UnicodeDecodeError:
            failure = FramingError("the text of an event is not UTF-8")
        raise failure  # out here it does not carry the text along


# ----------------------------------------------------------------------------------- sniff
# Find out by the first bytes how an input is framed: servers answer in another framing than asked.


Framing = Literal["sse", "ndjson", "json"]
"""The framing of an answer: server-sent events, a line of JSON each, or one body."""

_SSE_STARTS = (b":", b"data:", b"event:", b"id:", b"retry:", b"error:")
_SSE_FIELDS = tuple(start[:-1] for start in _SSE_STARTS[1:-1])
_LONGEST_START = max(map(len, _SSE_STARTS))
_MAX_ASKED_BYTES: Final = 4096
"""With so many bytes a provider's own framing must know whether an answer is in it."""


class SniffingDecoder(PushDecoder):
    """
    Choose the framing by the first bytes after a byte order mark and whitespace, then decode with it.

    ``{`` is newline-delimited JSON, of which a single object is the shortest case, and ``[`` is one JSON
    body. A line that begins with ``data:``, ``event:``, ``id:``, ``retry:``, ``error:`` or ``:``, or is just
    the name of one of the standard's fields, is SSE. Anything else, such as a proxy's page of HTML, is one body.
    Whitespace before all of this is dropped: some servers send blank lines to keep a connection alive.

    Args:
        limits: as in the decoder that is chosen.
        own: asked first, with the first bytes, for a framing that only one provider has; with 4096 bytes, or all of a
            shorter answer, "need more" counts as ``None``.
        content_type: passed to *own*.
        text_events: the names of server-sent events with text as data. They come out as ``{"data": …}``.

    Attributes:
        framing: ``"sse"``, ``"ndjson"`` or ``"json"`` (one body with any content), or ``None`` while there
            are too few bytes.

    Raises:
        LineTooLongError: as in the decoder that is chosen.
        StreamTooLargeError: the input is longer than ``total_bytes``.
    """

    def __init__(
        self,
        limits: Limits = DEFAULT,
        own: CustomFraming | None = None,
        *,
        content_type: str = "",
        text_events: Collection[str] = (),
    ) -> None:
        super().__init__(limits)
        self._own_framing = own
        self._content_type = content_type
        self._text_events = text_events
        self._own_decoder: Decoder | None = None
        self.framing: Framing | None = None
        self._chosen_decoder: PushDecoder | None = None
        self._start = b""  # of the first line that is not blank: at most a field's name
        self._is_indented = False  # whether whitespace stood before it on its line

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
        if self._chosen_decoder is not None and self._failure is None:
            return self._chosen_decoder.decode(chunk)  # which counts on
        if self._head == b"" and self._own_framing is None and type(chunk) is bytes:
            if chunk.startswith((b"data: ", b"event: ")):
                return self._choose("sse").decode(chunk)  # most of all streams
            if chunk.startswith(b"{"):
                return self._choose("ndjson").decode(chunk)
        return super().decode(chunk)

    @property
    def direct(self) -> PushDecoder:
        """The decoder that was chosen, once there is one."""
        return self if self._chosen_decoder is None or self._failure is not None else self._chosen_decoder

    def flush(self) -> list[Frame]:
        """Take the end of the input and return the remaining frames, see :class:`Decoder`."""
        if self._chosen_decoder is None or self._failure is not None:
            return super().flush()
        return self._chosen_decoder.flush()

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        if self._own_decoder is not None:
            frames += self._own_decoder.decode(chunk)
            return
        chunk = self._without_whitespace(self._start + chunk)
        if chunk and self._own_framing is not None:
            own_decoder = self._own_framing(chunk, self.limits, self._content_type)
            if isinstance(own_decoder, NeedMore) and len(chunk) < _MAX_ASKED_BYTES:
                self._start = chunk
                return
            self._own_framing = None
            if own_decoder is not None and not isinstance(own_decoder, NeedMore):
                self._own_decoder, self._start = own_decoder, b""
                frames += own_decoder.decode(chunk)
                return
        framing = _framing_of(chunk, indented=self._is_indented)
        if framing is None:
            self._start = chunk
        else:
            self._choose(framing).read(chunk, frames)

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._own_decoder is not None:
            frames += self._own_decoder.flush()
            return
        if self._chosen_decoder is None and self._start:
            framing = _framing_of(self._start, indented=self._is_indented)
            self._choose(framing or "json").read(self._start, frames)
        if self._chosen_decoder is not None:
            self._chosen_decoder.finish(frames)

    def _choose(self, framing: Framing) -> PushDecoder:
        self.framing = framing
        decoder: PushDecoder
        if framing == "sse":
            names = self._text_events
            decoder = TextEventDecoder(self.limits, names) if names else SSEDecoder(self.limits)
        else:
            decoder = NDJSONDecoder(self.limits) if framing == "ndjson" else BodyDecoder(self.limits)
        self._chosen_decoder = decoder
        decoder.room, decoder._head = self.room, None
        decoder.is_idle = self._head == b""  # nothing has come before
        return decoder

    def _without_whitespace(self, text: bytes) -> bytes:
        start = text.lstrip()
        if whitespace := text[: len(text) - len(start)]:
            self._is_indented = not whitespace.endswith((b"\n", b"\r"))
        return start


def _framing_of(start: bytes, *, indented: bool) -> Framing | None:
    """Return the framing of an input by the *start* of its first line with content, or ``None`` if too short."""
    if start.startswith(b"{"):
        return "ndjson"
    if start.startswith(b"[") or (start and indented):
        return "json"
    if start.startswith(_SSE_STARTS):
        return "sse"
    if any(sse_start.startswith(start) for sse_start in _SSE_STARTS):
        return None
    # One byte more than the longest field's name shows whether the line holds just that name.
    return "sse" if start[:_LONGEST_START].splitlines()[0] in _SSE_FIELDS else "json"


# ------------------------------------------------------------------------------ surrogates
# Halves of surrogate pairs: JSON allows them (RFC 8259, section 8.2), and servers cut a character in two.
#
# A server that streams UTF-16 code units ends a text in one event with ``\ud83d`` and goes on with ``\ude00`` in a
# later
# one. Until then this event and those after it wait. A half without its other half becomes U+FFFD.


REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MOST_WAITING: Final = 32


@attrs.define(eq=False)
class HeldEvent:
    """An event that waits.

    Attributes:
        event: the event, decoded.
        name: its SSE name.
        source: its original bytes or object.
        open_strings: the number of its strings that end with the first half of a pair.
    """

    event: Any
    name: str | None
    source: Any
    open_strings: int = 0


class HalfBuffer:
    """Holds events back, in their order, while a string of the first one ends with the first half of a pair.

    The next text at the same path has the other half, or nothing has. At most 32 events wait.

    Attributes:
        waiting: these events.
    """

    def __init__(self) -> None:
        self.waiting: list[HeldEvent] = []
        self._open_halves: dict[tuple[Any, ...], tuple[HeldEvent, Any, Any]] = {}

    def push(self, event: Any, name: str | None, source: Any) -> list[HeldEvent]:
        """Return the events that the next *event* completes. A second half goes to the event with the first."""
        held_event = HeldEvent(event, name, source)
        self.waiting.append(held_event)
        for container, key, path in [*_strings(event)]:
            text = container[key]
            if path in self._open_halves and text:
                earlier_event, holder, position = self._open_halves.pop(path)
                earlier_event.open_strings -= 1
                if _is_second(text[0]):
                    holder[position] = _whole(holder[position] + text[0])
                    container[key] = text = text[1:]
            if _is_first(text[-1:]):
                self._open_halves[path] = held_event, container, key
                held_event.open_strings += 1
        if len(self.waiting) > _MOST_WAITING:
            return self.flush()
        first_waiting = next(
            (position for position, one in enumerate(self.waiting) if one.open_strings), None
        )
        complete_events, self.waiting = (
            self.waiting[:first_waiting],
            [] if first_waiting is None else self.waiting[first_waiting:],
        )
        return complete_events

    def flush(self) -> list[HeldEvent]:
        """All events that wait: no other half has come."""
        self._open_halves.clear()
        waiting_events, self.waiting = self.waiting, []
        return waiting_events


def load_with_halves(data: bytes) -> Any:
    """The value of JSON in which halves of pairs stay as they are.

    Raises:
        ValueError: it is not JSON, or has a half in a key.
        RecursionError: it is nested too deeply.
    """
    return json.loads(data.decode(), parse_constant=_refuse, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, _ in pairs:
        key.encode()
    return dict(pairs)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def mend_halves(event: Any) -> bool:
    """Replace each half without its other half. Return whether there was one."""
    has_halves = False
    for holder, key, _ in [*_strings(event)]:
        text = holder[key]
        try:
            text.encode()
        except UnicodeEncodeError:
            holder[key] = _whole(text)
            has_halves = True
    return has_halves


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_first(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def _is_second(character: str) -> bool:
    return "\udc00" <= character <= "\udfff"


def _strings(value: Any) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Each string in *value*, as its container, its key there, and its path.

    If an object has an index, like choices, calls and blocks, the path has it in place of the position.
    """
    stack: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while stack:
        container, path = stack.pop()
        if type(container) is dict:
            items: Any = container.items()
            indexes = [item for item in items if type(item[1]) is int and item[0][-5:].lower() == "index"]
            if indexes:
                path = (*path[:-1], *indexes) if path and type(path[-1]) is int else (*path, *indexes)
        elif type(container) is list:
            items = enumerate(container)
        else:
            continue
        for key, item in items:
            if type(item) is str:
                yield container, key, (*path, key)
            else:
                stack.append((item, (*path, key)))


# ----------------------------------------------------------------------------------- looks
# Describes bytes that are not JSON, for error messages.


_SIGNATURES: Final = (
    (b"\x1f\x8b", "gzip, to be unpacked first"),
    (b"\x28\xb5\x2f\xfd", "zstd, to be unpacked first"),
    (b"BZh", "bzip2, to be unpacked first"),
    (b"\xfd7zXZ\x00", "xz, to be unpacked first"),
    (b"PK\x03\x04", "a ZIP archive, to be unpacked first"),
    (b"%PDF-", "a PDF"),
    (b"PAR1", "Parquet"),
    (b"\xff\xfe", "UTF-16, to be written as UTF-8"),
    (b"\xfe\xff", "UTF-16, to be written as UTF-8"),
)
_ZLIB_SIGNATURES: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_HTTP: Final = pattern(rb"HTTP/[0-9.]+ [0-9]{3}|[A-Za-z-]{2,40}: [^\r\n]*\r\n[A-Za-z-]{2,40}: ")
_HTML: Final = pattern(rb"<(?:!doctype html|html|head|body|!--)", 0x2)  # whatever the case
_BASE64: Final = pattern(rb"(?:[A-Za-z0-9+/_-]{4}){6,}[A-Za-z0-9+/_-]*={0,2}\s*")


def looks_like(data: bytes) -> str | None:
    """Return a short description of *data* with advice, or ``None`` if nothing is recognized.

    It quotes no data. Pass only data that is not JSON.
    """
    start = data[:1024]
    for signature, name in _SIGNATURES:
        if start.startswith(signature):
            return name
    if start.startswith(_ZLIB_SIGNATURES):
        return "zlib (deflate), to be unpacked first"
    if b"\0" in start[:4] and start[:200].count(b"\0") * 3 > len(start[:200]):
        return "UTF-16, to be written as UTF-8"
    stripped_start = start.lstrip()
    if _HTTP.match(stripped_start):
        return "HTTP headers before a body"
    if _HTML.match(stripped_start):
        return "HTML, a page of a proxy perhaps"
    if stripped_start.startswith(b"<"):
        return "XML"
    if _BASE64.fullmatch(stripped_start):
        return "base64, to be decoded first"
    if stripped_start.startswith((b"{", b"[", b"data:")):
        try:
            data.decode()
        except UnicodeDecodeError as error:
            if error.end < len(data):  # not only cut in a character
                return "text in another encoding, such as Latin-1, to be written as UTF-8"
    return None


# ---------------------------------------------------------------------------------- events
# From a frame's bytes to a parsed event: JSON within limits, with every failure typed.


Halves: TypeAlias = Literal["refuse", "keep", "mend"]
"""How to treat half of a surrogate pair, see :func:`load_event`."""

# How deep orjson itself goes.
ORJSON_READ_DEPTH = 1024
ORJSON_WRITE_DEPTH = 254

_SHORT_LENGTH = 4_096
"""Up to here counting brackets takes less time than looking for the few containers of a long text."""

# Possessive, so that a hostile string costs no memory. A truncated string counts to its end.
_STRUCTURE = pattern(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def load_event(
    data: bytes, limits: Limits = DEFAULT, *, place: str | None = None, halves: Halves = "refuse"
) -> Any:
    """
    Parse one frame, or one whole body, as JSON.

    Invalid JSON such as ``NaN`` is refused. An error never quotes the payload.

    Args:
        data: the JSON text in UTF-8, without a byte order mark.
        limits: ``line_bytes`` and ``depth`` apply.
        place: the position in the input, for the error's ``place``. ``None`` leaves it to
            :meth:`crosswalk.errors.MappingError.locate`.
        halves: how to treat half of a surrogate pair: ``"refuse"`` the JSON, ``"keep"`` the half, or ``"mend"`` it
            to U+FFFD.

    Returns:
        The values of ``orjson.loads``: dicts, lists, strings, numbers, booleans and ``None``. Integers of any
        length keep all digits.

    Raises:
        InvalidJSONError: it is not JSON or not UTF-8. ``offset`` is the byte at which reading failed.
        LineTooLongError: it is longer than ``limits.line_bytes``.
        NestingTooDeepError: it is nested deeper than ``limits.depth``, or than the 1024 of orjson.
    """
    if len(data) > limits.line_bytes:
        raise LineTooLongError(
            f"the event is longer than {limits.line_bytes} bytes",
            limit=limits.line_bytes,
            place=place,
        )
    try:
        event = load_json(data)
    except orjson.JSONDecodeError as error:
        if halves != "refuse" and "surrogate" in error.msg:
            try:
                event = load_with_halves(data)
            except (ValueError, RecursionError):
                pass
            else:
                if _is_flat(limits.depth, event):
                    if halves == "mend":
                        mend_halves(event)
                    return event
        failure = _failure(data, error, limits, place)
    else:
        # Each level takes two bytes, so most frames are too short to be too deep, and most bodies have too few brackets.
        if (
            len(data) <= 2 * limits.depth
            or (len(data) <= _SHORT_LENGTH and data.count(b"{") + data.count(b"[") <= limits.depth)
            or _is_within(limits.depth, event, data)
        ):
            return event
        failure = _too_deep(limits.depth, place)
    # Raised out here, the error does not carry along orjson's, which holds the payload.
    raise failure


def _is_within(depth: int, event: Any, data: bytes) -> bool:
    """Tell whether *event*, parsed from *data*, is nested at most *depth* levels deep."""
    if _has_few_containers(event, depth) or data.count(b"{") + data.count(b"[") <= depth:
        return True
    # Writing it out again tells the same as walking it, in C and in a fifth of the time: orjson refuses what is
    # deeper than its own limit, and the arrays around the event bring that limit down to ours.
    wrapped = event
    for _ in range(ORJSON_WRITE_DEPTH - depth):
        wrapped = [wrapped]
    if depth <= ORJSON_WRITE_DEPTH:
        try:
            dump_json(wrapped)
        except TypeError:
            return False
        return True
    return _is_flat(depth, event)


def _is_flat(depth: int, event: Any) -> bool:
    """Tell whether *event* is nested at most *depth* levels deep, level by level."""
    level = _containers([event])
    while level and depth:
        depth -= 1
        level = _containers(
            child for parent in level for child in (parent.values() if type(parent) is dict else parent)
        )
    return not level


def _has_few_containers(event: Any, limit: int) -> bool:
    """Return whether *event* has fewer than *limit* objects and arrays. ``False`` also if counting takes long.

    The commonest long event is a text: its few containers are found faster than its brackets are counted.
    """
    containers = _containers([event])
    for container in containers:
        if len(containers) > limit or len(container) > limit:
            return False
        containers += _containers(container.values() if type(container) is dict else container)
    return True


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) is dict or type(value) is list]


def _failure(data: bytes, error: orjson.JSONDecodeError, limits: Limits, place: str | None) -> FramingError:
    offset = _byte_offset(data, error)
    depth = min(limits.depth, ORJSON_READ_DEPTH)
    if _is_deeper(depth, data, offset):
        return _too_deep(depth, place)
    cause = f"not JSON at byte {offset}: {error.msg}"
    likeness = None
    if offset <= 1:
        likeness = looks_like(data)
    return InvalidJSONError(
        f"{cause}; it looks like {likeness}" if likeness else cause, offset=offset, place=place
    )


def _too_deep(depth: int, place: str | None) -> NestingTooDeepError:
    return NestingTooDeepError(f"the event is nested deeper than {depth} levels", limit=depth, place=place)


def _byte_offset(data: bytes, error: orjson.JSONDecodeError) -> int:
    try:
        text = data.decode()
    except UnicodeDecodeError as not_utf8:
        return not_utf8.start
    return len(text[: error.pos].encode())


def _is_deeper(depth: int, data: bytes, end: int) -> bool:
    """Tell whether *data*, which is not JSON from *end* on, is nested deeper than *depth* before it."""
    level = 0
    for token in _STRUCTURE.finditer(data, 0, end):
        mark = data[token.start()]
        if mark in b"[{":
            level += 1
            if level > depth:
                return True
        elif mark in b"]}":
            level -= 1
    return False
