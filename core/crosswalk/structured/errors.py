"""What goes wrong around structured answers; what a model wrote wrong is no error but a result with its reason."""

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
    """What was given to be parsed is no answer: neither a text nor a response."""


class UnknownSchemaVersionError(CrosswalkError, LookupError):
    """A schema version that is not registered.

    Attributes:
        version: the version as it was given.
        known: the registered versions.
    """

    def __init__(self, message: str, *, version: str, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.version = version
        self.known = tuple(known)


class MigrationError(CrosswalkError, ValueError):
    """A value cannot go to another schema version without losing something, or there is no way there.

    A migration of your own raises it with what would be lost, in words that quote no value; the registry adds the
    versions.

    Attributes:
        source: the version that the value has; ``""`` until the registry adds it.
        target: the version that was asked for; ``""`` until the registry adds it.
    """

    def __init__(self, message: str, *, source: str = "", target: str = "") -> None:
        super().__init__(message)
        self.source = source
        self.target = target
