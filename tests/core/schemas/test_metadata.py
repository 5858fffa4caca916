"""The limits in the metadata of ``Annotated`` are sent and checked, or refused, in any holder."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict
from uuid import UUID

import annotated_types as at
import attrs
import pydantic
import pydantic.dataclasses
import pytest
import typing_extensions as te

from crosswalk import ToolCall
from crosswalk.agent import Tool, ToolDefinitionError
from crosswalk.errors import ToolCallArgumentsError
from crosswalk.structured import Schema, SchemaDefinitionError, StructuredParser
from crosswalk.types.json import dump_json

Field: Any = pydantic.Field


def as_dataclass(kind: Any) -> Any:
    return dataclasses.make_dataclass("Held", [("x", kind)])


def as_attrs(kind: Any) -> Any:
    return attrs.make_class("Held", {"x": attrs.field(type=kind)})


def as_typed_dict(kind: Any) -> Any:
    return TypedDict("Held", {"x": kind})  # type: ignore[misc]


def as_named_tuple(kind: Any) -> Any:
    class Held(NamedTuple):
        x: Any

    Held.__annotations__["x"] = kind
    return Held


HOLDERS = [as_dataclass, as_attrs, as_typed_dict, as_named_tuple]


def as_tool(kind: Any) -> Tool:
    def run(x: Any) -> str:
        """Run."""
        return repr(x)

    run.__annotations__["x"] = kind
    return Tool.from_function(run)


class Word(Enum):
    SHORT = "a"
    LONG = "bcd"


LIKE: Any = TypedDict("LIKE", {"a": int})

LIMITS = [
    (Annotated[int, Field(ge=1, le=100)], 100, 101, {"minimum": 1, "maximum": 100}),
    (Annotated[int, at.Interval(gt=1, lt=5)], 4, 5, {"exclusiveMinimum": 1, "exclusiveMaximum": 5}),
    (Annotated[int, at.MultipleOf(3)], 6, 7, {"multipleOf": 3}),
    (Annotated[float, Field(multiple_of=0.1)], 0.3, 0.35, {"multipleOf": 0.1}),
    (Annotated[str, Field(max_length=3)], "abc", "abcd", {"maxLength": 3}),
    (Annotated[str, Field(min_length=2)], "ab", "a", {"minLength": 2}),
    (Annotated[str, Field(pattern="^a")], "ab", "ba", {"pattern": "^a"}),
    (Annotated[str, Field(pattern=re.compile("^a"))], "ab", "ba", {"pattern": "^a"}),
    (Annotated[str, re.compile("^a$")], "a", "a\n", {"pattern": "^a$"}),
    (Annotated[str, re.compile("^a")], "ab", "ba", {"pattern": "^a"}),
    (Annotated[str, pydantic.StringConstraints(max_length=2, pattern="^a", strict=True)], "ab", "ba", {"maxLength": 2, "pattern": "^a"}),
    (Annotated[str, at.Len(1, 2)], "ab", "abc", {"minLength": 1, "maxLength": 2}),
    (Annotated[list[int], Field(min_length=1)], [1], [], {"minItems": 1}),
    (Annotated[tuple[int, ...], at.MaxLen(1)], [1], [1, 2], {"maxItems": 1}),
    (Annotated[set[int], at.MinLen(2)], [1, 2], [1, 1], {"minItems": 2, "uniqueItems": True}),
    (Annotated[dict[str, int], at.MinLen(1)], {"a": 1}, {}, {"minProperties": 1}),
    (Annotated[Literal["a", "bcd"], at.MaxLen(2)], "a", "bcd", {"maxLength": 2}),
    (Annotated[Word, at.MaxLen(2)], "a", "bcd", {"maxLength": 2}),
    (Annotated[int, at.Ge(Decimal("1.5"))], 2, 1, {"minimum": 1.5}),
    (Annotated[Annotated[int, at.Ge(5), at.Le(9)], at.Ge(1), at.Le(20)], 5, 3, {"minimum": 5, "maximum": 9}),
    (Annotated[Any, at.MaxLen(1)], [1], [1, 2], {"maxLength": 1, "maxItems": 1, "maxProperties": 1}),
    (Annotated[NewType("Age", int), at.Ge(1)], 1, 0, {"minimum": 1}),
    (pydantic.PositiveInt, 1, 0, {"exclusiveMinimum": 0}),
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(("kind", "good", "bad", "told"), LIMITS, ids=str)
@pytest.mark.parametrize("hold", HOLDERS)
def test_a_limit_of_a_class_is_told_and_checked(
    hold: Callable[[Any], Any], kind: Any, good: Any, bad: Any, told: dict[str, Any]
) -> None:
    parser: StructuredParser[Any] = StructuredParser(hold(kind))
    assert told.items() <= parser.schema.json_schema()["properties"]["x"].items()  # type: ignore[union-attr]
    for keyword in told.keys() - {"uniqueItems"}:
        assert f"{keyword} {told[keyword]}" in parser.schema.instructions()  # type: ignore[union-attr]
    assert parser.parse(dump_json({"x": good}).decode()).ok
    result = parser.parse(dump_json({"x": bad}).decode())
    assert (result.value, result.reason) == (None, "invariant_violation")
    assert all(error.endswith("@ $.x") for error in result.errors)


@pytest.mark.parametrize(("kind", "good", "bad", "told"), LIMITS, ids=str)
def test_a_limit_of_a_bare_type_is_told_and_checked(
    kind: Any, good: Any, bad: Any, told: dict[str, Any]
) -> None:
    parser: StructuredParser[Any] = StructuredParser(kind)
    assert told.items() <= parser.schema.json_schema().items()  # type: ignore[union-attr]
    for keyword in told.keys() - {"uniqueItems"}:
        assert f"{keyword} {told[keyword]}" in parser.schema.instructions()  # type: ignore[union-attr]
    assert parser.parse(dump_json(good).decode()).ok
    assert parser.parse(dump_json(bad).decode()).reason == "invariant_violation"


@pytest.mark.parametrize(("kind", "good", "bad", "told"), LIMITS, ids=str)
def test_a_limit_of_a_tool_is_told_and_checked(kind: Any, good: Any, bad: Any, told: dict[str, Any]) -> None:
    tool = as_tool(kind)
    assert told.items() <= tool.parameters["properties"]["x"].items()
    tool.read_arguments(ToolCall("c", "run", dump_json({"x": good}).decode()))
    with pytest.raises(ToolCallArgumentsError, match=r"invalid arguments: .* @ \$\.x"):
        tool.read_arguments(ToolCall("c", "run", dump_json({"x": bad}).decode()))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Annotated[int | None, at.Ge(1)], ["1", "null"], "0"),
        (Annotated[str | list[int], at.MinLen(1)], ['"a"', "[1]"], "[]"),
        (Annotated[Decimal, at.Ge(Decimal("0.1"))], ["0.1", '"0.1"', "1"], '"0.09"'),
        (Annotated[Decimal, at.Ge(Decimal("0.1"))], ["0.1"], "0.09999999999999999999"),
        (Annotated[Decimal | None, at.Lt(1)], ['"0.9"', "null"], '"1.0"'),
        (list[Annotated[str, at.MaxLen(1)]], ['["a"]'], '["ab"]'),
        (Annotated[int, at.MultipleOf(3)], [str(3 * 10**40)], str(3 * 10**40 + 1)),
    ],
    ids=str,
)
def test_a_limit_holds_wherever_its_value_is(kind: Any, good: list[str], bad: str) -> None:
    parser: StructuredParser[Any] = StructuredParser(dict[str, kind])
    for text in good:
        assert parser.parse(f'{{"x": {text}}}').ok, text
    assert parser.parse(f'{{"x": {bad}}}').reason == "invariant_violation"


def test_a_limit_of_a_float_holds_beside_a_decimal() -> None:
    @attrs.frozen
    class Line:
        price: Decimal
        rate: Annotated[float, at.Ge(1)]
        share: Decimal | None = attrs.field(default=None, metadata={"json_schema": {"maximum": 1}})

    parser = StructuredParser(Line)
    assert parser.parse('{"price": 1.50, "rate": 1.5, "share": "0.5"}').ok
    assert parser.parse('{"price": 1.50, "rate": 0.5}').errors == ["must be >= 1 @ $.rate"]
    assert parser.parse('{"price": 1, "rate": 1, "share": "1.5"}').errors == ["must be <= 1 @ $.share"]
    assert parser.parse('{"price": 1, "rate": 1, "share": "half"}').reason == "schema_type_error"


class Even:
    """A validator of a user's own, as pydantic knows them."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        raise NotImplementedError


