"""Which keys the JSON object of a canonical type has, and in what order.

Writing, reading and the schema all follow this one table. It is worked out from the types' own fields;
stated here is only what differs from them.
"""

from __future__ import annotations

import functools
import operator
import typing
from collections.abc import Collection
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final

import attrs

from crosswalk.types.delta import ResponseDelta
from crosswalk.types.event import StreamEvent
from crosswalk.types.filter import ContentFilterResult
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.message import AudioPart, ChatMessage, FilePart, ImagePart, TextPart
from crosswalk.types.metadata import ProviderAttempt, ResponseMetadata
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.segment import CitationRef, SafetyAnnotation, Segment
from crosswalk.types.tools import ToolCall, ToolCallDelta
from crosswalk.types.usage import Cost, UsageDetails, UsageInfo

__all__ = [
    "CANONICAL",
    "RAW",
    "TAGS",
    "Key",
    "is_canonical_enum",
    "key_of",
    "layout",
    "union_members",
    "without_none",
]

TAGS: Final[dict[type, str]] = {
    TextPart: "text",
    ImagePart: "image",
    AudioPart: "audio",
    FilePart: "file",
    CitationRef: "citation",
    SafetyAnnotation: "safety",
}
"""The members of unions, by what their key ``type`` says, which is always the first."""

CANONICAL: Final[frozenset[type]] = frozenset(TAGS) | {
    Alternative,
    ChatMessage,
    ChatResponse,
    ContentFilterResult,
    Cost,
    ProviderAttempt,
    ResponseDelta,
    ResponseMetadata,
    Segment,
    StreamEvent,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageDetails,
    UsageInfo,
}
"""Every type that has a JSON object of its own."""


def is_canonical_enum(kind: Any) -> bool:
    """Whether *kind* holds the words of a canonical type."""
    return (
        isinstance(kind, type) and issubclass(kind, Enum) and kind.__module__.startswith("crosswalk.types.")
    )


RAW: Final = frozenset({"raw_events", "raw_event"})
"""The keys that hold the provider's own bytes and are written only when asked for."""

# The order of keys where it is not that of the fields. A name that is no field is a computed property,
# written and ignored on reading; a field that is not named is neither written nor read.
_ORDER: Final[dict[type, tuple[str, ...]]] = {
    UsageInfo: (
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "cache_write_tokens",
        "cost",
        "details",
    ),
    ResponseMetadata: (
        "provider_id",
        "model_id",
        "request_duration",
        "time_to_first_token",
        "tokens_per_second",
        "extensions",
        "provenance",
    ),
    ChatResponse: (
        "id",
        "message",
        "finish_reason",
        "usage",
        "metadata",
        "created",
        "model",
        "raw_finish_reason",
        "refusal",
        "content_filter_results",
        "segments",
        "logprobs",
        "alternatives",
        "attempts",
        "raw_events",
    ),
}

_RENAMED: Final[dict[tuple[type, str], str]] = {
    (ResponseMetadata, "request_duration"): "request_duration_seconds",
    (ResponseMetadata, "time_to_first_token"): "time_to_first_token_seconds",
}

# Left out at its default, although it is not an empty collection.
_OMITTED_AT_DEFAULT: Final[set[tuple[type, str]]] = {(ResponseDelta, "choice"), (UsageInfo, "details")}


@attrs.frozen
class Key:
    """One key of a JSON object.

    Attributes:
        name: the key.
        attribute: the field or property of the type that it holds.
        type: its type, ``None`` taken out of a union.
        required: whether reading needs it. Whatever may be ``None`` is not: ``None`` is never written.
        omit_empty: whether an empty value, being the default, is left out. An empty collection whose default
            is ``None`` is written: ``[]`` and ``None`` say different things.
        nullable: whether it may be ``None``, which is left out.
        computed: whether it is written for the reader's comfort only, and ignored on reading.
    """

    name: str
    attribute: str
    type: Any
    required: bool = False
    omit_empty: bool = False
    nullable: bool = False
    computed: bool = False

    @property
    def omit_default(self) -> bool:
        """Whether the default is left out."""
        return self.omit_empty or self.nullable


@functools.cache
def layout(cls: type) -> tuple[Key, ...]:
    """The keys of the canonical type *cls* in the order in which they are written."""
    fields = attrs.fields_dict(attrs.resolve_types(cls))
    return tuple(
        _field_key(cls, fields[name]) if name in fields else _computed_key(cls, name)
        for name in _ORDER.get(cls, fields)
    )


def key_of(cls: Any, attribute: str) -> str:
    """The JSON key of a field of a class: of a canonical type, or of any attrs class, which has its alias there."""
    if cls in CANONICAL:
        return _RENAMED.get((cls, attribute), attribute)
    field = attrs.fields_dict(cls).get(attribute) if isinstance(cls, type) and attrs.has(cls) else None
    return attribute if field is None else field.alias or attribute


def _field_key(cls: type, field: attrs.Attribute[Any]) -> Key:
    hint, empty = field.type, isinstance(field.default, Collection) and not isinstance(field.default, str)
    return Key(
        name=_RENAMED.get((cls, field.name), field.name),
        attribute=field.name,
        type=without_none(hint),
        required=field.default is attrs.NOTHING and NoneType not in union_members(hint),
        omit_empty=empty or (cls, field.name) in _OMITTED_AT_DEFAULT,
        nullable=field.default is None or NoneType in union_members(hint),
    )


def _computed_key(cls: type, name: str) -> Key:
    hint = typing.get_type_hints(getattr(cls, name).fget)["return"]
    return Key(name, name, without_none(hint), nullable=NoneType in union_members(hint), computed=True)


def union_members(hint: Any) -> tuple[Any, ...]:
    """The members of a union; empty for any other type."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else ()


def without_none(hint: Any) -> Any:
    """*hint* less ``None``, where it is a union that allows it."""
    members = [member for member in union_members(hint) if member is not NoneType]
    return functools.reduce(operator.or_, members) if members else hint
