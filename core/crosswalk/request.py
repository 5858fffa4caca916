"""A request to a model, independent of any provider: what users give, its tools, and the HTTP request that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack, cast

import attrs

from crosswalk.errors import CrosswalkError, ResponseValidationError
from crosswalk.text import (
    SECRET,
    brief,
    clean_message,
    clean_reason,
    counted,
    json_type_name,
    meant,
    names_credential,
    short_repr,
    shown_url,
    summary,
)
from crosswalk.types.json import (
    EMPTY_OBJECT,
    Dumpable,
    FrozenObject,
    JSONObject,
    as_frozen_object,
    dumped,
    is_dumpable,
)
from crosswalk.types.message import CallKind, ChatMessage, Role, TextPart, as_call_kind
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import altered, checks_keywords, need_bool, need_name, number, one_of
from crosswalk.wire.chat import read_choice, read_custom_tool, read_format, read_message, read_role, read_tool
from crosswalk.wire.options import (
    OPTIONS,
    FieldError,
    Fields,
    RequestTable,
    as_headers,
    option_named,
    path_of,
)
from crosswalk.wire.responses import read_part

NO_ANSWER: Final = "(no answer)"
"""The text of an answer without words, for APIs that would refuse an empty one."""

# ---------------------------------------------------------------------------- http request
# The HTTP request that a plugin builds, with the options that its API cannot express, and the error if it builds none.


def _as_reason(value: str) -> str:
    # All that is looked at, of a text of any length. More would only be remembered.
    return clean_reason(value[:801])


class AdaptationKind(StrEnum):
    """How a value changes on its way from the request to the server."""

    DROPPED = "dropped"
    """It is left out."""
    TOLD = "told"
    """The server has no place for it, so the model gets it as text."""
    CLAMPED = "clamped"
    """The server gets the nearest value that it takes, or the model ignores the value."""
    DEFAULTED = "defaulted"
    """The request sets none, and the API or the model needs one."""
    ADDED = "added"
    """The server's rules force a sentence into the conversation."""


_LONGEST_VALUE: Final = 60


def _shown(field: str, value: Any) -> bool | int | float | str | None:
    """Return *value* for people: a number or a word unchanged, a text shortened, and the size of anything else."""
    value = getattr(value, "value", value)
    if value is not None and names_credential(field, in_head="headers." in field):
        return SECRET
    if value is None or isinstance(value, bool | float) or (type(value) is int and abs(value) < 2**63):
        return value
    if isinstance(value, str):
        return clean_message(value, _LONGEST_VALUE)
    if isinstance(value, Mapping):
        return counted(len(value), "field")
    if not isinstance(value, Sequence):
        return kind_of(value) or json_type_name(value)
    if all(isinstance(one, str) for one in value):
        return clean_message(", ".join(value), _LONGEST_VALUE)
    return counted(len(value), "item")


