"""Columns without the messages of users and models, or with checksums instead."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import pyarrow as pa

Content = Literal["keep", "drop", "hash"]

_Change = Callable[[Any], Any]


def without_content(table: pa.Table, content: Content) -> pa.Table:
    """Return *table*, of responses or rejects, without content.

    Args:
        table: the columns of :func:`crosswalk_batch.responses_schema` or :func:`crosswalk_batch.rejects_schema`.
        content: ``keep`` changes nothing, ``drop`` removes content, and ``hash`` replaces each text by its SHA-256, so that
            equal texts can be found. Both remove structured content: segments, log probabilities, extensions, and the
            provider's bytes.
    """
    if content == "keep":
        return table
    changes = _changes(_hashed if content == "hash" else _dropped)
    for index, field in enumerate(table.schema):
        if field.name in changes:
            values = [changes[field.name](value) for value in table.column(index).to_pylist()]
            table = table.set_column(index, field, pa.array(values, field.type))
    return table


def _dropped(value: Any) -> Any:
    return None


def _hashed(value: Any) -> Any:
    """Return the checksum of a text or of bytes, in the same type."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest().encode()
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()


def _changes(change: _Change) -> Mapping[str, _Change]:
    """Return the change for each column that holds content."""

    def message(value: Any) -> Any:
        if not isinstance(value, dict):  # of a reject: why it is one, which quotes nothing
            return value
        calls = value["tool_calls"]
        changed = calls and [{**call, "arguments": change(call["arguments"]) or ""} for call in calls]
        return {**value, "content": change(value["content"]), "content_parts": None, "tool_calls": changed}

    def partial(value: dict[str, Any] | None) -> dict[str, Any] | None:
        return value and {
            name: answer[name](item) if name in answer else item for name, item in value.items()
        }

    answer: dict[str, _Change] = {
        "message": message,
        "metadata": lambda value: {**value, "extensions": None},
        "refusal": change,
        "attempts": lambda attempts: attempts and [{**one, "extra": None} for one in attempts],
        **dict.fromkeys(_FORMS, _dropped),
    }
    return {
        **answer,
        **dict.fromkeys(("request", "tags", "error_message", "body", "line"), change),
        "partial": partial,
    }


_FORMS: Final = ("segments", "alternatives", "logprobs", "content_filter_results", "raw_events")
"""Columns with structured content, for which a checksum is not useful."""
