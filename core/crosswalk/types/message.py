"""Messages of a conversation and the tool calls in them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from os import PathLike
from typing import Any, Final, TypeAlias, TypeVar, final, overload

import attrs
import orjson

from crosswalk.lazy import pattern
from crosswalk.plain_errors import ResponseValidationError, ToolCallArgumentsError
from crosswalk.text import brief, json_type_name, short_repr
from crosswalk.types.json import RepeatedKeyError, load_json
from crosswalk.types.values import (
    LARGEST,
    as_tuple,
    check_count,
    check_flag,
    check_optional_text,
    check_text,
    checks_keywords,
    one_of,
)
from crosswalk.words import AnswersNames, suggests_names

# ----------------------------------------------------------------------------------- tools
# Tool calls: whole, and as the fragments of a stream.


T = TypeVar("T")


class CallKind(StrEnum):
    """The kind of content of a tool call."""

    FUNCTION = "function"
    """A JSON object with arguments."""
    CUSTOM = "custom"
    """Free text: the input of a tool that OpenAI calls a custom tool."""


def as_call_kind(value: object) -> CallKind | None:
    """Convert a kind: ``function`` becomes ``None``, the kind of every call that does not name one (an attrs converter)."""
    if value is None:
        return None
    kind = one_of(CallKind, value, "unknown kind of tool call")
    return None if kind is CallKind.FUNCTION else kind


@suggests_names
@brief
@final
@attrs.frozen(weakref_slot=False)
class ToolCall:
    """A call that the model asks the client to make.

    Attributes:
        id: the provider's id. If it sent none, a made-up one that ``provenance`` marks ``synthetic``.
        name: the tool's name.
        arguments: the exact text that the model wrote, valid JSON or not, or ``{}`` if it wrote nothing. It is empty
            only if the answer was cut before them, so that nobody knows them. For a custom call, the free text of its input.
        kind: ``custom`` for a call with free text, ``None`` for a function call with a JSON object.

    Raises:
        ResponseValidationError: id or name is empty, a field is not text, or the kind is unknown.
    """

    id: str
    name: str
    arguments: str = "{}"
    kind: CallKind | None = attrs.field(default=None, converter=as_call_kind)

    def __attrs_post_init__(self) -> None:
        id, name, arguments = self.id, self.name, self.arguments
        if not (
            type(id) is type(name) is type(arguments) is str
            and id.isascii()
            and name.isascii()
            and arguments.isascii()
        ):
            check_text(self, "id", "name", "arguments")
        if not id:
            raise ResponseValidationError("tool call id cannot be empty")
        if not name:
            raise ResponseValidationError("tool call name cannot be empty")

    @property
    def is_custom(self) -> bool:
        """Whether the arguments are free text."""
        return self.kind is CallKind.CUSTOM

    @property
    def has_valid_arguments(self) -> bool:
        """Whether :meth:`parsed` returns the arguments: they are a JSON object, or the call is a custom one."""
        try:
            self.parsed()
        except ToolCallArgumentsError:
            return False
        return True

    @overload
    def parsed(self) -> dict[str, Any]: ...
    @overload
    def parsed(self, kind: type[T]) -> T: ...
    def parsed(self, kind: type[T] | None = None) -> dict[str, Any] | T:
        """Return the arguments, decoded, with every digit. For a custom call return ``{"input": text}``.

        An empty text is not an object: a whole answer has ``{}`` for a call without arguments.

        Args:
            kind: the type of the result, or ``None`` for a dict. It is whatever :func:`crosswalk.structured.parse` takes.

        Raises:
            StructuredAnswerError: the arguments are no valid value of *kind*. Its ``errors`` say why.
            ToolCallArgumentsError: the text is not a JSON object, for example because the answer was cut, or it has
                a key twice.
        """
        if kind is not None:
            from crosswalk.structured.parser import parse  # a door up, named in the contracts

            return parse(self, kind).unwrap()
        if self.is_custom:
            return {"input": self.arguments}
        try:
            value = load_json(self.arguments, unique_keys=True)
        except RepeatedKeyError:
            raise self._bad("a key is repeated") from None
        except orjson.JSONDecodeError as error:
            raise self._bad(f"not JSON ({error.msg} at character {error.pos})") from None
        if not isinstance(value, dict):
            raise self._bad("not a JSON object")
        return value

    def _bad(self, cause: str) -> ToolCallArgumentsError:
        name, call_id = self.name[:60], self.id[:60]
        return ToolCallArgumentsError(
            f"arguments of tool call {call_id!r} to {name!r}: {cause}",
            name=self.name,
            call_id=self.id,
        )

    __repr__ = short_repr("id", "name", "arguments", "kind")


@brief
@final
@attrs.frozen(weakref_slot=False)
class ToolCallDelta:
    """A fragment of a tool call.

    Attributes:
        index: the call's position among the calls of its choice, in order of first appearance, from 0.
        id: the provider's id, once, on the fragment that brings it, else ``None``.
        name: the tool's name, once, on the fragment that brings it, else ``None``.
        arguments_delta: text to append to the arguments, or ``None`` if the fragment has none.
        kind: ``custom`` on a fragment of a call with free text, else ``None``.

    Raises:
        ResponseValidationError: the index is negative, or a field has another type.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments_delta: str | None = None
    kind: CallKind | None = attrs.field(default=None, converter=as_call_kind)

    def __attrs_post_init__(self) -> None:
        # Written out: this runs for every fragment of a stream.
        index, id, name, text = self.index, self.id, self.name, self.arguments_delta
        if type(index) is not int or not 0 <= index <= LARGEST:
            check_count(self, "index")
        if text is not None and (type(text) is not str or not text.isascii()):
            check_text(self, "arguments_delta")
        if id is not None and (type(id) is not str or not id.isascii()):
            check_text(self, "id")
        if name is not None and (type(name) is not str or not name.isascii()):
            check_text(self, "name")

    __repr__ = short_repr("index", "id", "name", "arguments_delta", "kind")


