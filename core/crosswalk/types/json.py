"""JSON values that nobody can change: the form in which a provider's own fields are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import orjson

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import shortened
from crosswalk.types.merge import copy_json

__all__ = ["EMPTY_OBJECT", "FrozenObject", "JSONObject", "JSONValue", "freeze", "thaw"]

JSONValue: TypeAlias = Any
"""A decoded JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, list or dict of these."""
JSONObject: TypeAlias = Mapping[str, JSONValue]
"""A decoded JSON object."""


_new = object.__new__


class FrozenObject(Mapping[str, JSONValue]):
    """A JSON object that is read-only all the way down and keeps the order of its keys (NFR-022, FR-107).

    Objects inside it come out as ``FrozenObject``, arrays as tuples. Equal to any mapping with the same
    content. ``get`` never raises (NFR-017).

    Args:
        value: any mapping of JSON values; it is copied, so that later changes to it do not show here.

    Raises:
        ResponseValidationError: *value* is not a JSON object, or holds what JSON cannot say, such as NaN.
    """

    __slots__ = ("_data",)
    _data: dict[str, JSONValue]

    def __init__(self, value: JSONObject | None = None) -> None:
        try:
            plain = {} if value is None else thaw(value)
            copy = orjson.loads(orjson.dumps(plain))
        except (TypeError, ValueError, RecursionError) as error:
            raise ResponseValidationError(f"not a JSON object: {error}") from None
        # orjson writes null for NaN, and text for a date: not what was given.
        if not isinstance(copy, dict) or copy != plain:
            raise ResponseValidationError("not a JSON object")
        self._data = copy

    @classmethod
    def adopt(cls, data: dict[str, JSONValue]) -> FrozenObject:
        """Freeze *data* without a copy: for freshly parsed JSON that nobody else will change."""
        self = _new(cls)
        self._data = data
        return self

    def __getitem__(self, key: str) -> JSONValue:
        return freeze(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def get(self, key: Any, default: Any = None) -> JSONValue:
        """The value under *key*, or *default*; never raises, whatever *key* is."""
        return freeze(self._data[key]) if key in self else default

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._data

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            same: bool = self._data == thaw(other)
            return same
        return NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._data))

    def __repr__(self) -> str:
        return f"FrozenObject({shortened(repr(self._data)) if self._data else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenObject.adopt, (self._data,)

    def thawed(self) -> dict[str, JSONValue]:
        """A copy in plain dicts and lists, free to be changed."""
        copy: dict[str, JSONValue] = copy_json(self._data)
        return copy


EMPTY_OBJECT = FrozenObject.adopt({})


def freeze(value: JSONValue) -> JSONValue:
    """*value* as a read-only view: dicts as :class:`FrozenObject`, lists as tuples."""
    if isinstance(value, dict):
        return FrozenObject.adopt(value)
    return _freeze_array(value) if isinstance(value, list) else value


def _freeze_array(array: list[JSONValue]) -> tuple[JSONValue, ...]:
    # A loop and no recursion: a stranger's arrays may be nested deeper than Python's stack.
    open_arrays: list[tuple[Iterator[JSONValue], list[JSONValue]]] = [(iter(array), [])]
    while True:
        items, frozen = open_arrays[-1]
        for item in items:
            if isinstance(item, list):
                open_arrays.append((iter(item), []))
                break
            frozen.append(freeze(item))
        else:
            open_arrays.pop()
            if not open_arrays:
                return tuple(frozen)
            open_arrays[-1][1].append(tuple(frozen))


def thaw(value: JSONValue) -> JSONValue:
    """The plain JSON behind *value*: what :func:`freeze` made read-only, as dicts and lists.

    What was frozen is not copied; treat the result as read-only.
    """
    if isinstance(value, FrozenObject):
        return value._data
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def as_frozen_object(value: JSONObject | None) -> FrozenObject:
    """An attrs converter: any mapping, or ``None`` for an empty one, as a :class:`FrozenObject`."""
    if type(value) is FrozenObject:
        return value
    return EMPTY_OBJECT if value is None or value == {} else FrozenObject(value)


def as_frozen_value(value: JSONValue) -> JSONValue:
    """An attrs converter: any JSON value as a copy that is read-only all the way down."""
    if value is None:  # most events of a stream keep none
        return None
    return FrozenObject({"value": value})["value"]
