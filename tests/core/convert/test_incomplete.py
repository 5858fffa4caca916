"""The report that clients of another API get of an answer that is not whole."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk import normalize, normalize_stream
from crosswalk.convert import convert, convert_stream
from incomplete_answers import TEXT, USE, chat, chunks, message

WORDS = "I would rather not."
REFUSALS = {
    "whole": chat({"content": None, "refusal": WORDS}),
    "streamed": chunks({"refusal": WORDS[:9]}, {"refusal": WORDS[9:]}),
}


@pytest.mark.parametrize("payload", REFUSALS.values(), ids=REFUSALS)
def test_a_client_of_messages_is_told_of_a_refusal(payload: bytes) -> None:
    """By the stop reason, with the words as text, which a client shows and may send back."""
    body = orjson.loads(convert(normalize(payload, "openai"), "anthropic").value)
    assert body["stop_reason"] == "refusal"
    assert [(block["type"], block["text"]) for block in body["content"]] == [("text", WORDS)]
    assert body["stop_details"]["explanation"] == WORDS


def test_a_refusal_is_streamed_to_a_client_of_messages() -> None:
    events = b"".join(convert_stream(normalize_stream([REFUSALS["streamed"]], "openai"), "anthropic"))
    data: list[Any] = [orjson.loads(line[6:]) for line in events.splitlines() if line.startswith(b"data: ")]
    deltas = [event["delta"] for event in data if event["type"] == "content_block_delta"]
    assert "".join(delta["text"] for delta in deltas) == WORDS
    assert [e["delta"]["stop_reason"] for e in data if e["type"] == "message_delta"] == ["refusal"]


def test_a_refusal_that_a_limit_cut_is_cut() -> None:
    cut = normalize(chat({"content": None, "refusal": WORDS}, "length"), "openai")
    assert orjson.loads(convert(cut, "anthropic").value)["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("word", ["pause_turn", "compaction"])
def test_a_pause_is_not_a_whole_answer_to_anybody(word: str) -> None:
    """The report names the word that the form does not have. Its own form keeps it."""
    paused = normalize(message(TEXT, stop=word), "anthropic")
    conversions = {form: convert(paused, form) for form in ("openai-chat", "openai-responses", "anthropic")}
    bodies = {form: orjson.loads(conversion.value) for form, conversion in conversions.items()}
    assert bodies["openai-chat"]["choices"][0]["finish_reason"] == "length"
    assert bodies["openai-responses"]["status"] == "incomplete"
    assert bodies["anthropic"]["stop_reason"] == word
    assert conversions["openai-chat"].report.names("raw_finish_reason")


@pytest.mark.parametrize(("content", "status"), [((TEXT,), "incomplete"), ((TEXT, USE), "completed")])
def test_an_announced_call_that_is_missing_is_not_completed(content: Any, status: str) -> None:
    answer = normalize(message(*content, stop="tool_use"), "anthropic")
    assert orjson.loads(convert(answer, "openai-responses").value)["status"] == status
    assert orjson.loads(convert(answer, "openai-chat").value)["choices"][0]["finish_reason"] == "tool_calls"