_new: Final = object.__new__
_set_index, _set_id, _set_name, _set_text, _set_kind = (
    vars(ToolCallDelta)[f.name].__set__ for f in attrs.fields(ToolCallDelta)
)


def arguments_delta(
    index: int, text: str | None, id: str | None = None, name: str | None = None
) -> ToolCallDelta:
    """Return a fragment, mostly of arguments alone, for a caller that has checked its parts. It bypasses the constructor."""
    fragment = _new(ToolCallDelta)
    _set_index(fragment, index)
    _set_id(fragment, id)
    _set_name(fragment, name)
    _set_text(fragment, text)
    _set_kind(fragment, None)
    return fragment


# --------------------------------------------------------------------------------- message
# Messages of a conversation: the input of a model and its output.


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@brief
@checks_keywords()
@attrs.frozen
class TextPart:
    """Text as one part of a message.

    Attributes:
        text: the text, which may be empty.

    Raises:
        ResponseValidationError: *text* is not text.
    """

    text: str

    def __attrs_post_init__(self) -> None:
        check_text(self, "text")

    __repr__ = short_repr("text")


def _as_texts(value: str | Iterable[str]) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else as_tuple(value)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ResponseValidationError("the content must be a text, or a list of texts")
    return texts


def _in_words(headings: Iterable[str | None], texts: Iterable[str]) -> str:
    """Return *texts* with the lines *headings* them before, for APIs without a place for them."""
    return "\n\n".join(filter(None, ("\n".join(filter(None, headings)), *texts)))


@brief
@attrs.frozen(init=False)
class DocumentPart(TextPart):
    """A document of text, so that the model can answer from it and cite it. A file of text is a :class:`FilePart`.

    Anthropic has a place for it, and so has Bedrock if it is cited. Any other server gets it as text, which is named.

    Attributes:
        text: the document in words: the title, the context and the content.
        content: the text of the document, in one or several pieces. A citation names the pieces.
        title: its title, or ``None`` when it has none.
        context: words about the document for the model, which it does not cite, or ``None``.
        citations: whether the model cites it, or ``None`` for the provider's default.

    Raises:
        ResponseValidationError: a field is of another type, or there is no content.
    """

    text: str = attrs.field(init=False, metadata={"json_key": None})
    content: tuple[str, ...]
    title: str | None = None
    context: str | None = None
    citations: bool | None = None

    @checks_keywords()
    def __init__(
        self,
        content: str | Iterable[str],
        *,
        title: str | None = None,
        context: str | None = None,
        citations: bool | None = None,
    ) -> None:
        texts = _as_texts(content)
        for name, value in (("title", title), ("context", context)):
            if not isinstance(value, str | None):
                raise ResponseValidationError(f"{name} must be text, not {json_type_name(value)}")
        object.__setattr__(self, "text", _in_words((title, context), texts))
        self.__attrs_init__(texts, title, context, citations)
        if citations is not None:
            check_flag(self, "citations")

    __repr__ = short_repr("title", "content", "context", "citations")


