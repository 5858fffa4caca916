"""Fields that are both understood and kept: looked at where they stay, or taken whole except for mistyped values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from crosswalk.plugin.state import MappingState, accept_objects, accept_string, mistyped, take_whole
from crosswalk.types.message import ToolCallDelta


@pytest.fixture(autouse=True)
def nothing_noted() -> Iterator[None]:
    mistyped()
    yield
    mistyped()


@pytest.mark.parametrize("value", [{}, {"a": 1, "b": {"c": [1, {}]}, "d": None}])
def test_a_container_is_taken_whole(value: dict[str, Any]) -> None:
    sent = dict(value)
    assert take_whole(value) == sent
    assert value == {}


@pytest.mark.parametrize(
    ("value", "found", "left"),
    [
        ({"s": 1, "a": 2, "b": None}, {"a": 2, "b": None}, {"s": 1}),
        (
            {"s": 1, "a": {"b": {"c": 2}}, "d": [3], "e": [{"f": 4}], "g": {}},
            {"a": {"b": {"c": 2}}, "d": [3], "e": [{"f": 4}], "g": {}},
            {"s": 1},
        ),
        ({"a": {"s": 1, "b": 2}, "c": [[]]}, {"a": {"b": 2}, "c": [[]]}, {"a": {"s": 1}}),
        ({"l": [{"s": 1, "b": 2}, {"b": 3}]}, {"l": [{"b": 2}, {"b": 3}]}, {"l": [{"s": 1}, {}]}),
        ({"l": [{"b": 2}, 5, {"b": 3}]}, {"l": [{"b": 2}, {"b": 3}]}, {"l": [{}, 5, {}]}),
        ({"l": [5]}, {"l": []}, {"l": [5]}),
    ],
)
def test_what_is_mistyped_stays_in_its_place(
    value: dict[str, Any], found: dict[str, Any], left: dict[str, Any]
) -> None:
    for holder in (value, value.get("a")):
        if type(holder) is dict:
            accept_string(holder, "s")
    for item in accept_objects(value, "l"):
        accept_string(item, "s")
    assert take_whole(value) == found
    assert value == left


def test_the_index_of_a_call_may_stand_elsewhere() -> None:
    state = MappingState("p")
    wire = {"id": "c", "name": "f", "index": 7}
    first = state.take_tool_call(wire, arguments=None, index=3)
    assert (first, wire) == (ToolCallDelta(0, "c", "f"), {"index": 7})
    more = state.take_tool_call({}, arguments="{}", index=3)
    assert more == ToolCallDelta(0, None, None, "{}")
    assert state.take_tool_call({"name": "g"}, arguments=None, index=None).index == 1
