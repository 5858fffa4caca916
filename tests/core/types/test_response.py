"""ChatResponse and ResponseBuilder."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import attrs
import pytest
from hypothesis import given

from crosswalk import errors
from crosswalk.errors import ErrorInfo, ErrorKind, ProviderError, ResponseValidationError
from crosswalk.types import (
    Alternative,
    ChatMessage,
    ChatResponse,
    ContentFilterResult,
    FinishReason,
    Provenance,
    ProviderAttempt,
    RawEvents,
    ResponseBuilder,
    ResponseDelta,
    ResponseMetadata,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCall,
    UsageInfo,
)
from crosswalk.types.values import new_id
from strategies import chat_responses

CREATED = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
USAGE = UsageInfo(10, 20)
METADATA = ResponseMetadata("ollama", "llama3.2:8b", timedelta(seconds=4))
HELLO = ChatMessage.assistant("Hello")
CALLING = ChatMessage.assistant(tool_calls=[ToolCall("c", "f")])


def response(**changes: Any) -> ChatResponse:
    """A valid response with *changes*."""
    fields: dict[str, Any] = {
        "id": "r1",
        "message": HELLO,
        "finish_reason": FinishReason.STOP,
        "usage": USAGE,
        "metadata": METADATA,
        "created": CREATED,
        "model": "llama3.2:8b",
    }
    return ChatResponse(**{**fields, **changes})


# ---------------------------------------------------------------------------------------------- validation


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"id": ""}, "ACODE-RSP-001"),
        ({"id": None}, "ACODE-RSP-001"),
        ({"id": 5}, "ACODE-RSP-001"),
        ({"message": None}, "ACODE-RSP-002"),
        ({"message": "Hello"}, "ACODE-RSP-002"),
        ({"finish_reason": None}, "ACODE-RSP-003"),
        ({"finish_reason": "done"}, "ACODE-RSP-003"),
        ({"usage": None}, None),
        ({"metadata": None}, None),
        ({"created": None}, None),
        ({"created": datetime(2024, 1, 1)}, None),
        ({"created": "2024-01-01T00:00:00Z"}, None),
        ({"created": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))}, None),
    ],
)
def test_what_a_response_refuses(changes: dict[str, Any], code: str | None) -> None:
    """FR-016 to FR-018, NFR-016: invalid states are caught at construction."""
    with pytest.raises(ResponseValidationError) as caught:
        response(**changes)
    assert caught.value.code == code


def test_created_is_utc() -> None:
    """FR-007, AC-012: whatever zone it is given in."""
    zoned = CREATED.astimezone(timezone(timedelta(hours=2)))
    assert response(created=zoned).created == CREATED
    assert response(created=zoned).created.tzinfo is UTC


def test_a_zone_that_knows_no_offset_is_none() -> None:
    """FR-007: that time is unknown."""

    class Nowhere(tzinfo):
        def utcoffset(self, _: datetime | None) -> None:
            return None

        tzname = dst = utcoffset

    with pytest.raises(ResponseValidationError, match="time zone"):
        response(created=datetime(2024, 1, 1, tzinfo=Nowhere()))


# -------------------------------------------------------------------------------------- computed properties


@pytest.mark.parametrize("reason", FinishReason)
def test_complete_and_truncated(reason: FinishReason) -> None:
    """FR-010, FR-011: complete is ``stop`` alone, truncated ``length`` alone."""
    ended = response(finish_reason=reason)
    assert ended.is_complete == (reason is FinishReason.STOP)
    assert ended.is_truncated == (reason is FinishReason.LENGTH)


def test_text_and_reasoning() -> None:
    """Design, section 4: the text of the message. The reasoning of all reasoning segments."""
    parts = [
        Segment(SegmentType.REASONING, "a"),
        Segment(SegmentType.TEXT, "x"),
        Segment(SegmentType.REASONING, "b"),
    ]
    assert (response(segments=parts).text, response(segments=parts).reasoning) == ("Hello", "ab")
    assert (response(message=CALLING).text, response().reasoning) == ("", "")


@pytest.mark.parametrize(
    ("provenance", "rate"),
    [
        ({"usage": Provenance.ABSENT}, None),
        ({"usage.completion_tokens": Provenance.ABSENT}, None),
        ({"usage.prompt_tokens": Provenance.ABSENT}, 5.0),
        ({"usage": Provenance.DERIVED}, 5.0),
        ({"usage": Provenance.DERIVED, "usage.completion_tokens": Provenance.ABSENT}, None),
    ],
)
def test_a_missing_count_is_no_rate(provenance: dict[str, Provenance], rate: float | None) -> None:
    """P8: a count that was not sent is not zero, and gives no rate. One that was worked out does."""
    assert response(metadata=attrs.evolve(METADATA, provenance=provenance)).tokens_per_second == rate


# ------------------------------------------------------------------------------------------------ equality


def test_equality_is_by_id() -> None:
    """FR-013: two responses with one id are one."""
    assert response() == response(message=CALLING, model="other")
    assert hash(response()) == hash(response(model="other"))
    assert response() != response(id="r2")
    assert response() != "r1"


DIFFERENCES: list[tuple[dict[str, Any], bool]] = [
    ({"id": "r2"}, True),
    ({"created": CREATED + timedelta(1)}, True),
    ({"raw_events": RawEvents([b"{}"])}, True),
    ({"metadata": attrs.evolve(METADATA, request_duration=timedelta(9))}, True),
    ({"metadata": attrs.evolve(METADATA, time_to_first_token=timedelta(9))}, True),
    ({"metadata": attrs.evolve(METADATA, provenance={"id": "synthetic", "created": "synthetic"})}, True),
    ({"metadata": attrs.evolve(METADATA, provenance={"metadata.request_duration": "absent"})}, True),
    ({"metadata": attrs.evolve(METADATA, provenance={"model": "absent"})}, False),
    ({"metadata": attrs.evolve(METADATA, extensions={"a": 1})}, False),
    ({"metadata": attrs.evolve(METADATA, model_id="other")}, False),
    ({"metadata": attrs.evolve(METADATA, provider_id="vllm")}, False),
    ({"message": ChatMessage.assistant("Hello!")}, False),
    ({"finish_reason": FinishReason.LENGTH}, False),
    ({"usage": UsageInfo(10, 21)}, False),
    ({"model": "other"}, False),
    ({"refusal": ""}, False),
    ({"content_filter_results": ()}, False),
    ({"raw_finish_reason": "stop"}, False),
    ({"segments": [Segment(SegmentType.TEXT, "Hello")]}, False),
    ({"logprobs": [TokenLogprob("Hello", -0.1)]}, False),
    ({"alternatives": [Alternative(1, HELLO, FinishReason.STOP)]}, False),
    ({"attempts": [ProviderAttempt("ollama", "m")]}, False),
]


@pytest.mark.parametrize(("changes", "same"), DIFFERENCES)
def test_same_content_is_everything_but_id_and_clock(changes: dict[str, Any], same: bool) -> None:
    """Design, section 4: every field counts but the id, the clocks and the raw bytes."""
    assert response().same_content(response(**changes)) is same
    assert response(**changes).same_content(response()) is same


def test_same_content_looks_at_every_field() -> None:
    """A field that is added to the response must be added to the table above."""
    assert {name for changes, _ in DIFFERENCES for name in changes} == set(attrs.fields_dict(ChatResponse))


def test_the_time_of_an_attempt_is_no_content() -> None:
    """Two attempts that differ in latency alone say the same."""
    first, second = (response(attempts=[ProviderAttempt("ollama", "m", ms)]) for ms in (1.0, 2.0))
    assert first.same_content(second)
    assert not first.same_content(response(attempts=[ProviderAttempt("vllm", "m", 1.0)]))


@given(chat_responses)
def test_everything_says_the_same_as_itself(value: ChatResponse) -> None:
    """Also under another id and at another time."""
    assert value.same_content(attrs.evolve(value, id="other", created=CREATED))


# ---------------------------------------------------------------------------------------------- factories


@pytest.mark.parametrize(
    ("factory", "message", "reason"),
    [
        (ChatResponse.success, HELLO, FinishReason.STOP),
        (ChatResponse.truncated, HELLO, FinishReason.LENGTH),
        (ChatResponse.tool_calls_required, CALLING, FinishReason.TOOL_CALLS),
    ],
)
def test_factories_for_answers(
    factory: Callable[..., ChatResponse], message: ChatMessage, reason: FinishReason
) -> None:
    """FR-110 to FR-112: the finish reason in the name, a GUID, the time of now."""
    before = datetime.now(UTC)
    made = factory(message, USAGE, "m")
    assert (made.message, made.usage, made.model, made.finish_reason) == (message, USAGE, "m", reason)
    assert (made.metadata.provider_id, made.metadata.model_id) == ("unknown", "m")
    made_up = {"id": "synthetic", "created": "synthetic", "metadata.request_duration": "absent"}
    assert made.metadata.provenance == made_up
    assert ChatResponse.error("down", model="m").metadata.provenance == made_up | {"usage": "absent"}
    assert str(uuid.UUID(made.id)) == made.id
    assert before <= made.created <= datetime.now(UTC)
    assert factory(message, USAGE, "m", METADATA).metadata == METADATA
    assert factory(message, USAGE, "m") != made


def test_required_tool_calls_are_required() -> None:
    """FR-112: an answer that asks for tools names them."""
    with pytest.raises(ResponseValidationError, match="needs some"):
        ChatResponse.tool_calls_required(HELLO, USAGE, "m")


def test_a_refusal() -> None:
    """FR-113: the model declined: its words are the refusal, the message is empty, nothing failed."""
    refused = ChatResponse.refused("I cannot help with that.", model="m")
    assert (refused.refusal, refused.text) == ("I cannot help with that.", "")
    assert (refused.finish_reason, refused.usage) == (FinishReason.STOP, UsageInfo.EMPTY)
    assert refused.segments == (Segment(SegmentType.REFUSAL, "I cannot help with that."),)
    assert refused.raise_for_error() is refused
    blocked = ChatResponse.refused("no", USAGE, "m", METADATA, finish_reason=FinishReason.CONTENT_FILTER)
    assert (blocked.finish_reason, blocked.usage, blocked.metadata) == ("content_filter", USAGE, METADATA)


def test_an_error() -> None:
    """FR-096 to FR-100, FR-114: its text is the refusal. Metadata, usage and what came before are kept."""
    failed = ChatResponse.error("out of memory", USAGE, "m", METADATA, message=HELLO)
    assert failed.finish_reason is FinishReason.ERROR
    assert failed.refusal == "out of memory"
    assert (failed.usage, failed.metadata, failed.text) == (USAGE, METADATA, "Hello")
    assert failed.error_info == ErrorInfo(ErrorKind.UNKNOWN, "out of memory")
    assert ChatResponse.error("x", model="m").message == ChatMessage.assistant()


def test_an_error_shows_nothing_of_the_system() -> None:
    """NFR-023: refusal and segment have the cleaned text."""
    failed = ChatResponse.error("cannot open /root/models/x with sk-abcdefgh1234\x07", model="m")
    assert failed.refusal == "cannot open <path> with <secret>"
    assert [segment.content for segment in failed.segments] == [failed.refusal]


def test_from_deltas() -> None:
    """FR-115: in whatever order they come. Missing and repeated ones are refused."""
    deltas = [
        ResponseDelta(1, content_delta="lo"),
        ResponseDelta(0, content_delta="Hel"),
        ResponseDelta(2, finish_reason=FinishReason.STOP),
    ]
    made = ChatResponse.from_deltas(deltas)
    assert (made.text, made.finish_reason) == ("Hello", FinishReason.STOP)
    for wrong, code in ((deltas[:2], "-008"), (deltas[1:], "-008"), ([*deltas, deltas[0]], "-010")):
        with pytest.raises(ResponseValidationError, match=f"ACODE-RSP{code}"):
            ChatResponse.from_deltas(wrong)


# ---------------------------------------------------------------------------------------- raise_for_error


@pytest.mark.parametrize("kind", ErrorKind)
def test_raise_for_error_raises_the_class_of_the_kind(kind: ErrorKind) -> None:
    """Design, section 4, NFR-037: with what the provider said, the response and the correlation id."""
    info = ErrorInfo(
        kind, "it broke", True, 503, "code_7", {"error": {"message": "it broke", "details": [1]}}
    )
    failed = ChatResponse.error(info, model="m", metadata=METADATA)
    with pytest.raises(ProviderError) as caught:
        failed.raise_for_error()
    error = caught.value
    assert type(error) is ProviderError.of_kind(kind)
    assert (error.info, error.response, error.correlation_id) == (info, failed, failed.id)
    assert str(error) == f"ollama: {kind} (HTTP 503): it broke [{failed.id}]"


def test_an_error_without_a_status_names_none() -> None:
    """An error inside a stream has no HTTP status."""
    failed = attrs.evolve(ChatResponse.error(ErrorInfo("timeout", "too slow"), model="m"), id="r" * 200)
    with pytest.raises(errors.ProviderTimeoutError) as caught:
        failed.raise_for_error()
    assert str(caught.value) == f"unknown: timeout: too slow [{'r' * 80}]"


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": 5},
        {"message": None},
        {"kind": "odd"},
        {"retryable": 1},
        {"retryable": "yes"},
        {"status": "500"},
        {"status": -1},
        {"status": True},
        {"code": 429},
        {"code": "\ud800"},
    ],
)
def test_an_error_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    """At its making, not when it is written as JSON."""
    with pytest.raises(
        ResponseValidationError, match=next(iter(wrong)) if "kind" not in wrong else "kind of error"
    ):
        ErrorInfo(**{"kind": ErrorKind.SERVER, "message": "x", **wrong})


@pytest.mark.parametrize("reason", [reason for reason in FinishReason if reason is not FinishReason.ERROR])
def test_no_other_response_is_an_error(reason: FinishReason) -> None:
    """FR-096: the finish reason tells."""
    fine = response(finish_reason=reason, segments=[Segment(SegmentType.ERROR, "a tool failed")])
    assert fine.error_info is None
    assert fine.raise_for_error() is fine


@pytest.mark.parametrize(
    ("segments", "refusal", "message"),
    [
        ([], None, "the generation failed"),
        ([], "", "the generation failed"),
        ([], "it broke", "it broke"),
        ([Segment(SegmentType.TEXT, "Hi"), *(Segment(SegmentType.ERROR, t) for t in "ab")], "y", "a"),
        ([Segment(SegmentType.ERROR)], None, "the generation failed"),
    ],
)
def test_an_error_always_says_something(segments: list[Segment], refusal: str | None, message: str) -> None:
    """FR-097: the first error segment, else the refusal, else that it failed."""
    failed = response(finish_reason=FinishReason.ERROR, segments=segments, refusal=refusal)
    assert failed.error_info == ErrorInfo(ErrorKind.UNKNOWN, message)


@pytest.mark.parametrize("odd", [None, "odd", 5, [], {}, True, 1.5])
def test_an_error_segment_may_hold_anything(odd: Any) -> None:
    """P4: what a plugin or a stored file wrote there is read as far as it makes sense, and never fails."""
    said = {"kind": odd, "status": odd, "code": odd, "retryable": odd}
    segment = Segment(SegmentType.ERROR, "x", said)
    info = response(finish_reason=FinishReason.ERROR, segments=[segment]).error_info
    assert info is not None
    assert (info.kind, info.message) == (ErrorKind.UNKNOWN, "x")
    assert (info.status, info.code) == (odd if type(odd) is int else None, odd if type(odd) is str else None)
    assert info.retryable is (odd is True)


def test_what_error_info_gives_out_is_a_copy() -> None:
    """NFR-013: changing the raw payload of one look does not change the response."""
    failed = ChatResponse.error(ErrorInfo(ErrorKind.SERVER, "x", raw={"a": [1]}), model="m")
    info = failed.error_info
    assert info is not None
    info.raw["a"].append(2)
    assert failed.error_info == ErrorInfo(ErrorKind.SERVER, "x", raw={"a": [1]})


# ------------------------------------------------------------------------------------------------- builder


def builder() -> ResponseBuilder:
    """One with the required fields."""
    return (
        ResponseBuilder()
        .with_message(HELLO)
        .with_finish_reason("stop")
        .with_usage(USAGE)
        .with_metadata(METADATA)
    )


def test_the_builder_sets_every_field() -> None:
    """FR-078 to FR-085: each step gives the builder back. There is a step for every field."""
    fields: dict[str, Any] = {
        "id": "r1",
        "message": HELLO,
        "usage": USAGE,
        "metadata": METADATA.with_completion_tokens(20),
        "created": CREATED,
        "model": "other",
        "refusal": "no",
        "content_filter_results": (ContentFilterResult("hate", "low", False),),
        "segments": (Segment(SegmentType.TEXT, "Hello"),),
        "logprobs": (TokenLogprob("Hello", -0.1),),
        "alternatives": (Alternative(1, HELLO, FinishReason.STOP),),
        "attempts": (ProviderAttempt("ollama", "m"),),
        "raw_events": RawEvents([b"{}"]),
    }
    steps = ResponseBuilder()
    for name, value in fields.items():
        assert getattr(steps, f"with_{name}")(value) is steps
    assert steps.with_finish_reason(FinishReason.STOP, raw="eos") is steps
    built = steps.build()
    fields |= {"finish_reason": FinishReason.STOP, "raw_finish_reason": "eos"}
    assert {name: getattr(built, name) for name in attrs.fields_dict(ChatResponse)} == fields


def test_the_builder_makes_id_time_and_model() -> None:
    """FR-086, FR-087: a GUID, the time of now, the metadata's model."""
    before = datetime.now(UTC)
    built = builder().build()
    assert str(uuid.UUID(built.id)) == built.id
    assert before <= built.created <= datetime.now(UTC)
    assert built.model == "llama3.2:8b"


