"""Canonical JSON to values."""

from __future__ import annotations

import typing
from typing import Any, TypeVar

import orjson

from crosswalk.codec.converters import shared_converter, transform_error
from crosswalk.codec.objects import is_canonical
from crosswalk.codec.problems import cannot

__all__ = ["from_json"]

T = TypeVar("T")


def from_json(data: bytes | bytearray | memoryview | str, cls: type[T]) -> T:
    """Read canonical JSON as *cls*: ``from_json(to_json(x), type(x))`` gives *x* back.

    Unknown keys and computed values are ignored. A missing optional key is its default, and so is ``null`` if the
    type allows ``None``. Otherwise types are exact: nothing is coerced, save that a number may be written without a
    point. Finish reasons are read in any case, usage flat or in OpenAI's nested form. Every ``1.x`` format is read. A
    document without a version is a ``1.0``.

    Args:
        data: the JSON text.
        cls: a canonical type, or ``list[…]`` or ``tuple[…, ...]`` of one.

    Raises:
        CanonicalJSONError: it is not JSON, of another format version, or not of this type. ``problems`` lists each
            problem with its path, such as ``expected string, got number @ $.message.content``.
        TypeError: *cls* is not a canonical type, or *data* is neither bytes nor text.
    """
    if not isinstance(data, bytes | bytearray | memoryview | str):
        raise TypeError(f"data is the JSON's bytes or text, not {type(data).__name__}")
    if not is_canonical(cls) and not is_canonical(_item_type(cls)):
        raise TypeError(f"{cls!r} is no canonical type")
    try:
        return shared_converter().loads(data, cls)
    except orjson.JSONDecodeError as error:
        problems = [f"not JSON ({error.msg} at character {error.pos}) @ $"]
    except Exception as error:
        problems = transform_error(error)
    raise cannot("read", cls, problems)  # out here it has no context, which would quote content


def _item_type(cls: Any) -> Any:
    """The type of the items of an array type, or *cls* itself."""
    origin, items = typing.get_origin(cls), typing.get_args(cls)
    return items[0] if origin is list or (origin is tuple and items[1:] == (...,)) else cls
