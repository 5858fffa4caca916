"""Conversion of responses to Arrow tables and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Final

import pyarrow as pa

from crosswalk.codec import FORMAT_VERSION
from crosswalk.codec.layout import check_version
from crosswalk.errors import CanonicalJSONError
from crosswalk.types import ChatResponse
from crosswalk_batch.columns import TEXT
from crosswalk_batch.structs import Struct

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
