"""Laws for every canonical type: it cannot be changed, copies well, and shows little of its content."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from crosswalk.errors import ErrorInfo, ErrorKind, ResponseValidationError
from crosswalk.text import DEFAULT_CONTENT_LIMIT, set_content_limit
from crosswalk.types import (
    Alternative,
    AudioPart,
    ChatMessage,
    ChatResponse,
    CitationRef,
    ContentFilterResult,
    Correction,
    Cost,
    DocumentPart,
    FilePart,
    FinishReason,
    FrozenObject,
    ImagePart,
    ProviderAttempt,
    RawEvents,
    ResponseDelta,
    ResponseMetadata,
    SafetyAnnotation,
    SearchResultPart,
    Segment,
    SegmentType,
    StreamEvent,
    StreamEventType,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageDetails,
    UsageInfo,
    VideoPart,
)
from crosswalk.types.delta import text_delta
from crosswalk.types.values import altered, unchecked
from strategies import BY_TYPE, unfolded

VALUES = st.sampled_from(list(BY_TYPE)).flatmap(BY_TYPE.__getitem__)
LEAVES = (type(None), bool, int, float, str, bytes, Enum, datetime, timedelta, Decimal)

# ---------------------------------------------------------------------------------------------- immutable


@given(VALUES)
def test_no_field_can_be_set_or_deleted(value: Any) -> None:
    """FR-001, FR-030, FR-042, FR-056, NFR-013: every type is immutable."""
    for name in attrs.fields_dict(type(value)):
        with pytest.raises(AttributeError):
            setattr(value, name, None)
        with pytest.raises(AttributeError):
            delattr(value, name)
    with pytest.raises(AttributeError):
        value.something_new = 1


def mutable_parts(value: Any, path: str) -> Iterator[str]:
    """The places in *value* that can be changed."""
    if isinstance(value, LEAVES):
        return
    if attrs.has(type(value)):
        for name in attrs.fields_dict(type(value)):
            yield from mutable_parts(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, FrozenObject | MappingProxyType):
        for key, item in value.items():
            yield from mutable_parts(item, f"{path}[{key!r}]")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from mutable_parts(item, f"{path}[{index}]")
    elif isinstance(value, RawEvents):
        yield from mutable_parts(value.frames, f"{path}.frames")
    else:
        yield f"{path}: {type(value).__name__}"


@given(VALUES)
def test_nothing_inside_can_be_changed(value: Any) -> None:
    """NFR-013, NFR-022: all the way down, extensions and raw events too."""
    assert list(mutable_parts(value, type(value).__name__)) == []


def test_what_is_given_as_a_list_becomes_a_tuple() -> None:
    """The maker of a value has no handle to change it."""
    logprob = TokenLogprob("a", 0.0, [97], [TokenLogprob("b", -1.0)])
    segment = Segment(SegmentType.TEXT, "x", {"a": [1]}, [CitationRef(span=[0, 1])])
    message = ChatMessage.assistant(tool_calls=[ToolCall("i", "n")])
    values: list[Any] = [
        logprob,
        segment,
        message,
        ChatMessage.user([TextPart("x")]),
        ResponseDelta(0, logprobs=[logprob]),  # type: ignore[arg-type]
        ResponseDelta(0, content_delta="x", extensions={"a": {"b": [1]}}),
        Alternative(1, message, FinishReason.STOP, segments=[segment], logprobs=[logprob]),
        StreamEvent("response.created", segments=[segment], attempts=[], raw_event=[{"a": []}]),
        ProviderAttempt("p", "m", extra={"a": []}),
        attrs.evolve(
            ChatResponse.error("x", model="m"),
            segments=[segment],
            logprobs=[logprob],
            attempts=[],
            alternatives=[],
            content_filter_results=[],
            raw_events=[b"{}"],
        ),
    ]
    assert [part for value in values for part in mutable_parts(value, type(value).__name__)] == []


def test_a_read_only_view_of_somebody_elses_dict_is_copied() -> None:
    """NFR-022: a mapping proxy is read-only for us, not for its owner."""
    owned = {"id": "synthetic"}
    metadata = ResponseMetadata("p", "m", provenance=MappingProxyType(owned))
    owned["model"] = "absent"
    assert metadata.provenance == {"id": "synthetic"}


@pytest.mark.parametrize("change", [lambda e: setattr(e, "frames", ()), lambda e: setattr(e, "new", 1)])
def test_raw_events_cannot_be_changed(change: Any) -> None:
    """NFR-013: the provider's bytes neither."""
    with pytest.raises(AttributeError):
        change(RawEvents([b"{}"]))


# ------------------------------------------------------------------------------------------------- copying


