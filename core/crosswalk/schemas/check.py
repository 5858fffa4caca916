"""Checks values against JSON Schemas: those of types, and those that a user gives as dictionaries."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import unicodedata
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Container, Iterable
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from itertools import islice
from types import NoneType
from typing import Any, Final, TypeAlias
from uuid import UUID

import attrs

from crosswalk.schemas.json_schema import RULES
from crosswalk.schemas.metadata import (
    MOST,
    Check,
    ExactFloat,
    Fault,
    Finding,
    Report,
    SchemaDefinitionError,
)
from crosswalk.schemas.pydantic_types import DECIDES, KEYS, ExactDecimal
from crosswalk.text import json_type_name
from crosswalk.types.json import quoted, step

# ----------------------------------------------------------------------------------- check
# Decoded JSON, checked against a JSON Schema, keyword by keyword.


# ----------------------------------------------------------------------------------- rules
# The keywords of JSON Schema that check one value: its type, its words, its format, its size.


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


FORMATS: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "date": (date.fromisoformat, "an ISO 8601 date"),
    "date-time": (read_datetime, "an ISO 8601 time with its zone"),
    "time": (time.fromisoformat, "an ISO 8601 time of day"),
    "uuid": (UUID, "a UUID"),
    "decimal": (_read_decimal, "a decimal number"),
    "base64": (lambda text: b64decode(text, validate=True), "text in base64"),
    "ipv4": (ipaddress.IPv4Address, "an IPv4 address"),
    "ipv6": (ipaddress.IPv6Address, "an IPv6 address"),
    "ipv4network": (ipaddress.IPv4Network, "an IPv4 network"),
    "ipv6network": (ipaddress.IPv6Network, "an IPv6 network"),
    "ipv4interface": (ipaddress.IPv4Interface, "an IPv4 interface"),
    "ipv6interface": (ipaddress.IPv6Interface, "an IPv6 interface"),
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
    if schema.get("format") in FORMATS:
        return [FORMATS[schema["format"]][1]]
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

    if "enum" in schema or "const" in schema or (schema.get("format") in FORMATS and names == ["string"]):
        return anything  # another check describes more
    return check


def _is_exact(number: int) -> bool:
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def _either(words: list[Any]) -> str:
    return " or ".join("null" if word is None else quoted(repr(word)) for word in words)


def of_words(words: list[Any], fault: Fault) -> Check:
    """Return the check of an ``enum`` or ``const``: the value is one of *words*, else there is a *fault*."""
    kinds = {type(word) for word in words}
    expected = _either(words)
    known = {_as_compared(word) for word in words}

    def check(value: Any, path: str, report: Report) -> Any:
        if _as_compared(value) not in known:
            another = "another " if type(value) in kinds else ""
            message = f"expected {expected}, got {another}{json_type_name(value)}"
            report.violations.append(Finding(message, path, fault, is_of_constant=True))
        return value

    return check


def _as_compared(value: Any) -> Any:
    """A value with a hash that equals those of the same JSON alone: ``1`` is ``1.0``, and is not ``true``."""
    if type(value) is list:
        return "array", tuple(map(_as_compared, value))
    if type(value) is dict:
        return "object", frozenset((key, _as_compared(item)) for key, item in value.items())
    return type(value) is bool, value


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


_DOLLARS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
"""The escapes, classes and dollars of a regular expression."""


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return *pattern* with ``$`` as the very end, as in JSON Schema. Python's also stands before a last newline."""
    compiled = re.compile(pattern)
    if re.search(r"\(\?[a-z]*m", pattern):
        return compiled  # the end of a line is meant
    return re.compile(_DOLLARS.sub(lambda token: r"\Z" if token[0] == "$" else token[0], pattern))


