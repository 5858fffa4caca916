"""Written documents are read back the same, for every canonical type (FR-014, FR-107, design, P5)."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given, settings, strategies as st

import crosswalk.types
from crosswalk.codec import from_json, to_json, to_jsonable
from crosswalk.codec.layout import CANONICAL, layout
from crosswalk.types import (
    Alternative,
    ChatMessage,
    ChatResponse,
    DocumentPart,
    FinishReason,
    FrozenObject,
    ProviderAttempt,
    RawEvents,
    ResponseDelta,
    ResponseMetadata,
    SearchResultPart,
    StreamEvent,
    StreamEventType,
    TokenLogprob,
    UsageInfo,
)
from strategies import BY_TYPE, chat_responses, json_objects, unfolded
from tries import tries

every_type = pytest.mark.parametrize("cls", sorted(CANONICAL, key=str))


def test_every_canonical_class_has_a_json_object_and_a_strategy() -> None:
    """No attrs class of the vocabulary is without a codec or without values to test it."""
    public = {value for name, value in inspect.getmembers(crosswalk.types) if attrs.has(value)}
    assert public == set(CANONICAL) == set(BY_TYPE)


@every_type
def test_every_field_is_written(cls: type) -> None:
    """A field that is added to a type cannot be forgotten by the codec."""
    derived: dict[type, set[str]] = {
        ResponseMetadata: {"completion_tokens"},
        Alternative: {"unknown"},
        SearchResultPart: {"text"},
        DocumentPart: {"text"},
    }
    never_written = derived.get(cls, set())
    written = {key.attribute for key in layout(cls) if not key.computed}
    assert written == set(attrs.fields_dict(cls)) - never_written


@pytest.mark.sweep
@every_type
@settings(max_examples=tries(60))
@given(data=st.data())
def test_round_trip(cls: type, data: st.DataObject) -> None:
    """Reading gives back every field, and writing again the same bytes."""
    value = data.draw(BY_TYPE[cls])
    written = to_json(value, include_raw=True)
    read: Any = from_json(written, cls)
    assert unfolded(read) == unfolded(value)
    assert to_json(read, include_raw=True) == written


@pytest.mark.sweep
@settings(max_examples=tries(50))
@given(st.lists(chat_responses, max_size=3))
def test_round_trip_of_several(responses: list[ChatResponse]) -> None:
    """A list or tuple of values is an array, read as either."""
    written = to_json(tuple(responses), include_raw=True)
    assert written == to_json(responses, include_raw=True)
    assert unfolded(from_json(written, list[ChatResponse])) == unfolded(responses)
    assert unfolded(from_json(written, tuple[ChatResponse, ...])) == unfolded(tuple(responses))


@pytest.mark.sweep
@settings(max_examples=tries(50))
@given(chat_responses)
def test_jsonable_is_the_same_json(response: ChatResponse) -> None:
    """The plain form holds what the bytes hold, indented or not, raw events or not."""
    assert to_jsonable(response) == orjson.loads(to_json(response, indent=True))
    assert to_jsonable(response, include_raw=True) == orjson.loads(to_json(response, include_raw=True))


def test_jsonable_is_a_copy() -> None:
    """Changing the plain form does not reach into the frozen value."""
    delta = ResponseDelta(0, extensions={"a": {"b": [1]}})
    to_jsonable(delta)["extensions"]["a"]["b"].append(2)
    assert delta.extensions == {"a": {"b": [1]}}


@given(json_objects)
def test_extensions_are_verbatim(extensions: dict[str, Any]) -> None:
    """Extensions keep keys, order, nulls and empty collections (FR-107)."""
    metadata = ResponseMetadata("p", "m", extensions={"_x": None, "empty": [], "": {}, **extensions})
    read = from_json(to_json(metadata), ResponseMetadata).extensions
    assert orjson.dumps(read.thawed()) == orjson.dumps(metadata.extensions.thawed())


@given(st.timedeltas(timedelta(0), timedelta(days=365 * 270)))
def test_durations_are_exact(duration: timedelta) -> None:
    """Float seconds lose no microsecond for 270 years (FR-105)."""
    metadata = ResponseMetadata("p", "m", duration, duration)
    read = from_json(to_json(metadata), ResponseMetadata)
    assert (read.request_duration, read.time_to_first_token) == (duration, duration)


@given(st.datetimes(timezones=st.timezones(), min_value=datetime(1900, 1, 2), max_value=datetime(2200, 1, 1)))
def test_times_are_utc(created: datetime) -> None:
    """A time in any zone is the same instant, in UTC, when read (FR-104)."""
    response = ChatResponse(
        "r",
        ChatMessage.assistant("hi"),
        FinishReason.STOP,
        UsageInfo.EMPTY,
        ResponseMetadata("p", "m"),
        created,
        "m",
    )
    read = from_json(to_json(response), ChatResponse)
    assert read.created == created.astimezone(UTC)  # across zones Python calls times in a gap unequal
    assert read.created.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    [
        ResponseDelta(0, content_delta="", logprobs=()),
        TokenLogprob("</s>", -0.5, ()),
        TokenLogprob("<s>", None, None),
        ChatMessage.user(()),
    ],
    ids=["no logprobs", "no bytes", "no logprob", "no parts"],
)
def test_empty_is_not_none(value: Any) -> None:
    """An empty collection where ``None`` is the default is not read as ``None``."""
    assert unfolded(from_json(to_json(value), type(value))) == unfolded(value)


def test_raw_events_are_exact() -> None:
    """Every event's bytes come back, UTF-8 or not."""
    frames = (b'{"a":1}', "é\u2028".encode(), b"\xff\xfe", b"", b"\xed\xa0\x80", b"data: [DONE]")
    response = attrs.evolve(ChatResponse.refused("no", model="m"), raw_events=frames)
    plain = to_jsonable(response, include_raw=True)
    assert plain["raw_events"] == [
        '{"a":1}', "é\u2028", {"base64": "//4="}, "", {"base64": "7aCA"}, "data: [DONE]"
    ]  # fmt: skip
    read = from_json(to_json(response, include_raw=True), ChatResponse)
    assert read.raw_events == RawEvents(frames)
    assert from_json(to_json(response), ChatResponse).raw_events == RawEvents()


def test_raw_event_of_a_stream_event() -> None:
    """A stream event's raw event is plain JSON, frozen parts of it too, and as optional as a response's."""
    event = StreamEvent(StreamEventType.CREATED, raw_event={"a": (FrozenObject({"b": None}),)})
    assert to_json(event) == b'{"event_type":"response.created"}'
    read = from_json(to_json(event, include_raw=True), StreamEvent)
    assert read.raw_event == {"a": [{"b": None}]}


def test_whole_numbers_in_number_fields() -> None:
    """A whole number in a float field is written with a point, so that equal values give equal bytes."""
    assert to_json(ProviderAttempt("p", "m", 5)) == to_json(ProviderAttempt("p", "m", 5.0))
    assert type(from_json(b'{"token":"a","logprob":0}', TokenLogprob).logprob) is float
