"""A client's JSON, read by taking fields. The residue has no canonical counterpart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import attrs

from crosswalk.errors import ResponseValidationError
from crosswalk.text import json_type_name, meant

T = TypeVar("T")
Place: TypeAlias = tuple[str | int, ...]
"""The path of a value: keys of objects and numbers of items, outermost first."""
_LONGEST = 60
_TYPE_NAMES = {str: "a string", bool: "a boolean", int: "a whole number", dict: "an object"}


def path_of(place: Place) -> str:
    """*place* as people write it: ``messages[0].content``."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step:.{_LONGEST}}" for step in place)
    return path.removeprefix(".")


class FieldError(ResponseValidationError):
    """A field violates its format. The message names the path and quotes no content.

    Attributes:
        path: its path, such as ``messages[0].content[1].type``, or ``""`` for the body as a whole.
        problem: the problem.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


@attrs.frozen
class Unread:
    """A part of a client's request without a canonical field.

    Attributes:
        place: its path.
        value: the value, as the client sent it.
        reason: the reason why it is not read, or empty for a field of an unknown name.
        known: the names that are read in its place.
    """

    place: Place
    value: Any
    reason: str = ""
    known: Collection[str] = attrs.field(default=(), eq=False)

    @property
    def why(self) -> str:
        """The reason why it is not read, with a suggestion for an unknown name."""
        suggestion = meant(str(self.place[-1]), self.known)
        return self.reason or f"is not a field that Crosswalk reads here{suggestion}"

    @property
    def path(self) -> str:
        """The place, as people write it."""
        return path_of(self.place)

    @property
    def option(self) -> str:
        """The name of the path in the table of options, with the value of a list's item."""
        if isinstance(self.place[-1], int) and isinstance(self.value, str):
            return f"{self.place[0]}[]={self.value}"
        return self.path


