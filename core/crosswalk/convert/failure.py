"""Errors in the format of each form."""

from __future__ import annotations

from typing import Any, Final

from crosswalk.convert.writer import Event, first_words
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.text import clean_message
from crosswalk.wire import gemini, messages, responses

_INVALID: Final = "invalid_request_error"
_USUAL: Final[dict[ErrorKind, tuple[int, str, str | None]]] = {
    ErrorKind.RATE_LIMIT: (429, "rate_limit_exceeded", None),
    ErrorKind.CONTEXT_OVERFLOW: (400, _INVALID, "context_length_exceeded"),
    ErrorKind.MODEL_UNAVAILABLE: (404, _INVALID, "model_not_found"),
    ErrorKind.AUTHENTICATION: (401, _INVALID, "invalid_api_key"),
    ErrorKind.PERMISSION: (403, "permission_denied", None),
    ErrorKind.INVALID_REQUEST: (400, _INVALID, None),
    ErrorKind.CONTENT_FILTER: (400, _INVALID, "content_filter"),
    ErrorKind.TOOL_CALL_VALIDATION: (400, _INVALID, "tool_use_failed"),
    ErrorKind.TIMEOUT: (504, "timeout", None),
    ErrorKind.SERVER: (500, "server_error", None),
    ErrorKind.UNKNOWN: (500, "api_error", None),
}
"""The status of each kind, and OpenAI's type and code if the provider named none, by which a reader recognizes the kind."""
_ANTHROPIC: Final = {**first_words(messages.ERRORS), ErrorKind.MODEL_UNAVAILABLE: "not_found_error"}
_STATUSES: Final[dict[tuple[str, int | None], str]] = {
    (_INVALID, 404): "not_found_error",
    (_INVALID, 413): "request_too_large",
    ("rate_limit_error", 503): "overloaded_error",
    ("rate_limit_error", 529): "overloaded_error",
}
"""Anthropic's type of an error whose usual type means another status."""
_GEMINI: Final = {
    **first_words(gemini.ERRORS),
    ErrorKind.SERVER: "INTERNAL",
    ErrorKind.TIMEOUT: "DEADLINE_EXCEEDED",
}
_RESPONSES: Final = {
    ErrorKind.RATE_LIMIT: "rate_limit_exceeded",
    ErrorKind.INVALID_REQUEST: "invalid_prompt",
    ErrorKind.SERVER: "server_error",
}


def error_status(info: ErrorInfo) -> int:
    """Return the HTTP status to answer with: the provider's own, else the usual one for the kind of error."""
    own = info.status
    return own if own is not None and 400 <= own <= 599 else _USUAL[info.kind][0]


def openai_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of an event that ends a stream, as OpenAI writes it.

    Many servers of its dialect have a number as the code, where OpenAI has a word or nothing. It is written as a text.
    Other numbers stay, such as llama.cpp's ``n_ctx``. Other texts may contain secrets.
    """
    _, kind, usual = _USUAL[info.kind]
    error = info.raw.get("error") if isinstance(info.raw, dict) else None
    raw = error if isinstance(error, dict) else {}
    own = _word(raw.get("type"))
    code = info.code or usual
    if own is not None and own == info.code:
        code = str(raw["code"]) if type(raw.get("code")) is int else None
    payload = {"message": info.message, "type": own or kind, "param": _word(raw.get("param")), "code": code}
    numbers = {name: value for name, value in raw.items() if type(value) is int and name not in payload}
    return {"error": payload | numbers}


def anthropic_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of an ``error`` event, as Anthropic writes it."""
    code, near = info.code, ErrorKind.INVALID_REQUEST if _USUAL[info.kind][0] < 500 else ErrorKind.SERVER
    type = code if code in messages.ERRORS else _ANTHROPIC.get(info.kind, _ANTHROPIC[near])
    type = _STATUSES.get((type or "", info.status)) or type
    return {"type": "error", "error": {"type": type, "message": info.message}, "request_id": None}


def gemini_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of the chunk that ends a stream, as Google's services write it."""
    near = ErrorKind.INVALID_REQUEST if _USUAL[info.kind][0] < 500 else ErrorKind.SERVER
    word = info.code if info.code in gemini.ERRORS else _GEMINI.get(info.kind, _GEMINI[near])
    return {"error": {"code": error_status(info), "message": info.message, "status": word}}


def ollama_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of the line that ends a stream, as Ollama writes it."""
    return {"error": info.message}


def response_error(info: ErrorInfo, *, is_own: bool) -> Event:
    """Return the ``error`` of a failed response. Its code is one of a closed list, unless it *is* the form's *own*."""
    raw, code, kind = info.raw, info.code, info.kind
    if is_own and isinstance(raw, dict) and {"code", "message"} <= raw.keys() and "type" not in raw:
        return raw
    if code not in responses.ERRORS:
        near = ErrorKind.INVALID_REQUEST if _USUAL[kind][0] == 400 else ErrorKind.SERVER
        code = _RESPONSES[kind if kind is ErrorKind.RATE_LIMIT else near]
    return {"code": code, "message": info.message}


def _word(value: Any) -> str | None:
    return clean_message(value) if isinstance(value, str) and value else None
