"""Records: immutable attrs classes for the JSON objects of the Responses API, how cattrs reads them, and their families."""

from __future__ import annotations

import functools
import importlib
import math
import threading
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import attrgetter
from types import NoneType
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
)

import attrs
from cattrs import BaseConverter
from cattrs.errors import AttributeValidationNote, ClassValidationError

from crosswalk.codec.canonical import (
    CanonicalConverter,
    Read,
    converter,
    json_types,
    origin_of,
    problems_in,
)
from crosswalk.codec.layout import (
    DocumentProblem,
    MissingKey,
    union_members,
    without_none,
)
from crosswalk.errors import ResponseValidationError
from crosswalk.responses.vocabulary import ResponsesValueError
from crosswalk.text import brief, summary
from crosswalk.types.json import (
    EMPTY_OBJECT,
    FrozenObject,
    as_frozen_object,
    as_frozen_value,
    freeze,
    plain_view,
    quoted,
    step,
)

# -------------------------------------------------------------------------------- families
# Families of records: unions whose members differ in ``type``, and the types that a program registers.


R = TypeVar("R", bound="Member")


class Member:
    """The base of all records, as the hooks see them."""

    __slots__ = ()
    __attrs_attrs__: ClassVar[Any]  # so that type checkers know attrs classes in them
    extensions: FrozenObject
    presence: frozenset[str]

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether JSON object *data* is one of these, where several types of a union share a ``type``."""
        return True


class Unknown:
    """Marks the records that represent objects of an unregistered type, exactly as received.

    Their members are in ``extensions``, except ``type`` and the fields that they share with their family.
    """

    __slots__ = ()
    family: ClassVar[str] = "object"
    """The expected kind of object, for error messages."""


class UnknownType(DocumentProblem):
    """An unregistered ``type``, reported as :class:`crosswalk.responses.UnknownTypeError`."""

    def __init__(self, family: str, tag: object) -> None:
        self.family = family
        self.type_name = quoted(tag) if isinstance(tag, str) else None
        super().__init__(
            f"unknown {family} type {self.type_name!r}" if self.type_name else f"{family} without a type"
        )


class Family:
    """Records of several types that differ in ``type``."""

    def __init__(self, members: tuple[type[Member], ...]) -> None:
        self.members = members
        self.unknown: type[Unknown] | None = next((m for m in members if issubclass(m, Unknown)), None)
        self.name = self.unknown.family if self.unknown else "object"

    @functools.cached_property
    def by_tag(self) -> dict[str | None, list[type[Member]]]:
        """The types for each tag. The key ``None`` has the types with an optional tag."""
        members_by_tag: dict[str | None, list[type[Member]]] = {}
        for member in self.members:
            if not issubclass(member, Unknown):
                for tag in tags_of(member):
                    members_by_tag.setdefault(tag, []).append(member)
        return members_by_tag

    def only(self, tag: object) -> type[Any] | None:
        """Return the type if *tag* alone identifies it."""
        candidates = self.by_tag.get(tag, []) if type(tag) is str else []
        return candidates[0] if len(candidates) == 1 else None

    def of(self, value: dict[str, Any], keep: bool) -> type[Any]:
        """Return the type of JSON object *value*. With *keep*, an unregistered type maps to the unknown record.

        Raises:
            UnknownType: the type is not registered.
        """
        tag = value.get("type")
        only_member = self.only(tag)
        if only_member is not None:
            return only_member
        if tag is None or type(tag) is str:
            for candidate in self.by_tag.get(tag, []):
                if candidate.claims(value):
                    return candidate
            if self.unknown is not None:
                registered_class = _REGISTERED_CLASSES.get((self.unknown, tag))
                if registered_class is not None:
                    return registered_class
                if keep:
                    return self.unknown
        raise UnknownType(self.name, tag)

    def has(self, value: object) -> bool:
        """Whether *value* is an instance of a member or of a registered type."""
        if isinstance(value, self.members):
            return True
        tag = getattr(value, "type", None)
        return self.unknown is not None and type(value) is _REGISTERED_CLASSES.get((self.unknown, tag))


class LazyFamily:
    """A family whose module is loaded on the first object that is not of a *common* type.

    Args:
        home: the module of the union.
        name: the name of the union in that module.
        common: types that most answers contain. Their tags must identify them within the union.
    """

    def __init__(self, home: str, name: str, common: tuple[type[Member], ...] = ()) -> None:
        self.home = home
        self.alias = name
        self._common_family = Family(common)

    def __repr__(self) -> str:
        return f"{self.home}.{self.alias}"

    @functools.cached_property
    def union(self) -> Any:
        """The union itself."""
        return getattr(importlib.import_module(self.home), self.alias)

    @functools.cached_property
    def whole(self) -> Family:
        """The family of all its types."""
        return Family(typing.get_args(self.union))

    @property
    def name(self) -> str:
        """The word for its objects in error messages."""
        return self.whole.name

    def only(self, tag: object) -> type[Any] | None:
        """See :meth:`Family.only`."""
        return self._common_family.only(tag) or self.whole.only(tag)

    def of(self, value: dict[str, Any], keep: bool) -> type[Any]:
        """See :meth:`Family.of`."""
        return self._common_family.only(value.get("type")) or self.whole.of(value, keep)

    def has(self, value: object) -> bool:
        """See :meth:`Family.has`."""
        return self._common_family.has(value) or self.whole.has(value)


_REGISTERED_CLASSES: dict[tuple[type[Unknown], str | None], type[Member]] = {}


def register(cls: type[R], unknown: type[Unknown]) -> type[R]:
    """Read objects with the ``type`` of *cls* as one, in every family with this *unknown* record.

    A type of the API keeps its meaning. If two classes have the same ``type``, the later one counts.

    Raises:
        TypeError: *cls* has no ``type`` that is a ``Literal``.
    """
    tags = [tag for tag in tags_of(cls) if tag is not None]
    if not tags:
        raise TypeError(f"{cls.__name__} has no literal type to be registered under")
    _REGISTERED_CLASSES.update({(unknown, tag): cls for tag in tags})
    return cls


def classes_of(union: Any) -> dict[str, type[Member]]:
    """The types of a *union* of records by their tag. If several have one tag, the first."""
    members = (member for member in typing.get_args(union) if not issubclass(member, Unknown))
    return {tag: member for member in reversed([*members]) for tag in tags_of(member) if tag is not None}


def tags_of(cls: type[Member]) -> tuple[str | None, ...]:
    """Return the tags of *cls*, with ``None`` if the tag is optional, or empty without a literal ``type``."""
    type_annotations = (getattr(base, "__annotations__", {}).get("type") for base in cls.__mro__)
    annotation = next((annotation for annotation in type_annotations if annotation is not None), None)
    if isinstance(
        annotation, str
    ):  # making and resolving the fields takes long, and most classes are never read
        annotation = next(field.type for field in resolved(cls) if field.name == "type")
    members = (annotation,) if typing.get_origin(annotation) is Literal else typing.get_args(annotation)
    if not any(typing.get_origin(member) is Literal for member in members):
        return ()
    return tuple(tag for member in members for tag in typing.get_args(member) or (None,))


def resolved(cls: type[Any]) -> tuple[attrs.Attribute[Any], ...]:
    """Return the attrs fields of *cls*, with postponed annotations resolved."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)
    if any(isinstance(field.type, str) for field in fields):
        attrs.resolve_types(cls)
        fields = attrs.fields(cls)
    return fields


