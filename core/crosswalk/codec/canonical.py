"""Canonical JSON: the strict converter behind it, values to JSON, and two of them compared field by field."""

from __future__ import annotations

import base64
import dataclasses
import functools
import math
import operator
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Final, Literal, NoReturn, TypeAlias, TypeVar
from uuid import UUID

import attrs
import orjson
from cattrs import BaseConverter
from cattrs.cols import list_structure_factory, mapping_structure_factory
from cattrs.disambiguators import create_default_dis_func
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.preconf.orjson import OrjsonConverter, configure_converter as configure_for_orjson

from crosswalk.codec.layout import (
    CANONICAL,
    FORMAT_VERSION,
    RAW,
    TAGS,
    DocumentProblem,
    LayoutKey,
    MissingKey,
    Refused,
    TooDeep,
    cannot,
    check_version,
    is_canonical_enum,
    key_of,
    layout,
    union_members,
    without_none,
)
from crosswalk.plain_errors import CanonicalJSONError
from crosswalk.text import brief, json_type_name
from crosswalk.types.json import (
    FrozenObject,
    dump_json,
    holds_non_finite,
    load_json,
    plain_view,
    quoted,
    step,
)
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.usage import OPENAI_COUNT_PATHS, OPENAI_COUNTS, Provenance, ResponseMetadata, UsageInfo
from crosswalk.types.values import RawEvents

# ---------------------------------------------------------------------------------- leaves
# Strict hooks for cattrs: texts, numbers, times, words, arrays and mappings.


Read: TypeAlias = Callable[[Any, Any], Any]
"""A hook of cattrs that makes a value of decoded JSON and of its type."""


def has_fields(kind: Any) -> bool:
    """Whether *kind* is an attrs class or a dataclass, generic or not."""
    return attrs.has(origin_of(kind)) or dataclasses.is_dataclass(origin_of(kind))


def origin_of(kind: Any) -> Any:
    """``list`` of ``list[int]``; a type without arguments is its own."""
    return typing.get_origin(kind) or kind


def _exact(kind: type, name: str) -> Read:
    """A hook for values of the type *kind* alone, which JSON calls *name*."""

    def read(value: Any, cls: Any) -> Any:
        if type(value) is kind and cls is kind:
            return value
        if cls is not kind and issubclass(cls, Enum):  # cattrs takes an enum of texts for a text
            return _word(value, cls)
        raise DocumentProblem.wrong_type(name, value)

    return read


def _number(value: Any, _: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise DocumentProblem.wrong_type("number", value)
    try:
        return float(value)
    except OverflowError:
        raise DocumentProblem("expected a number, got one of more than 308 digits") from None


def _duration(value: Any, _: Any) -> timedelta:
    try:
        return timedelta(seconds=_number(value, float))
    except OverflowError:
        raise DocumentProblem("expected seconds, got more than a billion days") from None


def _text_of(make: Callable[[str], Any], expected: str) -> Read:
    """A hook for a value that JSON writes as text. *make* raises ValueError for an invalid text."""

    def read(value: Any, _: Any) -> Any:
        if isinstance(value, datetime):  # as some other decoders give it
            value = value.isoformat()
        if type(value) is str:
            try:
                return make(value)
            except (ValueError, OverflowError):
                pass
            raise DocumentProblem(f"expected {expected}, got {quoted(value)!r}")
        raise DocumentProblem.wrong_type("string", value)

    return read


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError
    return time.astimezone(UTC)


def _time_text(time: datetime) -> str:
    text = time.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _decimal(text: str) -> Decimal:
    whole, point, fraction = text.partition(".")
    for digits in (whole, fraction) if point else (whole,):
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 40):
            raise ValueError
    return Decimal(text)


def made_of(json_type: type, name: str, make: Callable[[Any], Any], other_type: type | None = None) -> Read:
    """A hook for values of *json_type*, which JSON calls *name*, or of *other_type*, which unstructuring makes of them."""

    def read(value: Any, _: Any) -> Any:
        if type(value) is not json_type and type(value) is not other_type:
            raise DocumentProblem.wrong_type(name, value)
        return make(value)

    return read


def _raw_events(items: list[Any]) -> RawEvents:
    return RawEvents([_raw_event(item, f"[{index}]") for index, item in enumerate(items)])


def _raw_event(value: Any, at: str) -> bytes:
    if type(value) is str:
        return value.encode()
    base64_text = value.get("base64") if type(value) is dict else None
    if type(base64_text) is not str:
        raise DocumentProblem.wrong_type("string or base64 object", value, at=at)
    try:
        return base64.b64decode(base64_text, validate=True)
    except ValueError:
        raise DocumentProblem("expected base64", at=f"{at}.base64") from None


