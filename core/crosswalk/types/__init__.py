"""The canonical vocabulary: immutable values, validated when made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.types.builder import (
        ResponseBuilder as ResponseBuilder,
    )
    from crosswalk.types.delta import (
        Correction as Correction,
        ResponseDelta as ResponseDelta,
    )
    from crosswalk.types.event import (
        StreamEvent as StreamEvent,
        StreamEventType as StreamEventType,
    )
    from crosswalk.types.filter import (
        ContentFilterCategory as ContentFilterCategory,
        ContentFilterResult as ContentFilterResult,
        ContentFilterSeverity as ContentFilterSeverity,
    )
    from crosswalk.types.finish import (
        FinishReason as FinishReason,
        IncompleteReason as IncompleteReason,
    )
    from crosswalk.types.json import (
        FrozenObject as FrozenObject,
        JSONObject as JSONObject,
        JSONValue as JSONValue,
        dump_json as dump_json,
        load_json as load_json,
        thaw as thaw,
    )
    from crosswalk.types.logprob import (
        TokenLogprob as TokenLogprob,
    )
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
    from crosswalk.types.raw import (
        RawEvents as RawEvents,
    )
    from crosswalk.types.response import (
        Alternative as Alternative,
        ChatResponse as ChatResponse,
    )
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
    from crosswalk.types.usage import (
        Cost as Cost,
        UsageDetails as UsageDetails,
        UsageInfo as UsageInfo,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.types.builder": "ResponseBuilder",
            "crosswalk.types.delta": "Correction ResponseDelta",
            "crosswalk.types.event": "StreamEvent StreamEventType",
            "crosswalk.types.filter": "ContentFilterCategory ContentFilterResult ContentFilterSeverity",
            "crosswalk.types.finish": "FinishReason IncompleteReason",
            "crosswalk.types.json": "FrozenObject JSONObject JSONValue dump_json load_json thaw",
            "crosswalk.types.logprob": "TokenLogprob",
            "crosswalk.types.message": ("AudioPart ChatMessage ContentPart FilePart ImagePart Role TextPart"),
            "crosswalk.types.metadata": "AttemptOutcome Provenance ProviderAttempt ResponseMetadata",
            "crosswalk.types.raw": "RawEvents",
            "crosswalk.types.response": "Alternative ChatResponse",
            "crosswalk.types.segment": "Annotation CitationRef SafetyAnnotation Segment SegmentType",
            "crosswalk.types.tools": "CallKind ToolCall ToolCallDelta",
            "crosswalk.types.usage": "Cost UsageDetails UsageInfo",
        },
    )
