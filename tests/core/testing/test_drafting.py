"""Drafts of statements: what is filled in from bytes and request alone, and what is left to the author."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk.testing.captures import NAMES
from crosswalk.testing.recorded import draft_statement

STREAM = b"""data: {"model":"m-1","n":1,"text":"Hel"}

data: {"model":"m-1","n":2,"text":"lo"}

data: {"why":"full","tokens":{"out":32}}

data: [DONE]

"""


def draft(body: bytes = STREAM, request: Any = None, **given: Any) -> dict[str, Any]:
    return draft_statement(body, request=None if request is None else orjson.dumps(request), **given)


def test_the_values_of_the_payload_are_listed_by_their_paths() -> None:
    made = draft()
    assert made["found"] == {"model": "m-1", "n": 2, "text": "Hello", "why": "full", "tokens.out": 32}
    assert "remove 'draft'" in made["draft"]
    assert all(name in made["draft"] for name in NAMES)


def test_pieces_of_a_text_are_joined_and_those_of_several_calls_are_not() -> None:
    events: list[Any] = [
        {
            "type": "run.began",
            "at": "2026-01-01T10:00:00Z",
            "calls": [{"index": 0, "id": "tc_51", "say": '{"a"'}],
        },
        {"type": "text", "at": "2026-01-01T10:00:01Z", "text": "Low "},
        {"type": "text", "text": "tide, low "},
        {"type": "text", "text": "tide."},
        {"type": "run.failed", "calls": [{"index": 0, "say": ":1}"}]},
        {"calls": [{"index": 1, "id": "tc_52", "say": '{"b":2}'}]},
        {"slot": 0, "with": '{"c":'},
        {"slot": 0, "with": "3}"},
        {"slot": 1, "with": "{}"},
    ]
    made = draft(b"".join(orjson.dumps(event) + b"\n" for event in events))["found"]
    assert made["type"] == ["run.began", "text", "run.failed"]
    assert made["text"] == "Low tide, low tide."
    assert made["calls[].id"] == ["tc_51", "tc_52"]
    assert made["calls[].say"] == ['{"a":1}', '{"b":2}']
    assert made["with"] == ['{"c":3}', "{}"]
    assert made["calls[].index"] == 1
    assert made["at"] == ["2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z"]


def test_nothing_is_stated_that_the_recording_does_not_show() -> None:
    """An id in each event is none of the answer, nor is one inside, and a null says that there is none."""
    assert draft().keys() == {"draft", "model", "found"}
    body = b'{"id":"e-1","model":null,"part":{"id":"p-1"}}\n{"id":"e-2"}\n'
    assert draft(body).keys() == {"draft", "found"}
    made = draft(b'{"id":"r-1","model":"m-1"}\n{"id":"r-1"}\n')
    assert (made["id"], made["model"]) == ("r-1", "m-1")


def test_the_request_fills_in_the_model_and_a_limit_that_was_reached() -> None:
    made = draft(request={"model": "m-1", "options": {"max_tokens": 32}})
    assert (made["model"], made["finish"], made["complete"]) == ("m-1", "length", False)
    made = draft(request={"model": "other", "max_tokens": 33, "stop": 32})
    assert (made["model"], "finish" in made) == ("m-1", False)
    assert draft(b'{"engine":"m-1"}', {"model": "m-1"})["model"] == "m-1"


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(401, "authentication", False), (403, "permission", False), (503, "server", True)],
)
def test_an_http_error_fills_in_its_kind(status: int, kind: str, retryable: bool) -> None:
    made = draft(b'{"message":"no"}', status=status)
    assert (made["finish"], made["error"], made["retryable"], made["complete"]) == (
        "error",
        kind,
        retryable,
        False,
    )


@pytest.mark.parametrize("status", [400, 404, 429])
def test_a_status_of_several_kinds_is_left_to_the_author(status: int) -> None:
    """A 400 may be a context that is too long, a 429 a spent quota."""
    made = draft(b'{"message":"no"}', status=status)
    assert (made["finish"], made["complete"]) == ("error", False)
    assert made.keys().isdisjoint({"error", "retryable"})


def test_a_body_that_was_cut_must_not_pass_for_an_answer() -> None:
    made = draft(STREAM[:45], complete=False)
    assert (made["finish"], made["raises"]) == ("error", "IncompleteStreamError")


def test_bytes_that_are_not_json_are_left_to_the_author() -> None:
    assert draft_statement(b"\x00\x01 frames", request=b"not JSON")["found"] == {}
    for request in (b"{", b"[1]"):
        assert draft_statement(b"{}", request=request)["found"] == {}


def test_a_long_text_is_cut() -> None:
    made = draft(orjson.dumps({"text": "x" * 3_000, "also": "x"}))
    assert (len(made["found"]["text"]), made["found"]["also"]) == (2_001, "x")
