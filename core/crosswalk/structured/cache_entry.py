"""The bytes of one cache entry: JSON with a format mark, a version and a checked body."""

from __future__ import annotations

from typing import Any, Final

import attrs

from crosswalk.codec.converters import shared_converter
from crosswalk.structured.cache import CachedAnswer
from crosswalk.structured.result import Violation
from crosswalk.types.json import dump_json, load_json

__all__ = ["ENTRY_FORMAT", "StoredEntry", "decode_entry", "encode_entry"]

ENTRY_FORMAT: Final = "crosswalk.answer/1"
"""Names the format and its version. An entry of another one is foreign, and so a miss."""


@attrs.frozen
class StoredEntry:
    """What is stored under one key.

    Attributes:
        key: the key, again: an entry that came under another key is not ours.
        expires_at: when it ceases to count, in seconds of the cache's clock.
        answer: the outcome.
    """

    key: str
    expires_at: float
    answer: CachedAnswer


def encode_entry(entry: StoredEntry) -> bytes | None:
    """*entry* as bytes; ``None`` where its document would not come back the same from JSON."""
    fields = {
        "format": ENTRY_FORMAT,
        "key": entry.key,
        "expires_at": entry.expires_at,
        "answer": entry.answer,
    }
    try:
        stored = dump_json(fields, default=_shallow)
    except TypeError:
        return None
    # orjson writes NaN as null, a tuple as an array: what would not come back as it was is not stored.
    again = load_json(stored)["answer"]
    is_same = [again["document"], again["candidates"]] == [entry.answer.document, [*entry.answer.candidates]]
    return stored if is_same else None


def _shallow(value: Any) -> dict[str, Any]:
    """The fields of one of our objects; what a document holds beside JSON is refused."""
    if isinstance(value, CachedAnswer | Violation):
        return attrs.asdict(value, recurse=False)
    raise TypeError


def decode_entry(stored: bytes) -> StoredEntry | None:
    """The entry of which :func:`encode_entry` made *stored*; ``None`` for any other bytes."""
    try:
        fields = load_json(stored)
        if type(fields) is not dict or fields.pop("format", None) != ENTRY_FORMAT:
            return None
        return shared_converter(forbid_extra_keys=True).structure(fields, StoredEntry)
    except Exception:  # whatever is wrong with them
        return None
