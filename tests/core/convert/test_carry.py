"""``convert(…, carry=True)``: an answer that goes through two other formats comes back as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import attrs
import pytest

from converting import broad_first
from crosswalk import (
    ChatResponse,
    FinishReason,
    MappingError,
    ResponseDelta,
    from_json,
    normalize,
    normalize_stream,
    to_json,
    to_jsonable,
)
from crosswalk.convert import (
    Conversion,
    ConvertedStream,
    StreamConverter,
    WireForm,
    convert,
    convert_stream,
    events_of,
    original_of,
)
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.formats.writing import form_of_body, source_form
from crosswalk.testing import Capture, load_captures
from crosswalk.types import Provenance, load_json
from crosswalk.types.json import dump_json

OWN = Path(__file__).parents[2] / "captures"
PROVIDERS = sorted(folder.name for folder in OWN.iterdir() if folder.is_dir())
CHAT, MESSAGES, RESPONSES, OLLAMA = (
    WireForm.OPENAI_CHAT,
    WireForm.ANTHROPIC,
    WireForm.OPENAI_RESPONSES,
    WireForm.OLLAMA,
)


BY_FORM = {
    CHAT: ("openai", "mistral"),
    RESPONSES: ("openai_responses",),
    MESSAGES: ("anthropic",),
    OLLAMA: ("ollama",),
    WireForm.OLLAMA_GENERATE: ("ollama",),
    WireForm.GEMINI: ("gemini",),
    WireForm.OPENAI_COMPLETIONS: ("vllm",),
}
"""The providers with recorded answers of each format."""
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
        first, last = [load_json(one) for one in OBJECTS.findall(sent) if b'"crosswalk"' in one]
        assert top_of(first)["crosswalk"] == {"version": 1}
        assert top_of(last)["crosswalk"]["reader"] == form.provider
        back = normalize(sent, form.provider, unknown="keep")
        value = load_json(convert(back, MESSAGES).value)
        assert value == load_json(convert(from_json(to_json(answer), ChatResponse), MESSAGES).value) or (
            value == load_json(ANSWER)
        )


OBJECTS = re.compile(rb"^(?:data: )?(\{.*\})$", re.MULTILINE)
"""The events of a stream of any format."""


def top_of(event: dict[str, Any]) -> dict[str, Any]:
    """The object in *event* that has the top fields of a body."""
    inner: dict[str, Any] | None = event.get("response") if "type" in event else None
    return event if inner is None else inner


def sent_as(form: WireForm, source: Capture, provider: str) -> tuple[bytes, ChatResponse]:
    """The stream of *source* in *form*, which carries it, and the answer of its provider."""
    deltas = normalize_stream([source.body], provider, status=source.status)
    return b"".join(convert_stream(deltas, form, carry=True)), deltas.response


def again(sent: Iterable[bytes], form: WireForm, own: WireForm) -> ConvertedStream[bytes]:
    """The stream *sent* in *form*, converted to its *own* one."""
    return convert_stream(normalize_stream(sent, form.provider, unknown="keep"), own, losses="report")


def stored(answer: ChatResponse) -> ChatResponse:
    """*answer* without its bytes."""
    return from_json(to_json(answer), ChatResponse)


@pytest.mark.untraced
@pytest.mark.parametrize(("own", "form"), [*permutations(WireForm, 2)])
def test_a_carried_stream_comes_back_as_a_stream_of_its_own_format(own: WireForm, form: WireForm) -> None:
    tried = 0
    for provider in BY_FORM[own]:
        for capture in [*load_captures(OWN / provider)][::3]:
            with suppress(MappingError):
                sent, answer = sent_as(form, capture, provider)
                if source_form(answer) is (OLLAMA if own is WireForm.OLLAMA_GENERATE else own):
                    tried += 1
                    back = b"".join(again([sent], form, own))
                    events = [load_json(one) for one in OBJECTS.findall(back)]
                    assert events == load_json(dump_json(events_of(stored(answer), own))), capture.case
    assert tried


def test_a_long_stream_is_read_back_to_its_end() -> None:
    words = [f"word {number} " for number in range(300)]
    deltas = [ResponseDelta(number, content_delta=word) for number, word in enumerate(words)]
    deltas.append(ResponseDelta(len(words), finish_reason=FinishReason.STOP))
    stream = convert_stream(deltas, CHAT)
    assert normalize(b"".join(stream), "openai").text == "".join(words)
    assert not stream.report.names("message.content")


def test_a_carried_stream_goes_through_two_formats() -> None:
    first = convert_stream(normalize_stream([ANSWER], "anthropic"), OLLAMA, carry=True)
    second = convert_stream(normalize_stream(first, "ollama"), RESPONSES, carry=True)
    back = again(second, RESPONSES, MESSAGES)
    assert b'"signature":"EqQB"' in b"".join(back)
    assert back.report.is_lossless


def test_a_carried_stream_waits_for_its_end() -> None:
    *frames, last = convert_stream(normalize_stream([ANSWER], "anthropic"), OLLAMA, carry=True)
    taken: list[bytes] = []

    def coming() -> Iterator[bytes]:
        for frame in [*frames, last]:
            assert not taken
            yield frame

    for event in again(coming(), OLLAMA, MESSAGES):
        taken.append(event)
    assert b"".join(taken).count(b"event: message_start") == 1


def test_a_carried_stream_that_was_changed_is_taken_as_it_is() -> None:
    sent = b"".join(convert_stream(normalize_stream([ANSWER], "anthropic"), OLLAMA, carry=True))
    back = again([sent.replace(b"check", b"see")], OLLAMA, MESSAGES)
    assert b"I'll see." in b"".join(back)
    assert back.report.names("metadata.extensions.crosswalk")


def test_a_carried_stream_that_breaks_off_gives_what_has_come() -> None:
    frames = [*convert_stream(normalize_stream([ANSWER], "anthropic"), OLLAMA, carry=True)]
    back = again([*frames[:-1], b"{"], OLLAMA, MESSAGES)
    taken: list[bytes] = []
    with pytest.raises(MappingError):
        taken.extend(back)
    assert b"I'll check." in b"".join(taken)


def test_a_carried_stream_that_fails_gives_what_has_come_before_the_error() -> None:
    frames = [*convert_stream(normalize_stream([ANSWER], "anthropic"), OLLAMA, carry=True)]
    deltas = normalize_stream(frames[:-1], "ollama")
    converter = StreamConverter(MESSAGES, lambda: deltas.partial)
    assert [event for delta in islice(deltas, 2) for event in converter.feed(delta)] == []
    events = [*converter.fail(ErrorInfo(ErrorKind.SERVER, "gone"))]
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "error"]


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


def test_a_server_that_reads_otherwise_does_not_hide_what_a_stream_carries() -> None:
    sent = b"".join(convert_stream(normalize_stream([ANSWER], "anthropic"), CHAT, carry=True))
    back = convert_stream(normalize_stream([sent], "vllm"), MESSAGES)
    assert b'"signature":"EqQB"' in b"".join(back)
    assert back.report.is_lossless


def test_an_answer_that_was_waited_for_gives_what_it_carries() -> None:
    """Its duration, its tokens in a second and the model that was asked for are no change of what came."""
    answer = normalize(ANSWER, "anthropic")
    unnamed = attrs.evolve(
        answer, metadata=attrs.evolve(answer.metadata, provenance={"model": Provenance.ABSENT})
    )
    carrying = read(convert(unnamed, CHAT, carry=True))
    metadata = attrs.evolve(
        carrying.metadata,
        model_id="asked",
        request_duration=timedelta(seconds=2),
        time_to_first_token=timedelta(seconds=1),
        completion_tokens=60,
        provenance={**carrying.metadata.provenance, "model": Provenance.DERIVED},
    )
    asked = attrs.evolve(carrying, model="asked", metadata=metadata)
    original = original_of(asked)
    assert to_jsonable(original) == to_jsonable(unnamed)
    assert original_of(original) is original


def test_what_was_measured_comes_back_too() -> None:
    answer = normalize(ANSWER, "anthropic")
    answer = attrs.evolve(answer, metadata=attrs.evolve(answer.metadata, time_to_first_token=None))
    through = read(convert(answer, RESPONSES, carry=True))
    again = read(convert(through, CHAT, carry=True))
    chat = convert(again, RESPONSES, carry=True)
    assert to_jsonable(read(chat))["metadata"]["extensions"]["crosswalk"]["reader"] == "openai_responses"
    assert load_json(convert(read(chat), MESSAGES).value) == load_json(ANSWER)
