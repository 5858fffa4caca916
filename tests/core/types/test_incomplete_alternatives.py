"""Each of several answers says for itself why it is not whole; the response's own properties are about the first."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import (
    ChatResponse,
    ResponseValidationError,
    UnknownFinishReasonError,
    from_json,
    normalize,
    to_json,
)
from crosswalk.structured import ReasonCode, StructuredParser
from crosswalk.types import IncompleteReason
from incomplete_answers import broken, chat

CALL = {"id": "k", "type": "function", "function": {"name": "go", "arguments": "{}"}}
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}

SECONDS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"content": "[1, 2]"}, "stop", None),
    ({"content": None, "tool_calls": [CALL]}, "tool_calls", None),
    ({"content": "[1, 2"}, "length", "length"),
    ({"content": "[1, 2]"}, "content_filter", "content_filter"),
    ({"content": "[1, 2]"}, "abort", "cancelled"),
    (broken('{"x":'), "tool_calls", "invalid_arguments"),
    (broken("[1]"), "tool_calls", "invalid_arguments"),
    ({"content": "I call"}, "tool_calls", "missing_call"),
    ({"content": None, "refusal": "I would rather not."}, "stop", "refusal"),
    ({"content": "[1, 2]"}, "bored", "unknown_finish_reason"),
    ({"text": "[1, 2]"}, "stop", "unread"),
    ({"content": "[1, 2]"}, "pause_turn", "unknown_finish_reason"),
]


def two(second: dict[str, Any], finish: str, first: dict[str, Any] | None = None) -> dict[str, Any]:
    answers = [orjson.loads(chat(first or {"content": "[0]"})), orjson.loads(chat(second, finish))]
    choices = [{**answer["choices"][0], "index": index} for index, answer in enumerate(answers)]
    return {**answers[0], "choices": choices, "usage": USAGE}


def streamed(answer: dict[str, Any]) -> bytes:
    """*answer* as a stream: each choice in one chunk, then its end in another."""

    def chunks() -> Iterator[dict[str, Any]]:
        about = {"id": "c", "object": "chat.completion.chunk", "created": 1767225600, "model": "m"}
        for choice in answer["choices"]:
            message = dict(choice["message"])
            if message.get("tool_calls"):
                message["tool_calls"] = [{"index": 0, **call} for call in message["tool_calls"]]
            yield {**about, "choices": [{"index": choice["index"], "delta": message, "finish_reason": None}]}
            end = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
            yield {**about, "choices": [end]}
        yield {**about, "choices": [], "usage": answer["usage"]}

    return b"".join(b"data: %s\n\n" % event for event in [*map(orjson.dumps, chunks()), b"[DONE]"])


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("second", "finish", "reason"), SECONDS)
def test_a_second_answer_says_why_it_is_not_whole(
    second: dict[str, Any], finish: str, reason: str | None, is_stream: bool
) -> None:
    answer = two(second, finish)
    response = normalize(streamed(answer) if is_stream else orjson.dumps(answer), "openai", unknown="keep")
    (other,) = response.alternatives
    assert other.incomplete_reason == reason
    assert other.is_complete is (reason is None and other.finish_reason == "stop")
    # The first answer is whole, whatever became of the second.
    assert (response.text, response.is_complete, response.incomplete_reason) == ("[0]", True, None)


@pytest.mark.parametrize(("second", "finish", "reason"), SECONDS)
def test_the_reason_is_kept(second: dict[str, Any], finish: str, reason: str | None) -> None:
    """In canonical JSON, in a copy, and in a response that is made of another one. It is no part of either's content."""
    response = normalize(two(second, finish), "openai", unknown="keep")
    for again in (
        from_json(to_json(response), ChatResponse),
        pickle.loads(pickle.dumps(response)),
        copy.deepcopy(response),
        attrs.evolve(response, id="another"),
    ):
        assert again.alternatives == response.alternatives
        assert again.alternatives[0].incomplete_reason == reason
    assert "unknown" not in orjson.loads(to_json(response))["alternatives"][0]


def test_an_answer_of_its_own_says_nothing_of_the_other() -> None:
    """The first answer is cut, and the second is whole."""
    answer = two({"content": "[1, 2]"}, "stop")
    answer["choices"][0]["finish_reason"] = "length"
    response = normalize(answer, "openai")
    assert (response.incomplete_reason, response.alternatives[0].incomplete_reason) == ("length", None)


def test_an_unknown_part_may_belong_to_either() -> None:
    """It makes neither complete: nobody knows which of them lost something."""
    response = normalize(two({"content": [{"type": "hologram"}]}, "stop"), "openai", unknown="keep")
    assert response.incomplete_reason == response.alternatives[0].incomplete_reason == "unknown_event"


def test_the_marks_of_another_response_do_not_stay() -> None:
    unknown = normalize(two({"content": "Hi"}, "bored"), "openai", unknown="keep").alternatives
    known = normalize(two({"content": "Hi"}, "stop"), "openai")
    assert attrs.evolve(known, alternatives=unknown).alternatives[0].incomplete_reason is None


@pytest.mark.parametrize("value", ["unread", 7, True])
def test_the_mark_is_a_reason(value: Any) -> None:
    (other,) = normalize(two({"content": "Hi"}, "stop"), "openai").alternatives
    with pytest.raises(ResponseValidationError, match="unknown"):
        attrs.evolve(other, unknown=value)
    assert attrs.evolve(other, unknown=IncompleteReason.UNREAD).incomplete_reason == "unread"


def test_an_unknown_word_of_a_second_answer_is_raised() -> None:
    with pytest.raises(UnknownFinishReasonError, match="bored"):
        normalize(two({"content": "Hi"}, "bored"), "openai")


@pytest.mark.parametrize(
    ("second", "finish", "reason"),
    [
        ({"content": "[1, 2]"}, "stop", ReasonCode.SUCCESS),
        ({"content": "[1, 2"}, "length", ReasonCode.TRUNCATED),
        ({"content": "[1, 2]"}, "length", ReasonCode.TRUNCATED),
        ({"content": "[1, 2]"}, "bored", ReasonCode.TRUNCATED),
        ({"content": None, "refusal": "No."}, "stop", ReasonCode.REFUSAL),
    ],
)
def test_a_value_is_read_from_an_alternative(second: dict[str, Any], finish: str, reason: ReasonCode) -> None:
    """Its own end decides, as the response's does for the first answer."""
    response = normalize(two(second, finish), "openai", unknown="keep")
    parser = StructuredParser(list[int])
    assert parser.parse(response).value == [0]
    result = parser.parse(response.alternatives[0])
    assert (result.reason, result.value) == (reason, [1, 2] if reason is ReasonCode.SUCCESS else None)
