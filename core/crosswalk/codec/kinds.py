"""How one kind of value stands in JSON: what is read, checked and written, field by field.

A class of values is told by the annotations of its fields. Which kinds these stand for differs (canonical types, answers
of models, records of the Responses API); what a kind does does not. Each takes a JSON value to a value without coercing
anything, or raises a :class:`Problem` with its place.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

import attrs

from crosswalk.codec.layout import union_members, without_none
from crosswalk.codec.problems import Problem, collected, step
from crosswalk.errors import ResponseValidationError
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_value, freeze, plain_view

__all__ = [
    "ABSENT",
    "Array",
    "Either",
    "FixedArray",
    "FrozenJSON",
    "JSONObject",
    "Kind",
    "Kinds",
    "Leaf",
    "MapOf",
    "Mark",
    "Nullable",
    "Number",
]


class Mark:
    """A value that no field can have."""


ABSENT: Final = Mark()
"""What stands where a key does not."""


class Kind:
    """How one sort of value is read, written and checked; any JSON value as it is, unless a subclass says otherwise."""

    plain: type | None = None
    """The type of JSON value that is taken as it is; ``None`` when each has to be read."""
    json_types: tuple[type, ...] = (str, int, float, bool, list, dict)
    """The types of JSON value that can be one."""

    def read(self, value: Any, keep: bool = False) -> Any:
        """The value that JSON *value* stands for; *keep* says what to do with an unknown type or word.

        Raises:
            Problem: it stands for none.
        """
        return value

    def accept(self, value: Any) -> Any:
        """*value*, given to a constructor, in the form in which it is held.

        Raises:
            Problem: a field of this kind cannot hold it.
        """
        return self.read(value)

    def write(self, value: Any) -> Any:
        """The JSON value of *value*."""
        return value


# ---------------------------------------------------------------------------------------------- leaves


class FrozenJSON(Kind):
    """Any JSON value, read-only."""

    def read(self, value: Any, keep: bool = False) -> Any:
        return freeze(value)

    def accept(self, value: Any) -> Any:
        try:
            return as_frozen_value(value)
        except ResponseValidationError as error:
            raise Problem(str(error)) from None

    def write(self, value: Any) -> Any:
        return plain_view(value)


_new: Final = object.__new__


class JSONObject(FrozenJSON):
    """A JSON object of any content, read-only."""

    json_types = (dict,)

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        if not value:
            return EMPTY_OBJECT
        frozen = _new(FrozenObject)  # as FrozenObject.adopt does; without the call, for there are many
        frozen._data = value
        return frozen

    def accept(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Problem.wrong_type("object", value)
        return super().accept(value)


class Leaf(Kind):
    """A string, number or boolean; a number that is written without a point stays so."""

    def __init__(self, leaf: type, word: str) -> None:
        self.leaf = leaf
        self.word = word
        self.plain = None if leaf is float else leaf
        self.json_types = (int, float) if leaf is float else (leaf,)

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) not in self.json_types or (type(value) is float and not math.isfinite(value)):
            raise Problem.wrong_type(self.word, value)
        return value

    def accept(self, value: Any) -> Any:
        return self.read(str(value) if self.leaf is str and isinstance(value, str) else value)


class Number(Leaf):
    """A number, held as a ``float``."""

    def __init__(self) -> None:
        super().__init__(float, "number")
        self.plain = float

    def read(self, value: Any, keep: bool = False) -> Any:
        return float(super().read(value))


# -------------------------------------------------------------------------------- unions and collections


class Nullable(Kind):
    """A value of one kind, or null; a field knows by itself whether it may be null."""

    def __init__(self, known: Kind) -> None:
        self.known = known
        self.json_types = (*known.json_types, types.NoneType)

    def read(self, value: Any, keep: bool = False) -> Any:
        return None if value is None else self.known.read(value, keep)


class Array(Kind):
    """An array of one kind of value, held as a tuple or a list."""

    json_types = (list,)

    def __init__(self, item: Kind, make: type = tuple) -> None:
        self.item = item
        self._make = make

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not list:
            raise Problem.wrong_type("array", value)
        if not value:
            return self._make()
        plain, read = self.item.plain, self.item.read
        done: list[Any] = []
        problem: Problem | None = None
        for item in value:
            try:
                done.append(item if type(item) is plain else read(item, keep))
            except Problem as found:
                problem = collected(problem, found.under(step(len(done))))
                done.append(None)
        if problem is not None:
            raise problem
        return self._make(done)

    def accept(self, value: Any) -> Any:
        if not isinstance(value, tuple | list):
            raise Problem(f"expected a tuple, got {type(value).__name__}")
        return self._make(_each(enumerate(value), self.item.accept).values())

    def write(self, value: Any) -> Any:
        write = self.item.write
        return [write(item) for item in value]


class FixedArray(Kind):
    """An array whose items each have a kind of their own, held as a tuple."""

    json_types = (list,)

    def __init__(self, kinds: list[Kind]) -> None:
        self.kinds = kinds

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not list:
            raise Problem.wrong_type("array", value)
        if len(value) != len(self.kinds):
            raise Problem(f"expected an array of length {len(self.kinds)}, got one of {len(value)}")
        pairs = enumerate(zip(self.kinds, value, strict=True))
        return tuple(_each(pairs, lambda pair: pair[0].read(pair[1], keep)).values())


class MapOf(Kind):
    """An object with values of one kind under any keys."""

    json_types = (dict,)

    def __init__(self, item: Kind, make: Callable[[dict[str, Any]], Any]) -> None:
        self.item = item
        self._make = make

    def read(self, value: Any, keep: bool = False) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        return self._make(_each(value.items(), lambda item: self.item.read(item, keep)))

    def accept(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Problem(f"expected a mapping, got {type(value).__name__}")
        if not all(isinstance(key, str) for key in value):
            raise Problem("expected strings as keys")
        return self._make(_each(value.items(), self.item.accept))

    def write(self, value: Any) -> Any:
        return {key: self.item.write(item) for key, item in value.items()}


def _each(items: Iterable[tuple[Any, Any]], do: Callable[[Any], Any]) -> dict[Any, Any]:
    """What *do* makes of each value, by key; all that is wrong is told."""
    done: dict[Any, Any] = {}
    problem: Problem | None = None
    for key, item in items:
        try:
            done[key] = do(item)
        except Problem as found:
            problem = collected(problem, found.under(step(key)))
    if problem is not None:
        raise problem
    return done


class Either(Kind):
    """One of several kinds, told apart by the type of the JSON value."""

    def __init__(self, kinds: list[Kind]) -> None:
        self.kinds = {json_type: kind for kind in kinds for json_type in kind.json_types}
        self.json_types = tuple(self.kinds)

    def _of(self, value: Any, json_type: type) -> Kind:
        kind = self.kinds.get(json_type)
        if kind is None:
            raise Problem.wrong_type(
                " or ".join(dict.fromkeys(_JSON_NAMES[each] for each in self.kinds)), value
            )
        return kind

    def read(self, value: Any, keep: bool = False) -> Any:
        return self._of(value, type(value)).read(value, keep)

    def accept(self, value: Any) -> Any:
        return self._of(value, _json_type(value)).accept(value)

    def write(self, value: Any) -> Any:
        return self._of(value, _json_type(value)).write(value)


_JSON_NAMES: Final = {
    str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object",
}  # fmt: skip


def _json_type(value: Any) -> type:
    """The type of the JSON value that *value* is written as."""
    if isinstance(value, Mapping) or attrs.has(type(value)) or hasattr(type(value), "__fields__"):
        return dict
    if isinstance(value, tuple | list):
        return list
    return str if isinstance(value, str) else type(value)


# ------------------------------------------------------------------------------- from annotations to kinds


class Kinds:
    """The kind of each annotation, worked out once.

    Args:
        leaves: those that stand for themselves.
        own: gives the kind of an annotation that is not read as any other of its sort; ``None`` for the others.
        make_map: makes what holds a mapping of a dict.
    """

    def __init__(
        self,
        leaves: Mapping[Any, Kind],
        own: Callable[[Any], Kind | None],
        make_map: Callable[[dict[str, Any]], Any] = dict,
    ) -> None:
        self._known: dict[Any, Kind] = {(leaf, ()): kind for leaf, kind in leaves.items()}
        self._own = own
        self._make_map = make_map

    def of(self, annotation: Any) -> Kind:
        """The kind of value that *annotation* allows.

        Raises:
            TypeError: nothing in JSON is.
        """
        arguments = typing.get_args(annotation)  # in their order, which unions that are equal need not share
        if (annotation, arguments) not in self._known:
            self._known[annotation, arguments] = self._own(annotation) or self._made(annotation, arguments)
        return self._known[annotation, arguments]

    def _made(self, annotation: Any, arguments: tuple[Any, ...]) -> Kind:
        origin = typing.get_origin(annotation)
        if origin is tuple and arguments[1:] != (...,):
            return FixedArray([self.of(each) for each in arguments])
        if origin in (tuple, list):
            return Array(self.of(arguments[0]), origin)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return MapOf(self.of(arguments[1]), self._make_map)
        if types.NoneType in union_members(annotation):
            return Nullable(self.of(without_none(annotation)))
        _refuse(annotation)


def _refuse(annotation: Any) -> NoReturn:
    raise TypeError(f"no JSON is read as {annotation!r}")
