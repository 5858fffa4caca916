"""``Annotated`` in classes that hold themselves or have a type argument: read with their limits, or refused by name."""

import dataclasses
import sys
import types
from typing import Annotated, Any, Generic, NamedTuple, TypedDict, TypeVar

import attrs
import pytest
from annotated_types import Ge, MinLen
from pydantic import AfterValidator, BaseModel

from crosswalk.agent import ToolDefinitionError, tool
from crosswalk.structured import ReasonCode, Schema, SchemaDefinitionError, StructuredParser

T = TypeVar("T")
U = TypeVar("U")


def checked(value: Any) -> Any:
    if value == 13:
        raise ValueError("13 is refused")
    return value


@dataclasses.dataclass
class Node:
    v: int
    kids: Annotated[list["Node"], MinLen(1)] | None = None


@attrs.frozen
class AttrsNode:
    v: int
    kids: Annotated[list["AttrsNode"], MinLen(1)] | None = None


class DictNode(TypedDict, total=False):
    v: int
    kids: Annotated[list["DictNode"], MinLen(1)]


class TupleNode(NamedTuple):
    v: int
    kids: Annotated[list["TupleNode"], MinLen(1)] | None = None


class ModelNode(BaseModel):
    v: int
    kids: Annotated[list["ModelNode"], MinLen(1)] | None = None


@dataclasses.dataclass
class ValidatedNode:
    v: int
    kids: Annotated[list["ValidatedNode"] | None, AfterValidator(checked)] = None


@attrs.frozen
class AttrsBox(Generic[T]):
    v: Annotated[T, Ge(1)]


@attrs.frozen
class AttrsList(Generic[T]):
    v: Annotated[list[T], MinLen(1)]
    box: AttrsBox[T] | None = None


@attrs.frozen
class AttrsTwo(Generic[T, U]):
    v: Annotated[T, Ge(1)]
    names: Annotated[dict[str, U], MinLen(1)] = attrs.field(metadata={"alias": "the names"})
    kids: Annotated[list["AttrsTwo[T, U]"], MinLen(1)] | None = None


@attrs.frozen
class AttrsChecked(Generic[T]):
    v: Annotated[T, AfterValidator(checked)]


@dataclasses.dataclass
class DataBox(Generic[T]):
    v: Annotated[T, Ge(1)]


@attrs.frozen
class Inherits(AttrsBox[int]):
    pass


@attrs.frozen
class Strict(Generic[T]):
    v: Annotated[T, Ge(1)] = attrs.field(validator=attrs.validators.lt(10))  # type: ignore[assignment]


INVARIANT, TYPE = ReasonCode.INVARIANT_VIOLATION, ReasonCode.SCHEMA_TYPE_ERROR


@pytest.mark.parametrize("kind", [Node, AttrsNode, DictNode, TupleNode, ModelNode])
def test_a_class_that_holds_itself_is_read_with_its_limits(kind: Any) -> None:
    parser: StructuredParser[Any] = StructuredParser(kind)
    value = parser.parse('{"v": 1, "kids": [{"v": 2}]}').value
    kids = value["kids"] if isinstance(value, dict) else value.kids
    assert kids == [parser.parse('{"v": 2}').value]
    for text in ('{"v": 1, "kids": []}', '{"v": 1, "kids": [{"v": 2, "kids": []}]}'):
        assert parser.parse(text).reason is INVARIANT


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (AttrsBox[int], '{"v": 5}', AttrsBox(5)),
        (AttrsBox[int], '{"v": 0}', INVARIANT),
        (AttrsBox[int], '{"v": "5"}', TYPE),
        (AttrsBox[float], '{"v": 5}', AttrsBox(5.0)),
        (AttrsList[int], '{"v": [5], "box": {"v": 1}}', AttrsList([5], AttrsBox(1))),
        (AttrsList[int], '{"v": []}', INVARIANT),
        (AttrsList[int], '{"v": [5], "box": {"v": 0}}', INVARIANT),
        (AttrsTwo[int, str], '{"v": 5, "the names": {"a": "b"}}', AttrsTwo(5, {"a": "b"})),
        (AttrsTwo[int, str], '{"v": 5, "the names": {"a": 1}}', TYPE),
        (
            AttrsTwo[int, str],
            '{"v": 5, "the names": {"a": "b"}, "kids": [{"v": 1, "the names": {"c": "d"}}]}',
            AttrsTwo(5, {"a": "b"}, [AttrsTwo(1, {"c": "d"})]),
        ),
        (AttrsTwo[int, str], '{"v": 5, "the names": {"a": "b"}, "kids": []}', INVARIANT),
        (AttrsChecked[int], '{"v": 5}', AttrsChecked(5)),
        (AttrsChecked[int], '{"v": 13}', INVARIANT),
        (AttrsChecked[int], '{"v": [5]}', TYPE),
        (DataBox[int], '{"v": 5}', DataBox(5)),
        (DataBox[int], '{"v": 0}', INVARIANT),
        (list[AttrsBox[int]], '[{"v": 5}]', [AttrsBox(5)]),
        (dict[str, AttrsBox[int]], '{"a": {"v": 5}}', {"a": AttrsBox(5)}),
        (AttrsBox[int] | None, '{"v": 5}', AttrsBox(5)),
        (AttrsBox[int] | str, '{"v": 5}', AttrsBox(5)),
        (Strict[int], '{"v": 5}', Strict(5)),
        (Strict[int], '{"v": 12}', INVARIANT),
    ],
)
def test_the_limits_of_a_type_argument_are_read(kind: Any, text: str, value: Any) -> None:
    result = StructuredParser[Any](kind).parse(text)
    assert (result.reason if isinstance(value, ReasonCode) else result.value) == value


