"""Lines that each change a place of the answer, ``{"path": "/choices/0/text", "append": "Hel"}``. A body is all of it."""

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
    hookimpl,
    require_object,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_string,
)

TYPES = {
    "overloaded": ErrorKind.SERVER,
    "throttled": ErrorKind.RATE_LIMIT,
    "unauthorized": ErrorKind.AUTHENTICATION,
    "bad_input": ErrorKind.INVALID_REQUEST,
}
ENDS = {
    "complete": FinishReason.STOP,
    "budget": FinishReason.LENGTH,
    "calls": FinishReason.TOOL_CALLS,
    "policy": FinishReason.CONTENT_FILTER,
}


class Patches:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Patches", api=1)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        is_patch = isinstance(event, dict) and str(event.get("path")).startswith("/")
        return Recognition.POSSIBLE if is_patch else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        event = require_object(event)
        path = take_string(event, "path")
        if path is None:
            yield from self.whole(event, state)
            return
        if path == "/error":
            yield take_error(event, self.failure(event.get("value"), None, {**event, "path": path}))
            return
        keys = path.split("/")[1:]
        if path in ("/meta", "/usage"):
            if path == "/meta":
                self.meta(event, "value", state)
            else:
                event["path"] = path
        elif len(keys) >= 3 and keys[0] == "choices" and keys[1].isdecimal():
            yield from self.choice(int(keys[1]), keys[2:], event, state)
        else:
            raise UnknownEventError("a patch of an unknown place", event_type=path)

    def meta(self, holder: dict[str, Any], key: str, state: MappingState) -> None:
        meta = take_object(holder, key)
        if meta is not None:
            state.take_identity(meta)

    def choice(
        self, number: int, keys: list[str], event: dict[str, Any], state: MappingState
    ) -> Iterator[ResponseDelta]:
        match keys:
            case ["text"]:
                if text := take_string(event, "append"):
                    yield ResponseDelta(content_delta=text, choice=number)
            case ["thought"]:
                if text := take_string(event, "append"):
                    yield ResponseDelta(reasoning_delta=text, choice=number)
            case ["refusal"]:
                if text := take_string(event, "append"):
                    yield ResponseDelta(refusal_delta=text, choice=number)
            case ["calls", slot] if slot.isdecimal():
                call = take_object(event, "value") or {}
                id, name = take_string(call, "id"), take_string(call, "name")
                delta = state.tool_call(index=int(slot), id=id, name=name, choice=number)
                yield ResponseDelta(tool_call_delta=delta, choice=number)
                if call:
                    event["value"] = call
            case ["calls", slot, "arguments"] if slot.isdecimal():
                delta = state.tool_call(
                    index=int(slot), arguments=take_string(event, "append"), choice=number
                )
                yield ResponseDelta(tool_call_delta=delta, choice=number)
            case ["end"]:
                if (end := take_string(event, "value")) is not None:
                    yield ResponseDelta(raw_finish_reason=end, choice=number)
            case _:
                raise UnknownEventError("a patch of an unknown place", event_type="/".join(keys))

    def whole(self, event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        if event.get("error") is not None:
            yield take_error(event, self.failure(event["error"], None, dict(event)))
            return
        if "choices" not in event:
            raise UnknownEventError("neither a patch nor an answer")
        self.meta(event, "meta", state)
        for choice in take_objects(event, "choices"):
            number = take_count(choice, "number") or 0
            if thought := take_string(choice, "thought"):
                yield ResponseDelta(reasoning_delta=thought, choice=number)
            if refusal := take_string(choice, "refusal"):
                yield ResponseDelta(refusal_delta=refusal, choice=number)
            if text := take_string(choice, "text"):
                yield ResponseDelta(content_delta=text, choice=number)
            for call in take_objects(choice, "calls"):
                delta = state.take_tool_call(
                    call, arguments=take_string(call, "arguments"), index=None, choice=number, whole=True
                )
                yield ResponseDelta(tool_call_delta=delta, choice=number)
            if (end := take_string(choice, "end")) is not None:
                yield ResponseDelta(raw_finish_reason=end, choice=number)

    def failure(self, error: Any, status: int | None, raw: Any) -> ErrorInfo:
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            raise WireTypeError("error", expected="object", got=error)
        code = str(error.get("type"))
        kind = TYPES.get(code, ErrorKind.UNKNOWN)
        return ErrorInfo(kind, error["message"], code in ("overloaded", "throttled"), status, code, raw)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        is_patch = event.get("path") == "/usage"
        usage = take_object(event, "value" if is_patch else "usage")
        if usage is None:
            return None
        if is_patch:
            del event["path"]
        counts = [accept_count(usage, key) for key in ("input", "output", "cached", "reasoning")]
        return state.usage_info(counts[0], counts[1], cached_tokens=counts[2], reasoning_tokens=counts[3])

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return ENDS.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        if not isinstance(body, dict) or not isinstance(body.get("error"), dict):
            return None
        return self.failure(body["error"], status, body)


plugin = Patches()
