"""Read an event by taking: a hook removes the values that it understands, and the remaining ones reach the extensions.

There are two families. ``take_…`` is for values that decide the answer (text, reasoning, calls, finish, identity): a
value of another type than the API promises raises. ``accept_…`` is for everything else: such a value stays where it is,
so that it reaches the extensions as sent, and is noted as ``mistyped``. In both, a key that is missing or ``null``
gives ``None``.

An object, or an array with objects in it, is returned to be taken apart, and stays in the event until it is empty. An
array of anything else is taken whole. Values that are read but also stay are peeked at (:func:`look_at`,
``event.get``).

The names in ``__all__`` are for the authors of plugins, in ``crosswalk.plugins``. The others serve the engine.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Container, Iterator
from typing import Any, Final, TypeVar

from crosswalk.errors import WireTypeError
from crosswalk.types.json import same_json

T = TypeVar("T")

_LARGEST_COUNT: Final = 2**63 - 1  # the sum of two can still be written, and real counts are far smaller
_LARGEST: Final = int(sys.float_info.max)


class Noted(threading.local):
    """The values that ``accept_…`` left in place on this thread since the last call of :func:`mistyped`.

    Hooks have no other way to report them.

    Attributes:
        values: the container of each such value, by the container's identity and the value's key in it.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[int, Any], Any] = {}


NOTED: Final = Noted()


def mistyped() -> list[tuple[Any, Any]]:
    """Return the values of a wrong type that were left, each as its container and its key, and start a new list."""
    result, NOTED.values = NOTED.values, {}
    return [(container, key) for (_, key), container in result.items()]


def note_again(found: list[tuple[Any, Any]]) -> None:
    """Restore the list that :func:`mistyped` returned. Values that were noted meanwhile are discarded."""
    NOTED.values = {(id(container), key): container for container, key in found}


def _leave(container: Any, key: Any) -> None:
    if len(NOTED.values) < 1000:  # 1,000 are proof enough
        NOTED.values[id(container), key] = container


def _refuse(container: Any, key: Any, expected: str, value: object) -> WireTypeError:
    error = WireTypeError(f"[{key}]" if type(key) is int else key, expected=expected, got=value)
    error.__dict__["container"] = container  # the reader adds the location of that in the event
    return error


def wrong_type(container: dict[str, Any], key: str, expected: str) -> WireTypeError:
    """Return the error for a value under *key*, or its absence, that is not as *expected*, if no ``take_…`` can detect
    it.

    The reader adds the location of *container* in the event.
    """
    return _refuse(container, key, expected, container.get(key))


# Each of these is written out: they run for every leaf of every event, and an additional call is measurable.


def take_string(container: dict[str, Any], key: str) -> str | None:
    """Take the string under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or type(value) is str:
        return value
    container[key] = value
    raise _refuse(container, key, "string", value)


def take_integer(container: dict[str, Any], key: str) -> int | None:
    """Take the integer under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or type(value) is int:
        return value
    container[key] = value
    raise _refuse(container, key, "integer", value)


def take_count(container: dict[str, Any], key: str) -> int | None:
    """Take the integer of at least 0, in 63 bits, under *key*. Raises :class:`WireTypeError` for anything else."""
    value = container.pop(key, None)
    if value is None or (type(value) is int and 0 <= value <= _LARGEST_COUNT):
        return value
    container[key] = value
    raise _refuse(container, key, "a count from 0, in 63 bits", value)


def take_number(container: dict[str, Any], key: str) -> float | None:
    """Take the number under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or is_number(value):
        return value  # type: ignore[no-any-return]
    container[key] = value
    raise _refuse(container, key, "number", value)


def take_boolean(container: dict[str, Any], key: str) -> bool | None:
    """Take the boolean under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or type(value) is bool:
        return value
    container[key] = value
    raise _refuse(container, key, "boolean", value)


