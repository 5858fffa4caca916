"""The types of users: each reads what fits, refuses what does not, or says what to write instead."""

from __future__ import annotations

import dataclasses
import sys
import types
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions as te

from crosswalk import ToolCall
from crosswalk.agent import Tool
from crosswalk.structured import Schema, SchemaDefinitionError, StructuredParser, value_to_json

from .user_types import TYPES, Declared, Undeclarable

DECLARED = {name: one for name, one in TYPES.items() if isinstance(one, Declared)}
UNDECLARABLE = {name: one for name, one in TYPES.items() if isinstance(one, Undeclarable)}


def is_same(value: Any, wanted: Any) -> bool:
    """Whether both are the same by their text too: 12.5 is not 12.50."""
    return bool(value == wanted) and repr(value) == repr(wanted)


@pytest.mark.parametrize("name", DECLARED)
def test_a_type_of_a_user_reads_what_fits_and_nothing_else(name: str) -> None:
    one = DECLARED[name]
    parser: StructuredParser[Any] = StructuredParser(one.kind)
    result = parser.parse(one.good)
    assert result.ok, result.errors
    assert is_same(result.value, one.value)
    assert parser.parse(value_to_json(result.value).decode()).value == one.value
    refused = parser.parse(one.bad)
    assert refused.value is None
    assert one.bad[0] not in '{["' or refused.errors


@pytest.mark.untraced
@pytest.mark.parametrize("name", [each for each in DECLARED if DECLARED[each].good[0] in '{["0123456789-tfn'])
def test_a_type_of_a_user_is_a_field_and_a_parameter(name: str) -> None:
    one = DECLARED[name]

    def run(x: Any) -> str:
        """Run."""
        return repr(x)

    run.__annotations__["x"] = one.kind
    tool = Tool.from_function(run)
    arguments = tool.read_arguments(ToolCall("c", "run", f'{{"x": {one.good}}}'))
    assert arguments["x"] == one.value
    held: StructuredParser[Any] = StructuredParser(dataclasses.make_dataclass("Held", [("x", one.kind)]))
    assert held.parse(f'{{"x": {one.good}}}').unwrap().x == one.value


@pytest.mark.parametrize("name", UNDECLARABLE)
def test_a_type_without_a_json_form_says_what_to_write_instead(name: str) -> None:
    one = UNDECLARABLE[name]
    with pytest.raises(SchemaDefinitionError, match=one.instead):
        Schema(one.kind)
    with pytest.raises(SchemaDefinitionError, match=rf"Held\.x: .*{one.instead}"):
        Schema(dataclasses.make_dataclass("Held", [("x", one.kind)]))


# -------------------------------------------------------------------------------- local classes


def test_local_classes_may_name_one_another() -> None:
    @dataclasses.dataclass
    class In:
        x: int

    @dataclasses.dataclass
    class Out:
        inside: list[In]
        next: Out | None = None

    @attrs.define
    class Held:
        inside: In

    class Keys(TypedDict):
        inside: In

    class Row(NamedTuple):
        inside: In

    class Struct(msgspec.Struct):
        inside: In

    assert StructuredParser(Out).parse('{"inside": [{"x": 1}], "next": {"inside": []}}').value == Out(
        [In(1)], Out([])
    )
    for kind in (Held, Row, Struct):
        assert StructuredParser(kind).parse('{"inside": {"x": 1}}').value == kind(inside=In(1))  # type: ignore[call-arg]
    assert StructuredParser(Keys).parse('{"inside": {"x": 1}}').value == {"inside": In(1)}

    def run(inside: In) -> str:
        """Run."""
        return str(inside.x)

    assert Tool.from_function(run).read_arguments(ToolCall("c", "run", '{"inside": {"x": 1}}')) == {
        "inside": In(1)
    }


def test_a_local_class_may_name_a_class_of_a_function_around() -> None:
    @dataclasses.dataclass
    class In:
        x: int

    def declare() -> type:
        @dataclasses.dataclass
        class Out:
            inside: In

        StructuredParser(Out)
        return Out

    assert StructuredParser(declare()).parse('{"inside": {"x": 1}}').ok


def made_elsewhere() -> type:
    @dataclasses.dataclass
    class In:
        x: int

    @dataclasses.dataclass
    class Out:
        inside: In

    return Out


def test_a_local_class_whose_names_are_gone_says_what_to_do() -> None:
    with pytest.raises(
        SchemaDefinitionError, match=r"Out: name 'In' is not defined; move the class that is named"
    ):
        Schema(made_elsewhere())


