"""Records: immutable values that stand for a JSON object of the Responses API, none of whose fields is lost."""

from __future__ import annotations

from typing import Any, Self, TypeVar, cast, dataclass_transform

import attrs

from crosswalk.responses.layouts import HasLayout, Unknown, attributes_of, layout_of
from crosswalk.text import brief, summary
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object

__all__ = ["Record", "Unknown", "record"]

R = TypeVar("R", bound=type[Any])


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attrs.field,))
def record(cls: R) -> R:
    """Make *cls*, which derives from :class:`Record`, an immutable attrs class with slots.

    Its annotations are its wire format: what they allow is read, written and accepted by the constructor, see
    :mod:`crosswalk.responses.layouts`. A field ``async_`` is ``async`` on the wire. A field that is a ``Literal``
    named ``type`` makes it a member of the tagged unions in which it stands.
    """
    return attrs.frozen(cls, kw_only=True, repr=False, weakref_slot=False)


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

    extensions: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)
    presence: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)

    def __attrs_post_init__(self) -> None:
        layout_of(type(self)).accept(self)

    def replace(self, **changes: Any) -> Self:
        """A copy in which *changes* are made.

        Raises:
            ResponsesValueError: a new value is not allowed.
            TypeError: there is no such field.
        """
        evolve: Any = attrs.evolve  # mypy does not take a dataclass_transform for an attrs class
        return cast(Self, evolve(self, **changes))

    def __repr__(self) -> str:
        fields = [(name, getattr(self, name)) for name in _shown(type(self))]
        return summary(type(self).__name__, fields)


def _shown(cls: type[Record]) -> list[str]:
    names = [field.name for field in attributes_of(cls) if field.name not in {"presence", "type"}]
    return [*names[1:], names[0]]  # the extensions last
