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
    MAX_FINDINGS,
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
    """An ISO 8601 time with its offset, unchanged.

    Raises:
        ValueError: it is not one.
    """
    parsed_time = datetime.fromisoformat(text.upper())
    if parsed_time.tzinfo is None:
        raise ValueError
    return parsed_time


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
    if unknown_names := [name for name in names if name not in TYPES]:
        raise SchemaDefinitionError(f"JSON Schema: {unknown_names[0]!r} is not a type")
    allowed_types = {kind for name in names for kind in TYPES[name]}
    expected = " or ".join(names_of(schema))
    is_number_alone = names == ["number"]

    def check(value: Any, path: str, report: Report) -> Any:
        if type(value) not in allowed_types and not (float in allowed_types and isinstance(value, float)):
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
    word_types = {type(word) for word in words}
    expected = _either(words)
    compared_words = {_as_compared(word) for word in words}

    def check(value: Any, path: str, report: Report) -> Any:
        if _as_compared(value) not in compared_words:
            another_prefix = "another " if type(value) in word_types else ""
            message = f"expected {expected}, got {another_prefix}{json_type_name(value)}"
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
_NUMBER_RULES: Final[dict[str, tuple[_Holds, str]]] = {
    "minimum": (lambda value, bound: value >= bound, "must be >= {}"),
    "maximum": (lambda value, bound: value <= bound, "must be <= {}"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "must be > {}"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "must be < {}"),
    "multipleOf": (lambda value, bound: value % bound == 0, "must be a multiple of {}"),
}
_SIZE_RULES: Final[dict[str, tuple[type[Any], _Holds, str]]] = {
    "minLength": (str, lambda size, bound: size >= bound, "must have at least {} characters"),
    "maxLength": (str, lambda size, bound: size <= bound, "must have at most {} characters"),
    "minItems": (list, lambda size, bound: size >= bound, "must have at least {} items"),
    "maxItems": (list, lambda size, bound: size <= bound, "must have at most {} items"),
    "minProperties": (dict, lambda size, bound: size >= bound, "must have at least {} keys"),
    "maxProperties": (dict, lambda size, bound: size <= bound, "must have at most {} keys"),
}
KEYWORDS: Final = frozenset((*_NUMBER_RULES, *_SIZE_RULES, "pattern", "format", "uniqueItems"))
"""The keywords that :func:`rule` knows."""


_REGEX_TOKENS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
"""The escapes, classes and dollars of a regular expression."""


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return *pattern* with ``$`` as the very end, as in JSON Schema. Python's also matches before a last newline."""
    compiled_pattern = re.compile(pattern)
    if re.search(r"\(\?[a-z]*m", pattern):
        return compiled_pattern  # the end of a line is meant
    return re.compile(_REGEX_TOKENS.sub(lambda token: r"\Z" if token[0] == "$" else token[0], pattern))


def rule(key: str, bound: Any, schema: dict[str, Any]) -> Check:
    """Return the check of keyword *key* of *schema*, one of :data:`KEYWORDS`, with the value *bound*.

    Raises:
        SchemaDefinitionError: *bound* is a pattern that is not a regular expression.
    """
    if key in _NUMBER_RULES:
        holds, wording = _NUMBER_RULES[key]
        is_decimal = "decimal" in [each.get("format") for each in (schema, *schema.get("anyOf", ()))]

        def keeps(value: Any) -> bool:
            number = _number(value, is_decimal)
            if number is None:
                return True
            if type(number) is Decimal or (key == "multipleOf" and float in (type(bound), type(number))):
                return holds(Decimal(str(number)), Decimal(str(bound)))
            return holds(number, bound)

        return _where(keeps, wording.format(bound))
    if key in _SIZE_RULES:
        kind, fits, wording = _SIZE_RULES[key]
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
    """Take *value* unchanged."""
    return value


# ----------------------------------------------------------------------------------- check
# Check decoded JSON against a JSON Schema, and report ignored keys.
#
# A schema is compiled once into functions. Nothing is coerced. A key that is nearly a missing one is read as that key.


