"""A provider's report of its failure, in one set of words."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, clean_message, json_type_name, short_repr
from crosswalk.types._value import check_count, check_flag, check_optional_text, one_of


class ErrorKind(StrEnum):
    """What kind of error a provider reported, the same words for every provider."""

    RATE_LIMIT = "rate_limit"
    CONTEXT_OVERFLOW = "context_overflow"
    MODEL_UNAVAILABLE = "model_unavailable"
    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    INVALID_REQUEST = "invalid_request"
    CONTENT_FILTER = "content_filter"
    TOOL_CALL_VALIDATION = "tool_call_validation"
    TIMEOUT = "timeout"
    SERVER = "server"
    UNKNOWN = "unknown"


def _as_kind(value: object) -> ErrorKind:
    return one_of(ErrorKind, value, "unknown kind of error")


def _as_message(value: object) -> str:
    if not isinstance(value, str):
        raise ResponseValidationError(f"ErrorInfo.message must be text, not {json_type_name(value)}")
    return clean_message(value)


@brief
@attrs.frozen
class ErrorInfo:
    """A provider's report of its failure, in canonical words.

    Attributes:
        kind: one of the closed taxonomy.
        message: the provider's own words, cleaned of secrets, paths and control characters and cut to 500
            characters.
        retryable: whether the same request may succeed later.
        status: the HTTP status, or ``None`` for an error inside a stream.
        code: the provider's own code or type word, or ``None`` if it sent none.
        raw: the provider's error payload: JSON, or text if it was not JSON, or ``None`` if it sent none.

    Raises:
        ResponseValidationError: the kind is not an :class:`ErrorKind`, or a field has another type.
    """

    kind: ErrorKind = attrs.field(converter=_as_kind)
    message: str = attrs.field(converter=_as_message)
    retryable: bool = False
    status: int | None = None
    code: str | None = None
    raw: Any = attrs.field(default=None, hash=False)

    def __attrs_post_init__(self) -> None:
        check_flag(self, "retryable")
        if self.status is not None:
            check_count(self, "status")
        check_optional_text(self, "code")

    __repr__ = short_repr("kind", "status", "code", "retryable", "message")
