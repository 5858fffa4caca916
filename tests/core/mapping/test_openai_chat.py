"""OpenAI's dialect and its look-alikes (provider document "OpenAI Chat Completions")."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest

from crosswalk import (
    ErrorKind,
    FinishReason,
    MappingError,
    ProviderInfo,
    TokenLogprob,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
)
from crosswalk.mapping import OpenAIChatDialect
from wires import body, chunk, ndjson, outcome, read, sse, usage

DIALECT = OpenAIChatDialect()


def made(*events: Any, **options: Any) -> Any:
    return read(DIALECT, sse(*events), **options)[1]


def call(
    name: str | None = None, arguments: Any = None, *, index: int | None = None, id: str | None = None
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    parts = {"index": index, "id": id, "function": {k: v for k, v in function.items() if v is not None}}
    return {key: value for key, value in parts.items() if value is not None}


def chunks_of(*fragments: dict[str, Any]) -> list[Any]:
    return [*(chunk({"tool_calls": [fragment]}) for fragment in fragments), chunk({}, "tool_calls")]


CALLS: dict[str, tuple[list[Any], list[tuple[str, str, str]]]] = {
    "the sheet's interleaved calls": (
        [
            chunk({"role": "assistant", "content": None, "tool_calls": [call("a", "", index=0, id="call_9")]}),
            chunk({"tool_calls": [call("b", "{}", index=1, id="call_8")]}),
            chunk({"tool_calls": [call("", '{"k":1}', index=0, id="")]}),
            chunk({}, "tool_calls"),
            chunk(None, usage=usage(12, 20)),
        ],
        [("call_9", "a", '{"k":1}'), ("call_8", "b", "{}")],
    ),
    "the sheet's missing index": (
        [
            chunk({"role": "assistant", "tool_calls": [call("read", '{"p":"a"}', id="call_297")]}),
            chunk({"tool_calls": [call("read", '{"p":"b"}', id="call_298")]}, "tool_calls"),
        ],
        [("call_297", "read", '{"p":"a"}'), ("call_298", "read", '{"p":"b"}')],
    ),
    "objects for arguments, no index": (
        chunks_of(call("go", {"a": 1}, id="x"), call("go", {"b": 2}, id="y")),
        [("x", "go", '{"a":1}'), ("y", "go", '{"b":2}')],
    ),
    "objects for arguments, index 0 for all, no ids": (
        chunks_of(call("go", {"a": 1}, index=0), call("go", {"b": 2}, index=0)),
        [("call_0", "go", '{"a":1}'), ("call_1", "go", '{"b":2}')],
    ),
    "an object for arguments after the name": (
        chunks_of(call("go", index=0, id="x"), call(None, {"a": 1}, index=0)),
        [("x", "go", '{"a":1}')],
    ),
    "no arguments at all": (chunks_of(call("go", index=0, id="x")), [("x", "go", "{}")]),
    "empty arguments": (chunks_of(call("go", "", index=0, id="x")), [("x", "go", "{}")]),
    "several fragments in one chunk": (
        [
            chunk({"tool_calls": [call("a", "{}", index=0, id="x"), call("b", index=1, id="y"), call(None, "{", index=1)]}),
            chunk({"content": None, "tool_calls": [call(None, '"x": 4', index=1)]}),
            chunk({"tool_calls": [call(None, "}", index=1)]}, "tool_calls"),
        ],
        [("x", "a", "{}"), ("y", "b", '{"x": 4}')],
    ),
    "one id for two calls": (
        [body({"content": None, "tool_calls": [call("a", "{}", id="0"), call("b", "{}", id="0")]}, "tool_calls")],
        [("0", "a", "{}"), ("call_1", "b", "{}")],
    ),
    "a made-up id that is taken": (
        [body({"content": None, "tool_calls": [call("a", "{}"), call("b", "{}", id="call_0")]})],
        [("call_0_", "a", "{}"), ("call_0", "b", "{}")],
    ),
    "arguments that are no JSON": (
        [body({"content": None, "tool_calls": [call("a", '{"x": ', id="x")]}, "length")],
        [("x", "a", '{"x": ')],
    ),
    "the deprecated function_call": (
        [body({"content": None, "function_call": {"name": "a", "arguments": '{"x":1}'}}, "function_call")],
        [("call_0", "a", '{"x":1}')],
    ),
    "the deprecated function_call in pieces": (
        [
            chunk({"function_call": {"name": "a", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"x"'}}),
            chunk({"function_call": {"arguments": ":1}"}}),
            chunk({}, "function_call"),
        ],
        [("call_0", "a", '{"x":1}')],
    ),
    "a custom tool": (
        [
            body(
                {
                    "content": "Let me look.",
                    "tool_calls": [
                        {"id": "x", "type": "function", "function": {"name": "find", "arguments": "{}"}},
                        {"id": "y", "type": "custom", "custom": {"name": "shell", "input": "ls -la"}},
                    ],
                },
                "tool_calls",
            )
        ],
        [("x", "find", "{}"), ("y", "shell", "ls -la")],
    ),
    "a custom tool in pieces": (
        chunks_of(
            {"index": 0, "id": "y", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
            {"index": 0, "custom": {"input": " -la"}},
        ),
        [("y", "shell", "ls -la")],
    ),
    "a whole call on the finish chunk": (
        [chunk({"tool_calls": [call("a", "{}", index=0, id="x")]}, "tool_calls")],
        [("x", "a", "{}")],
    ),
    "indices from 1": (
        chunks_of(call("a", "{", index=1, id="x"), call(None, "}", index=1), call("b", "{}", index=2, id="y")),
        [("x", "a", "{}"), ("y", "b", "{}")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_tool_calls_of_every_style(case: str) -> None:
    """Each call once, whole, in the order of its first appearance; a made-up id is marked."""
    events, expected = CALLS[case]
    response = made(*events)
    assert [(c.id, c.name, c.arguments) for c in response.tool_calls] == expected
    assert response.finish_reason in {FinishReason.TOOL_CALLS, FinishReason.LENGTH}
    synthetic = {
        f"message.tool_calls[{number}].id"
        for number, (id, _, _) in enumerate(expected)
        if not any(f"'id': '{id}'" in str(event) for event in events)
        or [other for other, _, _ in expected].index(id) != number
    }
    marked = {path for path, why in response.metadata.provenance.items() if why == "synthetic"}
    assert marked - {"id"} == synthetic


@pytest.mark.parametrize(
    ("word", "called", "reason"),
    [
        ("stop", False, FinishReason.STOP),
        ("stop", True, FinishReason.TOOL_CALLS),
        ("length", True, FinishReason.LENGTH),
        ("tool_calls", True, FinishReason.TOOL_CALLS),
        ("tool_calls", False, FinishReason.STOP),
        ("function_call", True, FinishReason.TOOL_CALLS),
        ("content_filter", False, FinishReason.CONTENT_FILTER),
        ("content_filter", True, FinishReason.CONTENT_FILTER),
    ],
)
def test_finish_words(word: str, called: bool, reason: FinishReason) -> None:
    """What OpenAI says, set right by whether there is a call; the word is kept."""
    message = {"content": "Hi", "tool_calls": [call("go", "{}", id="x")] if called else []}
    response = made(body(message, word))
    assert (response.finish_reason, response.raw_finish_reason) == (reason, word)


@pytest.mark.parametrize("word", ["eos", "STOP", "abort", "model_length", "end_turn"])
def test_words_of_other_servers_are_theirs_to_map(word: str) -> None:
    """The dialect itself knows OpenAI's words; a subclass adds its own."""
    _, error = outcome(DIALECT, sse(body({"content": "Hi"}, word)))
    assert isinstance(error, UnknownFinishReasonError)
    assert error.reason == word


