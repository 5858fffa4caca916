"""Requests in OpenAI's chat dialect: the building block for every server that takes them.

Facts: OpenAI's reference of ``POST /v1/chat/completions``. Provider document "OpenAI Chat Completions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from crosswalk.request import (
    ChatRequest,
    HTTPRequest,
    NamedTool,
    ResponseFormat,
    ToolDefinition,
    Turn,
    UnsupportedRequestError,
)
from crosswalk.service.options import put_options, spellings_of
from crosswalk.service.turns import (
    Drops,
    arguments_text,
    content_parts,
    data_url,
    media_type_of,
    message_of,
    reasoning_of,
    refusal_of,
    text_of,
    unsupported_part,
    with_results_shown,
    without_silence,
)
from crosswalk.service.way_back.state import own_fields, own_items, put_fields
from crosswalk.types.json import thaw
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Role,
    TextPart,
    ToolCall,
)
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import CitationRef, Segment, SegmentType


@attrs.frozen(kw_only=True)
class OpenAIChatStyle:
    """The differences between a server's requests and OpenAI's.

    Attributes:
        path: the path of the endpoint.
        options: the server's names of options: of those that OpenAI's API spells otherwise, and of those that it lacks.
        include_usage: whether a stream must ask for the token counts (``stream_options``).
        reasoning: the field of an assistant's message that takes reasoning, or ``None`` if *more* handles it.
        call_reasoning: the reasoning of a message that calls tools and has none, for servers that refuse it without any.
        refusal: whether an assistant's message has a field for the reason of declining. Otherwise the reason is its text.
        takes_empty: whether it may be empty. Otherwise an empty message between two of the user gets a text that states
            this, and any other is left out.
        null_content: whether the content of an assistant's message may be null beside calls. Otherwise it is an empty text.
        takes_any_arguments: whether the arguments of a call may be any text. Most servers parse them, and refuse a
            conversation with a truncated call: such arguments are sent back as ``{"INVALID_JSON": text}``.
        hosted_tools: for each kind of tool that the server runs itself, its item of ``tools``.
        more: adds the server's further fields to the message of a turn, or ``None`` for nothing.
        arrange: puts the messages into an order that the server takes.
        unsupported: the options of a request that the API does not have, and why.
    """

    path: str = "/v1/chat/completions"
    options: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    include_usage: bool = True
    reasoning: str | None = "reasoning_content"
    call_reasoning: str = ""
    refusal: bool = False
    takes_empty: bool = True
    null_content: bool = True
    takes_any_arguments: bool = False
    hosted_tools: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, hash=False)
    more: Callable[[Turn, ChatRequest, dict[str, Any]], object] | None = None
    arrange: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
    unsupported: Mapping[str, str] = attrs.field(factory=dict, hash=False)


def build_openai_chat_request(request: ChatRequest, style: OpenAIChatStyle | None = None) -> HTTPRequest:
    """Return *request* as a request in OpenAI's chat dialect.

    Args:
        request: the canonical request.
        style: the differences of the server, or ``None`` for OpenAI's own form.

    Raises:
        UnsupportedRequestError: a message holds a part that the API cannot take, or the conversation has no content.
    """
    style = style or OpenAIChatStyle()
    drops = Drops()
    requested = request
    for option, reason in style.unsupported.items():
        drops.given(request, option, reason=reason)
        empty: Any = () if isinstance(getattr(request, option), tuple) else None
        requested = attrs.evolve(requested, **{option: empty})
    messages = [*_messages(requested, style)]
    if not style.takes_empty:
        messages = [*without_silence(messages, _is_empty)]
    if not messages:
        raise UnsupportedRequestError("the conversation says nothing", options=["messages"])
    body: dict[str, Any] = {"model": request.model, "messages": style.arrange(messages)}
    put_options(body, requested, "chat", drops, names=style.options)
    tools = [openai_tool(tool) for tool in requested.tools]
    for hosted in requested.hosted_tools:
        tools.append(dict(style.hosted_tools[hosted.kind]))
        drops.limits(hosted)
    if tools:
        body["tools"] = tools
    choice = openai_choice(requested)
    if choice is not None:
        body["tool_choice"] = choice if isinstance(choice, str) else _nested(choice)
    if requested.response_format is not None:
        body["response_format"] = _nested(openai_format(requested.response_format))
    if requested.reasoning_effort is not None:
        body["reasoning_effort"] = requested.reasoning_effort.value
    if request.stream:
        body["stream"] = True
        if style.include_usage:
            body["stream_options"] = {"include_usage": True}
    spellings = spellings_of("chat", style.options)
    return HTTPRequest(style.path, body, dropped=drops.found(), spellings=spellings)


def _nested(item: dict[str, Any]) -> dict[str, Any]:
    """Return *item*, as the Responses API has it, in the form of Chat Completions: its fields under the name of its type."""
    fields = {name: value for name, value in item.items() if name != "type"}
    return {"type": item["type"], **({item["type"]: fields} if fields else {})}


def openai_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return *tool* in OpenAI's form, which Ollama takes as well."""
    fields = tool_fields(tool)
    if tool.is_custom and fields.get("format", {}).get("type") == "grammar":
        fields["format"] = _nested(fields["format"])
    return _nested({"type": "custom" if tool.is_custom else "function", **fields})


