"""Values that a hook looks at stay in the event. A wrong value is reported with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from crosswalk import WireTypeError
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.hooks import hookimpl
from crosswalk.plugin.registry import Registry
from crosswalk.plugin.state import mistyped
from crosswalk.plugins import (
    MappingState,
    ResponseDelta,
    look_at,
    look_at_count,
    take_objects,
    take_string,
    wrong_type,
)


class Shouts:
    """Says the words of its lines, which must be in upper case."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        for line in event if type(event) is list else [event]:
            for word in take_objects(line, "words"):
                if not str(word.get("text")).isupper():
                    raise wrong_type(word, "text", "a shout")
                yield ResponseDelta(content_delta=take_string(word, "text"))
                look_at_count(word, "place")


def read(event: Any) -> Any:
    registry = Registry(installed=[], environ={})
    registry.register(Shouts(), "shouts")
    reader = Reader(registry.mapper("shouts"))
    list(reader.read_event(event))
    list(reader.finish())
    return reader.response().metadata


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("x", {str}),
        (True, {bool}),
        (1, {int, float, "count"}),
        (-1, {int, float}),
        (2**63, {int, float}),
        (10**400, {int}),
        (1.0, {float}),
        ([], {list}),
        ({}, {dict}),
        (None, set()),
    ],
)
def test_what_is_looked_at_stays(value: Any, kinds: set[Any]) -> None:
    mistyped()  # what another test may have left on this thread
    container = {"key": value, "other": 1}
    for kind in (str, bool, int, float, list, dict):
        assert look_at(container, "key", kind) == (value if kind in kinds else None)
        assert look_at(container, "missing", kind) is None
    assert look_at_count(container, "key") == (value if "count" in kinds else None)
    assert look_at_count(container, "missing") is None
    assert list(container.items()) == [("key", value), ("other", 1)]
    is_noted = value is not None
    assert mistyped() == [(container, "key")] * is_noted, "and once"


def test_what_is_looked_at_and_is_of_another_type_is_noted_where_it_stays() -> None:
    metadata = read({"words": [{"text": "A", "place": 1}, {"text": "B", "place": "2"}]})
    assert metadata.extensions == {"words": [{"place": 1}, {"place": "2"}]}
    assert metadata.provenance["metadata.extensions.words[1].place"] == "mistyped"


def test_an_error_of_the_plugins_own_says_where() -> None:
    with pytest.raises(WireTypeError, match=r"words\[1\]\.text: expected a shout, got string") as caught:
        read({"words": [{"text": "A"}, {"text": "b"}]})
    assert caught.value.partial is not None
    assert caught.value.partial.text == "A"
    with pytest.raises(WireTypeError, match=r"words\[0\]\.text: expected a shout, got null"):
        read({"words": [{}]})


def test_of_an_array_too_nothing_is_left_that_was_emptied() -> None:
    assert read([{"words": [{"text": "A"}]}, {"words": [{"text": "B"}]}]).extensions == {}
    left = read([{"words": [{"text": "A"}]}, {"words": [{"text": "B", "n": 1}], "none": []}]).extensions
    assert left == {"event": [{}, {"words": [{"n": 1}], "none": []}]}