def keys_of(cls: type[Any]) -> dict[str, str]:
    """Map the JSON keys of *cls* to its fields, without the two fields that every record has."""
    return {field.name.rstrip("_"): field.name for field in attrs.fields(cls)[2:]}


# ----------------------------------------------------------------------------------- hooks
# Hooks that read and write records with cattrs.
#
# The hooks do what cattrs cannot do alone. They tell null from absent, preserve unknown members, and choose the class
# of
# an object by its ``type``. :func:`record_converter` adds them to the converter of canonical JSON.


OnUnknown: TypeAlias = Literal["raise", "keep"]
"""How to treat an item, event, part … of an unregistered type, and an unknown word of a closed vocabulary:
``raise`` refuses it, ``keep`` keeps it."""

_new: Final = object.__new__
_ABSENT: Final = object()
_NO_PRESENCE: Final[frozenset[str]] = frozenset()
PLAIN: Final = frozenset({str, int, bool})
"""Field types whose JSON values need no hook."""


class UnknownWord(DocumentProblem):
    """A word outside a closed vocabulary."""


@functools.cache
def record_converter(on_unknown: OnUnknown) -> CanonicalConverter:
    """Return the converter that reads and writes records. ``"keep"`` accepts unknown words and types."""
    keep = on_unknown == "keep"
    new_converter = converter()
    add_shared_hooks(new_converter, functools.partial(_family_reader, keep=keep))
    new_converter.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: freeze(value))
    new_converter.register_structure_hook_factory(
        is_record, lambda cls: _record_reader(cls, new_converter, keep)
    )
    new_converter.register_unstructure_hook_func(
        lambda kind: _lazy_family(kind) is not None, new_converter.unstructure
    )
    new_converter.register_unstructure_hook(StrEnum, lambda word: word.value)
    new_converter.register_unstructure_hook_factory(is_record, lambda cls: _record_writer(cls, new_converter))
    return new_converter


