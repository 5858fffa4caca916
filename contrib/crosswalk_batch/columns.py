"""Canonical values as Arrow columns and back, worked out from the keys of canonical JSON, with private texts left out."""

from __future__ import annotations

import hashlib
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from enum import Enum
from functools import cache
from itertools import accumulate, islice
from typing import Any, Final, Literal

import attrs
import pyarrow as pa

from crosswalk.codec import FORMAT_VERSION, from_json, to_json
from crosswalk.codec.layout import CANONICAL, RAW, TAGS, LayoutKey, check_version, layout, union_members
from crosswalk.errors import CanonicalJSONError
from crosswalk.types import (
    ChatResponse,
    FinishReason,
    FrozenObject,
    Provenance,
    RawEvents,
    ResponseMetadata,
    SegmentType,
    UsageInfo,
)
from crosswalk.types.json import dump_json, holds_non_finite, load_json, plain_view

# --------------------------------------------------------------------------------- columns
# Canonical values as Arrow columns and back, worked out from the keys of canonical JSON.
#
# One table of keys (``crosswalk.codec.layout``) says what the types hold, so columns and JSON cannot differ. What
# differs is
# said here: a class is a struct, a tuple a list, a union of classes one struct with all their fields, and a content
# that is
# a text or parts is two columns. What has no fixed structure (extensions, metadata of a segment) is JSON text, as is
# what is
# nested in its own class more than once. Whole numbers of fields have 63 bits, those of extensions keep every digit as
# text.


_Values = Sequence[Any]

TEXT: Final = pa.large_string()
BYTES: Final = pa.large_binary()
AMOUNT: Final = pa.decimal128(38, 18)
"""An amount of money, rounded to 18 decimal places."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST: Final = 2**63 - 1
_ATOM: Final = Decimal(1).scaleb(-18)


class Column(ABC):
    """A column for values of one type, with ``None`` as null.

    Attributes:
        type: the Arrow type.
        word: the name of the type, for documentation.
    """

    type: pa.DataType
    word: str

    @abstractmethod
    def write(self, values: _Values) -> pa.Array:
        """Return the column of *values*."""

    @abstractmethod
    def read(self, array: pa.Array) -> list[Any]:
        """Return the values of a column of this type."""


class _Leaf(Column):
    """A value that Arrow supports, directly or through a conversion."""

    def __init__(
        self,
        type: pa.DataType,
        word: str,
        to_arrow: Callable[[Any], Any] | None = None,
        from_arrow: Callable[[Any], Any] | None = None,
    ) -> None:
        self.type = type
        self.word = word
        self._to_arrow = to_arrow
        self._from_arrow = from_arrow

    def write(self, values: _Values) -> pa.Array:
        if self._to_arrow is not None:
            to_arrow = self._to_arrow
            values = [None if value is None else to_arrow(value) for value in values]
        return pa.array(values, self.type)

    def read(self, array: pa.Array) -> list[Any]:
        values: list[Any] = array.to_pylist()
        if self._from_arrow is None:
            return values
        from_arrow = self._from_arrow
        return [None if value is None else from_arrow(value) for value in values]


def _json(value: Any) -> bytes | None:
    """Return the JSON text of extensions, or ``None`` if they are empty."""
    plain = plain_view(value)
    if not plain:
        return None
    try:
        data = dump_json(plain)
    except TypeError as error:
        raise CanonicalJSONError(f"cannot write extensions: {error}") from None
    if data.find(b"null") >= 0 and holds_non_finite(plain):
        raise CanonicalJSONError("cannot write extensions: JSON has no number for NaN and infinities")
    return data


def _json_object(text: str) -> FrozenObject:
    value = load_json(text)
    if type(value) is not dict:
        raise ValueError("expected a JSON object")
    return FrozenObject.adopt(value)


def amount(value: Decimal) -> Decimal:
    """Return *value*, an amount of money with less than 20 digits before the point, rounded for a column."""
    return value.quantize(_ATOM, context=_AMOUNTS)


_AMOUNTS: Final = Context(prec=38)


_LEAVES: Final[dict[Any, Callable[[], Column]]] = {
    str: lambda: _Leaf(TEXT, "text"),
    int: lambda: _Leaf(pa.int64(), "integer"),
    float: lambda: _Leaf(pa.float64(), "number"),
    bool: lambda: _Leaf(pa.bool_(), "boolean"),
    datetime: lambda: _Leaf(pa.timestamp("us", "UTC"), "time, UTC"),
    timedelta: lambda: _Leaf(
        pa.float64(), "seconds", timedelta.total_seconds, lambda value: timedelta(seconds=value)
    ),
    Decimal: lambda: _Leaf(AMOUNT, "decimal number", amount, Decimal.normalize),
    FrozenObject: lambda: _Leaf(TEXT, "JSON text", _json, _json_object),
}


class _Integers(_Leaf):
    """Computed integers, or null if one exceeds 63 bits."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "integer", lambda value: value if value <= _LARGEST else None)


