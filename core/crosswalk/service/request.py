"""A provider-independent request to a model. Loads no HTTP client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal, TypeAlias, cast

import attrs

from crosswalk.errors import ResponseValidationError
from crosswalk.keywords import checks_keywords
from crosswalk.service.given import (
    Given as Given,
    Messages as Messages,
    Turn as Turn,
    as_tuple,
    format_fields,
    need_bool,
    need_name,
    number,
    request_fields,
    turns_of,
)
from crosswalk.service.http_request import HTTPRequest
from crosswalk.service.tools import (
    HostedTool,
    NamedTool,
    ToolChoice,
    ToolDefinition,
    as_hosted_tools,
    as_tool_choice,
    as_tools,
)
from crosswalk.text import brief, meant, short_repr, summary
from crosswalk.types.json import FrozenObject, JSONObject, as_frozen_object
from crosswalk.types.values import altered, one_of
from crosswalk.wire.options import OPTIONS


class ReasoningEffort(StrEnum):
    """How much the model should reason before it answers (OpenAI's words)."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"


_LIFETIMES = (None, "5m", "1h")


@attrs.frozen
class CacheMark:
    """The end of the prompt's cached part, for APIs that take one. Others cache by themselves, or not at all.

    Attributes:
        after: ``"tools"``, ``"system"``, or the number of the last message to be cached (-1 is the last one).
        ttl: the lifetime: ``"5m"`` or ``"1h"``, or ``None`` for the provider's default.

    Raises:
        ResponseValidationError: any other value.
    """

    after: Literal["tools", "system"] | int
    ttl: Literal["5m", "1h"] | None = None

    def __attrs_post_init__(self) -> None:
        if self.after not in ("tools", "system") and type(self.after) is not int:
            raise ResponseValidationError(
                'a cache mark stands after "tools", "system" or a message\'s number'
            )
        if self.ttl not in _LIFETIMES:
            raise ResponseValidationError('ttl must be "5m" or "1h"')


@brief
@attrs.frozen(repr=False)
class ResponseFormat:
    """A ``response_format``: the answer must be JSON.

    Attributes:
        schema: the JSON Schema that it must follow, or ``None`` for any JSON object.
        name: the name of the schema, which OpenAI requires.
        strict: whether the provider must enforce the schema, if it can.

    Raises:
        ResponseValidationError: an empty name, or a schema that is not a JSON object.
    """

    schema: FrozenObject | None = attrs.field(
        default=None, converter=attrs.converters.optional(as_frozen_object)
    )
    name: str = attrs.field(default="answer", validator=need_name)
    strict: bool = True

    __repr__ = short_repr("name", "schema")


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
    words = (value,) if isinstance(value, str) else as_tuple("stop", value)
    if not all(type(word) is str and word for word in words):
        raise ResponseValidationError("stop must be texts that are not empty")
    return words


def as_cache_marks(value: Iterable[CacheMark | str | int]) -> tuple[CacheMark, ...]:
    """Convert *value* to cache marks. The value of ``after`` alone is accepted as a mark.

    Raises:
        ResponseValidationError: an item is not a cache mark.
    """
    given: tuple[Any, ...] = (value,) if isinstance(value, str) else as_tuple("cache_marks", value)
    return tuple(mark if isinstance(mark, CacheMark) else CacheMark(mark) for mark in given)


def _as_effort(value: str | None) -> ReasoningEffort | None:
    return None if value is None else one_of(ReasoningEffort, value, "unknown reasoning effort")


def _as_options(value: Mapping[str, JSONObject]) -> Mapping[str, FrozenObject]:
    given: object = value
    if not isinstance(given, Mapping) or not all(isinstance(of, Mapping) for of in given.values()):
        raise ResponseValidationError("provider_options are JSON objects by provider id")
    return cast("Mapping[str, FrozenObject]", as_frozen_object(value))  # not a proxy, which cannot be pickled


def _as_extra_options(value: JSONObject) -> FrozenObject:
    options = as_frozen_object(value)
    names = [option.name for option in OPTIONS if option.name not in _FIELDS]
    for name in options:
        if name not in names:
            raise ResponseValidationError(
                f"extra_options: there is no option {name!r:.60}{meant(name, names)}"
            )
    return options


_ANY_INTEGER = number(-(2**63), 2**63 - 1, whole=True)


@checks_keywords()
@brief
@attrs.frozen(repr=False)
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
        top_k: sample from this many most likely tokens.
        max_tokens: the most tokens that the answer may have, reasoning included.
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
        extra_options: options that several APIs have and that have no field above, by their name in
            :data:`crosswalk.wire.options.OPTIONS`: ``{"frequency_penalty": 0.3, "prompt_cache_key": "a"}``. Each API gets
            them in its own spelling.
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
    top_k: int | None = attrs.field(default=None, kw_only=True, validator=number(1, whole=True))
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
        factory=FrozenObject, kw_only=True, converter=_as_extra_options, hash=False
    )
    provider: str | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(need_name)
    )

    @cache_marks.validator
    def _check_marks(self, _: Any, marks: tuple[CacheMark, ...]) -> None:
        count = len(self.messages)
        if any(isinstance(mark.after, int) and not -count <= mark.after < count for mark in marks):
            raise ResponseValidationError("a cache mark stands after a message that is not there")

    def with_turns(self, *turns: Turn | Mapping[str, Any]) -> ChatRequest:
        """Return the same request with *turns* at the end of the conversation."""
        return attrs.evolve(self, messages=(*self.messages, *turns))

    def for_model(self, model: str | None) -> ChatRequest:
        """Return the same request for *model*, or with ``None`` for the endpoint's own. Nothing is checked again."""
        return altered(self, model=model)

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
