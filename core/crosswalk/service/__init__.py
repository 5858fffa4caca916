"""Send requests to model servers: requests, transport, retries and failover.

::

    from crosswalk.service import ChatRequest, Endpoint, LLMService, SyncLLMService

    async with LLMService(Endpoint("vllm", model="m"), Endpoint("ollama", model="llama3.2")) as service:
        response = await service.complete(ChatRequest("Why is the sky blue?"))

        async with service.stream(ChatRequest("Why?")) as events:
            async for event in events:
                if event.delta is not None and event.delta.content_delta:
                    print(event.delta.content_delta, end="")
        events.response  # complete, or marked ``cancelled`` with the partial answer if the block was left early

        answer = await service.complete_json(ChatRequest("The weather?"), Weather)
        answer.value, answer.response

:class:`SyncLLMService` has the same methods without ``await``: ``complete``, ``stream`` (a context manager and an
iterator of :class:`~crosswalk.types.StreamEvent`), ``complete_json``, ``close``.

- ``LLMService(*endpoints, retry, timeouts, unknown, on_unsupported, keep_raw, ...)``: tries the endpoints in order.
- ``await complete(request) -> ChatResponse``. Raises a subclass of ``ProviderError`` if every endpoint failed
  (``.response`` is the error response with the partial answer and all ``attempts``), ``MappingError`` if an answer
  cannot be read (``.partial`` is the same), and ``UnsupportedRequestError`` or ``ConfigurationError`` before anything
  is sent.
- ``stream(request) -> EventStream``: an async iterator of ``StreamEvent`` and an async context manager. The last event
  carries the complete ``ChatResponse``: ``response.completed``, ``response.incomplete`` or, if the server failed,
  ``response.error``. The iterator does not raise for that. ``await cancel()``, from any task, ends the stream with
  ``response.incomplete`` and a response marked ``cancelled``. If a task is cancelled while it reads, the connection is
  closed and ``.response`` is the same.
- ``await complete_json(request, answer) -> JSONAnswer[T]`` with ``value: T``, ``response``, ``result``. Raises
  ``JSONAnswerError`` if the model's answer does not fit.

A request's ``messages`` are ``ChatMessage``s and, for the model's turns, the ``ChatResponse``s themselves. A response
holds the items that the provider wants back byte for byte, such as signatures of reasoning.

Importing this package loads no HTTP client. The names below load their module when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.service.arguments import *
    from crosswalk.service.auxiliary_requests import *
    from crosswalk.service.building import *
    from crosswalk.service.client_requests import *
    from crosswalk.service.endpoint import *
    from crosswalk.service.failures import *
    from crosswalk.service.http.redaction import *
    from crosswalk.service.http_request import *
    from crosswalk.service.json_answer import *
    from crosswalk.service.middleware import *
    from crosswalk.service.observe import *
    from crosswalk.service.openai_chat import *
    from crosswalk.service.otel import *
    from crosswalk.service.policy import *
    from crosswalk.service.request import *
    from crosswalk.service.service import *
    from crosswalk.service.stream import *
    from crosswalk.service.sync import *
    from crosswalk.service.tools import *
    from crosswalk.service.turns import *
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "arguments auxiliary_requests building client_requests endpoint failures http_request json_answer "
        "middleware observe openai_chat otel policy service.http.redaction request service stream sync tools turns",
    )
