"""A JSON Schema as a dict is really checked, and refused where it would not be."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk.structured import SchemaDefinitionError, StructuredParser


def errors(schema: dict[str, Any], text: str) -> list[str]:
    return StructuredParser(schema).parse(text).errors


@pytest.mark.parametrize(
    ("schema", "good", "bad", "error"),
    [
        ({"minLength": 2}, '{"value": "ab"}', '{"value": "a"}', "must have at least 2 characters"),
        ({"maxLength": 2}, '{"value": "ab"}', '{"value": "abc"}', "must have at most 2 characters"),
        ({"minimum": 2}, '{"value": 2}', '{"value": 1}', "must be >= 2"),
        ({"maximum": 2}, '{"value": 2}', '{"value": 3}', "must be <= 2"),
        ({"exclusiveMinimum": 2}, '{"value": 3}', '{"value": 2}', "must be > 2"),
        ({"exclusiveMaximum": 2}, '{"value": 1}', '{"value": 2}', "must be < 2"),
        ({"multipleOf": 0.1}, '{"value": 0.3}', '{"value": 0.35}', "must be a multiple of 0.1"),
        ({"pattern": "^a"}, '{"value": "ab"}', '{"value": "ba"}', "must match ^a"),
        ({"pattern": "^a$"}, '{"value": "a"}', '{"value": "a\\n"}', "must match ^a$"),
        ({"pattern": "^(a$|b)"}, '{"value": "a"}', '{"value": "a\\n"}', "must match ^(a$|b)"),
        ({"pattern": r"^\$[$]$"}, '{"value": "$$"}', '{"value": "$$\\n"}', r"must match ^\$[$]$"),
        ({"pattern": r"^[]$]\\$"}, r'{"value": "]\\"}', r'{"value": "$\\\n"}', r"must match ^[]$]\\$"),
        ({"pattern": "(?m)^a$"}, '{"value": "a\\nb"}', '{"value": "b"}', "must match (?m)^a$"),
        ({"uniqueItems": True}, '{"value": [1, 2]}', '{"value": [1, 1]}', "items must differ"),
        ({"minItems": 1}, '{"value": [1]}', '{"value": []}', "must have at least 1 items"),
        ({"maxItems": 1}, '{"value": [1]}', '{"value": [1, 2]}', "must have at most 1 items"),
        ({"minProperties": 1}, '{"value": {"a": 1}}', '{"value": {}}', "must have at least 1 keys"),
        ({"maxProperties": 1}, '{"value": {"a": 1}}', '{"value": {"a": 1, "b": 2}}', "must have at most 1 keys"),
        ({"const": 5}, '{"value": 5.0}', '{"value": 5.5}', "expected 5, got number"),
        ({"format": "uuid"}, '{"value": "12345678-1234-5678-1234-567812345678"}', '{"value": "x"}', "expected a UUID, got string"),
        ({"format": "email"}, '{"value": "anything"}', None, ""),
        (False, "{}", '{"value": 1}', "no value is allowed here"),
        (True, '{"value": 1}', None, ""),
        ({"type": "number"}, '{"value": 9007199254740992}', '{"value": 9007199254740993}', "a number that a float cannot hold"),
        ({"type": "number"}, '{"value": 1}', f'{{"value": {10**400}}}', "a number that a float cannot hold"),
        ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, '{"value": 2}', '{"value": 1}', "must be >= 2"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, '{"value": 1}', '{"value": 3}', "several of the allowed forms fit"),
        ({"anyOf": [True, {"type": "null"}]}, '{"value": 1}', None, ""),
        ({"anyOf": [{"minimum": 5}, {"type": "string"}]}, '{"value": "a"}', '{"value": 1}', "must be >= 5"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, '{"value": "a"}', '{"value": 1.5}', "expected string or integer, got number"),
        ({"properties": {"a": {"type": "integer"}}}, '{"value": 1}', '{"value": {"a": "1"}}', "expected integer, got string"),
        ({"items": {"type": "integer"}}, '{"value": 1}', '{"value": ["1"]}', "expected integer, got string"),
        ({"prefixItems": [{"type": "integer"}]}, '{"value": [1, "a"]}', '{"value": ["a"]}', "expected integer, got string"),
        ({"additionalProperties": {"type": "integer"}}, '{"value": {"a": 1}}', '{"value": {"a": "1"}}', "expected integer, got string"),
        ({"type": "object", "required": ["b"]}, '{"value": {"b": 1}}', '{"value": {"a": 1}}', "a required field is missing"),
        ({"$ref": "#/$defs/a~1b"}, '{"value": 1}', '{"value": "1"}', "expected integer, got string"),
    ],
    ids=str,
)  # fmt: skip
def test_a_keyword_is_checked(schema: Any, good: str, bad: str | None, error: str) -> None:
    whole = {"type": "object", "properties": {"value": schema}, "$defs": {"a/b": {"type": "integer"}}}
    assert StructuredParser(whole).parse(good).ok
    if bad is not None:
        (found,) = errors(whole, bad)
        assert found.startswith(f"{error} @ $.value")


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"minimun": 3}, "the keyword 'minimun' is not supported"),
        ({"properties": {"a": {"required_": []}}}, "the keyword 'required_' is not supported"),
        ({"type": "text"}, "'text' is not a type"),
        ({"$ref": "#/$defs/a"}, "leads nowhere"),
        ({"$ref": "other.json"}, "leads nowhere"),
        ({"pattern": "("}, "not a regular expression"),
        ({"properties": {"a": 5}}, "a schema is an object, not number"),
    ],
    ids=str,
)
def test_what_would_not_be_checked_is_refused(schema: dict[str, Any], cause: str) -> None:
    with pytest.raises(SchemaDefinitionError, match=cause):
        StructuredParser(schema)


def test_a_schema_may_hold_itself() -> None:
    tree = {
        "type": "object",
        "properties": {"child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "n": {"type": "integer"}},
    }
    assert StructuredParser(tree).parse('{"n": 1, "child": {"n": 2, "child": null}}').ok
    assert errors(tree, '{"n": 1, "child": {"n": "2"}}') == ["expected integer, got string @ $.child.n"]


def test_a_free_object_says_nothing_about_its_keys() -> None:
    result = StructuredParser({"type": "object"}).parse('{"a": 1}')
    assert (result.value, result.unknown) == ({"a": 1}, ())
    assert errors({"type": "object", "additionalProperties": False}, '{"a": 1}') == ["unknown field @ $.a"]
