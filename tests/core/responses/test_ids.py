from __future__ import annotations

import itertools
from typing import Any

import pytest

from crosswalk.responses import IdKind, InvalidIdError, check_id, id_kind, make_id


def test_ids_are_made_with_the_prefix_of_their_kind() -> None:
    numbers = itertools.count(1)
    assert [
        make_id(kind, token=lambda: str(next(numbers))) for kind in ("response", IdKind.MESSAGE, IdKind.CALL)
    ] == ["resp_1", "msg_2", "call_3"]
    assert make_id("message") != make_id("message")


@pytest.mark.parametrize("kind", IdKind)
def test_what_is_made_is_valid_and_tells_its_kind(kind: IdKind) -> None:
    made = make_id(kind)
    assert check_id(made, kind) == made
    assert id_kind(made) is kind


def test_prefixes_are_all_different() -> None:
    assert len({kind.prefix for kind in IdKind}) == len(IdKind)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("msg_1", "does not begin with 'resp_' @ response.id"),
        ("resp_", "no 1 to 200 letters, digits, _ or - follow 'resp_' @ response.id"),
        ("resp_a b", "no 1 to 200 letters, digits, _ or - follow 'resp_' @ response.id"),
        ("resp_a\n", "no 1 to 200 letters, digits, _ or - follow 'resp_' @ response.id"),
        ("resp_" + "a" * 201, "no 1 to 200 letters, digits, _ or - follow 'resp_' @ response.id"),
    ],
)
def test_what_is_no_id_is_refused(id: str, said: str) -> None:
    with pytest.raises(InvalidIdError) as caught:
        check_id(id, "response")
    assert str(caught.value) == said
    assert caught.value.kind == "response"


def test_a_token_that_no_id_can_hold_is_refused() -> None:
    with pytest.raises(InvalidIdError):
        make_id("response", token=lambda: "")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidIdError, match="unknown kind of id"):
        make_id("spoon")


@pytest.mark.parametrize("id", ["chatcmpl-1", "", "x_1", "resp"])
def test_ids_of_others_have_no_kind(id: str) -> None:
    assert id_kind(id) is None


@pytest.mark.parametrize("id", [None, 5, b"msg_1", ["msg_"]])
def test_what_is_no_string_is_no_id(id: Any) -> None:
    with pytest.raises(InvalidIdError, match="expected a string, got"):
        check_id(id, "message")
    with pytest.raises(InvalidIdError, match="expected a string, got"):
        make_id("message", token=lambda: id)
