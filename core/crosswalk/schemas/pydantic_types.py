"""Types that pydantic validates: their JSON Schemas and their values. Pydantic is only imported for such a type."""

from __future__ import annotations

import functools
import typing
from decimal import Decimal
from typing import Any, Final

from crosswalk.schemas.metadata import (
    GROWTH,
    ExactFloat,
    SchemaDefinitionError,
    UncheckedLimitError,
    read_metadata,
)
from crosswalk.types.json import dump_json

DECIDES: Final = "x-pydantic"
"""The key of a schema of pydantic. Its violations only explain a refusal: pydantic decides."""
KEYS: Final = "x-pydantic-keys"
"""The key for all keys that pydantic reads of an object, each with that of its field, if it holds no more than it.

``None`` if a validator takes the object as it is.
"""


class ExactDecimal(ExactFloat):
    """A number that pydantic reads as a ``Decimal``."""


def is_pydantic(kind: Any) -> bool:
    """Whether pydantic validates *kind*: a class of pydantic, or an ``Annotated`` with rules that only pydantic checks."""
    if typing.get_origin(kind) is not typing.Annotated:
        return isinstance(kind, type) and (
            hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")
        )
    try:
        read_metadata(kind.__metadata__, "")
    except UncheckedLimitError:
        return _has_adapter(kind)
    except SchemaDefinitionError:
        pass
    return False


def _has_adapter(kind: Any) -> bool:
    try:
        _adapter(kind)
    except Exception:  # a validator of a user may raise anything; and there may be no pydantic
        return False
    return True


@functools.lru_cache(1024)
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def pydantic_schema(kind: Any, *, with_rules: bool) -> dict[str, Any]:
    """Return pydantic's own JSON Schema of *kind*.

    Args:
        kind: the type.
        with_rules: mark it, the keys of its objects and its decimal numbers for the check of an answer.

    Raises:
        SchemaDefinitionError: pydantic has no schema for it.
    """
    try:
        adapter = _adapter(kind)
        if not with_rules:
            return dict(adapter.json_schema())
        return {**adapter.json_schema(schema_generator=_generator()), DECIDES: True}
    except SchemaDefinitionError:
        raise
    except Exception as error:  # of pydantic, or of a user's own hook
        cause = str(error).partition("\n")[0]
        raise SchemaDefinitionError(
            f"{getattr(kind, '__name__', kind)}: pydantic cannot describe it ({cause}); give it a field type that has "
            "a JSON Schema, or call its model_rebuild()"
        ) from None


@functools.cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> Any:
            return {"anyOf": [super().decimal_schema(schema)], "format": "decimal"}

        def model_schema(self, schema: Any) -> Any:
            return _with_keys(super().model_schema(schema), schema["cls"])

        def dataclass_schema(self, schema: Any) -> Any:
            return _with_keys(super().dataclass_schema(schema), schema["cls"])

    return Generator


def _with_keys(schema: dict[str, Any], cls: Any) -> dict[str, Any]:
    if not hasattr(
        cls, "__pydantic_decorators__"
    ):  # a dataclass of the standard library, inside of a validated type
        return {**schema, KEYS: None}
    validators = cls.__pydantic_decorators__.model_validators.values()
    if any(each.info.mode != "after" for each in validators):
        return {**schema, KEYS: None}
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", {})
    is_read_by_name = config.get("populate_by_name") or config.get("validate_by_name")
    keys: dict[str, str] = {}
    for name, field in cls.__pydantic_fields__.items():
        alias = field.validation_alias or name
        aliases = [alias] if isinstance(alias, str) else alias.convert_to_aliases()
        paths = aliases if isinstance(aliases[0], list) else [aliases]
        own = next((path[0] for path in paths if len(path) == 1), name if is_read_by_name else None)
        if own is None:
            raise SchemaDefinitionError(
                f"{cls.__name__}.{name}: pydantic reads it at an AliasPath alone, which its schema does not show; give it "
                "an AliasChoices with a key as well, or a model for the object around it"
            )
        keys |= {path[0]: own if len(path) == 1 else "" for path in paths}
        keys |= {name: own} if is_read_by_name else {}
    return {**schema, KEYS: keys}


def read_with_pydantic(data: Any, kind: Any, *, strict: bool | None = True) -> Any:
    """Return the value of decoded JSON, validated by pydantic.

    A decimal number keeps its digits. If a validator takes no text for it, only zeros at its end may be lost.

    Args:
        data: the decoded JSON.
        kind: the type.
        strict: whether in strict mode, or ``None`` as *kind* is configured.

    Raises:
        pydantic.ValidationError: *data* does not fit *kind*.
    """
    decimals: list[ExactDecimal] = []

    def as_text(number: ExactFloat) -> str | float:
        if type(number) is not ExactDecimal:
            return float(number)
        decimals.append(number)
        return number.text

    adapter = _adapter(kind)
    document = dump_json(data, default=as_text)
    if (growth := GROWTH.get()) is not None:
        growth.work += len(document) // 16
    try:
        return adapter.validate_json(document, strict=strict)
    except Exception:  # a validator may raise anything
        if not decimals or any(Decimal(each.text) != Decimal(repr(float(each))) for each in decimals):
            raise
        return adapter.validate_json(dump_json(data, default=float), strict=strict)


def write_with_pydantic(value: Any) -> Any:
    """Return plain JSON values of an instance of a class of pydantic."""
    kind: Any = type(value)
    return _adapter(kind).dump_python(value, mode="json", by_alias=True, round_trip=True)
