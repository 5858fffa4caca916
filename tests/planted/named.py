"""Server-sent events with names. A body has the same parts in a list."""

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
    accept_count,
    accept_number,
    accept_object,
    hookimpl,
    take_arguments,
    take_count,
    take_error,
    take_integer,
    take_object,
    take_objects,
    take_string,
)

ERRORS = {
    "too_fast": ErrorKind.RATE_LIMIT,
    "worker_lost": ErrorKind.SERVER,
    "no_key": ErrorKind.AUTHENTICATION,
}
RETRYABLE = {"too_fast", "worker_lost"}
WORDS = {
    "done": FinishReason.STOP,
    "cap": FinishReason.LENGTH,
    "tools": FinishReason.TOOL_CALLS,
    "shield": FinishReason.CONTENT_FILTER,
}


class Named:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Named", api=1)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE if isinstance(event, dict) and "run" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        if not isinstance(event, dict):
            raise WireTypeError("", expected="object", got=event)
        if state.event_name is not None:
            yield from self.part(state.event_name, event, state)
            return
        if "fault" in event:
            yield take_error(event, self.failure(event, None))
            return
        for part in take_objects(event, "parts"):
            yield from self.part(take_string(part, "kind"), part, state)
        yield from self.part("start", event, state)
        yield from self.part("finish", event, state)

    def part(self, kind: str | None, part: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        if kind == "start":
            run = take_object(part, "run") or {}
            id, model, millis = take_string(run, "id"), take_string(run, "model"), take_integer(run, "at_ms")
            created = None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
            state.identify(id=id, model=model, created=created)
        elif kind == "think":
            if text := take_string(part, "text"):
                yield ResponseDelta(reasoning_delta=text)
        elif kind == "text":
            if text := take_string(part, "text"):
                yield ResponseDelta(content_delta=text, logprobs=self.logprobs(part, text))
        elif kind == "deny":
            if text := take_string(part, "text"):
                yield ResponseDelta(segment=Segment(SegmentType.REFUSAL, text))
        elif kind == "tool":
            yield self.call(part, state)
        elif kind == "fault":
            yield take_error(part, self.failure(part, None))
        elif kind == "finish":
            if (why := take_string(part, "why")) is not None:
                yield ResponseDelta(raw_finish_reason=why)
        elif kind != "tally":
            raise UnknownEventError("an event of an unknown name", event_type=kind)

    def logprobs(self, part: dict[str, Any], text: str) -> tuple[TokenLogprob, ...]:
        logprob = accept_number(part, "lp")
        return () if logprob is None else (TokenLogprob(text, logprob),)

    def call(self, part: dict[str, Any], state: MappingState) -> ResponseDelta:
        slot, id, name = take_count(part, "slot"), take_string(part, "id"), take_string(part, "name")
        arguments, _ = take_arguments(part, "input")
        call = state.tool_call(index=slot, id=id, name=name, arguments=arguments)
        if call.index != slot:
            part["slot"] = slot
        return ResponseDelta(tool_call_delta=call)

    def failure(self, part: dict[str, Any], status: int | None) -> ErrorInfo:
        code, message = str(part.get("fault")), str(part.get("why"))
        kind = ERRORS.get(code, ErrorKind.UNKNOWN)
        return ErrorInfo(kind, message, code in RETRYABLE, status, code, dict(part))

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        tally = accept_object(event, "tally")
        if tally is None:
            return None
        read, reused = accept_count(tally, "read"), accept_count(tally, "reused")
        made, thought = accept_count(tally, "made"), accept_count(tally, "mulled")
        return state.usage_info(read, made, cached_tokens=reused, reasoning_tokens=thought)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return WORDS.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return self.failure(body, status) if isinstance(body, dict) and "fault" in body else None


plugin = Named()
