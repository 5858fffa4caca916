"""The kind of an error: by the provider's type or code, then by the HTTP status, then by a known sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from crosswalk.errors import ErrorKind
from crosswalk.lazy import pattern

RETRYABLE: Final = frozenset({ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT, ErrorKind.SERVER})
"""The kinds of errors that may be gone when the same request is sent again."""

_BY_STATUS: Final = {
    401: ErrorKind.AUTHENTICATION,
    408: ErrorKind.TIMEOUT,
    429: ErrorKind.RATE_LIMIT,
    498: ErrorKind.RATE_LIMIT,
    504: ErrorKind.TIMEOUT,
    529: ErrorKind.RATE_LIMIT,
}
"""The statuses that name the kind of an error. The others only distinguish client and server."""

_CODES: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.CONTEXT_OVERFLOW: "context_length_exceeded context_window_exceeded exceed_context_size string_above_max_length"
    " too_many_tokens too_many_prompt_tokens max_tokens_exceeded",
    ErrorKind.CONTENT_FILTER: "content_filter content_filtered content_policy_violation image_content_policy_violation"
    " cyber_policy_violation bio_policy bio_policy_violation misalignment_policy_violation policy_violation"
    " responsible_ai_policy_violation moderation_blocked data_inspection_failed",
    ErrorKind.TOOL_CALL_VALIDATION: "tool_use_failed tool_call_validation invalid_tool_call malformed_function_call",
    ErrorKind.RATE_LIMIT: "rate_limit rate_limited rate_limit_exceeded rate_limit_reached too_many_requests overloaded"
    " throttling throttled insufficient_quota quota_exceeded resource_exhausted engine_overloaded",
    ErrorKind.TIMEOUT: "timeout request_timeout read_timeout gateway_timeout model_timeout vector_store_timeout"
    " deadline_exceeded batch_expired",
    ErrorKind.MODEL_UNAVAILABLE: "model_not_found invalid_model model_not_available model_unavailable deployment_not_found"
    " no_such_model",
    ErrorKind.AUTHENTICATION: "authentication unauthorized unauthenticated invalid_api_key incorrect_api_key invalid_token"
    " unrecognized_client expired_token invalid_signature",
    ErrorKind.PERMISSION: "permission permission_denied forbidden access_denied billing",
    ErrorKind.SERVER: "service_unavailable unavailable bad_gateway server_busy insufficient_system_resource",
    ErrorKind.INVALID_REQUEST: "invalid_request bad_request invalid_argument failed_precondition out_of_range unimplemented"
    " not_implemented not_found not_supported conflict method_not_allowed request_too_large unprocessable_entity"
    " validation invalid_prompt data_residency_mismatch invalid_image invalid_image_format invalid_image_url"
    " invalid_image_mode invalid_base64_image image_too_large image_too_small image_parse image_file_too_large"
    " image_file_not_found unsupported_image_media_type empty_image_file failed_to_download_image",
}
_BY_CODE: Final = {code: kind for kind, codes in _CODES.items() for code in codes.split()}
"""The kind of each known type or code, as :func:`_normal` writes it."""

_SERVER_CODES: Final = frozenset({"server", "internal", "internal_server", "api"})
"""Types that only mean a server failure. Any other evidence is more exact."""

_SENTENCES: Final[tuple[tuple[ErrorKind, re.Pattern[str]], ...]] = tuple(
    (kind, pattern(sentence, re.IGNORECASE))
    for kind, sentence in (
        (
            ErrorKind.CONTEXT_OVERFLOW,
            r"\bmaximum context length\b|\bexceed\w* .{0,60}\bcontext (length|size|window|limit)\b"
            r"|\bcontext (length|size|window|limit) (is |was |has been )?exceeded\b"
            r"|\blonger than .{0,40}\b(context|maximum model) length\b|\binput length .{0,40}exceeds\b"
            r"|\b(prompt|input) (is )?too long\b|\btoo many (prompt |input )?tokens\b(?!.{0,20} wait)"
            r"|\btoken count .{0,100}(exceeds the maximum|only supports up to)\b"
            r"|… tokens \+ … must be <=|… must have less than \d+ tokens",
        ),
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
        (ErrorKind.TIMEOUT, r"\btimed out\b|\bdeadline exceeded\b"),
        (
            ErrorKind.MODEL_UNAVAILABLE,
            r"\bmodels?[ /]\S{1,200} (does not exist|(is |was )?not (found|loaded|available)|is no longer available"
            r"|(was|has been|is) (deprecated|removed))\b|\bperiod for this model has ended\b|\bmodel identifier is invalid\b"
            r"|\bon-demand throughput isn.t supported\b|\bend of its life\b|\bno endpoints found for\b|\bno such model\b"
            r"|\btry pulling it\b",
        ),
        (
            ErrorKind.AUTHENTICATION,
            r"\b(incorrect|invalid) api (key|token)\b|\bapi key not valid\b|^unauthori[sz]ed\W*$"
            r"|\bsecurity token included in the request is (expired|invalid)\b",
        ),
        (ErrorKind.PERMISSION, r"^(forbidden|access denied|permission denied)\W*$"),
        (
            ErrorKind.INVALID_REQUEST,
            r"\b(image|audio) input is not supported\b|\bmissing data required for image input\b",
        ),  # llama.cpp, as a "server_error"; Ollama, with status 500
        (
            ErrorKind.SERVER,
            r"\binternal server error\b|\bservice (is )?(temporarily )?unavailable\b|\bserver busy\b"
            r"|\bmodel runner has unexpectedly stopped\b|\bengine( ?core)? (is dead|died|encountered an issue)\b",
        ),
    )
)
"""Sentences of servers that no user would write, in order. The first match counts."""

_QUOTED: Final = pattern(
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
    named = [name for name in map(_normal, codes) if name]
    kinds = [kind for name in named if (kind := _kind_of(name)) is not None]
    exact = next((kind for kind in kinds if kind is not ErrorKind.INVALID_REQUEST), None)
    if exact is not None:
        return exact
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    blames_the_request = bool(kinds) or (status is not None and (status < 500 or status == 501))
    text = _QUOTED.sub("…", message[:2000])
    for kind, sentence in _SENTENCES:
        if not (blames_the_request and kind in RETRYABLE) and sentence.search(text):
            return kind
    if blames_the_request:
        return ErrorKind.PERMISSION if status in (402, 403) else ErrorKind.INVALID_REQUEST
    is_server = status is not None or not _SERVER_CODES.isdisjoint(named)
    return ErrorKind.SERVER if is_server else ErrorKind.UNKNOWN


def _kind_of(name: str) -> ErrorKind | None:
    return _BY_STATUS.get(int(name)) if name.isdecimal() and len(name) == 3 else _BY_CODE.get(name)


_WORD_ENDS: Final = pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.-]+")


def _normal(code: str) -> str:
    """*code* in small letters with ``_`` between its words: ``throttling`` for ``com.amazon#ThrottlingException:http://…``"""
    name = _WORD_ENDS.sub("_", code[:200].partition(":")[0].rpartition("#")[2]).lower()
    return name.removesuffix("_exception").removesuffix("_error")
