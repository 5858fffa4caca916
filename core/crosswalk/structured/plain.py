"""Any value of an answer as JSON again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import attrs
import orjson

from crosswalk.codec import to_jsonable
from crosswalk.codec.classes import json_key
from crosswalk.codec.layout import CANONICAL
from crosswalk.types.json import FrozenObject, dump_json, plain_view

__all__ = ["value_to_json"]


def value_to_json(value: Any, *, indent: bool = False) -> bytes:
    """The JSON of a value that a parser gave: its class reads it back as the same value.

    Args:
        value: of an attrs class that can be a schema.
        indent: break and indent it.

    Raises:
        TypeError: it holds what JSON cannot tell; a parsed value does so only where its class put it there.
    """
    option = orjson.OPT_INDENT_2 if indent else 0
    return dump_json(value, default=_plain, option=option)


def _plain(value: Any) -> Any:
    if isinstance(value, FrozenObject):
        return plain_view(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, timedelta):
        return value.total_seconds()
    if type(value) in CANONICAL:
        return to_jsonable(value)
    if attrs.has(type(value)):
        return {
            json_key(field): getattr(value, field.name) for field in attrs.fields(type(value)) if field.init
        }
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON")
