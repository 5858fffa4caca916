"""Check decoded JSON against a JSON Schema, and report ignored keys.

A schema is compiled once into functions. Nothing is coerced. A key that is nearly a missing one is read as that key.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any, Final

from crosswalk.codec.layout import step
from crosswalk.schemas.json_schema import RULES
from crosswalk.schemas.report import Check, ExactFloat, Fault, Report, SchemaDefinitionError
from crosswalk.schemas.rules import KEYWORDS, TYPES, anything, names_of, of_type, of_words, rule
from crosswalk.text import json_type_name

_SEPARATORS: Final = re.compile(r"[\s_-]+")
_CHECKED: Final = KEYWORDS | frozenset(
    ("type", "$ref", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "allOf",
     "anyOf", "oneOf")
)  # fmt: skip
_TOLD: Final = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated",
     "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "discriminator", "nullable", "x-order")
)  # fmt: skip
"""Keywords that describe and do not check."""


def compile_schema(schema: Any, *, null_is_default: bool = False) -> Check:
    """Return the function that checks values against *schema*.

    Args:
        schema: a JSON Schema. ``$ref`` leads into itself alone.
        null_is_default: a null for an optional key that cannot be null stands for its default: strict mode of
            servers makes every key required.

    Raises:
        SchemaDefinitionError: it has a keyword that would not be checked, or is not a schema.
    """
    return _Compiler(schema, null_is_default).compiled("#")


class _Compiler:
    def __init__(self, root: Any, null_is_default: bool) -> None:
        self._root = root
        self._null_is_default = null_is_default
        self._by_reference: dict[str, list[Check]] = {}

    def compiled(self, reference: str) -> Check:
        """Return the check of the target of *reference*. It is compiled once, so that a schema may refer to itself."""
        if reference not in self._by_reference:
            results = self._by_reference[reference] = []
            schema = _resolved(self._root, reference)
            if schema is None:
                raise SchemaDefinitionError(f"JSON Schema: {reference!r} leads nowhere in it")
            results.append(self.of(schema))
        buffered = self._by_reference[reference]
        return buffered[0] if buffered else lambda value, path, report: buffered[0](value, path, report)

    def of(self, schema: Any, fault: Fault = Fault.TYPE) -> Check:
        if schema is True or schema == {}:
            return anything
        if schema is False:
            return lambda value, path, report: report.add("nothing may stand here", path)
        if not isinstance(schema, dict):
            raise SchemaDefinitionError(f"JSON Schema: a schema is an object, not {json_type_name(schema)}")
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
            elif key not in _CHECKED and key not in _TOLD:
                raise SchemaDefinitionError(f"JSON Schema: the keyword {key!r} is not supported")
        return checks[0] if len(checks) == 1 else _all_of(checks)

    def _of_object(self, schema: dict[str, Any]) -> Check:
        properties = {key: self.of(each) for key, each in schema.get("properties", {}).items()}
        required = frozenset(schema.get("required", ()))
        additional = schema.get("additionalProperties", True)
        other = self.of(additional) if isinstance(additional, dict) else None
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
            unknown = [key for key in value if key not in properties]
            result = value
            if unknown and other is None and additional and properties:
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
                    report.add("a required field is missing", path + at, Fault.MISSING)
                else:
                    is_defaulted = True
            if properties and other is None:
                report.defaulted[id(value)] = is_defaulted
            for key in unknown:
                made[key] = other(result[key], path + step(key), report) if other else result[key]
            if unknown and other is None:
                is_strange = properties and not is_missing and len(unknown) == len(result)
                if not additional or is_strange:
                    for key in unknown:
                        report.add("unknown field", path + step(key), Fault.UNKNOWN)
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

        def check(value: Any, path: str, report: Report) -> Any:
            if type(value) is not list:
                return value
            return [
                (first[at] if at < len(first) else item)(each, f"{path}[{at}]", report)
                for at, each in enumerate(value)
            ]

        return check

    def _of_union(self, members: list[Any], *, is_one: bool) -> Check:
        """The member that leaves the fewest keys unread counts. Otherwise the nearest gives the violations."""
        checks = [(self.of(member), _kinds(member, self._root), _is_null(member)) for member in members]
        expected = " or ".join(
            dict.fromkeys(name for member in members if not _is_null(member) for name in names_of(member))
        )
        if sum(not is_null for _, _, is_null in checks) > 1 and any(is_null for _, _, is_null in checks):
            expected += " or null"

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
                report.add(f"expected {expected}, got {another}{json_type_name(value)}", path)
                return value
            _, _, made, part = min(fitting or tried, key=lambda each: each[:2])
            report.take(part)
            return made

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


def _resolved(root: Any, reference: str) -> Any:
    """Return the target of *reference* inside of *root*, or ``None`` if there is none."""
    first, *names = reference.split("/")
    result = root if first == "#" else None
    for name in names:
        result = result.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(result, dict) else None
    return result


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _kinds(schema: Any, root: Any) -> frozenset[type] | None:
    """Return the types of decoded JSON that *schema* may take, or ``None`` if it may be any."""
    while isinstance(schema, dict) and "$ref" in schema:
        schema = _resolved(root, schema["$ref"])
    if not isinstance(schema, dict):
        return None
    if "enum" in schema or "const" in schema:
        return frozenset(type(word) for word in schema.get("enum", [schema.get("const")]))
    types = schema.get("type")
    if types is None:
        return None
    result = frozenset(
        kind for name in ([types] if isinstance(types, str) else types) for kind in TYPES.get(name, ())
    )
    return result | {ExactFloat} if float in result else result
