"""Errors around structured answers. Wrong output of a model is not an error but a result with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from crosswalk.errors import CrosswalkError
from crosswalk.schemas.errors import SchemaDefinitionError

__all__ = [
    "AnswerTypeError",
    "MigrationError",
    "SchemaDefinitionError",
    "UnknownSchemaVersionError",
]


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
