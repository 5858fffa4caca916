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
import orjson

from crosswalk.types.json import step, thaw

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
        sources: who says so.
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
        for name, most in self.most_of_request.items():
            if counts[name] > most:
                return f"{counts[name]} {name.replace('_', ' ')} in one request (at most {most})"
        return None

    def fitting_name(self, name: str) -> str:
        """Return *name* with ``_`` for each character that the server does not take, or without it if it takes no ``_``."""
        characters, _, length = self.name.rpartition("{1,")
        blank = "_" if re.fullmatch(characters, "_") else ""
        fitted = "".join(each if re.fullmatch(characters, each, re.ASCII) else blank for each in name)
        return fitted[: int(length[:-1])] or "answer"


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("answer", "otherwise", "answer_with_tools", "streamed"), ANSWERS),
    "strict": ("holds", "lifts", "never"),
    "tools": ("strict", "always", "never"),
    "required": ("any", "all", "one"),
    "recursion": ("any", "none", "optional"),
}
_FIELDS: Final = attrs.fields_dict(SchemaRules)
_LISTS: Final = (
    "models", "providers", "takes", "moves", "formats", "patterns_without", "integers_only", "sources"
)  # fmt: skip
_COUNTS: Final = ("at_most", "most", "most_of_request")
_NAME: Final = re.compile(r"\[[^\]]+\]\{1,[1-9][0-9]*\}")


@lru_cache(maxsize=64)
def rules_in(place: str) -> tuple[SchemaRules, ...]:
    """Return the rules in the file of facts *place*, ``package:path``.

    Raises:
        ValueError: a row means nothing. OSError, ImportError: there is no such file.
    """
    import tomllib

    package, _, path = place.partition(":")
    content: dict[str, Any] = tomllib.loads(files(package).joinpath(path).read_text("utf-8"))
    return read_rules(content.get("schemas", []))


def default_rules(place: str, provider: str) -> SchemaRules:
    """Return the rules in *place* for the models of *provider* that no pattern names.

    Raises:
        ValueError: a row means nothing. OSError, ImportError: there is no such file.
    """
    fitting = (
        each for each in rules_in(place) if provider in (each.providers or (provider,)) and not each.models
    )
    return next(fitting, SchemaRules())


def read_rules(rows: Any) -> tuple[SchemaRules, ...]:
    """Return the rules that *rows* describe.

    The fields that a row lacks come from the rules that ``like`` names: an earlier row, or the first row of another file.

    Raises:
        ValueError: a row means nothing. OSError, ImportError: there is no such file.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("schemas must be tables: [[schemas]]")
    results: list[SchemaRules] = []
    for number, row in enumerate(rows):
        fields = dict(row)
        try:
            base = _base(str(fields.pop("like")), results) if "like" in fields else SchemaRules()
            read = {name: _read_field(name, value) for name, value in fields.items()}
        except ValueError as error:
            raise ValueError(f"schemas[{number}]: {error}") from None
        results.append(attrs.evolve(base, **{"models": (), "providers": (), **read}))
    return tuple(results)


def _base(name: str, earlier: list[SchemaRules]) -> SchemaRules:
    if ":" in name:
        return rules_in(name)[0]
    for rules in earlier:
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
    if name in _LISTS:
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise ValueError(f"{name} must be a list of texts")
        if name == "patterns_without" and (strange := set(value) - _CONSTRUCTS.keys()):
            raise ValueError(f"{name} has no word {min(strange)!r:.40}")
        return tuple(value)
    if name in _COUNTS:
        if not isinstance(value, dict) or not all(type(count) is int for count in value.values()):
            raise ValueError(f"{name} must be a table of whole numbers")
        return value
    kind = date if name == "checked" else type(_FIELDS[name].default)
    if type(value) is not kind:
        raise ValueError(f"{name} must be {kind.__name__}")
    if name == "name" and not _NAME.fullmatch(str(value)):
        raise ValueError("name must be a class of characters and their number: [a-z]{1,64}")
    return value


# --------------------------------------------------------------------------------- fitting

_DEFINITIONS: Final = ("$defs", "definitions")
_STRUCTURE: Final = frozenset(
    ("type", "properties", "required", "items", "enum", "description", "anyOf", "$ref", *_DEFINITIONS)
)
"""The keywords that every server takes if it takes a schema."""
_PARTS: Final = frozenset(("additionalProperties", "oneOf", "allOf", "prefixItems"))
_TYPED: Final = frozenset(("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"))
_ANNOTATIONS: Final = frozenset(
    ("$schema", "$id", "$comment", "title", "discriminator", "deprecated", "readOnly", "writeOnly", "examples", "default")
)  # fmt: skip
_EXCLUSIVE: Final = {"exclusiveMinimum": ("minimum", 1, max), "exclusiveMaximum": ("maximum", -1, min)}
_LENGTHS: Final = ("minLength", "maxLength")
_NULL: Final = {"type": "null"}
_CHARACTERS: Final = {"\\d": "0-9", "\\w": "A-Za-z0-9_"}
_TYPE_NAMES: Final = {
    str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", dict: "object", list: "array"
}  # fmt: skip


@attrs.frozen
class FittedSchema:
    """A schema for one server.

    Attributes:
        schema: the schema to be sent.
        moved: for each keyword that the server does not check, the places whose descriptions name it.
        impossible: what the server cannot take in any form, each with its place. If there is something, *schema* is no use.
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
    plain: dict[str, Any] = orjson.loads(orjson.dumps(schema, default=thaw))
    fitting = _Fitting(rules, null_is_absent)
    try:
        if not is_answer and plain.get("type") == "object":  # a tool without parameters
            plain.setdefault("properties", {})
        fitted = fitting.whole(plain, needs_object=not (is_answer and rules.any_root))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return FittedSchema(plain, {}, ())
    moved = {keyword: tuple(places) for keyword, places in fitting.moved.items()}
    return FittedSchema(fitted, moved, tuple(fitting.impossible), _is_object(fitted), fitting.counts)


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and not {"anyOf", "oneOf", "allOf"} & schema.keys()


