"""Columns without what people wrote and what models answered, or with checksums in its place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import pyarrow as pa

__all__ = ["Content", "without_content"]

Content = Literal["keep", "drop", "hash"]

_Change = Callable[[Any], Any]


def without_content(table: pa.Table, content: Content) -> pa.Table:
    """*table*, of responses or of rejects, without content.

    Args:
        table: the columns of :func:`crosswalk_batch.responses_schema` or :func:`crosswalk_batch.rejects_schema`.
        content: ``keep`` leaves it, ``drop`` leaves it out, ``hash`` puts the SHA-256 of each text in its place, so that
            equal texts can be found. Neither keeps what holds content in a form of its own: segments, log
            probabilities, extensions, the provider's bytes.
    """
    if content == "keep":
        return table
    changes = _changes(_hashed if content == "hash" else _dropped)
    for place, field in enumerate(table.schema):
        if field.name in changes:
            values = [changes[field.name](value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field, pa.array(values, field.type))
    return table


def _dropped(value: Any) -> Any:
    return None


def _hashed(value: Any) -> Any:
    """The checksum of a text, or of bytes, in the same type."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest().encode()
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()


def _changes(change: _Change) -> Mapping[str, _Change]:
    """What is done to the columns that hold content."""

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
"""Columns that hold content in a form that a checksum says nothing about."""
