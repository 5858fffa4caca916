"""Bytes to deltas to a response, and the building blocks that plugins are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.mapping.reader import (
        Reader as Reader,
        ReaderOptions as ReaderOptions,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.mapping.reader": "Reader ReaderOptions",
        },
    )
