"""Logs of answers as columns: Arrow tables and Parquet, on all cores or a cluster. Needs the extra ``batch``.

:func:`to_arrow` and :func:`from_arrow` convert responses to tables of :func:`schema` and back. :func:`normalize_batch` maps
a batch of records, and every engine calls it. ``crosswalk batch`` maps whole logs. ``crosswalk_batch.ray`` is for Ray Data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk_batch.arrow import *
    from crosswalk_batch.batches import *
    from crosswalk_batch.options import *
else:
    __getattr__, __dir__ = lazy(__name__, "arrow batches options")
