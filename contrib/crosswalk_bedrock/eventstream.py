"""What Bedrock needs botocore for: the framing of its streams (section 1), its address, and the signing of requests."""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from crosswalk.plugins import (
    ConfigurationError,
    Frame,
    FramingError,
    IncompleteStreamError,
    Limits,
    LineTooLongError,
    PushDecoder,
    Sign,
    Signed,
)

# ----------------------------------------------------------------------------- eventstream
# ``application/vnd.amazon.eventstream``, the binary framing of Bedrock's streams, through botocore's parser (section
# 1).
#
# botocore is an optional requirement, imported when a decoder is made. The ``bedrock`` provider reads this framing
# itself. :func:`events` converts it for another provider's ``normalize_stream``::
#
#     normalize_stream(chunks, "bedrock")  # ConverseStream
#     normalize_stream(events(chunks), "anthropic")  # InvokeModelWithResponseStream of one of Anthropic's models


_PRELUDE_FORMAT: Final = struct.Struct(
    ">III"
)  # length of the message, length of its headers, checksum of the two
_SMALLEST_MESSAGE: Final = 16  # the prelude and the checksum of the message
_LONGEST: Final = 24 * 2**20  # as botocore has it
_LONGEST_HEADERS: Final = 16 * 2**10  # real ones have a few hundred bytes


class EventStreamError(FramingError):
    """Bytes are not ``application/vnd.amazon.eventstream``, or end inside one of its messages."""


class EventStreamDecoder(PushDecoder):
    """Decodes the chunks of one stream into frames: an event, wrapped in its type as in SDKs, and the name.

    So the stored bytes of a response contain everything that was sent. A payload that is not JSON is unchanged. The name
    of an exception ends in ``Exception``. The events inside ``chunk`` of InvokeModelWithResponseStream have the format of
    the model's vendor, and no name. Errors of the framing, ``{"error": {"code", "message"}}``, have no name either.

    Args:
        limits: ``line_bytes`` applies to each message, ``total_bytes`` to the stream. ``None`` for the defaults.

    Raises:
        ConfigurationError: botocore is not installed.
        EventStreamError: from its methods, these bytes are not an eventstream, or damaged.
        IncompleteStreamError: from ``flush``, the input ended inside a message.
        LineTooLongError: from its methods, a message is longer than ``line_bytes``.
        StreamTooLargeError: likewise, the stream is longer than ``total_bytes``.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits or Limits())
        self._parser = _botocore()
        self._buffer = bytearray()
        self._message_count = 0

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Take the complete messages off the buffer, all at once: each alone would move the rest every time."""
        buffer, start = self._buffer, 0
        buffer += chunk
        try:
            while len(buffer) - start >= _PRELUDE_FORMAT.size:
                end = start + self._length(start)
                if len(buffer) < end:
                    break
                message, start = bytes(memoryview(buffer)[start:end]), end
                frames.append(self._frame(message))
                self._message_count += 1
        except FramingError as error:
            error.place = f"message {self._message_count + 1}"
            raise
        finally:
            del buffer[:start]

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._buffer:
            place = f"message {self._message_count + 1}"
            raise IncompleteStreamError("the input ended in the middle of a message", place=place)

    def _length(self, start: int) -> int:
        """Return the length of the message at *start*, with a complete prelude."""
        message_length, headers_length, checksum = _PRELUDE_FORMAT.unpack_from(self._buffer, start)
        if binascii.crc32(bytes(memoryview(self._buffer)[start : start + 8])) != checksum:
            raise EventStreamError("no eventstream, or a damaged one: the prelude's checksum fails")
        if message_length < _SMALLEST_MESSAGE + headers_length or headers_length > _LONGEST_HEADERS:
            raise EventStreamError("impossible lengths")
        limit = min(self.limits.line_bytes, _LONGEST)
        if message_length > limit:
            raise LineTooLongError(f"a message is longer than {limit} bytes", limit=limit)
        return int(message_length)

    def _frame(self, message: bytes) -> Frame:
        buffer = self._parser.EventStreamBuffer()
        buffer.add_data(message)
        try:
            event_message = buffer.next()
        except (self._parser.ParserError, struct.error, UnicodeDecodeError, KeyError) as error:
            raise EventStreamError(f"a damaged message ({type(error).__name__})") from None
        headers, kind = event_message.headers, event_message.headers.get(":message-type")
        name = headers.get(f":{kind}-type")
        if kind == "error":
            error_fields = {"code": headers.get(":error-code"), "message": headers.get(":error-message")}
            return orjson.dumps({"error": error_fields}, default=str), None
        if kind not in ("event", "exception") or not isinstance(name, str):
            raise EventStreamError("a message that is not an event, exception or error")
        payload: bytes = event_message.payload
        return (_unwrapped(payload), None) if name == "chunk" else (_wrapped(name, payload), name)


