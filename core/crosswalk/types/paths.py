"""The paths of a response's canonical fields, as ``metadata.provenance`` writes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, get_args

import attrs

from crosswalk.lazy import pattern
from crosswalk.types.json import FrozenObject
from crosswalk.types.response import ChatResponse

_STEP: Final = pattern(r"(\w+)(?:\[\d+\])?")


@lru_cache(maxsize=256)
def is_canonical(path: str) -> bool:
    """Return whether a response has a field, or a computed one, at *path*, such as ``message.tool_calls[0].id``.

    Every path inside a provider's own fields, such as the extensions, counts as one.
    """
    kinds: tuple[Any, ...] = (ChatResponse,)
    for step in path.split("."):
        if FrozenObject in kinds:
            return True
        result = _STEP.fullmatch(step)
        owners = [kind for kind in kinds if result is not None and _has(kind, result[1])]
        if result is None or not owners:
            return False
        kinds = tuple(buffered for owner in owners for buffered in _held(owner, result[1]))
    return True


def _has(kind: Any, name: str) -> bool:
    return (
        isinstance(kind, type)
        and attrs.has(kind)
        and (name in attrs.fields_dict(kind) or isinstance(getattr(kind, name, None), property))
    )


def _held(kind: Any, name: str) -> Iterator[Any]:
    """Return the classes of field *name* of *kind*. For a list they are the classes of an item."""
    field = attrs.fields_dict(kind).get(name)
    # Read from the text of the annotation: to evaluate the annotations of a class takes milliseconds.
    for word in re.findall(r"\w+", "" if field is None else str(field.type)):
        result = getattr(sys.modules[kind.__module__], word, None)
        yield from get_args(result) or (result,)
