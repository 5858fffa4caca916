"""Errors of types that cannot be a schema."""

from __future__ import annotations

from crosswalk.errors import CrosswalkError

__all__ = ["SchemaDefinitionError"]


class SchemaDefinitionError(CrosswalkError, TypeError):
    """A type cannot be the schema of an answer, or a registry of versions contradicts itself."""
