"""Canonical values to JSON.

A program that only writes needs nothing of what reads.
"""

from __future__ import annotations

import itertools
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, TypeAlias

import orjson

from crosswalk.codec.layout import ANSWERS, CANONICAL, RAW, TAGS, layout, union_members
from crosswalk.codec.version import FORMAT_VERSION
from crosswalk.plain_errors import CanonicalJSONError
from crosswalk.types.json import (
    FrozenObject,
    dump_json,
    holds_non_finite,
    is_known_json,
    load_json,
    plain_view,
)
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import Segment
from crosswalk.types.usage import Cost

__all__ = ["to_json", "to_jsonable"]

_Writer: TypeAlias = Callable[[Any, list[Any]], dict[str, Any]]
"""Makes the plain dict of a value, and adds to a list whatever in it may hold a float that is no JSON number."""

_LONG: Final = 1024
"""A longer text is written once where it stands twice."""
_FEW: Final = 200
_INDENTED: Final = orjson.OPT_UTC_Z | orjson.OPT_INDENT_2
_DEEPEST: Final = 254  # what orjson writes
_WIDE: Final = 14_284  # bits of the numbers of 4300 digits and more, which Python does not write
_AS_IT_IS: Final = (str, int, bool, datetime)  # and enums: orjson writes them as we want them


def to_json(value: Any, *, indent: bool = False, include_raw: bool = False) -> bytes:
    """Write *value* as canonical JSON, the same bytes for the same value (design, P5).

    Keys are in ``snake_case`` and in a fixed order. What is ``None`` is left out, and so is an empty
    collection where empty is the default. Times are ISO 8601 in UTC, with ``Z``; durations are seconds; enums
    are lowercase words. Extensions stand as the provider sent them, nulls and empty lists included.
    ``total_tokens`` and ``tokens_per_second`` are computed. A :class:`crosswalk.ChatResponse`, alone or in a
    list, ends with ``format_version``.

    Args:
        value: a value of any canonical type, or a list or tuple of them.
        indent: two spaces a level, for people; otherwise no white space at all.
        include_raw: write ``raw_events`` (and a stream event's ``raw_event``) too: each event's bytes as
            text, or as ``{"base64": …}`` where they are no UTF-8.

    Raises:
        CanonicalJSONError: *value* holds what JSON cannot say (NaN, an infinity, a lone surrogate), an integer of more
            than 4300 digits, is nested too deeply, or a field holds a value of a type not its own.
        TypeError: *value* is no canonical type.
    """
    doubtful: list[Any] = []
    plain = _plain(value, include_raw, doubtful)
    if type(value) is ChatResponse:
        _share_text(plain)
    try:
        data = dump_json(plain, option=_INDENTED if indent else orjson.OPT_UTC_Z)
    except TypeError as error:
        problems = list(_unwritable(_plain(value, include_raw, []))) or [f"{error} @ $"]
        raise _cannot(value, problems) from None
    # orjson silently makes null of NaN and infinities.
    if doubtful and data.find(b"null") >= 0 and holds_non_finite(doubtful):
        raise _cannot(value, list(_unwritable(_plain(value, include_raw, []))))
    return data


def to_jsonable(value: Any, *, include_raw: bool = False) -> Any:
    """What :func:`to_json` writes, as plain dicts and lists that are free to be changed.

    Args:
        value: a value of any canonical type, or a list or tuple of them.
        include_raw: include ``raw_events`` and ``raw_event`` too.

    Raises:
        CanonicalJSONError: *value* cannot be written as JSON.
        TypeError: *value* is no canonical type.
    """
    return load_json(to_json(value, include_raw=include_raw))


def _plain(value: Any, include_raw: bool, doubtful: list[Any]) -> Any:
    if type(value) is list or type(value) is tuple:
        return [_plain_object(item, include_raw, doubtful) for item in value]
    return _plain_object(value, include_raw, doubtful)


def _plain_object(value: Any, include_raw: bool, doubtful: list[Any]) -> dict[str, Any]:
    try:
        write = _WRITERS[include_raw][type(value)]
    except KeyError:
        raise TypeError(f"{type(value).__name__} is no canonical type") from None
    try:
        plain = write(value, doubtful)
    except RecursionError:
        raise _cannot(value, ["nested too deeply @ $"]) from None
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        problem = "a field holds a value of a type not its own @ $"
        raise _cannot(value, [problem]) from error
    if type(value) is ChatResponse:
        plain["format_version"] = FORMAT_VERSION
    return plain


class _Writers(dict[type, _Writer]):
    """What writes each canonical type: a function that is written for it, key by key, as attrs writes a constructor."""

    def __init__(self, *, include_raw: bool) -> None:
        self._include_raw = include_raw

    def __missing__(self, cls: type) -> _Writer:
        if cls not in CANONICAL:
            raise KeyError(cls)
        names: dict[str, Any] = {**_KNOWN, "writers": self}
        lines = self._lines(cls, "value", "plain")
        source = "".join(f"    {line}\n" for line in [*lines, "return plain"])
        exec(f"def write(value, doubtful):\n{source}", names)
        # What each answer has is called by its name; what some have is written when there is one. Other threads get the
        # function when it knows all these.
        names |= {each.__name__: self[each] for each in ANSWERS if f"{each.__name__}(" in source}
        return self.setdefault(cls, names["write"])

    def _lines(self, cls: type, value: str, plain: str) -> list[str]:
        """The lines that make the dict *plain* of the variable *value*, an object of type *cls*."""
        keys = [key for key in layout(cls) if self._include_raw or key.name not in RAW]
        first = list(itertools.takewhile(lambda key: not (key.omit_empty or key.nullable), keys))
        lines: list[str] = []
        display = [f"'type': {TAGS[cls]!r}"] if cls in TAGS else []
        for key in first:  # they are always there
            said = _said(key.type, f"{value}.{key.attribute}")
            if key.type in CANONICAL:
                held, said = f"{value}_{key.attribute}", f"{plain}_{key.attribute}"
                lines += [f"{held} = {value}.{key.attribute}", *self._lines(key.type, held, said)]
            display.append(f"{key.name!r}: {said}")
        lines.append(f"{plain} = {{{', '.join(display)}}}")
        for key in keys[len(first) :]:
            is_said = "item" if key.omit_empty else "item is not None"
            held, said = f"{value}.{key.attribute}", _said(key.type, "item")
            if key.type is FrozenObject and key.omit_empty:  # to ask its dict takes no call
                lines.append(f"frozen = {held}")
                held, said = "frozen._data", "item if is_json(frozen) else as_finite(item, doubtful)"
            lines += [f"item = {held}", f"if {is_said}: {plain}[{key.name!r}] = {said}"]
        return lines


