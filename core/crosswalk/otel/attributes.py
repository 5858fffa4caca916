"""A response as attributes of OpenTelemetry's GenAI semantic conventions."""

from __future__ import annotations

import re
from typing import TypeAlias

from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import FinishReason

AttributeValue: TypeAlias = str | int | float | tuple[str, ...]

_WORD = re.compile(r"[A-Za-z][\w.-]{0,63}")
_MADE_UP = {Provenance.ABSENT, Provenance.SYNTHETIC}
_FINISH_WORDS = {FinishReason.TOOL_CALLS: "tool_call"}
"""The conventions use ``tool_call`` for our ``tool_calls``. The other words are the same."""


_DETAILS = {
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


_PROVIDERS = {
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "openai_responses": "openai",
    "xai": "x_ai",
}
"""The conventions' values, if they differ from our ids."""


def otel_provider_name(provider: str) -> str:
    """Return ``gen_ai.provider.name`` for a provider id: the conventions' value if there is one, else the id."""
    return _PROVIDERS.get(provider, provider)


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
    results: dict[str, AttributeValue | None] = {
        "gen_ai.provider.name": otel_provider_name(metadata.provider_id),
        "gen_ai.response.id": _said(response, "id", response.id),
        "gen_ai.response.model": _said(response, "model", response.model),
        "gen_ai.response.finish_reasons": tuple(map(finish_word, reasons)),
        "gen_ai.usage.input_tokens": _said(response, "usage.prompt_tokens", usage.prompt_tokens),
        "gen_ai.usage.output_tokens": _said(response, "usage.completion_tokens", usage.completion_tokens),
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        **{word: getattr(usage.details, name) for name, word in _DETAILS.items()},
        "crosswalk.duration": metadata.request_duration.total_seconds() or None,
        "gen_ai.response.time_to_first_chunk": None
        if metadata.time_to_first_token is None
        else metadata.time_to_first_token.total_seconds(),
        "error.type": otel_error_type(response),
        "crosswalk.error.kind": None if response.error_info is None else response.error_info.kind.value,
    }
    return {name: value for name, value in results.items() if value is not None}


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
    made = _MADE_UP | {Provenance.DERIVED} if path == "model" else _MADE_UP
    return None if any(provenance.get(p) in made for p in (path, path.partition(".")[0])) else value
