"""``application/vnd.amazon.eventstream``, the binary framing of Bedrock's streams, through botocore's parser (section 1).

botocore is an optional requirement, imported when a decoder is made. The ``bedrock`` provider reads this framing by
itself; :func:`events` gives what another provider's ``normalize_stream`` takes::

    normalize_stream(chunks, "bedrock")  # ConverseStream
    normalize_stream(events(chunks), "anthropic")  # InvokeModelWithResponseStream of one of Anthropic's models
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Final

import orjson

from crosswalk.plugins import (
    ConfigurationError,
    CrosswalkError,
    IncompleteStreamError,
    Limits,
    LineTooLongError,
    StreamTooLargeError,
)
from crosswalk_bedrock.errors import EventStreamError

__all__ = ["EventStreamDecoder", "aevents", "events", "framing"]

_PRELUDE: Final = struct.Struct(">III")  # length of the message, length of its headers, checksum of the two
_SMALLEST: Final = 16  # the prelude and the checksum of the message
_LONGEST: Final = 24 * 2**20  # as botocore has it
_LONGEST_HEADERS: Final = 16 * 2**10  # real ones have a few hundred bytes


class EventStreamDecoder:
    """Turn the chunks of one stream into frames: each the bytes of an event, and the name of its type.

    The name of an exception ends in ``Exception``. What InvokeModelWithResponseStream wraps in its ``chunk`` comes out
    as the model's vendor wrote it, and without a name, as does an error of the framing, ``{"error": {"code", "message"}}``.

    Args:
        limits: ``line_bytes`` holds for each message, ``total_bytes`` for the stream.

    Raises:
        ConfigurationError: botocore is not installed.
        EventStreamError: from its methods, these bytes are no eventstream, or damaged.
        LineTooLongError: likewise, a message is longer than ``line_bytes``.
        StreamTooLargeError: likewise, the stream is longer than ``total_bytes``.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._parser = _botocore()
        self._limits = limits or Limits()
        self._room = self._limits.total_bytes
        self._buffer = bytearray()
        self._messages = 0
        self._failure: CrosswalkError | None = None

    def decode(self, chunk: bytes) -> list[tuple[bytes, str | None]]:
        """Take the next bytes, cut anywhere, and give the frames that they complete.

        What was complete before an error comes out first; the next call raises it.
        """
        if self._failure is not None:
            raise self._failure
        frames: list[tuple[bytes, str | None]] = []
        try:
            if len(chunk) > self._room:
                limit = self._limits.total_bytes
                raise StreamTooLargeError(f"the stream is longer than {limit} bytes", limit=limit)
            self._room -= len(chunk)
            self._buffer += chunk
            self._cut(frames)
        except CrosswalkError as error:
            self._failure = error
            if not frames:
                raise
        return frames

    def flush(self) -> list[tuple[bytes, str | None]]:
        """Take the end of the input: nothing may be left.

        Raises:
            IncompleteStreamError: the input ended inside a message.
        """
        if self._failure is not None:
            raise self._failure
        if self._buffer:
            raise IncompleteStreamError(
                "the input ended in the middle of a message", place=f"message {self._messages + 1}"
            )
        return []

    def _cut(self, frames: list[tuple[bytes, str | None]]) -> None:
        """Take the complete messages off the buffer, all at once: each alone would move the rest every time."""
        buffer, start = self._buffer, 0
        try:
            while len(buffer) - start >= _PRELUDE.size:
                end = start + self._length(start)
                if len(buffer) < end:
                    break
                message = bytes(memoryview(buffer)[start:end])
                self._messages += 1
                start = end
                frames.append(self._frame(message))
        finally:
            del buffer[:start]

    def _length(self, start: int) -> int:
        """The length of the message that begins at *start*, whose prelude is there and whole."""
        total, headers, checksum = _PRELUDE.unpack_from(self._buffer, start)
        place = f"message {self._messages + 1}"
        if binascii.crc32(bytes(memoryview(self._buffer)[start : start + 8])) != checksum:
            raise EventStreamError(
                "no eventstream, or a damaged one: the prelude's checksum fails", place=place
            )
        if total < _SMALLEST + headers or headers > _LONGEST_HEADERS:
            raise EventStreamError("lengths that cannot be", place=place)
        limit = min(self._limits.line_bytes, _LONGEST)
        if total > limit:
            raise LineTooLongError(f"a message is longer than {limit} bytes", limit=limit, place=place)
        return int(total)

    def _frame(self, message: bytes) -> tuple[bytes, str | None]:
        place = f"message {self._messages}"
        headers, payload = self._parse(message, place)
        kind = headers.get(":message-type")
        name = headers.get(f":{kind}-type")
        if kind == "error":
            about = {"code": headers.get(":error-code"), "message": headers.get(":error-message")}
            return orjson.dumps({"error": about}, default=str), None
        if kind not in ("event", "exception") or not isinstance(name, str):
            raise EventStreamError("a message that is no event, exception or error", place=place)
        return (_unwrapped(payload, place), None) if name == "chunk" else (payload, name)

    def _parse(self, message: bytes, place: str) -> tuple[dict[str, Any], bytes]:
        buffer = self._parser.EventStreamBuffer()
        buffer.add_data(message)
        try:
            parsed = buffer.next()
        except (self._parser.ParserError, struct.error, UnicodeDecodeError, KeyError) as error:
            cause = f"a damaged message ({type(error).__name__})"
            raise EventStreamError(cause, place=place) from None
        return parsed.headers, parsed.payload