def add_shared_hooks(
    new_converter: BaseConverter, read_family: Callable[[Family | LazyFamily, BaseConverter], Read]
) -> None:
    """Register the hooks for all but records with *new_converter*. *read_family* makes the hook for a family."""
    new_converter.register_structure_hook(float, _read_number)
    new_converter.register_structure_hook(StrEnum, _read_word)
    new_converter.register_structure_hook_factory(lambda kind: origin_of(kind) is Mapping, _mapping_factory)
    new_converter.register_structure_hook_factory(
        _is_union, functools.partial(_union_factory, read_family=read_family)
    )
    new_converter.register_structure_hook_factory(
        lambda kind: _lazy_family(kind) is not None,
        lambda kind: read_family(_lazy_family(kind), new_converter),
    )


def is_record(kind: Any) -> bool:
    """Whether *kind* is a class of records."""
    return isinstance(kind, type) and issubclass(kind, Member)


def _lazy_family(kind: Any) -> Any:
    families = [each for each in getattr(kind, "__metadata__", ()) if isinstance(each, LazyFamily)]
    return families[0] if families else None


def _is_union(kind: Any) -> bool:
    return len([member for member in union_members(kind) if member is not NoneType]) > 1


# ---------------------------------------------------------------------------------------------- leaves


def _read_number(value: Any, _: Any) -> Any:
    # An integer stays an integer, so that it is written back without a decimal point.
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise DocumentProblem.wrong_type("number", value)


def _read_word(value: Any, vocabulary: Any) -> Any:
    if not isinstance(value, str):
        raise DocumentProblem.wrong_type("string", value)
    try:
        return vocabulary(value)
    except ValueError:
        pass
    raise UnknownWord(f"unknown {vocabulary.__name__} {quoted(value)!r}")


def _mapping_factory(kind: Any, converter: BaseConverter) -> Read:
    dict_type: Any = dict[typing.get_args(kind)]  # type: ignore[misc]
    read = converter.get_structure_hook(dict_type)
    return lambda value, _: FrozenObject.adopt(read(value, dict_type))


# ---------------------------------------------------------------------------------------------- unions

_JSON_NAMES: Final = {
    str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object",
}  # fmt: skip


