"""The next answer of a conversation, whole or streamed, from a service or an endpoint."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

import attrs

from crosswalk.agent.session import Trimming, trim_refused_request
from crosswalk.agent.tools import Tool
from crosswalk.config import check_type
from crosswalk.errors import ConfigurationError, ContextOverflowError, ProviderError
from crosswalk.request import (
    EXTRA_NAMES,
    CacheMark,
    ChatRequest,
    ExtraOptions,
    HostedTool,
    Messages,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
    as_cache_marks,
    as_definition,
    as_hosted_tools,
    as_response_format,
    with_extra,
)
from crosswalk.stream import StreamingChatResponse, StreamState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, JSONObject
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent, StreamEventType
from crosswalk.types.values import checks_keywords
from crosswalk.words import suggests_names

if TYPE_CHECKING:
    from crosswalk.service import Endpoint, LLMService, SyncLLMService


# -------------------------------------------------------------------------------- services
# The service of an agent: the one you pass, or a new one for an endpoint, which the agent closes itself.


def async_service(service: LLMService | Endpoint | str) -> LLMService:
    """Return *service*, or a new service for that endpoint.

    Raises:
        ConfigurationError: *service* is neither, or synchronous.
    """
    from crosswalk.service import Endpoint, LLMService

    if isinstance(service, Endpoint | str):
        return LLMService(service)
    _check_service(service, is_async=True)
    return service


def sync_service(service: SyncLLMService | Endpoint | str) -> SyncLLMService:
    """:func:`async_service` for programs without an event loop."""
    from crosswalk.service import Endpoint, SyncLLMService

    if isinstance(service, Endpoint | str):
        return SyncLLMService(service)
    _check_service(service, is_async=False)
    return service


def _check_service(service: object, *, is_async: bool) -> None:
    from crosswalk.service import SyncLLMService

    complete = getattr(service, "complete", None)
    is_other = isinstance(service, SyncLLMService) if is_async else inspect.iscoroutinefunction(complete)
    if is_other or not callable(complete) or isinstance(service, type):
        expected_name = "LLMService" if is_async else "SyncLLMService"
        given_name = "a class" if isinstance(service, type) else type(service).__name__
        raise ConfigurationError(f"service must be {expected_name}, not {given_name}", key="service")


class AsyncServiceOwner:
    """An agent that asks a service, and closes it if the agent made it from an endpoint.

    Args:
        service: a service, or an endpoint such as ``"ollama:llama3.2"``.

    Raises:
        ConfigurationError: *service* is neither, or synchronous.
    """

    def __init__(self, service: LLMService | Endpoint | str) -> None:
        self._service = async_service(service)
        self._is_owner = self._service is not service

    async def aclose(self) -> None:
        """Close the service, if the agent made it from an endpoint."""
        if self._is_owner:
            await self._service.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class SyncServiceOwner:
    """:class:`AsyncServiceOwner` without ``await``."""

    def __init__(self, service: SyncLLMService | Endpoint | str) -> None:
        self._service = sync_service(service)
        self._is_owner = self._service is not service

    def close(self) -> None:
        """Close the service, if the agent made it from an endpoint."""
        if self._is_owner:
            self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ------------------------------------------------------------------------------------ chat
# The next answer of a conversation, whole or streamed.


RETRIED: Final = "crosswalk.retried"
"""A key in a delta's ``extensions``: all deltas before it are void. Its value is the number of failed attempts."""


def _as_definitions(
    tools: Iterable[Tool | ToolDefinition | Mapping[str, Any] | Callable[..., Any]],
) -> tuple[ToolDefinition, ...]:
    return tuple(map(_as_definition, tools))


def _as_definition(one: Tool | ToolDefinition | Mapping[str, Any] | Callable[..., Any]) -> ToolDefinition:
    if isinstance(one, ToolDefinition | Mapping):
        return as_definition(one)
    return (one if isinstance(one, Tool) else Tool.from_function(one)).definition


