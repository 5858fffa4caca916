"""What the words mean that end an answer: ``ebb/…`` by itself, ``flood/…`` because it was stopped."""

from __future__ import annotations

from crosswalk import FinishReason, UnknownFinishReasonError

__all__ = ["finish_reason"]

_REASONS = {
    "ebb/done": FinishReason.STOP,
    "ebb/tool": FinishReason.TOOL_CALLS,
    "ebb/full": FinishReason.LENGTH,
    "flood/shark": FinishReason.CONTENT_FILTER,
}


def finish_reason(reason: str) -> FinishReason:
    """The canonical reason for the provider's word.

    Raises:
        UnknownFinishReasonError: the word is not known.
    """
    try:
        return _REASONS[reason]
    except KeyError:
        raise UnknownFinishReasonError(reason) from None
