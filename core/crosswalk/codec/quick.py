"""Reads canonical JSON that is what :func:`~crosswalk.codec.to_json` writes, twice as fast as kind by kind.

For each type a function is written that takes the keys one by one, as attrs writes a constructor. Of whatever is not as
it is written it raises something: then the kinds of ``crosswalk.codec.canonical`` read it, or say what is wrong with it
and where. So what is read here is what they would read, and only what is usual need be known here.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.codec.canonical import KINDS, LEAVES
from crosswalk.codec.layout import CANONICAL, TAGS, Key, layout, union_members
from crosswalk.codec.version import FORMAT_VERSION
from crosswalk.types._value import as_optional_tuple, as_tuple, mutable_twin
from crosswalk.types.delta import as_finish_reason
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object
from crosswalk.types.metadata import ResponseMetadata, as_provenance, number_metadata
from crosswalk.types.raw import RawEvents, as_raw_events
from crosswalk.types.response import ChatResponse, as_utc, counted_tokens
from crosswalk.types.usage import UsageInfo

__all__ = ["quick_readers"]

_Reader: TypeAlias = Callable[[Any], Any]

_OTHERWISE_WRITTEN: Final[dict[type, tuple[str, ...]]] = {
    UsageInfo: ("prompt_tokens_details", "completion_tokens_details"),  # OpenAI's form
}
"""Keys that stand for others: the kinds know which."""

_REDUNDANT: Final = (
    as_finish_reason,
    as_frozen_object,
    as_optional_tuple,
    as_provenance,
    as_raw_events,
    as_tuple,
    as_utc,
)
"""Converters of fields that leave what is read here as it is; the others are called."""


class _Readers(dict[type, _Reader]):
    """What reads each canonical type: written when it is first read."""

    def __missing__(self, cls: type) -> _Reader:
        return self.setdefault(cls, _written(cls))


quick_readers: Final = _Readers()
"""By canonical type what reads the decoded JSON of a value of it; it raises any exception for what is unusual."""


class _Unusual(Exception):
    """The kinds are to read it."""


def _written(cls: Any) -> _Reader:
    names: dict[str, Any] = {"cls": cls, "twin": mutable_twin(cls), "Unusual": _Unusual, **_KNOWN}
    lines = ["get = value.get"]
    if cls in TAGS:
        lines.append(f"if value['type'] != {TAGS[cls]!r}: raise Unusual")
    if cls is ChatResponse:
        lines.append(f"if get('format_version', {FORMAT_VERSION!r}) != {FORMAT_VERSION!r}: raise Unusual")
    lines += [f"if {name!r} in value: raise Unusual" for name in _OTHERWISE_WRITTEN.get(cls, ())]
    fields = attrs.fields_dict(cls)
    made = ["made = twin()"]
    for key in layout(cls):
        if key.computed:
            continue
        field = f"its_{key.attribute}"
        made.append(f"made.{key.attribute} = {field}")
        checked = _checked(key, names)
        convert: Any = fields[key.attribute].converter
        if convert is not None and convert not in _REDUNDANT:
            names[f"{field}_as"] = convert
            checked.append(f"{field} = {field}_as({field})")
        if key.required:
            lines += [f"{field} = value[{key.name!r}]", *checked]
        elif key.nullable:
            lines += [f"{field} = get({key.name!r})", f"if {field} is not None:"]
            lines += [f"    {line}" for line in checked]
        else:
            names[f"{field}_default"] = fields[key.attribute].default
            lines += [f"if {key.name!r} in value:", f"    {field} = value[{key.name!r}]"]
            lines += [f"    {line}" for line in checked]
            lines.append(f"else: {field} = {field}_default")
    unread = fields.keys() - {key.attribute for key in layout(cls)}
    made += [f"made.{name} = {fields[name].default!r}" for name in sorted(unread)]
    if cls is ChatResponse:
        names |= {"counted": counted_tokens, "count": number_metadata}
        made.append("count(its_metadata, counted(its_usage, its_metadata.provenance))")
    made.append("made.__class__ = cls")
    made.append("check(made)")
    names["check"] = cls.__attrs_post_init__
    source = "def read(value):\n" + "".join(f"    {line}\n" for line in [*lines, *made, "return made"])
    exec(source, names)  # it holds names of our own types, their fields and keys, and nothing else
    read: _Reader = names["read"]
    return read


def _checked(key: Key, names: dict[str, Any]) -> list[str]:
    """The lines that make of the JSON value in the variable of *key* what its field holds."""
    field, kind = f"its_{key.attribute}", key.type
    if kind in (str, int, bool):
        return [f"if type({field}) is not {kind.__name__}: raise Unusual"]
    if kind is float:
        return [f"if type({field}) is not float: raise Unusual"]
    if kind is timedelta:
        return [
            f"if type({field}) is not float: raise Unusual",
            f"{field} = timedelta(0, {field}) if {field} else NO_TIME",
        ]
    if kind is datetime:
        return [f"{field} = time_of({field})", f"if {field}.tzinfo is not UTC: raise Unusual"]
    if kind is FrozenObject:
        return [
            f"if type({field}) is not dict: raise Unusual",
            f"if not {field}: {field} = EMPTY_OBJECT",
            "else:",
            "    frozen = new(FrozenObject)",
            f"    frozen._data = {field}",
            f"    {field} = frozen",
        ]
    is_array = typing.get_origin(kind) is tuple and typing.get_args(kind)[1:] == (...,)
    item = typing.get_args(kind)[0] if is_array else kind
    if item in LEAVES or item is RawEvents:
        names[f"{field}_of"] = KINDS.of(item).read
        made = f"{field}_of({{}})"
    elif isinstance(item, type) and issubclass(item, Enum):
        names[f"{field}_of"] = {member.value: member for member in item}
        made = f"{field}_of[{{}}]"
    elif item in CANONICAL:
        names[f"{field}_type"] = item
        made = f"readers[{field}_type]({{}})"
    elif str in union_members(kind):  # a message's content, a text or parts
        return [f"if type({field}) is not str: raise Unusual"]
    elif typing.get_origin(kind) is Mapping and issubclass(typing.get_args(kind)[1], Enum):
        names[f"{field}_of"] = {member.value: member for member in typing.get_args(kind)[1]}
        return [f"{field} = proxy({{key: {field}_of[word] for key, word in {field}.items()}})"]
    else:
        return ["raise Unusual"]
    if not is_array:
        return [f"{field} = {made.format(field)}"]
    return [
        f"if type({field}) is not list: raise Unusual",
        f"{field} = tuple([{made.format('item')} for item in {field}])",
    ]


_KNOWN: Final[dict[str, Any]] = {
    "readers": quick_readers,
    "timedelta": timedelta,
    "NO_TIME": attrs.fields(ResponseMetadata).request_duration.default,
    "time_of": datetime.fromisoformat,
    "UTC": UTC,
    "new": object.__new__,
    "FrozenObject": FrozenObject,
    "EMPTY_OBJECT": EMPTY_OBJECT,
    "proxy": MappingProxyType,
}
