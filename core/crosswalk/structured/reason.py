"""The words for how an answer was read, and why it was not, and the errors of wrong declarations."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.schemas.metadata import SchemaDefinitionError as SchemaDefinitionError


class ReasonCode(StrEnum):
    """Why a parse ended as it did."""

    SUCCESS = "success"
    """Parse and validation succeeded."""
    INVALID_JSON = "invalid_json"
    """JSON syntax error. Only from functions that do not try to extract and repair."""
    SCHEMA_MISSING_FIELD = "schema_missing_field"
    """A required field is missing."""
    SCHEMA_TYPE_ERROR = "schema_type_error"
    """A field has the wrong type, or a word that is not allowed."""
    INVARIANT_VIOLATION = "invariant_violation"
    """An invariant does not hold, or the class refused its values."""
    EXTRACTION_FAILED = "extraction_failed"
    """There is no JSON object or array in the text."""
    REPAIR_FAILED = "repair_failed"
    """There is something like JSON, but its content is not certain: some value of it is not exactly one literal."""
    CLOSED_TOO_EARLY = "closed_too_early"
    """A bracket closes the object too early. The text after it belongs to the object, and would be lost."""
    PROSE = "prose"
    """Text surrounds the object, and the parser was set to refuse that."""
    DUPLICATE_KEY = "duplicate_key"
    """An object has a key twice: it is not known which one counts."""
    AMBIGUOUS = "ambiguous"
    """There are several different answers, and nothing in the text says which one counts."""
    SCHEMA_UNKNOWN_FIELD = "schema_unknown_field"
    """A field that the schema does not have. Only if the schema forbids such fields."""
    SCHEMA_UNKNOWN_VERSION = "schema_unknown_version"
    """The document names a schema version whose major number is not known."""
    MIGRATION_FAILED = "migration_failed"
    """The value is valid in its own version and cannot be converted to the requested one."""
    TRUNCATED = "truncated"
    """The answer is not whole: its finish reason shows it, its JSON or its reasoning is never closed, or ``...`` replaces
    a part of it."""
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
    """The JSON was in a fence, in prose or in a JSON string."""
    REPAIR = "repair"
    """The JSON was malformed, or was cut, and its structure has been mended. Its content is unchanged."""
    FAILURE = "failure"
    """No stage gave a valid value."""


class Choice(StrEnum):
    """The rule that chose the answer if a text holds several different ones."""

    FENCED = "fenced"
    """It is the one in a fenced block, and the others are in the text before."""
    LABELLED = "labelled"
    """It is the last one, and an answer tag around it or a heading above it names it. Nothing names the others."""


FALLBACK_LABELS: Final = {
    Stage.DIRECT: "direct_parse",
    Stage.EXTRACT: "extracted_json",
    Stage.REPAIR: "repaired_json",
    Stage.FAILURE: "parse_failed",
}
"""The words for the stages in ``fallback_used``. The last one is followed by ``: <reason>``."""


class Partial(StrEnum):
    """How to treat an answer that ends in the middle. A value from it is always marked partial."""

    REFUSE = "refuse"
    """It fails with its reason."""
    CLOSE = "close"
    """It is given if only closing brackets are missing: no text, number or word in it can have been cut, but
    objects and arrays may have been."""
    ACCEPT = "accept"
    """The part that was received is given, if it is valid. A number or word at the end may continue, so it is
    left out. A text at the end is given as far as it goes, and the result has its path."""


class Prose(StrEnum):
    """Whether text may surround the value."""

    ALLOW = "allow"
    """Any text may. It is not interpreted: read ``result.before`` and ``result.after``."""
    REFUSE = "refuse"
    """Only fences, answer tags and reasoning may."""


C = TypeVar("C", Partial, Prose)


def as_choice(kind: type[C], choice: Any) -> C:
    """Return *choice* as a member of *kind*: a member, or its word.

    Raises:
        ConfigurationError: it is neither.
    """
    try:
        return kind(choice)
    except ValueError:
        raise ConfigurationError(f"{kind.__name__.lower()}: pass one of {', '.join(kind)}") from None


class AnswerTypeError(CrosswalkError, TypeError):
    """The argument to be parsed is not an answer: neither a text nor a response."""


class UnknownSchemaVersionError(CrosswalkError, LookupError):
    """A schema version that is not registered.

    Attributes:
        version: the requested version.
        known: the registered versions.
    """

    def __init__(self, message: str, *, version: str, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.version = version
        self.known = tuple(known)


class MigrationError(CrosswalkError, ValueError):
    """A value cannot be converted to another schema version without losing something, or there is no conversion.

    Raise it in your own migration with what would be lost, in words that quote no value. The registry adds the
    versions.

    Attributes:
        source: the version that the value has, or ``""`` until the registry adds it.
        target: the requested version, or ``""`` until the registry adds it.
    """

    def __init__(self, message: str, *, source: str = "", target: str = "") -> None:
        super().__init__(message)
        self.source = source
        self.target = target