Dangling = te.TypeAliasType("Dangling", "list[Nowhere]")  # type: ignore[name-defined]  # noqa: F821


def test_an_alias_that_names_nothing_says_what_to_do() -> None:
    with pytest.raises(
        SchemaDefinitionError, match="Dangling: name 'Nowhere' is not defined; move it to the top"
    ):
        Schema(Dangling)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of Python 3.12")
def test_the_syntax_of_python_3_12() -> None:
    module = types.ModuleType("declared_in_3_12")
    sys.modules[module.__name__] = module
    exec(
        "from dataclasses import dataclass\n"
        "type Numbers = list[int]\n"
        "type Pair[T] = tuple[T, T]\n"
        "type Nested = dict[str, Nested] | int\n"
        "@dataclass\n"
        "class Page[T]:\n"
        "    items: list[T]\n"
        "    pair: 'Pair[T] | None' = None\n",
        vars(module),
    )
    assert StructuredParser(module.Numbers).parse("[1]").value == [1]
    assert StructuredParser(module.Nested).parse('{"a": {"b": 1}}').value == {"a": {"b": 1}}
    parser: StructuredParser[Any] = StructuredParser(module.Page[int])
    assert parser.parse('{"items": [1], "pair": [1, 2]}').value == module.Page([1], (1, 2))
    assert parser.parse('{"items": ["a"]}').value is None


Year = NewType("Year", int)

# -------------------------------------------------------------------------------- pydantic decides


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    x: int = 0


class ByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    first: int = pydantic.Field(0, alias="1st")
    second: int = pydantic.Field(0, validation_alias=pydantic.AliasPath("others", 0))


class Mixed(pydantic.BaseModel):
    price: pydantic.condecimal(max_digits=6) | str  # type: ignore[valid-type]
    rate: float
    rest: Any = None


class Inner(pydantic.BaseModel):
    kind: Literal["inner"] = "inner"
    size: int


class Outer(pydantic.BaseModel):
    inner: Inner
    others: list[Inner | int] = []


def refuse_text(value: Any) -> Any:
    if isinstance(value, str):
        raise TypeError("a text")
    return Decimal(str(value))


class NoText(pydantic.BaseModel):
    price: Annotated[Decimal, pydantic.BeforeValidator(refuse_text)]


def test_an_object_of_pydantic_needs_one_of_its_keys() -> None:
    parser = StructuredParser(Open)
    assert parser.parse('{"x": 1, "y": 2}').unwrap().model_extra == {"y": 2}
    assert parser.parse('{"y": 2}').errors == ["unknown field @ $.y"]
    assert parser.parse('{"x": 1, "x": 2}').value is None
    assert parser.parse('{"x": NaN}').value is None
    by_name = StructuredParser(ByName)
    for text in ('{"1st": 1}', '{"first": 1}'):
        result = by_name.parse(text)
        assert (result.unwrap().first, result.unknown) == (1, ())
    assert by_name.parse('{"others": [2]}').unwrap().second == 2
    assert by_name.parse('{"third": 1}').errors == ["unknown field @ $.third"]


class Nested(pydantic.BaseModel):
    n: int = pydantic.Field(validation_alias=pydantic.AliasPath("data", "n"))


class NestedOrNot(pydantic.BaseModel):
    n: int = pydantic.Field(validation_alias=pydantic.AliasPath("data", "n"), default=0)
    m: int


class Either(pydantic.BaseModel):
    n: int = pydantic.Field(validation_alias=pydantic.AliasChoices(pydantic.AliasPath("data", 0), "k"))


@pytest.mark.parametrize("kind", [Nested, NestedOrNot, list[Nested]], ids=str)
def test_a_field_that_no_key_of_the_schema_reaches_is_refused(kind: Any) -> None:
    with pytest.raises(
        SchemaDefinitionError, match=r"^Nested(OrNot)?\.n: pydantic reads it at an AliasPath alone"
    ):
        StructuredParser(kind)


def test_a_field_with_a_key_and_a_path_is_read_at_both() -> None:
    parser = StructuredParser(Either)
    (key,) = parser.schema.server_schema()["required"]
    assert parser.parse(f'{{"{key}": 1}}').unwrap().n == 1
    assert parser.parse('{"data": [2]}').unwrap().n == 2


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (int | None, "int | None"),
        (Inner | None, "Inner"),
        (Literal["a", None], "Literal"),
        (type(None), "NoneType"),
        ({"type": ["object", "null"]}, "JSON Schema"),
    ],
    ids=str,
)
def test_no_server_is_asked_for_an_answer_that_may_be_null_as_a_whole(kind: Any, name: str) -> None:
    parser = StructuredParser(kind)
    for ask in (parser.schema.server_schema, parser.schema.response_format, parser.schema.instructions):
        with pytest.raises(SchemaDefinitionError, match="null stands for no answer") as caught:
            ask()
        assert name in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [
        list[int | None],
        pydantic.RootModel[int | None],
        Annotated[int | None, pydantic.AfterValidator(lambda value: value or 0)],
        Any,
    ],
    ids=["items", "a root model", "a validator", "anything"],
)
def test_a_null_that_is_a_value_may_be_asked_for(kind: Any) -> None:
    assert StructuredParser(kind).schema.server_schema()


