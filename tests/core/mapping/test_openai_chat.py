"""OpenAI's dialect and its look-alikes (provider document "OpenAI Chat Completions")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pytest

from crosswalk import (
    ErrorKind,
    FinishReason,
    MappingError,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    TrailingContentError,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
)
from crosswalk.errors import PluginError
from crosswalk.plugins import (
    MappingState,
    OpenAIChatDialect,
    ProviderHooks,
    ProviderInfo,
    Recognition,
    UsageDetails,
    hookimpl,
    take_text,
)
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
    """Each call once, whole, in the order of its first appearance. A made-up id is marked."""
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
        ("tool_calls", False, FinishReason.TOOL_CALLS),
        ("tool_call", True, FinishReason.TOOL_CALLS),
        ("function_call", True, FinishReason.TOOL_CALLS),
        ("content_filter", False, FinishReason.CONTENT_FILTER),
        ("content_filter", True, FinishReason.CONTENT_FILTER),
        # What single servers say, whoever passes it on.
        ("abort", False, FinishReason.CANCELLED),
        ("error", False, FinishReason.ERROR),
        ("insufficient_system_resource", False, FinishReason.ERROR),
        ("max_tokens", False, FinishReason.LENGTH),
        ("model_length", False, FinishReason.LENGTH),
        ("repetition", True, FinishReason.LENGTH),
    ],
)
def test_finish_words(word: str, called: bool, reason: FinishReason) -> None:
    """The words of OpenAI and its look-alikes. A call makes ``tool_calls`` of a ``stop``, and the word is kept."""
    message = {"content": "Hi", "tool_calls": [call("go", "{}", id="x")] if called else []}
    response = made(body(message, word))
    assert (response.finish_reason, response.raw_finish_reason) == (reason, word)


@pytest.mark.parametrize("word", ["eos", "end_turn"])
def test_words_of_other_dialects_are_theirs_to_map(word: str) -> None:
    """A subclass adds its own."""
    _, error = outcome(DIALECT, sse(body({"content": "Hi"}, word)))
    assert isinstance(error, UnknownFinishReasonError)
    assert error.reason == word


@pytest.mark.parametrize("word", [None, ""])
def test_no_word_is_no_end(word: str | None) -> None:
    """Null or empty, in a body as in a stream: the answer did not end. After a word, it did."""
    _, error = outcome(DIALECT, sse(body({"content": "Hi"}, word)))
    assert isinstance(error, MappingError)
    assert made(chunk({"content": "Hi"}, "length"), chunk({}, word)).finish_reason is FinishReason.LENGTH


USAGES: list[tuple[Any, UsageInfo | None, Any]] = [
    (usage(40, 30), UsageInfo(40, 30), None),
    (
        usage(40, 30, prompt_tokens_details={"cached_tokens": 32, "cache_write_tokens": 4, "audio_tokens": 0},
              completion_tokens_details={"reasoning_tokens": 12, "audio_tokens": 1}),
        UsageInfo(40, 30, 32, 12, 4, details=UsageDetails(audio_input_tokens=0, audio_output_tokens=1)),
        None,
    ),
    (usage(1, 2, prompt_tokens_details=None, completion_tokens_details=None), UsageInfo(1, 2), None),
    (usage(1, 2, prompt_tokens_details={}), UsageInfo(1, 2), None),
    (usage(1, 2) | {"total_tokens": 325}, UsageInfo(1, 2), {"total_tokens": 325}),
    (usage(1, 2) | {"total_tokens": None}, UsageInfo(1, 2), None),
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
    """Counts that are not there are absent. A total that is not the sum, and every other count, is kept."""
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
        not_sent = [name for name in ("prompt_tokens", "completion_tokens") if counts.get(name) is None]
        assert absent == {f"usage.{name}" for name in (*not_sent, *(["total_tokens"] if not_sent else []))}


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
    """Text, reasoning and refusal of a message or delta. Its other fields are left."""
    said, text, reasoning, refusal, left = CONTENTS[case]
    event = chunk() | {"choices": [{"index": 0, key: said, "finish_reason": "stop"}]}
    response = made(event)
    assert (response.text, response.reasoning, response.refusal) == (text, reasoning, refusal)
    rest = response.metadata.extensions.get("choices")
    assert rest == (None if left is None else ({"index": 0, key: left},))


def test_nothing_of_an_odd_choice_is_lost() -> None:
    """If a choice has the same value in two places only one is read, and the other is left."""
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
    assert response.metadata.extensions["choices"] == (
        {"logprobs": {"tokens": None, "token_logprobs": (-1,)}},
    )


def test_logprobs_add_up() -> None:
    """In a stream the tokens of all chunks, in order. Further fields of an entry are left."""

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
    """The head chunk has no name. An annotation may come without a delta, and after the end."""
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
    """An error next to choices is an error. The whole chunk is kept with it."""
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
    ("created", "left"),
    [
        (None, False),
        (0, False),
        (-1, True),
        ("2026-01-01", True),
        (True, True),
        (10**15, True),
        (2**62, True),
    ],
    ids=repr,
)
def test_a_time_that_is_none(created: Any, left: bool) -> None:
    """Without a valid time of creation the clock is asked, and the sent value stays."""
    response = made(body({"content": "Hi"}) | {"created": created})
    provenance = response.metadata.provenance
    assert provenance["created"] == "synthetic"
    assert response.metadata.extensions.get("created") == (created if left else None)
    assert ("metadata.extensions.created" in provenance) is left


def test_a_time_may_have_a_fraction() -> None:
    assert made(body({"content": "Hi"}) | {"created": 1.5}).created.timestamp() == 1.5


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


# --------------------------------------------------------------------- a list of content


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([{"type": "text", "text": "Hi"}], "Hi"),
        ([{"type": "output_text", "text": "Hi"}, {"type": "text", "text": " you"}], "Hi you"),
        ([{"text": "Hi"}, {"type": None, "text": "!"}], "Hi!"),
        ([{"type": "text", "text": ""}], ""),
        ([], ""),
    ],
)
def test_the_text_parts_of_a_list_are_the_text(parts: list[Any], text: str) -> None:
    response = made(body({"content": parts}))
    assert (response.text, response.is_complete) == (text, True)
    assert "message.content" not in response.metadata.provenance
    assert "choices" not in response.metadata.extensions


@pytest.mark.parametrize("form", [{"content": [{"type": "refusal", "refusal": "No."}]}, {"refusal": "No."}])
def test_a_refusal_in_a_list_is_the_refusal(form: dict[str, Any]) -> None:
    """OpenAI documents it as a part of an assistant's content."""
    response = made(body(form))
    assert (response.text, response.refusal, response.incomplete_reason) == ("", "No.", "refusal")
    assert "choices" not in response.metadata.extensions


