"""Requests to Ollama's ``/api/chat``.

Facts: Ollama's API documentation, "Generate a chat completion"; provider document "Ollama".
"""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import (
    ChatRequest,
    Drops,
    FilePart,
    HTTPRequest,
    ImagePart,
    Role,
    SegmentType,
    TextPart,
    ToolChoice,
    Turn,
    arguments_object,
    content_parts,
    message_of,
    openai_tool,
    own_fields,
    put_fields,
    put_options,
    reasoning_of,
    schema_of,
    segments_of,
    text_in,
    text_of,
    tool_names,
    unsupported_part,
    with_files_told,
    word_of,
)


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for the native chat endpoint.

    Raises:
        UnsupportedRequestError: a message holds a file, a sound, or an image by its URL.
    """
    drops = Drops(request)
    names = tool_names(request.messages)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(turn, names) for turn in request.messages],
        # It streams by default.
        "stream": request.stream,
    }
    put_options(body, request, "ollama", drops, but=["parallel_tool_calls"])
    if request.tools and request.tool_choice is not ToolChoice.NONE:
        body["tools"] = [openai_tool(tool) for tool in request.tools]
    if request.tool_choice not in (None, ToolChoice.AUTO, ToolChoice.NONE):
        drops.add("tool_choice", "the model may call tools or not, but cannot be made to")
    if request.parallel_tool_calls is False:
        drops.add("parallel_tool_calls", "it cannot be forbidden")
    if request.response_format is not None:
        body["format"] = schema_of(request.response_format) or "json"
    effort = word_of("reasoning_effort", request.reasoning_effort, "ollama", drops)
    if effort is not None:
        body["think"] = effort
    return HTTPRequest("/api/chat", body, adaptations=drops.found())


def _message(turn: Turn, names: Any) -> dict[str, Any]:
    message = message_of(turn)
    images: list[str] = []
    parts = content_parts(message)
    files = [part.text for part in with_files_told(parts) if part not in parts and isinstance(part, TextPart)]
    for part in parts:
        if isinstance(part, ImagePart):
            if part.data is None:
                raise unsupported_part(part, "must be given as data")
            images.append(part.data)
        elif not isinstance(part, TextPart) and not (
            isinstance(part, FilePart) and text_in(part) is not None
        ):
            raise unsupported_part(part, "cannot be sent to this API")
    if message.role is Role.ASSISTANT:
        images += [part.content for part in segments_of(turn) if part.type is SegmentType.MEDIA]
    wire_message: dict[str, Any] = {
        "role": message.role.value,
        "content": "\n\n".join(filter(None, (*files, text_of(turn)))),
    }
    if images:
        wire_message["images"] = images
    if message.tool_calls:
        wire_message["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": arguments_object(call)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire_message["tool_call_id"] = message.tool_call_id
        name = message.name or names.get(message.tool_call_id)
        if name is not None:
            wire_message["tool_name"] = name
    if reasoning := reasoning_of(turn):
        wire_message["thinking"] = reasoning
    put_fields(wire_message, own_fields(turn))
    return wire_message