@given(VALUES)
def test_copies_and_pickles_are_equal_in_every_field(value: Any) -> None:
    """A value crosses process borders whole (seed 000, description)."""
    for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert unfolded(again) == unfolded(value)
        assert again == value


@given(VALUES)
def test_every_value_is_hashable(value: Any) -> None:
    """Equal values have equal hashes. A value can be a key."""
    assert hash(value) == hash(copy.deepcopy(value))


@given(VALUES)
def test_evolving_nothing_changes_nothing(value: Any) -> None:
    """``attrs.evolve`` works for every type, also where the constructor is our own."""
    again = attrs.evolve(value)
    assert type(again) is type(value)
    assert unfolded(again) == unfolded(value)


# --------------------------------------------------------------------------------------------- unchecked


@given(VALUES)
def test_a_value_made_unchecked_is_the_same(value: Any) -> None:
    """Fields that are not given have their defaults. Checked fields are not checked again."""
    fields = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    given = {
        field.name: fields[field.name]
        for field in attrs.fields(type(value))
        if fields[field.name] != field.default
    }
    for again in (
        unchecked(type(value), **fields),
        unchecked(type(value), **given),
        altered(value),
        altered(value, **given),
    ):
        assert type(again) is type(value)
        assert unfolded(again) == unfolded(value)
        for name in fields:
            with pytest.raises(AttributeError):
                setattr(again, name, None)


def test_a_value_made_unchecked_has_defaults() -> None:
    assert (
        unchecked(ToolCall, id="c", name="n") == ToolCall("c", "n") == altered(ToolCall("c", "m"), name="n")
    )


def test_a_delta_of_one_text_is_like_any_other() -> None:
    """It holds no field that it does not need."""
    made, delta = text_delta(3, "content_delta", "x", 0, FrozenObject()), ResponseDelta(3, content_delta="x")
    assert unfolded(made) == unfolded(delta)
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), attrs.evolve(made)):
        assert again == delta
        assert hash(again) == hash(delta)
        assert repr(again) == repr(delta)
    with pytest.raises(AttributeError):
        made.content_delta = "y"  # type: ignore[misc]


# -------------------------------------------------------------------------------------------------- repr


@pytest.fixture
def content_limit() -> Iterator[None]:
    """Puts the limit back."""
    yield
    set_content_limit(DEFAULT_CONTENT_LIMIT)


def filled(text: str) -> list[Any]:
    """A value of every type with *text* wherever a text is allowed."""
    word = text or "x"
    call, fragment = ToolCall(word, word, text), ToolCallDelta(0, text, text, text)
    logprob = TokenLogprob(text, -1.0, None, (TokenLogprob(text, -1.0), TokenLogprob(text, -2.0)))
    extensions = FrozenObject({text: text, "list": [text, {text: text}]})
    notes = (CitationRef(text, text), SafetyAnnotation(text, text))
    segment = Segment(SegmentType.TEXT, text, extensions, notes)
    message = ChatMessage("assistant", text, text, [call, call])  # type: ignore[arg-type]
    metadata = ResponseMetadata(word, word, extensions=extensions, provenance={text: "absent"})
    correction = Correction("text", text, 0, 1)
    delta = ResponseDelta(
        0,
        content_delta=text,
        tool_call_delta=fragment,
        finish_reason=FinishReason.STOP,
        usage=UsageInfo(1, 2),
        reasoning_delta=text,
        refusal_delta=text,
        segment=segment,
        correction=correction,
        raw_finish_reason=text,
        logprobs=(logprob,),
        choice=1,
        extensions=extensions,
    )
    alternative = Alternative(1, message, FinishReason.STOP, text, text, (segment,), (logprob,))
    verdict = ContentFilterResult("hate", "low", True, text)
    attempt = ProviderAttempt(text, text, 1.0, "error", text, extensions)
    response = ChatResponse(
        word, message, FinishReason.STOP, UsageInfo(1, 2), metadata, datetime(2024, 1, 1, tzinfo=UTC), word,
        text, (verdict,), text, (segment,), (logprob,), (alternative,), (attempt,),
        [text.encode(errors="replace")],
    )  # fmt: skip
    event = StreamEvent(StreamEventType.OUTPUT_TEXT_DELTA, delta, (segment,), (attempt,), {"a": text})
    return [
        TextPart(text), ImagePart(url=text, media_type=text), AudioPart(data=text, media_type=text),
        VideoPart(data=text), SearchResultPart(text, title=text, source=text),
        DocumentPart(text, title=text, context=text),
        FilePart(url=text, media_type=text, name=text), ChatMessage.user((TextPart(text), TextPart(text))),
        ChatMessage.tool_result(word, text, name=text), *notes, call, fragment, logprob, extensions, segment, correction,
        message, metadata, delta, alternative, verdict, attempt, response, event, response.raw_events,
        StreamEvent.terminal(response, delta), ErrorInfo(ErrorKind.SERVER, text, code=text, raw={text: text}),
    ]  # fmt: skip


