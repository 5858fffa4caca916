"""The one function that every engine calls: a batch of recorded answers in, responses and rejects out.

It is pure: it reads and writes nothing, and the same batch gives the same tables, whichever process, machine or order it is
in. A record that cannot be mapped is a row of the rejects, never a stop.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

import attrs
import pyarrow as pa

from crosswalk import normalize, registry
from crosswalk.commands import Provider, provider_of
from crosswalk.errors import ConfigurationError, CrosswalkError, MappingError
from crosswalk.prices import cost_of
from crosswalk.records import Exchange, Layout, RecordError, read_record, with_facts
from crosswalk.types import ChatResponse, Provenance
from crosswalk_batch.arrow import schema, to_arrow
from crosswalk_batch.columns import AMOUNT, BYTES, EPOCH, TEXT, amount
from crosswalk_batch.privacy import Content, without_content

__all__ = [
    "EXCHANGE",
    "INPUT",
    "PLACE",
    "Normalized",
    "Options",
    "combined",
    "normalize_batch",
    "rejects_schema",
    "responses_schema",
]

_AT_ONCE: Final = 1000
"""How many responses are held before they become columns, which take a tenth of the memory."""

PLACE: Final = pa.schema([("source", TEXT), ("number", pa.int64()), ("record_id", TEXT)])
"""The columns that say where a record comes from: its file, its number there from 1, and what the log calls it."""

EXCHANGE: Final = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("latency_seconds", pa.float64()),
        ("vendor", TEXT),
        ("requested_model", TEXT),
        ("status", pa.int64()),
        ("cost", AMOUNT),
        ("cost_source", TEXT),
        ("tags", TEXT),
        ("request", TEXT),
    ]
)
"""The columns of what is known about an exchange beside its answer; null where nobody says."""

_ERROR: Final = pa.schema([("error_kind", TEXT), ("error_status", pa.int64()), ("error_message", TEXT)])

INPUT: Final = pa.schema(
    [
        ("body", BYTES),
        ("line", BYTES),
        ("provider", TEXT),
        ("server", TEXT),
        ("fault", TEXT),
        *PLACE,
        *(field for field in EXCHANGE if field.name != "cost_source"),
    ]
)
"""What a batch of records may have; ``body``, or ``line`` for a whole line of a log, has to be there."""


def responses_schema(options: Options | None = None) -> pa.Schema:
    """The columns of a record that was mapped.

    They are its place, its exchange, the values that were kept, those of :func:`crosswalk_batch.schema`, and of an error its
    kind, status and message."""
    options = options or Options()
    answers = schema(include_raw=options.include_raw)
    return pa.schema([*_record_schema(options), *answers, *_ERROR], metadata=answers.metadata)


def rejects_schema(options: Options | None = None) -> pa.Schema:
    """The columns of a record that could not be mapped: its place, its exchange, the values that were kept, why not, its
    bytes, or its line where no answer was found in it, and as ``partial`` what an answer that broke off holds."""
    options = options or Options()
    return pa.schema(
        [
            *_record_schema(options),
            ("provider", TEXT),
            ("error", TEXT),
            ("message", TEXT),
            ("body", BYTES),
            ("line", BYTES),
            ("partial", pa.struct(list(schema()))),
        ]
    )


def _record_schema(options: Options) -> pa.Schema:
    return pa.schema([*PLACE, *EXCHANGE, *((name, TEXT) for name in options.keep)])


@attrs.frozen(kw_only=True)
class Options:
    """How records are mapped.

    Attributes:
        provider: the provider id; ``None`` for what a record says, or what is found out from the answer.
        prefer: the provider where an answer fits several; ``None`` for the one whose dialect it is, if all read it alike.
        status: the HTTP status; ``None`` for what a record says, else 200.
        unknown: ``"raise"`` to reject an event or finish word that no mapping knows, or ``"keep"`` it.
        created: the time of answers whose time neither they nor the log says, in UTC; they are marked synthetic. ``None``
            to leave it out.
        include_raw: keep the provider's own bytes.
        layout: where the facts stand in the lines of a log; ``None`` to find it out for each line.
        keep: paths of further values in a line, by the column that they become.
        content: what becomes of what people wrote and models answered; see :func:`crosswalk_batch.privacy.without_content`.
        with_prices: estimate the cost where neither the log nor the answer says it; needs the extra ``prices``.
    """

    provider: str | None = None
    prefer: str | None = None
    status: int | None = None
    unknown: Literal["raise", "keep"] = "raise"
    created: datetime | None = None
    include_raw: bool = False
    layout: Layout | None = None
    keep: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    with_prices: bool = False
    content: Content = "keep"

    @keep.validator
    def _check_keep(self, _: Any, keep: Mapping[str, tuple[str, ...]]) -> None:
        taken = {*PLACE.names, *EXCHANGE.names, *schema(include_raw=True).names, *_ERROR.names, *_REJECT}
        if both := taken & keep.keys():
            raise ConfigurationError(f"a column {min(both)!r} is there already; keep it under another name")


_REJECT: Final = ("provider", "error", "body", "line", "partial")


@attrs.frozen(eq=False)
class Normalized:
    """What a batch of records was mapped to, in their order.

    Attributes:
        responses: the answers, with the columns of :func:`responses_schema`.
        rejects: the records that could not be mapped, with the columns of :func:`rejects_schema`.
        guesses: how many answers fit several providers, by the one that they were read as.
        layouts: how many lines had which layout; those of plain bodies count as ``plain``.
    """

    responses: pa.Table
    rejects: pa.Table
    guesses: Counter[str] = attrs.field(factory=Counter)
    layouts: Counter[str] = attrs.field(factory=Counter)


def normalize_batch(batch: pa.RecordBatch, options: Options | None = None) -> Normalized:
    """Map every record of *batch*.

    Args:
        batch: the records: a column ``body`` with an answer's bytes or text, or ``line`` with lines of a log as
            ``crosswalk.records`` reads them; perhaps those of :data:`INPUT`: ``provider``, ``status``, ``time``,
            ``server`` (who answered, where the answer fits several providers), ``fault`` (why there is no answer: a reject)
            and others. Further columns are passed over.
        options: how; ``None`` for the defaults.

    Raises:
        ValueError: there is neither a ``body`` nor a ``line``, or a column is of another type.
        PluginError: the provider that the options name cannot be used.
        ConfigurationError: prices are asked for, and the extra is not installed.
    """
    options = options or Options()
    if options.provider is not None:
        registry.mapper(options.provider)  # one that cannot be used would reject every record
    if options.with_prices:
        _check_prices()
    records = _records(batch)
    tables = [responses_schema(options).empty_table()]
    rejected: list[_Rejected] = []
    guesses: Counter[str] = Counter()
    layouts: Counter[str] = Counter()
    while some := list(islice(records, _AT_ONCE)):
        tables.append(_mapped(some, options, rejected, guesses, layouts))
    return Normalized(
        without_content(pa.concat_tables(tables), options.content),
        without_content(_rejects(rejected, options), options.content),
        guesses,
        layouts,
    )


def _check_prices() -> None:
    if find_spec("genai_prices") is None:
        raise ConfigurationError("prices need the extra: pip install 'crosswalk-llm[prices]'")


def _mapped(
    records: list[_Record],
    options: Options,
    rejected: list[_Rejected],
    guesses: Counter[str],
    layouts: Counter[str],
) -> pa.Table:
    """The table of the *records* that can be mapped; the others go to *rejected*, and *guesses* are counted."""
    mapped: list[tuple[_Record, ChatResponse]] = []
    for record in records:
        try:
            response = _response(record, options)
            _add_answer(record, response, options)
            mapped.append((record, response))
            if "metadata.provider_id" in response.metadata.provenance:
                guesses[response.metadata.provider_id] += 1
        except CrosswalkError as error:
            partial = error.partial if isinstance(error, MappingError) else None
            if partial is not None:
                partial = with_facts(partial, record.exchange)
                _add_answer(record, partial, options)
            rejected.append((record, error.with_traceback(None), partial))  # it would hold all that was read
        if record.line is not None:
            layouts[record.layout] += 1
    return _table(mapped, options)


@attrs.define(eq=False)
class _Record:
    """One record of a batch.

    Attributes:
        exchange: what is known about it; of a line filled in when it is read.
        cost_source: who says what it cost: ``log``, ``provider`` or ``estimated``.
    """

    body: bytes | None
    line: bytes | None
    fault: str | None
    source: str | None
    number: int | None
    exchange: Exchange
    layout: str = "unreadable"
    cost_source: str | None = None

    def columns(self, options: Options) -> tuple[Any, ...]:
        """The values of the columns of its place, its exchange and what was kept."""
        facts = self.exchange
        latency = None if facts.latency is None else facts.latency.total_seconds()
        return (
            *(self.source, self.number, facts.id),
            *(facts.created, latency, facts.vendor, facts.model, facts.status),
            *(None if facts.cost is None else amount(facts.cost), self.cost_source),
            *(facts.tags, facts.request),
            *(facts.kept.get(name) for name in options.keep),
        )


def combined(found: Normalized) -> pa.Table:
    """Responses and rejects in one table, for engines that take one: a row for each record, the responses first, with the
    columns that both have (place, exchange, kept values), ``response`` (null for a reject) and ``reject`` (null for a
    response)."""
    tables = {"response": found.responses, "reject": found.rejects}
    shared = found.responses.schema.names.index("id")
    nested = {name: pa.struct(list(table.schema)[shared:]) for name, table in tables.items()}
    whole = pa.schema([*list(found.responses.schema)[:shared], *nested.items()])
    both = []
    for name, table in tables.items():
        table = table.combine_chunks()
        own = [_one(column) for column in table.columns[shared:]]
        columns = {
            other: pa.StructArray.from_arrays(own, type=kind)
            if other == name
            else pa.nulls(table.num_rows, kind)
            for other, kind in nested.items()
        }
        both.append(pa.Table.from_arrays([*table.columns[:shared], *columns.values()], schema=whole))
    return pa.concat_tables(both)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _records(batch: pa.RecordBatch) -> Iterator[_Record]:
    names = batch.schema.names
    if "body" not in names and "line" not in names:
        raise ValueError(
            f"a batch of records needs a column body or line; it has {', '.join(names) or 'none'}"
        )
    known = [field for field in INPUT if field.name in names]
    says_nothing = not {field.name for field in known} & {"provider", "server", "record_id", *EXCHANGE.names}
    columns = [_values(batch, field) for field in known]
    for values in zip(*columns, strict=True):
        row = dict(zip((field.name for field in known), values, strict=True))
        latency, cost = row.get("latency_seconds"), row.get("cost")
        yield _Record(
            body=row.get("body"),
            line=row.get("line"),
            fault=row.get("fault"),
            source=row.get("source"),
            number=row.get("number"),
            exchange=_NOTHING
            if says_nothing
            else Exchange(
                id=row.get("record_id"),
                created=row.get("time"),
                latency=None if latency is None else timedelta(seconds=latency),
                provider=row.get("provider"),
                vendor=row.get("vendor") or row.get("provider"),
                server=row.get("server"),
                model=row.get("requested_model"),
                status=row.get("status"),
                request=row.get("request"),
                tags=row.get("tags"),
                cost=cost,
            ),
        )


_NOTHING: Final = Exchange()
"""What columns say that hold nothing of an exchange."""


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
    if record.line is not None and record.body is None:
        try:
            read = read_record(record.line, layout=options.layout, keep=options.keep)
        except RecordError as error:
            if error.exchange is not None:
                record.exchange = _merged(record.exchange, error.exchange)
            raise
        record.body, record.layout = read.body, read.layout or "plain"
        record.exchange = _merged(record.exchange, read)
    if record.body is None:
        raise RecordError("no answer: null")
    return record.body


def _merged(columns: Exchange, line: Exchange) -> Exchange:
    """What the *line* says, and where it says nothing the *columns* beside it."""
    if columns is _NOTHING:
        return line
    facts = {name: getattr(line, name) for name in _FACTS}
    return Exchange(
        **{name: getattr(columns, name) if value is None else value for name, value in facts.items()}
    )


_FACTS: Final = tuple(field.name for field in attrs.fields(Exchange))


def _response(record: _Record, options: Options) -> ChatResponse:
    body = _body(record, options)
    exchange, created = record.exchange, options.created or EPOCH
    status, named = options.status or exchange.status or 200, options.provider or exchange.provider
    provider = (
        provider_of(body, options.prefer, exchange.server, status=status)
        if named is None
        else Provider(named)
    )

    def make_id() -> str:
        digest = hashlib.sha1(body, usedforsecurity=False).digest()
        return exchange.id or str(UUID(bytes=digest[:16], version=5))

    response = normalize(
        body,
        provider.name,
        status=status,
        unknown=options.unknown,
        id_factory=make_id,
        clock=lambda: created,
        keep_raw=options.include_raw,
    )
    return with_facts(provider.marked(response), exchange)


def _add_answer(record: _Record, response: ChatResponse, options: Options) -> None:
    """Fill in from *response* what the log does not say about *record*: time, duration, cost."""
    exchange, provenance = record.exchange, response.metadata.provenance
    known: dict[str, Any] = {}
    if exchange.created is None and provenance.get("created") is not Provenance.SYNTHETIC:
        known["created"] = response.created
    if exchange.latency is None and response.metadata.request_duration:
        known["latency"] = response.metadata.request_duration
    if exchange.cost is not None:
        record.cost_source = "log"
    elif cost := cost_of(response) if options.with_prices else response.usage.cost:
        known["cost"] = cost.amount
        record.cost_source = "provider" if cost is response.usage.cost else "estimated"
    if known:
        record.exchange = Exchange(**{name: getattr(exchange, name) for name in _FACTS} | known)


_Rejected: TypeAlias = tuple[_Record, CrosswalkError, ChatResponse | None]


def _table(mapped: list[tuple[_Record, ChatResponse]], options: Options) -> pa.Table:
    answers = to_arrow((response for _, response in mapped), include_raw=options.include_raw)
    records = _columns(_record_schema(options), [record.columns(options) for record, _ in mapped])
    errors = error_columns([response for _, response in mapped])
    return pa.Table.from_arrays([*records, *answers.columns, *errors], schema=responses_schema(options))


def error_columns(responses: list[ChatResponse]) -> list[pa.Array]:
    """The columns of the errors among *responses*."""
    infos = [response.error_info for response in responses]
    rows = [(None,) * 3 if info is None else (info.kind.value, info.status, info.message) for info in infos]
    return _columns(_ERROR, rows)


def _rejects(rejected: list[_Rejected], options: Options) -> pa.Table:
    rows = []
    for record, error, _ in rejected:
        provider = record.exchange.provider or (error.provider if isinstance(error, MappingError) else None)
        line = record.line if record.body is None else None
        rows.append((*record.columns(options), provider, type(error).__name__, str(error), record.body, line))
    whole = rejects_schema(options)
    columns = _columns(pa.schema(list(whole)[:-1]), rows)
    return pa.Table.from_arrays([*columns, _partials([each[2] for each in rejected])], schema=whole)


def _partials(partials: list[ChatResponse | None]) -> pa.Array:
    """The column ``partial``: the columns of a response in a struct, null where there is none."""
    answers = iter(to_arrow(partial for partial in partials if partial is not None).to_pylist())
    rows = [None if partial is None else next(answers) for partial in partials]
    return pa.array(rows, pa.struct(list(schema())))


def _columns(kinds: pa.Schema, rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return [pa.array(values, field.type) for values, field in zip(columns, kinds, strict=True)]
