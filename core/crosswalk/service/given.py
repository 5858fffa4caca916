"""Messages as OpenAI's SDK takes them, dicts, as the messages of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from crosswalk.errors import CrosswalkError, ResponseValidationError
from crosswalk.text import json_type_name
from crosswalk.types.message import AudioPart, ChatMessage, ContentPart, FilePart, ImagePart, TextPart
from crosswalk.types.tools import ToolCall

__all__ = ["message_from"]

_FIELDS: Final = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "refusal"})
_DATA_URL: Final = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


def message_from(given: Mapping[str, Any], place: int) -> ChatMessage:
    """*given*, the message at *place*, in OpenAI's form: role, content as text or parts, calls, the id of a call.

    Raises:
        ResponseValidationError: it has another form.
    """
    try:
        return _message({name: value for name, value in given.items() if value is not None})
    except CrosswalkError as error:
        raise ResponseValidationError(f"messages[{place}]: {error}") from None


def _message(given: dict[str, Any]) -> ChatMessage:
    if strange := sorted(map(str, given.keys() - _FIELDS)):
        raise ResponseValidationError(f"a message has no field {strange[0]!r:.60}")
    role = given.get("role")
    content = given.get("content")
    if isinstance(content, Iterable) and not isinstance(content, str):
        content = [_part(part) for part in content]
    return ChatMessage(
        "system" if role == "developer" else role,  # type: ignore[arg-type]  # it is checked there
        given.get("refusal") if content is None else content,
        given.get("name"),
        [_call(call) for call in _list(given.get("tool_calls", ()))] or None,
        given.get("tool_call_id"),
    )


def _part(given: Any) -> ContentPart:
    if isinstance(given, (TextPart, ImagePart, AudioPart, FilePart)):
        return given
    match given:
        case {"type": "text" | "input_text" | "output_text", "text": text}:
            return TextPart(text)
        case {"type": "refusal", "refusal": text}:
            return TextPart(text)
        case {"type": "image_url" | "input_image", "image_url": {"url": str() as url} | (str() as url)}:
            found = _DATA_URL.fullmatch(url)
            return (
                ImagePart(url=url) if found is None else ImagePart(data=found[2], media_type=found[1] or None)
            )
        case {"type": "input_audio", "input_audio": {"data": data, "format": str() as form}}:
            return AudioPart(data=data, media_type=f"audio/{form}")
        case {"type": "file", "file": {"file_data": str() as data} as file}:
            found = _DATA_URL.fullmatch(data)
            kind, plain = (found[1] or None, found[2]) if found is not None else (None, data)
            return FilePart(data=plain, media_type=kind, name=file.get("filename"))
    what = f"{given.get('type')!r:.60}" if isinstance(given, Mapping) else json_type_name(given)
    raise ResponseValidationError(f"no part of a message can be read from {what}")


def _call(given: Any) -> ToolCall:
    if isinstance(given, ToolCall):
        return given
    match given:
        case {"id": id, "function": {"name": name, "arguments": arguments}}:
            return ToolCall(id, name, arguments)
    raise ResponseValidationError("a tool call has an id, and a function with a name and arguments")


def _list(value: Any) -> Iterable[Any]:
    if not isinstance(value, Iterable):
        raise ResponseValidationError(f"tool_calls must be a list, not {json_type_name(value)}")
    return value
