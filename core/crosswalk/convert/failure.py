"""Errors in the words of each form."""

from __future__ import annotations

from typing import Any, Final

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.text import clean_message

__all__ = ["anthropic_error", "error_status", "openai_error", "response_error"]

_STATUS: Final = {
    ErrorKind.RATE_LIMIT: 429,
    ErrorKind.CONTEXT_OVERFLOW: 400,
    ErrorKind.MODEL_UNAVAILABLE: 404,
    ErrorKind.AUTHENTICATION: 401,
    ErrorKind.PERMISSION: 403,
    ErrorKind.INVALID_REQUEST: 400,
    ErrorKind.CONTENT_FILTER: 400,
    ErrorKind.TOOL_CALL_VALIDATION: 400,
    ErrorKind.TIMEOUT: 504,
    ErrorKind.SERVER: 500,
    ErrorKind.UNKNOWN: 500,
}

# OpenAI's type and code for each kind, where the provider named neither.
_OPENAI: Final = {
    ErrorKind.RATE_LIMIT: ("rate_limit_exceeded", None),
    ErrorKind.CONTEXT_OVERFLOW: ("invalid_request_error", "context_length_exceeded"),
    ErrorKind.MODEL_UNAVAILABLE: ("invalid_request_error", "model_not_found"),
    ErrorKind.AUTHENTICATION: ("invalid_request_error", "invalid_api_key"),
    ErrorKind.PERMISSION: ("permission_denied", None),
    ErrorKind.INVALID_REQUEST: ("invalid_request_error", None),
    ErrorKind.CONTENT_FILTER: ("invalid_request_error", "content_filter"),
    ErrorKind.TOOL_CALL_VALIDATION: ("invalid_request_error", "tool_use_failed"),
    ErrorKind.TIMEOUT: ("timeout", None),
    ErrorKind.SERVER: ("server_error", None),
    ErrorKind.UNKNOWN: ("api_error", None),
}

_ANTHROPIC: Final = {
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.CONTEXT_OVERFLOW: "invalid_request_error",
    ErrorKind.MODEL_UNAVAILABLE: "not_found_error",
    ErrorKind.AUTHENTICATION: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.INVALID_REQUEST: "invalid_request_error",
    ErrorKind.CONTENT_FILTER: "invalid_request_error",
    ErrorKind.TOOL_CALL_VALIDATION: "invalid_request_error",
    ErrorKind.TIMEOUT: "timeout_error",
    ErrorKind.SERVER: "api_error",
    ErrorKind.UNKNOWN: "api_error",
}
_ANTHROPIC_TYPES: Final = frozenset({*_ANTHROPIC.values(), "billing_error", "overloaded_error"})

_RESPONSE_CODES: Final = frozenset(
    {
        "server_error", "rate_limit_exceeded", "invalid_prompt", "data_residency_mismatch", "bio_policy",
        "misalignment_policy_violation", "vector_store_timeout", "invalid_image", "invalid_image_format",
        "invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small", "image_parse_error",
        "image_content_policy_violation", "invalid_image_mode", "image_file_too_large",
        "unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found",
    }
)  # fmt: skip
_OF_THE_PROMPT: Final = (
    ErrorKind.CONTEXT_OVERFLOW,
    ErrorKind.INVALID_REQUEST,
    ErrorKind.CONTENT_FILTER,
    ErrorKind.TOOL_CALL_VALIDATION,
)


def error_status(info: ErrorInfo) -> int:
    """The HTTP status to answer with: the provider's own, else the usual one for the kind of error."""
    own = info.status
    return own if own is not None and 400 <= own <= 599 else _STATUS[info.kind]


def openai_error(info: ErrorInfo) -> dict[str, Any]:
    """The body of an HTTP error, or of an event that ends a stream, as OpenAI writes it."""
    kind, code = _OPENAI[info.kind]
    own = _inside(info.raw, "type")
    if own is not None and own == info.code:
        return _openai(info, own, None)
    return _openai(info, own or kind, info.code or code)


def _openai(info: ErrorInfo, type: str, code: str | None) -> dict[str, Any]:
    param = _inside(info.raw, "param")
    return {"error": {"message": info.message, "type": type, "param": param, "code": code}}


def anthropic_error(info: ErrorInfo) -> dict[str, Any]:
    """The body of an HTTP error, or of an ``error`` event, as Anthropic writes it."""
    type = info.code if info.code in _ANTHROPIC_TYPES else _ANTHROPIC[info.kind]
    return {"type": "error", "error": {"type": type, "message": info.message}, "request_id": None}


def response_error(info: ErrorInfo, *, is_own: bool) -> dict[str, Any]:
    """The ``error`` of a failed response: its code is one of a closed list, unless it *is* the form's *own*."""
    raw = info.raw
    if is_own and isinstance(raw, dict) and {"code", "message"} <= raw.keys() and "type" not in raw:
        return raw
    if info.code in _RESPONSE_CODES:
        code = str(info.code)
    elif info.kind is ErrorKind.RATE_LIMIT:
        code = "rate_limit_exceeded"
    else:
        code = "invalid_prompt" if info.kind in _OF_THE_PROMPT else "server_error"
    return {"code": code, "message": info.message}


def _inside(raw: Any, key: str) -> str | None:
    """What an error payload of OpenAI's or Anthropic's shape says under *key*."""
    error = raw.get("error") if isinstance(raw, dict) else None
    value = error.get(key) if isinstance(error, dict) else None
    return clean_message(value) if isinstance(value, str) and value else None
