"""JSON values: read without a lost digit, immutable, merged, compared, copied and located, and SDKs' objects as JSON."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias, TypeGuard

import orjson

from crosswalk.lazy import pattern
from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import shortened

# ----------------------------------------------------------------------------------- merge
# How the extensions of a stream's events add up, and JSON values compared and copied.


MergeRules: TypeAlias = Mapping[str, Any]
"""The plugin's declarations about arrays: nested by key, :data:`PIECES` or :data:`CUMULATIVE` for an array."""

PIECES: Final[MergeRules] = {}
"""Every array below arrives in pieces, which are appended, equal ones included."""
CUMULATIVE: Final[MergeRules] = {}
"""The array, or string, arrives whole each time, longer or unchanged."""
_UNDECLARED_RULES: Final[MergeRules] = {}
_INCREMENT_KEY: Final = "delta"
"""The key of an object that carries increments: unknown strings in it are concatenated, as every accumulator does."""
_NAMING_KEYS: Final = frozenset({"type", "id", "role"})
"""Keys of strings that name something, in an increment as well, so that the last one counts."""
_CONTAINER_TYPES: Final = frozenset({dict, list})


def merge_rules(pieces: tuple[str, ...], cumulative: tuple[str, ...] = ()) -> MergeRules:
    """Paths such as ``choices[].token_ids`` as rules for :func:`merge`."""
    rules: dict[str, Any] = {}
    for paths, rule in ((pieces, PIECES), (cumulative, CUMULATIVE)):
        for path in paths:
            level = rules
            *parents, key = path.replace("[]", "").split(".")
            for name in parents:
                level = level.setdefault(name, {})
            level[key] = rule
    return rules


class Arrays:
    """The state of the arrays that were merged: the position of each item with an ``index``, and repetitions.

    An array that no rule names, and that was the same in every event with it, is stored once, like any repeated field.
    Its occurrences are counted, because all of them are pieces as soon as one differs.

    Attributes:
        is_mixed: whether items with an ``index`` were appended to an array that has items without.
    """

    def __init__(self) -> None:
        self.is_mixed = False
        # Each array itself is held as well: its identity must not become another one's.
        self._indexed_arrays: dict[int, tuple[list[Any], dict[int, Any]]] = {}
        self._repeated_arrays: dict[int, tuple[list[Any], int]] = {}
        self._latest_arrays: dict[int, tuple[list[Any], list[Any]]] = {}

    def by_index(self, items: list[Any]) -> dict[int, Any] | None:
        """The items by index, for the caller to keep up to date, or ``None`` if they are not indexed."""
        entry = self._indexed_arrays.get(id(items))
        if entry is None:
            if items and not is_indexed(items):
                return None
            entry = self._indexed_arrays[id(items)] = items, {item["index"]: item for item in items}
        return entry[1]

    def latest(self, items: list[Any]) -> list[Any]:
        """The cumulative array as it arrived last."""
        entry = self._latest_arrays.get(id(items))
        return items if entry is None else entry[1]

    def receive(self, items: list[Any], arrived: list[Any]) -> None:
        """Note that the cumulative array *items* has *arrived* anew."""
        self._latest_arrays[id(items)] = items, copy_json(arrived)

    def repetitions(self, items: list[Any]) -> int:
        """The number of times the array came so far if it was always the same, or 0 once its pieces are joined."""
        entry = self._repeated_arrays.get(id(items))
        return 1 if entry is None else entry[1]

    def repeat(self, items: list[Any]) -> None:
        """Count the array once more."""
        self._repeated_arrays[id(items)] = items, self.repetitions(items) + 1

    def join(self, items: list[Any]) -> None:
        """Note that the array holds joined pieces from now on."""
        self._repeated_arrays[id(items)] = items, 0
        self._indexed_arrays.pop(id(items), None)