class Pair(NamedTuple):
    left: int


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ([Inner], "list[Inner]"),
        ([Inner, Outer], "list[…]"),
        ([1], "list[…]"),
        (Inner(size=1), "Inner"),
        (Pair(1), "Pair"),
        (pydantic.TypeAdapter(list[int]), "list[int]"),
    ],
    ids=str,
)
def test_a_value_in_the_place_of_a_type_is_refused_with_its_type(given: Any, instead: str) -> None:
    with pytest.raises(SchemaDefinitionError, match="expected a type, got an instance of") as caught:
        StructuredParser(given)
    assert str(caught.value).endswith(f"; give {instead}")


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Fish(pydantic.BaseModel):
    kind: Literal["fish", "eel"]
    fins: int


class Owner(pydantic.BaseModel):
    pet: Annotated[Cat | Fish, pydantic.Field(discriminator="kind")]


@dataclasses.dataclass
class PlainCat:
    lives: int
    kind: Literal["cat"]


@dataclasses.dataclass
class PlainFish:
    fins: int
    kind: Literal["fish", "eel"]


@attrs.frozen
class Finder:
    pet: PlainCat | PlainFish | None


@pytest.mark.parametrize("kind", [Owner, Finder])
def test_an_unknown_tag_is_told_with_all_tags_and_no_branch(kind: Any) -> None:
    parser = StructuredParser(kind)
    for rest in ("", ', "lives": 9', ', "fins": 1'):
        expected = ["expected 'cat' or 'fish' or 'eel', got another string @ $.pet.kind"]
        assert parser.parse(f'{{"pet": {{"kind": "dog"{rest}}}}}').errors == expected
    expected = ["expected 'cat' or 'fish' or 'eel', got number @ $.pet.kind"]
    assert parser.parse('{"pet": {"kind": 7}}').errors == expected
    assert parser.parse('{"pet": {"kind": "eel"}}').errors == ["a required field is missing @ $.pet.fins"]
    assert parser.parse('{"pet": {"kind": "eel", "fins": 2}}').ok


def test_a_refusal_of_pydantic_is_told_in_words_of_the_schema() -> None:
    parser = StructuredParser(Outer)
    assert parser.parse('{"inner": {"size": "1"}}').errors == ["expected integer, got string @ $.inner.size"]
    assert parser.parse('{"inner": {}}').errors == ["a required field is missing @ $.inner.size"]
    assert parser.parse('{"inner": {"size": 1}, "others": [{"size": "1"}]}').errors[0] == (
        "expected integer, got string @ $.others[0].size"
    )
    assert parser.parse('{"inner": {"size": 1}, "others": "1"}').reason == "schema_type_error"


def test_a_decimal_of_pydantic_keeps_its_digits_where_a_text_is_no_other_value() -> None:
    parser = StructuredParser(Mixed)
    value = parser.parse('{"price": 12.50, "rate": 0.10, "rest": 1.50}').unwrap()
    assert (repr(value.price), value.rate, value.rest) == ("Decimal('12.5')", 0.1, 1.5)
    assert StructuredParser(NoText).parse('{"price": 12.50}').unwrap().price == Decimal("12.5")
    assert StructuredParser(NoText).parse('{"price": 99999999999999999999.99}').value is None


@attrs.frozen
class Adult:
    age: int = attrs.field(validator=attrs.validators.ge(18))


def test_a_member_of_a_union_that_refuses_is_not_replaced_by_one_that_does_not_fit() -> None:
    parser: StructuredParser[Any] = StructuredParser(list[Adult | Tree])
    assert parser.parse('[{"age": 18}]').value == [Adult(18)]
    assert parser.parse('[{"age": 17}]').reason == "invariant_violation"


def test_a_key_may_be_a_new_type() -> None:
    parser: StructuredParser[Any] = StructuredParser(dict[Year, int])
    assert parser.parse('{"2026": 1}').value == {2026: 1}
    assert parser.parse('{"next": 1}').value is None