def rule(key: str, bound: Any, schema: dict[str, Any]) -> Check:
    """Return the check of keyword *key* of *schema*, one of :data:`KEYWORDS`, with the value *bound*.

    Raises:
        SchemaDefinitionError: *bound* is a pattern that is not a regular expression.
    """
    if key in _NUMBERS:
        holds, wording = _NUMBERS[key]
        is_decimal = "decimal" in [each.get("format") for each in (schema, *schema.get("anyOf", ()))]

        def keeps(value: Any) -> bool:
            number = _number(value, is_decimal)
            if number is None:
                return True
            if type(number) is Decimal or (key == "multipleOf" and float in (type(bound), type(number))):
                return holds(Decimal(str(number)), Decimal(str(bound)))
            return holds(number, bound)

        return _where(keeps, wording.format(bound))
    if key in _SIZES:
        kind, fits, wording = _SIZES[key]
        return _where(lambda value: type(value) is not kind or fits(len(value), bound), wording.format(bound))
    if key == "pattern":
        try:
            pattern = _compiled(bound)
        except re.error:
            raise SchemaDefinitionError("JSON Schema: a pattern is not a regular expression") from None
        return _where(
            lambda value: type(value) is not str or pattern.search(value) is not None, f"must match {bound}"
        )
    if key == "uniqueItems":
        return _where(
            lambda value: not bound or type(value) is not list or _are_unique(value), "items must differ"
        )
    read, expected = FORMATS.get(bound, (str, ""))

    def check(value: Any, path: str, report: Report) -> Any:
        if bound == "decimal" and "anyOf" in schema and type(value) is ExactFloat:
            return ExactDecimal(value.text)
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
    return len(set(map(_as_compared, items))) == len(items)


def _where(holds: Callable[[Any], bool], message: str) -> Check:
    def check(value: Any, path: str, report: Report) -> Any:
        if not holds(value):
            report.add(message, path, Fault.RULE)
        return value

    return check


def anything(value: Any, path: str, report: Report) -> Any:
    """Take *value* as it is."""
    return value


# ----------------------------------------------------------------------------------- check
# Check decoded JSON against a JSON Schema, and report ignored keys.
#
# A schema is compiled once into functions. Nothing is coerced. A key that is nearly a missing one is read as that key.


_SEPARATORS: Final = re.compile(r"[\s_-]+")
_CHECKED: Final = KEYWORDS | frozenset(
    ("type", "$ref", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "allOf",
     "anyOf", "oneOf", "propertyNames")
)  # fmt: skip
_TOLD: Final = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated",
     "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "discriminator", "nullable", "x-order")
)  # fmt: skip
"""Keywords that describe and do not check."""


class UnsupportedKeywordError(SchemaDefinitionError):
    """A JSON Schema has a keyword that only the package jsonschema checks."""


def compile_schema(
    schema: Any,
    *,
    null_is_default: bool = False,
    refuse_doubtful: bool = False,
    further: Container[str] | None = None,
) -> Check:
    """Return the function that checks values against *schema*.

    Args:
        schema: a JSON Schema. ``$ref`` leads into itself alone.
        null_is_default: a null for an optional key that cannot be null stands for its default: strict mode of
            servers makes every key required.
        refuse_doubtful: refuse an unknown key beside an absent optional one.
        further: the keywords that are checked elsewhere, where the check only advises. ``None`` for any.

    Raises:
        SchemaDefinitionError: it has a keyword that would not be checked, or is not a schema.
    """
    return _Compiler(schema, null_is_default, refuse_doubtful, further).compiled("#")


