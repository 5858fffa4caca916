"""The one function that every engine calls: a batch of recorded answers in, responses and rejects out.

It is pure: it reads and writes nothing, and the same batch gives the same tables, whichever process, machine or order it is
in. A record that cannot be mapped is a row of the rejects, never a stop.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

import attrs
import pyarrow as pa

from crosswalk import normalize, registry
from crosswalk.commands import Provider, provider_of
from crosswalk.errors import CrosswalkError, MappingError
from crosswalk.records import BodyPath, RecordError, read_record
from crosswalk.types import ChatResponse
from crosswalk_batch.arrow import schema, to_arrow
from crosswalk_batch.columns import BYTES, TEXT

__all__ = [
    "INPUT",
    "PLACE",
    "REJECTS",
    "Normalized",
    "Options",
    "combined",
    "normalize_batch",
    "responses_schema",
]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_AT_ONCE: Final = 1000
"""How many responses are held before they become columns, which take a tenth of the memory."""

PLACE: Final = pa.schema([("source", TEXT), ("number", pa.int64()), ("record_id", TEXT)])
"""The columns that say where a record comes from: its file, its number there from 1, and what the log calls it."""

INPUT: Final = pa.schema(
    [
        ("body", BYTES),
        ("line", BYTES),
        ("provider", TEXT),
        ("status", pa.int64()),
        ("source", TEXT),
        ("number", pa.int64()),
        ("record_id", TEXT),
        ("server", TEXT),
        ("fault", TEXT),
    ]
)
"""What a batch of records may have; ``body``, or ``line`` for a whole line of a log, has to be there."""

REJECTS: Final = pa.schema(
    [*PLACE, ("provider", TEXT), ("status", pa.int64()), ("error", TEXT), ("message", TEXT), ("body", BYTES)]
)
"""The columns of a record that could not be mapped: its place, why not, and its bytes."""


def responses_schema(*, include_raw: bool = False) -> pa.Schema:
    """The columns of a record that was mapped: its place, and those of :func:`crosswalk_batch.schema`."""
    answers = schema(include_raw=include_raw)
    return pa.schema([*PLACE, *answers], metadata=answers.metadata)


@attrs.frozen(kw_only=True)
class Options:
    """How records are mapped.

    Attributes:
        provider: the provider id; ``None`` for what a record says, or what is found out from the answer.
        prefer: the provider where an answer fits several; ``None`` for the one whose dialect it is, if all read it alike.
        status: the HTTP status; ``None`` for what a record says, else 200.
        unknown: ``"raise"`` to reject an event or finish word that no mapping knows, or ``"keep"`` it.
        created: the time of answers that do not say theirs, in UTC; they are marked synthetic.
        include_raw: keep the provider's own bytes.
        body_path: where in a line its answer stands; ``None`` to find it out.
    """

    provider: str | None = None
    prefer: str | None = None
    status: int | None = None
    unknown: Literal["raise", "keep"] = "raise"
    created: datetime = EPOCH
    include_raw: bool = False
    body_path: BodyPath | None = None


@attrs.frozen(eq=False)
class Normalized:
    """What a batch of records was mapped to, in their order.

    Attributes:
        responses: the answers, with the columns of :func:`responses_schema`.
        rejects: the records that could not be mapped, with the columns of :data:`REJECTS`.
        guesses: how many answers fit several providers, by the one that they were read as.
    """

    responses: pa.Table
    rejects: pa.Table
    guesses: Counter[str] = attrs.field(factory=Counter)


def normalize_batch(batch: pa.RecordBatch, options: Options | None = None) -> Normalized:
    """Map every record of *batch*.

    Args:
        batch: the records: a column ``body`` with an answer's bytes or text, or ``line`` with lines of a log as
            ``crosswalk.records`` reads them; perhaps ``provider``, ``status``, ``source``, ``number``, ``record_id``,
            ``server`` (who answered, where the answer fits several providers) and ``fault`` (why there is no answer:
            a reject). Further columns are passed over.
        options: how; ``None`` for the defaults.

    Raises:
        ValueError: there is neither a ``body`` nor a ``line``, or a column is of another type.
        PluginError: the provider that the options name cannot be used.
    """
    options = options or Options()
    if options.provider is not None:
        registry.mapper(options.provider)  # one that cannot be used would reject every record
    records = _records(batch)
    tables = [responses_schema(include_raw=options.include_raw).empty_table()]
    rejected: list[_Rejected] = []
    guesses: Counter[str] = Counter()
    while some := list(islice(records, _AT_ONCE)):
        tables.append(_mapped(some, options, rejected, guesses))
    return Normalized(pa.concat_tables(tables), _rejects(rejected), guesses)


def _mapped(
    records: list[_Record], options: Options, rejected: list[_Rejected], guesses: Counter[str]
) -> pa.Table:
    """The table of the *records* that can be mapped; the others go to *rejected*, and *guesses* are counted."""
    mapped: list[tuple[_Record, ChatResponse]] = []
    failed: list[_Rejected] = []
    for record in records:
        try:
            response = _response(record, options)
            mapped.append((record, response))
            if "metadata.provider_id" in response.metadata.provenance:
                guesses[response.metadata.provider_id] += 1
        except CrosswalkError as error:
            failed.append((record, error.with_traceback(None)))  # it would hold all that was read
    rejected += failed
    return _table(mapped, options)


@attrs.define(eq=False)
class _Record:
    """One record of a batch; what stands in its line is filled in when it is read."""

    row: int
    body: bytes | None
    line: bytes | None
    provider: str | None
    status: int | None
    source: str | None
    number: int | None
    record_id: str | None
    server: str | None
    fault: str | None

    @property
    def place(self) -> tuple[str | None, int | None, str | None]:
        return self.source, self.number, self.record_id


def combined(found: Normalized) -> pa.Table:
    """Responses and rejects in one table, for engines that take one: a row for each record, the responses first, with the
    columns of :data:`PLACE`, ``response`` (null for a reject) and ``reject`` (null for a response)."""
    tables = {"response": found.responses, "reject": found.rejects}
    nested = {name: pa.struct(list(table.schema)[len(PLACE) :]) for name, table in tables.items()}
    whole = pa.schema([*PLACE, *nested.items()])
    both = []
    for name, table in tables.items():
        table = table.combine_chunks()
        rest = [_one(column) for column in table.columns[len(PLACE) :]]
        columns = {
            other: pa.StructArray.from_arrays(rest, type=kind)
            if other == name
            else pa.nulls(table.num_rows, kind)
            for other, kind in nested.items()
        }
        both.append(pa.Table.from_arrays([*table.columns[: len(PLACE)], *columns.values()], schema=whole))
    return pa.concat_tables(both)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _records(batch: pa.RecordBatch) -> Iterator[_Record]:
    names = batch.schema.names
    if "body" not in names and "line" not in names:
        raise ValueError(
            f"a batch of records needs a column body or line; it has {', '.join(names) or 'none'}"
        )
    columns: Mapping[str, list[Any]] = {
        field.name: _values(batch, field) if field.name in names else [None] * batch.num_rows
        for field in INPUT
    }
    for row, values in enumerate(zip(*columns.values(), strict=True)):
        yield _Record(row, *values)


def _values(batch: pa.RecordBatch, field: pa.Field) -> list[Any]:
    array = batch.column(field.name)
    try:
        found: list[Any] = (array if array.type == field.type else array.cast(field.type)).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"column {field.name} is of type {array.type}, not {field.type}") from None
    return found


def _body(record: _Record, options: Options) -> bytes:
    """The bytes of the answer of *record*, and what stands beside it in its line filled in.

    Raises:
        RecordError: there is none.
    """
    if record.fault is not None:
        raise RecordError(record.fault)
    if record.line is not None:
        read = read_record(record.line, path=options.body_path)
        record.body = read.body
        record.provider = read.provider or record.provider
        record.status = read.status if read.status is not None else record.status
        record.record_id = read.id or record.record_id
    if record.body is None:
        raise RecordError("no answer: null")
    return record.body


def _response(record: _Record, options: Options) -> ChatResponse:
    body, created = _body(record, options), options.created
    status, named = options.status or record.status or 200, options.provider or record.provider
    provider = (
        provider_of(body, options.prefer, record.server, status=status) if named is None else Provider(named)
    )

    def make_id() -> str:
        digest = hashlib.sha1(body, usedforsecurity=False).digest()
        return record.record_id or str(UUID(bytes=digest[:16], version=5))

    response = normalize(
        body,
        provider.name,
        status=status,
        unknown=options.unknown,
        id_factory=make_id,
        clock=lambda: created,
        keep_raw=options.include_raw,
    )
    return provider.marked(response)


_Rejected: TypeAlias = tuple[_Record, CrosswalkError]


def _table(mapped: list[tuple[_Record, ChatResponse]], options: Options) -> pa.Table:
    answers = to_arrow((response for _, response in mapped), include_raw=options.include_raw)
    places = _columns(PLACE, [record.place for record, _ in mapped])
    whole = responses_schema(include_raw=options.include_raw)
    return pa.Table.from_arrays([*places, *answers.columns], schema=whole)


def _rejects(rejected: list[_Rejected]) -> pa.Table:
    rows = []
    for record, error in rejected:
        provider = record.provider or (error.provider if isinstance(error, MappingError) else None)
        data = record.line if record.body is None else record.body
        rows.append((*record.place, provider, record.status, type(error).__name__, str(error), data))
    return pa.Table.from_arrays(_columns(REJECTS, rows), schema=REJECTS)


def _columns(kinds: pa.Schema, rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return [pa.array(values, field.type) for values, field in zip(columns, kinds, strict=True)]
