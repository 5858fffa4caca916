"""The canonical vocabulary: immutable values, validated when made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.types.delta import (
        Correction as Correction,
        ResponseDelta as ResponseDelta,
    )
    from crosswalk.types.json import (
        FrozenObject as FrozenObject,
        JSONObject as JSONObject,
        JSONValue as JSONValue,
        dump_json as dump_json,
        load_json as load_json,
        thaw as thaw,
    )
    from crosswalk.types.message import (
        AudioPart as AudioPart,
        CallKind as CallKind,
        ChatMessage as ChatMessage,
        ContentPart as ContentPart,
        DocumentPart as DocumentPart,
        FilePart as FilePart,
        ImagePart as ImagePart,
        Role as Role,
        SearchResultPart as SearchResultPart,
        TextPart as TextPart,
        ToolCall as ToolCall,
        ToolCallDelta as ToolCallDelta,
        VideoPart as VideoPart,
    )
    from crosswalk.types.response import (
        Alternative as Alternative,
        ChatResponse as ChatResponse,
    )
    from crosswalk.types.stream import (
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
        UsageDetails as UsageDetails,
        UsageInfo as UsageInfo,
    )
    from crosswalk.types.values import (
        Annotation as Annotation,
        CitationRef as CitationRef,
        ContentFilterCategory as ContentFilterCategory,
        ContentFilterResult as ContentFilterResult,
        ContentFilterSeverity as ContentFilterSeverity,
        FinishReason as FinishReason,
        IncompleteReason as IncompleteReason,
        RawEvents as RawEvents,
        SafetyAnnotation as SafetyAnnotation,
        Segment as Segment,
        SegmentType as SegmentType,
        TokenLogprob as TokenLogprob,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.types.delta": "Correction ResponseDelta",
            "crosswalk.types.json": "FrozenObject JSONObject JSONValue dump_json load_json thaw",
            "crosswalk.types.message": (
                "AudioPart CallKind ChatMessage ContentPart DocumentPart FilePart ImagePart Role SearchResultPart TextPart "
                "ToolCall ToolCallDelta VideoPart"
            ),
            "crosswalk.types.response": "Alternative ChatResponse",
            "crosswalk.types.stream": "ResponseBuilder StreamEvent StreamEventType",
            "crosswalk.types.usage": (
                "AttemptOutcome Cost Provenance ProviderAttempt ResponseMetadata UsageDetails UsageInfo"
            ),
            "crosswalk.types.values": (
                "Annotation CitationRef ContentFilterCategory ContentFilterResult ContentFilterSeverity "
                "FinishReason IncompleteReason RawEvents SafetyAnnotation Segment SegmentType TokenLogprob"
            ),
        },
    )