@pytest.mark.parametrize(
    "part",
    [
        {"type": "refusal", "refusal": None},
        {"type": "odd", "text": "x"},
        {"type": "text"},
        {"type": "text", "text": None},
        {"type": 5, "text": "x"},
        {"odd": 1},
    ],
)
def test_another_part_in_the_place_of_text_leaves_it_unmapped(part: dict[str, Any]) -> None:
    response = made(body({"content": [{"type": "text", "text": "Hi", "odd": 1}, part]}))
    assert response.text == "Hi"
    assert response.metadata.provenance["message.content"] is Provenance.UNMAPPED
    left = response.metadata.extensions.thawed()["choices"][0]["message"]["content"]
    assert left == [{"odd": 1}, part]


@pytest.mark.parametrize("parts", [["Hi"], [{"type": "text", "text": 5}]])
def test_a_part_of_a_wrong_type_is_refused(parts: list[Any]) -> None:
    with pytest.raises(WireTypeError, match=r"choices\[0\]\.message\.content\[0\]"):
        made(body({"content": parts}))


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
        ({"choices": [{"message": {"content": ["x"]}}]}, "choices[0].message.content[0]"),
        ({"choices": [{"delta": {"reasoning": 1}}]}, "choices[0].delta.reasoning"),
        ({"choices": [{"delta": {"refusal": 1}}]}, "choices[0].delta.refusal"),
        ({"choices": [{"text": 1}]}, "choices[0].text"),
        ({"choices": [{"finish_reason": 1}]}, "choices[0].finish_reason"),
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
    """It is named as it names itself. Kept, it is extensions alone."""
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
    """A look-alike that names counts differently, marks its answers and knows a word more."""

    title: ClassVar[str] = "Other"
    documentation: ClassVar[str | None] = "https://example.org"
    marks: ClassVar[tuple[str, ...]] = ("x_other", "usage.seconds", "choices[].stopped_at[].token")
    cached_tokens: ClassVar[tuple[str, ...]] = (*OpenAIChatDialect.cached_tokens, "cached")
    cache_write_tokens: ClassVar[tuple[str, ...]] = ("prompt_tokens_details.written",)
    finish_reasons: ClassVar[Any] = {**OpenAIChatDialect.finish_reasons, "eos": FinishReason.STOP}


