"""Requests to Cohere's ``/v2/chat``.

Facts: Cohere's reference of "Chat" (v2); provider document "Cohere Chat".
"""

from __future__ import annotations

from functools import partial
from typing import Any

from crosswalk.plugins import (
    ChatRequest,
    ContentPart,
    Drops,
    HTTPRequest,
    ImagePart,
    NamedTool,
    ReasoningEffort,
    RequestRow,
    RequestTable,
    Role,
    SegmentType,
    TextPart,
    Turn,
    content_parts,
    data_url,
    message_of,
    openai_tool,
    own_fields,
    own_items,
    put_fields,
    put_options,
    schema_of,
    segments_of,
    text_of,
    unsupported_part,
    with_files_told,
    with_results_shown,
    without_silence,
    words_of,
)

COHERE = RequestTable(
    "cohere",
    "Cohere's chat",
    ("/v2/chat",),
    (
        *(
            RequestRow(name, name)
            for name in (
                *("temperature", "max_tokens", "seed", "frequency_penalty", "presence_penalty", "logprobs"),
            )
        ),
        RequestRow("p", "top_p"),
        RequestRow("k", "top_k", write=partial(max, 0)),
        RequestRow("stop_sequences", "stop"),
        RequestRow("tool_choice", "tool_choice", words={"none": "NONE", "required": "REQUIRED"}),
        RequestRow("strict_tools", "tool.strict"),
        RequestRow("messages[].content[][image_url].image_url.detail", "part.detail"),
        RequestRow("thinking.token_budget", "thinking_budget", beside={"thinking.type": ("enabled",)}),
    ),
)
"""What the API takes, and where."""


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for Chat v2.

    Raises:
        UnsupportedRequestError: a message holds a file or a sound.
    """
    drops = Drops(request)
    messages = [_message(turn) for _, turn in with_results_shown(request.messages)]
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [*without_silence(messages, lambda message: message.keys() == {"role"})],
        "stream": request.stream,  # it is required
    }
    put_options(body, request, COHERE, drops, but=["tool_choice"])
    if request.tools:
        body["tools"] = [openai_tool(tool) for tool in request.tools]
        for tool in body["tools"]:
            if tool["function"].pop("strict", False):  # all of them, or none
                body["strict_tools"] = True
    if isinstance(request.tool_choice, NamedTool):
        drops.add("tool_choice", "the model may, must or must not call, but not one certain tool")
    elif request.tool_choice in words_of("tool_choice", COHERE):
        body["tool_choice"] = words_of("tool_choice", COHERE)[request.tool_choice]
    if request.response_format is not None:
        body["response_format"] = {"type": "json_object"}
        if request.response_format.schema is not None:
            body["response_format"]["json_schema"] = schema_of(request.response_format)
    if request.reasoning_effort is ReasoningEffort.NONE:
        body["thinking"] = {"type": "disabled"}
    elif request.reasoning_effort is not None and "thinking_budget" not in request.extra_options:
        body["thinking"] = {"type": "enabled"}
        drops.clamp("reasoning_effort", "enabled", "thinking is on or off, or has a budget of tokens")
    return HTTPRequest("/v2/chat", body, adaptations=drops.found(), table=COHERE)


def _message(turn: Turn) -> dict[str, Any]:
    """Return *turn* as a message. An empty one of the model, which the API refuses, has only its role."""
    message = message_of(turn)
    wire_message: dict[str, Any] = {"role": message.role.value}
    if message.role is not Role.ASSISTANT:
        parts = [*with_files_told(content_parts(message))]
        is_text = all(isinstance(part, TextPart) for part in content_parts(message))
        wire_message["content"] = message.text if is_text else [_part(part) for part in parts]
        if message.tool_call_id is not None:
            wire_message["tool_call_id"] = message.tool_call_id
        return wire_message
    text = text_of(turn)
    reasoning_segments = [part for part in segments_of(turn) if part.type is SegmentType.REASONING]
    plan = "".join(part.content for part in reasoning_segments if part.metadata.get("kind") == "tool_plan")
    thought = "".join(part.content for part in reasoning_segments if "kind" not in part.metadata)
    if plan:
        wire_message["tool_plan"] = plan
    blocks: list[dict[str, Any] | None] = [{"type": "thinking", "thinking": thought}] if thought else []
    blocks += [{"type": "text", "text": text}] if text else []
    content = own_items(turn, blocks, inside="content")
    if len(content) > 1 or thought:
        wire_message["content"] = content
    elif text:
        wire_message["content"] = text
    if message.tool_calls:
        wire_message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    put_fields(wire_message, {name: value for name, value in own_fields(turn).items() if name != "content"})
    return wire_message


def _part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        detail_field = {} if part.detail is None else {"detail": part.detail}
        return {"type": "image_url", "image_url": {"url": data_url(part), **detail_field}}
    raise unsupported_part(part, "cannot be sent to this API")