@attrs.frozen
class Adaptation:
    """One difference between a request and what its server gets.

    It holds no credential and no whole text: *asked* and *sent* are numbers, words or short texts.

    Attributes:
        field: the option's name, such as ``top_k``, or the place of a part: ``messages[0].content[1]``. In a client's own
            words if a client has written the request.
        kind: what becomes of the value.
        reason: why, in a few words.
        asked: the value in the request, or ``None`` if the request sets none, or for a part of the conversation.
        sent: the value in its place, or ``None`` if it is left out. The same as *asked* if the model ignores it.
        refuses: whether the request is refused for it with ``on_unsupported="raise"``. It is false for hints, such as a
            cache mark, and for parts of another provider's answer that no provider accepts, such as reasoning.
    """

    field: str
    kind: AdaptationKind = attrs.field(converter=AdaptationKind)
    reason: str = attrs.field(converter=_as_reason)
    asked: Any = attrs.field(default=None, kw_only=True)
    sent: Any = attrs.field(default=None, kw_only=True)
    refuses: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        for name in ("asked", "sent"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _shown(self.field, value))

    @classmethod
    def dropped(cls, field: str, reason: str, *, asked: Any = None, refuses: bool = False) -> Adaptation:
        """Return the adaptation of *field*, which is left out."""
        return cls(field, AdaptationKind.DROPPED, reason, asked=asked, refuses=refuses)

    def plain(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {name: getattr(self, name) for name in _ADAPTATION_FIELDS} | {"kind": self.kind.value}

    def __str__(self) -> str:
        became = ""
        if self.asked is None and self.sent is not None:
            became = f"{self.sent!r} is sent: "
        elif self.sent not in (None, self.asked):
            became = f"{self.asked} became {self.sent}: "
        return f"{self.field}: {became}{self.reason}"


_ADAPTATION_FIELDS: Final = tuple(field.name for field in attrs.fields(Adaptation))


def adaptations_of(response: ChatResponse) -> tuple[Adaptation, ...]:
    """Return the adaptations of the request that *response* answers, from its last attempt."""
    extra = response.attempts[-1].extra if response.attempts else EMPTY_OBJECT
    named: Any = extra.thawed()["adaptations"] if "adaptations" in extra else ()
    return tuple(Adaptation(**one) for one in named)


@brief
@attrs.frozen(repr=False, eq=False)
class HTTPRequest:
    """The result of a plugin's ``build_request`` for a :class:`ChatRequest`.

    Attributes:
        path: the path below the endpoint's base URL, with its query: ``/v1/chat/completions``. A beginning that
            repeats the end of the base URL (``/v1``) is used once.
        body: the JSON body.
        method: the HTTP method.
        headers: headers that the API wants besides content type and credentials.
        adaptations: all that the server gets otherwise than the request has it, or does not get. The service raises for
            some of them, or records them, as its caller wishes.
        spellings: other names of fields of the body, and their names in the body. An entry of ``provider_options`` under
            such a name is the same option. ``someName`` is ``some_name`` without an entry here.
        tool_names: the caller's name of each tool that has another one in the body, by that one. The service gives the
            calls of an answer the caller's names.
        model_class: the class whose rules were applied, with ``(assumed)`` behind it for a new model of a known family;
            ``"unknown"`` for a model that no row describes; or ``None`` if no facts were asked.
        table: all that the server takes, or ``None`` for what any server with an endpoint at the path takes.
    """

    path: str
    body: dict[str, Any]
    method: str = "POST"
    headers: Mapping[str, str] = attrs.field(factory=dict)
    adaptations: tuple[Adaptation, ...] = ()
    spellings: Mapping[str, str] = attrs.field(factory=dict)
    tool_names: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    model_class: str | None = None
    table: RequestTable | None = None

    @property
    def dropped(self) -> tuple[Adaptation, ...]:
        """Those of :attr:`adaptations` that are left out."""
        return tuple(one for one in self.adaptations if one.kind is AdaptationKind.DROPPED)

    def adapted(self, *more: Adaptation) -> HTTPRequest:
        """Return the same request with *more* adaptations."""
        return altered(self, adaptations=(*self.adaptations, *more)) if more else self

    def __repr__(self) -> str:
        # Neither headers, which may hold credentials, nor the conversation.
        return summary(
            "HTTPRequest", [("method", self.method), ("path", self.path), ("body", tuple(self.body))]
        )


class UnsupportedRequestError(CrosswalkError, ValueError):
    """A provider cannot express a request. Nothing has been sent.

    Attributes:
        provider: the provider id, or ``None`` if the request was built without one.
        options: the names of the options that it cannot express, such as ``top_k`` or ``messages[0]``.
    """

    def __init__(self, message: str, *, provider: str | None = None, options: Sequence[str] = ()) -> None:
        super().__init__(f"{provider}: {message}" if provider else message)
        self.provider = provider
        self.options = tuple(options)


# ----------------------------------------------------------------------------------- given
# Converts user input to canonical values: a text, dictionaries in OpenAI's chat form, an SDK's messages.
#
# Reads the output of :mod:`crosswalk.service.building`. Input without a canonical counterpart is refused by name,
# with its
# position, before anything is sent.


Turn: TypeAlias = ChatMessage | ChatResponse
"""One turn of a conversation: a message, or a model's complete answer. Only an answer has an owner, and state of its own."""
Given: TypeAlias = Turn | Mapping[str, Any] | Dumpable | tuple[str, str]
"""A turn, or a value that can be converted to one: a dictionary in OpenAI's chat form, an SDK's message, or a pair of role
and text."""
Messages: TypeAlias = str | Given | Iterable[Given]
"""A conversation, a single turn, or the user's message as a text."""

_ACCEPTED_FORMS: Final = (
    "a text, a ChatMessage, a ChatResponse, or a dictionary in OpenAI's chat form, such as "
    '{"role": "user", "content": "Hi"}; or a list of those'
)


def as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    """Convert the list *value* of the field *name* to a tuple.

    Raises:
        ResponseValidationError: it is not a list.
    """
    if not isinstance(value, Iterable):
        raise ResponseValidationError(f"{name} must be a list, not {json_type_name(value)}")
    return tuple(value)


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
        raise ResponseValidationError(f"messages must be {_ACCEPTED_FORMS}; not {json_type_name(turns)}")
    return tuple(_turn(turn, "messages", index) for index, turn in enumerate(turns))


def _turn(given: Any, *place: str | int) -> Turn:
    if isinstance(given, ChatMessage | ChatResponse):
        return given
    if isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(text, str) for text in given):
        given = {"role": given[0], "content": given[1]}  # a pair, as LangChain's users write it
    requirement = f"must be {_ACCEPTED_FORMS.partition(';')[0].removeprefix('a text, ')}"
    given_fields = _plain(_mapping(given, requirement, *place))
    if isinstance(given_fields.get("content"), list):
        given_fields["content"] = [
            _given_part(part, (*place, "content", index))
            for index, part in enumerate(given_fields["content"])
        ]
    fields = Fields({name: value for name, value in given_fields.items() if value != []}, place)
    role = read_role(fields)
    refusal = fields.text("refusal") if role is Role.ASSISTANT else None
    message = read_message(fields, role)
    fields.need_all_read()
    if refusal:
        message = attrs.evolve(message, content="\n\n".join(filter(None, (message.text, refusal))))
    return message


def _given_part(part: Any, place: tuple[str | int, ...]) -> Any:
    """Return a text, and a part in the form of the Responses API, as a part of a message. Any other value stays."""
    if isinstance(part, str):
        return TextPart(part)
    if not (isinstance(part, dict) and part.get("type") in ("input_text", "input_image", "input_file")):
        return part
    fields = Fields(part, place)
    read = read_part(fields)
    fields.need_all_read()
    return read


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
    requirement = (
        'must be a ToolDefinition, or {"type": "function", "function": {"name": …, "parameters": …}}'
    )
    fields = Fields(dict(_mapping(given, requirement, place)), (place,))
    kind = fields.take("type")
    if kind not in ("function", "custom"):
        fields.refuse(f"{requirement}; what the provider runs goes into hosted_tools or provider_options")
    read = read_tool if kind == "function" else read_custom_tool
    definition = read(fields.object(kind) or fields)
    fields.need_all_read()
    return definition


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
    requirement = (
        'must be a ResponseFormat, or {"type": "json_object"}, or {"type": "json_schema", "json_schema": {…}}'
    )
    if isinstance(given, type):
        requirement = f"for an answer of a type, use complete_json(request, {given.__name__:.60})"
    fields = Fields(dict(_mapping(given, requirement, "response_format")), ("response_format",))
    if fields.look("type") not in ("text", "json_object", "json_schema"):
        fields.refuse(requirement)
    response_format = read_format(fields)
    fields.need_all_read()
    return response_format


