"""Crosswalk: any LLM server's answer as one canonical, typed response, without losing a field.

This package defines nothing, and imports a module only when one of its names is used (promise P7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.agent.agent import (
        Agent as Agent,
    )
    from crosswalk.agent.sync import (
        SyncAgent as SyncAgent,
    )
    from crosswalk.agent.tools import (
        tool as tool,
    )
    from crosswalk.codec.canonical import (
        from_json as from_json,
        to_json as to_json,
        to_jsonable as to_jsonable,
    )
    from crosswalk.convert.conversion import (
        convert as convert,
    )
    from crosswalk.errors import (
        FramingError as FramingError,
        IncompleteStreamError as IncompleteStreamError,
        InvalidJSONError as InvalidJSONError,
        LimitError as LimitError,
        LineTooLongError as LineTooLongError,
        MappingError as MappingError,
        NestingTooDeepError as NestingTooDeepError,
        StreamTooLargeError as StreamTooLargeError,
        TooManyEventsError as TooManyEventsError,
        TrailingContentError as TrailingContentError,
        UnknownEventError as UnknownEventError,
        UnknownFinishReasonError as UnknownFinishReasonError,
        WireTypeError as WireTypeError,
    )
    from crosswalk.mapping.normalize import (
        DeltaStream as DeltaStream,
        anormalize_stream as anormalize_stream,
        detect as detect,
        normalize as normalize,
        normalize_stream as normalize_stream,
    )
    from crosswalk.otel import (
        otel_attributes as otel_attributes,
    )
    from crosswalk.plain_errors import (
        CanonicalJSONError as CanonicalJSONError,
        ConfigurationError as ConfigurationError,
        CrosswalkError as CrosswalkError,
        DetectionError as DetectionError,
        PluginError as PluginError,
        ResponseValidationError as ResponseValidationError,
        ToolCallArgumentsError as ToolCallArgumentsError,
        UnknownProviderError as UnknownProviderError,
    )
    from crosswalk.plugin.hooks import (
        hookimpl as hookimpl,
        hookspec as hookspec,
    )
    from crosswalk.plugin.registry import (
        Registry as Registry,
        providers as providers,
        registry as registry,
    )
    from crosswalk.prices import (
        cost_of as cost_of,
    )
    from crosswalk.request import (
        ChatRequest as ChatRequest,
    )
    from crosswalk.schemas.json_schema import (
        json_schema as json_schema,
    )
    from crosswalk.service.endpoint import (
        Endpoint as Endpoint,
    )
    from crosswalk.service.service import (
        LLMService as LLMService,
    )
    from crosswalk.service.sync import (
        SyncLLMService as SyncLLMService,
    )
    from crosswalk.stream import (
        StreamingChatResponse as StreamingChatResponse,
        StreamState as StreamState,
    )
    from crosswalk.structured.parser import (
        StructuredParser as StructuredParser,
    )
    from crosswalk.tables import (
        to_pandas as to_pandas,
    )
    from crosswalk.types.delta import (
        ResponseDelta as ResponseDelta,
    )
    from crosswalk.types.json import (
        FrozenObject as FrozenObject,
    )
    from crosswalk.types.message import (
        AudioPart as AudioPart,
        CallKind as CallKind,
        ChatMessage as ChatMessage,
        ContentPart as ContentPart,
        FilePart as FilePart,
        ImagePart as ImagePart,
        Role as Role,
        TextPart as TextPart,
        ToolCall as ToolCall,
        ToolCallDelta as ToolCallDelta,
    )
    from crosswalk.types.response import (
        Alternative as Alternative,
        AuthenticationError as AuthenticationError,
        ChatResponse as ChatResponse,
        ContentFilterError as ContentFilterError,
        ContextOverflowError as ContextOverflowError,
        InvalidRequestError as InvalidRequestError,
        ModelUnavailableError as ModelUnavailableError,
        PermissionDeniedError as PermissionDeniedError,
        ProviderError as ProviderError,
        ProviderTimeoutError as ProviderTimeoutError,
        QuotaError as QuotaError,
        RateLimitError as RateLimitError,
        ServerError as ServerError,
        ToolCallValidationError as ToolCallValidationError,
    )
    from crosswalk.types.stream import (
        DeltaAccumulator as DeltaAccumulator,
        ResponseBuilder as ResponseBuilder,
        StreamEvent as StreamEvent,
        StreamEventType as StreamEventType,
    )
    from crosswalk.types.usage import (
        AttemptOutcome as AttemptOutcome,
        Cost as Cost,
        Provenance as Provenance,
        ProviderAttempt as ProviderAttempt,
        ResponseMetadata as ResponseMetadata,
        UsageInfo as UsageInfo,
    )
    from crosswalk.types.values import (
        Annotation as Annotation,
        CitationRef as CitationRef,
        ContentFilterCategory as ContentFilterCategory,
        ContentFilterResult as ContentFilterResult,
        ContentFilterSeverity as ContentFilterSeverity,
        ErrorInfo as ErrorInfo,
        ErrorKind as ErrorKind,
        FinishReason as FinishReason,
        SafetyAnnotation as SafetyAnnotation,
        Segment as Segment,
        SegmentType as SegmentType,
        TokenLogprob as TokenLogprob,
    )
    from crosswalk.version import (
        __version__ as __version__,
    )
    from crosswalk.wire.framing import (
        Limits as Limits,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.agent.agent": "Agent",
            "crosswalk.agent.sync": "SyncAgent",
            "crosswalk.agent.tools": "tool",
            "crosswalk.codec.canonical": "from_json to_json to_jsonable",
            "crosswalk.errors": (
                "FramingError IncompleteStreamError InvalidJSONError LimitError LineTooLongError "
                "MappingError NestingTooDeepError StreamTooLargeError TooManyEventsError "
                "TrailingContentError UnknownEventError UnknownFinishReasonError WireTypeError"
            ),
            "crosswalk.mapping.normalize": (
                "DeltaStream anormalize_stream detect normalize normalize_stream"
            ),
            "crosswalk.otel": "otel_attributes",
            "crosswalk.plain_errors": (
                "CanonicalJSONError ConfigurationError CrosswalkError DetectionError PluginError "
                "ResponseValidationError ToolCallArgumentsError UnknownProviderError"
            ),
            "crosswalk.plugin.hooks": "hookimpl hookspec",
            "crosswalk.plugin.registry": "Registry providers registry",
            "crosswalk.prices": "cost_of",
            "crosswalk.request": "ChatRequest",
            "crosswalk.schemas.json_schema": "json_schema",
            "crosswalk.service.endpoint": "Endpoint",
            "crosswalk.service.service": "LLMService",
            "crosswalk.service.sync": "SyncLLMService",
            "crosswalk.stream": "StreamState StreamingChatResponse",
            "crosswalk.structured.parser": "StructuredParser",
            "crosswalk.tables": "to_pandas",
            "crosswalk.types.delta": "ResponseDelta",
            "crosswalk.types.json": "FrozenObject",
            "crosswalk.types.message": (
                "AudioPart CallKind ChatMessage ContentPart FilePart ImagePart Role TextPart ToolCall "
                "ToolCallDelta"
            ),
            "crosswalk.types.response": (
                "Alternative AuthenticationError ChatResponse ContentFilterError ContextOverflowError "
                "InvalidRequestError ModelUnavailableError PermissionDeniedError ProviderError "
                "ProviderTimeoutError QuotaError RateLimitError ServerError ToolCallValidationError"
            ),
            "crosswalk.types.stream": "DeltaAccumulator ResponseBuilder StreamEvent StreamEventType",
            "crosswalk.types.usage": (
                "AttemptOutcome Cost Provenance ProviderAttempt ResponseMetadata UsageInfo"
            ),
            "crosswalk.types.values": (
                "Annotation CitationRef ContentFilterCategory ContentFilterResult ContentFilterSeverity "
                "ErrorInfo ErrorKind FinishReason SafetyAnnotation Segment SegmentType TokenLogprob"
            ),
            "crosswalk.version": "__version__",
            "crosswalk.wire.framing": "Limits",
        },
        modules={"convert": "crosswalk.convert"},  # which can be called
        hidden="hookimpl hookspec",
    )
