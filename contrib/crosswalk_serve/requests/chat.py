"""Requests in the form of OpenAI's Chat Completions: the inverse of :func:`crosswalk.service.build_openai_chat_request`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from crosswalk.convert import WireForm
from crosswalk.service import NamedTool, ResponseFormat, ToolDefinition, Turn
from crosswalk.types import (
    AudioPart,
    CallKind,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Role,
    TextPart,
    ToolCall,
)
from crosswalk_serve.custom_tools import custom_definition
from crosswalk_serve.requests.fields import Fields
from crosswalk_serve.requests.incoming import Incoming, Wants
from crosswalk_serve.requests.reading import (
    answer,
    incoming,
    model,
    option,
    options,
    placed,
    read_words,
    source,
    take_neutral,
    word,
)

__all__ = ["answer_format", "choice", "definition", "effort", "image_of", "read"]

_ROLES: Final = {role.value: role for role in Role} | {"developer": Role.SYSTEM}
_OF_ANSWERS: Final = ("refusal", "reasoning_content", "reasoning", "reasoning_details")
"""What a message says that only a whole answer can hold."""


def read(body: Fields, said: dict[str, Any]) -> Incoming:
    """The request that *body* is; *said* is the same, untouched.

    Raises:
        BadRequestError: it is none.
    """
    wants = Wants(**_wants(body), defaults=take_neutral(body, "chat"))
    tools, custom = _tools(body)
    wants = attrs.evolve(wants, custom_tools=frozenset(custom))
    return incoming(
        WireForm.OPENAI_CHAT,
        body,
        said,
        wants,
        messages=[*_messages(body)],
        model=model(body),
        **options(body, "chat"),
        tools=option(body, "tools", "tools", tools),
        tool_choice=_legacy_choice(body)
        or choice(body, lambda said: said.need("function", said.object("function"))),
        response_format=answer_format(
            body.object("response_format"), lambda said: said.need("json_schema", said.object("json_schema"))
        ),
        reasoning_effort=effort(body, "reasoning_effort"),
        stream=bool(body.flag("stream")),
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


def _messages(body: Fields) -> Iterator[Turn]:
    messages = list(body.objects("messages"))
    if not messages:
        body.refuse("must be a list with at least one message", "messages")
    for message in messages:
        yield _turn(message)


def _turn(message: Fields) -> Turn:
    role = _ROLES.get(message.need("role", message.text("role")))
    if role is None:
        message.refuse(f"must be one of {', '.join(_ROLES)}", "role")
    if role is Role.ASSISTANT and any(message.look(name) for name in _OF_ANSWERS):
        return _answer(message)
    content = _content(message)
    if content is None and role is not Role.ASSISTANT:
        message.refuse("is missing", "content")
    calls = [*_calls(message)] if role is Role.ASSISTANT else None
    id = message.text("tool_call_id") if role is Role.TOOL else None
    with placed(message):
        return ChatMessage(role, content, name=message.text("name"), tool_calls=calls, tool_call_id=id)


def _answer(message: Fields) -> Turn:
    """An answer with more than text and calls, as its server sent it."""
    content = _content(message)
    text = content if isinstance(content, str | None) else "".join(_text(part) for part in content)
    said: dict[str, Any] = {"role": "assistant", "content": text}
    for name in _OF_ANSWERS:
        kind = message.items if name == "reasoning_details" else message.text
        if (value := kind(name)) is not None:
            said[name] = value
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in _calls(message)
    ]
    if calls:
        said["tool_calls"] = calls
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "stop"}
    return answer(message, {"object": "chat.completion", "choices": [choice]}, "openai")


def _text(part: ContentPart) -> str:
    return part.text if isinstance(part, TextPart) else ""


def _content(message: Fields) -> str | list[ContentPart] | None:
    content = message.look("content")
    if isinstance(content, str | None):
        message.take("content")
        return content
    return [part for part in map(_part, message.objects("content")) if part is not None]


def _part(part: Fields) -> ContentPart | None:
    """*part* as a canonical one; ``None`` for one that has no such, which stays unread."""
    kind = part.need("type", part.text("type"))
    if kind in ("text", "refusal"):
        with placed(part, kind):
            return TextPart(part.need(kind, part.text(kind)))
    if kind == "image_url":
        if isinstance(part.look(kind), str):
            return image_of(part, kind)
        image = part.need(kind, part.object(kind))
        if image.look("detail") == "auto":
            image.take("detail")
        return image_of(image, "url")
    if kind == "input_audio":
        sound = part.need(kind, part.object(kind))
        form = sound.need("format", sound.text("format"))
        data = sound.need("data", sound.text("data"))
        with placed(sound, "data"):
            return AudioPart(data=data, media_type=f"audio/{'mpeg' if form == 'mp3' else form}")
    if kind == "file" and isinstance(part.look("file"), dict) and "file_data" in part.look("file"):
        file = part.need(kind, part.object(kind))
        where = source(file.need("file_data", file.text("file_data")))
        with placed(file, "file_data"):
            return FilePart(**where, name=file.text("filename"))
    part.leave()
    return None


def image_of(fields: Fields, name: str) -> ImagePart:
    """The image whose URL is in the field *name*."""
    with placed(fields, name):
        return ImagePart(**source(fields.need(name, fields.text(name))))


def _calls(message: Fields) -> Iterator[ToolCall]:
    for call in message.objects("tool_calls"):
        if call.look("type") == "custom":
            yield _custom_call(call)
            continue
        if call.look("type") not in (None, "function"):
            call.leave()
            continue
        call.take("type")
        call.whole("index")
        function = call.need("function", call.object("function"))
        name = function.need("name", function.text("name"))
        arguments = function.text("arguments")
        id = call.need("id", call.text("id"))
        with placed(call):
            yield ToolCall(id, name, "{}" if arguments is None else arguments)


def _custom_call(call: Fields) -> ToolCall:
    call.take("type")
    call.whole("index")
    tool = call.need("custom", call.object("custom"))
    name, text = tool.need("name", tool.text("name")), tool.text("input")
    id = call.need("id", call.text("id"))
    with placed(call):
        return ToolCall(id, name, text or "", CallKind.CUSTOM)


# Options.


def _tools(body: Fields) -> tuple[list[ToolDefinition], list[str]]:
    """The client's tools, legacy ``functions`` among them, and the names of those that take free text."""
    tools: list[ToolDefinition] = []
    custom: list[str] = []
    for tool in body.objects("tools"):
        kind = tool.need("type", tool.text("type"))
        if kind == "function":
            tools.append(definition(tool.need("function", tool.object("function"))))
        elif kind == "custom":
            about = tool.need("custom", tool.object("custom"))
            name = about.need("name", about.text("name"))
            with placed(about):
                tools.append(custom_definition(name, about.text("description"), about.plain("format")))
            custom.append(name)
        else:
            tool.leave()
    tools += map(definition, body.objects("functions"))
    return tools, custom


