"""A provider with a mapping that changes, as an upgrade would change it."""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import (
    FinishReason,
    ResponseDelta,
    UnknownFinishReasonError,
    UsageInfo,
    hookimpl,
)

__all__ = ["Wren"]


class Wren:
    """Reads ``{"say": "Hi", "why": "end", "cached": 0}``. Its attributes say how much of that it knows.

    Attributes:
        words: the finish words.
        reads_cache: whether the count of cached tokens is read.
        fails: whether nothing can be read.
        breaks: whether what it leaves is no JSON.
    """

    words = {"end": FinishReason.STOP, "full": FinishReason.STOP}
    reads_cache = False
    fails = False
    breaks = False

    @hookimpl
    def map_delta(self, event: Any) -> list[ResponseDelta]:
        if self.fails:
            raise KeyError("upgrade")
        return [ResponseDelta(content_delta=event["say"], raw_finish_reason=event["why"])]

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        if reason not in self.words:
            raise UnknownFinishReasonError(reason)
        return self.words[reason]

    @hookimpl
    def map_usage(self, event: Any) -> UsageInfo:
        return UsageInfo(9, 4, event["cached"] if self.reads_cache else None)

    @hookimpl
    def extensions(self, event: Any) -> dict[str, Any]:
        return {"kept": object() if self.breaks else 1}

    @hookimpl
    def recognizes(self, event: Any) -> int:
        return 2 if "say" in event else 0