def test_every_field_of_provider_info_is_an_attribute() -> None:
    class Says(OpenAIChatDialect):
        title = "Says"
        repeats_finish = True
        framing = staticmethod(lambda start, limits: None)

    info = Says().provider_info()
    assert (info.title, info.repeats_finish, info.framing) == ("Says", True, Says.framing)
    assert DIALECT.provider_info().framing is None


def test_a_subclass_says_what_differs() -> None:
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


@pytest.mark.parametrize(
    ("counts", "cached", "left"),
    [
        ({"cached": 3}, 3, None),
        ({"cached": 3, "prompt_tokens_details": {"cached_tokens": 3}}, 3, None),
        ({"cached": 3, "prompt_tokens_details": {"cached_tokens": 4}}, 4, {"cached": 3}),
        ({"cached": 3, "prompt_tokens_details": {"cached_tokens": None}}, 3, None),
        ({"cached": 3, "prompt_tokens_details": None}, 3, None),
        (
            {"cached": 3, "prompt_tokens_details": {"cached_tokens": "4"}},
            3,
            {"prompt_tokens_details": {"cached_tokens": "4"}},
        ),
        ({"cached": -3}, None, {"cached": -3}),
    ],
)
def test_a_count_in_several_places(counts: Any, cached: int | None, left: Any) -> None:
    """The first that has one counts. The same in another is taken, another count stays."""
    response = read(Other(), sse(body({"content": "Hi"}, usage=usage(9, 1, **counts))))[1]
    assert response.usage == UsageInfo(9, 1, cached)
    assert response.metadata.extensions.get("usage") == left


@pytest.mark.parametrize(
    ("event", "recognition"),
    [
        ({"choices": []}, Recognition.POSSIBLE),
        ({"choices": [], "x_other": None}, Recognition.CERTAIN),
        ({"choices": [], "usage": {"seconds": None}}, Recognition.CERTAIN),
        ({"choices": [], "usage": ["seconds"]}, Recognition.POSSIBLE),
        ({"choices": ["x", {"stopped_at": [1, {"token": 2}]}]}, Recognition.CERTAIN),
        ({"choices": [{"stopped_at": {"token": 2}}, {"stopped_at": []}]}, Recognition.POSSIBLE),
        ({"choices": {"stopped_at": []}, "x_other": 1}, Recognition.NO),
        ({"error": "x", "x_other": 1}, Recognition.POSSIBLE),
        ({"error": ""}, Recognition.NO),
        ([], Recognition.NO),
    ],
)
def test_marks(event: Any, recognition: Recognition) -> None:
    assert Other().recognizes(event) is recognition


# ------------------------------------------------------------------------- side fields, and what survives