@attrs.frozen
class Book:
    title: str


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Annotated[datetime, at.Timezone(None)], "Timezone"),
        (Annotated[int, at.Not(bool)], "Not"),  # without a hash
        (Annotated[int, Even()], "Even"),
        (Annotated[int, Even], "Even"),
        (Annotated[str, at.Ge(1)], "ge"),
        (Annotated[bool, at.Ge(1)], "ge"),
        (Annotated[Book, pydantic.AfterValidator(abs)], "AfterValidator"),
        (Annotated[Book, at.Predicate(bool)], "Predicate"),
        (Annotated[list[Book], at.Len(1), at.Not(bool)], "Not"),
        (Annotated[Book, at.MinLen(1)], "min_length"),
        (Annotated[date, at.MinLen(1)], "min_length"),
        (Annotated[Book | str, Field(pattern=re.compile("a", re.IGNORECASE))], "pattern"),
        (Annotated[str, Field(pattern=5)], "pattern"),
        (Annotated[Annotated[str, Field(pattern="a")], Field(pattern="b")], "pattern"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_limit_that_would_not_be_checked_is_refused(kind: Any, name: str) -> None:
    cause = rf"{name} would not be checked, as .*; put it into a pydantic model, or check the value"
    with pytest.raises(SchemaDefinitionError, match=cause):
        Schema(kind)
    for hold in HOLDERS:
        with pytest.raises(SchemaDefinitionError, match=rf"Held\.x: {cause}"):
            Schema(hold(kind))
    with pytest.raises(ToolDefinitionError, match=rf"tool 'run': .*x: {cause}"):
        as_tool(kind)


def keep(value: Any) -> Any:
    return value


MISFITS = [
    (Annotated[float, Field(max_digits=2)], "max_digits", "a Decimal"),
    (Annotated[int, Field(decimal_places=1)], "decimal_places", "a Decimal"),
    (Annotated[str | None, Field(max_digits=2)], "max_digits", "a Decimal"),
    (Annotated[Decimal | float, Field(max_digits=2)], "max_digits", "a Decimal"),
    (Annotated[Any, Field(max_digits=2)], "max_digits", "a Decimal"),
    (Annotated[NewType("Share", float), Field(decimal_places=2)], "decimal_places", "a Decimal"),
    (Annotated[Literal["a"], Field(max_digits=2)], "max_digits", "a Decimal"),
    (Annotated[int, pydantic.StringConstraints(strip_whitespace=True)], "strip_whitespace", "a text"),
    (Annotated[date, pydantic.StringConstraints(to_lower=True)], "to_lower", "a text"),
    (Annotated[bool, Field(coerce_numbers_to_str=True)], "coerce_numbers_to_str", "a text or a number or a Decimal"),
    (Annotated[str, Field(multiple_of=2), pydantic.AfterValidator(keep)], "multiple_of", "a number or a Decimal"),
    (Annotated[int, Field(pattern="a"), pydantic.AfterValidator(keep)], "pattern", "a text"),
    (Annotated[int, Field(min_length=1), pydantic.AfterValidator(keep)], "min_length", "a text or bytes or a list or a map"),
    (Annotated[float, at.Len(1, 2), pydantic.AfterValidator(keep)], "min_length", "a text or bytes or a list or a map"),
    (Annotated[list[int], Field(ge=1), pydantic.AfterValidator(keep)], "ge", "a number or a Decimal"),
    (Annotated[list[Annotated[float, Field(max_digits=1)]], pydantic.AfterValidator(keep)], "max_digits", "a Decimal"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "fitting"), MISFITS, ids=range(len(MISFITS)))
def test_a_limit_that_pydantic_would_apply_to_a_type_without_it_is_refused(
    kind: Any, name: str, fitting: str
) -> None:
    cause = (
        f"{name} would refuse values, as their type has no such limit; remove it, or give it to {fitting}$"
    )
    with pytest.raises(SchemaDefinitionError, match=cause):
        Schema(kind)
    for hold in HOLDERS:
        with pytest.raises(SchemaDefinitionError, match=rf"Held\.x: {cause}"):
            Schema(hold(kind))
    with pytest.raises(ToolDefinitionError, match=rf"tool 'run': .*x: {cause}"):
        as_tool(kind)


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        (Annotated[Decimal | None, Field(max_digits=2)], '"1.5"'),
        (Annotated[int | float, Field(ge=1), pydantic.AfterValidator(keep)], "1.5"),
        (Annotated[Any, Field(ge=1), pydantic.AfterValidator(keep)], "1"),
        (Annotated[bytes, Field(min_length=1), pydantic.AfterValidator(keep)], '"a"'),
        (Annotated[pydantic.SecretStr, Field(min_length=1), pydantic.AfterValidator(keep)], '"a"'),
        (Annotated[list[int], Field(min_length=1), pydantic.AfterValidator(keep)], "[1]"),
        (Annotated[Literal["a"], pydantic.StringConstraints(strip_whitespace=True)], '"a"'),
        (Annotated[date | None, Field(ge=date(2020, 1, 1))], '"2020-01-01"'),
    ],
    ids=range(8),
)
def test_a_limit_that_pydantic_applies_to_a_type_with_it_is_taken(kind: Any, good: str) -> None:
    assert StructuredParser[Any](kind).parse(good).ok
    assert as_tool(kind).read_arguments(ToolCall("c", "run", f'{{"x": {good}}}'))


