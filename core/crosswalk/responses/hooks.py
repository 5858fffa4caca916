"""Hooks that read and write records with cattrs.

The hooks do what cattrs cannot do alone. They tell null from absent, preserve unknown members, and choose the class of
an object by its ``type``. :func:`record_converter` adds them to the converter of canonical JSON.
"""

from __future__ import annotations

import functools
import math
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import attrs
from cattrs import BaseConverter
from cattrs.errors import AttributeValidationNote, ClassValidationError

from crosswalk.codec.converters import CanonicalConverter, Read, converter, json_types, origin_of
from crosswalk.codec.layout import MissingKey, Problem, shortened, step, union_members, without_none
from crosswalk.responses.families import Family, LazyFamily, Member, resolved, tags_of
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, freeze, plain_view

OnUnknown: TypeAlias = Literal["raise", "keep"]
"""How to treat an item, event, part … of an unregistered type, and an unknown word of a closed vocabulary:
``raise`` refuses it, ``keep`` keeps it."""

_new: Final = object.__new__
_ABSENT: Final = object()
_NO_PRESENCE: Final[frozenset[str]] = frozenset()
PLAIN: Final = frozenset({str, int, bool})
"""Field types whose JSON values need no hook."""


class UnknownWord(Problem):
    """A word outside a closed vocabulary."""


@functools.cache
def record_converter(on_unknown: OnUnknown) -> CanonicalConverter:
    """Return the converter that reads and writes records. ``"keep"`` accepts unknown words and types."""
    keep = on_unknown == "keep"
    made = converter()
    add_shared_hooks(made, functools.partial(_family_reader, keep=keep))
    made.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: freeze(value))
    made.register_structure_hook_factory(lambda kind: origin_of(kind) is Mapping, _mapping_factory)
    made.register_structure_hook_factory(is_record, lambda cls: _record_reader(cls, made, keep))
    made.register_unstructure_hook_func(lambda kind: _lazy_family(kind) is not None, made.unstructure)
    made.register_unstructure_hook(StrEnum, lambda word: word.value)
    made.register_unstructure_hook_factory(is_record, lambda cls: _record_writer(cls, made))
    return made


def add_shared_hooks(
    made: BaseConverter, read_family: Callable[[Family | LazyFamily, BaseConverter], Read]
) -> None:
    """Register the hooks for numbers, words and unions with *made*. *read_family* makes the hook for a family."""
    made.register_structure_hook(float, _read_number)
    made.register_structure_hook(StrEnum, _read_word)
    made.register_structure_hook_factory(
        _is_union, functools.partial(_union_factory, read_family=read_family)
    )
    made.register_structure_hook_factory(
        lambda kind: _lazy_family(kind) is not None, lambda kind: read_family(_lazy_family(kind), made)
    )


def is_record(kind: Any) -> bool:
    """Whether *kind* is a class of records."""
    return isinstance(kind, type) and issubclass(kind, Member)


def _lazy_family(kind: Any) -> Any:
    results = [each for each in getattr(kind, "__metadata__", ()) if isinstance(each, LazyFamily)]
    return results[0] if results else None


def _is_union(kind: Any) -> bool:
    return len([member for member in union_members(kind) if member is not NoneType]) > 1


# ---------------------------------------------------------------------------------------------- leaves


def _read_number(value: Any, _: Any) -> Any:
    # An integer stays an integer, so that it is written back without a decimal point.
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise Problem.wrong_type("number", value)


def _read_word(value: Any, words: Any) -> Any:
    if not isinstance(value, str):
        raise Problem.wrong_type("string", value)
    try:
        return words(value)
    except ValueError:
        pass
    raise UnknownWord(f"unknown {words.__name__} {shortened(value)!r}")


def _mapping_factory(kind: Any, converter: BaseConverter) -> Read:
    plain: Any = dict[typing.get_args(kind)]  # type: ignore[misc]
    read = converter.get_structure_hook(plain)
    return lambda value, _: FrozenObject.adopt(read(value, plain))


# ---------------------------------------------------------------------------------------------- unions

_JSON_NAMES: Final = {
    str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object",
}  # fmt: skip


def _union_factory(
    kind: Any, converter: BaseConverter, *, read_family: Callable[[Family | LazyFamily, BaseConverter], Read]
) -> Read:
    """Make a hook for a union: the JSON type selects the member, and ``type`` selects among several records."""
    members = [member for member in union_members(kind) if member is not NoneType]
    records = tuple(member for member in members if is_record(member))
    hooks = {
        json_type: (converter.get_structure_hook(member), member)
        for member in members
        if member not in records
        for json_type in json_types(member)
    }
    if len(records) == 1:
        hooks[dict] = (converter.get_structure_hook(records[0]), records[0])
    elif records:
        hooks[dict] = (read_family(Family(records), converter), kind)
        if len(hooks) == 1:
            return hooks[dict][0]
    expected = " or ".join(dict.fromkeys(_JSON_NAMES[each] for each in hooks))

    def read(value: Any, _: Any) -> Any:
        hook = hooks.get(type(value)) or hooks.get(_json_type(value))
        if hook is None:
            raise Problem.wrong_type(expected, value)
        return hook[0](value, hook[1])

    return read


