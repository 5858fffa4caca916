"""Equality, hash and representation by fields, which attrs would write and compile for each class in each process."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

__all__ = ["by_fields"]

T = TypeVar("T")


def _getter(fields: Iterable[attrs.Attribute[Any]]) -> Callable[[Any], Any]:
    return operator.attrgetter(*[field.name for field in fields])


def _shown(self: Any) -> str:
    cls = type(self)
    fields = [f"{field.name}={getattr(self, field.name)!r}" for field in cls.__attrs_attrs__ if field.repr]
    return f"{cls.__qualname__.rsplit('>.', 1)[-1]}({', '.join(fields)})"


def by_fields(cls: type[T]) -> type[T]:
    """A class decorator: *cls*, a frozen attrs class, compares, hashes and shows its values by their fields.

    It is made with ``eq=False, repr=False``; a hash or a representation that it has stays. A process that reads one answer,
    as a command does, loads some forty classes, and compares and shows next to none of their values.
    """
    fields: tuple[attrs.Attribute[Any], ...] = cls.__attrs_attrs__  # type: ignore[attr-defined]
    compared = [field for field in fields if field.eq]
    of = _getter(compared)
    hashed = _getter([field for field in compared if field.hash is not False])

    def __eq__(self: Any, other: Any) -> Any:
        return of(self) == of(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash((cls, hashed(self)))

    made: Any = cls
    made.__eq__ = __eq__
    if "__hash__" not in vars(cls):
        made.__hash__ = __hash__
    if made.__repr__ is object.__repr__:
        made.__repr__ = _shown
    return cls
