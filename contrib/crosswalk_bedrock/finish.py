"""Stop reasons (section 4)."""

from __future__ import annotations

from crosswalk import FinishReason, UnknownFinishReasonError

__all__ = ["FINISH_REASONS", "finish_reason"]

FINISH_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "guardrail_intervened": FinishReason.CONTENT_FILTER,
    "content_filtered": FinishReason.CONTENT_FILTER,
    "malformed_model_output": FinishReason.ERROR,
    "malformed_tool_use": FinishReason.ERROR,
    "": FinishReason.ERROR,  # it ended, and did not say why
}


def finish_reason(word: str) -> FinishReason:
    """What ``stopReason`` means; ``""`` where the provider gave none.

    Raises:
        UnknownFinishReasonError: the word is not known.
    """
    try:
        return FINISH_REASONS[word]
    except KeyError:
        raise UnknownFinishReasonError(word) from None
