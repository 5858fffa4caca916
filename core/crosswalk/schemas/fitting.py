"""Fits a JSON Schema to the server that gets it. Descriptions name the limits that the server does not check.

The rules of a server are a row ``[[schemas]]`` in the file of facts next to its plugin. This module knows the form of a row
and no server.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal

import attrs

from crosswalk.types.json import dump_json, load_json, step, thaw

Answer = Literal["json_schema", "json_object", "text"]
"""The forms of answer to ask a server for: one that follows a schema, any JSON object, or text."""

ANSWERS: Final[tuple[Answer, ...]] = ("json_schema", "json_object", "text")
"""All forms, the most precise first."""


def _is_unanchored(pattern: str) -> bool:
    """Whether *pattern* does not say both where a text begins and where it ends, in each alternative."""
    depth = 0
    for token in _TOKENS.findall(pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            return True
    return not re.fullmatch(r"\^(.*[^\\])?\$", pattern, re.DOTALL)


_TOKENS: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
"""The parts of a pattern: an escape, a class of characters, or a character."""
_CONSTRUCTS: Final[Mapping[str, Callable[[str], object]]] = {
    "lookaround": re.compile(r"\(\?<?[=!]").search,
    "groups": re.compile(r"\(\?").search,
    "backreference": re.compile(r"\\[1-9]|\(\?P=").search,
    "word_boundary": re.compile(r"\\[bB]").search,
    "classes": re.compile(r"\\[dDwWsS]").search,
    "anchors": re.compile(r"(?<![\\\[])[\^$]").search,
    "unanchored": _is_unanchored,
}
"""The parts of a pattern that some servers do not take."""


@attrs.frozen(kw_only=True, eq=False)
class SchemaRules:
    """The rules of a server for the JSON Schema of an answer or tool.

    Attributes:
        id: the name of the rules.
        models: the patterns of the models for which they hold, or empty for all others. A pattern with ``/`` is compared
            with the whole name.
        providers: the providers for which they hold, or empty for all that read the file.
        answer: what it takes for an answer.
        otherwise: what it is asked for in place of a schema that cannot be fitted.
        answer_with_tools: what it is asked for if the request has tools, or ``None`` if tools change nothing.
        streamed: the same for a stream.
        strict: ``holds`` if the rules hold for each schema, ``lifts`` if ``strict: false`` lifts them, ``never`` if it takes
            no ``strict: true``.
        tools: for which tools the rules hold: ``strict``, ``always`` or ``never``.
        takes: the keywords that it enforces.
        moves: those that it refuses, or takes without effect. The others are unknown: they are sent, and described as well.
        formats: the values of ``format`` that it enforces, or ``None`` if that is unknown.
        patterns_without: what makes it refuse or ignore a pattern.
        at_most: the greatest value of a keyword that it enforces.
        integers_only: the keywords that it enforces for integers and not for other numbers.
        is_alone: whether it enforces only one of a pattern, a format and a length.
        is_closed: whether it takes no object with keys that the schema does not name, and no value of any type.
        required: ``any``, ``all`` if each key must be required, ``one`` if one of each object.
        recursion: ``any``, ``none``, or ``optional`` if a type may contain itself only in keys that are not required.
        any_root: whether an answer need not be an object.
        is_ref_alone: whether ``$ref`` must be the only keyword.
        has_one_type: whether each schema must have one type, and one with ``anyOf`` or ``$ref`` none.
        is_shown: whether the model gets to see the schema.
        name: the pattern of a schema's name.
        most: the greatest number of ``properties``, of ``optional`` ones, of ``unions``, of values in ``enum``, and the
            greatest ``depth``.
        most_of_request: the greatest number of ``strict_tools`` in one request, and of ``properties``, ``optional`` ones and
            ``unions`` in all of its strict tools and its answer.
        sources: the sources of these rules.
        checked: the day on which this was read.
        note: what is disputed or unknown.
    """

    id: str = ""
    models: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    answer: Answer = "json_schema"
    otherwise: Answer = "text"
    answer_with_tools: Answer | None = None
    streamed: Answer | None = None
    strict: str = "holds"
    tools: str = "strict"
    takes: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()
    formats: tuple[str, ...] | None = None
    patterns_without: tuple[str, ...] = ()
    at_most: Mapping[str, int] = attrs.field(factory=dict)
    integers_only: tuple[str, ...] = ()
    is_alone: bool = False
    is_closed: bool = False
    required: str = "any"
    recursion: str = "any"
    any_root: bool = False
    is_ref_alone: bool = False
    has_one_type: bool = False
    is_shown: bool = True
    name: str = "[a-zA-Z0-9_-]{1,64}"
    most: Mapping[str, int] = attrs.field(factory=dict)
    most_of_request: Mapping[str, int] = attrs.field(factory=dict)
    sources: tuple[str, ...] = ()
    checked: date | None = None
    note: str = ""

    def excess(self, counts: Mapping[str, int]) -> str | None:
        """Return the first of *counts*, those of a whole request, that is too great, or ``None`` if none is."""
        for name, limit in self.most_of_request.items():
            if counts[name] > limit:
                return f"{counts[name]} {name.replace('_', ' ')} in one request (at most {limit})"
        return None

    def fitting_name(self, name: str) -> str:
        """Return *name* with ``_`` for each character that the server does not take, or without it if it takes no ``_``."""
        characters, _, length_text = self.name.rpartition("{1,")
        replacement = "_" if re.fullmatch(characters, "_") else ""
        fitted_name = "".join(
            each if re.fullmatch(characters, each, re.ASCII) else replacement for each in name
        )
        return fitted_name[: int(length_text[:-1])] or "answer"


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("answer", "otherwise", "answer_with_tools", "streamed"), ANSWERS),
    "strict": ("holds", "lifts", "never"),
    "tools": ("strict", "always", "never"),
    "required": ("any", "all", "one"),
    "recursion": ("any", "none", "optional"),
}
_FIELDS: Final = attrs.fields_dict(SchemaRules)
_LIST_FIELDS: Final = (
    "models", "providers", "takes", "moves", "formats", "patterns_without", "integers_only", "sources"
)  # fmt: skip
_COUNT_FIELDS: Final = ("at_most", "most", "most_of_request")
_NAME_PATTERN: Final = re.compile(r"\[[^\]]+\]\{1,[1-9][0-9]*\}")


@lru_cache(maxsize=64)
def rules_in(place: str) -> tuple[SchemaRules, ...]:
    """Return the rules in the file of facts *place*, ``package:path``.

    Raises:
        ValueError: a row means nothing. OSError, ImportError: the file does not exist.
    """
    import tomllib

    package, _, path = place.partition(":")
    content: dict[str, Any] = tomllib.loads(files(package).joinpath(path).read_text("utf-8"))
    return read_rules(content.get("schemas", []))


def default_rules(place: str, provider: str) -> SchemaRules:
    """Return the rules in *place* for the models of *provider* that no pattern names.

    Raises:
        ValueError: a row means nothing. OSError, ImportError: the file does not exist.
    """
    fitting_rules = (
        each for each in rules_in(place) if provider in (each.providers or (provider,)) and not each.models
    )
    return next(fitting_rules, SchemaRules())


def read_rules(rows: Any) -> tuple[SchemaRules, ...]:
    """Return the rules that *rows* describe.

    The fields that a row lacks come from the rules that ``like`` names: an earlier row, or the first row of another file.

    Raises:
        ValueError: a row means nothing. OSError, ImportError: the file does not exist.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("schemas must be tables: [[schemas]]")
    all_rules: list[SchemaRules] = []
    for index, row in enumerate(rows):
        fields = dict(row)
        try:
            base_rules = _base(str(fields.pop("like")), all_rules) if "like" in fields else SchemaRules()
            read_fields = {name: _read_field(name, value) for name, value in fields.items()}
        except ValueError as error:
            raise ValueError(f"schemas[{index}]: {error}") from None
        all_rules.append(attrs.evolve(base_rules, **{"models": (), "providers": (), **read_fields}))
    return tuple(all_rules)


