"""Server-sent events on bytes, after the WHATWG HTML standard, section 9.2 ("Server-sent events")."""

from __future__ import annotations

from collections.abc import Collection
from itertools import repeat

from crosswalk.errors import FramingError
from crosswalk.types.json import dump_json
from crosswalk.wire.framing import CR, LF, Frame, LineDecoder, PushDecoder
from crosswalk.wire.limits import DEFAULT, Limits


class SSEDecoder(LineDecoder):
    r"""
    Decode ``text/event-stream`` (WHATWG HTML, section 9.2.6, "Interpreting an event stream").

    Lines end with ``\r\n``, ``\n`` or ``\r``, comments and unknown fields are ignored, ``data:`` lines
    are joined with ``\n``, and a blank line dispatches the event if it has any. ``[DONE]`` is a frame like
    any other. Data stays bytes; in names invalid UTF-8 becomes U+FFFD. ``id`` and ``retry`` are ignored, too. They are for
    reconnecting, which cannot continue a model's answer.

    Beyond the standard, an event that has data but no blank line after it is dispatched at
    :meth:`flush`: servers end their streams so, and its loss would be silent.

    Args:
        limits: ``line_bytes`` applies to each line and to the data of each event.

    Raises:
        LineTooLongError: a line, or the joined data of an event, is longer than ``line_bytes``.
        StreamTooLargeError: the stream is longer than ``total_bytes``.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self._longest = limits.line_bytes
        self._is_idle = False  # whether the next bytes are read as if nothing had come before
        self._last_name: tuple[bytes, str | None] = (b"", None)  # most events of a stream have one name
        self._after_cr = False
        self._held = b""  # complete lines of an incomplete event, before the tail
        # The fields of the event that is being read.
        self._data: list[bytes] = []
        self._size = 0
        self._event: str | None = None

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
        # A server that flushes each event sends it as one chunk, which needs no line loop.
        size = len(chunk)
        if self._is_idle and size <= self._longest and size <= self.room:
            start, name = self._start_of_data(chunk)
            if chunk.endswith(b"\n\n"):
                is_one_event = chunk.find(b"\n", start) == size - 2 and CR not in chunk
                end = size - 2
            else:  # Google's line ends
                end = size - 4
                is_one_event = chunk.find(b"\r", start) == end and chunk.find(b"\n", start) == size - 3
                is_one_event = is_one_event and chunk.endswith(b"\r\n\r\n")
            if is_one_event:
                self.room -= size
                return [(chunk[start:end], name)]
        return super().decode(chunk)

    def _start_of_data(self, chunk: bytes) -> tuple[int, str | None]:
        """Where the data of *chunk* begins, and the name above it. It begins at the end if *chunk* is anything else."""
        if chunk.startswith(b"data:"):
            return 6 if chunk.startswith(b" ", 5) else 5, None
        if chunk.startswith(b"event: "):
            end = chunk.find(b"\n")
            if chunk.startswith(b"data: ", end + 1) and CR not in chunk:
                written = chunk[7:end]
                if written != self._last_name[0]:
                    self._last_name = written, written.decode("utf-8", "replace") or None
                return end + 7, self._last_name[1]
        return len(chunk), None

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        self._is_idle = False  # also where this fails
        # A \r ends its line at once, since waiting for a \n might hold a live event back.
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        if CR in chunk:
            # On bytes, splitlines knows the standard's three line ends and no others.
            lines = chunk.splitlines()
            if chunk.endswith((b"\r", b"\n")):
                lines.append(b"")
            chunk = b"\n".join(lines)
        super().read(chunk, frames)
        self._is_idle = self.is_between_events

    @property
    def is_between_events(self) -> bool:
        """Whether the next bytes are read as if nothing had come before."""
        begun = self.tail or self._held or self._data or self._event is not None
        return not (begun or self._after_cr or self._failure)

    def _take_lines(self, text: bytes, frames: list[Frame]) -> bytes:
        if self._held:
            text, self._held = self._held + text, b""
        if not self._data and self._event is None and len(text) <= self.limits.line_bytes:
            before = len(frames)
            if text.startswith(b"data: "):
                text = self._take_plain_events(text, frames)
            elif text.startswith(b"event: "):
                text = self._take_named_events(text, frames)
            if len(frames) > before:
                # No event is complete in what is left of so many: with the rest of its lines it may be another such one.
                end = text.rfind(b"\n") + 1
                self._held = text[:end]
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
        first = text.find(b"\ndata: ", 0, end)
        name = text[7:first]
        if first > 0 and LF not in name:
            # Most often a whole read is of one name.
            head = text[: first + 7]
            events = text[first + 7 : end].split(b"\n\n" + head)
            if LF not in b"".join(events):
                frames += zip(events, repeat(name.decode("utf-8", "replace") or None))  # endless
                return text[end + 2 :]
        events = text[:end].split(b"\n\n")
        names, separators, data = zip(*[event.partition(b"\ndata: ") for event in events], strict=True)
        if not all(separators) or [event for event in data if LF in event]:
            return text
        decoded = {name: name[7:].decode("utf-8", "replace") or None for name in {*names}}
        if not all(name.startswith(b"event: ") and LF not in name for name in decoded):
            return text
        frames += zip(data, map(decoded.__getitem__, names), strict=True)
        return text[end + 2 :]

    def read_lines(self, lines: list[bytes], frames: list[Frame]) -> None:
        """Return the frames that *lines* complete, see :class:`LineDecoder`."""
        data = self._data
        for line in lines:
            if not line:
                if data:
                    frames.append((b"\n".join(data), self._event))
                    data.clear()
                self._event = None
            elif not data and line.startswith(b"data: "):
                data.append(line[6:])
                self._size = len(line) - 6
            elif line.startswith(b"event: "):
                self._event = line[7:].decode("utf-8", "replace") or None
            else:
                self._read_field(line)

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add_data(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace") or None

    def _add_data(self, value: bytes) -> None:
        self._size = self._size + 1 + len(value) if self._data else len(value)
        if self._size > self.limits.line_bytes:
            raise self.too_long("the data of one event")
        self._data.append(value)

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._held:
            buffered, self._held = self._held, b""
            super()._take_lines(buffered, frames)
        # Only data of a truncated line is used, because half a name or id would be wrong.
        if self.tail.startswith(b"data:"):
            self.read_lines([bytes(self.tail)], frames)
        self.tail.clear()
        self.read_lines([b""], frames)


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
        results: list[Frame] = []
        try:
            super().read(chunk, results)
        finally:
            frames.extend(map(self._as_json, results))

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        results: list[Frame] = []
        super().finish(results)
        frames.extend(map(self._as_json, results))

    def _as_json(self, frame: Frame) -> Frame:
        data, name = frame
        if name not in self._names:
            return frame
        try:
            return dump_json({"data": data.decode()}), name
        except UnicodeDecodeError:
            failure = FramingError("the text of an event is not UTF-8")
        raise failure  # out here it does not carry the text along
