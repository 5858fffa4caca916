"""Reads answers and streams of LM Studio's own API, ``/api/v1/chat``.

An answer has output items instead of choices, and LM Studio runs the tools itself.

Facts: https://lmstudio.ai/docs/developer/rest/chat and https://lmstudio.ai/docs/developer/rest/streaming-events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from crosswalk.plugins import (
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    UsageInfo,
    accept_count,
    accept_object,
    dump_json,
    require_object,
    take_object,
    take_objects,
    take_same,
    take_string,
    take_whole,
    unknown_event,
)

FAMILIES: Final = ("chat", "model_load", "prompt_processing", "reasoning", "tool_call", "message")
"""The first words of the types of the events of a stream."""
_RESULT_WORDS: Final = ("success", "result")
_CALL_TYPES: Final = ("tool_call", "invalid_tool_call")
_SEGMENT_TYPES: Final = {"message": SegmentType.TEXT, "reasoning": SegmentType.REASONING}


class OwnEvent:
    """A note whether the current event belongs to this API."""

    is_so = False


class _Streamed:
    """A note whether the stream has already sent a part of the answer."""

    is_so = False


class _Call:
    """The number and the arguments so far of the tool call that the stream is sending."""

    number = 0
    arguments: dict[str, Any] | None = None

    def next(self) -> None:
        """Start the next call."""
        self.number, self.arguments = self.number + 1, None


def lmstudio_deltas(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Return the deltas of a whole answer or of one event of a stream. The last event repeats the whole answer."""
    kind = take_string(event, "type")
    family, _, word = (kind or "").partition(".")
    match family, word:
        case ("", _):
            yield from _answer(event, state)
        case ("chat", "end"):
            yield from _answer(require_object(event.get("result"), "result"), state)
        case ("message" | "reasoning", "delta"):
            state.own(_Streamed).is_so = True
            yield _text(family, take_string(event, "content") or "")
        case ("tool_call", "start" | "arguments" | "success" | "result"):
            state.own(_Streamed).is_so = True
            yield _piece(event, word, state.own(_Call))
        case ("tool_call", "failure"):
            state.own(_Streamed).is_so = True
            state.own(_Call).next()
            yield _call(event, "invalid_tool_call")
        case ("chat", "start"):
            state.take_identity(event, model="model_instance_id")
        case ("model_load", "end"):
            event.pop("model_instance_id", None)
        case (_, "start" | "end" | "progress"):
            event.clear()  # later events repeat its fields
        case _:
            raise unknown_event({"type": kind})


def _answer(answer: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    state.take_identity(answer, id="response_id", model="model_instance_id")
    items, is_streamed = take_objects(answer, "output"), state.own(_Streamed).is_so
    if is_streamed:  # the last event repeats items that the stream has sent
        for kind, segment_type in _SEGMENT_TYPES.items():
            texts = [str(one.get("content")) for one in items if one.get("type") == kind]
            if "".join(texts) == state.choice(0).joined(segment_type):
                items[:] = [one for one in items if one.get("type") != kind]
        if state.own(_Call).number:
            items[:] = [one for one in items if one.get("type") not in _CALL_TYPES]
    for item in () if is_streamed else items:
        item_type = item.get("type")
        if type(item_type) is str and item_type in _SEGMENT_TYPES:
            del item["type"]
            yield _text(item_type, take_string(item, "content") or "")
        elif type(item_type) is str and item_type in _CALL_TYPES:
            del item["type"]
            yield _call(item, item_type)
        else:
            state.note_unknown_part()
    if not any(items):
        answer.pop("output", None)
    yield ResponseDelta(raw_finish_reason="")


def _text(kind: str, text: str) -> ResponseDelta:
    return ResponseDelta(content_delta=text) if kind == "message" else ResponseDelta(reasoning_delta=text)


def _call(item: dict[str, Any], kind: str) -> ResponseDelta:
    """Return a tool call that LM Studio has run, with its result, or one that it could not run."""
    arguments = take_object(item, "arguments")
    item.pop("arguments", None)
    metadata = {"type": kind, **take_whole(item)}
    text = "" if arguments is None else dump_json(arguments).decode()
    return ResponseDelta(segment=Segment(SegmentType.TOOL_CALL, text, metadata))


def _piece(event: dict[str, Any], word: str, call: _Call) -> ResponseDelta:
    """Return the part of *call* in one event. The events bring the tool, then the arguments, then both with the result."""
    if word == "start":
        call.next()
    text = ""
    if call.arguments is None and (arguments := take_object(event, "arguments")) is not None:
        event.pop("arguments", None)
        call.arguments, text = arguments, dump_json(arguments).decode()
    take_same(event, "arguments", call.arguments)
    metadata = {"type": "tool_call", "is_piece": call.number, **take_whole(event)}
    if word in _RESULT_WORDS:
        call.next()
    return ResponseDelta(segment=Segment(SegmentType.TOOL_CALL, text, metadata))


def lmstudio_usage(event: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """Return the token counts in the statistics of a whole answer, or ``None`` if it has no statistics."""
    result = event.get("result")
    stats = accept_object(result if type(result) is dict else event, "stats")
    if not stats:
        return None
    return state.usage_info(
        accept_count(stats, "input_tokens"),
        accept_count(stats, "total_output_tokens"),
        reasoning_tokens=accept_count(stats, "reasoning_output_tokens"),
    )


def lifted(event: dict[str, Any]) -> dict[str, Any]:
    """Return the remaining fields of *event*. Those of a stream's last event move to the paths of a whole answer."""
    result = event.pop("result", None)
    if type(result) is dict:
        event.update(result)
    return event
