"""The structured response: a contract between model and application in three versions, and its parser."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from crosswalk.config import TIME_LIMIT
from crosswalk.structured.chain import extract_json, repair_json
from crosswalk.structured.metrics import (
    MAX_ENTRIES,
    AnswerCache,
    MemoryCache,
    ParserMetrics,
    answer_key,
)
from crosswalk.structured.parser import StructuredParser
from crosswalk.structured.repair import NO_JSON, loads
from crosswalk.structured.result import (
    Candidate,
    FallbackUsed,
    MigrationError,
    Partial,
    ReasonCode,
    Violation,
)
from crosswalk.structured.schema import Invariant, SchemaVersions, reason_of
from crosswalk.text import brief, short_repr
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, JSONObject, as_frozen_object, plain_view
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import as_tuple

# -------------------------------------------------------------------------------- response
# A contract between model and application, in its versions 1.0, 1.1 and 2.0.


CITED: Final = ("title", "type", "url", "quote")
COUNT_QUALIFIERS: Final = ("exact", "at_least", "approx")


def _as_objects(values: Iterable[JSONObject]) -> tuple[FrozenObject, ...]:
    return tuple([v if type(v) is FrozenObject else as_frozen_object(v) for v in values]) if values else ()


def _count(default: int | None, *, required: bool = False) -> Any:
    return attrs.field(default=default, metadata={"required": required, "json_schema": {"minimum": 0}})


def _qualifier() -> Any:
    return attrs.field(default=None, metadata={"json_schema": {"enum": [*COUNT_QUALIFIERS, None]}})


def _shown_of(response: StructuredResponse | StructuredResponseV2) -> str:
    shown, total = response.items_shown, response.items_total
    if total is None:
        return f"Showing {shown} items." if shown else ""
    qualifier = {"at_least": "at least ", "approx": "approximately "}.get(response.count_qualifier or "", "")
    if shown == total and not qualifier:
        return f"Showing all {total} items."
    return f"Showing {shown} of {qualifier}{total} items."


class _Writable:
    """The part that all versions share."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that reads back as this value, without what is ``None`` or empty."""
        fields = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}  # type: ignore[arg-type]
        nonempty_fields = {key: value for key, value in fields.items() if value not in (None, (), {})}
        return {
            key: value.thawed()
            if isinstance(value, FrozenObject)
            else [_plain(item) for item in value]
            if isinstance(value, tuple)
            else value
            for key, value in nonempty_fields.items()
        }


def _plain(item: FrozenObject | Citation) -> dict[str, Any]:
    return item.thawed() if isinstance(item, FrozenObject) else item.to_dict()


@attrs.frozen
class StructuredResponse(_Writable):
    """An answer with what it counts.

    Version 1.0. Crosswalk checks one that it parses, but not one that a
    program makes.

    Attributes:
        answer: the response text.
        items_shown: how many items the answer shows.
        items_total: the number of all items, or ``None`` if it is not known.
        count_qualifier: the kind of number ``items_total`` is: exact, at_least or approx, or ``None`` if unknown.
        transparency_statement: the model's own words on what it shows, or ``None``.
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

        The model's own statement if it made one. ``""`` if nothing was counted.
        """
        return self.transparency_statement or _shown_of(self)


