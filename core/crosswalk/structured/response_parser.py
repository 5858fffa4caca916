"""The structured response: its versions, the ways between them, its validator, its parser, and functions for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from crosswalk.structured.cache import AnswerCache
from crosswalk.structured.chain import extract_json, repair_json
from crosswalk.structured.decode import NO_JSON, loads
from crosswalk.structured.default_cache import ResponseMetrics
from crosswalk.structured.metrics import ParserMetrics
from crosswalk.structured.parser import StructuredParser
from crosswalk.structured.reason import MigrationError, Partial, ReasonCode
from crosswalk.structured.response import (
    CITED,
    RESPONSE_INVARIANTS,
    RESPONSE_V2_INVARIANTS,
    Citation,
    StructuredResponse,
    StructuredResponseV1_1,
    StructuredResponseV2,
)
from crosswalk.structured.result import Candidate, FallbackUsed, Violation
from crosswalk.structured.schema import reason_of
from crosswalk.structured.versions import SchemaVersions
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, plain_view
from crosswalk.types.response import ChatResponse

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


RESPONSE_SCHEMA_INSTRUCTIONS: Final = "\n\n" + RESPONSE_VERSIONS.schema(CURRENT_SCHEMA_VERSION).instructions(
    {
        "schema_version": CURRENT_SCHEMA_VERSION,
        "answer": "Your response text here",
        "items_shown": 5,
        "items_total": 18,
        "count_qualifier": "exact",
        "sources": [{"title": "ADR.21", "type": "ADR"}],
    }
)
"""The text to append to a system prompt so that the model answers with a :class:`StructuredResponse`."""


def _read(data: Any) -> Candidate[StructuredResponse]:
    candidate = RESPONSE_VERSIONS.read(data)
    if isinstance(candidate.value, StructuredResponseV2):
        # Nothing is lost in this conversion: the invariants of 2.0 ensure it.
        return candidate._replace(value=RESPONSE_VERSIONS.migrate(candidate.value, "1.1"))
    return candidate


class ResponseValidator:
    """Validates documents against the version of the contract that they name."""

    REQUIRED_FIELDS_V1: Final = RESPONSE_VERSIONS.schema("1.0").required_fields
    """The keys that every 1.x document must have."""
    REQUIRED_FIELDS_V2: Final = RESPONSE_VERSIONS.schema("2.0").required_fields
    """The keys that every 2.x document must have."""

    @classmethod
    def validate(cls, data: Mapping[str, Any]) -> tuple[bool, list[str], ReasonCode]:
        """Check required fields, then types, then invariants.

        Args:
            data: a decoded JSON object.

        Returns:
            Whether it is valid, its violations, and the reason code.
        """
        return _verdict(_read(plain_view(data)).violations)

    @classmethod
    def parse_and_validate(cls, json_str: str) -> tuple[StructuredResponse | None, list[str], ReasonCode]:
        """Decode JSON and validate it. Nothing is extracted or repaired.

        Returns:
            The value or ``None``, its violations, and the reason code.
        """
        data = loads(json_str)
        if data is NO_JSON:
            return None, ["not JSON @ $"], ReasonCode.INVALID_JSON
        candidate = _read(data)
        _, errors, reason = _verdict(candidate.violations)
        return candidate.value, errors, reason

    @classmethod
    def get_required_fields(cls, version: str) -> set[str]:
        """Return the keys that a document of *version* must have, or those of version 1 if its major is not known."""
        read_as = RESPONSE_VERSIONS.read_as(version)
        return set(RESPONSE_VERSIONS.schema(read_as or CURRENT_SCHEMA_VERSION).required_fields)


def _verdict(violations: tuple[Violation, ...]) -> tuple[bool, list[str], ReasonCode]:
    reason = reason_of(violations) if violations else ReasonCode.SUCCESS
    return not violations, [str(violation) for violation in violations], reason


class ResponseParser(StructuredParser[StructuredResponse]):
    """Reads :class:`StructuredResponse` values of every supported version from the text of a model.

    A 1.x document gives a value of its own version. One of version 2.0 is brought down to 1.1, which loses nothing.

    Args:
        metrics: counts every parse, or ``None`` to count nothing.
        cache: stores results by text, or ``None`` to parse each time.
    """

    def __init__(self, *, metrics: ParserMetrics | None = None, cache: AnswerCache | None = None) -> None:
        super().__init__(RESPONSE_VERSIONS, metrics=metrics, cache=cache)
        self._read = _read

    @classmethod
    def parse_with_fallbacks(
        cls,
        response_text: str | ChatResponse,
        enable_metrics: bool = True,
        *,
        partial: Partial | None = None,
    ) -> tuple[StructuredResponse | None, FallbackUsed]:
        """Read one answer.

        Args:
            response_text: the text, or the response with its finish reason.
            enable_metrics: count it in ``ResponseMetrics.get_instance()``.
            partial: how to treat an answer that ends in the middle. With ``None``, a text that lacks nothing but
                closing brackets is given, and marked. A response with a finish reason that says it was cut is not.

        Returns:
            The value or ``None``, and how it went: a text with the attribute ``partial``.
        """
        if partial is None:
            partial = Partial.CLOSE if isinstance(response_text, str) else Partial.REFUSE
        metrics = ResponseMetrics.get_instance() if enable_metrics else None
        result = cls(metrics=metrics).parse(response_text, partial=partial)
        return result.value, result.fallback_used

    extract_json = staticmethod(extract_json)
    repair_json = staticmethod(repair_json)
