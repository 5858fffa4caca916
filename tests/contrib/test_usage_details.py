"""Counts by modality, by lifetime of a cache and by tool of the server, in each provider's words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk import ChatResponse, UsageInfo, normalize
from crosswalk.convert import WireForm, convert
from crosswalk.plugins import UsageDetails


def read(provider: str, body: dict[str, Any]) -> ChatResponse:
    return normalize(orjson.dumps(body), provider)


def chat(usage: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def gemini(usage: Any) -> dict[str, Any]:
    candidate = {"index": 0, "content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r", "usageMetadata": usage}


def converse(usage: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"text": "Hi"}]}
    return {
        "output": {"message": message},
        "stopReason": "end_turn",
        "usage": usage,
        "metrics": {"latencyMs": 1},
    }


def responses(usage: Any, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": "Hi", "annotations": []}
    item = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [part]}
    said = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    return {**said, "output": [item], "usage": usage, **more}


def modality(name: str, count: Any) -> dict[str, Any]:
    return {"modality": name, "tokenCount": count}


GEMINI = {"promptTokenCount": 20, "candidatesTokenCount": 6, "totalTokenCount": 26}


@pytest.mark.parametrize(
    ("usage", "details", "left"),
    [
        (
            {
                "promptTokensDetails": [modality("TEXT", 8), modality("AUDIO", 7), modality("VIDEO", 5)],
                "candidatesTokensDetails": [modality("TEXT", 2), modality("IMAGE", 4)],
                "cacheTokensDetails": [modality("TEXT", 4), modality("IMAGE", 0)],
            },
            UsageDetails(8, 7, None, 5, 2, None, 4, text_cache_read_tokens=4, image_cache_read_tokens=0),
            None,
        ),
        (
            {"promptTokensDetails": [modality("TEXT", 8), modality("DOCUMENT", 12)]},
            UsageDetails(text_input_tokens=8),
            {"promptTokensDetails": [{}, modality("DOCUMENT", 12)]},
        ),
        (
            {"promptTokensDetails": [modality("TEXT", 8), modality("TEXT", 1), {"modality": 1}]},
            UsageDetails(text_input_tokens=8),
            {"promptTokensDetails": [{}, modality("TEXT", 1), {"modality": 1}]},
        ),
        (
            {"promptTokensDetails": [modality("TEXT", "8"), {"modality": "IMAGE"}]},
            UsageDetails.EMPTY,
            {"promptTokensDetails": [modality("TEXT", "8"), {"modality": "IMAGE"}]},
        ),
    ],
)
def test_gemini(usage: dict[str, Any], details: UsageDetails, left: Any) -> None:
    response = read("gemini", gemini(GEMINI | usage))
    assert response.usage == UsageInfo(20, 6, details=details)
    assert response.metadata.extensions.thawed().get("usageMetadata") == left


def test_tool_results_are_part_of_geminis_prompt() -> None:
    usage = {
        "promptTokenCount": 8,
        "toolUsePromptTokenCount": 30,
        "candidatesTokenCount": 6,
        "promptTokensDetails": [modality("TEXT", 8)],
        "toolUsePromptTokensDetails": [modality("TEXT", 28), modality("IMAGE", 2)],
    }
    response = read("gemini", gemini(usage))
    assert response.usage == UsageInfo(38, 6, details=UsageDetails(36, image_input_tokens=2))
    assert response.metadata.provenance["usage.details.text_input_tokens"] == "derived"
    kept = response.metadata.extensions.thawed()["usageMetadata"]
    assert kept["toolUsePromptTokensDetails"] == usage["toolUsePromptTokensDetails"]


def test_geminis_lists_alone_are_a_report() -> None:
    response = read("gemini", gemini({"promptTokensDetails": [modality("TEXT", 8)]}))
    assert response.usage.details == UsageDetails(8)
    assert response.metadata.provenance["usage.prompt_tokens"] == "absent"


def test_lifetimes_of_bedrocks_cache() -> None:
    lifetimes = [
        {"ttl": "5m", "inputTokens": 3},
        {"ttl": "1h", "inputTokens": 1},
        {"ttl": "24h", "inputTokens": 0},
    ]
    usage = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 11, "cacheWriteInputTokens": 4}
    response = read("bedrock", converse({**usage, "cacheDetails": lifetimes}))
    details = UsageDetails(cache_write_5m_tokens=3, cache_write_1h_tokens=1)
    assert response.usage == UsageInfo(9, 2, cache_write_tokens=4, details=details)
    assert response.metadata.extensions.thawed()["usage"] == {"cacheDetails": [{}, {}, lifetimes[2]]}


def test_a_lifetime_above_what_was_written_is_marked() -> None:
    usage = {"inputTokens": 5, "outputTokens": 2, "cacheWriteInputTokens": 4}
    response = read("bedrock", converse({**usage, "cacheDetails": [{"ttl": "5m", "inputTokens": 5}]}))
    assert response.metadata.provenance["usage.details.cache_write_5m_tokens"] == "mistyped"
    unknown = read(
        "bedrock",
        converse({"inputTokens": 5, "outputTokens": 2, "cacheDetails": [{"ttl": "5m", "inputTokens": 5}]}),
    )
    assert "usage.details.cache_write_5m_tokens" not in unknown.metadata.provenance


@pytest.mark.parametrize("names", [("input", "output"), ("prompt", "completion")])
def test_responses_in_either_words(names: tuple[str, str]) -> None:
    prompt, completion = names
    usage = {
        f"{prompt}_tokens": 10,
        f"{completion}_tokens": 5,
        f"{prompt}_tokens_details": {"text_tokens": 7, "image_tokens": 3},
        f"{completion}_tokens_details": {"audio_tokens": 5},
    }
    response = read("openai_responses", responses(usage))
    details = UsageDetails(text_input_tokens=7, image_input_tokens=3, audio_output_tokens=5)
    assert response.usage == UsageInfo(10, 5, details=details)
    assert "usage" not in response.metadata.extensions


@pytest.mark.parametrize(
    ("tools", "count"),
    [
        ({"web_search": {"num_requests": 2}}, 2),
        ({"web_search": {"num_requests": 0}, "image_gen": {"input_tokens": 4}}, 0),
        ({"web_search": {"num_requests": "2"}}, None),
        ({"web_search": 2}, None),
        ({}, None),
        (None, None),
    ],
)
def test_web_searches_of_responses(tools: Any, count: int | None) -> None:
    """They also stay next to the usage, if the server has them with all that its tools took."""
    response = read("openai_responses", responses({"input_tokens": 1, "output_tokens": 2}, tool_usage=tools))
    assert response.usage.details.web_search_requests == count
    kept = response.metadata.extensions.thawed().get("tool_usage")
    assert (kept or {}) == (tools or {})


def test_web_searches_of_openrouter() -> None:
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "server_tool_use": {"web_search_requests": 3, "other": 1},
    }
    response = read("openrouter", chat(usage))
    assert response.usage == UsageInfo(1, 2, details=UsageDetails(web_search_requests=3))
    assert response.metadata.extensions.thawed()["usage"] == {"server_tool_use": {"other": 1}}


def test_dashscope_has_modalities_beside_the_input() -> None:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": [{"text": "Hi"}]}}
    usage = {
        "input_tokens": 900,
        "output_tokens": 4,
        "image_tokens": 860,
        "input_tokens_details": {"text_tokens": 40, "image_tokens": 860},
        "output_tokens_details": {"text_tokens": 4},
    }
    response = read("dashscope", {"output": {"choices": [choice]}, "usage": usage, "request_id": "r"})
    details = UsageDetails(text_input_tokens=40, image_input_tokens=860, text_output_tokens=4)
    assert response.usage == UsageInfo(900, 4, details=details)
    assert "usage" not in response.metadata.extensions


def test_a_message_has_whole_groups_of_details() -> None:
    """Anthropic's form demands both lifetimes. The report says which details it has no place for."""
    usage = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 11, "cacheWriteInputTokens": 4}
    response = read("bedrock", converse({**usage, "cacheDetails": [{"ttl": "5m", "inputTokens": 4}]}))
    written = orjson.loads(convert(response, WireForm.ANTHROPIC).value)["usage"]
    assert written["cache_creation"] == {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 0}
    report = convert(response, WireForm.OPENAI_CHAT).report
    assert report.names("usage.details.cache_write_5m_tokens")