def _plain_raw_event(frame: bytes) -> str | dict[str, str]:
    try:
        return frame.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(frame).decode()}


def add_leaves(converter: BaseConverter) -> None:
    """Register hooks for values that are one JSON string, number, boolean, null or object of any content."""
    read_hooks: dict[Any, Read] = {
        str: _exact(str, "string"),
        int: _exact(int, "integer"),
        bool: _exact(bool, "boolean"),
        float: _number,
        NoneType: made_of(NoneType, "null", lambda value: value),
        datetime: _text_of(_time, "an ISO 8601 time with its zone"),
        date: _text_of(date.fromisoformat, "an ISO 8601 date"),
        timedelta: _duration,
        Decimal: _text_of(_decimal, "a decimal number"),
        UUID: _text_of(UUID, "a UUID"),
        Enum: _word,
        FrozenObject: made_of(dict, "object", FrozenObject.adopt),
        RawEvents: made_of(list, "array", _raw_events),
    }
    for kind, read in read_hooks.items():
        converter.register_structure_hook(kind, read)
    converter.register_structure_hook_factory(
        lambda kind: origin_of(kind) is Literal, lambda kind: _one_of(typing.get_args(kind))
    )
    write_hooks: dict[Any, Callable[[Any], Any]] = {
        datetime: _time_text,
        timedelta: timedelta.total_seconds,
        Decimal: lambda value: format(value, "f"),
        UUID: str,
        FrozenObject: operator.attrgetter("_data"),
        RawEvents: lambda events: [_plain_raw_event(frame) for frame in events.frames],
    }
    for kind, write in write_hooks.items():
        converter.register_unstructure_hook(kind, write)
    converter.register_unstructure_hook_func(
        lambda kind: kind is Any,
        lambda value: plain_view(value) if isinstance(value, FrozenObject) else converter.unstructure(value),
    )


# ----------------------------------------------------------------------------------------------- words


def _word(value: Any, words: Any) -> Any:
    return _reader_of(words)(value, words)


@functools.lru_cache
def _reader_of(words: Any) -> Read:
    return _canonical_word(words) if is_canonical_enum(words) else _one_of(list(words))


def _canonical_word(words: Any) -> Read:
    by_word = {word.value: word for word in words}

    def read(value: Any, _: Any) -> Enum:
        if not isinstance(value, str):
            raise DocumentProblem.wrong_type("string", value)
        try:
            member: Enum = by_word.get(value) or words(value)  # a finish reason in any case
            return member
        except ValueError:
            raise DocumentProblem.unknown("word", value, by_word) from None

    return read


def json_word(word: Any) -> Any:
    """The JSON value of *word*, a member of an enum or a ``Literal``."""
    return word.value if isinstance(word, Enum) else word


def either(words: Iterable[Any]) -> str:
    """*words* as an error message lists them."""
    return " or ".join(quoted(repr(json_word(word))) for word in words)


def _one_of(words: Sequence[Any]) -> Read:
    # By type too: Python takes 1, 1.0 and True for the same.
    by_word = {(type(json_word(word)), json_word(word)): word for word in words}
    expected, kinds = either(words), {kind for kind, _ in by_word}

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list | dict) and (type(value), value) in by_word:
            return by_word[type(value), value]
        another = "another " if type(value) in kinds else ""
        raise DocumentProblem(f"expected {expected}, got {another}{json_type_name(value)}")

    return read


# ----------------------------------------------------------------------------------------- collections

LISTS: Final[dict[Any, Callable[[Any], Any]]] = {
    list: list, Sequence: list, Collection: list, Iterable: list, tuple: tuple, set: set, frozenset: frozenset, Set: set,
    deque: deque,
}  # fmt: skip
MAPPINGS: Final[dict[Any, Callable[[Any], Any]]] = {
    dict: dict, Mapping: dict, MutableMapping: dict, OrderedDict: OrderedDict, Counter: Counter, defaultdict: dict,
}  # fmt: skip


_list: Any = list
_dict: Any = dict  # with items that only the run knows


def add_collections(converter: BaseConverter) -> None:
    """Register hooks for arrays and mappings."""
    converter.register_structure_hook_factory(lambda kind: origin_of(kind) in LISTS, _array_factory)
    converter.register_structure_hook_factory(lambda kind: origin_of(kind) in MAPPINGS, _mapping_factory)


def is_pair(kind: Any) -> bool:
    """Whether *kind* is a tuple of a fixed length."""
    return origin_of(kind) is tuple and typing.get_args(kind)[1:] != (...,) and typing.get_args(kind) != ()


