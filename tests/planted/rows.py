"""Rows: each line has a row, or a list of rows, in which a value means something by its position."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    ProviderInfo,
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
ERRORS = {7: ErrorKind.RATE_LIMIT, 8: ErrorKind.SERVER, 9: ErrorKind.CONTEXT_OVERFLOW}
RETRYABLE = {7, 8}
WORDS = {"fin": FinishReason.STOP, "full": FinishReason.LENGTH, "act": FinishReason.TOOL_CALLS}


def cell(row: Row, position: int, *types: type, optional: bool = False) -> Any:
    """Take the cell at *position*."""
    value = row[position] if position < len(row) else None
    if value is None and optional:
        return None
    if type(value) not in types:
        raise WireTypeError(f"row[{position}]", expected=types[0].__name__, got=value)
    row[position] = None
    return value


def count(row: Row, position: int) -> int:
    value: int = cell(row, position, int)
    if value < 0:
        raise WireTypeError(f"row[{position}]", expected="a count", got=value)
    return value


def rows_of(event: Any) -> list[Row]:
    rows = [event["row"]] if "row" in event else event.get("rows")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and row for row in rows):
        raise WireTypeError("rows", expected="rows", got=rows)
    return rows


class Rows:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Rows", api=1)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE if isinstance(event, dict) and "row" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        for row in rows_of(event):
            kind = row[0]
            if kind == "hi":
                id, model = cell(row, 1, str), cell(row, 2, str)
                state.identify(id=id, model=model, created=self.created(row))
            elif kind == "think" and (text := cell(row, 1, str)):
                yield ResponseDelta(reasoning_delta=text)
            elif kind == "say" and (text := cell(row, 1, str)):
                yield ResponseDelta(content_delta=text, logprobs=self.logprobs(row, text))
            elif kind == "deny" and (text := cell(row, 1, str)):
                yield ResponseDelta(segment=Segment(SegmentType.REFUSAL, text))
            elif kind == "call":
                slot, id, name = count(row, 1), cell(row, 2, str), cell(row, 3, str)
                call = state.tool_call(index=slot, id=id, name=name, arguments=cell(row, 4, str))
                yield ResponseDelta(tool_call_delta=call)
                if call.index != slot:
                    row[1] = slot
            elif kind == "more":
                call = state.tool_call(index=count(row, 1), arguments=cell(row, 2, str))
                yield ResponseDelta(tool_call_delta=call)
            elif kind == "fail":
                yield error_delta(self.failure(row, None, row.copy()))
                row[:] = [None] * len(row)
            elif kind == "bye":
                yield ResponseDelta(raw_finish_reason=cell(row, 1, str))
            elif kind not in ("think", "say", "deny", "sum"):
                raise UnknownEventError("a row of an unknown kind", event_type=str(kind))
            if row and kind != "sum":
                row[0] = None

    def created(self, row: Row) -> datetime:
        try:
            time = datetime.fromisoformat(text := cell(row, 3, str))
        except ValueError:
            raise WireTypeError("row[3]", expected="a time", got=text) from None
        return time.astimezone(UTC)

    def logprobs(self, row: Row, text: str) -> tuple[TokenLogprob, ...]:
        logprob = cell(row, 2, float, int, optional=True)
        return () if logprob is None else (TokenLogprob(text, float(logprob)),)

    def failure(self, row: Row, status: int | None, raw: Any) -> ErrorInfo:
        code, message = count(row, 1), cell(row, 2, str)
        kind = ERRORS.get(code, ErrorKind.UNKNOWN)
        return ErrorInfo(kind, message, code in RETRYABLE, status, str(code), raw)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        for row in rows_of(event):
            if row[0] == "sum":
                row[0] = None
                fresh, cached, spoken, thought = (count(row, position) for position in (1, 2, 3, 4))
                return UsageInfo(
                    fresh + cached, spoken + thought, cached_tokens=cached, reasoning_tokens=thought
                )
        return None

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        rows = [row for row in rows_of(event) if any(cell is not None for cell in row)]
        rest = {key: value for key, value in event.items() if key not in ("row", "rows")}
        return {**rest, "rows": rows} if rows else rest

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return WORDS.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        if not isinstance(body, dict) or not isinstance(row := body.get("row"), list) or row[:1] != ["fail"]:
            return None
        return self.failure(row.copy(), status, body)


plugin = Rows()
