"""cattrs, taught to read any attrs class without coercing a value, and to say what is wrong and where."""

from __future__ import annotations

import functools
import threading
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal, TypeAlias

import attrs
from cattrs import BaseValidationError, Converter
from cattrs.errors import ClassValidationError
from cattrs.gen import make_dict_structure_fn

from crosswalk.codec.converter import configure_converter, enums_in
from crosswalk.codec.layout import CANONICAL, TAGS, union_members
from crosswalk.codec.problems import Problem, shortened, step
from crosswalk.errors import CrosswalkError
from crosswalk.structured.reason import ReasonCode
from crosswalk.structured.result import Violation
from crosswalk.text import clean_message, json_type_name

__all__ = [
    "REQUIRED",
    "is_answer_class",
    "json_key",
    "json_word",
    "required_keys",
    "strict_converter",
    "violations_in",
]

_Hook: TypeAlias = Callable[[Any, Any], Any]

_ARRAYS: Final = (list, tuple)

REQUIRED: Final = "required"
"""The key of a field's attrs metadata that makes its JSON key required although the field has a default."""


class _WrongKeysError(Exception):
    """Keys that an object lacks, or that its class forbids."""

    def __init__(self, keys: list[str], message: str, code: ReasonCode) -> None:
        super().__init__(message)
        self.keys = keys
        self.code = code


@functools.cache
def strict_converter(forbid_unknown: bool = False) -> Converter:
    """The converter for answers; it makes the hooks of a class when the class is first read.

    Its leaves are those of canonical JSON: nothing is coerced, save that a number may be written without a point.

    Args:
        forbid_unknown: refuse keys that a class does not have; else they are passed over.
    """
    converter = Converter(detailed_validation=True, use_alias=True)
    configure_converter(converter)
    on = converter.register_structure_hook_factory
    on(_is_union, _read_union)
    on(_is_dict_itself, _read_dict)
    on(lambda kind: kind in (list, tuple), lambda kind, _: _read_bare(list, kind, "array"))
    on(lambda kind: kind in (dict, Mapping), lambda _: _read_bare(dict, dict, "object"))
    on(_is_literal, lambda kind: _read_word(typing.get_args(kind)))
    on(_is_enum, lambda kind: _read_word(list(kind)))
    on(lambda kind: kind is date, lambda _: _read_date)
    converter.register_structure_hook(datetime, _time_reader(converter.get_structure_hook(datetime)))
    on(lambda kind: kind is NoneType, lambda _: _read_null)
    on(is_answer_class, functools.partial(_read_object, forbid_unknown))
    return converter


def is_answer_class(kind: Any) -> bool:
    """Whether *kind* is an attrs class, and none of the canonical types, which are read in their own way."""
    return isinstance(kind, type) and attrs.has(kind) and kind not in CANONICAL


def json_key(field: attrs.Attribute[Any]) -> str:
    """The key of *field* in JSON: its name, or the alias that it is given to the class by."""
    return field.alias or field.name


def required_keys(cls: type) -> frozenset[str]:
    """The keys that the JSON object of *cls* has to have."""
    return frozenset(
        json_key(field)
        for field in attrs.fields(cls)
        if field.init and (field.default is attrs.NOTHING or field.metadata.get(REQUIRED))
    )


# ------------------------------------------------------------------------------------------- objects


def _read_object(forbid_unknown: bool, cls: type, converter: Converter) -> _Hook:
    for hint in typing.get_type_hints(cls).values():
        for words in enums_in(hint):
            # One by one: by the predicate alone cattrs would take a StrEnum for the str that it is.
            converter.register_structure_hook(words, _read_word(list(words)))
    structure: _Hook = make_dict_structure_fn(cls, converter, _cattrs_use_alias=True)
    required = required_keys(cls)
    known = {json_key(field) for field in attrs.fields(cls) if field.init}

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        if not value.keys() >= required:  # the other way round takes longer
            missing = [key for key in known if key in required and key not in value]
            raise _WrongKeysError(
                sorted(missing), "a required field is missing", ReasonCode.SCHEMA_MISSING_FIELD
            )
        if forbid_unknown and not value.keys() <= known:
            unknown = [key for key in value if key not in known]
            raise _WrongKeysError(unknown, "unknown field", ReasonCode.SCHEMA_UNKNOWN_FIELD)
        return structure(value, cls)

    return read


