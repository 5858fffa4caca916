"""Bytes to deltas to a response, and the building blocks that plugins are made of (design, section 5)."""

from crosswalk.mapping.detect import candidates, detect
from crosswalk.mapping.dialects import Dialect, DialectFamily, event_type
from crosswalk.mapping.failures import classify, error_delta, error_info
from crosswalk.mapping.leaves import (
    get_array,
    get_boolean,
    get_count,
    get_integer,
    get_number,
    get_object,
    get_string,
    require_object,
)
from crosswalk.mapping.logprobs import CONSUMED_TOKENS, legacy_logprobs, token_logprobs
from crosswalk.mapping.normalize import (
    DeltaStream,
    anormalize_stream,
    normalize,
    normalize_stream,
)
from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.mapping.residue import KEY, TAKEN, residue, taken_if

__all__ = [
    "CONSUMED_TOKENS",
    "KEY",
    "TAKEN",
    "DeltaStream",
    "Dialect",
    "DialectFamily",
    "OpenAIChatDialect",
    "Reader",
    "ReaderOptions",
    "anormalize_stream",
    "candidates",
    "classify",
    "detect",
    "error_delta",
    "error_info",
    "event_type",
    "get_array",
    "get_boolean",
    "get_count",
    "get_integer",
    "get_number",
    "get_object",
    "get_string",
    "legacy_logprobs",
    "normalize",
    "normalize_stream",
    "require_object",
    "residue",
    "taken_if",
    "token_logprobs",
]
