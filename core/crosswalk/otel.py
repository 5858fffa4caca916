"""Responses as attributes, messages and metrics of OpenTelemetry's GenAI semantic conventions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from crosswalk.plugin.registry import registry
from crosswalk.types.json import load_json, plain_view
from crosswalk.types.message import ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import Provenance, UsageDetails
from crosswalk.types.values import FinishReason, Segment, SegmentType
from crosswalk.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider


__all__ = [
    "SCHEMA_URL",
    "ClientMetrics",
    "otel_attributes",
    "otel_error_type",
    "otel_output_messages",
    "otel_provider_name",
]

# ------------------------------------------------------------------------------ attributes
# A response as attributes of OpenTelemetry's GenAI semantic conventions.


AttributeValue: TypeAlias = str | int | float | tuple[str, ...]

_WORD = re.compile(r"[A-Za-z][\w.-]{0,63}")
_FINISH_WORDS = {FinishReason.TOOL_CALLS: "tool_call"}
"""The conventions use ``tool_call`` for our ``tool_calls``. The other words are the same."""


_DETAIL_ATTRIBUTES = {
    "text_input_tokens": "gen_ai.usage.text.input_tokens",
    "audio_input_tokens": "gen_ai.usage.audio.input_tokens",
    "image_input_tokens": "gen_ai.usage.image.input_tokens",
    "video_input_tokens": "crosswalk.usage.video.input_tokens",
    "text_output_tokens": "gen_ai.usage.text.output_tokens",
    "audio_output_tokens": "gen_ai.usage.audio.output_tokens",
    "image_output_tokens": "gen_ai.usage.image.output_tokens",
    "video_output_tokens": "crosswalk.usage.video.output_tokens",
    "text_cache_read_tokens": "gen_ai.usage.text.cache_read.input_tokens",
    "audio_cache_read_tokens": "gen_ai.usage.audio.cache_read.input_tokens",
    "image_cache_read_tokens": "gen_ai.usage.image.cache_read.input_tokens",
    "video_cache_read_tokens": "crosswalk.usage.video.cache_read.input_tokens",
    "cache_write_5m_tokens": "crosswalk.usage.cache_write_5m.input_tokens",
    "cache_write_1h_tokens": "crosswalk.usage.cache_write_1h.input_tokens",
    "web_search_requests": "crosswalk.usage.web_search.requests",
    "web_fetch_requests": "crosswalk.usage.web_fetch.requests",
}
"""The conventions' names for the details of usage, and ours for details without one."""


def otel_provider_name(provider: str) -> str:
    """Return ``gen_ai.provider.name`` for a provider id: what the plugin says in ``ProviderInfo.names``, else the id."""
    return registry.names_of(provider).otel or provider


def finish_word(reason: FinishReason) -> str:
    """Return *reason* as a finish reason of the conventions."""
    return _FINISH_WORDS.get(reason, reason.value)


def otel_attributes(response: ChatResponse) -> dict[str, AttributeValue]:
    """Return the attributes of *response* for a span, a metric or a log record.

    They hold no content. An id, a model or a count that the provider did not send, and a time that was not measured, is left
    out. Times are in seconds. ``error.type`` is the provider's code, if it has one. ``crosswalk.error.kind`` is ours.
    """
    usage, metadata = response.usage, response.metadata
    reasons = (response.finish_reason, *(other.finish_reason for other in response.alternatives))
    attributes: dict[str, AttributeValue | None] = {
        "gen_ai.provider.name": otel_provider_name(metadata.provider_id),
        "gen_ai.response.id": _said(response, "id", response.id),
        "gen_ai.response.model": _said(response, "model", response.model),
        "gen_ai.response.finish_reasons": tuple(map(finish_word, reasons)),
        "gen_ai.usage.input_tokens": _said(response, "usage.prompt_tokens", usage.prompt_tokens),
        "gen_ai.usage.output_tokens": _said(response, "usage.completion_tokens", usage.completion_tokens),
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "crosswalk.duration": metadata.request_duration.total_seconds() or None,
        "gen_ai.response.time_to_first_chunk": None
        if metadata.time_to_first_token is None
        else metadata.time_to_first_token.total_seconds(),
    }
    if usage.details is not UsageDetails.EMPTY:
        attributes |= {word: getattr(usage.details, name) for name, word in _DETAIL_ATTRIBUTES.items()}
    if (info := response.error_info) is not None:
        attributes |= {"error.type": otel_error_type(response), "crosswalk.error.kind": info.kind.value}
    return {name: value for name, value in attributes.items() if value is not None}