def merge(
    target: dict[str, Any],
    addition: Mapping[str, Any],
    arrays: Arrays,
    rules: MergeRules = _UNDECLARED_RULES,
    *,
    is_increment: bool = False,
) -> dict[str, Any]:
    """Add *addition* to *target*, in place, and return what changed.

    Objects are merged key by key. The last value of a scalar counts, and ``null`` erases nothing. Inside an object
    ``delta`` strings are concatenated. Arrays of objects with an ``index`` are merged item by item. Other
    arrays are appended, as *rules* declare, or stored once while they are the same in every event.

    Args:
        target: the extensions so far.
        addition: the addition, which is not changed.
        arrays: the state of the arrays in *target*.
        rules: the plugin's declarations about arrays.
        is_increment: whether *target* is inside an object ``delta``.
    """
    changes: dict[str, Any] = {}
    for key, value in addition.items():
        kind = type(value)
        if key not in target:
            target[key] = copy_json(value) if kind in _CONTAINER_TYPES else value
            changes[key] = value
            continue
        old_value = target[key]
        if kind is str:
            if (
                is_increment
                and type(old_value) is str
                and key not in _NAMING_KEYS
                and rules.get(key) is not CUMULATIVE
            ):
                if value:
                    target[key] = old_value + value
                    changes[key] = value
            elif value != old_value:
                target[key] = changes[key] = value
        elif kind is float or kind is int:
            if value != old_value or type(old_value) is not kind:
                target[key] = changes[key] = value
        elif value is None:
            pass
        elif kind is type(old_value) and kind in _CONTAINER_TYPES:
            inner_rules = rules if rules is PIECES else rules.get(key, _UNDECLARED_RULES)
            is_inner_increment = (is_increment or key == _INCREMENT_KEY) and inner_rules is not CUMULATIVE
            inner_changes: Any
            if kind is dict:
                inner_changes = merge(old_value, value, arrays, inner_rules, is_increment=is_inner_increment)
            else:
                inner_changes = _merge_arrays(
                    old_value, value, arrays, inner_rules, is_increment=is_inner_increment
                )
            if inner_changes:
                changes[key] = inner_changes
        elif not same_json(old_value, value):
            target[key] = copy_json(value)
            changes[key] = value
    return changes


def _merge_arrays(
    known_items: list[Any], items: list[Any], arrays: Arrays, rules: MergeRules, *, is_increment: bool
) -> list[Any]:
    if is_indexed(items):
        by_index = arrays.by_index(known_items)
        if by_index is not None:
            return _merge_indexed(known_items, by_index, items, arrays, rules, is_increment=is_increment)
        arrays.is_mixed = True
    if rules is CUMULATIVE:
        if not items:
            return []
        last_items = arrays.latest(known_items)
        arrays.receive(known_items, items)
        items = items[len(last_items) :] if same_json(last_items, items[: len(last_items)]) else items
        if not items:
            return []
    elif rules is not PIECES and (count := arrays.repetitions(known_items)):
        if same_json(known_items, items):
            arrays.repeat(known_items)
            return []
        items = known_items * (count - 1) + items
    known_items += copy_json(items)
    arrays.join(known_items)
    return items


def _merge_indexed(
    known_items: list[Any],
    by_index: dict[int, Any],
    items: list[Any],
    arrays: Arrays,
    rules: MergeRules,
    *,
    is_increment: bool,
) -> list[Any]:
    changes = []
    for item in items:
        index = item["index"]
        old_item = by_index.get(index)
        if old_item is None:
            by_index[index] = new_item = copy_json(item)
            known_items.append(new_item)
            changes.append(item)
        elif inner_changes := merge(old_item, item, arrays, rules, is_increment=is_increment):
            changes.append({"index": index, **inner_changes})
    return changes


def adds_up(value: Any, rules: MergeRules, *, is_increment: bool = False) -> bool:
    """Whether *value*, merged once more, could add to what it added before: it holds pieces or an increment."""
    if type(value) is dict:
        for key, item in value.items():
            kind = type(item)
            if kind is str:
                if is_increment and item and key not in _NAMING_KEYS and rules.get(key) is not CUMULATIVE:
                    return True
            elif kind in _CONTAINER_TYPES:
                inner_rules = rules if rules is PIECES else rules.get(key, _UNDECLARED_RULES)
                is_inner_increment = (is_increment or key == _INCREMENT_KEY) and inner_rules is not CUMULATIVE
                if adds_up(item, inner_rules, is_increment=is_inner_increment):
                    return True
        return False
    if is_indexed(value):
        return any(adds_up(item, rules, is_increment=is_increment) for item in value)
    return rules is not CUMULATIVE and bool(value or rules is not PIECES)


class Placed:
    """An object or array, and its path once it is merged.

    Attributes:
        value: the object or array.
        path: its path.
        items: for an array, the places of its items in the one that they are added to.
    """

    __slots__ = ("items", "path", "value")

    def __init__(self, value: Any, path: str, items: Sequence[int] = ()) -> None:
        self.value = value
        self.path = path
        self.items = items


