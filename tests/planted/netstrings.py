"""Netstrings of rows, ``23:["w",0,"Hello",-0.125],``. A body is an array of the same rows."""

from __future__ import annotations

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
    Segment,
    SegmentType,
    TokenLogprob,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    error_delta,
    hookimpl,
)

Row = list[Any]
ERRORS = {29: ErrorKind.RATE_LIMIT, 50: ErrorKind.SERVER, 13: ErrorKind.PERMISSION}
RETRYABLE = {29, 50}
WORDS = {
    "e": FinishReason.STOP,
    "s": FinishReason.STOP,
    "m": FinishReason.LENGTH,
    "f": FinishReason.TOOL_CALLS,
    "x": FinishReason.CONTENT_FILTER,
}


def write(data: bytes, name: str | None) -> bytes:
    """The frame of *data*."""
    return b"%d:%s," % (len(data), data)


class NetstringDecoder(PushDecoder):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._buffer = bytearray()

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        self._buffer += chunk
        while self._buffer:
            digits, colon, _ = self._buffer.partition(b":")
            if not digits.isdigit() or len(digits) > 12:
                raise FramingError("no length begins here")
            if not colon:
                return
            size, start = int(digits), len(digits) + 1
            if size > self.limits.line_bytes:
                raise LineTooLongError("a row is too large", limit=self.limits.line_bytes)
            if len(self._buffer) <= start + size:
                return
            if self._buffer[start + size : start + size + 1] != b",":
                raise FramingError("the row does not end where its length says")
            frames.append((bytes(self._buffer[start : start + size]), None))
            del self._buffer[: start + size + 1]

    def finish(self, frames: list[Frame]) -> None:
        if self._buffer:
            raise IncompleteStreamError("the input ended inside a row")


def framing(start: bytes, limits: Limits, content_type: str) -> NetstringDecoder | None:
    return NetstringDecoder(limits) if start[:1].isdigit() else None


def cell(row: Row, position: int, *types: type, optional: bool = False) -> Any:
    """Take the cell at *position*."""
    value = row[position] if position < len(row) else None
    if value is None and optional:
        return None
    if type(value) not in types:
        raise WireTypeError(f"row[{position}]", expected=types[0].__name__, got=value)
    row[position] = None
    return value


def count(row: Row, position: int, *, optional: bool = False) -> Any:
    value = cell(row, position, int, optional=optional)
    if value is not None and value < 0:
        raise WireTypeError(f"row[{position}]", expected="a count", got=value)
    return value


def rows_of(event: Any) -> list[Row]:
    rows = event if isinstance(event, list) and event and isinstance(event[0], list) else [event]
    if not all(isinstance(row, list) and row for row in rows):
        raise WireTypeError("rows", expected="rows", got=event)
    return rows


class Netstrings:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Netstrings", api=1, framing=framing)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        rows = event if isinstance(event, list) else []
        return Recognition.POSSIBLE if rows[:1] == ["b"] else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        for row in rows_of(event):
            yield from self.row(row, state)

    def row(self, row: Row, state: MappingState) -> Iterator[ResponseDelta]:
        kind = row[0]
        if kind == "b":
            state.identify(id=cell(row, 1, str), model=cell(row, 2, str), created=self.created(row))
        elif kind == "w":
            choice, text, logprob = count(row, 1), cell(row, 2, str), cell(row, 3, float, int, optional=True)
            logprobs = () if logprob is None else (TokenLogprob(text, float(logprob)),)
            if text or logprobs:
                yield ResponseDelta(content_delta=text or None, logprobs=logprobs or None, choice=choice)
        elif kind == "r":
            choice, text = count(row, 1), cell(row, 2, str)
            if text:
                yield ResponseDelta(reasoning_delta=text, choice=choice)
        elif kind == "n":
            choice, text = count(row, 1), cell(row, 2, str)
            if text:
                yield ResponseDelta(segment=Segment(SegmentType.REFUSAL, text), choice=choice)
        elif kind == "f":
            choice, slot, id, name = count(row, 1), count(row, 2), cell(row, 3, str), cell(row, 4, str)
            call = state.tool_call(index=slot, id=id, name=name, arguments=cell(row, 5, str), choice=choice)
            yield ResponseDelta(tool_call_delta=call, choice=choice)
            if call.index != slot:
                row[2] = slot
        elif kind == "g":
            choice, slot = count(row, 1), count(row, 2)
            call = state.tool_call(index=slot, arguments=cell(row, 3, str), choice=choice)
            yield ResponseDelta(tool_call_delta=call, choice=choice)
        elif kind == "!":
            yield error_delta(self.failure(row, None, row.copy()))
            row[:] = [None] * len(row)
        elif kind == "z":
            yield ResponseDelta(choice=count(row, 1), raw_finish_reason=cell(row, 2, str))
        elif kind != "u":
            raise UnknownEventError("a row of an unknown kind", event_type=str(kind))
        if kind != "u":
            row[0] = None

    def created(self, row: Row) -> datetime:
        millis = count(row, 3)
        if millis > 10**15:
            raise WireTypeError("row[3]", expected="milliseconds", got=millis)
        return datetime.fromtimestamp(millis / 1000, UTC)

    def failure(self, row: Row, status: int | None, raw: Any) -> ErrorInfo:
        code, message = count(row, 1), cell(row, 2, str)
        kind = ERRORS.get(code, ErrorKind.UNKNOWN)
        return ErrorInfo(kind, message, code in RETRYABLE, status, str(code), raw)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        for row in rows_of(event):
            if row[0] == "u":
                row[0] = None
                read, hit, said, thought = (count(row, position, optional=True) for position in (1, 2, 3, 4))
                return state.usage_info(read, said, cached_tokens=hit, reasoning_tokens=thought)
        return None

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        rows = [row for row in rows_of(event) if any(cell is not None for cell in row)]
        return {"rows": rows} if rows else {}

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return WORDS.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        if not isinstance(body, list) or body[:1] != ["!"]:
            return None
        return self.failure(body.copy(), status, body)


plugin = Netstrings()
