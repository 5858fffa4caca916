"""Hooks that check the arguments of a record's constructor.

They accept Python values where the hooks of :mod:`crosswalk.responses.hooks` accept JSON: records, lists or tuples, and
any mapping.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

from cattrs import BaseConverter

from crosswalk.codec.converters import CanonicalConverter, Read, converter, origin_of, problems_in
from crosswalk.codec.layout import Problem, union_members, without_none
from crosswalk.errors import ResponseValidationError
from crosswalk.responses.errors import ResponsesValueError
from crosswalk.responses.families import Family, LazyFamily, Member, resolved
from crosswalk.responses.hooks import PLAIN, add_shared_hooks, is_record
from crosswalk.types.json import FrozenObject, as_frozen_object, as_frozen_value


def checked(record: Member) -> list[tuple[str, Any]]:
    """Check the fields that the constructor of *record* has set, and return those that need another form.

    Raises:
        ResponsesValueError: a value is not allowed.
    """
    cls: Any = type(record)
    changed = []
    for name, kind, is_nullable, hook in _plan_of(cls):
        value = getattr(record, name)
        if (value is None and is_nullable) or (type(value) is kind and kind in PLAIN):
            continue
        try:
            accepted = hook(value, kind)
        except Exception as error:
            problem = problems_in(error)[0]
        else:
            if accepted is not value:
                changed.append((name, accepted))
            continue
        # Raised outside of the handler, the error has no context, which would quote content.
        raise ResponsesValueError(str(problem), path=f"{cls.__name__}.{name}{problem.at}")
    return changed


@functools.cache
def _plan_of(cls: Any) -> list[tuple[str, Any, bool, Read]]:
    """List the fields of *cls*: name, type, whether it may be ``None``, and the hook for its values."""
    plan = []
    for field in resolved(cls)[2:]:
        kind = without_none(field.type)
        is_nullable = NoneType in union_members(field.type) or field.type is Any
        plan.append((field.name, kind, is_nullable, _converter().get_structure_hook(kind)))
    return plan


@functools.cache
def _converter() -> CanonicalConverter:
    made = converter()
    add_shared_hooks(made, _family)
    made.register_structure_hook(str, _text)
    made.register_structure_hook(FrozenObject, _object)
    made.register_structure_hook_func(
        lambda kind: kind is Any, lambda value, _: _frozen(as_frozen_value, value)
    )
    made.register_structure_hook_factory(lambda kind: origin_of(kind) is tuple, _tuple_factory)
    made.register_structure_hook_factory(lambda kind: origin_of(kind) is Mapping, _mapping_factory)
    made.register_structure_hook_factory(is_record, lambda cls: _instance_of)
    return made


def _text(value: Any, kind: Any) -> str:
    if not isinstance(value, str):
        raise Problem.wrong_type("string", value)
    return value if type(value) is str else str(value)


def _object(value: Any, _: Any) -> FrozenObject:
    if not isinstance(value, Mapping):
        raise Problem.wrong_type("object", value)
    return FrozenObject.adopt({}) if not value else _frozen(as_frozen_object, value)


def _frozen(freeze: Callable[[Any], Any], value: Any) -> Any:
    try:
        return freeze(value)
    except ResponseValidationError as error:
        problem = Problem(str(error))
    raise problem


def _tuple_factory(kind: Any, converter: BaseConverter) -> Read:
    items: Any = list[kind.__args__[0]]
    read = converter.get_structure_hook(items)

    def accept(value: Any, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list):
            raise Problem(f"expected a tuple, got {type(value).__name__}")
        return tuple(read([*value], items))

    return accept


def _mapping_factory(kind: Any, converter: BaseConverter) -> Read:
    members: Any = dict[typing.get_args(kind)]  # type: ignore[misc]
    read = converter.get_structure_hook(members)

    def accept(value: Any, _: Any) -> FrozenObject:
        if not isinstance(value, Mapping):
            raise Problem(f"expected a mapping, got {type(value).__name__}")
        if not all(isinstance(key, str) for key in value):
            raise Problem("expected strings as keys")
        return FrozenObject.adopt(read(dict(value), members))

    return accept


def _instance_of(value: Any, cls: Any) -> Any:
    if not isinstance(value, cls):
        raise Problem(f"expected {cls.__name__}, got {type(value).__name__}")
    return value


def _family(family: Family | LazyFamily, _: BaseConverter) -> Read:
    def accept(value: Any, _: Any) -> Any:
        if not family.has(value):
            raise Problem(f"expected {family.name}, got {type(value).__name__}")
        return value

    return accept
