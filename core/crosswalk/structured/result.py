"""The result of a parse: a value and its stage, or the reason why it failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.schemas.metadata import SchemaDefinitionError as SchemaDefinitionError
from crosswalk.text import brief, summary
from crosswalk.types.json import step
from crosswalk.words import suggests_names

# ---------------------------------------------------------------------------------- reason
# The words for how an answer was read, and why it was not, and the errors of wrong declarations.


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
    """A value cannot be converted to another schema version without losing something, or it has no conversion.

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


# ---------------------------------------------------------------------------------- result
# The result of a parse: a value or a reason, and the stage that gave it.


T = TypeVar("T")


@attrs.frozen
class Violation:
    """One violation in a document.

    Attributes:
        message: what is wrong: in words of the schema, with no value of the document.
        path: its JSON path, such as ``$.items_shown``, or ``$`` for the document as a whole.
        code: the reason it counts as.
    """

    message: str
    path: str = "$"
    code: ReasonCode = ReasonCode.SCHEMA_TYPE_ERROR

    def __str__(self) -> str:
        if self.code is ReasonCode.INVARIANT_VIOLATION and self.path == "$":
            return self.message  # an invariant names its fields itself
        return f"{self.message} @ {self.path}"


class Candidate(NamedTuple, Generic[T]):
    """The result of reading decoded JSON.

    Attributes:
        value: the value, or ``None``.
        violations: what is wrong with it.
        version: the schema version that the document names, or ``None`` for a schema without versions.
        unknown: the paths of keys that the schema does not have.
        renamed: the paths of keys that were read as another one, with that one.
        defaulted: for each object with given keys, by its ``id``, whether an optional one is not there.
        opened: the paths of strings that were read as JSON.
    """

    value: T | None
    violations: tuple[Violation, ...] = ()
    version: str | None = None
    unknown: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    defaulted: Mapping[int, bool] = MappingProxyType({})
    opened: tuple[str, ...] = ()


class FallbackUsed(str):
    """The word for the stage: ``direct_parse``, ``extracted_json``, ``repaired_json`` or
    ``parse_failed: <reason>``. It is an ordinary text with further attributes.

    Attributes:
        stage: the stage that gave the result.
        reason: why it ended so.
        partial: whether the value comes from an answer that ends in the middle.
    """

    __slots__ = ("partial", "reason", "stage")

    stage: Stage
    reason: ReasonCode
    partial: bool

    def __new__(cls, stage: Stage, reason: ReasonCode, partial: bool = False) -> FallbackUsed:
        """Make the word for *stage*."""
        label = FALLBACK_LABELS[stage]
        self = super().__new__(cls, f"{label}: {reason.value}" if stage is Stage.FAILURE else label)
        self.stage, self.reason, self.partial = stage, reason, partial
        return self

    def __repr__(self) -> str:
        return f"<{self!s}, partial>" if self.partial else super().__repr__()

    def __reduce__(self) -> tuple[object, ...]:
        return FallbackUsed, (self.stage, self.reason, self.partial)


class FinalPaths(Set[str]):
    """The paths of the values in an answer that are final. They are found when somebody asks.

    Args:
        fields: the answer so far.
        open_path: leads to the last value, which is not final, nor are those around it. ``None`` if all are.
    """

    def __init__(self, fields: Any, open_path: tuple[str | int, ...] | None) -> None:
        self._fields = fields
        self._open_path = open_path

    @classmethod
    def _from_iterable(cls, paths: Iterable[str]) -> frozenset[str]:  # type: ignore[override]
        return frozenset(paths)

    def __iter__(self) -> Iterator[str]:
        """Each path, from the beginning of the answer on."""
        yield from _paths(self._fields, "$", self._open_path or ())

    def __contains__(self, path: object) -> bool:
        """Whether the value at *path* is there and final."""
        value, current_path, open_path, is_open = self._fields, "$", self._open_path or (), True
        while current_path != path:
            key = _next_key(value, current_path, path) if isinstance(path, str) else None
            if key is None:
                return False
            is_open = open_path[:1] == (key,)
            open_path = open_path[1:] if is_open else ()
            value, current_path = value[key], current_path + step(key)
        return not is_open

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"FinalPaths({', '.join(self)})"


def _paths(value: Any, path: str, open_path: tuple[str | int, ...]) -> Iterator[str]:
    items = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for key, item in items:
        is_open, item_path = open_path[:1] == (key,), path + step(key)
        if not is_open:
            yield item_path
        yield from _paths(item, item_path, open_path[1:] if is_open else ())


def _next_key(value: Any, value_path: str, path: str) -> str | int | None:
    """The key or index in *value*, which is *value_path* a place, that leads on to *path*, or ``None``."""
    if type(value) is list:
        index_match = _INDEX.match(path, len(value_path))
        return int(index_match[1]) if index_match and int(index_match[1]) < len(value) else None
    for key in value if type(value) is dict else ():
        item_path = value_path + step(key)
        if path == item_path or path.startswith((f"{item_path}.", f"{item_path}[")):
            return str(key)
    return None


_INDEX: Final = re.compile(r"\[([0-9]{1,9})\]")


