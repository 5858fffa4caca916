"""The fields of a class of any kind: attrs, dataclass, typed dict, named tuple."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Iterator
from typing import Any, Final

import attrs

from crosswalk.codec.converters import origin_of
from crosswalk.schemas.report import SchemaDefinitionError

REQUIRED: Final = "required"
"""The key of a field's attrs metadata that makes its JSON key required although the field has a default."""

_MISSING: Final = object()


@attrs.frozen
class ClassField:
    """A field in JSON.

    Attributes:
        key: its key.
        kind: its type, with the annotations of ``Annotated``.
        is_required: whether the key must be present.
        default: its default, or a value that JSON cannot have.
        metadata: its metadata from attrs or a dataclass. ``alias`` is its JSON key, if that is not an identifier.
    """

    key: str
    kind: Any
    is_required: bool
    default: Any = _MISSING
    metadata: typing.Mapping[str, Any] = attrs.field(factory=dict)


def is_pydantic(kind: Any) -> bool:
    """Whether *kind* is a model of pydantic, which is never imported here."""
    return isinstance(kind, type) and hasattr(kind, "model_fields") and hasattr(kind, "model_json_schema")


def has_fields(kind: Any) -> bool:
    """Return whether :func:`fields_of` can read *kind*, a class or a generic class with its arguments."""
    kind = origin_of(kind)
    return isinstance(kind, type) and (
        attrs.has(kind)
        or dataclasses.is_dataclass(kind)
        or typing.is_typeddict(kind)
        or (issubclass(kind, tuple) and hasattr(kind, "_field_defaults"))
    )


def fields_of(cls: Any) -> list[ClassField]:
    """Return the fields of *cls* that its constructor takes. ``T`` of a generic class is its argument.

    Raises:
        SchemaDefinitionError: a type cannot be found, or the constructor does not take a field.
    """
    origin = origin_of(cls)
    try:
        hints = typing.get_type_hints(origin, include_extras=True)
    except (NameError, TypeError) as error:
        raise SchemaDefinitionError(f"{origin.__name__}: {error}") from None
    arguments = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(cls), strict=False))
    return list(_fields(origin, {name: _with_arguments(kind, arguments) for name, kind in hints.items()}))


def _with_arguments(kind: Any, arguments: dict[Any, Any]) -> Any:
    if isinstance(kind, typing.TypeVar):
        return arguments.get(kind, kind)
    parameters = getattr(kind, "__parameters__", ()) if typing.get_origin(kind) else ()
    return kind[tuple(arguments.get(each, each) for each in parameters)] if parameters else kind


def _fields(cls: Any, hints: dict[str, Any]) -> Iterator[ClassField]:
    if attrs.has(cls):
        parameters = inspect.signature(cls).parameters
        for field in attrs.fields(cls):
            if field.init and field.metadata.get("json_key", "") is not None:
                key = field.alias or field.name
                if key.isidentifier() and key not in parameters:
                    raise SchemaDefinitionError(f"{cls.__name__}.{key}: its constructor does not take it")
                is_required = field.default is attrs.NOTHING or bool(field.metadata.get(REQUIRED))
                default = _MISSING if field.metadata.get(REQUIRED) else field.default
                json_key = field.metadata.get("alias", key)
                yield ClassField(json_key, hints.get(field.name, Any), is_required, default, field.metadata)
    elif dataclasses.is_dataclass(cls):
        for each in dataclasses.fields(cls):
            if each.init:
                is_required = each.default is each.default_factory is dataclasses.MISSING
                key = each.metadata.get("alias", each.name)
                yield ClassField(key, hints[each.name], is_required, each.default, each.metadata)
    elif typing.is_typeddict(cls):
        # Part of the type: annotations that are texts are not in __required_keys__.
        stated = {typing.Required: True, typing.NotRequired: False}
        for name, kind in hints.items():
            origin = typing.get_origin(kind)
            is_required = stated.get(origin, name in cls.__required_keys__)
            yield ClassField(name, typing.get_args(kind)[0] if origin in stated else kind, is_required)
    else:
        for name, kind in hints.items():
            default = cls._field_defaults.get(name, _MISSING)
            yield ClassField(name, kind, name not in cls._field_defaults, default)