@pytest.mark.parametrize("word", [None, ""])
def test_no_word_is_no_end(word: str | None) -> None:
    """Null or empty, in a body as in a stream: the answer did not end; with a word before it, it did."""
    _, error = outcome(DIALECT, sse(body({"content": "Hi"}, word)))
    assert isinstance(error, MappingError)
    assert made(chunk({"content": "Hi"}, "length"), chunk({}, word)).finish_reason is FinishReason.LENGTH


USAGES: list[tuple[Any, UsageInfo | None, Any]] = [
    (usage(40, 30), UsageInfo(40, 30), None),
    (
        usage(40, 30, prompt_tokens_details={"cached_tokens": 32, "cache_write_tokens": 4, "audio_tokens": 0},
              completion_tokens_details={"reasoning_tokens": 12, "audio_tokens": 1}),
        UsageInfo(40, 30, 32, 12, 4),
        {"prompt_tokens_details": {"audio_tokens": 0}, "completion_tokens_details": {"audio_tokens": 1}},
    ),
    (usage(1, 2, prompt_tokens_details=None, completion_tokens_details=None), UsageInfo(1, 2), None),
    (usage(1, 2, prompt_tokens_details={}), UsageInfo(1, 2), None),
    (usage(1, 2) | {"total_tokens": 325}, UsageInfo(1, 2), {"total_tokens": 325}),
    (usage(1, 2) | {"total_tokens": None}, UsageInfo(1, 2), {"total_tokens": None}),
    ({"prompt_tokens": 1, "completion_tokens": None, "total_tokens": 1}, UsageInfo(1, 0), None),
    ({"completion_tokens": 2, "total_tokens": 2}, UsageInfo(0, 2), {"total_tokens": 2}),
    (usage(1, 2, cost=0.5), UsageInfo(1, 2), {"cost": 0.5}),
    ({"prompt_tokens_details": {"cached_tokens": 3}}, UsageInfo(0, 0, 3), None),
    ({"cost": 0.5}, None, {"cost": 0.5}),
    ({}, None, None),
    (None, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "expected", "left"), USAGES)
