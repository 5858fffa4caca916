"""Any attrs class of a program: read from JSON without coercing a value."""

from __future__ import annotations

import functools
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal

import attrs

from crosswalk.codec.canonical import KINDS, LEAVES
from crosswalk.codec.kinds import (
    Array,
    Field,
    Kind,
    Kinds,
    MapOf,
    Object,
    Refused,
)
from crosswalk.codec.layout import CANONICAL, union_members
from crosswalk.codec.problems import Problem, shortened
from crosswalk.text import json_type_name

__all__ = [
    "REQUIRED",
    "class_kinds",
    "is_class",
    "json_key",
    "json_word",
    "required_keys",
]

REQUIRED: Final = "required"
"""The key of a field's attrs metadata that makes its JSON key required although the field has a default."""


@functools.cache
def class_kinds(forbid_unknown: bool = False) -> Kinds:
    """The kinds of what an attrs class may hold.

    Their leaves are those of canonical JSON: nothing is coerced, save that a number may be written without a point.

    Args:
        forbid_unknown: refuse keys that a class does not have; else they are passed over.
    """

    def own(kind: Any) -> Kind | None:
        cls = typing.get_origin(kind) or kind
        if is_class(cls):
            return Object(
                cls, lambda: _fields(cls, typing.get_args(kind)), kinds, forbid_unknown=forbid_unknown
            )
        if kind in CANONICAL:
            return _Canonical(kind)
        if typing.get_origin(kind) is Literal:
            return _Word(typing.get_args(kind))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return _Word(list(kind))
        members = [member for member in union_members(kind) if member is not NoneType]
        return _Union(kind, members, kinds) if len(members) > 1 else None

    bare: dict[Any, Kind] = {kind: Array(Kind(), kind) for kind in (list, tuple)}
    bare |= {kind: MapOf(Kind(), dict) for kind in (dict, Mapping)}
    told = {
        date: _Told(date.fromisoformat, "an ISO 8601 date"),
        datetime: _Told(LEAVES[datetime].read, "an ISO 8601 time with its zone"),
        Decimal: _Told(LEAVES[Decimal].read, "a decimal number as a string"),
    }
    leaves = {**told, NoneType: _Null()}
    kinds = Kinds({**LEAVES, **bare, **leaves}, own)
    return kinds


def is_class(kind: Any) -> bool:
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


def _fields(cls: type, arguments: tuple[Any, ...]) -> Iterator[Field]:
    hints, required = typing.get_type_hints(cls), required_keys(cls)
    given = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    for field in attrs.fields(cls):
        if field.init:
            key, hint = json_key(field), hints.get(field.name, Any)
            open_types = getattr(hint, "__parameters__", ())
            if hint in given:
                hint = given[hint]
            elif given and open_types:
                hint = hint[tuple(given[each] for each in open_types)]
            yield Field(key, key, hint, key in required)


class _Canonical(Kind):
    """A canonical type, that quotes no word which it does not know."""

    json_types = (dict,)

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def read(self, value: Any, keep: bool = False) -> Any:
        try:
            return KINDS.of(self._cls).read(value)
        except Problem as problem:
            for each in (problem, *problem.more):
                if not isinstance(each, Refused) and "'" in str(each):
                    each.args = (f"not a {self._cls.__name__}",)
            raise


# ---------------------------------------------------------------------------------------------- unions


class _Union(Kind):
    """The members are tried one after the other: first the class that the value is most like, at first sight."""

    def __init__(self, kind: Any, members: list[Any], kinds: Kinds) -> None:
        self._classes = [member for member in members if is_class(member)]
        self._others = {member: kinds.of(member) for member in members if member not in self._classes}
        self._kinds = kinds
        self._expected = " or ".join(_word(member) for member in union_members(kind))
        self._is_nullable = NoneType in union_members(kind)

    def read(self, value: Any, keep: bool = False) -> Any:
        if value is None and self._is_nullable:
            return None
        problem: Problem | None = None
        classes = _by_likeness(self._classes, value) if type(value) is dict else ()
        others = [member for member, kind in self._others.items() if type(value) in kind.json_types]
        for member in (*classes, *others):
            try:
                return _read_once(self._kinds, value, member)
            except Problem as refused:  # what the nearest member says is what is told
                problem = problem or refused
        if problem is not None and type(value) in (dict, list):
            raise problem
        raise Problem(f"expected {self._expected}, got {json_type_name(value)}")


