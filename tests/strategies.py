"""Hypothesis strategies for every canonical type: valid values, the odd ones included.

What they make can be written as JSON: no lone surrogates, no NaN, integers of at most 64 bits, durations
below two centuries (float seconds are exact to the microsecond for 270 years).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
from hypothesis import strategies as st

from crosswalk.types import (
    Alternative,
    Annotation,
    AttemptOutcome,
    AudioPart,
    ChatMessage,
    ChatResponse,
    CitationRef,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    ContentPart,
    Correction,
    Cost,
    DocumentPart,
    FilePart,
    FinishReason,
    FrozenObject,
    ImagePart,
    Provenance,
    ProviderAttempt,
    RawEvents,
    ResponseDelta,
    ResponseMetadata,
    Role,
    SafetyAnnotation,
    SearchResultPart,
    Segment,
    SegmentType,
    StreamEvent,
    StreamEventType,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageDetails,
    UsageInfo,
    VideoPart,
)
from crosswalk.types.stream import TERMINAL

# ---------------------------------------------------------------------------------------------- leaves

texts = st.text(max_size=20) | st.sampled_from(
    ["null", "\x00\x1b[31m", "\u2028\x85", '"\\', "🦙é\u0301", " "]
)
names = st.text(min_size=1, max_size=12)
counts = st.integers(0, 10**9)
indexes = st.integers(0, 20)
finite_floats = st.floats(allow_nan=False, allow_infinity=False)
durations = st.timedeltas(timedelta(0), timedelta(days=200 * 365))
times = st.datetimes(timezones=st.just(UTC)) | st.just(datetime(2024, 1, 15, 10, 30, tzinfo=UTC))
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | finite_floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts | st.just("_residue"), json_values, max_size=3)
frozen_objects = st.builds(FrozenObject, json_objects)


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """``None`` or a value."""
    return st.none() | strategy


def tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A short tuple of values, perhaps empty."""
    return st.lists(strategy, max_size=3).map(tuple)


# ------------------------------------------------------------------------------------ the parts of answers

amounts = st.decimals(0, 10**9, allow_nan=False, allow_infinity=False, places=12)
costs = st.builds(Cost, amounts, st.just("USD"), optional(st.sampled_from(Provenance)))
usage_details = st.builds(
    UsageDetails, **{field.name: optional(counts) for field in attrs.fields(UsageDetails)}
)
usage_infos = st.builds(
    UsageInfo,
    counts,
    counts,
    optional(counts),
    optional(counts),
    optional(counts),
    optional(costs),
    st.just(UsageDetails.EMPTY) | usage_details,
)
tool_calls = st.builds(ToolCall, names, names, texts | st.just('{"city": "Bern"}'))
tool_call_deltas = st.builds(ToolCallDelta, indexes, optional(names), optional(names), optional(texts))
corrections = st.builds(
    lambda kind, text, start, length: Correction(kind, text, start, start + length),
    st.sampled_from([SegmentType.TEXT, SegmentType.REASONING, SegmentType.REFUSAL]),
    texts,
    counts,
    st.integers(0, 99),
) | st.builds(Correction, st.just(SegmentType.TOOL_CALL), texts, st.just(0), counts, indexes)
token_logprobs: st.SearchStrategy[TokenLogprob] = st.recursive(
    st.builds(TokenLogprob, texts, optional(finite_floats), optional(tuples(st.integers(0, 255)))),
    lambda inner: st.builds(
        TokenLogprob, texts, optional(finite_floats), optional(tuples(st.integers(0, 255))), tuples(inner)
    ),
    max_leaves=4,
)
citations = st.builds(
    CitationRef, optional(texts), optional(texts), optional(st.tuples(st.integers(0, 99), st.integers(0, 99)))
)
safety_annotations = st.builds(SafetyAnnotation, texts, optional(texts), st.booleans())
segment_annotations: st.SearchStrategy[Annotation] = citations | safety_annotations
segments = st.builds(
    Segment, st.sampled_from(SegmentType), texts, frozen_objects, tuples(segment_annotations)
)
content_filter_results = st.builds(
    ContentFilterResult,
    st.sampled_from(ContentFilterCategory),
    st.sampled_from(ContentFilterSeverity),
    st.booleans(),
    optional(texts),
)

# ------------------------------------------------------------------------------------------ messages

_addresses = st.fixed_dictionaries({"url": texts}) | st.fixed_dictionaries({"data": texts})
_media_types = st.fixed_dictionaries({}, optional={"media_type": texts})
_media = st.builds(lambda address, kind: address | kind, _addresses, _media_types)
text_parts = st.builds(TextPart, texts)
image_parts = _media.map(lambda fields: ImagePart(**fields))
audio_parts = _media.map(lambda fields: AudioPart(**fields))
video_parts = _media.map(lambda fields: VideoPart(**fields))
file_parts = st.builds(
    lambda fields, name, context, citations: FilePart(
        **fields, name=name, context=context, citations=citations
    ),
    _media,
    optional(texts),
    optional(texts),
    optional(st.booleans()),
)
search_result_parts = st.builds(
    SearchResultPart,
    st.lists(texts, min_size=1, max_size=2),
    title=texts,
    source=texts,
    citations=optional(st.booleans()),
)
document_parts = st.builds(
    DocumentPart,
    st.lists(texts, min_size=1, max_size=2),
    title=optional(texts),
    context=optional(texts),
    citations=optional(st.booleans()),
)
content_parts: st.SearchStrategy[ContentPart] = (
    text_parts | image_parts | audio_parts | video_parts | file_parts | search_result_parts | document_parts
)
contents = texts | tuples(content_parts)

