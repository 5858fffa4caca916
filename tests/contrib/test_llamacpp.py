"""llama.cpp: the fact sheet as tables, and the conformance kit over captures of real servers (see their manifest)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest

from crosswalk import (
    ChatResponse,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    normalize,
    normalize_stream,
    to_jsonable,
)
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import registry
from crosswalk.plugins import Recognition
from crosswalk.testing import ProviderConformance
from crosswalk_llamacpp import plugin
from wires import body, chunk, sse, usage


class TestLlamaCpp(ProviderConformance):
    provider = "llamacpp"
    captures = "../captures/llamacpp"
    snapshots = "../../snapshots"
    sample = 7


def llama(*events: Any, status: int = 200, done: bool = False, **options: Any) -> ChatResponse:
    """The result of one event as a body, of several as a stream."""
    sent = orjson.dumps(events[0]) if len(events) == 1 else sse(*events, done=done)
    return normalize(sent, "llamacpp", status=status, **options)


def native(content: str = "Hi", word: str | None = "eos", **more: Any) -> dict[str, Any]:
    """A whole answer, or the last event of one."""
    said = {"index": 0, "content": content, "stop": True, "model": "m", "stop_type": word}
    return {**said, "tokens_predicted": 2, "tokens_evaluated": 5, **more}


def piece(content: str, count: int, **more: Any) -> dict[str, Any]:
    said = {"index": 0, "content": content, "tokens": [count], "stop": False, "id_slot": 0}
    return {**said, "tokens_predicted": count, "tokens_evaluated": 5, **more}


TIMINGS = {"cache_n": 80, "prompt_n": 8, "prompt_ms": 12.5, "predicted_n": 21, "predicted_ms": 420.0}


def left(response: ChatResponse) -> Any:
    return response.metadata.extensions.thawed()


def texts(response: ChatResponse) -> list[str]:
    """The statement of each answer."""
    return [response.text, *(a.message.text for a in response.alternatives)]


# Sections 2.1, 3 and 4: the native dialect.


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("eos", FinishReason.STOP),
        ("word", FinishReason.STOP),
        ("limit", FinishReason.LENGTH),
        ("none", FinishReason.ERROR),
    ],
)
def test_stop_types(word: str, reason: FinishReason) -> None:
    response = llama(native(word=word, stopping_word="###", truncated=True))
    assert (response.finish_reason, response.raw_finish_reason) == (reason, word)
    assert left(response) == {"stopping_word": "###", "truncated": True}


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("stopped_eos", FinishReason.STOP),
        ("stopped_word", FinishReason.STOP),
        ("stopped_limit", FinishReason.LENGTH),
    ],
)
def test_old_servers_say_it_by_flags(flag: str, reason: FinishReason) -> None:
    said = {"stopped_eos": False, "stopped_limit": False, "stopped_word": False, flag: True}
    response = llama({"content": "Hi", "stop": True, **said})
    assert (response.finish_reason, response.raw_finish_reason) == (reason, flag)
    assert left(response) == {"stop": True, **said}


def test_the_client_may_have_asked_for_the_content_alone() -> None:
    response = llama({"content": "Hi"})
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
    assert response.metadata.provenance["finish_reason"] == "derived"
    assert response.metadata.provenance["usage"] == "absent"


def test_or_for_anything_but_the_content() -> None:
    response = llama(piece("Hi", 1), {"timings": TIMINGS})
    assert response.text == "Hi"
    assert left(response)["timings"] == TIMINGS


def test_the_cache_is_in_the_prompt() -> None:
    response = llama(native(timings={**TIMINGS, "cache_n": 4}))
    assert response.usage == UsageInfo(5, 2, cached_tokens=4)
    assert left(response)["timings"]["cache_n"] == 4
    response = llama({**native(), "tokens_predicted": None})
    assert response.metadata.provenance["usage.completion_tokens"] == "absent"


def test_old_servers_have_probabilities_in_a_shape_of_their_own() -> None:
    old = [{"content": "Hi", "probs": [{"tok_str": "Hi", "prob": 1.0}]}]
    response = llama(native(completion_probabilities=old))
    assert response.logprobs is None
    assert left(response)["completion_probabilities"] == old


# Several answers.


def test_what_an_array_says_twice_of_one_answer_is_kept_twice() -> None:
    begun = {"index": 0, "content": "H", "stop": False, "truncated": True}
    response = llama([begun, {"index": 0, "content": "i", "truncated": False}])
    assert response.text == "Hi"
    assert left(response) == {"truncated": True, "choices": [{"index": 0, "truncated": False}]}


def test_an_empty_array_is_of_an_unknown_dialect() -> None:
    with pytest.raises(UnknownEventError):
        llama([])


def test_the_same_prompt_is_read_once() -> None:
    response = llama([native("Hi", prompt="a"), native("Yo", index=1, prompt="a")])
    assert response.usage == UsageInfo(5, 4)


def test_streams_of_several_answers_come_mixed_and_begin_with_nothing() -> None:
    events = [None, piece("Hi", 1), piece("Yo", 1, index=1), native("", prompt="a")]
    response = llama(*events, native("!", index=1, prompt="b"))
    assert texts(response) == ["Hi", "Yo!"]
    assert response.usage == UsageInfo(10, 4)
    with pytest.raises(IncompleteStreamError, match="choice 1"):
        llama(*events)
    with pytest.raises(IncompleteStreamError, match="choice 1"):
        llama(None, native())
    with pytest.raises(IncompleteStreamError, match="choice 2"):
        llama(None, native(), native(index=1), None)


def test_nothing_alone_is_no_answer() -> None:
    with pytest.raises(IncompleteStreamError):
        llama(None)
    assert plugin.recognizes(None) is Recognition.NO


def test_null_takes_no_count_of_one_of_several_answers_back() -> None:
    last = {"tokens_evaluated": None, "tokens_predicted": None, "prompt": "b"}
    pieces = [piece("Hi", 1, tokens_evaluated=4), piece("Yo", 2, index=1, timings=TIMINGS)]
    ends = [native("", prompt="a", tokens_evaluated=4), native("!", index=1, **last)]
    assert llama(None, *pieces, *ends).usage == UsageInfo(9, 4, cached_tokens=80)
    ends[1] |= {"tokens_predicted": 3, "timings": None}
    assert llama(None, *pieces, *ends).usage == UsageInfo(9, 5, cached_tokens=80)


# Never silently wrong.


def test_unknown_words_and_events_are_errors() -> None:
    with pytest.raises(UnknownFinishReasonError, match="tired"):
        llama(native(word="tired"))
    with pytest.raises(UnknownEventError, match="news"):
        llama(piece("H", 1), {"type": "news"})
    with pytest.raises(UnknownEventError):
        llama({"object": "list", "data": []})


@pytest.mark.parametrize(
    ("more", "place", "said"),
    [
        ({"content": 1}, "content", ""),
        ({"index": -1}, "index", ""),
        ({"stop": "true"}, "stop", "Hi"),
        ({"stop_type": 1}, "stop_type", "Hi"),
        ({"stop_type": None, "stopped_word": 1}, "stopped_word", "Hi"),
        ({"model": 1}, "model", "Hi"),
    ],
)
def test_what_decides_the_answer_is_of_its_type_or_an_error_after_the_text(
    more: Any, place: str, said: str
) -> None:
    for event, prefix in (
        ({**native(), **more}, ""),
        ([native("Yo", index=1), {**native(), **more}], r"\[1\]\."),
    ):
        with pytest.raises(WireTypeError, match=f"{prefix}{place}: expected") as caught:
            llama(event)
        assert caught.value.partial is not None
        assert caught.value.partial.text == said


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"prompt": 1}, "prompt"),
        ({"tokens_predicted": 1.5}, "tokens_predicted"),
        ({"tokens_evaluated": "5"}, "tokens_evaluated"),
        ({"timings": ["x"]}, "timings"),
        ({"timings": {"cache_n": -1}}, "timings.cache_n"),
        ({"timings": {"prompt_ms": "fast", "predicted_ms": 3}}, "timings.prompt_ms"),
        ({"completion_probabilities": {"n": 1}}, "completion_probabilities"),
        ({"completion_probabilities": [1]}, "completion_probabilities"),
        ({"completion_probabilities": [{"token": 1, "logprob": -1.0}]}, "completion_probabilities"),
    ],
)
def test_anything_else_of_another_type_stays_and_costs_itself_alone(more: Any, place: str) -> None:
    response = llama({**native(), **more})
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
    assert left(response) == more
    assert response.metadata.provenance[f"metadata.extensions.{place}"] == "mistyped"
    assert response.metadata.request_duration == timedelta()
    other = native("Yo", prompt="b")
    if "tokens_evaluated" in more or "tokens_predicted" in more:
        del other["tokens_evaluated"], other["tokens_predicted"]
    response = llama([other, {**native(), "index": 1, **more}])
    assert texts(response) == ["Yo", "Hi"]
    (kept,) = left(response)["choices"]
    assert kept.items() >= more.items()
    assert response.metadata.provenance[f"metadata.extensions.choices[0].{place}"] == "mistyped"


def test_a_count_that_is_none_is_absent() -> None:
    response = llama({**native(), "tokens_evaluated": "5"})
    assert response.usage == UsageInfo(0, 2)
    assert response.metadata.provenance["usage.prompt_tokens"] == "absent"


def test_null_takes_nothing_back() -> None:
    nothing = {"tokens_predicted": None, "tokens_evaluated": None, "timings": None, "truncated": None}
    response = llama(
        piece("Hi", 1, model="m", truncated=True, timings=TIMINGS), native("", model=None, **nothing)
    )
    assert (response.model, response.usage) == ("m", UsageInfo(5, 1, cached_tokens=80))
    assert response.metadata.request_duration == timedelta(milliseconds=432.5)
    assert left(response) == {"tokens": [1], "id_slot": 0, "truncated": True, "timings": TIMINGS}


def test_an_array_of_anything_else_is_a_typed_error() -> None:
    with pytest.raises(WireTypeError):
        llama([native(), 3])


# Sections 2.2, 3, 5 and 6: the OpenAI layer.


@pytest.mark.parametrize("times", [{"prompt_ms": -1.0}, {"predicted_ms": 1e300}, {"prompt_n": 3}, {}])
def test_times_that_are_none_say_nothing(times: Any) -> None:
    response = llama(body({"content": "Hi"}, timings=times))
    assert response.metadata.request_duration == timedelta()
    assert response.metadata.provenance["metadata.request_duration"] == "absent"


@pytest.mark.parametrize(
    ("timings", "expected", "absent"),
    [
        (TIMINGS, UsageInfo(88, 21, cached_tokens=80), set()),
        ({"prompt_n": 8, "predicted_n": 21}, UsageInfo(0, 21), {"prompt"}),
        ({"prompt_n": 8, "cache_n": 0}, UsageInfo(8, 0, cached_tokens=0), {"completion"}),
    ],
)
def test_where_usage_was_not_asked_for_the_timings_count(
    timings: Any, expected: UsageInfo, absent: set[str]
) -> None:
    response = llama(chunk({"content": "Hi"}), chunk({}, "stop", timings=timings), done=True)
    assert response.usage == expected
    provenance = response.metadata.provenance
    for name in ("prompt", "completion"):
        assert (provenance.get(f"usage.{name}_tokens") == "absent") == (name in absent)


def test_the_usage_that_was_asked_for_counts_more() -> None:
    end = [chunk({}, "stop", timings=TIMINGS), chunk(usage=usage(9, 3), timings=TIMINGS)]
    response = llama(chunk({"content": "Hi"}), *end, done=True)
    assert response.usage == UsageInfo(9, 3, cached_tokens=80)
    assert "usage.prompt_tokens" not in response.metadata.provenance


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({}, 5),
        ({"prompt_tokens_details": None}, 5),
        ({"prompt_tokens_details": {"cached_tokens": None}}, 5),
        ({"prompt_tokens_details": {"cached_tokens": 7}}, 7),
    ],
)
def test_old_servers_tell_the_cached_tokens_in_the_timings_alone(details: Any, cached: int) -> None:
    """Whole, streamed, and streamed with timings in each chunk: the results are equal."""
    said = {"usage": {**usage(9, 3), **details}, "timings": {**TIMINGS, "cache_n": 5}}
    ends = [chunk({}, "stop"), chunk(**said)]
    each = {"timings": {**TIMINGS, "cache_n": 5, "prompt_n": 4, "predicted_n": 1}}
    for response in (
        llama(body({"content": "Hi"}, **said)),
        llama(chunk({"content": "Hi"}), *ends, done=True),
        llama(chunk({"content": "Hi"}, **each), *ends, done=True),
    ):
        assert response.usage == UsageInfo(9, 3, cached_tokens=cached)
        assert left(response)["timings"]["cache_n"] == 5
        assert not [name for name in response.metadata.provenance if name.startswith("usage")]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"timings": ["x"]}, "timings"),
        ({"timings": {"prompt_ms": "fast", "predicted_ms": 1}}, "timings.prompt_ms"),
        ({"timings": {"prompt_n": "8", "predicted_n": 21}}, "timings.prompt_n"),
        ({"timings": {"cache_n": -1}, "usage": usage(9, 3)}, "timings.cache_n"),
        ({"usage": {"prompt_tokens": "9", "completion_tokens": 3}}, "usage.prompt_tokens"),
    ],
)
def test_a_wrong_measurement_costs_itself_alone(more: Any, place: str) -> None:
    for response in (
        llama(body({"content": "Hi"}, **more)),
        llama(chunk({"content": "Hi"}), chunk({}, "stop", **more), done=True),
    ):
        assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
        assert response.metadata.provenance[f"metadata.extensions.{place}"] == "mistyped"
        assert response.metadata.request_duration == timedelta()
        first, *rest = place.split(".")
        kept = left(response)[first]
        assert (kept[rest[0]] if rest else kept) == (more[first][rest[0]] if rest else more[first])


def test_a_usage_is_about_the_answer_that_ended_not_the_one_that_spoke() -> None:
    response = llama(
        chunk({"content": "Hi"}),
        chunk({"content": "Yo"}, choice=1),
        chunk({}, "stop"),
        chunk({"content": " there"}, choice=1),
        chunk(usage=usage(9, 3)),
        chunk({}, "length", choice=1),
        chunk(usage=usage(9, 4)),
        done=True,
    )
    assert response.usage == UsageInfo(9, 7)


@pytest.mark.parametrize("choices", [(0, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0, 1, 1)], ids=["one", "turns"])
@pytest.mark.parametrize("more", [{}, {"usage": usage(9, 2)}], ids=["timings", "usage"])
def test_timings_of_events_that_are_alike_count_as_those_of_others(
    choices: tuple[int, ...], more: dict[str, Any]
) -> None:
    events = [
        chunk({"content": "Hi"}, choice=choice, timings={**TIMINGS, "predicted_n": number}, **more)
        for number, choice in enumerate(choices)
    ]
    events += [chunk({}, "stop", choice=choice) for choice in {*choices}]
    live, mapped = (Reader(registry.mapper("llamacpp")) for _ in range(2))
    for event in events:
        assert [*live.read(sse(event, done=False))] == [*mapped.read_event(event)]
    assert [*live.finish()] == [*mapped.finish()]
    assert to_jsonable(live.response()) == to_jsonable(mapped.response())


def test_what_was_cached_of_an_uncounted_prompt_is_not_added_to_that_of_another() -> None:
    times = {"cache_n": 16, "predicted_n": 1}
    events = [
        chunk({"content": "Yo"}, choice=1, timings=times),
        chunk({"content": "Hi"}, timings={**times, "prompt_n": 1}),
    ]
    stream = normalize_stream([sse(*events, chunk({}, "stop"), chunk({}, "stop", choice=1))], "llamacpp")
    assert [delta.usage for delta in stream if delta.usage is not None] == [
        UsageInfo(0, 1, cached_tokens=16),
        UsageInfo(17, 2, cached_tokens=16),
        UsageInfo(17, 2, cached_tokens=16),
    ]


def test_a_usage_that_does_not_count_the_prompt_takes_nothing_back() -> None:
    response = llama(
        chunk({"content": "Hi"}, usage=usage(9, 1)),
        chunk({"content": "Yo"}, choice=1, usage=usage(9, 2)),
        chunk({}, "stop", usage={"prompt_tokens": None, "completion_tokens": 5}),
        chunk({}, "stop", choice=1, usage={"prompt_tokens": 9, "completion_tokens": None}),
        done=True,
    )
    assert response.usage == UsageInfo(9, 7)


@pytest.mark.parametrize(
    ("events", "prompt_tokens"), [([None], 4), ([], 2)], ids=["two prompts", "two answers to one prompt"]
)
def test_a_null_says_that_there_is_a_prompt_more(events: list[None], prompt_tokens: int) -> None:
    def part(index: int, text: str, counts: Any) -> dict[str, Any]:
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": "stop"}
        return {"object": "text_completion", "choices": [choice], "usage": counts}

    response = llama(*events, part(0, "Hi", usage(2, 3)), part(1, "Yo", usage(2, 5)))
    assert response.usage == UsageInfo(prompt_tokens, 8)


CALL = {"name": "dim", "arguments": '{"a":1}'}


def test_a_forced_call_that_is_there_twice_is_one() -> None:
    calls = [{"id": "c1", "type": "function", "function": CALL}]
    response = llama(body({"content": None, "tool_calls": calls, "function_call": CALL}, "tool_calls"))
    assert [(call.id, call.arguments) for call in response.tool_calls] == [("c1", '{"a":1}')]
    assert "choices" not in left(response)
    other = {**CALL, "name": "lit"}
    response = llama(body({"content": None, "tool_calls": calls, "function_call": other}, "tool_calls"))
    assert [call.name for call in response.tool_calls] == ["dim"]
    assert left(response)["choices"][0]["message"]["function_call"] == other


# Section 7: errors.


@pytest.mark.parametrize(
    ("code", "word", "text", "kind", "retryable"),
    [
        (400, "invalid_request_error", "no", ErrorKind.INVALID_REQUEST, False),
        (400, "exceed_context_size_error", "too long", ErrorKind.CONTEXT_OVERFLOW, False),
        (401, "authentication_error", "no", ErrorKind.AUTHENTICATION, False),
        (403, "permission_error", "no", ErrorKind.PERMISSION, False),
        (404, "not_found_error", "File Not Found", ErrorKind.INVALID_REQUEST, False),
        (500, "server_error", "no", ErrorKind.SERVER, True),
        (501, "not_supported_error", "no", ErrorKind.INVALID_REQUEST, False),
        (503, "unavailable_error", "Loading model", ErrorKind.SERVER, True),
    ],
)
def test_http_errors(code: int, word: str, text: str, kind: ErrorKind, retryable: bool) -> None:
    error = llama({"error": {"code": code, "message": text, "type": word}}, status=code).error_info
    assert error is not None
    assert (error.kind, error.retryable, error.status, error.message) == (kind, retryable, code, text)


@pytest.mark.parametrize("first", [piece("Hi", 1), chunk({"content": "Hi"})])
def test_an_error_in_mid_stream_keeps_what_came_before(first: Any) -> None:
    said = {"code": 500, "message": "Compute error.", "type": "server_error"}
    response = llama(first, {"error": said})
    assert (response.finish_reason, response.text) == (FinishReason.ERROR, "Hi")
    assert response.error_info is not None
    assert (response.error_info.kind, response.error_info.message) == (ErrorKind.SERVER, "Compute error.")


# Who it is.

CONTEXT = {"code": 400, "message": "no", "type": "exceed_context_size_error", "n_ctx": 8}


@pytest.mark.parametrize(
    ("said", "recognition"),
    [
        (native(), Recognition.CERTAIN),
        (piece("Hi", 1), Recognition.CERTAIN),
        ([native()], Recognition.CERTAIN),
        ({**native(), "brand_new": 1}, Recognition.CERTAIN),
        ({"content": "Hi", "stop_type": "eos", "timings/predicted_n": 1}, Recognition.CERTAIN),
        ({"content": "Hi"}, Recognition.POSSIBLE),
        ({"timings": {}}, Recognition.POSSIBLE),
        ({"content": [], "stop_reason": None, "type": "message"}, Recognition.NO),
        ({"content": "Hi", "role": "assistant"}, Recognition.NO),
        ({"stop_type": "eos", "type": "message"}, Recognition.NO),
        ({**chunk({}), "system_fingerprint": "b9120-0c1e570"}, Recognition.CERTAIN),
        ({**chunk({}), "timings": {**TIMINGS}}, Recognition.CERTAIN),
        ({**chunk({}), "timings": {"total": 1}}, Recognition.POSSIBLE),
        ({**chunk({}), "system_fingerprint": "fp_ab"}, Recognition.POSSIBLE),
        ({"error": CONTEXT}, Recognition.CERTAIN),
        ({"error": {"code": 400, "message": "no", "type": "invalid_request_error"}}, Recognition.POSSIBLE),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, Recognition.NO),
        ({"type": "response.created", "response": {}}, Recognition.NO),
        ({"type": "message", "role": "assistant", "content": []}, Recognition.NO),
        ([], Recognition.NO),
        (None, Recognition.NO),
        (3, Recognition.NO),
    ],
)
def test_recognition(said: Any, recognition: Recognition) -> None:
    assert plugin.recognizes(said) is recognition
