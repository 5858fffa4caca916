"""The JSON Schema of canonical JSON, worked out from the types and their docstrings."""

from __future__ import annotations

import copy
import inspect
import re
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from crosswalk.codec.layout import CANONICAL, TAGS, Key, layout, union_members
from crosswalk.codec.version import READABLE_MAJORS
from crosswalk.types.json import FrozenObject
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import ChatResponse

__all__ = ["json_schema"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_RAW_EVENT: Final = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
            "required": ["base64"],
        },
    ]
}
BY_TYPE: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": "number", "minimum": 0},
    Decimal: {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
    FrozenObject: {"type": "object"},
    RawEvents: {"type": "array", "items": _RAW_EVENT},
    Any: {},
}
_FORMAT_VERSION: Final = {
    "type": "string",
    "pattern": rf"^({'|'.join(READABLE_MAJORS)})\.[0-9]+$",
    "description": "The version of this format; 1.0 when missing.",
}


def json_schema(cls: type[Any]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the canonical JSON of *cls*, a new dict each time.

    It describes what is written: everything that :func:`to_json` writes validates. Further keys are allowed,
    as reading ignores them; computed values are ``readOnly``. Types that *cls* holds stand under ``$defs``.

    Raises:
        TypeError: *cls* is no canonical type.
    """
    if cls not in CANONICAL:
        raise TypeError(f"{cls!r} is no canonical type")
    definitions: dict[str, Any] = {}
    schema = {"$schema": DIALECT, **_object_schema(cls, definitions)}
    if definitions:
        schema["$defs"] = {name: definitions[name] for name in sorted(definitions)}
    return schema


def _object_schema(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    documented = documented_attributes(cls)
    properties: dict[str, Any] = {"type": {"const": TAGS[cls]}} if cls in TAGS else {}
    for key in layout(cls):
        text = _first_line(getattr(cls, key.attribute)) if key.computed else documented.get(key.attribute)
        properties[key.name] = {
            **value_schema(key.type, definitions),
            **({"description": text} if text else {}),
            **({"readOnly": True} if key.computed else {}),
        }
    if cls is ChatResponse:
        properties["format_version"] = dict(_FORMAT_VERSION)
    return {
        **heading(cls),
        "type": "object",
        "properties": properties,
        "required": [*(["type"] if cls in TAGS else []), *_required(layout(cls))],
        "additionalProperties": True,
    }


def _required(keys: tuple[Key, ...]) -> list[str]:
    return [key.name for key in keys if key.required]


def value_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind in BY_TYPE:
        return copy.deepcopy(BY_TYPE[kind])
    if kind in CANONICAL or (isinstance(kind, type) and issubclass(kind, Enum)):
        return _reference(kind, definitions)
    if union_members(kind):
        return {"anyOf": [value_schema(member, definitions) for member in union_members(kind)]}
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is Mapping:
        return {"type": "object", "additionalProperties": value_schema(arguments[1], definitions)}
    items = {"type": "array", "items": value_schema(arguments[0], definitions)}
    if arguments[1] is ...:
        return items
    return {**items, "minItems": len(arguments), "maxItems": len(arguments)}


def _reference(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # before its own schema, which may refer to it
        definitions[kind.__name__] = (
            _enum_schema(kind) if issubclass(kind, Enum) else _object_schema(kind, definitions)
        )
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _enum_schema(kind: type[Enum]) -> dict[str, Any]:
    return {**heading(kind), "type": "string", "enum": [member.value for member in kind]}


def heading(kind: type) -> dict[str, str]:
    text = _first_line(kind)
    return {"title": kind.__name__, **({"description": text} if text else {})}


def _first_line(documented: object) -> str:
    return _plain((inspect.getdoc(documented) or "").partition("\n")[0])


_ATTRIBUTE: Final = re.compile(r"^    (\w+): ((?:.+)(?:\n {8}.+)*)", re.MULTILINE)


def documented_attributes(cls: type) -> dict[str, str]:
    """What the ``Attributes:`` sections of *cls* and its bases say about each attribute."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = (inspect.getdoc(base) or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
        found |= {name: _plain(" ".join(text.split())) for name, text in _ATTRIBUTE.findall(section)}
    return found


def _plain(text: str) -> str:
    """*text* without the markup of docstrings: ``code``, roles, requirement numbers stay readable."""
    return re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "`")