@checks_keywords(EXTRA_NAMES)
@attrs.frozen(kw_only=True, init=False)
class ChatConfig:
    """The options of a request: those of a :class:`~crosswalk.service.ChatRequest`, its ``ExtraOptions`` included.

    Only ``messages``, ``stream`` and ``provider`` are missing, which the agent sets.

    Attributes:
        model: the provider's name of the model, or ``None`` for the endpoint's own.
        temperature: the randomness of the answer, from 0, or ``None`` for the provider's default, here and below.
        top_p: sample from the most likely tokens that make up this share, from 0 to 1.
        top_k: sample from this many most likely tokens.
        max_tokens: the maximum tokens of the answer, including reasoning.
        stop: texts at which generation ends.
        seed: makes sampling repeatable, as far as the server supports it.
        tools: what the model may call: definitions, also in OpenAI's form, tools, or functions to make tools from. They are
            only sent to the model. Use an :class:`~crosswalk.agent.Agent` to run them.
        hosted_tools: tools that the provider runs for the model: ``HostedTool``, or its kind (``"web_search"``).
        tool_choice: whether the model may call a tool, must call one, or must call a certain one.
        parallel_tool_calls: whether the model may make several calls at once.
        response_format: requires JSON, and its schema, or ``None`` for free text.
        reasoning_effort: how much the model reasons.
        cache_marks: where the prompt is to be cached, for APIs that need to know: ``CacheMark``, or the position after which
            it stands: ``"tools"``, ``"system"``, the index of a message, -1 for the last.
        provider_options: JSON objects by provider id, each merged into the body for that provider.
        extra_options: the other options, by name. Say each as a keyword: ``frequency_penalty=0.3``.
        extra_headers: headers of the API, by name, without credentials.

    Raises:
        ResponseValidationError: a field has the wrong type or is out of bounds.
        ToolDefinitionError: a function cannot be a tool.
    """

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: str | tuple[str, ...] = ()
    seed: int | None = None
    tools: tuple[ToolDefinition, ...] = attrs.field(default=(), converter=_as_definitions)
    hosted_tools: tuple[HostedTool, ...] = attrs.field(default=(), converter=as_hosted_tools)
    tool_choice: ToolChoice | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = attrs.field(default=None, converter=as_response_format)
    reasoning_effort: ReasoningEffort | None = None
    cache_marks: tuple[CacheMark, ...] = attrs.field(default=(), converter=as_cache_marks)
    provider_options: Mapping[str, Mapping[str, JSONObject]] = attrs.field(factory=dict, hash=False)
    extra_options: JSONObject = attrs.field(factory=dict, hash=False)
    extra_headers: Mapping[str, str] = attrs.field(factory=dict, hash=False)

    def __init__(
        self,
        *,
        model: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        max_tokens: int | None = None,
        stop: str | tuple[str, ...] = (),
        seed: int | None = None,
        tools: Iterable[Tool | ToolDefinition | Mapping[str, Any] | Callable[..., Any]] = (),
        hosted_tools: Iterable[HostedTool | str] = (),
        tool_choice: ToolChoice | NamedTool | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: ResponseFormat | Mapping[str, Any] | None = None,
        reasoning_effort: ReasoningEffort | None = None,
        cache_marks: Iterable[CacheMark | str | int] = (),
        provider_options: Mapping[str, JSONObject] = EMPTY_OBJECT,
        extra_options: JSONObject = EMPTY_OBJECT,
        extra_headers: Mapping[str, str] = EMPTY_OBJECT,
        max_completion_tokens: int | None = None,
        **options: Unpack[ExtraOptions],
    ) -> None:
        merged_extra_options = with_extra({**options, "extra_options": extra_options})["extra_options"]
        self.__attrs_init__(
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
            provider_options=provider_options,
            extra_options=merged_extra_options,
            extra_headers=extra_headers,
        )

    def __attrs_post_init__(self) -> None:
        # Refuse a wrong option now, not with the first request. Cache marks are checked later, against the messages.
        ChatRequest("", **{**self._options, "cache_marks": ()})

    def request(self, messages: Messages) -> ChatRequest:
        """Return a request for *messages* with these options.

        Args:
            messages: the conversation, or the user's message alone.

        Raises:
            ResponseValidationError: *messages* is not a conversation.
        """
        return ChatRequest(messages, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in attrs.fields(ChatConfig)}


_CHECK_KEYWORDS: Final = checks_keywords(
    elsewhere={"ChatConfig": attrs.fields_dict(ChatConfig), "Endpoint": ("api_key", "base_url")}
)