class _NestedJSON(Column):
    """Tuples of a recursive class, as canonical JSON, because Arrow has no recursive type."""

    type = TEXT
    word = "JSON text"

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def write(self, values: _Values) -> pa.Array:
        return pa.array([to_json(value) if value else None for value in values], self.type)

    def read(self, array: pa.Array) -> list[Any]:
        return [None if text is None else from_json(text, self._kind) for text in array.to_pylist()]


class _List(Column):
    """Tuples, as a list."""

    def __init__(
        self, item: Column, make: Callable[[Any], Any] = tuple, items_of: Callable[[Any], Any] = tuple
    ) -> None:
        self.item = item
        self.type = pa.list_(item.type)
        self.word = f"list of {item.word}"
        self._make = make
        self._items_of = items_of

    def write(self, values: _Values) -> pa.Array:
        items = [None if value is None else self._items_of(value) for value in values]
        ends = accumulate((len(each or ()) for each in items), initial=0)
        inner = self.item.write([item for each in items for item in each or ()])
        offsets = pa.array(ends, pa.int32())
        return pa.ListArray.from_arrays(offsets, inner, type=self.type, mask=_nulls(values))

    def read(self, array: pa.Array) -> list[Any]:
        items = iter(self.item.read(array.flatten()))
        lengths = array.value_lengths().to_pylist()
        return [
            None if length is None else self._make([next(items) for _ in range(length)]) for length in lengths
        ]


class _Words(Column):
    """A mapping of strings to words."""

    type = pa.map_(TEXT, TEXT)
    word = "map of text to text"

    def write(self, values: _Values) -> pa.Array:
        items = [
            None if value is None else [(key, str(word)) for key, word in value.items()] for value in values
        ]
        return pa.array(items, self.type)

    def read(self, array: pa.Array) -> list[Any]:
        return [None if items is None else dict(items) for items in array.to_pylist()]


def _nulls(values: _Values) -> pa.Array | None:
    nulls = [value is None for value in values]
    return pa.array(nulls) if any(nulls) else None


# --------------------------------------------------------------------------------- structs
# A struct column for a class: a field for each attribute, with nulls for placeholders.


def _error_message(response: ChatResponse) -> str | None:
    """Return the message that an error response repeats as its refusal, or ``None``."""
    if response.finish_reason is not FinishReason.ERROR:
        return None
    return next((each.content for each in response.segments if each.type is SegmentType.ERROR), None)


_NO_USAGE: Final = UsageInfo(0, 0)


_UNKNOWN: Final = "unknown"


_ABSENT: Final[dict[tuple[type, str], Callable[[Any], bool]]] = {
    (ChatResponse, "created"): lambda response: (
        response.created == EPOCH and response.metadata.provenance.get("created") is Provenance.SYNTHETIC
    ),
    (ChatResponse, "model"): lambda response: (
        response.model == _UNKNOWN and response.metadata.provenance.get("model") is Provenance.ABSENT
    ),
    (ChatResponse, "usage"): lambda response: (
        response.usage == _NO_USAGE and response.metadata.provenance.get("usage") is Provenance.ABSENT
    ),
    (ChatResponse, "refusal"): lambda response: (
        bool(response.refusal) and response.refusal == _error_message(response)
    ),
    (ResponseMetadata, "model_id"): lambda metadata: (
        metadata.model_id == _UNKNOWN and metadata.provenance.get("model") is Provenance.ABSENT
    ),
    (ResponseMetadata, "request_duration"): lambda metadata: not metadata.request_duration,
}
"""Tests for values that are placeholders for missing data. They are null in a column."""


_DEFAULTS: Final[dict[tuple[type, str], Any]] = {
    (ChatResponse, "created"): EPOCH,
    (ChatResponse, "model"): _UNKNOWN,
    (ChatResponse, "usage"): _NO_USAGE,
    (ResponseMetadata, "model_id"): _UNKNOWN,
}
"""The values for null in attributes that have no default."""


