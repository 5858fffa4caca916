"""``convert(…, carry=True)``: an answer that goes through two other formats comes back as it was."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import attrs
import pytest

from converting import broad_first
from crosswalk import (
    ChatResponse,
    MappingError,
    from_json,
    normalize,
    normalize_stream,
    to_json,
    to_jsonable,
)
from crosswalk.convert import Conversion, WireForm, convert, convert_stream
from crosswalk.formats.writing import form_of_body, source_form
from crosswalk.testing import Capture, load_captures
from crosswalk.types import load_json
from crosswalk.types.json import dump_json

OWN = Path(__file__).parents[2] / "captures"
PROVIDERS = sorted(folder.name for folder in OWN.iterdir() if folder.is_dir())
CHAT, MESSAGES, RESPONSES, OLLAMA = (
    WireForm.OPENAI_CHAT,
    WireForm.ANTHROPIC,
    WireForm.OPENAI_RESPONSES,
    WireForm.OLLAMA,
)


LONG = ("anthropic", "llamacpp", "ollama", "openai_responses", "sglang", "vllm")


def read(conversion: Conversion[bytes]) -> ChatResponse:
    """The result of *conversion* for a reader of the format."""
    provider = conversion.report.form.provider
    return normalize(conversion.value, provider, status=conversion.status, unknown="keep")


def form_of(answer: ChatResponse) -> WireForm | None:
    """The format of *answer*."""
    is_body = len(answer.raw_events) == 1
    return (form_of_body(answer.raw_events[0]) if is_body else None) or source_form(answer)


@pytest.mark.parametrize(
    "provider",
    [pytest.param(one, marks=pytest.mark.sweep) if one in LONG else one for one in broad_first(PROVIDERS)],
)
def test_every_recorded_answer_comes_back_from_two_other_formats(provider: str) -> None:
    ways = list(permutations(WireForm, 2))
    tried = 0
    for number, capture in enumerate(load_captures(OWN / provider)):
        try:
            answer = normalize(capture.body, provider, status=capture.status)
        except MappingError:
            continue
        own = form_of(answer)
        for first, second in ways[number % 3 :: 3]:
            if own not in (first, second) and not _is_read_otherwise(capture):
                tried += 1
                _check(answer, own, first, second, f"{capture.case} -> {first} -> {second}")
    assert tried


def _is_read_otherwise(capture: Capture) -> bool:
    """Whether the standard reader of the format of *capture* reads nothing of it: a call in the place of a list of calls."""
    return capture.case == "tool_1_4"


def _check(answer: ChatResponse, own: WireForm | None, first: WireForm, second: WireForm, place: str) -> None:
    there = convert(answer, first, carry=True)
    assert there.report.is_carried, place
    between = read(convert(read(there), second, carry=True))
    back = load_json(convert(between, CHAT if own is None else own).value)
    assert back == load_json(convert(answer, CHAT if own is None else own).value), place
    if own is not None and len(answer.raw_events) == 1 and form_of_body(answer.raw_events[0]):
        assert back == answer.raw_events[0], place


ANSWER = b"""{"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x", "content": [
  {"type": "thinking", "thinking": "The moon first.", "signature": "EqQB"},
  {"type": "text", "text": "I'll check.", "citations": null},
  {"type": "tool_use", "id": "toolu_1", "name": "moon_phase", "input": {}}],
  "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 12, "output_tokens": 60}}"""


def test_a_body_carries_only_what_the_format_cannot_say() -> None:
    answer = normalize(ANSWER, "anthropic")
    plain, carrying = convert(answer, CHAT), convert(answer, CHAT, carry=True)
    body = load_json(carrying.value)
    member = body.pop("crosswalk")
    assert body == load_json(plain.value)
    assert carrying.report.losses == plain.report.losses
    assert b"The moon first." not in dump_json(member)
    assert convert(read(carrying), MESSAGES).report.is_lossless


def test_a_call_survives_a_format_without_calls() -> None:
    through = convert(normalize(ANSWER, "anthropic"), WireForm.OPENAI_COMPLETIONS, carry=True)
    assert load_json(convert(read(through), MESSAGES).value) == load_json(ANSWER)


def test_a_stream_carries_in_its_last_event() -> None:
    answer = normalize(ANSWER, "anthropic")
    for form in WireForm:
        stream = convert_stream(normalize_stream([ANSWER], "anthropic"), form, carry=True)
        sent = b"".join(stream)
        assert sent.count(b'"crosswalk"') == 1
        back = normalize(sent, form.provider, unknown="keep")
        value = load_json(convert(back, MESSAGES).value)
        assert value == load_json(convert(from_json(to_json(answer), ChatResponse), MESSAGES).value) or (
            value == load_json(ANSWER)
        )


def changed(conversion: Conversion[bytes], **members: Any) -> ChatResponse:
    """The result of *conversion* for a reader after a change of *members*."""
    return normalize(dump_json({**load_json(conversion.value), **members}), conversion.report.form.provider)


def test_an_answer_that_was_changed_on_its_way_is_taken_as_it_is() -> None:
    carrying = convert(normalize(ANSWER, "anthropic"), CHAT, carry=True)
    other = changed(carrying, model="other")
    body = convert(other, MESSAGES)
    assert load_json(body.value)["model"] == "other"
    assert body.report.names("metadata.extensions.crosswalk")


@pytest.mark.parametrize(
    "member",
    [
        "text",
        {},
        {"version": 2, "reader": "openai"},
        {"version": 1, "reader": "openai", "digest": "no"},
        {"version": 1, "reader": "nobody", "digest": "no"},
        {"version": 1, "reader": 1},
    ],
)
def test_a_member_of_somebody_else_is_an_ordinary_field(member: Any) -> None:
    carrying = convert(normalize(ANSWER, "anthropic"), CHAT, carry=True)
    body = convert(changed(carrying, crosswalk=member), OLLAMA)
    assert load_json(body.value)["model"] == "claude-x"


@pytest.mark.parametrize(
    "broken", [{"response": {"items": [9]}}, {"response": None}, {"body": {"members": 1}}]
)
def test_a_broken_member_is_an_ordinary_field(broken: Any) -> None:
    carrying = convert(normalize(ANSWER, "anthropic"), CHAT, carry=True)
    member = {**load_json(carrying.value)["crosswalk"], **broken}
    body = convert(changed(carrying, crosswalk=member), MESSAGES)
    assert body.report.names("metadata.extensions.crosswalk")


def test_a_server_that_reads_otherwise_does_not_hide_what_is_carried() -> None:
    carrying = convert(normalize(ANSWER, "anthropic"), CHAT, carry=True)
    by_another = normalize(carrying.value, "vllm")
    assert load_json(convert(by_another, MESSAGES).value) == load_json(ANSWER)


def test_what_was_measured_comes_back_too() -> None:
    answer = normalize(ANSWER, "anthropic")
    answer = attrs.evolve(answer, metadata=attrs.evolve(answer.metadata, time_to_first_token=None))
    through = read(convert(answer, RESPONSES, carry=True))
    again = read(convert(through, CHAT, carry=True))
    chat = convert(again, RESPONSES, carry=True)
    assert to_jsonable(read(chat))["metadata"]["extensions"]["crosswalk"]["reader"] == "openai_responses"
    assert load_json(convert(read(chat), MESSAGES).value) == load_json(ANSWER)
