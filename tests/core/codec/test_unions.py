"""Unions of plain values in classes of a program."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import attrs
import pytest

from crosswalk.codec import converter


@attrs.frozen
class Part:
    text: str


@attrs.frozen
class Other:
    number: int


class Colour(Enum):
    RED = "red"


@attrs.frozen
class Document:
    """A class of a program."""

    parts: tuple[Part, ...] = attrs.field(default=(), metadata={"required": True})
    either: Part | Other | None = None
    word: Literal["a", 1] | list[int] = "a"
    colour: Colour | int = 0


def problems(value: Any) -> tuple[str, ...]:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # cattrs' own group of errors
        converter().structure(value, Document)
    from crosswalk.codec.canonical import transform_error

    return tuple(transform_error(caught.value))


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("either", None, None),
        ("either", {"number": 1}, Other(1)),
        ("word", "a", "a"),
        ("word", 1, 1),
        ("word", [1], [1]),
        ("colour", "red", Colour.RED),
        ("colour", 7, 7),
    ],
)
def test_a_union_is_read_by_the_type_of_the_value(key: str, value: Any, read: Any) -> None:
    assert getattr(converter().structure({"parts": [], key: value}, Document), key) == read


@pytest.mark.parametrize(("key", "value"), [("word", "b"), ("word", {}), ("colour", []), ("either", 7)])
def test_a_value_of_no_member_is_named(key: str, value: Any) -> None:
    assert any(key in problem for problem in problems({"parts": [], key: value}))