@pytest.mark.parametrize("streamed", [True, False])
def test_usage(counts: Any, expected: UsageInfo | None, left: Any, streamed: bool) -> None:
    """Counts that are not there are absent; a total that is not the sum, and every other count, is kept."""
    whole = body({"content": "Hi"}, usage=counts)
    events = [chunk({"content": "Hi"}, "stop"), chunk(None, usage=counts)] if streamed else [whole]
    response = made(*events)
    assert response.usage == (expected or UsageInfo.EMPTY)
    assert response.metadata.extensions.get("usage") == left
    absent = {
        p for p, why in response.metadata.provenance.items() if p.startswith("usage") and why == "absent"
    }
    if expected is None:
        assert absent == {"usage"}
    else:
        sent = [name for name in ("prompt_tokens", "completion_tokens") if counts.get(name) is None]
        assert absent == {f"usage.{name}" for name in sent}


CONTENTS: dict[str, tuple[Any, str, str, str | None, Any]] = {
    "text": ({"content": "Hi"}, "Hi", "", None, None),
    "null": ({"content": None}, "", "", None, None),
    "reasoning": ({"content": "Hi", "reasoning": "hm"}, "Hi", "hm", None, None),
    "reasoning_content": ({"content": "Hi", "reasoning_content": "hm"}, "Hi", "hm", None, None),
    "both, equal": ({"content": "Hi", "reasoning": "hm", "reasoning_content": "hm"}, "Hi", "hm", None, None),
    "both, one empty": ({"content": "Hi", "reasoning": "", "reasoning_content": "hm"}, "Hi", "hm", None, None),
    "both, one null": ({"content": "Hi", "reasoning": "hm", "reasoning_content": None}, "Hi", "hm", None, None),
    "both, not equal": (
        {"content": "Hi", "reasoning": "hm", "reasoning_content": "hmm"}, "Hi", "hm", None, {"reasoning_content": "hmm"},
    ),
    "refusal": ({"content": None, "refusal": "No."}, "", "", "No.", None),
    "another role": ({"role": "narrator", "content": "Hi"}, "Hi", "", None, {"role": "narrator"}),
    "annotations": ({"content": "Hi", "annotations": [{"type": "x"}]}, "Hi", "", None, {"annotations": [{"type": "x"}]}),
    "nulls": ({"content": "Hi", "audio": None, "refusal": None}, "Hi", "", None, {"audio": None}),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTENTS)
@pytest.mark.parametrize("key", ["message", "delta"])
def test_contents(case: str, key: str) -> None:
    """Text, reasoning and refusal of a message or delta; what else it holds is left."""
    said, text, reasoning, refusal, left = CONTENTS[case]
    event = chunk() | {"choices": [{"index": 0, key: said, "finish_reason": "stop"}]}
    response = made(event)
    assert (response.text, response.reasoning, response.refusal) == (text, reasoning, refusal)
    rest = response.metadata.extensions.get("choices")
    assert rest == (None if left is None else ({"index": 0, key: left},))


