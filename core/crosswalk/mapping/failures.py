"""The meaning of providers' errors: general rules for their kinds, which a plugin's ``map_error`` may refine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final

import attrs
import orjson

from crosswalk.errors import ErrorInfo, ErrorKind, FramingError, MappingError, PluginError
from crosswalk.lazy import pattern
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.registry import Mapper
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.values import FinishReason, error_segment
from crosswalk.wire.framing import Limits, SniffingDecoder, is_done, load_event

# ----------------------------------------------------------------------------- error kinds
# The kind of an error: by the provider's type or code, then by the HTTP status, then by a known sentence.


RETRYABLE: Final = frozenset({ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT, ErrorKind.SERVER})
"""The kinds of errors that may be gone when the same request is sent again."""

_KINDS_BY_STATUS: Final = {
    401: ErrorKind.AUTHENTICATION,
    402: ErrorKind.QUOTA,
    408: ErrorKind.TIMEOUT,
    429: ErrorKind.RATE_LIMIT,
    498: ErrorKind.RATE_LIMIT,
    504: ErrorKind.TIMEOUT,
    529: ErrorKind.RATE_LIMIT,
}
"""The statuses that name the kind of an error. The others only distinguish client and server."""

_CODES_BY_KIND: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.CONTEXT_OVERFLOW: "context_length_exceeded context_window_exceeded exceed_context_size string_above_max_length"
    " too_many_tokens too_many_prompt_tokens max_tokens_exceeded",
    ErrorKind.CONTENT_FILTER: "content_filter content_filtered content_policy_violation image_content_policy_violation"
    " cyber_policy_violation bio_policy bio_policy_violation misalignment_policy_violation policy_violation"
    " responsible_ai_policy_violation moderation_blocked data_inspection_failed",
    ErrorKind.TOOL_CALL_VALIDATION: "tool_use_failed tool_call_validation invalid_tool_call malformed_function_call",
    ErrorKind.RATE_LIMIT: "rate_limit rate_limited rate_limit_exceeded rate_limit_reached too_many_requests overloaded"
    " throttling throttled quota_exceeded resource_exhausted engine_overloaded",
    ErrorKind.QUOTA: "insufficient_quota insufficient_balance insufficient_credits payment_required billing"
    " billing_not_active billing_hard_limit_reached",
    ErrorKind.TIMEOUT: "timeout request_timeout read_timeout gateway_timeout model_timeout vector_store_timeout"
    " deadline_exceeded batch_expired",
    ErrorKind.MODEL_UNAVAILABLE: "model_not_found invalid_model model_not_available model_unavailable deployment_not_found"
    " no_such_model",
    ErrorKind.AUTHENTICATION: "authentication unauthorized unauthenticated invalid_api_key incorrect_api_key invalid_token"
    " unrecognized_client expired_token invalid_signature",
    ErrorKind.PERMISSION: "permission permission_denied forbidden access_denied",
    ErrorKind.SERVER: "service_unavailable unavailable bad_gateway server_busy insufficient_system_resource",
    ErrorKind.INVALID_REQUEST: "invalid_request bad_request invalid_argument failed_precondition out_of_range unimplemented"
    " not_implemented not_found not_supported conflict method_not_allowed request_too_large unprocessable_entity"
    " validation invalid_prompt data_residency_mismatch invalid_image invalid_image_format invalid_image_url"
    " invalid_image_mode invalid_base64_image image_too_large image_too_small image_parse image_file_too_large"
    " image_file_not_found unsupported_image_media_type empty_image_file failed_to_download_image",
}
_KINDS_BY_CODE: Final = {code: kind for kind, codes in _CODES_BY_KIND.items() for code in codes.split()}
"""The kind of each known type or code, as :func:`_normal` writes it."""

_SERVER_CODES: Final = frozenset({"server", "internal", "internal_server", "api"})
"""Types that only mean a server failure. Any other evidence is more exact."""

_SENTENCE_PATTERNS: Final[tuple[tuple[ErrorKind, re.Pattern[str]], ...]] = tuple(
    (kind, pattern(sentence, re.IGNORECASE))
    for kind, sentence in (
        (
            ErrorKind.CONTEXT_OVERFLOW,
            r"\bmaximum context length\b|\bexceed\w* .{0,60}\bcontext (length|size|window|limit)\b"
            r"|\bcontext (length|size|window|limit) (is |was |has been )?exceeded\b"
            r"|\blonger than .{0,40}\b(context|maximum model) length\b|\binput length .{0,40}exceeds\b"
            r"|\b(prompt|input) (is )?too long\b|\btoo many (prompt |input )?tokens\b(?!.{0,20} wait)",
        ),
        (ErrorKind.QUOTA, r"\binsufficient (balance|credits?|funds)\b|\bcredit balance is too low\b"),
        (
            ErrorKind.CONTENT_FILTER,
            r"\bcontent management policy\b|\bcontent filter(ing)? policy\b|\binput was flagged\b"
            r"|\bflagged (by (our )?moderation|as potentially)\b|\bviolat\w+ (our|the) (usage|content) polic"
            r"|\brejected as a result of our safety system\b",
        ),
        (
            ErrorKind.TOOL_CALL_VALIDATION,
            r"\binvalid tool call\b|\btool call validation failed\b|\bfailed to parse tool call|\berror parsing tool call\b",
        ),
        (
            ErrorKind.RATE_LIMIT,
            r"\brate limit (was |has been )?(reached|exceeded)\b|\btoo many requests\b|\boverloaded\b",
        ),
        (ErrorKind.TIMEOUT, r"\btimed out\b|\bdeadline exceeded\b|\bgateway time-?out\b"),
        (
            ErrorKind.MODEL_UNAVAILABLE,
            r"\bmodels?[ /]\S{1,200} (does not exist|(is |was )?not (found|loaded|available)|is no longer available"
            r"|(was|has been|is) (deprecated|removed))\b|\bno such model\b",
        ),
        (
            ErrorKind.AUTHENTICATION,
            r"\b(incorrect|invalid) api (key|token)\b|^unauthori[sz]ed\W*$",
        ),
        (ErrorKind.PERMISSION, r"^(forbidden|access denied|permission denied)\W*$"),
        (
            ErrorKind.INVALID_REQUEST,
            r"\b(image|audio) input is not supported\b",
        ),  # llama.cpp, as a "server_error"
        (
            ErrorKind.SERVER,
            r"\binternal server error\b|\bbad gateway\b|\bservice (is )?(temporarily )?unavailable\b|\bserver busy\b"
            r"|\bengine( ?core)? (is dead|died|encountered an issue)\b",
        ),
    )
)
"""Sentences that several servers say, in order. No user would write them. The first match counts.

