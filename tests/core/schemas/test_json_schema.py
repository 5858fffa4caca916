"""The JSON Schema of every type, as TypeScript, and as servers take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import attrs
import pydantic
import pytest
from pydantic_core import PydanticCustomError

from crosswalk.structured import Schema, SchemaDefinitionError, StructuredParser, value_to_json

UserId = NewType("UserId", int)


class Tree(pydantic.BaseModel):
    n: int
    child: Tree | None = None


class Leaf(pydantic.BaseModel):
    word: str = pydantic.Field(pattern="^[a-z]+$")


@attrs.frozen
class Header:
    name: str = attrs.field(metadata={"alias": "first-name"})
    kind: str = attrs.field(default="x", metadata={"alias": "@type"})


@dataclass
class Account:
    id: UserId
    score: Annotated[float, pydantic.Field(description="from 0", ge=0)] = 0
    tags: dict[str, int] = field(default_factory=dict, metadata={"alias": "tag-counts"})


class Pair(NamedTuple):
    left: int
    right: tuple[int, str] = (0, "")


Weird = TypedDict("Weird", {"a-b": int})


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Tree, '{"n": 1, "child": {"n": 2}}', Tree(n=1, child=Tree(n=2))),
        (list[Tree], '[{"n": 1}]', [Tree(n=1)]),
        (Header, '{"first-name": "Ann", "@type": "y"}', Header("Ann", "y")),
        (Header, '{"First Name": "Ann"}', Header("Ann")),
        (Account, '{"id": 1, "score": 2, "tag-counts": {"a": 1}}', Account(UserId(1), 2.0, {"a": 1})),
        (Pair, '{"left": 1, "right": [2, "b"]}', Pair(1, (2, "b"))),
        (Weird, '{"a-b": 1}', {"a-b": 1}),
    ],
    ids=str,
)
def test_a_value_is_read_and_written_again(kind: Any, text: str, value: Any) -> None:
    parser: StructuredParser[Any] = StructuredParser(kind)
    assert parser.parse(text).value == value
    assert parser.parse(value_to_json(value).decode()).value == value


T = TypeVar("T")


@attrs.frozen
class Page(Generic[T]):
    """A page of rows."""

    rows: tuple[T, ...]
    first: T | None = None
    by_name: dict[str, list[T]] = attrs.field(factory=dict)


def test_a_generic_class_has_its_arguments() -> None:
    schema = Schema(tuple[Page[int], Page[Page[str]]])
    assert schema.json_schema()["$defs"].keys() == {"Page_int", "Page_str", "Page_Page_str"}
    pages = [{"rows": [1], "first": 2, "by_name": {"a": [3]}}, {"rows": [{"rows": ["a"]}]}]
    assert schema.read(pages).value == (Page((1,), 2, {"a": [3]}), Page((Page(("a",)),)))
    wrong = [{"rows": ["a"]}, {"rows": [{"rows": [1]}]}]
    assert [each.path for each in schema.read(wrong).violations] == ["$[0].rows[0]", "$[1].rows[0].rows[0]"]
    with pytest.raises(SchemaDefinitionError, match="cannot hold ~T"):
        Schema(Page)


def test_what_annotations_say_is_told_and_checked() -> None:
    score = Schema(Account).json_schema()["properties"]["score"]
    assert score == {"type": "number", "description": "from 0", "minimum": 0, "default": 0}
    assert StructuredParser(Account).parse('{"id": 1, "score": -1}').errors == ["must be >= 0 @ $.score"]


def test_a_refusal_names_field_and_rule() -> None:
    @attrs.frozen
    class Aged:
        age: int = attrs.field(validator=attrs.validators.ge(0))

    assert StructuredParser(Aged).parse('{"age": -5}').errors == ["must keep the rule x >= 0 @ $.age"]
    assert StructuredParser(Leaf).parse('{"word": "A"}').errors == ["must match ^[a-z]+$ @ $.word"]

    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

    assert StructuredParser(list[Even]).parse('[{"n": 2}, {"n": 3}]').errors == [
        "must keep the rule _even @ $[1].n"
    ]

    class Small(pydantic.BaseModel):
        n: Annotated[int, pydantic.AfterValidator(_below_three)]

    answer = StructuredParser(Small).parse('{"n": 3}')
    assert answer.errors == ["must keep the rule too_large than 3 @ $.n"]


def _below_three(value: int) -> int:
    raise PydanticCustomError("too_large", "{value} is larger than {than}", {"value": str(value), "than": 3})


def test_the_words_of_a_builtin_class_describe_nothing() -> None:
    class Bare(TypedDict):
        sum: Decimal

    told = Schema(Bare).json_schema()
    assert "description" not in told
    assert told["properties"]["sum"] == {"type": ["number", "string"], "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}


def test_two_classes_of_one_name_are_refused() -> None:
    other = pydantic.create_model("Leaf", x=(int, ...))
    outer = pydantic.create_model("Outer", leaf=(other, ...))
    inner = pydantic.create_model("Inner", leaf=(Leaf, ...))
    with pytest.raises(SchemaDefinitionError, match="two classes of one answer are called Leaf"):
        Schema(tuple[outer, inner])  # type: ignore[valid-type]


def test_a_type_as_typescript() -> None:
    schema = {
        "type": "object",
        "properties": {
            "first-name": {"type": "string", "minLength": 1},
            "pair": {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": True,
            "many": {"type": "array", "items": {"enum": ["a", 1]}},
        },
        "required": ["any"],
    }
    assert Schema(schema).instructions().partition("TypeScript type:\n\n")[2] == (  # type: ignore[arg-type, var-annotated]
        '{\n  "first-name"?: string;  // minLength 1\n  pair?: [integer, string];\n'
        '  counts?: { [key: string]: integer };\n  any: any;\n  many?: ("a" | 1)[];\n}\n'
    )


@pytest.mark.parametrize("kind", [list, dict[str, int], Any, Account], ids=str)
def test_what_strict_mode_cannot_say_is_not_strict(kind: Any) -> None:
    schema = Schema(kind)
    sent = schema.response_format()["json_schema"]
    assert (sent["strict"], sent["schema"]) == (False, schema.server_schema())


def test_one_of_is_any_of_in_strict_mode() -> None:
    class Cat(pydantic.BaseModel):
        kind: Literal["cat"]

    class Dog(pydantic.BaseModel):
        kind: Literal["dog"]

    class Owner(pydantic.BaseModel):
        pet: Cat | Dog = pydantic.Field(discriminator="kind")

    sent = Schema(Owner).response_format()["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["properties"]["pet"]["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]


def test_a_decimal_keeps_its_digits() -> None:
    assert repr(StructuredParser(list[Decimal]).parse("[0.10, -3, 1e2]").value) == (
        "[Decimal('0.10'), Decimal('-3'), Decimal('1E+2')]"
    )
    _, step, *_ = StructuredParser(dict[str, Decimal]).parse_stream(['{"a": 0.10', ', "b": 0.2', "0}"])
    assert repr(step.value) == "{'a': Decimal('0.10')}"
