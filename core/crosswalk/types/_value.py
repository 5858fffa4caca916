"""What the canonical types have in common: a fast frozen constructor and converters to immutable values."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Set
from enum import StrEnum
from typing import Any, Final, NoReturn, TypeVar

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import json_type_name

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

LARGEST: Final = 2**63 - 1
"""The largest whole number of a field: two of them add up to one that JSON can still be written with."""
_FROZEN_USES: Final = 100
"""How many values of a class are made with its slow constructor before it gets a fast one."""
_set = object.__setattr__


def as_tuple(value: Iterable[Any]) -> tuple[Any, ...]:
    """An attrs converter: *value* as a tuple."""
    if type(value) is tuple:
        return value
    given: object = value  # a caller may not be typed
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | bytearray | Mapping | Set):
        raise ResponseValidationError(f"expected a list, got {json_type_name(given)}")
    return tuple(given)


def as_optional_tuple(value: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """An attrs converter: *value* as a tuple, or ``None``."""
    return None if value is None else as_tuple(value)


def one_of(words: type[E], value: object, wrong: str, *, code: str | None = None) -> E:
    """*value* as one of *words*.

    Raises:
        ResponseValidationError: it is none of them: *wrong*, with *code*.
    """
    if isinstance(value, str):
        try:
            return words(value)
        except ValueError:
            pass
    got = repr(value[:40]) if isinstance(value, str) else json_type_name(value)
    raise ResponseValidationError(f"{wrong}: {got}", code=code)


# What a field may hold, checked when a value is made. Each function leaves in the field *name* of *value* what it may
# hold, or raises ResponseValidationError. Types are exact, as in JSON; a subclass of str, int or float becomes what it
# is a subclass of. Where many values are made, a quick look comes first and the call only where it finds something odd.


def check_text(value: Any, *names: str) -> None:
    """Text that JSON can say: no lone surrogates."""
    for name in names:
        text = getattr(value, name)
        if type(text) is str and text.isascii():
            continue
        found = as_text(text, f"{type(value).__name__}.{name}")
        if found is not text:
            _set(value, name, found)


def as_text(value: object, name: str) -> str:
    """*value*, which the message of the error calls *name*, as text that JSON can say."""
    if not isinstance(value, str):
        raise ResponseValidationError(f"{name} must be text, not {json_type_name(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ResponseValidationError(f"{name} holds a lone surrogate, which is no text") from None
    return value if type(value) is str else str.__str__(value)


def check_optional_text(value: Any, *names: str) -> None:
    """Text, or ``None``."""
    for name in names:
        if getattr(value, name) is not None:
            check_text(value, name)


def check_count(value: Any, name: str) -> None:
    """A whole number of at least 0, in 63 bits."""
    number = getattr(value, name)
    if type(number) is not int:
        if not isinstance(number, int) or isinstance(number, bool):
            raise wrong_type(value, name, "an integer from 0")
        _set(value, name, int(number))
    if not 0 <= number <= LARGEST:
        raise ResponseValidationError(f"{type(value).__name__}.{name} must be an integer from 0 to 2**63 - 1")


def check_number(value: Any, name: str) -> None:
    """A number that JSON can say, as a ``float``: neither NaN nor infinite."""
    number = getattr(value, name)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise wrong_type(value, name, "a number")
    try:
        converted = float(number)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        raise ResponseValidationError(f"{type(value).__name__}.{name} must be a finite number")
    _set(value, name, converted)


def check_flag(value: Any, name: str) -> None:
    """``True`` or ``False``."""
    if type(getattr(value, name)) is not bool:
        raise wrong_type(value, name, "true or false")


def check_is(value: Any, name: str, *kinds: type) -> None:
    """A value of one of *kinds*."""
    if type(getattr(value, name)) not in kinds:
        raise wrong_type(value, name, " or ".join(kind.__name__ for kind in kinds))


def check_items(value: Any, name: str, *kinds: type) -> None:
    """A tuple of values of one of *kinds*, or ``None`` where a converter has let that pass."""
    for item in getattr(value, name) or ():
        if type(item) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise ResponseValidationError(
                f"{type(value).__name__}.{name} must hold {wanted}, not {json_type_name(item)}"
            )


def wrong_type(value: Any, name: str, wanted: str) -> ResponseValidationError:
    """The error that says which field of *value* holds what it must not."""
    got = json_type_name(getattr(value, name))
    return ResponseValidationError(f"{type(value).__name__}.{name} must be {wanted}, not {got}")


def fast_init(cls: type[T]) -> type[T]:
    """Give the frozen slotted attrs class *cls* the constructor of its :func:`mutable_twin`.

    A frozen class sets each field through ``object.__setattr__``, which would make up most of the cost of a
    stream's deltas. Here an instance has the class of its twin while its fields are set, then takes its own
    class back and is frozen: half the time, the same checks. That cannot be done for a subclass, so *cls* is final.
    A class with a constructor of its own does so itself, with its ``__mutable_twin__``.
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
    twin = _twin(cls, hooks)
    added: dict[str, Any] = {
        "__attrs_pre_init__": thaw,
        "__mutable_twin__": twin,
        "__init_subclass__": classmethod(refuse_subclass),
    }
    if "__attrs_init__" not in vars(cls):  # it has no constructor of its own
        frozen_init = vars(cls)["__init__"]
        uses = itertools.count(1)

        @functools.wraps(frozen_init)
        def first_init(*given: Any, **named: Any) -> None:
            # To make a constructor takes as long as the frozen one loses in some hundred values: a process that reads one
            # answer does without.
            if next(uses) > _FROZEN_USES:
                type.__setattr__(cls, "__init__", functools.wraps(frozen_init)(_mutable_init(cls, hooks)))
            frozen_init(*given, **named)

        added["__init__"] = first_init
    for name, value in added.items():
        setattr(cls, name, value)
    return cls


@functools.cache
def mutable_twin(cls: type[Any]) -> type[Any]:
    """A class of the same layout as the frozen class *cls*: its instances can be filled, and then take the class *cls*.

    Making one calls no constructor, and checks nothing.
    """
    return getattr(cls, "__mutable_twin__", None) or _twin(cls, {})


def _twin(cls: type[Any], more: dict[str, Any]) -> type[Any]:
    # All of ``object``'s own that a frozen class replaces: CPython then sets a slot without a call.
    own = {name: getattr(object, name) for name in ("__init__", "__setattr__", "__delattr__")}
    return type(f"_{cls.__name__}", (cls,), {"__slots__": (), **own, **more})


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
    mutable = attrs.make_class(
        cls.__name__, fields, class_body=dict(hooks), slots=False, eq=False, repr=False
    )
    init: Callable[..., None] = vars(mutable)["__init__"]
    return init


@functools.cache
def _fields(cls: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cls))


def altered(value: T, **changes: Any) -> T:
    """A copy of the frozen *value* with *changes*, which need no check: ``attrs.evolve`` checks everything again."""
    cls: Any = type(value)
    copy: Any = mutable_twin(cls)()
    for name in _fields(cls):
        setattr(copy, name, changes[name] if name in changes else getattr(value, name))
    copy.__class__ = cls
    return copy  # type: ignore[no-any-return]