A sentence of one vendor is a row of its table (:class:`VendorErrors`). These are shared, because several vendors, hosts and
servers of one's own say the same, or because relays pass on what Anthropic and OpenAI say, and a relay has no table.
"""

_QUOTATION_PATTERN: Final = pattern(
    r"""(?<!\w)'.*?(?:'(?!\w)|$)|"(?:\\.|[^"\\])*(?:"|$)|`[^`]*(?:`|$)|“[^”]*(?:”|$)|‘.*?(?:’(?!\w)|$)|«[^»]*(?:»|$)""",  # noqa: RUF001
    re.DOTALL,
)
"""A quotation, also a truncated one. An apostrophe inside a word does not begin one."""


def classify(status: int | None, message: str, codes: Iterable[str] = ()) -> ErrorKind:
    """The kind of an error.

    A type or code decides. If it only means a wrong request or a failed server, and the status means no more, the known
    sentences of providers decide. Quoted text in a message is not evidence, because it may come from the user. No word of
    a message makes an error with a status from 400 to 499 retryable.

    Args:
        status: the HTTP status, or ``None`` for an error inside a stream.
        message: the provider's message.
        codes: its types and codes, the most exact first.
    """
    names = [name for name in map(_normal, codes) if name]
    kinds = [kind for name in names if (kind := _kind_of(name)) is not None]
    exact_kind = next((kind for kind in kinds if kind is not ErrorKind.INVALID_REQUEST), None)
    if exact_kind is not None:
        return exact_kind
    if status in _KINDS_BY_STATUS:
        return _KINDS_BY_STATUS[status]
    blames_the_request = bool(kinds) or (status is not None and (status < 500 or status == 501))
    text = _QUOTATION_PATTERN.sub("…", message[:2000])
    for kind, sentence_pattern in _SENTENCE_PATTERNS:
        if not (blames_the_request and kind in RETRYABLE) and sentence_pattern.search(text):
            return kind
    if blames_the_request:
        return ErrorKind.PERMISSION if status == 403 else ErrorKind.INVALID_REQUEST
    is_server = status is not None or not _SERVER_CODES.isdisjoint(names)
    return ErrorKind.SERVER if is_server else ErrorKind.UNKNOWN


