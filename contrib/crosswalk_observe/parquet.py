"""A log of exchanges in Parquet: the bytes of answers for ``crosswalk batch``, and columns to query."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from crosswalk import ChatResponse, CrosswalkError
from crosswalk.commands import written
from crosswalk.types.json import dump_json
from crosswalk_observe.log import describe_record
from crosswalk_observe.record import ObservedExchange

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
        self._began = self._clock()

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
        is_old = self._clock() - self._began >= self._part_seconds
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
        described = describe_record(record)
        row = {
            **described,
            "record_id": record.id,
            "provider": record.provider,
            "status": record.status,
            "body": record.body,
            "options": dump_json(described["options"]).decode(),
            "time": record.began,
            "latency_seconds": described["duration_seconds"],
            "requested_model": record.request.model,
            "tags": dump_json(described["tags"]).decode() if record.labels.tags else None,
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
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(self._arrow.schema().metadata), sink, compression="zstd")
        return sink.getvalue()

    def _structs(self) -> Any:
        """Return the responses, one for each row, or null."""
        import pyarrow as pa

        results = [response for response in self._responses if response is not None]
        columns = self._arrow.to_arrow(results)
        arrays = [
            pa.concat_arrays(column.chunks or [pa.array([], column.type)]) for column in columns.columns
        ]
        structs = pa.StructArray.from_arrays(arrays, fields=list(columns.schema))
        rows = iter(range(len(results)))
        return structs.take(
            pa.array([None if one is None else next(rows) for one in self._responses], pa.int64())
        )


def _columns(include_request: bool) -> Any:
    import pyarrow as pa

    from crosswalk_batch.batches import INPUT

    left_out = {"line", "fault", "server", "source", "number", "vendor"}
    if not include_request:
        left_out.add("request")
    flag = pa.bool_()
    own = [
        ("span_id", pa.string()),
        ("method", pa.string()),
        ("url", pa.string()),
        ("options", pa.string()),
        ("time_to_first_chunk_seconds", pa.float64()),
        ("resend_count", pa.int64()),
        ("is_stream", flag),
        ("is_complete", flag),
        ("is_cancelled", flag),
    ]
    return pa.schema([*(field for field in INPUT if field.name not in left_out), *own])
