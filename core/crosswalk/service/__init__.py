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

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.formats.reading import (
        ClientRequest as ClientRequest,
        Incoming as Incoming,
        Wants as Wants,
    )
    from crosswalk.formats.requests import (
        read_request as read_request,
    )
    from crosswalk.formats.tables import (
        client_tool as client_tool,
        option_paths as option_paths,
        part_types as part_types,
    )
    from crosswalk.request import (
        Adaptation as Adaptation,
        AdaptationKind as AdaptationKind,
        Asked as Asked,
        CacheMark as CacheMark,
        ChatRequest as ChatRequest,
        ExtraOptions as ExtraOptions,
        Given as Given,
        HostedTool as HostedTool,
        HostedToolKind as HostedToolKind,
        HTTPRequest as HTTPRequest,
        MCPServer as MCPServer,
        Messages as Messages,
        NamedTool as NamedTool,
        ReasoningEffort as ReasoningEffort,
        ResponseFormat as ResponseFormat,
        ToolChoice as ToolChoice,
        ToolDefinition as ToolDefinition,
        Turn as Turn,
        UnsupportedRequestError as UnsupportedRequestError,
        adaptations_of as adaptations_of,
    )
    from crosswalk.service.auxiliary_requests import (
        Embeddings as Embeddings,
        PlainAnswer as PlainAnswer,
        TokenCount as TokenCount,
    )
    from crosswalk.service.batch_files import (
        BatchRequest as BatchRequest,
        BatchRequestError as BatchRequestError,
        BatchResult as BatchResult,
        build_batch_requests as build_batch_requests,
        read_batch_results as read_batch_results,
    )
    from crosswalk.service.building import (
        OpenAIChatStyle as OpenAIChatStyle,
        build_http_request as build_http_request,
        build_openai_chat_request as build_openai_chat_request,
        openai_choice as openai_choice,
        openai_format as openai_format,
        openai_tool as openai_tool,
        tool_fields as tool_fields,
    )
    from crosswalk.service.call import (
        EventStream as EventStream,
        Sent as Sent,
    )
    from crosswalk.service.credentials import (
        may_hold_credential as may_hold_credential,
        take_credentials as take_credentials,
    )
    from crosswalk.service.endpoint import (
        CANCELLED as CANCELLED,
        DISCOVERED as DISCOVERED,
        Endpoint as Endpoint,
        Redaction as Redaction,
        RetryPolicy as RetryPolicy,
        Secret as Secret,
        ServerFailures as ServerFailures,
        Timeouts as Timeouts,
        as_cancelled as as_cancelled,
        base_url_variables as base_url_variables,
        completed as completed,
        encoded_forms as encoded_forms,
        failure_of as failure_of,
        is_paid as is_paid,
        is_unstarted as is_unstarted,
        request_id_of as request_id_of,
        retry_after_of as retry_after_of,
        should_retry as should_retry,
        timeout_info as timeout_info,
    )
    from crosswalk.service.hosts import (
        Hosts as Hosts,
        Site as Site,
        tokens_of as tokens_of,
    )
    from crosswalk.service.http import (
        GzipReader as GzipReader,
    )
    from crosswalk.service.json_answer import (
        JSONAnswer as JSONAnswer,
        JSONAnswerError as JSONAnswerError,
        JSONStream as JSONStream,
        SyncJSONStream as SyncJSONStream,
    )
    from crosswalk.service.model_fit import (
        max_tokens_of as max_tokens_of,
    )
    from crosswalk.service.otel import (
        ClientTelemetry as ClientTelemetry,
        OpenTelemetry as OpenTelemetry,
    )
    from crosswalk.service.service import (
        CallOptions as CallOptions,
        JSONOptions as JSONOptions,
        LLMService as LLMService,
        RetriedJSONOptions as RetriedJSONOptions,
    )
    from crosswalk.service.setup import (
        KEPT_FIELDS as KEPT_FIELDS,
        Call as Call,
        Middleware as Middleware,
        Observation as Observation,
        Observer as Observer,
        RequestPlan as RequestPlan,
        at_another_address as at_another_address,
        ids_in as ids_in,
        item_ids as item_ids,
        kept_ids as kept_ids,
        may_name as may_name,
        seals_in as seals_in,
    )
    from crosswalk.service.sync import (
        SyncEventStream as SyncEventStream,
        SyncLLMService as SyncLLMService,
    )
    from crosswalk.service.turns import (
        NO_ANSWER as NO_ANSWER,
        Drops as Drops,
        alternating as alternating,
        arguments_object as arguments_object,
        arguments_text as arguments_text,
        cache_mark as cache_mark,
        content_parts as content_parts,
        data_url as data_url,
        is_of as is_of,
        known_media_type as known_media_type,
        media_type_of as media_type_of,
        message_of as message_of,
        noun_of as noun_of,
        reasoning_of as reasoning_of,
        refusal_of as refusal_of,
        segments_of as segments_of,
        system_text as system_text,
        text_of as text_of,
        tool_names as tool_names,
        unsupported_part as unsupported_part,
        with_results_shown as with_results_shown,
        without_silence as without_silence,
    )
    from crosswalk.text import (
        SECRET as SECRET,
        holds_key as holds_key,
        names_credential as names_credential,
    )
    from crosswalk.types.json import (
        as_json_object as as_json_object,
    )
    from crosswalk.types.message import (
        DocumentPart as DocumentPart,
        SearchResultPart as SearchResultPart,
        VideoPart as VideoPart,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.formats.tables": "client_tool option_paths part_types",
            "crosswalk.formats.reading": "ClientRequest Incoming Wants",
            "crosswalk.formats.requests": "read_request",
            "crosswalk.request": (
                "Adaptation AdaptationKind Asked CacheMark ChatRequest ExtraOptions Given HTTPRequest HostedTool "
                "HostedToolKind MCPServer Messages NamedTool ReasoningEffort ResponseFormat ToolChoice ToolDefinition "
                "Turn UnsupportedRequestError adaptations_of"
            ),
            "crosswalk.service.auxiliary_requests": "Embeddings PlainAnswer TokenCount",
            "crosswalk.service.batch_files": (
                "BatchRequest BatchRequestError BatchResult build_batch_requests read_batch_results"
            ),
            "crosswalk.service.building": (
                "OpenAIChatStyle build_http_request build_openai_chat_request openai_choice openai_format "
                "openai_tool tool_fields"
            ),
            "crosswalk.service.call": "EventStream Sent",
            "crosswalk.service.credentials": "may_hold_credential take_credentials",
            "crosswalk.service.endpoint": (
                "CANCELLED DISCOVERED Endpoint Redaction RetryPolicy Secret ServerFailures Timeouts as_cancelled "
                "base_url_variables completed encoded_forms failure_of is_paid is_unstarted request_id_of "
                "retry_after_of should_retry timeout_info"
            ),
            "crosswalk.service.hosts": "Hosts Site tokens_of",
            "crosswalk.service.http": "GzipReader",
            "crosswalk.service.json_answer": "JSONAnswer JSONAnswerError JSONStream SyncJSONStream",
            "crosswalk.service.model_fit": "max_tokens_of",
            "crosswalk.service.otel": "ClientTelemetry OpenTelemetry",
            "crosswalk.service.service": "CallOptions JSONOptions LLMService RetriedJSONOptions",
            "crosswalk.service.setup": (
                "Call KEPT_FIELDS Middleware Observation Observer RequestPlan at_another_address ids_in "
                "item_ids kept_ids may_name seals_in"
            ),
            "crosswalk.service.sync": "SyncEventStream SyncLLMService",
            "crosswalk.service.turns": (
                "Drops NO_ANSWER alternating arguments_object arguments_text cache_mark content_parts "
                "data_url is_of known_media_type media_type_of message_of noun_of reasoning_of refusal_of "
                "segments_of system_text text_of tool_names unsupported_part with_results_shown "
                "without_silence"
            ),
            "crosswalk.text": "SECRET holds_key names_credential",
            "crosswalk.types.json": "as_json_object",
            "crosswalk.types.message": "DocumentPart SearchResultPart VideoPart",
        },
    )