def _kind_of(name: str) -> ErrorKind | None:
    return (
        _KINDS_BY_STATUS.get(int(name)) if name.isdecimal() and len(name) == 3 else _KINDS_BY_CODE.get(name)
    )


_WORD_END_PATTERN: Final = pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.-]+")


def _normal(code: str) -> str:
    """*code* in small letters with ``_`` between its words: ``throttling`` for ``com.amazon#ThrottlingException:http://…``"""
    name = _WORD_END_PATTERN.sub("_", code[:200].partition(":")[0].rpartition("#")[2]).lower()
    return name.removesuffix("_exception").removesuffix("_error")


# -------------------------------------------------------------------------------- failures
# The meaning of providers' errors: general rules that a plugin's ``map_error`` may refine.


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
    known_kind = next((codes[word] for word in words if word in codes), None)
    kind = classify(status, message, words) if known_kind is None else known_kind
    is_retryable = _may_pass(kind, status, message, body)
    if not message:
        message = f"HTTP {status}" if status is not None else "the provider reported an error"
    return ErrorInfo(kind, message, is_retryable, status, code, body if body != "" else None)


_LONG: Final = pattern(r"\b(per[ -](day|week|month)|daily|weekly|monthly|[RT]PD)\b", re.IGNORECASE)
_LONG_QUOTA_PATTERN: Final = pattern(r"Per(Day|Week|Month)(?![a-z])")


def _may_pass(kind: ErrorKind, status: int | None, message: str, body: Any) -> bool:
    """Return whether an error may be gone when the same request is sent again."""
    is_long = kind is ErrorKind.RATE_LIMIT and _is_long(message, body)
    return kind in RETRYABLE and status != 501 and not is_long


def _is_long(message: str, body: Any) -> bool:
    """Return whether the limit of a rate is one of a day or longer, which no retry waits for.

    The *message* names it, outside quotations, or the id of a quota among the details of one of Google's errors does.
    """
    return _LONG.search(_QUOTATION_PATTERN.sub("…", message[:2000])) is not None or any(
        map(_LONG_QUOTA_PATTERN.search, _quotas(body))
    )


def _quotas(body: Any) -> Iterator[str]:
    for detail in _details(body):
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            if isinstance(violation, dict) and isinstance(violation.get("quotaId"), str):
                yield violation["quotaId"]


def _details(body: Any) -> Iterator[dict[str, Any]]:
    match body[0] if isinstance(body, list) and body else body:
        case {"error": {"details": list(details)}}:
            yield from (detail for detail in details if isinstance(detail, dict))