def _json_type(value: Any) -> type:
    """Return the type of the JSON value that *value* is written as."""
    if isinstance(value, Mapping | Member):
        return dict
    if isinstance(value, tuple | list):
        return list
    return str if isinstance(value, str) else type(value)


def _family_reader(family: Family | LazyFamily, converter: BaseConverter, *, keep: bool) -> Read:
    hooks: dict[str, Read] = {}  # for tags that identify one type

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        tag = value.get("type")
        hook = hooks.get(tag) if type(tag) is str else None
        if hook is None:
            hook = converter.get_structure_hook(family.of(value, keep))
            if type(tag) is str and family.only(tag):
                hooks[tag] = hook
        return hook(value, None)

    return read


# --------------------------------------------------------------------------------------------- records


class _Field(NamedTuple):
    put: Callable[[Any, Any], None]
    name: str
    key: str
    type: Any
    plain: type | None
    default: Any
    nullable: bool


def _fields_of(cls: type[Member]) -> list[_Field]:
    """List the fields of *cls*, except the two that every record has."""
    tags = tags_of(cls)
    results = []
    for field in resolved(cls)[2:]:
        kind = without_none(field.type)
        needs_tag = field.name == "type" and tags and None not in tags
        results.append(
            _Field(
                # The slot's own setter is faster than setattr, which has to look it up.
                put=getattr(cls, field.name).__set__,
                name=field.name,
                key=key_of(field.name),
                type=kind,
                plain=kind if kind in PLAIN else None,
                default=attrs.NOTHING if needs_tag else field.default,
                nullable=NoneType in union_members(field.type) or field.type is Any,
            )
        )
    return results


def key_of(name: str) -> str:
    """Return the JSON key of a field: ``async`` for ``async_``."""
    return name.rstrip("_")


def _record_reader(cls: type[Member], converter: BaseConverter, keep: bool) -> Read:
    put_extensions, put_presence = getattr(cls, "extensions").__set__, getattr(cls, "presence").__set__  # noqa: B009
    fields: list[_Field] = []
    hooks: dict[str, Read] = {}  # made on first use: most answers need a few of them

    def read(data: Any, _: Any = cls) -> Any:
        if type(data) is not dict:
            raise Problem.wrong_type("object", data)
        if not fields:
            fields[:] = _fields_of(cls)
        record = _new(cls)
        get = data.get
        result = 0
        presence: list[str] = []
        unread: dict[str, Any] = {}
        errors: list[Exception] = []
        for put, name, key, kind, plain, default, nullable in fields:
            value = get(key, _ABSENT)
            if type(value) is plain:
                result += 1
            elif value is _ABSENT:
                if default is attrs.NOTHING:
                    errors.append(MissingKey("a required key is missing", at=step(key)))
                value = default
                if default is not None:
                    presence.append(name)
            elif value is None and nullable:
                result += 1
                presence.append(name)
            else:
                result += 1
                try:
                    hook = hooks.get(name)
                    if hook is None:
                        hook = hooks[name] = converter.get_structure_hook(kind)
                    value = hook(value, kind)
                except RecursionError:
                    raise
                except Exception as error:
                    if keep and nullable and isinstance(error, UnknownWord):
                        unread[key], value = value, None
                    else:
                        errors.append(_under(key, error))
            put(record, value)
        if errors:
            raise ClassValidationError(f"While structuring {cls.__name__}", errors, cls)
        if result != len(data):
            keys = {field.key for field in fields}
            unread = {**{key: value for key, value in data.items() if key not in keys}, **unread}
        put_extensions(record, FrozenObject.adopt(unread) if unread else EMPTY_OBJECT)
        put_presence(record, frozenset(presence) if presence else _NO_PRESENCE)
        return record

    return read


def _under(key: str, error: Exception) -> Exception:
    """Add *key* to the path of *error*."""
    if isinstance(error, Problem):
        return error.under(step(key))
    error.add_note(AttributeValidationNote(f"Structuring {key}", key, None))
    return error


def _record_writer(cls: type[Member], converter: BaseConverter) -> Callable[[Any], dict[str, Any]]:
    fields: list[tuple[str, str, Any, bool, Any]] = []
    hooks: dict[str, Callable[[Any], Any]] = {}

    def write(record: Any) -> dict[str, Any]:
        if not fields:
            fields[:] = [  # assigned at once, because another thread may be here too
                (field.name, key_of(field.name), kind, kind in PLAIN, field.default)
                for field in resolved(cls)[2:]
                for kind in (without_none(field.type),)
            ]
        data: dict[str, Any] = dict(plain_view(record.extensions)) if record.extensions else {}
        presence = record.presence
        for name, key, kind, is_plain, default in fields:
            value = getattr(record, name)
            if value is None:
                if name in presence:
                    data[key] = None
            elif not (presence and name in presence and value == default):
                if not is_plain:
                    hook = hooks.get(name)
                    if hook is None:
                        hook = hooks[name] = converter.get_unstructure_hook(kind)
                    value = hook(value)
                data[key] = value
        return data

    return write