class ColumnField(typing.NamedTuple):
    """A column of a struct.

    Attributes:
        name: the name of the column.
        attribute: the attribute that it stores.
        holds: the type of the values that it stores, or ``None`` for every type of the attribute.
        column: the column type.
        key: the key of canonical JSON that it belongs to.
        cls: the class with the attribute.
    """

    name: str
    attribute: str
    holds: type | None
    column: Column
    key: LayoutKey
    cls: type

    def of(self, values: _Values) -> list[Any]:
        """Return the attribute of each of *values*, or ``None`` for types that another column stores."""
        name, holds = self.attribute, self.holds
        is_absent = _ABSENT.get((self.cls, name))
        results = [
            None
            if is_absent is not None and value is not None and is_absent(value)
            else getattr(value, name, None)
            for value in values
        ]
        return results if holds is None else [item if type(item) is holds else None for item in results]


class Struct(Column):
    """A struct with the fields of a class, or of several classes that ``type`` distinguishes.

    Args:
        classes: the classes.
        path: the enclosing classes, from the outermost.
        include_raw: whether there is a column for the provider's bytes.
    """

    def __init__(self, classes: Sequence[type], path: tuple[type, ...] = (), *, include_raw: bool = False):
        self.classes = tuple(classes)
        self.is_tagged = classes[0] in TAGS
        fields: dict[str, ColumnField] = {}
        for cls in classes:
            for field in _fields(cls, (*path, cls), include_raw):
                known = fields.setdefault(field.name, field)
                assert known.column.type == field.column.type, f"{field.name} has two types"
        self.fields = tuple(fields.values())
        tag = [pa.field("type", TEXT)] if self.is_tagged else []
        self.type = pa.struct([*tag, *(pa.field(each.name, each.column.type) for each in self.fields)])
        self.word = "struct"

    def columns(self, values: _Values) -> list[pa.Array]:
        """Return a column for each field, preceded by the tag if there are several classes."""
        tags = [pa.array([TAGS.get(type(value)) for value in values], TEXT)] if self.is_tagged else []
        return [*tags, *(field.column.write(field.of(values)) for field in self.fields)]

    def write(self, values: _Values) -> pa.Array:
        """Return the struct column of *values*."""
        return pa.StructArray.from_arrays(self.columns(values), type=self.type, mask=_nulls(values))

    def read(self, array: pa.Array) -> list[Any]:
        """Return the values of a struct column."""
        columns = dict(zip((each.name for each in self.type), array.flatten(), strict=True))
        tags = columns["type"].to_pylist() if self.is_tagged else [None] * len(array)
        made = self.made(columns, len(array), tags, array.is_valid().to_pylist())
        return list(made)

    def made(
        self,
        columns: Mapping[str, pa.Array],
        length: int,
        tags: Sequence[str | None] | None = None,
        valid: Sequence[bool] | None = None,
    ) -> Iterator[Any]:
        """Yield the values in *columns*, some of which may be missing.

        Raises:
            ResponseValidationError: a value violates a rule of its class.
            ValueError, TypeError: a value does not belong to the class.
        """
        read: dict[str, list[Any]] = {}
        for field in self.fields:
            if field.name in columns and not field.key.computed:
                values = field.column.read(columns[field.name])
                known = read.get(field.attribute)
                read[field.attribute] = (
                    values
                    if known is None
                    else [a if b is None else b for a, b in zip(known, values, strict=True)]
                )
        classes = {TAGS.get(cls): cls for cls in self.classes}
        names = {cls: [key.attribute for key in layout(cls) if key.attribute in read] for cls in self.classes}
        requested = {  # for other attributes, null means the default
            field.name
            for cls in self.classes
            for field in attrs.fields(cls)
            if field.default is attrs.NOTHING
        }
        for row in range(length):
            if valid is not None and not valid[row]:
                yield None
                continue
            cls = classes[tags[row] if self.is_tagged and tags is not None else TAGS.get(self.classes[0])]
            given = {name: read[name][row] for name in names[cls]}
            for name, item in given.items():
                if item is None and (cls, name) in _DEFAULTS:
                    given[name] = _DEFAULTS[cls, name]
            yield cls(**{name: item for name, item in given.items() if item is not None or name in requested})


def _fields(cls: type, path: tuple[type, ...], include_raw: bool) -> Iterator[ColumnField]:
    for key in layout(cls):
        if key.name in RAW and not include_raw:
            continue
        members = union_members(key.type)
        if str in members:  # a text, or parts
            parts = next(member for member in members if member is not str)
            yield ColumnField(key.name, key.attribute, str, _column(str, path), key, cls)
            yield ColumnField(f"{key.name}_parts", key.attribute, tuple, _column(parts, path), key, cls)
        else:
            column = _Integers() if key.computed and key.type is int else _column(key.type, path)
            yield ColumnField(key.name, key.attribute, None, column, key, cls)


