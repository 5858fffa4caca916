"""Canonical JSON to values."""

from __future__ import annotations

import builtins
import functools
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import orjson

from crosswalk.codec.layout import CANONICAL
from crosswalk.codec.problems import Problem, cannot
from crosswalk.types.json import load_json
from crosswalk.types.response import ChatResponse

__all__ = ["from_json"]

T = TypeVar("T")


def from_json(data: bytes | bytearray | memoryview | str, cls: type[T]) -> T:
    """Read canonical JSON as *cls*: ``from_json(to_json(x), type(x))`` gives *x* back.

    Unknown keys and computed values are ignored, a missing optional key is its default, and ``null`` stands
    for a missing one where the type allows ``None``. Otherwise types are exact: nothing is coerced, save that
    a number may be written without a point. Finish reasons are read in any case, usage flat or in OpenAI's
    nested form. A document of any ``1.x`` format is read; one that names no version is a ``1.0``.

    Args:
        data: the JSON text.
        cls: a canonical type, or ``list[…]`` or ``tuple[…, ...]`` of one.

    Raises:
        CanonicalJSONError: it is no JSON, of another format version, or not of this type; ``problems`` says
            what is wrong and where, such as ``expected string, got number @ $.message.content``.
        TypeError: *cls* is no canonical type, or *data* neither bytes nor text.
    """
    if not isinstance(data, bytes | str):
        if not isinstance(data, bytearray | memoryview):
            raise TypeError(f"data is the JSON's bytes or text, not {type(data).__name__}")
        data = bytes(data)
    if cls not in CANONICAL and _item_type(cls) not in CANONICAL:
        raise TypeError(f"{cls!r} is no canonical type")
    return read_in_general(data, cls)


def read_in_general(data: bytes | str, cls: type[T]) -> T:
    """:func:`from_json` in the general way."""
    try:
        value = load_response(data) if cls is ChatResponse and type(data) is bytes else load_json(data)
    except orjson.JSONDecodeError as error:
        problem = f"not JSON ({error.msg} at character {error.pos}) @ $"
        raise cannot("read", cls, [problem]) from None
    return read(value, cls)


_LONG: Final = 4096
"""Of a shorter document it takes less time to parse all of it."""
_FIRST: Final = b'"message":{"role":"assistant","content":'
_SECOND: Final = b'{"type":"text","content":'
_BEHIND: Final = b'}],"format_version":"1.0"}'
_BETWEEN: Final = 16384
"""Half of what may stand between the two texts."""
_MARK: Final = rb"\u0000"


def load_response(data: bytes) -> Any:
    """``load_json(data)``; of the long text of an answer, which its message and its segment both say, one is parsed.

    The second starts half of what is between them behind the middle. In the place of each a mark is parsed, a string that
    nothing else in the document is. Where marks come out as the two texts, each text was one whole string, and so would come
    out as what it says.
    """
    end = len(data) - len(_BEHIND)
    if end < _LONG or not data.endswith(_BEHIND):
        return load_json(data)
    first = data.find(_FIRST, 0, _LONG)
    middle = (first + end) // 2
    second = data.find(_SECOND, middle, middle + _BETWEEN)
    if first >= 0 <= second:
        first, second = first + len(_FIRST), second + len(_SECOND)
        text = data[first : first + end - second]
        rest = b'%b"%b"%b"%b"%b' % (data[:first], _MARK, data[first + len(text) : second], _MARK, _BEHIND)
        if data.startswith(text, second) and rest.count(_MARK) == 2:
            with suppress(orjson.JSONDecodeError, LookupError, TypeError):
                value, said = load_json(rest), orjson.loads(text)
                message, segment = value["message"], value["segments"][-1]
                if type(said) is str and message["content"] == segment["content"] == "\0":
                    message["content"] = segment["content"] = said
                    return value
    return load_json(data)


def read(value: Any, cls: type[T]) -> T:
    """:func:`from_json` for JSON that is decoded already."""
    item = cls if cls in CANONICAL else _item_type(cls)
    try:
        if item is cls:
            return _readers()[item](value)  # type: ignore[no-any-return]
        if type(value) is list:
            return typing.get_origin(cls)(map(_readers()[item], value))  # type: ignore[misc, no-any-return]
    except Exception:
        pass  # it is not as it is written: the kinds read it, or know what is wrong
    from crosswalk.codec.canonical import KINDS

    try:
        found: T = KINDS.of(cls).read(value)
        return found
    except Problem as problem:
        problems = [f"{each} @ ${each.at}" for each in (problem, *problem.more)]
    except RecursionError:
        problems = ["nested too deeply @ $"]
    raise cannot("read", cls, problems)  # out here it has no context, which would quote content


@functools.cache
def _readers() -> Mapping[Any, Callable[[Any], Any]]:
    # Imported on first use: who only writes, or only imports the codec, need not wait for the kinds.
    from crosswalk.codec.quick import quick_readers

    return quick_readers


def _item_type(cls: Any) -> Any:
    """What an array of type *cls* holds; *cls* itself when it is no array."""
    match typing.get_origin(cls), typing.get_args(cls):
        case (builtins.list, (item,)) | (builtins.tuple, (item, builtins.Ellipsis)):
            return item
    return cls
