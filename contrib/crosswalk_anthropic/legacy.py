"""Text Completions (``/v1/complete``): the API before Messages, also inside Amazon Bedrock, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crosswalk import (
    TAKEN,
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    error_delta,
    event_type,
    get_string,
    require_object,
    residue,
    taken_if,
)
from crosswalk_anthropic.errors import anthropic_error
from crosswalk_anthropic.finish import FINISH_REASONS

__all__ = ["CONSUMED", "CompletionsDialect"]

CONSUMED = {
    "type": TAKEN,
    "id": taken_if(lambda value, _, state: value is None or value == state.response_id),
    "model": taken_if(lambda value, _, state: value is None or value == state.model),
    "completion": TAKEN,
    "stop_reason": TAKEN,
}


class CompletionsDialect:
    """The mapping hooks for Text Completions: a body is a stream of one event."""

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* has a completion; Bedrock leaves out its type."""
        if not isinstance(event, dict) or not isinstance(event.get("completion"), str):
            return Recognition.NO
        return Recognition.CERTAIN if event.get("type") == "completion" else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The text of one event, and the end where it says so."""
        event = require_object(event, "the event")
        kind = get_string(event, "type")
        if kind == "error":
            return [error_delta(anthropic_error(None, event), state)]
        if kind == "ping":
            return []
        if kind not in ("completion", None) or "completion" not in event:
            raise UnknownEventError(
                f"no completion in it ({kind or 'no type'})", event_type=event_type(event)
            )
        state.identify(id=get_string(event, "id"), model=get_string(event, "model"))
        text, reason = get_string(event, "completion"), get_string(event, "stop_reason")
        if not text and reason is None:
            return []
        return [ResponseDelta(state.next_index(), text or None, raw_finish_reason=reason)]

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """The reason for ``stop_reason``: ``stop_sequence`` or ``max_tokens``."""
        try:
            return FINISH_REASONS[reason]
        except KeyError:
            raise UnknownFinishReasonError(reason) from None

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """This API counts no tokens."""
        return None

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Everything that :data:`CONSUMED` does not name; an error's segment keeps it whole."""
        return {} if event.get("type") == "error" else residue(event, CONSUMED, state)
