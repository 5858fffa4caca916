"""Types of other kinds than attrs classes, for what reads attrs classes: each has a twin that is read, and made of it.

Dataclasses, typed dicts, named tuples, pydantic models, sets, sequences and identifiers.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

import attrs

__all__ = ["Twin", "refusal_of", "twin_of"]

_COLLECTIONS: Final[dict[Any, Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Set: set,
}
_LEAVES: Final = (UUID, Decimal)
_MISSING: Final = object()
_RULES: Final = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format"),
        *("minLength", "maxLength", "minItems", "maxItems", "examples"),
    }
)
"""Keywords of JSON Schema that a model is told, and that pydantic checks when the value is made."""


@attrs.frozen
class Twin:
    """What is read for a type, and what is made of it.

    Attributes:
        kind: a type that a field of an answer may have.
        restore: makes the value of what was read; what is one already stays. ``None`` where there is nothing to make.
    """

    kind: Any
    restore: Callable[[Any], Any] | None = None


Made: TypeAlias = dict[type, "Twin | None"]


def twin_of(hint: Any, made: Made) -> Twin:
    """The twin of the type *hint*; itself where nothing is to be done.

    Args:
        hint: the type.
        made: the twins of classes so far, to which new ones are added: a class has one in each schema.

    Raises:
        TypeError: it has none: a class that holds itself, or a union that JSON does not tell apart.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return twin_of(arguments[0], made)
    if hint in _LEAVES:
        return Twin(str, lambda value: hint(value) if isinstance(value, str) else value)
    if origin in _COLLECTIONS:
        return _of_collection(hint, arguments[0], _COLLECTIONS[origin], made)
    if origin is tuple and arguments[1:] == (...,):
        return _of_collection(hint, arguments[0], tuple, made)
    if origin in (dict, collections.abc.Mapping):
        inner = twin_of(arguments[1], made)
        if inner.restore is None:
            return Twin(hint)
        return Twin(_generic(dict, arguments[0], inner.kind), _for_each(inner.restore))
    if origin in (typing.Union, types.UnionType):
        return _of_union(hint, arguments, made)
    fields = _fields(hint) if isinstance(hint, type) else None
    return Twin(hint) if fields is None else _of_class(hint, fields, made)