@brief
@attrs.frozen(init=False)
class SearchResultPart(TextPart):
    """A result of your own search, so that the model can answer from it and cite it.

    Anthropic has a place for it, and so has Bedrock if it is cited. Any other server gets it as text, which is named.

    Attributes:
        text: the result in words: the title, the source and the content.
        content: the text of the result, in one or several pieces. A citation names the pieces.
        title: the title of what was found.
        source: its address or name, which citations repeat.
        citations: whether the model cites it, or ``None`` for the provider's default.

    Raises:
        ResponseValidationError: a field is of another type, or there is no content.
    """

    text: str = attrs.field(init=False, metadata={"json_key": None})
    content: tuple[str, ...]
    title: str
    source: str
    citations: bool | None = None

    @checks_keywords()
    def __init__(
        self, content: str | Iterable[str], *, title: str, source: str, citations: bool | None = None
    ) -> None:
        texts = _as_texts(content)
        for name, value in (("title", title), ("source", source)):
            if not isinstance(value, str):
                raise ResponseValidationError(f"{name} must be text, not {json_type_name(value)}")
        object.__setattr__(self, "text", _in_words((title, source), texts))
        self.__attrs_init__(texts, title, source, citations)
        if citations is not None:
            check_flag(self, "citations")

    __repr__ = short_repr("title", "source", "content", "citations")


Source: TypeAlias = str | bytes | PathLike[str]
"""The source of media: an address, the name of a file, its path, or the bytes themselves."""

