"""Strict hooks for cattrs: texts, numbers, times, words, arrays and mappings."""

from __future__ import annotations

import base64
import dataclasses
import functools
import operator
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

import attrs
from cattrs import BaseConverter
from cattrs.cols import list_structure_factory, mapping_structure_factory

from crosswalk.codec.layout import is_canonical_enum
from crosswalk.codec.problems import Problem, shortened
from crosswalk.text import json_type_name
from crosswalk.types.json import FrozenObject, plain_view
from crosswalk.types.values import RawEvents

Read: TypeAlias = Callable[[Any, Any], Any]
"""A hook of cattrs that makes a value of decoded JSON and of its type."""


def has_fields(kind: Any) -> bool:
    """Whether *kind* is an attrs class or a dataclass, generic or not."""
    return attrs.has(origin_of(kind)) or dataclasses.is_dataclass(origin_of(kind))


def origin_of(kind: Any) -> Any:
    """``list`` of ``list[int]``; a type without arguments is its own."""
    return typing.get_origin(kind) or kind


# ---------------------------------------------------------------------------------------------- leaves


def _exact(kind: type, name: str) -> Read:
    """A hook for values of the type *kind* alone, which JSON calls *name*."""

    def read(value: Any, cls: Any) -> Any:
        if type(value) is kind and cls is kind:
            return value
        if cls is not kind and issubclass(cls, Enum):  # cattrs takes an enum of texts for a text
            return _word(value, cls)
        raise Problem.wrong_type(name, value)

    return read


def _number(value: Any, _: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise Problem.wrong_type("number", value)
    try:
        return float(value)
    except OverflowError:
        raise Problem("expected a number, got one of more than 308 digits") from None


def _duration(value: Any, _: Any) -> timedelta:
    try:
        return timedelta(seconds=_number(value, float))
    except OverflowError:
        raise Problem("expected seconds, got more than a billion days") from None


def _text_of(make: Callable[[str], Any], expected: str) -> Read:
    """A hook for a value that JSON writes as text. *make* raises ValueError for an invalid text."""

    def read(value: Any, _: Any) -> Any:
        if isinstance(value, datetime):  # as some other decoders give it
            value = value.isoformat()
        if type(value) is str:
            try:
                return make(value)
            except (ValueError, OverflowError):
                pass
            raise Problem(f"expected {expected}, got {shortened(value)!r}")
        raise Problem.wrong_type("string", value)

    return read


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError
    return time.astimezone(UTC)


def _time_text(time: datetime) -> str:
    text = time.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _decimal(text: str) -> Decimal:
    whole, point, fraction = text.partition(".")
    for digits in (whole, fraction) if point else (whole,):
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 40):
            raise ValueError
    return Decimal(text)


def made_of(json_type: type, name: str, make: Callable[[Any], Any], other_type: type | None = None) -> Read:
    """A hook for values of *json_type*, which JSON calls *name*, or of *other_type*, which unstructuring makes of them."""

    def read(value: Any, _: Any) -> Any:
        if type(value) is not json_type and type(value) is not other_type:
            raise Problem.wrong_type(name, value)
        return make(value)

    return read


def _raw_events(items: list[Any]) -> RawEvents:
    return RawEvents([_raw_event(item, f"[{index}]") for index, item in enumerate(items)])


def _raw_event(value: Any, at: str) -> bytes:
    if type(value) is str:
        return value.encode()
    encoded = value.get("base64") if type(value) is dict else None
    if type(encoded) is not str:
        raise Problem.wrong_type("string or base64 object", value, at=at)
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise Problem("expected base64", at=f"{at}.base64") from None


def _plain_raw_event(frame: bytes) -> str | dict[str, str]:
    try:
        return frame.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(frame).decode()}


