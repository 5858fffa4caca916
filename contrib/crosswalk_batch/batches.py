"""The function that every engine calls, with its options: a batch of recorded answers to responses and rejects."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

import attrs
import pyarrow as pa

from crosswalk import normalize, registry
from crosswalk.commands import Provider, provider_of, vendor_of
from crosswalk.errors import ConfigurationError, CrosswalkError, MappingError
from crosswalk.prices import check_prices, cost_of, tier_of
from crosswalk.records import (
    Layout,
    LoggedExchange,
    NotAnExchangeError,
    RecordError,
    read_record,
    stated_response,
    with_facts,
)
from crosswalk.types import ChatResponse, Cost, Provenance
from crosswalk_batch.columns import (
    AMOUNT,
    BYTES,
    EPOCH,
    TEXT,
    Content,
    amount,
    schema,
    to_arrow,
    without_content,
)

# --------------------------------------------------------------------------------- options
# The options of a batch, and the columns that they lead to.


PLACE: Final = pa.schema([("source", TEXT), ("number", pa.int64()), ("record_id", TEXT)])
"""The columns for the origin of a record: its file, its number in the file from 1, and its id in the log."""


EXCHANGE: Final = pa.schema(
    [
        ("time", pa.timestamp("us", "UTC")),
        ("latency_seconds", pa.float64()),
        ("vendor", TEXT),
        ("vendor_source", TEXT),
        ("logged_vendor", TEXT),
        ("requested_model", TEXT),
        ("status", pa.int64()),
        ("cost", AMOUNT),
        ("cost_source", TEXT),
        ("tags", TEXT),
        ("session", TEXT),
        ("user", TEXT),
        ("team", TEXT),
        ("tier", TEXT),
        ("trace_id", TEXT),
        ("parent", TEXT),
        ("request", TEXT),
    ]
)
"""The columns for facts about an exchange other than its answer, or null if unknown."""


ERROR_COLUMNS: Final = pa.schema(
    [("error_kind", TEXT), ("error_status", pa.int64()), ("error_message", TEXT)]
)


INPUT: Final = pa.schema(
    [
        ("body", BYTES),
        ("line", BYTES),
        ("provider", TEXT),
        ("server", TEXT),
        ("fault", TEXT),
        *PLACE,
        *EXCHANGE,
    ]
)
"""The columns of a batch of records. Either ``body``, or ``line`` for a whole line of a log, is required."""


def responses_schema(options: Options | None = None) -> pa.Schema:
    """Return the columns of a mapped record.

    They are its origin, its exchange, the kept values, the columns of :func:`crosswalk_batch.schema`, and the kind,
    status and message of an error.
    """
    options = options or Options()
    answers = schema(include_raw=options.include_raw)
    return pa.schema([*record_schema(options), *answers, *ERROR_COLUMNS], metadata=answers.metadata)


def rejects_schema(options: Options | None = None) -> pa.Schema:
    """Return the columns of a record that could not be mapped.

    They are its origin, its exchange, the kept values, the error, its bytes or, if no answer was found in it, its line,
    and in ``partial`` the content of an answer that was cut.
    """
    options = options or Options()
    return pa.schema(
        [
            *record_schema(options),
            ("provider", TEXT),
            ("error", TEXT),
            ("message", TEXT),
            ("body", BYTES),
            ("line", BYTES),
            ("partial", pa.struct(list(schema()))),
        ]
    )


def record_schema(options: Options) -> pa.Schema:
    """The columns of a record that could not be read."""
    return pa.schema([*PLACE, *EXCHANGE, *((name, TEXT) for name in options.keep)])


@attrs.frozen(kw_only=True)
class Options:
    """How records are mapped.

    Attributes:
        provider: the provider id, or ``None`` to use the record's or detect it from the answer.
        prefer: the provider for answers that fit several, or ``None`` for the owner of the dialect, if all read it equally.
        status: the HTTP status, or ``None`` to use the record's, or 200.
        unknown: ``"raise"`` rejects an event or finish reason that no mapping knows. ``"keep"`` keeps it.
        created: the time in UTC of answers without a time in the answer or the log, marked as synthetic. ``None`` omits it.
        include_raw: whether to store the provider's own bytes.
        layout: the layout of the lines of a log, or ``None`` to detect it for each line.
        keep: the paths of further values in a line, by column name.
        content: how messages of users and models are stored. See :func:`crosswalk_batch.columns.without_content`.
        with_prices: whether to estimate missing costs. Needs the extra ``prices``.
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
        taken = {
            *PLACE.names,
            *EXCHANGE.names,
            *schema(include_raw=True).names,
            *ERROR_COLUMNS.names,
            *_REJECT_COLUMNS,
        }
        if both := taken & keep.keys():
            raise ConfigurationError(f"a column {min(both)!r} is there already; keep it under another name")


