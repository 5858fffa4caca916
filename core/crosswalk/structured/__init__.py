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
    from crosswalk.structured.chain import (
        extract_json as extract_json,
        repair_json as repair_json,
    )
    from crosswalk.structured.metrics import (
        AnswerCache as AnswerCache,
        CacheStats as CacheStats,
        MemoryCache as MemoryCache,
        ParserMetrics as ParserMetrics,
        answer_key as answer_key,
    )
    from crosswalk.structured.parser import (
        StructuredParser as StructuredParser,
        parse as parse,
    )
    from crosswalk.structured.response import (
        CURRENT_SCHEMA_VERSION as CURRENT_SCHEMA_VERSION,
        RESPONSE_SCHEMA_INSTRUCTIONS as RESPONSE_SCHEMA_INSTRUCTIONS,
        RESPONSE_VERSIONS as RESPONSE_VERSIONS,
        SUPPORTED_SCHEMA_VERSIONS as SUPPORTED_SCHEMA_VERSIONS,
        CacheEntry as CacheEntry,
        Citation as Citation,
        ResponseCache as ResponseCache,
        ResponseMetrics as ResponseMetrics,
        ResponseParser as ResponseParser,
        ResponseValidator as ResponseValidator,
        StructuredResponse as StructuredResponse,
        StructuredResponseV1_1 as StructuredResponseV1_1,
        StructuredResponseV2 as StructuredResponseV2,
        get_parse_stats as get_parse_stats,
        reset_stats as reset_stats,
    )
    from crosswalk.structured.result import (
        AnswerTypeError as AnswerTypeError,
        Choice as Choice,
        FallbackUsed as FallbackUsed,
        MigrationError as MigrationError,
        ParseResult as ParseResult,
        Partial as Partial,
        Prose as Prose,
        ReasonCode as ReasonCode,
        Stage as Stage,
        StructuredAnswerError as StructuredAnswerError,
        UnknownSchemaVersionError as UnknownSchemaVersionError,
        Violation as Violation,
    )
    from crosswalk.structured.schema import (
        Invariant as Invariant,
        Schema as Schema,
        SchemaVersions as SchemaVersions,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.schemas.metadata": "SchemaDefinitionError",
            "crosswalk.schemas.values": "value_to_json",
            "crosswalk.structured.chain": "extract_json repair_json",
            "crosswalk.structured.metrics": ("AnswerCache CacheStats MemoryCache ParserMetrics answer_key"),
            "crosswalk.structured.parser": "StructuredParser parse",
            "crosswalk.structured.response": (
                "CURRENT_SCHEMA_VERSION CacheEntry Citation RESPONSE_SCHEMA_INSTRUCTIONS RESPONSE_VERSIONS "
                "ResponseCache ResponseMetrics ResponseParser ResponseValidator SUPPORTED_SCHEMA_VERSIONS "
                "StructuredResponse StructuredResponseV1_1 StructuredResponseV2 get_parse_stats reset_stats"
            ),
            "crosswalk.structured.result": (
                "AnswerTypeError Choice FallbackUsed MigrationError ParseResult Partial Prose ReasonCode "
                "Stage StructuredAnswerError UnknownSchemaVersionError Violation"
            ),
            "crosswalk.structured.schema": "Invariant Schema SchemaVersions",
        },
    )