def placed(target: Any, addition: Any, arrays: Arrays, rules: MergeRules) -> Iterator[Placed]:
    """Yield each object and array in *addition*, with its path once that is merged into *target*. See :func:`merge`."""
    stack = [(target, rules, Placed(addition, ""))]
    while stack:
        old_value, value_rules, location = stack.pop()
        value, path = location.value, location.path
        if type(value) is dict:
            yield location
            children = [
                (
                    old_value.get(key) if type(old_value) is dict else None,
                    PIECES if value_rules is PIECES else value_rules.get(key, _UNDECLARED_RULES),
                    Placed(item, f"{path}.{key}" if path else f"{key}"),
                )
                for key, item in value.items()
            ]
        else:
            old_items = old_value if type(old_value) is list else []
            location.items = positions = _places(old_items, value, arrays, value_rules)
            yield location
            children = [
                (
                    old_items[index] if index < len(old_items) else None,
                    value_rules,
                    Placed(item, f"{path}[{index}]"),
                )
                for index, item in zip(positions, value, strict=True)
            ]
        stack += [child for child in children if type(child[2].value) in _CONTAINER_TYPES]


def _places(known_items: list[Any], items: list[Any], arrays: Arrays, rules: MergeRules) -> Sequence[int]:
    """Return the positions of *items* once they are merged into *known_items*."""
    if is_indexed(items) and (not known_items or is_indexed(known_items)):
        position_by_index = {item["index"]: position for position, item in enumerate(known_items)}
        new_positions = itertools.count(len(known_items))
        return [
            position_by_index[index]
            if (index := item["index"]) in position_by_index
            else position_by_index.setdefault(index, next(new_positions))
            for item in items
        ]
    start = len(known_items)
    if rules is CUMULATIVE:
        last_items = arrays.latest(known_items)
        start -= len(last_items) if same_json(last_items, items[: len(last_items)]) else 0
    elif rules is not PIECES and known_items and (count := arrays.repetitions(known_items)):
        start = 0 if same_json(known_items, items) else start * count
    return range(start, start + len(items))


def is_indexed(items: list[Any]) -> bool:
    """Whether *items* are objects that carry their place in an ``index``, as choices and tool calls do."""
    for item in items:
        if type(item) is not dict or type(item.get("index")) is not int:
            return False
    return bool(items)


def copy_json(value: Any) -> Any:
    """*value* with its own dicts and lists, so that adding to it does not change where it came from."""
    kind = type(value)
    if kind is dict:  # a call for each item that is not a container would take most of the time
        return {
            key: copy_json(item) if type(item) in _CONTAINER_TYPES else item for key, item in value.items()
        }
    if kind is list:
        return [copy_json(item) if type(item) in _CONTAINER_TYPES else item for item in value]
    return value


_DEEPEST: Final = 2048
"""No parser of ours reads JSON that is nested deeper."""


def is_finite(value: Any) -> bool:
    """Return whether *value*, of dicts and lists, is as deep as JSON may be. A value that holds itself has no end."""
    level = {id(value): value}
    for _ in range(_DEEPEST):
        items = (
            item
            for container in level.values()
            for item in (container.values() if type(container) is dict else container)
        )
        level = {id(item): item for item in items if type(item) in _CONTAINER_TYPES}
        if not level:
            return True
    return False


def same_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal. Unlike for ``==``, ``true`` is not 1 and 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if type(left) is list:
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


# ------------------------------------------------------------------------------------ json
# JSON without a lost digit, and immutable JSON values: the form of a provider's own fields.


JSONValue: TypeAlias = Any
"""A decoded JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, list or dict of these."""
JSONObject: TypeAlias = Mapping[str, JSONValue]
"""A decoded JSON object."""

_LONGEST_QUOTE: Final = 40