_ADDRESS_PATTERN = pattern(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SIGNATURES = (
    (b"\x89PNG\r\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
)
"""The first bytes of files of these types."""
_RIFF_MEDIA_TYPES = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def _located(
    source: Source | None, url: str | None, data: str | bytes | None, media_type: str | None
) -> tuple[str | None, str | None, str | None, str | None]:
    """Return URL, base64 data, media type and name of media that are given in one of three ways.

    Raises:
        ResponseValidationError: it is given twice, the file cannot be read, or its media type is unknown.
    """
    if source is not None and (url is not None or data is not None):
        raise ResponseValidationError("a part needs either a url or data, and not both")
    if source is None and not isinstance(data, bytes):
        return url, data, media_type, None
    if isinstance(source, str) and _ADDRESS_PATTERN.match(source):
        return source, None, media_type, None
    if isinstance(source, str) and source.startswith("data:"):
        head, _, base64_data = source[len("data:") :].partition(";base64,")
        return None, base64_data, media_type or head.partition(";")[0] or None, None
    return (url, *_encoded(source if data is None else data, media_type))


def _encoded(source: object, media_type: str | None) -> tuple[str, str, str | None]:
    """The base64 data, media type and name of a file, or of bytes."""
    from base64 import b64encode
    from mimetypes import guess_type
    from pathlib import Path

    name, content = None, source
    if not isinstance(content, bytes):
        if not isinstance(source, str | PathLike):
            raise ResponseValidationError(
                f"a part is an address, a file or bytes, not {json_type_name(source)}"
            )
        file = Path(source)
        name = file.name
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ResponseValidationError(
                f"{name[:80]!r} is neither an address nor a file that can be read ({error.strerror})"
            ) from None
        media_type = media_type or guess_type(name)[0]
    media_type = media_type or _media_type(content)
    if media_type is None:
        raise ResponseValidationError("media of an unknown type: give media_type=, such as 'image/png'")
    return b64encode(content).decode("ascii"), media_type, name


def _media_type(content: bytes) -> str | None:
    if content.startswith(b"RIFF"):
        return _RIFF_MEDIA_TYPES.get(content[8:12])
    return next((media_type for prefix, media_type in _SIGNATURES if content.startswith(prefix)), None)


_URL_SAFE = str.maketrans("-_", "+/")


def _as_base64(data: str | None) -> str | None:
    """Return *data* in the alphabet that servers and ``data:`` URLs take. Google's SDK sends the one for addresses."""
    if not isinstance(data, str) or not ("-" in data or "_" in data):
        return data
    return data.translate(_URL_SAFE) + "=" * (-len(data) % 4)


@brief
@attrs.frozen(init=False)
class _MediaPart(metaclass=AnswersNames):
    """Content other than text: by address or as base64 data, never both.

    The first argument may be an address, a file's name or ``Path``, or bytes. A file is read at once. ``url=`` is always an
    address, so that an address from elsewhere never reads a file.

    Attributes:
        url: its address, or ``None`` if *data* holds it.
        data: the bytes in base64, or ``None`` if *url* names them. The alphabet for addresses becomes the standard one.
        media_type: its MIME type, or ``None`` if unknown.
    """

    url: str | None = None
    data: str | None = attrs.field(default=None, converter=_as_base64)
    media_type: str | None = None

    @checks_keywords()
    def __init__(
        self,
        source: Source | None = None,
        /,
        *,
        url: str | None = None,
        data: str | bytes | None = None,
        media_type: str | None = None,
    ) -> None:
        self.__attrs_init__(*_located(source, url, data, media_type)[:3])

    def __attrs_post_init__(self) -> None:
        fields = attrs.fields_dict(type(self))
        check_optional_text(self, *(name for name in fields if name != "citations"))
        if getattr(self, "citations", None) is not None:
            check_flag(self, "citations")
        sources = (self.url, self.data, getattr(self, "id", None))
        if sum(source is not None for source in sources) != 1:
            raise ResponseValidationError(f"{type(self).__name__} needs either a url or data, and not both")

    __repr__ = short_repr("media_type", "url", "data")


@brief
@attrs.frozen(init=False)
class ImagePart(_MediaPart):
    """An image as one part of a message: by its ``url`` or as base64 ``data``, never both.

    Attributes:
        detail: how closely the model looks at it, in OpenAI's words (``low``, ``high``, ``auto``), or ``None`` for the
            provider's default.

    Raises:
        ResponseValidationError: it has neither, or both.
    """

    detail: str | None = None

    @checks_keywords()
    def __init__(
        self,
        source: Source | None = None,
        /,
        *,
        url: str | None = None,
        data: str | bytes | None = None,
        media_type: str | None = None,
        detail: str | None = None,
    ) -> None:
        self.__attrs_init__(*_located(source, url, data, media_type)[:3], detail)

    __repr__ = short_repr("media_type", "url", "data", "detail")


class AudioPart(_MediaPart):
    """Sound as one part of a message: by its ``url`` or as base64 ``data``, never both.

    Raises:
        ResponseValidationError: it has neither, or both.
    """

    __slots__ = ()


class VideoPart(_MediaPart):
    """A video as one part of a message: by its ``url`` or as base64 ``data``, never both.

    Raises:
        ResponseValidationError: it has neither, or both.
    """

    __slots__ = ()


@brief
@attrs.frozen(init=False)
class FilePart(_MediaPart):
    """A file as one part of a message: by its ``url``, as base64 ``data``, or by its ``id``. One of them is set.

    A document that you have as text is a :class:`DocumentPart`.

    Attributes:
        name: the file's name or title, or ``None`` when it has none.
        id: the id of a file that was uploaded to OpenAI, or ``None``.
        context: words about the document for the model, which it does not cite, or ``None``. Anthropic and Bedrock take it.
        citations: whether the model cites the document, or ``None`` for the provider's default. Anthropic and Bedrock can.

    Raises:
        ResponseValidationError: it has neither, or both.
    """

    name: str | None = None
    id: str | None = None
    context: str | None = None
    citations: bool | None = None

    @checks_keywords()
    def __init__(
        self,
        source: Source | None = None,
        /,
        *,
        url: str | None = None,
        data: str | bytes | None = None,
        media_type: str | None = None,
        name: str | None = None,
        id: str | None = None,
        context: str | None = None,
        citations: bool | None = None,
    ) -> None:
        url, data, media_type, file_name = _located(source, url, data, media_type)
        self.__attrs_init__(
            url, data, media_type, file_name if name is None else name, id, context, citations
        )

    __repr__ = short_repr("name", "media_type", "url", "data", "id")


ContentPart: TypeAlias = (
    TextPart | ImagePart | AudioPart | VideoPart | FilePart | SearchResultPart | DocumentPart
)
"""One part of a message that is more than a text: a closed set."""

PartLike: TypeAlias = ContentPart | str | PathLike[str]
"""A part, a text, or the path of a file."""

MessageContent: TypeAlias = str | tuple[ContentPart, ...] | None


def _as_content(value: str | Iterable[PartLike] | None) -> MessageContent:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and any(isinstance(part, str | PathLike) for part in value):
        value = [_as_part(part) for part in value]
    return _all(_PART_TYPES, value, "a message's content must be text or parts")


def _as_part(part: PartLike) -> ContentPart:
    if isinstance(part, str):
        return TextPart(part)
    if not isinstance(part, PathLike):
        return part
    file = FilePart(part)
    match str(file.media_type).partition("/")[0]:
        case "image":
            return ImagePart(data=file.data, media_type=file.media_type)
        case "audio":
            return AudioPart(data=file.data, media_type=file.media_type)
        case "video":
            return VideoPart(data=file.data, media_type=file.media_type)
    return file


def _as_tool_calls(value: Iterable[ToolCall] | None) -> tuple[ToolCall, ...] | None:
    return None if value is None else _all((ToolCall,), value, "tool_calls must be ToolCalls") or None


_PART_TYPES = (TextPart, SearchResultPart, DocumentPart, ImagePart, AudioPart, VideoPart, FilePart)


def _all(types: tuple[type, ...], value: Iterable[Any], problem: str) -> tuple[Any, ...]:
    try:
        items = as_tuple(value)
    except ResponseValidationError:
        raise ResponseValidationError(f"{problem}, not {json_type_name(value)}") from None
    for item in items:
        if type(item) not in types:
            raise ResponseValidationError(f"{problem}, not {json_type_name(item)}")
    return items


@suggests_names
@brief
@final
@attrs.frozen(weakref_slot=False)
class ChatMessage(metaclass=AnswersNames):
    """One message of a conversation.

    Attributes:
        role: the author.
        content: a text, or typed parts (input only), or ``None`` if there is none, as for some tool calls.
        name: the speaker's name, or the tool's, or ``None`` if not given.
        tool_calls: the calls that an assistant asks for, or ``None`` if it asks for none.
        tool_call_id: the call that a tool message answers, or ``None`` for every other role.
        is_error: for a tool message, whether the tool failed: ``True``, ``False``, or ``None`` if unknown.

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
    def system(cls, content: str | Iterable[PartLike]) -> ChatMessage:
        """Instructions to the model."""
        return cls(Role.SYSTEM, content)

    @classmethod
    def user(cls, content: str | Iterable[PartLike], *, name: str | None = None) -> ChatMessage:
        """Return a message of the user."""
        return cls(Role.USER, content, name=name)

    @classmethod
    def assistant(
        cls, content: str | None = None, *, tool_calls: Iterable[ToolCall] | None = None
    ) -> ChatMessage:
        """Return a message of the model: its text, its tool calls, or both."""
        return cls(Role.ASSISTANT, content, tool_calls=tool_calls)

    @classmethod
    def tool_result(
        cls,
        tool_call_id: str,
        content: str | Iterable[PartLike],
        *,
        name: str | None = None,
        is_error: bool | None = None,
    ) -> ChatMessage:
        """Return the result of the call *tool_call_id*, or the reason why it failed (*is_error*)."""
        return cls(Role.TOOL, content, name=name, tool_call_id=tool_call_id, is_error=is_error)

    @property
    def text(self) -> str:
        """The text of the content, or ``""`` if it has none. Search results and documents stand apart, by empty lines."""
        content = self.content
        if content is None or isinstance(content, str):
            return content or ""
        text_parts = [part for part in content if isinstance(part, TextPart)]
        separator = (
            "\n\n" if any(isinstance(part, SearchResultPart | DocumentPart) for part in text_parts) else ""
        )
        return separator.join(part.text for part in text_parts)

    __repr__ = short_repr("role", "name", "content", "tool_calls", "tool_call_id", "is_error")
