"""Values of any type out of decoded JSON that has been checked, and JSON of them again."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import ipaddress
import operator
import typing
from collections.abc import Callable
from datetime import datetime, time
from decimal import Decimal
from enum import Flag, IntFlag
from pathlib import PurePath
from typing import Any, Final

import attrs
import orjson
from cattrs import BaseConverter
from cattrs.errors import AttributeValidationNote, ClassValidationError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from crosswalk.codec.canonical import LISTS, MAPPINGS, CanonicalConverter, converter, is_pair, origin_of
from crosswalk.codec.layout import DocumentProblem, union_members
from crosswalk.schemas.check import compile_schema, read_datetime
from crosswalk.schemas.json_schema import (
    ClassField,
    aliased_type,
    extra_items,
    fields_of,
    has_fields,
    is_alias,
    is_named_tuple,
    is_struct,
    is_typed_dict,
    schema_of,
)
from crosswalk.schemas.metadata import GROWTH, Check, ExactFloat, Growth, Report
from crosswalk.schemas.pydantic_types import is_pydantic, read_with_pydantic, write_with_pydantic
from crosswalk.types.json import dump_json

_TEXT_CLASSES: Final = (
    PurePath, ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
)  # fmt: skip
"""Classes that are made of a text, and written as it."""


@functools.cache
def answer_converter() -> CanonicalConverter:
    """The converter for the values of answers that the library itself uses. Do not register anything with it."""
    return new_answer_converter()


@functools.cache
def growing_converter() -> CanonicalConverter:
    """The converter for the values of an answer that is still being written. It makes each final item of a list once."""
    new_converter = new_answer_converter()
    new_converter.register_structure_hook_func(is_pydantic, functools.partial(_by_pydantic, is_growing=True))
    new_converter.register_structure_hook_factory(_is_list, _growing_list)
    new_converter.register_structure_hook_factory(_is_open_union, functools.partial(_union, is_growing=True))
    return new_converter


def _is_list(kind: Any) -> bool:
    return origin_of(kind) in LISTS and not is_pair(kind)


def _growing_list(kind: Any, base_converter: BaseConverter) -> Callable[[Any, Any], Any]:
    """A hook for a list, which makes its final items once."""
    item_type = (*typing.get_args(kind), Any)[0]
    list_class = LISTS[origin_of(kind)]

    def read(value: Any, _: Any) -> Any:
        growth, structure = GROWTH.get() or Growth(), base_converter.get_structure_hook(item_type)
        items = growth.mapped(value, read, lambda at, each, is_final: structure(each, item_type))
        return items if list_class is list else list_class(items)

    return read


def new_answer_converter() -> CanonicalConverter:
    """Make a converter of canonical JSON that also reads further types of answers: exact decimals, times with their offset.

    Its input has been checked against the JSON Schema of its type.
    """
    new_converter = converter()
    new_converter.register_structure_hook(Decimal, lambda value, _: _decimal(value))
    new_converter.register_structure_hook(float, lambda value, _: float(value))  # an ExactFloat too
    new_converter.register_structure_hook(datetime, lambda value, _: read_datetime(value))
    new_converter.register_structure_hook(time, lambda value, _: time.fromisoformat(value))
    new_converter.register_unstructure_hook(time, time.isoformat)
    new_converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    new_converter.register_structure_hook(bytes, lambda value, _: base64.b64decode(value))
    new_converter.register_unstructure_hook(bytes, lambda value: base64.b64encode(value).decode())
    new_converter.register_structure_hook_func(_is_text, lambda value, kind: kind(value))
    new_converter.register_unstructure_hook_func(_is_text, str)
    for flags in (Flag, IntFlag):
        new_converter.register_structure_hook(flags, _flag)
    new_converter.register_structure_hook_factory(is_alias, _aliased_value)
    new_converter.register_structure_hook_factory(
        lambda kind: has_fields(kind) and not attrs.has(origin_of(kind)), _class
    )
    new_converter.register_unstructure_hook_factory(is_struct, _struct_writer)
    new_converter.register_unstructure_hook_func(
        lambda kind: kind in MAPPINGS,
        lambda value: {key: new_converter.unstructure(item) for key, item in value.items()},
    )
    new_converter.register_structure_hook_factory(_is_open_union, _union)
    new_converter.register_unstructure_hook_func(
        is_named_tuple, lambda value: new_converter.unstructure(value._asdict())
    )
    new_converter.register_structure_hook_factory(
        lambda kind: attrs.has(kind) and _has_aliases(kind),
        functools.partial(_aliased, make_dict_structure_fn),
    )
    new_converter.register_structure_hook_factory(
        _is_generic_attrs, _class
    )  # cattrs leaves the T of an Annotated
    new_converter.register_structure_hook_factory(  # cattrs takes it for the class itself
        _is_annotated_typed_dict,
        lambda kind: new_converter.get_structure_hook(kind.__origin__),
    )
    new_converter.register_structure_hook_func(is_pydantic, _by_pydantic)
    new_converter.register_unstructure_hook_func(is_pydantic, write_with_pydantic)
    new_converter.register_unstructure_hook_factory(
        _has_aliases, functools.partial(_aliased, make_dict_unstructure_fn)
    )
    return new_converter


def _decimal(value: Any) -> Decimal:
    return Decimal(value.text if type(value) is ExactFloat else str(value))


def _by_pydantic(value: Any, kind: Any, *, is_growing: bool = False) -> Any:
    """The value by pydantic's strict mode.

    A validator before a date or decimal gives it a text, which strict mode refuses. There the schema is as strict.
    """
    try:
        return read_with_pydantic(value, kind)
    except Exception:
        report = Report(growth=GROWTH.get() if is_growing else None)
        _pydantic_check(kind)(value, "$", report)
        if report.violations:
            raise
    return read_with_pydantic(value, kind, strict=None)


@functools.lru_cache(1024)
def _pydantic_check(kind: Any) -> Check:
    return compile_schema(schema_of(kind, with_rules=True)[0])


def _is_annotated_typed_dict(kind: Any) -> bool:
    return typing.get_origin(kind) is typing.Annotated and is_typed_dict(origin_of(typing.get_args(kind)[0]))


def _is_text(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _TEXT_CLASSES)


def _is_generic_attrs(kind: Any) -> bool:
    return bool(typing.get_args(kind)) and has_fields(kind) and attrs.has(origin_of(kind))


def _flag(value: Any, kind: Any) -> Any:
    if value & ~functools.reduce(operator.or_, kind).value:
        raise DocumentProblem(f"expected flags of {kind.__name__}, got another number")
    return kind(value)


def _aliased_value(kind: Any, base_converter: BaseConverter) -> Callable[[Any, Any], Any]:
    """A hook for ``type X = …``, which may name itself."""
    target_type = aliased_type(kind)
    return lambda value, _: base_converter.structure(value, target_type)


def _class(cls: Any, base_converter: BaseConverter) -> Callable[[Any, Any], Any]:
    """A hook for a dataclass, typed dict, named tuple, struct, or a generic class of attrs with its arguments."""
    fields, origin, extra_type = fields_of(cls), origin_of(cls), extra_items(origin_of(cls))
    keys = {field.key for field in fields}
    hooks: dict[str, Callable[[Any, Any], Any]] = {}  # found when they are needed: a class may hold itself

    def hook(field: ClassField) -> Callable[[Any, Any], Any]:
        if field.key not in hooks:
            hooks[field.key] = base_converter.get_structure_hook(field.kind)
        return hooks[field.key]

    def read(value: Any, _: Any) -> Any:
        field_values, errors = {}, []
        extra_fields = (
            [ClassField(key, extra_type, True) for key in value if key not in keys] if extra_type else []
        )
        for field in (*fields, *extra_fields):
            if field.key in value and field.name is not None:
                try:
                    field_values[field.name] = hook(field)(value[field.key], field.kind)
                except Exception as error:
                    error.add_note(AttributeValidationNote(f"in {field.key}", field.key, field.kind))
                    errors.append(error)
        if errors:
            raise ClassValidationError(f"{origin.__name__} cannot be read", errors, origin)
        try:
            return origin(**field_values)
        except Exception as error:
            raise ClassValidationError(f"{origin.__name__} refuses its values", [error], origin) from error

    return read


def _struct_writer(cls: Any, base_converter: BaseConverter) -> Callable[[Any], Any]:
    """A hook that writes a struct with its tag."""
    config, names = (
        cls.__struct_config__,
        dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)),
    )
    tag_fields = {} if config.tag is None else {config.tag_field: config.tag}
    return lambda value: (
        tag_fields | {key: base_converter.unstructure(getattr(value, name)) for name, key in names.items()}
    )


def _is_open_union(kind: Any) -> bool:
    return sum(member is not type(None) for member in union_members(kind)) > 1


def _union(
    kind: Any, base_converter: BaseConverter, *, is_growing: bool = False
) -> Callable[[Any, Any], Any]:
    """A hook that takes the member that the check of the whole answer took."""
    members = union_members(kind)
    checks = [compile_schema(schema_of(member, with_rules=True)[0]) for member in members]

    def read(value: Any, _: Any) -> Any:
        growth = GROWTH.get() if is_growing else None
        reports = [Report(growth=growth) for _ in members]
        for check, report in zip(checks, reports, strict=True):
            check(value, "$", report)
        nearest_indexes = sorted(
            range(len(members)), key=lambda index: (len(reports[index].violations), reports[index].distance())
        )
        try:
            return base_converter.structure(value, members[nearest_indexes[0]])
        except Exception:
            for index in nearest_indexes[1:]:
                if any(
                    each.is_advice for each in reports[index].violations
                ):  # pydantic may take it all the same
                    with contextlib.suppress(Exception):
                        return base_converter.structure(value, members[index])
            raise

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


def _aliased(make: Callable[..., Any], cls: Any, base_converter: Any) -> Any:
    """A hook for a class with keys that are not identifiers."""
    alias_by_name = {field.name: field.metadata.get("alias") for field in _all_fields(cls)}
    return make(
        cls,
        base_converter,
        _cattrs_use_alias=True,
        **{name: override(rename=key) for name, key in alias_by_name.items() if key},
    )


def value_to_json(value: Any, *, indent: bool = False) -> bytes:
    """Return the JSON of a value that a parser gave. Its type reads it back as the same value.

    Args:
        value: of a type that can be a schema.
        indent: break and indent it.

    Raises:
        TypeError: it contains a value without a JSON form. In a parsed value only its class can have put one there.
    """
    json_value = answer_converter().unstructure(value)
    option = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if indent else 0)
    return dump_json(json_value, default=_plain, option=option)


def _plain(value: Any) -> Any:
    """Return the JSON of a value in a field of any type."""
    json_value = answer_converter().unstructure(value)
    if json_value is value:
        raise TypeError(f"{type(value).__name__} cannot be JSON")
    return json_value
