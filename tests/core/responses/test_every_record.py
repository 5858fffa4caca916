"""Every record of the package, field by field: present, null, absent, of a wrong type, and next to unknown
members.

``every_record.jsonl`` holds for each record a document with every field set, and for each of its fields the values
that it refuses, a letter each. It is not made anew when a class changes: change its line by hand.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from crosswalk import json_schema, responses
from crosswalk.types.json import dump_json, load_json

WRONG: dict[str, Any] = {
    "n": None, "b": True, "i": 7, "f": 1.5, "s": "\u0001", "a": [[]], "o": {"": 0},
}  # fmt: skip
"""A value of each JSON type, by the letter under which the file has it; ``m`` stands for a missing member."""
UNKNOWN = {"zz", "a b"}

LINES = Path(__file__).with_name("every_record.jsonl").read_bytes().splitlines()
TEXTS = {orjson.loads(line)["record"]: line.partition(b',"json":')[2][:-1] for line in LINES}
REFUSED = {orjson.loads(line)["record"]: orjson.loads(line)["refused"] for line in LINES}


def _subclasses(cls: type[responses.ResponsesRecord]) -> Iterator[type[responses.ResponsesRecord]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def _records() -> dict[str, type[responses.ResponsesRecord]]:
    for module in pkgutil.walk_packages(responses.__path__, "crosswalk.responses."):
        importlib.import_module(module.name)
    return {
        each.__name__: each
        for each in _subclasses(responses.ResponsesRecord)
        if getattr(importlib.import_module(each.__module__), each.__name__, None) is each
        and each.__module__.startswith("crosswalk.responses.")
    }


RECORDS = _records()


def parse(name: str, data: Any) -> responses.ResponsesRecord:
    return responses.parse(RECORDS[name], data, unknown="keep")


def test_the_file_has_every_record() -> None:
    assert RECORDS.keys() == TEXTS.keys()


@pytest.mark.untraced
@pytest.mark.parametrize("name", TEXTS)
def test_a_record_with_every_field_and_unknown_members_is_written_as_it_was_read(name: str) -> None:
    record = parse(name, TEXTS[name])
    assert record.extensions.keys() == UNKNOWN
    assert responses.to_json(record) == TEXTS[name]
    assert dump_json(responses.to_dict(record)) == TEXTS[name]
    assert parse(name, responses.to_dict(record)) == record


@pytest.mark.untraced
@pytest.mark.parametrize("name", TEXTS)
def test_null_and_absent_members_are_written_as_they_were_read(name: str) -> None:
    full = load_json(TEXTS[name])
    for key, refused in REFUSED[name].items():
        if "n" not in refused:
            sent = full | {key: None}
            assert responses.to_json(parse(name, sent)) == dump_json(sent), key
        if "m" not in refused:
            sent = {other: value for other, value in full.items() if other != key}
            assert responses.to_json(parse(name, sent)) == dump_json(sent), key


@pytest.mark.parametrize("name", TEXTS)
def test_the_schema_of_a_record_has_every_field_and_allows_what_is_read(name: str) -> None:
    schema, full = json_schema(RECORDS[name]), load_json(TEXTS[name])
    assert full.keys() - schema["properties"].keys() == UNKNOWN
    validator = Draft202012Validator(schema)
    assert validator.is_valid(full)
    for key, refused in REFUSED[name].items():
        for letter in WRONG.keys() - set(refused):
            assert validator.is_valid(full | {key: WRONG[letter]}), (key, letter)
    assert not validator.is_valid([])


@pytest.mark.untraced
@pytest.mark.parametrize("name", TEXTS)
def test_a_wrong_value_is_refused_with_its_path(name: str) -> None:
    full = load_json(TEXTS[name])
    for key, refused in REFUSED[name].items():
        sent: dict[str, dict[str, Any]] = {letter: full | {key: value} for letter, value in WRONG.items()}
        sent["m"] = {other: value for other, value in full.items() if other != key}
        found = ""
        for letter, data in sent.items():
            try:
                responses.parse(RECORDS[name], data)
            except responses.ResponsesParseError as error:
                found += letter
                path = f"$.{key}"
                assert error.path == path or error.path.startswith((f"{path}.", f"{path}["))
        assert found == refused, key
