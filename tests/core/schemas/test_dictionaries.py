"""JSON Schemas as dicts: words compare as JSON does, and jsonschema checks the keywords that nothing else does."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from crosswalk.structured import Schema, SchemaDefinitionError, StructuredParser
from crosswalk.types.json import dump_json


def is_valid(schema: dict[str, Any], data: Any) -> bool:
    wanted = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return StructuredParser(wanted).parse(dump_json({"x": data}).decode()).ok


@pytest.mark.parametrize(
    ("words", "equal", "others"),
    [
        ([1], [1, 1.0], [True, "1", [1], 2]),
        ([True], [True], [1, 1.0, "true"]),
        ([0], [0, 0.0, -0.0], [False, "", [], {}]),
        ([False], [False], [0, 0.0, []]),
        ([[True]], [[True]], [[1], [1.0], True, [True, True]]),
        ([[0]], [[0], [0.0]], [[False], 0]),
        ([{"a": False}], [{"a": False}], [{"a": 0}, {"a": 0.0}, {"a": False, "b": 1}]),
        ([{"a": 1, "b": [{"c": 2}]}], [{"b": [{"c": 2.0}], "a": 1.0}], [{"a": 1, "b": [{"c": True}]}]),
        ([9007199254740992], [9007199254740992], [9007199254740993]),
        (["a\u0000b"], ["a\u0000b"], ["ab"]),
        ([[], {}], [[], {}], [0, False, "", [[]]]),
    ],
)
def test_const_and_enum_compare_as_json_does(words: list[Any], equal: list[Any], others: list[Any]) -> None:
    schemas = [{"enum": words}, {"enum": [*words, "other"]}]
    if len(words) == 1:
        schemas.append({"const": words[0]})
    for schema in schemas:
        assert [is_valid(schema, each) for each in equal] == [True] * len(equal)
        assert [is_valid(schema, each) for each in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("items", "are_unique"),
    [
        ([1, 1.0], False),
        ([1, True], True),
        ([[1], [True]], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ([{"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1.0}}], False),
        (["1", 1], True),
    ],
)
def test_items_differ_as_json_does(items: list[Any], are_unique: bool) -> None:
    assert is_valid({"uniqueItems": True}, items) is are_unique


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"not": {"required": ["b"]}}, {"a": 1}, {"a": 1, "b": 2}),
        ({"if": {"required": ["b"]}, "then": {"required": ["c"]}}, {"a": 1}, {"a": 1, "b": 2}),
        ({"patternProperties": {"^x_": {"type": "string"}}, "additionalProperties": False}, {"a": 1, "x_b": "c"}, {"a": 1, "y": "c"}),
        ({"dependentRequired": {"b": ["c"]}}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}),
        ({"properties": {"a": {"contains": {"const": 1}}}}, {"a": [2, 1]}, {"a": [2]}),
        ({"properties": {"a": {"format": "date", "not": {"const": "2026-01-01"}}}}, {"a": "2026-01-02"}, {"a": "soon"}),
        ({"unevaluatedProperties": False}, {"a": 1}, {"a": 1, "b": 2}),
    ],
)  # fmt: skip
def test_jsonschema_checks_what_nothing_else_does(
    schema: dict[str, Any], good: dict[str, Any], bad: dict[str, Any]
) -> None:
    whole = {
        "type": "object",
        "required": ["a"],
        **schema,
        "properties": {"a": {}, **schema.get("properties", {})},
    }
    parser: StructuredParser[Any] = StructuredParser(whole)
    assert parser.parse(dump_json(good).decode()).value == good
    assert parser.parse(dump_json(bad).decode()).value is None
    assert parser.parse('{"A": 1, "a": 2, "a": 3}').value is None
    assert parser.parse("{}").errors == ["a required field is missing @ $.a"]


def test_a_violation_names_the_rule_and_no_value() -> None:
    schema = {"type": "object", "properties": {"a": {"not": {"const": "secret"}}}}
    (error,) = StructuredParser(schema).parse('{"a": "secret"}').errors
    assert error == "must keep the rule not @ $.a"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"not": {"type": "typo"}}, "JSON Schema: \\$.not.type breaks anyOf"),
        ({"not": {}, "typo": 1}, "the keyword 'typo' is not supported"),
        ({"not": {}, "$ref": "https://example.org/schema.json"}, "leads nowhere in it"),
        ({"not": {}, "properties": {"a": {"$ref": "other.json#/a"}}}, "leads nowhere in it"),
    ],
)
def test_a_schema_that_is_none_is_refused_at_once(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(SchemaDefinitionError, match=why):
        Schema(schema)


def test_without_jsonschema_a_keyword_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(
        SchemaDefinitionError, match=r"'not' is not supported; install crosswalk-llm\[jsonschema\]"
    ):
        Schema({"not": {}})