_WRITERS: Final = {include_raw: _Writers(include_raw=include_raw) for include_raw in (False, True)}


def _said(kind: Any, item: str) -> str:
    """The expression for what orjson is to write where the variable *item* is of type *kind*."""
    if kind in _AS_IT_IS or (isinstance(kind, type) and issubclass(kind, Enum)):
        return item
    if kind in _BY_TYPE:
        return _BY_TYPE[kind].format(item)
    origin = typing.get_origin(kind)
    if origin is tuple:
        each = typing.get_args(kind)[0]
        said = _said(each, "each")
        if each in CANONICAL and each is not Segment:  # which most answers have
            said = "writers[type(each)](each, doubtful)"
        return item if said == "each" else f"[{said} for each in {item}]"
    if origin is Mapping:
        return f"{item}.copy()"
    if str in union_members(kind):  # a message's content, a text or parts
        parts = f"[writers[type(each)](each, doubtful) for each in {item}]"
        return f"{item} if type({item}) is str else {parts}"
    if kind in CANONICAL and kind is not Cost:  # which few answers have
        return f"{kind.__name__}({item}, doubtful)"
    if kind is Cost or union_members(kind):  # of canonical types
        return f"writers[type({item})]({item}, doubtful)"
    return f"format({item}, 'f')"  # a decimal number


def _number(value: float, doubtful: list[Any]) -> float:
    if not math.isfinite(value):
        doubtful.append(value)
    return float(value) if type(value) is int else value  # 0 and 0.0 are equal, so write them alike


def _as_finite(plain: Any, doubtful: list[Any]) -> Any:
    """The decoded JSON *plain*, which is *doubtful* but where a look at all of it takes no time and finds nothing odd."""
    rest, seen = [plain], 0
    for container in rest:
        seen += len(container)
        if seen > _FEW:
            doubtful.append(plain)
            break
        for item in container.values() if type(container) is dict else container:
            kind = type(item)
            if kind is str or item is None:
                continue
            if kind is dict or kind is list:
                rest.append(item)
            elif kind is float:
                if not math.isfinite(item):
                    doubtful.append(plain)
            elif kind is not int and kind is not bool:
                doubtful.append(plain)
    return plain


def _raw_events(events: RawEvents) -> list[Any]:
    return [_raw_event(frame) for frame in events.frames]


def _raw_event(frame: bytes) -> str | dict[str, str]:
    try:
        return frame.decode()
    except UnicodeDecodeError:
        import base64  # seldom needed

        return {"base64": base64.b64encode(frame).decode()}


_BY_TYPE: Final[dict[Any, str]] = {
    float: "number({}, doubtful)",
    timedelta: "{}.total_seconds()",
    FrozenObject: "as_finite({}._data, doubtful)",
    RawEvents: "raw_events({})",
    Any: "as_finite([plain_view({})], doubtful)[0]",
}
_KNOWN: Final = {
    "number": _number,
    "as_finite": _as_finite,
    "raw_events": _raw_events,
    "plain_view": plain_view,
    "is_json": is_known_json,
}


def _share_text(plain: Any) -> None:
    """Let the text of an answer, which its message and its segment both say, be written once."""
    text = plain["message"].get("content")
    if type(text) is str and len(text) > _LONG:
        segments = plain.get("segments", ())
        if len(segments) == 1 and segments[0].get("content") is text:
            plain["message"]["content"] = segments[0]["content"] = orjson.Fragment(orjson.dumps(text))


def _cannot(value: Any, problems: Sequence[str]) -> CanonicalJSONError:
    from crosswalk.codec.problems import cannot  # what can be written needs none

    return cannot("write", type(value), problems)


def _unwritable(value: Any, path: str = "$", depth: int = 0) -> Iterator[str]:
    """Where and why *value* cannot be written as JSON."""
    from crosswalk.codec.problems import step

    if isinstance(value, str):
        if _has_lone_surrogate(value):
            yield f"a lone surrogate is no Unicode text @ {path}"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"JSON has no number for {value} @ {path}"
    elif type(value) is int:
        if value.bit_length() >= _WIDE and abs(value) >= 10**4300:
            yield f"an integer of more than 4300 digits @ {path}"
    elif isinstance(value, dict | list | tuple):
        if depth == _DEEPEST:
            yield f"nested deeper than {_DEEPEST} levels @ $"
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if isinstance(value, dict) and type(key) is not str:
                yield f"a key that is no string @ {path}"
            elif isinstance(key, str) and _has_lone_surrogate(key):
                yield f"a key with a lone surrogate @ {path}"
            else:
                yield from _unwritable(item, f"{path}{step(key)}", depth + 1)
    elif value is not None and type(value) is not bool and not isinstance(value, datetime):
        yield f"{type(value).__name__} is no JSON value @ {path}"


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
