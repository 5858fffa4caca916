"""Every shipped provider reads a plain answer of Chat Completions the same, so detection need not ask each of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from crosswalk import CrosswalkError, normalize, registry, to_jsonable
from crosswalk.mapping.detect import candidates
from crosswalk.mapping.plain_chat import is_plain_chat
from crosswalk.testing import Capture, load_captures
from wires import sse

CAPTURES = Path(__file__).parents[1] / "captures"
ORIGIN = {"id": "c", "created": 1_700_000_000, "model": "m"}
USAGE = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
DETAILS: list[dict[str, Any]] = [
    {},
    {"prompt_tokens_details": {"cached_tokens": 0}},
    {"prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 2}},
    {
        "prompt_tokens_details": {},
        "completion_tokens_details": {
            "reasoning_tokens": 3,
            "audio_tokens": 1,
            "accepted_prediction_tokens": 1,
            "rejected_prediction_tokens": 2,
        },
    },
]
NOTES: list[dict[str, Any]] = [
    {},
    {"system_fingerprint": "fp_1", "service_tier": "default"},
    {"service_tier": None},
]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def bodies() -> Iterator[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"content": "Hi"},
        {"content": "", "refusal": None, "annotations": []},
        {"content": "Hi", "refusal": "", "tool_calls": None},
        {"content": None, "tool_calls": [CALL, {**CALL, "index": 1, "id": "call_2"}]},
        {"content": "Hi", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "{oops"}}]},
    ]
    words = ["stop", "length", "tool_calls", "content_filter"]
    for message, word, details, notes in product(messages, words, DETAILS, NOTES):
        choice = {
            "index": 0,
            "message": {"role": "assistant", **message},
            "finish_reason": word,
            "logprobs": None,
        }
        yield {
            **ORIGIN,
            "object": "chat.completion",
            **notes,
            "choices": [choice],
            "usage": {**USAGE, **details},
        }


def chunks() -> Iterator[list[dict[str, Any]]]:
    begins: list[dict[str, Any]] = [
        {"role": "assistant"},
        {"role": "assistant", "content": "", "refusal": None},
    ]
    pieces: list[list[dict[str, Any]]] = [
        [{"content": "Hi"}, {"content": " you"}],
        [{"content": "Hi", "tool_calls": []}, {"content": None, "tool_calls": None}],
    ]
    words = ["stop", "length", "tool_calls", "content_filter"]
    for begin, middle, word, details, notes, is_counted in product(
        begins, pieces, words, DETAILS, NOTES, (True, False)
    ):
        event = {**ORIGIN, "object": "chat.completion.chunk", **notes}
        deltas = [
            {**event, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            for delta, finish in (*((one, None) for one in (begin, *middle)), ({}, word))
        ]
        yield [*deltas, {**event, "choices": [], "usage": {**USAGE, **details}}] if is_counted else deltas


def readings(body: bytes | dict[str, Any], providers: Iterable[str]) -> list[Any]:
    """What each of *providers* reads, without its name."""
    results = []
    for name in providers:
        try:
            response = normalize(
                body, name, id_factory=lambda: "x", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)
            )
            plain = to_jsonable(response)
            del plain["metadata"]["provider_id"]
            results.append(plain)
        except CrosswalkError as error:
            results.append(type(error))
    return results


def assert_all_read_the_same(body: bytes | dict[str, Any], events: list[Any]) -> None:
    assert is_plain_chat(events, has_sentinel=type(body) is bytes and body.rstrip().endswith(b"[DONE]"))
    found = candidates(copy.deepcopy(events), registry)
    assert len(found) > 15
    first, *others = readings(body, found)
    assert type(first) is dict
    assert others == [first] * len(others)


def test_every_provider_reads_a_plain_body_the_same() -> None:
    for number, body in enumerate(bodies()):
        if number % 7 == 0:  # of 240, each value of each part in turn
            assert_all_read_the_same(body, [body])


def test_every_provider_reads_a_plain_stream_the_same() -> None:
    for number, events in enumerate(chunks()):
        if number % 29 == 0:
            assert_all_read_the_same(sse(*events), events)


def plain_captures() -> list[Capture]:
    found = [one for folder in sorted(CAPTURES.iterdir()) if folder.is_dir() for one in load_captures(folder)]
    return [one for one in found if one.status == 200 and one.complete]


def test_every_provider_reads_plain_captures_the_same() -> None:
    for capture in plain_captures():
        try:
            events = list(capture.events())
        except CrosswalkError:
            continue
        if is_plain_chat(events, has_sentinel=capture.body.rstrip().endswith(b"[DONE]")):
            assert_all_read_the_same(capture.body, events)


BODY = next(bodies())
CHOICE = BODY["choices"][0]
CHUNK = next(chunks())[0]


@pytest.mark.parametrize(
    "events",
    [
        [],
        ["text"],
        [BODY | {"x_groq": {}}],
        [BODY | {"id": ""}],
        [BODY | {"created": 0}],
        [BODY | {"choices": []}],
        [BODY | {"choices": [CHOICE, CHOICE]}],
        [BODY | {"choices": [CHOICE | {"index": 1}]}],
        [BODY | {"choices": [CHOICE | {"index": True}]}],
        [BODY | {"choices": [{"index": 0, "delta": {}}]}],
        [BODY | {"choices": [CHOICE | {"finish_reason": "eos"}]}],
        [BODY | {"choices": [CHOICE | {"message": {"content": "<think>so</think>"}}]}],
        [BODY | {"choices": [CHOICE | {"message": {"content": [{"type": "text"}]}}]}],
        [BODY | {"choices": [CHOICE | {"message": {"tool_calls": [CALL | {"id": "null"}]}}]}],
        [BODY | {"choices": [CHOICE | {"message": {"tool_calls": [CALL | {"id": "0"}]}}]}],
        [BODY | {"choices": [CHOICE | {"delta": {}}]}],
        [CHUNK | {"choices": [CHUNK["choices"][0] | {"message": {"content": "Hi"}}]}],
        [CHUNK | {"choices": [{"index": 0, "delta": {"tool_calls": [CALL | {"index": 0}]}}]}],
        [BODY, BODY],
        [BODY | {"choices": CHOICE}],
        [BODY | {"system_fingerprint": 1}],
        [BODY | {"usage": USAGE | {"total_tokens": 17}}],
        [BODY | {"usage": USAGE | {"prompt_tokens": -1}}],
        [BODY | {"usage": None}],
        [{key: BODY[key] for key in BODY if key != "id"}],
        [BODY, CHUNK],
        [CHUNK, {"error": {"message": "busy"}}],
    ],
)
def test_whatever_else_an_answer_holds_it_is_not_plain(events: list[Any]) -> None:
    assert not is_plain_chat(events, has_sentinel=False)
    assert not is_plain_chat(events, has_sentinel=True)
    assert is_plain_chat([BODY], has_sentinel=False)
    assert is_plain_chat([CHUNK], has_sentinel=True)
    assert not is_plain_chat([CHUNK], has_sentinel=False)


def test_an_answer_that_one_server_reads_otherwise_is_not_guessed() -> None:
    calls = [CALL | {"id": "0"}]  # a count at TGI, an id elsewhere
    counted = BODY | {"choices": [CHOICE | {"message": {"role": "assistant", "tool_calls": calls}}]}
    ended = CHUNK | {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    for body in (
        counted,
        sse(ended, done=False),
    ):  # Perplexity's last chunk has counts, else the stream is cut
        with pytest.raises(CrosswalkError, match="several providers"):
            normalize(body)


def test_a_plain_answer_is_read_as_openais_and_marked() -> None:
    response = normalize(BODY)
    assert response.metadata.provider_id == "openai"
    assert response.metadata.provenance["metadata.provider_id"] == "derived"
    cut = next(events for events in chunks() if "usage" not in events[-1])
    assert normalize(sse(*cut)).metadata.provider_id == "openai"
    with pytest.raises(CrosswalkError, match="several providers"):
        normalize(sse(*cut, done=False))  # whether it is whole depends on the server


def test_every_candidate_reads_an_error_with_its_own_hook() -> None:
    body = {"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}
    response = normalize(body, status=429)
    assert response.error_info is not None
    assert response.error_info.kind == "rate_limit"
    assert response.metadata.provenance["metadata.provider_id"] == "derived"