def _array_factory(kind: Any, converter: BaseConverter) -> Read:
    item_types, make = typing.get_args(kind), LISTS[origin_of(kind)]
    if is_pair(kind):
        read_pair = converter.gen_structure_hetero_tuple(kind)

        def make_pair(value: list[Any]) -> Any:
            if len(value) != len(item_types):
                raise DocumentProblem(
                    f"expected an array of length {len(item_types)}, got one of {len(value)}"
                )
            return tuple(read_pair(value, kind))

        return made_of(list, "array", make_pair, tuple)
    read = list_structure_factory(_list[item_types[0] if item_types else Any], converter)
    return made_of(list, "array", lambda value: make(read(value, kind)))


def _mapping_factory(kind: Any, converter: BaseConverter) -> Read:
    origin, arguments = origin_of(kind), typing.get_args(kind) or (Any, Any)
    key, value_type = arguments if len(arguments) > 1 else (arguments[0], int)  # a Counter counts
    read, read_key = (
        mapping_structure_factory(_dict[Any, value_type], converter, structure_to=dict),
        _key_reader(key, converter),
    )
    make: Callable[[Any], Any] = MAPPINGS[origin]
    if origin is defaultdict:
        make = functools.partial(defaultdict, origin_of(value_type))
    if read_key is None:
        return made_of(dict, "object", lambda document: make(read(document, kind)), dict)
    return made_of(
        dict,
        "object",
        lambda document: make({read_key(key): item for key, item in read(document, kind).items()}),
    )


def _key_reader(kind: Any, converter: BaseConverter) -> Callable[[str], Any] | None:
    """A function that makes a key of the text that JSON has for it, or ``None`` if the text is the key."""
    while hasattr(kind, "__supertype__"):
        kind = kind.__supertype__
    if kind in (str, Any):
        return None
    if kind is int:
        return int
    if typing.get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        by_text = {str(json_word(word)): word for word in typing.get_args(kind) or kind}
        return by_text.__getitem__
    read = converter.get_structure_hook(kind)
    return lambda text: read(text, kind)


# --------------------------------------------------------------------------------- objects
# Hooks for classes: canonical types and attrs classes of a program.


_Object: TypeAlias = dict[str, Any]
_Write: TypeAlias = Callable[[Any], Any]


def is_canonical(kind: Any) -> bool:
    """Whether *kind* is a canonical type, or a class with its own hooks."""
    return isinstance(kind, type) and (kind in CANONICAL or hasattr(kind, "__structure_hook__"))


def add_classes(converter: BaseConverter, *, include_raw: bool) -> None:
    """Register hooks for canonical types, for classes that bring hooks along, and for other attrs classes."""
    converter.register_structure_hook_factory(has_fields, _class_factory)
    converter.register_structure_hook_factory(lambda kind: kind in CANONICAL, _class_reader)
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


def _class_reader(cls: Any, converter: BaseConverter) -> Read:
    overrides = {field.name: override(omit=True) for field in attrs.fields(cls)}
    overrides |= {key.attribute: override(rename=key.name) for key in layout(cls) if not key.computed}
    read = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=False, **overrides)  # type: ignore[arg-type]
    prepare = functools.partial(_check_tag, TAGS[cls]) if cls in TAGS else _PREPARERS.get(cls)
    if prepare is None:
        return made_of(dict, "object", lambda value: read(value, cls))
    return made_of(dict, "object", lambda value: read(prepare(value), cls))


def _check_tag(tag: str, value: _Object) -> _Object:
    if value.get("type") != tag:
        raise DocumentProblem.unknown("type", value.get("type"), [tag], at=".type")
    return value


def _check_format(value: _Object) -> _Object:
    if "format_version" in value:
        check_version(value["format_version"])
    return value


_NESTED_COUNTS: Final = {
    path: name for name, path in {**OPENAI_COUNTS, **OPENAI_COUNT_PATHS}.items() if "." in path
}


def _flattened(value: _Object) -> _Object:
    """Usage in the flat form, with the counts of OpenAI's details moved up where they are not flat already."""
    counts: _Object = {}
    for path, name in _NESTED_COUNTS.items():
        *groups, key = path.split(".")
        nested: Any = value
        for depth, group in enumerate(groups, 1):
            nested = nested.get(group, {})
            if nested is None:
                nested = {}
            if type(nested) is not dict:
                raise DocumentProblem.wrong_type("object", nested, at=f".{'.'.join(groups[:depth])}")
        count = nested.get(key)
        if type(count) is int:
            counts[name] = count
        elif count is not None and value.get(name) is None:
            raise DocumentProblem.wrong_type("integer", count, at=f".{path}")
    if not counts:
        return value
    details = {name: counts.pop(name) for name in OPENAI_COUNT_PATHS if name in counts}
    nested_counts = {**counts, "details": details} if details else counts
    return {**value, **{name: count for name, count in nested_counts.items() if value.get(name) is None}}