def framing(start: bytes, limits: Limits, _: str) -> EventStreamDecoder | None:
    """Return the decoder for an answer that begins with *start*, or ``None`` if it is not binary.

    A message begins with its length, and the first one is short: with a byte of zero.
    """
    return EventStreamDecoder(limits) if start.startswith(b"\0") else None


def events(chunks: Iterable[bytes], limits: Limits | None = None) -> Iterator[bytes]:
    """Yield the events of a binary stream, a line of JSON each, wrapped in the name of their type as in SDKs.

    Events of an invoked model have the vendor's format. An exception is ``{"error": {"type": its name, …}}``.

    Args:
        chunks: the answer's bytes, in pieces of any length.
        limits: the limits of the input, or ``None`` for the defaults.

    Raises:
        ConfigurationError: botocore is not installed.
        EventStreamError: these bytes are not an eventstream, or damaged.
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
            exception = event[name]
            error_fields = exception if isinstance(exception, dict) else {"message": exception}
            data = orjson.dumps({"error": {"type": name, **error_fields}})
    # JSON has line ends between its tokens only.
    return data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def _wrapped(name: str, payload: bytes) -> bytes:
    """Return *payload* under *name*, or unchanged if it is not JSON, which the wrapping might turn into JSON."""
    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError:
        return payload
    return b"{%b:%b}" % (orjson.dumps(name), payload)


def _unwrapped(payload: bytes) -> bytes:
    """The vendor's event in ``{"bytes": base64}``."""
    event = _loaded(payload)
    base64_text = event.get("bytes") if isinstance(event, dict) else None
    try:
        return binascii.a2b_base64(base64_text, strict_mode=True)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise EventStreamError("a chunk without bytes in base64") from None


def _loaded(data: bytes, place: str | None = None) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise EventStreamError("the payload is not JSON", place=place) from None


def _botocore() -> Any:
    try:
        import botocore.eventstream  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigurationError(
            "reading Bedrock's binary streams takes botocore: pip install 'crosswalk-llm[bedrock]'"
        ) from None
    return botocore.eventstream


# --------------------------------------------------------------------------------- signing
# The address of Bedrock, and signing by botocore with the usual environment, files and roles of AWS.


_REGION_PATTERN = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


def base_url() -> str:
    """The address of Bedrock in the region that the environment or the profile names.

    Raises:
        ConfigurationError: they name none, or botocore is missing.
    """
    region = _session().get_config_variable("region")
    if not region:
        raise ConfigurationError(
            "bedrock: no region; give base_url=, or set AWS_REGION or AWS_DEFAULT_REGION", key="base_url"
        )
    return f"https://bedrock-runtime.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def signer(address: str) -> Sign:
    """Return the signer of requests to *address*, with the credentials that botocore finds and renews.

    Raises:
        ConfigurationError: credentials, region or botocore are missing.
    """
    session = _session()

    from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

    match = _REGION_PATTERN.search(address)
    region = match.group(1) if match else session.get_config_variable("region")
    credentials = session.get_credentials()
    if credentials is None or not region:
        missing = "credentials" if region else "region"
        raise ConfigurationError(
            f"bedrock: botocore finds no {missing}; set AWS_BEARER_TOKEN_BEDROCK, or what the AWS CLI needs",
            key="api_key",
        )

    def sign(method: str, url: str, headers: Mapping[str, str], content: bytes) -> Signed:
        signed_headers = {name: value for name, value in headers.items() if name.lower() == "content-type"}
        request = AWSRequest(method=method, url=url, headers=signed_headers, data=content)
        try:
            frozen_credentials = credentials.get_frozen_credentials()
            SigV4Auth(frozen_credentials, "bedrock", region).add_auth(request)
        except BotoCoreError as error:
            raise ConfigurationError(f"bedrock: not signed ({type(error).__name__})", key="api_key") from None
        new_headers = {name: value for name, value in request.headers.items() if name not in signed_headers}
        secrets = (
            frozen_credentials.access_key,
            frozen_credentials.secret_key,
            frozen_credentials.token,
            new_headers["Authorization"].rpartition("=")[2],
        )
        return Signed(new_headers, tuple(filter(None, secrets)))

    return sign


def _session() -> Any:
    try:
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigurationError(
            "requests to Bedrock take botocore: pip install 'crosswalk-llm[bedrock]'"
        ) from None
    # botocore does not read the variables that Lambda and containers set.
    return Session({"region": ("region", ["AWS_REGION", "AWS_DEFAULT_REGION"], None, None)})
