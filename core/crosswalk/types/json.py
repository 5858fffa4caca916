"""JSON without a lost digit, and immutable JSON values: the form of a provider's own fields."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import orjson

from crosswalk.lazy import pattern
from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import shortened
from crosswalk.types.merge import copy_json

JSONValue: TypeAlias = Any
"""A decoded JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, list or dict of these."""
JSONObject: TypeAlias = Mapping[str, JSONValue]
"""A decoded JSON object."""

# -------------------------------------------------------------------------------------- text and value

# orjson reads an integer of more than 64 bits as a float, and refuses to write one. Such a one has at least 19 digits,
# and of these every sixth is three at least: to look at those first takes a tenth of the time.
_DIGITS_AS_0: Final = bytes(48 if 48 <= byte < 58 else byte for byte in range(256))
_STEP: Final = 6
_THREE_DIGITS: Final = b"000"
_LONG: Final = b"0" * 19
_MOST_PLACES: Final = 16
_BRIEF: Final = 1024
"""For a text up to this size, a look at all of it takes no longer than two looks at parts of it."""
_BIG: Final = 8192
"""For a bigger text it takes less time to look at its value, if that has few items."""
_FEW: Final = 64
_SHORT: Final = 256
"""For a shorter text it takes less time to count its colons than to write its value again."""
_STRING_OR_INTEGER: Final = pattern(r'"(?:[^"\\]++|\\.)*+"|-?[0-9]++(?:[.eE][0-9eE+.-]*+)?', re.DOTALL)


class RepeatedKeyError(orjson.JSONDecodeError):
    """An object has a key twice although keys must be unique. It is not known which one counts."""

    def __init__(self) -> None:
        super().__init__("a key is repeated", "", 0)


def load_json(text: str | bytes, *, unique_keys: bool = False) -> JSONValue:
    """Return the value of a JSON text, with every digit of an integer.

    Otherwise the result is that of ``orjson.loads``, in nearly its time.

    Args:
        text: the JSON, in UTF-8 if it is bytes.
        unique_keys: refuse an object that has a key twice. By default the last one counts.

    Raises:
        orjson.JSONDecodeError: it is not JSON, or has an integer of more digits than Python converts (4300).
        RepeatedKeyError: a subclass of it, for a repeated key if keys must be unique.
    """
    data: bytes = text if type(text) is bytes else text.encode("utf-8", "surrogatepass")  # type: ignore[union-attr]
    if len(data) <= _BRIEF and not unique_keys and data.translate(_DIGITS_AS_0).rfind(_LONG) < 0:
        return orjson.loads(data)  # most of any stream
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        # It refuses integers of more than 308 digits: without them it shows whether the rest is JSON.
        if not has_long_integer(data):
            raise
        text = _STRING_OR_INTEGER.sub(_shortened, data.decode(errors="surrogateescape"))
        orjson.loads(text.encode(errors="surrogateescape"))
        return _load_exactly(data.decode(), unique_keys)
    if (
        not unique_keys
        # A short object that contains no other, as the commonest answer is: each colon is that of a key.
        or (len(data) < _SHORT and type(value) is dict and data.count(b":") == len(value))
    ):
        is_exact = (len(data) > _BIG and _has_few_small(value)) or not has_long_integer(data)
    else:
        is_exact = _has_unique_keys(data, value)
    return value if is_exact else _load_exactly(data.decode(), unique_keys)


def has_long_integer(data: bytes) -> bool:
    """Whether *data* has so many digits in a row that they may be an integer of more than 64 bits."""
    if len(data) <= _BRIEF:
        return data.translate(_DIGITS_AS_0).find(_LONG) >= 0
    every = data[::_STEP].translate(_DIGITS_AS_0)
    location, looked_at = every.find(_THREE_DIGITS), 0
    while location >= 0:
        # They may be of several numbers: a look around shows it. If there are many, look at all of it.
        looked_at += 1
        start = location * _STEP
        around = data if looked_at > _MOST_PLACES else data[max(start - 18, 0) : start + 31]
        # `in` would raise and catch an error for each byte string: it looks for a number first.
        is_long = around.translate(_DIGITS_AS_0).find(_LONG) >= 0
        if is_long or around is data:
            return is_long
        location = every.find(_THREE_DIGITS, location + 1)
    return False


def _has_few_small(value: JSONValue) -> bool:
    """Whether *value*, as orjson has read it, has few items, and no number among them that may have been a wider integer."""
    remainder, seen = [[value]], 0
    while remainder:
        container: Any = remainder.pop()
        seen += len(container)
        if seen > _FEW:
            return False
        for item in container.values() if type(container) is dict else container:
            kind = type(item)
            if kind is dict or kind is list:
                remainder.append(item)
            elif kind is float and not -(2.0**63) < item < 2.0**64:
                return False
    return True


def _shortened(token: re.Match[str]) -> str:
    is_wide_integer = token[0][0] != '"' and len(token[0]) > 300 and token[0].lstrip("-").isdigit()
    return "1" if is_wide_integer else token[0]


def _has_unique_keys(data: bytes, value: JSONValue) -> bool:
    """Return whether no key and no digit of *data* was lost in its *value*, or ``False`` if that takes longer to find out.

    Each key has its colon, and a lost key or digit took one along. Only an escaped colon could replace it.
    """
    # Much of what models write is written just as orjson would, and then nothing has to be counted.
    try:
        written = orjson.dumps(value, option=orjson.OPT_INDENT_2 if data[1:4] == b"\n  " else 0)
    except TypeError:  # nested deeper than it writes
        return False
    if written == data:
        return True
    # To leave something out and compare takes half the time of counting it.
    if len(data) - len(data.replace(b":", b"")) != len(written) - len(written.replace(b":", b"")):
        return False
    if data.find(b"\\") >= 0 and data.find(rb"\u003") >= 0:
        return False
    return not has_long_integer(data)


def may_repeat_keys(data: bytes) -> bool:
    """Return whether an object of the JSON *data* may have a key twice: a quick look, before an exact parser."""
    try:
        return not _has_unique_keys(data, orjson.loads(data))
    except orjson.JSONDecodeError:  # an integer of more than 308 digits
        return True


def _load_exactly(text: str, unique_keys: bool) -> JSONValue:
    try:
        return json.loads(text, object_pairs_hook=_unique if unique_keys else None)
    except orjson.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # more digits, or more levels, than Python takes
        limit = "digits" if isinstance(error, ValueError) else "levels"
    raise orjson.JSONDecodeError(f"too many {limit}", "", 0)


def _unique(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    results = dict(pairs)
    if len(results) < len(pairs):
        raise RepeatedKeyError
    return results


def dump_json(
    value: JSONValue, *, default: Callable[[Any], Any] | None = None, option: int | None = None
) -> bytes:
    """Return the JSON text of a value, with every digit of an integer. Otherwise as ``orjson.dumps``, in its time.

    Args:
        value: values that orjson writes, and integers of any length.
        default: as for orjson: makes plain values of others.
        option: as for orjson.

    Raises:
        TypeError: JSON has no form for it, or it is an integer of more digits than Python converts (4300).
    """
    try:
        return orjson.dumps(value, default=default, option=option)
    except TypeError as error:
        if "64-bit" not in str(error):
            raise
    try:
        return orjson.dumps(
            _with_digits(value), default=default and (lambda each: _with_digits(default(each))), option=option
        )
    except (ValueError, RecursionError) as error:
        limit = "digits" if isinstance(error, ValueError) else "levels"
    raise TypeError(f"too many {limit}")


def _with_digits(value: Any) -> Any:
    """*value* with its integers of more than 64 bits as the text of their digits."""
    if type(value) is int:
        return value if -(2**63) <= value < 2**64 else orjson.Fragment(str(value))
    if type(value) is dict:
        return {key: _with_digits(item) for key, item in value.items()}
    return [_with_digits(item) for item in value] if type(value) in (list, tuple) else value


# ------------------------------------------------------------------------------------------ frozen values

_new = object.__new__


class FrozenObject(Mapping[str, JSONValue]):
    """A JSON object that is read-only all the way down and keeps the order of its keys.

    Objects inside it come out as ``FrozenObject``, arrays as tuples. Equal to any mapping with the same
    content. ``get`` never raises.

    Args:
        value: any mapping of JSON values. It is copied, so that later changes to it do not show here.

    Raises:
        ResponseValidationError: *value* is not a JSON object, or contains a value without a JSON form, such as NaN.
    """

    __slots__ = ("_data",)
    _data: dict[str, JSONValue]

    def __init__(self, value: JSONObject | None = None) -> None:
        try:
            plain = {} if value is None else plain_view(value)
            copy = load_json(dump_json(plain))
        except (TypeError, ValueError, RecursionError) as error:
            raise ResponseValidationError(f"not a JSON object: {error}") from None
        # orjson writes null for NaN, and text for a date: not the value of the caller.
        if copy != plain:
            raise ResponseValidationError(
                "not a JSON object: it holds what JSON cannot say, such as NaN or a date"
            )
        if not isinstance(copy, dict):
            raise ResponseValidationError("not a JSON object")
        self._data = copy

    @classmethod
    def adopt(cls, data: dict[str, JSONValue]) -> FrozenObject:
        """Freeze *data* without a copy: for freshly parsed JSON that no other code will change."""
        return adopted(data)

    def __getitem__(self, key: str) -> JSONValue:
        return freeze(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def get(self, key: Any, default: Any = None) -> JSONValue:
        """Return the value under *key*, or *default*. Never raises, whatever *key* is."""
        return freeze(self._data[key]) if key in self else default

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._data

    def __eq__(self, other: object) -> bool:
        if type(other) is FrozenObject:
            return self._data == other._data
        if isinstance(other, Mapping):
            same: bool = self._data == plain_view(other)
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


def adopted(data: dict[str, JSONValue]) -> FrozenObject:
    """:meth:`FrozenObject.adopt`, for a caller that makes many."""
    frozen = _new(FrozenObject)
    frozen._data = data
    return frozen


EMPTY_OBJECT = adopted({})


def holds_non_finite(plain: Any) -> bool:
    """Return whether a float in *plain* is not a JSON number: a fast look before the slow one that finds its path."""
    containers: list[Any] = [[plain]]
    for container in containers:  # it grows meanwhile
        for item in container.values() if isinstance(container, dict) else container:
            kind = type(item)
            if kind is str or item is None or kind is int:
                continue
            if kind is float:
                if not -_INFINITY < item < _INFINITY:
                    return True
            elif isinstance(item, _CONTAINERS):
                containers.append(item)
    return False


_INFINITY: Final = math.inf
_CONTAINERS: Final = (dict, list, tuple)


def freeze(value: JSONValue) -> JSONValue:
    """*value* as a read-only view: dicts as :class:`FrozenObject`, lists as tuples."""
    if isinstance(value, dict):
        return FrozenObject.adopt(value)
    return _freeze_array(value) if isinstance(value, list) else value


def _freeze_array(array: list[JSONValue]) -> tuple[JSONValue, ...]:
    # A loop and no recursion: a provider's arrays may be nested deeper than Python's stack.
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


def plain_view(value: JSONValue) -> JSONValue:
    """Return the plain JSON behind *value*, as dicts and lists. Do not change it: a :class:`FrozenObject` shares its own."""
    if isinstance(value, FrozenObject):
        return value._data
    if isinstance(value, Mapping):
        return {key: plain_view(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_view(item) for item in value]
    return value


def thaw(value: JSONValue) -> JSONValue:
    """Return a copy of a value that :func:`freeze` made read-only, in plain dicts and lists that may be changed."""
    return copy_json(plain_view(value))


def as_frozen_object(value: JSONObject | None) -> FrozenObject:
    """An attrs converter: any mapping, or ``None`` for an empty one, as a :class:`FrozenObject`."""
    if type(value) is FrozenObject:
        return value
    return EMPTY_OBJECT if value is None or value == {} else FrozenObject(value)


def as_frozen_value(value: JSONValue) -> JSONValue:
    """An attrs converter: any JSON value as a copy that is read-only all the way down."""
    if value is None:  # most events of a stream have none
        return None
    return FrozenObject({"value": value})["value"]


def as_json_object(text: str) -> dict[str, Any] | None:
    """Return *text* as a JSON object, or ``None`` if it is something else."""
    try:
        value = load_json(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
