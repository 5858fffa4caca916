"""Canonical values as Arrow columns and back, worked out from the keys of canonical JSON.

One table of keys (``crosswalk.codec.layout``) says what the types hold, so columns and JSON cannot differ. What differs is
said here: a class is a struct, a tuple a list, a union of classes one struct with all their fields, and a content that is
a text or parts is two columns. What has no fixed structure (extensions, metadata of a segment) is JSON text, as is what is
nested in its own class more than once. Whole numbers of fields have 63 bits, those of extensions keep every digit as text.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from enum import Enum
from itertools import accumulate
from typing import Any, Final

import attrs
import pyarrow as pa

from crosswalk.codec import from_json, to_json
from crosswalk.codec.layout import CANONICAL, RAW, TAGS, Key, layout, union_members
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

__all__ = ["AMOUNT", "BYTES", "EPOCH", "TEXT", "Column", "Field", "Struct", "amount"]

_Values = Sequence[Any]

TEXT: Final = pa.large_string()
BYTES: Final = pa.large_binary()
AMOUNT: Final = pa.decimal128(38, 18)
"""An amount of money; what is smaller than a billionth of a billionth is rounded."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST: Final = 2**63 - 1
_ATOM: Final = Decimal(1).scaleb(-18)


class Column(ABC):
    """How values of one type stand in a column, ``None`` as null.

    Attributes:
        type: the Arrow type.
        word: the type in a word, for documents.
    """

    type: pa.DataType
    word: str

    @abstractmethod
    def write(self, values: _Values) -> pa.Array:
        """The column of *values*."""

    @abstractmethod
    def read(self, array: pa.Array) -> list[Any]:
        """The values of a column of this type."""


class _Leaf(Column):
    """A value that Arrow has, or what a function makes of it."""

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
    """The JSON text of extensions; null where they are empty."""
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
    """*value*, an amount of money of less than 20 digits before the point, as a column holds it."""
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
    """Computed integers; null where one has more than 63 bits."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "integer", lambda value: value if value <= _LARGEST else None)


class _NestedJSON(Column):
    """Tuples of a class that holds itself, as canonical JSON: Arrow has no type that does."""

    type = TEXT
    word = "JSON text"

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def write(self, values: _Values) -> pa.Array:
        return pa.array([to_json(value) if value else None for value in values], self.type)

    def read(self, array: pa.Array) -> list[Any]:
        return [None if text is None else from_json(text, self._kind) for text in array.to_pylist()]


class _List(Column):
    """Tuples: a list."""

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
    """A mapping of texts to words."""

    type = pa.map_(TEXT, TEXT)
    word = "map of text to text"

    def write(self, values: _Values) -> pa.Array:
        items = [
            None if value is None else [(key, str(word)) for key, word in value.items()] for value in values
        ]
        return pa.array(items, self.type)

    def read(self, array: pa.Array) -> list[Any]:
        return [None if items is None else dict(items) for items in array.to_pylist()]


def _error_message(response: ChatResponse) -> str | None:
    """The message that an error response repeats as its refusal; ``None`` where there is none."""
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
        response.refusal is not None and response.refusal == _error_message(response)
    ),
    (ResponseMetadata, "model_id"): lambda metadata: (
        metadata.model_id == _UNKNOWN and metadata.provenance.get("model") is Provenance.ABSENT
    ),
    (ResponseMetadata, "request_duration"): lambda metadata: not metadata.request_duration,
}
"""Which values are placeholders for what nobody has said: they are null in a column."""
_DEFAULTS: Final[dict[tuple[type, str], Any]] = {
    (ChatResponse, "created"): EPOCH,
    (ChatResponse, "model"): _UNKNOWN,
    (ChatResponse, "usage"): _NO_USAGE,
    (ResponseMetadata, "model_id"): _UNKNOWN,
}
"""What a null is read as, where an attribute has no default of its own."""


class Field(typing.NamedTuple):
    """One column of a struct.

    Attributes:
        name: what it is called.
        attribute: the attribute of the value that it holds.
        holds: the type of the values that belong here; ``None`` for all that the attribute has.
        column: how they stand.
        key: the key of canonical JSON that it belongs to.
        cls: the class that has the attribute.
    """

    name: str
    attribute: str
    holds: type | None
    column: Column
    key: Key
    cls: type

    def of(self, values: _Values) -> list[Any]:
        """What the attribute of each of *values* holds, where it belongs here."""
        name, holds = self.attribute, self.holds
        is_absent = _ABSENT.get((self.cls, name))
        found = [
            None
            if is_absent is not None and value is not None and is_absent(value)
            else getattr(value, name, None)
            for value in values
        ]
        return found if holds is None else [item if type(item) is holds else None for item in found]


class Struct(Column):
    """One class, or several that are told apart by ``type``: a struct of the fields of all.

    Args:
        classes: the classes.
        path: the classes that it stands in, from the outermost.
        include_raw: whether the provider's bytes have a column.
    """

    def __init__(self, classes: Sequence[type], path: tuple[type, ...] = (), *, include_raw: bool = False):
        self.classes = tuple(classes)
        self.is_tagged = classes[0] in TAGS
        fields: dict[str, Field] = {}
        for cls in classes:
            for field in _fields(cls, (*path, cls), include_raw):
                known = fields.setdefault(field.name, field)
                assert known.column.type == field.column.type, f"{field.name} has two types"
        self.fields = tuple(fields.values())
        tag = [pa.field("type", TEXT)] if self.is_tagged else []
        self.type = pa.struct([*tag, *(pa.field(each.name, each.column.type) for each in self.fields)])
        self.word = "struct"

    def columns(self, values: _Values) -> list[pa.Array]:
        """A column for each field, the tag first where there is one."""
        tags = [pa.array([TAGS.get(type(value)) for value in values], TEXT)] if self.is_tagged else []
        return [*tags, *(field.column.write(field.of(values)) for field in self.fields)]

    def write(self, values: _Values) -> pa.Array:
        return pa.StructArray.from_arrays(self.columns(values), type=self.type, mask=_nulls(values))

    def read(self, array: pa.Array) -> list[Any]:
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
        """The values that *columns* hold, which may be fewer than all.

        Raises:
            ResponseValidationError: they break a rule of their class. ValueError, TypeError: they are none of it.
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
        asked = {  # null is the default, where there is one
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
            yield cls(**{name: item for name, item in given.items() if item is not None or name in asked})


def _nulls(values: _Values) -> pa.Array | None:
    nulls = [value is None for value in values]
    return pa.array(nulls) if any(nulls) else None


def _fields(cls: type, path: tuple[type, ...], include_raw: bool) -> Iterator[Field]:
    for key in layout(cls):
        if key.name in RAW and not include_raw:
            continue
        members = union_members(key.type)
        if str in members:  # a text, or parts
            parts = next(member for member in members if member is not str)
            yield Field(key.name, key.attribute, str, _column(str, path), key, cls)
            yield Field(f"{key.name}_parts", key.attribute, tuple, _column(parts, path), key, cls)
        else:
            column = _Integers() if key.computed and key.type is int else _column(key.type, path)
            yield Field(key.name, key.attribute, None, column, key, cls)


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