_PREPARERS: Final[dict[type, Callable[[_Object], _Object]]] = {
    ChatResponse: _check_format,
    UsageInfo: _flattened,
}


def _write_document(cls: Any, converter: BaseConverter, *, include_raw: bool) -> _Write:
    write = _class_writer(cls, converter, include_raw)
    if cls is not ChatResponse:
        return write
    return lambda response: {**write(response), "format_version": FORMAT_VERSION}


def _class_writer(cls: Any, converter: BaseConverter, include_raw: bool) -> _Write:
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
    tag_field = {"type": TAGS[cls]} if cls in TAGS else {}
    computed_names = [key.attribute for key in keys if key.computed]
    # cattrs writes those fields first that are never left out.
    fields = [key for name in overrides for key in keys if key.attribute == name]
    if sorted(fields, key=lambda key: key.omit_default) == keys:
        return (lambda value: {**tag_field, **write(value)}) if tag_field else write
    names = [*tag_field, *(key.name for key in keys)]

    def write_in_order(value: Any) -> _Object:
        written_fields = {**tag_field, **write(value)}
        for name in computed_names:
            if (computed_value := getattr(value, name)) is not None:
                written_fields[name] = computed_value
        return {name: written_fields[name] for name in names if name in written_fields}

    return write_in_order


def _hook_of(cls: type, key: LayoutKey, converter: BaseConverter, include_raw: bool) -> _Write | None:
    if key.type is ChatResponse and cls is StreamEvent:  # the version stands where a document begins
        return _class_writer(ChatResponse, converter, include_raw)
    if key.type is cls or cls in typing.get_args(key.type):  # it holds itself
        return None
    return converter.get_unstructure_hook(key.type)


# ---------------------------------------------------------------------------------- unions
# Unions: told apart by ``type``, by the kind of JSON value, or as cattrs tells classes apart.


def add_unions(converter: BaseConverter) -> None:
    """Teach *converter* to read and write unions."""
    converter.register_structure_hook_factory(lambda kind: bool(union_members(kind)), _union_reader)
    converter.register_unstructure_hook_factory(lambda kind: bool(union_members(kind)), _union_writer)


def _union_writer(kind: Any, converter: BaseConverter) -> Callable[[Any], Any]:
    members = [member for member in union_members(kind) if member is not NoneType]
    if len(members) == 1:
        write = converter.get_unstructure_hook(members[0])
        return lambda value: None if value is None else write(value)
    if all(member in TAGS for member in members):
        writer_by_type = {member: converter.get_unstructure_hook(member) for member in (*members, NoneType)}
        return lambda value: writer_by_type[type(value)](value)
    # A tuple is written by the types of its items.
    tuple_writers = [
        converter.get_unstructure_hook(member) for member in members if origin_of(member) is tuple
    ]
    return lambda value: (
        tuple_writers[0](value) if tuple_writers and type(value) is tuple else converter.unstructure(value)
    )


def _union_reader(kind: Any, converter: BaseConverter) -> Read:
    members = [member for member in union_members(kind) if member is not NoneType]
    if len(members) < len(union_members(kind)):
        return _optional(without_none(kind), converter)
    if all(member in TAGS for member in members):
        return _tagged_factory(members, converter)
    if all(hasattr(member, "__union_hook__") for member in members):
        read: Read = members[0].__union_hook__(functools.reduce(operator.or_, members))
        return read
    return _untagged_factory(members, converter)


def _optional(member: Any, converter: BaseConverter) -> Read:
    """A hook for null and for the type *member*."""
    try:
        read = converter.get_structure_hook(member)
    except RecursionError:  # it holds itself
        read = converter.structure

    def read_optional(value: Any, _: Any) -> Any:
        return None if value is None else read(value, member)

    return read_optional