_REJECT_COLUMNS: Final = ("provider", "error", "body", "line", "partial")


# --------------------------------------------------------------------------------- batches
# The function that every engine calls: it maps a batch of recorded answers to responses and rejects.
#
# It is pure. It does no I/O, and the same batch gives the same tables in any process, on any machine and in any order.
# A
# record that cannot be mapped becomes a row of the rejects and does not stop the job.


LONGEST: Final = 128 * 1024 * 1024
"""The maximum bytes of a record. A longer one is rejected without its bytes, which bounds the memory."""
_AT_ONCE: Final = 1000
"""The number of responses to hold before they are converted to columns, which take a tenth of the memory."""


@attrs.frozen(eq=False)
class Normalized:
    """The result of a batch of records, in their order.

    Attributes:
        responses: the answers, with the columns of :func:`responses_schema`.
        rejects: the records that could not be mapped, with the columns of :func:`rejects_schema`.
        guesses: the number of answers that fit several providers, by the provider that was chosen.
        layouts: the number of lines by layout. Lines that are plain bodies count as ``plain``.
        left_out: the number of lines that are no exchanges, by what they are.
    """

    responses: pa.Table
    rejects: pa.Table
    guesses: Counter[str] = attrs.field(factory=Counter)
    layouts: Counter[str] = attrs.field(factory=Counter)
    left_out: Counter[str] = attrs.field(factory=Counter)

    def equals(self, other: Normalized) -> bool:
        """Whether both have the same responses and rejects."""
        return bool(self.responses.equals(other.responses) and self.rejects.equals(other.rejects))


def normalize_batch(batch: pa.RecordBatch | pa.Table, options: Options | None = None) -> Normalized:
    """Map every record of *batch*.

    Args:
        batch: the records: a column ``body`` with the bytes or text of an answer, or ``line`` with lines of a log for
            ``crosswalk.records``. It may have further columns of :data:`INPUT`, such as ``provider``, ``status``, ``time``,
            ``server`` (the server, for answers that fit several providers) and ``fault`` (why the answer is missing, which
            makes it a reject). Other columns are ignored.
        options: the options, or ``None`` for the defaults.

    Raises:
        ValueError: there is neither ``body`` nor ``line``, or a column has the wrong type.
        PluginError: the provider in the options cannot be used.
        ConfigurationError: prices are requested, and the extra is not installed.
    """
    options = options or Options()
    if options.provider is not None:
        registry.mapper(options.provider)  # fail now, or it would reject every record
    if options.with_prices:
        check_prices()
    records = _records(batch)
    found = _Found()
    while some := list(islice(records, _AT_ONCE)):
        found.tables.append(_mapped(some, options, found))
    return Normalized(
        without_content(
            pa.concat_tables([responses_schema(options).empty_table(), *found.tables]), options.content
        ),
        without_content(_rejects(found.rejected, options), options.content),
        found.guesses,
        found.layouts,
        found.left_out,
    )


@attrs.define(eq=False)
class _Found:
    """What comes of a batch, so far."""

    tables: list[pa.Table] = attrs.field(factory=list)
    rejected: list[_Rejected] = attrs.field(factory=list)
    guesses: Counter[str] = attrs.field(factory=Counter)
    layouts: Counter[str] = attrs.field(factory=Counter)
    left_out: Counter[str] = attrs.field(factory=Counter)


