"""``differences``: what two responses say differently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ResponseMetadata,
    Segment,
    ToolCall,
    UsageInfo,
    from_json,
    to_json,
)
from crosswalk.codec import ABSENT, Difference, differences

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def response(**changes: Any) -> ChatResponse:
    metadata = {"provider_id": "acme", "model_id": "m", **changes.pop("metadata", {})}
    return ChatResponse(
        **{
            "id": "r-1",
            "message": ChatMessage.assistant("Hi"),
            "finish_reason": "stop",
            "usage": UsageInfo(3, 4),
            "metadata": ResponseMetadata(**metadata),
            "created": WHEN,
            "model": "m",
            **changes,
        }
    )


def found(before: ChatResponse, after: ChatResponse) -> list[tuple[str, Any, Any]]:
    return [(one.place, one.before, one.after) for one in differences(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({}, {"usage": UsageInfo(3, 5)}, [("usage.completion_tokens", 4, 5)]),
        ({}, {"usage": UsageInfo(3, 4, 0)}, [("usage.cached_tokens", ABSENT, 0)]),
        ({}, {"finish_reason": "length"}, [("finish_reason", "stop", "length")]),
        ({"id": "a"}, {"id": "b"}, [("id", "a", "b")]),
        (
            {},
            {"metadata": {"request_duration": timedelta(seconds=2)}},
            [("metadata.request_duration_seconds", 0.0, 2.0)],
        ),
        (
            {"metadata": {"extensions": {"a": 1, "b": None}}},
            {"metadata": {"extensions": {"a": True}}},
            [("metadata.extensions.a", 1, True), ("metadata.extensions.b", None, ABSENT)],
        ),
        (
            {"metadata": {"extensions": {"total_tokens": 1, "odd key": [[1, 2]]}}},
            {"metadata": {"extensions": {"total_tokens": 2, "odd key": [[1, 3]]}}},
            [
                ("metadata.extensions.total_tokens", 1, 2),
                ("metadata.extensions['odd key'][0][1]", 2, 3),
            ],
        ),
    ],
)
def test_a_difference_is_a_field_with_both_values(
    before: dict[str, Any], after: dict[str, Any], expected: list[Any]
) -> None:
    assert found(response(**before), response(**after)) == expected


def test_made_up_ids_and_times_are_no_difference() -> None:
    """But one that has become the provider's own is."""
    made = {"provenance": {"id": "synthetic", "created": "synthetic"}}
    old = response(id="x", created=WHEN, metadata=made)
    assert found(old, response(id="y", created=WHEN + timedelta(1), metadata=made)) == []
    assert [place for place, *_ in found(old, response(id="y"))] == [
        "metadata.provenance",
        "id",
        "created",
    ]


def test_an_inserted_item_is_one_difference() -> None:
    text, more = Segment("text", "Hi"), Segment("reasoning", "Hm")
    citation = Segment("citation", "source")
    short = response(segments=(text, citation))
    assert found(short, response(segments=(more, text, citation))) == [
        ("segments[0]", ABSENT, {"type": "reasoning", "content": "Hm"})
    ]
    assert found(short, response(segments=(text, more, citation))) == [
        ("segments[1]", ABSENT, {"type": "reasoning", "content": "Hm"})
    ]
    assert [place for place, *_ in found(short, response(segments=(text,)))] == ["segments[1]"]
    assert found(short, response(segments=(more, citation))) == [
        ("segments[0].type", "text", "reasoning"),
        ("segments[0].content", "Hi", "Hm"),
    ]


def test_a_difference_shows_no_content() -> None:
    call = ToolCall("c", "secret", "{}")
    (difference,) = differences(response(), response(message=ChatMessage.assistant("Hi", tool_calls=(call,))))
    assert difference.path == ("message", "tool_calls")
    assert repr(difference) == "Difference('message.tool_calls')"
    assert difference != Difference(("message", "tool_calls"), ABSENT, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(st.text("xy", max_size=2), inside, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON, JSON)
def test_only_equal_json_has_no_differences(one: Any, other: Any) -> None:
    before, after = (response(metadata={"extensions": {"it": value}}) for value in (one, other))
    there, back = differences(before, after), differences(after, before)
    assert (not there) == (to_json(before) == to_json(after))
    assert len(there) == len(back)
    for difference in there:
        assert difference.path[:3] == ("metadata", "extensions", "it")


@given(JSON)
def test_what_is_read_back_is_no_different(value: Any) -> None:
    one = response(metadata={"extensions": {"it": value}})
    assert differences(from_json(to_json(one, include_raw=True), ChatResponse), one) == []


def test_deep_extensions_are_compared() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    before = response(metadata={"extensions": {"it": deep}})
    after = attrs.evolve(before, metadata=ResponseMetadata("acme", "m", extensions={"it": [deep]}))
    assert len(differences(before, after)) == 1
