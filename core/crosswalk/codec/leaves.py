"""How the leaves of canonical JSON are read: what is exactly of its type, and nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from crosswalk.codec.problems import Problem, shortened
from crosswalk.types import FrozenObject, RawEvents
from crosswalk.types.json import EMPTY_OBJECT

__all__ = ["LEAVES"]


def _read_string(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise Problem.wrong_type("string", value)
    return value


def _read_integer(value: Any, _: Any) -> int:
    if type(value) is not int:
        raise Problem.wrong_type("integer", value)
    return value


def _read_number(value: Any, _: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise Problem.wrong_type("number", value)
    return float(value)


def _read_boolean(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise Problem.wrong_type("boolean", value)
    return value


def _read_time(value: Any, _: Any) -> datetime:
    if type(value) is not str:
        raise Problem.wrong_type("string", value)
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Problem(f"expected an ISO 8601 time with its zone, got {shortened(value)!r}")


def _read_duration(value: Any, _: Any) -> timedelta:
    try:
        return timedelta(seconds=_read_number(value, float))
    except OverflowError:
        raise Problem("expected seconds, got more than a billion days") from None


def _read_decimal(value: Any, _: Any) -> Decimal:
    if type(value) is not str:
        raise Problem.wrong_type("string", value)
    if not _DECIMAL.fullmatch(value):
        raise Problem(f"expected a decimal number, got {shortened(value)!r}")
    return Decimal(value)


def _read_json_object(value: Any, _: Any) -> FrozenObject:
    if type(value) is not dict:
        raise Problem.wrong_type("object", value)
    return FrozenObject.adopt(value) if value else EMPTY_OBJECT


def _read_raw_events(value: Any, _: Any) -> RawEvents:
    if type(value) is not list:
        raise Problem.wrong_type("array", value)
    return RawEvents([_read_raw_event(item, f"[{index}]") for index, item in enumerate(value)])


def _read_raw_event(value: Any, at: str) -> bytes:
    if type(value) is str:
        return value.encode()
    coded = value.get("base64") if type(value) is dict else None
    if type(coded) is not str:
        raise Problem.wrong_type("string or base64 object", value, at=at)
    try:
        return base64.b64decode(coded, validate=True)
    except ValueError:
        raise Problem("expected base64", at=f"{at}.base64") from None


_DECIMAL: Final = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")
LEAVES: Final[dict[Any, Callable[[Any, Any], Any]]] = {
    str: _read_string,
    int: _read_integer,
    float: _read_number,
    bool: _read_boolean,
    datetime: _read_time,
    timedelta: _read_duration,
    Decimal: _read_decimal,
    FrozenObject: _read_json_object,
    RawEvents: _read_raw_events,
}
"""What reads each of these types, as cattrs calls it: with the value and the type; it raises :class:`Problem`."""
