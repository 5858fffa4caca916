"""The event ``null``: of several prompts whose answers are streamed, the server has begun with one more."""

from __future__ import annotations

from typing import Any

from crosswalk import (
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    UnknownFinishReasonError,
    UsageInfo,
)
from crosswalk_llamacpp.usage import begin_prompt

__all__ = ["NothingDialect"]


class NothingDialect:
    """The mapping hooks for an event that says nothing, but that there is an answer more."""

    def recognizes(self, event: Any) -> Recognition:
        """``null`` says nothing about who sent it."""
        return Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> tuple[ResponseDelta, ...]:
        """No deltas, but an answer more has to end. The first begins without a word."""
        state.choices.add(begin_prompt(state) - 1)
        return ()

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """There is no word."""
        raise UnknownFinishReasonError(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """No counts."""
        return None

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Nothing is left."""
        return {}
