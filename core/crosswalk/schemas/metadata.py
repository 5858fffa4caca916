"""The facts in the metadata of ``Annotated``: a description, and the limits of a value.

Answers, tools and the fields of every kind of class read them here. A limit or validator that would not be checked is
refused when the type is declared. Other metadata means nothing to us and is ignored, as PEP 593 says. The libraries that
define limits are recognized by the names of their modules and never imported.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, NoReturn

import attrs

from crosswalk.codec.converters import LISTS, json_word, origin_of
from crosswalk.codec.layout import union_members
from crosswalk.schemas.report import SchemaDefinitionError

_NUMBERS: Final = frozenset((int, float, Decimal, timedelta))
_SETS: Final = frozenset(kind for kind, make in LISTS.items() if make in (set, frozenset))
_WORD_TYPES: Final = {str: "string", int: "number", float: "number"}
_SIZED: Final = {"string": "Length", "array": "Items", "set": "Items", "object": "Properties"}
_KEYWORDS: Final[dict[str, dict[str, str]]] = {
    "ge": {"number": "minimum"},
    "gt": {"number": "exclusiveMinimum"},
    "le": {"number": "maximum"},
    "lt": {"number": "exclusiveMaximum"},
    "multiple_of": {"number": "multipleOf"},
    "min_length": {kind: f"min{what}" for kind, what in _SIZED.items()},
    "max_length": {kind: f"max{what}" for kind, what in _SIZED.items()},
    "pattern": {"string": "pattern"},
}
"""The attribute that holds a limit, and its keyword of JSON Schema for each kind of value that it limits."""

_KEPT_ANYWAY: Final = frozenset(("strict", "allow_inf_nan", "union_mode", "fail_fast"))
"""Attributes of pydantic that limit nothing here: nothing is coerced, and JSON has neither NaN nor infinity."""

_NO_LIMITS: Final = frozenset(
    ("Discriminator", "DocInfo", "PlainSerializer", "SerializeAsAny", "Strict", "AllowInfNan", "FailFast", "Tag", "Unit",
     "WrapSerializer")
)  # fmt: skip
"""Classes of annotated-types and pydantic that refuse no value that is read here."""


@attrs.frozen
class Metadata:
    """The facts of one ``Annotated``.

    Attributes:
        description: the description for the model, or ``None`` if there is none.
        limits: each limit by the name of its attribute, such as ``ge``, with its bound.
    """

    description: str | None
    limits: tuple[tuple[str, Any], ...]


def read_metadata(metadata: Iterable[Any], where: str) -> Metadata:
    """Read the metadata of one ``Annotated``.

    A text describes the value. The limits of annotated-types, of pydantic's ``Field`` and ``StringConstraints``, and of
    any object with attributes of these names are read.

    Args:
        metadata: the objects behind the type.
        where: the place of the type, for messages.

    Raises:
        SchemaDefinitionError: a limit or validator would not be checked.
    """
    parts = [part for each in metadata for part in _parts(each)]
    texts = (each if isinstance(each, str) else getattr(each, "description", None) for each in parts)
    description = next((text for text in texts if isinstance(text, str)), None)
    return Metadata(description, tuple(limit for each in parts for limit in _limits(each, where)))


def refuse_field_as_default(default: object, where: str) -> None:
    """Refuse pydantic's ``Field(...)`` in the place of a default: only a class of pydantic reads it there.

    Raises:
        SchemaDefinitionError: *default* is one.
    """
    if _is_of(default, "pydantic", "FieldInfo"):
        raise SchemaDefinitionError(
            f"{where}: Field() as a default would not be read; write Annotated[T, Field(...)]"
        )


def limited(schema: dict[str, Any], kind: Any, metadata: Metadata, where: str) -> dict[str, Any]:
    """Return *schema*, of the type *kind*, with the description and the limits of *metadata*.

    Raises:
        SchemaDefinitionError: a limit cannot be expressed in JSON Schema, or *kind* has no such limit.
    """
    for name, bound in metadata.limits:
        if not _is_limited(schema, kind, name, bound, where):
            _refuse(name, where, "its type has no such limit")
    return {**schema, "description": metadata.description} if metadata.description else schema


def _is_limited(schema: dict[str, Any], kind: Any, name: str, bound: Any, where: str) -> bool:
    """Add one limit to *schema*. Return whether *kind* has such a limit: of a union, whether any member has."""
    while typing.get_origin(kind) is typing.Annotated or hasattr(kind, "__supertype__"):
        kind = typing.get_args(kind)[0] if typing.get_origin(kind) else kind.__supertype__
    if members := union_members(kind):
        pairs = zip(schema["anyOf"], members, strict=True)
        found = [_is_limited(each, member, name, bound, where) for each, member in pairs]
        return any(found)
    kinds = _kinds(kind)
    keywords = {_KEYWORDS[name][each] for each in kinds if each in _KEYWORDS[name]}
    for keyword in sorted(keywords):
        schema[keyword] = _both(name, schema[keyword], bound, where) if keyword in schema else bound
    if name == "min_length" and "set" in kinds:
        schema["uniqueItems"] = True  # an item that is there twice counts once
    return bool(keywords)


def _both(name: str, first: Any, second: Any, where: str) -> Any:
    """The bound that is in force where two of one kind are declared."""
    if name in ("ge", "gt", "min_length"):
        return max(first, second)
    if name in ("le", "lt", "max_length"):
        return min(first, second)
    return first if first == second else _refuse(name, where, "there are two")


def _is_of(each: object, package: str, name: str | None = None) -> bool:
    """Whether *each* is an instance of the class *name* of *package*, or of any of its classes if there is no *name*."""
    return any(
        base.__module__.partition(".")[0] == package and name in (None, base.__name__)
        for base in type(each).__mro__
    )


def _parts(each: Any) -> Iterator[Any]:
    """*each*, and what it groups."""
    if _is_of(each, "pydantic", "FieldInfo"):
        yield each.description
        inner = each.metadata
    elif not isinstance(each, type) and hasattr(each, "__is_annotated_types_grouped_metadata__"):
        inner = each
    else:
        yield each
        return
    for one in inner:
        yield from _parts(one)


def _limits(each: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The limits that one object declares."""
    if isinstance(each, re.Pattern):
        yield "pattern", _pattern(each, where)
        return
    is_known = _is_of(each, "annotated_types") or hasattr(each, "__get_pydantic_core_schema__")
    name = type(each).__name__ if not isinstance(each, type) else each.__name__
    is_read = False
    for attribute in _KEYWORDS:
        bound = getattr(each, attribute, None)
        if bound is None or not (is_known or isinstance(bound, int | float | str)):
            continue
        is_read = True
        yield attribute, _bound(attribute, bound, where)
    if not is_known or name in _NO_LIMITS:
        return
    if _is_of(each, "pydantic", "PydanticMetadata"):
        for attribute, value in vars(each).items():
            if attribute not in _KEYWORDS and attribute not in _KEPT_ANYWAY and value:
                _refuse(attribute, where)
    elif not is_read and getattr(each, "tz", None) is not ...:  # every time has a zone
        _refuse(name, where)


