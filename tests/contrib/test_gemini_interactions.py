"""Gemini's Interactions API. The conformance kit runs its captures with those of ``generateContent``."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import (
    FinishReason,
    IncompleteStreamError,
    SegmentType,
    TrailingContentError,
    UnknownEventError,
    UsageInfo,
)
from crosswalk.plugins import Recognition
from crosswalk_gemini import plugin
from wires import one, outcome, read, sse


def interaction(*steps: Any, status: str = "completed", name: str = "steps", **more: Any) -> dict[str, Any]:
    return {"id": "v1_a", "object": "interaction", "model": "m", "status": status, name: [*steps], **more}


def output(*parts: Any) -> dict[str, Any]:
    return {"type": "model_output", "content": [*parts]}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": kind, **more}


def step(number: int, begun: Any, *deltas: Any) -> list[dict[str, Any]]:
    pieces = [event("step.delta", index=number, delta=delta) for delta in deltas]
    return [event("step.start", index=number, step=begun), *pieces, event("step.stop", index=number)]


BEGUN = event("interaction.created", interaction=interaction(status="in_progress"))


def ended(**more: Any) -> dict[str, Any]:
    return event("interaction.completed", interaction=interaction(**more))


def stream(*events: Any) -> Any:
    return read("gemini", sse(BEGUN, *events, done=False))[1]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("completed", FinishReason.STOP),
        ("incomplete", FinishReason.LENGTH),
        ("cancelled", FinishReason.CANCELLED),
        ("failed", FinishReason.ERROR),
    ],
)
def test_how_it_ends(status: str, reason: FinishReason) -> None:
    for answer in (
        one("gemini", interaction(output(text("Hi")), status=status)),
        stream(*step(0, {"type": "model_output"}, text("Hi")), ended(status=status)),
    ):
        assert (answer.text, answer.finish_reason, answer.raw_finish_reason) == ("Hi", reason, status)


def test_an_interaction_that_is_not_done_is_incomplete() -> None:
    for payload in (interaction(output(text("Hi")), status="in_progress"), interaction(status="in_progress")):
        with pytest.raises(IncompleteStreamError):
            one("gemini", payload)


@pytest.mark.parametrize(
    "thought",
    [
        {"summary": [text("Hm."), text(" So.")], "signature": "s"},
        {"content": text("Hm. So."), "signature": "s"},
    ],
)
def test_a_thought_has_a_summary_and_a_signature(thought: dict[str, Any]) -> None:
    answer = one("gemini", interaction({"type": "thought", **thought}, output(text("Hi"))))
    assert answer.reasoning == "Hm. So."
    assert {"signature": "s"} in [part.metadata.thawed() for part in answer.segments]
    assert not answer.metadata.extensions


def test_what_a_thought_says_more_stays_in_the_extensions() -> None:
    thought = {"type": "thought", "summary": [text("", odd=1)], "content": text("", odd=2)}
    answer = one("gemini", interaction(thought, output(text("Hi"))))
    assert answer.metadata.extensions.thawed()["steps"][0] == {"summary": [{"odd": 1}], "content": {"odd": 2}}


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (
            {
                "total_input_tokens": 5,
                "total_output_tokens": 2,
                "total_thought_tokens": 3,
                "total_tokens": 10,
            },
            UsageInfo(5, 5, reasoning_tokens=3),
        ),
        (
            {
                "total_input_tokens": 5,
                "total_tool_use_tokens": 4,
                "total_output_tokens": 2,
                "total_cached_tokens": 1,
            },
            UsageInfo(9, 2, cached_tokens=1),
        ),
        ({"total_output_tokens": 2}, UsageInfo(0, 2)),
        ({"total_input_tokens": 5}, UsageInfo(5, 0)),
        ({}, UsageInfo.EMPTY),
    ],
)
def test_thoughts_and_tools_are_counted_alongside(counts: dict[str, int], usage: UsageInfo) -> None:
    assert one("gemini", interaction(output(text("Hi")), usage=counts)).usage == usage
    assert stream(*step(0, {"type": "model_output"}, text("Hi")), ended(usage=counts)).usage == usage


@pytest.mark.parametrize(
    ("part", "content", "about"),
    [
        (
            {"type": "image", "data": "aQ==", "mime_type": "image/png"},
            "aQ==",
            {"type": "image", "media_type": "image/png", "encoding": "base64"},
        ),
        ({"type": "video", "uri": "https://v.example/1"}, "https://v.example/1", {"type": "video"}),
    ],
)
def test_media_are_segments(part: dict[str, Any], content: str, about: dict[str, Any]) -> None:
    made = one("gemini", interaction(output(part))).segments[0]
    assert (made.type, made.content, made.metadata.thawed()) == (SegmentType.MEDIA, content, about)


def test_what_the_server_did_stays_in_the_extensions() -> None:
    search = {"type": "google_search_call", "id": "g", "arguments": {"queries": ["x"]}}
    answer = one("gemini", interaction(search, output(text("Hi", annotations=[{"url": "u"}]), text(""))))
    assert answer.metadata.extensions.thawed()["steps"] == [
        search,
        {"content": [{"annotations": [{"url": "u"}]}, {}]},
    ]
    answer = stream(*step(0, search), *step(1, {"type": "model_output"}, text("Hi", odd=1)), ended())
    assert answer.metadata.extensions.thawed()["steps"] == [{"index": 0, **search}, {"index": 1, "odd": 1}]


@pytest.mark.parametrize("wrong", [{"type": "odd"}, {"odd": 1}])
def test_a_step_that_nobody_knows_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UnknownEventError):
        one("gemini", interaction(wrong))
    assert isinstance(outcome("gemini", sse(BEGUN, *step(0, wrong)))[1], UnknownEventError)


def test_a_number_out_of_turn_stays_in_the_extensions() -> None:
    answer = stream(
        event("interaction.status_update", interaction_id="v1_a", status="in_progress"),
        *step(4, {"type": "model_output"}, text("Hi")),
        event("step.delta", delta=text("!")),
        ended(),
    )
    assert (answer.text, answer.metadata.extensions.thawed()) == ("Hi!", {"index": 4})


def test_the_time_is_that_of_its_creation() -> None:
    answer = one("gemini", interaction(output(text("Hi")), created="2026-05-28T20:26:40Z", role="model"))
    assert answer.created.isoformat() == "2026-05-28T20:26:40+00:00"
    assert not answer.metadata.extensions
    answer = one("gemini", interaction(output(text("Hi")), created="2026-05-28T22:26:40+02:00"))
    assert answer.metadata.extensions.thawed() == {"created": "2026-05-28T22:26:40+02:00"}


def test_nothing_follows_the_end() -> None:
    partial, error = outcome("gemini", sse(BEGUN, ended(), *step(0, {"type": "model_output"}, text("Hi"))))
    assert isinstance(error, TrailingContentError)
    assert partial.text == ""


@pytest.mark.parametrize(
    ("payload", "how"),
    [
        (interaction(), Recognition.CERTAIN),
        (interaction(name="outputs"), Recognition.CERTAIN),
        ({"object": "interaction", "status": "in_progress"}, Recognition.POSSIBLE),
        (event("step.delta", delta=text("x")), Recognition.CERTAIN),
        (event("odd"), Recognition.NO),
    ],
)
def test_its_marks(payload: dict[str, Any], how: Recognition) -> None:
    assert plugin.recognizes(payload) is how
