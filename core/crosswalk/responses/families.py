"""Families of records: unions whose members differ in ``type``, and the types that a program registers."""

from __future__ import annotations

import functools
import importlib
import typing
from typing import Any, ClassVar, Literal, TypeVar

import attrs

from crosswalk.codec.layout import Problem, shortened
from crosswalk.types.json import FrozenObject

R = TypeVar("R", bound="Member")


class Member:
    """The base of all records, as the hooks see them."""

    __slots__ = ()
    __attrs_attrs__: ClassVar[Any]  # so that type checkers know attrs classes in them
    extensions: FrozenObject
    presence: frozenset[str]

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether JSON object *data* is one of these, where several types of a union share a ``type``."""
        return True


class Unknown:
    """Marks the records that represent objects of an unregistered type, exactly as received.

    Their members are in ``extensions``, except ``type`` and the fields that they share with their family.
    """

    __slots__ = ()
    family: ClassVar[str] = "object"
    """The expected kind of object, for error messages."""


class UnknownType(Problem):
    """An unregistered ``type``, reported as :class:`crosswalk.responses.UnknownTypeError`."""

    def __init__(self, family: str, tag: object) -> None:
        self.family = family
        self.type_name = shortened(tag) if isinstance(tag, str) else None
        super().__init__(
            f"unknown {family} type {self.type_name!r}" if self.type_name else f"{family} without a type"
        )


class Family:
    """Records of several types that differ in ``type``."""

    def __init__(self, members: tuple[type[Member], ...]) -> None:
        self.members = members
        self.unknown: type[Unknown] | None = next((m for m in members if issubclass(m, Unknown)), None)
        self.name = self.unknown.family if self.unknown else "object"

    @functools.cached_property
    def by_tag(self) -> dict[str | None, list[type[Member]]]:
        """The types for each tag. The key ``None`` has the types with an optional tag."""
        results: dict[str | None, list[type[Member]]] = {}
        for member in self.members:
            if not issubclass(member, Unknown):
                for tag in tags_of(member):
                    results.setdefault(tag, []).append(member)
        return results

    def only(self, tag: object) -> type[Any] | None:
        """Return the type if *tag* alone identifies it."""
        candidates = self.by_tag.get(tag, []) if type(tag) is str else []
        return candidates[0] if len(candidates) == 1 else None

    def of(self, value: dict[str, Any], keep: bool) -> type[Any]:
        """Return the type of JSON object *value*. With *keep*, an unregistered type maps to the unknown record.

        Raises:
            UnknownType: the type is not registered.
        """
        tag = value.get("type")
        result = self.only(tag)
        if result is not None:
            return result
        if tag is None or type(tag) is str:
            for candidate in self.by_tag.get(tag, []):
                if candidate.claims(value):
                    return candidate
            if self.unknown is not None:
                registered = _REGISTERED.get((self.unknown, tag))
                if registered is not None:
                    return registered
                if keep:
                    return self.unknown
        raise UnknownType(self.name, tag)

    def has(self, value: object) -> bool:
        """Whether *value* is an instance of a member or of a registered type."""
        if isinstance(value, self.members):
            return True
        tag = getattr(value, "type", None)
        return self.unknown is not None and type(value) is _REGISTERED.get((self.unknown, tag))


class LazyFamily:
    """A family whose module is loaded on the first object that is not of a *common* type.

    Args:
        home: the module of the union.
        name: the name of the union in that module.
        common: types that most answers contain. Their tags must identify them within the union.
    """

    def __init__(self, home: str, name: str, common: tuple[type[Member], ...] = ()) -> None:
        self.home = home
        self.alias = name
        self._common = Family(common)

    def __repr__(self) -> str:
        return f"{self.home}.{self.alias}"

    @functools.cached_property
    def union(self) -> Any:
        """The union itself."""
        return getattr(importlib.import_module(self.home), self.alias)

    @functools.cached_property
    def whole(self) -> Family:
        """The family of all its types."""
        return Family(typing.get_args(self.union))

    @property
    def name(self) -> str:
        """The word for its objects in error messages."""
        return self.whole.name

    def only(self, tag: object) -> type[Any] | None:
        """See :meth:`Family.only`."""
        return self._common.only(tag) or self.whole.only(tag)

    def of(self, value: dict[str, Any], keep: bool) -> type[Any]:
        """See :meth:`Family.of`."""
        return self._common.only(value.get("type")) or self.whole.of(value, keep)

    def has(self, value: object) -> bool:
        """See :meth:`Family.has`."""
        return self._common.has(value) or self.whole.has(value)


_REGISTERED: dict[tuple[type[Unknown], str | None], type[Member]] = {}


def register(cls: type[R], unknown: type[Unknown]) -> type[R]:
    """Read objects with the ``type`` of *cls* as one, in every family with this *unknown* record.

    A type of the API keeps its meaning. If two classes have the same ``type``, the later one counts.

    Raises:
        TypeError: *cls* has no ``type`` that is a ``Literal``.
    """
    tags = [tag for tag in tags_of(cls) if tag is not None]
    if not tags:
        raise TypeError(f"{cls.__name__} has no literal type to be registered under")
    _REGISTERED.update({(unknown, tag): cls for tag in tags})
    return cls


def classes_of(union: Any) -> dict[str, type[Member]]:
    """The types of a *union* of records by their tag. If several have one tag, the first."""
    members = (member for member in typing.get_args(union) if not issubclass(member, Unknown))
    return {tag: member for member in reversed([*members]) for tag in tags_of(member) if tag is not None}


def tags_of(cls: type[Member]) -> tuple[str | None, ...]:
    """Return the tags of *cls*, with ``None`` if the tag is optional, or empty without a literal ``type``."""
    kind = next((field.type for field in resolved(cls) if field.name == "type"), None)
    members = (kind,) if typing.get_origin(kind) is Literal else typing.get_args(kind)
    if not any(typing.get_origin(member) is Literal for member in members):
        return ()
    return tuple(tag for member in members for tag in typing.get_args(member) or (None,))


def resolved(cls: type[Any]) -> tuple[attrs.Attribute[Any], ...]:
    """Return the attrs fields of *cls*, with postponed annotations resolved."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)
    if any(isinstance(field.type, str) for field in fields):
        attrs.resolve_types(cls)
        fields = attrs.fields(cls)
    return fields


def keys_of(cls: type[Any]) -> dict[str, str]:
    """Map the JSON keys of *cls* to its fields, without the two fields that every record has."""
    return {field.name.rstrip("_"): field.name for field in attrs.fields(cls)[2:]}
