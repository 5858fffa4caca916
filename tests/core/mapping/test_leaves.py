"""Reading a leaf gives its value, nothing, or a typed error that says where and what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crosswalk import (
    TokenLogprob,
    WireTypeError,
    get_array,
    get_boolean,
    get_count,
    get_integer,
    get_number,
    get_object,
    get_string,
    legacy_logprobs,
    require_object,
    token_logprobs,
)

VALUES: list[Any] = ["x", "", 1, 0, -1, 1.5, True, False, [], [1], {}, {"a": 1}]
READERS: list[tuple[Callable[..., Any], str, list[Any]]] = [
    (get_string, "string", ["x", ""]),
    (get_integer, "integer", [1, 0, -1]),
    (get_count, "integer", [1, 0]),
    (get_number, "number", [1, 0, -1, 1.5]),
    (get_boolean, "boolean", [True, False]),
    (get_object, "object", [{}, {"a": 1}]),
    (get_array, "array", [[], [1]]),
]


@pytest.mark.parametrize(("get", "expected", "good"), READERS)
def test_a_leaf_is_read_by_its_type(get: Callable[..., Any], expected: str, good: list[Any]) -> None:
    """Only that very type: true is no number, 1.0 no integer, and nothing is converted."""
    nothing: Any = [] if get is get_array else None
    assert get({}, "key") == nothing
    assert get({"key": None}, "key", "place") == nothing
    for value in VALUES:
        if any(value is item or (type(value) is type(item) and value == item) for item in good):
            assert get({"key": value}, "key") is value
        else:
            with pytest.raises(WireTypeError) as caught:
                get({"key": value}, "key", "choices[0]")
            assert caught.value.place == "choices[0].key"
            with pytest.raises(WireTypeError) as caught:
                get({"key": value}, "key")
            assert caught.value.place == "key"


@pytest.mark.parametrize(
    ("value", "expected", "got"),
    [("1", "integer", "string"), (-1, "a count of at least 0", "number"), (True, "integer", "boolean")],
)
def test_a_wrong_leaf_is_named_in_jsons_words(value: Any, expected: str, got: str) -> None:
    """Expected and found type, never the value itself."""
    with pytest.raises(WireTypeError, match=f"usage.n: expected {expected}, got {got}") as caught:
        get_count({"n": value}, "n", "usage")
    assert (caught.value.expected, caught.value.got) == (expected, got)
    assert isinstance(caught.value, TypeError)


def test_an_object_may_be_required() -> None:
    """Where nothing but an object will do, null is an error too."""
    assert require_object({"a": 1}, "x") == {"a": 1}
    value: Any
    for value in (None, [], "x", 1):
        with pytest.raises(WireTypeError, match="x: expected object"):
            require_object(value, "x")


@pytest.mark.parametrize(
    ("items", "tokens"),
    [
        ([], ()),
        ([{"token": "a", "logprob": -1.5}], (TokenLogprob("a", -1.5),)),
        ([{"token": "a", "logprob": -9999}], (TokenLogprob("a", -9999),)),
        ([{"token": "", "logprob": None, "bytes": None}], (TokenLogprob("", None),)),
        (
            [{"token": "\ufffd", "logprob": -1, "bytes": [240, 159]}],
            (TokenLogprob("\ufffd", -1, (240, 159)),),
        ),
        ([{"token": "a", "logprob": -1, "bytes": []}], (TokenLogprob("a", -1, ()),)),
        ([{"token": "a", "logprob": -1, "top_logprobs": []}], (TokenLogprob("a", -1),)),
        (
            [{"token": "a", "logprob": -1, "top_logprobs": [{"token": "b", "logprob": -2, "bytes": [98]}]}],
            (TokenLogprob("a", -1, None, (TokenLogprob("b", -2, (98,)),)),),
        ),
    ],
)
def test_token_logprobs(items: list[Any], tokens: tuple[TokenLogprob, ...]) -> None:
    """Token, logarithm, bytes and the likeliest others, in order."""
    assert token_logprobs(items, "logprobs") == tokens


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (None, "logprobs[0]"),
        ("a", "logprobs[0]"),
        ({"logprob": -1}, "logprobs[0].token"),
        ({"token": 1, "logprob": -1}, "logprobs[0].token"),
        ({"token": "a", "logprob": "-1"}, "logprobs[0].logprob"),
        ({"token": "a", "bytes": "a"}, "logprobs[0].bytes"),
        ({"token": "a", "bytes": [256]}, "logprobs[0].bytes"),
        ({"token": "a", "bytes": [-1]}, "logprobs[0].bytes"),
        ({"token": "a", "bytes": [True]}, "logprobs[0].bytes"),
        ({"token": "a", "top_logprobs": {"b": 1}}, "logprobs[0].top_logprobs"),
        ({"token": "a", "top_logprobs": [{"token": None}]}, "logprobs[0].top_logprobs[0].token"),
    ],
)
def test_wrong_token_logprobs_are_named(item: Any, place: str) -> None:
    """The error leads to the very leaf."""
    with pytest.raises(WireTypeError) as caught:
        token_logprobs([item], "logprobs")
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("logprobs", "tokens"),
    [
        ({"tokens": [], "token_logprobs": []}, ()),
        (
            {"tokens": ["a", "b"], "token_logprobs": [None, -1]},
            (TokenLogprob("a", None), TokenLogprob("b", -1)),
        ),
        ({"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": None}, (TokenLogprob("a", -1),)),
        (
            {"tokens": ["a", "b"], "token_logprobs": [None, -1], "top_logprobs": [None, {"b": -1, "c": -2}]},
            (
                TokenLogprob("a", None),
                TokenLogprob("b", -1, None, (TokenLogprob("b", -1), TokenLogprob("c", -2))),
            ),
        ),
    ],
)
def test_legacy_logprobs(logprobs: dict[str, Any], tokens: tuple[TokenLogprob, ...]) -> None:
    """The parallel lists of completions are read side by side."""
    assert legacy_logprobs(logprobs, "logprobs") == tokens


@pytest.mark.parametrize(
    ("logprobs", "place"),
    [
        ({"tokens": ["a"], "token_logprobs": []}, "logprobs"),
        ({"tokens": ["a"]}, "logprobs"),
        ({"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": [None, None]}, "logprobs"),
        ({"tokens": "a"}, "logprobs.tokens"),
        ({"tokens": [1], "token_logprobs": [-1]}, "logprobs.tokens[0].token"),
        ({"tokens": ["a"], "token_logprobs": ["b"]}, "logprobs.tokens[0].logprob"),
        ({"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": ["x"]}, "logprobs.top_logprobs[0]"),
    ],
)
def test_wrong_legacy_logprobs_are_named(logprobs: dict[str, Any], place: str) -> None:
    """Lists of unequal length, and leaves of wrong types."""
    with pytest.raises(WireTypeError) as caught:
        legacy_logprobs(logprobs, "logprobs")
    assert caught.value.place == place
