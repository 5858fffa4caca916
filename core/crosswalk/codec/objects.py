"""Hooks for classes: canonical types and attrs classes of a program."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs
from cattrs import BaseConverter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from crosswalk.codec.layout import CANONICAL, RAW, TAGS, Key, layout
from crosswalk.codec.leaves import Read, has_fields, made_of
from crosswalk.codec.problems import Problem
from crosswalk.codec.version import FORMAT_VERSION, check_version
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.usage import OPENAI_COUNTS, OPENAI_DETAILS, UsageInfo

_Object: TypeAlias = dict[str, Any]
_Write: TypeAlias = Callable[[Any], Any]


def is_canonical(kind: Any) -> bool:
    """Whether *kind* is a canonical type, or a class that brings hooks of its own."""
    return isinstance(kind, type) and (kind in CANONICAL or hasattr(kind, "__structure_hook__"))


def add_classes(converter: BaseConverter, *, include_raw: bool) -> None:
    """Register hooks for canonical types, for classes that bring hooks along, and for other attrs classes."""
    converter.register_structure_hook_factory(has_fields, _class_factory)
    converter.register_structure_hook_factory(lambda kind: kind in CANONICAL, _read_factory)
    converter.register_unstructure_hook_factory(
        lambda kind: kind in CANONICAL, functools.partial(_write_document, include_raw=include_raw)
    )
    converter.register_structure_hook_factory(
        lambda kind: hasattr(kind, "__structure_hook__"), lambda kind: kind.__structure_hook__(converter)
    )
    converter.register_unstructure_hook_factory(
        lambda kind: hasattr(kind, "__unstructure_hook__"), lambda kind: kind.__unstructure_hook__(converter)
    )


def _class_factory(cls: Any, converter: BaseConverter) -> Read:
    read = make_dict_structure_fn(cls, converter, _cattrs_use_alias=True)
    return made_of(dict, "object", lambda value: read(value, cls))


# --------------------------------------------------------------------------------------- canonical types


def _read_factory(cls: Any, converter: BaseConverter) -> Read:
    overrides = {field.name: override(omit=True) for field in attrs.fields(cls)}
    overrides |= {key.attribute: override(rename=key.name) for key in layout(cls) if not key.computed}
    read = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=False, **overrides)  # type: ignore[arg-type]
    prepare = functools.partial(_check_tag, TAGS[cls]) if cls in TAGS else _PREPARE.get(cls)
    if prepare is None:
        return made_of(dict, "object", lambda value: read(value, cls))
    return made_of(dict, "object", lambda value: read(prepare(value), cls))


def _check_tag(tag: str, value: _Object) -> _Object:
    if value.get("type") != tag:
        raise Problem.unknown("type", value.get("type"), [tag], at=".type")
    return value


def _check_format(value: _Object) -> _Object:
    if "format_version" in value:
        check_version(value["format_version"])
    return value


_NESTED: Final = {path: name for name, path in {**OPENAI_COUNTS, **OPENAI_DETAILS}.items() if "." in path}


def _flattened(value: _Object) -> _Object:
    """Usage in the flat form, with the counts of OpenAI's details moved up where they are not flat already."""
    counts: _Object = {}
    for path, name in _NESTED.items():
        group, _, key = path.partition(".")
        nested = value.get(group)
        if nested is None:
            continue
        if type(nested) is not dict:
            raise Problem.wrong_type("object", nested, at=f".{group}")
        count = nested.get(key)
        if type(count) is int:
            counts[name] = count
        elif count is not None and value.get(name) is None:
            raise Problem.wrong_type("integer", count, at=f".{path}")
    if not counts:
        return value
    details = {name: counts.pop(name) for name in OPENAI_DETAILS if name in counts}
    nested_counts = {**counts, "details": details} if details else counts
    return {**value, **{name: count for name, count in nested_counts.items() if value.get(name) is None}}


_PREPARE: Final[dict[type, Callable[[_Object], _Object]]] = {
    ChatResponse: _check_format,
    UsageInfo: _flattened,
}


def _write_document(cls: Any, converter: BaseConverter, *, include_raw: bool) -> _Write:
    write = _write_factory(cls, converter, include_raw)
    if cls is not ChatResponse:
        return write
    return lambda response: {**write(response), "format_version": FORMAT_VERSION}


def _write_factory(cls: Any, converter: BaseConverter, include_raw: bool) -> _Write:
    keys = [key for key in layout(cls) if include_raw or key.name not in RAW]
    overrides = {field.name: override(omit=True) for field in attrs.fields(cls)}
    for key in keys:
        if not key.computed:
            overrides[key.attribute] = override(
                rename=key.name,
                omit_if_default=key.omit_default,
                unstruct_hook=_hook_of(cls, key, converter, include_raw),
            )
    write = make_dict_unstructure_fn(cls, converter, **overrides)  # type: ignore[arg-type]
    tag = {"type": TAGS[cls]} if cls in TAGS else {}
    computed = [key.attribute for key in keys if key.computed]
    # cattrs writes those fields first that are never left out.
    fields = [key for name in overrides for key in keys if key.attribute == name]
    if sorted(fields, key=lambda key: key.omit_default) == keys:
        return (lambda value: {**tag, **write(value)}) if tag else write
    names = [*tag, *(key.name for key in keys)]

    def write_in_order(value: Any) -> _Object:
        plain = {**tag, **write(value)}
        for name in computed:
            if (result := getattr(value, name)) is not None:
                plain[name] = result
        return {name: plain[name] for name in names if name in plain}

    return write_in_order


def _hook_of(cls: type, key: Key, converter: BaseConverter, include_raw: bool) -> _Write | None:
    if key.type is ChatResponse and cls is StreamEvent:  # the version stands where a document begins
        return _write_factory(ChatResponse, converter, include_raw)
    if key.type is cls or cls in typing.get_args(key.type):  # it holds itself
        return None
    return converter.get_unstructure_hook(key.type)