class Trimmed(pydantic.BaseModel):
    day: date
    price: Decimal

    @pydantic.field_validator("day", "price", mode="before")
    @classmethod
    def trim(cls, value: Any) -> Any:
        return value.strip() if isinstance(value, str) else value


def test_a_validator_before_a_date_or_decimal_may_give_it_a_text() -> None:
    parser = StructuredParser(Trimmed)
    value = parser.parse('{"day": "2026-03-29", "price": 12.50}').unwrap()
    assert (value.day, repr(value.price)) == (date(2026, 3, 29), "Decimal('12.50')")
    assert parser.parse('{"day": "2026-03-29", "price": true}').value is None
    assert parser.parse('{"day": 5, "price": 1}').value is None


class Unread(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    stream: object
    run: type(lambda: None)  # type: ignore[valid-type]


def test_a_model_that_pydantic_cannot_describe_says_what_to_do() -> None:
    with pytest.raises(
        SchemaDefinitionError, match=r"Unread: pydantic cannot describe it .*model_rebuild\(\)"
    ):
        Schema(Unread)


# -------------------------------------------------------------------------------- JSON in a string


@attrs.frozen
class Tree:
    label: str
    children: list[Tree] = attrs.field(factory=list)
    weights: dict[str, float] | None = None


class Facts(pydantic.BaseModel):
    facts: list[dict[str, str]]


@pytest.mark.parametrize(
    ("kind", "text", "plain", "opened"),
    [
        (Facts, r'{"facts": "[{\"a\": \"b\"}]"}', {"facts": [{"a": "b"}]}, ("$.facts",)),
        (Tree, r'{"label": "r", "children": "[{\"label\": \"a\"}]"}', {"label": "r", "children": [{"label": "a"}]}, ("$.children",)),
        (Tree, r'{"label": "r", "children": ["{\"label\": \"a\"}"]}', {"label": "r", "children": [{"label": "a"}]}, ("$.children[0]",)),
        (Tree, r'{"label": "r", "weights": "{\"a\": 1.5}"}', {"label": "r", "weights": {"a": 1.5}}, ("$.weights",)),
        (Tree, r'{"label": "r", "children": "[\"{\\\"label\\\": \\\"a\\\"}\"]"}', {"label": "r", "children": [{"label": "a"}]}, ("$.children", "$.children[0]")),
        (list[Tree], r'["{\"label\": \"a\"}"]', [{"label": "a"}], ("$[0]",)),
        (dict[str, list[int]], r'{"a": "[1]"}', {"a": [1]}, ("$.a",)),
    ],
)  # fmt: skip
def test_json_in_a_string_is_read_where_no_string_may_stand(
    kind: Any, text: str, plain: Any, opened: tuple[str, ...]
) -> None:
    parser: StructuredParser[Any] = StructuredParser(kind)
    result = parser.parse(text)
    assert (result.value, result.opened) == (Schema(kind).read(plain).value, opened)
    within = parser.parse(f"Here it is:\n```json\n{text}\n```")
    assert (within.value, within.opened) == (result.value, opened)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Tree, r'{"label": "r", "children": "none"}'),
        (Tree, r'{"label": "r", "children": "[1"}'),
        (Tree, r'{"label": "r", "children": "[] []"}'),
        (Tree, r'{"label": "r", "children": "{}"}'),
        (Tree, r'{"label": "r", "children": "[{\"label\": \"a\", \"label\": \"b\"}]"}'),
        (Tree, r'{"label": "r", "weights": "{\"a\": NaN}"}'),
        (dict[str, int], '{"a": "1"}'),
        (dict[str, list[Any]], '{"a": "' + "[" * 100 + "]" * 100 + '"}'),
    ],
)
def test_a_string_that_is_not_exactly_that_json_is_refused(kind: Any, text: str) -> None:
    assert StructuredParser(kind).parse(text).value is None


def test_a_string_stays_one_where_a_string_may_stand() -> None:
    @dataclasses.dataclass
    class Note:
        text: str
        data: str | list[int]
        rest: Any

    text = r'{"text": "[1]", "data": "[1]", "rest": "[1]"}'
    result = StructuredParser(Note).parse(text)
    assert (result.value, result.opened) == (Note("[1]", "[1]", "[1]"), ())


def test_json_in_a_string_is_read_in_arguments_of_a_tool() -> None:
    def count(items: list[int]) -> str:
        """Count."""
        return str(len(items))

    tool = Tool.from_function(count)
    assert tool.read_arguments(ToolCall("c", "count", r'{"items": "[1, 2]"}')) == {"items": [1, 2]}
