"""Values of any type out of decoded JSON that has been checked, and JSON of them again."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import attrs
import orjson
from cattrs import BaseConverter
from cattrs.cols import is_namedtuple, namedtuple_dict_structure_factory
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from crosswalk.codec.converters import CanonicalConverter, converter
from crosswalk.codec.layout import union_members
from crosswalk.schemas.check import compile_schema, read_datetime
from crosswalk.schemas.json_schema import fields_of, is_pydantic, schema_of
from crosswalk.schemas.metadata import ExactFloat, Report
from crosswalk.types.json import dump_json


@functools.cache
def answer_converter() -> CanonicalConverter:
    """The converter for the values of answers that the library itself uses. Do not register anything with it."""
    return new_answer_converter()


def new_answer_converter() -> CanonicalConverter:
    """Make a converter of canonical JSON that also reads further types of answers: exact decimals, times with their offset.

    Its input has been checked against the JSON Schema of its type.
    """
    made = converter()
    made.register_structure_hook(Decimal, lambda value, _: _decimal(value))
    made.register_structure_hook(float, lambda value, _: float(value))  # an ExactFloat too
    made.register_structure_hook(datetime, lambda value, _: read_datetime(value))
    made.register_structure_hook(time, lambda value, _: time.fromisoformat(value))
    made.register_unstructure_hook(time, time.isoformat)
    made.register_structure_hook_factory(is_namedtuple, namedtuple_dict_structure_factory)
    made.register_structure_hook_factory(typing.is_typeddict, _typed_dict)
    made.register_structure_hook_factory(_is_open_union, _union)
    made.register_unstructure_hook_func(is_namedtuple, lambda value: made.unstructure(value._asdict()))
    made.register_structure_hook_func(is_pydantic, lambda value, model: model.model_validate(value))
    made.register_unstructure_hook_func(
        is_pydantic, lambda value: value.model_dump(mode="json", by_alias=True)
    )
    made.register_structure_hook_factory(_has_aliases, functools.partial(_aliased, make_dict_structure_fn))
    made.register_unstructure_hook_factory(
        _has_aliases, functools.partial(_aliased, make_dict_unstructure_fn)
    )
    return made


def _decimal(value: Any) -> Decimal:
    return Decimal(value.text if type(value) is ExactFloat else str(value))


def _typed_dict(cls: Any, made: BaseConverter) -> Callable[[Any, Any], Any]:
    """A separate hook, as cattrs does not see ``NotRequired`` in annotations that are texts."""
    kinds = {field.key: field.kind for field in fields_of(cls)}
    return lambda value, _: {
        key: made.get_structure_hook(kind)(value[key], kind) for key, kind in kinds.items() if key in value
    }


def _is_open_union(kind: Any) -> bool:
    return sum(member is not type(None) for member in union_members(kind)) > 1


def _union(kind: Any, made: BaseConverter) -> Callable[[Any, Any], Any]:
    """A hook that takes the member that the check of the whole answer took."""
    members = union_members(kind)
    checks = [compile_schema(schema_of(member)[0]) for member in members]

    def read(value: Any, _: Any) -> Any:
        reports = [Report() for _ in members]
        for check, report in zip(checks, reports, strict=True):
            check(value, "$", report)
        nearest = min(
            range(len(members)), key=lambda at: (len(reports[at].violations), reports[at].distance())
        )
        return made.structure(value, members[nearest])

    return read


def _all_fields(cls: Any) -> Any:
    return (
        attrs.fields(cls)
        if attrs.has(cls)
        else dataclasses.fields(cls)
        if dataclasses.is_dataclass(cls)
        else ()
    )


def _has_aliases(cls: Any) -> bool:
    return isinstance(cls, type) and any("alias" in field.metadata for field in _all_fields(cls))


def _aliased(make: Callable[..., Any], cls: Any, made: Any) -> Any:
    """A hook for a class with keys that are not identifiers."""
    names = {field.name: field.metadata.get("alias") for field in _all_fields(cls)}
    return make(
        cls,
        made,
        _cattrs_use_alias=True,
        **{name: override(rename=key) for name, key in names.items() if key},
    )


def value_to_json(value: Any, *, indent: bool = False) -> bytes:
    """Return the JSON of a value that a parser gave. Its type reads it back as the same value.

    Args:
        value: of a type that can be a schema.
        indent: break and indent it.

    Raises:
        TypeError: it contains a value without a JSON form. In a parsed value only its class can have put one there.
    """
    plain = answer_converter().unstructure(value)
    return dump_json(plain, default=_plain, option=orjson.OPT_INDENT_2 if indent else 0)


def _plain(value: Any) -> Any:
    """Return the JSON of a value in a field of any type."""
    plain = answer_converter().unstructure(value)
    if plain is value:
        raise TypeError(f"{type(value).__name__} cannot be JSON")
    return plain
