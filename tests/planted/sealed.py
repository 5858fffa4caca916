"""Binary records: size, tag, payload, checksum. The last record counts those before it."""

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
    accept_count,
    accept_number,
    accept_objects,
    accept_string,
    hookimpl,
    look_at,
    require_object,
    take_count,
    take_error,
    take_string,
)

TAGS = {
    b"H": "head",
    b"T": "text",
    b"R": "reason",
    b"N": "no",
    b"C": "call",
    b"U": "use",
    b"E": "end",
    b"X": "fail",
}
CODES = {
    4290: ErrorKind.RATE_LIMIT,
    5000: ErrorKind.SERVER,
    4000: ErrorKind.INVALID_REQUEST,
    4010: ErrorKind.AUTHENTICATION,
}
STOPS = {
    0: FinishReason.STOP,
    1: FinishReason.LENGTH,
    2: FinishReason.TOOL_CALLS,
    3: FinishReason.CONTENT_FILTER,
}  # fmt: skip


def write(data: bytes, name: str | None) -> bytes:
    """The record of *data*, named *name*."""
    tag = next((tag for tag, known in TAGS.items() if known == name), b"?")
    return (len(data) + 1).to_bytes(3, "little") + tag + data + zlib.adler32(tag + data).to_bytes(4, "little")


class SealedDecoder(PushDecoder):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._rest = b""

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        data = self._rest + chunk
        while len(data) >= 3:
            size = int.from_bytes(data[:3], "little")
            if size > self.limits.line_bytes:
                raise LineTooLongError("a record is too large", limit=self.limits.line_bytes)
            if size == 0:
                raise FramingError("a record without a tag")
            if len(data) < size + 7:
                break
            record, seal = data[3 : size + 3], int.from_bytes(data[size + 3 : size + 7], "little")
            if zlib.adler32(record) != seal:
                raise FramingError("a broken seal")
            if record[:1] not in TAGS:
                raise FramingError(f"an unknown tag: {record[:1]!r}")
            frames.append((record[1:], TAGS[record[:1]]))
            data = data[size + 7 :]
        self._rest = data

    def finish(self, frames: list[Frame]) -> None:
        if self._rest:
            raise IncompleteStreamError("the input ended inside a record")


def framing(start: bytes, limits: Limits, content_type: str) -> SealedDecoder | None:
    return None if start[:1] in b"{[" else SealedDecoder(limits)


class Sealed:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Sealed", api=1, framing=framing)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE if isinstance(event, dict) and "session" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        event, name = require_object(event), state.event_name
        if name == "fail" or (name is None and "failure" in event):
            yield take_error(event, self.failure(event, None))
        elif name == "head":
            micros = look_at(event, "born", int)
            created = None
            if micros is not None and 0 < micros < 10**17:
                created = datetime.fromtimestamp(event.pop("born") / 1e6, UTC)
            state.identify(
                id=take_string(event, "session"), model=take_string(event, "brain"), created=created
            )
        elif name == "text":
            text, branch = take_string(event, "v"), take_count(event, "b") or 0
            bits = self.bits(event)
            if text or bits:
                yield ResponseDelta(content_delta=text or None, logprobs=bits or None, choice=branch)
        elif name == "reason":
            text, branch = take_string(event, "v"), take_count(event, "b") or 0
            if text:
                yield ResponseDelta(reasoning_delta=text, choice=branch)
        elif name == "no":
            text, branch = take_string(event, "v"), take_count(event, "b") or 0
            if text:
                yield ResponseDelta(refusal_delta=text, choice=branch)
        elif name == "call":
            branch = take_count(event, "b") or 0
            slot, id, tool = take_count(event, "i"), take_string(event, "k"), take_string(event, "f")
            call = state.tool_call(
                index=slot, id=id, name=tool, arguments=take_string(event, "j"), choice=branch
            )
            yield ResponseDelta(tool_call_delta=call, choice=branch)
            if call.index != slot:
                event["i"] = slot
        elif name == "end":
            branch, stop = take_count(event, "b") or 0, take_count(event, "stop")
            if stop is not None:
                yield ResponseDelta(raw_finish_reason=str(stop), choice=branch)
        elif name != "use":
            raise UnknownEventError("an event of an unknown name", event_type=name)

    def bits(self, event: dict[str, Any]) -> tuple[TokenLogprob, ...]:
        return tuple(
            TokenLogprob(accept_string(bit, "t") or "", accept_number(bit, "p"))
            for bit in accept_objects(event, "bits")
        )

    def failure(self, event: dict[str, Any], status: int | None) -> ErrorInfo:
        code, message = event.get("failure"), str(event.get("because"))
        kind = CODES.get(code, ErrorKind.UNKNOWN) if type(code) is int else ErrorKind.UNKNOWN
        return ErrorInfo(
            kind, message, kind in (ErrorKind.RATE_LIMIT, ErrorKind.SERVER), status, str(code), dict(event)
        )

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        if state.event_name != "use":
            return None
        fresh, warm, born = (
            accept_count(event, "fresh"),
            accept_count(event, "warm"),
            accept_count(event, "stored"),
        )
        spoken, mulled = accept_count(event, "spoken"), accept_count(event, "mulled")
        for key, value in (("fresh", fresh), ("spoken", spoken)):
            if value is not None:
                event[key] = value
        prompt = None if fresh is None else fresh + (warm or 0) + (born or 0)
        completion = None if spoken is None else spoken + (mulled or 0)
        return state.usage_info(
            prompt, completion, cached_tokens=warm, reasoning_tokens=mulled, cache_write_tokens=born
        )

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return STOPS.get(int(reason)) if reason.isdecimal() else None

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return self.failure(body, status) if isinstance(body, dict) and "failure" in body else None


plugin = Sealed()
