"""The columns of responses as a page of Markdown; ``python -m crosswalk_batch`` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from crosswalk.codec import FORMAT_VERSION
from crosswalk.schemas.docstrings import documented_attributes
from crosswalk_batch.arrow import columns
from crosswalk_batch.columns import Column, Field, Struct

__all__ = ["columns_page"]

_HEAD = f"""# The columns of responses

Written by `python -m crosswalk_batch`; not to be edited by hand. `crosswalk_batch.schema()` gives them as an Arrow schema.
They are the keys of [canonical JSON](types.md#versions-of-the-format), version {FORMAT_VERSION}. `crosswalk batch` puts
`source`, `number` and `record_id` before them; [Logs as columns](batch.md) tells the rest.

A `struct` has the columns below it, with a point between; `[]` stands for the items of a list. What is null was not said, or
is empty. `raw_events` is there with `--raw` alone. Computed columns are for the reader: `from_arrow` passes over them.

| column | type | |
|---|---|---|
"""


def columns_page() -> str:
    """The page."""
    last = f"| `format_version` | text | the version of canonical JSON, `{FORMAT_VERSION}` |\n"
    return _HEAD + "".join(_rows(columns(True), "")) + last


def _rows(struct: Struct, path: str) -> Iterator[str]:
    if struct.is_tagged:
        yield f"| `{path}type` | text | which of them it is |\n"
    for field in struct.fields:
        name = f"{path}{field.name}"
        column = field.column
        yield f"| `{name}` | {column.word} | {_said(field)} |\n"
        inner, place = _inner(column, name)
        if isinstance(inner, Struct):
            yield from _rows(inner, f"{place}.")


def _inner(column: Column, name: str) -> tuple[Column, str]:
    item = getattr(column, "item", None)
    return (column, name) if item is None else _inner(item, f"{name}[]")


def _said(field: Field) -> str:
    if field.key.computed:
        return "computed"
    text = documented_attributes(field.cls).get(field.attribute, "")
    only = "" if field.holds is None else "; here a text" if field.holds is str else "; here parts"
    return text.rstrip(".").replace("|", "\\|") + only
