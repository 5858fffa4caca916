"""Folders by day and by provider, in the way of Hive, which DuckDB, Polars, pandas, Spark and Arrow all read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["PARTITIONS", "partitions"]

PARTITIONS: Final[Mapping[str, Callable[[pa.Table], pa.ChunkedArray]]] = {
    "provider": lambda table: pc.struct_field(table["metadata"], "provider_id"),
    "day": lambda table: pc.strftime(table["time"], "%Y-%m-%d"),
}
"""What responses can be put into folders by; of days those of UTC."""


_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder of what has no such value; engines read it as null."""


def partitions(table: pa.Table, by: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of *table* for each folder, ``provider=ollama/day=2026-11-20``, in their order; with nothing to go *by*, all
    of them for ``""``."""
    if not by:
        yield "", table
        return
    rows: dict[tuple[Any, ...], list[int]] = {}
    for row, values in enumerate(zip(*(PARTITIONS[name](table).to_pylist() for name in by), strict=True)):
        rows.setdefault(values, []).append(row)
    for values, found in sorted(rows.items(), key=lambda item: [value or "" for value in item[0]]):
        folders = (
            f"{name}={_NULL if value is None else quote(value, safe='')}"
            for name, value in zip(by, values, strict=True)
        )
        yield "/".join(folders), table.take(found)