@attrs.frozen
class StructuredResponseV1_1(StructuredResponse):
    """An answer with what it counts and how sure it is.

    Version 1.1 adds two optional fields to 1.0.

    Attributes:
        confidence: how sure the model is, from 0 to 1, or ``None`` if it does not say.
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
        title: its title, or ``None``.
        type: its kind, such as ``ADR``, or ``None``.
        url: the address to read it at, or ``None``.
        quote: the cited words, or ``None``.
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
        fields = {key: getattr(self, key) for key in CITED}
        return {key: value for key, value in fields.items() if value is not None}

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
        items_total: the number of all items, or ``None`` if it is not known.
        count_qualifier: the kind of number ``items_total`` is: exact, at_least or approx, or ``None`` if unknown.
        confidence: how sure the model is, from 0 to 1, or ``None`` if it does not say.
        metadata: further keys and values.
        transparency_statement: deprecated, kept for what version 1 said. The message is generated. ``None`` for
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
        """A sentence on how much of what there is the answer shows. ``""`` if nothing was counted."""
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


# --------------------------------------------------------------------------- default cache
# The metrics and the cache of the whole process.
#
# A parser with a separate count or cache takes ``metrics=ParserMetrics()`` and ``cache=MemoryCache()`` instead.


_METRICS: Final = ParserMetrics()


class ResponseMetrics:
    """The metrics in which :meth:`ResponseParser.parse_with_fallbacks` counts."""

    @staticmethod
    def get_instance() -> ParserMetrics:
        """The shared instance."""
        return _METRICS

    @staticmethod
    def reset() -> None:
        """Set the shared one to zero and take its exporter away."""
        _METRICS.reset()
        _METRICS.set_exporter(None)


@brief
@attrs.frozen(kw_only=True, repr=False)
class CacheEntry:
    """The stored result for one answer.

    Attributes:
        raw_response: the text of the model.
        parsed_json: the value as plain JSON, or ``None`` if there is none.
        structured_response: the value, or ``None`` if there is none.
        validation_result: whether there is a valid value.
        reason_code: why it ended so.
        fallback_used: the word for the stage.
        created_at: when it was stored, in seconds since 1970.
        ttl_seconds: how long it counts, in seconds.
    """

    raw_response: str
    parsed_json: dict[str, Any] | None
    structured_response: StructuredResponse | None
    validation_result: bool
    reason_code: ReasonCode
    fallback_used: str
    created_at: float
    ttl_seconds: float

    __repr__ = short_repr("validation_result", "reason_code", "fallback_used", "ttl_seconds", "raw_response")


class ResponseCache(MemoryCache):
    """The cache that a program fills by hand, one for the process."""

    DEFAULT_TTL_ONLINE: Final = 300
    """Seconds that an entry counts in live traffic."""
    DEFAULT_TTL_CI: Final = 3600
    """Seconds that an entry counts in continuous integration."""
    MAX_CACHE_SIZE: Final = MAX_ENTRIES
    """The greatest number of entries."""

    @staticmethod
    def get_instance() -> ResponseCache:
        """The shared instance."""
        return _CACHE

    @staticmethod
    def reset() -> None:
        """Empty the shared one and set its numbers to zero."""
        _CACHE.clear()
        _CACHE.reset_stats()

    @staticmethod
    def compute_key(
        model_id: str, prompt_version: str, query: str, doc_ids: Iterable[str], raw_text: str
    ) -> str:
        """The same key for the same arguments, in every process: 64 hexadecimal digits."""
        return answer_key(model_id, prompt_version, query, list(doc_ids), raw_text)

    def set(
        self,
        key: str,
        raw_response: str,
        parsed_json: dict[str, Any] | None,
        structured_response: StructuredResponse | None,
        validation_result: bool,
        reason_code: ReasonCode,
        fallback_used: str,
        ttl_seconds: float = DEFAULT_TTL_ONLINE,
    ) -> None:
        """Store a :class:`CacheEntry` under *key* for *ttl_seconds*.

        Raises:
            ConfigurationError: *ttl_seconds* is not a positive number.
        """
        TIME_LIMIT.check("ttl_seconds", ttl_seconds)
        entry = CacheEntry(
            raw_response=raw_response,
            parsed_json=parsed_json,
            structured_response=structured_response,
            validation_result=validation_result,
            reason_code=ReasonCode(reason_code),
            fallback_used=str(fallback_used),
            created_at=time.time(),
            ttl_seconds=ttl_seconds,
        )
        self.put(key, entry, ttl=ttl_seconds)

    def get_stats(self) -> dict[str, Any]:
        """``hits``, ``misses``, ``hit_rate`` (``None`` before the first look-up), ``size`` and ``max_size``."""
        cache_stats = self.stats()
        counts = {"hits": cache_stats.hits, "misses": cache_stats.misses, "hit_rate": cache_stats.hit_rate}
        return {**counts, "size": self.size(), "max_size": MAX_ENTRIES}


_CACHE: Final = ResponseCache()


def get_parse_stats() -> dict[str, Any]:
    """All numbers of the process: ``parsing``, ``cache`` and ``slo`` with the ``success_rate``."""
    return {
        "parsing": _METRICS.get_stats(),
        "cache": _CACHE.get_stats(),
        "slo": {"success_rate": _METRICS.get_success_rate()},
    }


def reset_stats() -> None:
    """Set the metrics of the process to zero and empty its cache."""
    ResponseMetrics.reset()
    ResponseCache.reset()


# ------------------------------------------------------------------------- response parser
# The structured response: its versions, the ways between them, its validator, its parser, and functions for them.


_UNCHANGED_FIELDS: Final = (
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
    fields = _fields(new)
    lost_fields = [key for key in ("confidence", "metadata") if fields.pop(key) not in (None, EMPTY_OBJECT)]
    if lost_fields:
        raise MigrationError(f"{' and '.join(lost_fields)} would be lost")
    return StructuredResponse(**{**fields, "schema_version": "1.0"})


def _from_1_1(old: StructuredResponseV1_1) -> StructuredResponseV2:
    return StructuredResponseV2(
        response=old.answer,
        citations=tuple(_citation(source) for source in old.sources),
        **{name: getattr(old, name) for name in _UNCHANGED_FIELDS},
    )


def _to_1_1(new: StructuredResponseV2) -> StructuredResponseV1_1:
    if any(citation.repeats_itself for citation in new.citations):
        raise MigrationError("repeated keys of a citation would be lost")
    return StructuredResponseV1_1(
        answer=new.response,
        sources=[{**citation.extra, **citation.said} for citation in new.citations],
        **{name: getattr(new, name) for name in _UNCHANGED_FIELDS},
    )


def _citation(source: FrozenObject) -> Citation:
    cited_fields = {key: source[key] for key in CITED if isinstance(source.get(key), str)}
    return Citation(**cited_fields, extra={key: source[key] for key in source if key not in cited_fields})


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
