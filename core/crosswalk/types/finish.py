"""Why a generation ended."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["FinishReason"]


class FinishReason(StrEnum):
    """Why the model stopped; read case-insensitively, written as these words."""

    STOP = "stop"
    """The model finished by itself."""
    LENGTH = "length"
    """A limit of tokens was reached, or the answer was cut for another reason: it is incomplete."""
    TOOL_CALLS = "tool_calls"
    """The model asks the client to run tools."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped the answer."""
    ERROR = "error"
    """The generation failed."""
    CANCELLED = "cancelled"
    """The client, or the server's operator, stopped it."""

    @classmethod
    def _missing_(cls, value: object) -> FinishReason | None:
        return _BY_WORD.get(value.lower()) if isinstance(value, str) else None


_BY_WORD = {reason.value: reason for reason in FinishReason}
