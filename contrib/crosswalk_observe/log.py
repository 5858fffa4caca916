"""Sinks that write files: a log in JSON Lines, and captures for the conformance kit."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crosswalk import CrosswalkError
from crosswalk.records import append_line, record_line
from crosswalk.types import Cost, Provenance
from crosswalk.types.json import load_json
from crosswalk_observe.record import ObservedExchange
from crosswalk_observe.secrets import PLACEHOLDER


class JSONLinesLog:
    """A sink that appends a line to *path* for each exchange. See :func:`crosswalk.records.record_line`.

    ``crosswalk batch``, ``normalize`` and ``diff`` read the file. Several processes may write to one file, and you can move
    the file away at any time.

    Args:
        path: the file. It is created with its folder if it does not exist.
        include_request: write the body of the request too, as ``request``. It is as private as the answer.
        include_response: write the canonical response too.
    """

    def __init__(
        self, path: Path | str, *, include_request: bool = False, include_response: bool = False
    ) -> None:
        self._path = Path(path)
        self._include_request = include_request
        self._include_response = include_response

    def __call__(self, record: ObservedExchange) -> None:
        """Write *record*, unless it is not a chat answer.

        Raises:
            OSError: the line cannot be written, for example on a full disk. A partial line stays on its own line.
        """
        if not record.gives_answer:
            return
        line = record_line(
            record.body,
            status=record.status,
            provider=record.provider,
            id=record.id,
            response=record.response if self._include_response else None,
            more=describe_record(record, include_request=self._include_request),
        )
        self._path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self._path, line)


def describe_record(record: ObservedExchange, *, include_request: bool = False) -> dict[str, Any]:
    """Return everything about *record* except its answer, as plain JSON."""
    first = record.time_to_first_chunk
    described: dict[str, Any] = {
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
    optional = {
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "session": record.labels.session,
        "user": record.labels.user,
        "tags": list(record.labels.tags),
        "resend_count": record.resend_count,
        "cost": None if record.cost is None else f"{record.cost.amount:f}",
        "cost_source": None if record.cost is None else _cost_source(record.cost),
    }
    described |= {name: value for name, value in optional.items() if value}
    if include_request and record.request.body is not None:
        described["request"] = load_json(record.request.body)
    return described


def _cost_source(cost: Cost) -> str:
    return "estimated" if cost.provenance is Provenance.DERIVED else "provider"


class CaptureFolder:
    """A sink that stores each exchange as a capture: the files of request and answer, and a line in ``MANIFEST.jsonl``.

    A case is called ``PROVIDER_ID``, or ``PROVIDER_ID_stream`` for a stream. Exchanges that repeat a credential of their
    request, or contain anything that looks like a key, are not stored, and the watcher logs that.

    Args:
        folder: the folder, created if it does not exist.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)

    def __call__(self, record: ObservedExchange) -> None:
        """Write *record*.

        Raises:
            CrosswalkError: the record contains what looks like a key.
            OSError: the files cannot be written. None of them exists then.
        """
        if record.status is None or not record.gives_answer:
            return
        from crosswalk.testing import Recording, store_capture  # the kit is slow to import

        request = record.request.body or b"null"
        recording = Recording(
            is_stream=record.is_stream,
            method=record.method,
            path=urlsplit(record.url).path,
            headers={},
            request=request,
            status=record.status,
            content_type=record.headers.get("content-type"),
            body=bytearray(record.body),
            is_complete=record.is_complete,
        )
        if recording.holds_key or PLACEHOLDER.encode() in record.body + request:
            raise CrosswalkError("it holds what looks like a key, and is not recorded")
        case = f"{record.provider}_{record.id[:12]}" + "_stream" * record.is_stream
        store_capture(self._folder, case, recording, provider=record.provider)
