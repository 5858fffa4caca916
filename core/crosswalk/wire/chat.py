"""Chat Completions on the wire: fields of a choice, finish words, paths of counts, and the parts of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from crosswalk.types.json import dump_json
from crosswalk.types.message import (
    AudioPart,
    CallKind,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Role,
    TextPart,
    ToolCall,
    VideoPart,
)
from crosswalk.types.usage import OPENAI_COUNT_PATHS as DETAILS, OPENAI_COUNTS as COUNTS
from crosswalk.types.values import FinishReason, SegmentType
from crosswalk.wire.options import Fields, placed

__all__ = [
    "AUDIO",
    "BODY",
    "CHUNK",
    "CITATION",
    "COUNTS",
    "DETAILS",
    "FIELDS",
    "FINISH_REASONS",
    "SPEECH",
    "TEXT",
    "WRITTEN",
]


# ------------------------------------------------------------------------------------ chat
# Chat Completions on the wire: the fields of a choice, its finish words, and the paths of the counts.
#
# Plain data, stated once, for the dialect that reads the form and the writer of the conversion.
# Facts: provider document "OpenAI Chat Completions". Additions of other servers name their server.


BODY: Final = "chat.completion"
"""The ``object`` of a whole answer."""
TEXT: Final = "text_completion"
"""The ``object`` of a legacy completion, and of its chunks."""
CHUNK: Final = "chat.completion.chunk"
"""The ``object`` of each event of a stream."""

FIELDS: Final[Mapping[str, SegmentType]] = MappingProxyType(
    {
        "content": SegmentType.TEXT,
        "reasoning_content": SegmentType.REASONING,  # of OpenAI's own servers none
        "reasoning": SegmentType.REASONING,  # vLLM, OpenRouter, Groq, Ollama
        "refusal": SegmentType.REFUSAL,
        "tool_calls": SegmentType.TOOL_CALL,
        "function_call": SegmentType.TOOL_CALL,  # before there were several
        "annotations": SegmentType.CITATION,
        "audio": SegmentType.MEDIA,
        "images": SegmentType.MEDIA,  # OpenRouter
    }
)
"""The fields of a message or a delta, by name. If several names mean the same, the first is written."""

SPEECH: Final = tuple(
    name for name, kind in FIELDS.items() if kind not in (SegmentType.CITATION, SegmentType.MEDIA)
)
"""Those with which it speaks."""

CITATION: Final[Mapping[str, type]] = MappingProxyType(
    {"start_index": int, "end_index": int, "title": str, "url": str}
)
"""The fields of an annotation of the type ``url_citation``."""

AUDIO: Final[Mapping[str, type]] = MappingProxyType(
    {"data": str, "id": str, "expires_at": int, "transcript": str}
)
"""The fields of a sound."""

WRITTEN: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        "stop": FinishReason.STOP,
        "length": FinishReason.LENGTH,
        "tool_calls": FinishReason.TOOL_CALLS,
        "content_filter": FinishReason.CONTENT_FILTER,
    }
)
"""OpenAI's finish words, which are written."""

FINISH_REASONS: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        **WRITTEN,
        "tool_call": FinishReason.TOOL_CALLS,  # DeepSeek's models on Azure
        "function_call": FinishReason.TOOL_CALLS,
        # Words of one server or another, which gateways pass on.
        "abort": FinishReason.CANCELLED,
        "error": FinishReason.ERROR,
        "insufficient_system_resource": FinishReason.ERROR,  # DeepSeek
        "max_tokens": FinishReason.LENGTH,  # OpenAI's first models that read images, in ``finish_details``
        "model_length": FinishReason.LENGTH,  # Mistral
        "repetition": FinishReason.LENGTH,  # vLLM's detector cut the text: incomplete, if not for its length
    }
)
"""The meaning of each finish word."""