_SEPARATORS: Final = re.compile(r"[\s_-]+")
_CHECKED_KEYWORDS: Final = KEYWORDS | frozenset(
    ("type", "$ref", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "allOf",
     "anyOf", "oneOf", "propertyNames")
)  # fmt: skip
_DESCRIBING_KEYWORDS: Final = frozenset(
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
        refuse_doubtful: refuse an unknown key if an optional one is absent.
        further: the keywords that are checked elsewhere, where the check only advises. ``None`` for any.

    Raises:
        SchemaDefinitionError: it has a keyword that would not be checked, or is not a schema.
    """
    return _Compiler(schema, null_is_default, refuse_doubtful, further).compiled("#")


class _Compiler:
    def __init__(
        self, root: Any, null_is_default: bool, refuse_doubtful: bool, further: Container[str] | None
    ) -> None:
        self._outside_keywords = further
        self._root = root
        self._null_is_default = null_is_default
        self._refuse_doubtful = refuse_doubtful
        self._is_advice = False  # whether pydantic decides about the schema at hand
        self._checks_by_reference: dict[tuple[str, bool], list[Check]] = {}

    def compiled(self, reference: str) -> Check:
        """Return the check of the target of *reference*. It is compiled once, so that a schema may refer to itself."""
        key = reference, self._is_advice
        if key not in self._checks_by_reference:
            compiled_checks = self._checks_by_reference[key] = []
            schema = resolved(self._root, reference)
            if schema is None:
                raise SchemaDefinitionError(f"JSON Schema: {reference!r} leads nowhere in it")
            compiled_checks.append(self.of(schema))
        checks = self._checks_by_reference[key]
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
            advising_check = _advice(self.of(schema, fault))
            self._is_advice = False
            return advising_check
        check = self._of_keywords(schema, fault)
        types = _kinds(schema, self._root)
        return check if types is None or str in types or not types & {dict, list} else _opening(check, types)

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
            elif (
                key not in _CHECKED_KEYWORDS
                and key not in _DESCRIBING_KEYWORDS
                and not self._is_checked_elsewhere(key)
            ):
                raise UnsupportedKeywordError(
                    f"JSON Schema: the keyword {key!r} is not supported; install crosswalk-llm[jsonschema], which checks it"
                )
        return checks[0] if len(checks) == 1 else _all_of(checks)

    def _is_checked_elsewhere(self, keyword: str) -> bool:
        return self._is_advice and (
            keyword == DECIDES or self._outside_keywords is None or keyword in self._outside_keywords
        )

    def _of_object(self, schema: dict[str, Any]) -> Check:
        property_checks = {key: self.of(each) for key, each in schema.get("properties", {}).items()}
        required = frozenset(schema.get("required", ()))
        additional = schema.get("additionalProperties", True)
        additional_check = self.of(additional) if isinstance(additional, dict) else None
        further_keys: dict[str, str] = schema.get(KEYS) or {}  # that pydantic reads
        is_any = schema.get(KEYS, ()) is None or "patternProperties" in schema
        refuse_doubtful = self._refuse_doubtful
        keys_by_folded: dict[str, list[str]] = {}
        for key in property_checks:
            keys_by_folded.setdefault(folded_key(key), []).append(key)
        # A key that is required may have no schema.
        key_checks = [
            (key, step(key), property_checks.get(key, anything))
            for key in dict.fromkeys([*property_checks, *schema.get("required", ())])
        ]
        droppable_keys = frozenset(
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
            unknown_keys = [key for key in value if key not in property_checks and key not in further_keys]
            renamed_value = value
            if unknown_keys and additional_check is None and additional and property_checks and not is_any:
                renamed_value, unknown_keys = renamed(value, unknown_keys, path, report)
            checked_value = {}
            is_missing = is_defaulted = False
            for key, path_step, key_check in key_checks:
                if key in renamed_value:
                    item = renamed_value[key]
                    if item is not None or key not in droppable_keys:
                        checked_value[key] = key_check(item, path + path_step, report)
                elif key in required:
                    is_missing = True
                    report.is_incomplete = report.is_incomplete or schema.get(KEYS, ()) is not None
                    report.add("a required field is missing", path + path_step, Fault.MISSING)
                else:
                    is_defaulted = True
            if property_checks and additional_check is None and not is_any:
                report.defaulted[id(value)] = is_defaulted
            for key in unknown_keys:
                checked_value[key] = (
                    additional_check(renamed_value[key], path + step(key), report)
                    if additional_check
                    else renamed_value[key]
                )
            for key in further_keys.keys() & renamed_value.keys() - property_checks.keys():
                key_check = property_checks.get(further_keys[key], anything)
                checked_value[key] = key_check(renamed_value[key], path + step(key), report)
            if unknown_keys and additional_check is None and not is_any:
                is_strange = property_checks and not is_missing and len(unknown_keys) == len(renamed_value)
                if not additional or is_strange:
                    for key in unknown_keys:
                        report.add("unknown field", path + step(key), Fault.UNKNOWN)
                elif is_defaulted and refuse_doubtful:
                    for key in unknown_keys:
                        text = "unknown field beside an absent optional one"
                        report.add(text, path + step(key), Fault.UNKNOWN)
                elif property_checks:
                    report.unknown += [path + step(key) for key in unknown_keys]
            return checked_value

        def renamed(
            value: dict[str, Any], unknown_keys: list[str], path: str, report: Report
        ) -> tuple[dict[str, Any], list[str]]:
            folded_by_key = {key: folded_key(key) for key in unknown_keys}
            folded_counts = Counter(folded_by_key.values())
            new_names: dict[str, str] = {}
            for key, folded_form in folded_by_key.items():
                near_keys = keys_by_folded.get(folded_form, [])
                missing_names = [name for name in near_keys if name not in value]
                if len(missing_names) == 1 and folded_counts[folded_form] == 1:
                    new_names[key] = missing_names[0]
                    report.renamed.append((path + step(key), missing_names[0]))
                elif missing_names or any(value[name] != value[key] for name in near_keys):
                    report.add("several keys could be this one", path + step(near_keys[0]), Fault.DUPLICATE)
            if not new_names:
                return value, unknown_keys
            return {new_names.get(key, key): item for key, item in value.items()}, [
                k for k in unknown_keys if k not in new_names
            ]

        return check

    def _of_array(self, schema: dict[str, Any]) -> Check:
        first_checks = [self.of(each) for each in schema.get("prefixItems", ())]
        item_check = self.of(schema["items"]) if "items" in schema else anything

        def of_index(index: int) -> Check:
            return first_checks[index] if index < len(first_checks) else item_check

        def check(value: Any, path: str, report: Report) -> Any:
            if type(value) is not list:
                return value
            if report.growth is not None:
                return report.growth.checked(value, of_index, check, path, report)
            return [of_index(index)(each, f"{path}[{index}]", report) for index, each in enumerate(value)]

        return check

    def _of_union(self, members: list[Any], *, is_one: bool) -> Check:
        """The member that leaves the fewest keys unread counts. Otherwise the nearest gives the violations."""
        member_checks = [
            (self.of(member), _kinds(member, self._root), _is_null(member)) for member in members
        ]
        is_advice = self._is_advice or any(
            DECIDES in member for member in members if isinstance(member, dict)
        )
        takes_text_by_member = [types is None or str in types for _, types, _ in member_checks]
        expected = " or ".join(
            dict.fromkeys(name for member in members if not _is_null(member) for name in names_of(member))
        )
        if sum(not is_null for _, _, is_null in member_checks) > 1 and any(
            is_null for _, _, is_null in member_checks
        ):
            expected += " or null"

        tag, words = self._tag(members)

        def check(value: Any, path: str, report: Report) -> Any:
            attempts = []
            for index, (member_check, types, _) in enumerate(member_checks):
                if types is not None and type(value) not in types:
                    continue
                key = (id(value), id(member_check))
                if key not in report._seen or type(value) not in (dict, list):
                    part_report = report.apart()
                    report._seen[key] = member_check(value, path, part_report), part_report, value
                checked_value, part_report, _ = report._seen[key]
                attempts.append((part_report.distance(), index, checked_value, part_report))
            fitting_attempts = [each for each in attempts if not each[3].misfits()]
            if is_one and len(fitting_attempts) > 1:
                report.add("several of the allowed forms fit", path)
            if not fitting_attempts and not (
                attempts and (len(attempts) == 1 or type(value) in (dict, list))
            ):
                another_prefix = "another " if attempts else ""
                message = f"expected {expected}, got {another_prefix}{json_type_name(value)}"
                report.violations.append(Finding(message, path, Fault.TYPE, is_advice=is_advice))
                return value
            if (
                words
                and not fitting_attempts
                and type(value) is dict
                and tag in value
                and value[tag] not in words
            ):
                another_prefix = "another " if type(value[tag]) is str else ""
                message = f"expected {_either(words)}, got {another_prefix}{json_type_name(value[tag])}"
                report.violations.append(Finding(message, path + step(tag), Fault.TYPE, is_advice=is_advice))
                return value
            _, nearest_index, checked_value, part_report = min(
                fitting_attempts or attempts, key=lambda each: each[:2]
            )
            report.take(part_report)
            if type(checked_value) is ExactDecimal and any(
                takes_text_by_member[:nearest_index] + takes_text_by_member[nearest_index + 1 :]
            ):
                return ExactFloat(checked_value.text)  # as a text it would be taken for another member
            return checked_value

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


def _advice(inner_check: Check) -> Check:
    """*inner_check* where pydantic decides: only keys that nobody declared, or that are there twice, are refused."""

    def check(value: Any, path: str, report: Report) -> Any:
        part_report = report.apart()
        checked_value = inner_check(value, path, part_report)
        part_report.violations = [
            each if each.fault in (Fault.UNKNOWN, Fault.DUPLICATE) else attrs.evolve(each, is_advice=True)
            for each in part_report.violations
        ]
        report.take(part_report)
        return checked_value

    return check


def _opening(inner_check: Check, types: frozenset[type]) -> Check:
    """The check *inner_check* for a schema that admits no string: one that holds JSON of *types* can be opened."""
    containers = types & {dict, list}

    def check(value: Any, path: str, report: Report) -> Any:
        if type(value) is str and path != "$" and value.lstrip()[:1] in ("[", "{"):
            if report.open_string is None:
                report.has_closed = True
            elif type(opened_value := report.open_string(value)) in containers:
                report.opened.append(path)
                value = opened_value
        return inner_check(value, path, report)

    return check


def _of_keys(inner_check: Check) -> Check:
    def check(value: Any, path: str, report: Report) -> Any:
        for key in value if type(value) is dict else ():
            inner_check(key, path + step(key), report)
        return value

    return check


def _all_of(checks: list[Check]) -> Check:
    def check(value: Any, path: str, report: Report) -> Any:
        for one in checks:
            earlier_count = len(report.violations)
            value = one(value, path, report)
            if len(report.violations) > earlier_count:
                break
        return value

    return check


def folded_key(key: str) -> str:
    """*key* without case, blanks, ``-``, ``_`` and accents."""
    folded_text = _SEPARATORS.sub("", key.casefold())
    if folded_text.isascii():
        return folded_text
    # An accent stands above or below the character before it: a vowel of Hindi or a stroke does not.
    return "".join(
        each for each in unicodedata.normalize("NFD", folded_text) if unicodedata.combining(each) < 200
    )


def _is_nullable(schema: Any) -> bool:
    if not isinstance(schema, dict) or "null" in schema.get("type", ()) or None in schema.get("enum", ()):
        return True
    return not schema or any(map(_is_nullable, schema.get("anyOf", ())))


def resolved(root: Any, reference: str) -> Any:
    """Return the target of *reference* inside of *root*, or ``None`` if there is none."""
    root_part, *names = reference.split("/")
    target = root if root_part == "#" else None
    for name in names:
        target = target.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    return target


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
        member_schemas = schema["anyOf"] if "anyOf" in schema else schema["oneOf"]
        member_types = [_kinds(each, root, references) for each in member_schemas]
        if None in member_types:
            return None
        types = frozenset[type]().union(*(each for each in member_types if each is not None))
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


_COMPANION_KEYWORDS: Final = frozenset(("then", "else", "minContains", "maxContains", "$vocabulary"))
"""Keywords that others read."""


def _decision(schema: dict[str, Any]) -> tuple[frozenset[str], Callable[[Any, Any], Any]]:
    """The keywords that jsonschema checks, and the function that returns what fits *schema* and refuses all else."""
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    validator_class = validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
    except SchemaError as error:
        raise SchemaDefinitionError(f"JSON Schema: {error.json_path} breaks {error.validator}") from None
    # An empty registry: no reference leads out of the schema.
    format_checker = FormatChecker(formats=())
    for name, (read, _) in FORMATS.items():
        format_checker.checks(name, raises=(ValueError, OverflowError))(partial(_is_read, read))
    validator = validator_class(schema, registry=Registry(), format_checker=format_checker)

    def decide(value: Any, _: Any) -> Any:
        errors = islice(validator.iter_errors(value), MAX_FINDINGS)
        error_details = [
            {"type": str(error.validator), "loc": tuple(error.absolute_path)} for error in errors
        ]
        if error_details:
            raise SchemaRefusalError(error_details)
        return value

    return frozenset(validator_class.VALIDATORS) | _COMPANION_KEYWORDS, decide


def _is_read(read: Callable[[str], Any], value: object) -> bool:
    return not isinstance(value, str) or read(value) is not None
