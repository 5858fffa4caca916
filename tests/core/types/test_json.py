"""FrozenObject: a provider's JSON that cannot be changed, and how the extensions of deltas add up."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections import UserDict
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from crosswalk.errors import ResponseValidationError
from crosswalk.types import FrozenObject
from crosswalk.types.json import (
    EMPTY_OBJECT,
    Arrays,
    RepeatedKeyError,
    adds_up,
    as_frozen_object,
    as_frozen_value,
    copy_json,
    dump_json,
    freeze,
    is_indexed,
    load_json,
    merge,
    merge_rules,
    same_json,
    thaw,
)
from strategies import json_objects, json_values

NESTED = {"b": {"c": [1, {"d": None}]}, "a": "x"}


def test_a_frozen_object_is_a_mapping() -> None:
    """FR-048, FR-107: the structure is the provider's, the order of its keys too."""
    frozen = FrozenObject(NESTED)
    assert list(frozen) == ["b", "a"]
    assert len(frozen) == 2
    assert frozen["a"] == "x"
    assert frozen["b"]["c"][1]["d"] is None
    assert dict(frozen.items()) == {"b": FrozenObject(NESTED["b"]), "a": "x"}  # type: ignore[arg-type]


def test_everything_inside_is_read_only() -> None:
    """NFR-022: objects come out frozen, arrays as tuples, all the way down."""
    inner: Any = FrozenObject(NESTED)["b"]["c"]
    assert [type(inner), type(inner[1])] == [tuple, FrozenObject]
    with pytest.raises(TypeError):
        inner[1]["d"] = 1
    with pytest.raises(AttributeError):
        inner[1].d = 1


def test_a_later_change_of_the_original_does_not_show() -> None:
    """NFR-022: what it is made of is copied."""
    original: dict[str, Any] = {"a": {"b": [1]}}
    frozen = FrozenObject(original)
    original["a"]["b"].append(2)
    original["c"] = 1
    assert frozen == {"a": {"b": [1]}}


def test_a_thawed_copy_can_be_changed() -> None:
    """And changing it changes nothing here."""
    frozen = FrozenObject(NESTED)
    plain = frozen.thawed()
    plain["b"]["c"].append(2)
    assert frozen == NESTED
    assert type(plain["b"]) is dict


@pytest.mark.parametrize("key", ["b", 1, None, (), [], {}, set(), 1.5, b"a", object])
def test_get_never_raises(key: Any) -> None:
    """NFR-017: whatever the key is, unhashable too. ``in`` likewise."""
    frozen = FrozenObject({"a": None})
    assert frozen.get(key) is None
    assert frozen.get(key, 7) == 7
    assert key not in frozen


def test_get_finds_what_is_there() -> None:
    """NFR-017: null is a value, not a missing one."""
    frozen = FrozenObject({"a": None, "b": [1]})
    assert frozen.get("a", 7) is None
    assert frozen.get("b") == (1,)
    assert "a" in frozen


