"""The places of an event's objects and arrays after it is merged into the extensions, as their notes name them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosswalk import normalize_stream
from crosswalk.types.json import PIECES, Arrays, copy_json, merge, merge_rules, placed
from wires import chunk, sse

RULES = merge_rules(("pieces", "of[].pieces"), ("a",))

leaves = st.integers(0, 2) | st.sampled_from(["a", None, True])


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["a", "of", "pieces"])
    numbered = st.dictionaries(keys, inner, max_size=2).flatmap(
        lambda more: st.integers(0, 2).map(lambda index: {"index": index, **more})
    )
    return (
        st.dictionaries(keys, inner, max_size=3)
        | st.lists(inner, max_size=3)
        | st.lists(numbered, max_size=3, unique_by=lambda item: item["index"])
    )


events = st.lists(
    st.dictionaries(st.sampled_from(["a", "of", "pieces"]), st.recursive(leaves, objects, max_leaves=8)),
    max_size=4,
)


def at(value: Any, path: str) -> Any:
    """The value at *path*."""
    for key in path.replace("[", ".[").strip(".").split("."):
        if key:
            value = value[int(key[1:-1])] if key.startswith("[") else value[key]
    return value


def marked(value: Any, marks: Iterator[int], key: Any = None) -> Any:
    """*value* with another text in the place of each scalar, but for an ``index``."""
    if type(value) is dict:
        return {name: marked(item, marks, name) for name, item in value.items()}
    if type(value) is list:
        return [marked(item, marks) for item in value]
    return value if key == "index" else f"mark {next(marks)}"


@given(events, events)
def test_an_object_is_where_it_was_said_to_be(before: list[Any], last: list[Any]) -> None:
    known: dict[str, Any] = {}
    arrays, marks = Arrays(), itertools.count()
    for event in before:
        merge(known, event, arrays, RULES)
    for event in (marked(one, marks) for one in last):
        said = [
            (f"{one.path}.{key}" if type(key) is str else f"{one.path}[{one.items[key]}]", one.value[key])
            for one in placed(known, event, arrays, RULES)
            for key in (one.value if type(one.value) is dict else range(len(one.value)))
            if type(one.value[key]) is str
        ]
        merge(known, copy_json(event), arrays, RULES)
        for path, mark in said:
            assert at(known, path) == mark


def test_an_array_is_located_after_its_pieces() -> None:
    """Unless it is the same array again, or the whole array so far."""
    known = {"list": [1, {"a": 1}], "same": [1], "whole": [1]}
    arrays = Arrays()
    merge(known, {"list": [1, {"a": 1}]}, arrays)
    rules = merge_rules((), ("whole",))
    more = {"list": [{"a": 2}], "same": [1], "whole": [1, {}]}
    located = {one.path: one for one in placed(known, more, arrays, rules)}
    assert located["list"].items == range(4, 5)
    assert "list[4]" in located
    assert located["same"].items == range(1)
    assert located["whole"].items == range(2)
    assert "list[2]" in {one.path for one in placed(known, {"list": [{"a": 1}]}, arrays, PIECES)}


def test_a_note_names_the_choice_that_it_is_about() -> None:
    """Though the event has one alone, and so its number is not its place in the event."""

    def event(choice: int, **more: Any) -> Any:
        said = chunk({"content": f"{choice} "}, choice=choice)
        said["choices"][0] |= more
        return said

    events = [event(0, x=1), event(1, x=2), event(1, logprobs="odd")]
    stream = normalize_stream([sse(*events, chunk({}, "stop"), chunk({}, "stop", choice=1))], "vllm")
    response = [*stream] and stream.response
    assert response.metadata.extensions["choices"][1]["logprobs"] == "odd"
    assert response.metadata.provenance["metadata.extensions.choices[1].logprobs"] == "mistyped"
    assert "metadata.extensions.choices[0].logprobs" not in response.metadata.provenance


@pytest.mark.parametrize("learns", [True, False])
def test_a_note_names_the_item_of_a_list_that_arrives_in_pieces(learns: bool) -> None:
    def piece(number: int, value: Any) -> Any:
        text = f"w{number} "
        said = {"text": text, "token_ids": [number], "logprobs": [value]}
        delta = {"message": {"content": {"text": text}}}
        return {"type": "content-delta", "index": 0, "delta": delta, "logprobs": said}

    start = {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant"}}}
    block = {
        "type": "content-start",
        "index": 0,
        "delta": {"message": {"content": {"type": "text", "text": ""}}},
    }
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    pieces = [piece(n, "x" if n in (7, 9, 10) else -n / 8) for n in range(14)]
    if not learns:
        pieces = [{**one, "n": number} for number, one in enumerate(pieces)]  # each is unlike the others
    stream = normalize_stream([sse(start, block, *pieces, end, done=False)], "cohere")
    response = [*stream] and stream.response
    noted = {path for path, why in response.metadata.provenance.items() if why == "mistyped"}
    assert noted == {f"metadata.extensions.logprobs[{n}].logprobs" for n in (7, 9, 10)}
    assert response.metadata.extensions["logprobs"][7]["logprobs"] == ("x",)


def test_an_item_without_an_index_makes_an_array_of_pieces() -> None:
    """From then on items with an index are appended as well: their places mean nothing any more."""
    known: dict[str, Any] = {"choices": [{"index": 0}]}
    arrays = Arrays()
    for choices in ([{"x": 1}], [{"index": 0}]):
        merge(known, {"choices": choices}, arrays)
    assert known == {"choices": [{"index": 0}, {"x": 1}, {"index": 0}]}
    assert arrays.is_mixed


def test_an_empty_cumulative_array_says_nothing_of_what_came_before() -> None:
    arrays, known = Arrays(), {"a": [1, 2]}
    changes = [merge(known, {"a": items}, arrays, RULES) for items in ([], [1, 2], [], [1, 2, 3])]
    assert changes == [{}, {}, {}, {"a": [3]}]
    assert known == {"a": [1, 2, 3]}
