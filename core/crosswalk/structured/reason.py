"""The words for how an answer was read, and why it was not."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from crosswalk.errors import ConfigurationError

__all__ = ["Choice", "Partial", "Prose", "ReasonCode", "Stage"]


class ReasonCode(StrEnum):
    """Why a parse ended as it did."""

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
    """There is something like JSON, and what it says is not certain: some value of it is not exactly one literal."""
    CLOSED_TOO_EARLY = "closed_too_early"
    """A bracket closes the object too early: what follows belongs to it, and would be lost."""
    PROSE = "prose"
    """Text stands around the object, and the parser was told to refuse that."""
    DUPLICATE_KEY = "duplicate_key"
    """An object has a key twice: nobody can tell which one counts."""
    AMBIGUOUS = "ambiguous"
    """There are several different answers, and nothing in the text says which one counts."""
    SCHEMA_UNKNOWN_FIELD = "schema_unknown_field"
    """A field that the schema does not have; only where the schema forbids such."""
    SCHEMA_UNKNOWN_VERSION = "schema_unknown_version"
    """The document names a schema version whose major number is not known."""
    MIGRATION_FAILED = "migration_failed"
    """The value is valid in its own version and cannot go to the one that was asked for."""
    TRUNCATED = "truncated"
    """The answer is not whole: its finish reason says so, its JSON or its reasoning is never closed, or ``...`` stands
    for a part of it."""
    CANCELLED = "cancelled"
    """The generation was cancelled."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped the answer."""
    REFUSAL = "refusal"
    """The model declined, and wrote nothing else."""
    ANSWER_ERROR = "answer_error"
    """The answer is an error response."""
    LIMIT_EXCEEDED = "limit_exceeded"
    """Nested too deeply, or an integer of too many digits."""


class Stage(StrEnum):
    """The stage of the chain that gave the result."""

    DIRECT = "direct"
    """The whole text was the JSON."""
    EXTRACT = "extract"
    """The JSON stood in a fence, in prose or in a JSON string."""
    REPAIR = "repair"
    """The JSON was malformed, or was cut, and its structure has been mended; what it says is as it stood."""
    FAILURE = "failure"
    """No stage gave a valid value."""


class Choice(StrEnum):
    """Which rule chose the answer where a text holds several different ones."""

    FENCED = "fenced"
    """It is the one in a fenced block, and the others stand in the text before."""
    LABELLED = "labelled"
    """It is the last one, and an answer tag around it or a heading above it names it; nothing names the others."""


FALLBACK_LABELS: Final = {
    Stage.DIRECT: "direct_parse",
    Stage.EXTRACT: "extracted_json",
    Stage.REPAIR: "repaired_json",
    Stage.FAILURE: "parse_failed",
}
"""The words for the stages in ``fallback_used``; after the last one stands ``: <reason>``."""


class Partial(StrEnum):
    """What to do with an answer that ends in the middle. What is given is always marked partial."""

    REFUSE = "refuse"
    """It fails with its reason."""
    CLOSE = "close"
    """It is given where only closing brackets are missing: no text, number or word in it can have been cut, but
    objects and arrays may have been."""
    ACCEPT = "accept"
    """What is known is given, where it is valid. Of a number or word at the end nobody knows whether it goes on: it is
    left out. A text at the end is given as far as it goes, and the result says where it stands."""


class Prose(StrEnum):
    """Whether text may stand around the value."""

    ALLOW = "allow"
    """Any text may. It is not understood: read ``result.before`` and ``result.after``."""
    REFUSE = "refuse"
    """Only fences, answer tags and reasoning may."""


def as_prose(choice: Any) -> Prose:
    """*choice* as a :class:`Prose`: one of them, or its word.

    Raises:
        ConfigurationError: it is neither.
    """
    try:
        return Prose(choice)
    except ValueError:
        raise ConfigurationError(f"prose: pass one of {', '.join(Prose)}") from None


def as_partial(choice: Any) -> Partial:
    """*choice* as a :class:`Partial`: one of them, or its word.

    Raises:
        ConfigurationError: it is neither.
    """
    try:
        return Partial(choice)
    except ValueError:
        raise ConfigurationError(f"partial: one of {', '.join(Partial)}") from None