class _Attempts(threading.local):
    """What the unions of the document at hand have tried.

    Attributes:
        failed: the objects and arrays that a member could not read, by identity; each is kept, so that no other
            takes its identity. ``None`` outside of any union.
    """

    failed: dict[tuple[int, Any], Any] | None = None


_attempts = _Attempts()


def _read_once(kinds: Kinds, value: Any, member: Any) -> Any:
    """*value* read as *member*, unless that has failed before: in a union inside of a union it would be tried again
    for each outer member, which takes time that doubles with every level of a recursive class."""
    if type(value) not in (dict, list):
        return kinds.of(member).read(value)
    is_outermost = _attempts.failed is None
    failed = {} if _attempts.failed is None else _attempts.failed
    _attempts.failed = failed
    try:
        if (id(value), member) in failed:
            raise Problem(f"expected {_word(member)}, got another {json_type_name(value)}")
        return kinds.of(member).read(value)
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
            any(
                _is_word(value[json_key(field)], word) for word in map(json_word, typing.get_args(field.type))
            )
            for field in fields
            if typing.get_origin(field.type) is Literal and json_key(field) in value
        )
        return agrees, required_keys(cls) <= value.keys(), sum(json_key(field) in value for field in fields)

    return sorted(classes, key=likeness, reverse=True) if len(classes) > 1 else classes


def _word(kind: Any) -> str:
    words = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
    if typing.get_origin(kind) is Literal:
        return _either(typing.get_args(kind))
    origin = typing.get_origin(kind) or kind
    if origin in (list, tuple):
        return "array"
    return words.get(kind) or ("object" if origin in (dict, Mapping) else kind.__name__)


# ---------------------------------------------------------------------------------------------- leaves


def json_word(word: Any) -> Any:
    """What stands in JSON for *word*, of a ``Literal`` or an enumeration."""
    return word.value if isinstance(word, Enum) else word


def _either(words: Sequence[Any]) -> str:
    return " or ".join(shortened(repr(json_word(word))) for word in words)


def _is_word(value: Any, word: Any) -> bool:
    return type(value) is type(word) and bool(value == word)


class _Word(Kind):
    """A word of a ``Literal`` or an enumeration."""

    def __init__(self, members: Sequence[Any]) -> None:
        # By type too: Python takes 1, 1.0 and True for the same.
        self._by_word = {(type(json_word(member)), json_word(member)): member for member in members}
        self._expected = _either(members)
        self.json_types = tuple(kind for kind, _ in self._by_word)

    def read(self, value: Any, keep: bool = False) -> Any:
        if not isinstance(value, list | dict) and (type(value), value) in self._by_word:
            return self._by_word[type(value), value]
        another = "another " if type(value) in self.json_types else ""
        raise Problem(f"expected {self._expected}, got {another}{json_type_name(value)}")


class _Told(Kind):
    """A text that says a value of another type; of one that does not, nothing is quoted."""

    json_types = (str,)

    def __init__(self, read: Callable[[str], Any], expected: str) -> None:
        self._read = read
        self._expected = expected

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is str:
            try:
                return self._read(value)
            except ValueError:
                pass
        raise Problem(f"expected {self._expected}, got {json_type_name(value)}")


class _Null(Kind):
    json_types = (NoneType,)

    def read(self, value: Any, keep: bool = False) -> None:
        if value is not None:
            raise Problem.wrong_type("null", value)