class _Fitting:
    def __init__(self, rules: SchemaRules, null_is_absent: bool) -> None:
        self._rules = rules
        self._null_is_absent = null_is_absent
        self._takes = _STRUCTURE | frozenset(rules.takes)
        self._recursive: frozenset[str] = frozenset()
        self.moved: dict[str, list[str]] = {}
        self.impossible: list[str] = []
        self.counts: Counter[str] = Counter()

    def whole(self, schema: dict[str, Any], *, needs_object: bool) -> dict[str, Any]:
        rules = self._rules
        self._recursive = frozenset(_recursive(schema))
        seen: list[str] = []
        while (reference := schema.get("$ref")) is not None and reference not in seen:
            seen.append(reference)
            schema = {**schema, **_target(schema, reference)}
            if schema["$ref"] == reference:
                del schema["$ref"]
        if needs_object and not _is_object(schema):
            self._refuse("a root that is no object", "$")
        if rules.recursion == "none" and self._recursive:
            self._refuse("a type that contains itself", "$")
        fitted = self._of(schema, "$")
        self.counts = _counts(fitted)
        for name, most in rules.most.items():
            if self.counts[name] > most:
                self._refuse(f"{name} {self.counts[name]} (at most {most})", "$")
        return fitted

    def _refuse(self, what: str, place: str) -> None:
        self.impossible.append(f"{what} at {place}")

    def _move(self, keyword: str, place: str) -> None:
        self.moved.setdefault(keyword, []).append(place)

    def _of(self, schema: Any, place: str) -> dict[str, Any]:
        if schema is False:
            self._refuse("no value", place)
        said: dict[str, Any] = {}
        schema = self._rewritten(dict(schema) if isinstance(schema, dict) else {}, place, said)
        result: dict[str, Any] = {}
        is_plain = not (self._rules.has_one_type and {"anyOf", "$ref"} & schema.keys())
        for keyword, value in schema.items():
            if keyword in _STRUCTURE or keyword in _PARTS:
                result[keyword] = self._part(keyword, value, place)
            elif keyword in _ANNOTATIONS or keyword.startswith("x-"):
                if keyword in self._takes and (is_plain or keyword == "title"):
                    result[keyword] = value
                elif keyword in ("default", "examples") and value is not None:
                    said[keyword] = value
            else:
                is_enforced = self._is_enforced(keyword, value, schema)
                if is_enforced is not True:
                    said[keyword] = value
                if is_enforced is not False:
                    result[keyword] = value
                else:
                    self._move(keyword, place)
                    if keyword.startswith("min") and keyword in self._rules.at_most:
                        result[keyword] = self._rules.at_most[keyword]
        if result.get("type") == "object" or "properties" in result:
            self._fit_object(result, place)
        if self._rules.is_closed or self._rules.has_one_type:
            self._need_type(result, place)
        return _told(result, said)

    def _is_enforced(self, keyword: str, value: Any, schema: Mapping[str, Any]) -> bool | None:
        """Whether the server enforces a limit, or ``None`` if that is unknown."""
        rules = self._rules
        if keyword in rules.moves:
            return False
        if keyword == "format" and rules.formats is not None and value not in rules.formats:
            return False
        if keyword == "pattern" and any(_CONSTRUCTS[name](value) for name in rules.patterns_without):
            return False
        if rules.is_alone and keyword in ("format", *_LENGTHS):
            beside = [other for other in ("pattern", "format") if other != keyword and other in schema]
            if any(self._is_enforced(other, schema[other], {}) for other in beside):
                return False
        if keyword in rules.at_most and value > rules.at_most[keyword]:
            return False
        if keyword in rules.integers_only and schema.get("type") != "integer":
            return False
        return True if keyword in self._takes else None

    def _rewritten(self, schema: dict[str, Any], place: str, said: dict[str, Any]) -> dict[str, Any]:
        """Return *schema* in other words that mean the same, where the server does not take those that it has."""
        rules, takes = self._rules, self._takes
        if "allOf" in schema and "allOf" not in takes:
            members = schema.pop("allOf")
            if len(members) == 1 and isinstance(members[0], dict) and not members[0].keys() & schema.keys():
                schema |= members[0]
            else:
                self._refuse("allOf", place)
        if "oneOf" in schema and "oneOf" not in takes:
            if "anyOf" in schema:
                self._refuse("oneOf beside anyOf", place)
            schema["anyOf"] = schema.pop("oneOf")
        if "const" in schema and "const" not in takes:
            schema["enum"] = [schema.pop("const")]
        if "patternProperties" in schema and "patternProperties" not in takes:
            said["patternProperties"] = schema.pop("patternProperties")
            self._move("patternProperties", place)
            schema["additionalProperties"] = {} if rules.has_one_type else True
            if rules.is_closed:
                self._refuse("patternProperties", place)
        if "prefixItems" in schema and "prefixItems" not in takes:
            self._spread_items(schema, place, said)
        for exclusive, (inclusive, by, tighter) in _EXCLUSIVE.items():
            bound: Any = schema.get(exclusive)
            is_written = type(bound) in (int, float) and self._is_enforced(exclusive, bound, schema) is False
            if is_written and self._is_enforced(inclusive, bound, schema):
                if schema.get("type") == "integer" and type(bound) is int:
                    del schema[exclusive]
                    bound += by
                schema[inclusive] = tighter(bound, schema.get(inclusive, bound))
        if "classes" in rules.patterns_without and "pattern" in schema:
            schema["pattern"] = _spelled_out(schema["pattern"])
        if rules.has_one_type:
            schema = _with_one_type(schema)
        is_alone = rules.is_ref_alone or rules.has_one_type
        if is_alone and "$ref" in schema and len(schema.keys() - (_ANNOTATIONS - {"default"})) > 1:
            schema["anyOf"] = [{"$ref": schema.pop("$ref")}, *schema.get("anyOf", ())]
        return schema

    def _spread_items(self, schema: dict[str, Any], place: str, said: dict[str, Any]) -> None:
        """Write an array of fixed positions as one whose items are any of theirs."""
        items = schema.pop("prefixItems")
        said["prefixItems"] = items
        self._move("prefixItems", place)
        further = schema.pop("items", True)
        is_fixed = further is False or schema.get("maxItems") == len(items)
        kinds = [*items, *([] if is_fixed else [further])]
        distinct = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
        if True not in distinct:
            schema["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        if further is False:
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

    def _fit_object(self, result: dict[str, Any], place: str) -> None:
        rules = self._rules
        properties = result.get("properties", {})
        required = result.get("required", [])
        if rules.is_closed:
            if isinstance(result.get("additionalProperties"), dict):
                self._refuse("a map", place)
            if not properties and result.get("additionalProperties", "properties" not in result) is True:
                self._refuse("an object of any keys", place)
            if not properties.keys() >= set(required):
                self._refuse("a required key without a schema", place)
            result |= {"type": "object", "properties": properties, "additionalProperties": False}
        if rules.recursion == "optional":
            inside = [
                key for key in required if self._recursive.intersection(_references(properties.get(key)))
            ]
            if inside:
                result["required"] = required = [key for key in required if key not in inside]
                for key in inside:
                    self._move("required", place + step(key))
                    properties[key] = _told(properties[key], {"required": True})
        if rules.required == "all":
            wanted = list(properties)
        elif rules.required == "one" and not required:
            wanted = list(properties)[:1]
            if not wanted:
                self._refuse("an object that requires no key", place)
        else:
            return
        for key in wanted:
            if key not in required:
                if not self._null_is_absent:
                    self._refuse("an optional key", place + step(key))
                properties[key] = _nullable(properties[key])
        result["required"] = wanted

    def _need_type(self, result: dict[str, Any], place: str) -> None:
        if not _TYPED & result.keys():
            self._refuse("any value", place)
        if (
            self._rules.is_closed
            and result.get("type") == "array"
            and not {"items", "prefixItems"} & result.keys()
        ):
            self._refuse("an array of any items", place)


def _told(schema: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return *schema* with *said* at the end of its description: ``Your age. {minimum: 0, maximum: 150}``."""
    if not said:
        return schema
    limits = ", ".join(f"{keyword}: {orjson.dumps(value).decode()}" for keyword, value in said.items())
    text = schema.get("description")
    return {**schema, "description": f"{text} {{{limits}}}" if text else f"{{{limits}}}"}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if _NULL in schema.get("anyOf", ()) or "null" in schema.get("type", ()):
        return schema
    schema = dict(schema)
    text = {"description": schema.pop("description")} if "description" in schema else {}
    members = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    return {"anyOf": [*members, _NULL], **text}


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
        by_type: dict[str, list[Any]] = {}
        for value in schema["enum"]:
            by_type.setdefault(_TYPE_NAMES[type(value)], []).append(value)
        members = [{"type": name, "enum": values} for name, values in by_type.items()]
        rest = {key: value for key, value in schema.items() if key not in ("type", "enum")}
    elif isinstance(schema.get("type"), list):
        rest = {key: value for key, value in schema.items() if key in ("description", *_ANNOTATIONS)}
        kept = {key: value for key, value in schema.items() if key not in rest and key != "type"}
        members = [{"type": name, **kept} for name in schema["type"]]
    else:
        return {
            key: value
            for key, value in schema.items()
            if key != "type" or not {"anyOf", "$ref"} & schema.keys()
        }
    return {**rest, **(members[0] if len(members) == 1 else {"anyOf": members})}


def _references(schema: Any) -> Iterator[str]:
    """The references in *schema*, without its definitions."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for keyword, value in schema.items():
            if keyword not in _DEFINITIONS:
                yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _recursive(schema: dict[str, Any]) -> Iterator[str]:
    """The references to what contains itself."""
    inside = {"#": {*_references(schema)}}
    for part in _DEFINITIONS:
        inside |= {f"#/{part}/{name}": {*_references(each)} for name, each in schema.get(part, {}).items()}
    for reference in inside:
        found, todo = set[str](), [*inside[reference]]
        while todo:
            if (one := todo.pop()) not in found:
                found.add(one)
                todo += inside.get(one, ())
        if reference in found:
            yield reference


def _target(schema: dict[str, Any], reference: str) -> dict[str, Any]:
    """The definition of *reference*, or an empty schema if that is not one of the definitions."""
    _, part, name = (*reference.split("/", 2), "", "")[:3]
    found = schema.get(part, {}).get(name) if part in _DEFINITIONS else None
    return found if isinstance(found, dict) else {}


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
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    deepest = depth
    for each in inner:
        below = _counts(each, depth)
        deepest = max(deepest, below.pop("depth", 0))
        counts += below
    counts["depth"] = deepest
    return counts
