"""Why an answer is not whole: one property, which everybody asks."""

from __future__ import annotations

import attrs
import orjson
import pytest

from crosswalk import (
    Alternative,
    ChatMessage,
    ChatResponse,
    FinishReason,
    ResponseValidationError,
    StreamEvent,
    UsageInfo,
    normalize,
)
from crosswalk.types import IncompleteReason
from incomplete_answers import CASES, chat


@pytest.mark.untraced
@pytest.mark.parametrize(("provider", "payload", "finish", "reason"), CASES)
def test_an_answer_says_why_it_is_not_whole(
    provider: str, payload: bytes, finish: str, reason: str | None
) -> None:
    """The property, ``is_complete`` and the last event of a stream agree."""
    response = normalize(payload, provider, unknown="keep")
    assert (response.finish_reason, response.incomplete_reason) == (finish, reason)
    assert response.is_complete is (finish == FinishReason.STOP and reason is None)
    kind = {None: "response.completed", IncompleteReason.ERROR: "response.error"}
    assert StreamEvent.terminal(response).event_type == kind.get(
        response.incomplete_reason, "response.incomplete"
    )


def test_the_same_answer_again_is_read_the_same() -> None:
    """Also after answers that are whole: a contradiction is found in each."""
    for _ in range(2):
        for provider, payload, finish, reason in CASES:
            response = normalize(payload, provider, unknown="keep")
            assert (response.finish_reason, response.incomplete_reason) == (finish, reason)


@pytest.mark.parametrize("part", ["cached_tokens", "cache_write_tokens", "reasoning_tokens"])
def test_a_count_above_its_whole_is_marked(part: str) -> None:
    """Servers send it, so it is not refused. At its bound it is right."""
    place = "completion_tokens_details" if part == "reasoning_tokens" else "prompt_tokens_details"
    for count, mark in ((9, None), (10, "mistyped")):
        usage = {"prompt_tokens": 9, "completion_tokens": 9, place: {part: count}}
        answer = {**orjson.loads(chat({"content": "Hi"})), "usage": usage}
        response = normalize(answer, "openai")
        assert getattr(response.usage, part) == count
        assert response.metadata.provenance.get(f"usage.{part}") == mark


def test_a_response_is_the_assistants() -> None:
    """Nothing that a server sends can break this, so it is refused."""
    answer = ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1, 1), "m")
    with pytest.raises(ResponseValidationError, match="a message of the assistant, not of the user"):
        attrs.evolve(answer, message=ChatMessage.user("Hi"))
    with pytest.raises(ResponseValidationError, match="a message of the assistant, not of the user"):
        Alternative(1, ChatMessage.user("Hi"), FinishReason.STOP)


def test_an_error_says_what_went_wrong() -> None:
    """FR-097, for every maker of the response."""
    answer = ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1, 1), "m")
    assert attrs.evolve(answer, finish_reason="error").refusal == "the generation failed"
    assert attrs.evolve(answer, finish_reason="error", refusal="it broke").refusal == "it broke"
