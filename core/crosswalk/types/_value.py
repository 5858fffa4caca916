"""What the canonical types have in common: a fast frozen constructor and converters to immutable values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
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
    are set, then takes its own class back and is frozen: a third of the time, the same converters and checks.
    CPython allows that only between classes without a ``__weakref__`` slot: ``weakref_slot=False``; and
    not for a subclass, so *cls* is final.
    """

    def refuse_subclass(subclass: type, /, **_: Any) -> NoReturn:
        raise TypeError(f"{cls.__name__} is final: {subclass.__name__} cannot be derived from it")

    twin = type(f"_{cls.__name__}", (), {"__slots__": cls.__dict__["__slots__"]})
    init = functools.wraps(vars(cls)["__init__"])(_mutable_init(cls, twin))
    for name, value in {
        "__mutable_twin__": twin,
        "__init__": init,
        "__init_subclass__": classmethod(refuse_subclass),
    }.items():
        setattr(cls, name, value)
    return cls


def _mutable_init(cls: type[Any], twin: type[Any]) -> Callable[..., None]:
    """The ``__init__`` that attrs writes for the fields of *cls*, but for plain assignments to an instance of *twin*."""
    scope: dict[str, Any] = {"cls": cls, "twin": twin, "set_class": object.__setattr__}
    arguments, keywords, lines = ["self"], ["*"], ["set_class(self, '__class__', twin)"]
    for field in attrs.fields(cls):
        name, value = field.name, field.name
        assert field.validator is None and not isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
        argument = name
        if field.default is not attrs.NOTHING:
            scope[f"{name}_default"], argument = field.default, f"{name}={name}_default"
        if field.converter is not None:
            scope[f"{name}_converter"], value = field.converter, f"{name}_converter({name})"
        (keywords if field.kw_only else arguments).append(argument)
        lines.append(f"self.{name} = {value}")
    lines.append("self.__class__ = cls")
    if hasattr(cls, "__attrs_post_init__"):
        scope["check"] = cls.__attrs_post_init__
        lines.append("check(self)")
    signature = ", ".join([*arguments, *keywords] if len(keywords) > 1 else arguments)
    exec(f"def __init__({signature}):\n    " + "\n    ".join(lines), scope)
    init: Callable[..., None] = scope["__init__"]
    return init