def test_the_builder_can_be_given_clock_and_ids() -> None:
    """P5: both are injectable, and asked only where they are needed."""
    ids, times = iter(["a", "b"]), iter([CREATED])
    steps = ResponseBuilder(id_factory=lambda: next(ids), clock=lambda: next(times))
    steps.with_message(HELLO).with_finish_reason("stop").with_usage(USAGE).with_metadata(METADATA)
    assert (steps.build().id, steps.with_created(CREATED).build().id) == ("a", "b")
    assert steps.with_id("c").build().id == "c"


def test_none_takes_an_optional_field_back() -> None:
    """FR-084: ``with_refusal(None)``."""
    steps = builder().with_refusal("no").with_refusal(None)
    built = (
        steps.with_content_filter_results([]).with_content_filter_results(None).with_logprobs(None).build()
    )
    assert (built.refusal, built.content_filter_results, built.logprobs) == (None, None, None)


@pytest.mark.parametrize(
    ("steps", "code", "cause"),
    [
        (ResponseBuilder(), "ACODE-RSP-002", "message"),
        (builder().with_message(None), "ACODE-RSP-002", "message"),  # type: ignore[arg-type]
        (ResponseBuilder().with_message(HELLO), "ACODE-RSP-003", "none"),
        (builder().with_finish_reason("odd"), "ACODE-RSP-003", "odd"),
        (
            ResponseBuilder().with_message(HELLO).with_finish_reason("stop"),
            "ACODE-RSP-008",
            "no usage and no metadata",
        ),
        (builder().with_metadata(None), "ACODE-RSP-008", "no metadata"),  # type: ignore[arg-type]
        (builder().with_usage(None), "ACODE-RSP-008", "no usage"),  # type: ignore[arg-type]
        (builder().with_id(""), "ACODE-RSP-001", "empty"),
    ],
)
def test_the_builder_validates(steps: ResponseBuilder, code: str, cause: str) -> None:
    """FR-085, FR-088: nothing incomplete or invalid is built."""
    with pytest.raises(ResponseValidationError, match=cause) as caught:
        steps.build()
    assert caught.value.code == code


def test_a_builder_can_build_again() -> None:
    """Each response has its own id. A step changes the next one only."""
    steps = builder()
    first = steps.build()
    second = steps.with_message(CALLING).build()
    assert first != second
    assert (first.message, second.message) == (HELLO, CALLING)


def test_an_alternative() -> None:
    """``n > 1``: another answer, with its own end."""
    other = Alternative(1, HELLO, "length", "max_tokens")
    assert (other.finish_reason, other.raw_finish_reason, other.refusal) == (
        FinishReason.LENGTH,
        "max_tokens",
        None,
    )
    assert repr(other) == "Alternative(index=1, finish_reason='length', text='Hello')"


def test_made_up_ids_are_random_uuids() -> None:
    made = [new_id() for _ in range(1000)]
    assert len({*made}) == 1000
    assert {uuid.UUID(id).version for id in made} == {4}
    assert {uuid.UUID(id).variant for id in made} == {uuid.RFC_4122}
    assert [str(uuid.UUID(id)) for id in made] == made