def test_nothing_of_an_odd_choice_is_lost() -> None:
    """Where a choice says the same thing in two places only one is read, and the other is left."""
    both = {
        "index": 0,
        "delta": {"content": "Hi"},
        "message": {"content": "All"},
        "text": "Text",
        "finish_reason": "stop",
    }
    response = made(chunk() | {"choices": [both]})
    assert response.text == "Hi"
    assert response.metadata.extensions["choices"] == (
        {"index": 0, "message": {"content": "All"}, "text": "Text"},
    )
    response = made(
        {"choices": [{"index": 0, "message": {"content": "Hi"}, "text": "Text", "finish_reason": "stop"}]}
    )
    assert response.text == "Hi"
    assert response.metadata.extensions["choices"] == ({"index": 0, "text": "Text"},)
    response = made(
        {"choices": [{"index": 0, "message": {"content": ""}, "text": "Text", "finish_reason": "stop"}]}
    )
    assert response.text == "Text"
    assert "choices" not in response.metadata.extensions
    shapes = {"tokens": ["Hi"], "token_logprobs": [-1], "content": [{"token": "Ho", "logprob": -2}]}
    response = made({"choices": [{"text": "Hi", "finish_reason": "stop", "logprobs": shapes}]})
    assert response.logprobs == (TokenLogprob("Hi", -1),)
    assert response.metadata.extensions["choices"] == (
        {"logprobs": {"content": ({"token": "Ho", "logprob": -2},)}},
    )
    shapes = {"tokens": None, "token_logprobs": [-1], "content": [{"token": "Ho", "logprob": -2}]}
    response = made({"choices": [{"text": "Hi", "finish_reason": "stop", "logprobs": shapes}]})
    assert response.logprobs == (TokenLogprob("Ho", -2),)
    assert response.metadata.extensions["choices"] == ({"logprobs": {"token_logprobs": (-1,)}},)


def test_logprobs_add_up() -> None:
    """In a stream the tokens of all chunks, in order; what an entry adds to them is left."""

    def piece(token: str, **more: Any) -> Any:
        logprobs = {
            "content": [{"token": token, "logprob": -1, "bytes": None, "top_logprobs": [], **more}],
            "refusal": None,
        }
        return chunk() | {"choices": [{"index": 0, "delta": {"content": token}, "logprobs": logprobs}]}

    response = made(piece("a"), piece("b", token_id=7), chunk({}, "stop"))
    assert response.logprobs == (TokenLogprob("a", -1), TokenLogprob("b", -1))
    assert response.metadata.extensions["choices"][0]["logprobs"]["content"] == ({"token_id": 7},)
    assert made(body({"content": "Hi"})).logprobs is None
    empty = {"index": 0, "message": {"content": "Hi"}, "logprobs": {"content": []}, "finish_reason": "stop"}
    assert made({"choices": [empty]}).logprobs is None


def test_azures_filters() -> None:
    """The head chunk names nobody; an annotation may come without a delta, and after the end."""
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    head = {"id": "", "object": "", "created": 0, "model": "", "choices": [],
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}], "usage": None}  # fmt: skip
    note = {"id": "", "object": "", "created": 0, "model": "", "usage": None,
            "choices": [{"index": 0, "finish_reason": None, "content_filter_results": safe,
                         "content_filter_offsets": {"check_offset": 44}}]}  # fmt: skip
    response = made(head, chunk({"role": "assistant", "content": "Hello"}), chunk({}, "stop"), note)
    assert (response.id, response.model, response.created.timestamp()) == ("chatcmpl-1", "m", 1)
    assert response.text == "Hello"
    assert response.finish_reason is FinishReason.STOP
    left = response.metadata.extensions
    assert left["prompt_filter_results"][0]["content_filter_results"] == safe
    assert left["choices"][0]["content_filter_offsets"] == {"check_offset": 44}
    cut = {"index": 0, "finish_reason": "content_filter", "content_filter_results": safe}
    response = made(chunk({"content": "Hel"}), chunk() | {"choices": [cut]})
    assert (response.text, response.finish_reason) == ("Hel", FinishReason.CONTENT_FILTER)


