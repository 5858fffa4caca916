"""Ask a server: requests, transport, retries and failover (design, section 7; seed 003).

::

    from crosswalk.service import ChatRequest, Endpoint, LLMService, SyncLLMService

    async with LLMService(Endpoint("vllm", model="m"), Endpoint("ollama", model="llama3.2")) as service:
        response = await service.complete(ChatRequest("Why is the sky blue?"))

        async with service.stream(ChatRequest("Why?")) as events:
            async for event in events:
                if event.delta is not None and event.delta.content_delta:
                    print(event.delta.content_delta, end="")
        events.response  # complete, or marked ``cancelled`` with what came, if the block was left early

        answer = await service.complete_json(ChatRequest("The weather?"), Weather)
        answer.value, answer.response

:class:`SyncLLMService` has the same methods without ``await``: ``complete``, ``stream`` (a context manager and an
iterator of :class:`~crosswalk.types.StreamEvent`), ``complete_json``, ``close``.

- ``LLMService(*endpoints, retry, timeouts, unknown, on_unsupported, keep_raw, ...)``: the endpoints are asked in order.
- ``await complete(request) -> ChatResponse``. Raises ``ProviderError`` (its subclass says which kind; ``.response`` is
  the error response with what came and all ``attempts``), ``MappingError`` where an answer cannot be read (``.partial``
  is the same), ``UnsupportedRequestError`` or ``ConfigurationError`` before anything is sent.
- ``stream(request) -> EventStream``: an async iterator of ``StreamEvent`` and an async context manager. The last event
  carries the complete ``ChatResponse``: ``response.completed``, ``response.incomplete`` or, where the server failed,
  ``response.error``; it does not raise for that. ``await cancel()``, from any task, ends it with
  ``response.incomplete`` and a response marked ``cancelled``. A task that is cancelled while it reads closes the
  connection; ``.response`` then is the same.
- ``await complete_json(request, answer) -> JSONAnswer[T]`` with ``value: T``, ``response``, ``result``;
  ``JSONAnswerError`` where the model answered with something else.

A request's ``messages`` are ``ChatMessage``s and, for turns that a model answered, the ``ChatResponse``s themselves:
they hold what the provider wants back byte for byte, such as signatures of reasoning.

Importing this package loads no HTTP client; the names below load their module when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosswalk.service.answer import JSONAnswer as JSONAnswer, JSONAnswerError as JSONAnswerError
    from crosswalk.service.building import build_http_request as build_http_request
    from crosswalk.service.endpoint import Endpoint as Endpoint, Secret as Secret
    from crosswalk.service.errors import UnsupportedRequestError as UnsupportedRequestError
    from crosswalk.service.observe import Call as Call, Observation as Observation, Observer as Observer
    from crosswalk.service.openai_chat import (
        OpenAIChatStyle as OpenAIChatStyle,
        build_openai_chat_request as build_openai_chat_request,
        openai_tool as openai_tool,
    )
    from crosswalk.service.otel import OpenTelemetry as OpenTelemetry
    from crosswalk.service.policy import RetryPolicy as RetryPolicy, Timeouts as Timeouts
    from crosswalk.service.request import (
        ChatRequest as ChatRequest,
        Dropped as Dropped,
        HTTPRequest as HTTPRequest,
        NamedTool as NamedTool,
        ReasoningEffort as ReasoningEffort,
        ResponseFormat as ResponseFormat,
        ToolChoice as ToolChoice,
        ToolDefinition as ToolDefinition,
        Turn as Turn,
    )
    from crosswalk.service.service import LLMService as LLMService
    from crosswalk.service.stream import EventStream as EventStream
    from crosswalk.service.sync import SyncEventStream as SyncEventStream, SyncLLMService as SyncLLMService
    from crosswalk.service.turns import (
        Drops as Drops,
        arguments_object as arguments_object,
        as_json_object as as_json_object,
        content_parts as content_parts,
        data_url as data_url,
        is_of as is_of,
        media_type_of as media_type_of,
        message_of as message_of,
        reasoning_of as reasoning_of,
        segments_of as segments_of,
        system_text as system_text,
        tool_names as tool_names,
        unsupported_part as unsupported_part,
    )

_HOME = {
    "answer": ("JSONAnswer", "JSONAnswerError"),
    "building": ("build_http_request",),
    "endpoint": ("Endpoint", "Secret"),
    "errors": ("UnsupportedRequestError",),
    "observe": ("Call", "Observation", "Observer"),
    "openai_chat": ("OpenAIChatStyle", "build_openai_chat_request", "openai_tool"),
    "otel": ("OpenTelemetry",),
    "policy": ("RetryPolicy", "Timeouts"),
    "request": (
        "ChatRequest",
        "Dropped",
        "HTTPRequest",
        "NamedTool",
        "ReasoningEffort",
        "ResponseFormat",
        "ToolChoice",
        "ToolDefinition",
        "Turn",
    ),
    "service": ("LLMService",),
    "stream": ("EventStream",),
    "sync": ("SyncEventStream", "SyncLLMService"),
    "turns": (
        "Drops",
        "arguments_object",
        "as_json_object",
        "content_parts",
        "data_url",
        "is_of",
        "media_type_of",
        "message_of",
        "reasoning_of",
        "segments_of",
        "system_text",
        "tool_names",
        "unsupported_part",
    ),
}
_MODULE_OF = {name: f"crosswalk.service.{module}" for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
