"""JSON out of a text, no deeper than every later use of it can stand."""

from __future__ import annotations

from typing import Any, Final

import orjson

from crosswalk.types.json import load_json

__all__ = ["MAX_DEPTH", "NO_JSON", "SHALLOW", "is_too_deep", "loads", "may_be_too_deep"]

NO_JSON: Final = object()
"""What :func:`loads` gives for what is no JSON."""

MAX_DEPTH: Final = 100
"""How many arrays and objects may stand inside each other: what is deeper could be neither shown nor written again."""

SHALLOW: Final = 2 * MAX_DEPTH
"""A text of so many characters cannot be nested too deeply: each array or object takes two."""


def loads(text: str) -> Any:
    """Decoded JSON, or :data:`NO_JSON`: also where a key is repeated. NaN and infinity are no JSON."""
    try:
        return load_json(text, unique_keys=True)
    except orjson.JSONDecodeError:
        return NO_JSON


def may_be_too_deep(text: str) -> bool:
    """Whether *text* has so many brackets that to look at its depth is worth it."""
    # To leave something out of bytes and compare takes a fifth of the time of counting it in a text.
    data = text.encode(errors="surrogatepass")
    return 2 * len(data) - len(data.replace(b"{", b"")) - len(data.replace(b"[", b"")) > MAX_DEPTH


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