def otel_error_type(response: ChatResponse) -> str | None:
    """Return the provider's code for the error in *response*, or else its kind, or ``None`` if there is no error.

    A code that is not a single word might quote content.
    """
    info = response.error_info
    if info is None:
        return None
    return info.code if info.code is not None and _WORD.fullmatch(info.code) else info.kind.value


def _said(response: ChatResponse, path: str, value: int | str) -> int | str | None:
    """Return *value*, or ``None`` if the provider did not send it."""
    provenance = response.metadata.provenance
    marks = (provenance.get(path), provenance.get(path.partition(".")[0]))
    is_unsent = Provenance.ABSENT in marks or Provenance.SYNTHETIC in marks
    return None if is_unsent or (path == "model" and Provenance.DERIVED in marks) else value


# -------------------------------------------------------------------------------- messages
# The content of an answer in the words of OpenTelemetry's GenAI semantic conventions.


def otel_output_messages(response: ChatResponse) -> list[dict[str, Any]]:
    """Return the model's output, a message for each choice, for ``gen_ai.output.messages``. It is content that few may see.

    Segments without a counterpart in the conventions, such as a refusal or a citation, get a part type that they lack.
    """
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    return [
        {
            "role": answer.message.role.value,
            "parts": [*_parts(answer)],
            "finish_reason": finish_word(answer.finish_reason),
        }
        for answer in answers
    ]


def _parts(answer: ChatResponse | Alternative) -> Iterator[dict[str, Any]]:
    calls = {call.id: call for call in answer.message.tool_calls or ()}
    for segment in answer.segments:
        call = (
            calls.pop(str(segment.metadata.get("id")), None)
            if segment.type is SegmentType.TOOL_CALL
            else None
        )
        yield _part(segment) if call is None else _call(call)
    if not answer.segments and answer.message.text:
        yield {"type": "text", "content": answer.message.text}
    yield from map(_call, calls.values())


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": _decoded(call.arguments)}


def _part(segment: Segment) -> dict[str, Any]:
    metadata, content = segment.metadata, segment.content
    match segment.type:
        case SegmentType.TOOL_CALL:  # one that the server makes, or its result
            name = str(metadata.get("type") or metadata.get("name") or "tool")
            kind = "server_tool_call_response" if name.endswith("_result") else "server_tool_call"
            id = metadata.get("id") or metadata.get("tool_use_id")
            name_fields = {} if kind.endswith("response") else {"name": str(metadata.get("name") or name)}
            tool_fields = {**plain_view(metadata), "type": name, "content": _decoded(content)}
            return {"type": kind, "id": id if isinstance(id, str) else None, **name_fields, kind: tool_fields}
        case SegmentType.MEDIA:
            media_type = metadata.get("media_type")
            mime = media_type if isinstance(media_type, str) else None
            modality = "image" if mime is None else mime.partition("/")[0]
            if content.startswith(("http://", "https://", "gs://")):
                return {"type": "uri", "modality": modality, "mime_type": mime, "uri": content}
            return {"type": "blob", "modality": modality, "mime_type": mime, "content": content}
        case kind:
            return {"type": kind.value, "content": content}


def _decoded(text: str) -> Any:
    """Return *text* as decoded JSON, or unchanged if it is not JSON."""
    try:
        return load_json(text)
    except ValueError:
        return text


# --------------------------------------------------------------------------------- metrics
# The client metrics of OpenTelemetry's GenAI semantic conventions.


SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The edition of the conventions whose names are used, from their repository's ``model/manifest.yaml``."""
# The conventions' own advice on how to divide seconds and tokens.
_SECOND_BOUNDS: Final = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
)
_TOKEN_BOUNDS: Final = (
    *(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864),
)
_INFERENCE_OPERATIONS: Final = {"chat", "generate_content", "text_completion"}
_USAGE_DESCRIPTIONS: Final = {
    "input_tokens": "How many tokens were put in, with those from a cache.",
    "output_tokens": "How many tokens came out, with those of the reasoning.",
    "cache_read.input_tokens": "How many tokens were read from a cache.",
    "cache_write.input_tokens": "How many tokens were written to a cache.",
    "reasoning.output_tokens": "How many tokens the reasoning took.",
}
_MODALITIES: Final = ("text", "audio", "image")
_MODALITY_COUNTS: Final = frozenset(
    f"gen_ai.usage.{modality}.{kind}" for modality in _MODALITIES for kind in _USAGE_DESCRIPTIONS
)
_MOST_VALUES: Final = 100
_RESPONSE_LABELS: Final = ("gen_ai.provider.name", "gen_ai.response.model", "error.type")
_UNBOUNDED_LABELS: Final = {"gen_ai.request.model", "gen_ai.response.model", "error.type", "server.address"}


