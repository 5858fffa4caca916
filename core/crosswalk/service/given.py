"""What people have, as canonical values: a text, dictionaries in OpenAI's chat form, an SDK's messages.

Reads what :mod:`crosswalk.service.openai_chat` writes. What has no place in a canonical value is refused by name, with where
it stands, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from crosswalk.errors import ResponseValidationError
from crosswalk.text import json_type_name, meant
from crosswalk.types.dumped import Dumpable, dumped, is_dumpable
from crosswalk.types.json import dump_json
from crosswalk.types.message import AudioPart, ChatMessage, ContentPart, FilePart, ImagePart, Role, TextPart
from crosswalk.types.response import ChatResponse
from crosswalk.types.tools import ToolCall

__all__ = [
    "Given",
    "Messages",
    "Turn",
    "choice_name",
    "format_fields",
    "request_fields",
    "tool_fields",
    "turns_of",
]

Turn: TypeAlias = ChatMessage | ChatResponse
"""One turn of a conversation: a message, or a model's answer with all that it said."""
Given: TypeAlias = Turn | Mapping[str, Any] | Dumpable
"""A turn, or what one can be made of: a dictionary in OpenAI's chat form, or an SDK's message."""
Messages: TypeAlias = str | Given | Iterable[Given]
"""A conversation, a turn of it alone, or the user's message as a text."""

_ROLES: Final = {role.value: role for role in Role} | {"developer": Role.SYSTEM}
_FIELDS: Final = {
    Role.SYSTEM: {"content", "name"},
    Role.USER: {"content", "name"},
    Role.ASSISTANT: {"content", "name", "tool_calls", "refusal"},
    Role.TOOL: {"content", "name", "tool_call_id"},
}
_ACCEPTED: Final = (
    "a text, a ChatMessage, a ChatResponse, or a dictionary in OpenAI's chat form, such as "
    '{"role": "user", "content": "Hi"}; or a list of those'
)


def turns_of(given: Messages) -> tuple[Turn, ...]:
    """The conversation that *given* is.

    Raises:
        ResponseValidationError: it is none; the message says where, and what is accepted.
    """
    if isinstance(given, str):
        return (ChatMessage.user(given),)
    if isinstance(given, ChatMessage | ChatResponse | Mapping) or is_dumpable(given):
        return (_turn(given, "messages"),)
    turns: object = given
    if not isinstance(turns, Iterable) or isinstance(turns, bytes | bytearray):
        raise ResponseValidationError(f"messages must be {_ACCEPTED}; not {_kind(turns)}")
    return tuple(_turn(turn, f"messages[{number}]") for number, turn in enumerate(turns))


def _turn(given: Any, place: str) -> Turn:
    if isinstance(given, ChatMessage | ChatResponse):
        return given
    said = _object(given, place, f"must be {_ACCEPTED.partition(';')[0].removeprefix('a text, ')}")
    role = said.pop("role", None)
    if not isinstance(role, str) or role not in _ROLES:
        _refuse(f"{place}.role", f"must be one of {', '.join(_ROLES)}")
    known = _FIELDS[_ROLES[role]]
    _need_known(said, known, place, f"no field of a message of role {role}")
    content, refusal = _content(said.get("content"), f"{place}.content"), said.get("refusal")
    if refusal:
        content = "\n\n".join(filter(None, (_text(content or "", f"{place}.content"), refusal)))
    calls = [
        _call(call, f"{place}.tool_calls[{number}]")
        for number, call in enumerate(_list(said.get("tool_calls"), f"{place}.tool_calls"))
    ]
    try:
        return ChatMessage(
            _ROLES[role],
            content,
            name=said.get("name"),
            tool_calls=calls or None,
            tool_call_id=said.get("tool_call_id"),
        )
    except ResponseValidationError as error:
        _refuse(place, str(error))


def _content(given: Any, place: str) -> str | list[ContentPart] | None:
    if given is None or isinstance(given, str):
        return given
    return [_part(part, f"{place}[{number}]") for number, part in enumerate(_list(given, place))]


def _part(given: Any, place: str) -> ContentPart:
    if isinstance(given, TextPart | ImagePart | AudioPart | FilePart):
        return given
    if isinstance(given, str):
        return TextPart(given)
    said = _object(given, place, "must be a part of a message")
    kind = said.pop("type", None)
    if kind == "text":
        _need_known(said, {"text"}, place, "no field of a text")
        return TextPart(_text(said.get("text"), f"{place}.text"))
    if kind == "refusal":
        return TextPart(_text(said.get("refusal"), f"{place}.refusal"))
    if kind == "image_url":
        image = said.get("image_url")
        if isinstance(image, str):
            return ImagePart(**_source(image))
        image = _object(image, f"{place}.image_url", 'must have a "url"')
        if image.get("detail") == "auto":
            del image["detail"]
        _need_known(image, {"url"}, f"{place}.image_url", "no field of an ImagePart")
        return ImagePart(**_source(_text(image.get("url"), f"{place}.image_url.url")))
    if kind == "input_audio":
        sound = _object(said.get("input_audio"), f"{place}.input_audio", 'must have "data" and "format"')
        _need_known(sound, {"data", "format"}, f"{place}.input_audio", "no field of an AudioPart")
        form = _text(sound.get("format"), f"{place}.input_audio.format")
        data = _text(sound.get("data"), f"{place}.input_audio.data")
        return AudioPart(data=data, media_type=f"audio/{'mpeg' if form == 'mp3' else form}")
    if kind == "file":
        file = _object(said.get("file"), f"{place}.file", 'must have "file_data"')
        _need_known(file, {"file_data", "filename"}, f"{place}.file", "no field of a FilePart")
        return FilePart(
            **_source(_text(file.get("file_data"), f"{place}.file.file_data")), name=file.get("filename")
        )
    _refuse(f"{place}.type", "must be one of text, image_url, input_audio, file")


