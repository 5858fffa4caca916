"""Every canonical type with every field set: its JSON byte for byte, and each wrong leaf named with its path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

import crosswalk.types
from crosswalk.codec import from_json, to_json
from crosswalk.codec.layout import CANONICAL
from crosswalk.errors import CanonicalJSONError
from crosswalk.types import Alternative, ResponseMetadata
from strategies import unfolded

HERE = Path(__file__).parent
PREFIX, SUFFIX = b'{"type":"', b"}"
DOCUMENTS = [
    (
        getattr(crosswalk.types, line.split(b'"')[3].decode()),
        line.partition(b'"document":')[2].removesuffix(b"}"),
    )
    for line in (HERE / "every_field.jsonl").read_bytes().splitlines()
]
REFUSALS = [orjson.loads(line) for line in (HERE / "refusals.jsonl").read_bytes().splitlines()]
JUNK = {
    "null": None,
    "boolean": True,
    "integer": 7,
    "number": 0.5,
    "string": "?",
    "array": [0],
    "object": {"?": 0},
}
every_document = pytest.mark.parametrize(
    ("cls", "document"), DOCUMENTS, ids=[cls.__name__ for cls, _ in DOCUMENTS]
)


def document_of(cls: type, role: str | None) -> dict[str, Any]:
    plain = (json.loads(document) for kind, document in DOCUMENTS if kind is cls)
    return next(each for each in plain if each.get("role") == role)


def test_no_type_is_left_out() -> None:
    assert {cls for cls, _ in DOCUMENTS} == set(CANONICAL)


@every_document
def test_its_json_is_read_and_written_byte_for_byte(cls: Any, document: bytes) -> None:
    value = from_json(document, cls)
    assert to_json(value, include_raw=True) == document
    assert unfolded(from_json(to_json(value, include_raw=True), cls)) == unfolded(value)


@every_document
def test_every_field_is_set(cls: Any, document: bytes) -> None:
    """A field at its default would prove nothing."""
    value = from_json(document, cls)
    unset = {field.name for field in attrs.fields(cls) if getattr(value, field.name) == field.default}
    worked_out = {ResponseMetadata: {"completion_tokens"}, Alternative: {"unknown"}}
    alone = (
        {"data", "id", "url", "tool_calls", "tool_call_id", "is_error"}
        if cls.__name__.endswith(("Part", "Message"))
        else set()
    )
    assert unset <= alone | worked_out.get(cls, set())


@pytest.mark.untraced
@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{row['type']}-{row['role'] or ''}-{row['key']}")
def test_a_wrong_leaf_is_named_with_its_path(row: dict[str, Any]) -> None:
    """Under each key in turn each kind of JSON value, and none at all."""
    cls: Any = getattr(crosswalk.types, row["type"])
    full = document_of(cls, row["role"])
    problems: dict[str, list[str]] = {}
    for word in ("missing", *JUNK):
        changed = {key: value for key, value in full.items() if key != row["key"]}
        if word != "missing":
            changed = {**full, row["key"]: JUNK[word]}
        try:
            from_json(json.dumps(changed).encode(), cls)
        except CanonicalJSONError as error:
            problems[word] = list(error.problems)
    assert problems == row["problems"]


def test_every_key_has_its_row() -> None:
    keys = {(cls.__name__, key) for cls, document in DOCUMENTS for key in json.loads(document)}
    assert {(row["type"], row["key"]) for row in REFUSALS} == keys


@pytest.mark.parametrize("cls", {cls: None for cls, _ in DOCUMENTS})
def test_all_wrong_leaves_are_named_at_once(cls: Any) -> None:
    """A list in place of each text and number: nothing that is wrong hides another."""
    rows = [row for row in REFUSALS if row["type"] == cls.__name__]
    role = rows[0]["role"]
    wrong = {
        row["key"]: row["problems"]["object"]
        for row in rows
        if row["role"] == role and "object" in row["problems"]
    }
    wrong = {key: problems for key, problems in wrong.items() if not problems[0].endswith(" @ $")}
    hides = {"type", "format_version"} & wrong.keys()  # nothing else is looked at
    for key in hides:
        del wrong[key]
    with pytest.raises(CanonicalJSONError) as caught:
        from_json(
            json.dumps({**document_of(cls, role), **dict.fromkeys(wrong, JUNK["object"])}).encode(), cls
        )
    assert sorted(caught.value.problems) == sorted(
        problem for problems in wrong.values() for problem in problems
    )


DEEPEST = 250


@pytest.mark.parametrize("cls", [ResponseMetadata])
def test_extensions_hold_what_json_can_say(cls: Any) -> None:
    """Wide integers keep their digits, deep values their depth. Half a character is not text."""
    head, tail = b'{"provider_id":"p","model_id":"m","request_duration_seconds":0.0,"extensions":{"a":', b"}}"
    deep = b"[" * DEEPEST + b"]" * DEEPEST
    for value in (b"1208925819614629174706176", b"-123456789012345678901234567890", b"9" * 4300, deep):
        document = head + value + tail
        assert to_json(from_json(document, cls)) == document
    for value in (rb'"\ud800"', b"9" * 4301, b"[" * 100_000 + b"]" * 100_000, b"NaN", b"[" * 100_000):
        with pytest.raises(CanonicalJSONError, match="not JSON") as caught:
            from_json(head + value + tail, cls)
        assert len(caught.value.problems) == 1