class ClientMetrics:
    """The metrics of calls to models.

    Args:
        name: the name of the instrumentation.
        meter_provider: makes the metrics, or ``None`` for the global one.
    """

    def __init__(self, name: str, meter_provider: MeterProvider | None = None) -> None:
        from opentelemetry.metrics import get_meter

        meter = get_meter(name, __version__, meter_provider, SCHEMA_URL)

        def histogram(name: str, unit: str, bounds: tuple[float, ...], description: str) -> Any:
            return meter.create_histogram(
                f"gen_ai.client.{name}", unit, description, explicit_bucket_boundaries_advisory=bounds
            )

        self._inference_histogram = histogram(
            "inference.duration", "s", _SECOND_BOUNDS, "How long an inference took."
        )
        self._operation_histogram = histogram(
            "operation.duration", "s", _SECOND_BOUNDS, "How long another operation took."
        )
        self._first_chunk_histogram = histogram(
            "inference.time_to_first_chunk", "s", _SECOND_BOUNDS, "How long the first piece of a stream took."
        )
        self._next_chunk_histogram = histogram(
            "inference.time_per_output_chunk",
            "s",
            _SECOND_BOUNDS,
            "How long each later piece of a stream took.",
        )
        self._token_histograms = {
            kind: histogram(
                f"inference.operation.{kind}_tokens",
                "{token}",
                _TOKEN_BOUNDS,
                f"{kind.title()} tokens of a call.",
            )
            for kind in ("input", "output")
        }
        self._usage_counters = {
            kind: meter.create_counter(f"gen_ai.client.inference.usage.{kind}", "{token}", description)
            for kind, description in _USAGE_DESCRIPTIONS.items()
        }
        self._seen_values: dict[str, set[str]] = {}

    def record(
        self,
        results: Mapping[str, Any],
        common: Mapping[str, Any],
        took: timedelta,
        chunk_times: Iterable[float] = (),
    ) -> None:
        """Record a call.

        Args:
            results: the attributes of its result.
            common: the attributes of span and metrics. Names of models, errors and servers count up to 100 each.
            took: its duration.
            chunk_times: when each piece of a stream came, in seconds since any moment.
        """
        labels = {**common, **{name: results[name] for name in _RESPONSE_LABELS if name in results}}
        for name in _UNBOUNDED_LABELS & labels.keys():
            labels[name] = self._series_of(name, labels[name])
        operation = labels["gen_ai.operation.name"]
        (
            self._inference_histogram if operation in _INFERENCE_OPERATIONS else self._operation_histogram
        ).record(took.total_seconds(), labels)
        first_chunk_seconds = results.get("gen_ai.response.time_to_first_chunk")
        if first_chunk_seconds is not None:
            self._first_chunk_histogram.record(first_chunk_seconds, labels)
        for earlier, later in pairwise(chunk_times):
            self._next_chunk_histogram.record(later - earlier, labels)
        if operation != "fetch_response":  # its tokens were counted when it was made
            self._record_tokens(results, labels)

    def _record_tokens(self, attributes: Mapping[str, Any], labels: Mapping[str, Any]) -> None:
        for kind, histogram in self._token_histograms.items():
            if (count := attributes.get(f"gen_ai.usage.{kind}_tokens")) is not None:
                histogram.record(count, labels)
        has_modalities = not _MODALITY_COUNTS.isdisjoint(attributes)
        for kind, counter in self._usage_counters.items():
            remaining_count = attributes.get(f"gen_ai.usage.{kind}")
            if remaining_count is None:
                continue
            for modality in _MODALITIES if has_modalities else ():
                count = attributes.get(f"gen_ai.usage.{modality}.{kind}", 0)
                if count:
                    counter.add(count, {**labels, "gen_ai.token.modality": modality})
                    remaining_count -= count
            if remaining_count > 0:
                counter.add(remaining_count, {**labels, "gen_ai.token.modality": "unknown"})

    def _series_of(self, name: str, value: str) -> str:
        """Return *value* of *name* while its values are few: each is a separate series, chosen by users and servers."""
        values = self._seen_values.setdefault(name, set())
        if value not in values and len(values) >= _MOST_VALUES:
            return "_OTHER"
        values.add(value)
        return value