class _Compiler:
    def __init__(
        self, root: Any, null_is_default: bool, refuse_doubtful: bool, further: Container[str] | None
    ) -> None:
        self._further = further
        self._root = root
        self._null_is_default = null_is_default
        self._refuse_doubtful = refuse_doubtful
        self._is_advice = False  # whether pydantic decides about the schema at hand
        self._by_reference: dict[tuple[str, bool], list[Check]] = {}

    def compiled(self, reference: str) -> Check:
        """Return the check of the target of *reference*. It is compiled once, so that a schema may refer to itself."""
        key = reference, self._is_advice
        if key not in self._by_reference:
            results = self._by_reference[key] = []
            schema = resolved(self._root, reference)
            if schema is None:
                raise SchemaDefinitionError(f"JSON Schema: {reference!r} leads nowhere in it")
            results.append(self.of(schema))
        checks = self._by_reference[key]
        return checks[0] if checks else lambda value, path, report: checks[0](value, path, report)

    def of(self, schema: Any, fault: Fault = Fault.TYPE) -> Check:
        if schema is True or schema == {}:
            return anything
        if schema is False:
            return lambda value, path, report: report.add("no value is allowed here", path)
        if not isinstance(schema, dict):
            raise SchemaDefinitionError(f"JSON Schema: a schema is an object, not {json_type_name(schema)}")
        if DECIDES in schema and not self._is_advice:
            self._is_advice = True
            advise = _advice(self.of(schema, fault))
            self._is_advice = False
            return advise
        check = self._of_keywords(schema, fault)
        kinds = _kinds(schema, self._root)
        return check if kinds is None or str in kinds or not kinds & {dict, list} else _opening(check, kinds)

    def _of_keywords(self, schema: dict[str, Any], fault: Fault) -> Check:
        checks: list[Check] = []
        types = schema.get("type")
        if types is not None:
            checks.append(of_type([types] if isinstance(types, str) else types, schema))
        if "$ref" in schema:
            checks.append(self.compiled(schema["$ref"]))
        if "enum" in schema or "const" in schema:
            checks.append(of_words(schema["enum"] if "enum" in schema else [schema["const"]], fault))
        if {"properties", "required", "additionalProperties"} & schema.keys():
            checks.append(self._of_object(schema))
        if "propertyNames" in schema:
            checks.append(_of_keys(self.of(schema["propertyNames"])))
        if {"items", "prefixItems"} & schema.keys():
            checks.append(self._of_array(schema))
        checks += [self.of(each, fault) for each in schema.get("allOf", ())]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                checks.append(self._of_union(schema[key], is_one=key == "oneOf"))
        for key, value in schema.items():
            if key in KEYWORDS:
                checks.append(rule(key, value, schema))
            elif key == RULES:
                checks += [
                    rule(name, bound, schema) if name in KEYWORDS else self.of({name: bound}, Fault.RULE)
                    for name, bound in value.items()
                ]
            elif key not in _CHECKED and key not in _TOLD and not self._is_checked_elsewhere(key):
                raise UnsupportedKeywordError(
                    f"JSON Schema: the keyword {key!r} is not supported; install crosswalk-llm[jsonschema], which checks it"
                )
        return checks[0] if len(checks) == 1 else _all_of(checks)

    def _is_checked_elsewhere(self, keyword: str) -> bool:
        return self._is_advice and (keyword == DECIDES or self._further is None or keyword in self._further)

    def _of_object(self, schema: dict[str, Any]) -> Check:
        properties = {key: self.of(each) for key, each in schema.get("properties", {}).items()}
        required = frozenset(schema.get("required", ()))
        additional = schema.get("additionalProperties", True)
        other = self.of(additional) if isinstance(additional, dict) else None
        further: dict[str, str] = schema.get(KEYS) or {}  # that pydantic reads
        is_any = schema.get(KEYS, ()) is None or "patternProperties" in schema
        refuse_doubtful = self._refuse_doubtful
        folded: dict[str, list[str]] = {}
        for key in properties:
            folded.setdefault(folded_key(key), []).append(key)
        # A key that is required may have no schema.
        checked = [
            (key, step(key), properties.get(key, anything))
            for key in dict.fromkeys([*properties, *schema.get("required", ())])
        ]
        dropping = frozenset(
            key
            for key, each in schema.get("properties", {}).items()
            if self._null_is_default and key not in required and not _is_nullable(each)
        )

        def check(value: Any, path: str, report: Report) -> Any:
            if type(value) is not dict:
                return value
            if report.growth is not None:
                report.growth.work += len(value) + sum(
                    len(each) // 256 for each in value.values() if type(each) is str
                )
            unknown = [key for key in value if key not in properties and key not in further]
            result = value
            if unknown and other is None and additional and properties and not is_any:
                result, unknown = renamed(value, unknown, path, report)
            made = {}
            is_missing = is_defaulted = False
            for key, at, one in checked:
                if key in result:
                    item = result[key]
                    if item is not None or key not in dropping:
                        made[key] = one(item, path + at, report)
                elif key in required:
                    is_missing = True
                    report.is_incomplete = report.is_incomplete or schema.get(KEYS, ()) is not None
                    report.add("a required field is missing", path + at, Fault.MISSING)
                else:
                    is_defaulted = True
            if properties and other is None and not is_any:
                report.defaulted[id(value)] = is_defaulted
            for key in unknown:
                made[key] = other(result[key], path + step(key), report) if other else result[key]
            for key in further.keys() & result.keys() - properties.keys():
                one = properties.get(further[key], anything)
                made[key] = one(result[key], path + step(key), report)
            if unknown and other is None and not is_any:
                is_strange = properties and not is_missing and len(unknown) == len(result)
                if not additional or is_strange:
                    for key in unknown:
                        report.add("unknown field", path + step(key), Fault.UNKNOWN)
                elif is_defaulted and refuse_doubtful:
                    for key in unknown:
                        text = "unknown field beside an absent optional one"
                        report.add(text, path + step(key), Fault.UNKNOWN)
                elif properties:
                    report.unknown += [path + step(key) for key in unknown]
            return made

        def renamed(
            value: dict[str, Any], unknown: list[str], path: str, report: Report
        ) -> tuple[dict[str, Any], list[str]]:
            spelling = {key: folded_key(key) for key in unknown}
            spelled = Counter(spelling.values())
            names: dict[str, str] = {}
            for key, plain in spelling.items():
                near = folded.get(plain, [])
                missing = [name for name in near if name not in value]
                if len(missing) == 1 and spelled[plain] == 1:
                    names[key] = missing[0]
                    report.renamed.append((path + step(key), missing[0]))
                elif missing or any(value[name] != value[key] for name in near):
                    report.add("several keys could be this one", path + step(near[0]), Fault.DUPLICATE)
            if not names:
                return value, unknown
            return {names.get(key, key): item for key, item in value.items()}, [
                k for k in unknown if k not in names
            ]

        return check

    def _of_array(self, schema: dict[str, Any]) -> Check:
        first = [self.of(each) for each in schema.get("prefixItems", ())]
        item = self.of(schema["items"]) if "items" in schema else anything

        def of_index(at: int) -> Check:
            return first[at] if at < len(first) else item

        def check(value: Any, path: str, report: Report) -> Any:
            if type(value) is not list:
                return value
            if report.growth is not None:
                return report.growth.checked(value, of_index, check, path, report)
            return [of_index(at)(each, f"{path}[{at}]", report) for at, each in enumerate(value)]

        return check

    def _of_union(self, members: list[Any], *, is_one: bool) -> Check:
        """The member that leaves the fewest keys unread counts. Otherwise the nearest gives the violations."""
        checks = [(self.of(member), _kinds(member, self._root), _is_null(member)) for member in members]
        is_advice = self._is_advice or any(
            DECIDES in member for member in members if isinstance(member, dict)
        )
        takes_text = [kinds is None or str in kinds for _, kinds, _ in checks]
        expected = " or ".join(
            dict.fromkeys(name for member in members if not _is_null(member) for name in names_of(member))
        )
        if sum(not is_null for _, _, is_null in checks) > 1 and any(is_null for _, _, is_null in checks):
            expected += " or null"

        tag, words = self._tag(members)

        def check(value: Any, path: str, report: Report) -> Any:
            tried = []
            for at, (one, kinds, _) in enumerate(checks):
                if kinds is not None and type(value) not in kinds:
                    continue
                key = (id(value), id(one))
                if key not in report._seen or type(value) not in (dict, list):
                    part = report.apart()
                    report._seen[key] = one(value, path, part), part, value
                made, part, _ = report._seen[key]
                tried.append((part.distance(), at, made, part))
            fitting = [each for each in tried if not each[3].misfits()]
            if is_one and len(fitting) > 1:
                report.add("several of the allowed forms fit", path)
            if not fitting and not (tried and (len(tried) == 1 or type(value) in (dict, list))):
                another = "another " if tried else ""
                message = f"expected {expected}, got {another}{json_type_name(value)}"
                report.violations.append(Finding(message, path, Fault.TYPE, is_advice=is_advice))
                return value
            if words and not fitting and type(value) is dict and tag in value and value[tag] not in words:
                another = "another " if type(value[tag]) is str else ""
                message = f"expected {_either(words)}, got {another}{json_type_name(value[tag])}"
                report.violations.append(Finding(message, path + step(tag), Fault.TYPE, is_advice=is_advice))
                return value
            _, nearest, made, part = min(fitting or tried, key=lambda each: each[:2])
            report.take(part)
            if type(made) is ExactDecimal and any(takes_text[:nearest] + takes_text[nearest + 1 :]):
                return ExactFloat(made.text)  # as a text it would be taken for another member
            return made

        return check

    def _tag(self, members: list[Any]) -> tuple[str, list[str]]:
        """Return the key whose text says which of *members* an object is, and its texts, if there is such a key."""
        properties = [
            _dict_at(self._resolved(member), "properties") for member in members if not _is_null(member)
        ]
        for key in properties[0] if len(properties) > 1 else ():
            fields = [_dict_at(each, key) for each in properties]
            words = [word for field in fields for word in field.get("enum", [field.get("const")])]
            if all(isinstance(word, str) for word in words):
                return key, words
        return "", []

    def _resolved(self, schema: Any) -> Any:
        return (
            resolved(self._root, schema["$ref"]) if isinstance(schema, dict) and "$ref" in schema else schema
        )