def _tagged_factory(members: list[Any], converter: BaseConverter) -> Read:
    by_tag = {TAGS[member]: (converter.get_structure_hook(member), member) for member in members}

    def read_tagged(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise DocumentProblem.wrong_type("object", value)
        tag = value.get("type")
        if type(tag) is not str or tag not in by_tag:
            raise DocumentProblem.unknown("type", tag, by_tag, at=".type")
        read, member = by_tag[tag]
        return read(value, member)

    return read_tagged


def _untagged_factory(members: list[Any], converter: BaseConverter) -> Read:
    """A hook that takes the member for the JSON type of the value. Several texts or numbers are tried in their order."""
    by_type: dict[type, list[Any]] = {}
    for member in members:
        for json_type in dict.fromkeys(json_types(member)):
            by_type.setdefault(json_type, []).append(member)
    expected = " or ".join(map(_name, members))
    object_members = by_type.get(dict, [])
    for rivals in ([] if all(map(has_fields, object_members)) else object_members, by_type.get(list, [])):
        if len(rivals) > 1:
            raise TypeError(f"JSON does not tell {' from '.join(map(str, rivals))}")
    choose = _chooser(object_members, converter) if len(object_members) > 1 else None

    def read_union(value: Any, _: Any) -> Any:
        candidates = by_type.get(type(value), [])
        if choose is not None and type(value) is dict:
            try:
                candidates = [choose(value)]
            except (KeyError, TypeError, ValueError):
                raise DocumentProblem(f"expected {expected}, got another object") from None
        if len(candidates) == 1:
            return converter.structure(value, candidates[0])
        for member in candidates:
            try:
                return converter.structure(value, member)
            except DocumentProblem:
                continue
        raise DocumentProblem(
            f"expected {expected}, got {'another ' if candidates else ''}{json_type_name(value)}"
        )

    return read_union


def _chooser(classes: list[Any], converter: BaseConverter) -> Callable[[Any], Any]:
    """cattrs' function that finds the class of an object by its literals or its keys."""
    fields = [
        field
        for cls in map(origin_of, classes)
        if attrs.has(cls)
        for field in attrs.fields(attrs.resolve_types(cls))
        if field.alias != field.name
    ]
    return create_default_dis_func(
        converter,
        *classes,
        use_literals=all(typing.get_origin(field.type) is not Literal for field in fields),
        overrides={field.name: override(rename=field.alias) for field in fields},
    )


_JSON_TYPES: Final[dict[Any, tuple[type, ...]]] = {
    str: (str,), int: (int,), bool: (bool,), float: (float, int), timedelta: (float, int), date: (str,), datetime: (str,),
    Decimal: (str,), UUID: (str,), Any: (str, int, float, bool, list, dict), **dict.fromkeys(LISTS, (list,)),
}  # fmt: skip


def json_types(kind: Any) -> tuple[type, ...]:
    """The types of decoded JSON that can be read as *kind*."""
    origin = origin_of(kind)
    if origin is Literal or (isinstance(origin, type) and issubclass(origin, Enum)):
        return tuple(type(json_word(word)) for word in typing.get_args(kind) or kind)
    return _JSON_TYPES.get(origin, (dict,))


_NAMES: Final = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", Mapping: "object",
    **dict.fromkeys(LISTS, "array"),
}  # fmt: skip


