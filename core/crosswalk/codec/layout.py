"""The keys of the JSON object of a canonical type, and their order.

Writing, reading and the schema all follow this one table. It is worked out from the types' own fields. Metadata of a
field declares differences in JSON:

- ``json_key``: its key, or ``None`` if it is not written.
- ``json_omit``: its default is left out, although it is neither ``None`` nor an empty collection.
- ``json_next``: the field, or the computed property, of the key that follows.
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

from crosswalk.types.delta import Correction, ResponseDelta
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    TextPart,
    ToolCall,
    ToolCallDelta,
)
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.usage import Cost, ProviderAttempt, ResponseMetadata, UsageDetails, UsageInfo
from crosswalk.types.values import CitationRef, ContentFilterResult, SafetyAnnotation, Segment, TokenLogprob

TAGS: Final[dict[type, str]] = {
    TextPart: "text",
    ImagePart: "image",
    AudioPart: "audio",
    FilePart: "file",
    CitationRef: "citation",
    SafetyAnnotation: "safety",
}
"""The members of unions, by the value of their key ``type``, which is always the first."""

CANONICAL: Final[frozenset[type]] = frozenset(TAGS) | {
    Alternative,
    ChatMessage,
    ChatResponse,
    ContentFilterResult,
    Correction,
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
"""Every type with a separate JSON object."""


def is_canonical_enum(kind: Any) -> bool:
    """Whether *kind* holds the words of a canonical type."""
    return (
        isinstance(kind, type) and issubclass(kind, Enum) and kind.__module__.startswith("crosswalk.types.")
    )


RAW: Final = frozenset({"raw_events", "raw_event"})
"""The keys that hold the provider's own bytes and are written only when asked for."""


@attrs.frozen
class Key:
    """One key of a JSON object.

    Attributes:
        name: the key.
        attribute: the field or property of the type that it holds.
        type: its type, ``None`` taken out of a union.
        required: whether reading needs it. Whatever may be ``None`` is not: ``None`` is never written.
        omit_default: whether the default is left out. An empty collection whose default is ``None`` is written:
            ``[]`` and ``None`` say different things.
        nullable: whether it may be ``None``, which is left out.
        computed: whether it is written for the reader's comfort only, and ignored on reading.
    """

    name: str
    attribute: str
    type: Any
    required: bool = False
    omit_default: bool = False
    nullable: bool = False
    computed: bool = False


@functools.cache
def layout(cls: type) -> tuple[Key, ...]:
    """The keys of the canonical type *cls* in the order in which they are written."""
    fields = attrs.fields_dict(attrs.resolve_types(cls))
    names = [name for field in fields.values() for name in (field.name, field.metadata.get("json_next"))]
    return tuple(
        _field_key(fields[name]) if name in fields else _computed_key(cls, name)
        for name in dict.fromkeys(filter(None, names))
        if name not in fields or fields[name].metadata.get("json_key", "") is not None
    )


def key_of(cls: Any, attribute: str) -> str:
    """The JSON key of a field of an attrs class: its own, or its alias."""
    field = attrs.fields_dict(cls).get(attribute) if isinstance(cls, type) and attrs.has(cls) else None
    return attribute if field is None else field.metadata.get("json_key") or field.alias or attribute


def _field_key(field: attrs.Attribute[Any]) -> Key:
    hint, default = field.type, field.default
    is_nullable = default is None or NoneType in union_members(hint)
    is_empty = isinstance(default, Collection) and not isinstance(default, str)
    return Key(
        name=field.metadata.get("json_key", field.name),
        attribute=field.name,
        type=without_none(hint),
        required=default is attrs.NOTHING and not is_nullable,
        omit_default=is_nullable or is_empty or "json_omit" in field.metadata,
        nullable=is_nullable,
    )


def _computed_key(cls: type, name: str) -> Key:
    hint = typing.get_type_hints(getattr(cls, name).fget)["return"]
    return Key(name, name, without_none(hint), nullable=NoneType in union_members(hint), computed=True)


def union_members(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or empty for any other type."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else ()


def without_none(hint: Any) -> Any:
    """*hint* less ``None``, where it is a union that allows it."""
    members = [member for member in union_members(hint) if member is not NoneType]
    return functools.reduce(operator.or_, members) if members else hint
