"""Canonical types and classes that hold them, read and written by cattrs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import attrs
import cattrs
import orjson
import pytest
from hypothesis import given

from crosswalk import ChatResponse, UsageInfo
from crosswalk.codec import (
    configure_converter,
    converter as new_converter,
    from_json,
    to_json,
    transform_error,
)
from crosswalk.codec.canonical import problems_in
from crosswalk.errors import CanonicalJSONError
from crosswalk.responses import Response
from crosswalk.types import ContentPart, ImagePart, TextPart, ToolCall
from crosswalk.types.json import dump_json
from strategies import chat_responses


@attrs.frozen
class Exchange:
    user: str
    answer: ChatResponse
    usages: list[UsageInfo]


@pytest.fixture(params=[cattrs.Converter, cattrs.GenConverter, cattrs.BaseConverter])
def converter(request: pytest.FixtureRequest) -> Any:
    made = request.param()
    configure_converter(made)
    return made


SNAPSHOTS = Path(__file__).parents[3] / "snapshots"
CONVERTER = cattrs.Converter()
configure_converter(CONVERTER)


@given(chat_responses)
def test_a_class_that_holds_them_is_read_as_it_was_written(answer: ChatResponse) -> None:
    exchange = Exchange("u-1", answer, [answer.usage])
    written = orjson.dumps(CONVERTER.unstructure(exchange))
    assert CONVERTER.structure(orjson.loads(written), Exchange) == attrs.evolve(
        exchange, answer=from_json(to_json(answer), ChatResponse)
    )


def test_every_kind_of_converter_knows_them(converter: Any) -> None:
    usage = UsageInfo(1, 2, cached_tokens=1)
    assert converter.unstructure(usage) == {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "cached_tokens": 1,
    }
    assert (
        converter.structure({"prompt_tokens": 1, "completion_tokens": 2, "cached_tokens": 1}, UsageInfo)
        == usage
    )


def test_nothing_is_coerced(converter: Any) -> None:
    """cattrs alone would make a number of ``"1"``."""
    with pytest.raises(CanonicalJSONError, match="expected integer, got string"):
        converter.structure({"prompt_tokens": "1", "completion_tokens": 2}, UsageInfo)


# ------------------------------------------------------------------------------------------- our converter

DOCUMENTS = [
    line.partition(b'"document":')[2].removesuffix(b"}")
    for line in Path(__file__).with_name("every_field.jsonl").read_bytes().splitlines()
    if line.startswith(b'{"type":"ChatResponse"')
]


def test_our_converter_writes_canonical_json() -> None:
    """Every digit of a wide integer too, which orjson alone would refuse to write and read as a float."""
    made = new_converter(include_raw=True)
    response = made.loads(DOCUMENTS[0], ChatResponse)
    assert made.dumps(response) == DOCUMENTS[0]
    assert made.loads(memoryview(DOCUMENTS[0]), ChatResponse) == response
    assert new_converter().dumps(response) == to_json(response)


def test_both_doors_write_the_same_bytes_for_every_snapshot() -> None:
    """Also a cattrs converter of yours, which knows our types and leaves the text to orjson."""
    yours = cattrs.Converter()
    configure_converter(yours)
    made, responses = new_converter(), 0
    for path in sorted(SNAPSHOTS.glob("*/*.json")):
        stored = orjson.loads(path.read_bytes())
        response = from_json(orjson.dumps(stored.get("response") or stored["partial"]), ChatResponse)
        assert made.dumps(response) == to_json(response), path.name
        assert dump_json(yours.unstructure(response)) == to_json(response), path.name
        responses += 1
    assert responses > 400


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 678, UTC), "2026-01-02T03:04:05.000678Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T03:04:05+02:00"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
    ],
)
def test_a_time_of_your_class_is_written_as_text(time: datetime, text: str) -> None:
    """Orjson writes the same, but it needs an option for the ``Z``."""
    assert new_converter().unstructure(time) == text
    assert orjson.dumps(time, option=orjson.OPT_UTC_Z).decode() == f'"{text}"'


def test_a_class_that_holds_a_response_needs_no_more() -> None:
    made = new_converter()
    response = from_json(DOCUMENTS[0], ChatResponse)
    exchange = Exchange("u", response, [response.usage])
    assert made.loads(made.dumps(exchange), Exchange) == exchange


def test_a_converter_is_your_own() -> None:
    """Classes that you register with it are known to no other."""
    mine = new_converter()
    mine.register_unstructure_hook(UsageInfo, lambda usage: usage.total_tokens)
    assert mine.unstructure(UsageInfo(1, 2)) == 3
    assert to_json(UsageInfo(1, 2)).startswith(b"{")


class Colour(Enum):
    RED = "red"
    ONE = 1


@attrs.define
class Holder:
    text: str
    number: int = 0
    share: float = 0.0
    flag: bool = False
    nothing: None = None
    anything: Any = None
    day: date | None = None
    time: datetime | None = None
    lasts: timedelta = timedelta(0)
    amount: Decimal = Decimal(0)
    key: UUID | None = None
    colour: Colour = Colour.RED
    word: Literal["a", 1, True] = "a"
    words: list[str] = attrs.field(factory=list)
    pair: tuple[int, str] | None = None
    set_: frozenset[int] = frozenset()
    row: Sequence[int] = ()
    bare: list = attrs.field(factory=list)  # type: ignore[type-arg]
    by_name: dict[str, int] = attrs.field(factory=dict)
    part: ContentPart | None = None
    either: int | str | list[int] = 0
    inner: Holder | None = None


FULL: dict[str, Any] = {
    "text": "t",
    "number": 1,
    "share": 1,
    "flag": True,
    "nothing": None,
    "anything": {"a": [None]},
    "day": "2026-01-02",
    "time": "2026-01-02T03:04:05+01:00",
    "lasts": 1.5,
    "amount": "1.50",
    "key": "12345678-1234-5678-1234-567812345678",
    "colour": 1,
    "word": 1,
    "words": ["a"],
    "pair": [1, "a"],
    "set_": [1, 2],
    "row": [3],
    "bare": [{}],
    "by_name": {"a": 1},
    "part": {"type": "image", "url": "u"},
    "either": [1],
    "inner": {"text": "i"},
}


def test_a_class_of_yours_is_read_strictly() -> None:
    read = new_converter().structure(FULL, Holder)
    assert read == Holder(
        text="t",
        number=1,
        share=1.0,
        flag=True,
        anything={"a": [None]},
        day=date(2026, 1, 2),
        time=datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
        lasts=timedelta(seconds=1.5),
        amount=Decimal("1.50"),
        key=UUID("12345678-1234-5678-1234-567812345678"),
        colour=Colour.ONE,
        word=1,
        words=["a"],
        pair=(1, "a"),
        set_=frozenset({1, 2}),
        row=[3],
        bare=[{}],
        by_name={"a": 1},
        part=ImagePart(url="u"),
        either=[1],
        inner=Holder("i"),
    )
    assert type(read.share) is float


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"text": 1}, "expected string, got number @ $.text"),
        ({"number": 1.0}, "expected integer, got number @ $.number"),
        ({"number": True}, "expected integer, got boolean @ $.number"),
        ({"share": "1"}, "expected number, got string @ $.share"),
        ({"share": 10**400}, "expected a number, got one of more than 308 digits @ $.share"),
        ({"flag": 0}, "expected boolean, got number @ $.flag"),
        ({"nothing": 0}, "expected null, got number @ $.nothing"),
        ({"day": "today"}, "expected an ISO 8601 date, got 'today' @ $.day"),
        ({"day": 3}, "expected string, got number @ $.day"),
        ({"time": "2026-01-02"}, "expected an ISO 8601 time with its zone, got '2026-01-02' @ $.time"),
        ({"lasts": 1e300}, "expected seconds, got more than a billion days @ $.lasts"),
        ({"amount": "1e5"}, "expected a decimal number, got '1e5' @ $.amount"),
        ({"amount": "1."}, "expected a decimal number, got '1.' @ $.amount"),
        ({"key": "1"}, "expected a UUID, got '1' @ $.key"),
        ({"colour": "blue"}, "expected 'red' or 1, got another string @ $.colour"),
        ({"colour": True}, "expected 'red' or 1, got boolean @ $.colour"),
        ({"word": 1.0}, "expected 'a' or 1 or True, got number @ $.word"),
        ({"word": ["a"]}, "expected 'a' or 1 or True, got array @ $.word"),
        ({"words": "ab"}, "expected array, got string @ $.words"),
        ({"words": ["a", 1]}, "expected string, got number @ $.words[1]"),
        ({"pair": [1]}, "expected an array of length 2, got one of 1 @ $.pair"),
        ({"pair": ["1", "a"]}, "expected integer, got string @ $.pair[0]"),
        ({"by_name": {"a b": "x"}}, "expected integer, got string @ $.by_name['a b']"),
        ({"by_name": []}, "expected object, got array @ $.by_name"),
        (
            {"part": {"type": "x"}},
            "unknown type 'x', expected text or image or audio or video or file or search_result or document @ $.part.type",
        ),
        ({"either": 1.5}, "expected integer or string or array, got number @ $.either"),
        ({"either": ["x"]}, "expected integer, got string @ $.either[0]"),
        ({"inner": []}, "expected object, got array @ $.inner"),
        ({"inner": {}}, "a required key is missing @ $.inner.text"),
        ({"inner": {"text": 3}}, "expected string, got number @ $.inner.text"),
    ],
)
def test_a_wrong_value_of_a_class_of_yours_is_named(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(cattrs.ClassValidationError) as caught:
        new_converter().structure({**FULL, **change}, Holder)
    assert [f"{found} @ ${found.at}" for found in problems_in(caught.value)] == [problem]


@attrs.define
class Named:
    kind: Literal["one"] = "one"
    name_: str = attrs.field(default="", alias="name", validator=attrs.validators.in_(["", "abc"]))


def test_keys_are_aliases_and_extra_ones_can_be_refused() -> None:
    assert new_converter().structure({"name": "abc", "more": 1}, Named) == Named(name="abc")
    assert new_converter().unstructure(Named(name="abc")) == {"kind": "one", "name": "abc"}
    with pytest.raises(cattrs.ClassValidationError) as caught:
        new_converter(forbid_extra_keys=True).structure({"name": 1, "more": 1, "extra": 2}, Named)
    assert [f"{found} @ ${found.at}" for found in problems_in(caught.value)] == [
        "expected string, got number @ $.name",
        "unknown key @ $.extra",
        "unknown key @ $.more",
    ]
    with pytest.raises(cattrs.ClassValidationError) as caught:
        new_converter().structure({"name": "abcd"}, Named)
    assert [found.at for found in problems_in(caught.value)] == [".name"]


class Own:
    """A class that brings its hooks along."""

    def __init__(self, value: int) -> None:
        self.value = value

    @classmethod
    def __structure_hook__(cls, converter: Any) -> Any:
        return lambda value, _: cls(converter.structure(value["own"], int))

    @classmethod
    def __unstructure_hook__(cls, converter: Any) -> Any:
        return lambda own: {"own": converter.unstructure(own.value)}


@attrs.define
class HoldsOwn:
    own: Own
    call: ToolCall | TextPart | None = None


@given(chat_responses)
def test_what_is_unstructured_is_structured_again(answer: ChatResponse) -> None:
    made = new_converter()
    read = made.structure(made.unstructure(answer), ChatResponse)
    assert (read.same_content(answer), read.created) == (True, answer.created)


def test_what_is_unstructured_by_hand_is_structured_again() -> None:
    """The times and pairs that unstructuring leaves to orjson."""
    made = new_converter()
    time = datetime(2026, 1, 2, tzinfo=UTC)
    assert made.structure(time, datetime) == time
    assert made.structure((1, 2), tuple[int, int]) == (1, 2)


def test_a_type_that_json_has_no_form_for_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot read JSON as <class 'complex'>"):
        new_converter().structure(1, complex)


def test_each_wrong_leaf_is_named_in_records_and_by_taught_converters(converter: Any) -> None:
    body = {"id": "r", "object": "response", "output": [{"type": "message", "id": [], "content": []}]}
    with pytest.raises(cattrs.ClassValidationError) as caught:
        new_converter().structure(body, Response)
    assert "expected string, got array @ $.output[0].id" in transform_error(caught.value)
    with pytest.raises(Exception, match=".") as given:
        converter.structure([{"prompt_tokens": 1, "completion_tokens": "x"}], list[UsageInfo])
    (problem,) = transform_error(given.value)
    assert problem.startswith("expected integer, got string @ $")
    assert problem.endswith(".completion_tokens")


def test_a_note_on_an_error_does_not_hide_its_place() -> None:
    def refuse(value: Any, _: Any) -> Own:
        error = ValueError("not one")
        error.add_note("a hint")
        raise error

    made = new_converter()
    made.register_structure_hook(Own, refuse)
    with pytest.raises(cattrs.ClassValidationError) as caught:
        made.structure({"own": 1}, HoldsOwn)
    (problem,) = problems_in(caught.value)
    assert problem.at == ".own"


@attrs.define
class HoldsAnything:
    value: Any


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (ToolCall("c", "f"), b'{"value":{"id":"c","name":"f","arguments":"{}"}}'),
        ([UUID(int=1)], b'{"value":["00000000-0000-0000-0000-000000000001"]}'),
        ({"a": {1}}, b'{"value":{"a":[1]}}'),
        ({"a": [1, None, "x"]}, b'{"value":{"a":[1,null,"x"]}}'),
    ],
)
def test_a_field_of_any_type_is_written_by_its_value(value: Any, written: bytes) -> None:
    assert new_converter().dumps(HoldsAnything(value)) == written


@pytest.mark.parametrize("make", [new_converter, cattrs.Converter])
def test_a_class_may_bring_its_hooks(make: Any) -> None:
    made = make()
    configure_converter(made)
    if make is cattrs.Converter:
        assert made.unstructure(Own(3)) == {"own": 3}
        assert made.structure({"own": 3}, Own).value == 3
    read = new_converter().structure({"own": {"own": 3}, "call": {"id": "c", "name": "n"}}, HoldsOwn)
    assert (read.own.value, read.call) == (3, ToolCall("c", "n"))
    assert new_converter().unstructure(read) == {
        "own": {"own": 3},
        "call": {"id": "c", "name": "n", "arguments": "{}"},
    }


def test_a_class_of_yours_is_written_as_it_is_read() -> None:
    made = new_converter()
    holder = made.structure(FULL, Holder)
    assert orjson.loads(made.dumps(holder)) == {**FULL, "time": "2026-01-02T02:04:05Z", "inner": INNER}
    assert made.loads(made.dumps(Holder("t", row=[])), Holder) == Holder("t", row=[])


INNER = orjson.loads(new_converter().dumps(Holder("i")))


@attrs.frozen
class Left:
    child: Left | Right | None
    _kind: Literal["left"] = "left"


@attrs.frozen
class Right:
    child: Left | Right | None
    size: int
    _kind: Literal["right"] = "right"


@attrs.frozen
class Twin:
    child: int


@attrs.frozen
class OtherTwin:
    child: int


@attrs.frozen
class Wide:
    tag: Literal["wide"]


@attrs.frozen
class Narrow:
    tag: Literal["narrow"] = "narrow"


@dataclasses.dataclass
class Plain:
    size: int


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (Left | Right, {"child": None}, Left(None)),
        (Left | Right, {"child": {"child": None, "size": 1}}, Left(Right(None, 1))),
        (Wide | Narrow, {"tag": "wide"}, Wide("wide")),
        (Wide | Narrow, {"tag": "narrow"}, Narrow()),
        (Plain | Twin, {"size": 1}, Plain(1)),
        (Plain | list[int], {"size": 1}, Plain(1)),
        (Plain | list[int] | None, None, None),
        (UUID | date | int, "2026-01-02", date(2026, 1, 2)),
        (frozenset[int] | str, [1, 1], frozenset({1})),
        (dict[str, int] | int, {"a": 1}, {"a": 1}),
    ],
)
def test_a_union_is_told_apart_by_types_literals_and_keys(kind: Any, value: Any, read: Any) -> None:
    assert new_converter().structure(value, kind) == read


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (Wide | Narrow, {"tag": "?"}, "expected Wide or Narrow, got another object"),
        (Wide | Narrow, {"tag": []}, "expected Wide or Narrow, got another object"),
        (Wide | Narrow, [], "expected Wide or Narrow, got array"),
        (UUID | date, "?", "expected UUID or date, got another string"),
        (dict[str, int] | frozenset[int] | Literal["a"], 1, "expected object or array or 'a', got number"),
    ],
)
def test_a_value_of_no_member_is_refused(kind: Any, value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        new_converter().structure(value, kind)
    assert str(caught.value) == problem


@pytest.mark.parametrize("kind", [Twin | OtherTwin, list[int] | list[str], dict[str, int] | Twin])
def test_a_union_that_json_does_not_tell_apart_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(TypeError, match="disambiguate|does not tell"):
        new_converter().get_structure_hook(kind)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "expected object, got array @ $"),
        ({}, "a required key is missing @ $.size"),
        ({"size": "1"}, "expected integer, got string @ $.size"),
    ],
)
def test_a_wrong_dataclass_is_named(value: Any, problem: str) -> None:
    with pytest.raises((cattrs.ClassValidationError, ValueError)) as caught:
        new_converter().structure(value, Plain)
    assert [f"{found} @ ${found.at}" for found in problems_in(caught.value)] == [problem]