def definition(tool: Fields, parameters: str = "parameters") -> ToolDefinition:
    """The tool that *tool* defines, with the schema of its arguments under *parameters*."""
    name = tool.need("name", tool.text("name"))
    about, schema, strict = tool.text("description"), tool.plain(parameters), tool.flag("strict")
    with placed(tool):
        return ToolDefinition(
            name, about, {"type": "object", "properties": {}} if schema is None else schema, strict
        )


def choice(body: Fields, named: Callable[[Fields], Fields] = lambda said: said) -> str | NamedTool | None:
    """Whether the model may call tools; *named* gives the part of a choice that names one."""
    if not isinstance(body.look("tool_choice"), dict):
        return word(body, "tool_choice", read_words("tool_choice", "chat"))
    said = body.object("tool_choice")
    assert said is not None, "it is an object"
    if said.need("type", said.text("type")) != "function":
        said.leave()
        return None
    tool = named(said)
    with placed(tool, "name"):
        return NamedTool(tool.need("name", tool.text("name")))


def _legacy_choice(body: Fields) -> str | NamedTool | None:
    """The choice among the legacy ``functions``."""
    if not isinstance(body.look("function_call"), dict):
        return word(body, "function_call", {"auto": "auto", "none": "none"})
    said = body.object("function_call")
    assert said is not None, "it is an object"
    with placed(said, "name"):
        return NamedTool(said.need("name", said.text("name")))


def answer_format(
    said: Fields | None, described: Callable[[Fields], Fields] = lambda said: said
) -> ResponseFormat | None:
    """What the answer must be, as *said*; *described* gives the part of it that describes a schema."""
    kind = None if said is None else said.need("type", said.text("type"))
    if said is None or kind == "text":
        return None
    if kind == "json_object":
        return ResponseFormat()
    if kind == "json_schema":
        return _schema(described(said))
    said.leave()
    return None


def _schema(wanted: Fields) -> ResponseFormat:
    """The format that *wanted* describes: a name, a schema, and whether it must be kept to."""
    name = wanted.need("name", wanted.text("name"))
    schema = wanted.need("schema", wanted.plain("schema"))
    with placed(wanted):
        return ResponseFormat(schema, name, bool(wanted.flag("strict")))


def effort(fields: Fields, name: str) -> str | None:
    """How much to reason, as the field *name* has it."""
    return word(fields, name, read_words("reasoning_effort", "chat"))