def _dict_at(schema: Any, key: str) -> dict[str, Any]:
    inner = schema.get(key) if isinstance(schema, dict) else None
    return inner if isinstance(inner, dict) else {}


def _advice(inner: Check) -> Check:
    """The check *inner* where pydantic decides. Only keys that nobody declared, or that are there twice, are refused."""

    def check(value: Any, path: str, report: Report) -> Any:
        part = report.apart()
        made = inner(value, path, part)
        part.violations = [
            each if each.fault in (Fault.UNKNOWN, Fault.DUPLICATE) else attrs.evolve(each, is_advice=True)
            for each in part.violations
        ]
        report.take(part)
        return made

    return check


def _opening(inner: Check, kinds: frozenset[type]) -> Check:
    """The check *inner* for a schema that admits no string: one that holds JSON of *kinds* can be opened."""
    containers = kinds & {dict, list}

    def check(value: Any, path: str, report: Report) -> Any:
        if type(value) is str and path != "$" and value.lstrip()[:1] in ("[", "{"):
            if report.open_string is None:
                report.has_closed = True
            elif type(opened := report.open_string(value)) in containers:
                report.opened.append(path)
                value = opened
        return inner(value, path, report)

    return check


def _of_keys(inner: Check) -> Check:
    def check(value: Any, path: str, report: Report) -> Any:
        for key in value if type(value) is dict else ():
            inner(key, path + step(key), report)
        return value

    return check