def framing(start: bytes, limits: Limits) -> EventStreamDecoder | None:
    """The decoder for an answer whose first bytes are *start*; ``None`` where it is not binary.

    A message begins with its length, and the first one is short: with a byte of zero.
    """
    return EventStreamDecoder(limits) if start.startswith(b"\0") else None


def events(chunks: Iterable[bytes], limits: Limits | None = None) -> Iterator[bytes]:
    """The events of a binary stream, a line of JSON each, as SDKs give them: wrapped in the name of their type.

    Of an invoked model it is the vendor's own event. An exception is ``{"error": {"type": its name, …}}``.

    Args:
        chunks: the answer's bytes, cut anywhere.
        limits: how much input is accepted; ``None`` for the defaults.

    Raises:
        ConfigurationError: botocore is not installed.
        EventStreamError: these bytes are no eventstream, or damaged.
        IncompleteStreamError: they end inside a message.
        LimitError: they pass one of the *limits*.
    """
    decoder = EventStreamDecoder(limits)
    for chunk in chunks:
        for data, name in decoder.decode(chunk):
            yield _line(data, name)
    decoder.flush()


async def aevents(chunks: AsyncIterable[bytes], limits: Limits | None = None) -> AsyncIterator[bytes]:
    """:func:`events` for an asynchronous stream, for ``anormalize_stream``."""
    decoder = EventStreamDecoder(limits)
    async for chunk in chunks:
        for data, name in decoder.decode(chunk):
            yield _line(data, name)
    decoder.flush()


def _line(data: bytes, name: str | None) -> bytes:
    if name is not None:
        event = _loaded(data, f"the event {name[:60]!r}")
        if name.endswith("Exception"):
            about = event if isinstance(event, dict) else {"message": event}
            data = orjson.dumps({"error": {"type": name, **about}})
        else:
            data = b"{%b:%b}" % (orjson.dumps(name), data)
    return (
        data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
    )  # JSON has line ends between its tokens only


def _unwrapped(payload: bytes, place: str) -> bytes:
    """The vendor's event in ``{"bytes": base64}``."""
    event = _loaded(payload, place)
    encoded = event.get("bytes") if isinstance(event, dict) else None
    try:
        return binascii.a2b_base64(encoded, strict_mode=True)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise EventStreamError("a chunk without bytes in base64", place=place) from None


def _loaded(data: bytes, place: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise EventStreamError("a payload that is no JSON", place=place) from None


def _botocore() -> Any:
    try:
        import botocore.eventstream  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigurationError(
            "reading Bedrock's binary streams takes botocore: pip install 'crosswalk[bedrock]'"
        ) from None
    return botocore.eventstream
