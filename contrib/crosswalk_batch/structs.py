"""A struct column for a class: a field for each attribute, with nulls for placeholders."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import attrs
import pyarrow as pa

from crosswalk.codec.layout import CANONICAL, RAW, TAGS, Key, layout, union_members
from crosswalk.types import (
    ChatResponse,
    FinishReason,
    Provenance,
    RawEvents,
    ResponseMetadata,
    SegmentType,
    UsageInfo,
)
from crosswalk_batch.columns import (
    _LEAVES,
    BYTES,
    EPOCH,
    TEXT,
    Column,
    _Integers,
    _Leaf,
    _List,
    _NestedJSON,
    _nulls,
    _Values,
    _Words,
)


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
        response.refusal is not None and response.refusal == _error_message(response)
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


class Field(typing.NamedTuple):
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
    key: Key
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
