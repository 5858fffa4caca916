"""How the classes of a program stand in JSON: their keys, and which of these an object has to have."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import attrs

from crosswalk.codec.layout import CANONICAL

__all__ = ["REQUIRED", "is_class", "json_key", "json_word", "required_keys"]

REQUIRED: Final = "required"
"""The key of a field's attrs metadata that makes its JSON key required although the field has a default."""


def is_class(kind: Any) -> bool:
    """Whether *kind* is an attrs class, and not a canonical type, which has a layout of its own."""
    return isinstance(kind, type) and attrs.has(kind) and kind not in CANONICAL


def json_key(field: attrs.Attribute[Any]) -> str:
    """The key of *field* in JSON: its name, or the alias that it is given to the class by."""
    return field.alias or field.name


def required_keys(cls: type) -> frozenset[str]:
    """The keys that the JSON object of *cls* has to have."""
    return frozenset(
        json_key(field)
        for field in attrs.fields(cls)
        if field.init and (field.default is attrs.NOTHING or field.metadata.get(REQUIRED))
    )


def json_word(word: Any) -> Any:
    """What stands in JSON for *word*, of a ``Literal`` or an enumeration."""
    return word.value if isinstance(word, Enum) else word