_FIELD_NAMES: Final = {"max_completion_tokens": "max_tokens"}
_USAGE_OPTIONS: Final = ({"include_usage": True}, {"include_usage": False})


def request_fields(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a request from *given*: a dictionary of the arguments that the chat SDKs take, by keyword.

    Raises:
        ResponseValidationError: it holds a field that no request has.
    """
    fields = {_FIELD_NAMES.get(name, name): value for name, value in given.items() if value is not None}
    if fields.get("stream_options") in _USAGE_OPTIONS:
        del fields["stream_options"]  # a service always asks for the usage
    if isinstance(search := fields.pop("web_search_options", None), Mapping):
        fields["hosted_tools"] = [*fields.get("hosted_tools", ()), _web_search(search)]
    for name in fields:
        if name not in known and option_named(name) is None:
            reason = "no option of a ChatRequest; what only one API knows goes into provider_options"
            raise FieldError(f"{reason}{meant(name, [*known, *OPTIONS])}", f"request.{name:.40}")
    return fields


def _web_search(options: Mapping[str, Any]) -> HostedTool:
    """Return the search that the argument ``web_search_options`` of the chat SDKs asks for."""
    user_location = options.get("user_location") or {}
    return HostedTool(
        HostedToolKind.WEB_SEARCH,
        search_context_size=options.get("search_context_size"),
        user_location=user_location.get("approximate"),
    )


def _mapping(given: object, requirement: str, *place: str | int) -> Mapping[str, Any]:
    if is_dumpable(given):
        given = dumped(given)
    if not isinstance(given, Mapping):
        raise FieldError(f"{requirement}; not {json_type_name(given)}", path_of(place))
    return given


def in_words(noun: str, *facts: str | None) -> str:
    """Return the text for *noun*, with the facts *facts* it."""
    details = ", ".join(filter(None, facts))
    return f"({noun}: {details})" if details else f"({noun})"


# ----------------------------------------------------------------------------------- tools
# Tools that a model may call: those of the application, and those that providers run themselves.


class ToolChoice(StrEnum):
    """Whether the model may call tools (OpenAI's words)."""

    AUTO = "auto"
    """The model may call tools."""
    NONE = "none"
    """The model must not call tools."""
    REQUIRED = "required"
    """The model must call at least one tool."""


def _need_text(_: Any, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise ResponseValidationError(f"{attribute.name} must be text, not {json_type_name(value)}")


def _as_examples(value: Iterable[JSONObject]) -> tuple[FrozenObject, ...]:
    return tuple(map(as_frozen_object, as_tuple("input_examples", value)))


_FREE_TEXT_SCHEMA: Final = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


@checks_keywords()
@brief
@attrs.frozen(repr=False)
class ToolDefinition:
    """A tool that the model may call.

    Attributes:
        name: the name that the model calls.
        description: the purpose of the tool and when to use it, for the model, or ``None`` for no description.
        parameters: the JSON Schema of its arguments, or an object without properties by default.
        strict: whether arguments must follow the schema exactly. ``None`` leaves that to the provider.
        kind: ``custom`` for a tool that takes free text, which most providers get as a function with one string ``input``,
            or ``None`` for a function.
        input_format: the format of the free text in the form of the Responses API, or ``None`` for any text.
        defer_loading: whether the model finds the tool only when it searches for tools.
        output_schema: the JSON Schema of its results, or ``None``.
        input_examples: arguments as examples for the model (Anthropic).
        client_tool: the type of a tool that a vendor has defined and you run, such as ``shell``. See
            :func:`crosswalk.service.client_tool`. ``None`` for a tool of your own.

    Raises:
        ResponseValidationError: an empty name, parameters that are not a JSON object, or a field of another type.
    """

    name: str = attrs.field(validator=need_name)
    description: str | None = attrs.field(default=None, validator=_need_text)
    parameters: FrozenObject = attrs.field(
        default=FrozenObject.adopt({"type": "object", "properties": {}}), converter=as_frozen_object
    )
    strict: bool | None = attrs.field(default=None, validator=attrs.validators.optional(need_bool))
    kind: CallKind | None = attrs.field(default=None, converter=as_call_kind)
    input_format: FrozenObject | None = attrs.field(
        default=None, converter=attrs.converters.optional(as_frozen_object)
    )
    defer_loading: bool | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(need_bool)
    )
    output_schema: FrozenObject | None = attrs.field(
        default=None, kw_only=True, converter=attrs.converters.optional(as_frozen_object)
    )
    input_examples: tuple[FrozenObject, ...] = attrs.field(default=(), kw_only=True, converter=_as_examples)
    client_tool: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)

    __repr__ = short_repr("name", "description", "parameters")

    @property
    def is_custom(self) -> bool:
        """Whether the tool takes free text."""
        return self.kind is CallKind.CUSTOM

    def as_function(self) -> ToolDefinition:
        """Return a function in place of a custom tool. Its description has the format of the input in words."""
        if not self.is_custom:
            return self
        format: Mapping[str, Any] = self.input_format or {}
        about = [self.description] if self.description else []
        if format.get("type") == "grammar":
            syntax, grammar = format.get("syntax"), format.get("definition")
            about.append(f"The input must match this grammar ({syntax}):\n{grammar}")
        return ToolDefinition(self.name, "\n\n".join(about) or None, _FREE_TEXT_SCHEMA)


@attrs.frozen
class NamedTool:
    """A ``tool_choice``: the model must call the tool of this name.

    Raises:
        ResponseValidationError: an empty name.
    """

    name: str = attrs.field(validator=need_name)


class HostedToolKind(StrEnum):
    """A tool that several providers run themselves."""

    WEB_SEARCH = "web_search"
    """Searches the web."""
    WEB_FETCH = "web_fetch"
    """Reads pages by the addresses in the conversation."""
    CODE_EXECUTION = "code_execution"
    """Runs code that the model writes."""
    FILE_SEARCH = "file_search"
    """Searches the files of stores that the provider keeps."""
    IMAGE_GENERATION = "image_generation"
    """Makes and changes pictures."""


def _as_kind(value: str) -> HostedToolKind:
    return one_of(
        HostedToolKind, value, "unknown hosted tool; one of a single provider goes into provider_options"
    )


def _names(field_name: str, value: Iterable[str]) -> tuple[str, ...]:
    """Convert *value* to a tuple of names. *field_name* says of what, for the error."""
    names = () if isinstance(value, str) else as_tuple(field_name, value)
    if not all(type(name) is str and name for name in names) or isinstance(value, str):
        raise ResponseValidationError(f"{field_name} must be a list of names")
    return names


def _as_domains(value: Iterable[str]) -> tuple[str, ...]:
    return _names("domains", value)


def _as_stores(value: Iterable[str]) -> tuple[str, ...]:
    return _names("file_store_ids", value)


def _as_allowed_names(value: Iterable[str]) -> tuple[str, ...]:
    return _names("allowed_tools", value)


@attrs.frozen
class HostedTool:
    """A tool that the provider runs, so that the application does not answer its calls.

    Attributes:
        kind: the tool.
        allowed_domains: the only domains that it may look at, or empty for all.
        blocked_domains: the domains that it must not look at.
        max_uses: the most uses in one answer, or ``None`` for the provider's own limit.
        user_location: for a search, where the user is: ``city``, ``region``, ``country``, ``timezone``. ``None`` leaves
            that open.
        search_context_size: for a search, how much of the pages the model gets: ``low``, ``medium``, ``high``.
        file_store_ids: for a search in files, the ids or names of the provider's stores of files.
        max_results: for a search in files, the most results that the model gets, or ``None`` for the provider's own limit.
        size, quality, background, output_format: for pictures, in OpenAI's words: ``1024x1024``, ``high``,
            ``transparent``, ``png``. ``None`` for the provider's default.

    Raises:
        ResponseValidationError: an unknown kind, domains that are not a list of names, a limit below 1, or a place or size
            of another type.
    """

    kind: HostedToolKind = attrs.field(converter=_as_kind)
    allowed_domains: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_as_domains)
    blocked_domains: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_as_domains)
    max_uses: int | None = attrs.field(default=None, kw_only=True)
    user_location: FrozenObject | None = attrs.field(
        default=None, kw_only=True, converter=attrs.converters.optional(as_frozen_object), hash=False
    )
    search_context_size: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)
    file_store_ids: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_as_stores)
    max_results: int | None = attrs.field(default=None, kw_only=True)
    size: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)
    quality: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)
    background: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)
    output_format: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)

    def __attrs_post_init__(self) -> None:
        for limit in (attrs.fields(HostedTool).max_uses, attrs.fields(HostedTool).max_results):
            number(1, whole=True)(self, limit, getattr(self, limit.name))