def add_leaves(converter: BaseConverter) -> None:
    """Register hooks for values that are one JSON string, number, boolean, null or object of any content."""
    reads: dict[Any, Read] = {
        str: _exact(str, "string"),
        int: _exact(int, "integer"),
        bool: _exact(bool, "boolean"),
        float: _number,
        NoneType: made_of(NoneType, "null", lambda value: value),
        datetime: _text_of(_time, "an ISO 8601 time with its zone"),
        date: _text_of(date.fromisoformat, "an ISO 8601 date"),
        timedelta: _duration,
        Decimal: _text_of(_decimal, "a decimal number"),
        UUID: _text_of(UUID, "a UUID"),
        Enum: _word,
        FrozenObject: made_of(dict, "object", FrozenObject.adopt),
        RawEvents: made_of(list, "array", _raw_events),
    }
    for kind, read in reads.items():
        converter.register_structure_hook(kind, read)
    converter.register_structure_hook_factory(
        lambda kind: origin_of(kind) is Literal, lambda kind: _one_of(typing.get_args(kind))
    )
    writes: dict[Any, Callable[[Any], Any]] = {
        datetime: _time_text,
        timedelta: timedelta.total_seconds,
        Decimal: lambda value: format(value, "f"),
        UUID: str,
        FrozenObject: operator.attrgetter("_data"),
        RawEvents: lambda events: [_plain_raw_event(frame) for frame in events.frames],
    }
    for kind, write in writes.items():
        converter.register_unstructure_hook(kind, write)
    converter.register_unstructure_hook_func(
        lambda kind: kind is Any,
        lambda value: plain_view(value) if isinstance(value, FrozenObject) else converter.unstructure(value),
    )


# ----------------------------------------------------------------------------------------------- words


def _word(value: Any, words: Any) -> Any:
    return _reader_of(words)(value, words)


@functools.lru_cache
def _reader_of(words: Any) -> Read:
    return _canonical_word(words) if is_canonical_enum(words) else _one_of(list(words))


def _canonical_word(words: Any) -> Read:
    by_word = {word.value: word for word in words}

    def read(value: Any, _: Any) -> Enum:
        if not isinstance(value, str):
            raise Problem.wrong_type("string", value)
        try:
            result: Enum = by_word.get(value) or words(value)  # a finish reason in any case
            return result
        except ValueError:
            raise Problem.unknown("word", value, by_word) from None

    return read


def json_word(word: Any) -> Any:
    """The JSON value of *word*, a member of an enum or a ``Literal``."""
    return word.value if isinstance(word, Enum) else word


def either(words: Iterable[Any]) -> str:
    """*words* as an error message lists them."""
    return " or ".join(shortened(repr(json_word(word))) for word in words)


def _one_of(words: Sequence[Any]) -> Read:
    # By type too: Python takes 1, 1.0 and True for the same.
    by_word = {(type(json_word(word)), json_word(word)): word for word in words}
    expected, kinds = either(words), {kind for kind, _ in by_word}

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list | dict) and (type(value), value) in by_word:
            return by_word[type(value), value]
        another = "another " if type(value) in kinds else ""
        raise Problem(f"expected {expected}, got {another}{json_type_name(value)}")

    return read


# ----------------------------------------------------------------------------------------- collections

LISTS: Final[dict[Any, Callable[[Any], Any]]] = {
    list: list, Sequence: list, Collection: list, Iterable: list, tuple: tuple, set: set, frozenset: frozenset, Set: set,
}  # fmt: skip


_list: Any = list
_dict: Any = dict  # with items that only the run knows


def add_collections(converter: BaseConverter) -> None:
    """Register hooks for arrays and mappings."""
    converter.register_structure_hook_factory(lambda kind: origin_of(kind) in LISTS, _array_factory)
    converter.register_structure_hook_factory(
        lambda kind: origin_of(kind) in (dict, Mapping), _mapping_factory
    )


def _array_factory(kind: Any, converter: BaseConverter) -> Read:
    items, make = typing.get_args(kind), LISTS[origin_of(kind)]
    if make is tuple and items and items[1:] != (...,):
        read_pair = converter.gen_structure_hetero_tuple(kind)

        def make_pair(value: list[Any]) -> Any:
            if len(value) != len(items):
                raise Problem(f"expected an array of length {len(items)}, got one of {len(value)}")
            return tuple(read_pair(value, kind))

        return made_of(list, "array", make_pair, tuple)
    read = list_structure_factory(_list[items[0] if items else Any], converter)
    return made_of(list, "array", lambda value: make(read(value, kind)))


def _mapping_factory(kind: Any, converter: BaseConverter) -> Read:
    read = mapping_structure_factory(_dict[typing.get_args(kind) or (Any, Any)], converter, structure_to=dict)
    return made_of(dict, "object", lambda value: read(value, kind))
