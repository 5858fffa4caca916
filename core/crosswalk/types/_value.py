"""What the canonical types have in common: a fast frozen constructor and converters to immutable values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

import attrs

from crosswalk.errors import one_of as one_of

T = TypeVar("T")


def as_tuple(value: Iterable[Any]) -> tuple[Any, ...]:
    """An attrs converter: *value* as a tuple."""
    return tuple(value)


def as_optional_tuple(value: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """An attrs converter: *value* as a tuple, or ``None``."""
    return None if value is None else tuple(value)


def fast_init(cls: type[T]) -> type[T]:
    """Give the frozen slotted attrs class *cls* the constructor of a mutable twin.

    A frozen class sets each field through ``object.__setattr__``, which would make up most of the cost of a
    stream's deltas. Here an instance has the class of a mutable twin of equal layout while its fields
    are set, then takes its own class back and is frozen: half the time, the same checks.
    CPython allows that only between classes without a ``__weakref__`` slot: ``weakref_slot=False``; and
    not for a subclass, so *cls* is final.
    """
    check: Callable[[Any], None] | None = getattr(cls, "__attrs_post_init__", None)
    set_attribute = object.__setattr__

    def thaw(self: Any) -> None:
        set_attribute(self, "__class__", twin)

    def freeze(self: Any) -> None:
        self.__class__ = cls

    def freeze_and_check(self: Any) -> None:
        self.__class__ = cls
        check(self)  # type: ignore[misc]  # it is there, or this function is not used

    def refuse_subclass(subclass: type, /, **_: Any) -> NoReturn:
        raise TypeError(f"{cls.__name__} is final: {subclass.__name__} cannot be derived from it")

    hooks = {"__attrs_pre_init__": thaw, "__attrs_post_init__": freeze_and_check if check else freeze}
    twin = type(f"_{cls.__name__}", (), {"__slots__": cls.__dict__["__slots__"], **hooks})
    wrapped = functools.wraps(vars(cls)["__init__"])(_mutable_init(cls, hooks))
    for name, value in {
        "__attrs_pre_init__": thaw,
        "__mutable_twin__": twin,
        "__init__": wrapped,
        "__init_subclass__": classmethod(refuse_subclass),
    }.items():
        setattr(cls, name, value)
    return cls


def _mutable_init(cls: type[Any], hooks: Mapping[str, Callable[[Any], None]]) -> Callable[..., None]:
    """The ``__init__`` that attrs writes for the fields of *cls* where they need not be frozen."""
    fields = {
        field.name: attrs.field(
            default=field.default,
            validator=field.validator,
            converter=field.converter,
            kw_only=field.kw_only,
            alias=field.alias,
        )
        for field in attrs.fields(cls)
    }
    mutable = attrs.make_class(cls.__name__, fields, class_body=dict(hooks), slots=False)
    init: Callable[..., None] = vars(mutable)["__init__"]
    return init