@checks_keywords()
@brief
@attrs.frozen(repr=False)
class MCPServer:
    """An MCP server that the provider calls, so that the model may use its tools.

    Attributes:
        name: the name under which the model knows it.
        url: its address.
        authorization: the token that the provider sends it, without ``Bearer``, or ``None``. It is in no message.
        headers: more headers that the provider sends it, or ``None``.
        allowed_tools: the names of its tools that the model may call, or ``None`` for all.
        approval: ``"never"`` if its tools run without being asked for, which is the default, or ``"always"``.

    Raises:
        ResponseValidationError: an empty name or address, or a field of another type.
    """

    name: str = attrs.field(validator=need_name)
    url: str = attrs.field(validator=need_name)
    authorization: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)
    headers: FrozenObject | None = attrs.field(
        default=None, kw_only=True, converter=attrs.converters.optional(as_frozen_object), hash=False
    )
    allowed_tools: tuple[str, ...] | None = attrs.field(
        default=None, kw_only=True, converter=attrs.converters.optional(_as_allowed_names)
    )
    approval: Any = attrs.field(default="never", kw_only=True)

    def __repr__(self) -> str:
        return summary("MCPServer", [("name", self.name), ("url", shown_url(self.url))])


def as_definition(value: ToolDefinition | Mapping[str, Any], place: str = "tools") -> ToolDefinition:
    """Convert *value*, found at *place*, to the definition of a tool.

    Raises:
        ResponseValidationError: it does not define a tool.
    """
    return value if isinstance(value, ToolDefinition) else ToolDefinition(**tool_fields(value, place))


def as_tools(value: Iterable[ToolDefinition | Mapping[str, Any]]) -> tuple[ToolDefinition, ...]:
    """Convert *value* to definitions of tools.

    Raises:
        ResponseValidationError: an item does not define a tool, or two have one name.
    """
    if value == ():
        return ()
    tools = tuple(
        as_definition(tool, f"tools[{index}]") for index, tool in enumerate(as_tuple("tools", value))
    )
    names = [tool.name for tool in tools]
    if len(set(names)) != len(names):
        raise ResponseValidationError("two tools have the same name")
    return tools


def as_hosted_tools(value: Iterable[HostedTool | str]) -> tuple[HostedTool, ...]:
    """Convert *value* to hosted tools. A kind alone is accepted as a tool.

    Raises:
        ResponseValidationError: an item is not a hosted tool, or two are of the same kind.
    """
    if value == ():
        return ()
    given = (value,) if isinstance(value, str) else as_tuple("hosted_tools", value)
    tools = tuple(tool if isinstance(tool, HostedTool) else HostedTool(tool) for tool in given)
    if len({tool.kind for tool in tools}) != len(tools):
        raise ResponseValidationError("two hosted tools are of the same kind")
    return tools