def _union_factory(
    kind: Any, converter: BaseConverter, *, read_family: Callable[[Family | LazyFamily, BaseConverter], Read]
) -> Read:
    """Make a hook for a union: the JSON type selects the member, and ``type`` selects among several records."""
    members = [member for member in union_members(kind) if member is not NoneType]
    record_classes = tuple(member for member in members if is_record(member))
    hooks = {
        json_type: (converter.get_structure_hook(member), member)
        for member in members
        if member not in record_classes
        for json_type in json_types(member)
    }
    if len(record_classes) == 1:
        hooks[dict] = (converter.get_structure_hook(record_classes[0]), record_classes[0])
    elif record_classes:
        hooks[dict] = (read_family(Family(record_classes), converter), kind)
        if len(hooks) == 1:
            return hooks[dict][0]
    expected_types = " or ".join(dict.fromkeys(_JSON_NAMES[each] for each in hooks))

    def read(value: Any, _: Any) -> Any:
        json_type = str if isinstance(value, str) else dict if isinstance(value, Member) else type(value)
        hook_and_member = hooks.get(json_type)
        if hook_and_member is None:
            raise DocumentProblem.wrong_type(expected_types, value)
        return hook_and_member[0](value, hook_and_member[1])

    return read


def _family_reader(family: Family | LazyFamily, converter: BaseConverter, *, keep: bool) -> Read:
    hooks: dict[str, Read] = {}  # for tags that identify one type

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise DocumentProblem.wrong_type("object", value)
        tag = value.get("type")
        hook = hooks.get(tag) if type(tag) is str else None
        if hook is None:
            hook = converter.get_structure_hook(family.of(value, keep))
            if type(tag) is str and family.only(tag):
                hooks[tag] = hook
        return hook(value, None)

    return read


# --------------------------------------------------------------------------------------------- records


class _Field(NamedTuple):
    put: Callable[[Any, Any], None]
    name: str
    key: str
    type: Any
    plain: type | None
    default: Any
    nullable: bool


def _fields_of(cls: type[Member]) -> list[_Field]:
    """List the fields of *cls*, except the two that every record has."""
    tags = tags_of(cls)
    record_fields = []
    for field in resolved(cls)[2:]:
        kind = without_none(field.type)
        needs_tag = field.name == "type" and tags and None not in tags
        record_fields.append(
            _Field(
                # The slot's own setter is faster than setattr, which has to look it up.
                put=getattr(cls, field.name).__set__,
                name=field.name,
                key=key_of(field.name),
                type=kind,
                plain=kind if kind in PLAIN else None,
                default=attrs.NOTHING if needs_tag else field.default,
                nullable=NoneType in union_members(field.type) or field.type is Any,
            )
        )
    return record_fields


def key_of(name: str) -> str:
    """Return the JSON key of a field: ``async`` for ``async_``."""
    return name.rstrip("_")