def _base(name: str, earlier_rules: list[SchemaRules]) -> SchemaRules:
    if ":" in name:
        return rules_in(name)[0]
    for rules in earlier_rules:
        if rules.id == name:
            return rules
    raise ValueError(f"like: there is no earlier row {name!r:.60}")


def _read_field(name: str, value: Any) -> Any:
    if name not in _FIELDS:
        raise ValueError(f"there is no field {name!r:.40}")
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise ValueError(f"{name} must be one of {', '.join(_CHOICES[name])}")
        return value
    if name in _LIST_FIELDS:
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise ValueError(f"{name} must be a list of texts")
        if name == "patterns_without" and (unknown_words := set(value) - _CONSTRUCTS.keys()):
            raise ValueError(f"{name} has no word {min(unknown_words)!r:.40}")
        return tuple(value)
    if name in _COUNT_FIELDS:
        if not isinstance(value, dict) or not all(type(count) is int for count in value.values()):
            raise ValueError(f"{name} must be a table of whole numbers")
        return value
    expected_type = date if name == "checked" else type(_FIELDS[name].default)
    if type(value) is not expected_type:
        raise ValueError(f"{name} must be {expected_type.__name__}")
    if name == "name" and not _NAME_PATTERN.fullmatch(str(value)):
        raise ValueError("name must be a class of characters and their number: [a-z]{1,64}")
    return value


