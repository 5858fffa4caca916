"""Tools from typed functions: the definition that the model gets, and the strictness of reading its arguments."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal

import attrs
import jsonschema
import pytest

from crosswalk import ConfigurationError, CrosswalkError, ToolCall, ToolCallArgumentsError
from crosswalk.agent import Tool, ToolDefinitionError, ToolRegistry, final_answer, tool
from crosswalk.service import ToolDefinition


class Unit(Enum):
    """A unit of temperature."""

    CELSIUS = "celsius"
    KELVIN = "kelvin"


class Level(Enum):
    """How much."""

    LOW = 1
    HIGH = 2


@attrs.frozen
class Place:
    """A place on earth.

    Attributes:
        city: its name.
        country: its ISO code.
    """

    city: str
    country: str | None = None


@tool
def get_weather(
    place: Place,
    unit: Unit = Unit.CELSIUS,
    days: Annotated[int, "how many days ahead", 3] = 1,
    *,
    tags: list[str] | None = None,
    mode: Literal["short", "long"] = "short",
    level: Level = Level.LOW,
    limit: float = math.inf,
) -> str:
    """Say what the weather will be.

    Args:
        place: where.
        unit: in which unit.
        days: not used, the annotation says it.
    """
    return f"{place.city} {unit.value} {days} {tags} {mode} {level.value} {limit}"


def test_the_model_is_told_name_description_and_schema() -> None:
    assert get_weather.definition == ToolDefinition(
        "get_weather", "Say what the weather will be.", get_weather.parameters
    )
    assert get_weather.parameters == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place", "description": "where."},
            "unit": {
                "type": "string",
                "title": "Unit",
                "description": "in which unit.",
                "enum": ["celsius", "kelvin"],
                "default": "celsius",
            },
            "days": {"type": "integer", "description": "how many days ahead", "default": 1},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
            },
            "mode": {"type": "string", "enum": ["short", "long"], "default": "short"},
            "level": {"title": "Level", "type": "integer", "enum": [1, 2], "default": 1},
            "limit": {"type": "number"},
        },
        "required": ["place"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "title": "Place",
                "description": "A place on earth.",
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "its name."},
                    "country": {
                        "anyOf": [{"type": "string"}, {"type": "null"}],
                        "description": "its ISO code.",
                    },
                },
                "required": ["city"],
                "additionalProperties": False,
            }
        },
    }


READ = [
    ('{"place": {"city": "Paris"}}', "Paris celsius 1 None short 1 inf"),
    (
        '{"place": {"city": "Rome", "country": null}, "unit": "kelvin", "days": 2, "tags": ["a"], "level": 2, '
        '"mode": "long", "limit": 7}',
        "Rome kelvin 2 ['a'] long 2 7.0",
    ),
]


@pytest.mark.parametrize(("arguments", "output"), READ)
def test_arguments_reach_the_function_as_their_types(arguments: str, output: str) -> None:
    call = ToolCall("1", "get_weather", arguments)
    jsonschema.validate(call.parsed(), get_weather.parameters)
    assert get_weather(**get_weather.read_arguments(call)) == output


REFUSED = [
    ("{", "not JSON"),
    ("[]", "not a JSON object"),
    ("{}", "a required field is missing @ $.place"),
    ('{"place": {}}', "a required field is missing @ $.place.city"),
    ('{"place": {"city": "x"}, "colour": 1}', "unknown field @ $.colour"),
    ('{"place": {"city": "x", "zip": 1}}', "unknown field @ $.place.zip"),
    ('{"place": "Paris"}', "expected object, got string @ $.place"),
    ('{"place": {"city": 3}}', "expected string, got number @ $.place.city"),
    ('{"place": {"city": "x"}, "days": "3"}', "expected integer, got string @ $.days"),
    ('{"place": {"city": "x"}, "days": 3.0}', "expected integer, got number @ $.days"),
    ('{"place": {"city": "x"}, "days": true}', "expected integer, got boolean @ $.days"),
    ('{"place": {"city": "x"}, "unit": "rankine"}', "expected 'celsius' or 'kelvin', got "),
    ('{"place": {"city": "x"}, "tags": ["a", 1]}', "expected string, got number @ $.tags[1]"),
    (
        '{"place": {"city": "x"}, "days": "3", "mode": 1}',
        "@ $.days; expected 'short' or 'long', got number @ $.mode",
    ),
]


@pytest.mark.parametrize(("arguments", "problem"), REFUSED)
def test_arguments_are_never_coerced(arguments: str, problem: str) -> None:
    call = ToolCall("1", "get_weather", arguments)
    with pytest.raises(ToolCallArgumentsError) as caught:
        get_weather.read_arguments(call)
    assert problem in str(caught.value)
    assert (caught.value.name, caught.value.call_id) == ("get_weather", "1")


def test_every_type_that_an_answer_may_have() -> None:
    def everything(
        a: str,
        b: int,
        c: float,
        d: bool,
        e: None,
        f: Any,
        g: date,
        h: datetime,
        i: dict[str, Place],
        j: int | str,
    ) -> dict[str, Any]:
        return locals()

    one = Tool.from_function(everything)
    text = (
        '{"a": "x", "b": 1, "c": 2, "d": false, "e": null, "f": [1], "g": "2026-01-02", '
        '"h": "2026-01-02T03:04:05Z", "i": {"k": {"city": "y"}}, "j": "z"}'
    )
    read = one.read_arguments(ToolCall("1", "everything", text))
    assert one.function(**read) == read
    assert (read["c"], read["g"], read["i"]) == (2.0, date(2026, 1, 2), {"k": Place("y")})


# ---------------------------------------------------------------------------------------- what can be a tool


class Calculator:
    """Adds."""

    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, number: int) -> int:
        """Add a number."""
        return self.start + number

    def __call__(self, number: int) -> int:
        """Add a number."""
        return self.start + number


def power(base: int, exponent: int) -> int:
    return int(base**exponent)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Calculator(2).add, "add"),
        (Calculator(2), "Calculator"),
        (functools.partial(power, exponent=2), "partial"),
        (functools.wraps(power)(lambda *a, **k: power(*a, **k)), "power"),
    ],
)
def test_whatever_can_be_called_by_name(function: Callable[..., Any], name: str) -> None:
    one = Tool.from_function(function)
    assert one.name == name
    assert set(one.parameters["properties"]) <= {"number", "base", "exponent"}


def test_options_of_the_decorator() -> None:
    @tool(name="look-up", description="Looks it up.", is_final=True, timeout=3)
    def lookup(word: str) -> str:
        """Not this."""
        return word

    assert (lookup.name, lookup.description, lookup.is_final, lookup.timeout) == (
        "look-up",
        "Looks it up.",
        True,
        3,
    )
    assert lookup("x") == "x"
    assert repr(lookup) == "Tool(name='look-up', description='Looks it up.')"


def test_a_tool_without_a_description_or_parameters() -> None:
    one = Tool.from_function(lambda: 1, name="one")
    assert one.definition.description is None
    assert one.read_arguments(ToolCall("1", "one")) == {}
    assert one.parameters["properties"] == {}


def test_the_final_answer_is_a_tool() -> None:
    assert final_answer.is_final
    assert final_answer(answer="42") == "42"
    assert final_answer.parameters["required"] == ["answer"]


def untyped(x) -> None: ...  # type: ignore[no-untyped-def]


def unresolved(x: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def variadic(*x: int) -> None: ...


def keywords(**x: int) -> None: ...


def positional(x: int, /) -> None: ...


def unbound(self: int) -> None: ...


def dunder(*, __x: int) -> None: ...


def no_json(x: bytearray) -> None: ...


@pytest.mark.parametrize(
    ("function", "parameter", "cause"),
    [
        (untyped, "x", "parameter 'x' needs a type annotation"),
        (unresolved, None, "an annotation cannot be resolved"),
        (variadic, "x", "parameter 'x' cannot be passed by name"),
        (keywords, "x", "parameter 'x' cannot be passed by name"),
        (positional, "x", "parameter 'x' cannot be passed by name"),
        (unbound, "self", "parameter 'self' has a reserved name"),
        (dunder, "__x", "parameter '__x' has a reserved name"),
        (no_json, None, "cannot hold"),
        (type, None, "the function has no signature"),
        (lambda: 1, None, "a name has 1 to 64 letters"),
    ],
)
def test_what_cannot_be_a_tool_is_refused(function: Any, parameter: str | None, cause: str) -> None:
    with pytest.raises(ToolDefinitionError, match=cause) as caught:
        Tool.from_function(function)
    assert isinstance(caught.value, CrosswalkError | TypeError)
    assert caught.value.parameter == parameter


def test_a_default_that_json_cannot_tell_is_left_out() -> None:
    def function(x: Place = Place("Rome")) -> str:
        return x.city

    one = Tool.from_function(function)
    assert one.parameters["properties"]["x"] == {"$ref": "#/$defs/Place"}
    assert one(**one.read_arguments(ToolCall("1", "function"))) == "Rome"


def test_a_registry_knows_its_tools_by_name() -> None:
    registry = ToolRegistry([get_weather, power])
    assert registry.add(final_answer) is final_answer
    assert list(registry) == ["get_weather", "power", "final_answer"]
    assert registry["power"](2, 3) == 8
    assert len(registry) == 3
    assert repr(registry) == "ToolRegistry(get_weather, power, final_answer)"
    with pytest.raises(ToolDefinitionError, match="two tools 'power'"):
        registry.add(power)


@pytest.mark.parametrize("timeout", [0, -1, "x", True, float("nan"), float("inf"), [1]], ids=repr)
def test_a_time_limit_that_is_none(timeout: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="timeout must be seconds above 0"):
        tool(timeout=timeout)(final_answer.function)


def test_a_function_alone_is_no_list_of_tools() -> None:
    with pytest.raises(ConfigurationError, match="tools must be a list, not function"):
        ToolRegistry(get_weather.function)  # type: ignore[arg-type]
