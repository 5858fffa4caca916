"""What the words of the API mean: stop reasons (section 4), and the types of errors (section 7)."""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import ErrorInfo, ErrorKind, FinishReason, error_info, refined

__all__ = ["FINISH_REASONS", "UNFINISHED", "anthropic_error"]

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

# Those that the general rules do not know by their words.
_KINDS = {
    "invalid_request_error": ErrorKind.INVALID_REQUEST,
    "billing_error": ErrorKind.PERMISSION,
    "permission_error": ErrorKind.PERMISSION,
    "not_found_error": ErrorKind.INVALID_REQUEST,
    "conflict_error": ErrorKind.INVALID_REQUEST,
    "request_too_large": ErrorKind.INVALID_REQUEST,
    "timeout_error": ErrorKind.TIMEOUT,
    "api_error": ErrorKind.SERVER,
}
# What the general rules say where no word of the message told them more.
_BROAD = (ErrorKind.UNKNOWN, ErrorKind.INVALID_REQUEST, ErrorKind.SERVER)


def anthropic_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error ``{"type": "error", "error": {"type", "message"}, "request_id"}`` says.

    *status* is ``None`` for an event inside a stream. Where the message does not say more (a full context, an unknown
    model), ``error.type`` decides.
    """
    info = error_info(status, body)
    if info.code == "not_found_error" and info.message.startswith("model:"):
        return refined(info, ErrorKind.MODEL_UNAVAILABLE)
    return refined(info, _KINDS.get(info.code or "") if info.kind in _BROAD else None)
