"""How records stand in JSON: which of a union's types an object is of, and where each field of it goes.

Reading is the hot path (a stream has thousands of events), so a layout sets the slots of a new record itself
and does not call its constructor; what it reads, it has checked.
"""

from __future__ import annotations

import functools
import sys
import types
import typing
from enum import StrEnum
from inspect import get_annotations
from typing import Any, ClassVar, Final, Literal, NoReturn, TypeAlias, TypeVar

from crosswalk.codec.canonical import LEAVES
from crosswalk.codec.kinds import ABSENT, Either, FrozenJSON, Kind, Kinds, Leaf, Mark
from crosswalk.codec.layout import union_members
from crosswalk.codec.problems import Problem, shortened, step
from crosswalk.responses.errors import ResponsesValueError
from crosswalk.text import json_type_name
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, plain_view

__all__ = [
    "REQUIRED",
    "HasLayout",
    "Layout",
    "Unknown",
    "UnknownType",
    "classes_of",
    "kind_of",
    "layout_of",
    "register",
]

R = TypeVar("R", bound="HasLayout")

_new: Final = object.__new__
_set: Final = object.__setattr__
REQUIRED: Final = Mark()
"""The default of a field that has none."""
_UNKNOWN_WORD: Final = Mark()
"""Read where a vocabulary does not have the word and unknown ones are kept."""
_NO_PRESENCE: Final[frozenset[str]] = frozenset()


