"""Unions: told apart by ``type``, by the kind of JSON value, or by what an object looks like."""

from __future__ import annotations

import threading
import typing
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal

import attrs
from cattrs import BaseConverter

from crosswalk.codec.classes import is_class, json_key, json_word, required_keys
from crosswalk.codec.layout import TAGS, union_members, without_none
from crosswalk.codec.leaves import Read, either, origin_of
from crosswalk.codec.problems import Problem
from crosswalk.text import json_type_name
from crosswalk.types.json import FrozenObject

__all__ = ["add_unions", "optional"]


def add_unions(converter: BaseConverter) -> None:
    """Teach *converter* to read and write unions."""
    converter.register_structure_hook_factory(lambda kind: bool(union_members(kind)), _read_factory)
    converter.register_unstructure_hook_factory(lambda kind: bool(union_members(kind)), _write_factory)


def _write_factory(kind: Any, converter: BaseConverter) -> Callable[[Any], Any]:
    members = [member for member in union_members(kind) if member is not NoneType]
    if len(members) == 1:
        write = converter.get_unstructure_hook(members[0])
        return lambda value: None if value is None else write(value)
    if all(member in TAGS for member in members):
        by_type = {member: converter.get_unstructure_hook(member) for member in (*members, NoneType)}
        return lambda value: by_type[type(value)](value)
    arrays = [converter.get_unstructure_hook(member) for member in members if origin_of(member) is tuple]
    if arrays:
        return lambda value: arrays[0](value) if type(value) is tuple else converter.unstructure(value)
    return converter.unstructure


def _read_factory(kind: Any, converter: BaseConverter) -> Read:
    members = [member for member in union_members(kind) if member is not NoneType]
    if not all(member in TAGS for member in members) and len(members) > 1:
        return _untagged_factory(kind, members, converter)
    if len(members) < len(union_members(kind)):
        return optional(without_none(kind), converter)
    return _tagged_factory(members, converter)


def optional(member: Any, converter: BaseConverter) -> Read:
    """A hook for null and what *member* stands for."""
    try:
        read = converter.get_structure_hook(member)
    except RecursionError:  # it holds itself
        read = converter.structure

    def read_optional(value: Any, _: Any) -> Any:
        return None if value is None else read(value, member)

    return read_optional


def _tagged_factory(members: list[Any], converter: BaseConverter) -> Read:
    by_tag = {TAGS[member]: (converter.get_structure_hook(member), member) for member in members}

    def read_tagged(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        tag = value.get("type")
        if type(tag) is not str or tag not in by_tag:
            raise Problem.unknown("type", tag, by_tag, at=".type")
        read, member = by_tag[tag]
        return read(value, member)

    return read_tagged


def _untagged_factory(kind: Any, members: list[Any], converter: BaseConverter) -> Read:
    """A hook that tries the members one after the other, the most similar class first."""
    classes = [member for member in members if is_class(member)]
    others = [(member, json_types(member)) for member in members if member not in classes]
    expected = " or ".join(_name(member) for member in union_members(kind))
    is_nullable = NoneType in union_members(kind)

    def read_union(value: Any, _: Any) -> Any:
        if value is None and is_nullable:
            return None
        first: Exception | None = None
        candidates = _by_likeness(classes, value) if type(value) is dict else []
        candidates += [member for member, kinds in others if type(value) in kinds]
        for member in candidates:
            try:
                return _read_once(converter, value, member)
            except Exception as error:  # the message of the most similar member is the one to show
                first = first or error
        if first is not None and (len(candidates) == 1 or type(value) in (dict, list)):
            raise first
        raise Problem(f"expected {expected}, got {json_type_name(value)}")

    return read_union


class _Attempts(threading.local):
    """The failed attempts of the unions of the current document.

    Attributes:
        failed: objects and arrays that a member could not read, by identity and member. They are stored, so that no
            other value takes their identity. ``None`` outside of any union.
    """

    failed: dict[tuple[int, Any], Any] | None = None


_attempts = _Attempts()


def _read_once(converter: BaseConverter, value: Any, member: Any) -> Any:
    """Read *value* as *member*, unless that has failed before.

    A union inside a union would try again for each outer member: time that doubles with every level of a recursive class.
    """
    if type(value) not in (dict, list):
        return converter.structure(value, member)
    is_outermost = _attempts.failed is None
    failed = {} if _attempts.failed is None else _attempts.failed
    _attempts.failed = failed
    try:
        if (id(value), member) in failed:
            raise Problem(f"expected {_name(member)}, got another {json_type_name(value)}")
        return converter.structure(value, member)
    except Exception:
        failed[id(value), member] = value
        raise
    finally:
        if is_outermost:
            _attempts.failed = None


def _by_likeness(classes: list[Any], value: dict[str, Any]) -> list[Any]:
    """*classes*, the most similar to *value* first: its constants agree, it has the required keys, most keys are known."""

    def likeness(cls: type) -> tuple[bool, bool, int]:
        fields = [field for field in attrs.fields(cls) if field.init]
        agrees = all(
            any(_is_word(value[json_key(field)], json_word(word)) for word in typing.get_args(field.type))
            for field in fields
            if typing.get_origin(field.type) is Literal and json_key(field) in value
        )
        return agrees, required_keys(cls) <= value.keys(), sum(json_key(field) in value for field in fields)

    return sorted(classes, key=likeness, reverse=True) if len(classes) > 1 else [*classes]


def _is_word(value: Any, word: Any) -> bool:
    return type(value) is type(word) and bool(value == word)


_JSON_TYPES: Final[dict[Any, tuple[type, ...]]] = {
    str: (str,), int: (int,), bool: (bool,), NoneType: (NoneType,), float: (float, int), timedelta: (float, int),
    date: (str,), datetime: (str,), Decimal: (str,), list: (list,), tuple: (list,), dict: (dict,), Mapping: (dict,),
    FrozenObject: (dict,), Any: (str, int, float, bool, list, dict, NoneType),
}  # fmt: skip


def json_types(kind: Any) -> tuple[type, ...]:
    """The types of decoded JSON that can be read as *kind*."""
    origin = origin_of(kind)
    if origin is Literal:
        return tuple(type(json_word(word)) for word in typing.get_args(kind))
    if isinstance(origin, type) and issubclass(origin, Enum):
        return tuple(type(json_word(word)) for word in origin)
    return _JSON_TYPES.get(origin, (dict,))


def _name(kind: Any) -> str:
    words = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
    if typing.get_origin(kind) is Literal:
        return either(typing.get_args(kind))
    origin = origin_of(kind)
    if origin in (list, tuple):
        return "array"
    return words.get(kind) or ("object" if origin in (dict, Mapping) else kind.__name__)
