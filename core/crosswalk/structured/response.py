"""A contract between model and application, in its versions 1.0, 1.1 and 2.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from crosswalk.structured.schema import Invariant
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, JSONObject, as_frozen_object
from crosswalk.types.values import as_tuple

CITED: Final = ("title", "type", "url", "quote")
COUNT_QUALIFIERS: Final = ("exact", "at_least", "approx")


def _as_objects(values: Iterable[JSONObject]) -> tuple[FrozenObject, ...]:
    return tuple([v if type(v) is FrozenObject else as_frozen_object(v) for v in values]) if values else ()


def _count(default: int | None, *, required: bool = False) -> Any:
    return attrs.field(default=default, metadata={"required": required, "json_schema": {"minimum": 0}})


def _qualifier() -> Any:
    return attrs.field(default=None, metadata={"json_schema": {"enum": [*COUNT_QUALIFIERS, None]}})


def _shown_of(counted: StructuredResponse | StructuredResponseV2) -> str:
    shown, total = counted.items_shown, counted.items_total
    if total is None:
        return f"Showing {shown} items." if shown else ""
    raw = {"at_least": "at least ", "approx": "approximately "}.get(counted.count_qualifier or "", "")
    if shown == total and not raw:
        return f"Showing all {total} items."
    return f"Showing {shown} of {raw}{total} items."


class _Writable:
    """What every version can do."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that reads back as this value; what is ``None`` or empty is left out."""
        results = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}  # type: ignore[arg-type]
        stored = {key: value for key, value in results.items() if value not in (None, (), {})}
        return {
            key: value.thawed()
            if isinstance(value, FrozenObject)
            else [_plain(item) for item in value]
            if isinstance(value, tuple)
            else value
            for key, value in stored.items()
        }


def _plain(item: FrozenObject | Citation) -> dict[str, Any]:
    return item.thawed() if isinstance(item, FrozenObject) else item.to_dict()


@attrs.frozen
class StructuredResponse(_Writable):
    """An answer with what it counts.

    Version 1.0. It is checked when it is parsed; one that a
    program makes is taken as it is.

    Attributes:
        answer: the response text.
        items_shown: how many items the answer shows.
        items_total: how many items there are; ``None`` where it is not known.
        count_qualifier: what kind of number ``items_total`` is: exact, at_least or approx; ``None`` for unsaid.
        transparency_statement: the model's own words on what it shows; ``None`` where it made none.
        sources: what the answer rests on, such as ``{"title": "ADR.21", "type": "ADR"}``.
        schema_version: the version of this schema.
    """

    answer: str
    items_shown: int = _count(0, required=True)
    items_total: int | None = _count(None)
    count_qualifier: str | None = _qualifier()
    transparency_statement: str | None = None
    sources: tuple[FrozenObject, ...] = attrs.field(default=(), converter=_as_objects)
    schema_version: str = "1.0"

    def generate_transparency_message(self) -> str:
        """A sentence on how much of what there is the answer shows.

        The model's own statement where it made one; ``""`` where nothing was counted.
        """
        return self.transparency_statement or _shown_of(self)


@attrs.frozen
class StructuredResponseV1_1(StructuredResponse):
    """An answer with what it counts and how sure it is.

    Version 1.1 adds two optional fields to 1.0.

    Attributes:
        confidence: how sure the model is, from 0 to 1; ``None`` where it does not say.
        metadata: further keys and values.
    """

    schema_version: str = "1.1"
    confidence: float | None = attrs.field(
        default=None, metadata={"json_schema": {"minimum": 0, "maximum": 1}}
    )
    metadata: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)


@attrs.frozen
class Citation:
    """A source that an answer rests on.

    Attributes:
        title: its title; ``None`` where unsaid.
        type: what it is, such as ``ADR``; ``None`` where unsaid.
        url: where it can be read; ``None`` where unsaid.
        quote: the words that are cited; ``None`` where unsaid.
        extra: what a source of version 1 said beyond these.
    """

    title: str | None = None
    type: str | None = None
    url: str | None = None
    quote: str | None = None
    extra: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)

    @property
    def said(self) -> dict[str, str]:
        """The fields but ``extra`` that are not ``None``."""
        payload = {key: getattr(self, key) for key in CITED}
        return {key: value for key, value in payload.items() if value is not None}

    @property
    def repeats_itself(self) -> bool:
        """Whether ``extra`` holds one of the fields again."""
        return any(key in self.extra for key in self.said)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that reads back as this citation."""
        return {**self.said, "extra": self.extra.thawed()} if self.extra else self.said


@attrs.frozen
class StructuredResponseV2(_Writable):
    """An answer with its citations and what it counts.

    In version 2.0 ``answer`` is called ``response``, ``sources`` are structured, and the transparency message is
    always generated.

    Attributes:
        response: the response text.
        citations: what the answer rests on.
        items_shown: how many items the answer shows.
        items_total: how many items there are; ``None`` where it is not known.
        count_qualifier: what kind of number ``items_total`` is: exact, at_least or approx; ``None`` for unsaid.
        confidence: how sure the model is, from 0 to 1; ``None`` where it does not say.
        metadata: further keys and values.
        transparency_statement: deprecated, kept for what version 1 said; the message is generated. ``None`` for
            none.
        schema_version: the version of this schema.
    """

    response: str
    citations: tuple[Citation, ...] = attrs.field(default=(), converter=as_tuple, metadata={"required": True})
    items_shown: int = _count(0, required=True)
    items_total: int | None = _count(None)
    count_qualifier: str | None = _qualifier()
    confidence: float | None = attrs.field(
        default=None, metadata={"json_schema": {"minimum": 0, "maximum": 1}}
    )
    metadata: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)
    transparency_statement: str | None = attrs.field(
        default=None, metadata={"json_schema": {"deprecated": True}}
    )
    schema_version: str = "2.0"

    def generate_transparency_message(self) -> str:
        """A sentence on how much of what there is the answer shows; ``""`` where nothing was counted."""
        return _shown_of(self)


RESPONSE_INVARIANTS: Final[tuple[Invariant[Any], ...]] = (
    Invariant(
        "'items_total' must be >= 'items_shown'",
        lambda r: r.items_total is None or r.items_total >= r.items_shown,
    ),
)
"""The rules of every version. Those of a single field are in its JSON Schema."""

RESPONSE_V2_INVARIANTS: Final[tuple[Invariant[Any], ...]] = (
    *RESPONSE_INVARIANTS,
    Invariant(
        "'extra' of a citation must not repeat its other fields",
        lambda r: not any(citation.repeats_itself for citation in r.citations),
    ),
)
"""The rules of version 2.0."""