def test_a_validator_may_stand_around_the_class_that_has_it() -> None:
    parser = StructuredParser(ValidatedNode)
    assert parser.parse('{"v": 1, "kids": [{"v": 2}]}').value == ValidatedNode(1, [ValidatedNode(2)])
    assert parser.parse('{"v": 1, "kids": [{"v": "2"}]}').value is None


@pytest.mark.parametrize("kind", [AttrsBox, list[AttrsBox], Annotated[T, Ge(1)], DataBox[T], Inherits])  # type: ignore[type-arg, valid-type]
def test_a_parameter_without_an_argument_is_refused_by_name(kind: Any) -> None:
    with pytest.raises(SchemaDefinitionError, match="give its generic class or alias an argument"):
        Schema(kind)


def test_a_class_in_itself_by_two_ways_is_refused_with_what_to_write() -> None:
    with pytest.raises(SchemaDefinitionError, match="make ValidatedNode a pydantic model"):
        Schema(list[ValidatedNode])


def test_a_tool_takes_them() -> None:
    @tool
    def keep(box: AttrsBox[int], node: Node) -> str:
        """Keep them."""
        return "kept"

    assert keep.parameters["properties"]["node"] == {"$ref": "#/$defs/Node"}

    def wrong(box: AttrsBox) -> str:  # type: ignore[type-arg]
        """Keep it."""
        return "kept"

    with pytest.raises(ToolDefinitionError, match="give its generic class"):
        tool(wrong)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of Python 3.12")
def test_the_syntax_of_python_3_12() -> None:
    module = types.ModuleType("generic_in_3_12")
    sys.modules[module.__name__] = module
    exec(
        "import attrs, dataclasses\n"
        "from typing import Annotated\n"
        "from annotated_types import Ge, MinLen\n"
        "@attrs.frozen\n"
        "class Box[T]:\n"
        "    v: Annotated[T, Ge(1)]\n"
        "@dataclasses.dataclass\n"
        "class Tree[T]:\n"
        "    v: Annotated[T, Ge(1)]\n"
        "    kids: 'Annotated[list[Tree[T]], MinLen(1)] | None' = None\n"
        "type Boxes[T] = Annotated[list[Box[T]], MinLen(1)]\n",
        vars(module),
    )
    box, tree, boxes = module.Box, module.Tree, module.Boxes
    assert StructuredParser(box[int]).parse('{"v": 5}').value == box(5)
    assert StructuredParser(box[int]).parse('{"v": 0}').reason is INVARIANT
    assert StructuredParser(tree[int]).parse('{"v": 5, "kids": []}').reason is INVARIANT
    assert StructuredParser(boxes[int]).parse('[{"v": 5}]').value == [box(5)]
    assert StructuredParser(boxes[int]).parse("[]").reason is INVARIANT
