"""Crosswalk: any LLM server's answer as one canonical, typed response, without losing a field.

This is the face: it defines nothing and loads nothing until a name is used (promise P7).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosswalk.codec import (
        ABSENT as ABSENT,
        FORMAT_VERSION as FORMAT_VERSION,
        Difference as Difference,
        differences as differences,
        from_json as from_json,
        json_schema as json_schema,
        otel_attributes as otel_attributes,
        to_json as to_json,
        to_jsonable as to_jsonable,
    )
    from crosswalk.config import (
        Settings as Settings,
        apply_settings as apply_settings,
        load_settings as load_settings,
    )
    from crosswalk.errors import (
        AuthenticationError as AuthenticationError,
        CanonicalJSONError as CanonicalJSONError,
        ConfigurationError as ConfigurationError,
        ContentFilterError as ContentFilterError,
        ContextOverflowError as ContextOverflowError,
        CrosswalkError as CrosswalkError,
        DetectionError as DetectionError,
        ErrorInfo as ErrorInfo,
        ErrorKind as ErrorKind,
        FramingError as FramingError,
        IncompleteStreamError as IncompleteStreamError,
        InvalidJSONError as InvalidJSONError,
        InvalidRequestError as InvalidRequestError,
        LimitError as LimitError,
        LineTooLongError as LineTooLongError,
        MappingError as MappingError,
        ModelUnavailableError as ModelUnavailableError,
        NestingTooDeepError as NestingTooDeepError,
        PermissionDeniedError as PermissionDeniedError,
        PluginError as PluginError,
        ProviderError as ProviderError,
        ProviderTimeoutError as ProviderTimeoutError,
        RateLimitError as RateLimitError,
        ResponseValidationError as ResponseValidationError,
        ServerError as ServerError,
        StreamTooLargeError as StreamTooLargeError,
        ToolCallArgumentsError as ToolCallArgumentsError,
        ToolCallValidationError as ToolCallValidationError,
        TooManyEventsError as TooManyEventsError,
        TrailingContentError as TrailingContentError,
        UnknownEventError as UnknownEventError,
        UnknownFinishReasonError as UnknownFinishReasonError,
        UnknownProviderError as UnknownProviderError,
        WireTypeError as WireTypeError,
    )
    from crosswalk.mapping import (
        DeltaStream as DeltaStream,
        anormalize_stream as anormalize_stream,
        detect as detect,
        normalize as normalize,
        normalize_stream as normalize_stream,
    )
    from crosswalk.plugin import (
        ProviderEntry as ProviderEntry,
        Registry as Registry,
        hookimpl as hookimpl,
        hookspec as hookspec,
        registry as registry,
    )
    from crosswalk.stream import (
        DeltaAccumulator as DeltaAccumulator,
        PartialResponse as PartialResponse,
        StreamingChatResponse as StreamingChatResponse,
        StreamState as StreamState,
    )
    from crosswalk.types import (
        Alternative as Alternative,
        Annotation as Annotation,
        AttemptOutcome as AttemptOutcome,
        AudioPart as AudioPart,
        ChatMessage as ChatMessage,
        ChatResponse as ChatResponse,
        CitationRef as CitationRef,
        ContentFilterCategory as ContentFilterCategory,
        ContentFilterResult as ContentFilterResult,
        ContentFilterSeverity as ContentFilterSeverity,
        ContentPart as ContentPart,
        FilePart as FilePart,
        FinishReason as FinishReason,
        FrozenObject as FrozenObject,
        ImagePart as ImagePart,
        JSONObject as JSONObject,
        JSONValue as JSONValue,
        Provenance as Provenance,
        ProviderAttempt as ProviderAttempt,
        RawEvents as RawEvents,
        ResponseBuilder as ResponseBuilder,
        ResponseDelta as ResponseDelta,
        ResponseMetadata as ResponseMetadata,
        Role as Role,
        SafetyAnnotation as SafetyAnnotation,
        Segment as Segment,
        SegmentType as SegmentType,
        StreamEvent as StreamEvent,
        StreamEventType as StreamEventType,
        TextPart as TextPart,
        TokenLogprob as TokenLogprob,
        ToolCall as ToolCall,
        ToolCallDelta as ToolCallDelta,
        UsageInfo as UsageInfo,
        thaw as thaw,
    )
    from crosswalk.wire import (
        Limits as Limits,
    )

_HOME = {
    "crosswalk.config": ("Settings", "apply_settings", "load_settings"),
    "crosswalk.errors": (
        "AuthenticationError",
        "CanonicalJSONError",
        "ConfigurationError",
        "ContentFilterError",
        "ContextOverflowError",
        "CrosswalkError",
        "DetectionError",
        "ErrorInfo",
        "ErrorKind",
        "FramingError",
        "IncompleteStreamError",
        "InvalidJSONError",
        "InvalidRequestError",
        "LimitError",
        "LineTooLongError",
        "MappingError",
        "ModelUnavailableError",
        "NestingTooDeepError",
        "PermissionDeniedError",
        "PluginError",
        "ProviderError",
        "ProviderTimeoutError",
        "RateLimitError",
        "ResponseValidationError",
        "ServerError",
        "StreamTooLargeError",
        "TooManyEventsError",
        "ToolCallArgumentsError",
        "ToolCallValidationError",
        "TrailingContentError",
        "UnknownEventError",
        "UnknownFinishReasonError",
        "UnknownProviderError",
        "WireTypeError",
    ),
    "crosswalk.types": (
        "Alternative",
        "Annotation",
        "AttemptOutcome",
        "AudioPart",
        "ChatMessage",
        "ChatResponse",
        "CitationRef",
        "ContentFilterCategory",
        "ContentFilterResult",
        "ContentFilterSeverity",
        "ContentPart",
        "FilePart",
        "FinishReason",
        "FrozenObject",
        "ImagePart",
        "JSONObject",
        "JSONValue",
        "Provenance",
        "ProviderAttempt",
        "RawEvents",
        "ResponseBuilder",
        "ResponseDelta",
        "ResponseMetadata",
        "Role",
        "SafetyAnnotation",
        "Segment",
        "SegmentType",
        "StreamEvent",
        "StreamEventType",
        "TextPart",
        "TokenLogprob",
        "ToolCall",
        "ToolCallDelta",
        "UsageInfo",
        "thaw",
    ),
    "crosswalk.codec": (
        "ABSENT",
        "FORMAT_VERSION",
        "Difference",
        "differences",
        "from_json",
        "json_schema",
        "otel_attributes",
        "to_json",
        "to_jsonable",
    ),
    "crosswalk.wire": ("Limits",),
    "crosswalk.plugin": (
        "ProviderEntry",
        "Registry",
        "hookimpl",
        "hookspec",
        "registry",
    ),
    "crosswalk.stream": (
        "DeltaAccumulator",
        "PartialResponse",
        "StreamState",
        "StreamingChatResponse",
    ),
    "crosswalk.mapping": (
        "DeltaStream",
        "anormalize_stream",
        "detect",
        "normalize",
        "normalize_stream",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value  # found the usual way from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
