"""Whether two values are the same in everything, not only in what ``==`` looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from crosswalk.types.raw import RawEvents

__all__ = ["told"]


def told(value: Any) -> Any:
    """Everything in *value*, with its types and the order of its keys, to be compared."""
    if isinstance(value, RawEvents):
        return value.frames
    if isinstance(value, Mapping):
        return type(value), [(key, told(item)) for key, item in value.items()]
    if isinstance(value, tuple | list):
        return type(value), [told(item) for item in value]
    if attrs.has(type(value)):
        return type(value), [told(getattr(value, field.name)) for field in attrs.fields(type(value))]
    return type(value), value