def _source(url: str) -> dict[str, str]:
    """Where a part lies: in its own URL, if that holds base64, else there."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {
            "data": data,
            "media_type": head[len("data:") : -len(";base64")].partition(";")[0] or "text/plain",
        }
    return {"url": url}


def _call(given: Any, place: str) -> ToolCall:
    if isinstance(given, ToolCall):
        return given
    said = _object(given, place, "must be a ToolCall or a call in OpenAI's chat form")
    _need_known(said, {"id", "type", "index", "function"}, place, "no field of a tool call")
    if said.get("type", "function") != "function":
        _refuse(f"{place}.type", "must be function")
    function = _object(said.get("function"), f"{place}.function", 'must have a "name"')
    _need_known(function, {"name", "arguments"}, f"{place}.function", "no field of a call")
    arguments = function.get("arguments", "{}")
    if isinstance(arguments, Mapping):
        arguments = dump_json(dict(arguments)).decode()
    try:
        return ToolCall(said.get("id"), function.get("name"), arguments)  # type: ignore[arg-type]  # it is checked there
    except ResponseValidationError as error:
        _refuse(place, str(error))


def tool_fields(given: object, place: str) -> dict[str, Any]:
    """The fields of the tool that *given* defines: in the form of Chat Completions, or the flat one of the Responses API.

    Raises:
        ResponseValidationError: it defines none.
    """
    accepted = 'must be a ToolDefinition, or {"type": "function", "function": {"name": …, "parameters": …}}'
    said = _object(given, place, accepted)
    kind = said.pop("type", None)
    if kind != "function":
        _refuse(place, f"{accepted}; what the provider runs goes into hosted_tools or provider_options")
    if "function" in said:
        _need_known(said, {"function"}, place, "no field of a tool")
        place = f"{place}.function"
        said = _object(said["function"], place, accepted)
    _need_known(said, {"name", "description", "parameters", "strict"}, place, "no field of a ToolDefinition")
    return said


def choice_name(given: Mapping[str, Any]) -> str:
    """The name of the tool that a ``tool_choice`` in OpenAI's form wants.

    Raises:
        ResponseValidationError: it wants none.
    """
    said = _object(given.get("function", given), "tool_choice", "must have a name")
    if given.get("type") != "function":
        _refuse(
            "tool_choice",
            'must be a ToolChoice, a NamedTool, or {"type": "function", "function": {"name": …}}',
        )
    return _text(said.get("name"), "tool_choice.function.name")


def format_fields(given: object) -> dict[str, Any] | None:
    """The fields of the ``response_format`` that *given* is in OpenAI's form; ``None`` for free text.

    Raises:
        ResponseValidationError: it is none.
    """
    accepted = (
        'must be a ResponseFormat, or {"type": "json_object"}, or {"type": "json_schema", "json_schema": {…}}'
    )
    said = _object(given, "response_format", accepted)
    kind = said.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {}
    if kind != "json_schema":
        _refuse("response_format", accepted)
    place = "response_format.json_schema"
    wanted = _object(said.get("json_schema"), place, 'must have a "schema"')
    _need_known(wanted, {"name", "schema", "strict"}, place, "no field of a ResponseFormat")
    if "schema" not in wanted:
        _refuse(place, 'must have a "schema"')
    return {"strict": False, **wanted}


_RENAMED: Final = {"max_completion_tokens": "max_tokens"}
_USAGE: Final = ({"include_usage": True}, {"include_usage": False})


def request_fields(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """The fields of a request that *given* is: a dictionary as the chat SDKs take it, by keyword.

    Raises:
        ResponseValidationError: it holds what no request has.
    """
    fields = {_RENAMED.get(name, name): value for name, value in given.items() if value is not None}
    if fields.get("stream_options") in _USAGE:
        del fields["stream_options"]  # a service always asks for the usage
    _need_known(
        fields,
        known,
        "request",
        "no option of a ChatRequest; what only one API knows goes into provider_options",
    )
    return fields


def _object(given: object, place: str, accepted: str) -> dict[str, Any]:
    """*given* as a dictionary of what it says, without what is null or an empty list."""
    if is_dumpable(given):
        given = dumped(given)
    if not isinstance(given, Mapping):
        _refuse(place, f"{accepted}; not {_kind(given)}")
    return {key: value for key, value in given.items() if value is not None and value != []}


def _list(given: object, place: str) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        _refuse(place, f"must be a list, not {_kind(given)}")
    return list(given)


def _text(given: object, place: str) -> str:
    if not isinstance(given, str):
        _refuse(place, f"must be a text, not {_kind(given)}")
    return given


def _need_known(said: Mapping[str, Any], known: Iterable[str], place: str, why: str) -> None:
    for key in said:
        if key not in known:
            _refuse(f"{place}.{key:.40}", f"{why}{meant(str(key), known)}")


def _kind(value: object) -> str:
    return json_type_name(value)


def _refuse(place: str, why: str) -> NoReturn:
    raise ResponseValidationError(f"{place}: {why}")
