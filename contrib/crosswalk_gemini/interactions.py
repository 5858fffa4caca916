"""Gemini's Interactions API, whole and streamed, in both of its versions.

Facts: ``tests/captures/gemini/README.md`` names the public page of each. The second version has ``steps``, and events
``step.…``; the first one has ``outputs``, and events ``content.…``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from crosswalk.plugins import (
    CREATED,
    ID,
    MODEL,
    REASONING,
    TEXT,
    FieldRow,
    FinishReason,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    TrailingContentError,
    UsageInfo,
    accept_count,
    accept_object,
    count,
    dump_json,
    look_at_count,
    look_at_time,
    same,
    take_count,
    take_object,
    take_objects,
    take_same,
    take_string,
    unknown_event,
)
from crosswalk_gemini.parts import accept_modalities, details_of

STATUSES = {
    "completed": FinishReason.STOP,
    "requires_action": FinishReason.TOOL_CALLS,
    "incomplete": FinishReason.LENGTH,
    "cancelled": FinishReason.CANCELLED,
    "failed": FinishReason.ERROR,
}
"""The finish reasons, by final status of an interaction."""

_START_EVENTS = ("interaction.created", "interaction.start")
_END_EVENTS = ("interaction.completed", "interaction.complete")
_STEP_EVENTS = tuple(f"{part}.{word}" for part in ("step", "content") for word in ("start", "delta", "stop"))
EVENT_TYPES = (*_START_EVENTS, *_END_EVENTS, *_STEP_EVENTS, "interaction.status_update")
_MEDIA_TYPES = ("image", "audio", "video", "document")
_KEPT_TYPES = (
    "text_annotation",
    "text_annotation_delta",
    "function_result",
    "user_input",
    *(
        f"{tool}_{word}"
        for tool in (
            "google_search",
            "url_context",
            "code_execution",
            "file_search",
            "google_maps",
            "mcp_server_tool",
        )
        for word in ("call", "result")
    ),
)
"""The types that stay in the extensions: sources, and the tools that the server runs itself."""


_ANSWER_ROWS: Final = {
    "id": ID,
    "model": MODEL,
    "created": CREATED,
    "object": same("interaction"),
    "role": same("model"),
    "status": FieldRow("finish_reason", None),
}
_COUNT_ROWS: Final = {
    "usage.total_input_tokens": count("prompt_tokens"),
    "usage.total_output_tokens": count("completion_tokens"),
    "usage.total_thought_tokens": count("reasoning_tokens"),
    "usage.total_cached_tokens": count("cached_tokens"),
}
"""The counts. Those of a server's tools are added to the first."""
_CALL_ROWS: Final = dict.fromkeys(("id", "name", "arguments"), FieldRow("tool_calls", None))
_MEDIA_ROWS: Final = dict.fromkeys(("data", "uri"), FieldRow("segments", None))


def _rows() -> dict[str, Mapping[str, FieldRow]]:
    text: dict[str, Mapping[str, FieldRow]] = {
        "text": {"text": TEXT},
        **dict.fromkeys(_MEDIA_TYPES, _MEDIA_ROWS),
    }
    acts: dict[str, Mapping[str, FieldRow]] = {
        "thought": {"summary[].text": REASONING, "signature": _MEDIA_ROWS["data"]},
        "function_call": _CALL_ROWS,
    }
    pieces: dict[str, Mapping[str, FieldRow]] = {
        **text,
        "thought_summary": {"content.text": REASONING},
        "thought_signature": {"signature": _MEDIA_ROWS["data"]},
        "arguments_delta": {"arguments": _CALL_ROWS["arguments"]},
    }
    outer = dict.fromkeys(("steps[].content[].", "steps[].", "outputs[]."), _ANSWER_ROWS)
    inner: dict[str, dict[str, Mapping[str, FieldRow]]] = {
        "steps[].content[].": text,
        "steps[].": acts,
        "outputs[].": {**text, **acts},
        "step.": acts,
        "delta.": pieces,
    }
    stated = {
        f"{at}{type}": {
            **outer.get(at, {}),
            f"{at}type": same(type),
            **{at + path: row for path, row in rows.items()},
        }
        for at, types in inner.items()
        for type, rows in types.items()
    }
    event_rows = {f"interaction.{path}": row for path, row in {**_ANSWER_ROWS, **_COUNT_ROWS}.items()}
    return {**stated, "usage": _COUNT_ROWS, "interaction": event_rows}


class Progress:
    """The progress of an interaction.

    Attributes:
        is_read: whether the answer is an interaction.
        has_ended: whether its final status has arrived.
        begun: the number of steps that have begun.
        number: the number of the last one.
    """

    is_read = False
    has_ended = False
    begun = 0
    number = 0

    def take_index(self, event: dict[str, Any], *, begins: bool) -> int:
        """Take the number of the step that *event* is about, where it is the expected one, and give it."""
        expected = self.begun if begins else self.number
        number = take_count(event, "index")
        self.begun += begins
        if number is None:
            number = expected
        elif number != expected:
            event["index"] = number
        self.number = number
        return number


