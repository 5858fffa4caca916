"""What no typed field takes is kept: the residue, and a stream's memory of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from crosswalk.mapping.residue import ResidueMemory
from hypothesis import given, strategies as st

from crosswalk.mapping import KEY, TAKEN, residue, taken_if
from crosswalk.plugin import MappingState
from crosswalk.types.merge import Places, copy_json, merge

STATE = MappingState("test")
IS_SMALL = taken_if(lambda value, *_: value == 1)
IF_PARENT = taken_if(lambda _, parent, __: parent.get("kind") == "a", {"x": TAKEN})


@pytest.mark.parametrize(
    ("event", "table", "left"),
    [
        ({"a": 1, "b": 2}, {"a": TAKEN}, {"b": 2}),
        ({"a": None, "b": None}, {"a": TAKEN}, {"b": None}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": TAKEN}}, {"a": {"y": 2}}),
        ({"a": {"x": 1}}, {"a": {"x": TAKEN}}, {}),
        ({"a": {}}, {"a": {"x": TAKEN}}, {}),
        ({"a": None}, {"a": {"x": TAKEN}}, {}),
        ({"a": None}, {"a": [{"x": TAKEN}]}, {}),
        ({"a": []}, {"a": [{"x": TAKEN}]}, {}),
        # Another shape than the table's is nobody's.
        ({"a": [1]}, {"a": {"x": TAKEN}}, {"a": [1]}),
        ({"a": "x"}, {"a": [{"x": TAKEN}]}, {"a": "x"}),
        ({"a": {"x": 1}}, {"a": [{"x": TAKEN}]}, {"a": {"x": 1}}),
        # In an array of which something is left, everything keeps its place.
        ({"a": [{"x": 1}, {"x": 1, "y": 2}]}, {"a": [{"x": TAKEN}]}, {"a": [{}, {"y": 2}]}),
        ({"a": [{"x": 1}, 7, None]}, {"a": [{"x": TAKEN}]}, {"a": [{}, 7, None]}),
        ({"a": [{"x": 1}, {}]}, {"a": [{"x": TAKEN}]}, {}),
        # A key says which item it was, as long as there is more to say of it.
        ({"a": [{"i": 3, "x": 1}]}, {"a": [{"i": KEY, "x": TAKEN}]}, {}),
        (
            {"a": [{"i": 3, "x": 1}, {"y": 2, "i": 5}]},
            {"a": [{"i": KEY, "x": TAKEN}]},
            {"a": [{"i": 5, "y": 2}]},
        ),
        # A test looks at the value, at its neighbours and at the state.
        ({"a": 1, "b": 2}, {"a": IS_SMALL, "b": IS_SMALL}, {"b": 2}),
        ({"a": None}, {"a": IS_SMALL}, {"a": None}),
        ({"kind": "a", "v": {"x": 1, "y": 2}}, {"kind": TAKEN, "v": IF_PARENT}, {"v": {"y": 2}}),
        ({"kind": "b", "v": {"x": 1, "y": 2}}, {"kind": TAKEN, "v": IF_PARENT}, {"v": {"x": 1, "y": 2}}),
        ({"kind": "a", "v": None}, {"kind": TAKEN, "v": IF_PARENT}, {}),
    ],
)
def test_the_residue_is_the_event_less_what_is_taken(
    event: dict[str, Any], table: Any, left: dict[str, Any]
) -> None:
    """In the event's own structure; objects and arrays of which nothing is left go."""
    before = copy_json(event)
    assert residue(event, table, STATE) == left
    assert event == before


def test_a_test_is_given_value_parent_and_state() -> None:
    """taken_if may look at the value's neighbours and at what the stream said before."""
    seen: list[Any] = []

    def look(*given: Any) -> bool:
        seen.append(given)
        return True

    event = {"a": {"b": 1, "c": 2}}
    assert residue(event, {"a": {"b": taken_if(look)}}, STATE) == {"a": {"c": 2}}
    assert seen == [(1, event["a"], STATE)]
    assert (repr(TAKEN), repr(KEY)) == ("TAKEN", "KEY")


