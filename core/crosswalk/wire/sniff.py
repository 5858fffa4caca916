"""Find out by the first bytes how an input is framed: servers answer in another framing than asked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Literal

from crosswalk.wire.body import BodyDecoder
from crosswalk.wire.framing import CustomFraming, Decoder, Frame, NeedMore, PushDecoder
from crosswalk.wire.limits import DEFAULT, Limits
from crosswalk.wire.ndjson import NDJSONDecoder

Framing = Literal["sse", "ndjson", "json"]
"""The framing of an answer: server-sent events, a line of JSON each, or one body."""

_SSE_STARTS = (b":", b"data:", b"event:", b"id:", b"retry:")
_SSE_FIELDS = tuple(start[:-1] for start in _SSE_STARTS[1:])
_LONGEST_START = max(map(len, _SSE_STARTS))
_MOST_ASKED: Final = 4096
"""With so many bytes a provider's own framing must know whether an answer is in it."""


class SniffingDecoder(PushDecoder):
    """
    Choose the framing by the first bytes after a byte order mark and whitespace, then decode with it.

    ``{`` is newline-delimited JSON, of which a single object is the shortest case, and ``[`` is one JSON
    body. A line that begins with ``data:``, ``event:``, ``id:``, ``retry:`` or ``:``, or is just such a
    field's name, is SSE. Anything else, such as a proxy's page of HTML, is one body.
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
        self._own = own
        self._content_type = content_type
        self._text_events = text_events
        self._foreign: Decoder | None = None
        self.framing: Framing | None = None
        self._chosen: PushDecoder | None = None
        self._start = b""  # of the first line that is not blank: at most a field's name
        self._indented = False  # whether whitespace stood before it on its line

    def decode(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, see :class:`Decoder`."""
        if self._chosen is None or self._failure is not None:
            return super().decode(chunk)
        return self._chosen.decode(chunk)  # which counts on

    @property
    def direct(self) -> Callable[[bytes], list[Frame]]:
        """:meth:`decode` of the decoder that was chosen, once there is one."""
        return self.decode if self._chosen is None or self._failure is not None else self._chosen.decode

    def flush(self) -> list[Frame]:
        """Take the end of the input and return the remaining frames, see :class:`Decoder`."""
        if self._chosen is None or self._failure is not None:
            return super().flush()
        return self._chosen.flush()

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        if self._foreign is not None:
            frames += self._foreign.decode(chunk)
            return
        chunk = self._without_whitespace(self._start + chunk)
        if chunk and self._own is not None:
            own = self._own(chunk, self.limits, self._content_type)
            if isinstance(own, NeedMore) and len(chunk) < _MOST_ASKED:
                self._start = chunk
                return
            self._own = None
            if own is not None and not isinstance(own, NeedMore):
                self._foreign, self._start = own, b""
                frames += own.decode(chunk)
                return
        framing = _framing_of(chunk, indented=self._indented)
        if framing is None:
            self._start = chunk
        else:
            self._choose(framing).read(chunk, frames)

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._foreign is not None:
            frames += self._foreign.flush()
            return
        if self._chosen is None and self._start:
            framing = _framing_of(self._start, indented=self._indented)
            self._choose(framing or "json").read(self._start, frames)
        if self._chosen is not None:
            self._chosen.finish(frames)

    def _choose(self, framing: Framing) -> PushDecoder:
        self.framing = framing
        self._chosen = chosen = self._decoder_of(framing)
        chosen.room, chosen._head = self.room, None
        return chosen

    def _decoder_of(self, framing: Framing) -> PushDecoder:
        if framing == "sse":
            from crosswalk.wire.sse import SSEDecoder, TextEventDecoder  # a body needs none

            names = self._text_events
            return TextEventDecoder(self.limits, names) if names else SSEDecoder(self.limits)
        return NDJSONDecoder(self.limits) if framing == "ndjson" else BodyDecoder(self.limits)

    def _without_whitespace(self, text: bytes) -> bytes:
        start = text.lstrip()
        if whitespace := text[: len(text) - len(start)]:
            self._indented = not whitespace.endswith((b"\n", b"\r"))
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
