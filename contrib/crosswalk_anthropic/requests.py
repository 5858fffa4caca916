"""Requests to Anthropic's ``/v1/messages``.

Facts: Anthropic's reference of "Create a Message"; provider document "Anthropic Messages".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crosswalk import (
    Access,
    AudioPart,
    ChatMessage,
    ContentPart,
    ImagePart,
    Role,
    Segment,
    SegmentType,
    TextPart,
    ToolCall,
    thaw,
)
from crosswalk.service import (
    ChatRequest,
    Drops,
    HTTPRequest,
    NamedTool,
    ReasoningEffort,
    ToolChoice,
    ToolDefinition,
    Turn,
    arguments_object,
    as_json_object,
    content_parts,
    media_type_of,
    message_of,
    segments_of,
    system_text,
    unsupported_part,
)

__all__ = ["ACCESS", "DEFAULT_MAX_TOKENS", "build_request"]

ACCESS = Access(
    base_url="https://api.anthropic.com",
    base_url_variables=("ANTHROPIC_BASE_URL",),
    api_key_variables=("ANTHROPIC_API_KEY",),
    api_key_header="x-api-key",
    api_key_scheme=None,
)
DEFAULT_MAX_TOKENS = 4096
"""What ``max_tokens`` is where a request does not say: the API has no default, and every model allows as many."""

_CHOICES = {ToolChoice.AUTO: "auto", ToolChoice.NONE: "none", ToolChoice.REQUIRED: "any"}


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for the Messages API.

    Raises:
        UnsupportedRequestError: a message holds a sound, or anything but text for the system.
    """
    drops = Drops()
    system, turns = system_text(request.messages)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": _messages(turns, request),
    }
    if system:
        body["system"] = "\n\n".join(system)
    for name in ("temperature", "top_p", "top_k"):
        if (value := getattr(request, name)) is not None:
            body[name] = value
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        choice = _tool_choice(request)
        if choice is not None:
            body["tool_choice"] = choice
    drops.given(request, "seed")
    _add_output(body, request, drops)
    if request.stream:
        body["stream"] = True
    headers = {"anthropic-version": "2023-06-01"}
    return HTTPRequest("/v1/messages", body, headers=headers, dropped=drops.found())


def _add_output(body: dict[str, Any], request: ChatRequest, drops: Drops) -> None:
    """How the answer is to be: its format, and how much thought goes into it."""
    config: dict[str, Any] = {}
    if request.response_format is not None:
        if request.response_format.schema is None:
            drops.add("response_format", "JSON needs a schema here")
        else:
            config["format"] = {"type": "json_schema", "schema": thaw(request.response_format.schema)}
    effort = request.reasoning_effort
    if effort is ReasoningEffort.NONE:
        body["thinking"] = {"type": "disabled"}
    elif effort is ReasoningEffort.MINIMAL:
        drops.add("reasoning_effort", "it knows none, low, medium, high and xhigh")
    elif effort is not None:
        body["thinking"] = {"type": "adaptive"}
        config["effort"] = effort.value
    if config:
        body["output_config"] = config


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    said: dict[str, Any] = {"name": tool.name, "input_schema": thaw(tool.parameters)}
    if tool.description is not None:
        said["description"] = tool.description
    if tool.strict is not None:
        said["strict"] = tool.strict
    return said


def _tool_choice(request: ChatRequest) -> dict[str, Any] | None:
    choice: dict[str, Any] | None = None
    if isinstance(request.tool_choice, NamedTool):
        choice = {"type": "tool", "name": request.tool_choice.name}
    elif request.tool_choice is not None:
        choice = {"type": _CHOICES[request.tool_choice]}
    if request.parallel_tool_calls is not None and request.tool_choice is not ToolChoice.NONE:
        choice = {
            **(choice or {"type": "auto"}),
            "disable_parallel_tool_use": not request.parallel_tool_calls,
        }
    return choice


def _messages(turns: Iterable[Turn], request: ChatRequest) -> list[dict[str, Any]]:
    """The conversation. All results of one round of calls belong into one message of the user, as does what he says next."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        message = message_of(turn)
        if message.role is Role.ASSISTANT:
            role, blocks = "assistant", list(_answer(segments_of(turn, request)))
        elif message.role is Role.TOOL:
            role, blocks = "user", [_tool_result(message)]
        else:
            role, blocks = "user", [_block(part) for part in content_parts(message)]
        if not blocks:
            continue  # an empty message is refused, and says nothing
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def _tool_result(message: ChatMessage) -> dict[str, Any]:
    content: Any = message.content
    if not isinstance(content, str):
        content = [_block(part) for part in content_parts(message)]
    return {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}


def _block(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, AudioPart):
        raise unsupported_part(part, "cannot be sent to this API")
    source: dict[str, Any] = {"type": "url", "url": part.url}
    if part.data is not None:
        source = {"type": "base64", "media_type": media_type_of(part), "data": part.data}
    if isinstance(part, ImagePart):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, **({"title": part.name} if part.name else {})}


def _answer(segments: Iterable[Segment]) -> Iterator[dict[str, Any]]:
    """The blocks of a model's answer; reasoning goes back as it came, or not at all."""
    for segment in segments:
        said = segment.metadata.thawed()
        match segment.type:
            case SegmentType.TEXT if segment.content:
                yield {"type": "text", "text": segment.content}
            case SegmentType.REASONING if "encrypted" in said:
                yield {"type": "redacted_thinking", "data": said["encrypted"]}
            case SegmentType.REASONING if "signature" in said:
                yield {"type": "thinking", "thinking": segment.content, "signature": said["signature"]}
            case SegmentType.TOOL_CALL if str(said.get("type")).endswith("_tool_result"):
                yield said
            case SegmentType.TOOL_CALL if "type" in said:
                yield {**said, "input": as_json_object(segment.content) or {}}
            case SegmentType.TOOL_CALL if "name" in said:
                call = ToolCall(said["id"], said["name"], segment.content)
                yield {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call)}