def _all_of(checks: list[Check]) -> Check:
    def check(value: Any, path: str, report: Report) -> Any:
        for one in checks:
            before = len(report.violations)
            value = one(value, path, report)
            if len(report.violations) > before:
                break
        return value

    return check


def folded_key(key: str) -> str:
    """*key* without case, blanks, ``-``, ``_`` and accents."""
    plain = _SEPARATORS.sub("", key.casefold())
    if plain.isascii():
        return plain
    # An accent stands above or below the character before it: a vowel of Hindi or a stroke does not.
    return "".join(each for each in unicodedata.normalize("NFD", plain) if unicodedata.combining(each) < 200)


def _is_nullable(schema: Any) -> bool:
    if not isinstance(schema, dict) or "null" in schema.get("type", ()) or None in schema.get("enum", ()):
        return True
    return not schema or any(map(_is_nullable, schema.get("anyOf", ())))


def resolved(root: Any, reference: str) -> Any:
    """Return the target of *reference* inside of *root*, or ``None`` if there is none."""
    first, *names = reference.split("/")
    result = root if first == "#" else None
    for name in names:
        result = result.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(result, dict) else None
    return result


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def takes_null(schema: dict[str, Any]) -> bool:
    """Return whether *schema* names null as a value. One that takes anything names nothing."""
    kinds = _kinds(schema, schema)
    return kinds is not None and type(None) in kinds


def _kinds(schema: Any, root: Any, references: tuple[str, ...] = ()) -> frozenset[type] | None:
    """Return the types of decoded JSON that *schema* may take, or ``None`` if it may be any."""
    if not isinstance(schema, dict):
        return None
    if "$ref" in schema:
        reference = schema["$ref"]
        is_circle = reference in references
        return None if is_circle else _kinds(resolved(root, reference), root, (*references, reference))
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        types = frozenset(
            kind for word in words for kind in ((int, float) if type(word) in (int, float) else (type(word),))
        )
    elif "anyOf" in schema or "oneOf" in schema:
        union = schema["anyOf"] if "anyOf" in schema else schema["oneOf"]
        members = [_kinds(each, root, references) for each in union]
        if None in members:
            return None
        types = frozenset[type]().union(*(each for each in members if each is not None))
    elif "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        types = frozenset(kind for name in names for kind in TYPES.get(name, ()))
    else:
        return None
    return types | {ExactFloat, ExactDecimal} if float in types else types


# ---------------------------------------------------------------------------- dictionaries
# JSON Schemas of a user, as dicts: with keywords that only the package jsonschema checks, it decides.


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
