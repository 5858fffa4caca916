"""The JSON Schema says what canonical JSON holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator

from crosswalk.codec import to_jsonable
from crosswalk.codec.layout import CANONICAL
from crosswalk.schemas.json_schema import json_schema
from crosswalk.types import ChatResponse, CitationRef, FinishReason, StreamEvent, TokenLogprob, UsageInfo
from strategies import BY_TYPE
from tries import tries

every_type = pytest.mark.parametrize("cls", sorted(CANONICAL, key=str))


@pytest.mark.sweep
@every_type
@settings(max_examples=tries(15))
@given(data=st.data())
def test_what_is_written_validates(cls: type, data: st.DataObject) -> None:
    """Everything written validates against its type's schema, raw bytes included."""
    schema = json_schema(cls)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(to_jsonable(data.draw(BY_TYPE[cls]), include_raw=True))


@every_type
def test_everything_is_titled_and_described(cls: type) -> None:
    """Every type and every key that a schema names says what it is."""
    schema = json_schema(cls)
    for part in (schema, *schema.get("$defs", {}).values()):
        assert part["title"]
        assert part["description"]
        for name, key in part.get("properties", {}).items():
            assert "description" in key or "const" in key or (part["title"], name) == ("TextPart", "text")


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, True),
        ({"x_new": 1}, True),
        ({"total_tokens": 3}, True),
        ({"prompt_tokens": "1"}, False),
        ({"prompt_tokens": 1.5}, False),
        ({"completion_tokens": None}, False),
    ],
)
def test_what_the_schema_refuses(change: dict[str, Any], valid: bool) -> None:
    """Wrong types do not validate. Further keys do."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2, **change}
    assert Draft202012Validator(json_schema(UsageInfo)).is_valid(usage) is valid


def test_schema_of_usage() -> None:
    """A schema in full: docstrings as descriptions, computed values read-only, only real needs required."""
    schema = json_schema(UsageInfo)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "UsageInfo"
    assert schema["description"].startswith("Tokens of one request")
    assert schema["required"] == ["prompt_tokens", "completion_tokens"]
    assert schema["additionalProperties"] is True
    assert schema["properties"]["total_tokens"] == {
        "type": "integer",
        "description": "Prompt and completion tokens together.",
        "readOnly": True,
    }
    cached = schema["properties"]["cached_tokens"]
    assert cached["description"].startswith("how many of the prompt tokens came from a cache; `None` when")
    assert cached.keys() == {"type", "description"}
    assert schema["$defs"].keys() == {"Cost", "Provenance", "UsageDetails"}
    assert schema["$defs"]["Cost"]["required"] == ["amount"]


def test_enums_and_tags() -> None:
    """Enums list their words, tagged types their tag, a pair its length."""
    definitions = json_schema(ChatResponse)["$defs"]
    assert definitions["FinishReason"]["enum"] == [reason.value for reason in FinishReason]
    citation = json_schema(CitationRef)
    assert citation["properties"]["type"] == {"const": "citation"}
    assert citation["required"] == ["type"]
    span = citation["properties"]["span"]
    assert (span["minItems"], span["maxItems"], span["items"]) == (2, 2, {"type": "integer"})


def test_recursive_types_refer_to_themselves() -> None:
    """A type that holds itself is under $defs as well."""
    schema = json_schema(TokenLogprob)
    assert schema["properties"]["top"]["items"] == {"$ref": "#/$defs/TokenLogprob"}
    assert schema["$defs"]["TokenLogprob"]["properties"] == schema["properties"]


def test_version_and_raw_events() -> None:
    """A response's schema knows the format version and raw events in both their forms."""
    properties = json_schema(ChatResponse)["properties"]
    assert properties["format_version"]["pattern"] == r"^(1)\.[0-9]+$"
    assert list(properties)[-2:] == ["raw_events", "format_version"]
    assert json_schema(StreamEvent)["properties"]["raw_event"].keys() == {"description"}


def test_schemas_are_fresh() -> None:
    """Changing a schema does not change the next one."""
    json_schema(UsageInfo)["properties"].clear()
    json_schema(ChatResponse)["properties"]["raw_events"]["items"].clear()
    assert json_schema(UsageInfo)["properties"]
    assert json_schema(ChatResponse)["properties"]["raw_events"]["items"]


def test_only_canonical_types_have_a_schema() -> None:
    """Anything else is a mistake in the program."""
    with pytest.raises(TypeError, match="is neither a canonical type"):
        json_schema(dict)