def as_tool_choice(value: str | NamedTool | Mapping[str, Any] | None) -> ToolChoice | NamedTool | None:
    """Convert *value* to a tool choice. OpenAI's form is accepted.

    Raises:
        ResponseValidationError: it is not a tool choice.
    """
    if value is None or isinstance(value, NamedTool):
        return value
    if isinstance(value, Mapping):
        return NamedTool(choice_name(value))
    return one_of(ToolChoice, value, "unknown tool choice; for a tool's name write NamedTool(name)")


# --------------------------------------------------------------------------------- request
# A provider-independent request to a model. Loads no HTTP client.


class ReasoningEffort(StrEnum):
    """How much the model should reason before it answers (OpenAI's words)."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"

    def nearest(self, words: Iterable[str]) -> ReasoningEffort:
        """Return the one of *words* that is nearest to this, of two the higher one. ``none`` is near to no other word."""
        order = tuple(ReasoningEffort)
        places = [order.index(ReasoningEffort(word)) for word in words if word != "none"]
        place = order.index(self)
        return order[min(places, key=lambda one: (abs(one - place), -one))]


_LIFETIMES = (None, "5m", "1h")


@attrs.frozen
class CacheMark:
    """The end of the prompt's cached part, for APIs that take one. Others cache by themselves, or not at all.

    Attributes:
        after: ``"tools"``, ``"system"``, or the number of the last message to be cached (-1 is the last one).
        ttl: the lifetime: ``"5m"`` or ``"1h"``, or ``None`` for the provider's default.
        part: the number of the part of that message after which the cached part of the prompt ends, or ``None`` for its
            end.

    Raises:
        ResponseValidationError: any other value.
    """

    after: Literal["tools", "system"] | int
    ttl: Literal["5m", "1h"] | None = None
    part: int | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.after not in ("tools", "system") and type(self.after) is not int:
            raise ResponseValidationError('a cache mark must follow "tools", "system" or a message\'s number')
        if self.ttl not in _LIFETIMES:
            raise ResponseValidationError('ttl must be "5m" or "1h"')
        if self.part is not None and (
            type(self.part) is not int or self.part < 0 or type(self.after) is not int
        ):
            raise ResponseValidationError("part must be the number of a part of a message")


@brief
@attrs.frozen(repr=False)
class ResponseFormat:
    """A ``response_format``: the answer must be JSON.

    Attributes:
        schema: the JSON Schema that it must follow, or ``None`` for any JSON object.
        name: the name of the schema, which OpenAI requires.
        strict: whether the provider must enforce the schema, if it can.
        description: the purpose of the answer, for the model, or ``None``.
        null_is_absent: whether who reads the answer takes a null for an absent key. Then a server that wants each key may
            be asked for a null.
        is_told: whether the messages tell the schema, so that a server without schemas needs no more words.

    Raises:
        ResponseValidationError: an empty name, a schema that is not a JSON object, or a description that is not text.
    """

    schema: FrozenObject | None = attrs.field(
        default=None, converter=attrs.converters.optional(as_frozen_object)
    )
    name: str = attrs.field(default="answer", validator=need_name)
    strict: bool = True
    description: str | None = attrs.field(default=None, kw_only=True, validator=_need_text)
    null_is_absent: bool = attrs.field(default=False, kw_only=True)
    is_told: bool = attrs.field(default=False, kw_only=True)

    __repr__ = short_repr("name", "schema")


def kind_of(value: Any) -> str | None:
    """Return the kind of a tool choice or of a response format, or ``None`` for any other value."""
    if isinstance(value, NamedTool):
        return "named"
    if isinstance(value, ToolChoice):
        return value.value
    if isinstance(value, ResponseFormat):
        return "json_object" if value.schema is None else "json_schema"
    return None


def as_response_format(value: ResponseFormat | Mapping[str, Any] | None) -> ResponseFormat | None:
    """Convert *value* to a response format. In OpenAI's form, free text becomes ``None``.

    Raises:
        ResponseValidationError: it is not a response format.
    """
    if value is None or isinstance(value, ResponseFormat):
        return value
    fields = format_fields(value)
    return None if fields is None else ResponseFormat(**fields)


def _as_turns(value: Messages) -> tuple[Turn, ...]:
    turns = turns_of(value)
    if not turns:
        raise ResponseValidationError("a request needs at least one message")
    return turns


def _as_stop(value: str | Iterable[str]) -> tuple[str, ...]:
    if value == ():
        return ()
    words = (value,) if isinstance(value, str) else as_tuple("stop", value)
    if not all(type(word) is str and word for word in words):
        raise ResponseValidationError("stop must be texts that are not empty")
    return words


def as_cache_marks(value: Iterable[CacheMark | str | int]) -> tuple[CacheMark, ...]:
    """Convert *value* to cache marks. The value of ``after`` alone is accepted as a mark.

    Raises:
        ResponseValidationError: an item is not a cache mark.
    """
    if value == ():
        return ()
    given: tuple[Any, ...] = (value,) if isinstance(value, str) else as_tuple("cache_marks", value)
    return tuple(mark if isinstance(mark, CacheMark) else CacheMark(mark) for mark in given)


def _as_effort(value: str | None) -> ReasoningEffort | None:
    return None if value is None else one_of(ReasoningEffort, value, "unknown reasoning effort")


def _as_options(value: Mapping[str, JSONObject]) -> Mapping[str, FrozenObject]:
    if value is EMPTY_OBJECT:
        return EMPTY_OBJECT
    given: object = value
    if not isinstance(given, Mapping) or not all(isinstance(of, Mapping) for of in given.values()):
        raise ResponseValidationError("provider_options are JSON objects by provider id")
    return cast("Mapping[str, FrozenObject]", as_frozen_object(value))  # not a proxy, which cannot be pickled


def as_extra_options(value: JSONObject) -> FrozenObject:
    """Convert *value* to the options of a request without a field.

    Raises:
        ResponseValidationError: it is not an object, or an option is unknown.
    """
    if value is EMPTY_OBJECT:
        return EMPTY_OBJECT
    given: Any = value
    if not isinstance(given, Mapping):
        raise ResponseValidationError(f"extra_options must be an object, not {json_type_name(given)}")
    names = [name for name in OPTIONS if name not in _FIELDS]
    for name in given:
        if name not in names:
            raise ResponseValidationError(
                f"extra_options: there is no option {name!r:.60}{meant(name, names)}"
            )
    return as_frozen_object({name: _OPTION_VALUES.get(name, _same)(of) for name, of in given.items()})


def _same(value: Any) -> Any:
    return value


def _as_allowed(value: Any) -> Any:
    """Return the names of tools that the model may call as the option ``allowed_tools``. Any other value stays."""
    if isinstance(value, Mapping):
        return value
    names = _names("allowed_tools", value)
    return {"mode": "auto", "tools": [{"type": "function", "name": name} for name in names]}


def _as_servers(value: Any) -> list[Any]:
    known = attrs.fields_dict(MCPServer)
    servers = [
        attrs.asdict(one) if isinstance(one, MCPServer) else one for one in as_tuple("mcp_servers", value)
    ]
    for server in servers:
        if not isinstance(server, Mapping):
            raise ResponseValidationError(f"mcp_servers must hold an MCPServer, not {json_type_name(server)}")
        for name in server:
            if name not in known:
                raise ResponseValidationError(f"an MCPServer has no {name!r:.60}{meant(name, known)}")
    return [
        {name: field_value for name, field_value in server.items() if field_value is not None}
        for server in servers
    ]


_OPTION_VALUES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "allowed_tools": _as_allowed,
    "mcp_servers": _as_servers,
}
"""The functions that convert the value of an option that people write in a shorter form."""


_ANY_INTEGER = number(-(2**63), 2**63 - 1, whole=True)


class ExtraOptions(TypedDict, total=False):
    """The options of a :class:`ChatRequest` that are no fields of it, given as keywords.

    Each API gets them in its own spelling. One that it lacks refuses the request by name, or is left out and named if the
    answer is as good without it. Absent ones, and ``None``, leave the provider's default.

    Attributes:
        allowed_tools: the names of the tools among ``tools`` that the model may call now. OpenAI and Gemini have it.
        mcp_servers: servers of tools that the provider calls: :class:`MCPServer`, or its fields.
        frequency_penalty, presence_penalty: how much a token is avoided for how often, or that, it was said: -2 to 2.
        repeat_penalty: a factor against repeated tokens: 1 has no effect.
        min_p: sample only from tokens at least this likely, as a share of the most likely one.
        repeat_last_n, typical_p, mirostat, mirostat_tau, mirostat_eta, penalize_newline, tfs_z: Ollama's and llama.cpp's.
        logit_bias: what is added to the scores of tokens, by their numbers: -100 to 100.
        n: the number of answers. best_of: from how many the best is chosen (Completions).
        logprobs: whether the answer has log probabilities. top_logprobs: of how many tokens at each place.
        verbosity: how long answers are: ``low``, ``medium``, ``high`` (OpenAI).
        modalities: what the answer is made of: ``["text", "audio"]``. audio: its ``voice`` and ``format`` (OpenAI).
        prediction: text that the answer probably has, in OpenAI's form, which saves time.
        moderation: OpenAI's moderation of the answer.
        encrypted_reasoning: whether the answer holds its reasoning encrypted (OpenAI).
        reasoning_summary: whether and how reasoning is shown: ``auto``, ``concise``, ``detailed``.
        thinking_budget: the most tokens of reasoning (Anthropic, Gemini, Cohere). think: Ollama's word for reasoning.
        truncation: ``auto`` if the server may shorten a conversation that is too long, or ``disabled`` (OpenAI).
        compaction: has the server summarize a conversation that grows too long: ``{"threshold": tokens}``, or ``{}`` for
            the provider's own limit (Anthropic's and OpenAI's ``context_management``).
        background: whether the answer is made in the background (OpenAI).
        previous_response_id: the id of the answer that is continued, which the server keeps. No other server takes it.
        conversation: the id of a conversation that the server keeps (OpenAI).
        container: the id of a container that the server keeps, in which code runs (Anthropic).
        cached_content: the name of cached content that the server keeps (Gemini).
        user, safety_identifier: a label of the end user, for records and against abuse.
        metadata: texts by name, for the provider's records.
        store: whether the provider keeps the answer.
        prompt_cache_key, prompt_cache_retention, prompt_cache_mode, prompt_cache_ttl: OpenAI's cache of prompts.
        cache_control: Anthropic's automatic cache mark. Marks by place are ``cache_marks``.
        service_tier: ``auto``, ``default``, ``flex``, ``priority``. speed: Anthropic's ``fast``.
        safety_settings: what Gemini's filter lets pass.
        include_obfuscation: whether the events of a stream are padded (OpenAI).
        keep_alive: how long Ollama keeps the model in memory: ``"5m"``, or seconds.
        num_ctx, num_batch, num_gpu, num_keep, num_thread, main_gpu, numa, low_vram, f16_kv, use_mmap, use_mlock: how
            Ollama runs the model.
        truncate, shift: whether Ollama shortens a prompt that is too long, and a conversation that grows too long.
    """

    allowed_tools: Iterable[str] | Mapping[str, Any] | None
    mcp_servers: Iterable[MCPServer | Mapping[str, Any]] | None
    frequency_penalty: float | None
    presence_penalty: float | None
    repeat_penalty: float | None
    min_p: float | None
    repeat_last_n: int | None
    typical_p: float | None
    mirostat: int | None
    mirostat_tau: float | None
    mirostat_eta: float | None
    penalize_newline: bool | None
    tfs_z: float | None
    logit_bias: Mapping[str, float] | None
    n: int | None
    best_of: int | None
    logprobs: bool | None
    top_logprobs: int | None
    verbosity: Literal["low", "medium", "high"] | None
    modalities: Iterable[str] | None
    audio: Mapping[str, Any] | None
    prediction: Mapping[str, Any] | None
    moderation: Any
    encrypted_reasoning: bool | None
    reasoning_summary: Literal["auto", "concise", "detailed"] | None
    thinking_budget: int | None
    think: bool | str | None
    truncation: Literal["auto", "disabled"] | None
    compaction: Mapping[str, int] | None
    background: bool | None
    previous_response_id: str | None
    conversation: str | None
    container: str | None
    cached_content: str | None
    user: str | None
    safety_identifier: str | None
    metadata: Mapping[str, str] | None
    store: bool | None
    prompt_cache_key: str | None
    prompt_cache_retention: str | None
    prompt_cache_mode: str | None
    prompt_cache_ttl: str | None
    cache_control: Mapping[str, Any] | None
    service_tier: str | None
    speed: str | None
    safety_settings: Iterable[Mapping[str, Any]] | None
    include_obfuscation: bool | None
    keep_alive: str | float | None
    num_ctx: int | None
    num_batch: int | None
    num_gpu: int | None
    num_keep: int | None
    num_thread: int | None
    main_gpu: int | None
    numa: bool | None
    low_vram: bool | None
    f16_kv: bool | None
    use_mmap: bool | None
    use_mlock: bool | None
    truncate: bool | None
    shift: bool | None


def with_extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return *fields* of a request, with those that are :class:`ExtraOptions` among its ``extra_options``.

    Raises:
        ResponseValidationError: its ``extra_options`` are no such options.
    """
    fields = {_FIELD_NAMES.get(name, name): value for name, value in fields.items()}
    own = {name: value for name, value in fields.items() if name in _FIELDS}
    places = ((option_named(name), value) for name, value in fields.items() if name not in _FIELDS)
    if more := {place.name: value for place, value in places if place is not None and value is not None}:
        own["extra_options"] = {**as_extra_options(own.get("extra_options", EMPTY_OBJECT)), **more}
    return own


