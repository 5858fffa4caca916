"""Canonical values as Arrow columns and back, worked out from the keys of canonical JSON.

One table of keys (``crosswalk.codec.layout``) says what the types hold, so columns and JSON cannot differ. What differs is
said here: a class is a struct, a tuple a list, a union of classes one struct with all their fields, and a content that is
a text or parts is two columns. What has no fixed structure (extensions, metadata of a segment) is JSON text, as is what is
nested in its own class more than once. Whole numbers of fields have 63 bits, those of extensions keep every digit as text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from crosswalk.codec import from_json, to_json
from crosswalk.errors import CanonicalJSONError
from crosswalk.types import (
    FrozenObject,
)
from crosswalk.types.json import dump_json, holds_non_finite, load_json, plain_view

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
