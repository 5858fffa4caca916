"""``python scripts/batch_columns.py > docs/batch-columns.md`` writes the columns of responses as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from crosswalk.codec import FORMAT_VERSION
from crosswalk.schemas.json_schema import documented_attributes
from crosswalk_batch.columns import Column, ColumnField, Struct, columns

_HEAD = f"""# The columns of responses

`python scripts/batch_columns.py` writes this page. Do not edit it by hand. `crosswalk_batch.schema()` returns the columns as
an Arrow schema. They are the keys of [canonical JSON](canonical-json.md#versions-of-the-format), version {FORMAT_VERSION}.
`crosswalk batch` puts `source`, `number` and `record_id` before them. See [Logs as columns](batch.md).

The columns of a `struct` follow it, with a dot between the names. `[]` means the items of a list. A null value is unknown or
empty. You get `raw_events` only with `--raw`. Computed columns are for you to read: `from_arrow` ignores them.

| column | type | |
|---|---|---|
"""


def columns_page() -> str:
    """Return the page."""
    last = f"| `format_version` | text | the version of canonical JSON, `{FORMAT_VERSION}` |\n"
    return _HEAD + "".join(_rows(columns(True), "")) + last


def _rows(struct: Struct, path: str) -> Iterator[str]:
    if struct.is_tagged:
        yield f"| `{path}type` | text | which of them it is |\n"
    for field in struct.fields:
        name = f"{path}{field.name}"
        column = field.column
        yield f"| `{name}` | {column.word} | {_said(field)} |\n"
        inner, inner_path = _inner(column, name)
        if isinstance(inner, Struct):
            yield from _rows(inner, f"{inner_path}.")


def _inner(column: Column, name: str) -> tuple[Column, str]:
    item = getattr(column, "item", None)
    return (column, name) if item is None else _inner(item, f"{name}[]")


def _said(field: ColumnField) -> str:
    if field.key.computed:
        return "computed"
    text = documented_attributes(field.cls).get(field.attribute, "")
    only = "" if field.holds is None else "; here a text" if field.holds is str else "; here parts"
    return text.rstrip(".").replace("|", "\\|") + only


if __name__ == "__main__":
    print(columns_page(), end="")
