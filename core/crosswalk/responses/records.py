"""Records: immutable attrs classes that represent the JSON objects of the Responses API without losing a field."""

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Self, TypeVar, cast, dataclass_transform

import attrs

from crosswalk.responses.families import Member, Unknown as Unknown, resolved
from crosswalk.responses.hooks import record_converter
from crosswalk.responses.making import checked
from crosswalk.text import brief, summary
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object

R = TypeVar("R", bound=type[Any])

_set: Final = object.__setattr__
_IS_NO_KEY: Final = {"json_key": None}


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attrs.field,))
def record(cls: R) -> R:
    """Make *cls*, which derives from :class:`Record`, a frozen attrs class with slots for its fields.

    Its annotations define the values that are read, written and accepted by the constructor. A field
    ``async_`` is ``async`` on the wire. A field that is a ``Literal`` named ``type`` is the tag of the class in
    unions.
    """
    # Records inherit the methods that attrs would generate, because there are nearly 300 classes to build.
    made: R = attrs.frozen(
        cls,
        auto_attribs=True,
        auto_detect=False,
        kw_only=True,
        eq=False,
        repr=False,
        match_args=False,
        weakref_slot=False,
        getstate_setstate=False,
    )
    return made


@brief
@record
class Record(Member):
    """An object of the Responses API.

    In every field ``None`` means absent or ``null``. :attr:`presence` distinguishes the two.

    Attributes:
        extensions: unknown fields, as they were sent. They are written back.
        presence: exceptions to two rules of writing. ``None`` is omitted, except in these fields, which are written as
            ``null``. Other defaults are written, except in these fields, which are omitted.

    Raises:
        ResponsesValueError: a field has a value that its type does not allow.
    """

    extensions: FrozenObject = attrs.field(default=EMPTY_OBJECT, metadata=_IS_NO_KEY)
    presence: frozenset[str] = attrs.field(default=frozenset(), metadata=_IS_NO_KEY)

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
def _values_of(cls: Any) -> "attrgetter[Any]":
    return attrgetter(*(field.name for field in attrs.fields(cls)))
