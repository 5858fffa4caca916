"""Binary frames: kind, size of the payload, payload (JSON) and its checksum."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    Frame,
    FramingError,
    IncompleteStreamError,
    Limits,
    LineTooLongError,
    MappingState,
    ProviderInfo,
    PushDecoder,
    Recognition,
    ResponseDelta,
    TokenLogprob,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    accept_count,
    accept_number,
    accept_object,
    hookimpl,
    take_count,
    take_error,
    take_integer,
    take_string,
)

MAGIC = b"\xabRAY"
KINDS = {1: "open", 2: "text", 3: "muse", 4: "call", 5: "tally", 6: "fault", 7: "close", 8: "ping"}
ERRORS = {429: ErrorKind.RATE_LIMIT, 500: ErrorKind.SERVER}
WORDS = {"E": FinishReason.STOP, "L": FinishReason.LENGTH, "C": FinishReason.TOOL_CALLS}


def write(data: bytes, name: str | None) -> bytes:
    """The frame of *data*, named *name*."""
    kind = next((number for number, known in KINDS.items() if known == name), 99)
    check = zlib.crc32(bytes([kind]) + data)
    return MAGIC + bytes([kind]) + len(data).to_bytes(4) + data + check.to_bytes(4)


class RayDecoder(PushDecoder):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._buffer = bytearray()

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        self._buffer += chunk
        while len(self._buffer) >= 9:
            if self._buffer[:4] != MAGIC:
                raise FramingError("no frame begins here")
            size = int.from_bytes(self._buffer[5:9])
            if size > self.limits.line_bytes:
                raise LineTooLongError("a frame is too large", limit=self.limits.line_bytes)
            if len(self._buffer) < size + 13:
                return
            kind, data = self._buffer[4], bytes(self._buffer[9 : size + 9])
            check = int.from_bytes(self._buffer[size + 9 : size + 13])
            if check != zlib.crc32(bytes([kind]) + data):
                raise FramingError("wrong checksum")
            del self._buffer[: size + 13]
            if kind not in KINDS:
                raise FramingError(f"unknown kind of frame: {kind}")
            if KINDS[kind] != "ping":
                frames.append((data, KINDS[kind]))

    def finish(self, frames: list[Frame]) -> None:
        if self._buffer:
            raise IncompleteStreamError("the input ended inside a frame")


def framing(start: bytes, limits: Limits, _: str) -> PushDecoder | None:
    return RayDecoder(limits) if start[:1] == MAGIC[:1] else None


class Ray:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Ray", api=1, framing=framing)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        kind = state.event_name
        if not isinstance(event, dict):
            raise WireTypeError("", expected="object", got=event)
        if kind == "open":
            seconds = take_integer(event, "t")
            created = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
            state.identify(id=take_string(event, "rid"), model=take_string(event, "engine"), created=created)
        elif kind == "text":
            if text := take_string(event, "s"):
                yield ResponseDelta(content_delta=text, logprobs=self.logprobs(event, text))
        elif kind == "muse":
            if text := take_string(event, "s"):
                yield ResponseDelta(reasoning_delta=text)
        elif kind == "call":
            slot, id, name = take_count(event, "n"), take_string(event, "cid"), take_string(event, "fn")
            call = state.tool_call(index=slot, id=id, name=name, arguments=take_string(event, "a"))
            yield ResponseDelta(tool_call_delta=call)
            if call.index != slot:
                event["n"] = slot
        elif kind == "fault":
            yield take_error(event, self.failure(event, None))
        elif kind == "close":
            if (why := take_string(event, "why")) is not None:
                yield ResponseDelta(raw_finish_reason=why)
        elif kind != "tally":
            raise UnknownEventError("an event of an unknown kind", event_type=kind)

    def logprobs(self, event: dict[str, Any], text: str) -> tuple[TokenLogprob, ...]:
        logprob = accept_number(event, "lp")
        return () if logprob is None else (TokenLogprob(text, logprob),)

    def failure(self, event: dict[str, Any], status: int | None) -> ErrorInfo:
        code, message = event.get("code"), str(event.get("why"))
        kind = ERRORS.get(code) if type(code) is int else None
        return ErrorInfo(kind or ErrorKind.UNKNOWN, message, kind is not None, status, str(code), dict(event))

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        tally = accept_object(event, "tally")
        if tally is None:
            return None
        read, cached = accept_count(tally, "in"), accept_count(tally, "in_hit")
        said, mused = accept_count(tally, "out"), accept_count(tally, "out_mused")
        return state.usage_info(read, said, cached_tokens=cached, reasoning_tokens=mused)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return WORDS.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return self.failure(body, status) if isinstance(body, dict) and "code" in body else None


plugin = Ray()