@suggests_names
@brief
@attrs.frozen(repr=False, slots=False)  # with slots it would take twice the time to make
class ParseResult(Generic[T]):
    """A valid value, or the reason why the parse failed.

    Attributes:
        value: satisfies schema and invariants, or ``None`` if no stage gave one.
        stage: the stage that gave the value, or ``failure`` if none did.
        reason: ``success``, or why the parse failed. With a partial value, why it is partial.
        violations: what is wrong with the best candidate. Empty with a value, or if there was no candidate.
        partial: the answer ends in the middle: the value is valid, but not all that the model meant to write.
        schema_version: the version that the document names, or has by default, even if it is invalid. ``None``
            if nothing was JSON, and for a schema without versions.
        choice: the rule that chose the value among several different ones, or ``None`` if there was only one.
        candidates: the different values in an ``ambiguous`` text, in their order, else empty.
        cut: the path of the text in a partial value that may continue, such as ``$.note``, or ``None`` if none may.
        before: the text before the value, without reasoning, fences and tags.
        fields: in a stream, the fields of the answer so far under the schema's keys, as plain JSON and unchecked: a dict, or
            a list if the answer is one. ``None`` if it has not begun, or is not from a stream. There are no defaults among
            them. Numbers with a fraction are ``Decimal`` if the schema has one. Steps share their final items.
        final: the path of each value in ``fields`` that is complete, such as ``$.items[3]``.
        unknown: the paths of keys that the schema does not have, such as ``$.notes``. They were ignored.
        renamed: the paths of keys that differ from a missing one by case, separators or accents, each with the key
            that it was read as.
        after: the text after the value, likewise. It may retract the value: the parser does not interpret it.
        opened: the paths of strings that were read as JSON, because the schema admits no string there and each holds
            exactly one object or array.
    """

    value: T | None
    stage: Stage
    reason: ReasonCode
    violations: tuple[Violation, ...] = ()
    partial: bool = False
    schema_version: str | None = None
    choice: Choice | None = None
    candidates: tuple[T, ...] = ()
    cut: str | None = None
    before: str = ""
    after: str = ""
    unknown: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    fields: Any = None
    final: Set[str] = frozenset()
    opened: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the value is there and whole."""
        return self.value is not None and not self.partial

    def __bool__(self) -> bool:
        """As :attr:`ok`."""
        return self.ok

    @property
    def errors(self) -> list[str]:
        """The violations as sentences, ``problem @ $.path``."""
        return [str(violation) for violation in self.violations]

    @property
    def fallback_used(self) -> FallbackUsed:
        """The word for how it went."""
        return FallbackUsed(self.stage, self.reason, self.partial)

    def unwrap(self) -> T:
        """The value.

        Raises:
            StructuredAnswerError: the answer has no valid value.
        """
        if self.value is None:
            explanation = "; ".join(self.errors[:3]) or _REASON_TEXTS.get(self.reason)
            raise StructuredAnswerError(
                f"{self.reason.value}: {explanation}" if explanation else self.reason.value, result=self
            )
        return self.value

    @property
    def can_retry(self) -> bool:
        """Whether the model may do better when it is shown the violations."""
        return self.value is None and self.reason not in _NOT_THE_MODELS_FAULT

    def feedback(self) -> str:
        """Return the text to send back to the model, so that it answers again. It quotes no value of the answer."""
        reason_text = _REASON_TEXTS.get(self.reason, "the JSON object is not valid")
        problems = "".join(f"\n- {error}" for error in self.errors[:10])
        reason_sentence = f"{reason_text[0].upper()}{reason_text[1:]}."
        return f"{reason_sentence}{problems}\nAnswer again with the whole corrected JSON and nothing else."

    def __repr__(self) -> str:
        names = (field.name for field in attrs.fields(ParseResult))
        shown_fields = {name: getattr(self, name) for name in names if name not in _HIDDEN_FIELDS}
        shown_fields |= {"partial": self.partial or None, "errors": tuple(self.errors), "value": self.value}
        return summary("ParseResult", shown_fields.items())


class StructuredAnswerError(CrosswalkError, ValueError):
    """An answer holds no valid value. Raised by :meth:`ParseResult.unwrap`, never by parsing.

    Attributes:
        result: the failed result, with its reason and its violations.
    """

    def __init__(self, message: str, *, result: ParseResult[Any]) -> None:
        super().__init__(message)
        self.result = result

    @property
    def errors(self) -> list[str]:
        """The violations of the result as sentences."""
        return self.result.errors


_HIDDEN_FIELDS: Final = ("value", "violations", "fields", "final")  # or as another text
_NOT_THE_MODELS_FAULT: Final = (
    ReasonCode.CANCELLED, ReasonCode.CONTENT_FILTER, ReasonCode.REFUSAL, ReasonCode.ANSWER_ERROR, ReasonCode.SUCCESS,
)  # fmt: skip
_REASON_TEXTS: Final = {
    ReasonCode.EXTRACTION_FAILED: "the answer contains no JSON",
    ReasonCode.AMBIGUOUS: "the answer holds several JSON objects, or text with a key of the object",
    ReasonCode.TRUNCATED: "the JSON in the answer is not complete, or something in it is left out",
    ReasonCode.PROSE: "the answer holds text or comments besides the JSON",
    ReasonCode.CLOSED_TOO_EARLY: "a bracket closes the JSON object too early",
    ReasonCode.CANCELLED: "the answer was cancelled",
    ReasonCode.CONTENT_FILTER: "moderation stopped the answer",
    ReasonCode.REFUSAL: "the model declined to answer",
}
_new: Final = object.__new__
_set: Final = object.__setattr__
_DIRECT_FIELDS: Final = vars(ParseResult(None, Stage.DIRECT, ReasonCode.SUCCESS))


def direct_success(candidate: Candidate[T]) -> ParseResult[T]:
    """Return the result for nearly every answer, in a quarter of the time that the constructor takes."""
    result = _new(ParseResult)
    fields = _DIRECT_FIELDS.copy()
    (
        fields["value"],
        _,
        fields["schema_version"],
        fields["unknown"],
        fields["renamed"],
        _,
        fields["opened"],
    ) = candidate
    _set(result, "__dict__", fields)
    return result
