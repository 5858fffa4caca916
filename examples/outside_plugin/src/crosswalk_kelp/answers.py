"""What the events of an answer mean; a whole body takes the same path as the patches of a stream."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from crosswalk import ResponseDelta, UnknownEventError, get_array, get_object, get_string
from crosswalk.plugins import MappingState, error_delta, event_type, require_object
from crosswalk_kelp.errors import error_of
from crosswalk_kelp.wire import item, milliseconds, patch, target

__all__ = ["event_deltas", "looks_like_ours", "time"]


def looks_like_ours(event: Any) -> bool:
    """Whether *event*, of unknown origin, is ours for certain: it begins with Kelp's greeting."""
    greeting = event.get("hi") if isinstance(event, dict) else None
    return isinstance(greeting, list) and str(greeting[:1]).startswith("['kelp/")


def event_deltas(event: Any, state: MappingState) -> list[ResponseDelta]:
    """The deltas that *event* stands for."""
    event = require_object(event, "the event")
    error = error_of(event)
    if error is not None:
        return [error_delta(error, state)]
    known = [key for key in ("hi", "out", "p", "tide", "bye") if key in event]
    if not known:
        raise UnknownEventError("neither greeting, patch, answer nor farewell", event_type=event_type(event))
    deltas: list[ResponseDelta] = []
    if "hi" in event:
        _identify(get_array(event, "hi"), state)
    if "p" in event:
        deltas += _patched(*patch(event), state)
    for index, part in enumerate(get_array(event, "out")):
        deltas += _part(index, require_object(part, f"out[{index}]"), state)
    if "tide" in event:
        deltas.append(_end(get_string(event, "tide") or "", state))
    elif "out" in event:
        deltas.append(_end("", state))
    farewell = get_object(event, "bye")
    if farewell is not None:
        state.request_duration = milliseconds(farewell, "ms", "bye")
    return deltas


def time(text: str | None) -> datetime | None:
    """The time that *text* says; ``None`` where it says none with a zone."""
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _identify(greeting: list[Any], state: MappingState) -> None:
    model, id, created = (item(greeting, position, "hi") for position in (1, 2, 3))
    state.identify(id=id, model=model, created=time(created))


def _patched(operator: str, path: str, value: str, state: MappingState) -> list[ResponseDelta]:
    if path == "/tide" and operator == "=":
        return [_end(value, state)]
    index, field = target(path)
    if operator != ("=" if field == "do" else "+"):
        # "=" for a text would take back what was already given out.
        raise UnknownEventError("a patch with an operator that is not known", event_type="p")
    return _field(index, field, value, state)


def _part(index: int, part: dict[str, Any], state: MappingState) -> list[ResponseDelta]:
    deltas: list[ResponseDelta] = []
    for field in ("think", "say", "do", "with"):
        value = get_string(part, field, f"out[{index}]")
        if value is not None:
            deltas += _field(index, field, value, state)
    return deltas


def _field(index: int, field: str, value: str, state: MappingState) -> list[ResponseDelta]:
    if field in ("do", "with"):
        name, arguments = (value, None) if field == "do" else (None, value)
        fragment = state.tool_call(index=index, name=name, arguments=arguments)
        return [ResponseDelta(tool_call_delta=fragment)]
    if not value:
        return []
    if field == "think":
        return [ResponseDelta(reasoning_delta=value)]
    return [ResponseDelta(content_delta=value)]


def _end(word: str, state: MappingState) -> ResponseDelta:
    return ResponseDelta(raw_finish_reason=word)