def test_openrouters_error_inside_a_chunk() -> None:
    """An error beside choices is an error; the whole chunk is kept with it."""
    broken = chunk({"content": ""}, "error", error={"code": 502, "message": "Provider disconnected"})
    response = made(chunk({"content": "Par"}), broken)
    assert (response.text, response.refusal) == ("Par", "Provider disconnected")
    assert response.error_info.kind is ErrorKind.SERVER
    assert response.error_info.raw == broken


@pytest.mark.parametrize("error", [None, "", {}, [], False])
def test_no_error_is_no_error(error: Any) -> None:
    """An empty error field is a field like any other."""
    response = made(body({"content": "Hi"}, error=error))
    assert response.text == "Hi"
    assert response.metadata.extensions["error"] == (() if error == [] else error)


@pytest.mark.parametrize(
    "created", [None, 0, -1, 1.5, "2026-01-01", True, 10**15, 2**62], ids=lambda value: repr(value)
)
def test_a_time_that_is_none_is_left(created: Any) -> None:
    """What cannot be a time of creation stays in the extensions, and the clock is asked."""
    response = made(body({"content": "Hi"}) | {"created": created})
    assert response.metadata.provenance["created"] == "synthetic"
    assert response.metadata.extensions["created"] == created


def test_who_answered_is_said_once() -> None:
    """Later chunks that name another id, model or time do not change the response, and are kept."""
    other = {"id": "other", "model": "n", "created": 2}
    response = made(chunk({"content": "a"}), chunk({}, "stop") | other)
    assert (response.id, response.model, response.created.timestamp()) == ("chatcmpl-1", "m", 1)
    assert {key: response.metadata.extensions[key] for key in other} == other
    response = made({"choices": [{"text": "Hi", "finish_reason": "stop"}], "id": None, "model": None})
    assert (response.id, response.model) == ("made", "unknown")
    assert response.metadata.provenance["model"] == "absent"


def test_choices_may_have_no_index() -> None:
    """Then their place is their number."""
    event = {"choices": [{"text": "a", "finish_reason": "stop"}, {"text": "b", "finish_reason": "length"}]}
    response = made(event)
    assert (response.text, response.alternatives[0].message.text) == ("a", "b")


# --------------------------------------------------------------------- a delta and a message in one choice


NOTHING: list[Any] = [None, {}, {"content": ""}, {"role": "assistant", "content": None}, {"tool_calls": []}]


