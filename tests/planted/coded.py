"""Lines with a number for their kind, ``{"k": 1, "d": {"t": "Hel"}}``. A body is an array of the same objects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    TokenLogprob,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    accept_count,
    accept_number,
    accept_objects,
    accept_string,
    error_delta,
    hookimpl,
    require_object,
    take_arguments,
    take_count,
    take_object,
    take_string,
)

FAILURES = {
    101: ErrorKind.RATE_LIMIT,
    102: ErrorKind.SERVER,
    103: ErrorKind.AUTHENTICATION,
    104: ErrorKind.TIMEOUT,
}
REASONS = {"A": FinishReason.STOP, "B": FinishReason.LENGTH, "C": FinishReason.TOOL_CALLS, "D": FinishReason.CONTENT_FILTER}  # fmt: skip


class Coded:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Coded", api=1)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        first = event[0] if isinstance(event, list) and event else event
        return (
            Recognition.POSSIBLE if isinstance(first, dict) and first.keys() == {"k", "d"} else Recognition.NO
        )

    def items(self, event: Any) -> list[dict[str, Any]]:
        return (
            [require_object(item) for item in event] if isinstance(event, list) else [require_object(event)]
        )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        for item in self.items(event):
            kind, data = take_count(item, "k"), take_object(item, "d")
            if data is None:
                raise WireTypeError("d", expected="object", got=None)
            if kind == 9:
                yield error_delta(self.failure(data, None, dict(data)))
                item.clear()
                continue
            yield from self.item(kind, data, state)
            if data:
                item["d"] = data
                if kind == 5:
                    item["k"] = kind

    def item(self, kind: int | None, data: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        if kind == 0:
            opened = accept_string(data, "at")
            created = None
            if opened is not None:
                created = self.time(opened)
                if created is None:
                    data["at"] = opened
            state.identify(id=take_string(data, "rq"), model=take_string(data, "mdl"), created=created)
        elif kind == 1:
            number, text = take_count(data, "n") or 0, take_string(data, "t")
            logprobs = tuple(
                TokenLogprob(accept_string(one, "w") or "", accept_number(one, "l"))
                for one in accept_objects(data, "p")
            )
            if text or logprobs:
                yield ResponseDelta(content_delta=text or None, logprobs=logprobs or None, choice=number)
        elif kind in (2, 3):
            number, text = take_count(data, "n") or 0, take_string(data, "t")
            if text and kind == 2:
                yield ResponseDelta(reasoning_delta=text, choice=number)
            elif text:
                yield ResponseDelta(refusal_delta=text, choice=number)
        elif kind == 4:
            number, slot = take_count(data, "n") or 0, take_count(data, "s")
            arguments, _ = take_arguments(data, "a")
            id, name = take_string(data, "c"), take_string(data, "f")
            call = state.tool_call(index=slot, id=id, name=name, arguments=arguments, choice=number)
            yield ResponseDelta(tool_call_delta=call, choice=number)
            if slot != call.index:
                data["s"] = slot
        elif kind == 6:
            number, why = take_count(data, "n") or 0, take_string(data, "r")
            if why is not None:
                yield ResponseDelta(raw_finish_reason=why, choice=number)
        elif kind != 5:
            raise UnknownEventError("a line of an unknown kind", event_type=str(kind))

    def time(self, text: str) -> datetime | None:
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            return None
        return time if time.tzinfo is not None else None

    def failure(self, data: dict[str, Any], status: int | None, raw: Any) -> ErrorInfo:
        code, message = data.get("code"), data.get("text")
        if type(code) is not int or not isinstance(message, str):
            raise WireTypeError("code", expected="integer", got=code)
        kind = FAILURES.get(code, ErrorKind.UNKNOWN)
        return ErrorInfo(kind, message, code in (101, 102, 104), status, str(code), raw)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        for item in self.items(event):
            if item.get("k") == 5 and isinstance(item.get("d"), dict):
                data = item["d"]
                fresh, warm = accept_count(data, "i"), accept_count(data, "w")
                out, thought = accept_count(data, "o"), accept_count(data, "r")
                if fresh is not None:
                    data["i"] = fresh
                prompt = None if fresh is None else fresh + (warm or 0)
                del item["k"]
                return state.usage_info(prompt, out, cached_tokens=warm, reasoning_tokens=thought)
        return None

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        items = [item for item in self.items(event) if item and item != {"d": {}}]
        return {"items": items} if items else {}

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return REASONS.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        if not isinstance(body, dict) or body.get("k") != 9 or not isinstance(body.get("d"), dict):
            return None
        return self.failure(body["d"], status, body)


plugin = Coded()
