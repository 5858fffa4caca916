"""Parses the bytes of a stream into events. It does no I/O: you pass the bytes."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Final

from crosswalk.errors import FramingError, InvalidJSONError
from crosswalk.responses.errors import NotAStreamError, SnapshotError
from crosswalk.responses.events import ResponseStreamEvent
from crosswalk.responses.reading import OnUnknown, load_json, parse_event
from crosswalk.text import clean_message
from crosswalk.wire.framing import Frame, Limits, SSEDecoder, is_done


def read_events(
    chunks: Iterable[bytes], *, unknown: OnUnknown = "raise", limits: Limits | None = None
) -> Iterator[ResponseStreamEvent]:
    """Yield the events of a stream of server-sent events, each as soon as it is complete. *chunks* may end anywhere.

    Args:
        chunks: the bytes.
        unknown: how to treat an unknown type or word, see :func:`crosswalk.responses.parse`.
        limits: the limits of reading, or ``None`` for the usual ones.

    Raises:
        UnknownTypeError: an event, or something in it, has an unregistered type.
        ResponsesParseError: a frame is not an event.
        NotAStreamError: an error body, a whole response, HTML … came instead.
        SnapshotError: the stream ends inside an event.
        FramingError: something is not JSON, or passes a limit.
    """
    reader = _Reader(unknown, limits or Limits())
    for chunk in chunks:
        yield from reader.take(chunk)
    yield from reader.end()


async def aread_events(
    chunks: AsyncIterable[bytes], *, unknown: OnUnknown = "raise", limits: Limits | None = None
) -> AsyncIterator[ResponseStreamEvent]:
    """The same for an asynchronous stream, see :func:`read_events`."""
    reader = _Reader(unknown, limits or Limits())
    async for chunk in chunks:
        for event in reader.take(chunk):
            yield event
    for event in reader.end():
        yield event


class _Reader:
    """Parses bytes into events. It buffers the bytes until the first event, to describe other content in errors."""

    def __init__(self, unknown: OnUnknown, limits: Limits) -> None:
        self._unknown = unknown
        self._decoder = SSEDecoder(limits)
        self._head = bytearray()
        self._head_size = limits.line_bytes
        self._has_begun = False

    def take(self, chunk: bytes) -> Iterator[ResponseStreamEvent]:
        frames = self._decoder.decode(chunk)
        if frames:
            self._has_begun = True
            self._head.clear()
        elif not self._has_begun:
            self._head += chunk[: self._head_size - len(self._head)]
        return self._events(frames)

    def end(self) -> Iterator[ResponseStreamEvent]:
        frames = [frame for frame in self._decoder.flush() if not b"[DONE]".startswith(frame[0])]
        if not self._has_begun and not frames:
            _check_head(bytes(self._head))
        try:
            yield from self._events(frames)
            return
        except InvalidJSONError:
            pass
        # Raised out here, the error does not carry along its context.
        raise SnapshotError(
            "the stream ended inside an event, before the response did",
            event_type="stream",
            sequence_number=None,
        )

    def _events(self, frames: Iterable[Frame]) -> Iterator[ResponseStreamEvent]:
        # OpenAI sends no [DONE] here, but compatible servers do. An empty frame keeps the connection alive.
        return (parse_event(data, unknown=self._unknown) for data, _ in frames if data and not is_done(data))


_FIELDS: Final = (b"data", b"event", b"id", b"retry")


def _check_head(head: bytes) -> None:
    """Refuse content that is not a stream. An empty stream, comments and a truncated first event pass.

    Raises:
        NotAStreamError: the content is not a stream.
    """
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    name, colon, _ = head.partition(b"\n")[0].rstrip().partition(b":")
    if any(name == field if colon else field.startswith(name) for field in (b"", *_FIELDS)):
        return
    if head.startswith((b"{", b"[")):
        raise _json_problem(head)
    begin = clean_message(head[:400].decode(errors="replace"), 80)
    raise NotAStreamError("html" if head.startswith(b"<") else "text", begin)


def _json_problem(body: bytes) -> NotAStreamError:
    try:
        value = load_json(body)
    except FramingError:
        value = None
    if not isinstance(value, dict):
        return NotAStreamError("json")
    error = value.get("error")
    if error is None and (value.get("object") == "response" or "output" in value):
        return NotAStreamError("response")
    message = _message(value, error)
    return NotAStreamError("json" if error is None and message is None else "error", message)


def _message(value: dict[str, Any], error: Any) -> str | None:
    inside = error.get("message") if isinstance(error, dict) else error
    for raw in (inside, value.get("message"), value.get("detail")):
        if isinstance(raw, str):
            return clean_message(raw, 200)
    return None