# ------------------------------------------------------------------------------- unions and collections


def _is_union(kind: Any) -> bool:
    members = union_members(kind)
    return bool(members) and not all(member in TAGS for member in members)


def _read_union(kind: Any, converter: Converter) -> _Hook:
    """The members are tried one after the other: first the class that the value is most like, at first sight."""
    members = union_members(kind)
    classes = [member for member in members if is_answer_class(member)]
    is_object = [m for m in members if m in CANONICAL or _is_dict(m) or m in (dict, Mapping)]
    is_array = [m for m in members if (typing.get_origin(m) or m) in _ARRAYS]
    leaves = [m for m in members if m not in (*classes, *is_object, *is_array, NoneType)]
    is_nullable = NoneType in members
    is_optional = len(members) == 1 + is_nullable
    if is_optional and is_nullable and leaves:  # the commonest: one kind of leaf, or null
        read_leaf = converter.get_structure_hook(leaves[0])
        return lambda value, _: None if value is None else read_leaf(value, leaves[0])
    expected = " or ".join(_word(member) for member in members)

    def read(value: Any, _: Any) -> Any:
        if value is None and is_nullable:
            return None
        choices = leaves
        if type(value) is dict:
            choices = [*_by_likeness(classes, value), *is_object, *leaves]
        elif type(value) is list:
            choices = [*is_array, *leaves]
        problem: Exception | None = None
        for member in choices:
            try:
                return _read_once(converter, value, member)
            except RecursionError:
                raise
            except Exception as refused:  # what the nearest member says is what is told
                problem = problem or refused
        if problem is not None and (is_optional or type(value) in (dict, list)):
            raise problem
        raise Problem(f"expected {expected}, got {json_type_name(value)}")

    return read


class _Attempts(threading.local):
    """What the unions of the document at hand have tried.

    Attributes:
        failed: the objects and arrays that a member could not read, by identity; each is kept, so that no other
            takes its identity. ``None`` outside of any union.
    """

    failed: dict[tuple[int, Any], Any] | None = None


_attempts = _Attempts()


def _read_once(converter: Converter, value: Any, member: Any) -> Any:
    """*value* read as *member*, unless that has failed before: in a union inside of a union it would be tried again
    for each outer member, which takes time that doubles with every level of a recursive class."""
    if type(value) not in (dict, list):
        return converter.structure(value, member)
    is_outermost = _attempts.failed is None
    failed = {} if _attempts.failed is None else _attempts.failed
    _attempts.failed = failed
    try:
        if (id(value), member) in failed:
            raise Problem(f"expected {_word(member)}, got another {json_type_name(value)}")
        return converter.structure(value, member)
    except Exception:
        failed[id(value), member] = value
        raise
    finally:
        if is_outermost:
            _attempts.failed = None


def _by_likeness(classes: list[type], value: dict[str, Any]) -> list[type]:
    """*classes*, those first that *value* looks like: constants agree, required keys are there, most keys known."""

    def likeness(cls: type) -> tuple[bool, bool, int]:
        fields = [field for field in attrs.fields(cls) if field.init]
        agrees = all(
            any(_is_word(value[json_key(field)], word) for word in _words(field.type))
            for field in fields
            if _is_literal(field.type) and json_key(field) in value
        )
        return agrees, required_keys(cls) <= value.keys(), sum(json_key(field) in value for field in fields)

    return sorted(classes, key=likeness, reverse=True) if len(classes) > 1 else classes


def _word(kind: Any) -> str:
    words = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
    if _is_literal(kind):
        return " or ".join(shortened(repr(word)) for word in _words(kind))
    origin = typing.get_origin(kind) or kind
    if origin in (list, tuple):
        return "array"
    return words.get(kind) or ("object" if origin in (dict, Mapping) else kind.__name__)


def _is_dict(kind: Any) -> bool:
    return typing.get_origin(kind) in (dict, Mapping)


def _is_dict_itself(kind: Any) -> bool:
    return typing.get_origin(kind) in (dict,)


