"""What holds for every canonical type: it cannot be changed, copies well, and shows little of its content."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator, Mapping
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
    Cost,
    FilePart,
    FinishReason,
    FrozenObject,
    ImagePart,
    ProviderAttempt,
    RawEvents,
    ResponseDelta,
    ResponseMetadata,
    SafetyAnnotation,
    Segment,
    SegmentType,
    StreamEvent,
    StreamEventType,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
)
from crosswalk.types._value import fast_init
from strategies import BY_TYPE, unfolded

VALUES = st.sampled_from(list(BY_TYPE)).flatmap(BY_TYPE.__getitem__)
FAST = [cls for cls in BY_TYPE if hasattr(cls, "__mutable_twin__")]
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
    """Where *value* holds something that can be changed."""
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
    """Whoever made a value has no handle to change it."""
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
            ChatResponse.error("x", "m"),
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
    """Equal values hash alike; a value can be a key."""
    assert hash(value) == hash(copy.deepcopy(value))


@given(VALUES)
def test_evolving_nothing_changes_nothing(value: Any) -> None:
    """``attrs.evolve`` works for every type, also where the constructor is our own."""
    again = attrs.evolve(value)
    assert type(again) is type(value)
    assert unfolded(again) == unfolded(value)


# --------------------------------------------------------------------------------------------- fast_init


@pytest.mark.parametrize("cls", FAST)
def test_the_fast_constructor_takes_what_the_slow_one_would(cls: type) -> None:
    """The signature is the one that attrs wrote: names, order, defaults."""
    parameters = inspect.signature(cls).parameters
    assert list(parameters) == [field.alias for field in attrs.fields(cls)]
    for field in attrs.fields(cls):
        default = parameters[str(field.alias)].default
        assert (default is inspect.Parameter.empty) == (field.default is attrs.NOTHING)


def test_the_fast_constructor_is_used_where_it_counts() -> None:
    """NFR-002, NFR-003: whatever a stream is made of."""
    assert {ResponseDelta, ToolCallDelta, TokenLogprob, UsageInfo, Segment} <= set(FAST)


@pytest.mark.parametrize("cls", FAST)
def test_a_class_with_the_fast_constructor_is_final(cls: type) -> None:
    """The seed's records are sealed; deriving fails at once and clearly, not at the first instance."""
    with pytest.raises(TypeError, match=f"{cls.__name__} is final: Mine cannot be derived from it"):
        type("Mine", (cls,), {})


