"""The versions of the structured response's contract, and the ways between them."""

from __future__ import annotations

from typing import Any, Final

import attrs

from crosswalk.structured.errors import MigrationError
from crosswalk.structured.response import (
    CITED,
    RESPONSE_INVARIANTS,
    RESPONSE_V2_INVARIANTS,
    Citation,
    StructuredResponse,
    StructuredResponseV1_1,
    StructuredResponseV2,
)
from crosswalk.structured.versions import SchemaVersions
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject

__all__ = ["CURRENT_SCHEMA_VERSION", "RESPONSE_VERSIONS", "SUPPORTED_SCHEMA_VERSIONS"]

_SAME_IN_2_0: Final = (
    "items_shown",
    "items_total",
    "count_qualifier",
    "transparency_statement",
    "confidence",
    "metadata",
)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}


def _from_1_0(old: StructuredResponse) -> StructuredResponseV1_1:
    return StructuredResponseV1_1(**{**_fields(old), "schema_version": "1.1"})


def _to_1_0(new: StructuredResponseV1_1) -> StructuredResponse:
    raw = _fields(new)
    lost = [key for key in ("confidence", "metadata") if raw.pop(key) not in (None, EMPTY_OBJECT)]
    if lost:
        raise MigrationError(f"{' and '.join(lost)} would be lost")
    return StructuredResponse(**{**raw, "schema_version": "1.0"})


def _from_1_1(old: StructuredResponseV1_1) -> StructuredResponseV2:
    return StructuredResponseV2(
        response=old.answer,
        citations=tuple(_citation(source) for source in old.sources),
        **{name: getattr(old, name) for name in _SAME_IN_2_0},
    )


def _to_1_1(new: StructuredResponseV2) -> StructuredResponseV1_1:
    if any(citation.repeats_itself for citation in new.citations):
        raise MigrationError("what a citation says twice would be lost")
    return StructuredResponseV1_1(
        answer=new.response,
        sources=[{**citation.extra, **citation.said} for citation in new.citations],
        **{name: getattr(new, name) for name in _SAME_IN_2_0},
    )


def _citation(source: FrozenObject) -> Citation:
    payload = {key: source[key] for key in CITED if isinstance(source.get(key), str)}
    return Citation(**payload, extra={key: source[key] for key in source if key not in payload})


RESPONSE_VERSIONS: Final[SchemaVersions[Any]] = (
    SchemaVersions[Any]()
    .register("1.0", StructuredResponse, invariants=RESPONSE_INVARIANTS)
    .register(
        "1.1",
        StructuredResponseV1_1,
        invariants=RESPONSE_INVARIANTS,
        upgrade=_from_1_0,
        downgrade=_to_1_0,
    )
    .register(
        "2.0",
        StructuredResponseV2,
        invariants=RESPONSE_V2_INVARIANTS,
        upgrade=_from_1_1,
        downgrade=_to_1_1,
    )
)
"""The registry of :class:`ResponseParser`."""

CURRENT_SCHEMA_VERSION: Final = "1.0"
"""The version that ``RESPONSE_SCHEMA_INSTRUCTIONS`` ask for, and of a document that names none."""

SUPPORTED_SCHEMA_VERSIONS: Final = RESPONSE_VERSIONS.supported
"""The versions that are read."""
