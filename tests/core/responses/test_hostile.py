"""Whatever a server sends: it comes back as it was, or is refused by an error that names the place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk.errors import CrosswalkError, FramingError
from crosswalk.responses import (
    ResponseAccumulator,
    ResponsesParseError,
    ResponseStreamEvent,
    SnapshotError,
    parse_event,
    parse_input_item,
    parse_item,
    parse_params,
    parse_response,
    to_json,
)
from crosswalk.testing import load_captures
from tries import tries

CAPTURES = load_captures(Path(__file__).parents[2] / "captures/openai_responses")
BODIES = [orjson.loads(c.body) for c in CAPTURES if c.file.suffix == ".json" and c.status < 400]
STREAMS = [[orjson.loads(data) for data, _ in c.frames()] for c in CAPTURES if c.file.suffix == ".sse"]
EVENTS = [event for stream in STREAMS for event in stream]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("type"), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside *value*."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in inside for found in ((*path, key), *places(item, (*path, key)))]


@st.composite
def changed(draw: st.DrawFn, samples: list[Any]) -> Any:
    """One of *samples* in which something was replaced, added or removed."""
    value = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 3))):
        inside = places(value)
        if not inside:
            break
        path = draw(st.sampled_from(inside))
        *way, last = path
        holder = value
        for key in way:
            holder = holder[key]
        what = draw(st.sampled_from(["replace", "remove", "add"]))
        if what == "replace":
            holder[last] = draw(JSON)
        elif what == "remove":
            del holder[last]
        elif isinstance(holder, dict):
            holder[draw(st.text(max_size=5))] = draw(JSON)
    return value


@settings(max_examples=tries(120))
@given(value=changed(BODIES), unknown=st.sampled_from(["raise", "keep"]))
def test_a_changed_body_comes_back_as_it_was_or_is_refused(value: Any, unknown: Any) -> None:
    try:
        response = parse_response(orjson.dumps(value), unknown=unknown)
    except ResponsesParseError as error:
        assert error.path.startswith("$")
        return
    assert orjson.loads(to_json(response)) == value
    assert parse_response(value, unknown=unknown) == response


@settings(max_examples=tries(120))
@given(value=changed(EVENTS), unknown=st.sampled_from(["raise", "keep"]))
def test_a_changed_event_comes_back_as_it_was_or_is_refused(value: Any, unknown: Any) -> None:
    try:
        event = parse_event(orjson.dumps(value), unknown=unknown)
    except ResponsesParseError:
        return
    assert orjson.loads(to_json(event)) == value


@settings(max_examples=tries(40))
@given(value=JSON)
@pytest.mark.parametrize("read", [parse_event, parse_item, parse_input_item, parse_response, parse_params])
def test_any_json_is_read_or_refused(read: Any, value: Any) -> None:
    try:
        record = read(orjson.dumps(value), unknown="keep")
    except (ResponsesParseError, FramingError):
        return
    assert orjson.loads(to_json(record)) == value


@settings(max_examples=tries(60))
@given(picks=st.lists(st.sampled_from(EVENTS), max_size=25))
def test_events_in_any_order_give_snapshots_or_a_typed_error(picks: list[Any]) -> None:
    follow([parse_event(orjson.dumps(event)) for event in picks])


@settings(max_examples=tries(60))
@given(data=st.data(), stream=st.sampled_from(STREAMS))
def test_a_changed_stream_gives_snapshots_or_a_typed_error(data: st.DataObject, stream: list[Any]) -> None:
    events = []
    for event in data.draw(st.lists(st.sampled_from(stream), max_size=20)):
        try:
            events.append(parse_event(data.draw(changed([event])), unknown="keep"))
        except CrosswalkError:
            continue
    follow(events)


def follow(events: list[ResponseStreamEvent]) -> None:
    """Take a snapshot after each event. Each stays what it was."""
    accumulator = ResponseAccumulator()
    taken = []
    for event in events:
        try:
            snapshot = accumulator.add(event)
        except SnapshotError:
            continue
        taken.append((snapshot, to_json(snapshot.response)))
    fresh = ResponseAccumulator()
    for snapshot, then in taken:
        assert to_json(fresh.add(snapshot.event).response) == then
    draft_looked_at_late = ResponseAccumulator()
    late = [draft_looked_at_late.add(snapshot.event) for snapshot, _ in taken]
    assert [to_json(snapshot.response) for snapshot in late] == [then for _, then in taken]
