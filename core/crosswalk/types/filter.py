"""Verdicts of a provider's moderation, in one set of words."""

from __future__ import annotations

from enum import StrEnum

import attrs

from crosswalk.text import brief, short_repr
from crosswalk.types._value import check_flag, check_optional_text, one_of


class ContentFilterCategory(StrEnum):
    """The kind of harm."""

    SEXUAL = "sexual"
    VIOLENCE = "violence"
    HATE = "hate"
    SELF_HARM = "self_harm"


class ContentFilterSeverity(StrEnum):
    """How bad it is."""

    SAFE = "safe"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def _as_category(value: object) -> ContentFilterCategory:
    return one_of(ContentFilterCategory, value, "unknown content filter category")


def _as_severity(value: object) -> ContentFilterSeverity:
    return one_of(ContentFilterSeverity, value, "unknown content filter severity")


@brief
@attrs.frozen
class ContentFilterResult:
    """One verdict of a provider's moderation.

    Attributes:
        category: the kind of harm.
        severity: how bad it is.
        filtered: whether content was blocked because of it.
        reason: the provider's explanation, or ``None`` when it gives none.

    Raises:
        ResponseValidationError: an unknown category or severity, or a field of another type.
    """

    category: ContentFilterCategory = attrs.field(converter=_as_category)
    severity: ContentFilterSeverity = attrs.field(converter=_as_severity)
    filtered: bool
    reason: str | None = None

    def __attrs_post_init__(self) -> None:
        check_flag(self, "filtered")
        check_optional_text(self, "reason")

    __repr__ = short_repr("category", "severity", "filtered", "reason")
