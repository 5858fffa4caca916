"""Canonical types inside of other people's: for who reads and writes attrs classes of their own with cattrs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosswalk.codec.layout import CANONICAL
from crosswalk.codec.reading import read
from crosswalk.codec.writing import to_jsonable

if TYPE_CHECKING:
    from cattrs import BaseConverter

__all__ = ["configure_converter"]


def configure_converter(converter: BaseConverter) -> None:
    """Teach a cattrs *converter* the canonical types, so that a class that holds them is read and written like any other.

    Each is written as in canonical JSON (:func:`to_json`, without the provider's bytes), and read by its rules: nothing is
    coerced, as cattrs would. What is wrong raises :class:`CanonicalJSONError`, in the groups that cattrs makes of errors.
    """
    for cls in CANONICAL:
        converter.register_structure_hook(cls, _structure)
        converter.register_unstructure_hook(cls, to_jsonable)


def _structure(value: Any, cls: Any) -> Any:
    return read(value, cls)
