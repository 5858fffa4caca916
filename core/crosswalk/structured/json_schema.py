"""JSON Schema from an attrs class and its docstrings."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Iterable, Mapping
from datetime import date
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal

import attrs

from crosswalk.codec.classes import REQUIRED, is_class, json_key, json_word, required_keys
from crosswalk.codec.layout import CANONICAL, union_members
from crosswalk.codec.schema import BY_TYPE, DIALECT, documented_attributes, heading, value_schema
from crosswalk.structured.errors import SchemaDefinitionError

__all__ = ["schema_of_class"]

_LEAVES: Final[dict[Any, dict[str, Any]]] = {
    **BY_TYPE,
    NoneType: {"type": "null"},
    date: {"type": "string", "format": "date"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Mapping: {"type": "object"},
}


def schema_of_class(cls: type, *, forbid_unknown: bool) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the JSON object of *cls*; the classes that it holds stand under ``$defs``.

    Raises:
        SchemaDefinitionError: a field has a type that JSON cannot tell, or names one that is not there.
    """
    schema = _Writer(forbid_unknown)
    found = {"$schema": DIALECT, **schema.of_object(cls)}
    if schema.definitions:
        found["$defs"] = {name: schema.definitions[name] for name in sorted(schema.definitions)}
    return found


class _Writer:
    def __init__(self, forbid_unknown: bool) -> None:
        self._forbid_unknown = forbid_unknown
        self.definitions: dict[str, Any] = {}
        self._named: dict[str, type] = {}

    def of_object(self, cls: type) -> dict[str, Any]:
        try:
            attrs.resolve_types(cls)
        except NameError as error:
            raise SchemaDefinitionError(f"{cls.__name__}: {error}") from None
        documented = documented_attributes(cls)
        properties = {}
        for field in attrs.fields(cls):
            if field.init:
                text = field.metadata.get("description") or documented.get(field.name)
                properties[json_key(field)] = {
                    **self._of_value(field.type, f"{cls.__name__}.{field.name}"),
                    **({"description": text.replace("`None`", "null")} if text else {}),
                    **_default(field),
                    **field.metadata.get("json_schema", {}),
                }
        parameters = inspect.signature(cls).parameters
        for key in properties:
            if key not in parameters:
                raise SchemaDefinitionError(f"{cls.__name__}.{key}: its constructor does not take it")
        required = required_keys(cls)
        return {
            **heading(cls),
            "type": "object",
            "properties": properties,
            "required": [key for key in properties if key in required],
            "additionalProperties": not self._forbid_unknown,
        }

    def _of_value(self, kind: Any, place: str) -> dict[str, Any]:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if is_class(kind):
            return self._reference(kind)
        if kind in CANONICAL:
            return value_schema(kind, self.definitions)
        if kind in _LEAVES:
            return copy.deepcopy(_LEAVES[kind])
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"title": kind.__name__, "enum": _words(kind, place)}
        if origin is Literal:
            return {"enum": _words(arguments, place)}
        if union_members(kind):
            return {"anyOf": [self._of_value(member, place) for member in arguments]}
        if origin is list or (origin is tuple and arguments[1:] == (...,)):
            return {"type": "array", "items": self._of_value(arguments[0], place)}
        if origin in (dict, Mapping) and arguments[0] is str:
            return {"type": "object", "additionalProperties": self._of_value(arguments[1], place)}
        raise SchemaDefinitionError(f"{place}: an answer cannot hold {kind!r}")

    def _reference(self, cls: type) -> dict[str, Any]:
        name = cls.__name__
        if self._named.setdefault(name, cls) is not cls:
            raise SchemaDefinitionError(f"two classes of one answer are called {name}")
        if name not in self.definitions:
            self.definitions[name] = {}  # before its own schema, which may refer to it
            self.definitions[name] = self.of_object(cls)
        return {"$ref": f"#/$defs/{name}"}


def _words(members: Iterable[Any], place: str) -> list[Any]:
    words = [json_word(member) for member in members]
    if not all(word is None or type(word) in (str, int, float, bool) for word in words):
        raise SchemaDefinitionError(f"{place}: a word of an answer is a string, number, boolean or null")
    return words


def _default(field: attrs.Attribute[Any]) -> dict[str, Any]:
    """The default as JSON where JSON can tell it; ``null`` goes without saying."""
    plain = type(field.default) in (str, int, float, bool) and not field.metadata.get(REQUIRED)
    return {"default": field.default} if plain else {}