@pytest.fixture(params=[0, 100], ids=["fast", "slow"])
def uses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many values are made with the slow constructor, which is kept while there are few."""
    monkeypatch.setattr("crosswalk.types._value._FROZEN_USES", request.param)


def test_a_class_of_many_values_gets_its_fast_constructor() -> None:
    @fast_init
    @attrs.frozen(weakref_slot=False)
    class Sample:
        a: int

    slow = Sample.__init__
    made = [Sample(number) for number in range(103)]
    assert Sample.__init__ is not slow
    assert [sample.a for sample in made] == [*range(103)]
    assert {*map(type, made)} == {Sample}


def test_fast_init_keeps_what_attrs_can_do(uses: None) -> None:
    """Defaults, factories, converters, validators, keyword-only fields, aliases; with or without a check."""

    @fast_init
    @attrs.frozen(weakref_slot=False)
    class Sample:
        a: int = attrs.field(converter=int, validator=attrs.validators.ge(0))
        b: tuple[int, ...] = attrs.field(factory=tuple)
        _c: int = 3
        d: int = attrs.field(default=4, kw_only=True)

    assert attrs.astuple(Sample("1", c=5, d=6)) == (1, (), 5, 6)
    assert Sample(1) == Sample(1)
    with pytest.raises(ValueError, match="must be >= 0"):
        Sample(-1)
    with pytest.raises(TypeError):
        Sample()  # type: ignore[call-arg]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Sample(1).a = 2  # type: ignore[misc]


def test_an_instance_is_frozen_when_it_is_checked(uses: None) -> None:
    """A check that tries to change a field by assignment fails, as in any frozen class."""

    @fast_init
    @attrs.frozen(weakref_slot=False)
    class Sample:
        a: int

        def __attrs_post_init__(self) -> None:
            self.a = 2  # type: ignore[misc]

    for _ in range(2):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            Sample(1)


# -------------------------------------------------------------------------------------------------- repr


@pytest.fixture
def content_limit() -> Iterator[None]:
    """Puts the limit back."""
    yield
    set_content_limit(DEFAULT_CONTENT_LIMIT)


def filled(text: str) -> list[Any]:
    """A value of every type with *text* wherever a text may stand."""
    word = text or "x"
    call, fragment = ToolCall(word, word, text), ToolCallDelta(0, text, text, text)
    logprob = TokenLogprob(text, -1.0, None, (TokenLogprob(text, -1.0), TokenLogprob(text, -2.0)))
    extensions = FrozenObject({text: text, "list": [text, {text: text}]})
    notes = (CitationRef(text, text), SafetyAnnotation(text, text))
    segment = Segment(SegmentType.TEXT, text, extensions, notes)
    message = ChatMessage("assistant", text, text, [call, call])  # type: ignore[arg-type]
    metadata = ResponseMetadata(word, word, extensions=extensions, provenance={text: "absent"})
    delta = ResponseDelta(
        0,
        content_delta=text,
        tool_call_delta=fragment,
        finish_reason=FinishReason.STOP,
        usage=UsageInfo(1, 2),
        reasoning_delta=text,
        refusal_delta=text,
        segment=segment,
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
        FilePart(url=text, media_type=text, name=text), ChatMessage.user((TextPart(text), TextPart(text))),
        ChatMessage.tool_result(word, text, name=text), *notes, call, fragment, logprob, extensions, segment,
        message, metadata, delta, alternative, verdict, attempt, response, event, response.raw_events,
        StreamEvent.terminal(response, delta), ErrorInfo(ErrorKind.SERVER, text, code=text, raw={text: text}),
    ]  # fmt: skip


def test_every_type_is_looked_at() -> None:
    """The test below leaves no type out."""
    assert set(BY_TYPE) - {type(value) for value in filled("x")} == {Cost, UsageInfo}


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
    """Fields that are empty are left out; what fits is shown whole."""
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


def test_a_response_shows_what_one_looks_for() -> None:
    """Who, how it ended, how much, and the beginning of the text."""
    response = attrs.evolve(ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1, 2), "m"), id="r")
    assert repr(response) == "ChatResponse(id='r', model='m', finish_reason='stop', usage=3, text='Hi')"
    refused = attrs.evolve(ChatResponse.refused("no", "m"), id="r")
    assert repr(refused) == "ChatResponse(id='r', model='m', finish_reason='stop', usage=0, refusal='no')"


def test_types_are_checked_where_a_wrong_one_would_fail_later() -> None:
    """NFR-016: at construction, with our error, not as a bare one when the answer is put together."""
    odd: Any = 5
    for make in (
        lambda: ResponseDelta(odd / 2, content_delta="x"),
        lambda: ResponseDelta(True, content_delta="x"),
        lambda: ResponseDelta(0, content_delta="x", choice=odd / 2),
        lambda: ResponseDelta(0, content_delta=odd),
        lambda: ResponseDelta(0, reasoning_delta=odd),
        lambda: ResponseDelta(0, refusal_delta=odd),
        lambda: ToolCallDelta(odd / 2),
        lambda: ToolCallDelta(0, arguments_delta=odd),
        lambda: ToolCall(odd, "n"),
        lambda: ToolCall("i", odd),
        lambda: ToolCall("i", "n", odd),
        lambda: TextPart(odd),
        lambda: ChatMessage.user(odd),
        lambda: ChatMessage.user(["text"]),  # type: ignore[list-item]
        lambda: ChatMessage.user({"type": "text"}),  # type: ignore[dict-item]
        lambda: ChatMessage.assistant(tool_calls=odd),
        lambda: ChatMessage.assistant(tool_calls=[odd]),
        lambda: Segment(SegmentType.TEXT, odd),
        lambda: Segment(SegmentType.TEXT, "x", odd),
        lambda: ResponseMetadata(odd, "m"),
        lambda: ResponseMetadata("p", odd),
        lambda: ResponseMetadata("p", "m", odd),
        lambda: ResponseMetadata("p", "m", timedelta(1), odd),
    ):
        with pytest.raises(ResponseValidationError):
            make()


def test_provenance_is_a_mapping() -> None:
    """P8: a path and why; read-only."""
    provenance = ResponseMetadata("p", "m", provenance={"id": "absent"}).provenance
    assert isinstance(provenance, Mapping)
    with pytest.raises(TypeError):
        provenance["id"] = "x"  # type: ignore[index]
