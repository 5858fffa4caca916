"""Anthropic's errors: ``{"type": "error", "error": {"type", "message"}, "request_id"}`` (section 7)."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk import ErrorInfo, ErrorKind, error_info

__all__ = ["anthropic_error"]

_KINDS = {
    "invalid_request_error": ErrorKind.INVALID_REQUEST,
    "authentication_error": ErrorKind.AUTHENTICATION,
    "billing_error": ErrorKind.PERMISSION,
    "permission_error": ErrorKind.PERMISSION,
    "not_found_error": ErrorKind.INVALID_REQUEST,
    "conflict_error": ErrorKind.INVALID_REQUEST,
    "request_too_large": ErrorKind.INVALID_REQUEST,
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "timeout_error": ErrorKind.TIMEOUT,
    "api_error": ErrorKind.SERVER,
    "overloaded_error": ErrorKind.RATE_LIMIT,
}
# What the general rules say where no word of the message told them more.
_BROAD = (ErrorKind.UNKNOWN, ErrorKind.INVALID_REQUEST, ErrorKind.SERVER)
_RETRYABLE = (ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT, ErrorKind.SERVER)


def anthropic_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error body says; *status* is ``None`` for an error event inside a stream (section 7).

    Where the message does not say more (a full context, an unknown model), ``error.type`` decides.
    """
    info = error_info(status, body)
    if info.code == "not_found_error" and info.message.startswith("model:"):
        return attrs.evolve(info, kind=ErrorKind.MODEL_UNAVAILABLE, retryable=False)
    kind = _KINDS.get(info.code or "")
    if kind is None or info.kind not in _BROAD:
        return info
    return attrs.evolve(info, kind=kind, retryable=kind in _RETRYABLE)
