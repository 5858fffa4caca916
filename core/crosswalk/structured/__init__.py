"""Validated values out of what a model wrote, or the reason why not (seed 002; design, section 7)."""

from crosswalk.structured.cache import AnswerCache, CachedAnswer, CacheStats, answer_key
from crosswalk.structured.cache_memory import MemoryCache
from crosswalk.structured.cache_stored import StoreError
from crosswalk.structured.chain import extract_json, repair_json
from crosswalk.structured.errors import (
    AnswerTypeError,
    MigrationError,
    SchemaDefinitionError,
    UnknownSchemaVersionError,
)
from crosswalk.structured.metrics import MetricsError, MetricsSnapshot, ParseRecord, ParserMetrics
from crosswalk.structured.parser import StructuredParser
from crosswalk.structured.percentiles import LatencySummary
from crosswalk.structured.plain import value_to_json
from crosswalk.structured.reason import Choice, Partial, ReasonCode, Stage
from crosswalk.structured.response import (
    Citation,
    StructuredResponse,
    StructuredResponseV1_1,
    StructuredResponseV2,
)
from crosswalk.structured.response_parser import (
    RESPONSE_SCHEMA_INSTRUCTIONS,
    ResponseParser,
    ResponseValidator,
)
from crosswalk.structured.response_versions import (
    CURRENT_SCHEMA_VERSION,
    RESPONSE_VERSIONS,
    SUPPORTED_SCHEMA_VERSIONS,
)
from crosswalk.structured.result import FallbackUsed, ParseResult, StructuredAnswerError, Violation
from crosswalk.structured.schema import Invariant, Schema
from crosswalk.structured.shared import (
    CacheEntry,
    ResponseCache,
    ResponseMetrics,
    get_parse_stats,
    reset_stats,
)
from crosswalk.structured.versions import SchemaVersions

__all__ = [
    "CURRENT_SCHEMA_VERSION",
    "RESPONSE_SCHEMA_INSTRUCTIONS",
    "RESPONSE_VERSIONS",
    "SUPPORTED_SCHEMA_VERSIONS",
    "AnswerCache",
    "AnswerTypeError",
    "CacheEntry",
    "CacheStats",
    "CachedAnswer",
    "Choice",
    "Citation",
    "FallbackUsed",
    "Invariant",
    "LatencySummary",
    "MemoryCache",
    "MetricsError",
    "MetricsSnapshot",
    "MigrationError",
    "ParseRecord",
    "ParseResult",
    "ParserMetrics",
    "Partial",
    "ReasonCode",
    "ResponseCache",
    "ResponseMetrics",
    "ResponseParser",
    "ResponseValidator",
    "Schema",
    "SchemaDefinitionError",
    "SchemaVersions",
    "Stage",
    "StoreError",
    "StructuredAnswerError",
    "StructuredParser",
    "StructuredResponse",
    "StructuredResponseV1_1",
    "StructuredResponseV2",
    "UnknownSchemaVersionError",
    "Violation",
    "answer_key",
    "extract_json",
    "get_parse_stats",
    "repair_json",
    "reset_stats",
    "value_to_json",
]
