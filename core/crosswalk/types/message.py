"""Messages of a conversation: what goes to a model and what comes back."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, TypeAlias, final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, json_type_name, short_repr
from crosswalk.types._value import as_tuple, check_flag, check_optional_text, check_text, one_of
from crosswalk.types.tools import ToolCall

__all__ = ["AudioPart", "ChatMessage", "ContentPart", "FilePart", "ImagePart", "Role", "TextPart"]


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@brief
@attrs.frozen
class TextPart:
    """Text as one part of a message.

    Attributes:
        text: the text; may be empty.

    Raises:
        ResponseValidationError: *text* is no text.
    """

    text: str

    def __attrs_post_init__(self) -> None:
        check_text(self, "text")

    __repr__ = short_repr("text")


@brief
@attrs.frozen
class _MediaPart:
    """Something that is not text: by address or as base64 data, never both.

    Attributes:
        url: where it lies; ``None`` when *data* holds it.
        data: the bytes in base64; ``None`` when *url* names them.
        media_type: its MIME type; ``None`` when unknown.
    """

    url: str | None = None
    data: str | None = None
    media_type: str | None = None

    def __attrs_post_init__(self) -> None:
        check_optional_text(self, *attrs.fields_dict(type(self)))
        if (self.url is None) == (self.data is None):
            raise ResponseValidationError(f"{type(self).__name__} needs either a url or data, and not both")

    __repr__ = short_repr("media_type", "url", "data")


class ImagePart(_MediaPart):
    """An image as one part of a message: by its ``url`` or as base64 ``data``, never both.

    Raises:
        ResponseValidationError: it has neither, or both.
    """

    __slots__ = ()  # the fields are those above: attrs need not make a class of it again


class AudioPart(_MediaPart):
    """Sound as one part of a message: by its ``url`` or as base64 ``data``, never both.

    Raises:
        ResponseValidationError: it has neither, or both.
    """

    __slots__ = ()


@brief
@attrs.frozen
class FilePart(_MediaPart):
    """A file as one part of a message: by its ``url`` or as base64 ``data``, never both.

    Attributes:
        name: the file's name; ``None`` when it has none.

    Raises:
        ResponseValidationError: it has neither, or both.
    """

    name: str | None = None

    __repr__ = short_repr("name", "media_type", "url", "data")


ContentPart: TypeAlias = TextPart | ImagePart | AudioPart | FilePart
"""One part of a message that is more than a text: a closed set."""

MessageContent: TypeAlias = str | tuple[ContentPart, ...] | None


def _as_content(value: str | Iterable[ContentPart] | None) -> MessageContent:
    if value is None or isinstance(value, str):
        return value
    return _all(_PARTS, value, "a message's content must be text or parts")


def _as_tool_calls(value: Iterable[ToolCall] | None) -> tuple[ToolCall, ...] | None:
    return None if value is None else _all((ToolCall,), value, "tool_calls must be ToolCalls") or None


_PARTS = (TextPart, ImagePart, AudioPart, FilePart)


def _all(kinds: tuple[type, ...], value: Iterable[Any], wrong: str) -> tuple[Any, ...]:
    try:
        items = as_tuple(value)
    except ResponseValidationError:
        raise ResponseValidationError(f"{wrong}, not {json_type_name(value)}") from None
    for item in items:
        if type(item) not in kinds:
            raise ResponseValidationError(f"{wrong}, not {json_type_name(item)}")
    return items


@brief
@final
@attrs.frozen(weakref_slot=False)
class ChatMessage:
    """One message of a conversation.

    Attributes:
        role: who speaks.
        content: a text, or typed parts (input only); ``None`` when there is none, as beside tool calls.
        name: the speaker's name, or the tool's; ``None`` when not given.
        tool_calls: what an assistant asks for; ``None`` when it asks for nothing.
        tool_call_id: the call that a tool message answers; ``None`` for every other role.
        is_error: for a tool message, whether the tool failed: ``True``, ``False``, or ``None`` where nobody says.

    Raises:
        ResponseValidationError: a field makes no sense for the role, or has another type.
    """

    role: Role = attrs.field()
    content: MessageContent = attrs.field(default=None, converter=_as_content)
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = attrs.field(default=None, converter=_as_tool_calls)
    tool_call_id: str | None = None
    is_error: bool | None = None

    def __attrs_post_init__(self) -> None:
        role, content = self.role, self.content
        if type(role) is not Role:
            role = one_of(Role, role, "unknown role")
            object.__setattr__(self, "role", role)
        if type(content) is str:
            if not content.isascii():
                check_text(self, "content")
        elif content is not None and type(content) is not tuple:
            check_text(self, "content")
        if self.name is not None:
            check_text(self, "name")
        if self.tool_call_id is not None:
            check_text(self, "tool_call_id")
        if self.tool_calls is not None and role != "assistant":
            raise ResponseValidationError(f"a {role} message cannot have tool calls")
        if role == "tool":
            if not self.tool_call_id:
                raise ResponseValidationError("a tool message needs the id of the call it answers")
        elif self.tool_call_id is not None:
            raise ResponseValidationError(f"a {role} message cannot answer a tool call")
        if self.is_error is not None:
            if role != "tool":
                raise ResponseValidationError(f"a {role} message cannot be a failed tool call")
            check_flag(self, "is_error")
        if content is None and role != "assistant":
            raise ResponseValidationError(f"a {role} message needs content")

    @classmethod
    def system(cls, content: str | Iterable[ContentPart]) -> ChatMessage:
        """Instructions to the model."""
        return cls(Role.SYSTEM, content)

    @classmethod
    def user(cls, content: str | Iterable[ContentPart], *, name: str | None = None) -> ChatMessage:
        """What the user says."""
        return cls(Role.USER, content, name=name)

    @classmethod
    def assistant(
        cls, content: str | None = None, *, tool_calls: Iterable[ToolCall] | None = None
    ) -> ChatMessage:
        """What the model says, asks for, or both."""
        return cls(Role.ASSISTANT, content, tool_calls=tool_calls)

    @classmethod
    def tool_result(
        cls,
        tool_call_id: str,
        content: str | Iterable[ContentPart],
        *,
        name: str | None = None,
        is_error: bool | None = None,
    ) -> ChatMessage:
        """What a tool gave back for the call *tool_call_id*, or why it failed (*is_error*)."""
        return cls(Role.TOOL, content, name=name, tool_call_id=tool_call_id, is_error=is_error)

    @property
    def text(self) -> str:
        """The text of the content; ``""`` where it has none."""
        content = self.content
        if content is None or isinstance(content, str):
            return content or ""
        return "".join(part.text for part in content if isinstance(part, TextPart))

    __repr__ = short_repr("role", "name", "content", "tool_calls", "tool_call_id", "is_error")
