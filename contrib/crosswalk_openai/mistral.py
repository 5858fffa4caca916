"""Mistral's Conversations API, whole and streamed: entries of several agents and tools instead of choices.

Facts: https://docs.mistral.ai/api/endpoint/beta/conversations and the types of the package mistralai 3.7.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from crosswalk.plugins import (
    CitationRef,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    look_at,
    take_arguments,
    take_count,
    take_error,
    take_objects,
    take_same,
    take_string,
    take_whole,
)

Chunks: TypeAlias = Callable[[dict[str, Any], MappingState], Iterable[ResponseDelta]]
"""Reads the content of an entry that is a list of chunks."""

BODY: Final = "conversation.response"
STREAM_EVENT_TYPES: Final = frozenset(
    {
        *(f"conversation.response.{word}" for word in ("started", "done", "error")),
        *(f"tool.execution.{word}" for word in ("started", "delta", "done")),
        *(f"agent.handoff.{word}" for word in ("started", "done")),
        "message.output.delta",
        "function.call.delta",
    }
)
"""The types of the events of a stream."""


def conversation_deltas(
    event: dict[str, Any], state: MappingState, chunks: Chunks
) -> Iterator[ResponseDelta]:
    """The deltas of a whole answer, or of an event of a stream. What is left of an entry is listed under ``outputs``."""
    kind = take_string(event, "type")
    if kind == "conversation.response.error":
        yield take_error(event)
        return
    state.take_identity(event, id="conversation_id")
    if kind is None:
        del event["object"]
        for number, entry in enumerate(take_objects(event, "outputs")):
            yield from _entry(entry, take_string(entry, "type") or "", state, chunks)
            if entry:
                entry["index"] = number
        event["outputs"] = [entry for entry in event.get("outputs", ()) if entry]
    elif kind != "conversation.response.started" and kind != "conversation.response.done":
        index = take_count(event, "output_index") or 0
        yield from _piece(event, kind, index, state, chunks)
        remainder = {"index": index, **event}
        event.clear()
        event["outputs"] = [remainder]
    if kind in (None, "conversation.response.done"):
        yield ResponseDelta(raw_finish_reason="")


def _entry(entry: dict[str, Any], kind: str, state: MappingState, chunks: Chunks) -> Iterator[ResponseDelta]:
    """The deltas of a whole entry of the type *kind*."""
    take_same(entry, "object", "entry")
    match kind:
        case "message.output":
            yield from _content(entry, state, chunks)
        case "function.call":
            arguments, _ = take_arguments(entry)
            call = state.take_tool_call(entry, arguments=arguments, id="tool_call_id", whole=True)
            yield ResponseDelta(tool_call_delta=call)
        case "tool.execution":
            arguments = take_string(entry, "arguments") or ""
            metadata = {"type": kind, **take_whole(entry)}
            yield ResponseDelta(segment=Segment(SegmentType.TOOL_CALL, arguments, metadata))
        case _:  # such as agent.handoff
            entry["type"] = kind


def _piece(
    event: dict[str, Any], kind: str, index: int, state: MappingState, chunks: Chunks
) -> Iterator[ResponseDelta]:
    """The deltas of an event of the type *kind*, a piece of the entry *index*."""
    match kind:
        case "message.output.delta":
            if type(event.get("content")) is dict:
                event["content"] = [event["content"]]
            yield from _content(event, state, chunks)
        case "function.call.delta":
            arguments, _ = take_arguments(event)
            call = state.take_tool_call(event, arguments=arguments, index=None, id="tool_call_id")
            yield ResponseDelta(tool_call_delta=call)
        case "tool.execution.started" | "tool.execution.delta" | "tool.execution.done":
            arguments = take_string(event, "arguments") or ""
            identity = {key: value for key in ("id", "name") if (value := look_at(event, key, str))}
            fields: dict[str, Any] = take_whole(event) if kind.endswith(".done") else identity
            metadata = {"type": "tool.execution", "is_piece": index, **fields}
            yield ResponseDelta(segment=Segment(SegmentType.TOOL_CALL, arguments, metadata))
        case _:  # agent.handoff
            event["type"] = kind.rpartition(".")[0]


def _content(entry: dict[str, Any], state: MappingState, chunks: Chunks) -> Iterator[ResponseDelta]:
    take_same(entry, "role", "assistant")
    take_same(entry, "content_index", 0)
    state.take_identity({"model": model} if (model := take_string(entry, "model")) else {})
    if type(entry.get("content")) is list:
        yield from chunks(entry, state)
    elif text := take_string(entry, "content"):
        yield ResponseDelta(content_delta=text)


def reference(chunk: dict[str, Any]) -> Segment:
    """The citation in *chunk*, a reference to what a tool has found."""
    title, url = take_string(chunk, "title"), take_string(chunk, "url")
    return Segment(SegmentType.CITATION, title or "", take_whole(chunk), (CitationRef(source=url),))