@suggests_names
class ChatAgent(SyncServiceOwner):
    """Sends a conversation and returns the model's answer.

    Args:
        service: a service, or an endpoint such as ``"ollama:llama3.2"``.
        config: the options for calls that pass none, or ``None`` for the provider's defaults.
        trim: a policy for a conversation that is too long for the model, used once in a call: ``keep_turns(10)``,
            ``keep_tokens(8000)``, or a custom function. With ``None`` the call fails.

    Raises:
        ConfigurationError: *service* is asynchronous, or an option has the wrong type.
    """

    @_CHECK_KEYWORDS
    def __init__(
        self,
        service: SyncLLMService | Endpoint | str,
        config: ChatConfig | None = None,
        *,
        trim: Trimming | None = None,
    ) -> None:
        check_type("trim", trim, Callable)
        super().__init__(service)
        self._config = _check_config(config) or ChatConfig()
        self._trim = trim

    def chat(self, messages: Messages, config: ChatConfig | None = None) -> ChatResponse:
        """Return the model's next answer.

        Args:
            messages: the conversation, oldest first, or the user's message alone. Messages of OpenAI's SDK are accepted.
            config: the options of this call, instead of the agent's.

        Raises:
            ProviderError: the provider failed. Its ``response`` holds the partial answer.
            MappingError: the answer cannot be read. Its ``partial`` holds the partial answer.
            CrosswalkError: the request cannot be sent.
        """
        request = (_check_config(config) or self._config).request(messages)
        try:
            return self._service.complete(request)
        except ContextOverflowError as error:
            return self._service.complete(_trimmed_or_raise(request, error, self._trim))

    def stream_chat(self, messages: Messages, config: ChatConfig | None = None) -> ChatStream:
        """Stream the model's next answer: a generator of deltas that returns the whole response.

        Args:
            messages: the conversation, oldest first, or the user's message alone. Messages of OpenAI's SDK are accepted.
            config: the options of this call, instead of the agent's.

        Raises:
            ResponseValidationError: *messages* is not a conversation.
        """
        return ChatStream(
            self._service, (_check_config(config) or self._config).request(messages), self._trim
        )


@suggests_names
class AsyncChatAgent(AsyncServiceOwner):
    """:class:`ChatAgent` for programs with an event loop.

    Args:
        service: a service, or an endpoint such as ``"ollama:llama3.2"``.
        config: the options for calls that pass none, or ``None`` for the provider's defaults.
        trim: a policy for a conversation that is too long for the model. See :class:`ChatAgent`.

    Raises:
        ConfigurationError: *service* is synchronous, or an option has the wrong type.
    """

    @_CHECK_KEYWORDS
    def __init__(
        self,
        service: LLMService | Endpoint | str,
        config: ChatConfig | None = None,
        *,
        trim: Trimming | None = None,
    ) -> None:
        check_type("trim", trim, Callable)
        super().__init__(service)
        self._config = _check_config(config) or ChatConfig()
        self._trim = trim

    async def chat(self, messages: Messages, config: ChatConfig | None = None) -> ChatResponse:
        """Return the model's next answer. See :meth:`ChatAgent.chat`."""
        request = (_check_config(config) or self._config).request(messages)
        try:
            return await self._service.complete(request)
        except ContextOverflowError as error:
            return await self._service.complete(_trimmed_or_raise(request, error, self._trim))

    def stream_chat(self, messages: Messages, config: ChatConfig | None = None) -> AsyncChatStream:
        """Stream the model's next answer: iterate over it, then ``await`` its ``response()``.

        An asynchronous generator has no return value. Otherwise this is :meth:`ChatAgent.stream_chat`. Use ``async with`` to
        be sure that the connection is closed.
        """
        return AsyncChatStream(
            self._service, (_check_config(config) or self._config).request(messages), self._trim
        )


def _check_config(config: ChatConfig | None) -> ChatConfig | None:
    check_type("config", config, ChatConfig)
    return config


def _trimmed_or_raise(request: ChatRequest, error: ProviderError, trim: Trimming | None) -> ChatRequest:
    """Return *request*, which was too long, trimmed by *trim*. Raise *error* if that is not possible."""
    shorter_request = None if error.response is None else trim_refused_request(request, error.response, trim)
    if shorter_request is None:
        raise error
    return shorter_request


