"""The report that clients of another API get of an answer that is not whole."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk import normalize, normalize_stream
from crosswalk.convert import DangerousLossError, Grade, WireForm, convert, convert_stream
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


COUNTED = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def counted(payload: bytes) -> bytes:
    return orjson.dumps({**orjson.loads(payload), "usage": COUNTED})


def called(arguments: str) -> bytes:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return chat({"content": None, "tool_calls": [call]}, "tool_calls")


UNFINISHED = {
    "unread": counted(chat({"content": None, "output": "Hello"})),
    "unknown part": chat({"content": [{"type": "markdown", "body": "Hello"}]}),
    "unknown part beside a text": chat(
        {"content": [{"type": "text", "text": "Hi"}, {"type": "chart", "data": 1}]}
    ),
    "unknown word": chat({"content": "Hi"}, "wurst"),
    "cut arguments": called('{"q":'),
    "arguments in a list": called("[1]"),
}
PROVIDERS = {
    WireForm.OPENAI_CHAT: "vllm",
    WireForm.OPENAI_RESPONSES: "openai_responses",
    WireForm.ANTHROPIC: "anthropic",
    WireForm.GEMINI: "gemini",
    WireForm.OLLAMA: "ollama",
    WireForm.OLLAMA_GENERATE: "ollama",
    WireForm.OPENAI_COMPLETIONS: "openai",
}


@pytest.mark.parametrize("form", WireForm)
@pytest.mark.parametrize("payload", UNFINISHED.values(), ids=UNFINISHED)
def test_an_incomplete_answer_never_looks_complete_without_a_word(payload: bytes, form: WireForm) -> None:
    """Either its reader finds it incomplete again, or the report calls the loss dangerous and it is refused."""
    answer = normalize(payload, "vllm", unknown="keep")
    assert answer.incomplete_reason is not None
    made = convert(answer, form, losses="report")
    again = normalize(made.value, PROVIDERS[form], unknown="keep")
    if again.incomplete_reason is None:
        assert "incomplete_reason" in {loss.path for loss in made.report.dangerous}
        with pytest.raises(DangerousLossError):
            convert(answer, form)
        assert convert(answer, form, carry=True).report.is_carried


WORDS_FOR_A_PART = {
    "anthropic": b'"stop_reason":"max_tokens"',
    "openai-responses": b'"status":"incomplete","error":null,"incomplete_details":null',
    "gemini": b'"finishReason":"MAX_TOKENS"',
    "ollama": b'"done_reason":"length"',
}


@pytest.mark.parametrize("form", WORDS_FOR_A_PART)
@pytest.mark.parametrize("kind", ["unknown word", "unknown part beside a text"])
def test_an_answer_whose_text_is_there_is_written_as_a_part(kind: str, form: str) -> None:
    """Whole and streamed, with the word that the form has for that. Its own form keeps what came."""
    if kind == "unknown word":
        payload = chunks({"content": "Hi"}, finish="wurst")
    else:
        payload = chunks({"content": "Hi"}, {"content": [{"type": "chart", "data": 1}]})
    events = convert_stream(normalize_stream([payload], "vllm", unknown="keep"), form)
    whole = convert(normalize(UNFINISHED[kind], "vllm", unknown="keep"), form)
    for written in (b"".join(events), whole.value):
        assert WORDS_FOR_A_PART[form] in written
        assert b"Hi" in written
    assert whole.report.names("finish_reason")
    own = orjson.loads(convert(normalize(UNFINISHED[kind], "vllm", unknown="keep"), "openai-chat").value)
    assert own["choices"][0]["finish_reason"] == ("wurst" if kind == "unknown word" else "stop")


@pytest.mark.parametrize("form", WORDS_FOR_A_PART)
def test_a_stream_of_an_incomplete_answer_without_text_has_no_end(form: str) -> None:
    payload = chunks({"content": [{"type": "chart", "data": 1}]})
    events = convert_stream(normalize_stream([payload], "vllm", unknown="keep"), form)
    with pytest.raises(DangerousLossError, match="would look complete @ incomplete_reason"):
        b"".join(events)


def test_calls_beside_an_unknown_finish_word_are_not_asked_for() -> None:
    payload = called('{"q": 1}').replace(b'"finish_reason":"tool_calls"', b'"finish_reason":"wurst"')
    body = orjson.loads(convert(normalize(payload, "vllm", unknown="keep"), "anthropic").value)
    assert (body["stop_reason"], body["content"][0]["name"]) == ("max_tokens", "f")


@pytest.mark.parametrize(("form", "lost"), [("anthropic", ".arguments"), ("ollama", "")])
@pytest.mark.parametrize("arguments", ['{"q":', "[1]", "no JSON"])
def test_broken_arguments_are_dangerous_unless_the_answer_says_that_it_was_cut(
    arguments: str, form: str, lost: str
) -> None:
    """Ollama's clients run each call, so they get none then."""
    path = "message.tool_calls[0].arguments"
    whole = convert(normalize(called(arguments), "openai"), form, losses="report").report
    assert {loss.path: loss.rule.grade for loss in whole.losses}[path] is Grade.DANGEROUS
    cut = normalize(
        called(arguments).replace(b'"finish_reason":"tool_calls"', b'"finish_reason":"length"'), "openai"
    )
    conversion = convert(cut, form)
    assert (b"INVALID_JSON" in conversion.value) is (form == "anthropic")
    grades = {loss.path: loss.rule.grade for loss in conversion.report.losses}
    assert grades[f"message.tool_calls[0]{lost}"] is Grade.CHANGED


@pytest.mark.parametrize("form", ["ollama", "openai-completions", "anthropic", "gemini"])
def test_a_refusal_is_converted_with_its_words(form: str) -> None:
    """They say it themselves, also where they are the text of the answer."""
    assert WORDS.encode() in convert(normalize(REFUSALS["whole"], "openai"), form).value