def test_get_does_not_run_out_of_stack() -> None:
    """NFR-017: arrays as deep as a JSON parser lets through, deeper than Python's own stack."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep, {"a": 1}]
    found = FrozenObject.adopt({"deep": deep}).get("deep")
    for _ in range(5000):
        found, beside = found
        assert beside == {"a": 1}
    assert found == ()


def test_a_missing_key_is_a_key_error() -> None:
    """As in any mapping."""
    with pytest.raises(KeyError):
        FrozenObject()["a"]


@pytest.mark.parametrize("other", [NESTED, FrozenObject(NESTED), MappingProxyType(NESTED), UserDict(NESTED)])
def test_equal_to_any_mapping_with_the_same_content(other: Any) -> None:
    """A test may compare extensions with a dict."""
    assert FrozenObject(NESTED) == other
    assert other == FrozenObject(NESTED)


@pytest.mark.parametrize("other", [{}, {"a": "x"}, [], None, "b"])
def test_unequal_to_everything_else(other: Any) -> None:
    """Also for other values than mappings."""
    assert FrozenObject(NESTED) != other


def test_equal_objects_hash_alike() -> None:
    """Whatever the order of their keys."""
    assert hash(FrozenObject({"a": 1, "b": [2]})) == hash(FrozenObject({"b": [2], "a": 1}))


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_copy_is_equal(copied: Any) -> None:
    """Copies and pickles keep content and order."""
    again = copied(FrozenObject(NESTED))
    assert type(again) is FrozenObject
    assert list(again.items()) == list(FrozenObject(NESTED).items())


@pytest.mark.parametrize(
    "value",
    [
        {1: 2},
        {"a": object()},
        {"a": {1}},
        {"a": b"x"},
        {"a": 10**5000},
        {"a": "\ud800"},
        {"a": math.nan},
        {"a": [math.inf]},
        {"a": datetime(2024, 1, 1)},
        [],
        [1],
        "a",
        5,
        False,
    ],
)
def test_what_is_no_json_object_is_refused(value: Any) -> None:
    """NFR-016: nothing is silently turned into something else, as NaN into null or a date into text."""
    with pytest.raises(ResponseValidationError, match="not a JSON object"):
        FrozenObject(value)
    with pytest.raises(ResponseValidationError, match="not a JSON object"):
        as_frozen_object(value)


def test_the_empty_object_is_shared() -> None:
    """``None`` and every empty mapping are the one empty object."""
    assert as_frozen_object(None) is as_frozen_object({}) is as_frozen_object(MappingProxyType({}))
    assert as_frozen_object(None) is EMPTY_OBJECT
    assert FrozenObject(None) == FrozenObject({}) == {}
    frozen = FrozenObject({"a": 1})
    assert as_frozen_object(frozen) is frozen


def test_the_repr_is_short() -> None:
    """NFR-020: no more than 200 characters of what the provider sent."""
    assert repr(FrozenObject()) == "FrozenObject()"
    assert repr(FrozenObject({"a": [1]})) == "FrozenObject({'a': [1]})"
    assert len(repr(FrozenObject({"a": "x" * 1000}))) == len("FrozenObject()") + 200


@given(json_values)
def test_freezing_and_thawing_lose_nothing(value: Any) -> None:
    """FR-107: what is thawed is what was frozen, in the same order."""
    assert thaw(freeze(value)) == value
    assert thaw(as_frozen_value(value)) == value
    assert repr(thaw(as_frozen_value(value))) == repr(value)


def test_what_is_thawed_is_a_copy() -> None:
    """Others may have the same object."""
    frozen = FrozenObject({"a": [{"b": 1}]})
    plain = thaw(frozen)
    plain["a"][0]["b"] = 2
    plain["c"] = 3
    assert frozen == {"a": ({"b": 1},)}


@given(json_objects)
def test_a_copy_shares_nothing(value: dict[str, Any]) -> None:
    """Adding to a copy does not change where it came from."""

    def containers(value: Any) -> set[int]:
        if isinstance(value, dict):
            return {id(value)}.union(*map(containers, value.values()))
        return {id(value)}.union(*map(containers, value)) if isinstance(value, list) else set()

    copied = copy_json(value)
    assert copied == value
    assert not containers(copied) & containers(value)


# ------------------------------------------------------------------------------------------------- merging


@pytest.mark.parametrize(
    ("known", "more", "merged", "news"),
    [
        ({}, {"a": 1}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, {"b": 2}),
        ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": True}, {"a": True}, {"a": True}),
        ({"a": 1}, {"a": 1.0}, {"a": 1.0}, {"a": 1.0}),
        ({"a": "x"}, {"a": "y"}, {"a": "y"}, {"a": "y"}),
        ({"a": 1}, {"a": None}, {"a": 1}, {}),
        ({"a": "x"}, {"a": None}, {"a": "x"}, {}),
        ({"a": None}, {"a": None}, {"a": None}, {}),
        ({"a": None}, {"a": 0}, {"a": 0}, {"a": 0}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}),
        ({"a": [1]}, {"a": None}, {"a": [1]}, {}),
        ({"a": {"b": 1}}, {"a": None}, {"a": {"b": 1}}, {}),
        ({"a": None}, {"a": [1]}, {"a": [1]}, {"a": [1]}),
        ({"a": [1]}, {"a": "x"}, {"a": "x"}, {"a": "x"}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}, {"a": [1]}),
        ({"a": [1]}, {"a": [1]}, {"a": [1]}, {}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 1, 2]}, {"a": [1, 2]}),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [1, 2, 2]}, {"a": [2]}),
        ({"w": [1]}, {"w": [1, 2]}, {"w": [1, 2]}, {"w": [2]}),
        ({"w": [1]}, {"w": [1]}, {"w": [1]}, {}),
        ({"w": [1, 2]}, {"w": [3]}, {"w": [1, 2, 3]}, {"w": [3]}),
        ({"delta": {"plan": "ha"}}, {"delta": {"plan": "ha"}}, {"delta": {"plan": "haha"}}, {"delta": {"plan": "ha"}}),
        ({"delta": {"x": {"plan": "a"}}}, {"delta": {"x": {"plan": "b"}}}, {"delta": {"x": {"plan": "ab"}}}, {"delta": {"x": {"plan": "b"}}}),
        ({"delta": {"plan": "ha"}}, {"delta": {"plan": ""}}, {"delta": {"plan": "ha"}}, {}),
        ({"delta": {"type": "a", "n": 1}}, {"delta": {"type": "a", "n": 1}}, {"delta": {"type": "a", "n": 1}}, {}),
        ({"delta": {"type": "a", "n": 1}}, {"delta": {"type": "b", "n": "x"}}, {"delta": {"type": "b", "n": "x"}}, {"delta": {"type": "b", "n": "x"}}),
        ({"delta": {"w": "a"}}, {"delta": {"w": "b"}}, {"delta": {"w": "ab"}}, {"delta": {"w": "b"}}),
        ({"w": {"delta": {"plan": "a"}}}, {"w": {"delta": {"plan": "b"}}}, {"w": {"delta": {"plan": "ab"}}}, {"w": {"delta": {"plan": "b"}}}),
        ({"delta": {"word": "a"}}, {"delta": {"word": "a"}}, {"delta": {"word": "a"}}, {}),
        ({"delta": {"whole": [{"index": 0, "a": "x"}]}}, {"delta": {"whole": [{"index": 0, "a": "x"}]}}, {"delta": {"whole": [{"index": 0, "a": "x"}]}}, {}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1, 2, 1]}, {"a": [1]}),
        ({"a": [1, 2]}, {"a": []}, {"a": [1, 2]}, {}),
        ({"p": [1]}, {"p": [1]}, {"p": [1, 1]}, {"p": [1]}),
        ({"q": [{"index": 0, "p": [1]}]}, {"q": [{"index": 0, "p": [1]}]}, {"q": [{"index": 0, "p": [1, 1]}]},
         {"q": [{"index": 0, "p": [1]}]}),
        (
            {"c": [{"index": 0, "a": 1}]},
            {"c": [{"index": 1, "a": 3}, {"index": 0, "b": 2}]},
            {"c": [{"index": 0, "a": 1, "b": 2}, {"index": 1, "a": 3}]},
            {"c": [{"index": 1, "a": 3}, {"index": 0, "b": 2}]},
        ),
        ({"c": [{"index": 0, "a": 1}]}, {"c": [{"index": 0, "a": 1}]}, {"c": [{"index": 0, "a": 1}]}, {}),
        ({"c": []}, {"c": [{"index": 0}]}, {"c": [{"index": 0}]}, {"c": [{"index": 0}]}),
        ({"c": [{"index": 0}]}, {"c": [{}]}, {"c": [{"index": 0}, {}]}, {"c": [{}]}),
    ],
)  # fmt: skip
def test_extensions_add_up(
    known: dict[str, Any], more: dict[str, Any], merged: dict[str, Any], news: dict[str, Any]
) -> None:
    """Design, section 5: objects by key, lists in order, of a scalar the last. Null takes nothing away, in no case."""
    untouched = copy.deepcopy(more)
    rules = merge_rules(("p", "q[].p"), ("w", "delta.word", "delta.whole"))
    changes = merge(known, more, Arrays(), rules)
    assert same_json(known, merged)
    assert same_json(changes, news)
    merge(known, {name: copy_json(value) for name, value in more.items()}, Arrays(), rules)
    assert same_json(more, untouched), "what is added is not changed by what is added later"


@pytest.mark.parametrize(
    ("said", "more"),
    [({"p": {"a": [1]}}, True), ({"p": {"a": {"b": [1]}}}, True), ({"p": {"a": []}}, False), ({"p": "a"}, False), ({"q": [{"index": 0, "p": {"a": [1]}}]}, True)],
)  # fmt: skip
def test_of_an_object_that_arrives_in_pieces_every_list_does(said: dict[str, Any], more: bool) -> None:
    """Sent again it is a change, and one can ask beforehand."""
    rules = merge_rules(("p", "q[].p"))
    known = copy_json(said)
    assert adds_up(said, rules) is more
    assert bool(merge(known, said, Arrays(), rules)) is more


@pytest.mark.parametrize(
    ("events", "sum_of_them"),
    [
        ([[7], [8], [8]], [7, 8, 8]),
        ([[1], [1], [1]], [1]),
        ([[1], [1], [2]], [1, 1, 2]),
        ([[1], [1], [1, 1]], [1, 1, 1, 1]),
        ([[1], [], [1]], [1, 1]),
        ([[], [], [1]], [1]),
        ([[{"a": 1}], [{"a": 1}], [{"a": 2}], [{"a": 2}]], [{"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}]),
        ([[True], [1], [1.0]], [True, 1, 1.0]),
    ],
)
def test_an_undeclared_array_is_kept_once_only_while_it_is_the_same(
    events: list[Any], sum_of_them: list[Any]
) -> None:
    """As soon as one differs every piece counts, those before as well. The changes add up to the same."""
    known: dict[str, Any] = {}
    again: dict[str, Any] = {}
    arrays, rules = Arrays(), merge_rules(("a",))
    for event in events:
        merge(again, merge(known, {"a": event}, arrays), Arrays(), rules)
    assert same_json(known, {"a": sum_of_them})
    assert same_json(again, known)
    assert adds_up({"a": events[0]}, {})


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ({"delta": {"plan": "ha"}}, True),
        ({"delta": {"plan": "", "type": "a", "n": 1, "word": "x", "whole": ["x"]}}, False),
        ({"delta": {"list": [{"index": 0, "a": "x"}]}}, True),
        ({"a": [{"index": 0, "a": "x"}], "w": [1]}, False),
        ({"a": []}, True),
        ({"a": {"b": "x"}}, False),
    ],
)
def test_one_can_ask_whether_a_value_adds_up(value: dict[str, Any], more: bool) -> None:
    """Pieces and increments do. A header field that is repeated does not."""
    assert adds_up(value, merge_rules((), ("w", "delta.word", "delta.whole"))) is more


@given(json_objects)
def test_what_does_not_add_up_changes_nothing_when_it_is_sent_again(value: dict[str, Any]) -> None:
    known = copy_json(value)
    changes = merge(known, value, Arrays())
    if not adds_up(value, {}):
        assert changes == {}
        assert same_json(known, value)


@given(json_objects, json_objects, json_objects)
def test_merging_groups_as_one_likes(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    """Every key of either side is there in the end, and nothing is shared with it."""
    known = copy_json(a)
    for more in (b, c):
        before = copy.deepcopy(more)
        merge(known, more, Arrays())
        assert more == before
    assert known.keys() == a.keys() | b.keys() | c.keys()


@pytest.mark.parametrize(
    ("items", "indexed"),
    [
        ([], False),
        ([{"index": 0}], True),
        ([{"index": True}], False),
        ([{"index": "0"}], False),
        ([{"index": 0}, {}], False),
        ([0], False),
    ],
)
def test_which_lists_are_indexed(items: list[Any], indexed: bool) -> None:
    """Items that carry their place in an integer ``index``, all of them."""
    assert is_indexed(items) is indexed


# ------------------------------------------------------------------------------------- every digit

WIDE = [2**64, -(2**63) - 1, 10**19, 123456789012345678901, 10**400, -(10**4000), 2**63, 2**64 - 1, -(2**63)]


@pytest.mark.parametrize("number", WIDE)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "[1.5, {}, 1e3]",
        '{{"a": {}, "b": "{}"}}',
        "[" + '"x",' * 400 + "{}]",
        "[" + '"x",' * 4000 + "{}]",
        '["' + "x" * 9000 + '", {{"a": [1.5, {}, 2e70]}}]',
    ],
)
def test_an_integer_keeps_its_digits(number: int, around: str) -> None:
    text = around.format(*[number] * 2)
    value = load_json(text)
    assert value == load_json(text.encode()) == json.loads(text)
    assert str(number) in str(value)
    assert load_json(dump_json(value)) == value
    assert str(number).encode() in dump_json(value)


@pytest.mark.parametrize("text", ['"' + "x" * 9000 + '"', '{"a": "' + "1" * 9000 + '", "b": [1.5, null]}'])
def test_a_long_text_is_read_as_it_is(text: str) -> None:
    assert load_json(text) == load_json(text, unique_keys=True) == json.loads(text)


@given(
    st.recursive(
        json_values | st.integers(-(10**40), 10**40),
        lambda inner: st.lists(inner) | st.dictionaries(st.text('ab:\\"é', max_size=3), inner),
        max_leaves=9,
    )
)
def test_what_is_written_is_read_again(value: Any) -> None:
    text = dump_json(value)
    again = load_json(text, unique_keys=True)
    assert again == value == load_json(text.decode())
    assert type(again) is type(value)
    assert dump_json(again) == text


@pytest.mark.parametrize(
    "text",
    ["", "nul", "[1,]", "9" * 5000, '["\\ud800", ' + "9" * 400 + "]", f"[NaN, {'9' * 400}]", "[" * 2000 + "9" * 40 + "]" * 2000,
     "\ud800" + "9" * 400, b"\xff" + b"9" * 400, b'["\xff", ' + b"9" * 400 + b"]", "0" * 30, "9" * 400 + "."],
)  # fmt: skip
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        load_json(text)


def test_what_orjson_just_reads_is_exact_or_refused() -> None:
    """A long integer so deep down is Python's to read: how deep it goes hangs on its version."""
    deep = b"[" * 1020 + b"9" * 40 + b"]" * 1020
    with suppress(orjson.JSONDecodeError):
        assert str(load_json(deep)) == deep.decode()


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "a": 1}',
        '{"a": 1, "b": {"x": [{"y": 1, "y": ":"}]}}',
        '{"a": 1, "\\u0061": 2}',
        '{"a": "\\u003a", "a": 2}',
        '{"a": 1, "b": "\\u003a", "a": 2}',
        f'{{"a": {2**70}, "a": 2}}',
    ],
)
def test_a_repeated_key_is_refused_where_asked_for(text: str) -> None:
    assert load_json(text) == json.loads(text)
    with pytest.raises(RepeatedKeyError, match="a key is repeated"):
        load_json(text, unique_keys=True)