SIDES: list[tuple[Any, str]] = [
    ({"choices": [{"logprobs": 1.5}]}, "choices[0].logprobs"),
    ({"choices": [{"logprobs": {"content": {}}}]}, "choices[0].logprobs.content"),
    ({"choices": [{"logprobs": {"content": [{"token": 1}]}}]}, "choices[0].logprobs.content"),
    (
        {"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -1, "bytes": [256]}]}}]},
        "choices[0].logprobs.content[0].bytes",
    ),
    ({"choices": [], "usage": 1}, "usage"),
    ({"choices": [], "usage": {"prompt_tokens": "1"}}, "usage.prompt_tokens"),
    ({"choices": [], "usage": {"prompt_tokens": -9}}, "usage.prompt_tokens"),
    ({"choices": [], "usage": {"completion_tokens": 1.0}}, "usage.completion_tokens"),
    ({"choices": [], "usage": {"prompt_tokens_details": 1}}, "usage.prompt_tokens_details"),
    (
        {"choices": [], "usage": {"prompt_tokens_details": {"cached_tokens": True}}},
        "usage.prompt_tokens_details.cached_tokens",
    ),
    (
        {"choices": [], "usage": {"completion_tokens_details": {"reasoning_tokens": ""}}},
        "usage.completion_tokens_details.reasoning_tokens",
    ),
    ({"choices": [], "created": "x"}, "created"),
]


@pytest.mark.parametrize(("event", "path"), SIDES, ids=[path for _, path in SIDES])
def test_a_side_field_of_another_type_costs_the_field(event: Any, path: str) -> None:
    """Not the answer: it stays where it stood, noted as mistyped."""
    response = made(chunk({"content": "Hi"}) | {"created": 0}, event, chunk({}, "stop") | {"created": 0})
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
    assert response.metadata.provenance[f"metadata.extensions.{path}"] is Provenance.MISTYPED
    value: Any = response.metadata.extensions.thawed()
    sent: Any = event
    for key in path.replace("[0]", ".0").split("."):
        value, sent = (holder[int(key) if key.isdigit() else key] for holder in (value, sent))
    assert value == sent


@pytest.mark.parametrize(
    ("message", "more"),
    [
        ({"tool_calls": "x"}, {}),
        ({"tool_calls": [{"function": {"arguments": 7}}]}, {}),
        ({"function_call": 7}, {}),
        ({"reasoning": 7}, {}),
        ({"reasoning_content": []}, {}),
        ({"refusal": 7}, {}),
        ({}, {"id": 7}),
        ({}, {"model": 7}),
        ({}, {"finish_reason": 7}),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_what_decides_the_answer_raises_and_the_text_is_kept(
    message: Any, more: dict[str, Any], streamed: bool
) -> None:
    event = body({"content": "Half", **message})
    if streamed:
        event["choices"][0]["delta"] = event["choices"][0].pop("message")
    if "finish_reason" in more:
        event["choices"][0] |= more
    else:
        event |= more
    partial, error = outcome(DIALECT, sse(event))
    assert isinstance(error, WireTypeError)
    assert (partial.text, partial.finish_reason) == ("Half", FinishReason.ERROR)


def test_a_content_that_is_an_object_is_the_text_of_it() -> None:
    """Cloudflare's JSON mode."""
    response = made(body({"content": {"title": "Kelp", "n": [1, None]}}))
    assert response.text == '{"title":"Kelp","n":[1,null]}'
    assert response.metadata.provenance["message.content"] is Provenance.DERIVED
    assert "choices" not in response.metadata.extensions


def test_a_text_beside_the_content_that_says_the_same_is_taken() -> None:
    """Together says each piece in both forms."""
    event = chunk({"content": "Hi"}, "stop")
    event["choices"][0]["text"] = "Hi"
    response = made(event)
    assert response.text == "Hi"
    assert "choices" not in response.metadata.extensions


def test_the_usage_of_an_error_counts() -> None:
    broken = chunk({}, error={"message": "It broke"}, usage=usage(9, 1, cost=0.5))
    response = made(chunk({"content": "Par"}), broken)
    assert (response.text, response.usage) == ("Par", UsageInfo(9, 1))
    assert response.error_info.raw == broken
    assert response.metadata.extensions["usage"] == {"cost": 0.5}


LISTS: list[tuple[Any, tuple[TokenLogprob, ...] | None]] = [
    ({"tokens": ["a"], "token_logprobs": [-1]}, (TokenLogprob("a", -1),)),
    ({"tokens": ["a"], "token_logprobs": [None], "top_logprobs": [None]}, (TokenLogprob("a", None),)),
    (
        {"tokens": ["a", "b"], "token_logprobs": [-1, -2], "top_logprobs": [{"a": -1, "c": -3}, {}]},
        (TokenLogprob("a", -1, None, (TokenLogprob("a", -1), TokenLogprob("c", -3))), TokenLogprob("b", -2)),
    ),
    ({"tokens": [], "token_logprobs": [], "top_logprobs": []}, None),
]


@pytest.mark.parametrize(("lists", "expected"), LISTS)
def test_the_lists_of_completions(lists: Any, expected: Any) -> None:
    response = made({"choices": [{"text": "ab", "finish_reason": "stop", "logprobs": lists}]})
    assert response.logprobs == expected
    assert "choices" not in response.metadata.extensions


@pytest.mark.parametrize(
    "lists",
    [
        {"tokens": ["a"]},
        {"tokens": "a", "token_logprobs": [-1]},
        {"tokens": ["a"], "token_logprobs": [-1, -2]},
        {"tokens": ["a"], "token_logprobs": ["x"]},
        {"tokens": [7], "token_logprobs": [-1]},
        {"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": {"a": -1}},
        {"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": [{}, {}]},
        {"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": ["a"]},
        {"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": [{"a": "x"}]},
    ],
)
def test_lists_that_are_no_log_probabilities_stay(lists: Any) -> None:
    response = made({"choices": [{"text": "a", "finish_reason": "stop", "logprobs": lists}]})
    assert response.logprobs is None
    assert response.metadata.extensions.thawed()["choices"] == [{"logprobs": lists}]
    noted = [path for path, why in response.metadata.provenance.items() if why is Provenance.MISTYPED]
    assert noted == ["metadata.extensions.choices[0].logprobs.tokens"]


class Own(OpenAIChatDialect):
    """Takes its own counts, and remembers under names that its base might use as well."""

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        (usage.get("prompt_tokens_details") or {}).pop("audio_tokens", None)
        return super().usage_info(usage, state)

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        for name in ("settled", "silent", "spoken", "dialect"):
            assert state.data.setdefault(name, self) is self
        return super().choice_deltas(choice, part, index, state, whole=whole)


def test_what_a_subclass_adds_is_kept_and_its_notes_are_its_own() -> None:
    counts = usage(3, 1, prompt_tokens_details={"audio_tokens": 2, "cached_tokens": 1, "new": 4})
    events = [chunk({"content": "H"}), chunk({"content": "i"}, "stop"), chunk(None, usage=counts)]
    response = read(Own(), sse(*events))[1]
    assert (response.text, response.usage) == ("Hi", UsageInfo(3, 1, cached_tokens=1))
    assert response.metadata.extensions["usage"] == {"prompt_tokens_details": {"new": 4}}


# -------------------------------------------------------------------------------- reasoning under two names

A, B = "reasoning", "reasoning_content"


@pytest.mark.parametrize(
    ("deltas", "reasoning"),
    [
        ([{A: "ab"}, {B: "ab"}], "ab"),
        ([{B: "ab"}, {A: "ab"}], "ab"),
        ([{A: "ab"}, {B: "ab"}, {A: "cd"}, {B: "cd"}], "abcd"),
        ([{A: "ab"}, {A: "cd"}, {B: "abcd"}], "abcd"),
        ([{A: "abcd"}, {B: "a"}, {B: "bc"}, {B: "d"}], "abcd"),
        ([{A: "ab"}, {A: "cd"}, {B: "a"}, {B: "bcd"}], "abcd"),
        ([{A: "ab", B: "ab"}, {A: "cd", B: "cd"}], "abcd"),
        ([{A: "ab", B: ""}, {A: None, B: "ab"}], "ab"),
        # Both names have spoken at once: what either says later is news.
        ([{A: "ab", B: "ab"}, {B: "ab"}, {A: "ab"}], "ababab"),
        ([{A: "ab"}, {A: "ab"}], "abab"),
        ([{A: "ab"}, {B: "xy"}], "abxy"),
        # So has a name that has said something of its own.
        ([{A: "ab"}, {B: "ab"}, {B: "x"}, {B: "x"}, {B: "ab"}], "abxxab"),
        ([{A: "a"}, {B: "a"}, {A: "", "content": "so"}, {A: "b"}, {B: "b"}], "ab"),
        ([{A: "ab"}, {B: "abc"}], "ababc"),
        ([{A: "ab", B: "abc"}], "ab"),
    ],
)
def test_reasoning_under_two_names_counts_once(deltas: list[Any], reasoning: str) -> None:
    response = made(*(chunk(delta) for delta in deltas), chunk({"content": "Hi"}, "stop"))
    assert (response.reasoning, response.text[-2:]) == (reasoning, "Hi")


def test_each_choice_reasons_for_itself() -> None:
    response = made(
        chunk({A: "ab"}), chunk({B: "ab"}, choice=1), chunk({}, "stop"), chunk({}, "stop", choice=1)
    )
    assert response.reasoning == "ab"
    assert response.alternatives[0].segments[0].content == "ab"


# ---------------------------------------------------------------------------- where one answer ends


def parallel(number: int, finish: str | None = "tool_calls", **more: Any) -> Any:
    fragment = call("f", f'{{"n":{number}}}', index=number, id=f"c{number}")
    return chunk({"tool_calls": [fragment], **more}, finish)


def test_parallel_calls_may_each_end_the_answer() -> None:
    """Together does so, and OpenRouter over Gemini, which then says a line break and ``stop``."""
    for last in ([], [chunk({"content": "\n"}, "stop")], [chunk({}, "stop")]):
        response = made(parallel(0), parallel(1), parallel(2), *last, chunk(usage=usage(3, 2)))
        assert [c.arguments for c in response.tool_calls] == ['{"n":0}', '{"n":1}', '{"n":2}']
        assert (response.finish_reason, response.usage) == (FinishReason.TOOL_CALLS, UsageInfo(3, 2))


@pytest.mark.parametrize(
    "second",
    [
        {"id": "chatcmpl-2"},
        {"id": ""},
        {"id": None},
    ],
)
def test_another_answer_may_not_follow(second: dict[str, Any]) -> None:
    """After an end, what has another id, or none, is of another answer."""
    partial, error = outcome(
        DIALECT, sse(chunk({"content": "Hi"}, "stop"), chunk({"content": "Ho"}) | second)
    )
    assert isinstance(error, TrailingContentError)
    assert partial.text == "Hi"


@pytest.mark.parametrize("message", [{"content": "Hi"}, {"content": None, "audio": {"data": "UklG"}}, {}])
def test_several_bodies_are_several_answers_though_they_have_one_id(message: Any) -> None:
    _, error = outcome(DIALECT, ndjson(*[body(message)] * 3))
    assert isinstance(error, TrailingContentError)


@pytest.mark.parametrize(
    ("events", "done", "is_cut"),
    [
        ([chunk({"content": "Hi"}, "stop")], False, True),
        ([chunk({"content": "Hi"}, "stop")], True, False),
        ([chunk({"content": "Hi"}, "stop"), chunk(usage=usage(1, 2))], False, False),
        ([chunk({"content": "Hi"}), chunk(error={"message": "x"})], False, False),
    ],
)
def test_usage_that_was_cut_off(events: list[Any], done: bool, is_cut: bool) -> None:
    """Between the finish word and the usage: if the sentinel is missing as well, the rest is unknown."""
    response = read(DIALECT, sse(*events, done=done))[1]
    assert (response.metadata.provenance.get("usage") is Provenance.CUT) is is_cut


def test_a_body_is_never_cut() -> None:
    response = made(body({"content": "Hi"}))
    assert response.metadata.provenance["usage"] is Provenance.ABSENT


def test_a_chunk_that_calls_itself_one_needs_no_choices() -> None:
    bare = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "usage": usage(1, 2)}
    assert made(chunk({"content": "Hi"}, "stop"), bare).usage == UsageInfo(1, 2)


class Counting(OpenAIChatDialect):
    """A look-alike with messages that count the letters of their deltas, which may have a picture."""

    def rest_of_other_part(self, other: Any, part: Any, choice: int, state: Any) -> None:
        """Take the right counts."""
        other.pop(str(len(part["content"])), None)

    def segments(self, part: Any, choice: int, state: Any) -> list[Segment]:
        """The picture."""
        return [Segment(SegmentType.MEDIA, part.pop("picture"))] if "picture" in part else []


def test_a_subclass_reads_what_else_a_choice_has() -> None:
    event = both({"content": "Hi", "picture": "p"}, {"content": "Hi", "2": "x", "3": "y"})
    response = read(Counting(), sse(event))[1]
    assert [segment.content for segment in response.segments] == ["Hi", "p"]
    assert response.metadata.extensions["choices"] == ({"index": 0, "message": {"3": "y"}},)


def test_a_forced_call_in_both_forms_is_one() -> None:
    same = {"name": "go", "arguments": "{}"}
    for legacy, left in ((same, None), ({"name": "go", "arguments": "x"},) * 2):
        message = {
            "content": None,
            "tool_calls": [{"id": "x", "function": dict(same)}],
            "function_call": legacy,
        }
        response = made(body(message, "tool_calls"))
        assert [c.id for c in response.tool_calls] == ["x"]
        choices = response.metadata.extensions.thawed().get("choices")
        assert choices == (left and [{"index": 0, "message": {"function_call": left}}])


@pytest.mark.parametrize("beside", ["reasoning", "reasoning_content", "refusal"])
def test_what_stands_beside_a_text_of_a_wrong_type_is_in_the_partial_answer(beside: str) -> None:
    partial, error = outcome(DIALECT, sse(body({"content": 5, beside: "It depends."})))
    assert isinstance(error, WireTypeError)
    assert error.place.endswith("choices[0].message.content")
    assert "It depends." in [segment.content for segment in partial.segments]
    partial, _ = outcome(DIALECT, sse(body({"content": 5})))
    assert [segment.type for segment in partial.segments] == ["error"]


def _pieces(self: Any, *_: Any, **__: Any) -> Iterator[str]:
    yield "Hm."


def _lists(self: Any, *_: Any, **__: Any) -> list[str]:
    return ["Hm."]


@pytest.mark.parametrize(
    ("method", "override", "gave"),
    [
        ("reasoning", _pieces, "generator, not a string or None"),
        ("logprobs", _lists, "list, not a tuple or None"),
        ("tool_calls", _pieces, "str, not ToolCallDelta"),
        ("segments", _lists, "str, not Segment"),
    ],
)
def test_an_override_that_gives_something_else_is_named(method: str, override: Any, gave: str) -> None:
    """Not the line of the base class in which a delta is made of it."""
    plugin = type("Wrong", (OpenAIChatDialect,), {"title": "Wrong", method: override})()
    with pytest.raises(PluginError, match=rf"'test': Wrong\.{method} gave {gave}"):
        read(plugin, sse(body({"content": "Hi"})))


class TakesText(ProviderHooks):
    """A stranger's plugin that takes a text in whatever form it comes."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Toy")

    @hookimpl
    def map_delta(self, event: dict[str, Any], state: MappingState) -> list[ResponseDelta]:
        text = take_text(event, state)
        return [ResponseDelta(content_delta=text, raw_finish_reason=event.pop("done", None))]

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        return FinishReason(reason)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ([{"type": "text", "text": "H"}, {"type": "text", "text": "i"}], "Hi"),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_a_text_is_taken_in_each_of_its_forms(content: Any, text: str) -> None:
    response = read(TakesText(), sse({"content": content, "done": "stop"}))[1]
    assert response.text == text