class VendorErrors:
    """What a vendor says of its errors: the rows of a table in an ``errors.toml`` beside its plugin. It is read late.

    A row has the ``kind`` that it stands for, and how it is recognized: ``codes`` (the type or code, in any case, with
    ``*`` for any text), ``statuses``, ``reasons``, which Google's errors have in their details, and ``message``, a regular
    expression for a part of the text outside quotations. All that it names must fit, and the first row counts.
    ``retryable`` is that of the kind if it names none. The table names its ``sources``, and when they were ``checked``.

    Args:
        package: the package that has the file.
        vendor: the name of the table in it.
    """

    def __init__(self, package: str, vendor: str) -> None:
        self._package = package
        self._vendor = vendor
        self._rows: list[tuple[Mapping[str, Any], re.Pattern[str] | None]] | None = None

    def refined(self, info: ErrorInfo) -> ErrorInfo:
        """Return *info*, which the general rules read, with the kind of the first row that fits, or *info* itself."""
        if self._rows is None:
            import tomllib  # seldom needed
            from importlib.resources import files

            table = tomllib.loads(files(self._package).joinpath("errors.toml").read_text("utf-8"))[
                self._vendor
            ]
            self._rows = [
                (row, re.compile(row["message"], re.IGNORECASE) if "message" in row else None)
                for row in table["errors"]
            ]
        code, text = (info.code or "").lower(), _QUOTATION_PATTERN.sub("…", info.message)
        details = [*_details(info.raw)]
        for row, message_pattern in self._rows:
            if (
                (
                    "codes" not in row
                    or any(fnmatchcase(code, code_pattern.lower()) for code_pattern in row["codes"])
                )
                and ("statuses" not in row or info.status in row["statuses"])
                and (
                    "reasons" not in row or any(detail.get("reason") in row["reasons"] for detail in details)
                )
                and (message_pattern is None or message_pattern.search(text))
            ):
                return refined(info, ErrorKind(row["kind"]), retryable=row.get("retryable"))
        return info


def refined(info: ErrorInfo, kind: ErrorKind | None, *, retryable: bool | None = None) -> ErrorInfo:
    """Return *info* with *kind*, if that is not ``None``. *retryable* defaults to that of the kind, and of its limit."""
    if kind is None:
        return info
    if retryable is None:
        retryable = _may_pass(kind, info.status, info.message, info.raw)
    return attrs.evolve(info, kind=kind, retryable=retryable)


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
            inner_keys = [key for key in _INNER_KEYS if body.get(key)]
            body = body[inner_keys[0]] if inner_keys else ""
        else:
            break
    return "" if body is None or isinstance(body, dict | list) else str(body)[:500], words, status


_INNER_KEYS = ("error", "message", "detail", "msg", "Message", "originalMessage")
"""The keys of an error object's message, or of the object that has it. The first that is not empty counts."""


def _words_of(body: dict[str, Any]) -> list[str]:
    """Return the types and codes of an error object, the most exact first. Numbers become digits."""
    words = []
    for key in ("__type", "code", "type", "status", "error_type"):
        word = body.get(key)
        if type(word) is int:
            words.append(str(word))
        elif isinstance(word, str) and word not in _MEANINGLESS_WORDS:
            words.append(word)
    return words


_MEANINGLESS_WORDS = ("", "error")


def _status_of(body: dict[str, Any]) -> int | None:
    for key in ("code", "status", "status_code", "http_status_code", "StatusCode"):
        number = body.get(key)
        if type(number) is int and 400 <= number < 600:
            return number
    return None


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
_HTML_PATTERN = pattern(r"<(?:!doctype|html|head|title|body|h1|p|center)\b", re.IGNORECASE)


def _plain(text: str) -> str:
    """A text, or the title and visible text of an HTML page."""
    if not _HTML_PATTERN.search(text[:2000]):
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
    decoded_body = _decoded(body, limits)
    with suppress(MappingError):
        decoded_body = mapper.info.opened(decoded_body, limits)
    try:
        info = mapper.map_error(status, decoded_body)
        if info is not None and type(info) is not ErrorInfo:
            raise mapper.broken(f"map_error gave {type(info).__name__}, not ErrorInfo")
    except MappingError:  # a malformed error body still has its status
        info = None
    except BaseException as error:
        if is_cancellation(error):
            raise
        if isinstance(error, PluginError) and error.plugin == mapper.provider:
            raise
        raise mapper.failed("map_error", error) from error
    return error_delta(error_info(status, decoded_body) if info is None else info)


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
