"""cattrs, taught to read canonical JSON and to say what is wrong with it."""

from __future__ import annotations

import base64
import functools
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, TypeAlias, TypeVar

import attrs
from cattrs import BaseValidationError, Converter
from cattrs.cols import homogenous_tuple_structure_factory, list_structure_factory
from cattrs.errors import ClassValidationError, IterableValidationError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn, mapping_structure_factory, override

from crosswalk.codec.layout import CANONICAL, TAGS, layout, union_members, without_none
from crosswalk.codec.problems import Problem, shortened, step
from crosswalk.codec.version import check_version
from crosswalk.types import ChatResponse, FrozenObject, RawEvents, TokenLogprob, UsageInfo
from crosswalk.types.json import EMPTY_OBJECT

__all__ = ["REFUSALS", "canonical_converter", "configure_converter", "problems_of"]

_Hook: TypeAlias = Callable[[Any, Any], Any]
_Object: TypeAlias = dict[str, Any]

E = TypeVar("E", bound=Enum)

REFUSALS = (BaseValidationError, Problem, RecursionError)
"""What the converter raises when it refuses a value."""


@functools.cache
def canonical_converter() -> Converter:
    """The one converter; it makes the hooks of a type when the type is first read.

    It keeps account of where it is, so that an error can say so. That costs some 5 % on a response, too
    little to have a second converter that only reads again what a faster one has refused.
    """
    converter = Converter(detailed_validation=True)
    configure_converter(converter)
    return converter


def configure_converter(converter: Converter) -> None:
    """Register the hooks that read canonical JSON; what they refuse raises :class:`Problem`."""
    on = converter.register_structure_hook_factory
    on(_is_union_of_tagged, _read_tagged)
    on(_is_text_or_parts, _read_text_or_parts)
    on(_is_optional, _read_optional)
    on(_is_array, _read_array)
    on(_is_fixed_tuple, _read_fixed_tuple)  # an array too: the last predicate wins
    on(_is_mapping, _read_mapping)
    on(lambda kind: kind in CANONICAL, _read_object)
    for leaf, read in _LEAVES.items():
        converter.register_structure_hook(leaf, read)
    # One by one, not by a predicate: cattrs would take a StrEnum for the str that it is.
    for kind in {kind for cls in CANONICAL for key in layout(cls) for kind in enums_in(key.type)}:
        converter.register_structure_hook(kind, _read_enum(kind))


def problems_of(error: BaseException, path: str = "$") -> Iterator[str]:
    """What the converter's *error* says, as ``problem @ $.path``.

    cattrs' ``transform_error`` in our words: it would name attributes and Python types, not keys and JSON's.
    """
    if isinstance(error, BaseValidationError):
        placed, whole = error.group_exceptions()  # type: ignore[attr-defined]
        for inner, note in placed:
            if isinstance(error, ClassValidationError):
                key = next(key for key in layout(error.cl) if key.attribute == note.name)
                yield from problems_of(inner, f"{path}.{key.name}")
            else:
                yield from problems_of(inner, f"{path}{step(note.index)}")
        for inner in whole:
            yield from problems_of(inner, path)
    elif isinstance(error, KeyError):
        yield f"a required key is missing @ {path}"
    elif isinstance(error, RecursionError):
        yield "nested too deeply @ $"
    else:
        yield f"{error} @ {path}{getattr(error, 'at', '')}"


# ------------------------------------------------------------------------------------------- objects


def _read_object(cls: type, converter: Converter) -> _Hook:
    overrides: dict[str, Any] = {field: override(omit=True) for field in attrs.fields_dict(cls)}
    overrides |= {key.attribute: override(rename=key.name) for key in layout(cls) if not key.computed}
    structure: _Hook = make_dict_structure_fn(
        cls,
        converter,
        _cattrs_forbid_extra_keys=False,
        **overrides,
    )
    prepare = functools.partial(_check_tag, TAGS[cls]) if cls in TAGS else _PREPARE.get(cls, _as_it_is)

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        return structure(prepare(value), cls)

    return read


def _as_it_is(value: _Object) -> _Object:
    return value


def _check_tag(tag: str, value: _Object) -> _Object:
    if value.get("type") != tag:
        raise _bad_word("type", value.get("type"), [tag], at=".type")
    return value


def _check_format(value: _Object) -> _Object:
    if "format_version" in value:
        check_version(value["format_version"])
    return value


def _with_logprob(value: _Object) -> _Object:
    # The one field that may be None and has no default: None is not written, so a missing key is None.
    return value if "logprob" in value else {"logprob": None, **value}


_NESTED = {
    "prompt_tokens_details": ("cached_tokens", "cache_write_tokens"),
    "completion_tokens_details": ("reasoning_tokens",),
}


def _flattened(value: _Object) -> _Object:
    """Usage with what stands in OpenAI's details (FR-039) lifted up to where our own flat form has it."""
    for details, names in _NESTED.items():
        nested = value.get(details)
        if nested is None:
            continue
        if type(nested) is not dict:
            raise Problem.wrong_type("object", nested, at=f".{details}")
        for name in names:
            count = nested.get(name)
            if count is None or value.get(name) is not None:
                continue
            if type(count) is not int:
                raise Problem.wrong_type("integer", count, at=f".{details}.{name}")
            value = {**value, name: count}
    return value


_PREPARE: dict[type, Callable[[_Object], _Object]] = {
    ChatResponse: _check_format,
    TokenLogprob: _with_logprob,
    UsageInfo: _flattened,
}


# ------------------------------------------------------------------------------- unions and collections


def _is_union_of_tagged(kind: Any) -> bool:
    members = union_members(kind)
    return bool(members) and all(member in TAGS for member in members)


