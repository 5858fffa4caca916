"""Sinks that write files: a log in JSON Lines, captures for the conformance kit, and Parquet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

from crosswalk import ChatResponse, CrosswalkError
from crosswalk.commands import written
from crosswalk.records import append_line, record_line
from crosswalk.service import SECRET
from crosswalk.types import Cost, Provenance
from crosswalk.types.json import dump_json, load_json
from crosswalk_observe.exchange import ObservedExchange

if TYPE_CHECKING:
    from crosswalk_observe.exchange import SDKCall, WatchedExchange


# ----------------------------------------------------------------------------------- sinks
# The sinks of a watcher: called in turn, and never able to harm the watcher or the program.


Sink: TypeAlias = Callable[[ObservedExchange], object]
"""A consumer of records. :meth:`Watcher.close` calls its ``close()`` if it has one.

It may also have ``started(exchange)``, called in the thread of the request when a call begins. It returns an
:class:`~crosswalk_observe.exchange.Operation`, which gets the record of the call's last attempt instead of the sink.

A sink with ``needs = "facts"`` needs counts, finish reason, model and times. If all sinks of a watcher say so, records are
made without what only a copy needs: ``url``, headers, bodies, and the ``attempts`` of the response are empty.
"""


class Sinks:
    """Calls sinks, and reports their errors.

    Args:
        sinks: the sinks, in the order in which they are called.
        report: logs an error, with a description of the work that failed.

    Attributes:
        need_facts_alone: whether no sink needs the content of a record.
    """

    def __init__(self, sinks: tuple[Sink, ...], report: Callable[[str, BaseException], None]) -> None:
        self._sinks = sinks
        self._report = report
        self.need_facts_alone = all(getattr(sink, "needs", "everything") == "facts" for sink in sinks)

    def begin(self, call: SDKCall, exchange: WatchedExchange) -> None:
        """Begin the operations of *call* with its first *exchange*."""
        for position, sink in enumerate(self._sinks):
            begin_operation = getattr(sink, "started", None)
            if begin_operation is not None:
                try:
                    call.operations[position] = begin_operation(exchange)
                    call.sinks.add(position)
                except Exception as error:
                    self._report(_name(sink), error)

    def end(self, calls: list[SDKCall]) -> None:
        """End the operations of *calls*, each with the record of its last attempt."""
        steps = [
            (self._sinks[position], operation.end, (call.record,))
            for call in calls
            for position, operation in call.operations.items()
        ]
        for call in calls:
            call.record = None
            call.operations.clear()  # the context of a later request may hold the call
        self._call_each(steps)

    def take(self, record: ObservedExchange, call: SDKCall | None) -> None:
        """Pass *record* to the sinks that have not begun an operation for *call*."""
        self._call_each(
            [
                (sink, sink, (record,))
                for position, sink in enumerate(self._sinks)
                if call is None or position not in call.sinks
            ]
        )

    def close(self) -> None:
        """Close the sinks that can be closed."""
        closing = [(sink, getattr(sink, "close", None)) for sink in self._sinks]
        self._call_each([(sink, close, ()) for sink, close in closing if close is not None], "closing ")

    def _call_each(
        self, steps: list[tuple[Sink, Callable[..., object], tuple[Any, ...]]], doing: str = ""
    ) -> None:
        """Call the functions of the sinks in *steps*. An interruption goes on when all have been called."""
        interruption: BaseException | None = None
        for sink, function, arguments in steps:
            try:
                function(*arguments)
            except (Exception, SystemExit) as error:
                self._report(f"{doing}{_name(sink)}", error)
            except BaseException as error:
                interruption = error
        if interruption is not None:
            raise interruption


def _name(sink: Sink) -> str:
    return getattr(sink, "__qualname__", type(sink).__qualname__)


# ------------------------------------------------------------------------------------- log
# Sinks that write files: a log in JSON Lines, and captures for the conformance kit.


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
    first_chunk_time = record.time_to_first_chunk
    description: dict[str, Any] = {
        "method": record.method,
        "url": record.url,
        "model": record.request.model,
        "options": dict(record.request.options),
        "began": record.began.isoformat().replace("+00:00", "Z"),
        "duration_seconds": record.duration.total_seconds(),
        "time_to_first_chunk_seconds": None if first_chunk_time is None else first_chunk_time.total_seconds(),
        "is_stream": record.is_stream,
        "is_complete": record.is_complete,
        "is_cancelled": record.is_cancelled,
    }
    optional_fields = {
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "session": record.labels.session,
        "user": record.labels.user,
        "tags": list(record.labels.tags),
        "resend_count": record.resend_count,
        "cost": None if record.cost is None else f"{record.cost.amount:f}",
        "cost_source": None if record.cost is None else _cost_source(record.cost),
    }
    description |= {name: value for name, value in optional_fields.items() if value}
    if include_request and record.request.body is not None:
        description["request"] = load_json(record.request.body)
    return description


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
        if recording.holds_key or SECRET.encode() in record.body + request:
            raise CrosswalkError("it holds what looks like a key, and is not recorded")
        case = f"{record.provider}_{record.id[:12]}" + "_stream" * record.is_stream
        store_capture(self._folder, case, recording, provider=record.provider)


# --------------------------------------------------------------------------------- parquet
# A log of exchanges in Parquet: the bytes of answers for ``crosswalk batch``, and columns to query.


_MIB: Final = 2**20


class ParquetLog:
    """A sink that collects exchanges and writes them as Parquet files, each completely or not at all.

    The columns ``record_id``, ``provider``, ``status``, ``body``, ``time``, ``latency_seconds``, ``requested_model``,
    ``cost``, ``cost_source``, ``tags`` (JSON text), ``session``, ``user`` and ``trace_id`` are the input of ``crosswalk
    batch``. The others are ``span_id``, ``method``, ``url``, ``options`` (JSON text), ``time_to_first_chunk_seconds``,
    ``resend_count``, ``is_stream``, ``is_complete``, ``is_cancelled``, and ``response``, with the columns of
    ``crosswalk_batch.schema()``, or null if the answer could not be read. This needs the extra ``batch``.

    Args:
        folder: the folder of the files, created if it does not exist.
        part_records: the number of exchanges in a file.
        part_bytes: the bytes of answers in a file.
        part_seconds: the maximum age of a file in seconds, checked when the next exchange arrives and at the end.
        include_request: add a column ``request`` with the body of the request as JSON text.
        clock: returns monotonic seconds.

    Raises:
        CrosswalkError: pyarrow is not installed.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        part_records: int = 10_000,
        part_bytes: int = 32 * _MIB,
        part_seconds: float = 300.0,
        include_request: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            import crosswalk_batch.columns
        except ImportError:
            raise CrosswalkError("this needs pyarrow: pip install 'crosswalk-llm[batch]'") from None
        self._arrow = crosswalk_batch.columns
        self._amount = crosswalk_batch.columns.amount
        self._folder = Path(folder)
        self._part_records = part_records
        self._part_bytes = part_bytes
        self._part_seconds = part_seconds
        self._include_request = include_request
        self._clock = clock
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._rows: list[dict[str, Any]] = []
        self._responses: list[ChatResponse | None] = []
        self._pending_bytes = 0
        self._start_time = self._clock()

    def __call__(self, record: ObservedExchange) -> None:
        """Add *record*, and write a file if one is due.

        Raises:
            OSError: the file cannot be written. Its records are retried later, until they reach twice the limits of a file.
        """
        if not record.gives_answer:
            return
        if self._process != os.getpid():
            self._renew()  # the parent process writes its own records
        row = self._row(record)
        self._rows.append(row)
        self._responses.append(record.response)
        self._pending_bytes += len(record.body) + len(row.get("request") or "")
        is_old = self._clock() - self._start_time >= self._part_seconds
        if is_old or len(self._rows) >= self._part_records or self._pending_bytes >= self._part_bytes:
            self.flush()

    def flush(self) -> None:
        """Write the collected records to a file.

        Raises:
            OSError: the file cannot be written, as above.
        """
        if not self._rows or self._process != os.getpid():
            return
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex[:12]}.parquet"
        try:
            with written(self._folder / name, replace=False) as out:
                out.write(self._part())
        except OSError:
            if len(self._rows) >= 2 * self._part_records or self._pending_bytes >= 2 * self._part_bytes:
                self._renew()
            raise
        self._renew()

    def close(self) -> None:
        """Call :meth:`flush`, at the end."""
        self.flush()

    def _row(self, record: ObservedExchange) -> dict[str, Any]:
        description = describe_record(record)
        row = {
            **description,
            "record_id": record.id,
            "provider": record.provider,
            "status": record.status,
            "body": record.body,
            "options": dump_json(description["options"]).decode(),
            "time": record.began,
            "latency_seconds": description["duration_seconds"],
            "requested_model": record.request.model,
            "tags": dump_json(description["tags"]).decode() if record.labels.tags else None,
            "cost": None if record.cost is None else self._amount(record.cost.amount),
        }
        request = record.request.body
        if self._include_request and request is not None:
            row["request"] = request.decode()
        return row

    def _part(self) -> Any:
        """Return the rows as a Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(self._rows, _columns(self._include_request))
        table = table.append_column("response", self._structs())
        buffer = pa.BufferOutputStream()
        pq.write_table(
            table.replace_schema_metadata(self._arrow.schema().metadata), buffer, compression="zstd"
        )
        return buffer.getvalue()

    def _structs(self) -> Any:
        """Return the responses, one for each row, or null."""
        import pyarrow as pa

        responses = [response for response in self._responses if response is not None]
        columns = self._arrow.to_arrow(responses)
        arrays = [
            pa.concat_arrays(column.chunks or [pa.array([], column.type)]) for column in columns.columns
        ]
        structs = pa.StructArray.from_arrays(arrays, fields=list(columns.schema))
        row_numbers = iter(range(len(responses)))
        return structs.take(
            pa.array([None if one is None else next(row_numbers) for one in self._responses], pa.int64())
        )


def _columns(include_request: bool) -> Any:
    import pyarrow as pa

    from crosswalk_batch.batches import INPUT

    omitted_columns = {"line", "fault", "server", "source", "number", "team", "tier", "parent"}
    omitted_columns |= {"vendor", "vendor_source", "logged_vendor"}
    if not include_request:
        omitted_columns.add("request")
    flag_type = pa.bool_()
    own_fields = [
        ("span_id", pa.string()),
        ("method", pa.string()),
        ("url", pa.string()),
        ("options", pa.string()),
        ("time_to_first_chunk_seconds", pa.float64()),
        ("resend_count", pa.int64()),
        ("is_stream", flag_type),
        ("is_complete", flag_type),
        ("is_cancelled", flag_type),
    ]
    return pa.schema([*(field for field in INPUT if field.name not in omitted_columns), *own_fields])
