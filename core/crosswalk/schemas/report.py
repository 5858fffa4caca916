"""What is wrong with a value, and what was ignored of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.errors import CrosswalkError


class SchemaDefinitionError(CrosswalkError, TypeError):
    """A type cannot be the schema of an answer, or a registry of versions contradicts itself."""


MOST: Final = 50
"""The greatest number of violations, unknown keys and renamed keys in a report."""


class Fault(StrEnum):
    """The kind of a violation. The words are those of ``Fault`` in structured answers."""

    TYPE = "schema_type_error"
    MISSING = "schema_missing_field"
    UNKNOWN = "schema_unknown_field"
    DUPLICATE = "duplicate_key"
    RULE = "invariant_violation"


@attrs.frozen
class Finding:
    """One violation of a value.

    Attributes:
        message: what is wrong, with no value of the document.
        path: where, as a JSON path.
        fault: the kind of the violation.
        is_of_constant: whether one of several words was expected.
    """

    message: str
    path: str
    fault: Fault
    is_of_constant: bool = False


class ExactFloat(float):
    """A number with the digits that the text has.

    Attributes:
        text: the digits.
    """

    text: str

    def __new__(cls, text: str) -> ExactFloat:
        """The number that *text* represents."""
        self = super().__new__(cls, text)
        self.text = text
        return self


@attrs.define
class Report:
    """The result of a check.

    Attributes:
        violations: what is wrong.
        unknown: the paths of keys that the schema does not have.
        renamed: the paths of keys that were read as another, with that one.
        defaulted: for each object with given keys, by its ``id``, whether an optional one is not there.
    """

    violations: list[Finding] = attrs.field(factory=list)
    unknown: list[str] = attrs.field(factory=list)
    renamed: list[tuple[str, str]] = attrs.field(factory=list)
    defaulted: dict[int, bool] = attrs.field(factory=dict)
    _seen: dict[tuple[int, int], tuple[Any, Report, Any]] = attrs.field(factory=dict, repr=False)

    def add(self, message: str, path: str, fault: Fault = Fault.TYPE) -> None:
        """Note a violation."""
        self.violations.append(Finding(message, path, fault))

    def take(self, other: Report) -> None:
        """Add all entries of *other*."""
        self.defaulted |= other.defaulted
        for mine, theirs in (
            (self.violations, other.violations),
            (self.unknown, other.unknown),
            (self.renamed, other.renamed),
        ):
            mine += theirs[: max(MOST - len(mine), 0)]  # type: ignore[operator]

    def distance(self) -> tuple[int, ...]:
        """The distance of the value from the schema: constants first, then missing keys, then unread keys."""
        missing = [each for each in self.violations if each.fault is Fault.MISSING]
        constants = [each for each in self.violations if each.is_of_constant]
        return len(constants), len(missing), self.misfits(), len(self.unknown), len(self.renamed)

    def misfits(self) -> int:
        """The number of violations of the schema. A key that is there twice is a fault of the document alone."""
        return sum(each.fault is not Fault.DUPLICATE for each in self.violations)

    def apart(self) -> Report:
        """Return an empty report for a part that may not count. It shares the cached attempts."""
        return Report(seen=self._seen)


Check: TypeAlias = Callable[[Any, str, Report], Any]
"""Takes a value, its path and a report, and returns the value with its keys renamed."""
