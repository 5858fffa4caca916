"""Unions: told apart by ``type``, by the kind of JSON value, or as cattrs tells classes apart."""

from __future__ import annotations

import functools
import operator
import typing
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal
from uuid import UUID

import attrs
from cattrs import BaseConverter
from cattrs.disambiguators import create_default_dis_func
from cattrs.gen import override

from crosswalk.codec.layout import TAGS, union_members, without_none
from crosswalk.codec.leaves import LISTS, Read, either, has_fields, json_word, origin_of
from crosswalk.codec.problems import Problem
from crosswalk.text import json_type_name


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
    # A tuple is written by the types of its items.
    arrays = [converter.get_unstructure_hook(member) for member in members if origin_of(member) is tuple]
    return lambda value: arrays[0](value) if arrays and type(value) is tuple else converter.unstructure(value)


def _read_factory(kind: Any, converter: BaseConverter) -> Read:
    members = [member for member in union_members(kind) if member is not NoneType]
    if len(members) < len(union_members(kind)):
        return _optional(without_none(kind), converter)
    if all(member in TAGS for member in members):
        return _tagged_factory(members, converter)
    if all(hasattr(member, "__union_hook__") for member in members):
        read: Read = members[0].__union_hook__(functools.reduce(operator.or_, members))
        return read
    return _untagged_factory(members, converter)


def _optional(member: Any, converter: BaseConverter) -> Read:
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


def _untagged_factory(members: list[Any], converter: BaseConverter) -> Read:
    """A hook that takes the member for the JSON type of the value. Several texts or numbers are tried in their order."""
    by_type: dict[type, list[Any]] = {}
    for member in members:
        for json_type in dict.fromkeys(json_types(member)):
            by_type.setdefault(json_type, []).append(member)
    expected = " or ".join(map(_name, members))
    objects = by_type.get(dict, [])
    for several in ([] if all(map(has_fields, objects)) else objects, by_type.get(list, [])):
        if len(several) > 1:
            raise TypeError(f"JSON does not tell {' from '.join(map(str, several))}")
    choose = _chooser(objects, converter) if len(objects) > 1 else None

    def read_union(value: Any, _: Any) -> Any:
        candidates = by_type.get(type(value), [])
        if choose is not None and type(value) is dict:
            try:
                candidates = [choose(value)]
            except (KeyError, TypeError, ValueError):
                raise Problem(f"expected {expected}, got another object") from None
        if len(candidates) == 1:
            return converter.structure(value, candidates[0])
        for member in candidates:
            try:
                return converter.structure(value, member)
            except Problem:
                continue
        raise Problem(f"expected {expected}, got {'another ' if candidates else ''}{json_type_name(value)}")

    return read_union


def _chooser(classes: list[Any], converter: BaseConverter) -> Callable[[Any], Any]:
    """cattrs' function that finds the class of an object by its literals or its keys."""
    fields = [
        field
        for cls in map(origin_of, classes)
        if attrs.has(cls)
        for field in attrs.fields(attrs.resolve_types(cls))
        if field.alias != field.name
    ]
    return create_default_dis_func(
        converter,
        *classes,
        use_literals=all(typing.get_origin(field.type) is not Literal for field in fields),
        overrides={field.name: override(rename=field.alias) for field in fields},
    )


_JSON_TYPES: Final[dict[Any, tuple[type, ...]]] = {
    str: (str,), int: (int,), bool: (bool,), float: (float, int), timedelta: (float, int), date: (str,), datetime: (str,),
    Decimal: (str,), UUID: (str,), Any: (str, int, float, bool, list, dict), **dict.fromkeys(LISTS, (list,)),
}  # fmt: skip


def json_types(kind: Any) -> tuple[type, ...]:
    """The types of decoded JSON that can be read as *kind*."""
    origin = origin_of(kind)
    if origin is Literal or (isinstance(origin, type) and issubclass(origin, Enum)):
        return tuple(type(json_word(word)) for word in typing.get_args(kind) or kind)
    return _JSON_TYPES.get(origin, (dict,))


_NAMES: Final = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", Mapping: "object",
    **dict.fromkeys(LISTS, "array"),
}  # fmt: skip


def _name(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return either(typing.get_args(kind))
    return _NAMES.get(origin_of(kind)) or str(origin_of(kind).__name__)