def _read_dict(kind: Any, converter: Converter) -> _Hook:
    # In JSON a dict is what a mapping is, which the codec reads.
    return converter.get_structure_hook(Mapping[typing.get_args(kind)])  # type: ignore[misc]


def _read_bare(expected: type, make: type, word: str) -> _Hook:
    def read(value: Any, _: Any) -> Any:
        if type(value) is not expected:
            raise Problem.wrong_type(word, value)
        return make(value)

    return read


# ---------------------------------------------------------------------------------------------- leaves


def _is_literal(kind: Any) -> bool:
    return typing.get_origin(kind) is Literal


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def json_word(word: Any) -> Any:
    """What stands in JSON for *word*, of a ``Literal`` or an enumeration."""
    return word.value if isinstance(word, Enum) else word


def _words(literal: Any) -> list[Any]:
    return [json_word(word) for word in typing.get_args(literal)]


def _is_word(value: Any, word: Any) -> bool:
    return type(value) is type(word) and bool(value == word)


def _read_word(members: typing.Sequence[Any]) -> _Hook:
    # By type too: Python takes 1, 1.0 and True for the same.
    by_word = {(type(json_word(member)), json_word(member)): member for member in members}
    expected = " or ".join(shortened(repr(json_word(member))) for member in members)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list | dict) and (type(value), value) in by_word:
            return by_word[type(value), value]
        same = any(type(value) is kind for kind, _ in by_word)
        raise Problem(f"expected {expected}, got {'another ' if same else ''}{json_type_name(value)}")

    return read


def _time_reader(read_time: _Hook) -> _Hook:
    def read(value: Any, kind: Any) -> Any:
        try:
            return read_time(value, kind)
        except Problem:  # it quotes the value
            raise Problem(f"expected an ISO 8601 time with its zone, got {json_type_name(value)}") from None

    return read


def _read_date(value: Any, _: Any) -> date:
    if type(value) is str:
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise Problem(f"expected an ISO 8601 date, got {json_type_name(value)}")


def _read_null(value: Any, _: Any) -> None:
    if value is not None:
        raise Problem.wrong_type("null", value)


# ------------------------------------------------------------------------------------------ what is wrong


def violations_in(error: BaseException, path: str = "$", owner: type | None = None) -> Iterator[Violation]:
    """What the converter's *error* says, place by place, without a value of the document.

    Args:
        error: what the converter raised.
        path: where, as a JSON path.
        owner: the class whose field is at *path*; ``None`` for none.
    """
    if isinstance(error, BaseValidationError):
        placed, whole = error.group_exceptions()  # type: ignore[attr-defined]
        for inner, note in placed:
            if isinstance(error, ClassValidationError):
                field = next(field for field in attrs.fields(error.cl) if field.name == note.name)
                yield from violations_in(inner, f"{path}{step(json_key(field))}", error.cl)
            else:
                yield from violations_in(inner, f"{path}{step(note.index)}", owner)
        for inner in whole:
            yield from violations_in(inner, path, error.cl)
    elif isinstance(error, _WrongKeysError):
        for key in error.keys:
            yield Violation(str(error), f"{path}{step(key)}", error.code)
    elif isinstance(error, RecursionError):
        yield Violation("nested too deeply", "$", ReasonCode.LIMIT_EXCEEDED)
    elif isinstance(error, Problem):
        # The codec quotes the words of its own types that it does not know.
        said = f"not a {owner.__name__}" if owner in CANONICAL and "'" in str(error) else str(error)
        yield Violation(said, f"{path}{error.at}")
    else:
        # The class itself refused: a validator, a converter or its __attrs_post_init__. What it says may quote the
        # value, unless it is an error of ours, which never does.
        field = next((each for each in error.args if isinstance(each, attrs.Attribute)), None)
        by = "its class" if owner is None else owner.__name__
        said = f"refused by {by} with {type(error).__name__}"
        if isinstance(error, CrosswalkError):
            said = clean_message(str(error), 200)
        code = ReasonCode.INVARIANT_VIOLATION
        yield Violation(said, path if field is None else f"{path}{step(json_key(field))}", code)