def _column(kind: Any, path: tuple[type, ...]) -> Column:
    if kind in _LEAVES:
        return _LEAVES[kind]()
    if kind is RawEvents:
        return _List(_Leaf(BYTES, "bytes"), RawEvents, lambda events: events.frames)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Leaf(TEXT, "word", str, kind)
    if typing.get_origin(kind) is Mapping:
        return _Words()
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        return _NestedJSON(kind) if path.count(item) > 1 else _List(_column(item, path))
    members = union_members(kind) or (kind,)
    assert all(member in CANONICAL for member in members), f"{kind!r} has no column"
    return Struct(members, path)


# --------------------------------------------------------------------------------- privacy
# Columns without the messages of users and models, or with checksums instead.


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


# ----------------------------------------------------------------------------------- arrow
# Conversion of responses to Arrow tables and back.


_VERSION: Final = "format_version"
_VERSION_KEY: Final = b"crosswalk.format_version"
_ROWS: Final = 10_000
"""The number of responses in a batch of a table."""


@cache
def columns(include_raw: bool = False) -> Struct:
    """Return the columns of a response."""
    return Struct([ChatResponse], include_raw=include_raw)


@cache
def schema(*, include_raw: bool = False) -> pa.Schema:
    """Return the Arrow schema of responses. Its metadata names the version of canonical JSON.

    Args:
        include_raw: add a column ``raw_events`` for the provider's own bytes.
    """
    fields = [*columns(include_raw).type, pa.field(_VERSION, TEXT)]
    return pa.schema(fields, metadata={_VERSION_KEY: FORMAT_VERSION.encode()})


def to_arrow(responses: Iterable[ChatResponse], *, include_raw: bool = False) -> pa.Table:
    """Return *responses* as a table of :func:`schema`, a row for each.

    Args:
        responses: the responses.
        include_raw: include the provider's own bytes.

    Raises:
        CanonicalJSONError: a response holds a value that JSON cannot represent.
    """
    remainder = iter(responses)
    batches = []
    while some := list(islice(remainder, _ROWS)):
        arrays = columns(include_raw).columns(some)
        versions = pa.array([FORMAT_VERSION] * len(some), TEXT)
        batches.append(
            pa.RecordBatch.from_arrays([*arrays, versions], schema=schema(include_raw=include_raw))
        )
    return pa.Table.from_batches(batches, schema(include_raw=include_raw))


def from_arrow(table: pa.Table | pa.RecordBatch) -> list[ChatResponse]:
    """Return the responses in *table*, one for each row.

    Columns may be in any order and of equivalent Arrow types, as other engines write them. Columns that canonical JSON does
    not require may be missing. Other columns and computed ones are ignored.

    Raises:
        CanonicalJSONError: a column is missing or has another type, a row violates a rule of the types, or the format
            version cannot be read.
    """
    return [response for batch in _batches(table) for response in _responses(batch)]


def _batches(table: pa.Table | pa.RecordBatch) -> Iterable[pa.RecordBatch]:
    return [table] if isinstance(table, pa.RecordBatch) else table.to_batches(_ROWS)


def _responses(batch: pa.RecordBatch) -> Iterator[ChatResponse]:
    _check_versions(batch)
    has_raw = "raw_events" in batch.schema.names
    struct = columns(has_raw)
    results = {}
    for field in struct.fields:
        if field.name in batch.schema.names:
            results[field.name] = _cast(batch.column(field.name), field.name, field.column.type)
        elif field.key.required:
            raise CanonicalJSONError(f"cannot read ChatResponse: there is no column {field.name}")
    made = struct.made(results, batch.num_rows)
    row = 0
    while True:
        try:
            response = next(made, None)
        except (ValueError, TypeError, KeyError) as error:
            cause = error if isinstance(error, ValueError) else "a value of another type"
            raise CanonicalJSONError(f"cannot read ChatResponse: row {row}: {cause}") from None
        if response is None:
            return
        yield response
        row += 1


def _cast(array: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise CanonicalJSONError(
            f"cannot read ChatResponse: column {name} is of another type: {array.type}"
        ) from None


def _check_versions(batch: pa.RecordBatch) -> None:
    names = batch.schema.names
    metadata = batch.schema.metadata or {}
    versions = (
        batch.column(_VERSION).unique().to_pylist()
        if _VERSION in names
        else [metadata.get(_VERSION_KEY, FORMAT_VERSION.encode()).decode()]
    )
    for version in versions:
        try:
            check_version(FORMAT_VERSION if version is None else version)
        except ValueError as error:
            raise CanonicalJSONError(f"cannot read ChatResponse: {error}") from None