@pytest.mark.parametrize("kind", [Annotated[LIKE, "a text about it"], Annotated[LIKE, Field(strict=True)]])
def test_a_typed_dict_with_metadata_is_read(kind: Any) -> None:
    assert StructuredParser[Any](kind).parse('{"a": 1}').value == {"a": 1}
    assert StructuredParser[Any](list[kind]).parse('[{"a": 1}]').value == [{"a": 1}]
    for hold in HOLDERS:
        assert StructuredParser[Any](hold(kind)).parse('{"x": {"a": 1}}').ok


def at_least_ten(value: Any) -> Any:
    if value < 10:
        raise ValueError("too few")
    return value


CHECKED_BY_PYDANTIC = [
    (Annotated[int, pydantic.AfterValidator(at_least_ten)], "10", 10, "9"),
    (Annotated[int, pydantic.AfterValidator(abs)], "-3", 3, '"-3"'),
    (Annotated[float, pydantic.BeforeValidator(lambda value: float(str(value).rstrip("%")))], '"5%"', 5.0, '"five"'),
    (Annotated[int, pydantic.PlainValidator(lambda value: len(value))], '"abc"', 3, "5"),
    (Annotated[int, pydantic.WrapValidator(lambda value, handler: handler(value) + 1)], "1", 2, '"1"'),
    (Annotated[int, at.Predicate(bool)], "1", 1, "0"),
    (Annotated[int, at.Ge(1), at.Predicate(lambda value: value % 2 == 0)], "2", 2, "0"),
    (Annotated[date, at.Gt(date(2020, 1, 1))], '"2020-01-02"', date(2020, 1, 2), '"2020-01-01"'),
    (Annotated[Decimal, Field(max_digits=3)], "1.25", Decimal("1.25"), "12.25"),
    (Annotated[Decimal, Field(decimal_places=2)], "12.50", Decimal("12.50"), "12.505"),
    (Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], '" a "', "a", "1"),
    (Annotated[str, at.Ge("b")], '"b"', "b", '"a"'),
    (Annotated[float, at.Le(Decimal("0.1234567890123456789"))], "0.1", 0.1, "0.2"),
    (Annotated[str, Field(pattern=re.compile("a", re.IGNORECASE))], '"A"', "A", '"b"'),
    (pydantic.UUID4, f'"{UUID(int=7, version=4)}"', UUID(int=7, version=4), f'"{UUID(int=7)}"'),
    (pydantic.Json[list[int]], '"[1]"', [1], '"[1"'),
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("kind", "good", "value", "bad"), CHECKED_BY_PYDANTIC, ids=range(len(CHECKED_BY_PYDANTIC))
)
@pytest.mark.parametrize("hold", HOLDERS)
def test_a_rule_that_only_pydantic_knows_is_checked_by_it(
    hold: Callable[[Any], Any], kind: Any, good: str, value: Any, bad: str
) -> None:
    held: StructuredParser[Any] = StructuredParser(hold(kind))
    result = held.parse(f'{{"x": {good}}}')
    assert result.ok, result.errors
    assert value in (result.value["x"] if isinstance(result.value, dict) else result.value.x,)
    refused = held.parse(f'{{"x": {bad}}}')
    assert refused.value is None
    assert all("$.x" in error for error in refused.errors)


