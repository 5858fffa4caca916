"""The service tier of an answer goes between the formats that have one. A lost one that costs money is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crosswalk import normalize, normalize_stream
from crosswalk.convert import WireForm, convert, convert_stream
from crosswalk.types import dump_json

CHAT, RESPONSES, MESSAGES = WireForm.OPENAI_CHAT, WireForm.OPENAI_RESPONSES, WireForm.ANTHROPIC
BODIES: dict[WireForm, dict[str, Any]] = {
    CHAT: {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    },
    RESPONSES: {
        "id": "1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}],
    },
    MESSAGES: {
        "id": "1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
}  # fmt: skip


def with_tier(form: WireForm, tier: Any) -> dict[str, Any]:
    """An answer in *form* with a service tier."""
    body = BODIES[form]
    if form is MESSAGES:
        return {**body, "usage": {**body["usage"], "service_tier": tier}}
    return {**body, "service_tier": tier}


def tier_in(body: dict[str, Any]) -> Any:
    return body["usage"].get("service_tier") if body.get("type") == "message" else body.get("service_tier")


@pytest.mark.parametrize(
    ("source", "tier", "target", "other"),
    [
        (CHAT, "default", MESSAGES, "standard"),
        (CHAT, "on_demand", MESSAGES, "standard"),
        (CHAT, "priority", MESSAGES, "priority"),
        (CHAT, "flex", RESPONSES, "flex"),
        (RESPONSES, "priority", MESSAGES, "priority"),
        (RESPONSES, "default", CHAT, "default"),
        (MESSAGES, "standard", CHAT, "default"),
        (MESSAGES, "standard", RESPONSES, "default"),
        (MESSAGES, "priority", CHAT, "priority"),
    ],
)
def test_a_tier_is_carried_and_comes_back(source: WireForm, tier: str, target: WireForm, other: str) -> None:
    body = dump_json(with_tier(source, tier))
    between = convert(normalize(body, source.provider), target)
    assert tier_in(json.loads(between.value)) == other
    assert not [loss.path for loss in between.report.losses if "tier" in loss.path]
    back = json.loads(convert(normalize(between.value, target.provider), source).value)
    assert tier_in(back) == ("default" if tier == "on_demand" else tier)
    own = convert(normalize(body, source.provider), source)
    assert tier_in(json.loads(own.value)) == tier


@pytest.mark.parametrize(
    ("source", "tier", "target", "is_named"),
    [
        (CHAT, "flex", MESSAGES, True),
        (MESSAGES, "batch", CHAT, True),
        (MESSAGES, "priority", WireForm.OLLAMA, True),
        (CHAT, "priority", WireForm.GEMINI, True),
        (CHAT, "default", WireForm.GEMINI, False),
        (MESSAGES, "standard", WireForm.OLLAMA, False),
        (CHAT, None, MESSAGES, False),
        (CHAT, 7, WireForm.OLLAMA, False),
    ],
)
def test_a_lost_tier_is_named_if_it_costs(
    source: WireForm, tier: Any, target: WireForm, is_named: bool
) -> None:
    """A usual one says nothing of its own, and a value of another type is a field about the document."""
    report = convert(normalize(dump_json(with_tier(source, tier)), source.provider), target).report
    assert bool([loss for loss in report.losses if "tier" in loss.path]) is is_named


def test_a_stream_carries_it_too() -> None:
    chunk = {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "service_tier": "priority",
    }
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"role": "assistant", "content": "Hi"}},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    sent = [b"data: " + dump_json({**chunk, "choices": [choice]}) + b"\n\n" for choice in choices]
    events = b"".join(convert_stream(normalize_stream([*sent, b"data: [DONE]\n\n"], "openai"), MESSAGES))
    assert normalize(events, "anthropic").metadata.extensions["usage"]["service_tier"] == "priority"