def test_every_type_is_looked_at() -> None:
    """The test below leaves no type out."""
    assert set(BY_TYPE) - {type(value) for value in filled("x")} == {Cost, UsageDetails, UsageInfo}


CONTENT = st.text("§\x00'\"\\🦙", max_size=300) | st.integers(0, 2000).map("§".__mul__)


@given(CONTENT)
def test_a_repr_shows_little_of_the_content(text: str) -> None:
    """NFR-020, AC-112: 200 characters in sum, counted as they are shown."""
    for value in filled(text):
        for shown in (repr(value), str(value)):
            assert shown.count("§") <= 200, type(value)
            assert len(shown) <= 200 + len(" provider_id='' ") * 15, type(value)


@pytest.mark.usefixtures("content_limit")
@pytest.mark.parametrize("limit", [0, 1, 10, 1000, -5])
def test_the_content_limit_can_be_set(limit: int) -> None:
    """Seed 000, ``logging.max_content_length``: 0 shows nothing, more shows more."""
    set_content_limit(limit)
    for value in filled("§" * 3000):
        assert repr(value).count("§") <= max(limit, 0), type(value)
    shown = repr(TextPart("§" * 3000))
    assert shown == f"TextPart(text='{'§' * max(limit - 1, 0)}…')"


def test_a_repr_says_what_there_is() -> None:
    """Fields that are empty are left out. Short ones are shown whole."""
    assert repr(ToolCall("i", "n")) == "ToolCall(id='i', name='n', arguments='{}')"
    assert repr(ChatMessage.user("it's")) == """ChatMessage(role='user', content="it's")"""
    assert repr(ResponseDelta(3, content_delta="x")) == "ResponseDelta(index=3, content_delta='x')"
    assert (
        repr(ResponseDelta(3, content_delta="x", choice=1))
        == "ResponseDelta(index=3, choice=1, content_delta='x')"
    )
    assert repr(Segment(SegmentType.ERROR, "x", {"kind": "server"}, [CitationRef()])) == (
        "Segment(type='error', content='x', metadata=('kind',), annotations=1)"
    )
    assert repr(FilePart(url="u", name="f")) == "FilePart(name='f', url='u')"
    assert repr(TextPart("x" * 200)) == f"TextPart(text='{'x' * 200}')"
    assert repr(TextPart("x" * 201)) == f"TextPart(text='{'x' * 199}…')"


@pytest.mark.usefixtures("content_limit")
def test_the_limit_shortens_content_and_not_the_facts_about_it() -> None:
    set_content_limit(5)
    answer = attrs.evolve(
        ChatResponse.success(ChatMessage.assistant("Hello, world"), UsageInfo(1, 2), "m-1"), id="resp_123"
    )
    assert repr(answer) == (
        "ChatResponse(id='resp_123', model='m-1', finish_reason='stop', usage=3, text='Hell…')"
    )
    odd = attrs.evolve(answer, id="a b" * 30, model="x" * 65)
    assert repr(odd).startswith("ChatResponse(id='a ba…', model='…', finish_reason='stop', usage=3, ")


def test_counts_show_what_was_counted() -> None:
    assert repr(UsageInfo(1, 2)) == "UsageInfo(prompt_tokens=1, completion_tokens=2)"
    full = UsageInfo(1, 2, 0, details=UsageDetails(audio_input_tokens=1))
    assert repr(full) == (
        "UsageInfo(prompt_tokens=1, completion_tokens=2, cached_tokens=0, details=UsageDetails(audio_input_tokens=1))"
    )


def test_factories_take_their_arguments_in_one_order_and_name_a_wrong_type() -> None:
    usage = UsageInfo(1, 2)
    for make, what in (
        (ChatResponse.success, ChatMessage.assistant("a")),
        (ChatResponse.refused, "no"),
        (ChatResponse.error, "down"),
    ):
        factory: Any = make
        assert (factory(what, usage, "m").usage, factory(what, usage, "m").model) == (usage, "m")
        with pytest.raises(ResponseValidationError, match="the model is a text, not UsageInfo"):
            factory(what, "m", usage)


def test_a_response_shows_what_one_looks_for() -> None:
    """The provider, the end, the counts, and the beginning of the text."""
    response = attrs.evolve(ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1, 2), "m"), id="r")
    assert repr(response) == "ChatResponse(id='r', model='m', finish_reason='stop', usage=3, text='Hi')"
    refused = attrs.evolve(ChatResponse.refused("no", model="m"), id="r")
    assert repr(refused) == "ChatResponse(id='r', model='m', finish_reason='stop', usage=0, refusal='no')"
