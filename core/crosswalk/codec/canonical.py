"""Canonical values to JSON, and two of them compared field by field."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Final

import attrs
import orjson

from crosswalk.codec.converters import is_canonical, shared_converter
from crosswalk.codec.layout import cannot, layout
from crosswalk.plain_errors import CanonicalJSONError
from crosswalk.text import brief
from crosswalk.types.json import dump_json, holds_non_finite, load_json, step
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance, ResponseMetadata, UsageInfo

# --------------------------------------------------------------------------------- writing
# Canonical values to JSON.


_DEEPEST: Final = 254  # what orjson writes
_WIDE_BITS: Final = 14_284  # bits of the numbers of 4300 digits and more, which Python does not write


def to_json(value: Any, *, indent: bool = False, include_raw: bool = False) -> bytes:
    """Write *value* as canonical JSON, the same bytes for the same value (design, P5).

    Keys are in ``snake_case`` and in a fixed order. ``None`` is left out, and so is an empty collection if empty is
    the default. Times are ISO 8601 in UTC with ``Z``, durations are seconds, enums are lowercase words. Extensions
    stay as the provider sent them, nulls and empty lists included. ``total_tokens`` and ``tokens_per_second`` are
    computed. A :class:`crosswalk.ChatResponse`, alone or in a list, ends with ``format_version``.

    Args:
        value: a value of any canonical type, or a list or tuple of them.
        indent: two spaces a level, for people. Otherwise there is no white space.
        include_raw: write ``raw_events`` (and a stream event's ``raw_event``) too: each event's bytes as
            text, or as ``{"base64": …}`` where they are no UTF-8.

    Raises:
        CanonicalJSONError: *value* holds what JSON cannot say (NaN, an infinity, a lone surrogate), an integer of more
            than 4300 digits, is nested too deeply, or a field holds a value of a type not its own.
        TypeError: *value* is no canonical type.
    """
    plain_value = _plain(value, include_raw)
    try:
        json_bytes = dump_json(plain_value, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError as error:
        raise _cannot(value, list(_unwritable(plain_value)) or [f"{error} @ $"]) from None
    # orjson silently makes null of NaN and infinities.
    if b"null" in json_bytes and holds_non_finite(plain_value):
        raise _cannot(value, list(_unwritable(plain_value)))
    return json_bytes


def to_jsonable(value: Any, *, include_raw: bool = False) -> Any:
    """Return the JSON of :func:`to_json` as plain dicts and lists, which you may change.

    Args:
        value: a value of any canonical type, or a list or tuple of them.
        include_raw: include ``raw_events`` and ``raw_event`` too.

    Raises:
        CanonicalJSONError: *value* cannot be written as JSON.
        TypeError: *value* is no canonical type.
    """
    return load_json(to_json(value, include_raw=include_raw))


@functools.cache
def _writer(cls: type, include_raw: bool) -> Callable[[Any], Any]:
    if not is_canonical(cls):
        raise TypeError(f"{cls.__name__} is not a canonical type")
    return shared_converter(include_raw=include_raw).get_unstructure_hook(cls)


def _plain(value: Any, include_raw: bool) -> Any:
    is_array = type(value) is list or type(value) is tuple
    writers = [_writer(each.__class__, include_raw) for each in (value if is_array else (value,))]
    try:
        if not is_array:
            return writers[0](value)
        return [write(each) for write, each in zip(writers, value, strict=True)]
    except RecursionError:
        raise _cannot(value, ["nested too deeply @ $"]) from None
    except (AttributeError, KeyError, TypeError) as error:
        raise _cannot(value, ["a field holds a value of a type not its own @ $"]) from error


def _cannot(value: Any, problems: Sequence[str]) -> CanonicalJSONError:
    return cannot("write", type(value), problems)


def _unwritable(value: Any, path: str = "$", depth: int = 0) -> Iterator[str]:
    """Return where and why *value* cannot be written as JSON."""
    if isinstance(value, str):
        if _has_lone_surrogate(value):
            yield f"a lone surrogate is not Unicode text @ {path}"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"JSON has no number for {value} @ {path}"
    elif type(value) is int:
        if value.bit_length() >= _WIDE_BITS and abs(value) >= 10**4300:
            yield f"an integer of more than 4300 digits @ {path}"
    elif isinstance(value, dict | list | tuple):
        if depth == _DEEPEST:
            yield f"nested deeper than {_DEEPEST} levels @ $"
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if isinstance(value, dict) and type(key) is not str:
                yield f"a key that is not a string @ {path}"
            elif isinstance(key, str) and _has_lone_surrogate(key):
                yield f"a key with a lone surrogate @ {path}"
            else:
                yield from _unwritable(item, f"{path}{step(key)}", depth + 1)
    elif value is not None and type(value) is not bool:
        yield f"{type(value).__name__} is not a JSON value @ {path}"


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# --------------------------------------------------------------------------------- compare
# The differences of two responses, field by field: compares the result of a new mapping with a stored one.


class Absent(Enum):
    """The type of :data:`ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The placeholder for a value that one of two responses does not have. ``None`` is JSON's null."""


@brief
@attrs.frozen
class Difference:
    """A difference of two responses at one path.

    Attributes:
        path: the keys that lead there, such as ``("usage", "cached_tokens")``. Items of an array are counted as
            in the newer response. An item that it does not have is counted as in the older one.
        before: the older value, as plain JSON, or :data:`ABSENT` if there was none.
        after: the newer one, likewise.
    """

    path: tuple[str | int, ...]
    before: Any
    after: Any

    @property
    def place(self) -> str:
        """The path as text: ``message.tool_calls[0].name``."""
        return "".join(map(step, self.path)).removeprefix(".")

    @property
    def field(self) -> str:
        """The same for every item of an array: ``message.tool_calls[].name``."""
        return "".join("[]" if isinstance(key, int) else step(key) for key in self.path).removeprefix(".")

    def __repr__(self) -> str:
        return f"Difference({self.place!r})"


def differences(before: ChatResponse, after: ChatResponse) -> list[Difference]:
    """Return the differences of the canonical JSON of two responses, in the order of its keys.

    Values that no mapping decides are left out: computed values, ``raw_events``, and an id or a time that was made up.
    A made-up one counts as absent, so one that has become the provider's own is a difference. Of two arrays,
    equal items at the start and at the end belong together, so that an inserted item is one difference.

    Args:
        before: the older response, such as a stored one that :func:`crosswalk.from_json` has read.
        after: the newer one.

    Raises:
        CanonicalJSONError: one of them cannot be written as JSON.
    """
    return list(_differences(_said(before), _said(after), ()))


def _said(response: ChatResponse) -> dict[str, Any]:
    """Return the canonical JSON of *response*, without values that no mapping decides."""
    canonical_object: dict[str, Any] = to_jsonable(response)
    for name, cls in (("usage", UsageInfo), ("metadata", ResponseMetadata)):
        for key in layout(cls):
            if key.computed:
                canonical_object[name].pop(key.name, None)
    for name in ("id", "created"):
        if response.metadata.provenance.get(name) is Provenance.SYNTHETIC:
            del canonical_object[name]
    return canonical_object


def _differences(before: Any, after: Any, path: tuple[str | int, ...]) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _differences(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _between_arrays(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield Difference(path, before, after)


def _between_arrays(before: list[Any], after: list[Any], path: tuple[str | int, ...]) -> Iterator[Difference]:
    # As JSON: to Python, true is 1.
    old, new = list(map(orjson.dumps, before)), list(map(orjson.dumps, after))
    shorter_length = min(len(old), len(new))
    start = 0
    while start < shorter_length and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter_length - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old_middle, new_middle = before[start : len(before) - end], after[start : len(after) - end]
    for number in range(max(len(old_middle), len(new_middle))):
        old_item = old_middle[number] if number < len(old_middle) else ABSENT
        new_item = new_middle[number] if number < len(new_middle) else ABSENT
        yield from _differences(old_item, new_item, (*path, start + number))
