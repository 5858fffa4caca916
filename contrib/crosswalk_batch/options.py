"""The options of a batch, and the columns that they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import attrs
import pyarrow as pa

from crosswalk.errors import ConfigurationError
from crosswalk.records import Layout
from crosswalk_batch.arrow import schema
from crosswalk_batch.columns import AMOUNT, BYTES, TEXT
from crosswalk_batch.privacy import Content

PLACE: Final = pa.schema([("source", TEXT), ("number", pa.int64()), ("record_id", TEXT)])
"""The columns for the origin of a record: its file, its number in the file from 1, and its id in the log."""


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
        ("session", TEXT),
        ("user", TEXT),
        ("trace_id", TEXT),
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
        content: how messages of users and models are stored. See :func:`crosswalk_batch.privacy.without_content`.
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
