"""The layout of canonical JSON: its keys and their order, its versions, and the problems of a document."""

from __future__ import annotations

import functools
import operator
import typing
from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final

import attrs

from crosswalk.errors import CanonicalJSONError
from crosswalk.lazy import pattern
from crosswalk.text import json_type_name
from crosswalk.types.delta import Correction, ResponseDelta
from crosswalk.types.json import quoted, step
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    DocumentPart,
    FilePart,
    ImagePart,
    SearchResultPart,
    TextPart,
    ToolCall,
    ToolCallDelta,
    VideoPart,
)
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.usage import Cost, ProviderAttempt, ResponseMetadata, UsageDetails, UsageInfo
from crosswalk.types.values import (
    CitationRef,
    ContentFilterResult,
    SafetyAnnotation,
    Segment,
    TokenLogprob,
)

# -------------------------------------------------------------------------------- problems
# The problems of a document, as ``problem @ $.path``.


class DocumentProblem(ValueError):
    """One problem of a value.

    Attributes:
        at: the path from that value to the problem: ``.format_version``, or ``""`` for the value itself.
    """

    def __init__(self, text: str, *, at: str = "") -> None:
        super().__init__(text)
        self.at = at

    @classmethod
    def wrong_type(cls, expected: str, value: object, *, at: str = "") -> DocumentProblem:
        """The type of *value* is not the *expected* one."""
        return cls(f"expected {expected}, got {json_type_name(value)}", at=at)

    @classmethod
    def unknown(cls, what: str, got: object, known: Iterable[str], *, at: str = "") -> DocumentProblem:
        """Return the problem that *got* is not one of the *known* words."""
        if type(got) is not str:
            return cls.wrong_type("string", got, at=at)
        return cls(f"unknown {what} {quoted(got)!r}, expected {' or '.join(known)}", at=at)

    def under(self, place: str) -> DocumentProblem:
        """The same, seen from outside: *place* leads to the value."""
        self.at = place + self.at
        return self


class MissingKey(DocumentProblem):
    """A required key is missing."""


class TooDeep(DocumentProblem):
    """The document is nested deeper than Python's stack."""

    def __init__(self) -> None:
        super().__init__("nested too deeply")


class Refused(DocumentProblem):
    """A class refused its fields: a validator, a converter or its ``__attrs_post_init__`` raised.

    Attributes:
        cls: the class.
        cause: what it raised.
    """

    def __init__(self, cls: type, cause: Exception, at: str) -> None:
        field = next((each for each in cause.args if isinstance(each, attrs.Attribute)), None)
        super().__init__("refused", at=at if field is None else at + step(field.alias or field.name))
        self.cls = cls
        self.cause = cause

    def __str__(self) -> str:
        return str(self.cause)


def cannot(do: str, what: Any, problems: Sequence[str]) -> CanonicalJSONError:
    """Return the error that names why *what* cannot be read or written: the first problem, and the number of others."""
    item_types = typing.get_args(what)
    if typing.get_origin(what) in (typing.Union, UnionType):
        name = "a union"
    else:
        name = f"{what.__name__}[{item_types[0].__name__}]" if item_types else what.__name__
    further_note = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return CanonicalJSONError(f"cannot {do} {name}: {problems[0]}{further_note}", problems=problems)


# ---------------------------------------------------------------------------------- layout
# The keys of the JSON object of a canonical type, and their order.
#
# Writing, reading and the schema all follow this one table. It is worked out from the types' own fields. Metadata of a
# field declares differences in JSON:
#
# - ``json_key``: its key, or ``None`` if it is not written.
# - ``json_omit``: its default is left out, although it is neither ``None`` nor an empty collection.
# - ``json_next``: the field, or the computed property, of the key that follows.


TAGS: Final[dict[type, str]] = {
    TextPart: "text",
    ImagePart: "image",
    AudioPart: "audio",
    VideoPart: "video",
    SearchResultPart: "search_result",
    DocumentPart: "document",
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
class LayoutKey:
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
def layout(cls: type) -> tuple[LayoutKey, ...]:
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


def _field_key(field: attrs.Attribute[Any]) -> LayoutKey:
    hint, default = field.type, field.default
    is_nullable = default is None or NoneType in union_members(hint)
    is_empty = isinstance(default, Collection) and not isinstance(default, str)
    return LayoutKey(
        name=field.metadata.get("json_key", field.name),
        attribute=field.name,
        type=without_none(hint),
        required=default is attrs.NOTHING and not is_nullable,
        omit_default=is_nullable or is_empty or "json_omit" in field.metadata,
        nullable=is_nullable,
    )


def _computed_key(cls: type, name: str) -> LayoutKey:
    hint = typing.get_type_hints(getattr(cls, name).fget)["return"]
    return LayoutKey(name, name, without_none(hint), nullable=NoneType in union_members(hint), computed=True)


def union_members(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or empty for any other type."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else ()


def without_none(hint: Any) -> Any:
    """*hint* less ``None``, where it is a union that allows it."""
    members = [member for member in union_members(hint) if member is not NoneType]
    return functools.reduce(operator.or_, members) if members else hint


# --------------------------------------------------------------------------------- version
# The version of the canonical JSON that is written, and the versions that can be read.


FORMAT_VERSION: Final = "1.0"
"""The version of the canonical JSON that is written, as ``major.minor``.

A new optional key raises the minor number, and every reader of the same major number reads it.
Anything else raises the major number. A response without a version is a ``1.0`` one.
"""

READABLE_MAJORS: Final = ("1",)
_VERSION = pattern(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")


def check_version(version: Any) -> None:
    """Refuse a *version* whose documents this codec cannot read.

    Raises:
        Problem: it is malformed or its major number is unknown.
    """
    if version == FORMAT_VERSION:
        return
    readable_versions = " or ".join(f"{major}.x" for major in READABLE_MAJORS)
    if type(version) is not str:
        raise DocumentProblem(
            f"expected a format version as a string (readable: {readable_versions}), got {json_type_name(version)}",
            at=".format_version",
        )
    match = _VERSION.fullmatch(version)
    if match is None or match[1] not in READABLE_MAJORS:
        kind = "malformed" if match is None else "unknown"
        raise DocumentProblem(
            f"{kind} format version {quoted(version)!r} (readable: {readable_versions})", at=".format_version"
        )
