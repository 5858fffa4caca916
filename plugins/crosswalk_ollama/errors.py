"""Ollama's errors: a text under ``error``, which may itself be the JSON answer of the server behind it."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.plugins import ErrorInfo, ErrorKind, error_info

__all__ = ["ollama_error"]

_CANCELLED = 499


def ollama_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error body says; *status* is ``None`` for an error line inside a stream (sections 7.1, 7.2)."""
    info = error_info(status, body)
    if status == _CANCELLED:
        return attrs.evolve(info, kind=ErrorKind.TIMEOUT, retryable=False)
    if info.kind is ErrorKind.UNKNOWN and status is None:
        # An error line comes from the runner behind the server, which has crashed or lost its model.
        return attrs.evolve(info, kind=ErrorKind.SERVER, retryable=True)
    return info