def openai_choice(request: ChatRequest) -> str | dict[str, Any] | None:
    """Return the choice of a tool in *request* as the Responses API writes it, or ``None`` without one."""
    choice = request.tool_choice
    if not isinstance(choice, NamedTool):
        return None if choice is None else choice.value
    is_custom = any(tool.is_custom and tool.name == choice.name for tool in request.tools)
    return {"type": "custom" if is_custom else "function", "name": choice.name}


def openai_format(wanted: ResponseFormat) -> dict[str, Any]:
    """Return *wanted* as the Responses API writes it."""
    if wanted.schema is None:
        return {"type": "json_object"}
    about = {"name": wanted.name, "schema": thaw(wanted.schema), "strict": wanted.strict}
    return {"type": "json_schema", **about}


def tool_fields(tool: ToolDefinition, parameters: str = "parameters") -> dict[str, Any]:
    """Return the definition of *tool*, with the schema of its arguments under the key *parameters*."""
    fields: dict[str, Any] = {"name": tool.name}
    if not tool.is_custom:
        fields[parameters] = thaw(tool.parameters)
    elif tool.input_format is not None:
        fields["format"] = thaw(tool.input_format)
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return fields


def _messages(request: ChatRequest, style: OpenAIChatStyle) -> Iterator[dict[str, Any]]:
    for turn, sent in with_results_shown(request.messages):
        raw = _message(sent, style)
        if style.more is not None and turn is not None:
            style.more(turn, request, raw)
        yield raw


def _is_empty(said: dict[str, Any]) -> bool:
    return said["role"] == "assistant" and not (said["content"] or "tool_calls" in said or "refusal" in said)


def _message(turn: Turn, style: OpenAIChatStyle) -> dict[str, Any]:
    """Return *turn* as a message."""
    message = message_of(turn)
    payload: dict[str, Any] = {"role": message.role.value, "content": _content(message)}
    if message.name is not None and message.role is not Role.TOOL:
        payload["name"] = message.name
    if message.tool_calls:
        payload["tool_calls"] = [_call(call, style) for call in message.tool_calls]
    if message.tool_call_id is not None:
        payload["tool_call_id"] = message.tool_call_id
    if message.role is Role.ASSISTANT:
        refusal = refusal_of(turn)
        if refusal and style.refusal:
            payload["refusal"] = refusal
        elif refusal:
            payload["content"] = text_of(turn)
        may_be_null = style.null_content and (message.tool_calls or "refusal" in payload)
        if payload["content"] is None and not may_be_null:
            payload["content"] = ""
        reasoning = reasoning_of(turn) or (style.call_reasoning if message.tool_calls else "")
        if style.reasoning is not None and reasoning:
            payload[style.reasoning] = reasoning
        if isinstance(turn, ChatResponse):
            _add_own(payload, turn)
    return payload


def _call(call: ToolCall, style: OpenAIChatStyle) -> dict[str, Any]:
    if call.is_custom:  # no other provider receives one
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    arguments = call.arguments if style.takes_any_arguments else arguments_text(call)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _add_own(said: dict[str, Any], turn: ChatResponse) -> None:
    """Add to *said* the media, the citations and the state of *turn*, as its provider sent them."""
    notes: list[dict[str, Any] | None] = []
    for segment in turn.segments:
        about = segment.metadata
        if segment.type is SegmentType.MEDIA and about.get("type") == "audio":
            if "id" in about:  # of several pieces one has it
                said["audio"] = {"id": about["id"]}
        elif segment.type is SegmentType.MEDIA:
            said.setdefault("images", []).append({"type": "image_url", "image_url": {"url": segment.content}})
        elif segment.type is SegmentType.CITATION and not about:
            notes.append(_annotation(segment))
    if annotations := own_items(turn, notes, inside="annotations"):
        said["annotations"] = annotations
    fields = own_fields(turn)
    fields.pop("annotations", None)
    put_fields(said, fields)


def _annotation(segment: Segment) -> dict[str, Any]:
    cited: dict[str, Any] = {"title": segment.content}
    source = next((note for note in segment.annotations if isinstance(note, CitationRef)), CitationRef())
    cited["url"] = source.source
    if source.span is not None:
        cited["start_index"], cited["end_index"] = source.span
    return {"type": "url_citation", "url_citation": cited}


def _content(message: ChatMessage) -> str | list[dict[str, Any]] | None:
    if message.content is None or isinstance(message.content, str):
        return message.content
    return [_part(part) for part in content_parts(message)] or ""


def _part(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        detail = {} if part.detail is None else {"detail": part.detail}
        return {"type": "image_url", "image_url": {"url": data_url(part), **detail}}
    if isinstance(part, FilePart) and part.id is not None:
        name = {"filename": part.name} if part.name else {}
        return {"type": "file", "file": {"file_id": part.id, **name}}
    if part.data is None:
        raise unsupported_part(part, "must be given as data")
    if isinstance(part, AudioPart):
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": _format(part)}}
    file = {"file_data": data_url(part), "filename": part.name or "file"}
    return {"type": "file", "file": file}


def _format(part: AudioPart | FilePart) -> str:
    """Return ``audio/x-wav`` as ``wav``."""
    name = media_type_of(part).partition("/")[2].removeprefix("x-")
    return {"mpeg": "mp3", "wave": "wav"}.get(name, name)
