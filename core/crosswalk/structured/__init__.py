"""Validated values from the text that a model wrote, or the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.schemas.metadata import (
        SchemaDefinitionError as SchemaDefinitionError,
    )
    from crosswalk.schemas.values import (
        value_to_json as value_to_json,
    )
    from crosswalk.structured.cache import (
        AnswerCache as AnswerCache,
        CacheStats as CacheStats,
        MemoryCache as MemoryCache,
        answer_key as answer_key,
    )
    from crosswalk.structured.chain import (
        extract_json as extract_json,
        repair_json as repair_json,
    )
    from crosswalk.structured.default_cache import (
        CacheEntry as CacheEntry,
        ResponseCache as ResponseCache,
        ResponseMetrics as ResponseMetrics,
        get_parse_stats as get_parse_stats,
        reset_stats as reset_stats,
    )
    from crosswalk.structured.metrics import (
        ParserMetrics as ParserMetrics,
    )
    from crosswalk.structured.parser import (
        StructuredParser as StructuredParser,
    )
    from crosswalk.structured.reason import (
        AnswerTypeError as AnswerTypeError,
        Choice as Choice,
        MigrationError as MigrationError,
        Partial as Partial,
        Prose as Prose,
        ReasonCode as ReasonCode,
        Stage as Stage,
        UnknownSchemaVersionError as UnknownSchemaVersionError,
    )
    from crosswalk.structured.response import (
        Citation as Citation,
        StructuredResponse as StructuredResponse,
        StructuredResponseV1_1 as StructuredResponseV1_1,
        StructuredResponseV2 as StructuredResponseV2,
    )
    from crosswalk.structured.response_parser import (
        CURRENT_SCHEMA_VERSION as CURRENT_SCHEMA_VERSION,
        RESPONSE_SCHEMA_INSTRUCTIONS as RESPONSE_SCHEMA_INSTRUCTIONS,
        RESPONSE_VERSIONS as RESPONSE_VERSIONS,
        SUPPORTED_SCHEMA_VERSIONS as SUPPORTED_SCHEMA_VERSIONS,
        ResponseParser as ResponseParser,
        ResponseValidator as ResponseValidator,
    )
    from crosswalk.structured.result import (
        FallbackUsed as FallbackUsed,
        ParseResult as ParseResult,
        StructuredAnswerError as StructuredAnswerError,
        Violation as Violation,
    )
    from crosswalk.structured.schema import (
        Invariant as Invariant,
        Schema as Schema,
    )
    from crosswalk.structured.versions import (
        SchemaVersions as SchemaVersions,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.schemas.metadata": "SchemaDefinitionError",
            "crosswalk.schemas.values": "value_to_json",
            "crosswalk.structured.cache": "AnswerCache CacheStats MemoryCache answer_key",
            "crosswalk.structured.chain": "extract_json repair_json",
            "crosswalk.structured.default_cache": (
                "CacheEntry ResponseCache ResponseMetrics get_parse_stats reset_stats"
            ),
            "crosswalk.structured.metrics": "ParserMetrics",
            "crosswalk.structured.parser": "StructuredParser",
            "crosswalk.structured.reason": (
                "AnswerTypeError Choice MigrationError Partial Prose ReasonCode Stage "
                "UnknownSchemaVersionError"
            ),
            "crosswalk.structured.response": (
                "Citation StructuredResponse StructuredResponseV1_1 StructuredResponseV2"
            ),
            "crosswalk.structured.response_parser": (
                "CURRENT_SCHEMA_VERSION RESPONSE_SCHEMA_INSTRUCTIONS RESPONSE_VERSIONS ResponseParser "
                "ResponseValidator SUPPORTED_SCHEMA_VERSIONS"
            ),
            "crosswalk.structured.result": "FallbackUsed ParseResult StructuredAnswerError Violation",
            "crosswalk.structured.schema": "Invariant Schema",
            "crosswalk.structured.versions": "SchemaVersions",
        },
    )