@pytest.mark.parametrize(
    ("kind", "good", "value", "bad"), CHECKED_BY_PYDANTIC, ids=range(len(CHECKED_BY_PYDANTIC))
)
def test_a_rule_that_only_pydantic_knows_is_checked_before_a_tool_runs(
    kind: Any, good: str, value: Any, bad: str
) -> None:
    tool = as_tool(kind)
    assert tool.read_arguments(ToolCall("c", "run", f'{{"x": {good}}}')) == {"x": value}
    with pytest.raises(ToolCallArgumentsError, match=r"invalid arguments: .* @ \$\.x"):
        tool.read_arguments(ToolCall("c", "run", f'{{"x": {bad}}}'))


def test_a_rule_of_a_nested_value_is_checked_beside_metadata_without_a_hash() -> None:
    kind = tuple[Annotated[int, pydantic.AfterValidator(at_least_ten)], Annotated[int, {"a": [1]}]]
    parser: StructuredParser[Any] = StructuredParser(dict[str, kind | None])  # type: ignore[valid-type]
    assert parser.parse('{"x": [10, 1]}').value == {"x": (10, 1)}
    assert parser.parse('{"x": [9, 1]}').value is None


def test_without_pydantic_a_rule_that_only_it_knows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(SchemaDefinitionError, match="Predicate would not be checked"):
        Schema(Annotated[bytes, at.Predicate(bool), at.doc("that no other test has")])


