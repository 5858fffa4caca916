"""The rows of ``crosswalk report``, from the columns that ``crosswalk batch`` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.dataset as ds

from crosswalk.commands import ReportRow, UsageError
from crosswalk.types import ToolCall
from crosswalk_batch.job import REJECTS_FOLDER, RESPONSES_FOLDER
from crosswalk_batch.manifest import read_manifest

_LABELS: Final = ("session", "user", "tags", "team", "tier", "vendor_source", "logged_vendor")
_SHARED: Final = (
    *("time", "vendor", "requested_model", "status", "latency_seconds", "cost", "cost_source"),
    *_LABELS,
    *("record_id", "trace_id", "parent"),
)
_ANSWERS: Final = (*_SHARED, "model", "usage", "finish_reason", "error_kind", "metadata", "message")
_REJECTS: Final = (*_SHARED, "provider", "error", "partial")


def report_rows(folder: Path) -> Iterator[ReportRow]:
    """Yield the exchanges in the columns of *folder*.

    Raises:
        UsageError: they are stored as JSON Lines.
    """
    description, _ = read_manifest(folder)
    if description["output"]["format"] != "parquet":
        raise UsageError(f"{folder}: a report reads Parquet; it holds JSON Lines")
    for kind, names in ((RESPONSES_FOLDER, _ANSWERS), (REJECTS_FOLDER, _REJECTS)):
        # The partitions of a part follow each other, so that the spans of one trace are near each other.
        files = [
            str(file)
            for file in sorted((folder / kind).rglob("*.parquet"), key=lambda file: (file.name, file))
        ]
        if not files:
            continue
        dataset = ds.dataset(files, format="parquet")
        if missing := {*names} - {*dataset.schema.names}:
            raise UsageError(f"{folder}: a report needs the column {min(missing)}")
        for batch in dataset.to_batches(columns=list(names)):
            yield from map(_answer if kind == RESPONSES_FOLDER else _reject, _rows(batch))


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def _shared(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "time": row["time"],
        "vendor": row["vendor"],
        "model": row["requested_model"],
        "status": row["status"],
        "latency": row["latency_seconds"],
        "cost": row["cost"],
        "is_estimated": row["cost_source"] == "estimated",
        **{name: row[name] for name in _LABELS},
        "span": None if row["record_id"] is None else (row["trace_id"], row["record_id"]),
        "parent": None if row["parent"] is None else (row["trace_id"], row["parent"]),
    }


def _is_stated(row: dict[str, Any]) -> bool:
    """Whether *row* holds only what the log states, without an answer."""
    return ("message.content", "absent") in (row["metadata"]["provenance"] or ())


def _answer(row: dict[str, Any]) -> ReportRow:
    usage, metadata = row["usage"] or {}, row["metadata"]
    unsaid = {path for path, word in metadata["provenance"] or () if word in ("absent", "cut")}
    calls = row["message"]["tool_calls"] or ()
    counts: dict[str, Any] = {
        name: None if f"usage.{name}" in unsaid else usage.get(name)
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }
    facts = _shared(row)
    facts["model"] = row["model"] or facts["model"]
    has_answer = not _is_stated(row)
    return ReportRow(
        **facts,
        provider=metadata["provider_id"],
        **counts,
        has_answer=has_answer,
        finish_reason=row["finish_reason"] if has_answer else None,
        error=row["error_kind"],
        tool_calls=len(calls),
        broken_calls=sum(_is_broken(call) for call in calls),
    )


def _is_broken(call: dict[str, Any]) -> bool:
    return not ToolCall(
        call["id"], call["name"], call["arguments"], kind=call.get("kind")
    ).has_valid_arguments


def _reject(row: dict[str, Any]) -> ReportRow:
    error = "unreadable" if row["error"] == "RecordError" else row["error"]
    if row["partial"] is None:
        return ReportRow(**_shared(row), provider=row["provider"], error=error, is_unread=True)
    partial = _answer({**{name: row[name] for name in _SHARED}, **row["partial"], "error_kind": None})
    if partial.has_answer:
        return attrs.evolve(partial, error=error)
    stated = {"vendor": row["vendor"], "model": row["requested_model"], "provider": row["provider"]}
    return attrs.evolve(partial, **stated, error=error, is_unread=True, has_answer=True)