class Fields:
    """An object of a client's request. Each ``take`` removes a field, and returns ``None`` if it is absent or null.

    Args:
        value: the object.
        place: its path.
        spelled: returns the name under which a field is taken, for formats in which it has several spellings.

    Attributes:
        is_told: whether other servers get the object as text, because they have no place for it.

    Raises:
        FieldError: *value* is not an object. From each method: a field has a wrong type.
    """

    def __init__(self, value: Any, place: Place = (), spelled: Callable[[str], str] = str) -> None:
        self.place = place
        self._spelled = spelled
        if not isinstance(value, dict):
            self.refuse(f"must be an object, not {json_type_name(value)}")
        self._left: dict[str, Any] = {
            spelled(name): member for name, member in value.items() if member is not None
        }
        self._given_names = {} if spelled is str else {spelled(name): name for name in value}
        self._inner_fields: list[Fields] = []
        self.given, self._leave_reason = value, ""
        self._names: set[str] = set()
        self.is_told = False

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def __iter__(self) -> Iterator[str]:
        return iter(self._left)

    def look(self, name: str) -> Any:
        """Return the field *name* unchanged, without taking it."""
        return self._left.get(name)

    def take(self, name: str) -> Any:
        """The field *name*, of any type."""
        self._names.add(name)
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        """A string."""
        return self._typed(name, str, "a string")  # type: ignore[no-any-return]

    def flag(self, name: str) -> bool | None:
        """A boolean."""
        return self._typed(name, bool, "a boolean")  # type: ignore[no-any-return]

    def whole(self, name: str) -> int | None:
        """A whole number, which may be written as ``40.0``."""
        value = self.look(name)
        if type(value) is float and value.is_integer():
            self.give(name, int(value))
        return self._typed(name, int, "a whole number")  # type: ignore[no-any-return]

    def number(self, name: str) -> float | None:
        """A number."""
        return self._typed(name, (int, float), "a number")  # type: ignore[no-any-return]

    def items(self, name: str) -> list[Any] | None:
        """A list, with whatever in it."""
        return self._typed(name, list, "a list")  # type: ignore[no-any-return]

    def texts(self, name: str) -> list[str] | None:
        """A list of strings."""
        items = self.items(name)
        for number, item in enumerate(items or ()):
            if not isinstance(item, str):
                self.refuse(f"must be a string, not {json_type_name(item)}", name, number)
        return items

    def plain(self, name: str) -> dict[str, Any] | None:
        """An object that is taken as a whole."""
        return self._typed(name, dict, "an object")  # type: ignore[no-any-return]

    def object(self, name: str) -> Fields | None:
        """Return an object, to take its fields one by one."""
        if name not in self._left:
            return None
        return self._kept(Fields(self.take(name), self._at(name), self._spelled))

    def inside(self, name: str) -> Fields | None:
        """Return the object *name* as from :meth:`object`, also if it was opened before."""
        place = self._at(name)
        return next((fields for fields in self._inner_fields if fields.place == place), None) or self.object(
            name
        )

    def typed(self, name: str, kind: type) -> Any:
        """A value of the JSON type *kind*, or of any for ``object``. The items of a list are strings."""
        if kind is list:
            return self.texts(name)
        return self.take(name) if kind is object else self._typed(name, kind, _TYPE_NAMES[kind])

    def objects(self, name: str) -> Iterator[Fields]:
        """Return the objects of a list, to take their fields one by one, or none if it is absent."""
        for number, item in enumerate(self.items(name) or ()):
            yield self._kept(Fields(item, self._at(name, number), self._spelled))

    def each(self, name: str, *ready: type) -> Iterator[Any]:
        """Return the items of a list like :meth:`objects`. Values of the types *ready* are returned unchanged."""
        for number, item in enumerate(self.items(name) or ()):
            is_ready = isinstance(item, ready)
            yield item if is_ready else self._kept(Fields(item, (*self.place, name, number)))

    def opened(self, name: str) -> list[Fields]:
        """Return the items of the list *name* that were taken as objects."""
        place = self._at(name)
        return [fields for fields in self._inner_fields if fields.place[:-1] == place]

    @property
    def is_left(self) -> bool:
        """Whether the object is left as a whole."""
        return bool(self._leave_reason)

    def need(self, name: str, value: Any) -> Any:
        """*value*, which was taken as *name* and must not be absent."""
        if value is None:
            self.refuse(f"is missing{meant(name, self._left)}", name)
        return value

    def is_text(self, name: str) -> str | None:
        """A string, which stays."""
        return self._kept_as(name, self.text(name))

    def is_flag(self, name: str) -> bool | None:
        """A boolean, which stays."""
        return self._kept_as(name, self.flag(name))

    def is_whole(self, name: str) -> int | None:
        """A whole number, which stays."""
        return self._kept_as(name, self.whole(name))

    def give(self, name: str, value: Any) -> None:
        """Give *value* back, which was taken as *name*."""
        self._left[name] = value

    def rest(self) -> dict[str, Any]:
        """All fields that are left."""
        remainder, self._left = self._left, {}
        return remainder

    def leave(self, why: str = "is of a type that Crosswalk does not read") -> None:
        """Leave the object as a whole, with what was taken of it: it is not understood, for the reason *why*.

        Without a reason it is understood after all, and only its other fields are left.
        """
        self._leave_reason = why

    def tell(self, *but: str) -> dict[str, Any]:
        """Take all fields except *but*, to be told as text, and return them as the client sent them."""
        self.is_told, self._leave_reason = True, ""
        fields = {
            name: member for name, member in self.given.items() if member is not None and name not in but
        }
        self._left = {name: member for name, member in self._left.items() if name in but}
        return fields

    def told(self) -> Iterator[str]:
        """Return the paths of the objects that are told as text, in this one and inside."""
        if self.is_told:
            yield path_of(self.place)
        for inner in self._inner_fields:
            yield from inner.told()

    def unread(self) -> Iterator[Unread]:
        """Return the residue of this object and of those inside it."""
        if self._leave_reason:
            yield Unread(self.place, self.given, self._leave_reason)
            return
        for name, value in self._left.items():
            yield Unread(self._at(name), value, known=self._names)
        for inner in self._inner_fields:
            yield from inner.unread()

    def refuse(self, problem: str, *at: str | int) -> NoReturn:
        """Raise what is wrong here, or in the field *at*."""
        raise self.wrong(problem, *at)

    def wrong(self, problem: str, *at: str | int) -> FieldError:
        """Return the error for what is wrong here, or in the field *at*."""
        return FieldError(problem, path_of(self._at(*at)))

    def respelled(self, spelled: Callable[[str], str]) -> Fields:
        """Return the fields that are left, each under the name that *spelled* returns for it."""
        fields = Fields(self._left, self.place, spelled)
        fields.given = self.given
        return fields

    def _at(self, *steps: str | int) -> Place:
        """Return the path of the value at *steps* in this object, as the client spells it."""
        if steps and self._given_names and isinstance(steps[0], str):
            steps = (self._given_names.get(steps[0], steps[0]), *steps[1:])
        return (*self.place, *steps)

    def _kept(self, fields: Fields) -> Fields:
        self._inner_fields.append(fields)
        return fields

    def _kept_as(self, name: str, value: T) -> T:
        if value is not None:
            self._left[name] = value
        return value

    def _typed(self, name: str, kinds: type | tuple[type, ...], expected_text: str) -> Any:
        self._names.add(name)
        value = self._left.pop(name, None)
        if value is not None and (
            not isinstance(value, kinds) or (type(value) is bool and kinds is not bool)
        ):
            self.refuse(f"must be {expected_text}, not {json_type_name(value)}", name)
        return value