def refusal_of(error: Exception) -> str:
    """What is wrong, as *error* tells it that the class of a value raised, without the value."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return f"refused with {type(error).__name__}"
    found = errors(include_input=False, include_url=False, include_context=False)  # pydantic's
    return "; ".join(f"{one['msg']} @ {'.'.join(map(str, one['loc'])) or '$'}" for one in found)


def _of_collection(hint: Any, item: Any, make: Callable[[Any], Any], made: Made) -> Twin:
    inner = twin_of(item, made)
    if inner.restore is None and make in (list, tuple):
        return Twin(hint if typing.get_origin(hint) is make else _generic(list, item))
    restore = inner.restore or (lambda value: value)

    def restored(value: Any) -> Any:
        return make(restore(one) for one in value) if isinstance(value, list) else value

    return Twin(_generic(list, inner.kind), restored)


def _generic(collection: Any, *arguments: Any) -> Any:
    """*collection* of *arguments*, which are known at run time."""
    return collection[arguments if len(arguments) > 1 else arguments[0]]


def _for_each(restore: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: {key: restore(one) for key, one in value.items()}


def _of_union(hint: Any, members: Iterable[Any], made: Made) -> Twin:
    twins = [twin_of(member, made) for member in members]
    restores = [twin.restore for twin in twins if twin.restore is not None]
    if not restores:
        return Twin(hint)
    kind = functools.reduce(operator.or_, (twin.kind for twin in twins))
    if len([twin for twin in twins if twin.kind is not type(None)]) == 1:
        return Twin(kind, lambda value: None if value is None else restores[0](value))
    if not all(twin.restore is None or hasattr(twin.kind, "__restore__") for twin in twins):
        raise TypeError(f"{hint} cannot be told apart in JSON")
    return Twin(kind, lambda value: getattr(type(value), "__restore__", lambda same: same)(value))


# ---------------------------------------------------------------------------------------------- classes


@attrs.frozen
class _Field:
    """A field of a class: its type, its key in JSON, its default, and what the JSON Schema says beside the type."""

    name: str
    kind: Any
    key: str
    is_required: bool
    default: Any = None
    said: dict[str, Any] = attrs.field(factory=dict)
    description: str | None = None


def _of_class(cls: type, fields: list[_Field], made: Made) -> Twin:
    if cls in made:
        if (done := made[cls]) is None:
            raise TypeError(f"{cls.__name__} holds itself, which only an attrs class may")
        return done
    made[cls] = None
    own: dict[str, Any] = {}
    restores: dict[str, Callable[[Any], Any]] = {}
    for field in fields:
        inner = twin_of(field.kind, made)
        if inner.restore is not None:
            restores[field.name] = inner.restore
        plain = field.default if type(field.default) in (str, int, float, bool) else None
        own[field.name] = attrs.field(
            type=inner.kind,
            kw_only=True,
            alias=field.key,
            default=attrs.NOTHING if field.is_required else attrs.Factory(lambda: _MISSING),
            metadata={
                "description": field.description,
                "json_schema": {**field.said, **({} if plain is None else {"default": plain})},
            },
        )
    twin = attrs.make_class(cls.__name__, own)
    document = inspect.getdoc(cls) or ""
    is_own = "__doc__" in vars(cls) and not document.startswith(f"{cls.__name__}(")  # a dataclass gets one
    twin.__doc__ = document if is_own else None
    make: Callable[..., Any] = getattr(cls, "model_validate", None) or (lambda values: cls(**values))

    def restore(value: Any) -> Any:
        if type(value) is not twin:
            return value
        values = {}
        for field in fields:
            given = getattr(value, field.name)
            if given is not _MISSING:
                values[field.key] = restores.get(field.name, _same)(given)
        return make(values)

    twin.__restore__ = staticmethod(restore)  # type: ignore[attr-defined]
    made[cls] = found = Twin(twin, restore)
    return found


def _same(value: Any) -> Any:
    return value


def _fields(cls: type) -> list[_Field] | None:
    """The fields of *cls*; ``None`` where it is no class of these kinds."""
    if dataclasses.is_dataclass(cls):
        hints = typing.get_type_hints(cls, include_extras=True)
        return [
            _Field(
                one.name,
                hints[one.name],
                one.name,
                one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING,
                one.default,
                description=_described(hints[one.name]),
            )
            for one in dataclasses.fields(cls)
            if one.init
        ]
    if typing.is_typeddict(cls):
        total: frozenset[str] = getattr(cls, "__required_keys__", frozenset())
        # Said with the type: annotations that are texts are not in __required_keys__.
        asked = {typing.Required: True, typing.NotRequired: False}
        said = {
            name: typing.get_origin(kind)
            for name, kind in typing.get_type_hints(cls, include_extras=True).items()
        }
        return [
            _Field(name, kind, name, asked.get(said[name], name in total))
            for name, kind in typing.get_type_hints(cls).items()
        ]
    if issubclass(cls, tuple) and hasattr(cls, "_field_defaults"):
        hints, defaults = typing.get_type_hints(cls), cls._field_defaults
        return [
            _Field(name, kind, name, name not in defaults, defaults.get(name)) for name, kind in hints.items()
        ]
    if hasattr(cls, "model_fields") and hasattr(
        cls, "model_json_schema"
    ):  # pydantic, which is not imported here
        rules = cls.model_json_schema()["properties"]
        return [
            _Field(
                name,
                one.annotation,
                one.alias or name,
                one.is_required(),
                one.default,
                {key: value for key, value in rules[one.alias or name].items() if key in _RULES},
                one.description,
            )
            for name, one in cls.model_fields.items()
        ]
    return None


def _described(hint: Any) -> str | None:
    """What ``Annotated`` says about a type in words."""
    said = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    return next((text for text in said if isinstance(text, str)), None)