def _read_tagged(kind: Any, converter: Converter) -> _Hook:
    hooks = {TAGS[member]: converter.get_structure_hook(member) for member in union_members(kind)}

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        tag = value.get("type")
        if type(tag) is not str or tag not in hooks:
            raise _bad_word("type", tag, hooks, at=".type")
        return hooks[tag](value, _)

    return read


def _is_text_or_parts(kind: Any) -> bool:
    return str in union_members(kind)


def _read_text_or_parts(kind: Any, converter: Converter) -> _Hook:
    parts = union_members(kind)[1]
    read_parts = converter.get_structure_hook(parts)

    def read(value: Any, _: Any) -> Any:
        if type(value) is str:
            return value
        if type(value) is not list:
            raise Problem.wrong_type("string or array", value)
        return read_parts(value, parts)

    return read


def _is_optional(kind: Any) -> bool:
    return NoneType in union_members(kind)


def _read_optional(kind: Any, converter: Converter) -> _Hook:
    known = without_none(kind)
    read_known = converter.get_structure_hook(known)
    return lambda value, _: None if value is None else read_known(value, known)


def _is_array(kind: Any) -> bool:
    return typing.get_origin(kind) in (list, tuple)


def _read_array(kind: Any, converter: Converter) -> _Hook:
    is_list = typing.get_origin(kind) is list
    make = list_structure_factory if is_list else homogenous_tuple_structure_factory
    structure = make(kind, converter)

    def read(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise Problem.wrong_type("array", value)
        return structure(value, kind)

    return read


def _is_fixed_tuple(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple and typing.get_args(kind)[1:] != (...,)


def _read_fixed_tuple(kind: Any, converter: Converter) -> _Hook:
    members = typing.get_args(kind)
    hooks = [converter.get_structure_hook(member) for member in members]

    def read(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise Problem.wrong_type("array", value)
        if len(value) != len(members):
            raise Problem(f"expected an array of length {len(members)}, got one of {len(value)}")
        found, errors = [], []
        for index, (item, member, hook) in enumerate(zip(value, members, hooks, strict=True)):
            try:
                found.append(hook(item, member))
            except Exception as error:  # as cattrs does for other arrays
                error.add_note(IterableValidationNote(f"at {index}", index, member))
                errors.append(error)
        if errors:
            raise IterableValidationError(f"no {kind}", errors, kind)
        return tuple(found)

    return read


def _is_mapping(kind: Any) -> bool:
    return typing.get_origin(kind) in (Mapping,)


def _read_mapping(kind: Any, converter: Converter) -> _Hook:
    structure = mapping_structure_factory(kind, converter, dict)

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        return structure(value, kind)

    return read


# ---------------------------------------------------------------------------------------------- leaves


def _read_string(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise Problem.wrong_type("string", value)
    return value


def _read_integer(value: Any, _: Any) -> int:
    if type(value) is not int:
        raise Problem.wrong_type("integer", value)
    return value


def _read_number(value: Any, _: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise Problem.wrong_type("number", value)
    return float(value)


def _read_boolean(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise Problem.wrong_type("boolean", value)
    return value


def _read_time(value: Any, _: Any) -> datetime:
    if type(value) is not str:
        raise Problem.wrong_type("string", value)
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Problem(f"expected an ISO 8601 time with its zone, got {shortened(value)!r}")


def _read_duration(value: Any, _: Any) -> timedelta:
    try:
        return timedelta(seconds=_read_number(value, float))
    except OverflowError:
        raise Problem("expected seconds, got more than a billion days") from None


def _read_decimal(value: Any, _: Any) -> Decimal:
    if type(value) is not str:
        raise Problem.wrong_type("string", value)
    if not _DECIMAL.fullmatch(value):
        raise Problem(f"expected a decimal number, got {shortened(value)!r}")
    return Decimal(value)


def _read_json_object(value: Any, _: Any) -> FrozenObject:
    if type(value) is not dict:
        raise Problem.wrong_type("object", value)
    return FrozenObject.adopt(value) if value else EMPTY_OBJECT


def _read_raw_events(value: Any, _: Any) -> RawEvents:
    if type(value) is not list:
        raise Problem.wrong_type("array", value)
    return RawEvents([_read_raw_event(item, f"[{index}]") for index, item in enumerate(value)])


def _read_raw_event(value: Any, at: str) -> bytes:
    if type(value) is str:
        return value.encode()
    coded = value.get("base64") if type(value) is dict else None
    if type(coded) is not str:
        raise Problem.wrong_type("string or base64 object", value, at=at)
    try:
        return base64.b64decode(coded, validate=True)
    except ValueError:
        raise Problem("expected base64", at=f"{at}.base64") from None


def enums_in(kind: Any) -> Iterator[type[Enum]]:
    """The enumerations in a type hint: *kind* itself, or inside its brackets."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        yield kind
    for inner in typing.get_args(kind):
        yield from enums_in(inner)


def _read_enum(kind: type[E]) -> _Hook:
    words = [member.value for member in kind]

    def read(value: Any, _: Any) -> E:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        try:
            return kind(value)  # FinishReason knows its words in any case
        except ValueError:
            raise _bad_word("word", value, words) from None

    return read


def _bad_word(what: str, got: Any, known: typing.Iterable[str], *, at: str = "") -> Problem:
    if type(got) is not str:
        return Problem.wrong_type("string", got, at=at)
    return Problem(f"unknown {what} {shortened(got)!r}, expected {' or '.join(known)}", at=at)


_DECIMAL = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")

_LEAVES: dict[Any, _Hook] = {
    str: _read_string,
    int: _read_integer,
    float: _read_number,
    bool: _read_boolean,
    datetime: _read_time,
    timedelta: _read_duration,
    Decimal: _read_decimal,
    FrozenObject: _read_json_object,
    RawEvents: _read_raw_events,
}
