"""Parameters and answers of other kinds than attrs classes: dataclasses, typed dicts, named tuples, pydantic models."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, NotRequired, Optional, Required, TypedDict
from uuid import UUID

import attrs
import pydantic
import pytest

from crosswalk import ToolCall, ToolCallArgumentsError
from crosswalk.agent import Agent, AgentOutcome, Tool, ToolDefinitionError
from crosswalk.testing.replay import Answer, ReplayServer

Run = Callable[..., Any]
Said = Callable[..., Answer]
ID = "12345678-1234-5678-1234-567812345678"


@dataclass
class Point:
    """A place.

    Attributes:
        x: to the right.
    """

    x: int
    y: Annotated[int, "upwards"] = 2
    tags: list[str] = field(default_factory=list)
    norm: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(f"secret {self.x}")


@dataclass
class Line:
    begin: Point
    end: Point | None = None


class Person(TypedDict):
    name: str
    home: NotRequired[Point]


class Pair(NamedTuple):
    key: str
    value: int = 7


class Loose(TypedDict, total=False):
    name: Required[str]
    age: int


class Buyer(pydantic.BaseModel):
    name: str


class Order(pydantic.BaseModel):
    """An order."""

    item: str = pydantic.Field(description="what", min_length=2)
    count: int = pydantic.Field(default=1, alias="n", ge=1)
    by: Buyer | None = None


@attrs.frozen
class Box:
    size: int


@dataclass
class Node:
    next: Optional[Node] = None  # noqa: UP045  # so it is read at run time


def tool_of(kind: Any, default: Any = ...) -> Tool:
    def function(it: Any) -> Any:
        return it

    def optional(it: Any = default) -> Any:
        return it

    made = function if default is ... else optional
    made.__annotations__ = {"it": kind, "return": str}
    return Tool.from_function(made, name="it")


def read(kind: Any, json: str) -> Any:
    return tool_of(kind).read_arguments(ToolCall("1", "it", f'{{"it": {json}}}'))["it"]


@pytest.mark.parametrize(
    ("kind", "json", "value"),
    [
        (Point, '{"x": 1}', Point(1)),
        (Point, '{"x": 1, "y": 3, "tags": ["a"]}', Point(1, 3, ["a"])),
        (Line, '{"begin": {"x": 1}, "end": {"x": 2}}', Line(Point(1), Point(2))),
        (Line, '{"begin": {"x": 1}, "end": null}', Line(Point(1))),
        (Person, '{"name": "Ann"}', {"name": "Ann"}),
        (Person, '{"name": "Ann", "home": {"x": 1}}', {"name": "Ann", "home": Point(1)}),
        (Loose, '{"name": "Ann"}', {"name": "Ann"}),
        (Pair, '{"key": "a"}', Pair("a")),
        (Order, '{"item": "tea", "n": 2}', Order(item="tea", n=2)),
        (Order, '{"item": "tea", "by": {"name": "Ann"}}', Order(item="tea", by=Buyer(name="Ann"))),
        (list[Point], '[{"x": 1}]', [Point(1)]),
        (tuple[Point, ...], '[{"x": 1}]', (Point(1),)),
        (dict[str, Point], '{"a": {"x": 1}}', {"a": Point(1)}),
        (collections.abc.Mapping[str, int], '{"a": 1}', {"a": 1}),
        (set[int], "[1, 1, 2]", {1, 2}),
        (frozenset[str], '["a"]', frozenset("a")),
        (collections.abc.Sequence[int], "[1]", [1]),
        (list[int], "[1]", [1]),
        (list[int] | None, "null", None),
        (set[int] | None, "[1]", {1}),
        (set[int] | None, "null", None),
        (Node, '{"next": {"next": null}}', Node(Node())),
        (set[int] | UUID, "[1]", {1}),
        (set[int] | UUID, f'"{ID}"', UUID(ID)),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (Decimal, "1.10", Decimal("1.10")),
        (Annotated[UUID, "which"], f'"{ID}"', UUID(ID)),
        (Decimal, '"1.10"', Decimal("1.10")),
        (Point | Pair | Box | str | None, '{"key": "a"}', Pair("a")),
        (Point | Pair | Box | str | None, '{"x": 1}', Point(1)),
        (Point | Pair | Box | str | None, '{"size": 1}', Box(1)),
        (Point | Pair | Box | str | None, '"a"', "a"),
    ],
)
def test_what_was_read_is_made_the_value(kind: Any, json: str, value: Any) -> None:
    found = read(kind, json)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "json", "problem"),
    [
        (Point, '{"x": "1"}', "expected integer, got string @ $.it.x"),
        (Point, '{"y": 1}', "a required field is missing @ $.it.x"),
        (Point, '{"x": 1, "z": 1}', "unknown field @ $.it.z"),
        (Loose, '{"age": 1}', "a required field is missing @ $.it.name"),
        (Point, '{"x": -1}', "refused by Point with ValueError @ $.it"),
        (Order, '{"item": "t"}', "must have at least 2 characters @ $.it.item"),
        (Order, '{"item": "te", "n": 0}', "must be >= 1 @ $.it.n"),
        (UUID, '"x"', "expected a UUID, got string @ $.it"),
        (Decimal, '"x"', "expected a decimal number, got string @ $.it"),
    ],
)
def test_what_does_not_fit_is_told_without_the_value(kind: Any, json: str, problem: str) -> None:
    with pytest.raises(ToolCallArgumentsError) as caught:
        read(kind, json)
    assert str(caught.value).startswith(f"invalid arguments: {problem}")


def test_their_schema_tells_what_they_say_of_themselves() -> None:
    def function(begin: Point, end: Point, order: Order, who: Person) -> None:
        """Draw."""

    parameters = Tool.from_function(function).parameters
    point, order = parameters["$defs"]["Point"], parameters["$defs"]["Order"]
    assert parameters["properties"]["begin"] == parameters["properties"]["end"] == {"$ref": "#/$defs/Point"}
    assert point["description"].startswith("A place.")
    assert point["properties"]["x"] == {"type": "integer", "description": "to the right."}
    assert point["properties"]["y"] == {"type": "integer", "description": "upwards", "default": 2}
    assert point["required"] == ["x"]
    assert order["properties"]["item"] == {"type": "string", "description": "what", "minLength": 2}
    assert order["properties"]["n"] == {"type": "integer", "minimum": 1, "default": 1}
    assert "description" not in tool_of(Line).parameters["$defs"]["Line"]
    assert parameters["$defs"]["Person"]["required"] == ["name"]


def test_a_default_stays_as_it_is() -> None:
    for kind, default in ((Point, Point(5)), (set[int], {1}), (UUID, UUID(ID)), (Point | None, None)):
        one = tool_of(kind, default)
        assert one.read_arguments(ToolCall("1", "it", "{}"))["it"] == default


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (complex, "cannot hold"),
        (list[complex], "cannot hold"),
    ],
)
def test_what_json_cannot_tell(kind: Any, cause: str) -> None:
    with pytest.raises(ToolDefinitionError, match=cause):
        tool_of(kind)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Point, '{"x": 1}', Point(1)),
        (Order, '{"item": "tea"}', Order(item="tea")),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Person, '{"name": "Ann"}', {"name": "Ann"}),
    ],
)
def test_they_can_be_the_type_of_an_answer(
    server: ReplayServer, run: Run, said: Said, kind: Any, text: str, value: Any
) -> None:
    server.add(said(text))
    assert run(lambda service: Agent(service, output_type=kind).answer("?")).value == value


def test_an_answer_that_its_class_refuses(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said('{"x": -1}'), times=None)
    response = run(lambda service: Agent(service, output_type=Point).answer("?"))
    assert response.outcome is AgentOutcome.INVALID_OUTPUT
    assert "refused by Point with ValueError" in response.turns[0].reply.text
