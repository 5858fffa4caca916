"""Stop reasons (section 4)."""

from __future__ import annotations

from crosswalk import FinishReason

__all__ = ["FINISH_REASONS", "UNFINISHED"]

FINISH_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
    "pause_turn": FinishReason.STOP,
    "compaction": FinishReason.STOP,
}
UNFINISHED = ("pause_turn", "compaction")
"""The client is to send the answer back and gets the rest: nearest to ``stop``, but not the provider's word for it."""