def _name(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return either(typing.get_args(kind))
    return _NAMES.get(origin_of(kind)) or str(origin_of(kind).__name__)


# --------------------------------------------------------------------------------- located
# The problems of a document, out of the errors that cattrs raises.


def problems_in(error: Exception) -> list[DocumentProblem]:
    """Return every problem that cattrs found, in the order of the fields, with its path from the root of the document."""
    problems: list[DocumentProblem] = []
    # A loop and no recursion: a document may be nested as deep as Python's stack.
    remaining: list[tuple[Exception, type, str, str]] = [(error, object, "", "")]
    while remaining:
        failure, cls, place, last_step = remaining.pop()
        place += last_step
        if isinstance(failure, BaseValidationError):
            remaining += [
                (e, failure.cl, place, _step_to(e, failure.cl)) for e in reversed(failure.exceptions)
            ]
        elif isinstance(failure, ForbiddenExtraKeysError):
            problems += [
                DocumentProblem("unknown key", at=place + step(key)) for key in sorted(failure.extra_fields)
            ]
        elif isinstance(failure, RecursionError):
            return [TooDeep()]
        elif isinstance(failure, CanonicalJSONError):  # of a converter that was taught canonical types
            inner_problems = (text.rpartition(" @ $") for text in failure.problems)
            problems += [DocumentProblem(text, at=place + path) for text, _, path in inner_problems]
        elif isinstance(failure, DocumentProblem):
            problems.append(failure.under(place))
        elif isinstance(failure, KeyError) and last_step:
            problems.append(MissingKey("a required key is missing", at=place))
        else:
            problems.append(Refused(cls, failure, place))
    return problems


def _step_to(error: BaseException, cls: Any) -> str:
    """The step to the field or item that cattrs noted when it caught *error*, or empty where it noted none."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return step(key_of(cls, note.name))
        if isinstance(note, IterableValidationNote):
            return step(note.index)
    return ""


# ------------------------------------------------------------------------------ converters
# The converter behind canonical JSON, cattrs' orjson preset made strict, and the values that it reads.


T = TypeVar("T")


class CanonicalConverter(OrjsonConverter):
    """cattrs' converter for orjson that knows canonical types, coerces nothing and keeps every digit of an integer."""

    def get_structure_hook(self, type: Any, cache_result: bool = True) -> Callable[[Any, Any], Any]:
        """The hook that reads *type*. The metadata of ``Annotated`` may be of any kind, also one without a hash."""
        try:
            hash(type)
        except TypeError:
            plain_type = _with_hash(type)
            read = super().get_structure_hook(plain_type, cache_result)
            return lambda value, _: read(value, plain_type)
        return super().get_structure_hook(type, cache_result)

    def dumps(self, obj: Any, unstructure_as: Any = None, **kwargs: Any) -> bytes:
        """The JSON text of *obj*; keywords are those of ``orjson.dumps``."""
        return dump_json(self.unstructure(obj, unstructure_as=unstructure_as), **kwargs)

    def loads(self, data: bytes | bytearray | memoryview | str, cl: type[T]) -> T:
        """Read the value of type *cl* from the JSON text *data*."""
        return self.structure(load_json(data if isinstance(data, bytes | str) else bytes(data)), cl)


def _with_hash(kind: Any) -> Any:
    """*kind* without the metadata that has no hash."""
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is Annotated:
        plain_type = _with_hash(arguments[0])
        hashable_metadata = [
            each for each in kind.__metadata__ if getattr(type(each), "__hash__", None) is not None
        ]
        return Annotated[(plain_type, *hashable_metadata)] if hashable_metadata else plain_type
    if union_members(kind):
        return functools.reduce(operator.or_, map(_with_hash, arguments))
    return origin_of(kind)[tuple(map(_with_hash, arguments))] if arguments else kind


def converter(*, include_raw: bool = False, forbid_extra_keys: bool = False) -> CanonicalConverter:
    """Make a cattrs converter for canonical types and for classes that hold them.

    It is cattrs' orjson preset, but it coerces nothing, save that a number may be written without a point. Canonical
    types are written and read as :func:`crosswalk.to_json` and :func:`crosswalk.from_json` do. Each call makes
    another converter, so you may register hooks of your own.

    A class may bring its hooks along: the class methods ``__structure_hook__(converter)`` and
    ``__unstructure_hook__(converter)`` return them, and ``__union_hook__(union)`` that of a union of such classes.

    Args:
        include_raw: also write the provider's own bytes, ``raw_events`` and ``raw_event``.
        forbid_extra_keys: refuse keys that your classes do not have. Canonical types always ignore such keys.
    """
    new_converter = CanonicalConverter(
        forbid_extra_keys=forbid_extra_keys,
        structure_fallback_factory=_refuse,
        unstruct_collection_overrides={Set: list},
        use_alias=True,
    )
    configure_for_orjson(new_converter)
    add_leaves(new_converter)
    add_collections(new_converter)
    add_unions(new_converter)
    add_classes(new_converter, include_raw=include_raw)
    return new_converter


def _refuse(kind: Any) -> NoReturn:
    raise TypeError(f"cannot read JSON as {kind!r}")


@functools.cache
def shared_converter(*, include_raw: bool = False) -> CanonicalConverter:
    """The converter that the library itself uses. Do not register anything with it."""
    return converter(include_raw=include_raw)


def transform_error(error: Exception) -> list[str]:
    """List every problem behind an error of a converter, as ``problem @ $.path``.

    It is cattrs' function of that name, and also looks into canonical types and Responses records.
    """
    return [f"{problem} @ ${problem.at}" for problem in problems_in(error)]


def configure_converter(converter: BaseConverter) -> None:
    """Teach your own cattrs *converter* the canonical types, so that it reads and writes classes that hold them.

    They are written as :func:`crosswalk.to_jsonable` writes them and read as :func:`crosswalk.from_json` reads them. A wrong
    value raises :class:`CanonicalJSONError`, inside the groups that cattrs makes of errors.
    """
    converter.register_structure_hook_func(_is_ours, _structure)
    converter.register_unstructure_hook_func(is_canonical, _unstructure)


def _is_ours(kind: Any) -> bool:
    """Whether *kind* is a canonical type or record, or a union of them."""
    members = [member for member in union_members(kind) if member is not NoneType]
    return all(map(is_canonical, members)) if len(members) > 1 else is_canonical(kind)


def _structure(value: Any, cls: Any) -> Any:
    try:
        return shared_converter().structure(value, cls)
    except Exception as error:
        problems = transform_error(error)
    raise cannot("read", cls, problems)  # out here it has no context, which would quote content


def _unstructure(value: Any) -> Any:
    return load_json(shared_converter().dumps(value))


def from_json(data: bytes | bytearray | memoryview | str, cls: type[T]) -> T:
    """Read canonical JSON as *cls*: ``from_json(to_json(x), type(x))`` gives *x* back.

    Unknown keys and computed values are ignored. A missing optional key is its default, and so is ``null`` if the
    type allows ``None``. Otherwise types are exact: nothing is coerced, save that a number may be written without a
    point. Finish reasons are read in any case, usage flat or in OpenAI's nested form. Every ``1.x`` format is read. A
    document without a version is a ``1.0``.

    Args:
        data: the JSON text.
        cls: a canonical type, or ``list[…]`` or ``tuple[…, ...]`` of one.

    Raises:
        CanonicalJSONError: it is not JSON, of another format version, or not of this type. ``problems`` lists each
            problem with its path, such as ``expected string, got number @ $.message.content``.
        TypeError: *cls* is not a canonical type, or *data* is neither bytes nor text.
    """
    if not isinstance(data, bytes | bytearray | memoryview | str):
        raise TypeError(f"data is the JSON's bytes or text, not {type(data).__name__}")
    if not is_canonical(cls) and not is_canonical(_item_type(cls)):
        raise TypeError(f"{cls!r} is not a canonical type")
    try:
        return shared_converter().loads(data, cls)
    except orjson.JSONDecodeError as error:
        problems = [f"not JSON ({error.msg} at character {error.pos}) @ $"]
    except Exception as error:
        problems = transform_error(error)
    raise cannot("read", cls, problems)  # out here it has no context, which would quote content


def _item_type(cls: Any) -> Any:
    """The type of the items of an array type, or *cls* itself."""
    origin, item_types = typing.get_origin(cls), typing.get_args(cls)
    return item_types[0] if origin is list or (origin is tuple and item_types[1:] == (...,)) else cls


# ----------------------------------------------------------------------------- --before

# --------------------------------------------------------------------------------- writing
# Canonical values to JSON.


_DEEPEST: Final = 254  # what orjson writes
_WIDE_BITS: Final = 14_284  # bits of the numbers of 4300 digits and more, which Python does not write


def to_json(value: Any, *, indent: bool = False, include_raw: bool = False) -> bytes:
    """Write *value* as canonical JSON, the same bytes for the same value (design, P5).

    Keys are in ``snake_case`` and in a fixed order. ``None`` is left out, and so is an empty collection if empty is
    the default. Times are ISO 8601 in UTC with ``Z``, durations are seconds, enums are lowercase words. Extensions
    stay as the provider sent them, nulls and empty lists included. ``total_tokens`` and ``tokens_per_second`` are
    computed. A :class:`crosswalk.ChatResponse`, alone or in a list, ends with ``format_version``.

    Args:
        value: a value of any canonical type, or a list or tuple of them.
        indent: two spaces a level, for people. Otherwise there is no white space.
        include_raw: write ``raw_events`` (and a stream event's ``raw_event``) too: each event's bytes as
            text, or as ``{"base64": …}`` where they are no UTF-8.

    Raises:
        CanonicalJSONError: *value* holds what JSON cannot say (NaN, an infinity, a lone surrogate), an integer of more
            than 4300 digits, is nested too deeply, or a field holds a value of a type not its own.
        TypeError: *value* is of no canonical type.
    """
    plain_value = _plain(value, include_raw)
    try:
        json_bytes = dump_json(plain_value, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError as error:
        raise _cannot(value, list(_unwritable(plain_value)) or [f"{error} @ $"]) from None
    # orjson silently makes null of NaN and infinities.
    if b"null" in json_bytes and holds_non_finite(plain_value):
        raise _cannot(value, list(_unwritable(plain_value)))
    return json_bytes


def to_jsonable(value: Any, *, include_raw: bool = False) -> Any:
    """Return the JSON of :func:`to_json` as plain dicts and lists, which you may change.

    Args:
        value: a value of any canonical type, or a list or tuple of them.
        include_raw: include ``raw_events`` and ``raw_event`` too.

    Raises:
        CanonicalJSONError: *value* cannot be written as JSON.
        TypeError: *value* is of no canonical type.
    """
    return load_json(to_json(value, include_raw=include_raw))


@functools.cache
def _writer(cls: type, include_raw: bool) -> Callable[[Any], Any]:
    if not is_canonical(cls):
        raise TypeError(f"{cls.__name__} is not a canonical type")
    return shared_converter(include_raw=include_raw).get_unstructure_hook(cls)


def _plain(value: Any, include_raw: bool) -> Any:
    is_array = type(value) is list or type(value) is tuple
    writers = [_writer(each.__class__, include_raw) for each in (value if is_array else (value,))]
    try:
        if not is_array:
            return writers[0](value)
        return [write(each) for write, each in zip(writers, value, strict=True)]
    except RecursionError:
        raise _cannot(value, ["nested too deeply @ $"]) from None
    except (AttributeError, KeyError, TypeError) as error:
        raise _cannot(value, ["a field holds a value of a type not its own @ $"]) from error


def _cannot(value: Any, problems: Sequence[str]) -> CanonicalJSONError:
    return cannot("write", type(value), problems)


def _unwritable(value: Any, path: str = "$", depth: int = 0) -> Iterator[str]:
    """Return where and why *value* cannot be written as JSON."""
    if isinstance(value, str):
        if _has_lone_surrogate(value):
            yield f"a lone surrogate is not Unicode text @ {path}"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"JSON has no number for {value} @ {path}"
    elif type(value) is int:
        if value.bit_length() >= _WIDE_BITS and abs(value) >= 10**4300:
            yield f"an integer of more than 4300 digits @ {path}"
    elif isinstance(value, dict | list | tuple):
        if depth == _DEEPEST:
            yield f"nested deeper than {_DEEPEST} levels @ $"
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if isinstance(value, dict) and type(key) is not str:
                yield f"a key that is not a string @ {path}"
            elif isinstance(key, str) and _has_lone_surrogate(key):
                yield f"a key with a lone surrogate @ {path}"
            else:
                yield from _unwritable(item, f"{path}{step(key)}", depth + 1)
    elif value is not None and type(value) is not bool:
        yield f"{type(value).__name__} is not a JSON value @ {path}"


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# --------------------------------------------------------------------------------- compare
# The differences of two responses, field by field: compares the result of a new mapping with a stored one.


class Absent(Enum):
    """The type of :data:`ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The placeholder for a value that one of two responses does not have. ``None`` is JSON's null."""


@brief
@attrs.frozen
class Difference:
    """A difference of two responses at one path.

    Attributes:
        path: the keys that lead there, such as ``("usage", "cached_tokens")``. Items of an array are counted as
            in the newer response. An item that it does not have is counted as in the older one.
        before: the older value, as plain JSON, or :data:`ABSENT` if there was none.
        after: the newer one, likewise.
    """

    path: tuple[str | int, ...]
    before: Any
    after: Any

    @property
    def place(self) -> str:
        """The path as text: ``message.tool_calls[0].name``."""
        return "".join(map(step, self.path)).removeprefix(".")

    @property
    def field(self) -> str:
        """The same for every item of an array: ``message.tool_calls[].name``."""
        return "".join("[]" if isinstance(key, int) else step(key) for key in self.path).removeprefix(".")

    def __repr__(self) -> str:
        return f"Difference({self.place!r})"


def differences(before: ChatResponse, after: ChatResponse) -> list[Difference]:
    """Return the differences of the canonical JSON of two responses, in the order of its keys.

    Values that no mapping decides are left out: computed values, ``raw_events``, and an id or a time that was made up.
    A made-up one counts as absent, so one that has become the provider's own is a difference. Of two arrays,
    equal items at the start and at the end belong together, so that an inserted item is one difference.

    Args:
        before: the older response, such as a stored one that :func:`crosswalk.from_json` has read.
        after: the newer one.

    Raises:
        CanonicalJSONError: one of them cannot be written as JSON.
    """
    return list(_differences(_said(before), _said(after), ()))


def _said(response: ChatResponse) -> dict[str, Any]:
    """Return the canonical JSON of *response*, without values that no mapping decides."""
    canonical_object: dict[str, Any] = to_jsonable(response)
    for name, cls in (("usage", UsageInfo), ("metadata", ResponseMetadata)):
        for key in layout(cls):
            if key.computed:
                canonical_object[name].pop(key.name, None)
    for name in ("id", "created"):
        if response.metadata.provenance.get(name) is Provenance.SYNTHETIC:
            del canonical_object[name]
    return canonical_object


def _differences(before: Any, after: Any, path: tuple[str | int, ...]) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _differences(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _between_arrays(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield Difference(path, before, after)


def _between_arrays(before: list[Any], after: list[Any], path: tuple[str | int, ...]) -> Iterator[Difference]:
    # As JSON: to Python, true is 1.
    old, new = list(map(orjson.dumps, before)), list(map(orjson.dumps, after))
    shorter_length = min(len(old), len(new))
    start = 0
    while start < shorter_length and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter_length - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old_middle, new_middle = before[start : len(before) - end], after[start : len(after) - end]
    for number in range(max(len(old_middle), len(new_middle))):
        old_item = old_middle[number] if number < len(old_middle) else ABSENT
        new_item = new_middle[number] if number < len(new_middle) else ABSENT
        yield from _differences(old_item, new_item, (*path, start + number))
