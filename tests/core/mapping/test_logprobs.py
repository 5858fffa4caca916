"""Log probabilities: each entry is read, or stays."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from crosswalk import CrosswalkError, TokenLogprob
from crosswalk.plugin.state import mistyped
from crosswalk.plugins import accept_logprobs

TOP = "top_logprobs"
values = st.sampled_from(
    [None, True, 1, -1, 256, 1.5, float("inf"), float("nan"), "x", "\ud83d", [], {}, [1]]
)
tokens = st.text(max_size=3) | values
numbers = st.floats(-9, 0) | values
sent = (
    st.lists(st.integers(0, 255), max_size=3) | st.lists(st.integers(-1, 256) | values, max_size=2) | values
)


def entries(tops: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Entries, mostly with all their keys and the right values there."""
    usual = {
        "token": st.text(max_size=3),
        "logprob": st.floats(-9, 0),
        "bytes": st.lists(st.integers(0, 255)),
    }
    odd = {"token": tokens, "logprob": numbers, "bytes": sent, TOP: tops | values, "more": values}
    return (
        st.fixed_dictionaries({**usual, TOP: tops})
        | st.fixed_dictionaries(usual)
        | st.fixed_dictionaries({}, optional=odd)
    )


many = st.lists(entries(st.lists(entries(st.just([])), max_size=2)), max_size=5)


def one(token: Any = "a", logprob: Any = -1.0, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, **more}


@given(many)
@example([one(bytes=[1, 2], top_logprobs=[one(bytes=[True])])])
@example([one(bytes=[256])])
@example([one(bytes=None), one(bytes=[])])
@example([one("\ud83d"), one("\ude00")])
@example([one(logprob=float("inf"))])
@example([one(), {"token": "a", "bytes": [1]}])
@example([one(top_logprobs=[]), one(top_logprobs=[one(), one("b")])])
@example([one(top_logprobs=[one(top_logprobs=[one("c")])])])
def test_entries_are_read_or_stay(items: list[Any]) -> None:
    """Each token is read as it was sent, or all entries stay as they came. Text that is not text is a typed error."""
    container = {"content": deepcopy(items)}
    try:
        found = accept_logprobs(container, "content")
    except CrosswalkError:
        return
    if found is None:
        assert repr(container["content"]) == repr(items) if items else not container
        return
    assert [(token.token, token.logprob) for token in found] == [
        (item["token"], item.get("logprob")) for item in items
    ]
    for token, item in zip(found, items, strict=True):
        assert token.bytes is None or list(token.bytes) == item["bytes"]
        assert not token.top or [other.token for other in token.top] == [one["token"] for one in item[TOP]]


@pytest.mark.parametrize(
    ("sent", "number"),
    [(None, 0), ([256], 1), ("YQ==", 1), ([True], 1), ([97], 0)],
)
def test_bytes_that_are_none_stay(sent: Any, number: int) -> None:
    """The tokens are read all the same. Null says nothing."""
    container = {"content": [one(bytes=[97]), one(bytes=sent)]}
    mistyped()  # what was noted before
    found = accept_logprobs(container, "content")
    assert found is not None
    assert [token.token for token in found] == ["a", "a"]
    assert len(mistyped()) == number
    assert container == ({"content": [{}, {"bytes": sent}]} if number else {})


def test_what_one_entry_has_alongside_stays_there() -> None:
    container = {"content": [one(bytes=[97]), one(left=1)]}
    assert accept_logprobs(container, "content") == (TokenLogprob("a", -1.0, (97,)), TokenLogprob("a", -1.0))
    assert container == {"content": [{}, {"left": 1}]}


def test_each_field_is_read_and_nothing_is_left() -> None:
    container = {
        "content": [
            one("é", bytes=[195, 169], top_logprobs=[one("e"), one("a", -2.5)]),
            one("b", bytes=[98], top_logprobs=[]),
        ]
    }
    assert accept_logprobs(container, "content") == (
        TokenLogprob("é", -1.0, (195, 169), (TokenLogprob("e", -1.0), TokenLogprob("a", -2.5))),
        TokenLogprob("b", -1.0, (98,)),
    )
    assert container == {}
