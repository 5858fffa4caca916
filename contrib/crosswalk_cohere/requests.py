"""Requests to Cohere's ``/v2/chat``.

Facts: Cohere's reference of "Chat" (v2); provider document "Cohere Chat".
"""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import (
    ChatRequest,
    ContentPart,
    Drops,
    HTTPRequest,
    ImagePart,
    NamedTool,
    ReasoningEffort,
    Role,
    SegmentType,
    TextPart,
    ToolChoice,
    Turn,
    arguments_text,
    content_parts,
    data_url,
    message_of,
    openai_tool,
    options_of,
    segments_of,
    text_of,
    thaw,
    unsupported_part,
    with_results_shown,
)

__all__ = ["build_request"]

_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "stop": "stop_sequences",
    "seed": "seed",
}
_CHOICES = {ToolChoice.NONE: "NONE", ToolChoice.REQUIRED: "REQUIRED"}


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for Chat v2.

    Raises:
        UnsupportedRequestError: a message holds a file or a sound.
    """
    drops = Drops()
    messages = [_message(turn, request) for _, turn in with_results_shown(request.messages)]
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [message for message in messages if message is not None],
        "stream": request.stream,  # it must say
    }
    body |= options_of(request, _OPTIONS)
    if request.tools:
        body["tools"] = [openai_tool(tool) for tool in request.tools]
        for tool in body["tools"]:
            if tool["function"].pop("strict", False):  # all of them, or none
                body["strict_tools"] = True
    if isinstance(request.tool_choice, NamedTool):
        drops.add("tool_choice", "the model may, must or must not call, but not one certain tool")
    elif request.tool_choice in _CHOICES:
        body["tool_choice"] = _CHOICES[request.tool_choice]
    drops.given(request, "parallel_tool_calls")
    if request.response_format is not None:
        body["response_format"] = {"type": "json_object"}
        if request.response_format.schema is not None:
            body["response_format"]["json_schema"] = thaw(request.response_format.schema)
    if request.reasoning_effort is ReasoningEffort.NONE:
        body["thinking"] = {"type": "disabled"}
    else:
        drops.given(request, "reasoning_effort", reason="it knows none, and a budget of tokens")
    return HTTPRequest("/v2/chat", body, dropped=drops.found())


def _message(turn: Turn, request: ChatRequest) -> dict[str, Any] | None:
    """*turn* as a message; ``None`` for one of the model that says nothing: it would be refused."""
    message = message_of(turn)
    said: dict[str, Any] = {"role": message.role.value}
    if message.role is not Role.ASSISTANT:
        parts = content_parts(message)
        is_text = all(isinstance(part, TextPart) for part in parts)
        said["content"] = message.text if is_text else [_part(part) for part in parts]
        if message.tool_call_id is not None:
            said["tool_call_id"] = message.tool_call_id
        return said
    text = text_of(turn)
    if not text and not message.tool_calls:
        return None
    thoughts = [part for part in segments_of(turn, request) if part.type is SegmentType.REASONING]
    plan = "".join(part.content for part in thoughts if part.metadata.get("kind") == "tool_plan")
    thought = "".join(part.content for part in thoughts if "kind" not in part.metadata)
    if plan:
        said["tool_plan"] = plan
    if thought:
        said["content"] = [{"type": "thinking", "thinking": thought}]
        said["content"] += [{"type": "text", "text": text}] if text else []
    elif text:
        said["content"] = text
    if message.tool_calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call)},
            }
            for call in message.tool_calls
        ]
    return said


def _part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    raise unsupported_part(part, "cannot be sent to this API")