# --------------------------------------------------------------------------------- fitting

_DEFINITION_KEYWORDS: Final = ("$defs", "definitions")
_STRUCTURE_KEYWORDS: Final = frozenset(
    ("type", "properties", "required", "items", "enum", "description", "anyOf", "$ref", *_DEFINITION_KEYWORDS)
)
"""The keywords that every server takes if it takes a schema."""
_PART_KEYWORDS: Final = frozenset(("additionalProperties", "oneOf", "allOf", "prefixItems"))
_TYPE_KEYWORDS: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"))
_ANNOTATION_KEYWORDS: Final = frozenset(
    ("$schema", "$id", "$comment", "title", "discriminator", "deprecated", "readOnly", "writeOnly", "examples", "default")
)  # fmt: skip
_EXCLUSIVE_LIMITS: Final = {"exclusiveMinimum": ("minimum", 1, max), "exclusiveMaximum": ("maximum", -1, min)}
_LENGTH_KEYWORDS: Final = ("minLength", "maxLength")
_NULL_SCHEMA: Final = {"type": "null"}
_CHARACTERS: Final = {"\\d": "0-9", "\\w": "A-Za-z0-9_"}
_TYPE_NAMES: Final = {
    str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", dict: "object", list: "array"
}  # fmt: skip


@attrs.frozen
class FittedSchema:
    """A schema for one server.

    Attributes:
        schema: the schema to be sent.
        moved: for each keyword that the server does not check, the places with a description that names it.
        impossible: what the server cannot take in any form, each with its place. If there is any, *schema* cannot be used.
        is_object: whether its root is an object.
        counts: how many properties, optional ones, unions and values of enumerations *schema* has, and its depth.
    """

    schema: dict[str, Any]
    moved: Mapping[str, tuple[str, ...]]
    impossible: tuple[str, ...]
    is_object: bool = True
    counts: Counter[str] = attrs.field(factory=Counter)


def fit_schema(
    schema: Mapping[str, Any], rules: SchemaRules, *, is_answer: bool = True, null_is_absent: bool = False
) -> FittedSchema:
    """Return *schema* in a form that a server with *rules* takes.

    A value that is valid by *schema* is valid by that form as well, with a null for a key that is absent. Invalid schemas
    stay unchanged: the server says what is wrong with them.

    Args:
        schema: the plain schema with all its limits.
        rules: the rules of the server.
        is_answer: whether it describes an answer, and not the arguments of a tool.
        null_is_absent: whether who reads the value takes a null for an absent key, so that an optional key may be required.
    """
    plain_schema: dict[str, Any] = load_json(dump_json(schema, default=thaw))
    fitting = _Fitting(rules, null_is_absent)
    try:
        if not is_answer and plain_schema.get("type") == "object":  # a tool without parameters
            plain_schema.setdefault("properties", {})
        fitted_schema = fitting.whole(plain_schema, needs_object=not (is_answer and rules.any_root))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return FittedSchema(plain_schema, {}, ())
    moved = {keyword: tuple(places) for keyword, places in fitting.moved.items()}
    return FittedSchema(
        fitted_schema, moved, tuple(fitting.impossible), _is_object(fitted_schema), fitting.counts
    )


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and not {"anyOf", "oneOf", "allOf"} & schema.keys()


