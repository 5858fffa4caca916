"""Taking: what a hook has understood is gone from the event, and what is left is what it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosswalk import WireTypeError
from crosswalk.mapping.event import path_to
from crosswalk.plugin import state
from crosswalk.plugin.state import empty_containers, mistyped, prune

VALUES: dict[str, Any] = {
    "string": "x",
    "integer": -7,
    "count": 7,
    "number": 0.5,
    "boolean": True,
    "object": {"a": 1},
    "array": [1, 2],
    "objects": [{"a": 1}],
}
"""For each kind of leaf a value that is one."""

FITS: dict[str, set[str]] = {
    "integer": {"integer", "count"},
    "number": {"number", "integer", "count"},
    "array": {"array", "objects"},
}
"""What else fits a kind."""

KINDS = list(VALUES)
NOTHING: dict[str, Any] = {"array": [], "objects": []}


def family(name: str) -> Callable[[dict[str, Any], str], Any]:
    """``take_string`` and its siblings by name."""
    found: Callable[[dict[str, Any], str], Any] = getattr(state, name)
    return found


@pytest.mark.parametrize("how", ["take", "accept"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_is_given(how: str, kind: str) -> None:
    """The value. It is gone, or, of what holds others, there to be taken apart."""
    value = copy.deepcopy(VALUES[kind])
    container = {"k": value, "more": 1}
    assert family(f"{how}_{kind}")(container, "k") == VALUES[kind]
    assert container == ({"k": value, "more": 1} if kind in {"object", "objects"} else {"more": 1})


@pytest.mark.parametrize("how", ["take", "accept"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", [{}, {"k": None}])
def test_nothing_is_nothing(how: str, kind: str, container: dict[str, Any]) -> None:
    """A key that is missing or null gives None, or no items. Null says nothing that would have to be kept."""
    container = dict(container)
    assert family(f"{how}_{kind}")(container, "k") == NOTHING.get(kind)
    assert container == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_what_does_not_fit(kind: str, other: str) -> None:
    """The strict family raises and the lenient one gives nothing. The value stays in both, and the lenient one notes it."""
    if other in FITS.get(kind, {kind}):
        return
    container = {"k": copy.deepcopy(VALUES[other])}
    with pytest.raises(WireTypeError):
        family(f"take_{kind}")(container, "k")
    assert container == {"k": VALUES[other]}
    mistyped()
    accepted = family(f"accept_{kind}")(container, "k")
    assert container == {"k": VALUES[other]}
    found = [(holder[key]) for holder, key in mistyped()]
    if (kind, other) == ("objects", "array"):
        assert (accepted, found) == ([], [1, 2])
    else:
        assert (accepted, found) == (NOTHING.get(kind), [VALUES[other]])
    assert mistyped() == [], "noted once"


@pytest.mark.parametrize("value", [True, False, 1.0, -1, 2**63, "1"])
def test_what_is_no_count(value: Any) -> None:
    """A count is an integer from 0 that still fits when another is added. ``true`` is not a count."""
    with pytest.raises(WireTypeError, match="expected a count from 0, in 63 bits"):
        state.take_count({"k": value}, "k")
    assert state.accept_count({"k": value}, "k") is None
    mistyped()


def test_of_a_list_the_objects_are_given() -> None:
    """Other values than objects among them stay, at their place."""
    container = {"k": [{"a": 1}, 5, {"b": 2}]}
    assert state.accept_objects(container, "k") == [{"a": 1}, {"b": 2}]
    assert container == {"k": [{"a": 1}, 5, {"b": 2}]}
    assert [key for _, key in mistyped()] == [1]
    with pytest.raises(WireTypeError) as caught:
        state.take_objects(container, "k")
    assert (caught.value.place, caught.value.expected) == ("[1]", "object")


def test_of_a_list_the_strings_are_given() -> None:
    """All of them, or the wrong one is named."""
    container = {"k": ["a", "b"], "bad": ["a", 5], "none": 1}
    assert (state.take_strings(container, "k"), state.take_strings(container, "missing")) == (["a", "b"], [])
    for key, place in {"bad": "[1]", "none": "none"}.items():
        with pytest.raises(WireTypeError) as caught:
            state.take_strings(container, key)
        assert caught.value.place == place
    assert container == {"bad": ["a", 5], "none": 1}


@pytest.mark.parametrize("empty", [{}, []])
def test_what_is_empty_and_looked_into_is_gone(empty: Any) -> None:
    """There was nothing in it that could be lost."""
    container = {"k": empty}
    family("take_object" if empty == {} else "take_array")(container, "k")
    assert container == {}
    container = {"k": []}
    state.take_objects(container, "k")
    assert container == {}


@pytest.mark.parametrize(
    ("container", "known", "left"),
    [
        ({"k": "x"}, "x", {}),
        ({"k": None}, "x", {}),
        ({}, "x", {}),
        ({"k": "y"}, "x", {"k": "y"}),
        ({"k": True}, 1, {"k": True}),
        ({"k": 1.0}, 1, {"k": 1.0}),
        ({"k": {"a": [1]}}, {"a": [1]}, {}),
    ],
)
def test_what_says_the_same_again_is_taken(container: dict[str, Any], known: Any, left: Any) -> None:
    """And what says anything else is not."""
    assert state.take_same(container, "k", known) is (left == {})
    assert container == left


def test_notes_do_not_pile_up() -> None:
    """A thread that is not asked keeps a thousand of them and no more."""
    for _ in range(1100):
        state.accept_string({"k": 1}, "k")
    assert len(mistyped()) == 1000


def test_an_object_is_required() -> None:
    """An event, or anything that has a name."""
    assert state.require_object({"a": 1}) == {"a": 1}
    with pytest.raises(WireTypeError, match="expected object, got array"):
        state.require_object([], "the answer")


# ----------------------------------------------------------------------------------------------- pruning


@pytest.mark.parametrize(
    ("event", "left"),
    [
        ({"a": {}}, {}),
        ({"a": {"b": {}, "c": 1}}, {"a": {"c": 1}}),
        ({"a": {"b": {"c": {}}}}, {}),
        ({"a": []}, {}),
        ({"a": [{}, {}]}, {}),
        ({"a": [{}, {"b": 1}]}, {"a": [{}, {"b": 1}]}),
        ({"a": [[{}], []]}, {}),
        ({"a": [1, {"b": {}}]}, {"a": [1, {}]}),
        ({"a": 0, "b": None, "c": "", "d": False}, {"a": 0, "b": None, "c": "", "d": False}),
    ],
)
def test_what_was_emptied_goes(event: dict[str, Any], left: dict[str, Any]) -> None:
    """Objects and arrays with nothing in them. Items of an array keep their places."""
    prune(event, frozenset())
    assert event == left


def test_what_came_empty_stays() -> None:
    """An object that the provider sent empty, and no hook opened, is unchanged."""
    event: dict[str, Any] = {"a": {}, "b": {"c": []}, "d": [{}], "e": {"f": 1}}
    kept = empty_containers(event)
    del event["e"]["f"]
    prune(event, kept)
    assert event == {"a": {}, "b": {"c": []}, "d": [{}]}


trees = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
)


@given(st.dictionaries(st.sampled_from("abc"), trees, max_size=3))
def test_what_nobody_took_from_is_left_as_it_is(event: dict[str, Any]) -> None:
    """Pruning an event of which nothing was taken changes nothing."""
    before = copy.deepcopy(event)
    prune(event, empty_containers(event))
    assert event == before


def test_where_a_container_stands() -> None:
    """By identity, not by what is in it."""
    event = {"a": [{"x": 1}, {"x": 1}], "b": {"c": {"x": 1}}}
    assert path_to(event, event["a"][1]) == "a[1]"
    assert path_to(event, event["b"]["c"]) == "b.c"
    assert path_to(event, event) == ""
    assert path_to([event], event) == "[0]"
    assert path_to(event, {"x": 1}) is None
    assert path_to("text", {}) is None


@pytest.mark.parametrize(
    ("value", "taken"), [(0, 0), (0.5, 0.5), (60, 60), (-1, None), (60.5, None), (1e300, None), ("7", None)]
)
def test_a_number_outside_its_bounds_stays_and_is_noted(value: Any, taken: float | None) -> None:
    """``timedelta`` and ``datetime`` do not take every number."""
    event = {"seconds": value}
    assert state.accept_number(event, "seconds", minimum=0, maximum=60) == taken
    assert event == ({} if taken is not None else {"seconds": value})
    assert mistyped() == ([] if taken is not None else [(event, "seconds")])


def test_a_number_without_a_bound_is_taken() -> None:
    event = {"seconds": -5, "more": 5}
    assert state.accept_number(event, "seconds", minimum=None, maximum=0) == -5
    assert state.accept_number(event, "more", minimum=0, maximum=None) == 5
