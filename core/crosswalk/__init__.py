"""Crosswalk: any LLM server's answer as one canonical, typed response, without losing a field.

This is the face: it defines nothing and loads nothing until a name is used (promise P7).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosswalk.codec import (
        FORMAT_VERSION as FORMAT_VERSION,
    )
    from crosswalk.codec import (
        from_json as from_json,
    )
    from crosswalk.codec import (
        json_schema as json_schema,
    )
    from crosswalk.codec import (
        otel_attributes as otel_attributes,
    )
    from crosswalk.codec import (
        to_json as to_json,
    )
    from crosswalk.codec import (
        to_jsonable as to_jsonable,
    )
    from crosswalk.config import Settings as Settings
    from crosswalk.config import apply_settings as apply_settings
    from crosswalk.config import load_settings as load_settings
    from crosswalk.errors import (
        AuthenticationError as AuthenticationError,
    )
    from crosswalk.errors import (
        CanonicalJSONError as CanonicalJSONError,
    )
    from crosswalk.errors import (
        ConfigurationError as ConfigurationError,
    )
    from crosswalk.errors import (
        ContentFilterError as ContentFilterError,
    )
    from crosswalk.errors import (
        ContextOverflowError as ContextOverflowError,
    )
    from crosswalk.errors import (
        CrosswalkError as CrosswalkError,
    )
    from crosswalk.errors import (
        DetectionError as DetectionError,
    )
    from crosswalk.errors import (
        ErrorInfo as ErrorInfo,
    )
    from crosswalk.errors import (
        ErrorKind as ErrorKind,
    )
    from crosswalk.errors import (
        FramingError as FramingError,
    )
    from crosswalk.errors import (
        IncompleteStreamError as IncompleteStreamError,
    )
    from crosswalk.errors import (
        InvalidJSONError as InvalidJSONError,
    )
    from crosswalk.errors import (
        InvalidRequestError as InvalidRequestError,
    )
    from crosswalk.errors import (
        LimitError as LimitError,
    )
    from crosswalk.errors import (
        LineTooLongError as LineTooLongError,
    )
    from crosswalk.errors import (
        MappingError as MappingError,
    )
    from crosswalk.errors import (
        ModelUnavailableError as ModelUnavailableError,
    )
    from crosswalk.errors import (
        NestingTooDeepError as NestingTooDeepError,
    )
    from crosswalk.errors import (
        PermissionDeniedError as PermissionDeniedError,
    )
    from crosswalk.errors import (
        PluginError as PluginError,
    )
    from crosswalk.errors import (
        ProviderError as ProviderError,
    )
    from crosswalk.errors import (
        ProviderTimeoutError as ProviderTimeoutError,
    )
    from crosswalk.errors import (
        RateLimitError as RateLimitError,
    )
    from crosswalk.errors import (
        ResponseValidationError as ResponseValidationError,
    )
    from crosswalk.errors import (
        ServerError as ServerError,
    )
    from crosswalk.errors import (
        StreamTooLargeError as StreamTooLargeError,
    )
    from crosswalk.errors import (
        ToolCallArgumentsError as ToolCallArgumentsError,
    )
    from crosswalk.errors import (
        ToolCallValidationError as ToolCallValidationError,
    )
    from crosswalk.errors import (
        TooManyEventsError as TooManyEventsError,
    )
    from crosswalk.errors import (
        UnknownEventError as UnknownEventError,
    )
    from crosswalk.errors import (
        UnknownFinishReasonError as UnknownFinishReasonError,
    )
    from crosswalk.errors import (
        UnknownProviderError as UnknownProviderError,
    )
    from crosswalk.errors import (
        WireTypeError as WireTypeError,
    )
    from crosswalk.mapping import (
        CONSUMED_TOKENS as CONSUMED_TOKENS,
    )
    from crosswalk.mapping import (
        KEY as KEY,
    )
    from crosswalk.mapping import (
        TAKEN as TAKEN,
    )
    from crosswalk.mapping import (
        DeltaStream as DeltaStream,
    )
    from crosswalk.mapping import (
        Dialect as Dialect,
    )
    from crosswalk.mapping import (
        DialectFamily as DialectFamily,
    )
    from crosswalk.mapping import (
        OpenAIChatDialect as OpenAIChatDialect,
    )
    from crosswalk.mapping import (
        Reader as Reader,
    )
    from crosswalk.mapping import (
        ReaderOptions as ReaderOptions,
    )
    from crosswalk.mapping import (
        anormalize_stream as anormalize_stream,
    )
    from crosswalk.mapping import (
        candidates as candidates,
    )
    from crosswalk.mapping import (
        classify as classify,
    )
    from crosswalk.mapping import (
        detect as detect,
    )
    from crosswalk.mapping import (
        error_delta as error_delta,
    )
    from crosswalk.mapping import (
        error_info as error_info,
    )
    from crosswalk.mapping import (
        event_type as event_type,
    )
    from crosswalk.mapping import (
        get_array as get_array,
    )
    from crosswalk.mapping import (
        get_boolean as get_boolean,
    )
    from crosswalk.mapping import (
        get_count as get_count,
    )
    from crosswalk.mapping import (
        get_integer as get_integer,
    )
    from crosswalk.mapping import (
        get_number as get_number,
    )
    from crosswalk.mapping import (
        get_object as get_object,
    )
    from crosswalk.mapping import (
        get_string as get_string,
    )
    from crosswalk.mapping import (
        legacy_logprobs as legacy_logprobs,
    )
    from crosswalk.mapping import (
        normalize as normalize,
    )
    from crosswalk.mapping import (
        normalize_stream as normalize_stream,
    )
    from crosswalk.mapping import (
        require_object as require_object,
    )
    from crosswalk.mapping import (
        residue as residue,
    )
    from crosswalk.mapping import (
        taken_if as taken_if,
    )
    from crosswalk.mapping import (
        token_logprobs as token_logprobs,
    )
    from crosswalk.plugin import (
        DISABLED_VARIABLE as DISABLED_VARIABLE,
    )
    from crosswalk.plugin import (
        ENTRY_POINT_GROUP as ENTRY_POINT_GROUP,
    )
    from crosswalk.plugin import (
        Mapper as Mapper,
    )
    from crosswalk.plugin import (
        MappingState as MappingState,
    )
    from crosswalk.plugin import (
        ProviderEntry as ProviderEntry,
    )
    from crosswalk.plugin import (
        ProviderInfo as ProviderInfo,
    )
    from crosswalk.plugin import (
        Recognition as Recognition,
    )
    from crosswalk.plugin import (
        Registry as Registry,
    )
    from crosswalk.plugin import (
        hookimpl as hookimpl,
    )
    from crosswalk.plugin import (
        hookspec as hookspec,
    )
    from crosswalk.plugin import (
        registry as registry,
    )
    from crosswalk.stream import (
        DeltaAccumulator as DeltaAccumulator,
    )
    from crosswalk.stream import (
        PartialResponse as PartialResponse,
    )
    from crosswalk.stream import (
        StreamingChatResponse as StreamingChatResponse,
    )
    from crosswalk.stream import (
        StreamState as StreamState,
    )
    from crosswalk.types import (
        Alternative as Alternative,
    )
    from crosswalk.types import (
        Annotation as Annotation,
    )
    from crosswalk.types import (
        AttemptOutcome as AttemptOutcome,
    )
    from crosswalk.types import (
        AudioPart as AudioPart,
    )
    from crosswalk.types import (
        ChatMessage as ChatMessage,
    )
    from crosswalk.types import (
        ChatResponse as ChatResponse,
    )
    from crosswalk.types import (
        CitationRef as CitationRef,
    )
    from crosswalk.types import (
        ContentFilterCategory as ContentFilterCategory,
    )
    from crosswalk.types import (
        ContentFilterResult as ContentFilterResult,
    )
    from crosswalk.types import (
        ContentFilterSeverity as ContentFilterSeverity,
    )
    from crosswalk.types import (
        ContentPart as ContentPart,
    )
    from crosswalk.types import (
        FilePart as FilePart,
    )
    from crosswalk.types import (
        FinishReason as FinishReason,
    )
    from crosswalk.types import (
        FrozenObject as FrozenObject,
    )
    from crosswalk.types import (
        ImagePart as ImagePart,
    )
    from crosswalk.types import (
        JSONObject as JSONObject,
    )
    from crosswalk.types import (
        JSONValue as JSONValue,
    )
    from crosswalk.types import (
        Provenance as Provenance,
    )
    from crosswalk.types import (
        ProviderAttempt as ProviderAttempt,
    )
    from crosswalk.types import (
        RawEvents as RawEvents,
    )
    from crosswalk.types import (
        ResponseBuilder as ResponseBuilder,
    )
    from crosswalk.types import (
        ResponseDelta as ResponseDelta,
    )
    from crosswalk.types import (
        ResponseMetadata as ResponseMetadata,
    )
    from crosswalk.types import (
        Role as Role,
    )
    from crosswalk.types import (
        SafetyAnnotation as SafetyAnnotation,
    )
    from crosswalk.types import (
        Segment as Segment,
    )
    from crosswalk.types import (
        SegmentType as SegmentType,
    )
    from crosswalk.types import (
        StreamEvent as StreamEvent,
    )
    from crosswalk.types import (
        StreamEventType as StreamEventType,
    )
    from crosswalk.types import (
        TextPart as TextPart,
    )
    from crosswalk.types import (
        TokenLogprob as TokenLogprob,
    )
    from crosswalk.types import (
        ToolCall as ToolCall,
    )
    from crosswalk.types import (
        ToolCallDelta as ToolCallDelta,
    )
    from crosswalk.types import (
        UsageInfo as UsageInfo,
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
    ),
    "crosswalk.codec": (
        "FORMAT_VERSION",
        "from_json",
        "json_schema",
        "otel_attributes",
        "to_json",
        "to_jsonable",
    ),
    "crosswalk.wire": ("Limits",),
    "crosswalk.plugin": (
        "DISABLED_VARIABLE",
        "ENTRY_POINT_GROUP",
        "Mapper",
        "MappingState",
        "ProviderEntry",
        "ProviderInfo",
        "Recognition",
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
        "CONSUMED_TOKENS",
        "DeltaStream",
        "Dialect",
        "DialectFamily",
        "KEY",
        "OpenAIChatDialect",
        "Reader",
        "ReaderOptions",
        "TAKEN",
        "anormalize_stream",
        "candidates",
        "classify",
        "detect",
        "error_delta",
        "error_info",
        "event_type",
        "get_array",
        "get_boolean",
        "get_count",
        "get_integer",
        "get_number",
        "get_object",
        "get_string",
        "legacy_logprobs",
        "normalize",
        "normalize_stream",
        "require_object",
        "residue",
        "taken_if",
        "token_logprobs",
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
