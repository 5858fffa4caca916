"""JSON Schemas of a user, as dicts: with keywords that only the package jsonschema checks, it decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final

from crosswalk.schemas.check import FORMATS, UnsupportedKeywordError, compile_schema
from crosswalk.schemas.metadata import MOST, Check, SchemaDefinitionError
from crosswalk.schemas.pydantic_types import DECIDES


class SchemaRefusalError(ValueError):
    """An answer breaks a rule of a JSON Schema."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__("refused")
        self._errors = errors

    def errors(self, **_: Any) -> list[dict[str, Any]]:
        """The name and place of each rule, in the form of pydantic's errors."""
        return self._errors


def compile_dictionary(
    schema: dict[str, Any], **options: Any
) -> tuple[Check, Callable[[Any, Any], Any] | None]:
    """Return the check of *schema*, and the function that decides after it, or ``None`` if the check decides.

    Args:
        schema: the JSON Schema.
        options: those of :func:`compile_schema`.

    Raises:
        SchemaDefinitionError: it is not a schema, or has a keyword that nothing here checks.
    """
    try:
        return compile_schema(schema, **options), None
    except UnsupportedKeywordError:
        if find_spec("jsonschema") is None:
            raise
    keywords, decide = _decision(schema)
    return compile_schema({**schema, DECIDES: True}, further=keywords, **options), decide


_BESIDE: Final = frozenset(("then", "else", "minContains", "maxContains", "$vocabulary"))
"""Keywords that others read."""


def _decision(schema: dict[str, Any]) -> tuple[frozenset[str], Callable[[Any, Any], Any]]:
    """The keywords that jsonschema checks, and the function that returns what fits *schema* and refuses all else."""
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise SchemaDefinitionError(f"JSON Schema: {error.json_path} breaks {error.validator}") from None
    # An empty registry: no reference leads out of the schema.
    formats = FormatChecker(formats=())
    for name, (read, _) in FORMATS.items():
        formats.checks(name, raises=(ValueError, OverflowError))(partial(_is_read, read))
    validator = kind(schema, registry=Registry(), format_checker=formats)

    def decide(value: Any, _: Any) -> Any:
        errors = islice(validator.iter_errors(value), MOST)
        found = [{"type": str(error.validator), "loc": tuple(error.absolute_path)} for error in errors]
        if found:
            raise SchemaRefusalError(found)
        return value

    return frozenset(kind.VALIDATORS) | _BESIDE, decide


def _is_read(read: Callable[[str], Any], value: object) -> bool:
    return not isinstance(value, str) or read(value) is not None
