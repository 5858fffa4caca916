"""From the bytes of a stream to its events; without I/O, the bytes come from the caller."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

from crosswalk.responses.events import ResponseStreamEvent
from crosswalk.responses.reading import OnUnknown, parse_event
from crosswalk.wire import Frame, Limits, SSEDecoder, is_done

__all__ = ["aread_events", "read_events"]


def read_events(
    chunks: Iterable[bytes], *, unknown: OnUnknown = "raise", limits: Limits | None = None
) -> Iterator[ResponseStreamEvent]:
    """The events of a stream of server-sent events, cut into *chunks* anywhere; each as soon as it is whole.

    Args:
        chunks: the bytes.
        unknown: what to do with an unknown type or word, see :func:`crosswalk.responses.parse`.
        limits: how much to read; ``None`` are the usual limits.

    Raises:
        UnknownTypeError: an event, or something in it, has a type that nobody registered.
        ResponsesParseError: something is no event.
        FramingError: something is not JSON, or passes a limit.
    """
    decoder = SSEDecoder(limits or Limits())
    for chunk in chunks:
        yield from _events(decoder.decode(chunk), unknown)
    yield from _events(decoder.flush(), unknown)


async def aread_events(
    chunks: AsyncIterable[bytes], *, unknown: OnUnknown = "raise", limits: Limits | None = None
) -> AsyncIterator[ResponseStreamEvent]:
    """The same for an asynchronous stream, see :func:`read_events`."""
    decoder = SSEDecoder(limits or Limits())
    async for chunk in chunks:
        for event in _events(decoder.decode(chunk), unknown):
            yield event
    for event in _events(decoder.flush(), unknown):
        yield event


def _events(frames: Iterable[Frame], unknown: OnUnknown) -> Iterator[ResponseStreamEvent]:
    # OpenAI sends no [DONE] here, and servers that follow it do; an empty frame keeps the connection alive.
    return (parse_event(data, unknown=unknown) for data, _ in frames if data and not is_done(data))
