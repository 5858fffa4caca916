"""The keywords of JSON Schema that check one value: its type, its words, its format, its size."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from decimal import Decimal
from types import NoneType
from typing import Any, Final, TypeAlias
from uuid import UUID

from crosswalk.codec.layout import shortened
from crosswalk.schemas.report import Check, ExactFloat, Fault, Finding, Report, SchemaDefinitionError
from crosswalk.text import json_type_name


def read_datetime(text: str) -> datetime:
    """An ISO 8601 time with its offset, as it stands.

    Raises:
        ValueError: it is not one.
    """
    result = datetime.fromisoformat(text.upper())
    if result.tzinfo is None:
        raise ValueError
    return result


def _read_decimal(text: str) -> Decimal:
    if not re.fullmatch(r"-?[0-9]{1,400}(\.[0-9]{1,400})?", text):
        raise ValueError
    return Decimal(text)


_FORMATS: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "date": (date.fromisoformat, "an ISO 8601 date"),
    "date-time": (read_datetime, "an ISO 8601 time with its zone"),
    "time": (time.fromisoformat, "an ISO 8601 time of day"),
    "uuid": (UUID, "a UUID"),
    "decimal": (_read_decimal, "a decimal number"),
}
TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "boolean": (bool,), "null": (NoneType,), "array": (list,), "object": (dict,),
    "number": (int, float),
}  # fmt: skip


def names_of(schema: Any) -> Iterable[str]:
    """Return the name that a message uses for the values of *schema*."""
    if not isinstance(schema, dict):
        return ["anything"]
    if "enum" in schema or "const" in schema:
        return [_either(schema.get("enum", [schema.get("const")]))]
    if "$ref" in schema:
        return [schema["$ref"].rpartition("/")[2]]
    if schema.get("format") in _FORMATS:
        return [_FORMATS[schema["format"]][1]]
    types = schema.get("type", "anything")
    return [types] if isinstance(types, str) else types


def of_type(names: list[str], schema: dict[str, Any]) -> Check:
    """Return the check of *schema*'s ``type``, which has *names*.

    Raises:
        SchemaDefinitionError: one is not a type.
    """
    if unknown := [name for name in names if name not in TYPES]:
        raise SchemaDefinitionError(f"JSON Schema: {unknown[0]!r} is not a type")
    allowed = {kind for name in names for kind in TYPES[name]}
    expected = " or ".join(names_of(schema))
    is_number_alone = names == ["number"]

    def check(value: Any, path: str, report: Report) -> Any:
        if type(value) not in allowed and not (float in allowed and isinstance(value, float)):
            report.add(f"expected {expected}, got {json_type_name(value)}", path)
        elif is_number_alone and type(value) is int and not _is_exact(value):
            report.add("a number that a float cannot hold", path)
        return value

    if "enum" in schema or "const" in schema or (schema.get("format") in _FORMATS and names == ["string"]):
        return anything  # another check describes more
    return check


def _is_exact(number: int) -> bool:
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def _either(words: list[Any]) -> str:
    return " or ".join("null" if word is None else shortened(repr(word)) for word in words)


def of_words(words: list[Any], fault: Fault) -> Check:
    """Return the check of an ``enum`` or ``const``: the value is one of *words*, else there is a *fault*."""
    kinds = {type(word) for word in words}
    expected = _either(words)

    def check(value: Any, path: str, report: Report) -> Any:
        if not any(type(value) is type(word) and value == word for word in words):
            another = "another " if type(value) in kinds else ""
            message = f"expected {expected}, got {another}{json_type_name(value)}"
            report.violations.append(Finding(message, path, fault, is_of_constant=True))
        return value

    return check


_Holds: TypeAlias = Callable[[Any, Any], bool]
_NUMBERS: Final[dict[str, tuple[_Holds, str]]] = {
    "minimum": (lambda value, bound: value >= bound, "must be >= {}"),
    "maximum": (lambda value, bound: value <= bound, "must be <= {}"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "must be > {}"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "must be < {}"),
    "multipleOf": (lambda value, bound: value % bound == 0, "must be a multiple of {}"),
}
_SIZES: Final[dict[str, tuple[type[Any], _Holds, str]]] = {
    "minLength": (str, lambda size, bound: size >= bound, "must have at least {} characters"),
    "maxLength": (str, lambda size, bound: size <= bound, "must have at most {} characters"),
    "minItems": (list, lambda size, bound: size >= bound, "must have at least {} items"),
    "maxItems": (list, lambda size, bound: size <= bound, "must have at most {} items"),
    "minProperties": (dict, lambda size, bound: size >= bound, "must have at least {} keys"),
    "maxProperties": (dict, lambda size, bound: size <= bound, "must have at most {} keys"),
}
KEYWORDS: Final = frozenset((*_NUMBERS, *_SIZES, "pattern", "format", "uniqueItems"))
"""The keywords that :func:`rule` knows."""


def rule(key: str, bound: Any, schema: dict[str, Any]) -> Check:
    """Return the check of keyword *key* of *schema*, one of :data:`KEYWORDS`, with the value *bound*.

    Raises:
        SchemaDefinitionError: *bound* is a pattern that is not a regular expression.
    """
    if key in _NUMBERS:
        holds, raw = _NUMBERS[key]
        is_decimal = "decimal" in [each.get("format") for each in (schema, *schema.get("anyOf", ()))]

        def keeps(value: Any) -> bool:
            number = _number(value, is_decimal)
            if number is None:
                return True
            if type(number) is Decimal or (key == "multipleOf" and float in (type(bound), type(number))):
                return holds(Decimal(str(number)), Decimal(str(bound)))
            return holds(number, bound)

        return _where(keeps, raw.format(bound))
    if key in _SIZES:
        kind, fits, raw = _SIZES[key]
        return _where(lambda value: type(value) is not kind or fits(len(value), bound), raw.format(bound))
    if key == "pattern":
        try:
            pattern = re.compile(bound)
        except re.error:
            raise SchemaDefinitionError("JSON Schema: a pattern is not a regular expression") from None
        return _where(
            lambda value: type(value) is not str or pattern.search(value) is not None, f"must match {bound}"
        )
    if key == "uniqueItems":
        return _where(
            lambda value: not bound or type(value) is not list or _are_unique(value), "items must differ"
        )
    read, expected = _FORMATS.get(bound, (str, ""))

    def check(value: Any, path: str, report: Report) -> Any:
        if not expected or (
            bound == "decimal" and isinstance(value, int | float) and type(value) is not bool
        ):
            return value
        try:
            if type(value) is str:
                read(value)
                return value
        except (ValueError, OverflowError):
            pass
        report.add(f"expected {expected}, got {json_type_name(value)}", path)
        return value

    return check


def _number(value: Any, is_decimal: bool) -> int | float | Decimal | None:
    """The number that *value* is, with the digits of its text, or ``None`` if it is not a number."""
    if type(value) is ExactFloat:
        return Decimal(value.text)
    if type(value) is str and is_decimal:
        with contextlib.suppress(ValueError):  # which the format reports
            return _read_decimal(value)
    return value if type(value) in (int, float) else None


def _are_unique(items: list[Any]) -> bool:
    return len({repr(item) for item in items}) == len(items)


def _where(holds: Callable[[Any], bool], message: str) -> Check:
    def check(value: Any, path: str, report: Report) -> Any:
        if not holds(value):
            report.add(message, path, Fault.RULE)
        return value

    return check


def anything(value: Any, path: str, report: Report) -> Any:
    """Take *value* as it is."""
    return value