def quoted(text: str) -> str:
    """Return the part of *text*, a key or a word, that a message may quote."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"


def step(key: object) -> str:
    """The part of a path that leads to *key*: ``.name``, ``[3]``, or ``['any other key']``."""
    if isinstance(key, int):
        return f"[{key}]"
    text = str(key)
    if text.isidentifier() and len(text) <= _LONGEST_QUOTE:
        return f".{text}"
    return f"[{quoted(text)!r}]"


# -------------------------------------------------------------------------------------- text and value

# orjson reads an integer of more than 64 bits as a float, and refuses to write one. Such a one has at least 19 digits,
# and of these every sixth is three at least: to look at those first takes a tenth of the time.
_DIGITS_AS_0: Final = bytes(48 if 48 <= byte < 58 else byte for byte in range(256))
_STEP: Final = 6
_THREE_DIGITS: Final = b"000"
_LONG: Final = b"0" * 19
_MOST_PLACES: Final = 16
_BRIEF_SIZE: Final = 1024
"""For a text up to this size, a look at all of it takes no longer than two looks at parts of it."""
_BIG_SIZE: Final = 8192
"""For a bigger text it takes less time to look at its value, if that has few items."""
_MOST_ITEMS: Final = 64
_SHORT_SIZE: Final = 256
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
    if len(data) <= _BRIEF_SIZE and not unique_keys and data.translate(_DIGITS_AS_0).rfind(_LONG) < 0:
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
        or (len(data) < _SHORT_SIZE and type(value) is dict and data.count(b":") == len(value))
    ):
        is_exact = (len(data) > _BIG_SIZE and _has_few_small(value)) or not has_long_integer(data)
    else:
        is_exact = has_unique_keys(data, value)
    return value if is_exact else _load_exactly(data.decode(), unique_keys)


def has_long_integer(data: bytes) -> bool:
    """Whether *data* has so many digits in a row that they may be an integer of more than 64 bits."""
    if len(data) <= _BRIEF_SIZE:
        return data.translate(_DIGITS_AS_0).find(_LONG) >= 0
    sampled_digits = data[::_STEP].translate(_DIGITS_AS_0)
    position, look_count = sampled_digits.find(_THREE_DIGITS), 0
    while position >= 0:
        # They may be of several numbers: a look around shows it. If there are many, look at all of it.
        look_count += 1
        start = position * _STEP
        surroundings = data if look_count > _MOST_PLACES else data[max(start - 18, 0) : start + 31]
        # `in` would raise and catch an error for each byte string: it looks for a number first.
        is_long = surroundings.translate(_DIGITS_AS_0).find(_LONG) >= 0
        if is_long or surroundings is data:
            return is_long
        position = sampled_digits.find(_THREE_DIGITS, position + 1)
    return False


def _has_few_small(value: JSONValue) -> bool:
    """Whether *value*, as orjson has read it, has few items, and no number among them that may have been a wider integer."""
    containers, item_count = [[value]], 0
    while containers:
        container: Any = containers.pop()
        item_count += len(container)
        if item_count > _MOST_ITEMS:
            return False
        for item in container.values() if type(container) is dict else container:
            kind = type(item)
            if kind is dict or kind is list:
                containers.append(item)
            elif kind is float and not -(2.0**63) < item < 2.0**64:
                return False
    return True


def _shortened(token: re.Match[str]) -> str:
    is_wide_integer = token[0][0] != '"' and len(token[0]) > 300 and token[0].lstrip("-").isdigit()
    return "1" if is_wide_integer else token[0]


def has_unique_keys(data: bytes, value: JSONValue) -> bool:
    """Return whether no key and no digit of *data* was lost in its *value*, or ``False`` if that takes longer to find out.

    Each key has its colon, and a lost key or digit took one along. Only an escaped colon could replace it.
    """
    # Much of what models write is written just as orjson would, and then nothing has to be counted.
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_INDENT_2 if data[1:4] == b"\n  " else 0)
    except TypeError:  # nested deeper than it writes
        return False
    if encoded == data:
        return True
    # To leave something out and compare takes half the time of counting it.
    if len(data) - len(data.replace(b":", b"")) != len(encoded) - len(encoded.replace(b":", b"")):
        return False
    if data.find(b"\\") >= 0 and data.find(rb"\u003") >= 0:
        return False
    return not has_long_integer(data)


def may_repeat_keys(data: bytes) -> bool:
    """Return whether an object of the JSON *data* may have a key twice: a quick look, before an exact parser."""
    try:
        return not has_unique_keys(data, orjson.loads(data))
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
    members = dict(pairs)
    if len(members) < len(pairs):
        raise RepeatedKeyError
    return members


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
            plain_value = {} if value is None else plain_view(value)
            copy = load_json(dump_json(plain_value))
        except (TypeError, ValueError, RecursionError) as error:
            raise ResponseValidationError(f"not a JSON object: {error}") from None
        # orjson writes null for NaN, and text for a date: not the value of the caller.
        if copy != plain_value:
            raise ResponseValidationError(
                "not a JSON object: it holds a value that JSON cannot represent, such as NaN or a date"
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
        if not (isinstance(key, str) and key in self._data):
            return default
        value = self._data[key]
        return freeze(value) if isinstance(value, (dict, list)) else value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._data

    def __eq__(self, other: object) -> bool:
        if type(other) is FrozenObject:
            return self._data == other._data
        if isinstance(other, Mapping):
            is_equal: bool = self._data == plain_view(other)
            return is_equal
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


def holds_non_finite(plain_value: Any) -> bool:
    """Return whether a float in *plain_value* is not a JSON number: a fast look before the slow one that finds its path."""
    containers: list[Any] = [[plain_value]]
    for container in containers:  # it grows meanwhile
        for item in container.values() if isinstance(container, dict) else container:
            kind = type(item)
            if kind is str or item is None or kind is int:
                continue
            if kind is float:
                if not -_INFINITY < item < _INFINITY:
                    return True
            elif isinstance(item, _SEQUENCES_AND_OBJECTS):
                containers.append(item)
    return False


_INFINITY: Final = math.inf
_SEQUENCES_AND_OBJECTS: Final = (dict, list, tuple)


def freeze(value: JSONValue) -> JSONValue:
    """*value* as a read-only view: dicts as :class:`FrozenObject`, lists as tuples."""
    if isinstance(value, dict):
        return FrozenObject.adopt(value)
    return _freeze_array(value) if isinstance(value, list) else value


def _freeze_array(array: list[JSONValue]) -> tuple[JSONValue, ...]:
    # A loop and no recursion: a provider's arrays may be nested deeper than Python's stack.
    open_arrays: list[tuple[Iterator[JSONValue], list[JSONValue]]] = [(iter(array), [])]
    while True:
        items, frozen_items = open_arrays[-1]
        for item in items:
            if isinstance(item, list):
                open_arrays.append((iter(item), []))
                break
            frozen_items.append(freeze(item))
        else:
            open_arrays.pop()
            if not open_arrays:
                return tuple(frozen_items)
            open_arrays[-1][1].append(tuple(frozen_items))


def plain_view(value: JSONValue) -> JSONValue:
    """Return the plain JSON behind *value*, as dicts and lists. Do not change it: a :class:`FrozenObject` shares its own."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value
    if kind is FrozenObject:
        return value._data
    if kind is dict or isinstance(value, Mapping):
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


