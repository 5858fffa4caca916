"""A conversation's next answer, whole or as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from crosswalk.agent.services import AsyncServiceOwner, SyncServiceOwner, check_type
from crosswalk.agent.tools import Tool
from crosswalk.agent.trimming import Trimming, trim_refused_request
from crosswalk.errors import ContextOverflowError, ProviderError
from crosswalk.service.request import (
    CacheMark,
    ChatRequest,
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
)
from crosswalk.stream.replay import StreamingChatResponse, StreamState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.event import StreamEvent, StreamEventType
from crosswalk.types.json import JSONObject
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.service import Endpoint, LLMService, SyncLLMService

__all__ = ["RETRIED", "AsyncChatAgent", "AsyncChatStream", "ChatAgent", "ChatConfig", "ChatStream"]


RETRIED: Final = "crosswalk.retried"
"""The key in a delta's ``extensions`` that says that all deltas before it are void: how many attempts have failed."""


def _as_definitions(
    tools: Iterable[Tool | ToolDefinition | Mapping[str, Any] | Callable[..., Any]],
) -> tuple[ToolDefinition, ...]:
    return tuple(map(_as_definition, tools))


def _as_definition(one: Tool | ToolDefinition | Mapping[str, Any] | Callable[..., Any]) -> ToolDefinition:
    if isinstance(one, ToolDefinition | Mapping):
        return as_definition(one)
    return (one if isinstance(one, Tool) else Tool.from_function(one)).definition


@attrs.frozen(kw_only=True)
class ChatConfig:
    """How to ask: everything of a :class:`~crosswalk.service.ChatRequest` but the conversation.

    Attributes:
        model: the model's name as the provider knows it; ``None`` for the endpoint's own.
        temperature: how random the answer is, from 0; ``None`` for the provider's default, here and below.
        top_p: sample from the most likely tokens that make up this share, from 0 to 1.
        top_k: sample from this many most likely tokens.
        max_tokens: the most tokens that the answer may have, reasoning included.
        stop: texts at which generation ends.
        seed: makes sampling repeatable, as far as the server does that.
        tools: what the model may call: definitions, also in OpenAI's form, tools, or functions to make tools of. They are
            told to the model; only an :class:`~crosswalk.agent.Agent` runs tools.
        hosted_tools: what the provider itself runs for the model: ``HostedTool``, or its kind (``"web_search"``).
        tool_choice: whether it may, must, or must call a certain one.
        parallel_tool_calls: whether it may call several at once.
        response_format: that the answer must be JSON, and of which schema; ``None`` for free text.
        reasoning_effort: how much to reason.
        cache_marks: how far the prompt is to be cached, where the API wants to be told: ``CacheMark``, or what it stands
            after: ``"tools"``, ``"system"``, a message's number, -1 for the last.
        provider_options: JSON objects by provider id, each merged into the body for that provider.

    Raises:
        ResponseValidationError: a field of another type or outside its bounds.
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

    def __attrs_post_init__(self) -> None:
        # A wrong option is refused here, not with the first question. Which messages there are to mark, nobody knows yet.
        ChatRequest("", **{**self._options, "cache_marks": ()})

    def request(self, messages: Messages) -> ChatRequest:
        """The request that asks *messages* in this way.

        Args:
            messages: the conversation, or the user's message alone.

        Raises:
            ResponseValidationError: it is no conversation.
        """
        return ChatRequest(messages, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in attrs.fields(ChatConfig)}


class ChatAgent(SyncServiceOwner):
    """Sends a conversation and gives the model's answer.

    Args:
        service: whom to ask: a service, or an endpoint such as ``"ollama:llama3.2"``.
        config: how to ask where a call does not say; ``None`` for the provider's defaults.
        trim: what to send of a conversation that is too long for the model, once in a call: ``keep_turns(10)``,
            ``keep_tokens(8000)``, or a function of one's own; ``None``: the call fails.

    Raises:
        ConfigurationError: *service* is of the other kind, or an option of another type.
    """

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
        """The model's next answer.

        Args:
            messages: the conversation, oldest first, or the user's message alone; also as OpenAI's SDK has messages.
            config: how to ask, instead of the agent's own way.

        Raises:
            ProviderError: the provider failed; its ``response`` holds what came.
            MappingError: the answer cannot be read; its ``partial`` holds what came.
            CrosswalkError: the request cannot be sent.
        """
        request = (_check_config(config) or self._config).request(messages)
        try:
            return self._service.complete(request)
        except ContextOverflowError as error:
            return self._service.complete(_trimmed_or_raise(request, error, self._trim))

    def stream_chat(self, messages: Messages, config: ChatConfig | None = None) -> ChatStream:
        """The model's next answer as it comes: a generator of deltas whose return value is the whole response.

        Args:
            messages: the conversation, oldest first, or the user's message alone; also as OpenAI's SDK has messages.
            config: how to ask, instead of the agent's own way.

        Raises:
            ResponseValidationError: *messages* are no conversation.
        """
        return ChatStream(
            self._service, (_check_config(config) or self._config).request(messages), self._trim
        )


class AsyncChatAgent(AsyncServiceOwner):
    """The same as :class:`ChatAgent`, for programs with an event loop.

    Args:
        service: whom to ask: a service, or an endpoint such as ``"ollama:llama3.2"``.
        config: how to ask where a call does not say; ``None`` for the provider's defaults.
        trim: what to send of a conversation that is too long for the model; see :class:`ChatAgent`.

    Raises:
        ConfigurationError: *service* is of the other kind, or an option of another type.
    """

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
        """The model's next answer; see :meth:`ChatAgent.chat`."""
        request = (_check_config(config) or self._config).request(messages)
        try:
            return await self._service.complete(request)
        except ContextOverflowError as error:
            return await self._service.complete(_trimmed_or_raise(request, error, self._trim))

    def stream_chat(self, messages: Messages, config: ChatConfig | None = None) -> AsyncChatStream:
        """The model's next answer as it comes: iterate over it, then ``await`` its ``response()``.

        An asynchronous generator has no return value; otherwise this is :meth:`ChatAgent.stream_chat`. Use
        ``async with`` to be sure that the connection is closed.
        """
        return AsyncChatStream(
            self._service, (_check_config(config) or self._config).request(messages), self._trim
        )