class ChatStream(Generator[ResponseDelta, None, ChatResponse]):
    """The deltas of an answer as they arrive, made by :meth:`ChatAgent.stream_chat`.

    Iterate over it. Afterwards the whole answer is its ``response``, and the value of ``yield from``. Iterating raises
    ``ProviderError`` after the deltas that arrived if the provider failed, ``MappingError`` if the answer cannot be
    read, and ``CrosswalkError`` if the request cannot be sent.

    If the service's ``RetryPolicy`` starts over after the first token, a delta has :data:`RETRIED` in its ``extensions``.
    All deltas before it are void.
    """

    def __init__(self, service: SyncLLMService, request: ChatRequest, trim: Trimming | None) -> None:
        self._service = service
        self._events = service.stream(request)
        self._is_stopped = False
        self._deltas = self._all_deltas(request, trim)

    @property
    def response(self) -> ChatResponse:
        """The complete answer, or the partial one if the stream was stopped (``cancelled``) or failed.

        Raises:
            ResponseValidationError: the answer has not ended (``ACODE-RSP-008``).
            CrosswalkError: the error, if nothing was sent.
        """
        return self._events.response

    def stop(self) -> None:
        """End the answer here, from any thread. The iteration over it ends, and ``response`` holds what arrived."""
        self._is_stopped = True
        self._events.cancel()

    def send(self, _: None = None, /) -> ResponseDelta:
        """Return the next delta."""
        return next(self._deltas)

    def throw(self, *error: Any) -> ResponseDelta:
        """End the answer here with *error*."""
        return self._deltas.throw(*error)

    def close(self) -> None:
        """End the answer here, from the thread that iterates over it."""
        self.stop()
        self._deltas.close()

    def _all_deltas(
        self, request: ChatRequest, trim: Trimming | None
    ) -> Generator[ResponseDelta, None, ChatResponse]:
        while True:
            shorter_request, is_shown = None, False
            with self._events as events:
                for event in events:
                    shorter_request = None if is_shown else _trimmed_retry(request, event, trim)
                    if shorter_request is None and (delta := _delta_of(event)) is not None:
                        is_shown = True
                        yield delta
            if shorter_request is None:
                return events.response.raise_for_error()
            request, trim, self._events = shorter_request, None, self._service.stream(shorter_request)
            if self._is_stopped:  # by another thread, meanwhile
                self._events.cancel()


def _delta_of(event: StreamEvent) -> ResponseDelta | None:
    """Return the delta of *event*, a delta that voids all before it, or ``None`` for an event without a delta."""
    if event.event_type is StreamEventType.RETRIED:
        return ResponseDelta(0, extensions={RETRIED: len(event.attempts)})
    return event.delta


def _trimmed_retry(request: ChatRequest, event: StreamEvent, trim: Trimming | None) -> ChatRequest | None:
    """Return the trimmed request to send instead, if *event* is the end and says that *request* is too long, or ``None``."""
    return None if event.response is None else trim_refused_request(request, event.response, trim)


class AsyncChatStream(StreamingChatResponse):
    """:class:`ChatStream` for programs with an event loop, made by :meth:`AsyncChatAgent.stream_chat`.

    It may have several consumers. ``aclose()`` ends the answer where it is.
    """

    def __init__(self, service: LLMService, request: ChatRequest, trim: Trimming | None) -> None:
        self._service = service
        self._events = service.stream(request)
        super().__init__(self._all_deltas(request, trim), lambda: self._events.response.raise_for_error())

    async def response(self) -> ChatResponse:
        """Read the rest of the answer and return it. If the stream was closed, return the partial, ``cancelled`` answer.

        Raises:
            ProviderError: the provider failed. Its ``response`` holds the partial answer.
            CrosswalkError: the answer cannot be read, or nothing was sent.
        """
        if self.state is StreamState.CANCELLED:
            return self._events.response
        return await super().response()

    async def _all_deltas(self, request: ChatRequest, trim: Trimming | None) -> AsyncIterator[ResponseDelta]:
        while True:
            shorter_request, is_shown = None, False
            async with self._events as events:
                async for event in events:
                    shorter_request = None if is_shown else _trimmed_retry(request, event, trim)
                    if shorter_request is None and (delta := _delta_of(event)) is not None:
                        is_shown = True
                        yield delta
            if shorter_request is None:
                events.response.raise_for_error()
                return
            request, trim, self._events = shorter_request, None, self._service.stream(shorter_request)