# ---------------------------------------------------------------------------------- dumped
# The objects of providers' SDKs as decoded JSON, without importing any SDK.
#
# They are recognized by their methods: pydantic models, and other objects with their ``model_dump``. Additions of an
# SDK for
# its users, such as a snapshot of the answer so far, are left out, because the server did not send them.


class Dumpable(Protocol):
    """An object of an SDK: a pydantic model."""

    @property
    def model_dump(self) -> Callable[..., Any]:
        """Return its fields."""


_ADDED_FIELDS: Final = ("parsed", "parsed_arguments", "parsed_output")
"""The additions of SDKs to models with names that begin with ``Parsed``."""
_GOOGLE_ADDED_FIELDS: Final = ("sdkHttpResponse", "automaticFunctionCallingHistory", "parsed")
_HELPER_MODULES: Final = ("anthropic.lib.streaming", "openai.lib.streaming")
"""The modules in which SDKs define the events of their helpers for streams."""
_REPEATED_FIELDS: Final = {"content_block_stop": "content_block", "message_stop": "message"}


def is_dumpable(value: object) -> TypeGuard[Dumpable]:
    """Return whether *value* is an object of an SDK, and not such a class."""
    return callable(getattr(value, "model_dump", None)) and not isinstance(value, type)


def dumped(value: Dumpable) -> Any:
    """Return the fields of *value*, an object of an SDK, as decoded JSON, with every field that came.

    Returns:
        The decoded JSON, or ``None`` for an event that only the SDK's helper knows.

    Raises:
        TypeError: it contains a value without a JSON form.
    """
    kind = type(value)
    if kind.__module__.startswith(_HELPER_MODULES):
        return _helpers_event(value)
    fields = _plain(_dump(value))
    if kind.__module__.startswith("google.genai"):
        return {key: each for key, each in fields.items() if key not in _GOOGLE_ADDED_FIELDS}
    return _without(fields, _ADDED_FIELDS) if kind.__name__.startswith("Parsed") else fields


def _dump(value: Any) -> Any:
    return value.model_dump(mode="python", by_alias=True, exclude_unset=True, warnings=False)


def _helpers_event(event: Any) -> Any:
    """Return the part of *event*, from an SDK's helper for streams, that the server has sent."""
    chunk = getattr(event, "chunk", None)
    if chunk is not None:  # openai's: the chunk, together with the result that has been made of it
        return dumped(chunk)
    if not event.type.startswith(("response.", "message_", "content_block_")):
        return None
    return _without(_plain(_dump(event)), (*_ADDED_FIELDS, "snapshot", _REPEATED_FIELDS.get(event.type, "")))


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if isinstance(value, dict):
        return {key: _without(each, names) for key, each in value.items() if key not in names}
    return value


def _plain(value: Any) -> Any:
    """*value* as JSON's own types."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        from base64 import b64encode  # no answer in JSON needs it

        return b64encode(value).decode()  # pydantic would write the alphabet of URLs, which no wire form has
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is not JSON")