def _check_config(config: ChatConfig | None) -> ChatConfig | None:
    check_type("config", config, ChatConfig)
    return config


def _trimmed_or_raise(request: ChatRequest, error: ProviderError, trim: Trimming | None) -> ChatRequest:
    """What to ask instead of *request*, which was too long; *error* is raised where there is nothing."""
    trimmed = None if error.response is None else trim_refused_request(request, error.response, trim)
    if trimmed is None:
        raise error
    return trimmed


class ChatStream(Generator[ResponseDelta, None, ChatResponse]):
    """The deltas of an answer as they come, made by :meth:`ChatAgent.stream_chat`.

    Iterate over it; afterwards the whole answer is its ``response``, and the value of ``yield from``. Iterating raises:
    ``ProviderError`` if the provider failed, after the deltas that came; ``MappingError`` if the answer cannot be read;
    ``CrosswalkError`` if the request cannot be sent.

    A service whose ``RetryPolicy`` starts over after the first token gives a delta with :data:`RETRIED` among its
    ``extensions`` then: what came before it is void.
    """

    def __init__(self, service: SyncLLMService, request: ChatRequest, trim: Trimming | None) -> None:
        self._service = service
        self._events = service.stream(request)
        self._is_stopped = False
        self._deltas = self._all_deltas(request, trim)

    @property
    def response(self) -> ChatResponse:
        """The answer, once it has ended; what came of it where it was stopped (``cancelled``) or failed.

        Raises:
            ResponseValidationError: it has not ended (``ACODE-RSP-008``).
            CrosswalkError: what was raised, where nothing was sent.
        """
        return self._events.response

    def stop(self) -> None:
        """End the answer here, from any thread: whoever iterates comes to its end, and ``response`` holds what came."""
        self._is_stopped = True
        self._events.cancel()

    def send(self, _: None = None, /) -> ResponseDelta:
        """The next delta."""
        return next(self._deltas)

    def throw(self, *error: Any) -> ResponseDelta:
        """End the answer here with *error*."""
        return self._deltas.throw(*error)

    def close(self) -> None:
        """As :meth:`stop`, for whoever iterates."""
        self.stop()
        self._deltas.close()

    def _all_deltas(
        self, request: ChatRequest, trim: Trimming | None
    ) -> Generator[ResponseDelta, None, ChatResponse]:
        while True:
            trimmed, is_shown = None, False
            with self._events as events:
                for event in events:
                    trimmed = None if is_shown else _trimmed_retry(request, event, trim)
                    if trimmed is None and (delta := _delta_of(event)) is not None:
                        is_shown = True
                        yield delta
            if trimmed is None:
                return events.response.raise_for_error()
            request, trim, self._events = trimmed, None, self._service.stream(trimmed)
            if self._is_stopped:  # by another thread, meanwhile
                self._events.cancel()


def _delta_of(event: StreamEvent) -> ResponseDelta | None:
    """The delta of *event*, or one that says that all before it is void; ``None`` for an event without."""
    if event.event_type is StreamEventType.RETRIED:
        return ResponseDelta(0, extensions={RETRIED: len(event.attempts)})
    return event.delta


def _trimmed_retry(request: ChatRequest, event: StreamEvent, trim: Trimming | None) -> ChatRequest | None:
    """What to ask instead of *request*, where *event* is the end and says that it is too long; else ``None``."""
    return None if event.response is None else trim_refused_request(request, event.response, trim)


class AsyncChatStream(StreamingChatResponse):
    """The same as :class:`ChatStream`, made by :meth:`AsyncChatAgent.stream_chat`; for one consumer or several.

    ``aclose()`` ends the answer where it is.
    """

    def __init__(self, service: LLMService, request: ChatRequest, trim: Trimming | None) -> None:
        self._service = service
        self._events = service.stream(request)
        super().__init__(self._all_deltas(request, trim), lambda: self._events.response.raise_for_error())

    async def response(self) -> ChatResponse:
        """The complete answer; reads the rest of it first. Of one that was closed, what came: it is ``cancelled``.

        Raises:
            ProviderError: the provider failed; its ``response`` holds what came.
            CrosswalkError: the answer cannot be read, or nothing was sent.
        """
        if self.state is StreamState.CANCELLED:
            return self._events.response
        return await super().response()

    async def _all_deltas(self, request: ChatRequest, trim: Trimming | None) -> AsyncIterator[ResponseDelta]:
        while True:
            trimmed, is_shown = None, False
            async with self._events as events:
                async for event in events:
                    trimmed = None if is_shown else _trimmed_retry(request, event, trim)
                    if trimmed is None and (delta := _delta_of(event)) is not None:
                        is_shown = True
                        yield delta
            if trimmed is None:
                events.response.raise_for_error()
                return
            request, trim, self._events = trimmed, None, self._service.stream(trimmed)