def _record_reader(cls: type[Member], converter: BaseConverter, keep: bool) -> Read:
    put_extensions, put_presence = getattr(cls, "extensions").__set__, getattr(cls, "presence").__set__  # noqa: B009
    fields: list[_Field] = []
    hooks: dict[str, Read] = {}  # made on first use: most answers need a few of them

    def read(data: Any, _: Any = cls) -> Any:
        if type(data) is not dict:
            raise DocumentProblem.wrong_type("object", data)
        if not fields:
            fields[:] = _fields_of(cls)
        record = _new(cls)
        get = data.get
        found_count = 0
        presence: list[str] = []
        unread_fields: dict[str, Any] = {}
        errors: list[Exception] = []
        for put, name, key, kind, plain_type, default, is_nullable in fields:
            value = get(key, _ABSENT)
            if type(value) is plain_type:
                found_count += 1
            elif value is _ABSENT:
                if default is attrs.NOTHING:
                    errors.append(MissingKey("a required key is missing", at=step(key)))
                value = default
                if default is not None:
                    presence.append(name)
            elif value is None and is_nullable:
                found_count += 1
                presence.append(name)
            else:
                found_count += 1
                try:
                    hook = hooks.get(name)
                    if hook is None:
                        hook = hooks[name] = converter.get_structure_hook(kind)
                    value = hook(value, kind)
                except RecursionError:
                    raise
                except Exception as error:
                    if keep and is_nullable and isinstance(error, UnknownWord):
                        unread_fields[key], value = value, None
                    else:
                        errors.append(_under(key, error))
            put(record, value)
        if errors:
            raise ClassValidationError(f"While structuring {cls.__name__}", errors, cls)
        if found_count != len(data):
            keys = {field.key for field in fields}
            unread_fields = {
                **{key: value for key, value in data.items() if key not in keys},
                **unread_fields,
            }
        put_extensions(record, FrozenObject.adopt(unread_fields) if unread_fields else EMPTY_OBJECT)
        put_presence(record, frozenset(presence) if presence else _NO_PRESENCE)
        return record

    return read


def _under(key: str, error: Exception) -> Exception:
    """Add *key* to the path of *error*."""
    if isinstance(error, DocumentProblem):
        return error.under(step(key))
    error.add_note(AttributeValidationNote(f"Structuring {key}", key, None))
    return error


def _record_writer(cls: type[Member], converter: BaseConverter) -> Callable[[Any], dict[str, Any]]:
    fields: list[tuple[str, str, Any, bool, Any]] = []
    hooks: dict[str, Callable[[Any], Any]] = {}

    def write(record: Any) -> dict[str, Any]:
        if not fields:
            fields[:] = [  # assigned at once, because another thread may be here too
                (field.name, key_of(field.name), kind, kind in PLAIN, field.default)
                for field in resolved(cls)[2:]
                for kind in (without_none(field.type),)
            ]
        data: dict[str, Any] = dict(plain_view(record.extensions)) if record.extensions else {}
        presence = record.presence
        for name, key, kind, is_plain, default in fields:
            value = getattr(record, name)
            if value is None:
                if name in presence:
                    data[key] = None
            elif not (presence and name in presence and value == default):
                if not is_plain:
                    hook = hooks.get(name)
                    if hook is None:
                        hook = hooks[name] = converter.get_unstructure_hook(kind)
                    value = hook(value)
                data[key] = value
        return data

    return write


# ---------------------------------------------------------------------------------- making
# Hooks that check the arguments of a record's constructor.
#
# They are those of the reader, but they accept records in the place of their JSON.


def checked(record: Member) -> list[tuple[str, Any]]:
    """Check the fields that the constructor of *record* has set, and return those that need another form.

    Raises:
        ResponsesValueError: a value is not allowed.
    """
    cls: Any = type(record)
    changed_fields = []
    for name, kind, is_nullable, hook in _plan_of(cls):
        value = getattr(record, name)
        if (value is None and is_nullable) or (type(value) is kind and kind in PLAIN):
            continue
        try:
            accepted_value = hook(_as_json(value), kind)
        except Exception as error:
            problem = problems_in(error)[0]
        else:
            if accepted_value is not value:
                changed_fields.append((name, accepted_value))
            continue
        # Raised outside of the handler, the error has no context, which would quote content.
        raise ResponsesValueError(str(problem), path=f"{cls.__name__}.{name}{problem.at}")
    return changed_fields


@functools.cache
def _plan_of(cls: Any) -> list[tuple[str, Any, bool, Read]]:
    """List the fields of *cls*: name, type, whether it may be ``None``, and the hook for its values."""
    plan = []
    for field in resolved(cls)[2:]:
        kind = without_none(field.type)
        is_nullable = NoneType in union_members(field.type) or field.type is Any
        plan.append((field.name, kind, is_nullable, _converter().get_structure_hook(kind)))
    return plan


