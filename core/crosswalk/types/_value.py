"""Shared helpers of the canonical types: converters to immutable values, checks of fields, and copies."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Set
from enum import StrEnum
from typing import Any, Final, TypeVar

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import json_type_name

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

LARGEST: Final = 2**63 - 1
"""The largest whole number of a field. JSON can still be written with the sum of two of them."""
_new: Final = object.__new__
_set: Final = object.__setattr__


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
    """Return *value* as one of *words*.

    Raises:
        ResponseValidationError: it is not one of them. The message is *wrong*, the code *code*.
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
    """Check text that JSON can contain: no lone surrogates."""
    for name in names:
        text = getattr(value, name)
        if type(text) is str and text.isascii():
            continue
        result = as_text(text, f"{type(value).__name__}.{name}")
        if result is not text:
            _set(value, name, result)


def as_text(value: object, name: str) -> str:
    """Return *value*, named *name* in the message of the error, as text that JSON can contain."""
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
    """Check a number that JSON can contain, as a ``float``: neither NaN nor infinite."""
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
    """Check a tuple of values of one of *kinds*, or ``None`` if a converter has let that pass."""
    for item in getattr(value, name) or ():
        if type(item) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise ResponseValidationError(
                f"{type(value).__name__}.{name} must hold {wanted}, not {json_type_name(item)}"
            )


def wrong_type(value: Any, name: str, wanted: str) -> ResponseValidationError:
    """Return the error that names the wrong field of *value*."""
    got = json_type_name(getattr(value, name))
    return ResponseValidationError(f"{type(value).__name__}.{name} must be {wanted}, not {got}")


@functools.cache
def _defaults(cls: Any) -> dict[str, Any]:
    """The default of each field of an attrs class."""
    return {field.name: field.default for field in attrs.fields(cls)}


def unchecked(cls: type[T], **fields: Any) -> T:
    """A value of the attrs class *cls* with these *fields*, which the caller has checked, and defaults."""
    kind: Any = cls
    made = _new(cls)
    for name, default in _defaults(kind).items():
        _set(made, name, fields.get(name, default))
    return made


def altered(value: T, **changes: Any) -> T:
    """Return a copy of the frozen *value* with *changes*, which need no check. ``attrs.evolve`` checks everything again."""
    cls: Any = type(value)
    copy: T = _new(cls)
    for name in _defaults(cls):
        _set(copy, name, changes[name] if name in changes else getattr(value, name))
    return copy
