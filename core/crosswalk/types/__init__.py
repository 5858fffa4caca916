"""The canonical vocabulary: immutable values, validated when made."""

from crosswalk.types.accumulator import accumulate
from crosswalk.types.builder import ResponseBuilder
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.event import StreamEvent, StreamEventType
from crosswalk.types.filter import (
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
)
from crosswalk.types.finish import FinishReason
from crosswalk.types.json import FrozenObject, JSONObject, JSONValue, dump_json, load_json, thaw
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Role,
    TextPart,
)
from crosswalk.types.metadata import (
    AttemptOutcome,
    Provenance,
    ProviderAttempt,
    ResponseMetadata,
)
from crosswalk.types.provider_error import error_of
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.segment import (
    Annotation,
    CitationRef,
    SafetyAnnotation,
    Segment,
    SegmentType,
)
from crosswalk.types.tools import ToolCall, ToolCallDelta
from crosswalk.types.usage import Cost, UsageInfo

__all__ = [
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
    "Cost",
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
    "dump_json",
    "load_json",
    "thaw",
]

ChatResponse._accumulate = accumulate
ChatResponse._error_of = error_of
