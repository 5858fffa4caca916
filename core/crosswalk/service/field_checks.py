"""The checks of a request's fields: validators and converters of attrs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import attrs

from crosswalk.errors import ResponseValidationError
from crosswalk.text import json_type_name

__all__ = ["as_tuple", "need_bool", "need_name", "number"]


def need_name(_: Any, attribute: attrs.Attribute[str], value: object) -> None:
    """An attrs validator: a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ResponseValidationError(f"{attribute.name} must be a text that is not empty")


def need_bool(_: Any, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: a boolean."""
    if type(value) is not bool:
        raise ResponseValidationError(f"{attribute.name} must be a boolean, not {json_type_name(value)}")


def as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    """Convert the list *value* of the field *name* to a tuple.

    Raises:
        ResponseValidationError: it is not a list.
    """
    if not isinstance(value, Iterable):
        raise ResponseValidationError(f"{name} must be a list, not {json_type_name(value)}")
    return tuple(value)


def number(least: float, most: float | None = None, *, whole: bool = False) -> Any:
    """Return a validator: ``None``, or a number from *least* to *most*."""
    kinds: tuple[type, ...] = (int,) if whole else (int, float)

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        top = math.inf if most is None else most
        if value is not None and not (type(value) in kinds and least <= value <= top and value != math.inf):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ResponseValidationError(
                f"{attribute.name} must be a {'whole ' if whole else ''}number, {bounds}"
            )

    return check