def _mapped(records: list[_Record], options: Options, found: _Found) -> pa.Table:
    """Return the table of mapped *records*. Adds the others and the counts to *found*."""
    mapped: list[tuple[_Record, ChatResponse]] = []
    for record in records:
        try:
            response = _response(record, options)
            _add_answer(record, response, options)
            mapped.append((record, response))
            if "metadata.provider_id" in response.metadata.provenance:
                found.guesses[response.metadata.provider_id] += 1
        except NotAnExchangeError as error:
            found.left_out[str(error)] += 1
            continue
        except CrosswalkError as error:
            partial = error.partial if isinstance(error, MappingError) else None
            if partial is not None:
                partial = with_facts(partial, record.exchange)
            elif record.exchange.tokens:  # they count although the answer cannot be read
                partial = stated_response(record.exchange, clock=lambda: options.created or EPOCH)
            if partial is not None:
                _add_answer(record, partial, options)
            else:
                record.vendor = vendor_of(record.exchange, None)
            # The traceback holds much memory.
            found.rejected.append((record, error.with_traceback(None), partial))
        if record.line is not None:
            found.layouts[record.layout] += 1
    return _table(mapped, options)


@attrs.define(eq=False)
class _Record:
    """A record of a batch.

    Attributes:
        exchange: the facts about it. Those of a line are filled in when it is read.
        cost_source: the source of the cost: ``log``, ``provider`` or ``estimated``.
        vendor: the vendor and what names it, as :func:`crosswalk.commands.vendor_of` returns them.
    """

    body: bytes | None
    line: bytes | None
    fault: str | None
    source: str | None
    number: int | None
    exchange: LoggedExchange
    layout: str = "unreadable"
    cost_source: str | None = None
    vendor: tuple[str | None, str | None] = (None, None)

    def columns(self, options: Options) -> tuple[Any, ...]:
        """Return the values of the columns for its origin, its exchange and the kept values."""
        facts = self.exchange
        latency = None if facts.latency is None else facts.latency.total_seconds()
        return (
            *(self.source, self.number, facts.id),
            *(facts.created, latency, *self.vendor, facts.vendor, facts.model, facts.status),
            *(None if facts.cost is None else amount(facts.cost), self.cost_source),
            *(facts.tags, facts.session, facts.user, facts.team, facts.tier),
            *(facts.trace_id, facts.parent, facts.request),
            *(facts.kept.get(name) for name in options.keep),
        )


def combined(found: Normalized) -> pa.Table:
    """Return responses and rejects in one table, for engines that take one.

    It has a row for each record, the responses first, with the columns that both share (origin, exchange, kept values),
    ``response`` (null for a reject) and ``reject`` (null for a response).
    """
    shared = found.responses.schema.names[: found.responses.schema.names.index("id")]
    tables = [
        table.select(shared).append_column(name, table.drop_columns(shared).to_struct_array())
        for name, table in (("response", found.responses), ("reject", found.rejects))
    ]
    return pa.concat_tables(tables, promote_options="default").replace_schema_metadata()


def _records(batch: pa.RecordBatch | pa.Table) -> Iterator[_Record]:
    names = batch.schema.names
    if "body" not in names and "line" not in names:
        raise ValueError(
            f"a batch of records needs a column body or line; it has {', '.join(names) or 'none'}"
        )
    known = [field for field in INPUT if field.name in names]
    says_nothing = not {field.name for field in known} & {"provider", "server", "record_id", *EXCHANGE.names}
    columns = [typed(batch, field).to_pylist() for field in known]
    for values in zip(*columns, strict=True):
        row = dict(zip((field.name for field in known), values, strict=True))
        for name in ("line", "body"):
            if len(row.get(name) or b"") > LONGEST:
                row |= {name: None, "fault": too_long("line" if name == "line" else "answer")}
        yield _Record(
            body=row.get("body"),
            line=row.get("line"),
            fault=row.get("fault"),
            source=row.get("source"),
            number=row.get("number"),
            exchange=_NOTHING if says_nothing else _exchange_of(row),
        )


def _exchange_of(row: dict[str, Any]) -> LoggedExchange:
    facts: dict[str, Any] = {name: row.get(column) for name, column in _COLUMNS.items()}
    if (latency := facts["latency"]) is not None:
        facts["latency"] = timedelta(seconds=latency)
    facts["vendor"] = row.get("logged_vendor") or row.get("vendor") or row.get("provider")
    return LoggedExchange(**facts)


_COLUMNS: Final = {
    "id": "record_id",
    "created": "time",
    "latency": "latency_seconds",
    "model": "requested_model",
    **{name: name for name in ("provider", "server", "status", "request", "tags", "session", "user")},
    **{name: name for name in ("team", "tier", "trace_id", "parent", "cost", "cost_source")},
}
"""The columns that hold the facts of an exchange."""


