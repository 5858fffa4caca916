"""Converts user input to canonical values: a text, dictionaries in OpenAI's chat form, an SDK's messages.

Reads the output of :mod:`crosswalk.service.openai_chat`. Input without a canonical counterpart is refused by name, with its
position, before anything is sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.errors import ResponseValidationError
from crosswalk.text import json_type_name, meant
from crosswalk.types.json import Dumpable, dumped, is_dumpable
from crosswalk.types.message import ChatMessage, Role, TextPart
from crosswalk.types.response import ChatResponse
from crosswalk.wire.chat import (
    read_choice,
    read_custom_tool,
    read_format,
    read_message,
    read_role,
    read_tool,
)
from crosswalk.wire.fields import FieldError, Fields, path_of
from crosswalk.wire.options import option_of

Turn: TypeAlias = ChatMessage | ChatResponse
"""One turn of a conversation: a message, or a model's complete answer. Only an answer has an owner, and state of its own."""
Given: TypeAlias = Turn | Mapping[str, Any] | Dumpable
"""A turn, or a value that can be converted to one: a dictionary in OpenAI's chat form, or an SDK's message."""
Messages: TypeAlias = str | Given | Iterable[Given]
"""A conversation, a single turn, or the user's message as a text."""

_ACCEPTED: Final = (
    "a text, a ChatMessage, a ChatResponse, or a dictionary in OpenAI's chat form, such as "
    '{"role": "user", "content": "Hi"}; or a list of those'
)


def need_name(_: Any, attribute: attrs.Attribute[str], value: object) -> None:
    """An attrs validator: a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ResponseValidationError(f"{attribute.name} must be a text that is not empty")


def need_bool(_: Any, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: a boolean."""
    if type(value) is not bool:
        raise ResponseValidationError(f"{attribute.name} must be a boolean, not {json_type_name(value)}")


def as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    """Convert the list *value* of the field *name* to a tuple.

    Raises:
        ResponseValidationError: it is not a list.
    """
    if not isinstance(value, Iterable):
        raise ResponseValidationError(f"{name} must be a list, not {json_type_name(value)}")
    return tuple(value)


def number(least: float, most: float | None = None, *, whole: bool = False) -> Any:
    """Return a validator: ``None``, or a number from *least* to *most*."""
    kinds: tuple[type, ...] = (int,) if whole else (int, float)

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        top = math.inf if most is None else most
        if value is not None and not (type(value) in kinds and least <= value <= top and value != math.inf):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ResponseValidationError(
                f"{attribute.name} must be a {'whole ' if whole else ''}number, {bounds}"
            )

    return check


def turns_of(given: Messages) -> tuple[Turn, ...]:
    """Convert *given* to a conversation.

    Raises:
        ResponseValidationError: it is not a conversation. The message gives the position, and what is accepted.
    """
    if isinstance(given, str):
        return (ChatMessage.user(given),)
    if isinstance(given, ChatMessage | ChatResponse | Mapping) or is_dumpable(given):
        return (_turn(given, "messages"),)
    turns: object = given
    if not isinstance(turns, Iterable) or isinstance(turns, bytes | bytearray):
        raise ResponseValidationError(f"messages must be {_ACCEPTED}; not {json_type_name(turns)}")
    return tuple(_turn(turn, "messages", number) for number, turn in enumerate(turns))


def _turn(given: Any, *place: str | int) -> Turn:
    if isinstance(given, ChatMessage | ChatResponse):
        return given
    wanted = f"must be {_ACCEPTED.partition(';')[0].removeprefix('a text, ')}"
    raw = _plain(_mapping(given, wanted, *place))
    if isinstance(raw.get("content"), list):
        raw["content"] = [TextPart(part) if isinstance(part, str) else part for part in raw["content"]]
    fields = Fields({name: value for name, value in raw.items() if value != []}, place)
    role = read_role(fields)
    refusal = fields.text("refusal") if role is Role.ASSISTANT else None
    message = read_message(fields, role)
    _need_all_read(fields)
    if refusal:
        message = attrs.evolve(message, content="\n\n".join(filter(None, (message.text, refusal))))
    return message


