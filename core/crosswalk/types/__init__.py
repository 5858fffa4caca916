"""The canonical vocabulary: immutable values, validated when made."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from crosswalk.lazy import lazy
from crosswalk.types.delta import ResponseDelta
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

if TYPE_CHECKING:
    from crosswalk.types.builder import ResponseBuilder as ResponseBuilder
    from crosswalk.types.event import StreamEvent as StreamEvent, StreamEventType as StreamEventType
else:
    __getattr__, __dir__ = lazy(__name__, "builder event")  # what reads answers does not need it

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
    "ResponseDelta",
    "ResponseMetadata",
    "Role",
    "SafetyAnnotation",
    "Segment",
    "SegmentType",
    "TextPart",
    "TokenLogprob",
    "ToolCall",
    "ToolCallDelta",
    "UsageInfo",
    "dump_json",
    "load_json",
    "thaw",
]


def _accumulate(deltas: Iterable[ResponseDelta]) -> ChatResponse:
    from crosswalk.types.accumulator import accumulate  # what reads answers does not need it

    return accumulate(deltas)


ChatResponse._accumulate = _accumulate
ChatResponse._error_of = error_of
