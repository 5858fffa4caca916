"""Ten scenarios of a user, step by step."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ContentFilterResult,
    DeltaAccumulator,
    FinishReason,
    FrozenObject,
    ProviderError,
    ResponseBuilder,
    ResponseDelta,
    ResponseMetadata,
    ToolCall,
    UsageInfo,
    from_json,
    to_json,
)
from strategies import unfolded


def test_scenario_1_create_success_response() -> None:
    """Usage, metadata, the factory: stopped and complete."""
    usage = UsageInfo(prompt_tokens=100, completion_tokens=50)
    metadata = ResponseMetadata("ollama", "llama3.2:8b", timedelta(seconds=2))
    response = ChatResponse.success(ChatMessage.assistant("Hello!"), usage, "llama3.2:8b", metadata)
    assert response.finish_reason is FinishReason.STOP
    assert response.is_complete
    assert (response.usage.total_tokens, response.tokens_per_second) == (150, 25.0)
    assert response.metadata.provider_id == "ollama"


def test_scenario_2_create_truncated_response() -> None:
    """The factory: cut by a limit."""
    response = ChatResponse.truncated(ChatMessage.assistant("Once upon"), UsageInfo(10, 2), "m")
    assert response.finish_reason is FinishReason.LENGTH
    assert response.is_truncated
    assert not response.is_complete


def test_scenario_3_create_tool_calls_response() -> None:
    """Calls in the message, the factory: tools are asked for, and the result can be sent back."""
    message = ChatMessage.assistant(tool_calls=[ToolCall("call_1", "weather", '{"city": "Bern"}')])
    response = ChatResponse.tool_calls_required(message, UsageInfo(10, 5), "m")
    assert response.has_tool_calls
    [call] = response.tool_calls
    assert (call.name, call.parsed()) == ("weather", {"city": "Bern"})
    assert ChatMessage.tool_result(call.id, "12 °C").tool_call_id == "call_1"


def test_scenario_4_accumulate_streaming_deltas() -> None:
    """Five texts and the final delta: one text."""
    accumulator = DeltaAccumulator()
    for index, text in enumerate(["Hel", "lo", ", ", "wor", "ld"]):
        accumulator.append(ResponseDelta(index, content_delta=text))
    accumulator.append(ResponseDelta(5, finish_reason=FinishReason.STOP, usage=UsageInfo(3, 5)))
    response = accumulator.build()
    assert response.message.content == "Hello, world"
    assert (response.usage, accumulator.total_tokens, accumulator.delta_count) == (UsageInfo(3, 5), 8, 6)


def test_scenario_5_handle_error_response() -> None:
    """The factory with a message: an error that says what happened, and can be raised."""
    response = ChatResponse.error("the model crashed", model="m")
    assert response.finish_reason is FinishReason.ERROR
    assert response.refusal == "the model crashed"
    with pytest.raises(ProviderError, match="the model crashed") as caught:
        response.raise_for_error()
    assert caught.value.correlation_id == response.id


def test_scenario_6_serialize_response_to_json() -> None:
    """snake_case, no nulls, and back again."""
    metadata = ResponseMetadata("ollama", "m", timedelta(seconds=2.45), timedelta(seconds=0.089))
    response = ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(25, 12), "m", metadata)
    data = to_json(response)
    document = json.loads(data)
    assert document["finish_reason"] == "stop"
    assert document["usage"] == {"prompt_tokens": 25, "completion_tokens": 12, "total_tokens": 37}
    assert document["metadata"]["request_duration_seconds"] == 2.45
    assert document["metadata"]["time_to_first_token_seconds"] == 0.089
    assert document["created"].endswith("Z")
    assert b"null" not in data
    assert "refusal" not in document
    again = from_json(data, ChatResponse)
    assert again == response
    assert unfolded(again) == unfolded(response)


def test_scenario_7_usage_arithmetic() -> None:
    """Two requests together."""
    total = UsageInfo(100, 50).add(UsageInfo(80, 30))
    assert (total.prompt_tokens, total.completion_tokens, total.total_tokens) == (180, 80, 260)
    assert UsageInfo(100, 50) + UsageInfo(80, 30) == total


def test_scenario_8_response_builder_usage() -> None:
    """Every property of the seed, set by the fluent API."""
    message, usage = ChatMessage.assistant("Hi"), UsageInfo(1, 2)
    metadata = ResponseMetadata("vllm", "m", timedelta(seconds=1))
    verdicts = [ContentFilterResult("violence", "low", False, "a joke")]
    response = (
        ResponseBuilder()
        .with_id("resp_abc123")
        .with_message(message)
        .with_finish_reason(FinishReason.CONTENT_FILTER)
        .with_usage(usage)
        .with_metadata(metadata)
        .with_refusal("blocked")
        .with_content_filter_results(verdicts)
        .build()
    )
    assert (response.id, response.message, response.usage) == ("resp_abc123", message, usage)
    assert (response.finish_reason, response.refusal) == (FinishReason.CONTENT_FILTER, "blocked")
    assert (response.metadata, response.model) == (metadata, "m")
    assert response.content_filter_results == tuple(verdicts)
    assert response.created.tzinfo is not None


def test_scenario_9_thread_safe_accumulator() -> None:
    """Four threads, one response, nothing lost and nothing in the wrong place."""
    accumulator = DeltaAccumulator()

    def append(first: int) -> None:
        for index in range(first, 1000, 4):
            accumulator.append(ResponseDelta(index, content_delta=f"{index},"))

    threads = [threading.Thread(target=append, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accumulator.append(ResponseDelta(1000, finish_reason=FinishReason.STOP))
    assert accumulator.build().text == "".join(f"{index}," for index in range(1000))


def test_scenario_10_provider_extension_preservation() -> None:
    """Whatever a provider sends comes back as it was, through JSON too."""
    said = {
        "eval_duration": 4799921000,
        "quantization": {"level": "Q4_K_M", "bits": None},
        "stops": ["a", [], {}],
        "ratio": 0.1,
    }
    metadata = ResponseMetadata("ollama", "m", extensions=FrozenObject(said))
    again = from_json(to_json(metadata), ResponseMetadata)
    assert again == metadata
    assert again.extensions.thawed() == said
    assert list(again.extensions) == list(said)
