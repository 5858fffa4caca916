"""Schemas of any attrs class: strict reading with paths, JSON Schema, instructions, registries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

import attrs
import jsonschema
import orjson
import pytest

from crosswalk import UsageInfo
from crosswalk.structured import (
    Invariant,
    MigrationError,
    ReasonCode,
    Schema,
    SchemaDefinitionError,
    SchemaVersions,
    StructuredParser,
    UnknownSchemaVersionError,
    Violation,
    value_to_json,
)
from crosswalk.types import FrozenObject

from .answers import POINTS, Circle, Colour, Everything, Node, Picky, Point, Square

EVERYTHING = Schema(Everything)
FULL = {
    "text": "t",
    "count": 2,
    "share": 1,
    "is_open": True,
    "nothing": None,
    "anything": [1, {"a": None}],
    "day": "2026-11-20",
    "moment": "2026-11-20T10:00:00Z",
    "colour": "blue",
    "size": 1,
    "tags": ["a"],
    "pair": [{"x": 1}, {"x": 2, "y": 3}],
    "bare_list": [1, "a"],
    "bare_dict": {"a": [1]},
    "scores": {"a": 1},
    "extra": {"b": [2]},
    "shape": {"kind": "square", "side": 2},
    "mixed": {"a": 1},
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    "reNamed": 3,
    "needed": 4,
}


def errors(schema: Schema[Any], data: object) -> list[str]:
    return [str(violation) for violation in schema.read(data)[1]]


def test_every_kind_of_field_is_read() -> None:
    value, violations, version = EVERYTHING.read(FULL)[:3]
    assert (violations, version) == ((), None)
    assert value == Everything(
        text="t",
        count=2,
        share=1.0,
        is_open=True,
        anything=[1, {"a": None}],
        day=date(2026, 11, 20),
        moment=datetime(2026, 11, 20, 10, tzinfo=UTC),
        colour=Colour.BLUE,
        size=1,
        tags=["a"],
        pair=(Point(1), Point(2, 3.0)),
        bare_list=[1, "a"],
        bare_dict={"a": [1]},
        scores={"a": 1},
        extra=FrozenObject({"b": [2]}),
        shape=Square("square", 2.0),
        mixed={"a": 1},
        usage=UsageInfo(1, 2),
        reNamed=3,
        needed=4,
    )


WRONG: list[tuple[str, object, str]] = [
    ("text", 5, "expected string, got number @ $.text"),
    ("count", 2.0, "expected integer, got number @ $.count"),
    ("count", "2", "expected integer, got string @ $.count"),
    ("count", True, "expected integer, got boolean @ $.count"),
    ("share", "0.5", "expected number, got string @ $.share"),
    ("share", False, "expected number, got boolean @ $.share"),
    ("is_open", 1, "expected boolean, got number @ $.is_open"),
    ("nothing", 0, "expected null, got number @ $.nothing"),
    ("day", "20/11/2026", "expected an ISO 8601 date, got string @ $.day"),
    ("day", 5, "expected an ISO 8601 date, got number @ $.day"),
    ("moment", "2026-11-20", "expected an ISO 8601 time with its zone, got string @ $.moment"),
    ("colour", "green", "expected 'red' or 'blue', got another string @ $.colour"),
    ("colour", "RED", "expected 'red' or 'blue', got another string @ $.colour"),
    ("colour", ["red"], "expected 'red' or 'blue', got array @ $.colour"),
    ("size", True, "expected 'S' or 'L' or 1, got boolean @ $.size"),
    ("size", 1.0, "expected 'S' or 'L' or 1, got number @ $.size"),
    ("tags", "a", "expected array, got string @ $.tags"),
    ("tags", ["a", None], "expected string, got null @ $.tags[1]"),
    ("pair", [{"x": 1}, {"x": 2, "y": "3"}], "expected number, got string @ $.pair[1].y"),
    ("pair", [{"y": 1}], "a required field is missing @ $.pair[0].x"),
    ("bare_list", {}, "expected array, got object @ $.bare_list"),
    ("bare_dict", [], "expected object, got array @ $.bare_dict"),
    ("scores", {"a b": "1"}, "expected integer, got string @ $.scores['a b']"),
    ("scores", [], "expected object, got array @ $.scores"),
    ("extra", [], "expected object, got array @ $.extra"),
    ("shape", {"kind": "square", "side": "2"}, "expected number, got string @ $.shape.side"),
    ("shape", {"kind": "square", "radius": 2}, "a required field is missing @ $.shape.side"),
    (
        "shape",
        {"kind": "star", "side": 2},
        "expected 'circle' or 'square', got another string @ $.shape.kind",
    ),
    ("shape", "square", "expected Circle or Square or null, got string @ $.shape"),
    ("mixed", 1.5, "expected string or integer or array or object or null, got number @ $.mixed"),
    ("mixed", [1, "2"], "expected integer, got string @ $.mixed[1]"),
    (
        "usage",
        {"prompt_tokens": "1", "completion_tokens": 2},
        "expected integer, got string @ $.usage.prompt_tokens",
    ),
    ("reNamed", "3", "expected integer, got string @ $.reNamed"),
]


@pytest.mark.parametrize(("field", "value", "error"), WRONG)
def test_nothing_is_coerced_and_the_place_is_named(field: str, value: object, error: str) -> None:
    assert errors(EVERYTHING, {**FULL, field: value}) == [error]


def test_every_mistake_is_told_up_to_fifty() -> None:
    assert errors(EVERYTHING, {"text": 1, "needed": "1", "tags": [1, 2]}) == [
        "expected string, got number @ $.text",
        "expected string, got number @ $.tags[0]",
        "expected string, got number @ $.tags[1]",
        "expected integer, got string @ $.needed",
    ]
    assert errors(EVERYTHING, {}) == [
        "a required field is missing @ $.text",
        "a required field is missing @ $.needed",
    ]
    assert len(errors(EVERYTHING, {"text": "", "needed": 1, "tags": [1] * 100})) == 50
    assert errors(EVERYTHING, None) == ["expected object, got null @ $"]


def test_a_recursive_class_is_read_as_deep_as_the_stack_allows() -> None:
    schema = Schema(Node)
    assert errors(schema, {"name": "a", "others": [{"name": "b", "child": {"name": 5}}]}) == [
        "expected string, got number @ $.others[0].child.name"
    ]
    deep: dict[str, Any] = {"name": "leaf"}
    for _ in range(1000):
        deep = {"name": "n", "child": deep}
    value, (violation,), _ = schema.read(deep)[:3]
    assert (value, violation) == (None, Violation("nested too deeply", "$", ReasonCode.LIMIT_EXCEEDED))
    assert schema.json_schema()["$defs"]["Node"]["properties"]["name"] == {"type": "string"}


def test_a_union_of_recursive_classes_takes_no_time_that_doubles() -> None:
    schema = Schema(Branch)
    deep: dict[str, Any] = {"leaf": "no number"}
    for _ in range(40):
        deep = {"inner": deep}
    assert errors(schema, deep)[0].endswith(".leaf")


@attrs.frozen
class Leaf:
    leaf: int


@attrs.frozen
class Branch:
    inner: Branch | Leaf | Twig


@attrs.frozen
class Twig:
    inner: Branch | Leaf
    bark: str = ""


@attrs.frozen
class Contains:
    value: Any


@attrs.frozen
class Deep:
    """A class that takes too many calls to make."""

    x: int

    def __attrs_post_init__(self) -> None:
        raise RecursionError


def test_a_class_that_takes_too_many_calls_is_too_deep() -> None:
    (violation,) = Schema(Deep).read({"x": 1})[1]
    assert violation == Violation("nested too deeply", "$", ReasonCode.LIMIT_EXCEEDED)


def holding(kind: object) -> type:
    """A class with a field of that type."""
    return attrs.make_class("Holding", {"value": attrs.field(type=kind)}, frozen=True)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("kind", [bytearray, complex, type, list[bytearray]], ids=str)
def test_a_field_that_json_cannot_tell_is_refused_at_once(kind: object) -> None:
    with pytest.raises(SchemaDefinitionError, match="Holding.value: an answer cannot hold"):
        Schema(holding(kind))


@attrs.define(init=False)
class OwnConstructor:
    """A class that makes itself, of one of its two fields."""

    x: int
    y: int = 0

    def __init__(self, x: int = 7) -> None:
        self.x, self.y = x, 1


@attrs.define(init=False)
class OwnOrder:
    """A class with a constructor that takes its fields in another order."""

    x: int
    y: int = 0

    def __init__(self, y: int, x: int = 7) -> None:
        self.x, self.y = x, y


def test_a_constructor_of_its_own_is_used_by_its_own_names() -> None:
    assert Schema(OwnOrder).read({"x": 1, "y": 2})[0] == OwnOrder(2, 1)
    with pytest.raises(SchemaDefinitionError, match="OwnConstructor.y: its constructor does not take it"):
        Schema(OwnConstructor)


def test_what_is_no_class_of_an_answer_is_refused() -> None:
    for wrong in ("Point", bytearray, 5, Ellipsis):
        with pytest.raises(SchemaDefinitionError, match="an answer cannot hold"):
            Schema(wrong)  # type: ignore[arg-type, var-annotated]
    with pytest.raises(SchemaDefinitionError, match="Holding: name 'Nowhere' is not defined"):
        Schema(holding("Nowhere"))
    twins = attrs.make_class("Twins", {"a": attrs.field(type=Point), "b": attrs.field(type=other_point())})
    with pytest.raises(SchemaDefinitionError, match="two classes of one answer are called Point"):
        Schema(twins)


def other_point() -> type:
    """Another class of the same name."""
    return attrs.make_class("Point", {"z": attrs.field(type=int)})


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Mapping[str, int], {"a": 1}, {"a": "1"}),
        (dict, {"a": 1}, []),
        (tuple, [1], {}),
        (tuple[int, ...], [1, 2], ["1"]),
        (Mapping, {}, []),
        (Literal["a"] | None, None, "b"),
        (int | None, 1, "1"),
        (Colour | int, "red", "pink"),
        (UsageInfo | Point, {"x": 1}, {"y": 1}),
        (UsageInfo | None, {"prompt_tokens": 1, "completion_tokens": 1}, {"prompt_tokens": 1}),
        (list[Point] | None, [{"x": 1}], [{}]),
        (list[int | None], [1, None], ["1"]),
        (list[int | str | None], [1, None, "a"], [1.5]),
        (timedelta, 1.5, "1.5"),
        (Decimal, "0.10", "0,1"),
        (Decimal, 0.1, True),
        (set[int], [1, 2], ["1"]),
        (tuple[int, str], [1, "a"], ["a", 1]),
        (tuple[int, str], [1, "a"], [1]),
        (time, "10:30", 5),
        (UUID, "12345678-1234-5678-1234-567812345678", 5),
        (Decimal | None, "0.10", "1e3"),
        (Any, [1], ...),
    ],
    ids=str,
)
def test_more_kinds_of_fields(kind: object, good: object, bad: object) -> None:
    schema = Schema(holding(kind))
    jsonschema.validate({"value": good}, schema.json_schema())
    assert schema.read({"value": good})[1] == ()
    if bad is not ...:
        assert errors(schema, {"value": bad})
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"value": bad}, schema.json_schema())


def test_a_union_says_what_would_be_taken() -> None:
    (violation,) = Schema(holding(Literal["a"] | Colour | list[int])).read({"value": True})[1]
    assert violation.message == "expected 'a' or 'red' or 'blue' or array, got boolean"


def test_an_optional_field_says_what_it_would_be() -> None:
    assert errors(Schema(holding(int | None)), {"value": "1"}) == ["expected integer, got string @ $.value"]


# ------------------------------------------------------------------------------- what the model is told


def test_the_json_schema_describes_what_is_read() -> None:
    schema = EVERYTHING.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(FULL, schema)
    assert schema["required"] == ["text", "needed"]
    assert schema["properties"]["count"] == {"type": "integer", "default": 1}
    assert schema["properties"]["needed"] == {"type": "integer", "description": "It has to be there."}
    assert schema["properties"]["colour"] == {"title": "Colour", "type": "string", "enum": ["red", "blue"]}
    assert schema["$defs"]["Point"]["properties"]["y"]["description"] == "from the top; null where unknown."
    assert "derived" not in schema["properties"]
    assert Schema(Point, forbid_unknown=True).json_schema()["additionalProperties"] is False
    assert "$defs" not in Schema(Point).json_schema()


def test_the_instructions_say_the_schema_the_rules_and_an_example() -> None:
    said = POINTS.instructions({"x": 1})
    assert said.startswith("Answer with one JSON object and nothing else")
    assert "  x: integer;  // from the left." in said
    assert '"title": "Point"' in POINTS.instructions(form="json_schema")
    assert "- 'x' must be >= 0" in said
    assert said.endswith('For example:\n\n{\n  "x": 1\n}\n')
    plain = Schema(Circle).instructions()
    assert "rules" not in plain
    assert "example" not in plain


def test_a_value_is_written_as_it_is_read() -> None:
    value, _, _ = EVERYTHING.read(FULL)[:3]
    assert EVERYTHING.read(orjson.loads(value_to_json(value)))[0] == value
    assert value_to_json(Point(1), indent=True) == b'{\n  "x": 1,\n  "y": null\n}'
    assert value_to_json(Contains(timedelta(minutes=1))) == b'{"value":60.0}'
    assert value_to_json(Contains(Decimal("0.10"))) == b'{"value":"0.10"}'
    assert value_to_json(Contains(Mappish())) == b'{"value":{"a":1}}'
    with pytest.raises(TypeError, match="not JSON|complex cannot be JSON"):
        value_to_json(Contains(1j))


class Mappish(Mapping[str, int]):
    """A mapping that is not a dict."""

    def __getitem__(self, key: str) -> int:
        return {"a": 1}[key]

    def __iter__(self) -> Any:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


# ---------------------------------------------------------------------------------------- registries


def test_a_registry_is_made_in_order() -> None:
    versions: SchemaVersions[Any] = SchemaVersions()
    for wrong in ("1", "v1.0", "1.0.0", "01.0", "", "1.٣"):
        with pytest.raises(SchemaDefinitionError, match="MAJOR.MINOR"):
            versions.register(wrong, Point)
    with pytest.raises(SchemaDefinitionError, match="nothing to upgrade from"):
        versions.register("1.0", Point, upgrade=lambda value: value)
    versions.register("1.2", Point)
    with pytest.raises(SchemaDefinitionError, match="1.10 has no upgrade from 1.2"):
        versions.register("1.10", Point)
    versions.register("1.10", Picky, upgrade=lambda value: Picky("a"), downgrade=lambda value: Point(1))
    for early in ("1.9", "1.10", "0.5"):
        with pytest.raises(SchemaDefinitionError, match=f"{early} is registered after 1.10"):
            versions.register(early, Point, upgrade=lambda value: value)
    assert versions.supported == {"1.2", "1.10"}
    assert [versions.read_as(version) for version in ("1.2", "1.3", "1.99", "2.0", "x")] == [
        "1.2",
        "1.10",
        "1.10",
        None,
        None,
    ]
    assert versions.default == "1.2"
    assert versions.version_of(Picky("a")) == "1.10"
    with pytest.raises(UnknownSchemaVersionError, match="no schema version has int"):
        versions.version_of(5)
    with pytest.raises(UnknownSchemaVersionError, match="unknown schema version '3.0'; known are 1.2, 1.10"):
        versions.migrate(Point(1), "3.0")
    assert versions.migrate(Point(1), "1.10") == Picky("a")
    assert versions.migrate(Picky("a"), "1.2") == Point(1)


def test_a_migration_that_raises_is_told() -> None:
    def broken(_: Any) -> Any:
        raise KeyError

    versions: SchemaVersions[Any] = SchemaVersions()
    versions.register("1.0", Point).register("2.0", Picky, upgrade=broken)
    with pytest.raises(MigrationError, match="from 1.0 to 2.0: KeyError"):
        versions.migrate(Point(1), "2.0")
    assert StructuredParser(versions, version="2.0").parse('{"x": 1}').reason is ReasonCode.MIGRATION_FAILED


def test_an_invariant_is_kept_or_not() -> None:
    rule: Invariant[int] = Invariant("is even", lambda number: number % 2 == 0)
    assert (rule.is_kept(2), rule.is_kept(1)) == (True, False)
    assert not rule.is_kept("two")  # type: ignore[arg-type]


class Size(StrEnum):
    S = "small"
    L = "large"


@attrs.frozen
class Shirt:
    size: Size
    others: list[Size] = attrs.Factory(list)
    spare: Size | None = None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"size": "huge"}', "$.size"),
        ('{"size": 1}', "$.size"),
        ('{"size": "small", "others": ["large", "huge"]}', "$.others[1]"),
        ('{"size": "small", "spare": "huge"}', "$.spare"),
    ],
)
def test_a_word_of_an_enumeration_is_one_of_its_words(text: str, path: str) -> None:
    """Also for one with words that are strings: no other string passes for one, in any place."""
    parser = StructuredParser(Schema(Shirt))
    result = parser.parse(text)
    assert (result.value, result.reason) == (None, ReasonCode.SCHEMA_TYPE_ERROR)
    assert [violation.path for violation in result.violations] == [path]
    good = '{"size": "small", "others": ["large"], "spare": "small"}'
    assert parser.parse(good).value == Shirt(Size.S, [Size.L], Size.S)


def test_a_field_of_any_object_is_written_by_its_value() -> None:
    @attrs.frozen
    class Holds:
        value: object

    assert value_to_json(Holds({"k": Decimal("1.50")})) == b'{"value":{"k":"1.50"}}'


def test_a_float_beside_a_decimal_has_its_fraction() -> None:
    @attrs.frozen
    class Line:
        price: Decimal
        rate: float

    value = StructuredParser(Line).parse('{"price": 1.50, "rate": 1.5}').value
    assert value == Line(Decimal("1.50"), 1.5)
    assert type(value.rate) is float