# ---------------------------------------------------------------------------- chat request
# Reads the parts of requests in the form of Chat Completions: messages, parts, calls, tools, choices and formats.
#
# The same functions read a program's dictionaries and a client's JSON. Fields without a canonical counterpart stay in
# the
# :class:`~crosswalk.wire.options.Fields`, with their path.


ROLES: Final = {role.value: role for role in Role} | {"developer": Role.SYSTEM}
"""The roles of messages."""


def read_role(message: Fields) -> Role:
    """The role of *message*."""
    role = ROLES.get(message.text("role") or "")
    if role is None:
        message.refuse(f"must be one of {', '.join(ROLES)}", "role")
    return role


def _no_part(part: Fields) -> None:
    """Leave *part* unread."""


def read_message(
    message: Fields, role: Role, tell: Callable[[Fields], ContentPart | None] = _no_part
) -> ChatMessage:
    """Return *message*, with this *role*. See :func:`read_content` and :func:`read_calls`."""
    content, calls = read_content(message, tell), None
    if role is Role.ASSISTANT:
        calls, told_calls = read_calls(message, tell)
        content = with_parts(content, told_calls)
    else:
        content = message.need("content", content)
    id = message.text("tool_call_id") if role is Role.TOOL else None
    with placed(message):
        return ChatMessage(
            role, content, name=message.text("name"), tool_calls=calls or None, tool_call_id=id
        )


def read_content(
    message: Fields, tell: Callable[[Fields], ContentPart | None] = _no_part
) -> str | list[ContentPart] | None:
    """Return the content of *message*: a text, or parts. What *tell* returns replaces a part of an unknown type."""
    content = message.look("content")
    if isinstance(content, str | None):
        message.take("content")
        return content
    parts = message.each("content", *get_args(ContentPart))
    read_parts = (_part(part) or tell(part) if isinstance(part, Fields) else part for part in parts)
    return [part for part in read_parts if part is not None]


def _part(part: Fields) -> ContentPart | None:
    """Return *part* as a canonical one, or ``None`` if there is none. Then it stays unread."""
    kind = part.need("type", part.text("type"))
    if kind in ("text", "refusal"):
        with placed(part, kind):
            return TextPart(part.need(kind, part.text(kind)))
    if kind == "image_url":
        if isinstance(part.look(kind), str):
            return read_image(part, kind)
        return read_image(part.need(kind, part.object(kind)), "url")
    if kind == "video_url":
        video = part.need(kind, part.object(kind))
        with placed(video, "url"):
            return VideoPart(**read_source(video.need("url", video.text("url"))))
    if kind == "input_audio":
        sound = part.need(kind, part.object(kind))
        format = sound.need("format", sound.text("format"))
        data = sound.need("data", sound.text("data"))
        with placed(sound, "data"):
            return AudioPart(data=data, media_type=f"audio/{'mpeg' if format == 'mp3' else format}")
    if kind == "file" and isinstance(part.look("file"), dict):
        return read_file(part.need(kind, part.object(kind)))
    part.leave("must be text, image_url, video_url, input_audio or file")
    return None


def read_image(fields: Fields, name: str) -> ImagePart:
    """Return the image with its URL in the field *name*."""
    detail = fields.text("detail")
    with placed(fields, name):
        return ImagePart(**read_source(fields.need(name, fields.text(name))), detail=detail)


def read_file(file: Fields) -> FilePart:
    """Return *file*: its data, or its id at OpenAI."""
    name, id = file.text("filename"), file.text("file_id")
    if id is not None:
        return FilePart(id=id, name=name)
    source = file.need("file_data", file.text("file_data"))
    with placed(file, "file_data"):
        return FilePart(**read_source(source), name=name)


