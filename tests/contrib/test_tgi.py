"""Text Generation Inference: the fact sheet as tables, and the conformance kit over invented captures."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from crosswalk import (
    ChatResponse,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    MappingError,
    Provenance,
    TrailingContentError,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    normalize,
)
from crosswalk.plugins import Recognition
from crosswalk.testing import ProviderConformance
from crosswalk_tgi import Arguments, plugin
from crosswalk_tgi.native import NativeDialect
from wires import body, chunk, sse, usage


class TestTGI(ProviderConformance):
    provider = "tgi"
    captures = "../captures/tgi"
    snapshots = "../../snapshots"
    sample = 20


def tgi(*events: Any, status: int = 200, done: bool = False, **options: Any) -> ChatResponse:
    """The result of one event as a body, of several as a stream."""
    sent = orjson.dumps(events[0]) if len(events) == 1 and not done else sse(*events, done=done)
    return normalize(sent, "tgi", status=status, **options)


def token(text: str, logprob: float | None = -0.5, *, special: bool = False) -> dict[str, Any]:
    return {"id": 7, "text": text, "logprob": logprob, "special": special}


def event(number: int, piece: Any, text: Any = None, details: Any = None, **more: Any) -> dict[str, Any]:
    return {"index": number, "token": piece, **more, "generated_text": text, "details": details}


def details(word: str = "eos_token", count: int = 2, **more: Any) -> dict[str, Any]:
    return {"finish_reason": word, "generated_tokens": count, "seed": None, **more}


def left(response: ChatResponse) -> Any:
    return response.metadata.extensions.thawed()


# Sections 2 and 4: the native answer.


def test_a_text_that_is_not_that_of_the_tokens_stays() -> None:
    """As where the prompt was asked for, too, or where a character came in two tokens."""
    response = tgi(event(1, token("Hi"), "Say it: Hi", details()))
    assert response.text == "Hi"
    assert left(response)["generated_text"] == "Say it: Hi"


def test_the_answers_that_were_not_the_best_are_alternatives() -> None:
    other = {"generated_text": "Yo", **details("length", 3, tokens=[], prefill=[])}
    silent = {"generated_text": "", **details("stop_sequence", 0)}
    response = tgi({"generated_text": "Hi", "details": details(best_of_sequences=[other, silent])})
    assert response.text == "Hi"
    assert [(a.message.content, a.finish_reason) for a in response.alternatives] == [
        ("Yo", FinishReason.LENGTH),
        (None, FinishReason.STOP),
    ]
    assert response.usage.completion_tokens == 5
    assert response.metadata.provenance["usage.completion_tokens"] == "derived"
    assert left(response)["details"]["generated_tokens"] == 2


def test_a_body_without_its_text_is_no_answer() -> None:
    with pytest.raises(IncompleteStreamError) as caught:
        tgi({"generated_text": None, "details": details()})
    assert caught.value.partial is not None
    assert caught.value.partial.text == ""


def test_an_alternative_without_its_word_or_count_is_one() -> None:
    about: dict[str, Any] = {"best_of_sequences": [{"generated_text": "Yo"}]}
    response = tgi({"generated_text": "Hi", "details": about})
    assert response.alternatives[0].raw_finish_reason == ""
    assert response.metadata.provenance["usage"] == "absent"
    response = tgi({"generated_text": "Hi", "details": {**about, "input_length": 4}})
    assert response.usage == UsageInfo(4, 0)
    assert response.metadata.provenance["usage.completion_tokens"] == "absent"
    response = tgi({"generated_text": "Hi", "details": details(count=3, **about)})
    assert response.usage.completion_tokens == 3
    assert response.metadata.provenance["usage.completion_tokens"] == "derived"


def test_the_counts_of_the_alternatives_are_the_sum_without_that_of_the_best() -> None:
    other = {"generated_text": "Yo", "generated_tokens": 3}
    response = tgi({"generated_text": "Hi", "details": {"best_of_sequences": [other]}})
    assert response.usage.completion_tokens == 3
    assert left(response)["details"] == {"best_of_sequences": [{"generated_tokens": 3}]}


def test_a_token_without_its_text_says_nothing() -> None:
    likeliest = [{"id": 3, "text": "Yo", "logprob": -1.5}]
    silent = event(1, {"id": 7, "text": None}, top_tokens=likeliest)
    response = tgi(silent, event(2, token("Hi"), "Hi", details()))
    assert (response.text, len(response.logprobs or ())) == ("Hi", 1)
    assert left(response)["top_tokens"] == likeliest


def test_the_compatible_endpoint_answers_in_an_array() -> None:
    assert tgi([{"generated_text": "Hi"}]).text == "Hi"
    assert left(tgi([{"generated_text": "Hi"}])) == {}
    whole = [{"generated_text": "Hi", "details": details(tokens=[{"text": "Hi", "logprob": -1.0}])}]
    assert left(tgi(whole)) == left(tgi(whole[0])) == {"details": {"seed": None}}
    with pytest.raises(MappingError):
        tgi([{"generated_text": "Hi"}, {"generated_text": "Yo"}])
    with pytest.raises(WireTypeError) as caught:
        tgi([{"generated_text": "Hi", "details": {"finish_reason": 7}}])
    assert caught.value.place == "event 1, [0].details.finish_reason"


# Section 5: how it ends.


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("length", FinishReason.LENGTH),
        ("eos_token", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
    ],
)
def test_finish_words(word: str, reason: FinishReason) -> None:
    response = tgi({"generated_text": "Hi", "details": details(word)})
    assert (response.finish_reason, response.raw_finish_reason) == (reason, word)
    response = tgi({**body({"content": "Hi"}, word), "id": ""})
    assert (response.finish_reason, response.raw_finish_reason) == (reason, word)


def test_unknown_words_and_events_are_errors() -> None:
    with pytest.raises(UnknownFinishReasonError, match="tired"):
        tgi({"generated_text": "Hi", "details": details("tired")})
    with pytest.raises(UnknownEventError, match="news"):
        tgi(event(1, token("Hi")), {"type": "news"}, event(2, token("!"), "Hi!", details()))
    with pytest.raises(UnknownEventError):
        tgi({"object": "list", "data": []})


def test_without_an_end_it_is_not_whole() -> None:
    with pytest.raises(IncompleteStreamError) as caught:
        tgi(event(1, token("Hi")), event(2, token("!")))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi!"
    with pytest.raises(IncompleteStreamError):
        tgi(event(1, None), event(2, token("")))


@pytest.mark.parametrize(
    "made",
    [
        {"generated_text": 1},
        {"generated_text": "Hi", "details": "x"},
        {"generated_text": "Hi", "details": details(7)},  # type: ignore[arg-type]
        {"generated_text": "Hi", "details": details(best_of_sequences=[1])},
        {"generated_text": "Hi", "details": details(best_of_sequences=[{"finish_reason": 7}])},
        event(1, {"text": 7, "special": False}, "Hi", details()),
        event(1, {"text": "Hi", "logprob": -1.0, "special": 0}, "Hi", details()),
        event(1, token("Hi"), "Hi", "x"),
        {**body({"tool_calls": [3]}), "id": ""},
    ],
)
def test_a_leaf_of_another_type_is_a_typed_error(made: Any) -> None:
    with pytest.raises(WireTypeError):
        tgi(made)


@pytest.mark.parametrize(
    ("made", "path"),
    [
        ({"generated_text": "Hi", "details": details(count=-1)}, "details.generated_tokens"),
        ({"generated_text": "Hi", "details": details(input_length="3")}, "details.input_length"),
        ({"generated_text": "Hi", "details": details(tokens=[1])}, "details.tokens"),
        ({"generated_text": "Hi", "details": details(tokens=[{"text": None, "logprob": -1.0}])}, "details.tokens"),
        ({"generated_text": "Hi", "details": details(tokens=[token("Hi")], top_tokens=[[], []])},
         "details.top_tokens"),
        ({"generated_text": "Hi", "details": details(tokens=[token("Hi")], top_tokens=["x"])}, "details.top_tokens"),
        ({"generated_text": "Hi", "details": details(tokens=[token("Hi")], top_tokens=[[{"text": 7}]])},
         "details.top_tokens"),
        ({"generated_text": "Hi", "details": details(tokens=[token("Hi")], top_tokens=[[{"text": "x", "logprob": 7}]])},
         None),
        ({"generated_text": "Hi", "details": details(best_of_sequences=[{"generated_tokens": "x"}])},
         "details.best_of_sequences[0].generated_tokens"),
        (event(1, {"text": "Hi", "logprob": "x", "special": False}, "Hi", details()), "token.logprob"),
        (event(1, token("Hi"), "Hi", details(), top_tokens=[3]), "top_tokens"),
        ({**body({"content": "Hi"}), "id": "", "usage": "x"}, "usage"),
    ],
)  # fmt: skip
def test_a_side_field_of_another_type_stays_where_it_is(made: Any, path: str | None) -> None:
    response = tgi(made)
    assert response.text == "Hi"
    provenance = response.metadata.provenance
    noted = [spot for spot, why in provenance.items() if why is Provenance.MISTYPED]
    assert noted == ([] if path is None else [f"metadata.extensions.{path}"])
    found: Any = response.metadata.extensions
    for key in () if path is None else path.replace("[", ".").replace("]", "").split("."):
        found = found[int(key) if key.isdigit() else key]
    assert found is not None


@pytest.mark.parametrize(
    "made",
    [
        {"generated_text": "Hi", "details": "x"},
        {"generated_text": "Hi", "details": details(best_of_sequences=[1])},
        {"generated_text": "Hi", "details": {"finish_reason": 7}},
        event(1, token("Hi"), 7),
        {**body({"content": "Hi", "tool_calls": [3]}), "id": ""},
    ],
)
def test_the_text_before_what_is_not_understood_is_kept(made: Any) -> None:
    with pytest.raises(WireTypeError) as caught:
        tgi(made)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi"


def test_a_null_takes_nothing_back() -> None:
    first = event(1, token("Hi"), details=details(input_length=5), seed=7)
    response = tgi(first, event(2, token("!"), "Hi!", details("length", None), seed=None))  # type: ignore[arg-type]
    assert (response.text, response.usage) == ("Hi!", UsageInfo(5, 2))
    assert left(response)["seed"] == 7


# Sections 3 and 4: the OpenAI layer.


def call(arguments: Any, name: str | None = None, id: Any = "0") -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize("id", ["0", "12", 0, 3])
def test_a_count_is_no_id(id: Any) -> None:
    response = tgi(body(call("{}", "dim", id)))
    assert response.tool_calls[0].id not in ("0", "12", "3")
    assert response.metadata.provenance["message.tool_calls[0].id"] == "synthetic"
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.raw_finish_reason == "stop"


def test_an_id_that_is_one_stays() -> None:
    assert tgi(body(call("{}", "dim", "ab-1"))).tool_calls[0].id == "ab-1"


def test_a_call_may_be_the_end() -> None:
    pieces = [chunk(call("{", "dim")), chunk(call('"a": "}", ')), chunk(call('"b": [1]}'))]
    response = tgi(*pieces, done=True)
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.raw_finish_reason is None
    assert response.tool_calls[0].parsed() == {"a": "}", "b": [1]}
    assert response.metadata.provenance["finish_reason"] == "derived"
    with pytest.raises(IncompleteStreamError) as caught:
        tgi(*pieces[:2], done=True)
    assert caught.value.partial is not None
    assert caught.value.partial.tool_calls[0].arguments == '{"a": "}", '


def test_a_word_after_the_call_counts() -> None:
    response = tgi(chunk(call("{}", "dim")), chunk({"content": ""}, "length"), done=True)
    assert response.finish_reason is FinishReason.LENGTH
    response = tgi(chunk(call("{}", "dim")), chunk({"content": ""}, "stop"), done=True)
    assert (response.finish_reason, response.raw_finish_reason) == (FinishReason.TOOL_CALLS, "stop")


def test_more_after_a_complete_call_is_an_error() -> None:
    with pytest.raises(TrailingContentError) as caught:
        tgi({**chunk(call("{}", "dim")), "id": ""}, {**chunk({"content": "And"}), "id": ""}, done=True)
    assert caught.value.partial is not None
    assert caught.value.partial.tool_calls[0].arguments == "{}"


def test_old_servers_send_arguments_as_an_object() -> None:
    response = tgi(body(call({"a": 1}, "dim", 0), "eos_token"))
    assert response.tool_calls[0].arguments == '{"a":1}'


def test_version_1_4_sends_its_one_call_alone() -> None:
    only = {"id": 0, "type": "function", "function": {"name": "dim", "parameters": {"a": 1}}}
    response = tgi(body({"tool_calls": only}, "eos_token"))
    assert [(c.name, c.arguments) for c in response.tool_calls] == [("dim", '{"a":1}')]
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert left(response)["choices"][0]["message"] == {"tool_calls": {"id": 0}}
    old = {"name": "dim", "arguments": "{}"}
    both = tgi(body({"tool_calls": {**only, "id": "0"}, "function_call": old}, "eos_token"))
    assert [c.name for c in both.tool_calls] == ["dim"]
    assert left(both)["choices"][0]["message"]["function_call"] == old
    with pytest.raises(WireTypeError) as caught:
        tgi(body({"tool_calls": {**only, "function": 7}}))
    assert caught.value.place == "event 1, choices[0].message.tool_calls.function"


def test_version_1_4_streams_calls_without_a_name() -> None:
    pieces = [
        {"index": 0, "id": "", "function": {"name": None, "arguments": text}} for text in ('{"a"', ": 1}")
    ]
    with pytest.raises(MappingError, match="has no name") as caught:
        tgi(*[chunk({"tool_calls": piece}) for piece in pieces], chunk({}, "eos_token"), done=True)
    assert caught.value.partial is not None
    assert caught.value.partial.segments[0].content == '{"a": 1}'


def test_usage_of_a_choice_without_a_number() -> None:
    assert tgi(
        {"id": "", "choices": [{"text": "Hi", "finish_reason": "length"}], "usage": usage(3, 2)}
    ).usage == (UsageInfo(3, 2))


def test_several_prompts_have_counts_of_their_own() -> None:
    def part(index: int, text: str, word: str, counts: Any = None) -> dict[str, Any]:
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": word}
        return {"id": "", "object": "text_completion", "choices": [choice], "usage": counts}

    response = tgi(
        part(0, "Hi", ""),
        part(1, "Yo", ""),
        part(1, "!", "length", usage(3, 2)),
        part(0, ".", "eos_token", usage(4, 5)),
        done=True,
    )
    assert response.text == "Hi."
    assert response.alternatives[0].message.content == "Yo!"
    assert response.usage == UsageInfo(7, 7)
    assert response.metadata.provenance["usage.prompt_tokens"] == "derived"
    assert left(response)["usage"] == usage(4, 5)


def test_the_probabilities_of_a_completion_have_no_tokens() -> None:
    choice = {"index": 0, "text": "Hi", "logprobs": [-0.5, -1.5], "finish_reason": "length"}
    response = tgi({"id": "", "choices": [choice]})
    assert response.logprobs is None
    assert left(response)["choices"] == [{"index": 0, "logprobs": [-0.5, -1.5]}]


# Section 7: errors.


@pytest.mark.parametrize(
    ("status", "word", "text", "kind", "retryable"),
    [
        (422, "validation", "Input validation error: no", ErrorKind.INVALID_REQUEST, False),
        (422, "validation", "Input validation error: `inputs` must have less than 9 tokens. Given: 12",
         ErrorKind.CONTEXT_OVERFLOW, False),
        (422, "template_error", "Template error: no", ErrorKind.INVALID_REQUEST, False),
        (422, "tool_error", "Tool error: no", ErrorKind.INVALID_REQUEST, False),
        (424, "generation", "Request failed during generation: no", ErrorKind.SERVER, True),
        (429, "overloaded", "Model is overloaded", ErrorKind.RATE_LIMIT, True),
        (500, "incomplete_generation", "Incomplete generation", ErrorKind.SERVER, True),
        (400, "unheard_of", "What?", ErrorKind.INVALID_REQUEST, False),
        (503, None, "no healthy upstream", ErrorKind.SERVER, True),
    ],
)  # fmt: skip
def test_http_errors(status: int, word: Any, text: str, kind: ErrorKind, retryable: bool) -> None:
    sent = text.encode() if word is None else orjson.dumps({"error": text, "error_type": word})
    error = normalize(sent, "tgi", status=status).error_info
    assert error is not None
    assert (error.kind, error.retryable, error.status, error.message) == (kind, retryable, status, text)


# Who it is.


@pytest.mark.parametrize(
    ("said", "recognition"),
    [
        ({"generated_text": "Hi", "details": {}}, Recognition.CERTAIN),
        (event(1, token("Hi")), Recognition.CERTAIN),
        ([{"generated_text": "Hi"}], Recognition.POSSIBLE),
        ({"error": "no", "error_type": "validation"}, Recognition.CERTAIN),
        ({**chunk({}), "id": "", "system_fingerprint": "3.3.6-native"}, Recognition.CERTAIN),
        ({**chunk({}), "id": "", "system_fingerprint": "3.1.2-dev0-sha-1a2b"}, Recognition.CERTAIN),
        ({**chunk({}), "id": "x", "system_fingerprint": "3.3.6-native"}, Recognition.POSSIBLE),
        (chunk({}), Recognition.POSSIBLE),
        ({"error": {"message": "no", "http_status_code": 422}}, Recognition.POSSIBLE),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, Recognition.NO),
        ({"type": "message", "content": []}, Recognition.NO),
        ([], Recognition.NO),
        (None, Recognition.NO),
        ("x", Recognition.NO),
    ],
)
def test_recognition(said: Any, recognition: Recognition) -> None:
    assert plugin.recognizes(said) is recognition


def test_the_native_dialect_says_nothing_of_an_error_without_a_word() -> None:
    assert NativeDialect().recognizes({"error": "no"}) is Recognition.NO


# The end of arguments.

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=3), st.data())
def test_an_object_is_complete_with_its_last_brace_wherever_it_is_cut(
    value: Any, data: st.DataObject
) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    arguments = Arguments()
    arguments.add(text[:cut])
    assert not arguments.complete
    arguments.add(text[cut:])
    assert arguments.complete
