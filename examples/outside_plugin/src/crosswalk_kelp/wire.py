"""The leaves of Kelp's wire that are more than they look: positions in arrays, paths, numbers in texts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from crosswalk import UnknownEventError, WireTypeError, get_array, get_string

__all__ = ["count", "item", "milliseconds", "patch", "target"]

_TARGET = re.compile(r"/out/(\d{1,4})/(say|think|do|with)")
# One spelling for each number, or one that was lost could not be told from one that was read.
_COUNT = re.compile(r"0|[1-9]\d{0,11}")
_DURATION = re.compile(r"\d{1,9}(\.\d{1,6})?")


def item(array: list[Any], position: int, place: str) -> str | None:
    """The text at *position* of a positional array; ``None`` where the array is shorter."""
    value = array[position] if position < len(array) else None
    return get_string({str(position): value}, str(position), place)


def patch(event: dict[str, Any]) -> tuple[str, str, str]:
    """Operator, path and value of the patch in *event*."""
    array = get_array(event, "p")
    operator, path, value = (item(array, position, "p") for position in range(3))
    if operator is None or path is None or value is None:
        raise WireTypeError("p", expected="operator, path and value", got="less")
    return operator, path, value


def target(path: str) -> tuple[int, str]:
    """The number of the part and the field that *path* leads to."""
    found = _TARGET.fullmatch(path)
    if found is None:
        raise UnknownEventError("a patch of a path that is not known", event_type="p")
    return int(found[1]), found[2]


def count(container: dict[str, Any], key: str, place: str) -> int | None:
    """The count in the text under *key*."""
    text = _matching(container, key, place, _COUNT)
    return None if text is None else int(text)


def milliseconds(container: dict[str, Any], key: str, place: str) -> timedelta | None:
    """The duration in the text under *key*."""
    text = _matching(container, key, place, _DURATION)
    return None if text is None else timedelta(milliseconds=float(text))


def _matching(container: dict[str, Any], key: str, place: str, pattern: re.Pattern[str]) -> str | None:
    text = get_string(container, key, place)
    if text is not None and pattern.fullmatch(text) is None:
        raise WireTypeError(f"{place}.{key}", expected="a number as text", got="another text")
    return text