def interaction_deltas(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """The deltas of a whole interaction, or of one event.

    Raises:
        UnknownEventError: a step, or a piece of one, is of an unknown type.
        TrailingContentError: it comes after the end.
    """
    progress = state.own(Progress)
    if progress.has_ended:
        raise TrailingContentError("a second answer has begun")
    progress.is_read = True
    kind = take_string(event, "event_type")
    if kind == "interaction.status_update":
        take_same(event, "interaction_id", state.id)
        take_same(event, "status", "in_progress")
    elif kind in _STEP_EVENTS:
        yield from _step_event(event, kind, progress, state)
    else:
        interaction = event if kind is None else take_object(event, "interaction") or {}
        yield from _interaction(interaction, progress, state, may_end=kind not in _START_EVENTS)
        if kind is not None:  # the residue has the path of a body
            event.pop("interaction", None)
            event.update(interaction)


def interaction_usage(event: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """Take the counts of an interaction. Thoughts are counted separately from the output, and tool inputs from the input."""
    usage = accept_object(event, "usage")
    if not usage:
        return None
    prompt_tokens, tool_tokens = (
        accept_count(usage, "total_input_tokens"),
        look_at_count(usage, "total_tool_use_tokens"),
    )
    output_tokens, thought_tokens = (
        accept_count(usage, "total_output_tokens"),
        accept_count(usage, "total_thought_tokens"),
    )
    if prompt_tokens is not None:
        prompt_tokens += tool_tokens or 0
        take_same(usage, "total_tokens", prompt_tokens + (output_tokens or 0) + (thought_tokens or 0))
    if output_tokens is not None:
        output_tokens += thought_tokens or 0
    cached_tokens = accept_count(usage, "total_cached_tokens")
    details = details_of(
        accept_modalities(usage, "input_tokens_by_modality", "tokens"),
        accept_modalities(usage, "tool_use_tokens_by_modality", "tokens", take=False),
        accept_modalities(usage, "output_tokens_by_modality", "tokens"),
        accept_modalities(usage, "cached_tokens_by_modality", "tokens"),
        state,
    )
    return state.usage_info(
        prompt_tokens,
        output_tokens,
        cached_tokens=cached_tokens,
        reasoning_tokens=thought_tokens,
        details=details,
    )


def _interaction(
    interaction: dict[str, Any], progress: Progress, state: MappingState, *, may_end: bool
) -> Iterator[ResponseDelta]:
    state.take_identity(interaction, created="")  # it is a text here
    state.identify(created=look_at_time(interaction, "created"))
    take_same(
        interaction, "created", None if state.created is None else f"{state.created:%Y-%m-%dT%H:%M:%SZ}"
    )
    take_same(interaction, "object", "interaction")
    take_same(interaction, "role", "model")
    for name in ("steps", "outputs"):
        steps = take_objects(interaction, name)
        for number, step in enumerate(steps):
            yield from _step(step, number, state)
        if not any(steps):
            interaction.pop(name, None)
    take_same(interaction, "status", "in_progress")
    status = take_string(interaction, "status") if may_end else None
    if status:
        progress.has_ended = True
        yield ResponseDelta(raw_finish_reason=status)


def _step_event(
    event: dict[str, Any], kind: str, progress: Progress, state: MappingState
) -> Iterator[ResponseDelta]:
    """The deltas of a step that begins or continues. The residue is listed under its number, as in a body."""
    name, _, word = kind.partition(".")
    number = progress.take_index(event, begins=word == "start")
    key = "delta" if word == "delta" else name
    step = take_object(event, key) or {}
    yield from _step(step, number, state)
    event.pop(key, None)
    if step:
        event["steps" if name == "step" else "outputs"] = [{"index": number, **step}]


def _step(step: dict[str, Any], number: int, state: MappingState) -> Iterator[ResponseDelta]:
    """A step, an output, a part of an output, or a piece of one."""
    if not step:
        return
    kind = take_string(step, "type")
    if kind == "model_output":
        parts = take_objects(step, "content")
        for part in parts:
            yield from _step(part, number, state)
        if not any(parts):
            step.pop("content", None)
    elif kind == "text":
        text = take_string(step, "text")
        if text:
            yield ResponseDelta(content_delta=text)
    elif kind in ("thought", "thought_summary", "thought_signature"):
        yield from _thought(step)
    elif kind in ("function_call", "arguments_delta"):
        yield from _call(step, number, state)
    elif kind in _MEDIA_TYPES:
        yield from _media(step, kind)
    elif kind in _KEPT_TYPES:
        step["type"] = kind
    else:
        raise unknown_event({"type": kind}, "a step of an unknown type")


def _thought(step: dict[str, Any]) -> Iterator[ResponseDelta]:
    summary = take_objects(step, "summary")
    content = take_object(step, "content")
    for part in (*summary, *([content] if content else ())):
        take_same(part, "type", "text")
        text = take_string(part, "text")
        if text:
            yield ResponseDelta(reasoning_delta=text)
    if not any(summary):
        step.pop("summary", None)
    if not content:
        step.pop("content", None)
    signature = take_string(step, "signature")
    if signature:
        yield ResponseDelta(segment=Segment(SegmentType.REASONING, "", {"signature": signature}))


def _call(step: dict[str, Any], number: int, state: MappingState) -> Iterator[ResponseDelta]:
    """A call. One that begins has an empty object for the arguments that follow in pieces."""
    if type(step.get("arguments")) is dict:
        argument_object = step.pop("arguments")
        arguments = dump_json(argument_object).decode() if argument_object else None
    else:
        arguments = take_string(step, "arguments")
    take_same(step, "signature", "")
    fragment = state.take_tool_call(step, arguments=arguments, index=number)
    yield ResponseDelta(tool_call_delta=fragment)


def _media(step: dict[str, Any], kind: str) -> Iterator[ResponseDelta]:
    data, address = take_string(step, "data"), take_string(step, "uri")
    media_type = take_string(step, "mime_type")
    metadata = {"type": kind, **({"media_type": media_type} if media_type else {})}
    if data:
        yield ResponseDelta(segment=Segment(SegmentType.MEDIA, data, {**metadata, "encoding": "base64"}))
    if address:
        yield ResponseDelta(segment=Segment(SegmentType.MEDIA, address, metadata))


ROWS: Final = _rows()
"""What is read of an interaction, by the type of its steps and their pieces. Code reads it."""