def too_long(what: str) -> str:
    """Return the message for a record that is longer than :data:`LONGEST`."""
    return f"the {what} is longer than {LONGEST} bytes; it stays where it is"


_NOTHING: Final = LoggedExchange()
"""What columns say that hold nothing of an exchange."""


def typed(batch: pa.RecordBatch | pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """Return the column *field* of *batch* in its type.

    Raises:
        ValueError: it has another one.
    """
    array = batch.column(field.name)
    try:
        return array if array.type == field.type else array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"column {field.name} is of type {array.type}, not {field.type}") from None


def _body(record: _Record, options: Options) -> bytes:
    """Return the bytes of the answer of *record*, empty if its log does not store it, and fill in the facts of its line.

    Raises:
        RecordError: the record has no answer.
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
        record.layout = read.layout or "plain"
        record.exchange = _merged(record.exchange, read)
        if not read.has_answer:
            return b""
        record.body = read.body
    if record.body is None:
        raise RecordError("no answer: null")
    return record.body


def _merged(columns: LoggedExchange, line: LoggedExchange) -> LoggedExchange:
    """Return the facts of the *line*, completed by those of the *columns*."""
    if columns is _NOTHING:
        return line
    facts = {name: getattr(line, name) for name in _FACTS}
    return LoggedExchange(
        **{name: getattr(columns, name) if value is None else value for name, value in facts.items()}
    )


_FACTS: Final = tuple(field.name for field in attrs.fields(LoggedExchange))


def _response(record: _Record, options: Options) -> ChatResponse:
    body = _body(record, options)
    exchange, created = record.exchange, options.created or EPOCH
    if not exchange.has_answer:
        return stated_response(exchange, clock=lambda: created)
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
    """Complete the time, the duration and the cost of *record* from *response*."""
    exchange, provenance = record.exchange, response.metadata.provenance
    record.vendor = vendor_of(exchange, response)
    known: dict[str, Any] = {}
    if exchange.created is None and provenance.get("created") is not Provenance.SYNTHETIC:
        known["created"] = response.created
    if exchange.latency is None and response.metadata.request_duration:
        known["latency"] = response.metadata.request_duration
    if exchange.tier is None and (tier := tier_of(response)) is not None:
        known["tier"] = tier
    if exchange.cost is not None:
        record.cost_source = exchange.cost_source or "log"
    elif cost := _cost(record, response, options):
        known["cost"] = cost.amount
        record.cost_source = "provider" if cost is response.usage.cost else "estimated"
    if known:
        record.exchange = LoggedExchange(**{name: getattr(exchange, name) for name in _FACTS} | known)


def _cost(record: _Record, response: ChatResponse, options: Options) -> Cost | None:
    if not options.with_prices:
        return response.usage.cost
    return cost_of(response, vendor=record.vendor[0], tier=record.exchange.tier)


_Rejected: TypeAlias = tuple[_Record, CrosswalkError, ChatResponse | None]


def _table(mapped: list[tuple[_Record, ChatResponse]], options: Options) -> pa.Table:
    answers = to_arrow((response for _, response in mapped), include_raw=options.include_raw)
    records = _columns(record_schema(options), [record.columns(options) for record, _ in mapped])
    errors = error_columns([response for _, response in mapped])
    return pa.Table.from_arrays([*records, *answers.columns, *errors], schema=responses_schema(options))


def error_columns(responses: list[ChatResponse]) -> list[pa.Array]:
    """Return the error columns of *responses*."""
    infos = [response.error_info for response in responses]
    rows = [(None,) * 3 if info is None else (info.kind.value, info.status, info.message) for info in infos]
    return _columns(ERROR_COLUMNS, rows)


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
    """Return the column ``partial``: the columns of a response in a struct, or null."""
    answers = iter(to_arrow(partial for partial in partials if partial is not None).to_pylist())
    rows = [None if partial is None else next(answers) for partial in partials]
    return pa.array(rows, pa.struct(list(schema())))


def _columns(kinds: pa.Schema, rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return [pa.array(values, field.type) for values, field in zip(columns, kinds, strict=True)]
