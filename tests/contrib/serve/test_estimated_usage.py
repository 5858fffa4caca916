"""Answers that no server has counted count for limits all the same."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from contrib_serve import ABOUT
from crosswalk import Provenance, normalize, normalize_stream
from crosswalk.errors import MappingError
from crosswalk.types import ChatMessage, ChatResponse
from crosswalk_serve.routing import by_length

ASKED = (ChatMessage("user", "x" * 37), ChatMessage("user", "ü"))  # 39 bytes: 10 tokens


def whole(message: dict[str, Any], provider: str = "vllm", **more: Any) -> ChatResponse:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    body = {**ABOUT, "object": "chat.completion", "choices": [choice], **more}
    return normalize(orjson.dumps(body), provider)


def cut(*events: dict[str, Any], provider: str) -> ChatResponse:
    """The result of a stream that breaks off."""
    with pytest.raises(MappingError) as raised:
        list(normalize_stream([b"data: %b\n\n" % orjson.dumps(event) for event in events], provider))
    assert raised.value.partial is not None
    return raised.value.partial


START = {
    "type": "message_start",
    "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [],
        "usage": {"input_tokens": 300, "output_tokens": 1},
    },
}  # fmt: skip
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
SAID = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "y" * 40}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("response", "prompt", "completion"),
    [
        (whole({"content": "y" * 41}), 10, 11),
        (whole({"content": "y" * 8, "reasoning_content": "z" * 8}), 10, 4),
        (whole({"content": None, "tool_calls": [CALL]}), 10, 2),
        (cut(START, BLOCK, SAID, provider="anthropic"), 300, 10),
        (cut(START, BLOCK, provider="anthropic"), 300, 1),
        (whole({"content": "y" * 40}, usage={"prompt_tokens": 3, "completion_tokens": 2}), 3, 2),
        (whole({"content": ""}), 0, 0),
        (normalize(b'{"error": {"message": "no"}}', "vllm", status=500), 0, 0),
    ],
)
def test_what_was_not_counted_to_the_end_counts_by_its_length(
    response: ChatResponse, prompt: int, completion: int
) -> None:
    counted = by_length(response, ASKED)
    assert (counted.usage.prompt_tokens, counted.usage.completion_tokens) == (prompt, completion)
    if counted is not response:
        assert Provenance.ABSENT not in [
            counted.metadata.provenance.get(f) for f in ("usage", "usage.prompt_tokens")
        ]


def test_an_earlier_answer_is_asked_too() -> None:
    earlier = whole({"content": "y" * 400})
    assert by_length(whole({"content": "y"}), (*ASKED, earlier)).usage.prompt_tokens == 110
