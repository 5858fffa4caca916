"""Results of a parser as a cache stores them: the document that was read, and how it went."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from crosswalk.structured.cache import CachedAnswer, CachedViolation, answer_key
from crosswalk.structured.chain import Read
from crosswalk.structured.decode import is_too_deep
from crosswalk.structured.reason import Choice, ReasonCode, Stage
from crosswalk.structured.result import Candidate, ParseResult, Violation
from crosswalk.structured.schema import Schema
from crosswalk.structured.versions import SchemaVersions
from crosswalk.types.json import dump_json

__all__ = ["Memory", "fingerprint"]

T = TypeVar("T")


def fingerprint(schema: Schema[Any] | SchemaVersions[Any], version: str | None) -> str:
    """What a result depends on beside the text: another schema, rule or target gives another fingerprint.

    The code of invariants and of migrations is not looked at, only what they say and where they lead.
    """
    parts: list[str | None] = [version]
    versions: dict[str, Schema[Any]] = {"": schema} if isinstance(schema, Schema) else schema.schemas
    if isinstance(schema, SchemaVersions):
        parts += [schema.key, schema.default]
    for name, each in versions.items():
        rules = [rule.message for rule in each.invariants]
        said = dump_json([name, f"{each.cls.__module__}.{each.cls.__qualname__}", each.json_schema(), rules])
        parts.append(said.decode())
    return answer_key(*parts)


class Memory(Generic[T]):
    """One parse: remembers the document that gave the value, and makes the value of a stored document.

    Args:
        read: makes a candidate of decoded JSON.
    """

    def __init__(self, read: Read[T]) -> None:
        self._read = read
        self._documents: list[tuple[T, Any]] = []

    def read(self, data: Any) -> Candidate[T]:
        """As the parser reads, and keeps *data* where it gives a value."""
        candidate = self._read(data)
        if candidate[0] is not None:
            self._documents.append((candidate[0], data))
        return candidate

    def dump(self, result: ParseResult[T]) -> CachedAnswer:
        """What is stored of *result*."""
        return CachedAnswer(
            document=self._document_of(result.value),
            stage=result.stage.value,
            reason=result.reason.value,
            violations=tuple(CachedViolation(v.message, v.path, v.code.value) for v in result.violations),
            partial=result.partial,
            schema_version=result.schema_version,
            choice=None if result.choice is None else result.choice.value,
            candidates=tuple(map(self._document_of, result.candidates)),
            cut=result.cut,
        )

    def _document_of(self, value: T | None) -> Any:
        return next((document for made, document in self._documents if made is value), None)

    def load(self, answer: CachedAnswer) -> ParseResult[T] | None:
        """The result that was stored; ``None`` where it is none of this parser's."""
        try:
            stage, reason = Stage(answer.stage), ReasonCode(answer.reason)
            choice = None if answer.choice is None else Choice(answer.choice)
            violations = tuple(Violation(v.message, v.path, ReasonCode(v.code)) for v in answer.violations)
        except ValueError:
            return None
        if any(map(is_too_deep, (answer.document, *answer.candidates))):
            return None
        is_failure = stage is Stage.FAILURE
        if answer.partial is not (not is_failure and reason is not ReasonCode.SUCCESS):
            return None
        if is_failure:
            candidates = tuple(self._read(document)[0] for document in answer.candidates)
            is_ours = answer.document is None and None not in candidates and reason is not ReasonCode.SUCCESS
            values = tuple(value for value in candidates if value is not None)
            failed = ParseResult[T](
                None, stage, reason, violations, False, answer.schema_version, None, values
            )
            return failed if is_ours else None
        value, _, version = self._read(answer.document)
        if value is None:
            return None
        return ParseResult(value, stage, reason, (), answer.partial, version, choice, (), answer.cut)
