"""The typed parts of an answer, in the order in which they came."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias, final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, short_repr, summary
from crosswalk.types._value import (
    LARGEST,
    as_optional_tuple,
    as_tuple,
    check_flag,
    check_items,
    check_optional_text,
    check_text,
    one_of,
)
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object


class SegmentType(StrEnum):
    """The type of a segment: a closed set without an ``other``."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    CITATION = "citation"
    REFUSAL = "refusal"
    SAFETY = "safety"
    ERROR = "error"
    MEDIA = "media"


def _is_integer(value: object) -> bool:
    return type(value) is int and -LARGEST <= value <= LARGEST


@brief
@attrs.frozen
class CitationRef:
    """A source that a segment rests on.

    Attributes:
        id: the provider's id of the source, or ``None`` if it has none.
        source: its location: a URL, a file id or a title, or ``None`` if the provider does not send it.
        span: the characters of the text that it covers, from and up to, or ``None`` for the whole.

    Raises:
        ResponseValidationError: a field has another type, or a span is not two integers.
    """

    id: str | None = None
    source: str | None = None
    span: tuple[int, int] | None = attrs.field(default=None, converter=as_optional_tuple)

    def __attrs_post_init__(self) -> None:
        if self.id is not None:
            check_text(self, "id")
        if self.source is not None:
            check_text(self, "source")
        span: tuple[object, ...] | None = self.span
        if span is not None and not (len(span) == 2 and _is_integer(span[0]) and _is_integer(span[1])):
            raise ResponseValidationError("CitationRef.span must be two integers")

    __repr__ = short_repr("id", "source", "span")


@brief
@attrs.frozen
class SafetyAnnotation:
    """A moderation verdict on a segment.

    Attributes:
        category: the provider's word for the kind of harm.
        level: the provider's word for how bad or how likely, or ``None`` if it gives none.
        blocked: whether content was withheld because of it.

    Raises:
        ResponseValidationError: a field has another type.
    """

    category: str
    level: str | None = None
    blocked: bool = False

    def __attrs_post_init__(self) -> None:
        check_text(self, "category")
        check_optional_text(self, "level")
        check_flag(self, "blocked")

    __repr__ = short_repr("category", "level", "blocked")


Annotation: TypeAlias = CitationRef | SafetyAnnotation
"""The annotations that a segment may have: a closed set."""


@brief
@final
@attrs.frozen(weakref_slot=False)
class Segment:
    """A typed part of an answer.

    Attributes:
        type: the type of the part.
        content: its text. For ``tool_call`` the exact arguments, for ``media`` base64 data or a URL.
        metadata: more about it, read-only: ``id`` and ``name`` of a tool call, ``signature`` or ``encrypted``
            of reasoning (to be sent back byte for byte), ``kind``, ``retryable``, ``status``, ``code`` and
            ``raw`` of an error, ``media_type`` of media.
        annotations: citations and safety verdicts, in order.

    Raises:
        ResponseValidationError: the type is unknown, the content is not text, the metadata is not a JSON object, or an
            annotation has another type.
    """

    type: SegmentType
    content: str = ""
    metadata: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)
    annotations: tuple[Annotation, ...] = attrs.field(default=(), converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        if type(self.type) is not SegmentType:
            object.__setattr__(self, "type", one_of(SegmentType, self.type, "unknown segment type"))
        content = self.content
        if type(content) is not str or not content.isascii():
            check_text(self, "content")
        if self.annotations:
            check_items(self, "annotations", CitationRef, SafetyAnnotation)

    def __repr__(self) -> str:
        return summary(
            "Segment",
            [
                ("type", self.type.value),
                ("content", self.content),
                ("metadata", tuple(self.metadata)),
                ("annotations", len(self.annotations) or None),
            ],
        )
