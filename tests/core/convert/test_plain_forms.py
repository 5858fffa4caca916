"""Ollama's own forms and legacy Completions: real answers of every provider written and read back, and what each form says how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import httpx
import httpx2
import ollama
import openai
import orjson
import pytest

from converting import PLAIN_FORMS, broad_first, hidden_losses
from crosswalk import (
    Alternative,
    ChatMessage,
    ChatResponse,
    ErrorInfo,
    FinishReason,
    MappingError,
    ResponseDelta,
    ResponseMetadata,
    Role,
    Segment,
    SegmentType as T,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
    from_json,
    normalize,
    normalize_stream,
    to_json,
)
from crosswalk.convert import ConversionError, StreamConverter, WireForm, convert, convert_stream, error_body
from crosswalk.formats.writing import source_form
from crosswalk.testing import Capture, load_captures

OWN = Path(__file__).parents[2] / "captures"
PROVIDERS = sorted(folder.name for folder in OWN.iterdir() if folder.is_dir())
CHAT, GENERATE, COMPLETIONS = PLAIN_FORMS
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
T2 = 2.5


def reader(answer: ChatResponse, form: WireForm) -> str:
    """The reader of *answer* in *form*: in its own form, the provider that has read it."""
    source = source_form(answer)
    is_own = source is form or (source is CHAT and form is GENERATE)
    return answer.metadata.provider_id if is_own else form.provider


@pytest.mark.sweep
@pytest.mark.parametrize("provider", broad_first(PROVIDERS))
def test_of_recorded_answers_nothing_is_lost_in_silence(provider: str) -> None:
    problems: list[str] = []
    counts: Counter[str] = Counter()
    for capture in load_captures(OWN / provider):
        try:
            answer = normalize(capture.body, provider, status=capture.status)
        except MappingError:
            continue
        for form in (*PLAIN_FORMS, WireForm.GEMINI):
            problems += problems_of(provider, capture, answer, form)
            counts[form] += 1
    assert all(counts[form] for form in (*PLAIN_FORMS, WireForm.GEMINI))
    assert not problems, "\n".join(problems)


def problems_of(provider: str, capture: Capture, answer: ChatResponse, form: WireForm) -> Iterator[str]:
    whole = convert(answer, form, losses="report")
    options: dict[str, Any] = {"status": whole.status, "unknown": "keep"}
    own = reader(answer, form) if whole.status == 200 else form.provider
    back = normalize(whole.value, own, **options)
    deltas = normalize_stream([capture.body], provider, status=capture.status)
    stream = convert_stream(deltas, form, losses="report")
    sent = b"".join(stream)
    again = normalize(sent, form.provider, unknown="keep")
    for before, after, report in ((answer, back, whole.report), (deltas.response, again, stream.report)):
        yield from (f"{capture.case} to {form}: {place}" for place in hidden_losses(before, after, report))
        if after.text != before.text and not (before.refusal or before.error_info):
            yield f"{capture.case} to {form}: the text"
        if form is not COMPLETIONS and after.reasoning != before.reasoning and not before.error_info:
            yield f"{capture.case} to {form}: the reasoning"


@pytest.mark.parametrize(
    ("provider", "form", "least"), [("ollama", CHAT, 10), ("ollama", GENERATE, 2), ("vllm", COMPLETIONS, 2)]
)
def test_a_recorded_body_comes_back_from_canonical_json(provider: str, form: WireForm, least: int) -> None:
    found = 0
    for capture in load_captures(OWN / provider):
        if capture.status != 200 or not (body := own_body(capture, form)) or "_debug_info" in body:
            continue
        answer = normalize(capture.body, provider)
        converted = convert(from_json(to_json(answer), ChatResponse), form)
        back = orjson.loads(converted.value)
        assert saying(back) == saying(body), capture.case
        assert convert(answer, form).value == capture.body.strip()
        found += 1
    assert found >= least


def own_body(capture: Capture, form: WireForm) -> dict[str, Any] | None:
    """The body of *capture*, where it has *form*."""
    if not capture.body.lstrip().startswith(b"{") or capture.body.count(b'"done":') > 1:
        return None
    body = orjson.loads(capture.body)
    if form is COMPLETIONS:
        return body if body.get("object") == "text_completion" else None
    return body if ("message" if form is CHAT else "response") in body and "done" in body else None


def saying(value: Any) -> Any:
    """*value* without the keys that say nothing."""
    if isinstance(value, dict):
        return {key: saying(inner) for key, inner in value.items() if inner not in (None, [], {})}
    return [saying(inner) for inner in value] if isinstance(value, list) else value


# What stands where.


def answer(*parts: Segment, finish: str = "stop", **more: Any) -> ChatResponse:
    text = "".join(part.content for part in parts if part.type is T.TEXT)
    calls = more.pop("calls", None)
    given: dict[str, Any] = {
        "id": "a1",
        "message": ChatMessage(Role.ASSISTANT, text or None, tool_calls=calls),
        "finish_reason": FinishReason(finish),
        "usage": UsageInfo(7, 5),
        "metadata": ResponseMetadata("made_up", "m", request_duration=timedelta(seconds=T2)),
        "created": NOW,
        "model": "m",
        "segments": parts,
    }
    return ChatResponse(**{**given, **more})


def body_of(response: ChatResponse, form: WireForm) -> Any:
    return orjson.loads(convert(response, form, losses="report").value)


CALLS = (ToolCall("c1", "find", '{"q":1}'), ToolCall("c1", "cut", '{"q":'))
TURN = answer(
    Segment(T.REASONING, "hm"),
    Segment(T.TEXT, "Look:"),
    *(Segment(T.TOOL_CALL, call.arguments, {"id": call.id, "name": call.name}) for call in CALLS),
    Segment(T.MEDIA, "aWk=", {"encoding": "base64"}),
    finish="tool_calls",
    calls=CALLS,
)
ASKED = [
    {"id": "c1", "function": {"index": 0, "name": "find", "arguments": {"q": 1}}},
    {"id": "call_1", "function": {"index": 1, "name": "cut", "arguments": {"INVALID_JSON": '{"q":'}}},
]
END = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 2_500_000_000,
    "prompt_eval_count": 7,
    "eval_count": 5,
}
TOP = {"model": "m", "created_at": "2026-01-01T12:00:00Z"}


def test_a_turn_becomes_a_chat_of_ollama() -> None:
    message = {
        "role": "assistant",
        "content": "Look:",
        "thinking": "hm",
        "tool_calls": ASKED,
    }
    assert body_of(TURN, CHAT) == {**TOP, "message": message, **END}
    report = convert(TURN, CHAT, losses="report").report
    assert report.names("message.tool_calls[1].arguments")
    assert not report.names("metadata.request_duration")


def test_a_turn_becomes_what_ollama_generates() -> None:
    said = {"response": "Look:", "thinking": "hm", "tool_calls": ASKED}
    assert body_of(TURN, GENERATE) == {**TOP, **said, **END}


def test_of_a_turn_completions_say_the_text() -> None:
    said = body_of(TURN, COMPLETIONS)
    assert said == {
        "id": "a1",
        "object": "text_completion",
        "created": int(NOW.timestamp()),
        "model": "m",
        "choices": [{"text": "Look:", "index": 0, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }
    report = convert(TURN, COMPLETIONS, losses="report").report
    assert report.names("segments[0]")
    assert report.names("message.tool_calls[0]")


@pytest.mark.parametrize("form", PLAIN_FORMS)
@pytest.mark.parametrize(
    ("finish", "word"),
    [("stop", "stop"), ("length", "length"), ("tool_calls", "stop"), ("cancelled", "length")],
)
def test_the_end_is_said_in_the_nearest_word(form: WireForm, finish: str, word: str) -> None:
    said = body_of(answer(Segment(T.TEXT, "x"), finish=finish), form)
    assert (said["choices"][0]["finish_reason"] if form is COMPLETIONS else said["done_reason"]) == word


def test_what_was_filtered_looks_whole_in_no_form() -> None:
    filtered = answer(Segment(T.TEXT, "x"), finish="content_filter")
    assert body_of(filtered, CHAT)["done_reason"] == "length"
    assert body_of(filtered, COMPLETIONS)["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("form", PLAIN_FORMS)
def test_why_a_model_declined_is_text(form: WireForm) -> None:
    declined = answer(Segment(T.REFUSAL, "No."), refusal="No.")
    conversion = convert(declined, form)
    assert normalize(conversion.value, form.provider).text == "No."
    assert conversion.report.names("refusal")


PROBABLE = (
    TokenLogprob("a", -0.5, (97,), (TokenLogprob("a", -0.5, (97,)), TokenLogprob("b", None))),
    TokenLogprob("c", None),
    TokenLogprob("de", -0.25),
)


def test_log_probabilities_in_the_words_of_each() -> None:
    said = answer(Segment(T.TEXT, "acde"), logprobs=PROBABLE)
    assert body_of(said, CHAT)["logprobs"] == [
        {
            "token": "a",
            "logprob": -0.5,
            "bytes": [97],
            "top_logprobs": [{"token": "a", "logprob": -0.5, "bytes": [97]}],
        },
        {"token": "de", "logprob": -0.25},
    ]
    assert body_of(said, COMPLETIONS)["choices"][0]["logprobs"] == {
        "tokens": ["a", "c", "de"],
        "token_logprobs": [-0.5, None, -0.25],
        "top_logprobs": [{"a": -0.5, "b": None}, None, None],
        "text_offset": [0, 1, 2],
    }


def test_several_answers_are_in_completions_alone() -> None:
    other = Alternative(
        1,
        ChatMessage.assistant("two"),
        FinishReason.LENGTH,
        segments=(Segment(T.TEXT, "two"),),
        logprobs=PROBABLE,
    )
    both = answer(Segment(T.TEXT, "one"), alternatives=(other,))
    assert [(c["index"], c["text"]) for c in body_of(both, COMPLETIONS)["choices"]] == [
        (0, "one"),
        (1, "two"),
    ]
    assert body_of(both, CHAT)["message"]["content"] == "one"
    assert convert(both, GENERATE).report.names("alternatives[0]")


@pytest.mark.parametrize("form", PLAIN_FORMS)
def test_an_error_is_one_in_the_words_of_each(form: WireForm) -> None:
    info = ErrorInfo("rate_limit", "slow down", status=429)
    said = error_body(info, form)
    failed = normalize(b'{"error":{"message":"slow down","type":"x"}}', "openai", status=429)
    assert said.status == convert(failed, form).status == 429
    expected = (
        "slow down"
        if form is not COMPLETIONS
        else {"message": "slow down", "type": "rate_limit_exceeded", "param": None, "code": None}
    )
    assert orjson.loads(said.value) == {"error": expected}
    assert normalize(said.value, form.provider, status=429).error_info.message == "slow down"
    assert "slow down" in str(orjson.loads(convert(failed, form).value)["error"])


@pytest.mark.parametrize(
    ("form", "status", "word"),
    [
        (WireForm.OPENAI_CHAT, 400, "tool_use_failed"),
        (WireForm.OPENAI_RESPONSES, 400, "tool_use_failed"),
        (COMPLETIONS, 400, "tool_use_failed"),
        (WireForm.ANTHROPIC, 500, "api_error"),
        (WireForm.GEMINI, 500, "INTERNAL"),
        (WireForm.OLLAMA, 500, "Failed to call a function."),
    ],
)
def test_a_model_that_calls_wrongly_is_not_the_fault_of_the_request(
    form: WireForm, status: int, word: str
) -> None:
    """Where the format has no word for it, the status says so."""
    text = (OWN / "groq/made_failed_generation.response.json").read_bytes()
    info = normalize(text, "groq", status=400).error_info
    assert info is not None
    said = error_body(info, form)
    assert said.status == status
    assert f'"{word}"' in said.value.decode()


def test_there_is_an_error_body_of_known_forms_only() -> None:
    with pytest.raises(ConversionError, match="no form 'cohere'"):
        error_body(ErrorInfo("server", "x"), "cohere")


# Streams.


def deltas(*pieces: dict[str, Any], finish: str = "stop", **more: Any) -> list[ResponseDelta]:
    made = [ResponseDelta(number, **piece) for number, piece in enumerate(pieces)]
    return [*made, ResponseDelta(len(made), finish_reason=FinishReason(finish), **more)]


PIECES = (
    {"reasoning_delta": "hm"},
    {"content_delta": "Lo", "logprobs": PROBABLE[2:]},
    {"content_delta": "ok:", "logprobs": PROBABLE[:1]},
    {"tool_call_delta": ToolCallDelta(0, "c1", "find", '{"q"')},
    {"tool_call_delta": ToolCallDelta(0, None, None, ":1}")},
    {"segment": Segment(T.MEDIA, "aWk=", {"encoding": "base64"})},
)
STREAM = deltas(*PIECES, finish="tool_calls", usage=UsageInfo(7, 5))


def sent_as(form: WireForm, given: list[ResponseDelta] = STREAM) -> bytes:
    return b"".join(convert_stream(given, form, id="a1", model="m", created=NOW, losses="report"))


def test_a_stream_of_ollama_is_a_line_for_each_piece() -> None:
    lines = [orjson.loads(line) for line in sent_as(CHAT).splitlines()]
    empty = {"role": "assistant", "content": ""}
    assert [line["message"] for line in lines] == [
        {**empty, "thinking": "hm"},
        {**empty, "content": "Lo"},
        {**empty, "content": "ok:"},
        {**empty, "tool_calls": ASKED[:1]},
        empty,
    ]
    assert [line["done"] for line in lines] == [False] * 4 + [True]
    assert [len(line.get("logprobs", ())) for line in lines] == [0, 1, 1, 0, 0]
    assert {**lines[-1], "total_duration": END["total_duration"]} == {**TOP, "message": empty, **END}


def test_a_stream_of_completions_ends_with_its_counts_and_its_mark() -> None:
    *chunks, end = sent_as(COMPLETIONS).split(b"\n\n")[:-1]
    said = [orjson.loads(chunk.removeprefix(b"data: ")) for chunk in chunks]
    assert end == b"data: [DONE]"
    assert [[c["text"] for c in chunk["choices"]] for chunk in said] == [["Lo"], ["ok:"], [""], []]
    assert [chunk["choices"][0]["finish_reason"] for chunk in said[:3]] == [None, None, "stop"]
    assert [c["choices"][0]["logprobs"]["text_offset"] for c in said[:2]] == [[0], [2]]
    assert said[3]["usage"]["total_tokens"] == 12


@pytest.mark.parametrize("form", PLAIN_FORMS)
def test_a_stream_without_counts_has_none(form: WireForm) -> None:
    sent = sent_as(form, deltas({"content_delta": "x"}))
    assert b"usage" not in sent
    assert b"eval_count" not in sent
    assert normalize(sent, form.provider).text == "x"


@pytest.mark.parametrize("form", PLAIN_FORMS)
def test_a_stream_that_fails_ends_with_the_error(form: WireForm) -> None:
    converter = StreamConverter(form, lambda: TURN)
    said = [b"".join(map(converter.frame, converter.feed(delta))) for delta in STREAM[:4]]
    last = b"".join(map(converter.frame, converter.fail(ErrorInfo("server", "out of memory"))))
    assert b"DONE" not in last
    back = normalize(b"".join(said) + last, form.provider)
    assert back.text == "Look:"
    assert back.error_info.message == "out of memory"
    with pytest.raises(ConversionError, match="has not been converted"):
        _ = converter.report


def test_of_several_answers_streamed_ollama_says_the_first() -> None:
    given = deltas(
        {"content_delta": "one"},
        {"content_delta": "two", "choice": 1, "logprobs": PROBABLE[:1]},
        {"tool_call_delta": ToolCallDelta(0, "c", "f", "{}"), "choice": 1},
    )
    given.insert(3, ResponseDelta(3, finish_reason=FinishReason.LENGTH, choice=1))
    given[-1] = attrs.evolve(given[-1], index=4)
    back = normalize(sent_as(CHAT, given), "ollama")
    assert (back.text, back.message.tool_calls, back.finish_reason) == ("one", None, "stop")
    both = normalize(sent_as(COMPLETIONS, given), "openai")
    assert [each.message.text for each in both.alternatives] == ["two"]


@pytest.mark.parametrize("form", [CHAT, GENERATE])
def test_a_field_that_nobody_knows_comes_back_to_ollama(form: WireForm) -> None:
    said = (
        {"message": {"role": "assistant", "content": "x", "mood": "fine"}}
        if form is CHAT
        else {"response": "x"}
    )
    line = {
        "model": "m",
        "created_at": "2026-01-01T00:00:00.123456789Z",
        **said,
        "done": True,
        "new": {"a": [1]},
    }
    sent = orjson.dumps({**line, "done_reason": "stop"}) + b"\n"
    back = orjson.loads([*convert_stream(normalize_stream([sent], "ollama"), form)][-1])
    assert back["new"] == {"a": [1]}
    assert back["created_at"].endswith("123456789Z")
    if form is CHAT:
        assert back["message"]["mood"] == "fine"


def test_images_that_ollama_has_shown_go_back_to_it() -> None:
    said = {"role": "assistant", "content": "x", "images": ["aWk="]}
    line = {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": said,
        "done": True,
        "done_reason": "stop",
    }
    answer = normalize(orjson.dumps(line), "ollama")
    assert orjson.loads(convert(from_json(to_json(answer), ChatResponse), CHAT).value) == line
    sent = b"".join(convert_stream(normalize_stream([orjson.dumps(line)], "ollama"), CHAT))
    assert normalize(sent, "ollama").segments == answer.segments


def test_an_end_without_a_word_stays_one() -> None:
    line = {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "x"},
    }
    sent = {**line, "done": True, "eval_count": 3}
    back = convert(from_json(to_json(normalize(orjson.dumps(sent), "ollama")), ChatResponse), CHAT)
    assert orjson.loads(back.value) == sent


def test_what_an_answer_keeps_in_the_form_of_a_chat_has_no_place_in_completions() -> None:
    message = {"role": "assistant", "content": "x", "mood": "fine"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop", "note": 1}]
    sent = {"id": "1", "object": "text_completion", "created": 1, "model": "m", "choices": choices}
    conversion = convert(normalize(orjson.dumps(sent), "openai"), COMPLETIONS)
    assert orjson.loads(conversion.value)["choices"][0]["note"] == 1
    assert conversion.report.names("metadata.extensions.choices[0].message.mood")
    for odd in (3, ["odd"]):
        said = {"object": "text_completion", "choices": odd}
        strange = attrs.evolve(
            normalize(orjson.dumps(sent), "openai"),
            metadata=ResponseMetadata("openai", "m", extensions=said),
        )
        assert convert(strange, COMPLETIONS).report.names("metadata.extensions.choices")


# The official clients.


def test_ollamas_client_reads_what_is_written() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        form = CHAT if request.url.path == "/api/chat" else GENERATE
        if orjson.loads(request.content)["stream"]:
            return httpx.Response(200, content=sent_as(form))
        return httpx.Response(200, content=convert(TURN, form, losses="report").value)

    client = ollama.Client("http://x", transport=httpx.MockTransport(handler))
    chat = client.chat("m", [{"role": "user", "content": "?"}])
    assert (chat.message.content, chat.message.thinking, chat.done_reason) == ("Look:", "hm", "stop")
    assert chat.message.tool_calls is not None
    assert chat.message.tool_calls[0].function.arguments == {"q": 1}
    assert chat.total_duration == 2_500_000_000
    lines = [*client.chat("m", [{"role": "user", "content": "?"}], stream=True)]
    assert "".join(line.message.content or "" for line in lines) == "Look:"
    assert lines[-1].eval_count == 5
    assert client.generate("m", "?").response == "Look:"
    assert "".join(line.response or "" for line in client.generate("m", "?", stream=True)) == "Look:"


def test_openais_client_reads_completions() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if orjson.loads(request.content).get("stream"):
            head = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=head, content=sent_as(COMPLETIONS))
        return httpx2.Response(200, json=body_of(TURN, COMPLETIONS))

    http: Any = httpx2.Client(transport=httpx2.MockTransport(handler))
    with openai.OpenAI(api_key="k", http_client=http, max_retries=0) as client:
        assert client.completions.create(model="m", prompt="?").choices[0].text == "Look:"
        chunks = [*client.completions.create(model="m", prompt="?", stream=True)]
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == "Look:"
    assert chunks[-1].usage is not None


def test_an_interaction_of_gemini_has_no_form_of_these() -> None:
    """It ends with words of the Responses API, and is not one of its responses."""
    left = {"updated": "2026-01-01T00:00:00Z"}
    answer = ChatResponse(
        id="i",
        created=datetime(2026, 1, 1, tzinfo=UTC),
        model="m",
        message=ChatMessage(role=Role.ASSISTANT, content="Hi"),
        usage=UsageInfo(prompt_tokens=1, completion_tokens=1),
        finish_reason=FinishReason.STOP,
        raw_finish_reason="completed",
        metadata=ResponseMetadata(provider_id="gemini", model_id="m", extensions=left),
    )
    assert source_form(answer) is None