EXTRA_NAMES: Final = (
    *ExtraOptions.__annotations__,
    *(name for place in OPTIONS.values() for name in place.also),
)
"""The names of :class:`ExtraOptions`, and those that a program may use as well."""


@checks_keywords(EXTRA_NAMES)
@brief
@attrs.frozen(repr=False, init=False)
class ChatRequest:
    """A request to a model, independent of the provider.

    Attributes:
        messages: the conversation, oldest first: messages, and models' answers as received. A string is the
            user's message. Dictionaries in OpenAI's chat form and an SDK's own messages are accepted. A
            ``ChatResponse`` sends back the items that its provider wants to see again, such as the signature of its
            reasoning. ``response.message`` sends text and calls alone.
        model: the model's name as the provider knows it, or ``None`` for the endpoint's own.
        temperature: how random the answer is, from 0, or ``None`` for the provider's default, here and below.
        top_p: sample from the most likely tokens that make up this share, from 0 to 1.
        top_k: sample from this many most likely tokens: from all with 0, and with -1, as some servers write it.
        max_tokens: the most tokens that the answer may have, reasoning included. OpenAI's name for it works as well:
            ``max_completion_tokens=``.
        stop: texts at which generation ends.
        seed: makes sampling repeatable, as far as the server supports that.
        tools: the tools that the model may call. OpenAI's form is accepted, as for ``tool_choice`` and
            ``response_format``.
        hosted_tools: tools that the provider runs for the model: :class:`HostedTool`, or its kind (``"web_search"``).
        tool_choice: whether the model may call tools, must, or must call a certain one.
        parallel_tool_calls: whether it may call several at once.
        response_format: the JSON that the answer must be, or ``None`` for free text.
        reasoning_effort: how much to reason.
        cache_marks: the ends of the prompt's cached parts, for APIs that take them: :class:`CacheMark`, or its
            ``after``.
        stream: whether ``complete`` requests a stream and assembles it, which measures the time to the first
            token and lets the timeouts for tokens apply. ``stream`` always does.
        provider_options: JSON objects by provider id, each merged into the body for that provider, for options of one
            API. ``{"ollama": {"keep_alive": "5m", "options": {"num_ctx": 8192}}}``. Lists, such as tools, get more
            items. A field of the request cannot be overridden here.
        extra_options: the other :class:`ExtraOptions`, by name. Say each as a keyword: ``frequency_penalty=0.3``.
        extra_headers: headers of the API, by name in lower case, such as ``anthropic-beta``. Credentials, and anything
            that looks like one, go into the endpoint's ``api_key`` or the ``headers=`` of the endpoint or the call.
        provider: the provider for which it is being built. The service fills it in.

    Raises:
        ResponseValidationError: a field of another type or outside its bounds.
    """

    messages: tuple[Turn, ...] = attrs.field(converter=_as_turns)
    model: str | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(need_name)
    )
    temperature: float | None = attrs.field(default=None, kw_only=True, validator=number(0))
    top_p: float | None = attrs.field(default=None, kw_only=True, validator=number(0, 1))
    top_k: int | None = attrs.field(default=None, kw_only=True, validator=number(-1, whole=True))
    max_tokens: int | None = attrs.field(default=None, kw_only=True, validator=number(1, whole=True))
    stop: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_as_stop)
    seed: int | None = attrs.field(default=None, kw_only=True, validator=_ANY_INTEGER)
    tools: tuple[ToolDefinition, ...] = attrs.field(default=(), kw_only=True, converter=as_tools)
    hosted_tools: tuple[HostedTool, ...] = attrs.field(default=(), kw_only=True, converter=as_hosted_tools)
    tool_choice: ToolChoice | NamedTool | None = attrs.field(
        default=None, kw_only=True, converter=as_tool_choice
    )
    parallel_tool_calls: bool | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(need_bool)
    )
    response_format: ResponseFormat | None = attrs.field(
        default=None, kw_only=True, converter=as_response_format
    )
    reasoning_effort: ReasoningEffort | None = attrs.field(default=None, kw_only=True, converter=_as_effort)
    cache_marks: tuple[CacheMark, ...] = attrs.field(default=(), kw_only=True, converter=as_cache_marks)
    stream: bool = attrs.field(default=False, kw_only=True, validator=need_bool)
    provider_options: Mapping[str, FrozenObject] = attrs.field(
        factory=dict, kw_only=True, converter=_as_options, hash=False
    )
    extra_options: FrozenObject = attrs.field(
        factory=FrozenObject, kw_only=True, converter=as_extra_options, hash=False
    )
    extra_headers: Mapping[str, str] = attrs.field(
        factory=FrozenObject, kw_only=True, converter=as_headers, hash=False
    )
    provider: str | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(need_name)
    )

    def __init__(
        self,
        messages: Messages,
        *,
        model: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        max_tokens: int | None = None,
        stop: str | Iterable[str] = (),
        seed: int | None = None,
        tools: Iterable[ToolDefinition | Mapping[str, Any]] = (),
        hosted_tools: Iterable[HostedTool | str] = (),
        tool_choice: str | NamedTool | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: ResponseFormat | Mapping[str, Any] | None = None,
        reasoning_effort: str | None = None,
        cache_marks: Iterable[CacheMark | str | int] = (),
        stream: bool = False,
        provider_options: Mapping[str, JSONObject] = EMPTY_OBJECT,
        extra_options: JSONObject = EMPTY_OBJECT,
        extra_headers: Mapping[str, str] = EMPTY_OBJECT,
        provider: str | None = None,
        max_completion_tokens: int | None = None,
        **options: Unpack[ExtraOptions],
    ) -> None:
        if options:
            extra_options = with_extra({**options, "extra_options": extra_options})["extra_options"]
        self.__attrs_init__(
            messages,
            model=model,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            max_tokens=max_tokens if max_completion_tokens is None else max_completion_tokens,
            stop=stop,
            seed=seed,
            tools=tools,
            hosted_tools=hosted_tools,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            response_format=response_format,
            reasoning_effort=reasoning_effort,
            cache_marks=cache_marks,
            stream=stream,
            provider_options=provider_options,
            extra_options=extra_options,
            extra_headers=extra_headers,
            provider=provider,
        )

    @cache_marks.validator
    def _check_marks(self, _: Any, marks: tuple[CacheMark, ...]) -> None:
        count = len(self.messages)
        if any(isinstance(mark.after, int) and not -count <= mark.after < count for mark in marks):
            raise ResponseValidationError("a cache mark follows a message that does not exist")

    def with_turns(self, *turns: Turn | Mapping[str, Any]) -> ChatRequest:
        """Return the same request with *turns* at the end of the conversation."""
        return attrs.evolve(self, messages=(*self.messages, *turns))

    def for_model(self, model: str | None) -> ChatRequest:
        """Return the same request for *model*, or with ``None`` for the endpoint's own. Nothing is checked again."""
        return altered(self, model=model)

    def is_for(self, format: str | None, model: str) -> bool:
        """Return whether a client wrote this for *model* in *format* itself, so that facts about models change nothing."""
        return False

    def option(self, name: str) -> Any:
        """Return the value of the option *name*, or ``None`` if the request sets none."""
        value = getattr(self, name) if name in _FIELDS else self.extra_options.get(name)
        return None if value in (None, ()) or name == "messages" else value

    @property
    def thinking_budget(self) -> Any:
        """The option for the tokens that the model may think, or ``None`` without one."""
        return self.extra_options.get("thinking_budget")

    def names_of(self, option: str) -> tuple[str, ...]:
        """Return the names under which an adaptation may name *option*: its own, and its places in a client's request."""
        return (option,)

    def details_of_part(self, part: object) -> Mapping[str, Any] | None:
        """Return what a client's request says of *part* of a message, or ``None``.

        Its keys are ``at``, the part's place in that request, and ``tool_changes``, the blocks behind the part's message
        that add or remove tools, as Anthropic spells them, each with its ``mark`` for the cache.
        """
        return None

    def server_of(self, turn: Turn) -> str | None:
        """Return the name of the server that gave the answer *turn*, or ``None`` if only the service may know it."""
        return None

    def built_by(self, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
        """Return the result of *build*, a plugin's function, for this request. A subclass may add to it."""
        return build(self)

    def __repr__(self) -> str:
        return summary(
            "ChatRequest",
            [
                ("model", self.model),
                ("messages", len(self.messages)),
                ("tools", len(self.tools) or None),
                ("last", self.messages[-1]),
            ],
        )


_FIELDS = frozenset(attrs.fields_dict(ChatRequest))

Asked: TypeAlias = ChatRequest | Messages
"""The input of a service: a request, its messages, or a dictionary of its fields including ``messages``."""


def as_request(given: Asked) -> ChatRequest:
    """Convert *given* to a request.

    Raises:
        ResponseValidationError: it is not a request. The message says what is wrong, and what is accepted.
    """
    if isinstance(given, ChatRequest):
        return given
    if isinstance(given, Mapping) and "messages" in given:
        return ChatRequest(**request_fields(given, attrs.fields_dict(ChatRequest)))
    return ChatRequest(given)
