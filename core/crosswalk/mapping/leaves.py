"""Read leaves of a provider's JSON: the value, ``None`` where it is missing or null, or a typed error."""

from __future__ import annotations

from typing import Any

from crosswalk.errors import WireTypeError

__all__ = [
    "get_array",
    "get_boolean",
    "get_count",
    "get_integer",
    "get_number",
    "get_object",
    "get_string",
    "require_object",
]


_LARGEST_COUNT = 2**63 - 1  # the sum of two can still be written, and nothing counted comes near


def get_string(container: dict[str, Any], key: str, place: str = "") -> str | None:
    """The string under *key*; raises :class:`WireTypeError` naming *place* for any other type."""
    value = container.get(key)
    if value is None or type(value) is str:
        return value
    raise WireTypeError(_at(place, key), expected="string", got=value)


def get_integer(container: dict[str, Any], key: str, place: str = "") -> int | None:
    """The integer under *key*; raises :class:`WireTypeError` for any other type."""
    value = container.get(key)
    if value is None or type(value) is int:
        return value
    raise WireTypeError(_at(place, key), expected="integer", got=value)


def get_count(container: dict[str, Any], key: str, place: str = "") -> int | None:
    """The integer of at least 0, in 63 bits, under *key*; raises :class:`WireTypeError` for anything else."""
    value = get_integer(container, key, place)
    if value is not None and value < 0:
        raise WireTypeError(_at(place, key), expected="a count of at least 0", got=value)
    if value is not None and value > _LARGEST_COUNT:
        raise WireTypeError(_at(place, key), expected="a count of at most 63 bits", got=value)
    return value


def get_number(container: dict[str, Any], key: str, place: str = "") -> float | None:
    """The number under *key*; raises :class:`WireTypeError` for any other type."""
    value = container.get(key)
    if value is None or type(value) is float or type(value) is int:
        return value
    raise WireTypeError(_at(place, key), expected="number", got=value)


def get_boolean(container: dict[str, Any], key: str, place: str = "") -> bool | None:
    """The boolean under *key*; raises :class:`WireTypeError` for any other type."""
    value = container.get(key)
    if value is None or type(value) is bool:
        return value
    raise WireTypeError(_at(place, key), expected="boolean", got=value)


def get_object(container: dict[str, Any], key: str, place: str = "") -> dict[str, Any] | None:
    """The object under *key*; raises :class:`WireTypeError` for any other type."""
    value = container.get(key)
    if value is None or type(value) is dict:
        return value
    raise WireTypeError(_at(place, key), expected="object", got=value)


def get_array(container: dict[str, Any], key: str, place: str = "") -> list[Any]:
    """The array under *key*, empty where missing; raises :class:`WireTypeError` for any other type."""
    value = container.get(key)
    if value is None:
        return []
    if type(value) is list:
        return value
    raise WireTypeError(_at(place, key), expected="array", got=value)


def require_object(value: Any, place: str) -> dict[str, Any]:
    """*value*, which must be an object; raises :class:`WireTypeError` otherwise."""
    if type(value) is dict:
        return value
    raise WireTypeError(place, expected="object", got=value)


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