assistant_messages = st.builds(
    ChatMessage,
    st.just(Role.ASSISTANT),
    optional(contents),
    optional(texts),
    optional(tuples(tool_calls)),
)
tool_messages = st.builds(ChatMessage, st.just(Role.TOOL), contents, optional(texts), tool_call_id=names)
chat_messages = (
    st.builds(ChatMessage, st.sampled_from([Role.SYSTEM, Role.USER]), contents, optional(texts))
    | assistant_messages
    | tool_messages
)

# ----------------------------------------------------------------------------------- responses and deltas

finish_reasons = st.sampled_from(FinishReason)
provenances = st.dictionaries(
    st.sampled_from(["id", "created", "usage", "usage.completion_tokens", "message.tool_calls[0].id"]),
    st.sampled_from(Provenance),
    max_size=3,
)
response_metadata = st.builds(
    ResponseMetadata, names, names, durations, optional(durations), frozen_objects, provenances
)
provider_attempts = st.builds(
    ProviderAttempt,
    texts,
    texts,
    optional(st.floats(min_value=0, allow_nan=False, allow_infinity=False)),
    st.sampled_from(AttemptOutcome),
    optional(texts),
    frozen_objects,
)
alternatives = st.builds(
    Alternative,
    indexes,
    assistant_messages,
    finish_reasons,
    optional(texts),
    optional(texts),
    tuples(segments),
    optional(tuples(token_logprobs)),
)
raw_events = tuples(texts.map(str.encode) | st.binary(max_size=8)).map(RawEvents)
chat_responses = st.builds(
    ChatResponse,
    id=names,
    message=assistant_messages,
    finish_reason=finish_reasons,
    usage=usage_infos,
    metadata=response_metadata,
    created=times,
    model=names,
    refusal=optional(texts),
    content_filter_results=optional(tuples(content_filter_results)),
    raw_finish_reason=optional(texts),
    segments=tuples(segments),
    logprobs=optional(tuples(token_logprobs)),
    alternatives=tuples(alternatives),
    attempts=tuples(provider_attempts),
    raw_events=raw_events,
)
_delta_fields: dict[str, st.SearchStrategy[Any]] = {
    "content_delta": texts,
    "tool_call_delta": tool_call_deltas,
    "finish_reason": finish_reasons,
    "usage": usage_infos,
    "reasoning_delta": texts,
    "refusal_delta": texts,
    "segment": segments,
    "correction": corrections,
    "raw_finish_reason": texts,
    "logprobs": tuples(token_logprobs),
    "extensions": frozen_objects,
}
_says_something = ("content_delta", "tool_call_delta", "finish_reason", "usage", "reasoning_delta", "segment")
response_deltas = st.builds(
    lambda index, choice, said, more: ResponseDelta(index=index, choice=choice, **{**more, **said}),
    indexes,
    st.integers(0, 3),
    st.sampled_from(_says_something).flatmap(lambda name: st.fixed_dictionaries({name: _delta_fields[name]})),
    st.fixed_dictionaries({}, optional=_delta_fields),
)
stream_events = st.builds(
    StreamEvent,
    st.sampled_from([kind for kind in StreamEventType if kind not in TERMINAL]),
    optional(response_deltas),
    tuples(segments),
    tuples(provider_attempts),
    json_values,
) | st.builds(StreamEvent.terminal, chat_responses, optional(response_deltas))


def unfolded(value: Any) -> Any:
    """*value* with every field of every class in it laid open, types included.

    Two values that unfold to the same are equal in every field, also if ``==`` looks at the id only.
    """
    if attrs.has(type(value)):
        fields = {name: unfolded(getattr(value, name)) for name in attrs.fields_dict(type(value))}
        return type(value), fields
    if isinstance(value, Mapping):
        return type(value), [(key, unfolded(item)) for key, item in value.items()]
    if isinstance(value, RawEvents):
        return value.frames
    if isinstance(value, tuple | list):
        return type(value), [unfolded(item) for item in value]
    return type(value), value


BY_TYPE: dict[type, st.SearchStrategy[Any]] = {
    Alternative: alternatives,
    AudioPart: audio_parts,
    ChatMessage: chat_messages,
    ChatResponse: chat_responses,
    CitationRef: citations,
    ContentFilterResult: content_filter_results,
    FilePart: file_parts,
    ImagePart: image_parts,
    ProviderAttempt: provider_attempts,
    ResponseDelta: response_deltas,
    ResponseMetadata: response_metadata,
    SafetyAnnotation: safety_annotations,
    SearchResultPart: search_result_parts,
    DocumentPart: document_parts,
    VideoPart: video_parts,
    Segment: segments,
    StreamEvent: stream_events,
    TextPart: text_parts,
    TokenLogprob: token_logprobs,
    ToolCall: tool_calls,
    ToolCallDelta: tool_call_deltas,
    UsageDetails: usage_details,
    UsageInfo: usage_infos,
    Correction: corrections,
    Cost: costs,
}
"""Every type with a JSON object of its own, and its values."""