@pytest.mark.parametrize(
    "text", ['{"a:b": ":", "c": "\\u003a:"}', '{"a": {"a": {"a": 1}}}', '[{"a": 1}, {"a": 1}]']
)
def test_a_key_may_stand_in_several_objects(text: str) -> None:
    assert load_json(text, unique_keys=True) == json.loads(text)


def _deep(value: Any) -> Any:
    for _ in range(2000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [object(), [2**64, object()], [10**5000], {"a": [10**5000]}, [2**64, _deep(1)], "\ud800"]
)
def test_what_json_cannot_say_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError):
        dump_json(value)


def test_what_default_makes_keeps_its_digits() -> None:
    def plain(value: Any) -> Any:
        return {"n": value.real, "more": (value.imag, 2**65)}

    class Pair:
        real, imag = 2**64, 1

    assert dump_json([2**70, Pair()], default=plain, option=orjson.OPT_INDENT_2) == (
        b'[\n  1180591620717411303424,\n  {\n    "n": 18446744073709551616,\n    "more": [\n      1,\n      '
        b"36893488147419103232\n    ]\n  }\n]"
    )


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 40])
@pytest.mark.parametrize("shift", range(6))
def test_one_long_integer_among_many_shorter_ones_keeps_its_digits(count: int, shift: int) -> None:
    """At any place, and among any number of others with nearly as many digits."""
    others = [10**17 + number for number in range(count)]
    for long in (10**30 + 7, 2**64, -(2**63) - 1):
        for value in ([*others, long], [long, *others]):
            text = b" " * shift + orjson.dumps([0, *map(str, value)]).replace(b'"', b"")
            assert load_json(text) == [0, *value]
    assert load_json(orjson.dumps(others)) == others