def read_source(url: str) -> dict[str, Any]:
    """Return the source of a file: the data of a base64 URL, or the URL."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        kind = head[len("data:") : -len(";base64")].partition(";")[0]
        return {"data": data, "media_type": kind or "text/plain"}
    return {"url": url}


def read_calls(
    message: Fields, tell: Callable[[Fields], ContentPart | None] = _no_part
) -> tuple[list[ToolCall], list[ContentPart]]:
    """Return the calls in *message*, and what *tell* returns for those of an unknown type."""
    calls: list[ToolCall] = []
    told_calls: list[ContentPart] = []
    for call in message.each("tool_calls", ToolCall):
        if isinstance(call, ToolCall):
            calls.append(call)
        elif call.look("type") in (None, "function", "custom"):
            calls.append(_call(call, call.text("type") or "function"))
        else:
            call.leave("must be a function or a custom call")
            if (told := tell(call)) is not None:
                told_calls.append(told)
    return calls, told_calls


def with_parts(
    content: str | list[ContentPart] | None, parts: list[ContentPart]
) -> str | list[ContentPart] | None:
    """Return *content* with *parts* after it."""
    if not parts:
        return content
    if isinstance(content, str | None):
        content = [TextPart(content)] if content else []
    return [*content, *parts]


def _call(call: Fields, kind: str) -> ToolCall:
    call.whole("index")
    tool = call.need(kind, call.object(kind))
    name, id = tool.need("name", tool.text("name")), call.need("id", call.text("id"))
    if kind == "custom":
        with placed(call):
            return ToolCall(id, name, tool.text("input") or "", CallKind.CUSTOM)
    if isinstance(tool.look("arguments"), dict):  # as Ollama has them
        arguments: str | None = dump_json(tool.take("arguments")).decode()
    else:
        arguments = tool.text("arguments")
    with placed(call):
        return ToolCall(id, name, "{}" if arguments is None else arguments)


def read_tool(tool: Fields) -> dict[str, Any]:
    """The fields of the ``ToolDefinition`` that *tool* is."""
    definition = {
        "name": tool.need("name", tool.text("name")),
        "description": tool.text("description"),
        "parameters": tool.plain("parameters"),
        "strict": tool.flag("strict"),
        "defer_loading": tool.flag("defer_loading"),
        "output_schema": tool.plain("output_schema"),
    }
    return {name: value for name, value in definition.items() if value is not None}


def read_custom_tool(tool: Fields) -> dict[str, Any]:
    """Return the fields of the ``ToolDefinition`` that *tool* is, which takes free text."""
    format = tool.plain("format")
    if format is not None and isinstance(format.get("grammar"), dict):  # Chat Completions nests it
        format = {**{name: value for name, value in format.items() if name != "grammar"}, **format["grammar"]}
    return {
        "name": tool.need("name", tool.text("name")),
        "description": tool.text("description"),
        "kind": "custom",
        "input_format": format,
    }


def read_choice(choice: Fields, *, is_nested: bool = True) -> str | None:
    """Return the name of the tool that *choice* requires, or ``None`` for another choice, which stays unread.

    Args:
        choice: the choice.
        is_nested: whether the name is in an object under the type, as in Chat Completions.
    """
    kind = choice.need("type", choice.text("type"))
    if kind not in ("function", "custom"):
        choice.leave()
        return None
    tool = choice.need(kind, choice.object(kind)) if is_nested else choice
    return str(tool.need("name", tool.text("name")))


def read_format(format_fields: Fields) -> dict[str, Any] | None:
    """Return the fields of the ``ResponseFormat`` in *format_fields*, or ``None`` for free text. Others were refused."""
    kind = format_fields.need("type", format_fields.text("type"))
    if kind == "text":
        return None
    if kind == "json_object":
        return {}
    schema_fields = format_fields.need("json_schema", format_fields.object("json_schema"))
    response_format = {
        "schema": schema_fields.need("schema", schema_fields.plain("schema")),
        "name": schema_fields.text("name"),
        "strict": bool(schema_fields.flag("strict")),
        "description": schema_fields.text("description"),
    }
    return {name: value for name, value in response_format.items() if value is not None}
