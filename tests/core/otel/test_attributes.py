"""Responses in OpenTelemetry's words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ErrorInfo,
    ErrorKind,
    ResponseMetadata,
    ToolCall,
    UsageInfo,
    normalize,
    otel_attributes,
)
from crosswalk.otel import otel_error_type, otel_provider_name
from crosswalk.types import UsageDetails


def test_a_response_is_told_in_the_words_of_the_conventions() -> None:
    """Counts, times and the finish word, which there is tool_call. No content."""
    details = UsageDetails(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0)
    call = ToolCall("c1", "f", '{"secret": 1}')
    response = ChatResponse.tool_calls_required(
        ChatMessage.assistant("the content", tool_calls=[call]),
        UsageInfo(10, 5, 4, 3, 2, details=details),
        "tiny",
        ResponseMetadata(
            "vllm", "tiny", timedelta(seconds=2), time_to_first_token=timedelta(milliseconds=250)
        ),
    )
    attributes = otel_attributes(response)
    assert attributes == {
        "gen_ai.provider.name": "vllm",
        "gen_ai.response.id": response.id,
        "gen_ai.response.model": "tiny",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_write.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 3,
        "gen_ai.usage.text.input_tokens": 1,
        "gen_ai.usage.audio.input_tokens": 2,
        "gen_ai.usage.image.input_tokens": 3,
        "crosswalk.usage.video.input_tokens": 4,
        "gen_ai.usage.text.output_tokens": 5,
        "gen_ai.usage.audio.output_tokens": 6,
        "gen_ai.usage.image.output_tokens": 7,
        "crosswalk.usage.video.output_tokens": 8,
        "gen_ai.usage.text.cache_read.input_tokens": 9,
        "gen_ai.usage.audio.cache_read.input_tokens": 10,
        "gen_ai.usage.image.cache_read.input_tokens": 11,
        "crosswalk.usage.video.cache_read.input_tokens": 12,
        "crosswalk.usage.cache_write_5m.input_tokens": 13,
        "crosswalk.usage.cache_write_1h.input_tokens": 14,
        "crosswalk.usage.web_search.requests": 15,
        "crosswalk.usage.web_fetch.requests": 0,
        "crosswalk.duration": 2.0,
        "gen_ai.response.time_to_first_chunk": 0.25,
    }


def test_what_was_not_said_is_left_out() -> None:
    """P8: a missing count is not zero, an unknown model not a name."""
    response = normalize(b"not found", "ollama", status=404)
    attributes = otel_attributes(response)
    assert "gen_ai.usage.input_tokens" not in attributes
    assert "gen_ai.response.model" not in attributes
    assert "crosswalk.duration" not in attributes
    assert attributes["gen_ai.response.finish_reasons"] == ("error",)


def test_an_error_response_names_its_kind() -> None:
    """NFR-037: error.type is the kind, the id is the correlation id."""
    metadata = ResponseMetadata("vllm", "tiny")
    response = ChatResponse.error(
        ErrorInfo(ErrorKind.RATE_LIMIT, "slow down"), model="tiny", metadata=metadata
    )
    attributes = otel_attributes(response)
    assert attributes["error.type"] == otel_error_type(response) == "rate_limit"
    assert (
        otel_error_type(
            normalize(b'{"model": "m", "message": {"content": "Hi"}, "done": true, "done_reason": "stop"}')
        )
        is None
    )
    assert attributes["gen_ai.response.id"] == response.id


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("anthropic", "anthropic"),
        ("bedrock", "aws.bedrock"),
        ("gemini", "gcp.gemini"),
        ("mistral", "mistral_ai"),
        ("openai_responses", "openai"),
        ("xai", "x_ai"),
        ("ollama", "ollama"),  # no value of the conventions' own
    ],
)
def test_providers_have_the_names_of_the_conventions(provider: str, name: str) -> None:
    assert otel_provider_name(provider) == name
    metadata = ResponseMetadata(provider, "m")
    response = ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1, 1), "m", metadata)
    assert otel_attributes(response)["gen_ai.provider.name"] == name