def both(delta: Any, message: Any, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": message, "delta": delta, **more}
    return {"id": "made", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.mark.parametrize("delta", NOTHING)
@pytest.mark.parametrize("words", [{"content": "Noon."}, {"reasoning": "So."}, {"refusal": "No."}])
def test_a_message_beside_an_empty_delta_is_read(delta: Any, words: dict[str, str]) -> None:
    alone = made(body(words))
    response = made(both(delta, {"role": "assistant", **words}))
    assert response.segments == alone.segments
    assert response.finish_reason is FinishReason.STOP
    assert "choices" not in response.metadata.extensions


def test_a_call_in_a_message_beside_an_empty_delta_is_read() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [call("go", "{}", id="x")]}
    response = made(both({}, message, "tool_calls"))
    assert [(made.id, made.name) for made in response.tool_calls] == [("x", "go")]
    assert "choices" not in response.metadata.extensions


@pytest.mark.parametrize("message", [None, {}, {"role": "assistant"}, {"role": "assistant", "content": ""}])
@pytest.mark.parametrize("delta", [{"content": "Noon."}, {"role": "assistant", "content": "Noon."}])
def test_a_delta_beside_an_empty_message_is_read(delta: Any, message: Any) -> None:
    response = made(both(delta, message))
    assert response.text == "Noon."
    assert "choices" not in response.metadata.extensions


@pytest.mark.parametrize(
    ("delta", "message", "text", "left"),
    [
        ({"content": "Hi"}, {"content": "Hi"}, "Hi", None),
        ({"content": "Hi"}, {"content": "Ho", "role": "assistant"}, "Hi", {"message": {"content": "Ho"}}),
        ({"content": "Hi"}, {"content": "Hi", "n": 0}, "Hi", {"message": {"n": 0}}),
        ({"content": "Hi", "n": 1}, {"n": 1}, "Hi", {"delta": {"n": 1}}),
        ({"content": "Hi", "n": 1}, {"n": True}, "Hi", {"delta": {"n": 1}, "message": {"n": True}}),
        ({"content": "Hi"}, {"role": "tool"}, "Hi", {"message": {"role": "tool"}}),
        ({"content": "Hi"}, 0, "Hi", {"message": 0}),
        ({"content": 0}, {"content": "Hi"}, "Hi", {"delta": {"content": 0}}),
        ({"n": 1}, {"content": "Hi"}, "Hi", {"delta": {"n": 1}}),
        ({"n": 1}, {"content": ""}, "", {"delta": {"n": 1}}),
        ({}, {"n": 1}, "", {"message": {"n": 1}}),
    ],
)
def test_what_only_the_other_part_says_is_kept(delta: Any, message: Any, text: str, left: Any) -> None:
    response = made(both(delta, message))
    assert response.text == text
    assert response.metadata.extensions.thawed().get("choices") == (left and [{"index": 0, **left}])


@pytest.mark.parametrize(
    ("delta", "message", "place"),
    [
        ({}, 5, "choices[0].message"),
        ({}, {"content": 5}, "choices[0].message.content"),
        (5, {"content": "Hi"}, "choices[0].delta"),
        ({"content": 5}, {"content": "Hi"}, "choices[0].delta.content"),
    ],
)
def test_a_part_of_another_type_that_speaks_is_named(delta: Any, message: Any, place: str) -> None:
    with pytest.raises(WireTypeError, match=f" {re.escape(place)}:"):
        made(both(delta, message))


def test_a_message_that_repeats_the_deltas_is_not_read() -> None:
    response = made(
        both({"role": "assistant", "content": ""}, {"role": "assistant", "content": ""}, None),
        both({"content": "Hi"}, {"content": "Hi"}, None),
        both({"content": " you"}, {"content": "Hi you"}, None),
        both({"content": ""}, {"content": "Hi you"}),
    )
    assert response.text == "Hi you"


def test_a_message_after_the_text_of_a_completion_is_not_read() -> None:
    response = made(both({}, None, None, text="Hi"), both({}, {"content": "Hi"}))
    assert response.text == "Hi"


def test_each_choice_speaks_for_itself() -> None:
    event = both({}, {"content": "a"})
    event["choices"].append({"delta": {}, "message": {"content": "b"}, "finish_reason": "stop", "index": 1})
    event["choices"].append({"delta": {"content": "c"}, "finish_reason": "stop", "index": 2})
    response = made(event)
    assert [response.text, *(other.message.text for other in response.alternatives)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("event", "place"),
    [
        ([], "the event"),
        ("x", "the event"),
        ({"choices": 1}, "choices"),
        ({"choices": [1]}, "choices[0]"),
        ({"choices": [{"index": "0"}]}, "choices[0].index"),
        ({"choices": [{"index": -1}]}, "choices[0].index"),
        ({"choices": [{"delta": "x"}]}, "choices[0].delta"),
        ({"choices": [{"message": []}]}, "choices[0].message"),
        ({"choices": [{"delta": 0, "message": {"content": "x"}}]}, "choices[0].delta"),
        ({"choices": [{"delta": {"content": 1}}]}, "choices[0].delta.content"),
        ({"choices": [{"message": {"content": ["x"]}}]}, "choices[0].message.content"),
        ({"choices": [{"delta": {"reasoning": 1}}]}, "choices[0].delta.reasoning"),
        ({"choices": [{"delta": {"refusal": 1}}]}, "choices[0].delta.refusal"),
        ({"choices": [{"text": 1}]}, "choices[0].text"),
        ({"choices": [{"finish_reason": 1}]}, "choices[0].finish_reason"),
        ({"choices": [{"logprobs": 1.5}]}, "choices[0].logprobs"),
        ({"choices": [{"logprobs": {"content": {}}}]}, "choices[0].logprobs.content"),
        ({"choices": [{"delta": {"tool_calls": {}}}]}, "choices[0].delta.tool_calls"),
        ({"choices": [{"delta": {"tool_calls": ["x"]}}]}, "choices[0].delta.tool_calls[0]"),
        ({"choices": [{"delta": {"tool_calls": [{"index": "0"}]}}]}, "choices[0].delta.tool_calls[0].index"),
        ({"choices": [{"delta": {"tool_calls": [{"id": 0}]}}]}, "choices[0].delta.tool_calls[0].id"),
        ({"choices": [{"delta": {"tool_calls": [{"function": "x"}]}}]}, "choices[0].delta.tool_calls[0].function"),
        ({"choices": [{"delta": {"tool_calls": [{"function": {"name": 1}}]}}]}, "choices[0].delta.tool_calls[0].function.name"),
        ({"choices": [{"delta": {"tool_calls": [{"function": {"arguments": 1}}]}}]}, "choices[0].delta.tool_calls[0].function.arguments"),
        ({"choices": [{"delta": {"tool_calls": [{"custom": 1}]}}]}, "choices[0].delta.tool_calls[0].custom"),
        ({"choices": [{"delta": {"function_call": "x"}}]}, "choices[0].delta.function_call"),
        ({"choices": [{"delta": {"function_call": {"arguments": 1}}}]}, "choices[0].delta.function_call.arguments"),
        ({"choices": [], "id": 1}, "id"),
        ({"choices": [], "model": []}, "model"),
        ({"choices": [], "usage": 1}, "usage"),
        ({"choices": [], "usage": {"prompt_tokens": "1"}}, "usage.prompt_tokens"),
        ({"choices": [], "usage": {"prompt_tokens": -1}}, "usage.prompt_tokens"),
        ({"choices": [], "usage": {"completion_tokens": 1.0}}, "usage.completion_tokens"),
        ({"choices": [], "usage": {"prompt_tokens_details": 1}}, "usage.prompt_tokens_details"),
        ({"choices": [], "usage": {"prompt_tokens_details": {"cached_tokens": True}}}, "usage.prompt_tokens_details.cached_tokens"),
        ({"choices": [], "usage": {"completion_tokens_details": {"reasoning_tokens": ""}}}, "usage.completion_tokens_details.reasoning_tokens"),
    ],
)  # fmt: skip
def test_a_leaf_of_another_type_is_named(event: Any, place: str) -> None:
    """The error leads to the very leaf, and keeps what came before."""
    data = (
        ndjson(chunk({"content": "Hi"}), event)
        if isinstance(event, dict)
        else sse(chunk({"content": "Hi"}), event)
    )
    partial, error = outcome(DIALECT, data)
    assert isinstance(error, WireTypeError)
    assert error.place == f"event 2, {place}"
    assert partial.text == "Hi"


@pytest.mark.parametrize(
    ("event", "word"), [({"object": "list", "data": []}, "list"), ({}, None), ({"x": 1}, None)]
)
def test_an_event_without_choices_is_unknown(event: Any, word: str | None) -> None:
    """It is named as it names itself; kept, it is extensions alone."""
    _, error = outcome(DIALECT, sse(chunk({"content": "Hi"}), event))
    assert isinstance(error, UnknownEventError)
    assert error.event_type == word
    response = made(chunk({"content": "Hi"}, "stop"), event, unknown="keep")
    assert response.text == "Hi"


def test_choices_may_be_null() -> None:
    """No choices at all say nothing, as an empty list does."""
    assert made(chunk({"content": "Hi"}, "stop"), {"choices": None, "usage": usage(1, 2)}).usage == UsageInfo(
        1, 2
    )


class Other(OpenAIChatDialect):
    """A look-alike that names one field differently and knows a word more."""

    title: ClassVar[str] = "Other"
    documentation: ClassVar[str | None] = "https://example.org"
    cache_write_field: ClassVar[str] = "written"
    finish_reasons: ClassVar[Any] = {**OpenAIChatDialect.finish_reasons, "eos": FinishReason.STOP}


def test_a_subclass_says_what_differs() -> None:
    """Title, words and the name of a field; the table of what is taken follows."""
    counts = usage(9, 1, prompt_tokens_details={"written": 3, "cache_write_tokens": 7})
    response = read(Other(), sse(body({"content": "Hi"}, "eos", usage=counts)))[1]
    assert response.usage == UsageInfo(9, 1, None, None, 3)
    assert response.metadata.extensions["usage"] == {"prompt_tokens_details": {"cache_write_tokens": 7}}
    assert response.finish_reason is FinishReason.STOP
    info = Other().provider_info()
    assert isinstance(info, ProviderInfo)
    assert (info.title, info.documentation) == ("Other", "https://example.org")
    assert info.endpoints == ("/v1/chat/completions", "/v1/completions")
    assert made(body({"content": "Hi"}, usage=counts)).usage.cache_write_tokens == 7
