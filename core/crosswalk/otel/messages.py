"""The content of an answer in the words of OpenTelemetry's GenAI semantic conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.otel.attributes import finish_word
from crosswalk.types.json import load_json, plain_view
from crosswalk.types.message import ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.values import Segment, SegmentType


def otel_output_messages(response: ChatResponse) -> list[dict[str, Any]]:
    """Return the model's output, a message for each choice, for ``gen_ai.output.messages``. It is content that few may see.

    Segments without a counterpart in the conventions, such as a refusal or a citation, get a part type that they lack.
    """
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    return [
        {
            "role": answer.message.role.value,
            "parts": [*_parts(answer)],
            "finish_reason": finish_word(answer.finish_reason),
        }
        for answer in answers
    ]


def _parts(answer: ChatResponse | Alternative) -> Iterator[dict[str, Any]]:
    calls = {call.id: call for call in answer.message.tool_calls or ()}
    for segment in answer.segments:
        call = (
            calls.pop(str(segment.metadata.get("id")), None)
            if segment.type is SegmentType.TOOL_CALL
            else None
        )
        yield _part(segment) if call is None else _call(call)
    if not answer.segments and answer.message.text:
        yield {"type": "text", "content": answer.message.text}
    yield from map(_call, calls.values())


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": _decoded(call.arguments)}


def _part(segment: Segment) -> dict[str, Any]:
    raw, content = segment.metadata, segment.content
    match segment.type:
        case SegmentType.TOOL_CALL:  # one that the server makes, or its result
            name = str(raw.get("type") or raw.get("name") or "tool")
            kind = "server_tool_call_response" if name.endswith("_result") else "server_tool_call"
            id = raw.get("id") or raw.get("tool_use_id")
            more = {} if kind.endswith("response") else {"name": str(raw.get("name") or name)}
            about = {**plain_view(raw), "type": name, "content": _decoded(content)}
            return {"type": kind, "id": id if isinstance(id, str) else None, **more, kind: about}
        case SegmentType.MEDIA:
            media_type = raw.get("media_type")
            mime = media_type if isinstance(media_type, str) else None
            modality = "image" if mime is None else mime.partition("/")[0]
            if content.startswith(("http://", "https://", "gs://")):
                return {"type": "uri", "modality": modality, "mime_type": mime, "uri": content}
            return {"type": "blob", "modality": modality, "mime_type": mime, "content": content}
        case kind:
            return {"type": kind.value, "content": content}


def _decoded(text: str) -> Any:
    """Return *text* as decoded JSON, or unchanged if it is not JSON."""
    try:
        return load_json(text)
    except ValueError:
        return text
