"""The JSON keys of a program's own classes."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import attrs

from crosswalk.codec.layout import CANONICAL

__all__ = ["REQUIRED", "is_class", "json_key", "json_word", "required_keys"]

REQUIRED: Final = "required"
"""The key of a field's attrs metadata that makes its JSON key required although the field has a default."""


def is_class(kind: Any) -> bool:
    """Whether *kind* is an attrs class other than a canonical type."""
    return isinstance(kind, type) and attrs.has(kind) and kind not in CANONICAL


def json_key(field: attrs.Attribute[Any]) -> str:
    """The JSON key of *field*: its alias, which is its name by default."""
    return field.alias or field.name


def required_keys(cls: type) -> frozenset[str]:
    """The keys that a JSON object of *cls* needs."""
    return frozenset(
        json_key(field)
        for field in attrs.fields(cls)
        if field.init and (field.default is attrs.NOTHING or field.metadata.get(REQUIRED))
    )


def json_word(word: Any) -> Any:
    """The JSON value of *word*, a member of an enum or a ``Literal``."""
    return word.value if isinstance(word, Enum) else word