def _bound(name: str, bound: Any, where: str) -> Any:
    """*bound* as JSON Schema writes it."""
    if name == "pattern":
        return _pattern(bound, where)
    if isinstance(bound, Decimal) and bound == Decimal(repr(float(bound))):
        bound = float(bound)
    is_number = type(bound) is int or (isinstance(bound, float) and math.isfinite(bound))
    return bound if is_number else _refuse(name, where, "JSON Schema has no such bound")


def _pattern(pattern: Any, where: str) -> str:
    if isinstance(pattern, re.Pattern):
        if not isinstance(pattern.pattern, str) or pattern.flags != re.UNICODE:
            _refuse("pattern", where, "JSON Schema has no flags and no bytes")
        return str(pattern.pattern)
    return pattern if isinstance(pattern, str) else _refuse("pattern", where, "it is not a text")


def _refuse(name: str, where: str, why: str = "it is not supported here") -> NoReturn:
    raise SchemaDefinitionError(
        f"{where}: {name} would not be checked, as {why}; put it into a pydantic model, "
        "or check the value in your own code"
    )


def _kinds(kind: Any) -> tuple[str, ...]:
    """The kinds of values of the type *kind* that a limit may be about."""
    if typing.get_origin(kind) is Literal:
        return tuple(_WORD_TYPES.get(type(json_word(word)), "") for word in typing.get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(_WORD_TYPES.get(type(word.value), "") for word in kind)
    if kind is Any:
        return "number", "string", "array", "object"
    if kind is str:
        return ("string",)
    if kind in _NUMBERS:
        return ("number",)
    if origin_of(kind) in LISTS:
        return ("set" if origin_of(kind) in _SETS else "array",)
    return ("object",) if origin_of(kind) in (dict, Mapping) else ()
