"""Crosswalk: any LLM server's answer as one canonical, typed response, without losing a field.

This package defines nothing, and imports a module only when one of its names is used (promise P7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import imported_when_used

if TYPE_CHECKING:
    from crosswalk.codec import (
        from_json as from_json,
        to_json as to_json,
        to_jsonable as to_jsonable,
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
    from crosswalk.mapping.detect import detect as detect
    from crosswalk.mapping.normalize import (
        DeltaStream as DeltaStream,
        anormalize_stream as anormalize_stream,
        normalize as normalize,
        normalize_stream as normalize_stream,
    )
    from crosswalk.otel import otel_attributes as otel_attributes
    from crosswalk.plugin.hookspecs import hookimpl as hookimpl, hookspec as hookspec
    from crosswalk.plugin.registry import Registry as Registry, providers as providers, registry as registry
    from crosswalk.prices import cost_of as cost_of
    from crosswalk.schemas.json_schema import json_schema as json_schema
    from crosswalk.stream.replay import (
        StreamingChatResponse as StreamingChatResponse,
        StreamState as StreamState,
    )
    from crosswalk.tables import to_pandas as to_pandas
    from crosswalk.types.accumulator import DeltaAccumulator as DeltaAccumulator
    from crosswalk.types.builder import ResponseBuilder as ResponseBuilder
    from crosswalk.types.delta import ResponseDelta as ResponseDelta
    from crosswalk.types.event import StreamEvent as StreamEvent, StreamEventType as StreamEventType
    from crosswalk.types.filter import (
        ContentFilterCategory as ContentFilterCategory,
        ContentFilterResult as ContentFilterResult,
        ContentFilterSeverity as ContentFilterSeverity,
    )
    from crosswalk.types.finish import FinishReason as FinishReason
    from crosswalk.types.json import FrozenObject as FrozenObject
    from crosswalk.types.logprob import TokenLogprob as TokenLogprob
    from crosswalk.types.message import (
        AudioPart as AudioPart,
        ChatMessage as ChatMessage,
        ContentPart as ContentPart,
        FilePart as FilePart,
        ImagePart as ImagePart,
        Role as Role,
        TextPart as TextPart,
    )
    from crosswalk.types.metadata import (
        AttemptOutcome as AttemptOutcome,
        Provenance as Provenance,
        ProviderAttempt as ProviderAttempt,
        ResponseMetadata as ResponseMetadata,
    )
    from crosswalk.types.response import Alternative as Alternative, ChatResponse as ChatResponse
    from crosswalk.types.segment import (
        Annotation as Annotation,
        CitationRef as CitationRef,
        SafetyAnnotation as SafetyAnnotation,
        Segment as Segment,
        SegmentType as SegmentType,
    )
    from crosswalk.types.tools import (
        CallKind as CallKind,
        ToolCall as ToolCall,
        ToolCallDelta as ToolCallDelta,
    )
    from crosswalk.types.usage import Cost as Cost, UsageInfo as UsageInfo
    from crosswalk.version import __version__ as __version__
    from crosswalk.wire.limits import Limits as Limits
else:
    __getattr__, __dir__ = imported_when_used(
        __name__, lambda name: _MODULE_OF.get(name) or _MARKS.get(name), lambda: {*_MODULE_OF, *_MARKS}
    )

_HOME = {
    "crosswalk.version": ("__version__",),
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
    "crosswalk.types.builder": ("ResponseBuilder",),
    "crosswalk.types.delta": ("ResponseDelta",),
    "crosswalk.types.event": (
        "StreamEvent",
        "StreamEventType",
    ),
    "crosswalk.types.filter": (
        "ContentFilterCategory",
        "ContentFilterResult",
        "ContentFilterSeverity",
    ),
    "crosswalk.types.finish": ("FinishReason",),
    "crosswalk.types.json": ("FrozenObject",),
    "crosswalk.types.logprob": ("TokenLogprob",),
    "crosswalk.types.message": (
        "AudioPart",
        "ChatMessage",
        "ContentPart",
        "FilePart",
        "ImagePart",
        "Role",
        "TextPart",
    ),
    "crosswalk.types.metadata": (
        "AttemptOutcome",
        "Provenance",
        "ProviderAttempt",
        "ResponseMetadata",
    ),
    "crosswalk.types.response": (
        "Alternative",
        "ChatResponse",
    ),
    "crosswalk.types.segment": (
        "Annotation",
        "CitationRef",
        "SafetyAnnotation",
        "Segment",
        "SegmentType",
    ),
    "crosswalk.types.tools": (
        "CallKind",
        "ToolCall",
        "ToolCallDelta",
    ),
    "crosswalk.types.usage": (
        "Cost",
        "UsageInfo",
    ),
    "crosswalk.prices": ("cost_of",),
    "crosswalk.tables": ("to_pandas",),
    "crosswalk.codec": (
        "from_json",
        "to_json",
        "to_jsonable",
    ),
    "crosswalk.otel": ("otel_attributes",),
    "crosswalk.schemas.json_schema": ("json_schema",),
    "crosswalk.wire.limits": ("Limits",),
    "crosswalk.plugin.registry": (
        "Registry",
        "providers",
        "registry",
    ),
    "crosswalk.stream.replay": ("StreamState", "StreamingChatResponse"),
    "crosswalk.types.accumulator": ("DeltaAccumulator",),
    "crosswalk.mapping.detect": ("detect",),
    "crosswalk.mapping.normalize": (
        "DeltaStream",
        "anormalize_stream",
        "normalize",
        "normalize_stream",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

_MARKS = dict.fromkeys(("hookimpl", "hookspec"), "crosswalk.plugin.hookspecs")
"""The marker for hook implementations. Plugins import it from ``crosswalk.plugins``."""

if not TYPE_CHECKING:  # which takes the names above
    __all__ = sorted(_MODULE_OF)
