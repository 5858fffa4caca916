"""Records: immutable values that stand for a JSON object of the Responses API, none of whose fields is lost."""

from __future__ import annotations

from inspect import Parameter, Signature, get_annotations
from operator import attrgetter
from typing import Any, Final, NoReturn, Self, TypeVar, cast, dataclass_transform

from crosswalk.responses.layouts import REQUIRED, HasLayout, Unknown, layout_of
from crosswalk.text import brief, summary
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object

__all__ = ["Record", "Unknown", "record"]

R = TypeVar("R", bound=type[Any])

_set: Final = object.__setattr__


@dataclass_transform(kw_only_default=True, frozen_default=True)
def record(cls: R) -> R:
    """Make *cls*, which derives from :class:`Record`, an immutable class with slots for its fields.

    Its annotations are its wire format: what they allow is read, written and accepted by the constructor, see
    :mod:`crosswalk.responses.layouts`. A field ``async_`` is ``async`` on the wire. A field that is a ``Literal``
    named ``type`` makes it a member of the tagged unions in which it stands.
    """
    # There are some 300, and a program uses a few: what they share, they inherit, so that each is made in no time.
    names = [name for name, of in get_annotations(cls).items() if "ClassVar" not in str(of)]
    body = {
        name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", *names)
    }
    inherited = {name: default for base in cls.__mro__[:0:-1] for name, default in _fields(base).items()}
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    body["__fields__"] = {name: default for name, default in inherited.items() if name not in names} | {
        name: vars(cls).get(name, REQUIRED) for name in names
    }
    made: Any = type(cls)
    return cast(R, made(cls.__name__, cls.__bases__, body))


def _fields(base: type[Any]) -> dict[str, Any]:
    fields: dict[str, Any] = vars(base).get("__fields__", {})
    return fields


class _Signature:
    """What the constructor of a record takes, for those who ask."""

    def __get__(self, instance: object, owner: type[HasLayout]) -> Signature:
        fields = owner.__fields__.items()
        return Signature(
            [
                Parameter(
                    name, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is REQUIRED else default
                )
                for name, default in sorted(fields, key=lambda field: field[1] is not REQUIRED)
            ]
        )


@brief
@record
class Record(HasLayout):
    """An object of the Responses API.

    In every field ``None`` means that the server sent nothing, or ``null``; :attr:`presence` knows which.

    Attributes:
        extensions: the fields that its type does not know, as they were sent; they are written back.
        presence: the fields whose presence in JSON their value does not tell: those that are ``None`` and stand
            there as ``null`` (``None`` is left out otherwise), and those that have their default and do not stand
            there (a default that is not ``None`` is written otherwise).

    Raises:
        ResponsesValueError: a field has a value that its type does not allow.
    """

    extensions: FrozenObject = EMPTY_OBJECT
    presence: frozenset[str] = frozenset()

    __signature__ = _Signature()

    def __init__(self, **values: Any) -> None:
        fields = self.__fields__
        given = fields | values
        if len(given) > len(fields):
            unknown = next(name for name in values if name not in fields)
            raise TypeError(f"{type(self).__name__}() got an unexpected argument {unknown!r}")
        for name, value in given.items():
            if value is REQUIRED:
                raise TypeError(f"{type(self).__name__}() lacks the required argument {name!r}")
            _set(self, name, value)
        if "extensions" in values:
            _set(self, "extensions", as_frozen_object(self.extensions))
        if "presence" in values:
            _set(self, "presence", frozenset(self.presence))
        layout_of(type(self)).accept(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((type(self), _values(self)))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise _frozen()

    def __delattr__(self, name: str) -> NoReturn:
        raise _frozen()

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            _set(self, name, value)

    def replace(self, **changes: Any) -> Self:
        """A copy in which *changes* are made.

        Raises:
            ResponsesValueError: a new value is not allowed.
            TypeError: there is no such field.
        """
        return type(self)(**{name: getattr(self, name) for name in self.__fields__} | changes)

    def __repr__(self) -> str:
        fields = [(name, getattr(self, name)) for name in _shown(type(self))]
        return summary(type(self).__name__, fields)


def _values(one: Record) -> tuple[Any, ...]:
    values: tuple[Any, ...] = attrgetter(*one.__fields__)(one)
    return values


def _frozen() -> AttributeError:
    from attrs.exceptions import FrozenInstanceError

    return FrozenInstanceError()


def _shown(cls: type[Record]) -> list[str]:
    names = [name for name in cls.__fields__ if name not in {"presence", "type"}]
    return [*names[1:], names[0]]  # the extensions last
