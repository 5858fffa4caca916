"""Deltas to responses, and one stream for many consumers."""

from crosswalk.stream.replay import StreamingChatResponse, StreamState
from crosswalk.types.accumulator import DeltaAccumulator, PartialResponse

__all__ = ["DeltaAccumulator", "PartialResponse", "StreamState", "StreamingChatResponse"]
