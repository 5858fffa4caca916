"""Accumulates events into snapshots of a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.accumulator.accumulating import (
        ResponseAccumulator as ResponseAccumulator,
        ResponseSnapshot as ResponseSnapshot,
        snapshots as snapshots,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.accumulator.accumulating": (
                "ResponseAccumulator ResponseSnapshot snapshots"
            ),
        },
    )