NAMES = st.sampled_from("abcd")
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
tables: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([TAKEN, taken_if(lambda *_: True), taken_if(lambda *_: False)]),
    lambda inner: (
        st.dictionaries(NAMES, inner, max_size=4)
        | st.dictionaries(NAMES, inner, min_size=1, max_size=4).map(lambda table: [table])
        | st.dictionaries(NAMES, inner, max_size=4).map(lambda table: taken_if(lambda *_: True, table))
    ),
    max_leaves=10,
)
objects = st.dictionaries(NAMES, values, max_size=4)
object_tables = st.dictionaries(NAMES, tables, max_size=4)


def untaken(value: Any, rule: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of *value* that *rule* does not take, by the letter of the table."""
    table = getattr(rule, "table", None)
    if table is not None:
        rule = table if rule.test(value, {}, STATE) else None
    if rule is TAKEN or (isinstance(rule, dict | list) and value is None):
        return
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from untaken(item, rule.get(key) if isinstance(rule, dict) else None, (*path, key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            inner = rule[0] if isinstance(rule, list) and isinstance(item, dict) else None
            yield from untaken(item, inner, (*path, number))
    elif not isinstance(value, dict | list):
        yield path, value


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def leaves(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if children is None else sum(map(leaves, children))


@given(objects, object_tables)
def test_every_leaf_is_taken_or_left(event: dict[str, Any], table: dict[str, Any]) -> None:
    """No leaf falls between table and residue: what is not taken stands in its own place, and nothing else does."""
    left = residue(event, table, STATE)
    expected = dict(untaken(event, table))
    for path, value in expected.items():
        assert at(left, path) is value
    assert leaves(left) == len(expected)


@pytest.mark.parametrize(
    ("rests", "news"),
    [
        # Equal values come once, whatever comes between them.
        ([{"a": 1}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}], [{"a": 1}, {}, {"b": 2}, {}]),
        # A changed value comes again, also when it changes back.
        ([{"a": 1}, {"a": 2}, {"a": 1}], [{"a": 1}, {"a": 2}, {"a": 1}]),
        # true is not 1, and 1 is not 1.0.
        ([{"a": 1}, {"a": True}, {"a": 1.0}], [{"a": 1}, {"a": True}, {"a": 1.0}]),
        ([{"a": [1]}, {"a": [True]}], [{"a": [1]}, {"a": [True]}]),
        ([{"a": {"b": 0}}, {"a": {"b": False}}], [{"a": {"b": 0}}, {"a": {"b": False}}]),
        ([{"a": [{"b": 0}]}, {"a": [{"b": False}]}], [{"a": [{"b": 0}]}, {"a": [{"b": False}]}]),
        # Objects are looked into.
        ([{"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}], [{"a": {"x": 1}}, {"a": {"y": 2}}]),
        ([{"a": {"x": 1}}, {"a": 5}, {"a": {"x": 1}}], [{"a": {"x": 1}}, {"a": 5}, {"a": {"x": 1}}]),
        # Of a list that grows the new items come; another list comes whole.
        ([{"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}], [{"a": [1]}, {"a": [2]}, {}]),
        ([{"a": [1]}, {"a": [2]}], [{"a": [1]}, {"a": [2]}]),
        ([{"a": [1, 2]}, {"a": [1]}], [{"a": [1, 2]}, {"a": [1]}]),
        ([{"a": [{"x": [1]}]}, {"a": [{"x": [1, 2]}]}], [{"a": [{"x": [1]}]}, {"a": [{"x": [1, 2]}]}]),
        ([{"a": []}, {"a": [1]}, {"a": []}], [{"a": []}, {"a": [1]}, {}]),
        # A list in pieces always comes: the next piece may equal the last.
        ([{"p": [1]}, {"p": [1]}, {"p": [2]}], [{"p": [1]}, {"p": [1]}, {"p": [2]}]),
        ([{"p": []}, {"p": []}], [{"p": []}, {}]),
        ([{"o": {"p": [1]}}, {"o": {"p": [1]}}], [{"o": {"p": [1]}}, {"o": {"p": [1]}}]),
        # Items with an index are told apart by it, wherever they stand.
        (
            [{"c": [{"index": 0, "x": 1}]}, {"c": [{"index": 1, "x": 1}]}, {"c": [{"index": 0, "x": 1}]}],
            [{"c": [{"index": 0, "x": 1}]}, {"c": [{"index": 1, "x": 1}]}, {}],
        ),
        (
            [{"c": [{"index": 0, "x": 1}]}, {"c": [{"index": 0, "x": 1, "y": 2}]}],
            [{"c": [{"index": 0, "x": 1}]}, {"c": [{"index": 0, "y": 2}]}],
        ),
        (
            [{"c": [{"index": 0, "p": [1]}]}, {"c": [{"index": 0, "p": [1]}]}],
            [{"c": [{"index": 0, "p": [1]}]}, {"c": [{"index": 0, "p": [1]}]}],
        ),
        ([{"c": []}, {"c": [{"index": 0, "x": 1}]}], [{"c": []}, {"c": [{"index": 0, "x": 1}]}]),
        ([{"c": [7]}, {"c": [{"index": 0}]}], [{"c": [7]}, {"c": [{"index": 0}]}]),
    ],
)
def test_memory_tells_only_the_news(rests: list[dict[str, Any]], news: list[dict[str, Any]]) -> None:
    """Each delta carries what is new or changed since the deltas before."""
    memory = ResidueMemory(("p", "o.p", "c[].p"))
    before = copy_json(rests)
    assert [memory.news(rest) for rest in rests] == news
    assert rests == before


@given(
    st.lists(st.dictionaries(NAMES, st.integers(0, 2) | st.booleans() | st.none(), max_size=3), max_size=6)
)
def test_the_news_add_up(rests: list[dict[str, Any]]) -> None:
    """Merged in order, the news say of every scalar what the last event said of it."""
    memory = ResidueMemory()
    known: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for rest in rests:
        merge(known, memory.news(rest))
        expected.update(rest)
        assert {k: (type(v), v) for k, v in known.items()} == {k: (type(v), v) for k, v in expected.items()}


@given(st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=6))
def test_pieces_are_joined_in_order(pieces: list[list[int]]) -> None:
    """Of a list in pieces nothing is lost and nothing comes twice."""
    memory = ResidueMemory(("c[].p",))
    known: dict[str, Any] = {}
    for piece in pieces:
        merge(known, memory.news({"c": [{"index": 0, "p": piece}]}))
    joined = [token for piece in pieces for token in piece]
    assert (known["c"][0]["p"] if known else []) == joined


def test_the_memory_never_writes_into_what_it_gave() -> None:
    """What a delta carries stays as it is, also when looking at an empty memory came first, as the template does."""
    memory = ResidueMemory()
    assert memory.last == {}
    first = memory.news({"a": {"b": [1]}})
    memory.news({"a": {"b": [2]}})
    assert first == {"a": {"b": [1]}}


def test_thousands_of_choices_cost_no_more_each() -> None:
    """What is known of a growing list is not looked up anew for every event; its kind may still change."""
    memory, places = ResidueMemory(), Places()
    merged: dict[str, Any] = {}
    for number in range(5_000):
        news = memory.news({"choices": [{"index": number, "a": 1}]})
        assert news == {"choices": [{"index": number, "a": 1}]}
        merge(merged, news, places)
    assert memory.news({"choices": [{"index": 7, "a": 1}]}) == {}
    assert memory.news({"choices": [{"index": 7, "a": 2}]}) == {"choices": [{"index": 7, "a": 2}]}
    assert memory.news({"choices": ["x"]}) == {"choices": ["x"]}
    assert memory.news({"choices": [{"index": 7, "a": 2}]}) == {"choices": [{"index": 7, "a": 2}]}
    merge(merged, {"choices": ["x"]}, places)
    merge(merged, {"choices": [{"index": 7}]}, places)
    assert (len(merged["choices"]), merged["choices"][-2:]) == (5_002, ["x", {"index": 7}])
