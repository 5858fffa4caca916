"""Kelp for Crosswalk: reads its answers, whole and as streams of patches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from crosswalk.plugins import (
    Access,
    ErrorInfo,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    accept_object,
    accept_string,
    classify,
    hookimpl,
    leave_mistyped,
    requests_of,
    require_object,
    take_array,
    take_error,
    take_objects,
    take_string,
)

KEYS = {"hi", "p", "out", "tide", "bye"}
OPERATORS = {"think": "+", "say": "+", "do": "=", "with": "+"}  # for the parts of an answer
APART = {"think": 0, "say": 0, "do": 1}  # the least number of positions between one and the next
PATH = re.compile(r"/out/(0|[1-9][0-9]{0,5})/(think|say|do|with)")
NUMBER = re.compile(r"(0|[1-9][0-9]{0,11})(\.[0-9]{0,2}[1-9])?")  # as Kelp writes them: one spelling of each
CODE = re.compile(r"E-[45][0-9]{2}")  # it contains an HTTP status, in a stream as well
REASONS = {
    "ebb/done": FinishReason.STOP,
    "ebb/full": FinishReason.LENGTH,
    "ebb/tool": FinishReason.TOOL_CALLS,
}


class KelpPlugin:
    """The hooks for Kelp."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Describe the provider."""
        access = Access.by_name("http://127.0.0.1:7470", "KELP")
        return ProviderInfo(title="Kelp", api=1, endpoints=("/v2/dive",), access=access)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """Recognize *event* by Kelp's greeting, or as a possible patch."""
        match event:
            case {"hi": [str(protocol), *_]} if protocol.startswith("kelp/"):
                return Recognition.CERTAIN
            case {"p": [str(), str(path), *_]} if path.startswith("/"):
                return Recognition.POSSIBLE
        return Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Map *event* to deltas: a patch is turned into the fields of a whole body."""
        event = require_object(event)
        if not KEYS & event.keys():
            raise UnknownEventError(f"an event with the keys {sorted(event)[:5]!r}"[:200])
        if error := error_of(None, event):
            yield take_error(event, error)
            return
        if "hi" in event:
            greet(event, state)
        if "p" in event:
            operator, path, value = take_texts(event, "p", 3)
            part = PATH.fullmatch(path)
            if part and operator == OPERATORS[part[2]]:
                yield from part_deltas(int(part[1]), {part[2]: value}, state)
            elif (operator, path) == ("=", "/tide"):
                event["tide"] = value
                if rest := event.pop("p", None):
                    event["shard"], event["p"] = rest[0], rest[1:]
            else:
                raise UnknownEventError(f"a patch {operator[:20]!r} of {path[:60]!r}", event_type=path)
        for place, item in enumerate(take_objects(event, "out")):
            yield from part_deltas(place, item, state)
        if reason := take_string(event, "tide"):
            yield ResponseDelta(raw_finish_reason=reason)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        """Map the word that ended the answer."""
        if reason not in REASONS:
            raise UnknownFinishReasonError(reason)
        return REASONS[reason]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Map the time and the counts. Prompt tokens include the cached ones, which Kelp counts separately."""
        bye = accept_object(event, "bye") or {}
        if (milliseconds := accept_number_text(bye, "ms")) is not None:
            state.request_duration = timedelta(milliseconds=milliseconds)
        spent = accept_object(bye, "spent") or {}
        counts = [accept_number_text(spent, key, whole=True) for key in ("in", "in_cached", "out")]
        fresh, cached, out = (None if count is None else int(count) for count in counts)
        if fresh is not None and cached is not None:
            spent["in"] = str(fresh)  # the sum does not show it, so it is stored as well
            fresh += cached
        return state.usage_info(fresh, out, cached_tokens=cached)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """Map an HTTP error."""
        return error_of(status, body)

    build_request = staticmethod(requests_of("crosswalk_kelp.requests"))


def greet(event: dict[str, Any], state: MappingState) -> None:
    """Map the model and the time. The protocol, and an invalid time, stay in the event."""
    protocol, model, answer_id, time = take_texts(event, "hi", 4)
    kept = [protocol]
    try:
        state.identify(id=answer_id, model=model, created=datetime.fromisoformat(time))
    except ValueError:
        state.identify(id=answer_id, model=model)
        kept.append(time)
    event["hi"] = kept + event.get("hi", [])


def part_deltas(place: int, item: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """The deltas of *item*, or of a piece of it, which is in this *place* of the answer."""
    if not OPERATORS.keys() & item.keys():
        raise UnknownEventError(f"a part with the keys {sorted(item)[:5]!r}"[:200])
    for key, step in APART.items():
        if key in item:
            # A delta can only append, so text that belongs before the text already sent is not readable.
            if place < state.data.get(key, 0):
                raise UnknownEventError(f"{key!r} at {place} comes too late", event_type=key)
            state.data[key] = place + step
    if thought := take_string(item, "think"):
        yield ResponseDelta(reasoning_delta=thought)
    if text := take_string(item, "say"):
        yield ResponseDelta(content_delta=text)
    name, arguments = take_string(item, "do"), take_string(item, "with")
    if name is not None or arguments is not None:
        yield ResponseDelta(tool_call_delta=state.tool_call(index=place, name=name, arguments=arguments))


def take_texts(event: dict[str, Any], key: str, number: int) -> list[str]:
    """Take the first *number* texts of an array. All after them stay in the event."""
    array = take_array(event, key)
    if len(array) < number or not all(isinstance(text, str) for text in array[:number]):
        raise WireTypeError(key, expected=f"array that begins with {number} strings", got="another array")
    if rest := array[number:]:
        event[key] = rest
    return array[:number]


def accept_number_text(container: dict[str, Any], key: str, *, whole: bool = False) -> float | None:
    """Take a number that Kelp writes as a text. Any other text stays, and is marked."""
    text = accept_string(container, key)
    if text is None:
        return None
    if not (number := NUMBER.fullmatch(text)) or (whole and number[2]):
        container[key] = text
        leave_mistyped(container, key)
        return None
    return float(text)


def error_of(status: int | None, event: Any) -> ErrorInfo | None:
    """Return the error in *event*, or ``None`` if it is not an error of Kelp."""
    match event:
        case {"p": ["!", str(), str(code), str(message), *rest]}:
            number = int(code[2:]) if CODE.fullmatch(code) else None
            kind = classify(status or number, message)
            return ErrorInfo(kind, message, rest[:1] == ["retry"], status, code, event)
    return None


plugin = KelpPlugin()