class placed:  # used like a function
    """Add the path *at* in *fields* to errors of the block."""

    def __init__(self, fields: Fields, *at: str | int) -> None:
        self._fields = fields
        self._at = at

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Refuse the fields for an *error* that names no place."""
        if isinstance(error, ResponseValidationError) and not isinstance(error, FieldError):
            raise self._fields.wrong(str(error), *self._at) from None


class UnnamedCalls:
    """Makes the ids of the calls of a history that have none, and finds the results that name no call."""

    def __init__(self) -> None:
        self._waiting_calls: list[tuple[str, Any]] = []

    def id_of(self, place: Place, name: Any = None) -> str:
        """Return an id for the call at *place* of the tool *name*."""
        id = "_".join(("call_unnamed", *(str(step) for step in place if isinstance(step, int))))
        self._waiting_calls.append((id, name))
        return id

    def answered(self, name: Any = None) -> str | None:
        """Return the id of the first call that has no result so far, of the tool *name* if there is one, or ``None``."""
        fitting_calls = (call for call in self._waiting_calls if name in (None, call[1]))
        if (waiting_call := next(fitting_calls, None)) is None:
            return None
        self._waiting_calls.remove(waiting_call)
        return waiting_call[0]

    def forget(self) -> None:
        """Begin a new answer: no later result is of a call before it."""
        self._waiting_calls = []


def objects_at(said: Any, paths: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the objects at *paths* in *said*, each with its path."""
    waiting: list[tuple[Place, Any]] = [((), said)] if paths else []
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict) and (path := path_of(place)) in paths:
            yield path, value
        elif isinstance(value, dict | list):
            steps = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((*place, step), inner) for step, inner in steps]


_SEALS: Final = frozenset({"signature", "thoughtSignature", "thought_signature", "fingerprint"})
"""Fields that only their provider can read. So are those with names that begin with ``encrypted_``."""


def readable(value: Any) -> Any:
    """Return *value* without the fields that only their provider can read."""
    if isinstance(value, dict):
        return {
            key: readable(inner)
            for key, inner in value.items()
            if key not in _SEALS and not key.startswith("encrypted_")
        }
    return [readable(inner) for inner in value] if isinstance(value, list) else value
