"""What providers' errors mean: general rules that a plugin's ``map_error`` may refine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import orjson

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.lazy import pattern
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.error_segment import error_segment
from crosswalk.types.finish import FinishReason

__all__ = ["classify", "error_delta", "error_info", "refined", "take_error"]

_BY_STATUS = {
    401: ErrorKind.AUTHENTICATION,
    402: ErrorKind.PERMISSION,
    403: ErrorKind.PERMISSION,
    408: ErrorKind.TIMEOUT,
    429: ErrorKind.RATE_LIMIT,
    498: ErrorKind.RATE_LIMIT,
    501: ErrorKind.INVALID_REQUEST,
    504: ErrorKind.TIMEOUT,
    529: ErrorKind.RATE_LIMIT,
}

# In order: the first that fits. Words of the code and type fields come before those of the message.
_BY_WORDS: tuple[tuple[ErrorKind, re.Pattern[str]], ...] = tuple(
    (kind, pattern(words, re.IGNORECASE))
    for kind, words in (
        (
            ErrorKind.CONTEXT_OVERFLOW,
            r"context[_ ](length|size|window)|maximum context|exceed_context|input length .*exceeds"
            r"|(prompt|input) (is )?too long|longer than the maximum model length"
            r"|too[ _]many[ _](prompt[ _]|input[ _])?tokens(?!.{0,20} wait)"  # else Bedrock is busy
            r"|token count .{0,100}(exceeds the maximum|only supports up to)"
            r"|`inputs` (tokens \+ `max_new_tokens` must be <=|must have less than)",
        ),
        (
            ErrorKind.CONTENT_FILTER,
            r"content[_ ]filter|(content|bio)_policy|policy_violation|responsibleaipolicy|moderation",
        ),
        (
            ErrorKind.TOOL_CALL_VALIDATION,
            r"invalid tool call|tool_use_failed|tool call validation|failed to parse tool",
        ),
        (ErrorKind.RATE_LIMIT, r"rate[_ ]limit|too many requests|insufficient_quota|overloaded|throttling"),
        (ErrorKind.TIMEOUT, r"(?<![a-z])timed?[_ ]?out(?![a-z])|modeltimeout|deadline exceeded"),
        (
            ErrorKind.MODEL_UNAVAILABLE,
            r"model.{0,200}(does not exist|not found|not loaded|is not available|no longer available)"
            r"|model \S{1,200} (was|has been|is) (deprecated|removed)|period for this model has ended"
            r"|model identifier is invalid|on-demand throughput isn.t supported|end of its life"
            r"|no endpoints found for|model_not_found|invalid_model|try pulling it|no such model|deploymentnotfound",
        ),
        (
            ErrorKind.AUTHENTICATION,
            r"unauthori[sz]ed|(incorrect|invalid)[_ ]api[_ ](key|token)|authentication"
            r"|security token included in the request is (expired|invalid)"
            r"|(unrecognizedclient|expiredtoken|invalidsignature)exception",
        ),
        (ErrorKind.PERMISSION, r"permission[_ ]denied|forbidden|accessdenied"),
        (
            ErrorKind.INVALID_REQUEST,
            r"(image|audio) input is not supported",
        ),  # llama.cpp, as a "server_error"
        (
            ErrorKind.SERVER,
            r"internal ?server|server[_ ]error|service[_ ]?unavailable|server busy|runner|engine"
            r"|insufficient_system_resource",
        ),
        (
            ErrorKind.INVALID_REQUEST,
            r"invalid_prompt|data_residency_mismatch"
            r"|(invalid|unsupported|empty|download)_(base64_)?image|\bimage_(file|parse|too)",
        ),
    )
)

_RETRYABLE = {ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT, ErrorKind.SERVER}
_BROAD = {ErrorKind.UNKNOWN, ErrorKind.INVALID_REQUEST, ErrorKind.SERVER}
"""The kinds that say little: what a status alone tells, too."""

# Words that are too common to contradict a status that blames the request.
_WEAK = {ErrorKind.TIMEOUT, ErrorKind.SERVER}


def classify(status: int | None, words: str) -> ErrorKind:
    """The kind of an error from its HTTP *status*, ``None`` inside a stream, and the provider's *words*.

    The words count more than the status: servers send a full context as 400, 413 or 500.
    """
    blames_the_request = status is not None and status < 500
    for kind, said in _BY_WORDS:
        if not (blames_the_request and kind in _WEAK) and said.search(words[:2000]):
            return kind
    if status is None:
        return ErrorKind.UNKNOWN
    return _BY_STATUS.get(status, ErrorKind.SERVER if status >= 500 else ErrorKind.INVALID_REQUEST)


def error_info(
    status: int | None, body: Any, *, codes: Mapping[str, ErrorKind] = MappingProxyType({})
) -> ErrorInfo:
    """What an error body of any of the known shapes says.

    Args:
        status: the HTTP status; ``None`` for an error inside a stream.
        body: the decoded JSON, or a text.
        codes: what the provider's own code words mean, where no word of the error says more.
    """
    message, code, said_status = _read(body)
    if status is None:
        status = said_status
    kind = classify(status, f"{code or ''} {message}")
    retryable = kind in _RETRYABLE and status != 501 and "insufficient_quota" not in (code or "")
    if not message:
        message = f"HTTP {status}" if status is not None else "the provider reported an error"
    info = ErrorInfo(kind, message, retryable, status, code, body if body != "" else None)
    return refined(info, codes.get(code or "") if kind in _BROAD else None)


def refined(info: ErrorInfo, kind: ErrorKind | None, *, retryable: bool | None = None) -> ErrorInfo:
    """*info* as an error of *kind*, where that is known; *retryable* is as errors of it are, unless said."""
    if kind is None:
        return info
    return attrs.evolve(info, kind=kind, retryable=kind in _RETRYABLE if retryable is None else retryable)


def _read(body: Any) -> tuple[str, str | None, int | None]:
    """Message, code word and HTTP status of an error body, whatever its shape; of the latter two the innermost object's.

    Knows the shapes of the provider table: a text, ``{"error": text}``, ``{"error": {…}}``, a flat object, an
    array around one of them, ``{"detail": …}``, and JSON inside a text.
    """
    code: str | None = None
    status: int | None = None
    for _ in range(6):  # shapes nest, but not deeper than that
        if isinstance(body, str):
            inner = _inner_json(body)
            if inner is None:
                return _plain(body), code, status
            body = inner
        elif isinstance(body, list):
            body = body[0] if body else ""
        elif isinstance(body, dict):
            code, status = _word_of(body) or code, _status_of(body) or status
            body = next((body[key] for key in _INSIDE if body.get(key)), "")
        else:
            break
    return "" if body is None or isinstance(body, dict | list) else str(body)[:500], code, status


_INSIDE = ("error", "message", "detail", "msg", "Message", "originalMessage")
"""Where an error object keeps its message, or the object that has it; the first that is not empty."""


def _word_of(body: dict[str, Any]) -> str | None:
    found = (body.get(key) for key in ("__type", "code", "type", "status", "error_type"))
    words = [word for word in found if isinstance(word, str) and word not in _SAYS_NOTHING]
    return next((word for word in words if not word.isdigit()), words[0] if words else None)


_SAYS_NOTHING = ("", "error")


def _status_of(body: dict[str, Any]) -> int | None:
    numbers = (body.get(key) for key in ("code", "http_status_code", "StatusCode"))
    return next((number for number in numbers if type(number) is int and 400 <= number < 600), None)


def _inner_json(text: str) -> Any:
    """The JSON object that *text* begins with, perhaps with more text behind it; ``None`` where there is none."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return None
    try:
        _, end = _DECODER.raw_decode(stripped)
        return orjson.loads(stripped[:end]) or None  # which is stricter: no NaN, no lone surrogates
    except (ValueError, RecursionError):
        return None


_DECODER = json.JSONDecoder()
_HTML = pattern(r"<(?:!doctype|html|head|title|body|h1|p|center)\b", re.IGNORECASE)


def _plain(text: str) -> str:
    """A text, or the title and visible text of an HTML page."""
    if not _HTML.search(text[:2000]):
        return text
    visible = re.sub(r"(?is)<(script|style)\b.{0,20000}?</\1\s*>|<!--.{0,20000}?-->", " ", text[:20000])
    import html  # seldom needed

    return " ".join(html.unescape(re.sub(r"<[^<>]{0,2000}>", " ", visible)).split())


def error_delta(info: ErrorInfo) -> ResponseDelta:
    """The delta of an error inside a stream: the reader makes it the last one."""
    return ResponseDelta(segment=error_segment(info), finish_reason=FinishReason.ERROR)


def take_error(event: dict[str, Any], info: ErrorInfo | None = None) -> ResponseDelta:
    """The delta of *event*, which is nothing but an error: all of it is taken, and the error keeps it.

    Args:
        event: the event.
        info: what it means; ``None`` for what :func:`error_info` says.
    """
    delta = error_delta(info or error_info(None, event))
    event.clear()
    return delta
