"""The words for how an answer was read, and why it was not (seed 002, "Reason Codes")."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from crosswalk.errors import ConfigurationError

__all__ = ["FALLBACK_LABELS", "Partial", "ReasonCode", "Stage", "as_partial"]


class ReasonCode(StrEnum):
    """Why a parse ended as it did; the first seven are the seed's."""

    SUCCESS = "success"
    """Parse and validation succeeded."""
    INVALID_JSON = "invalid_json"
    """JSON syntax error; only from functions that do not go on to extract and repair."""
    SCHEMA_MISSING_FIELD = "schema_missing_field"
    """A required field is missing."""
    SCHEMA_TYPE_ERROR = "schema_type_error"
    """A field has the wrong type, or a word that is none of the allowed."""
    INVARIANT_VIOLATION = "invariant_violation"
    """An invariant does not hold, or the class refused its values."""
    EXTRACTION_FAILED = "extraction_failed"
    """There is no JSON object or array in the text."""
    REPAIR_FAILED = "repair_failed"
    """There is something like JSON, and it could not be repaired."""
    SCHEMA_UNKNOWN_FIELD = "schema_unknown_field"
    """A field that the schema does not have; only where the schema forbids such."""
    SCHEMA_UNKNOWN_VERSION = "schema_unknown_version"
    """The document names a schema version whose major number is not known."""
    MIGRATION_FAILED = "migration_failed"
    """The value is valid in its own version and cannot go to the one that was asked for."""
    TRUNCATED = "truncated"
    """The answer ends in the middle: its finish reason says so, or its JSON is never closed."""
    CANCELLED = "cancelled"
    """The generation was cancelled."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped the answer."""
    REFUSAL = "refusal"
    """The model declined, and wrote nothing else."""
    ANSWER_ERROR = "answer_error"
    """The answer is an error response."""
    LIMIT_EXCEEDED = "limit_exceeded"
    """Nested too deeply, or more work to repair than the text is worth."""


class Stage(StrEnum):
    """The stage of the chain that gave the result."""

    DIRECT = "direct"
    """The whole text was the JSON."""
    EXTRACT = "extract"
    """The JSON stood in a fence, in prose or in a JSON string."""
    REPAIR = "repair"
    """The JSON was malformed and has been repaired, or was cut and has been closed."""
    FAILURE = "failure"
    """No stage gave a valid value."""


FALLBACK_LABELS: Final = {
    Stage.DIRECT: "direct_parse",
    Stage.EXTRACT: "extracted_json",
    Stage.REPAIR: "repaired_json",
    Stage.FAILURE: "parse_failed",
}
"""The seed's words for the stages; after the last one stands ``: <reason>``."""


class Partial(StrEnum):
    """What to do with an answer that ends in the middle. What is given is always marked partial."""

    REFUSE = "refuse"
    """It fails with its reason."""
    CLOSE = "close"
    """It is given where only closing brackets are missing: no text, number or word in it can have been cut, but
    objects and arrays may have been."""
    ACCEPT = "accept"
    """What is there is given, a text perhaps cut in the middle, where it is valid."""


def as_partial(choice: Any) -> Partial:
    """*choice* as a :class:`Partial`: one of them, or its word.

    Raises:
        ConfigurationError: it is neither.
    """
    try:
        return Partial(choice)
    except ValueError:
        raise ConfigurationError(f"partial: one of {', '.join(Partial)}") from None
