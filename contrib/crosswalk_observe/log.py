"""A log of exchanges, a line of JSON each, as ``crosswalk batch``, ``normalize`` and ``diff`` read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosswalk.records import append_line, record_line
from crosswalk.types.json import load_json
from crosswalk_observe.record import ObservedExchange

__all__ = ["JSONLinesLog"]


class JSONLinesLog:
    """A sink that appends a line to *path* for each exchange; see :func:`crosswalk.records.record_line`.

    Several processes may write to one file, and it can be moved away at any time.

    Args:
        path: the file; it is made where it is missing, and so is its folder.
        include_request: write the body of the request too, as ``request``: what was asked is as private as the answer.
        include_response: write the canonical response too.
    """

    def __init__(
        self, path: Path | str, *, include_request: bool = False, include_response: bool = False
    ) -> None:
        self._path = Path(path)
        self._include_request = include_request
        self._include_response = include_response

    def __call__(self, record: ObservedExchange) -> None:
        """Write *record*, unless it is of something else than an answer.

        Raises:
            OSError: it cannot be written, for example on a full disk. What was written of the line is one of its own.
        """
        if not record.gives_answer:
            return
        line = record_line(
            record.body,
            status=record.status,
            provider=record.provider,
            id=record.id,
            response=record.response if self._include_response else None,
            more=said_of(record, include_request=self._include_request),
        )
        self._path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self._path, line)


def said_of(record: ObservedExchange, *, include_request: bool = False) -> dict[str, Any]:
    """What a log says of *record* beside its answer, as plain JSON."""
    first = record.time_to_first_chunk
    said: dict[str, Any] = {
        "method": record.method,
        "url": record.url,
        "model": record.request.model,
        "options": dict(record.request.options),
        "began": record.began.isoformat().replace("+00:00", "Z"),
        "duration_seconds": record.duration.total_seconds(),
        "time_to_first_chunk_seconds": None if first is None else first.total_seconds(),
        "is_stream": record.is_stream,
        "is_complete": record.is_complete,
        "is_cancelled": record.is_cancelled,
    }
    more = {
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "session": record.labels.session,
        "user": record.labels.user,
        "tags": list(record.labels.tags),
        "resend_count": record.resend_count,
    }
    said |= {name: value for name, value in more.items() if value}
    if include_request and record.request.body is not None:
        said["request"] = load_json(record.request.body)
    return said
