"""From a frame's bytes to a parsed event: JSON within limits, with every failure typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson

from crosswalk.errors import (
    FramingError,
    InvalidJSONError,
    LineTooLongError,
    NestingTooDeepError,
)
from crosswalk.lazy import pattern
from crosswalk.types.json import dump_json, load_json
from crosswalk.wire.limits import DEFAULT, Limits
from crosswalk.wire.surrogates import load_with_halves, mend_halves

if TYPE_CHECKING:
    from collections.abc import Iterable


Halves: TypeAlias = Literal["refuse", "keep", "mend"]
"""How to treat half of a surrogate pair, see :func:`load_event`."""

# How deep orjson itself goes.
ORJSON_READ_DEPTH = 1024
ORJSON_WRITE_DEPTH = 254

_SHORT = 2_048
"""Up to here counting brackets takes less time than looking for the few containers of a long text."""

# Possessive, so that a hostile string costs no memory. A truncated string counts to its end.
_STRUCTURE = pattern(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def load_event(
    data: bytes, limits: Limits = DEFAULT, *, place: str | None = None, halves: Halves = "refuse"
) -> Any:
    """
    Parse one frame, or one whole body, as JSON.

    Invalid JSON such as ``NaN`` is refused. An error never quotes the payload.

    Args:
        data: the JSON text in UTF-8, without a byte order mark.
        limits: ``line_bytes`` and ``depth`` apply.
        place: the position in the input, for the error's ``place``. ``None`` leaves it to
            :meth:`crosswalk.errors.MappingError.locate`.
        halves: how to treat half of a surrogate pair: ``"refuse"`` the JSON, ``"keep"`` the half, or ``"mend"`` it
            to U+FFFD.

    Returns:
        The values of ``orjson.loads``: dicts, lists, strings, numbers, booleans and ``None``. Integers of any
        length keep all digits.

    Raises:
        InvalidJSONError: it is not JSON or not UTF-8. ``offset`` is the byte at which reading failed.
        LineTooLongError: it is longer than ``limits.line_bytes``.
        NestingTooDeepError: it is nested deeper than ``limits.depth``, or than the 1024 of orjson.
    """
    if len(data) > limits.line_bytes:
        raise LineTooLongError(
            f"the event is longer than {limits.line_bytes} bytes",
            limit=limits.line_bytes,
            place=place,
        )
    try:
        event = load_json(data)
    except orjson.JSONDecodeError as error:
        if halves != "refuse" and "surrogate" in error.msg:
            try:
                event = load_with_halves(data)
            except (ValueError, RecursionError):
                pass
            else:
                if _is_flat(limits.depth, event):
                    if halves == "mend":
                        mend_halves(event)
                    return event
        failure = _failure(data, error, limits, place)
    else:
        # Each level takes two bytes, so most frames are too short to be too deep, and most bodies have too few brackets.
        if (
            len(data) <= 2 * limits.depth
            or (len(data) <= _SHORT and data.count(b"{") + data.count(b"[") <= limits.depth)
            or _is_within(limits.depth, event, data)
        ):
            return event
        failure = _too_deep(limits.depth, place)
    # Raised out here, the error does not carry along orjson's, which holds the payload.
    raise failure


def _is_within(depth: int, event: Any, data: bytes) -> bool:
    """Tell whether *event*, parsed from *data*, is nested at most *depth* levels deep."""
    if _has_few_containers(event, depth) or data.count(b"{") + data.count(b"[") <= depth:
        return True
    # Writing it out again tells the same as walking it, in C and in a fifth of the time: orjson refuses what is
    # deeper than its own limit, and the arrays around the event bring that limit down to ours.
    wrapped = event
    for _ in range(ORJSON_WRITE_DEPTH - depth):
        wrapped = [wrapped]
    if depth <= ORJSON_WRITE_DEPTH:
        try:
            dump_json(wrapped)
        except TypeError:
            return False
        return True
    return _is_flat(depth, event)


def _is_flat(depth: int, event: Any) -> bool:
    """Tell whether *event* is nested at most *depth* levels deep, level by level."""
    level = _containers([event])
    while level and depth:
        depth -= 1
        level = _containers(
            child for parent in level for child in (parent.values() if type(parent) is dict else parent)
        )
    return not level


def _has_few_containers(event: Any, limit: int) -> bool:
    """Return whether *event* has fewer than *limit* objects and arrays. ``False`` also if counting takes long.

    The commonest long event is a text: its few containers are found faster than its brackets are counted.
    """
    result = _containers([event])
    for container in result:
        if len(result) > limit or len(container) > limit:
            return False
        result += _containers(container.values() if type(container) is dict else container)
    return True


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) is dict or type(value) is list]


def _failure(data: bytes, error: orjson.JSONDecodeError, limits: Limits, place: str | None) -> FramingError:
    offset = _byte_offset(data, error)
    depth = min(limits.depth, ORJSON_READ_DEPTH)
    if _is_deeper(depth, data, offset):
        return _too_deep(depth, place)
    cause = f"not JSON at byte {offset}: {error.msg}"
    likeness = None
    if offset <= 1:
        from crosswalk.wire.looks import looks_like  # to read JSON needs none

        likeness = looks_like(data)
    return InvalidJSONError(
        f"{cause}; it looks like {likeness}" if likeness else cause, offset=offset, place=place
    )


def _too_deep(depth: int, place: str | None) -> NestingTooDeepError:
    return NestingTooDeepError(f"the event is nested deeper than {depth} levels", limit=depth, place=place)


def _byte_offset(data: bytes, error: orjson.JSONDecodeError) -> int:
    try:
        text = data.decode()
    except UnicodeDecodeError as not_utf8:
        return not_utf8.start
    return len(text[: error.pos].encode())


def _is_deeper(depth: int, data: bytes, end: int) -> bool:
    """Tell whether *data*, which is not JSON from *end* on, is nested deeper than *depth* before it."""
    level = 0
    for token in _STRUCTURE.finditer(data, 0, end):
        mark = data[token.start()]
        if mark in b"[{":
            level += 1
            if level > depth:
                return True
        elif mark in b"]}":
            level -= 1
    return False
