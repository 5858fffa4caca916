"""Results of a parser as a cache stores them: the document that was read, and how it went."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from crosswalk.structured.cache import CachedAnswer, answer_key
from crosswalk.structured.chain import Read
from crosswalk.structured.decode import is_too_deep
from crosswalk.structured.reason import ReasonCode
from crosswalk.structured.result import Candidate, ParseResult
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
            stage=result.stage,
            reason=result.reason,
            violations=result.violations,
            partial=result.partial,
            schema_version=result.schema_version,
            choice=result.choice,
            candidates=tuple(map(self._document_of, result.candidates)),
            cut=result.cut,
        )

    def _document_of(self, value: T | None) -> Any:
        return next((document for made, document in self._documents if made is value), None)

    def load(self, answer: CachedAnswer) -> ParseResult[T] | None:
        """The result that was stored; ``None`` where it is none of this parser's."""
        if any(map(is_too_deep, (answer.document, *answer.candidates))):
            return None
        version, reason = answer.schema_version, answer.reason
        if answer.partial is not (not answer.is_negative and reason is not ReasonCode.SUCCESS):
            return None
        if not answer.is_negative:
            value, _, version = self._read(answer.document)
            if value is None:
                return None
            return ParseResult(
                value, answer.stage, reason, (), answer.partial, version, answer.choice, (), answer.cut
            )
        if answer.document is not None or reason is ReasonCode.SUCCESS:
            return None
        read = [self._read(document)[0] for document in answer.candidates]
        values = tuple(value for value in read if value is not None)
        if len(values) < len(read):
            return None
        return ParseResult(None, answer.stage, reason, answer.violations, False, version, None, values)
