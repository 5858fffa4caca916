"""Decode JSON from a text, no deeper than every later use of it allows."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Final

import orjson

from crosswalk.schemas.metadata import ExactFloat as ExactFloat
from crosswalk.types.json import load_json


class Unread(Enum):
    """The result of :func:`loads` where there is no decoded JSON. No schema admits it, whatever its type."""

    NO_JSON = "not JSON"
    TOO_DEEP = "nested too deeply"


NO_JSON: Final = Unread.NO_JSON
"""The result for text that is not JSON."""

TOO_DEEP: Final = Unread.TOO_DEEP
"""The result for JSON that is nested deeper than :data:`MAX_DEPTH`."""

MAX_DEPTH: Final = 100
"""The greatest depth of nested arrays and objects. Deeper JSON could be neither shown nor written again."""


def loads(text: str, *, is_exact: bool = False) -> Any:
    """Return decoded JSON, or :data:`NO_JSON` if it is not JSON or a key is repeated. NaN and infinity are not JSON.

    With *is_exact* a number with a fraction keeps its digits, as :class:`ExactFloat`.
    """
    data = text.encode("utf-8", "surrogatepass")
    try:
        value = load_json(data, unique_keys=True)
    except orjson.JSONDecodeError:
        return NO_JSON
    if is_exact:
        value = json.loads(text, parse_float=ExactFloat)
    may_be_deep = data.count(b"{") + data.count(b"[") > MAX_DEPTH
    return TOO_DEEP if may_be_deep and is_too_deep(value) else value


def is_too_deep(data: Any) -> bool:
    """Whether *data* is nested deeper than :data:`MAX_DEPTH`."""
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
