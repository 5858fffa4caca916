"""Deltas to responses, and one stream for many consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.stream.replay import (
        StreamingChatResponse as StreamingChatResponse,
    )
    from crosswalk.stream.source import (
        StreamState as StreamState,
    )
    from crosswalk.types.stream import (
        DeltaAccumulator as DeltaAccumulator,
        PartialResponse as PartialResponse,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.stream.replay": "StreamingChatResponse",
            "crosswalk.stream.source": "StreamState",
            "crosswalk.types.stream": "DeltaAccumulator PartialResponse",
        },
    )