class _Fitting:
    def __init__(self, rules: SchemaRules, null_is_absent: bool) -> None:
        self._rules = rules
        self._null_is_absent = null_is_absent
        self._taken_keywords = _STRUCTURE_KEYWORDS | frozenset(rules.takes)
        self._recursive_references: frozenset[str] = frozenset()
        self.moved: dict[str, list[str]] = {}
        self.impossible: list[str] = []
        self.counts: Counter[str] = Counter()

    def whole(self, schema: dict[str, Any], *, needs_object: bool) -> dict[str, Any]:
        rules = self._rules
        self._recursive_references = frozenset(_recursive(schema))
        seen_references: list[str] = []
        while (reference := schema.get("$ref")) is not None and reference not in seen_references:
            seen_references.append(reference)
            schema = {**schema, **_target(schema, reference)}
            if schema["$ref"] == reference:
                del schema["$ref"]
        if needs_object and not _is_object(schema):
            self._refuse("a root that is no object", "$")
        if rules.recursion == "none" and self._recursive_references:
            self._refuse("a type that contains itself", "$")
        fitted_schema = self._of(schema, "$")
        self.counts = _counts(fitted_schema)
        for name, limit in rules.most.items():
            if self.counts[name] > limit:
                self._refuse(f"{name} {self.counts[name]} (at most {limit})", "$")
        return fitted_schema

    def _refuse(self, problem: str, place: str) -> None:
        self.impossible.append(f"{problem} at {place}")

    def _move(self, keyword: str, place: str) -> None:
        self.moved.setdefault(keyword, []).append(place)

    def _of(self, schema: Any, place: str) -> dict[str, Any]:
        if schema is False:
            self._refuse("no value", place)
        described_keywords: dict[str, Any] = {}
        schema = self._rewritten(dict(schema) if isinstance(schema, dict) else {}, place, described_keywords)
        fitted_schema: dict[str, Any] = {}
        is_plain = not (self._rules.has_one_type and {"anyOf", "$ref"} & schema.keys())
        for keyword, value in schema.items():
            if keyword in _STRUCTURE_KEYWORDS or keyword in _PART_KEYWORDS:
                fitted_schema[keyword] = self._part(keyword, value, place)
            elif keyword in _ANNOTATION_KEYWORDS or keyword.startswith("x-"):
                if keyword in self._taken_keywords and (is_plain or keyword == "title"):
                    fitted_schema[keyword] = value
                elif keyword in ("default", "examples") and value is not None:
                    described_keywords[keyword] = value
            else:
                is_enforced = self._is_enforced(keyword, value, schema)
                if is_enforced is not True:
                    described_keywords[keyword] = value
                if is_enforced is not False:
                    fitted_schema[keyword] = value
                else:
                    self._move(keyword, place)
                    if keyword.startswith("min") and keyword in self._rules.at_most:
                        fitted_schema[keyword] = self._rules.at_most[keyword]
        if fitted_schema.get("type") == "object" or "properties" in fitted_schema:
            self._fit_object(fitted_schema, place)
        if self._rules.is_closed or self._rules.has_one_type:
            self._need_type(fitted_schema, place)
        return _told(fitted_schema, described_keywords)

    def _is_enforced(self, keyword: str, value: Any, schema: Mapping[str, Any]) -> bool | None:
        """Whether the server enforces a limit, or ``None`` if that is unknown."""
        rules = self._rules
        if keyword in rules.moves:
            return False
        if keyword == "format" and rules.formats is not None and value not in rules.formats:
            return False
        if keyword == "pattern" and any(_CONSTRUCTS[name](value) for name in rules.patterns_without):
            return False
        if rules.is_alone and keyword in ("format", *_LENGTH_KEYWORDS):
            other_keywords = [
                other for other in ("pattern", "format") if other != keyword and other in schema
            ]
            if any(self._is_enforced(other, schema[other], {}) for other in other_keywords):
                return False
        if keyword in rules.at_most and value > rules.at_most[keyword]:
            return False
        if keyword in rules.integers_only and schema.get("type") != "integer":
            return False
        return True if keyword in self._taken_keywords else None

    def _rewritten(
        self, schema: dict[str, Any], place: str, described_keywords: dict[str, Any]
    ) -> dict[str, Any]:
        """Return *schema* in other words that mean the same, where the server does not take those that it has."""
        rules, taken_keywords = self._rules, self._taken_keywords
        if "allOf" in schema and "allOf" not in taken_keywords:
            members = schema.pop("allOf")
            if len(members) == 1 and isinstance(members[0], dict) and not members[0].keys() & schema.keys():
                schema |= members[0]
            else:
                self._refuse("allOf", place)
        if "oneOf" in schema and "oneOf" not in taken_keywords:
            if "anyOf" in schema:
                self._refuse("oneOf beside anyOf", place)
            schema["anyOf"] = schema.pop("oneOf")
        if "const" in schema and "const" not in taken_keywords:
            schema["enum"] = [schema.pop("const")]
        if "patternProperties" in schema and "patternProperties" not in taken_keywords:
            described_keywords["patternProperties"] = schema.pop("patternProperties")
            self._move("patternProperties", place)
            schema["additionalProperties"] = {} if rules.has_one_type else True
            if rules.is_closed:
                self._refuse("patternProperties", place)
        if "prefixItems" in schema and "prefixItems" not in taken_keywords:
            self._spread_items(schema, place, described_keywords)
        for exclusive_keyword, (inclusive_keyword, offset, tighter) in _EXCLUSIVE_LIMITS.items():
            bound: Any = schema.get(exclusive_keyword)
            is_written = (
                type(bound) in (int, float) and self._is_enforced(exclusive_keyword, bound, schema) is False
            )
            if is_written and self._is_enforced(inclusive_keyword, bound, schema):
                if schema.get("type") == "integer" and type(bound) is int:
                    del schema[exclusive_keyword]
                    bound += offset
                schema[inclusive_keyword] = tighter(bound, schema.get(inclusive_keyword, bound))
        if "classes" in rules.patterns_without and "pattern" in schema:
            schema["pattern"] = _spelled_out(schema["pattern"])
        if rules.has_one_type:
            schema = _with_one_type(schema)
        is_alone = rules.is_ref_alone or rules.has_one_type
        if is_alone and "$ref" in schema and len(schema.keys() - (_ANNOTATION_KEYWORDS - {"default"})) > 1:
            schema["anyOf"] = [{"$ref": schema.pop("$ref")}, *schema.get("anyOf", ())]
        return schema

    def _spread_items(self, schema: dict[str, Any], place: str, described_keywords: dict[str, Any]) -> None:
        """Write an array of fixed positions as one with items of any of their types."""
        items = schema.pop("prefixItems")
        described_keywords["prefixItems"] = items
        self._move("prefixItems", place)
        other_items = schema.pop("items", True)
        is_fixed = other_items is False or schema.get("maxItems") == len(items)
        item_schemas = [*items, *([] if is_fixed else [other_items])]
        distinct_schemas = [
            item_schema
            for index, item_schema in enumerate(item_schemas)
            if item_schema not in item_schemas[:index]
        ]
        if True not in distinct_schemas:
            schema["items"] = (
                distinct_schemas[0] if len(distinct_schemas) == 1 else {"anyOf": distinct_schemas}
            )
        if other_items is False:
            schema.setdefault("maxItems", len(items))

    def _part(self, keyword: str, value: Any, place: str) -> Any:
        if keyword == "properties":
            return {name: self._of(inner, place + step(name)) for name, inner in value.items()}
        if keyword in ("$defs", "definitions"):
            return {name: self._of(inner, f"$defs{step(name)}") for name, inner in value.items()}
        if keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
            return [self._of(inner, place) for inner in value]
        if keyword == "$ref" and not value.startswith("#"):
            self._refuse("a reference to another document", place)
        if isinstance(value, dict) and keyword in ("items", "additionalProperties"):
            return self._of(value, f"{place}[]" if keyword == "items" else f"{place}.*")
        return value

    def _fit_object(self, fitted_schema: dict[str, Any], place: str) -> None:
        rules = self._rules
        properties = fitted_schema.get("properties", {})
        required = fitted_schema.get("required", [])
        if rules.is_closed:
            if isinstance(fitted_schema.get("additionalProperties"), dict):
                self._refuse("a map", place)
            if (
                not properties
                and fitted_schema.get("additionalProperties", "properties" not in fitted_schema) is True
            ):
                self._refuse("an object of any keys", place)
            if not properties.keys() >= set(required):
                self._refuse("a required key without a schema", place)
            fitted_schema |= {"type": "object", "properties": properties, "additionalProperties": False}
        if rules.recursion == "optional":
            recursive_keys = [
                key
                for key in required
                if self._recursive_references.intersection(_references(properties.get(key)))
            ]
            if recursive_keys:
                fitted_schema["required"] = required = [key for key in required if key not in recursive_keys]
                for key in recursive_keys:
                    self._move("required", place + step(key))
                    properties[key] = _told(properties[key], {"required": True})
        if rules.required == "all":
            new_required = list(properties)
        elif rules.required == "one" and not required:
            new_required = list(properties)[:1]
            if not new_required:
                self._refuse("an object that requires no key", place)
        else:
            return
        for key in new_required:
            if key not in required:
                if not self._null_is_absent:
                    self._refuse("an optional key", place + step(key))
                properties[key] = _nullable(properties[key])
        fitted_schema["required"] = new_required

    def _need_type(self, fitted_schema: dict[str, Any], place: str) -> None:
        if not _TYPE_KEYWORDS & fitted_schema.keys():
            self._refuse("any value", place)
        if (
            self._rules.is_closed
            and fitted_schema.get("type") == "array"
            and not {"items", "prefixItems"} & fitted_schema.keys()
        ):
            self._refuse("an array of any items", place)