def _as_json(value: Any) -> Any:
    """Return *value* in the type that JSON is decoded to, as the hooks of the reader expect it."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise DocumentProblem("expected strings as keys")
        return dict(value)
    return value


@functools.cache
def _converter() -> CanonicalConverter:
    new_converter = converter()
    add_shared_hooks(new_converter, _family)
    new_converter.register_structure_hook(str, _text)
    new_converter.register_structure_hook(FrozenObject, _object)
    new_converter.register_structure_hook_func(
        lambda kind: kind is Any, lambda value, _: _frozen(as_frozen_value, value)
    )
    new_converter.register_structure_hook_factory(is_record, lambda cls: _instance_of)
    return new_converter


def _text(value: Any, kind: Any) -> str:
    if not isinstance(value, str):
        raise DocumentProblem.wrong_type("string", value)
    return value if type(value) is str else str(value)


def _object(value: Any, _: Any) -> FrozenObject:
    if not isinstance(value, Mapping):
        raise DocumentProblem.wrong_type("object", value)
    return FrozenObject.adopt({}) if not value else _frozen(as_frozen_object, value)


def _frozen(freeze: Callable[[Any], Any], value: Any) -> Any:
    try:
        return freeze(value)
    except ResponseValidationError as error:
        problem = DocumentProblem(str(error))
    raise problem


def _instance_of(value: Any, cls: Any) -> Any:
    if not isinstance(value, cls):
        raise DocumentProblem(f"expected {cls.__name__}, got {type(value).__name__}")
    return value


def _family(family: Family | LazyFamily, _: BaseConverter) -> Read:
    def accept(value: Any, _: Any) -> Any:
        if not family.has(value):
            raise DocumentProblem(f"expected {family.name}, got {type(value).__name__}")
        return value

    return accept


# --------------------------------------------------------------------------------- records
# Records: immutable attrs classes that represent the JSON objects of the Responses API without losing a field.


RecordClass = TypeVar("RecordClass", bound=type[Any])

_set: Final = object.__setattr__
_NO_JSON_KEY: Final = {"json_key": None}


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attrs.field,))
def record(cls: RecordClass) -> RecordClass:
    """Make *cls*, which derives from :class:`ResponsesRecord`, a frozen attrs class with slots for its fields.

    Its annotations define the values that are read, written and accepted by the constructor. A field
    ``async_`` is ``async`` on the wire. A field that is a ``Literal`` named ``type`` is the tag of the class in
    unions.
    """
    # There are nearly 300 classes, and an answer has values of ten. So attrs makes the fields and the constructor of a
    # class when one of the two is first asked for. Until then the class has its slots alone.
    body = vars(cls)
    if any(_refers_to_its_class(value) for value in body.values()):
        return _complete(cls)
    own_names = [name for name, kind in cls.__annotations__.items() if not _is_class_variable(kind)]
    inherited_slots = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
    metaclass: Any = type(cls)
    new_class: RecordClass = metaclass(
        cls.__name__,
        cls.__bases__,
        {
            **{
                name: value
                for name, value in body.items()
                if name not in (*own_names, "__dict__", "__weakref__")
            },
            "__qualname__": cls.__qualname__,
            "__slots__": tuple(name for name in own_names if name not in inherited_slots),
            "__attrs_attrs__": _MadeLater(cls),
            "__init__": _MadeLater(cls),
        },
    )
    return new_class


def _refers_to_its_class(value: Any) -> bool:
    """Whether *value*, of the body of a class, works only in a class that attrs has made, as ``super()`` does."""
    function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return getattr(function, "__closure__", None) is not None or isinstance(value, functools.cached_property)


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return "ClassVar" in annotation.partition("[")[0]
    return (typing.get_origin(annotation) or annotation) is ClassVar


class _MadeLater:
    """The fields or the constructor of a record class, until one of the two is first asked for."""

    def __init__(self, declared: type[Any]) -> None:
        self._declared_class = declared

    def __set_name__(self, owner: Any, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        with _MAKING_LOCK:  # attrs changes the declared class while it makes the complete one
            # Another thread may have made it while this one waited.
            complete_class = _COMPLETE_CLASSES.get(self._owner) or _complete(self._declared_class)
            _COMPLETE_CLASSES[self._owner] = complete_class
            self._owner.__attrs_attrs__ = complete_class.__attrs_attrs__
            self._owner.__init__ = complete_class.__init__
        value = getattr(complete_class, self._name)
        return value.__get__(instance, owner) if self._name == "__init__" else value


_COMPLETE_CLASSES: Final[dict[Any, Any]] = {}
"""The class that attrs made of each record class."""
_MAKING_LOCK: Final = threading.RLock()
"""Held by the thread that makes a class: that may ask for the fields of another one."""
_complete: Final = attrs.frozen(
    # Records inherit the other methods that attrs would generate.
    auto_attribs=True,
    auto_detect=False,
    kw_only=True,
    eq=False,
    repr=False,
    match_args=False,
    weakref_slot=False,
    getstate_setstate=False,
)


@brief
@_complete
class ResponsesRecord(Member):
    """An object of the Responses API.

    In every field ``None`` means absent or ``null``. :attr:`presence` distinguishes the two.

    Attributes:
        extensions: unknown fields, as they were sent. They are written back.
        presence: exceptions to two rules of writing. ``None`` is omitted, except in these fields, which are written as
            ``null``. Other defaults are written, except in these fields, which are omitted.

    Raises:
        ResponsesValueError: a field has a value that its type does not allow.
    """

    extensions: FrozenObject = attrs.field(default=EMPTY_OBJECT, metadata=_NO_JSON_KEY)
    presence: frozenset[str] = attrs.field(default=frozenset(), metadata=_NO_JSON_KEY)

    def __attrs_post_init__(self) -> None:
        _set(self, "extensions", as_frozen_object(self.extensions))
        _set(self, "presence", frozenset(self.presence))
        for name, value in checked(self):
            _set(self, name, value)

    @classmethod
    def __structure_hook__(cls, converter: object) -> Callable[[Any, Any], Any]:
        """Return the hook with which any converter reads the class. It preserves unknown types and words."""
        hook: Callable[[Any, Any], Any] = record_converter("keep").get_structure_hook(cast(Any, cls))
        return hook

    @classmethod
    def __union_hook__(cls, union: Any) -> Callable[[Any, Any], Any]:
        """Return the hook with which any converter reads a union of records."""
        hook: Callable[[Any, Any], Any] = record_converter("keep").get_structure_hook(union)
        return hook

    @classmethod
    def __unstructure_hook__(cls, converter: object) -> Callable[[Any], Any]:
        """Return the hook with which any converter writes the class."""
        hook: Callable[[Any], Any] = record_converter("keep").get_unstructure_hook(cast(Any, cls))
        return hook

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(_values(self) == _values(other))

    def __hash__(self) -> int:
        return hash((type(self), _values(self)))

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            _set(self, name, value)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with *changes*.

        Raises:
            ResponsesValueError: a new value is not allowed.
            TypeError: unknown field.
        """
        copy: Self = attrs.evolve(cast(Any, self), **changes)
        return copy

    def __repr__(self) -> str:
        names = [field.name for field in resolved(type(self)) if field.name not in ("presence", "type")]
        fields = [(name, getattr(self, name)) for name in (*names[1:], names[0])]  # the extensions last
        return summary(type(self).__name__, fields)


def _values(one: Any) -> Any:
    cls: Any = type(one)
    return _values_of(cls)(one)


@functools.cache
def _values_of(cls: Any) -> attrgetter[Any]:
    return attrgetter(*(field.name for field in attrs.fields(cls)))