def take_object(container: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Return the object under *key*, to be taken apart. Raises :class:`WireTypeError` for any other type."""
    value = container.get(key)
    if type(value) is dict:
        if not value:
            del container[key]
        return value
    if value is None:
        container.pop(key, None)
        return None
    raise _refuse(container, key, "object", value)


def take_array(container: dict[str, Any], key: str) -> list[Any]:
    """Return the array under *key*, or an empty one if missing. Raises :class:`WireTypeError` for any other type.

    Objects and arrays in it are to be taken apart. An array without any is taken whole.
    """
    value = container.get(key)
    if type(value) is list:
        if not any(type(item) is dict or type(item) is list for item in value):
            del container[key]
        return value
    if value is None:
        container.pop(key, None)
        return []
    raise _refuse(container, key, "array", value)


def take_objects(container: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the array of objects under *key*, each to be taken apart, or an empty one if missing.

    Raises:
        WireTypeError: it is not an array, or an item is not an object.
    """
    value = container.get(key)
    if type(value) is list:
        for number, item in enumerate(value):
            if type(item) is not dict:
                raise _refuse(value, number, "object", item)
        if not value:
            del container[key]
        return value
    return take_array(container, key)


def take_strings(container: dict[str, Any], key: str) -> list[str]:
    """Take the array of strings under *key*, or an empty one if missing.

    Raises:
        WireTypeError: it is not an array, or an item is not a string.
    """
    value = container.get(key)
    if type(value) is list:
        for number, item in enumerate(value):
            if type(item) is not str:
                raise _refuse(value, number, "string", item)
    return take_array(container, key)


def take_same(container: dict[str, Any], key: str, known: Any) -> bool:
    """Take the value under *key* if it equals *known*, or is ``null``. Return whether it is gone."""
    value = container.get(key)
    if value is None or (value == known and (type(value) is str or same_json(value, known))):
        container.pop(key, None)
        return True
    return False


def require_object(value: Any, place: str = "the event") -> dict[str, Any]:
    """Return *value*, which must be an object. Raises :class:`WireTypeError`, naming *place*, otherwise."""
    if type(value) is dict:
        return value
    raise WireTypeError(place, expected="object", got=value)


def accept_string(container: dict[str, Any], key: str) -> str | None:
    """Take the string under *key*. A value of another type stays, and is noted."""
    return _accept(container, key, look_at(container, key, str))


def accept_integer(container: dict[str, Any], key: str) -> int | None:
    """Take the integer under *key*. A value of another type stays, and is noted."""
    return _accept(container, key, look_at(container, key, int))


def accept_count(container: dict[str, Any], key: str) -> int | None:
    """Take the integer of at least 0, in 63 bits, under *key*. Any other value stays, and is noted."""
    value = container.pop(key, None)  # written out: usage may come with every event
    if value is None or (type(value) is int and 0 <= value <= _LARGEST_COUNT):
        return value
    container[key] = value
    _leave(container, key)
    return None


def accept_number(container: dict[str, Any], key: str) -> float | None:
    """Take the number under *key*. A value of another type stays, and is noted."""
    return _accept(container, key, look_at(container, key, float))


def accept_boolean(container: dict[str, Any], key: str) -> bool | None:
    """Take the boolean under *key*. A value of another type stays, and is noted."""
    return _accept(container, key, look_at(container, key, bool))


def _accept(container: dict[str, Any], key: str, value: T | None) -> T | None:
    """Take *value*, a result of peeking under *key*. ``None`` if it was null, or another value, which stays."""
    if value is not None or container.get(key) is None:
        container.pop(key, None)
    return value


def accept_object(container: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Return the object under *key*, to be taken apart. A value of another type stays, and is noted."""
    value = container.get(key)
    if type(value) is dict:
        if not value:
            del container[key]
        return value
    if value is None:
        container.pop(key, None)
        return None
    _leave(container, key)
    return None


def accept_array(container: dict[str, Any], key: str) -> list[Any]:
    """Return the array under *key*, as :func:`take_array` does. A value of another type stays, and is noted."""
    value = container.get(key)
    if value is None or type(value) is list:
        return take_array(container, key)
    _leave(container, key)
    return []


def accept_objects(container: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the array under *key*, each to be taken apart. Other items stay, and are noted."""
    items = accept_array(container, key)
    results = [item for item in items if type(item) is dict]
    if len(results) < len(items):
        container[key] = items
        for number, item in enumerate(items):
            if type(item) is not dict:
                _leave(items, number)
    return results


def is_number(value: object) -> bool:
    """Whether *value* is a number that fits a ``float``. An integer in JSON may have too many digits."""
    return type(value) is float or (type(value) is int and -_LARGEST <= value <= _LARGEST)


def look_at(container: dict[str, Any], key: str, kind: type[T]) -> T | None:
    """Return the value of type *kind* under *key*, which also stays there, or ``None`` if it is missing.

    A value of another type gives ``None``, too, and is noted. An integer that fits a ``float`` counts as one.
    """
    value = container.get(key)
    is_known = value is None or type(value) is kind or (kind is float and is_number(value))
    if not is_known:
        _leave(container, key)
    return value if is_known else None


def look_at_count(container: dict[str, Any], key: str) -> int | None:
    """:func:`look_at` for an integer of at least 0, in 63 bits."""
    value = container.get(key)
    if value is None or (type(value) is int and 0 <= value <= _LARGEST_COUNT):
        return value
    _leave(container, key)
    return None


def leave_mistyped(container: dict[str, Any], key: str) -> None:
    """Note that the value under *key*, which stays, is not as the API promises, if no ``accept_…`` can detect it."""
    _leave(container, key)


def take_whole(container: dict[str, Any]) -> dict[str, Any]:
    """Take all that remains in *container*, as for a segment that stores it. Values that were noted as mistyped stay."""
    if NOTED.values:
        results: dict[str, Any] = _without(NOTED.values, container)
        return results
    results = dict(container)
    container.clear()
    return results


def _without(left: Container[tuple[int, Any]], value: Any) -> Any:
    """Return *value* without the parts that are in *left*, which alone stay there.

    An array with such parts in it keeps its scalars, too.
    """
    if type(value) is list:
        items = [
            _without(left, item) for position, item in enumerate(value) if (id(value), position) not in left
        ]
        if len(items) == len(value) and not any(type(item) in _CONTAINERS and item for item in value):
            value.clear()
        return items
    if type(value) is not dict:
        return value
    results = {}
    for key in [key for key in value if (id(value), key) not in left]:
        child = value[key]
        results[key] = _without(left, child)
        if not child or type(child) not in _CONTAINERS:
            del value[key]
    return results


_CONTAINERS: Final = (dict, list)


def path_to(value: Any, container: Any) -> str | None:
    """Return the path in *value* to the very object *container*, as ``choices[0].delta``, or ``None`` if it is not in
    it.
    """
    return next((path for result, path in _containers(value, "") if result is container), None)


def _containers(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    level = [(value, path)]
    while level:
        yield from level
        level = [
            (child, (f"{path}[{key}]" if type(parent) is list else f"{path}.{key}" if path else str(key)))
            for parent, path in level
            if type(parent) in (dict, list)
            for key, child in (parent.items() if type(parent) is dict else enumerate(parent))
            if type(child) in (dict, list)
        ]


def prune(event: dict[str, Any], kept: Container[int]) -> None:
    """Remove from *event* the objects and arrays that were emptied, except those with an identity in *kept*.

    The items of an array are only removed together, so that the others keep their indices.
    """
    emptied = None
    for key, value in event.items():  # written out: it runs for every event, and most have few values left
        kind = type(value)
        if kind is dict:
            if value:
                prune(value, kept)
            if value or id(value) in kept:
                continue
        elif kind is not list or not _is_emptied(value, kept):
            continue
        if emptied is None:
            emptied = [key]
        else:
            emptied.append(key)
    if emptied is not None:
        for key in emptied:
            del event[key]


def _is_emptied(items: list[Any], kept: Container[int]) -> bool:
    is_emptied = id(items) not in kept
    for item in items:  # do not stop early: the last item must be pruned as well
        kind = type(item)
        if kind is dict:
            if item:
                prune(item, kept)
            if item or id(item) in kept:
                is_emptied = False
        elif kind is not list or not _is_emptied(item, kept):
            is_emptied = False
    return is_emptied


def empty_containers(event: Any) -> dict[int, Any]:
    """The objects and arrays of *event* that were sent empty by the provider, by their identity.

    References to them are held, so that no object that a hook makes reuses the identity of one that it has taken.
    """
    results: dict[int, Any] = {}
    level = [event] if type(event) is dict or type(event) is list else []
    while level:
        below = []
        for container in level:
            if not container:
                results[id(container)] = container
            for child in container.values() if type(container) is dict else container:
                if type(child) is dict or type(child) is list:
                    below.append(child)
        level = below
    return results
