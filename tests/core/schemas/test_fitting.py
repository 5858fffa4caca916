"""A schema in the form of one server: kept, said in other words, told in a description, or impossible."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk.schemas.fitting import (
    FittedSchema,
    SchemaRules,
    default_rules,
    fit_schema,
    read_rules,
    rules_in,
)

ALL = {"required": "all", "is_closed": True, "is_ref_alone": True}
TEXT = {"type": "string"}


def fitted(
    schema: dict[str, Any], null_is_absent: bool = True, is_answer: bool = True, **rules: Any
) -> FittedSchema:
    return fit_schema(schema, SchemaRules(**rules), null_is_absent=null_is_absent, is_answer=is_answer)


def one(schema: Any, **rules: Any) -> FittedSchema:
    """The *schema* of one required key, fitted."""
    return fitted(
        {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False},
        **rules,
    )


def test_whole_numbers_keep_every_digit() -> None:
    """Also where they are told in a description."""
    schema = {"type": "integer", "maximum": 10**30}
    assert sent(schema) == {**schema, "description": "{maximum: 1000000000000000000000000000000}"}


def sent(schema: Any, **rules: Any) -> Any:
    result = one(schema, **rules)
    assert result.impossible == ()
    return result.schema["properties"]["a"]


@pytest.mark.parametrize(
    ("schema", "rules", "wanted"),
    [
        # what is taken, moved, unknown
        ({"minimum": 1, **TEXT}, {"takes": ["minimum"]}, {"minimum": 1, **TEXT}),
        ({"minimum": 1, **TEXT}, {"moves": ["minimum"]}, {**TEXT, "description": "{minimum: 1}"}),
        ({"minimum": 1, **TEXT}, {}, {"minimum": 1, **TEXT, "description": "{minimum: 1}"}),
        ({"description": "Age.", "minimum": 1}, {"moves": ["minimum"]}, {"description": "Age. {minimum: 1}"}),
        ({"minItems": 3}, {"takes": ["minItems"], "at_most": {"minItems": 1}}, {"minItems": 1, "description": "{minItems: 3}"}),
        ({"maxItems": 3}, {"takes": ["maxItems"], "at_most": {"maxItems": 2}}, {"description": "{maxItems: 3}"}),
        ({"maxItems": 3}, {"takes": ["maxItems"], "at_most": {"maxItems": 3}}, {"maxItems": 3}),
        (
            {"type": "number", "minimum": 1},
            {"takes": ["minimum"], "integers_only": ["minimum"]},
            {"type": "number", "description": "{minimum: 1}"},
        ),
        ({"type": "integer", "minimum": 1}, {"takes": ["minimum"], "integers_only": ["minimum"]}, {"type": "integer", "minimum": 1}),
        # annotations
        ({**TEXT, "title": "A", "$schema": "x", "default": None}, {}, TEXT),
        ({**TEXT, "title": "A", "x-order": 1}, {"takes": ["title"]}, {**TEXT, "title": "A"}),
        ({**TEXT, "examples": ["b"]}, {}, {**TEXT, "description": '{examples: ["b"]}'}),
        # the same in other words
        ({"const": 1}, {}, {"enum": [1]}),
        ({"const": 1}, {"takes": ["const"]}, {"const": 1}),
        ({"oneOf": [TEXT, {"type": "null"}]}, {}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"allOf": [TEXT], "description": "A."}, {}, {**TEXT, "description": "A."}),
        ({"allOf": [TEXT, {"minLength": 1}]}, {"takes": ["allOf", "minLength"]}, {"allOf": [TEXT, {"minLength": 1}]}),
        (True, {}, {}),
        (
            {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 5, "maximum": 3},
            {"takes": ["minimum", "maximum"], "moves": ["exclusiveMinimum", "exclusiveMaximum"]},
            {"type": "integer", "minimum": 2, "maximum": 3},
        ),
        (
            {"type": "number", "exclusiveMinimum": 1},
            {"takes": ["minimum"], "moves": ["exclusiveMinimum"]},
            {"type": "number", "minimum": 1, "description": "{exclusiveMinimum: 1}"},
        ),
        ({"exclusiveMinimum": 1}, {"moves": ["minimum", "exclusiveMinimum"]}, {"description": "{exclusiveMinimum: 1}"}),
        ({"pattern": r"^\d[\w.]\.$"}, {"takes": ["pattern"], "patterns_without": ["classes"]}, {"pattern": r"^[0-9][A-Za-z0-9_.]\.$"}),
        ({"pattern": r"^\S$"}, {"takes": ["pattern"], "patterns_without": ["classes"]}, {"description": '{pattern: "^\\\\S$"}'}),
        # patterns
        ({"pattern": "^a$"}, {"takes": ["pattern"], "patterns_without": ["unanchored"]}, {"pattern": "^a$"}),
        ({"pattern": "^(a|b)$"}, {"takes": ["pattern"], "patterns_without": ["unanchored"]}, {"pattern": "^(a|b)$"}),
        ({"pattern": "^a|b$"}, {"takes": ["pattern"], "patterns_without": ["unanchored"]}, {"description": '{pattern: "^a|b$"}'}),
        ({"pattern": "a$"}, {"takes": ["pattern"], "patterns_without": ["unanchored"]}, {"description": '{pattern: "a$"}'}),
        ({"pattern": r"^a\$"}, {"takes": ["pattern"], "patterns_without": ["unanchored"]}, {"description": '{pattern: "^a\\\\$"}'}),
        ({"pattern": "[^a]"}, {"takes": ["pattern"], "patterns_without": ["anchors"]}, {"pattern": "[^a]"}),
        ({"pattern": "^a"}, {"takes": ["pattern"], "patterns_without": ["anchors"]}, {"description": '{pattern: "^a"}'}),
        ({"format": "date", "pattern": "a"}, {"takes": ["format", "pattern"], "is_alone": True}, {"pattern": "a", "description": '{format: "date"}'}),
        ({"format": "date", "minLength": 1}, {"takes": ["format", "minLength"], "is_alone": True}, {"format": "date", "description": "{minLength: 1}"}),
        (
            {"format": "x", "minLength": 1},
            {"takes": ["format", "minLength"], "formats": ("date",), "is_alone": True},
            {"minLength": 1, "description": '{format: "x"}'},
        ),
        # arrays of fixed positions
        (
            {"prefixItems": [TEXT, {"type": "null"}], "maxItems": 2},
            {"takes": ["maxItems"]},
            {"maxItems": 2, "items": {"anyOf": [TEXT, {"type": "null"}]}, "description": '{prefixItems: [{"type":"string"},{"type":"null"}]}'},
        ),
        (
            {"prefixItems": [TEXT], "items": False},
            {"takes": ["maxItems"]},
            {"items": TEXT, "maxItems": 1, "description": '{prefixItems: [{"type":"string"}]}'},
        ),
        ({"prefixItems": [TEXT]}, {}, {"description": '{prefixItems: [{"type":"string"}]}'}),
        ({"prefixItems": [TEXT]}, {"takes": ["prefixItems"]}, {"prefixItems": [TEXT]}),
        # objects
        (
            {"type": "object", "patternProperties": {"^a": TEXT}, "additionalProperties": False},
            {},
            {"type": "object", "additionalProperties": True, "description": '{patternProperties: {"^a":{"type":"string"}}}'},
        ),
        ({"type": "object", "additionalProperties": {"const": 1}}, {}, {"type": "object", "additionalProperties": {"enum": [1]}}),
        ({"properties": {}}, ALL, {"type": "object", "properties": {}, "additionalProperties": False, "required": []}),
        (
            {"properties": {"b": {"type": ["string", "null"]}, "c": {"anyOf": [TEXT]}, "d": {"$ref": "#/$defs/D"}}},
            ALL,
            {
                "type": "object",
                "properties": {
                    "b": {"type": ["string", "null"]},
                    "c": {"anyOf": [TEXT, {"type": "null"}]},
                    "d": {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "null"}]},
                },
                "additionalProperties": False,
                "required": ["b", "c", "d"],
            },
        ),
        (
            {"type": "object", "properties": {"b": TEXT, "c": TEXT}},
            {"required": "one"},
            {"type": "object", "properties": {"b": {"anyOf": [TEXT, {"type": "null"}]}, "c": TEXT}, "required": ["b"]},
        ),
        # references
        ({"$ref": "#/$defs/A", "description": "A."}, {"is_ref_alone": True}, {"anyOf": [{"$ref": "#/$defs/A"}], "description": "A."}),
        ({"$ref": "#/$defs/A", "title": "A"}, {"is_ref_alone": True}, {"$ref": "#/$defs/A"}),
        ({"$ref": "#/$defs/A", "description": "A."}, {}, {"$ref": "#/$defs/A", "description": "A."}),
        # one type in each schema
        ({"enum": ["a", "b"]}, {"has_one_type": True}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"enum": ["a", 1], "type": ["string", "integer"]},
            {"has_one_type": True},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]},
        ),
        (
            {"type": ["string", "null"], "description": "A.", "pattern": "a"},
            {"has_one_type": True, "takes": ["pattern"]},
            {"description": "A.", "anyOf": [{"type": "string", "pattern": "a"}, {"type": "null", "pattern": "a"}]},
        ),
        ({"type": "object", "anyOf": [TEXT], "default": 1}, {"has_one_type": True, "takes": ["default"]}, {"anyOf": [TEXT], "description": "{default: 1}"}),
        ({**TEXT, "default": "b"}, {"has_one_type": True, "takes": ["default"]}, {**TEXT, "default": "b"}),
        (
            {"type": "object", "patternProperties": {}},
            {"has_one_type": True, "takes": ["additionalProperties"]},
            {"type": "object", "additionalProperties": {}, "description": "{patternProperties: {}}"},
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_schema_is_said_in_the_words_of_the_server(schema: Any, rules: dict[str, Any], wanted: Any) -> None:
    if wanted == {"type": "object", "additionalProperties": {}, "description": "{patternProperties: {}}"}:
        assert one(schema, **rules).impossible == ("any value at $.a.*",)
        return
    assert sent(schema, **rules) == wanted


@pytest.mark.parametrize(
    ("schema", "rules", "what"),
    [
        (False, {}, "no value at $.a"),
        ({"allOf": [TEXT, TEXT]}, {}, "allOf at $.a"),
        ({"allOf": [TEXT], "type": "string"}, {}, "allOf at $.a"),
        ({"oneOf": [TEXT], "anyOf": [TEXT]}, {}, "oneOf beside anyOf at $.a"),
        ({"$ref": "https://a.example/b.json"}, {}, "a reference to another document at $.a"),
        ({}, {"is_closed": True}, "any value at $.a"),
        ({}, {"has_one_type": True}, "any value at $.a"),
        ({"type": "array"}, {"is_closed": True}, "an array of any items at $.a"),
        ({"type": "object"}, {"is_closed": True}, "an object of any keys at $.a"),
        ({"type": "object", "additionalProperties": TEXT}, {"is_closed": True}, "a map at $.a"),
        ({"type": "object", "patternProperties": {}}, {"is_closed": True}, "patternProperties at $.a"),
        ({"type": "object", "properties": {"b": TEXT}, "required": ["c"]}, {"is_closed": True}, "a required key without a schema at $.a"),
        ({"type": "object"}, {"required": "one"}, "an object that requires no key at $.a"),
        ({"type": "object", "properties": {"b": TEXT}}, {**ALL, "null_is_absent": False}, "an optional key at $.a.b"),
        (TEXT, {"most": {"properties": 0}}, "properties 1 (at most 0) at $"),
        ({"enum": [1, 2]}, {"most": {"enum": 1}}, "enum 2 (at most 1) at $"),
        ({"type": ["string", "null"]}, {"most": {"unions": 0}}, "unions 1 (at most 0) at $"),
        ({"type": "object", "properties": {"b": TEXT}}, {"most": {"depth": 1}}, "depth 2 (at most 1) at $"),
        ({"type": "object", "properties": {"b": TEXT}}, {"most": {"optional": 0}}, "optional 1 (at most 0) at $"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_server_cannot_take_is_named_with_its_place(
    schema: Any, rules: dict[str, Any], what: str
) -> None:
    assert what in one(schema, **rules).impossible


TREE: dict[str, Any] = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"name": TEXT, "below": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["name", "below"],
        }
    },
}


def test_a_root_that_refers_is_written_out() -> None:
    result = fitted(TREE)
    chain = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "object"}}}
    assert (fitted(chain).impossible, fitted(chain).schema["type"]) == ((), "object")
    assert (result.impossible, result.is_object) == ((), True)
    assert result.schema["properties"]["name"] == TEXT
    for root in (
        {"$ref": "#"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"$ref": "#/$defs/B"},
    ):
        assert fitted(root).impossible == ("a root that is no object at $",)
    assert fitted({"type": "array"}, any_root=True).impossible == ()
    assert fitted({"type": "array"}, any_root=True, is_answer=False).impossible == (
        "a root that is no object at $",
    )


def test_a_type_may_contain_itself_in_keys_that_are_not_required() -> None:
    assert fitted(TREE, recursion="none").impossible == ("a type that contains itself at $",)
    result = fitted(TREE, recursion="optional")
    assert result.schema["required"] == result.schema["$defs"]["Node"]["required"] == ["name"]
    assert result.moved == {"required": ("$defs.Node.below", "$.below")}
    assert result.schema["properties"]["below"]["description"] == "{required: true}"


def test_a_tool_without_parameters_is_closed() -> None:
    assert fitted({"type": "object"}, is_answer=False, **ALL).schema == {
        "type": "object", "properties": {}, "required": [], "additionalProperties": False
    }  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": {"a": {"allOf": 3}}},
        {"type": "object", "properties": {"a": {"maxItems": "many"}}},
        {"type": "object", "properties": {"a": {"pattern": 3}}},
        {"$ref": 3},
    ],
    ids=str,
)
def test_what_is_no_schema_stays_as_it_is(schema: dict[str, Any]) -> None:
    rules = {"at_most": {"maxItems": 3}, "patterns_without": ["lookaround"]}
    assert fitted(schema, **rules) == FittedSchema(schema, {}, ())


def test_a_name_keeps_the_characters_of_the_server() -> None:
    assert SchemaRules().fitting_name("Größe 1") == "Gr__e_1"
    assert SchemaRules().fitting_name("a" * 70) == "a" * 64
    assert SchemaRules(name="[a-zA-Z0-9]{1,64}").fitting_name("Größe_1") == "Gre1"
    assert SchemaRules(name="[a-z]{1,3}").fitting_name("ÄÖ") == "answer"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, r"schemas must be tables: \[\[schemas\]\]"),
        ([3], r"schemas must be tables: \[\[schemas\]\]"),
        ([{"strange": 1}], r"schemas\[0\]: there is no field 'strange'"),
        ([{"like": "none"}], r"schemas\[0\]: like: there is no earlier row 'none'"),
        ([{"answer": "prose"}], r"schemas\[0\]: answer must be one of json_schema, json_object, text"),
        ([{"takes": "minimum"}], r"schemas\[0\]: takes must be a list of texts"),
        ([{"patterns_without": ["dots"]}], r"schemas\[0\]: patterns_without has no word 'dots'"),
        ([{"most": {"depth": "10"}}], r"schemas\[0\]: most must be a table of whole numbers"),
        ([{"is_closed": 1}], r"schemas\[0\]: is_closed must be bool"),
        ([{"checked": "today"}], r"schemas\[0\]: checked must be date"),
        ([{"name": ".*"}], r"schemas\[0\]: name must be a class of characters"),
    ],
)
def test_a_row_that_means_nothing_is_an_error_with_its_place(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_rules(rows)


def test_a_row_is_like_another() -> None:
    openai, own, other = read_rules(
        [
            {"like": "crosswalk_openai:models/openai.toml", "id": "a", "models": ["m*"]},
            {"id": "b", "takes": ["const"], "most": {"depth": 3}},
            {"like": "b", "is_closed": True},
        ]
    )
    assert (openai.id, openai.strict, openai.models) == ("a", "lifts", ("m*",))
    assert (own.id, own.is_closed, other.is_closed, other.takes, other.most) == (
        "b",
        False,
        True,
        ("const",),
        {"depth": 3},
    )


def test_the_default_of_a_file() -> None:
    place = "crosswalk_openai:models/hosts.toml"
    assert {each.providers for each in rules_in(place)} >= {("fireworks",), ("sglang",)}
    assert default_rules(place, "sglang").is_alone
    assert default_rules(place, "nobody").id == ""
