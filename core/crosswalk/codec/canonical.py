"""How canonical JSON is read: the kinds of values that the canonical types hold."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, TypeAlias

from crosswalk.codec.kinds import (
    Either,
    Field,
    JSONObject,
    Kind,
    Kinds,
    Leaf,
    Number,
    Object,
)
from crosswalk.codec.layout import CANONICAL, TAGS, field_types, layout, union_members
from crosswalk.codec.problems import Problem, shortened
from crosswalk.codec.version import check_version
from crosswalk.types.json import FrozenObject
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import OPENAI_COUNTS, UsageInfo

__all__ = ["KINDS", "LEAVES"]

_Object: TypeAlias = dict[str, Any]


# ------------------------------------------------------------------------------------------- objects


def _canonical(cls: type) -> Object:
    """A canonical type: its keys are those of :func:`layout`."""
    prepare = functools.partial(_check_tag, TAGS[cls]) if cls in TAGS else _PREPARE.get(cls)
    return Object(cls, lambda: _fields(cls), KINDS, prepare=prepare)


def _fields(cls: type) -> Iterator[Field]:
    types = field_types(cls)
    for key in layout(cls):
        if not key.computed:
            yield Field(key.name, key.attribute, types[key.attribute], key.required)


def _check_tag(tag: str, value: _Object) -> _Object:
    if value.get("type") != tag:
        raise _bad_word("type", value.get("type"), [tag], at=".type")
    return value


def _check_format(value: _Object) -> _Object:
    if "format_version" in value:
        check_version(value["format_version"])
    return value


_NESTED = [path.split(".") for path in OPENAI_COUNTS.values() if "." in path]


def _flattened(value: _Object) -> _Object:
    """Usage with what stands in OpenAI's details lifted up to where our own flat form has it."""
    for details, name in _NESTED:
        nested = value.get(details)
        if nested is None:
            continue
        if type(nested) is not dict:
            raise Problem.wrong_type("object", nested, at=f".{details}")
        count = nested.get(name)
        if count is None or value.get(name) is not None:
            continue
        if type(count) is not int:
            raise Problem.wrong_type("integer", count, at=f".{details}.{name}")
        value = {**value, name: count}
    return value


_PREPARE: Final[dict[type, Callable[[_Object], _Object]]] = {
    ChatResponse: _check_format,
    UsageInfo: _flattened,
}


class _Tagged(Kind):
    """One of several canonical types, told apart by ``type``."""

    json_types = (dict,)

    def __init__(self, members: Iterable[type]) -> None:
        self._members = {TAGS[member]: KINDS.of(member) for member in members}

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        tag = value.get("type")
        if type(tag) is not str or tag not in self._members:
            raise _bad_word("type", tag, self._members, at=".type")
        return self._members[tag].read(value)


# ---------------------------------------------------------------------------------------------- leaves


class _Time(Kind):
    json_types = (str,)

    def read(self, value: Any, keep: bool = False) -> datetime:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        try:
            time = datetime.fromisoformat(value)
            if time.tzinfo is not None:
                return time.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise Problem(f"expected an ISO 8601 time with its zone, got {shortened(value)!r}")


class _Duration(Number):
    def __init__(self) -> None:
        super().__init__()
        self.plain = None

    def read(self, value: Any, keep: bool = False) -> Any:
        try:
            return timedelta(seconds=super().read(value))
        except OverflowError:
            raise Problem("expected seconds, got more than a billion days") from None


class _Decimal(Kind):
    json_types = (str,)

    def read(self, value: Any, keep: bool = False) -> Decimal:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        if not _DECIMAL.fullmatch(value):
            raise Problem(f"expected a decimal number, got {shortened(value)!r}")
        return Decimal(value)


_DECIMAL: Final = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")


class _RawEvents(Kind):
    json_types = (list,)

    def read(self, value: Any, keep: bool = False) -> RawEvents:
        if type(value) is not list:
            raise Problem.wrong_type("array", value)
        return RawEvents([_raw_event(item, f"[{index}]") for index, item in enumerate(value)])


def _raw_event(value: Any, at: str) -> bytes:
    if type(value) is str:
        return value.encode()
    coded = value.get("base64") if type(value) is dict else None
    if type(coded) is not str:
        raise Problem.wrong_type("string or base64 object", value, at=at)
    try:
        return base64.b64decode(coded, validate=True)
    except ValueError:
        raise Problem("expected base64", at=f"{at}.base64") from None


class _Word(Kind):
    """A word of a closed vocabulary; a finish reason in any case."""

    json_types = (str,)

    def __init__(self, words: type[Enum]) -> None:
        self._words = words

    def read(self, value: Any, keep: bool = False) -> Enum:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        try:
            return self._words(value)
        except ValueError:
            raise _bad_word("word", value, [member.value for member in self._words]) from None


def _bad_word(what: str, got: Any, known: Iterable[str], *, at: str = "") -> Problem:
    if type(got) is not str:
        return Problem.wrong_type("string", got, at=at)
    return Problem(f"unknown {what} {shortened(got)!r}, expected {' or '.join(known)}", at=at)


def _own(kind: Any) -> Kind | None:
    members = union_members(kind)
    if members and all(member in TAGS for member in members):
        return _Tagged(members)
    if kind in CANONICAL:
        return _canonical(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Word(kind)
    if str in members and NoneType not in members:  # a text or parts
        return Either([KINDS.of(member) for member in members])
    return None


LEAVES: Final[dict[Any, Kind]] = {
    str: Leaf(str, "string"),
    int: Leaf(int, "integer"),
    float: Number(),
    bool: Leaf(bool, "boolean"),
    datetime: _Time(),
    timedelta: _Duration(),
    Decimal: _Decimal(),
    FrozenObject: JSONObject(),
    Any: Kind(),
}
KINDS: Final = Kinds({**LEAVES, RawEvents: _RawEvents()}, _own)
"""The kinds of canonical values."""
