"""Requests in the form of OpenAI's Chat Completions: the inverse of :func:`crosswalk.service.build_openai_chat_request`."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from crosswalk.convert.form import WireForm
from crosswalk.request import CacheMark, NamedTool, ResponseFormat, ToolDefinition, Turn
from crosswalk.service.client_requests.incoming import Incoming, Wants
from crosswalk.service.client_requests.reading import (
    answer,
    cache_marks,
    incoming,
    option,
    read_words,
    take_neutral,
    word,
)
from crosswalk.types.message import ContentPart, Role, TextPart, ToolCall
from crosswalk.wire.chat import (
    read_calls,
    read_choice,
    read_content,
    read_custom_tool,
    read_format,
    read_message,
    read_role,
    read_tool,
)
from crosswalk.wire.fields import Fields, placed

_OF_ANSWERS: Final = ("refusal", "reasoning_content", "reasoning", "reasoning_details")
"""The fields of a message that only a whole answer can hold."""


def read(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *said* is an untouched copy.

    Raises:
        FieldError: it is not a valid request.
    """
    wants = Wants(**_wants(body), defaults=take_neutral(body, "chat"))
    tools = _tools(body)
    turns, marks = _messages(body)
    return incoming(
        WireForm.OPENAI_CHAT,
        body,
        said,
        wants,
        messages=turns,
        tools=option(body, "tools", "tools", tools),
        tool_choice=_legacy_choice(body) or choice(body),
        response_format=answer_format(body.object("response_format")),
        reasoning_effort=effort(body, "reasoning_effort"),
        cache_marks=marks,
    )


def _wants(body: Fields) -> dict[str, Any]:
    options = body.object("stream_options")
    usage = None if options is None else options.flag("include_usage")
    n = body.is_whole("n")
    return {
        "include_usage": bool(usage),
        "n": 1 if n is None else n,
        "logprobs": bool(body.is_flag("logprobs")),
        "store": body.is_flag("store"),
        "user": body.is_text("user"),
    }


# The conversation.


def _messages(body: Fields) -> tuple[list[Turn], list[CacheMark]]:
    """Return the conversation, and the marks at the end of its messages."""
    messages = list(body.objects("messages"))
    if not messages:
        body.refuse("must be a list with at least one message", "messages")
    turns = [_turn(message) for message in messages]
    marks = (cache_marks(message.last("content"), number) for number, message in enumerate(messages))
    return turns, [*chain.from_iterable(marks)]


def _turn(message: Fields) -> Turn:
    role = read_role(message)
    if role is Role.ASSISTANT and any(message.look(name) for name in _OF_ANSWERS):
        return _answer(message)
    return read_message(message, role)


def _answer(message: Fields) -> Turn:
    """Return an answer with more than text and calls, as its server sent it."""
    content = read_content(message)
    text = content if isinstance(content, str | None) else "".join(_text(part) for part in content)
    payload: dict[str, Any] = {"role": "assistant", "content": text}
    for name in _OF_ANSWERS:
        kind = message.items if name == "reasoning_details" else message.text
        if (value := kind(name)) is not None:
            payload[name] = value
    calls = [_call(call) for call in read_calls(message)]
    if calls:
        payload["tool_calls"] = calls
    choice = {"index": 0, "message": payload, "finish_reason": "tool_calls" if calls else "stop"}
    return answer(message, {"object": "chat.completion", "choices": [choice]}, "openai")


def _call(call: ToolCall) -> dict[str, Any]:
    kind, arguments = ("custom", "input") if call.is_custom else ("function", "arguments")
    return {"id": call.id, "type": kind, kind: {"name": call.name, arguments: call.arguments}}


def _text(part: ContentPart) -> str:
    return part.text if isinstance(part, TextPart) else ""


# Options.


def _tools(body: Fields) -> list[ToolDefinition]:
    """Return the client's tools, including legacy ``functions``."""
    tools: list[ToolDefinition] = []
    for tool in body.objects("tools"):
        kind = tool.need("type", tool.text("type"))
        if kind == "function":
            tools.append(definition(tool.need("function", tool.object("function"))))
        elif kind == "custom":
            tools.append(custom_definition(tool.need("custom", tool.object("custom"))))
        else:
            tool.leave()
    return [*tools, *map(definition, body.objects("functions"))]


def definition(tool: Fields, parameters: str = "parameters") -> ToolDefinition:
    """Return the tool that *tool* defines, with the schema of its arguments under *parameters*."""
    with placed(tool):
        return ToolDefinition(**read_tool(tool, parameters))


def custom_definition(tool: Fields) -> ToolDefinition:
    """Return the tool that *tool* defines, which takes free text."""
    with placed(tool):
        return ToolDefinition(**read_custom_tool(tool))


def choice(body: Fields, *, is_nested: bool = True) -> str | NamedTool | None:
    """Return whether the model may call tools, or which one it must call."""
    if not isinstance(body.look("tool_choice"), dict):
        return word(body, "tool_choice", read_words("tool_choice", "chat"))
    raw = body.object("tool_choice")
    assert raw is not None, "it is an object"
    name = read_choice(raw, is_nested=is_nested)
    with placed(raw, "name"):
        return None if name is None else NamedTool(name)


def _legacy_choice(body: Fields) -> str | NamedTool | None:
    """Return the choice among the legacy ``functions``."""
    if not isinstance(body.look("function_call"), dict):
        return word(body, "function_call", {"auto": "auto", "none": "none"})
    raw = body.object("function_call")
    assert raw is not None, "it is an object"
    with placed(raw, "name"):
        return NamedTool(raw.need("name", raw.text("name")))


def answer_format(said: Fields | None, nested: str | None = "json_schema") -> ResponseFormat | None:
    """Return the required format of the answer from *said*, with the description of a schema in the field *nested*."""
    fields = None if said is None else read_format(said, nested)
    if said is None or fields is None:
        return None
    with placed(said):
        return ResponseFormat(**fields)


def effort(fields: Fields, name: str) -> str | None:
    """Return the reasoning effort from the field *name*."""
    return word(fields, name, read_words("reasoning_effort", "chat"))
