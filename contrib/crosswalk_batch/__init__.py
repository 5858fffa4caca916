"""Logs of answers as columns: Arrow tables and Parquet, on all cores or in any engine. Needs the extra ``batch``.

:func:`to_arrow` and :func:`from_arrow` convert responses to tables of :func:`schema` and back. :func:`normalize_batch` maps
a table of records. Every engine calls it: Ray Data, Daft, Spark, DuckDB, and ``crosswalk batch``, which maps whole logs on
one machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk_batch.batches import (
        EXCHANGE as EXCHANGE,
        INPUT as INPUT,
        PLACE as PLACE,
        Normalized as Normalized,
        Options as Options,
        combined as combined,
        normalize_batch as normalize_batch,
        rejects_schema as rejects_schema,
        responses_schema as responses_schema,
    )
    from crosswalk_batch.columns import (
        from_arrow as from_arrow,
        schema as schema,
        to_arrow as to_arrow,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk_batch.batches": (
                "EXCHANGE INPUT Normalized Options PLACE combined normalize_batch rejects_schema "
                "responses_schema"
            ),
            "crosswalk_batch.columns": "from_arrow schema to_arrow",
        },
    )
