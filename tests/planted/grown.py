"""Lines of JSON, each with all of the answer so far. A body is the last line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    accept_count,
    accept_object,
    dump_json,
    hookimpl,
    require_object,
    take_array,
    take_count,
    take_error,
    take_object,
    take_string,
)

FAULTS = {
    "quota": ErrorKind.RATE_LIMIT,
    "crash": ErrorKind.SERVER,
    "key": ErrorKind.AUTHENTICATION,
    "weights": ErrorKind.MODEL_UNAVAILABLE,
}
PHASES = {
    "finished": FinishReason.STOP,
    "stopped_at_limit": FinishReason.LENGTH,
    "needs_tools": FinishReason.TOOL_CALLS,
    "withheld": FinishReason.CONTENT_FILTER,
}


class Grown:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Grown", api=1)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE if isinstance(event, dict) and "job" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        event = require_object(event)
        if "fault" in event:
            yield take_error(event, self.fault(event, None))
            return
        job = take_object(event, "job") or {}
        state.take_identity(job, id="uuid", model="weights", created="queued")
        if "drafts" not in event:
            raise UnknownEventError("an event without drafts")
        for draft in self.drafts(event):
            yield from self.draft(draft, state)

    def drafts(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        drafts = event.get("drafts") or []
        if not isinstance(drafts, list) or not all(isinstance(draft, dict) for draft in drafts):
            raise WireTypeError("drafts", expected="array of objects", got=drafts)
        return drafts

    def draft(self, draft: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        number = take_count(draft, "number")
        choice, is_empty = number or 0, True
        thought = self.grown(draft, "musing", choice, state)
        if thought:
            is_empty = False
            yield ResponseDelta(reasoning_delta=thought, choice=choice)
        text = self.grown(draft, "answer", choice, state)
        if text:
            is_empty = False
            yield ResponseDelta(content_delta=text, choice=choice)
        for slot, call in enumerate(take_array(draft, "tools") or []):
            yield from self.call(require_object(call), slot, choice, state)
        phase = take_string(draft, "phase")
        if phase is not None and phase != "running":
            yield ResponseDelta(raw_finish_reason=phase, choice=choice)
        elif is_empty and number is not None:
            draft["number"] = number

    def grown(self, draft: dict[str, Any], key: str, choice: int, state: MappingState) -> str:
        """The result for the text under *key*."""
        text = take_string(draft, key)
        place = f"{key} {choice}"
        before = state.data.get(place, "")
        if text is None:
            return ""
        if not text.startswith(before):
            raise WireTypeError(key, expected="text that goes on", got=text)
        state.data[place] = text
        return text[len(before) :]

    def call(
        self, call: dict[str, Any], slot: int, choice: int, state: MappingState
    ) -> Iterator[ResponseDelta]:
        known = state.data.setdefault(f"call {choice} {slot}", {})
        if known and known != call:
            raise WireTypeError(f"tools[{slot}]", expected="the same call", got=call)
        if known:
            call.clear()
            return
        known.update(call)
        arguments = call.pop("input", None)
        text = arguments if isinstance(arguments, str | None) else dump_json(arguments).decode()
        id, name = take_string(call, "key"), take_string(call, "tool")
        delta = state.tool_call(index=slot, id=id, name=name, arguments=text, choice=choice)
        yield ResponseDelta(tool_call_delta=delta, choice=choice)

    def fault(self, event: dict[str, Any], status: int | None) -> ErrorInfo:
        fault = event["fault"]
        if not isinstance(fault, dict) or not isinstance(fault.get("text"), str):
            raise WireTypeError("fault", expected="object", got=fault)
        code = str(fault.get("code"))
        return ErrorInfo(
            FAULTS.get(code, ErrorKind.UNKNOWN), fault["text"], code in ("quota", "crash"), status, code, dict(event)
        )  # fmt: skip

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        meter = accept_object(event, "meter")
        if meter is None:
            return None
        return state.usage_info(
            accept_count(meter, "taken"), accept_count(meter, "given"),
            cached_tokens=accept_count(meter, "warm"), reasoning_tokens=accept_count(meter, "mused"),
        )  # fmt: skip

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return PHASES.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return self.fault(body, status) if isinstance(body, dict) and "fault" in body else None


plugin = Grown()