@pytest.mark.parametrize(
    "metadata",
    [
        5,
        object(),
        {"a": [1]},
        at.Unit("m"),
        at.Interval(),
        pydantic.Strict(),
        pydantic.AllowInfNan(False),
        pydantic.PlainSerializer(str),
        Field(strict=True, allow_inf_nan=False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_metadata_that_limits_nothing_is_ignored(metadata: Any) -> None:
    assert Schema(Annotated[float, metadata]).json_schema() == Schema(float).json_schema()
    assert as_tool(Annotated[float, metadata]).parameters == as_tool(float).parameters


@pytest.mark.parametrize("hold", HOLDERS)
def test_metadata_needs_no_hash(hold: Callable[[Any], Any]) -> None:
    kind = Annotated[list[Annotated[int, at.Ge(1), {"a": [1]}]], [2]]
    parser: StructuredParser[Any] = StructuredParser(hold(kind))
    assert parser.parse('{"x": [1]}').ok
    assert parser.parse('{"x": [0]}').errors == ["must be >= 1 @ $.x[0]"]
    assert StructuredParser(kind).parse("[1]").value == [1]
    assert as_tool(kind).read_arguments(ToolCall("c", "run", '{"x": [1]}')) == {"x": [1]}


@pytest.mark.parametrize(
    "metadata", ["how many", at.doc("how many"), te.Doc("how many"), Field(description="how many")]
)
@pytest.mark.parametrize("rules", [(), (pydantic.AfterValidator(abs),)], ids=["", "with a validator"])
def test_a_description_is_told(metadata: Any, rules: tuple[Any, ...]) -> None:
    kind = Annotated[(int, metadata, *rules)]  # type: ignore[valid-type]
    assert Schema(kind).json_schema()["description"] == "how many"
    assert as_tool(kind).parameters["properties"]["x"]["description"] == "how many"


@pytest.mark.parametrize(
    ("metadata", "instead"),
    [
        (Field(alias="y"), "into the metadata of the field"),
        (Field(validation_alias="y"), "use a pydantic model"),
        (Field(default=3), "write it behind ="),
        (Field(default_factory=int), "write it behind ="),
    ],
)
def test_a_part_of_a_field_that_would_not_be_read_is_refused(metadata: Any, instead: str) -> None:
    for hold in HOLDERS:
        with pytest.raises(SchemaDefinitionError, match=instead):
            Schema(hold(Annotated[int, metadata]))


def test_every_time_has_a_zone() -> None:
    assert Schema(Annotated[datetime, at.Timezone(...)]).json_schema() == Schema(datetime).json_schema()


def test_attributes_of_these_names_are_limits_whatever_their_object() -> None:
    @dataclasses.dataclass
    class Meta:  # as msgspec's
        ge: Any = None
        max_length: Any = None
        description: Any = None

    assert Schema(Annotated[int, Meta(ge=2, description="many")]).json_schema() == {
        **Schema(int).json_schema(),
        "minimum": 2,
        "description": "many",
    }
    assert Schema(Annotated[str, Meta(max_length=2, ge=print)]).json_schema()["maxLength"] == 2


def test_a_field_in_the_place_of_a_default_is_refused() -> None:
    @dataclasses.dataclass
    class Order:
        count: int = Field(3, ge=1)

    def order(count: int = Field(3, ge=1)) -> None:
        """Order."""

    with pytest.raises(
        SchemaDefinitionError, match=r"Order\.count: Field\(\) as a default would not be read"
    ):
        Schema(Order)
    with pytest.raises(ToolDefinitionError, match=r"count: Field\(\) as a default would not be read"):
        Tool.from_function(order)


def test_a_dataclass_of_pydantic_checks_itself() -> None:
    @pydantic.dataclasses.dataclass
    class Order:
        count: Annotated[int, pydantic.AfterValidator(at_most_three)]
        note: str = Field(max_length=3, default="")

    parser = StructuredParser(Order)
    assert parser.parse('{"count": 3}').ok
    assert parser.parse('{"count": 4}').reason == "invariant_violation"
    assert parser.parse('{"count": 3, "note": "abcd"}').reason == "invariant_violation"


def at_most_three(value: int) -> int:
    if value > 3:
        raise ValueError("too many")
    return value


def test_a_keyword_of_a_field_that_would_not_be_checked_is_refused() -> None:
    @attrs.frozen
    class Order:
        count: int = attrs.field(metadata={"json_schema": {"not": {"const": 1}}})

    with pytest.raises(SchemaDefinitionError, match="the keyword 'not' is not supported"):
        Schema(Order)
