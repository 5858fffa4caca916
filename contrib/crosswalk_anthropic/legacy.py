"""Text Completions (``/v1/complete``): the API before Messages, also inside Amazon Bedrock, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crosswalk.plugins import (
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    event_type,
    require_object,
    take_error,
    take_string,
)
from crosswalk_anthropic.words import FINISH_REASONS, anthropic_error

__all__ = ["CompletionsDialect"]


class CompletionsDialect:
    """The mapping hooks for Text Completions: a body is a stream of one event."""

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* has a completion; Bedrock leaves out its type."""
        if not isinstance(event, dict) or not isinstance(event.get("completion"), str):
            return Recognition.NO
        return Recognition.CERTAIN if event.get("type") == "completion" else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The text of one event, and the end where it says so."""
        event = require_object(event)
        word, kind = event_type(event), take_string(event, "type")
        if kind == "error":
            yield take_error(event, anthropic_error(None, {"type": kind, **event}))
            return
        if kind == "ping":
            return
        if kind not in ("completion", None) or "completion" not in event:
            raise UnknownEventError(f"no completion in it ({word or 'no type'})", event_type=word)
        state.take_identity(event)
        if text := take_string(event, "completion"):
            yield ResponseDelta(content_delta=text)
        reason = take_string(event, "stop_reason")
        if reason is not None:
            yield ResponseDelta(raw_finish_reason=reason)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """The reason for ``stop_reason``: ``stop_sequence`` or ``max_tokens``."""
        try:
            return FINISH_REASONS[reason]
        except KeyError:
            raise UnknownFinishReasonError(reason) from None

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """This API counts no tokens."""
        return None