class HasLayout:
    """What all records are: a class whose layout says how it stands in JSON."""

    __slots__ = ()
    __fields__: ClassVar[dict[str, Any]]
    """The defaults of its fields, or ``REQUIRED``; the two that all records have come first."""
    extensions: FrozenObject
    presence: frozenset[str]

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether JSON object *data* is one of these, where several types of a union share a ``type``."""
        return True


class Unknown:
    """Marks the records that stand for objects of a type that nobody registered, kept as they came.

    All their fields but ``type``, and those that they share with their kind, are extensions.
    """

    __slots__ = ()
    family: ClassVar[str] = "object"
    """What the object should have been, for error messages."""


class UnknownType(Problem):
    """A tag that is in no table; becomes an :class:`crosswalk.responses.UnknownTypeError`."""

    def __init__(self, family: str, tag: object) -> None:
        self.family = family
        self.type_name = shortened(tag) if isinstance(tag, str) else None
        super().__init__(
            f"unknown {family} type {self.type_name!r}" if self.type_name else f"{family} without a type"
        )


class _Object(Kind):
    """A record of one type."""

    json_types = (dict,)

    def __init__(self, cls: type[HasLayout]) -> None:
        self.cls = cls

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        layout = layout_of(self.cls)
        if layout.tags and value.get("type") not in layout.tags:
            _refuse_tag(value.get("type"), layout.tags)
        return layout.read(value, keep)

    def accept(self, value: Any) -> Any:
        if not isinstance(value, self.cls):
            raise Problem(f"expected {self.cls.__name__}, got {type(value).__name__}")
        return value

    def write(self, value: Any) -> Any:
        return layout_of(type(value)).write(value)


def _refuse_tag(tag: object, tags: tuple[str | None, ...]) -> NoReturn:
    got = repr(shortened(tag)) if isinstance(tag, str) else json_type_name(tag)
    raise Problem(f"expected {' or '.join(repr(known) for known in tags if known)}, got {got}", at=".type")


class _Tagged(Kind):
    """A record of one of several types, told apart by ``type``."""

    json_types = (dict,)

    def __init__(self, members: tuple[type[HasLayout], ...]) -> None:
        self.members = members
        self.unknown: type[Unknown] | None = next((m for m in members if issubclass(m, Unknown)), None)
        self.family = self.unknown.family if self.unknown else "object"
        self._layouts: dict[str, Layout] = {}  # of the tags that one type alone has

    @functools.cached_property
    def table(self) -> dict[str | None, list[type[HasLayout]]]:
        """Which types have a tag; those without a tag of their own stand under ``None``."""
        found: dict[str | None, list[type[HasLayout]]] = {}
        for member in self.members:
            if not issubclass(member, Unknown):
                for tag in _tags(member):
                    found.setdefault(tag, []).append(member)
        return found

    def of(self, value: dict[str, Any], keep: bool) -> type[Any]:
        """The type of which JSON object *value* is."""
        tag = value.get("type")
        if tag is None or type(tag) is str:
            candidates = self.table.get(tag)
            if candidates is not None:
                if len(candidates) == 1 and tag is not None:
                    return candidates[0]
                for candidate in candidates:
                    if candidate.claims(value):
                        return candidate
            if self.unknown is not None:
                registered = _REGISTERED.get((self.unknown, tag))
                if registered is not None:
                    return registered
                if keep:
                    return self.unknown
        raise UnknownType(self.family, tag)

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        tag = value.get("type")
        layout = self._layouts.get(tag) if type(tag) is str else None
        if layout is None:
            layout = layout_of(self.of(value, keep))
            if len(self.table.get(tag, ())) == 1 and type(tag) is str:
                self._layouts[tag] = layout
        return layout.read(value, keep)

    def accept(self, value: Any) -> Any:
        if isinstance(value, self.members):
            return value
        if self.unknown and type(value) is _REGISTERED.get((self.unknown, getattr(value, "type", None))):
            return value
        raise Problem(f"expected {self.family}, got {type(value).__name__}")

    def write(self, value: Any) -> Any:
        return layout_of(type(value)).write(value)


class _Const(Kind):
    """One of a few fixed strings, such as a discriminator."""

    json_types = (str,)

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def read(self, value: Any, keep: bool = False) -> Any:
        if value in self.words:
            return value
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        raise Problem(f"expected {' or '.join(map(repr, self.words))}, got {shortened(value)!r}")


class _Word(Kind):
    """A word of a closed vocabulary."""

    json_types = (str,)

    def __init__(self, words: type[StrEnum]) -> None:
        self.words = words
        self.members: dict[str, StrEnum] = {member.value: member for member in words}

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        word = self.members.get(value)
        if word is None:
            if keep:
                return _UNKNOWN_WORD
            raise Problem(f"unknown {self.words.__name__} {shortened(value)!r}")
        return word

    def accept(self, value: Any) -> Any:
        return value if type(value) is self.words else self.read(value)

    def write(self, value: Any) -> Any:
        return value.value


# ------------------------------------------------------------------------------- from annotations to kinds


def kind_of(annotation: Any) -> Kind:
    """The kind of value that *annotation* allows, ``None`` set aside.

    Raises:
        TypeError: fields of records are not annotated like that.
    """
    return _KINDS.of(annotation)


def _own(annotation: Any) -> Kind | None:
    if typing.get_origin(annotation) is Literal:
        return _Const(typing.get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, HasLayout):
        return _Object(annotation)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return _Word(annotation)
    members = tuple(member for member in union_members(annotation) if member is not types.NoneType)
    if not members:
        return None
    if len(members) < len(union_members(annotation)):
        return _KINDS.of(typing.Union[members])  # noqa: UP007
    records = tuple(m for m in members if isinstance(m, type) and issubclass(m, HasLayout))
    kinds = [_KINDS.of(member) for member in members if member not in records]
    if records:
        kinds.append(_Tagged(records) if len(records) > 1 else _Object(records[0]))
    return kinds[0] if len(kinds) == 1 else Either(kinds)


_KINDS: Final = Kinds({**LEAVES, float: Leaf(float, "number"), Any: FrozenJSON()}, _own, FrozenObject.adopt)


def classes_of(union: Any) -> dict[str, type[HasLayout]]:
    """The types of a *union* of records by their tag; of several with one tag the first."""
    members = (member for member in typing.get_args(union) if not issubclass(member, Unknown))
    return {tag: member for member in reversed([*members]) for tag in _tags(member) if tag is not None}


_REGISTERED: dict[tuple[type[Unknown], str | None], type[HasLayout]] = {}


def register(cls: type[R], unknown: type[Unknown]) -> type[R]:
    """Read objects with the ``type`` of *cls* as one, wherever *unknown* stands for unknown ones.

    A type that the API has keeps its meaning; of two with the same ``type`` the later one counts.

    Raises:
        TypeError: *cls* has no ``type`` that is a ``Literal``.
    """
    tags = [tag for tag in _tags(cls) if tag is not None]
    if not tags:
        raise TypeError(f"{cls.__name__} has no literal type to be registered under")
    _REGISTERED.update({(unknown, tag): cls for tag in tags})
    return cls


def _tags(cls: type[HasLayout]) -> tuple[str | None, ...]:
    """The tags that *cls* may have, ``None`` among them where the tag may be left out; none if it has no such field."""
    annotation = _annotation_of_type(cls)
    if annotation is None or not any(
        typing.get_origin(m) is Literal for m in (annotation, *typing.get_args(annotation))
    ):
        return ()
    members = typing.get_args(annotation) if typing.get_origin(annotation) is not Literal else (annotation,)
    return tuple(
        tag
        for member in members
        for tag in (typing.get_args(member) if typing.get_origin(member) is Literal else (None,))
    )


def _annotation_of_type(cls: type[HasLayout]) -> Any:
    """What the field ``type`` of *cls* may hold, without a look at its others; ``None`` where it has no such field."""
    for base in cls.__mro__:
        annotation = get_annotations(base).get("type")
        if annotation is not None:
            names = vars(sys.modules[base.__module__])
            return eval(annotation, names) if isinstance(annotation, str) else annotation  # our own
    return None


# ----------------------------------------------------------------------------------------------- layouts

_Field: TypeAlias = tuple[str, str, Kind, type | None, Any, bool]
"""Attribute, key, kind, the type taken as it is, default, whether ``None`` is allowed."""


class Layout:
    """How the records of one type stand in JSON."""

    def __init__(self, cls: type[HasLayout]) -> None:
        self.cls = cls
        hints = typing.get_type_hints(cls)
        self.fields: list[_Field] = []
        for name, default in [*cls.__fields__.items()][2:]:
            annotation = hints[name]
            kind = kind_of(annotation)
            nullable = types.NoneType in typing.get_args(annotation) or annotation is Any
            # The tag has been looked at when the type was chosen.
            plain = str if name == "type" and isinstance(kind, _Const) else kind.plain
            self.fields.append((name, name.rstrip("_"), kind, plain, default, nullable))
        # A slot's own setter takes less time than one that looks for the slot.
        self._slots: Final = [(getattr(cls, field[0]).__set__, *field) for field in self.fields]
        self._set_extensions: Final = getattr(cls, "extensions").__set__  # noqa: B009
        self._set_presence: Final = getattr(cls, "presence").__set__  # noqa: B009
        self.tags: Final = () if issubclass(cls, Unknown) else _tags(cls)
        self.keys: Final = frozenset(field[1] for field in self.fields)

    def read(self, data: dict[str, Any], keep: bool) -> Any:
        """The record that JSON object *data* stands for; it takes over the values inside *data*.

        Raises:
            Problem: it is no record of this type.
        """
        record = _new(self.cls)
        get = data.get
        found = 0
        presence: list[str] | None = None
        unknown: dict[str, Any] | None = None
        for put, name, key, kind, plain, default, nullable in self._slots:
            value = get(key, ABSENT)
            if type(value) is plain:
                found += 1
            elif value is ABSENT:
                if default is REQUIRED:
                    raise Problem("missing", at=step(key))
                value = default
                if default is not None:
                    presence = [*(presence or ()), name]
            elif value is None:
                if not nullable:
                    raise Problem("must not be null", at=step(key))
                found += 1
                presence = [*(presence or ()), name]
            else:
                try:
                    value = kind.read(value, keep)
                except Problem as problem:
                    problem.under(step(key))
                    raise
                if value is _UNKNOWN_WORD:
                    if not nullable:
                        raise Problem("unknown word", at=step(key))
                    unknown = {**(unknown or {}), key: data[key]}
                    value = None
                found += 1
            put(record, value)
        if found != len(data):
            keys = self.keys
            unknown = {**{key: data[key] for key in data if key not in keys}, **(unknown or {})}
        self._set_extensions(record, EMPTY_OBJECT if unknown is None else FrozenObject.adopt(unknown))
        self._set_presence(record, _NO_PRESENCE if presence is None else frozenset(presence))
        return record

    def silent(self, record: HasLayout) -> frozenset[str]:
        """The fields of *record* that do not stand in its JSON."""
        found = []
        for name, _, _, _, default, _ in self.fields:
            value = getattr(record, name)
            stands = (
                name in record.presence
                if value is None
                else not (name in record.presence and value == default)
            )
            if not stands:
                found.append(name)
        return frozenset(found)

    def write(self, record: HasLayout) -> dict[str, Any]:
        """The JSON object that stands for *record*."""
        data: dict[str, Any] = dict(plain_view(record.extensions)) if record.extensions else {}
        presence = record.presence
        for name, key, kind, plain, default, _ in self.fields:
            value = getattr(record, name)
            if value is None:
                if name in presence:
                    data[key] = None
            elif not (presence and name in presence and value == default):
                data[key] = value if plain is not None else kind.write(value)
        return data

    def accept(self, record: HasLayout) -> None:
        """Check the fields of *record*, which its constructor has just set, and bring them into their form.

        Raises:
            ResponsesValueError: a value is not allowed.
        """
        for name, _, kind, _, _, nullable in self.fields:
            value = getattr(record, name)
            if value is None and nullable:
                continue
            try:
                accepted = kind.accept(value)
            except Problem as problem:
                path = f"{self.cls.__name__}.{name}{problem.at}"
                failure = ResponsesValueError(str(problem), path=path)
            else:
                if accepted is not value:
                    _set(record, name, accepted)
                continue
            raise failure


_LAYOUTS: Final[dict[type[HasLayout], Layout]] = {}


def layout_of(cls: type[HasLayout]) -> Layout:
    """The layout of *cls*, worked out once."""
    layout = _LAYOUTS.get(cls)
    if layout is None:
        layout = _LAYOUTS[cls] = Layout(cls)
    return layout
