"""Every document that any version has written stays readable (NFR-027, NFR-028)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from crosswalk.codec import FORMAT_VERSION, from_json, to_json, to_jsonable
from crosswalk.schemas.json_schema import json_schema
from crosswalk.types import ChatMessage, ChatResponse, ResponseDelta, StreamEvent
from strategies import unfolded

STORED = Path(__file__).parents[2] / "stored"
TYPES: dict[str, Any] = {
    "response": ChatResponse,
    "message": ChatMessage,
    "delta": ResponseDelta,
    "event": StreamEvent,
}
FILES = sorted(path for path in STORED.glob("v*/*") if path.suffix in {".json", ".jsonl"})
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")


def _documents(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return data.splitlines() if path.suffix == ".jsonl" else [data.removesuffix(b"\n")]


def _type(path: Path) -> Any:
    return TYPES[path.name.partition("-")[0]]


@every_file
def test_stored_documents_stay_readable(path: Path) -> None:
    """A stored document is read, and what was read survives being written and read again."""
    for document in _documents(path):
        value = from_json(document, _type(path))
        again = from_json(to_json(value, include_raw=True), _type(path))
        assert unfolded(again) == unfolded(value)


@every_file
def test_stored_documents_validate(path: Path) -> None:
    """A stored document, read and written by today's codec, follows today's schema."""
    for document in _documents(path):
        value = from_json(document, _type(path))
        Draft202012Validator(json_schema(_type(path))).validate(to_jsonable(value, include_raw=True))


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == f"v{FORMAT_VERSION}"], ids=lambda path: path.name
)
def test_the_current_format_has_not_moved(path: Path) -> None:
    """Today's codec writes the current version's documents byte for byte as they were stored."""
    for document in _documents(path):
        value = from_json(document, _type(path))
        indent = path.suffix == ".json"
        assert to_json(value, include_raw=True, indent=indent) == document


def test_the_current_version_has_stored_documents() -> None:
    """Users who raise the format version store documents of it."""
    assert len([path for path in FILES if path.parent.name == f"v{FORMAT_VERSION}"]) >= 8