def _told(schema: dict[str, Any], described_keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return *schema* with *described_keywords* at the end of its description: ``Your age. {minimum: 0, maximum: 150}``."""
    if not described_keywords:
        return schema
    keywords_text = ", ".join(
        f"{keyword}: {dump_json(value).decode()}" for keyword, value in described_keywords.items()
    )
    text = schema.get("description")
    return {**schema, "description": f"{text} {{{keywords_text}}}" if text else f"{{{keywords_text}}}"}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if _NULL_SCHEMA in schema.get("anyOf", ()) or "null" in schema.get("type", ()):
        return schema
    schema = dict(schema)
    description_field = {"description": schema.pop("description")} if "description" in schema else {}
    members = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    return {"anyOf": [*members, _NULL_SCHEMA], **description_field}


def _spelled_out(pattern: str) -> str:
    """Return *pattern* with ``[0-9]`` for ``\\d`` and ``[A-Za-z0-9_]`` for ``\\w``."""
    parts = []
    for token in _TOKENS.findall(pattern):
        if len(token) > 2:  # a class
            token = re.sub(r"\\.", lambda escape: _CHARACTERS.get(escape[0], escape[0]), token)
        elif token in _CHARACTERS:
            token = f"[{_CHARACTERS[token]}]"
        parts.append(token)
    return "".join(parts)


def _with_one_type(schema: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* with one type in each part."""
    if "enum" in schema:
        values_by_type: dict[str, list[Any]] = {}
        for value in schema["enum"]:
            values_by_type.setdefault(_TYPE_NAMES[type(value)], []).append(value)
        members = [{"type": name, "enum": values} for name, values in values_by_type.items()]
        other_keywords = {key: value for key, value in schema.items() if key not in ("type", "enum")}
    elif isinstance(schema.get("type"), list):
        other_keywords = {
            key: value for key, value in schema.items() if key in ("description", *_ANNOTATION_KEYWORDS)
        }
        member_keywords = {
            key: value for key, value in schema.items() if key not in other_keywords and key != "type"
        }
        members = [{"type": name, **member_keywords} for name in schema["type"]]
    else:
        return {
            key: value
            for key, value in schema.items()
            if key != "type" or not {"anyOf", "$ref"} & schema.keys()
        }
    return {**other_keywords, **(members[0] if len(members) == 1 else {"anyOf": members})}


def _references(schema: Any) -> Iterator[str]:
    """The references in *schema*, without its definitions."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for keyword, value in schema.items():
            if keyword not in _DEFINITION_KEYWORDS:
                yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _recursive(schema: dict[str, Any]) -> Iterator[str]:
    """The references to what contains itself."""
    references_by_target = {"#": {*_references(schema)}}
    for part in _DEFINITION_KEYWORDS:
        references_by_target |= {
            f"#/{part}/{name}": {*_references(each)} for name, each in schema.get(part, {}).items()
        }
    for reference in references_by_target:
        found_references, pending = set[str](), [*references_by_target[reference]]
        while pending:
            if (one := pending.pop()) not in found_references:
                found_references.add(one)
                pending += references_by_target.get(one, ())
        if reference in found_references:
            yield reference


def _target(schema: dict[str, Any], reference: str) -> dict[str, Any]:
    """The definition of *reference*, or an empty schema if that is not one of the definitions."""
    _, part, name = (*reference.split("/", 2), "", "")[:3]
    definition = schema.get(part, {}).get(name) if part in _DEFINITION_KEYWORDS else None
    return definition if isinstance(definition, dict) else {}


def _counts(schema: Any, depth: int = 0) -> Counter[str]:
    """Return how many properties, optional ones, unions and values of enumerations *schema* has, and its depth."""
    counts: Counter[str] = Counter()
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            depth += 1
            counts["properties"] += len(properties)
            counts["optional"] += len(properties.keys() - set(schema.get("required", ())))
        counts["unions"] += "anyOf" in schema or isinstance(schema.get("type"), list)
        counts["enum"] += len(schema.get("enum", ()))
    inner_schemas = (
        schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    )
    max_depth = depth
    for each in inner_schemas:
        inner_counts = _counts(each, depth)
        max_depth = max(max_depth, inner_counts.pop("depth", 0))
        counts += inner_counts
    counts["depth"] = max_depth
    return counts