def _plain(given: Any) -> Any:
    """Return *given* with dictionaries and lists instead of objects of SDKs, mappings and iterables."""
    if is_dumpable(given):
        given = dumped(given)
    if isinstance(given, Mapping):
        return {name: _plain(value) for name, value in given.items()}
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | bytearray):
        return [_plain(item) for item in given]
    return given


def tool_fields(given: object, place: str) -> dict[str, Any]:
    """Return the fields of the tool that *given* defines, in the form of Chat Completions or of the Responses API.

    Raises:
        ResponseValidationError: it does not define a tool.
    """
    accepted = 'must be a ToolDefinition, or {"type": "function", "function": {"name": …, "parameters": …}}'
    fields = Fields(dict(_mapping(given, accepted, place)), (place,))
    kind = fields.take("type")
    if kind not in ("function", "custom"):
        fields.refuse(f"{accepted}; what the provider runs goes into hosted_tools or provider_options")
    read = read_tool if kind == "function" else read_custom_tool
    raw = read(fields.object(kind) or fields)
    _need_all_read(fields)
    return raw


def choice_name(given: Mapping[str, Any]) -> str:
    """Return the name of the tool that a ``tool_choice`` in OpenAI's form requires.

    Raises:
        ResponseValidationError: it requires none.
    """
    fields = Fields(dict(given), ("tool_choice",))
    name = read_choice(fields, is_nested="name" not in fields)
    if name is None:
        fields.refuse('must be a ToolChoice, a NamedTool, or {"type": "function", "function": {"name": …}}')
    return name


def format_fields(given: object) -> dict[str, Any] | None:
    """Return the fields of the ``response_format`` *given* in OpenAI's form, or ``None`` for free text.

    Raises:
        ResponseValidationError: it is not a response format.
    """
    accepted = (
        'must be a ResponseFormat, or {"type": "json_object"}, or {"type": "json_schema", "json_schema": {…}}'
    )
    if isinstance(given, type):
        accepted = f"for an answer of a type, use complete_json(request, {given.__name__:.60})"
    fields = Fields(dict(_mapping(given, accepted, "response_format")), ("response_format",))
    if fields.look("type") not in ("text", "json_object", "json_schema"):
        fields.refuse(accepted)
    raw = read_format(fields)
    _need_all_read(fields)
    return raw


_RENAMED: Final = {"max_completion_tokens": "max_tokens"}
_USAGE: Final = ({"include_usage": True}, {"include_usage": False})


def request_fields(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a request from *given*: a dictionary of the arguments that the chat SDKs take, by keyword.

    Raises:
        ResponseValidationError: it holds a field that no request has.
    """
    fields = {_RENAMED.get(name, name): value for name, value in given.items() if value is not None}
    if fields.get("stream_options") in _USAGE:
        del fields["stream_options"]  # a service always asks for the usage
    for name in [name for name in fields if name not in known]:
        option = option_of("chat", name)
        if option is None:
            why = "no option of a ChatRequest; what only one API knows goes into provider_options"
            raise FieldError(f"{why}{meant(name, known)}", f"request.{name:.40}")
        fields["extra_options"] = {**fields.get("extra_options", {}), option.name: fields.pop(name)}
    return fields


def _mapping(given: object, accepted: str, *place: str | int) -> Mapping[str, Any]:
    if is_dumpable(given):
        given = dumped(given)
    if not isinstance(given, Mapping):
        raise FieldError(f"{accepted}; not {json_type_name(given)}", path_of(place))
    return given


def _need_all_read(fields: Fields) -> None:
    """Refuse *fields* for the first entry in them that has no canonical counterpart."""
    for unread in fields.unread():
        raise FieldError(unread.why, unread.path)


def in_words(noun: str, *about: str | None) -> str:
    """Return the text for *noun*, with the facts *about* it."""
    raw = ", ".join(filter(None, about))
    return f"({noun}: {raw})" if raw else f"({noun})"
