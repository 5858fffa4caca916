"""``python -m crosswalk_batch > docs/batch-columns.md``: the columns of responses as a page of Markdown."""

from __future__ import annotations

from crosswalk_batch.document import columns_page

print(columns_page(), end="")
