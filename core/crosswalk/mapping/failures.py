"""The meaning of providers' errors: general rules that a plugin's ``map_error`` may refine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import orjson

from crosswalk.errors import ErrorInfo, ErrorKind, FramingError, MappingError, PluginError
from crosswalk.lazy import pattern
from crosswalk.mapping.error_kinds import RETRYABLE, classify as classify
from crosswalk.plugin.registry import Mapper, is_cancellation
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.values import FinishReason, error_segment
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import Limits, SniffingDecoder, is_done


def error_info(
    status: int | None, body: Any, *, codes: Mapping[str, ErrorKind] = MappingProxyType({})
) -> ErrorInfo:
    """Read an error body of any known shape.

    Args:
        status: the HTTP status, or ``None`` for an error inside a stream.
        body: the decoded JSON, or a text.
        codes: the kinds of the provider's own types and codes, which take precedence.
    """
    message, words, body_status = _read(body)
    if status is None:
        status = body_status
    code = next((word for word in words if not word.isdecimal()), words[0] if words else None)
    known = next((codes[word] for word in words if word in codes), None)
    kind = classify(status, message, words) if known is None else known
    retryable = kind in RETRYABLE and status != 501 and "insufficient_quota" not in words
    if not message:
        message = f"HTTP {status}" if status is not None else "the provider reported an error"
    return ErrorInfo(kind, message, retryable, status, code, body if body != "" else None)


def refined(info: ErrorInfo, kind: ErrorKind | None, *, retryable: bool | None = None) -> ErrorInfo:
    """Return *info* with *kind*, if that is not ``None``. *retryable* defaults to that of the kind."""
    if kind is None:
        return info
    return attrs.evolve(info, kind=kind, retryable=kind in RETRYABLE if retryable is None else retryable)


def _read(body: Any) -> tuple[str, list[str], int | None]:
    """Message, types and codes, and HTTP status of an error body of any shape. The innermost object's come first.

    Knows the shapes of the provider table: a text, ``{"error": text}``, ``{"error": {…}}``, a flat object, an
    array around one of them, ``{"detail": …}``, and JSON inside a text.
    """
    words: list[str] = []
    status: int | None = None
    for _ in range(6):  # shapes nest, but not deeper than that
        if isinstance(body, str):
            inner = _inner_json(body)
            if inner is None:
                return _plain(body), words, status
            body = inner
        elif isinstance(body, list):
            body = body[0] if body else ""
        elif isinstance(body, dict):
            words, status = _words_of(body) + words, _status_of(body) or status
            body = next((body[key] for key in _INSIDE if body.get(key)), "")
        else:
            break
    return "" if body is None or isinstance(body, dict | list) else str(body)[:500], words, status


_INSIDE = ("error", "message", "detail", "msg", "Message", "originalMessage")
"""The keys of an error object's message, or of the object that has it. The first that is not empty counts."""


def _words_of(body: dict[str, Any]) -> list[str]:
    """Return the types and codes of an error object, the most exact first. Numbers become digits."""
    values = (body.get(key) for key in ("__type", "code", "type", "status", "error_type"))
    words = (str(value) if type(value) is int else value for value in values)
    return [word for word in words if isinstance(word, str) and word not in _SAYS_NOTHING]


_SAYS_NOTHING = ("", "error")


def _status_of(body: dict[str, Any]) -> int | None:
    numbers = (body.get(key) for key in ("code", "status", "status_code", "http_status_code", "StatusCode"))
    return next((number for number in numbers if type(number) is int and 400 <= number < 600), None)


def _inner_json(text: str) -> Any:
    """Return the JSON object at the beginning of *text*, which may continue after it, or ``None``."""
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
    """Return the delta of *event*, which is only an error. All of it is taken and stored in the error.

    Args:
        event: the event.
        info: its meaning, or ``None`` for the result of :func:`error_info`.
    """
    delta = error_delta(info or error_info(None, event))
    event.clear()
    return delta


def read_error_body(mapper: Mapper, status: int, body: bytes, limits: Limits) -> ResponseDelta:
    """The delta that ends an answer of HTTP *status* 400 or above.

    Raises:
        PluginError: the plugin's ``map_error`` failed.
    """
    raw = _decoded(body, limits)
    try:
        info = mapper.map_error(status, raw)
        if info is not None and type(info) is not ErrorInfo:
            raise mapper.broken(f"map_error gave {type(info).__name__}, not ErrorInfo")
    except MappingError:  # a malformed error body still has its status
        info = None
    except BaseException as error:
        if is_cancellation(error):
            raise
        if isinstance(error, PluginError) and error.plugin == mapper.provider:
            raise
        raise mapper.broken(f"map_error failed with {type(error).__name__}") from error
    return error_delta(error_info(status, raw) if info is None else info)


def _decoded(body: bytes, limits: Limits) -> Any:
    """Return an error body as JSON: the first error event of a stream, else all of its events. Other content is text."""
    try:
        return load_event(body, limits, halves="mend")
    except FramingError:
        pass
    decoder = SniffingDecoder(limits)
    try:
        frames = [data for data, _ in (*decoder.decode(body), *decoder.flush()) if data and not is_done(data)]
        if decoder.framing == "sse":
            events = [load_event(data, limits, halves="mend") for data in frames]
            errors = (event for event in events if isinstance(event, dict) and event.get("error"))
            return next(errors, {"events": events})
    except FramingError:
        pass
    return body.decode(errors="replace").strip()
